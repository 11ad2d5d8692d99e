/* item: see item.h. */
#include "fetch/item.h"

#include <stddef.h>

static unsigned badness(const struct item_url *u,
                        const struct item_host *hosts)
{
    return u->failures + hosts[u->host].failures;
}

uint64_t item_next(struct item *it, const struct item_host *hosts,
                   uint64_t now_ms)
{
    uint64_t wait_ms = UINT64_MAX;
    const struct item_url *best = NULL;

    for (unsigned i = 0; i < it->n_urls; i++) {
        const struct item_url *u = &it->urls[i];

        if (u->dead)
            continue;
        if (u->ready_ms > now_ms) {
            if (u->ready_ms < wait_ms)
                wait_ms = u->ready_ms;
        } else if (!best || badness(u, hosts) < badness(best, hosts)) {
            best = u;
            it->url = i;
        }
    }
    return best ? 0 : wait_ms;
}

static uint64_t backoff_ms(unsigned failures, uint64_t random)
{
    uint64_t d = ITEM_BACKOFF_MIN_MS;

    for (unsigned i = 1; i < failures && d < ITEM_BACKOFF_MAX_MS; i++)
        d *= 2;
    if (d > ITEM_BACKOFF_MAX_MS)
        d = ITEM_BACKOFF_MAX_MS;
    return d - d / 4 * (random % 1024) / 1024; /* Not all in step. */
}

/* An attempt that got the file on does not count with those before it. */
static void again(struct item *it, struct item_url *u,
                  const struct item_result *r, unsigned retries,
                  uint64_t random, uint64_t now_ms)
{
    uint64_t wait_ms;

    if (r->offset >= it->furthest + ITEM_PROGRESS_MIN)
        u->failures = 0;
    u->failures++;
    wait_ms = backoff_ms(u->failures, random);
    if (r->retry_after_ms > wait_ms)
        wait_ms = r->retry_after_ms < ITEM_RETRY_AFTER_MAX_MS
                      ? r->retry_after_ms
                      : ITEM_RETRY_AFTER_MAX_MS;
    u->ready_ms = now_ms + wait_ms;
    if (u->failures > retries) {
        u->dead = true;
        it->saw_resource = true;
    }
}

void item_ended(struct item *it, struct item_host *hosts,
                const struct item_result *r, unsigned retries, uint64_t random,
                uint64_t now_ms)
{
    struct item_url *u = &it->urls[it->url];

    switch (r->outcome) {
    case ITEM_DONE:
        hosts[u->host].failures = 0;
        break;
    case ITEM_AGAIN:
        hosts[u->host].failures++;
        again(it, u, r, retries, random, now_ms);
        break;
    case ITEM_NO_FILE:
        u->dead = true;
        break;
    case ITEM_NO_DATA:
        u->dead = true;
        it->saw_data = true;
        break;
    case ITEM_MISMATCH:
        /* The first time it may be the part of an older attempt. */
        it->saw_data = true;
        u->no_range = true;
        u->failures++;
        u->dead = ++u->mismatches >= ITEM_MISMATCHES_MAX;
        break;
    case ITEM_NO_RANGE:
        u->dead = u->no_range; /* Without a range there is none to answer. */
        it->saw_data = it->saw_data || u->dead;
        u->no_range = true;
        break;
    }
    if (r->offset > it->furthest)
        it->furthest = r->offset;
}

enum err_class item_class(const struct item *it)
{
    if (it->saw_resource)
        return ERR_RESOURCE;
    return it->saw_data ? ERR_DATA : ERR_NODATA;
}
