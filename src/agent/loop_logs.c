/* loop_logs: agent's outputs: what is put before a line, agent's own lines,
 * the files of --log-dir. */
#include "agent/loop_parts.h"

#include "agent/torchrun.h"
#include "base/log.h"
#include "base/text.h"
#include "base/variable.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The time of the read stands for that of the line. */
void stream_stamp(struct stream *s)
{
    const struct options *o = s->loop->plan->o;
    char stamp[LOG_STAMP_MAX], head[RELAY_HEAD_MAX];

    if (o->log_format != LOG_FORMAT_JSON && !o->log_timestamps)
        return;
    log_stamp(stamp);
    if (o->log_format == LOG_FORMAT_JSON)
        (void)snprintf(head, sizeof head, "{\"time\":\"%s\",%s", stamp,
                       s->base);
    else
        (void)snprintf(head, sizeof head, "%s %s", stamp, s->base);
    relay_set_head(&s->relay, head, o->log_format == LOG_FORMAT_JSON);
}

/* Of the filters of stdout, stderr. */
static unsigned filter_file(const struct stream *s)
{
    return 2 * s->loop->n_slots + s->is_err;
}

/* One of all ranks and attempts, until the next attempt begins. */
static void begin_filter(struct stream *s, const struct contract_in *in)
{
    char name[LOG_FILES_NAME_MAX];

    (void)snprintf(name, sizeof name, "attempt_%" PRIu32 "/filtered_%s.log",
                   in->round, s->is_err ? "stderr" : "stdout");
    (void)log_files_open(s->loop->files, filter_file(s), name);
}

/* Where a queue without room is the reason, the bytes that follow go to the
 * file of the attempt before rather than nowhere. */
static void begin_file(struct stream *s, const struct contract_in *in,
                       uint32_t rank)
{
    const struct torchrun_options *t = &s->loop->plan->o->torchrun;
    char who[32] = "pre-start", name[LOG_FILES_NAME_MAX];

    if (s->loop->files && t->filters[s->is_err] && in->local_rank == 0)
        begin_filter(s, in);
    if (!s->loop->files || !s->has_file)
        return;
    if (in->kind == CONTRACT_WORKER && t->is_on)
        (void)snprintf(who, sizeof who, "%" PRIu32, in->local_rank);
    else if (in->kind == CONTRACT_WORKER)
        (void)snprintf(who, sizeof who, "rank_%" PRIu32, rank);
    else if (in->kind != CONTRACT_PRE_START)
        (void)snprintf(who, sizeof who, "%s_%" PRIu32, in->role, in->index);
    (void)snprintf(name, sizeof name, "attempt_%" PRIu32 "/%s/%s.log",
                   in->round, who, s->is_err ? "stderr" : "stdout");
    (void)log_files_open(s->loop->files, s->file, name);
}

static bool passes(const struct stream *s, const char *line, size_t len)
{
    const char *words = s->loop->plan->o->torchrun.filters[s->is_err];
    size_t prefix = strlen(s->base); /* Not part of the worker's line. */

    return len > prefix && torchrun_filter(words, line + prefix, len - prefix);
}

void loop_filter_lines(struct stream *s, const char *lines, size_t n)
{
    while (s->is_filtered && n > 0) {
        const char *end = memchr(lines, '\n', n);
        size_t len = end ? (size_t)(end - lines) : n, all = len + (end != NULL);

        if (passes(s, lines, len) && s->loop->files &&
            !log_files_put(s->loop->files, filter_file(s), s->file, lines,
                           all))
            s->loop->n_dropped++; /* Something is to be said. */
        lines += all;
        n -= all;
    }
}

/* What torchrun's options ask for; true where the line has a prefix. */
static bool begin_torchrun(struct stream *s, uint32_t local_rank)
{
    struct torchrun_stream t;

    torchrun_stream(s->loop->plan->o, local_rank, s->is_err, &t);
    s->is_hidden = !t.is_shown;
    s->has_file = t.has_file;
    s->is_filtered = t.is_filtered;
    return t.has_prefix;
}

