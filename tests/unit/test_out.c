/* out: all bytes in order, and no wait for a reader that is not there. */
#include "supervise/out.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 30000 /* Of a wait that must not be needed. */

/* An `out` lives as long as the process: its thread never ends. Kept here, for
 * it is not freed. */
#define OUTS 16
static struct out *outs[OUTS];
static unsigned n_outs;

struct queue {
    struct out *out;
    int fds[2], wake_fd;
};

static void over(struct queue *q, int read_fd, int write_fd)
{
    struct err e;

    q->fds[0] = read_fd;
    q->fds[1] = write_fd;
    q->wake_fd = eventfd(0, EFD_CLOEXEC);
    assert_true(q->wake_fd >= 0 && n_outs < OUTS);
    assert_int_equal(out_new(&q->out, write_fd, q->wake_fd, 3, &e), 0);
    outs[n_outs++] = q->out;
}

static void over_pipe(struct queue *q)
{
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    over(q, fds[0], fds[1]);
}

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, WAIT_MS) == 1;
}

/* The byte at a place of the stream: no period near the size of the ring. */
static char byte_at(uint64_t i)
{
    return (char)(i * 2654435761u >> 13);
}

static uint64_t lost(struct out *o, int *ret_why)
{
    struct out_lost l;

    out_lost(o, &l);
    *ret_why = l.why;
    return l.bytes;
}

static void put(struct out *o, uint64_t *put_so_far, size_t len)
{
    static char piece[OUT_BYTES];

    assert_true(len <= sizeof piece);
    for (size_t i = 0; i < len; i++)
        piece[i] = byte_at(*put_so_far + i);
    out_put(o, piece, len);
    *put_so_far += len;
}

/* Read what is there; it must be what comes next. */
static void take(int fd, uint64_t *taken)
{
    char buf[65536];
    ssize_t n;

    assert_true(readable(fd));
    n = read(fd, buf, sizeof buf);
    assert_true(n > 0);
    for (ssize_t i = 0; i < n; i++)
        if (buf[i] != byte_at(*taken + (uint64_t)i))
            fail_msg("byte %llu is another",
                     (unsigned long long)*taken + (unsigned long long)i);
    *taken += (uint64_t)n;
}

static void test_order_over_the_edge(void **state)
{
    static const size_t sizes[] = {1, 70000, 4096, 333333, 65536, 12, 99999};
    const uint64_t total = 5 * (uint64_t)OUT_BYTES;
    uint64_t in = 0, got = 0;
    struct queue q;
    int why;

    (void)state;
    over_pipe(&q);
    assert_int_equal(out_room(q.out, OUT_WORKERS), OUT_BYTES);
    assert_int_equal(out_pending(q.out), 0);
    for (unsigned i = 0; got < total; i++) {
        size_t len = sizes[i % 7];

        while (in < total && out_room(q.out, OUT_WORKERS) < len)
            take(q.fds[0], &got);
        if (in < total)
            put(q.out, &in, len);
        else
            while (got < in)
                take(q.fds[0], &got);
    }
    assert_true(out_flush(q.out, WAIT_MS, -1));
    assert_int_equal(lost(q.out, &why), 0);
    assert_int_equal(why, 0);
}

/* Nobody reads: the flush ends at its deadline, or when told to. */
static void test_stalled_reader(void **state)
{
    uint64_t in = 0, got = 0;
    struct queue q;
    int stop_fd = eventfd(1, EFD_CLOEXEC);

    (void)state;
    over_pipe(&q);
    put(q.out, &in, OUT_BYTES);
    assert_false(out_flush(q.out, 20, -1));
    assert_false((out_pending(q.out) == 0));
    assert_false(out_flush(q.out, 10 * (uint64_t)WAIT_MS, stop_fd));
    /* Then somebody reads after all: nothing was lost. */
    while (got < in)
        take(q.fds[0], &got);
    assert_true(out_flush(q.out, WAIT_MS, stop_fd));
    (void)close(stop_fd);
}

static void test_wake_for_room(void **state)
{
    uint64_t in = 0, got = 0, n;
    struct queue q;

    (void)state;
    over_pipe(&q);
    out_want_room(q.out, OUT_BYTES); /* There is: told at once. */
    assert_true(readable(q.wake_fd));
    assert_int_equal(read(q.wake_fd, &n, sizeof n), sizeof n);
    put(q.out, &in, OUT_BYTES);
    out_want_room(q.out, OUT_BYTES / 2);
    while (out_room(q.out, OUT_WORKERS) < OUT_BYTES / 2)
        take(q.fds[0], &got);
    assert_true(readable(q.wake_fd));
    while (got < in)
        take(q.fds[0], &got);
}

