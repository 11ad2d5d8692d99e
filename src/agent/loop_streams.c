/* loop_streams: a worker's pipes, through relay.h, to agent's outputs. */
#include "agent/loop_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BAR_MS 1000 /* A progress bar gives a line at most so often. */

static void on_watch_closed(uv_handle_t *h)
{
    free(h);
}

struct stream_watch *watch_new(struct loop *l, int fd, uv_poll_cb cb,
                               struct stream *s)
{
    struct stream_watch *w = calloc(1, sizeof *w);

    if (!w || loop_uv_open(l) != 0) {
        free(w);
        return NULL;
    }
    if (uv_poll_init(&l->uv, &w->poll, fd) != 0) {
        free(w);
        return NULL;
    }
    w->stream = s;
    w->poll.data = l;
    (void)uv_poll_start(&w->poll, UV_READABLE, cb);
    return w;
}

void watch_free(struct stream_watch *w)
{
    w->stream = NULL;
    uv_close((uv_handle_t *)&w->poll, on_watch_closed);
}

/* --- progress bars --- */

static void show_state(struct stream *s)
{
    struct loop *l = s->loop;
    uint64_t before = s->relay.n_lines;
    size_t n, heads;

    if (s->is_hidden || out_room(s->out, OUT_WORKERS) < l->line_room)
        return; /* The final state will be shown, or counted as dropped. */
    stream_stamp(s);
    n = relay_take_state(&s->relay, l->scratch, l->line_room);
    if (n > 0) {
        heads = (size_t)(s->relay.n_lines - before) * s->relay.head_len;
        out_from(s->out, s->file, n - heads);
        out_put(s->out, l->scratch, n);
    }
}

static void on_bar_time(uv_timer_t *t)
{
    struct loop *l = t->data;
    uint64_t now = loop_now(), next = UINT64_MAX;

    for (unsigned i = 0; i < 2 * l->n_slots; i++) {
        struct worker *w = &l->workers[i / 2];
        struct stream *s = i % 2 ? &w->err : &w->out;

        if (s->bar_due_ms && s->bar_due_ms <= now) {
            s->bar_due_ms = 0;
            stream_drain(s, false); /* May set the next time. */
            show_state(s);
        }
        if (s->bar_due_ms && s->bar_due_ms < next)
            next = s->bar_due_ms;
    }
    if (next != UINT64_MAX)
        (void)uv_timer_start(t, on_bar_time, next > now ? next - now : 0, 0);
}

/* A state that waits to be shown needs a time. */
static void watch_bar(struct stream *s)
{
    struct loop *l = s->loop;

    if (s->bar_due_ms || !relay_has_state(&s->relay))
        return;
    s->bar_due_ms = loop_now() + BAR_MS;
    if (!uv_is_active((uv_handle_t *)&l->bar_timer))
        (void)uv_timer_start(&l->bar_timer, on_bar_time, BAR_MS, 0);
}

/* --- lines --- */

static bool drops(const struct loop *l)
{
    return l->plan->o->log_overflow == LOG_OVERFLOW_DROP;
}

static void drop_lines(struct stream *s, bool at_end)
{
    uint64_t n = relay_drop(&s->relay, at_end, &s->stats.dropped_bytes);

    s->stats.lines += n;
    s->stats.dropped_lines += n;
    s->loop->n_dropped += n;
}

static void hide_lines(struct stream *s, bool at_end)
{
    uint64_t bytes = 0;

    s->stats.lines += relay_drop(&s->relay, at_end, &bytes);
}

/* Bytes that have left the relay, but for those of states that others took
 * the place of. */
static uint64_t n_gone(const struct relay *r)
{
    return r->n_bytes - (r->len - r->start) - r->n_hidden;
}

/* Take lines, up to `room` bytes; whose they are goes with them. */
static size_t take_lines(struct stream *s, char *to, size_t room, bool at_end)
{
    uint64_t before = n_gone(&s->relay);
    size_t n = relay_take(&s->relay, to, room, at_end);

    if (n > 0) {
        loop_filter_lines(s, to, n);
        out_from(s->out, s->file, (size_t)(n_gone(&s->relay) - before));
    }
    return n;
}

/* Move finished lines on; false where the output has no room for them. */
static bool move_lines(struct stream *s, bool at_end)
{
    struct loop *l = s->loop;
    size_t n, room;

    s->stalled = false;
    if (s->is_hidden) {
        hide_lines(s, at_end);
        return true;
    }
    stream_stamp(s);
    do {
        char *to = out_space(s->out, &room);

        if (room >= l->line_room) {
            n = take_lines(s, to, room, at_end);
            if (n > 0)
                out_commit(s->out, n);
        } else if (out_room(s->out, OUT_WORKERS) >= l->line_room) {
            n = take_lines(s, l->scratch, l->line_room, at_end);
            if (n > 0)
                out_put(s->out, l->scratch, n);
        } else if (drops(l)) {
            drop_lines(s, at_end);
            n = 0;
        } else {
            s->stalled = true;
            out_want_room(s->out, l->want_room);
            return false;
        }
    } while (n > 0);
    watch_bar(s);
    return true;
}

