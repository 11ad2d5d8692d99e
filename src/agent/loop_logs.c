/* loop_logs: agent's outputs: what is put before a line, agent's own lines,
 * what could not be written, and the end. */
#include "agent/loop_parts.h"

#include "base/log.h"
#include "base/text.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STAMP_MAX 40
#define SAY_AGAIN_MS 10000 /* Then less and less often. */
#define SAY_AGAIN_MAX_MS 3600000
#define FLUSH_MIN_MS 1000 /* For agent's last words, whatever came before. */
#define FLUSH_LAST_MS 100 /* Even when told to hurry. */

static void write_stamp(char buf[STAMP_MAX])
{
    struct timespec t;
    struct tm tm;
    size_t n;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    (void)gmtime_r(&t.tv_sec, &tm);
    n = strftime(buf, STAMP_MAX - 10, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(buf + n, STAMP_MAX - n, ".%06ldZ", t.tv_nsec / 1000);
}

/* The time of the read stands for that of the line. */
void stream_stamp(struct stream *s)
{
    const struct options *o = s->loop->plan->o;
    char stamp[STAMP_MAX], head[RELAY_HEAD_MAX];

    if (o->log_format != LOG_FORMAT_JSON && !o->log_timestamps)
        return;
    write_stamp(stamp);
    if (o->log_format == LOG_FORMAT_JSON)
        (void)snprintf(head, sizeof head, "{\"time\":\"%s\",%s", stamp,
                       s->base);
    else
        (void)snprintf(head, sizeof head, "%s %s", stamp, s->base);
    relay_set_head(&s->relay, head, o->log_format == LOG_FORMAT_JSON);
}

void stream_begin(struct stream *s, const struct contract_in *in, char *buf)
{
    const struct options *o = s->loop->plan->o;
    char prefix[RELAY_PREFIX_MAX] = "";
    uint32_t rank = in->rank_base + in->local_rank;
    bool is_err = s->is_err;
    bool is_rank = in->local_rank < s->loop->plan->nproc; /* No --pre-start. */
    char ranks[64] = "\"rank\":null,\"local_rank\":null";

    s->stats.lines += s->relay.n_lines; /* Of the attempt before. */
    s->is_hidden = is_rank && !options_has_rank(&o->log_ranks, rank);
    if (is_rank)
        (void)snprintf(ranks, sizeof ranks, "\"rank\":%" PRIu32
                       ",\"local_rank\":%" PRIu32, rank, in->local_rank);
    if (o->log_format == LOG_FORMAT_JSON)
        (void)snprintf(s->base, sizeof s->base,
                       "\"node\":%" PRIu32 ",%s,\"stream\":\"%s\","
                       "\"attempt\":%" PRIu32 ",\"line\":\"",
                       in->node_rank, ranks, is_err ? "stderr" : "stdout",
                       in->round);
    else if (strcmp(o->log_prefix, "none") != 0 && !is_rank)
        (void)text_copy(prefix, sizeof prefix, "[pre-start] ");
    else if (strcmp(o->log_prefix, "none") != 0)
        (void)contract_expand(in, o->log_prefix, prefix, sizeof prefix);
    if (o->log_format == LOG_FORMAT_TEXT && prefix[0] &&
        s->loop->has_colour[is_err])
        (void)snprintf(s->base, sizeof s->base, "\033[%um%s\033[0m",
                       31 + rank % 6, prefix);
    else if (o->log_format == LOG_FORMAT_TEXT)
        (void)text_copy(s->base, sizeof s->base, prefix);
    relay_init(&s->relay, buf, "");
    relay_set_head(&s->relay, s->base, false);
    tail_init(s->tail);
    s->n_read = 0;
}

void loop_log_stats(const struct loop *l, uint32_t local_rank, bool is_err,
                    struct log_stats *ret)
{
    const struct worker *w = &l->workers[local_rank];
    const struct stream *s = is_err ? &w->err : &w->out;

    *ret = s->stats;
    ret->lines += s->relay.n_lines;
}

/* --- agent's own lines --- */

/* As an object among the workers', where these are. */
static size_t dress(struct loop *l, const char *line, size_t len)
{
    char stamp[STAMP_MAX], head[RELAY_HEAD_MAX];
    const uint32_t rank = l->said_rank;

    write_stamp(stamp);
    (void)snprintf(head, sizeof head,
                   "{\"time\":\"%s\",\"node\":%" PRId64 ",\"rank\":null,"
                   "\"local_rank\":null,\"stream\":\"agent\","
                   "\"attempt\":%" PRIu32 ",\"line\":\"", stamp,
                   rank == WIRE_ANY_RANK ? -1 : (int64_t)rank, l->pod.at.round);
    relay_set_head(&l->own_relay, head, true);
    return relay_format(&l->own_relay, line, len - 1, l->own_line);
}

static bool put_own(struct loop *l, const char *line, size_t len)
{
    if (l->plan->o->log_format == LOG_FORMAT_JSON) {
        len = dress(l, line, len);
        line = l->own_line;
    }
    if (out_room(l->stderr_q, l->is_ending ? OUT_VERDICT : OUT_AGENT) < len)
        return false;
    out_put(l->stderr_q, line, len);
    return true;
}

static void sink(void *ctx, const char *line, size_t len)
{
    struct loop *l = ctx;
    char gap[LOG_LINE_MAX];
    int n;

    if (l->n_own_lost > 0) {
        n = snprintf(gap, sizeof gap, "agent: warning: %" PRIu64 " of agent's "
                     "own lines are missing here: stderr was not read\n",
                     l->n_own_lost);
        if (!put_own(l, gap, (size_t)n)) {
            l->n_own_lost++;
            return;
        }
        l->n_own_lost = 0;
    }
    if (!put_own(l, line, len))
        l->n_own_lost++;
}

static bool wants_colour(const struct loop *l, int fd)
{
    const char *term = "";

    if (!isatty(fd))
        return false;
    for (size_t i = 0; l->plan->envp[i]; i++) {
        const char *s = l->plan->envp[i];

        if (strncmp(s, "NO_COLOR=", 9) == 0 && s[9])
            return false;
        if (strncmp(s, "TERM=", 5) == 0)
            term = s + 5;
    }
    return term[0] && strcmp(term, "dumb") != 0;
}

int loop_logs_new(struct loop *l, struct err *e)
{
    struct stat a, b;
    int r = out_new(&l->stdout_q, STDOUT_FILENO, l->room_fd, e);

    if (r != 0)
        return r;
    (void)uv_timer_init(&l->uv, &l->bar_timer);
    l->bar_timer.data = l;
    l->line_room = l->plan->o->log_format == LOG_FORMAT_JSON ? RELAY_JSON_MIN
                                                             : RELAY_OUT_MIN;
    /* Few wake-ups, and never without bytes to write meanwhile. */
    l->want_room = OUT_BYTES / 2;
    l->has_colour[0] = wants_colour(l, STDOUT_FILENO);
    l->has_colour[1] = wants_colour(l, STDERR_FILENO);
    /* One file, one queue: lines of both never tear. */
    if (fstat(1, &a) == 0 && fstat(2, &b) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
        l->stderr_q = l->stdout_q;
    else
        r = out_new(&l->stderr_q, STDERR_FILENO, l->room_fd, e);
    if (r == 0)
        log_set_sink(sink, l);
    return r;
}

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
    log_warning("%s: %s; %" PRIu64 " lines (%" PRIu64 " bytes) could not be "
                "written so far%s", name, strerror(lost.why), lost.lines,
                lost.bytes, l->is_ending ? "" : ", the workers run on");
    l->lost_said[is_err] = lost.bytes;
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
    for (unsigned i = 0; i < l->plan->nproc; i++) {
        const struct worker *w = &l->workers[i];

        lines += w->out.stats.dropped_lines + w->err.stats.dropped_lines;
        bytes += w->out.stats.dropped_bytes + w->err.stats.dropped_bytes;
    }
    text_init(&t, ranks, sizeof ranks);
    text_add_ranges(&t, l->plan->nproc, has_drops, l->workers, 40);
    log_warning("%" PRIu64 " lines (%" PRIu64 " bytes) of local rank %s were "
                "dropped%s: agent's output is not read fast enough", lines,
                bytes, ranks, l->is_ending ? "" : " so far");
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
    said = say_dropped(l) || said;
    if (!said)
        return;
    if (l->say_step_ms < SAY_AGAIN_MAX_MS)
        l->say_step_ms += l->say_step_ms + SAY_AGAIN_MS;
    l->say_missing_ms = now + l->say_step_ms;
}

/* --- the end --- */

/* The output shares the deadline of the stop. */
static uint64_t time_left(const struct loop *l, uint64_t deadline)
{
    uint64_t now = loop_now(), max = now + l->plan->o->grace_ms;

    if (deadline > max)
        deadline = max;
    return deadline > now + FLUSH_MIN_MS ? deadline - now : FLUSH_MIN_MS;
}

void loop_logs_end(struct loop *l, void (*say)(struct loop *l, char *text),
                   char *text)
{
    uint64_t deadline = l->pod.sup.kill_ms ? l->pod.sup.kill_ms
                                           : loop_now() + l->plan->o->grace_ms;
    sigset_t stops;
    int fd;

    sigemptyset(&stops);
    (void)sigaddset(&stops, SIGTERM);
    (void)sigaddset(&stops, SIGINT);
    (void)sigaddset(&stops, SIGHUP);
    (void)sigaddset(&stops, SIGQUIT);
    fd = signalfd(-1, &stops, SFD_CLOEXEC);
    l->is_ending = true;
    if (l->stdout_q != l->stderr_q &&
        !out_flush(l->stdout_q, time_left(l, deadline), fd))
        log_warning("stdout: nobody reads it; its last %zu bytes are lost",
                    out_pending(l->stdout_q));
    loop_say_missing(l);
    say(l, text);
    if (!out_flush(l->stderr_q, time_left(l, deadline), fd))
        (void)out_flush(l->stderr_q, FLUSH_LAST_MS, -1);
}
