/* pod_auth: a pod with a token and who answers at pod 0's address. */
#include "agent/pod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct end { /* A pod of one worker, and the other end of its link. */
    struct pod p;
    struct wire_msg sent[16];
    unsigned n_sent, n_connects, n_resets, n_spawns;
    uint64_t now;
    struct wire_msg challenge;
    uint8_t script[AUTH_SCRIPT];
};

static void on_log(void *ctx, enum log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    assert_null(strchr(text, '\n'));
}

static void on_nothing(void *ctx)
{
    (void)ctx;
}

static void on_spawn(void *ctx, const struct pod_round *round)
{
    (void)round;
    ((struct end *)ctx)->n_spawns++;
}

static void on_kill(void *ctx, uint32_t worker, int signo)
{
    (void)ctx;
    (void)worker;
    (void)signo;
}

static void on_sweep(void *ctx, int signo)
{
    (void)ctx;
    (void)signo;
}

static void on_connect(void *ctx)
{
    ((struct end *)ctx)->n_connects++;
}

static void on_send(void *ctx, const struct wire_msg *m)
{
    struct end *x = ctx;

    assert_true(x->n_sent < 16);
    x->sent[x->n_sent++] = *m;
}

static void on_close(void *ctx, bool abort)
{
    ((struct end *)ctx)->n_resets += abort;
}

static struct auth auth_of(const char *token)
{
    uint8_t seed[AUTH_SEED] = {5};
    struct auth a = {.has_token = false};

    if (token)
        auth_init(&a, token, strlen(token), seed);
    return a;
}

static void begin(struct end *x, const char *token)
{
    struct pod_config cfg = {.node_rank = 1, .nnodes = 2, .nproc = 1,
                             .max_restarts = 3, .incarnation = 11,
                             .barrier_timeout_ms = 60000,
                             .rejoin_timeout_ms = 30000, .grace_ms = 1000,
                             .auth = auth_of(token), .job_id = "job",
                             .host = "pod", .zero = "zero:29400"};
    struct pod_out out = {.ctx = x, .log = on_log, .stage = on_nothing,
                          .stage_kill = on_nothing, .spawn = on_spawn,
                          .kill = on_kill, .sweep = on_sweep,
                          .connect = on_connect, .link_send = on_send,
                          .link_close = on_close};

    memset(x, 0, sizeof *x);
    x->now = 1000;
    pod_init(&x->p, &cfg, &out, x->now);
    pod_start(&x->p, x->now);
    pod_link_up(&x->p, x->now);
    assert_int_equal(x->sent[0].kind, WIRE_HELLO);
}

static void hear(struct end *x, const struct wire_msg *m)
{
    pod_link_message(&x->p, x->now, m);
}

static void hear_kind(struct end *x, enum wire_kind kind)
{
    struct wire_msg m = {.kind = kind, .incarnation = 100, .node_rank = 1,
                         .world_size = 2, .code = 7};

    hear(x, &m);
}

static void challenge(struct end *x)
{
    uint8_t frame[WIRE_FRAME_MAX];
    size_t len = wire_encode(&x->sent[x->n_sent - 1], frame);

    memset(&x->challenge, 0, sizeof x->challenge);
    x->challenge.kind = WIRE_CHALLENGE;
    x->challenge.incarnation = 100;
    x->challenge.nonce[3] = 77;
    auth_script(frame, len, &x->challenge, x->script);
    hear(x, &x->challenge);
}

static void prove(struct end *x, const char *token)
{
    struct wire_msg m = {.kind = WIRE_PROOF};
    struct auth a = auth_of(token);

    auth_proof(&a, AUTH_ZERO, x->script, m.proof);
    hear(x, &m);
}

static void both_prove_it(void **state)
{
    static struct end x;
    struct auth a = auth_of("secret");

    (void)state;
    begin(&x, "secret");
    assert_int_equal(x.sent[0].has_token, 1);
    challenge(&x);
    assert_int_equal(x.n_sent, 2);
    assert_int_equal(x.sent[1].kind, WIRE_PROOF);
    assert_true(auth_check(&a, AUTH_POD, x.script, x.sent[1].proof));
    prove(&x, "secret");
    assert_int_equal(x.p.link, LINK_UP);
    hear_kind(&x, WIRE_WELCOME);
    assert_int_equal(x.p.link, LINK_ADMITTED);
    assert_int_equal(x.sent[2].kind, WIRE_ARRIVED);
    hear_kind(&x, WIRE_START);
    assert_int_equal(x.n_spawns, 1);
}