void stream_begin(struct stream *s, const struct contract_in *in, char *buf)
{
    const struct options *o = s->loop->plan->o;
    char prefix[RELAY_PREFIX_MAX] = "";
    uint32_t rank = in->rank_base + in->local_rank;
    bool is_err = s->is_err;
    bool is_rank = in->kind == CONTRACT_WORKER;
    bool has_prefix = strcmp(o->log_prefix, "none") != 0;
    char ranks[80] = "\"rank\":null,\"local_rank\":null";

    s->stats.lines += s->relay.n_lines; /* Of the attempt before. */
    s->is_hidden = is_rank && !options_has_rank(&o->log_ranks, rank);
    s->has_file = s->loop->files;
    if (o->torchrun.is_on && is_rank)
        has_prefix = begin_torchrun(s, in->local_rank);
    if (is_rank)
        (void)snprintf(ranks, sizeof ranks, "\"rank\":%" PRIu32
                       ",\"local_rank\":%" PRIu32, rank, in->local_rank);
    else if (in->kind != CONTRACT_PRE_START)
        (void)snprintf(ranks, sizeof ranks, "\"rank\":null,"
                       "\"local_rank\":null,\"role\":\"%s%" PRIu32 "\"",
                       in->role, in->index);
    if (o->log_format == LOG_FORMAT_JSON)
        (void)snprintf(s->base, sizeof s->base,
                       "\"node\":%" PRIu32 ",%s,\"stream\":\"%s\","
                       "\"attempt\":%" PRIu32 ",\"line\":\"",
                       in->node_rank, ranks, is_err ? "stderr" : "stdout",
                       in->round);
    else if (has_prefix && in->kind == CONTRACT_PRE_START)
        (void)text_copy(prefix, sizeof prefix, "[pre-start] ");
    else if (has_prefix && o->torchrun.is_on && is_rank)
        torchrun_prefix(o, in->role, in->local_rank, rank, prefix,
                        sizeof prefix);
    else if (has_prefix)
        (void)contract_expand(in, o->log_prefix, prefix, sizeof prefix);
    if (o->log_format == LOG_FORMAT_TEXT && prefix[0] &&
        s->loop->has_colour[is_err] && !s->is_filtered) /* A file, too. */
        (void)snprintf(s->base, sizeof s->base, "\033[%um%s\033[0m",
                       31 + rank % 6, prefix);
    else if (o->log_format == LOG_FORMAT_TEXT)
        (void)text_copy(s->base, sizeof s->base, prefix);
    begin_file(s, in, rank);
    relay_init(&s->relay, buf, "");
    relay_set_head(&s->relay, s->base, false);
    tail_clear(s->tail);
    s->n_read = 0;
}

void loop_log_stats(const struct loop *l, uint32_t local_rank, bool is_err,
                    struct log_stats *ret)
{
    const struct worker *w = &l->workers[local_rank];
    const struct stream *s = is_err ? &w->err : &w->out;
    struct out_lost lost;

    *ret = s->stats;
    out_lost_of(s->out, s->file, &lost);
    ret->dropped_lines += lost.lines;
    ret->dropped_bytes += lost.bytes;
    ret->lines += s->relay.n_lines;
    ret->file_dropped = l->files ? log_files_lost_of(l->files, s->file) : 0;
}

/* --- agent's own lines --- */

/* As an object among the workers', where these are. */
static size_t dress(struct loop *l, const char *line, size_t len)
{
    char stamp[LOG_STAMP_MAX], head[RELAY_HEAD_MAX];
    const uint32_t rank = l->said_rank;

    log_stamp(stamp);
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
    char gap[256], stamp[LOG_STAMP_MAX] = "";
    int n;

    telling_end(&l->telling); /* A line does not go on after a bar. */
    if (l->n_own_lost > 0) {
        if (log_has_time())
            log_stamp(stamp);
        n = snprintf(gap, sizeof gap, "%s%sagent: warning: %" PRIu64 " of "
                     "agent's own lines are missing here: stderr was not "
                     "read\n", stamp, stamp[0] ? " " : "", l->n_own_lost);
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
    const char *term;

    if (!isatty(fd))
        return false;
    if (variable_given(l->plan->envp, "NO_COLOR"))
        return false;
    term = variable_given(l->plan->envp, "TERM");
    return term && strcmp(term, "dumb") != 0;
}

int loop_logs_new(struct loop *l, struct err *e)
{
    struct stat a, b;
    /* As stream.file; --pre-start has a slot, too. */
    unsigned n = 2 * (l->plan->n_procs + 1);
    int r = out_new(&l->stdout_q, STDOUT_FILENO, l->room_fd, n, e);

    if (r != 0)
        return r;
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
        r = out_new(&l->stderr_q, STDERR_FILENO, l->room_fd, n, e);
    if (r == 0)
        log_set_sink(sink, l);
    return r;
}

int loop_files_new(struct loop *l, struct err *e)
{
    const struct options *o = l->plan->o;
    struct log_files_config c = {.dir = o->log_dir,
                                 .max_bytes = o->log_max_bytes,
                                 .keep = o->log_keep,
                                 .n_files = 2 * l->n_slots + 2,
                                 .wake_fd = l->room_fd};

    return o->log_dir ? log_files_new(&l->files, &c, e) : 0;
}
