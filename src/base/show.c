/* show: see show.h. */
#include "base/show.h"

#include "base/log.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BAR 24 /* Columns between the brackets. */

const char *show_bytes(char buf[SHOW_BYTES_MAX], uint64_t n)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB",
                                        "EiB"};
    unsigned u = 0;

    if (n < 1024) {
        (void)snprintf(buf, SHOW_BYTES_MAX, "%u byte%s", (unsigned)n,
                       text_plural(n));
        return buf;
    }
    while (n >= 1024 * 1024) {
        n /= 1024;
        u++;
    }
    (void)snprintf(buf, SHOW_BYTES_MAX, "%u.%u %s", (unsigned)(n / 1024),
                   (unsigned)(n % 1024 * 10 / 1024), units[u]);
    return buf;
}

/* Of bytes, or of files where there are none; 100 is never said too early. */
static unsigned percent_of(const struct show_state *st)
{
    unsigned percent = 100;

    if (st->total > UINT64_MAX / 100)
        percent = (unsigned)(st->bytes / (st->total / 100));
    else if (st->total > 0)
        percent = (unsigned)(st->bytes * 100 / st->total);
    else if (st->n_files > 0)
        percent = (unsigned)(st->n_done * 100 / st->n_files);
    if (percent > 99)
        percent = st->bytes == st->total && st->n_done == st->n_files ? 100
                                                                      : 99;
    return percent;
}

void show_text(const struct show_state *st, uint64_t rate, unsigned columns,
               char *out, size_t cap)
{
    char a[SHOW_BYTES_MAX], b[SHOW_BYTES_MAX];
    uint64_t left = st->total - st->bytes;
    unsigned percent = percent_of(st), filled;
    struct text t;

    text_init(&t, out, cap);
    if (columns > 100) {
        filled = percent * BAR / 100;
        text_add(&t, "[%.*s%*s] ", (int)filled, "========================",
                 (int)(BAR - filled), "");
    }
    if (st->name)
        text_add(&t, "%s: ", st->name);
    if (st->waiting)
        text_add(&t, "another process stages it%s",
                 st->n_files ? ": " : "");
    if (st->waiting && st->n_files == 0)
        return;
    text_add(&t, "%zu of %zu files", st->n_done, st->n_files);
    if (st->total > 0)
        text_add(&t, ", %s of %s", show_bytes(a, st->bytes),
                 show_bytes(b, st->total));
    text_add(&t, " (%u %%)", percent);
    if (rate > 0 && left > 0) {
        text_add(&t, ", %s/s, ", show_bytes(a, rate));
        text_add_duration(&t, left / rate < 86400000 ? left / rate * 1000
                                                     : UINT64_C(86400000000));
        text_add(&t, " left");
    }
}

void show_init(struct show *s, bool is_on, uint64_t now_ms)
{
    memset(s, 0, sizeof *s);
    s->is_on = is_on;
    s->is_terminal = isatty(STDERR_FILENO) == 1;
    s->start_ms = s->last_ms = now_ms;
    s->next_ms = now_ms + (s->is_terminal ? SHOW_BAR_MS : SHOW_LOG_MS);
}

uint64_t show_next(const struct show *s)
{
    return s->is_on ? s->next_ms : UINT64_MAX;
}

/* Over some five seconds. */
static void measure(struct show *s, uint64_t arrived, uint64_t now_ms)
{
    uint64_t ms = now_ms - s->last_ms, rate;

    if (arrived < s->last_arrived) { /* Of the next piece of work. */
        s->last_arrived = 0;
        s->rate = 0;
    }
    if (ms == 0)
        return;
    rate = (arrived - s->last_arrived) * 1000 / ms;
    if (s->rate == 0 || ms >= SHOW_LOG_MS)
        s->rate = rate;
    else
        s->rate = (s->rate * (SHOW_LOG_MS - ms) + rate * ms) / SHOW_LOG_MS;
    s->last_ms = now_ms;
    s->last_arrived = arrived;
}

static void put(const struct show *s, const char *text, size_t len)
{
    if (s->put)
        s->put(s->ctx, text, len);
    else
        (void)!write(STDERR_FILENO, text, len);
}

void show_clear(struct show *s)
{
    static const char clear[] = "\r\033[K";

    if (s->drawn)
        put(s, clear, sizeof clear - 1);
    s->drawn = false;
}

void show_now(struct show *s, const struct show_state *st, uint64_t arrived,
              uint64_t now_ms)
{
    char line[SHOW_COLUMNS_MAX + 8] = "\r\033[K";
    struct winsize w = {.ws_col = 80};
    unsigned columns;

    if (!s->is_on || now_ms < s->next_ms)
        return;
    s->next_ms = now_ms + (s->is_terminal ? SHOW_BAR_MS : SHOW_LOG_MS);
    measure(s, arrived, now_ms);
    if (!s->is_terminal) {
        show_text(st, s->rate, 0, line, sizeof line);
        log_info("%s", line);
        return;
    }
    (void)ioctl(STDERR_FILENO, TIOCGWINSZ, &w);
    columns = w.ws_col < 20 ? 80 : w.ws_col;
    if (columns > SHOW_COLUMNS_MAX)
        columns = SHOW_COLUMNS_MAX;
    show_text(st, s->rate, columns, line + 4, columns); /* One is left free. */
    put(s, line, strlen(line));
    s->drawn = true;
}
