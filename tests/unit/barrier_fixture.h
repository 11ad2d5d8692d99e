/* barrier_fixture: a barrier whose sending is recorded, and pods that are
 * played by hand. Included by the tests of the barrier alone. */
#ifndef TESTS_BARRIER_FIXTURE_H
#define TESTS_BARRIER_FIXTURE_H

#include "rendezvous/barrier.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PODS 4
#define CONNS 32

static struct barrier b;
static struct bar_peer peers[PODS];
static struct bar_conn conns[CONNS];
static struct bar_guest guests[CONNS];
static struct barrier_config cfg;
static char story[4096]; /* "<conn>:<kind>" of what was sent, "x<conn>". */
static char logged[4096]; /* Lines that were said. */
static struct wire_msg last; /* The last frame sent. */

static inline void on_send(void *ctx, uint32_t conn, const struct wire_msg *m)
{
    size_t len = strlen(story);

    (void)ctx;
    if (m->kind == WIRE_PING && !m->round)
        return;
    (void)snprintf(story + len, sizeof story - len, "%u:%s ", conn,
                   wire_name(m->kind));
    last = *m;
}

static inline void on_close(void *ctx, uint32_t conn, bool abort)
{
    size_t len = strlen(story);

    (void)ctx;
    (void)abort;
    (void)snprintf(story + len, sizeof story - len, "x%u ", conn);
}

static inline void on_log(void *ctx, enum log_level level, const char *text)
{
    size_t len = strlen(logged);

    (void)ctx;
    (void)level;
    (void)snprintf(logged + len, sizeof logged - len, "%s\n", text);
}

/* What was sent and closed since the last time. */
static inline void told(const char *want)
{
    assert_string_equal(story, want);
    story[0] = '\0';
}

/* Tests leave heartbeats out: pod 0 is woken in time all the same. */
static inline void on_time(uint64_t now)
{
    if (now > b.wake_ms)
        b.wake_ms = now;
}

#define barrier_timeout(bar, now) (on_time(now), (barrier_timeout)(bar, now))
#define barrier_closed(bar, now, conn)                                         \
    (on_time(now), (barrier_closed)(bar, now, conn))
#define barrier_open(bar, now, conn, addr)                                     \
    (on_time(now), (barrier_open)(bar, now, conn, addr))

static inline void say(uint64_t now, uint32_t conn, struct wire_msg m)
{
    on_time(now);
    barrier_message(&b, now, conn, &m);
}

static inline struct wire_msg hello(uint32_t rank, uint64_t incarnation)
{
    struct wire_msg m = {.kind = WIRE_HELLO, .incarnation = incarnation,
                         .node_rank = rank, .nnodes = cfg.nnodes, .nproc = 2,
                         .running = WIRE_NO_ROUND};

    memcpy(m.job_id, "job", 4);
    (void)snprintf(m.host, sizeof m.host, "w%u", rank);
    return m;
}

/* Connect from 10.0.0.<conn> and say this. */
static inline void come(uint64_t now, uint32_t conn, struct wire_msg m)
{
    char addr[32];

    (void)snprintf(addr, sizeof addr, "10.0.0.%u:1", conn);
    barrier_open(&b, now, conn, addr);
    say(now, conn, m);
}

static inline void join(uint64_t now, uint32_t conn, uint32_t rank)
{
    if (conn == BARRIER_LOCAL)
        say(now, conn, hello(rank, 100 + rank));
    else
        come(now, conn, hello(rank, 100 + rank));
}

static inline void arrive(uint64_t now, uint32_t conn, uint32_t round)
{
    say(now, conn, (struct wire_msg){.kind = WIRE_ARRIVED, .round = round});
}

static inline void done(uint64_t now, uint32_t conn)
{
    say(now, conn, (struct wire_msg){.kind = WIRE_DONE, .round = b.round});
}

static inline void bye(uint64_t now, uint32_t conn)
{
    say(now, conn, (struct wire_msg){.kind = WIRE_BYE});
}

static inline struct barrier_config usual(uint32_t nnodes)
{
    return (struct barrier_config){.incarnation = 1, .seed = 1,
                                   .nnodes = nnodes, .job_id = "job",
                                   .barrier_timeout_ms = 600000,
                                   .rejoin_timeout_ms = 300000,
                                   .grace_ms = 5000, .backoff_min_ms = 1000,
                                   .backoff_max_ms = 4000,
                                   .restart_reset_ms = 600000,
                                   .max_restarts = 2, .master_port = 29500};
}

static inline void begin_with(const struct barrier_config *c)
{
    struct barrier_out out = {
        .send = on_send, .close = on_close, .log = on_log};

    cfg = *c;
    cfg.guests = guests;
    cfg.n_guests = CONNS;
    barrier_init(&b, &cfg, &out, peers, conns, CONNS, 1);
    story[0] = '\0';
}

static inline void begin(uint32_t nnodes)
{
    struct barrier_config c = usual(nnodes);

    begin_with(&c);
}

/* Pods 0..nnodes-1, on connections of the same number, all arrive. */
static inline void all_arrive(void)
{
    for (uint32_t i = 0; i < cfg.nnodes; i++) {
        join(10, i, i);
        arrive(11, i, 0);
    }
    assert_int_equal(b.phase, BAR_RUN);
    story[0] = '\0';
}

static inline void run_all(uint32_t nnodes)
{
    begin(nnodes);
    all_arrive();
}

/* A worker's failure, in the round that runs. */
static inline struct wire_msg failed(int code, int signo)
{
    struct wire_msg m = {.kind = WIRE_FAILED, .round = b.round};

    m.failure.kind = FAILURE_WORKER;
    m.failure.code = code;
    m.failure.signo = signo;
    return m;
}

/* The pod was told to stop from outside. */
static inline struct wire_msg left(void)
{
    struct wire_msg m = {.kind = WIRE_FAILED, .round = b.round};

    m.failure.kind = FAILURE_STOPPED;
    m.failure.code = 143;
    m.failure.signo = 15;
    memcpy(m.failure.text, "SIGTERM from outside", 21);
    return m;
}

/* The last frame refuses a pod with this. */
static inline void refused(int code, const char *text)
{
    assert_int_equal(last.kind, WIRE_REFUSE);
    assert_int_equal(last.code, code);
    assert_string_equal(last.text, text);
}

#endif