/* A reader that went away: counted, said why, and never waited for. */
static void test_closed_pipe(void **state)
{
    uint64_t in = 0;
    struct queue q;
    int why = 0;

    (void)state;
    over_pipe(&q);
    (void)close(q.fds[0]);
    put(q.out, &in, 10);
    assert_true(out_flush(q.out, WAIT_MS, -1));
    assert_int_equal(lost(q.out, &why), 10);
    assert_int_equal(why, EPIPE);
    put(q.out, &in, OUT_BYTES);
    assert_true(out_flush(q.out, WAIT_MS, -1));
    assert_int_equal(lost(q.out, &why), 10 + OUT_BYTES);
    assert_int_equal(why, EPIPE);
}

/* A failed write wakes the loop although nobody waits for room. */
static void test_failure_wakes(void **state)
{
    uint64_t in = 0;
    struct queue q;

    (void)state;
    over_pipe(&q);
    (void)close(q.fds[0]);
    put(q.out, &in, 1);
    assert_true(readable(q.wake_fd));
}

/* A full disk may have room again: each write is tried. */
static void test_full_disk(void **state)
{
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC), why = 0;
    uint64_t in = 0;
    struct queue q;

    (void)state;
    assert_true(fd >= 0);
    over(&q, -1, fd);
    for (unsigned i = 1; i <= 2; i++) {
        put(q.out, &in, 100);
        assert_true(out_flush(q.out, WAIT_MS, -1));
        assert_int_equal(lost(q.out, &why), i * 100);
        assert_int_equal(why, ENOSPC);
    }
}

/* Somebody else who has the descriptor made it non-blocking. */
static void test_nonblocking(void **state)
{
    uint64_t in = 0, got = 0;
    struct queue q;
    int why;

    (void)state;
    over_pipe(&q);
    assert_int_equal(fcntl(q.fds[1], F_SETFL, O_NONBLOCK), 0);
    put(q.out, &in, OUT_BYTES);
    while (got < in)
        take(q.fds[0], &got);
    assert_true(out_flush(q.out, WAIT_MS, -1));
    assert_int_equal(lost(q.out, &why), 0);
}

/* agent's own lines come through where the workers' fill the queue, and its
 * last words where its own do. */
static void test_reserve(void **state)
{
    uint64_t in = 0, got = 0;
    struct queue q;
    size_t room;

    (void)state;
    over_pipe(&q);
    put(q.out, &in, 100000); /* More than a pipe takes. */
    put(q.out, &in, out_room(q.out, OUT_WORKERS));
    while (out_room(q.out, OUT_WORKERS) > 0)
        put(q.out, &in, out_room(q.out, OUT_WORKERS));
    (void)out_space(q.out, &room);
    assert_int_equal(room, 0);
    assert_true(out_room(q.out, OUT_AGENT) >= OUT_AGENT_BYTES);
    put(q.out, &in, out_room(q.out, OUT_AGENT));
    assert_true(out_room(q.out, OUT_VERDICT) >= OUT_VERDICT_BYTES);
    put(q.out, &in, out_room(q.out, OUT_VERDICT));
    while (got < in)
        take(q.fds[0], &got);
    assert_true(out_flush(q.out, WAIT_MS, -1));
}

/* Written in place, over the edge of the ring, too. */
static void test_space(void **state)
{
    uint64_t in = 0, got = 0;
    struct queue q;

    (void)state;
    over_pipe(&q);
    while (in < 3 * (uint64_t)OUT_BYTES) {
        size_t room;
        char *to = out_space(q.out, &room);

        if (room > 77777)
            room = 77777;
        for (size_t i = 0; i < room; i++)
            to[i] = byte_at(in + i);
        out_commit(q.out, room);
        in += room;
        while (got < in)
            take(q.fds[0], &got);
    }
}

/* A file that may not grow beyond a line and a half: when there is room again
 * the next line begins on a line of its own. */
