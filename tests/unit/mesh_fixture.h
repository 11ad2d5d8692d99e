/* mesh_fixture: a barrier and its pods, for tests of the mesh test: what it
 * sends is kept by kind and pod. */
#ifndef MESH_FIXTURE_H
#define MESH_FIXTURE_H

#include "rendezvous/barrier.h"
#include "rendezvous/mesh_talk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_PODS 1200
#define MAX_CONNS (MAX_PODS + 64)

struct pod_view { /* What one pod was sent. */
    unsigned n_mesh, n_start, n_end;
    uint64_t nonce;
    uint32_t partners[MESH_PARTNERS_MAX], n_partners, n_total;
    struct wire_addr at[MESH_PARTNERS_MAX];
    struct wire_msg end;
    uint32_t conn;
    uint64_t incarnation;
};

static struct {
    struct barrier b;
    struct barrier_config cfg;
    struct bar_peer peers[MAX_PODS];
    struct bar_conn conns[MAX_CONNS];
    struct pod_view pods[MAX_PODS];
    uint32_t n, n_conns; /* Connections so far; each has an id of its own. */
    uint64_t now;
    char log[8192]; /* Warnings and worse, a line each. */
    char debug[1024];
} f;

static void on_mesh(struct pod_view *v, const struct wire_msg *m)
{
    static uint8_t bytes[WIRE_FRAME_MAX];
    struct wire_msg back;
    const char *why;
    unsigned version;
    size_t len = wire_encode(m, bytes);

    assert_int_equal(wire_decode(bytes, len, &back, &why, &version), len);
    assert_int_equal(back.n_partners, m->n_partners);
    if (m->first == 0)
        v->n_partners = 0;
    assert_int_equal(m->first, v->n_partners);
    for (uint32_t i = 0; i < back.n_partners; i++) {
        v->partners[v->n_partners] = back.partners[i].rank;
        v->at[v->n_partners++] = back.partners[i].at;
    }
    v->n_mesh++;
    v->nonce = back.mesh_nonce;
    v->n_total = back.n_total;
}

static void on_send(void *ctx, uint32_t conn, const struct wire_msg *m)
{
    uint32_t rank = f.conns[conn].rank;

    (void)ctx;
    if (rank >= f.n)
        return;
    if (m->kind == WIRE_MESH)
        on_mesh(&f.pods[rank], m);
    f.pods[rank].n_start += m->kind == WIRE_START;
    if (m->kind == WIRE_END) {
        f.pods[rank].n_end++;
        f.pods[rank].end = *m;
    }
}

static void on_close(void *ctx, uint32_t conn, bool abort)
{
    (void)ctx;
    (void)conn;
    (void)abort;
}

static void on_log(void *ctx, enum log_level level, const char *text)
{
    char *to = level <= LOG_WARNING ? f.log : f.debug;
    size_t cap = level <= LOG_WARNING ? sizeof f.log : sizeof f.debug;
    size_t len = strlen(to);

    (void)ctx;
    if (level != LOG_INFO)
        (void)snprintf(to + len, cap - len, "%s\n", text);
}

static void begin(uint32_t n, uint32_t reach, bool strict)
{
    static const struct barrier_out out = {
        .send = on_send, .close = on_close, .log = on_log};

    memset(&f, 0, sizeof f);
    f.n = n;
    f.now = 1000;
    f.cfg = (struct barrier_config){.incarnation = 77,
                                    .seed = 99,
                                    .nnodes = n,
                                    .job_id = "j",
                                    .barrier_timeout_ms = 600000,
                                    .rejoin_timeout_ms = 300000,
                                    .grace_ms = 1000,
                                    .restart_reset_ms = 600000,
                                    .max_restarts = 3,
                                    .mesh_reach = reach,
                                    .mesh_strict = strict};
    barrier_init(&f.b, &f.cfg, &out, f.peers, f.conns, MAX_CONNS, f.now);
    for (uint32_t r = 0; r < n; r++)
        f.pods[r].incarnation = 1000 + r;
}

static struct wire_addr address(uint32_t net, uint32_t rank)
{
    struct wire_addr a = {.port = (uint16_t)(4000 + rank)};

    a.ip[10] = a.ip[11] = 0xff;
    a.ip[12] = (uint8_t)net;
    a.ip[14] = (uint8_t)(rank >> 8);
    a.ip[15] = (uint8_t)rank;
    return a;
}

/* Pod r on a new connection; it has reached pod 0 as 9.0.0.<r>. */
static void hello(uint32_t r)
{
    struct wire_msg m = {.kind = WIRE_HELLO, .running = WIRE_NO_ROUND};
    struct wire_addr here = address(9, r);

    m.incarnation = f.pods[r].incarnation;
    m.node_rank = r;
    m.nnodes = f.n;
    m.nproc = 1;
    m.round = f.b.round;
    (void)snprintf(m.job_id, sizeof m.job_id, "j");
    (void)snprintf(m.host, sizeof m.host, "h%u", r);
    f.pods[r].conn = r == 0 ? BARRIER_LOCAL : ++f.n_conns;
    if (r > 0) {
        barrier_open(&f.b, f.now, f.pods[r].conn, "addr");
        mesh_here(&f.b, f.pods[r].conn, &here);
    }
    barrier_message(&f.b, f.now, f.pods[r].conn, &m);
}

static void arrive_at(uint32_t r, struct wire_addr at)
{
    struct wire_msg m = {.kind = WIRE_ARRIVED, .round = f.b.round};

    m.mesh = at;
    barrier_message(&f.b, f.now, f.pods[r].conn, &m);
}

static void arrive(uint32_t r)
{
    arrive_at(r, address(r == 0 ? 0 : 10, r));
}

static void all_arrive(void)
{
    for (uint32_t r = 0; r < f.n; r++) {
        hello(r);
        arrive(r);
    }
}

/* Pod r could not reach `to` for `reason`; 0: all is well. */
static void answer(uint32_t r, uint32_t to, enum mesh_reason reason)
{
    struct wire_msg m = {.kind = WIRE_MESHED};

    m.mesh_nonce = f.pods[r].nonce;
    m.n_total = f.pods[r].n_total;
    m.partners[0].rank = to;
    m.partners[0].at = address(10, to);
    m.partners[0].reason = (uint8_t)reason;
    m.n_bad = m.n_partners = reason != MESH_FINE;
    barrier_message(&f.b, f.now, f.pods[r].conn, &m);
}

static unsigned n_started(void)
{
    unsigned n = 0;

    for (uint32_t r = 0; r < f.n; r++)
        n += f.pods[r].n_start > 0;
    return n;
}

/* Run the clock on, and what is due with it. */
static void pass(uint64_t ms)
{
    uint64_t end = f.now + ms;

    while (barrier_deadline(&f.b) <= end) {
        if (barrier_deadline(&f.b) > f.now)
            f.now = barrier_deadline(&f.b);
        barrier_timeout(&f.b, f.now);
        /* Everyone is alive. */
        for (uint32_t r = 1; r < f.n; r++) {
            static const struct wire_msg ping = {.kind = WIRE_PING};

            if (f.pods[r].conn && f.conns[f.pods[r].conn].open_ms)
                barrier_message(&f.b, f.now, f.pods[r].conn, &ping);
        }
        if (barrier_deadline(&f.b) <= f.now)
            f.now++;
    }
    f.now = end;
}

#endif
