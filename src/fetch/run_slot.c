/* run_slot: see run_parts.h. */
#include "fetch/run_parts.h"

#include "base/log.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static uint64_t next_random(struct run *r)
{
    r->rng ^= r->rng << 13;
    r->rng ^= r->rng >> 7;
    r->rng ^= r->rng << 17;
    return r->rng;
}

void slot_move(struct run *r, struct slot *s, enum slot_state to)
{
    bool was = s->state == SLOT_STEP || s->state == SLOT_FLY;
    bool is = to == SLOT_STEP || to == SLOT_FLY;

    r->n_busy = r->n_busy - was + is;
    r->n_used = r->n_used - (s->state != SLOT_FREE) + (to != SLOT_FREE);
    s->state = to;
}

static const char *shown_path(struct path_shown *p, const struct slot *s)
{
    return path_show(p, NULL, s->t.entry->path);
}

void slot_free(struct run *r, struct slot *s)
{
    transfer_free(&s->t);
    slot_move(r, s, SLOT_FREE);
}

static void done(struct run *r, struct slot *s)
{
    struct path_shown p;
    char b[SHOW_BYTES_MAX];

    uint64_t n = r->args->check ? s->t.entry->size : s->t.part.size;

    r->n_done++;
    r->bytes += n;
    if (r->args->check)
        r->good[s->entry] = true;
    if (s->t.part.fetched) {
        r->n_fetched++;
        r->fetched += n;
    }
    log_debug("%s: %s, %s", shown_path(&p, s),
              show_bytes(b, n),
              r->args->check       ? "there"
              : s->t.part.fetched ? "fetched"
                                  : "was there already");
    slot_free(r, s);
}

/* No URL is left. The last one's reason was said; with one only it is said
 * here. */
static void give_up(struct run *r, struct slot *s)
{
    enum err_class class = item_class(s->t.it);
    struct path_shown p;
    unsigned n = s->t.it->n_urls;

    if (!r->args->check)
        log_error("%s: not fetched: %s", shown_path(&p, s),
                  n == 1 ? "its URL does not give it"
                         : "none of its URLs gives it");
    r->saw[class == ERR_DATA ? 0 : class == ERR_NODATA ? 1 : 2] = true;
    r->n_failed++;
    slot_free(r, s);
}

void slot_fatal(struct run *r, struct slot *s, const struct err *e)
{
    if (r->fatal.code == 0)
        r->fatal = *e;
    slot_free(r, s);
}

static void end_attempt(struct run *r, struct slot *s,
                        const struct item_result *result);

/* All bytes are there: are they right? */
static void finish(struct run *r, struct slot *s, struct item_result *result)
{
    char why[ERR_TEXT_MAX];
    struct err e;
    bool right = false;

    if (part_finish(&s->t.part, &right, why, &e) != 0) {
        slot_fatal(r, s, &e);
        return;
    }
    if (!right) {
        (void)text_copy(s->t.why, sizeof s->t.why, why);
        result->outcome = ITEM_MISMATCH;
        result->offset = 0;
        end_attempt(r, s, result);
        return;
    }
    item_ended(s->t.it, r->urls->hosts, result, 0, 0, 0);
    done(r, s);
}

/* The part of an earlier run has all bytes; nobody was asked. */
static void finish_old(struct run *r, struct slot *s)
{
    char why[ERR_TEXT_MAX];
    struct err e;
    bool right = false;

    if (part_finish(&s->t.part, &right, why, &e) != 0) {
        slot_fatal(r, s, &e);
    } else if (right) {
        done(r, s);
    } else {
        slot_move(r, s, SLOT_WAIT); /* It is empty now. */
        s->at_ms = 0;
    }
}

/* Start an attempt, or wait for its time. */
void slot_go(struct run *r, struct slot *s)
{
    struct transfer *t = &s->t;
    struct err e;
    uint64_t at;

    if (!r->args->check && part_is_whole(&t->part)) {
        finish_old(r, s);
        return;
    }
    at = item_next(t->it, r->urls->hosts, run_now());
    if (at == UINT64_MAX) {
        give_up(r, s);
        return;
    }
    if (at > 0) {
        slot_move(r, s, SLOT_WAIT);
        s->at_ms = at;
        return;
    }
    if (transfer_start(t, &e) != 0) {
        slot_fatal(r, s, &e);
        return;
    }
    slot_move(r, s, SLOT_FLY);
    if (curl_multi_add_handle(r->multi, t->easy) != CURLM_OK) {
        (void)err_set(&e, ERR_RESOURCE, "no memory left for a transfer");
        slot_fatal(r, s, &e);
    }
}

/* What went wrong, and what happens next. */
static void say_attempt(const struct slot *s, uint64_t now)
{
    bool checks = s->t.args->check;
    const struct item *it = s->t.it;
    const struct item_url *u = &it->urls[it->url];
    char url[ANSWER_URL_MAX], next[64] = "", why[ANSWER_TEXT_MAX];
    struct path_shown p;
    struct text t;
    bool others = false;

    for (unsigned i = 0; i < it->n_urls; i++)
        others = others || (i != it->url && !it->urls[i].dead);
    text_init(&t, next, sizeof next);
    if (others) {
        text_add(&t, ", trying another URL");
    } else if (!u->dead) {
        text_add(&t, ", retrying");
        if (u->ready_ms > now) {
            text_add(&t, " in ");
            text_add_duration(&t, u->ready_ms - now);
        }
    }
    (void)text_copy(why, sizeof why, s->t.why);
    (void)text_make_utf8(why, sizeof why - 1);
    for (char *c = why; *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = ' ';
    log_line(next[0] || checks ? LOG_WARNING : LOG_ERROR, "%s: %s: %s%s",
             shown_path(&p, s), answer_show_url(url, u->url), why, next);
}

static void end_attempt(struct run *r, struct slot *s,
                        const struct item_result *result)
{
    uint64_t now = run_now();

    item_ended(s->t.it, r->urls->hosts, result, r->args->retries,
               next_random(r), now);
    say_attempt(s, now);
    slot_move(r, s, SLOT_WAIT);
    s->at_ms = 0; /* As soon as item_next() says. */
}

void slot_landed(struct run *r, struct slot *s, CURLcode code)
{
    struct item_result result;

    (void)curl_multi_remove_handle(r->multi, s->t.easy);
    transfer_ended(&s->t, code, &result);
    if (s->t.disk.code) {
        slot_fatal(r, s, &s->t.disk);
    } else if (result.outcome != ITEM_DONE) {
        end_attempt(r, s, &result);
    } else if (r->args->check) {
        item_ended(s->t.it, r->urls->hosts, &result, 0, 0, 0);
        done(r, s);
    } else {
        finish(r, s, &result);
    }
}

void slot_step(struct run *r, struct slot *s)
{
    struct err e;

    if (part_step(&s->t.part, &e) != 0) {
        slot_fatal(r, s, &e);
        return;
    }
    r->alive_ms = run_now();
    if (s->t.part.state == PART_THERE)
        done(r, s);
    else if (s->t.part.state == PART_GROW)
        slot_go(r, s);
}
