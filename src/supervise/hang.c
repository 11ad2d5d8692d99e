/* hang: see hang.h. */
#include "supervise/hang.h"

#include <stddef.h>
#include <string.h>

#define SLOTS (HANG_STEPS + 1)
#define PERCENT 100 /* 1 % of a core is one such part of the time. */

void hang_init(struct hang *h, uint64_t timeout_ms, struct hang_worker *workers,
               uint32_t n_workers)
{
    memset(h, 0, sizeof *h);
    h->timeout_ms = timeout_ms;
    h->workers = workers;
    h->n_workers = n_workers;
}

void hang_begin(struct hang *h, uint64_t now_ms)
{
    h->last_ms = 0;
    h->since_ms = now_ms;
    for (uint32_t i = 0; i < h->n_workers; i++)
        h->workers[i].n = 0;
}

uint64_t hang_step_ms(const struct hang *h)
{
    uint64_t step = h->timeout_ms / HANG_STEPS;

    return step > 0 ? step : 1;
}

static bool is_long_ago(const struct hang *h, uint64_t now_ms, uint64_t at_ms)
{
    uint64_t since = at_ms > h->since_ms ? at_ms : h->since_ms;

    return now_ms >= since && now_ms - since >= h->timeout_ms;
}

/* Note what it has used so far. A process whose time nobody waited for takes
 * it along when it ends; that something ended is a sign of life. */
static void note_cpu(struct hang_worker *k, uint64_t now_ms,
                     const struct hang_seen *seen)
{
    if (!seen->has_cpu) {
        k->n = 0;
        return;
    }
    if (k->n > 0 && seen->cpu_ms < k->cpu_ms[(k->n - 1) % SLOTS])
        k->n = 0;
    k->at_ms[k->n % SLOTS] = now_ms;
    k->cpu_ms[k->n % SLOTS] = seen->cpu_ms;
    k->n++;
}

/* Below 1 % of a core since the newest look that is long enough ago. */
static bool is_idle(const struct hang *h, const struct hang_worker *k,
                    uint64_t now_ms)
{
    unsigned n = k->n < SLOTS ? k->n : SLOTS;

    for (unsigned back = 1; back < n; back++) {
        unsigned i = (k->n - 1 - back) % SLOTS;
        uint64_t ms = now_ms - k->at_ms[i];

        if (ms < h->timeout_ms)
            continue;
        return (k->cpu_ms[(k->n - 1) % SLOTS] - k->cpu_ms[i]) * PERCENT < ms;
    }
    return false;
}

static bool stands_still(const struct hang *h, const struct hang_worker *k,
                         uint64_t now_ms, const struct hang_seen *seen)
{
    if (!is_long_ago(h, now_ms, seen->start_ms))
        return false;
    if (seen->beats)
        return is_long_ago(h, now_ms, seen->beat_ms);
    return !seen->is_stalled && is_long_ago(h, now_ms, seen->output_ms) &&
           is_idle(h, k, now_ms);
}

bool hang_look(struct hang *h, uint64_t now_ms, const struct hang_seen *seen)
{
    bool any = false, all = true;

    /* Nobody looked for so long: this process stood still, too, with the
     * machine or its cgroup. */
    if (h->last_ms > 0 && now_ms - h->last_ms > 3 * hang_step_ms(h) + 1000)
        hang_begin(h, now_ms);
    h->last_ms = now_ms;
    for (uint32_t i = 0; i < h->n_workers; i++) {
        struct hang_worker *k = &h->workers[i];

        if (k->start_ms != seen[i].start_ms)
            k->n = 0;
        k->start_ms = seen[i].start_ms;
        if (!seen[i].is_alive)
            continue;
        note_cpu(k, now_ms, &seen[i]);
        any = true;
        all = stands_still(h, k, now_ms, &seen[i]) && all;
    }
    return any && all;
}
