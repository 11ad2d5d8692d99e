/* A barrier with what it sends and closes, and a pod's side of a handshake,
 * step by step, for tests. */
#include "rendezvous/barrier.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NNODES 3
#define GUESTS 16
#define CONNS (2 * NNODES + GUESTS + 64)

struct sent {
    uint32_t conn;
    struct wire_msg m;
};

struct door {
    struct barrier b;
    struct bar_peer peers[NNODES];
    struct bar_conn conns[CONNS];
    struct bar_guest guests[GUESTS];
    struct sent sent[64];
    unsigned n_sent;
    bool closed[CONNS], aborted[CONNS], admitted[CONNS];
    unsigned n_warnings;
    char log[WIRE_TEXT_MAX + FAILURE_TEXT_MAX]; /* The last line. */
    uint64_t now;
};

static void door_send(void *ctx, uint32_t conn, const struct wire_msg *m)
{
    struct door *d = ctx;

    if (conn == BARRIER_LOCAL || m->kind == WIRE_PING)
        return;
    assert_true(d->n_sent < 64);
    d->sent[d->n_sent].conn = conn;
    d->sent[d->n_sent++].m = *m;
}

static void door_close(void *ctx, uint32_t conn, bool abort)
{
    struct door *d = ctx;

    d->closed[conn] = true;
    d->aborted[conn] = abort;
}

static void door_admit(void *ctx, uint32_t conn)
{
    ((struct door *)ctx)->admitted[conn] = true;
}

static void door_log(void *ctx, enum log_level level, const char *text)
{
    struct door *d = ctx;

    d->n_warnings += level == LOG_WARNING;
    if (level != LOG_DEBUG)
        (void)snprintf(d->log, sizeof d->log, "%s", text);
}

static struct auth door_auth(const char *token, uint8_t seed_byte)
{
    uint8_t seed[AUTH_SEED];
    struct auth a = {.has_token = false};

    memset(seed, seed_byte, sizeof seed);
    if (token)
        auth_init(&a, token, strlen(token), seed);
    return a;
}

static struct wire_msg door_hello(uint32_t rank, uint64_t incarnation)
{
    struct wire_msg m = {.kind = WIRE_HELLO, .node_rank = rank,
                         .incarnation = incarnation, .nnodes = NNODES,
                         .nproc = 1, .running = WIRE_NO_ROUND,
                         .job_id = "job", .host = "pod"};

    return m;
}

/* Pod 0 with this token (NULL: none), its own side arrived. */
static void door_open(struct door *d, const char *token)
{
    struct barrier_config cfg = {.incarnation = 100, .seed = 7,
                                 .nnodes = NNODES, .job_id = "job",
                                 .barrier_timeout_ms = 600000,
                                 .rejoin_timeout_ms = 300000,
                                 .n_guests = GUESTS};
    struct barrier_out out = {.ctx = d, .send = door_send,
                              .close = door_close, .admit = door_admit,
                              .log = door_log};
    struct wire_msg hello = door_hello(0, 100);

    memset(d, 0, sizeof *d);
    d->now = 1000;
    cfg.auth = door_auth(token, 0);
    cfg.guests = d->guests;
    barrier_init(&d->b, &cfg, &out, d->peers, d->conns, CONNS, d->now);
    barrier_message(&d->b, d->now, BARRIER_LOCAL, &hello);
}

/* What was sent last to this connection, if it is of this kind. */
static const struct wire_msg *door_last(const struct door *d, uint32_t conn,
                                        enum wire_kind kind)
{
    for (unsigned i = d->n_sent; i-- > 0;)
        if (d->sent[i].conn == conn)
            return d->sent[i].m.kind == kind ? &d->sent[i].m : NULL;
    return NULL;
}

static void door_say(struct door *d, uint32_t conn, const struct wire_msg *m)
{
    barrier_message(&d->b, d->now, conn, m);
}

/* A pod's HELLO with a nonce, and its proof of the challenge that comes. */
struct shake {
    struct auth auth;
    struct wire_msg hello, proof;
    uint8_t script[AUTH_SCRIPT];
};

static inline void shake_hello(struct door *d, struct shake *s, uint32_t conn,
                        const char *token, uint32_t rank, uint64_t incarnation)
{
    s->auth = door_auth(token, (uint8_t)incarnation);
    s->hello = door_hello(rank, incarnation);
    s->hello.has_token = 1;
    auth_nonce(&s->auth, conn, s->hello.nonce);
    barrier_open(&d->b, d->now, conn, "10.0.0.9:4000");
    door_say(d, conn, &s->hello);
}

static inline void shake_prove(struct door *d, struct shake *s, uint32_t conn)
{
    const struct wire_msg *challenge = door_last(d, conn, WIRE_CHALLENGE);
    uint8_t frame[WIRE_FRAME_MAX];
    size_t len = wire_encode(&s->hello, frame);

    assert_non_null(challenge);
    auth_script(frame, len, challenge, s->script);
    memset(&s->proof, 0, sizeof s->proof);
    s->proof.kind = WIRE_PROOF;
    auth_proof(&s->auth, AUTH_POD, s->script, s->proof.proof);
}

/* The whole of it. */
static inline void shake(struct door *d, struct shake *s, uint32_t conn,
                  const char *token, uint32_t rank, uint64_t incarnation)
{
    shake_hello(d, s, conn, token, rank, incarnation);
    shake_prove(d, s, conn);
    door_say(d, conn, &s->proof);
}
