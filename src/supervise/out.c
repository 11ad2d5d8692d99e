/* out: see out.h. */
#include "supervise/out.h"

#include "supervise/out_parts.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define OUT_RING (OUT_BYTES + OUT_AGENT_BYTES + OUT_VERDICT_BYTES)
#define OUT_WRITE_MAX (128u << 10)
#define OUT_FRONT (128u << 10)

struct out {
    int fd, wake_fd;
    bool has_thread;
    bool has_nowait; /* The kernel may write to it without waiting. */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    /* Under the lock: bytes ever put and ever written; their difference lies
     * in the ring. */
    uint64_t head, tail;
    size_t want_room;
    bool want_empty;
    struct out_lost lost;
    bool broken; /* No write is tried any more. */
    bool given_up; /* Owners' bytes are counted: out_give_up(). */
    struct out_lost *lost_of; /* By owner. */
    /* The producer's alone: whose the next bytes are. */
    uint32_t owner;
    size_t raw;
    /* The writer's alone: a failed write left a line without its end. */
    bool torn;
    /* Large: touched as far as they are used. */
    struct out_parts parts; /* Of the ring. */
    char ring[OUT_RING];
};

static void wake(struct out *o)
{
    uint64_t one = 1;

    (void)!write(o->wake_fd, &one, sizeof one);
}

/* Take `n` written bytes off the front of v[*at..count). */
static void advance(struct iovec *v, int count, int *at, size_t n)
{
    while (*at < count && n >= v[*at].iov_len) {
        n -= v[*at].iov_len;
        v[*at].iov_len = 0;
        ++*at;
    }
    if (*at < count) {
        v[*at].iov_base = (char *)v[*at].iov_base + n;
        v[*at].iov_len -= n;
    }
}

/* Write it all; what is left in `v` could not be written. Returns the errno
 * of that, or 0. */
