/* loop_streams: a worker's pipes, through relay.h, to agent's outputs. */
#include "agent/loop_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void on_watch_closed(uv_handle_t *h)
{
    free(h);
}

struct stream_watch *watch_new(struct loop *l, int fd, uv_poll_cb cb,
                               struct stream *s)
{
    struct stream_watch *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
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

/* --log-timestamps: the time of the read stands for that of the line. */
static void stamp(struct stream *s)
{
    struct timespec t;
    struct tm tm;
    char at[40];
    int n;

    if (!s->loop->plan->o->log_timestamps)
        return;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    (void)gmtime_r(&t.tv_sec, &tm);
    (void)strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%S", &tm);
    n = snprintf(s->relay.prefix, sizeof s->relay.prefix, "%s.%06ldZ %.200s",
                 at, t.tv_nsec / 1000, s->prefix);
    s->relay.prefix_len = n > 0 ? (size_t)n : 0;
}

/* Move finished lines on; false where the output has no room for them. */
static bool move_lines(struct stream *s, bool at_end)
{
    size_t n;

    stamp(s);
    do {
        if (out_room(s->out) < RELAY_OUT_MIN) {
            s->stalled = true;
            out_want_room(s->out, RELAY_OUT_MIN);
            return false;
        }
        n = relay_take(&s->relay, s->loop->scratch, RELAY_OUT_MIN, at_end);
        if (n > 0)
            out_put(s->out, s->loop->scratch, n);
    } while (n > 0);
    s->stalled = false;
    return true;
}

void stream_drain(struct stream *s)
{
    size_t budget = STREAM_READ_MAX, room;
    ssize_t n;

    while (s->watch && budget > 0 && move_lines(s, false)) {
        char *at = relay_space(&s->relay, &room);

        n = read(s->fd, at, room);
        if (n > 0) {
            if (s->tail)
                tail_put(s->tail, at, (size_t)n);
            relay_put(&s->relay, (size_t)n);
            budget -= (size_t)n < budget ? (size_t)n : budget;
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            return;
        } else if (move_lines(s, true)) {
            stream_close(s);
            return;
        }
    }
    if (s->watch && s->stalled)
        (void)uv_poll_stop(&s->watch->poll);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct stream_watch *w = (struct stream_watch *)poll;
    struct loop *l = poll->data;

    (void)status;
    (void)events;
    if (w->stream)
        stream_drain(w->stream);
    (void)l;
}

void stream_open(struct stream *s, int fd)
{
    s->fd = fd;
    s->stalled = false;
    s->watch = watch_new(s->loop, fd, on_readable, s);
    if (!s->watch)
        (void)close(fd); /* No memory: the worker will see EPIPE. */
}

void stream_close(struct stream *s)
{
    if (!s->watch)
        return;
    watch_free(s->watch);
    s->watch = NULL;
    (void)close(s->fd);
    /* Where there is no room, the last line is lost rather than waited for:
     * the deadline of the stop has passed by then. */
    (void)move_lines(s, true);
}

void loop_room(struct loop *l)
{
    uint64_t n;

    (void)!read(l->room_fd, &n, sizeof n);
    for (unsigned i = 0; i < l->n_slots; i++)
        for (int j = 0; j < 2; j++) {
            struct stream *s = j ? &l->workers[i].err : &l->workers[i].out;

            if (!s->watch || !s->stalled)
                continue;
            stream_drain(s);
            if (s->watch && !s->stalled)
                (void)uv_poll_start(&s->watch->poll, UV_READABLE, on_readable);
        }
}