static void test_a_torn_line_ends(void **state)
{
    char path[] = "/tmp/test_out.XXXXXX", text[64];
    int fd = mkstemp(path), why = 0;
    struct rlimit old, small;
    struct queue q;
    ssize_t n;

    (void)state;
    assert_true(fd >= 0);
    over(&q, -1, fd);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 7;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    out_put(q.out, "one\ntwo three\nfour\n", 19);
    assert_true(out_flush(q.out, WAIT_MS, -1));
    assert_int_equal(lost(q.out, &why), 12);
    assert_int_equal(why, EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    out_put(q.out, "five\n", 5);
    assert_true(out_flush(q.out, WAIT_MS, -1));
    n = pread(fd, text, sizeof text, 0);
    assert_int_equal(n, 13);
    assert_memory_equal(text, "one\ntwo\nfive\n", 13);
    assert_int_equal(lost(q.out, &why), 12);
    (void)unlink(path);
    (void)close(fd);
}

static void lost_of_is(struct out *o, unsigned owner, uint64_t lines,
                       uint64_t bytes)
{
    struct out_lost l;

    out_lost_of(o, owner, &l);
    assert_int_equal(l.lines, lines);
    assert_int_equal(l.bytes, bytes);
}

static void put_of(struct out *o, unsigned owner, size_t raw, const char *s)
{
    out_from(o, owner, raw);
    out_put(o, s, strlen(s));
}

/* Whose the lost lines were, without prefixes; agent's own are nobody's. */
static void test_lost_lines_have_an_owner(void **state)
{
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct queue q;

    (void)state;
    assert_true(fd >= 0);
    over(&q, -1, fd);
    put_of(q.out, 0, 8, "[0] one\n[0] two\n");
    out_put(q.out, "agent: hm\n", 10);
    put_of(q.out, 2, 3, "[2] up\n");
    put_of(q.out, 0, 2, "[0] x\n");
    assert_true(out_flush(q.out, WAIT_MS, -1));
    lost_of_is(q.out, 0, 3, 10);
    lost_of_is(q.out, 1, 0, 0);
    lost_of_is(q.out, 2, 1, 3);
}

/* Nobody reads, and the time is up: what is queued is lost, once. */
static void test_given_up_is_lost(void **state)
{
    static char long_line[300000];
    struct queue q;

    (void)state;
    over_pipe(&q);
    memset(long_line, 'x', sizeof long_line - 2);
    long_line[sizeof long_line - 2] = '\n';
    put_of(q.out, 1, 299990, long_line);
    put_of(q.out, 2, 2, "> y\n");
    lost_of_is(q.out, 2, 0, 0);
    out_give_up(q.out);
    lost_of_is(q.out, 2, 1, 2);
    out_give_up(q.out);
    (void)close(q.fds[0]);
    assert_true(out_flush(q.out, WAIT_MS, -1));
    lost_of_is(q.out, 2, 1, 2);
}

/* Many short lines of two in turns: the list of parts is bounded, and agent's
 * own lines have room in it. */
static void test_many_parts(void **state)
{
    unsigned n = 0;
    struct queue q;
    uint64_t count;

    (void)state;
    over_pipe(&q);
    put_of(q.out, 0, 1, "x\n");
    while (out_room(q.out, OUT_WORKERS) >= 4) {
        put_of(q.out, n % 2, 3, "abc\n");
        n++;
        assert_true(n < OUT_BYTES);
    }
    for (unsigned i = 0; i < 100; i++)
        out_put(q.out, "own\n", 4);
    out_want_room(q.out, 4);
    assert_int_equal(read(q.fds[0], (char[2]){0}, 2), 2);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(read(q.fds[0], (char[4]){0}, 4), 4);
    assert_true(readable(q.wake_fd));
    assert_int_equal(read(q.wake_fd, &count, sizeof count), sizeof count);
    assert_true(out_room(q.out, OUT_WORKERS) > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_over_the_edge),
        cmocka_unit_test(test_stalled_reader),
        cmocka_unit_test(test_wake_for_room),
        cmocka_unit_test(test_closed_pipe),
        cmocka_unit_test(test_failure_wakes),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_nonblocking),
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_space),
        cmocka_unit_test(test_a_torn_line_ends),
        cmocka_unit_test(test_lost_lines_have_an_owner),
        cmocka_unit_test(test_given_up_is_lost),
        cmocka_unit_test(test_many_parts),
    };
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    (void)sigaction(SIGPIPE, &ignore, NULL); /* As agent: blocked there. */
    (void)sigaction(SIGXFSZ, &ignore, NULL);
    (void)alarm(120); /* Each wait ends, at the latest so. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
