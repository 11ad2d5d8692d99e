/* pod_fixture: a pod that records what it asks for, and pod 0 played by hand.
 * Included by the tests of the pod alone. */
#ifndef TESTS_POD_FIXTURE_H
#define TESTS_POD_FIXTURE_H

#include "agent/pod.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct pod p;
static struct barrier bar;
static struct bar_peer peers[2];
static struct bar_conn conns[4];
static char story[2048];
static struct wire_msg sent; /* The last frame to pod 0. */
static char said[2 * WIRE_TEXT_MAX]; /* The last line for people. */

static inline void add(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
static inline void add(const char *fmt, ...)
{
    size_t len = strlen(story);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(story + len, sizeof story - len, fmt, ap);
    va_end(ap);
}

static inline void on_log(void *c, enum log_level l, const char *t)
{
    (void)c;
    if (l < LOG_DEBUG)
        (void)snprintf(said, sizeof said, "%s", t);
}

static inline void on_stage(void *c)
{
    (void)c;
    add("stage ");
}

static inline void on_stage_kill(void *c)
{
    (void)c;
    add("unstage ");
}

static inline void on_spawn(void *c, const struct pod_round *r)
{
    (void)c;
    add("spawn%u ", r->round);
}

static inline void on_kill(void *c, uint32_t w, int signo)
{
    (void)c;
    add("kill%u:%d ", w, signo);
}

static inline void on_sweep(void *c, int signo)
{
    (void)c;
    add("sweep:%d ", signo);
}

static inline void on_connect(void *c)
{
    (void)c;
    add("connect ");
}

static inline void on_send(void *c, const struct wire_msg *m)
{
    (void)c;
    sent = *m;
    add("%s ", wire_name(m->kind));
}

static inline void on_close(void *c, bool abort)
{
    (void)c;
    add(abort ? "abort " : "close ");
}

static inline void on_conn_send(void *c, uint32_t conn,
                                const struct wire_msg *m)
{
    (void)c;
    add("%u:%s ", conn, wire_name(m->kind));
}

static inline void on_conn_close(void *c, uint32_t conn, bool abort)
{
    (void)c;
    add("%s%u ", abort ? "abort" : "close", conn);
}

static const struct pod_out out = {
    .log = on_log, .stage = on_stage, .stage_kill = on_stage_kill,
    .spawn = on_spawn, .kill = on_kill, .sweep = on_sweep,
    .connect = on_connect, .link_send = on_send, .link_close = on_close,
    .conn_send = on_conn_send, .conn_close = on_conn_close};

static inline void told(const char *want)
{
    assert_string_equal(story, want);
    story[0] = '\0';
}

static inline void make(uint32_t rank, uint32_t nnodes, bool stage)
{
    struct pod_config cfg = {.node_rank = rank, .nnodes = nnodes, .nproc = 2,
                             .max_restarts = 1, .restart_reset_ms = 600000,
                             .incarnation = 9,
                             .barrier_timeout_ms = 60000,
                             .rejoin_timeout_ms = 30000, .grace_ms = 1000,
                             .has_stage = stage, .job_id = "j", .host = "h",
                             .zero = "z:1"};
    struct barrier_config bc = {.incarnation = 9, .seed = 3, .nnodes = nnodes,
                                .job_id = "j", .barrier_timeout_ms = 60000,
                                .rejoin_timeout_ms = 30000, .grace_ms = 1000,
                                .backoff_min_ms = 100, .backoff_max_ms = 100,
                                .restart_reset_ms = 600000, .max_restarts = 1,
                                .master_port = 1};

    story[0] = '\0';
    memset(&p, 0, sizeof p);
    pod_init(&p, &cfg, &out, 1);
    if (rank == 0)
        pod_own_barrier(&p, &bar, &bc, peers, conns, 4, 1);
    pod_start(&p, 1);
}

static inline void ends(uint64_t now, uint32_t worker, int code)
{
    struct pod_exit x = {.worker = worker, .pid = 7, .code = code,
                         .signo = code > 128 ? code - 128 : 0, .ran_ms = 5,
                         .hint = "", .tail = ""};

    pod_worker_exit(&p, now, &x);
}

static inline void hear(uint64_t now, struct wire_msg m)
{
    pod_link_message(&p, now, &m);
}

/* Pod 1 of two, admitted, its workers of round 0 running. */
static inline void member_runs(void)
{
    make(1, 2, false);
    pod_link_up(&p, 2);
    hear(3, (struct wire_msg){.kind = WIRE_WELCOME, .incarnation = 1,
                              .node_rank = 1, .max_restarts = 1});
    hear(4, (struct wire_msg){.kind = WIRE_START, .rank_base = 2,
                              .world_size = 4, .group_rank = 1,
                              .group_size = 2});
    told("connect HELLO ARRIVED spawn0 ");
}

#endif
