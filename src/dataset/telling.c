/* telling: see telling.h. */
#include "dataset/telling.h"

#include "base/log.h"
#include "base/text.h"

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

/* A dead server, most often: reads of it do not even fail. */
static void say_still(struct telling *t, const struct stage_progress *p,
                      uint64_t now_ms)
{
    uint64_t ms;
    char buf[64];
    struct text text;

    if (p->syncing || !pulse_has_stopped(&t->pulse, now_ms, &ms))
        return;
    text_init(&text, buf, sizeof buf);
    text_add_duration(&text, ms);
    show_clear(&t->show);
    log_warning("%s: no progress for %s: %s", p->name, buf,
                p->waiting
                    ? "the process that stages this set may hang, or its source"
                    : "the file system of its source may hang, or its server");
}

bool telling_tell_at(struct telling *t, const struct stage_progress *p,
                     uint64_t now_ms)
{
    struct show_state st = {.n_files = p->n_files, .n_done = p->n_done,
                            .bytes = p->done, .total = p->total,
                            .name = p->name, .waiting = p->waiting};
    bool is_on_its_way;

    if (p->waiting && !t->was_waiting) {
        show_clear(&t->show);
        log_info("%s: another process stages this set: waiting for it",
                 p->name);
    }
    t->was_waiting = p->waiting;
    is_on_its_way = pulse_take(&t->pulse, p, now_ms);
    if (!is_on_its_way)
        say_still(t, p, now_ms);
    show_now(&t->show, &st, p->done, now_ms);
    return is_on_its_way;
}

void telling_tell(void *t, const struct stage_progress *p)
{
    (void)telling_tell_at(t, p, now());
}

void telling_end(struct telling *t)
{
    show_clear(&t->show);
}
