/* loop_lost: what is said of output that could not be written, and how all of
 * it is written out at the end. */
#include "agent/loop_parts.h"

#include "base/log.h"
#include "base/stops.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>
#include <sys/signalfd.h>

#define SAY_AGAIN_MS 10000 /* Then less and less often. */
#define SAY_AGAIN_MAX_MS 3600000
#define FLUSH_MIN_MS 500 /* For agent's last words, whatever came before. */
#define FLUSH_LAST_MS 100 /* Even when told to hurry. */

/* --- what is missing --- */

static bool say_lost(struct loop *l, bool is_err)
{
    struct out *o = is_err ? l->stderr_q : l->stdout_q;
    const char *name = o == l->stdout_q && o == l->stderr_q
                           ? "stdout and stderr"
                       : is_err ? "stderr" : "stdout";
    struct out_lost lost;

    out_lost(o, &lost);
    if (lost.bytes == l->lost_said[is_err])
        return false;
    log_warning("%s: %s; %" PRIu64 " line%s (%" PRIu64 " byte%s) could not "
                "be written so far%s", name, strerror(lost.why), lost.lines,
                text_plural(lost.lines), lost.bytes, text_plural(lost.bytes),
                l->is_ending ? "" : ", the workers run on");
    l->lost_said[is_err] = lost.bytes;
    return true;
}

static bool say_file_lost(struct loop *l)
{
    struct log_files_lost lost = {.why = 0};

    if (!l->files)
        return false;
    log_files_lost(l->files, &lost);
    if (lost.bytes == l->file_lost_said && (lost.why == 0 || l->why_said))
        return false;
    l->file_lost_said = lost.bytes;
    l->why_said = lost.why != 0;
    log_warning("--log-dir %s: %s; %" PRIu64 " byte%s could not be written%s%s",
                l->plan->o->log_dir,
                lost.why ? strerror(lost.why) : "it is too slow", lost.bytes,
                text_plural(lost.bytes),
                l->is_ending ? "" : " so far, the workers run on",
                log_files_advice(lost.why));
    return true;
}

static bool has_drops(const void *ctx, unsigned i)
{
    const struct worker *w = (const struct worker *)ctx + i;

    return w->out.stats.dropped_bytes > 0 || w->err.stats.dropped_bytes > 0;
}

static bool say_dropped(struct loop *l)
{
    uint64_t lines = 0, bytes = 0;
    char ranks[64];
    struct text t;

    if (l->n_dropped == l->dropped_said)
        return false;
    l->dropped_said = l->n_dropped;
    for (unsigned i = 0; i < l->plan->n_procs; i++) {
        const struct worker *w = &l->workers[i];

        lines += w->out.stats.dropped_lines + w->err.stats.dropped_lines;
        bytes += w->out.stats.dropped_bytes + w->err.stats.dropped_bytes;
    }
    if (bytes == 0)
        return false;
    text_init(&t, ranks, sizeof ranks);
    text_add_ranges(&t, l->plan->nproc, has_drops, l->workers, 40);
    log_warning("%" PRIu64 " line%s (%" PRIu64 " byte%s) of %s%s %s "
                "dropped%s: agent's output is not read fast enough", lines,
                text_plural(lines), bytes, text_plural(bytes),
                t.len ? "local rank " : "servers", ranks,
                lines == 1 ? "was" : "were",
                l->is_ending ? "" : " so far");
    return true;
}

void loop_say_missing(struct loop *l)
{
    uint64_t now = loop_now();
    bool said;

    if (!l->workers || (!l->is_ending && now < l->say_missing_ms))
        return;
    said = say_lost(l, false);
    if (l->stderr_q != l->stdout_q)
        said = say_lost(l, true) || said;
    said = say_file_lost(l) || said;
    said = say_dropped(l) || said;
    if (!said)
        return;
    if (l->say_step_ms < SAY_AGAIN_MAX_MS)
        l->say_step_ms += l->say_step_ms + SAY_AGAIN_MS;
    l->say_missing_ms = now + l->say_step_ms;
}

/* --- the end --- */

/* The output shares the deadline of the stop. */
static uint64_t time_left(const struct loop *l, uint64_t deadline,
                          uint64_t least)
{
    uint64_t now = loop_now(), max = now + l->plan->o->grace_ms;

    if (deadline > max)
        deadline = max;
    return deadline > now + least ? deadline - now : least;
}

/* What the workers wrote leaves of it what the last words need. */
static uint64_t workers_time(const struct loop *l, uint64_t deadline)
{
    return time_left(l, deadline - FLUSH_MIN_MS, FLUSH_LAST_MS);
}

static void flush_workers(struct loop *l, struct out *o)
{
    size_t left;

    if (out_flush(o, workers_time(l, l->end_ms), l->stops_fd) ||
        out_flush(o, FLUSH_LAST_MS, -1))
        return;
    left = out_pending(o);
    out_give_up(o);
    if (o != l->stderr_q)
        log_warning("stdout: nobody reads it; its last %zu byte%s %s lost",
                    left, text_plural(left), left == 1 ? "is" : "are");
}

void loop_logs_settle(struct loop *l)
{
    sigset_t stops;
    uint64_t deadline;

    l->end_ms = l->pod.sup.kill_ms ? l->pod.sup.kill_ms
                                   : loop_now() + l->plan->o->grace_ms;
    deadline = l->end_ms;
    stops_fill(&stops);
    l->stops_fd = signalfd(-1, &stops, SFD_CLOEXEC);
    l->is_ending = true;
    if (l->files && !log_files_sync(l->files, workers_time(l, deadline),
                                    l->stops_fd))
        log_warning("--log-dir %s: not all is on the disk yet; going on "
                    "without waiting", l->plan->o->log_dir);
    flush_workers(l, l->stdout_q);
    if (l->stderr_q != l->stdout_q)
        flush_workers(l, l->stderr_q);
}

void loop_logs_end(struct loop *l, void (*say)(struct loop *l, char *text),
                   char *text)
{
    loop_say_missing(l);
    say(l, text);
    if (!out_flush(l->stderr_q, time_left(l, l->end_ms, FLUSH_MIN_MS),
                   l->stops_fd))
        (void)out_flush(l->stderr_q, FLUSH_LAST_MS, -1);
}
