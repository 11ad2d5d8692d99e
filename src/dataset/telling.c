/* telling: see telling.h. */
#include "dataset/telling.h"

#include "base/log.h"

#include <string.h>
#include <time.h>

static uint64_t now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void telling_begin(struct telling *t, bool is_on)
{
    memset(t, 0, sizeof *t);
    show_init(&t->show, is_on, now());
}

void telling_tell_at(struct telling *t, const struct stage_progress *p,
                     uint64_t now_ms)
{
    struct show_state st = {.n_files = p->n_files, .n_done = p->n_done,
                            .bytes = p->done, .total = p->total,
                            .name = p->name, .waiting = p->waiting};

    if (p->waiting && !t->was_waiting) {
        show_clear(&t->show);
        log_info("%s: another process stages this set: waiting for it",
                 p->name);
    }
    t->was_waiting = p->waiting;
    show_now(&t->show, &st, p->done, now_ms);
}

void telling_tell(void *t, const struct stage_progress *p)
{
    telling_tell_at(t, p, now());
}

void telling_end(struct telling *t)
{
    show_clear(&t->show);
}
