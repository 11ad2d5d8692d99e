/* out: see out.h. */
#include "supervise/out.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OUT_WRITE_MAX 65536

struct out {
    int fd, wake_fd;
    bool has_thread;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    /* Under the lock: bytes ever put and ever written; their difference lies
     * in the ring. */
    uint64_t head, tail;
    size_t want_room;
    bool want_empty;
    bool broken;
    int last_errno;
    uint64_t lost;
    char ring[OUT_BYTES];
};

static void wake(struct out *o)
{
    uint64_t one = 1;

    (void)!write(o->wake_fd, &one, sizeof one);
}

/* Write it all; returns the bytes that had to be given up. */
static size_t write_all(struct out *o, const char *at, size_t len,
                        int *ret_errno)
{
    while (len > 0) {
        ssize_t n = write(o->fd, at, len);

        if (n >= 0) {
            at += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            struct pollfd p = {.fd = o->fd, .events = POLLOUT};

            (void)poll(&p, 1, -1); /* Someone made it non-blocking. */
        } else if (errno != EINTR) {
            *ret_errno = errno;
            return len;
        }
    }
    return 0;
}

static void *out_thread(void *arg)
{
    struct out *o = arg;

    (void)pthread_mutex_lock(&o->lock);
    for (;;) {
        size_t from, len, lost = 0;
        bool broken = o->broken;
        int why = 0;

        while (o->head == o->tail)
            (void)pthread_cond_wait(&o->work, &o->lock);
        from = (size_t)(o->tail % OUT_BYTES);
        len = (size_t)(o->head - o->tail);
        if (len > OUT_BYTES - from)
            len = OUT_BYTES - from;
        if (len > OUT_WRITE_MAX)
            len = OUT_WRITE_MAX;
        (void)pthread_mutex_unlock(&o->lock);
        lost = broken ? len : write_all(o, o->ring + from, len, &why);
        (void)pthread_mutex_lock(&o->lock);
        o->tail += len;
        o->lost += lost;
        if (why) {
            o->last_errno = why;
            /* A full disk may have room again; a closed pipe never. */
            o->broken = why != ENOSPC && why != EDQUOT;
        }
        if (why || (o->want_empty && o->head == o->tail) ||
            (o->want_room &&
             OUT_BYTES - (o->head - o->tail) >= o->want_room)) {
            o->want_room = 0;
            wake(o);
        }
    }
    return NULL;
}

int out_new(struct out **ret, int fd, int wake_fd, struct err *e)
{
    struct out *o = calloc(1, sizeof *o);

    if (!o)
        return err_set(e, ERR_AGENT, "no memory for an output queue");
    o->fd = fd;
    o->wake_fd = wake_fd;
    (void)pthread_mutex_init(&o->lock, NULL);
    (void)pthread_cond_init(&o->work, NULL);
    *ret = o;
    return 0;
}

size_t out_room(struct out *o)
{
    size_t room;

    (void)pthread_mutex_lock(&o->lock);
    room = OUT_BYTES - (size_t)(o->head - o->tail);
    (void)pthread_mutex_unlock(&o->lock);
    return room;
}

void out_put(struct out *o, const char *bytes, size_t len)
{
    size_t at = (size_t)(o->head % OUT_BYTES), first = OUT_BYTES - at;
    pthread_attr_t small;

    if (first > len)
        first = len;
    /* Only this thread moves head, and the writer stays behind it. */
    memcpy(o->ring + at, bytes, first);
    memcpy(o->ring, bytes + first, len - first);
    (void)pthread_mutex_lock(&o->lock);
    o->head += len;
    (void)pthread_cond_signal(&o->work);
    (void)pthread_mutex_unlock(&o->lock);
    if (o->has_thread)
        return;
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, 64 * 1024);
    if (pthread_create(&o->thread, &small, out_thread, o) == 0) {
        o->has_thread = true;
        return;
    }
    /* No thread to be had (pids limit): write here, though it may block. */
    o->lost += write_all(o, bytes, len, &o->last_errno);
    o->tail = o->head;
}

void out_want_room(struct out *o, size_t room)
{
    (void)pthread_mutex_lock(&o->lock);
    o->want_room = room;
    if (OUT_BYTES - (o->head - o->tail) >= room) {
        o->want_room = 0;
        wake(o);
    }
    (void)pthread_mutex_unlock(&o->lock);
}

bool out_is_empty(struct out *o)
{
    return out_room(o) == OUT_BYTES;
}

bool out_flush(struct out *o, uint64_t ms, int stop_fd)
{
    struct timespec now, end;
    struct pollfd p[2] = {{.fd = o->wake_fd, .events = POLLIN},
                          {.fd = stop_fd, .events = POLLIN}};

    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)(ms / 1000);
    end.tv_nsec += (long)(ms % 1000 * 1000000);
    (void)pthread_mutex_lock(&o->lock);
    o->want_empty = true;
    (void)pthread_mutex_unlock(&o->lock);
    while (!out_is_empty(o)) {
        long left;
        uint64_t n;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        left = (long)(end.tv_sec - now.tv_sec) * 1000 +
               (end.tv_nsec - now.tv_nsec) / 1000000;
        if (left <= 0)
            return false;
        (void)poll(p, stop_fd < 0 ? 1 : 2, left > 100 ? 100 : (int)left);
        if (p[0].revents)
            (void)!read(o->wake_fd, &n, sizeof n);
        if (p[1].revents)
            return false;
    }
    return true;
}

uint64_t out_lost(struct out *o, int *ret_errno)
{
    uint64_t lost;

    (void)pthread_mutex_lock(&o->lock);
    lost = o->lost;
    *ret_errno = o->last_errno;
    (void)pthread_mutex_unlock(&o->lock);
    return lost;
}