static void assert_auth(const struct end *x, const char *words)
{
    assert_int_equal(x->p.state, POD_GONE);
    assert_int_equal(x->p.exit_code, ERR_AUTH);
    assert_non_null(strstr(x->p.cause.text, words));
    assert_int_equal(x->n_spawns, 0);
}

static void a_pod_0_that_proves_nothing(void **state)
{
    static const enum wire_kind kinds[] = {WIRE_WELCOME, WIRE_START, WIRE_END,
                                           WIRE_STOP, WIRE_PING, WIRE_WAITING,
                                           WIRE_HELLO, WIRE_PROOF};
    static struct end x;

    (void)state;
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (unsigned late = 0; late < 2; late++) {
            begin(&x, "secret");
            if (late)
                challenge(&x);
            hear_kind(&x, kinds[i]);
            assert_auth(&x, "does not prove");
        }
}

static void a_wrong_proof(void **state)
{
    static struct end x;
    struct wire_msg mirror;

    (void)state;
    begin(&x, "secret");
    challenge(&x);
    prove(&x, "Secret");
    assert_auth(&x, "does not prove");
    begin(&x, "secret");
    challenge(&x);
    mirror = x.sent[1]; /* Its own proof comes back. */
    hear(&x, &mirror);
    assert_auth(&x, "does not prove");
    begin(&x, "secret");
    challenge(&x);
    hear(&x, &x.challenge); /* A second challenge. */
    assert_int_equal(x.n_sent, 2);
    assert_auth(&x, "does not prove");
}

/* A wrong token, or none, at either end; whatever code a stranger names. */
static void refused(void **state)
{
    static struct end x;
    struct wire_msg m = {.kind = WIRE_REFUSE, .code = 0,
                         .text = "wrong\nagent[0]: all is well"};

    (void)state;
    begin(&x, "secret");
    hear(&x, &m);
    assert_auth(&x, "refuses this pod: wrong agent[0]");
    begin(&x, "secret"); /* Pod 0 is of another version. */
    m.code = ERR_MISMATCH;
    hear(&x, &m);
    assert_int_equal(x.p.state, POD_GONE);
    assert_int_equal(x.p.exit_code, ERR_MISMATCH);
    begin(&x, NULL);
    assert_int_equal(x.sent[0].has_token, 0);
    m.code = ERR_AUTH;
    (void)snprintf(m.text, sizeof m.text, "has no token");
    hear(&x, &m);
    assert_auth(&x, "refuses this pod: has no token");
}

/* Once pod 0 was known, a stranger at its address is not believed. */
static void an_impostor_later(void **state)
{
    static struct end x;
    struct wire_msg first;
    uint64_t heard;

    (void)state;
    begin(&x, "secret");
    challenge(&x);
    prove(&x, "secret");
    hear_kind(&x, WIRE_WELCOME);
    hear_kind(&x, WIRE_START);
    first = x.sent[0];
    heard = x.p.heard_ms;
    x.now += 100;
    pod_link_down(&x.p, x.now, "reset");
    pod_link_up(&x.p, x.now);
    assert_memory_not_equal(x.sent[x.n_sent - 1].nonce, first.nonce,
                            WIRE_NONCE_SIZE);
    hear_kind(&x, WIRE_END);
    assert_int_equal(x.p.state, POD_RUNNING);
    assert_int_equal(x.p.link, LINK_DOWN);
    assert_int_equal(x.n_resets, 1);
    assert_int_equal(x.p.heard_ms, heard); /* The lease goes on running. */
    pod_link_up(&x.p, x.now);
    hear_kind(&x, WIRE_REFUSE);
    assert_int_equal(x.p.state, POD_RUNNING);
    pod_link_up(&x.p, x.now);
    challenge(&x);
    prove(&x, "secret"); /* The real one is back. */
    hear_kind(&x, WIRE_WELCOME);
    assert_int_equal(x.p.link, LINK_ADMITTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_prove_it),
        cmocka_unit_test(a_pod_0_that_proves_nothing),
        cmocka_unit_test(a_wrong_proof),
        cmocka_unit_test(refused),
        cmocka_unit_test(an_impostor_later),
    };

    return cmocka_run_group_tests_name("pod_token", tests, NULL, NULL);
}
