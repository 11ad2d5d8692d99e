/* pod_pair_fixture: two pods, joined by hand. Each frame goes through
 * wire_encode() and wire_decode(), and the clock stands still unless a story
 * moves it. Included by test_pod_pair.c alone. */
#ifndef TESTS_POD_PAIR_FIXTURE_H
#define TESTS_POD_PAIR_FIXTURE_H

#include "agent/pod.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define QUEUE 65536
#define CONN 1 /* Pod 1's connection, on pod 0. */

struct side { /* What a pod has sent and asked for, not yet delivered. */
    struct pod pod;
    unsigned number;
    uint8_t bytes[QUEUE];
    size_t n;
    bool closed;
};

static struct side sides[2];
static struct barrier bar;
static struct bar_peer peers[2];
static struct bar_conn conns[4];
static bool plugged;
static uint64_t now;
static char story[2048];

static inline void add(const struct side *s, const char *what, unsigned n)
{
    size_t len = strlen(story);

    (void)snprintf(story + len, sizeof story - len, "%u:%s%u ", s->number,
                   what, n);
}

static inline void on_log(void *ctx, enum log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    (void)text;
}

static inline void on_stage(void *ctx)
{
    add(ctx, "stage", 0);
}

static inline void on_stage_kill(void *ctx)
{
    add(ctx, "unstage", 0);
}

static inline void on_spawn(void *ctx, const struct pod_round *r)
{
    const struct side *s = ctx;

    assert_int_equal(r->world_size, 2);
    assert_int_equal(r->rank_base, s->number);
    assert_int_equal(r->group_rank, s->number);
    assert_int_equal(r->group_size, 2);
    assert_int_equal(r->master_port, 29500);
    add(s, "spawn", r->round);
}

static inline void on_kill(void *ctx, uint32_t worker, int signo)
{
    (void)worker;
    add(ctx, "kill", (unsigned)signo);
}

static inline void on_sweep(void *ctx, int signo)
{
    (void)ctx;
    (void)signo;
}

static inline void on_connect(void *ctx)
{
    add(ctx, "connect", 0);
}

static inline void put(struct side *s, const struct wire_msg *m)
{
    uint8_t frame[WIRE_FRAME_MAX];
    size_t n = wire_encode(m, frame);

    if (!plugged)
        return;
    assert_true(s->n + n <= QUEUE);
    memcpy(s->bytes + s->n, frame, n);
    s->n += n;
}

static inline void on_link_send(void *ctx, const struct wire_msg *m)
{
    put(ctx, m);
}

static inline void on_conn_send(void *ctx, uint32_t conn,
                                const struct wire_msg *m)
{
    assert_int_equal(conn, CONN);
    put(ctx, m);
}

static inline void on_link_close(void *ctx, bool abort)
{
    (void)abort;
    ((struct side *)ctx)->closed = true;
}

static inline void on_conn_close(void *ctx, uint32_t conn, bool abort)
{
    (void)conn;
    (void)abort;
    ((struct side *)ctx)->closed = true;
}

static inline void told(const char *want)
{
    assert_string_equal(story, want);
    story[0] = '\0';
}

/* Deliver the first frame that `s` has sent; false where there is none. */
static inline bool deliver(struct side *s)
{
    struct wire_msg m;
    const char *why;
    unsigned version;
    int n = wire_decode(s->bytes, s->n, &m, &why, &version);

    assert_true(n >= 0);
    if (n == 0)
        return false;
    s->n -= (size_t)n;
    memmove(s->bytes, s->bytes + n, s->n);
    if (s->number == 1)
        pod_conn_message(&sides[0].pod, now, CONN, &m);
    else
        pod_link_message(&sides[1].pod, now, &m);
    return true;
}

/* The connection is gone for both, with what was on its way. */
static inline void cut(void)
{
    plugged = false;
    for (unsigned i = 0; i < 2; i++) {
        sides[i].n = 0;
        sides[i].closed = false;
    }
    pod_conn_closed(&sides[0].pod, now, CONN);
    pod_link_down(&sides[1].pod, now, "reset");
}