/* --- files --- */

/* False where it is better not to read now. */
static bool file_has_room(struct stream *s)
{
    struct loop *l = s->loop;

    s->file_stalled = s->has_file && !drops(l) && !log_files_has_room(l->files);
    if (s->file_stalled)
        log_files_want_room(l->files);
    return !s->file_stalled;
}

static void put_file(struct stream *s, const char *bytes, size_t n)
{
    struct loop *l = s->loop;

    if (s->has_file && !log_files_put(l->files, s->file, s->file, bytes, n))
        l->n_dropped++; /* Something is to be said. */
}

bool stream_waits(const struct stream *s)
{
    return s->watch && (s->stalled || s->file_stalled);
}

/* Where the output has no room nothing is read, so that the worker waits. */
void stream_drain(struct stream *s, bool is_dead)
{
    size_t budget = STREAM_READ_MAX, room;
    ssize_t n;

    while (s->watch && budget > 0 &&
           ((move_lines(s, false) && file_has_room(s)) || is_dead)) {
        char *at = relay_space(&s->relay, &room);

        room = room < STREAM_CHUNK ? room : STREAM_CHUNK;
        if (room == 0)
            break; /* Of the dead: the tail may be read, as far as it fits. */
        n = read(s->fd, at, room);
        if (n > 0) {
            tail_put(s->tail, at, (size_t)n);
            s->n_read = ++s->loop->n_reads;
            s->read_ms = uv_now(&s->loop->uv);
            put_file(s, at, (size_t)n);
            relay_put(&s->relay, (size_t)n);
            s->stats.bytes += (uint64_t)n;
            budget -= (size_t)n < budget ? (size_t)n : budget;
            if ((size_t)n < room)
                budget = 0; /* The pipe is empty. */
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            break;
        } else if (move_lines(s, true)) {
            stream_close(s);
            return;
        } else {
            break;
        }
    }
    if (s->watch)
        (void)move_lines(s, false);
    if (stream_waits(s))
        (void)uv_poll_stop(&s->watch->poll);
    if (s->loop->n_dropped != s->loop->dropped_said)
        loop_say_missing(s->loop);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct stream_watch *w = (struct stream_watch *)poll;

    (void)status;
    (void)events;
    if (w->stream)
        stream_drain(w->stream, false);
}

void stream_open(struct stream *s, int fd)
{
    s->fd = fd;
    s->stalled = s->file_stalled = false;
    s->watch = watch_new(s->loop, fd, on_readable, s);
    if (!s->watch)
        (void)close(fd); /* No memory: the worker will see EPIPE. */
}

/* What nobody will read any more. */
static void count_unread(struct stream *s)
{
    void (*away)(struct stream *, bool) = s->is_hidden ? hide_lines
                                                       : drop_lines;
    int left = 0;

    away(s, false);
    (void)ioctl(s->fd, FIONREAD, &left); /* Somebody may still write. */
    while (left > 0) {
        size_t room;
        char *at = relay_space(&s->relay, &room);
        ssize_t n = read(s->fd, at, room < (size_t)left ? room : (size_t)left);

        if (n <= 0)
            break;
        put_file(s, at, (size_t)n);
        relay_put(&s->relay, (size_t)n);
        s->stats.bytes += (uint64_t)n;
        left -= (int)n;
        away(s, false);
    }
    away(s, true);
}

void stream_close(struct stream *s)
{
    if (!s->watch)
        return;
    watch_free(s->watch);
    s->watch = NULL;
    s->bar_due_ms = 0;
    /* Where there is no room, the rest is lost rather than waited for: the
     * deadline of the stop has passed by then. */
    if (!move_lines(s, true) || s->file_stalled)
        count_unread(s);
    (void)close(s->fd);
}

/* In turns, so that no rank takes all the room. */
void loop_room(struct loop *l)
{
    unsigned n = 2 * l->n_slots, first = l->next_room++;
    uint64_t ignored;

    (void)!read(l->room_fd, &ignored, sizeof ignored);
    for (unsigned i = 0; i < n; i++) {
        unsigned at = (first + i) % n;
        struct worker *w = &l->workers[at / 2];
        struct stream *s = at % 2 ? &w->err : &w->out;

        if (!stream_waits(s))
            continue;
        stream_drain(s, false);
        if (s->watch && !stream_waits(s))
            (void)uv_poll_start(&s->watch->poll, UV_READABLE, on_readable);
    }
}