static int write_all(int fd, struct iovec *v, int count)
{
    int at = 0;

    advance(v, count, &at, 0);
    while (at < count) {
        ssize_t n = writev(fd, v + at, count - at);

        if (n >= 0) {
            advance(v, count, &at, (size_t)n);
        } else if (errno == EAGAIN) {
            struct pollfd p = {.fd = fd, .events = POLLOUT};

            (void)poll(&p, 1, -1); /* Someone made it non-blocking. */
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

/* Lay `len` bytes of the ring over v[0..1]. */
static void lay(const struct out *o, size_t len, struct iovec v[2])
{
    size_t from = (size_t)(o->tail % OUT_RING);
    size_t first = OUT_RING - from < len ? OUT_RING - from : len;

    v[0] = (struct iovec){(char *)o->ring + from, first};
    v[1] = (struct iovec){(char *)o->ring, len - first};
}

/* Under the lock: the first `len` bytes were written, or are lost. */
static void pass(struct out *o, size_t len, bool lost)
{
    out_parts_pass(&o->parts, o->ring, OUT_RING, o->tail, len,
                   lost ? o->lost_of : NULL);
    o->tail += len;
}

static bool fits(const struct out *o, size_t room)
{
    return OUT_BYTES >= o->head - o->tail + room &&
           o->parts.n <= OUT_PARTS_MAX / 2;
}

/* What is next to be written: whole lines, about OUT_WRITE_MAX bytes of them.
 * Returns the bytes. */
static size_t next_chunk(const struct out *o, struct iovec v[2])
{
    size_t pending = (size_t)(o->head - o->tail);
    const char *end;

    lay(o, pending < OUT_WRITE_MAX ? pending : OUT_WRITE_MAX, v);
    end = memrchr(v[1].iov_base, '\n', v[1].iov_len);
    if (end) {
        v[1].iov_len = (size_t)(end + 1 - (char *)v[1].iov_base);
        return v[0].iov_len + v[1].iov_len;
    }
    end = memrchr(v[0].iov_base, '\n', v[0].iov_len);
    if (end) {
        v[0].iov_len = (size_t)(end + 1 - (char *)v[0].iov_base);
        v[1].iov_len = 0;
        return v[0].iov_len;
    }
    lay(o, pending, v); /* One long line. */
    return pending;
}

/* Whether the line is torn, now that v[1..2] of `len` bytes could not be
 * written in full. */
static bool is_torn(const struct out *o, const struct iovec v[3], size_t len)
{
    size_t left = v[1].iov_len + v[2].iov_len;
    const char *next = v[1].iov_len > 0 ? v[1].iov_base : v[2].iov_base;

    if (v[0].iov_len > 0)
        return true; /* It was, and still is. */
    if (left == 0 || left == len)
        return false;
    return (next == o->ring ? o->ring[OUT_RING - 1] : next[-1]) != '\n';
}

/* Write one chunk, without the lock, which is held before and after. */
static void write_chunk(struct out *o)
{
    struct iovec v[3] = {{(void *)"\n", o->torn ? 1 : 0}};
    size_t len = next_chunk(o, v + 1), lost, lines;
    bool broken = o->broken;
    int why = 0;

    (void)pthread_mutex_unlock(&o->lock);
    if (!broken) {
        why = write_all(o->fd, v, 3);
        o->torn = is_torn(o, v, len);
    }
    lost = v[1].iov_len + v[2].iov_len;
    lines = out_count_lines(v[1].iov_base, v[1].iov_len) +
            out_count_lines(v[2].iov_base, v[2].iov_len);
    (void)pthread_mutex_lock(&o->lock);
    pass(o, len - lost, false);
    pass(o, lost, !o->given_up);
    o->lost.bytes += lost;
    o->lost.lines += lines;
    if (why) {
        o->lost.why = why;
        /* A full disk may have room again; a closed pipe never. */
        o->broken = why != ENOSPC && why != EDQUOT && why != EFBIG;
    }
    if (why || (o->want_empty && o->head == o->tail) ||
        (o->want_room && fits(o, o->want_room))) {
        o->want_room = 0;
        wake(o);
    }
}

static void *out_thread(void *arg)
{
    struct out *o = arg;

    (void)pthread_mutex_lock(&o->lock);
    for (;;) {
        while (o->head == o->tail)
            (void)pthread_cond_wait(&o->work, &o->lock);
        write_chunk(o);
    }
    return NULL;
}

int out_new(struct out **ret, int fd, int wake_fd, unsigned n_owners,
            struct err *e)
{
    struct out *o = calloc(1, sizeof *o);
    struct stat st;

    if (o)
        o->lost_of = calloc(n_owners + 1, sizeof *o->lost_of);
    if (!o || !o->lost_of) {
        free(o);
        return err_set(e, ERR_AGENT, "no memory for an output queue");
    }
    o->fd = fd;
    o->owner = OUT_NOBODY;
    o->wake_fd = wake_fd;
    /* What cannot be written so says EOPNOTSUPP the first time. A plain file is
     * not tried: there "now" may still be a disk's time. */
    o->has_nowait = fstat(fd, &st) == 0 && !S_ISREG(st.st_mode);
    (void)pthread_mutex_init(&o->lock, NULL);
    (void)pthread_cond_init(&o->work, NULL);
    *ret = o;
    return 0;
}

size_t out_pending(struct out *o)
{
    size_t n;

    (void)pthread_mutex_lock(&o->lock);
    n = (size_t)(o->head - o->tail);
    (void)pthread_mutex_unlock(&o->lock);
    return n;
}

size_t out_room(struct out *o, enum out_use use)
{
    static const size_t most[] = {OUT_BYTES, OUT_BYTES + OUT_AGENT_BYTES,
                                  OUT_RING};
    size_t pending;
    bool has_part;

    (void)pthread_mutex_lock(&o->lock);
    pending = (size_t)(o->head - o->tail);
    has_part = use != OUT_WORKERS || out_parts_has_room(&o->parts);
    (void)pthread_mutex_unlock(&o->lock);
    return has_part && pending < most[use] ? most[use] - pending : 0;
}

/* What fits into the pipe is written here and now: no other thread, and the
 * bytes are still in this core's cache. The lock is held, and the writer has
 * nothing to do. */
static void write_now(struct out *o)
{
    struct iovec v[2];
    ssize_t n;

    if (!o->has_nowait || o->broken || o->torn)
        return;
    lay(o, (size_t)(o->head - o->tail), v);
    n = pwritev2(o->fd, v, v[1].iov_len > 0 ? 2 : 1, -1, RWF_NOWAIT);
    if (n > 0)
        pass(o, (size_t)n, false);
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        o->has_nowait = false; /* The thread will say why. */
}

char *out_space(struct out *o, size_t *ret_room)
{
    size_t at, room = out_room(o, OUT_WORKERS);

    /* Empty: begin at the front, which is more likely in the cache. */
    if (room == OUT_BYTES && o->head % OUT_RING >= OUT_FRONT) {
        (void)pthread_mutex_lock(&o->lock);
        o->head += OUT_RING - o->head % OUT_RING;
        o->tail = o->head;
        (void)pthread_mutex_unlock(&o->lock);
    }
    at = (size_t)(o->head % OUT_RING);
    *ret_room = room < OUT_RING - at ? room : OUT_RING - at;
    return o->ring + at;
}

void out_commit(struct out *o, size_t len)
{
    pthread_attr_t small;
    bool was_empty;

    (void)pthread_mutex_lock(&o->lock);
    was_empty = o->head == o->tail;
    o->head += len;
    out_parts_add(&o->parts, o->owner, len, o->raw);
    o->owner = OUT_NOBODY;
    o->raw = 0;
    if (was_empty)
        write_now(o);
    if (o->head == o->tail) {
        (void)pthread_mutex_unlock(&o->lock);
        return;
    }
    (void)pthread_cond_signal(&o->work);
    if (!o->has_thread) {
        (void)pthread_attr_init(&small);
        (void)pthread_attr_setstacksize(&small, 64 * 1024);
        o->has_thread =
            pthread_create(&o->thread, &small, out_thread, o) == 0;
    }
    /* No thread to be had (pids limit): write here, though it may block. */
    while (!o->has_thread && o->head != o->tail)
        write_chunk(o);
    (void)pthread_mutex_unlock(&o->lock);
}

void out_from(struct out *o, unsigned owner, size_t raw)
{
    o->owner = owner;
    o->raw = raw;
}

void out_put(struct out *o, const char *bytes, size_t len)
{
    size_t at = (size_t)(o->head % OUT_RING), first = OUT_RING - at;

    if (first > len)
        first = len;
    /* Only this thread moves head, and the writer stays behind it. */
    memcpy(o->ring + at, bytes, first);
    memcpy(o->ring, bytes + first, len - first);
    out_commit(o, len);
}

void out_want_room(struct out *o, size_t room)
{
    (void)pthread_mutex_lock(&o->lock);
    o->want_room = room;
    if (fits(o, room)) {
        o->want_room = 0;
        wake(o);
    }
    (void)pthread_mutex_unlock(&o->lock);
}

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

bool out_flush(struct out *o, uint64_t ms, int stop_fd)
{
    struct pollfd p[2] = {{.fd = o->wake_fd, .events = POLLIN},
                          {.fd = stop_fd, .events = POLLIN}};
    uint64_t end = now_ms() + ms;

    (void)pthread_mutex_lock(&o->lock);
    o->want_empty = true;
    (void)pthread_mutex_unlock(&o->lock);
    while (out_pending(o) > 0) {
        uint64_t now = now_ms(), n;

        if (now >= end)
            return false;
        (void)poll(p, stop_fd < 0 ? 1 : 2,
                   end - now > 100 ? 100 : (int)(end - now));
        if (p[0].revents)
            (void)!read(o->wake_fd, &n, sizeof n);
        if (p[1].revents)
            return false;
    }
    return true;
}

void out_give_up(struct out *o)
{
    size_t len;

    (void)pthread_mutex_lock(&o->lock);
    len = (size_t)(o->head - o->tail);
    out_parts_pass(&o->parts, o->ring, OUT_RING, o->tail, len,
                   o->given_up ? NULL : o->lost_of);
    out_parts_add(&o->parts, OUT_NOBODY, len, 0);
    o->given_up = true;
    (void)pthread_mutex_unlock(&o->lock);
}

void out_lost_of(struct out *o, unsigned owner, struct out_lost *ret)
{
    (void)pthread_mutex_lock(&o->lock);
    *ret = o->lost_of[owner];
    (void)pthread_mutex_unlock(&o->lock);
}

void out_lost(struct out *o, struct out_lost *ret)
{
    (void)pthread_mutex_lock(&o->lock);
    *ret = o->lost;
    (void)pthread_mutex_unlock(&o->lock);
}