/* Until nothing is on its way any more. */
static inline void pump(void)
{
    bool more = true;

    while (more) {
        more = deliver(&sides[0]);
        more = deliver(&sides[1]) || more;
        if (!more && plugged && (sides[0].closed || sides[1].closed)) {
            cut();
            more = true;
        }
    }
}

static inline void plug(void)
{
    plugged = true;
    pod_conn_open(&sides[0].pod, now, CONN, "10.0.0.1:1");
    pod_link_up(&sides[1].pod, now);
    pump();
}

/* Let time pass until then, in steps of deadlines. */
static inline void pass(uint64_t until)
{
    unsigned n_at_once = 0;

    for (;;) {
        uint64_t a = pod_deadline(&sides[0].pod),
                 b = pod_deadline(&sides[1].pod), next = a < b ? a : b;

        if (next > until)
            break;
        n_at_once = next > now ? 0 : n_at_once + 1;
        assert_true(n_at_once < 5); /* No deadline holds the clock. */
        if (next > now)
            now = next;
        for (unsigned i = 0; i < 2; i++)
            if (pod_deadline(&sides[i].pod) <= now)
                pod_timeout(&sides[i].pod, now);
        pump();
    }
    now = until;
}

static inline void begin_pod(unsigned i, bool stage)
{
    struct pod_out out = {.ctx = &sides[i], .log = on_log, .stage = on_stage,
                          .stage_kill = on_stage_kill, .spawn = on_spawn,
                          .kill = on_kill, .sweep = on_sweep,
                          .connect = on_connect, .link_send = on_link_send,
                          .link_close = on_link_close,
                          .conn_send = on_conn_send,
                          .conn_close = on_conn_close};
    struct pod_config cfg = {.node_rank = i, .nnodes = 2, .nproc = 1,
                             .max_restarts = 1, .incarnation = 70 + now + i,
                             .barrier_timeout_ms = 60000,
                             .rejoin_timeout_ms = 30000, .grace_ms = 1000,
                             .has_stage = stage, .job_id = "j",
                             .host = i ? "w1" : "w0", .zero = "w0:29400"};
    struct barrier_config bc = {.incarnation = 70 + now, .seed = 3,
                                .nnodes = 2, .job_id = "j",
                                .barrier_timeout_ms = 60000,
                                .rejoin_timeout_ms = 30000, .grace_ms = 1000,
                                .backoff_min_ms = 100, .backoff_max_ms = 100,
                                .restart_reset_ms = 600000, .max_restarts = 1,
                                .master_port = 29500};

    memset(&sides[i], 0, sizeof sides[i]);
    sides[i].number = i;
    pod_init(&sides[i].pod, &cfg, &out, now);
    if (i == 0)
        pod_own_barrier(&sides[0].pod, &bar, &bc, peers, conns, 4, now);
    pod_start(&sides[i].pod, now);
}

static inline void begin(bool stage)
{
    now = 1000;
    plugged = false;
    story[0] = '\0';
    begin_pod(0, stage);
    begin_pod(1, stage);
}

static inline void run_both(void)
{
    begin(false);
    plug();
    told("1:connect0 0:spawn0 1:spawn0 ");
}

/* The one worker of a pod ends, and leaves nothing behind. */
static inline void ends(unsigned i, int code)
{
    struct pod_exit x = {.pid = 4711, .code = code,
                         .signo = code > 128 ? code - 128 : 0, .ran_ms = 5,
                         .hint = "", .tail = "its last words"};

    pod_worker_exit(&sides[i].pod, now, &x);
    pod_swept(&sides[i].pod, now, 0, false);
    pod_swept(&sides[i].pod, now, 0, false);
    pump();
}

static inline void gone(unsigned i, int code)
{
    assert_int_equal(sides[i].pod.state, POD_GONE);
    assert_int_equal(sides[i].pod.exit_code, code);
}

#endif
