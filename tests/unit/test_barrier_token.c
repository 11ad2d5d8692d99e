/* barrier_door: who is let in where the job has a token. */
#include "door_fixture.h"

static void assert_refused(const struct door *d, uint32_t conn,
                           const char *words)
{
    const struct wire_msg *m = door_last(d, conn, WIRE_REFUSE);

    assert_non_null(m);
    assert_int_equal(m->code, ERR_AUTH);
    assert_non_null(strstr(m->text, words));
    assert_non_null(strstr(d->log, words));
    assert_true(d->closed[conn]);
    assert_false(d->aborted[conn]); /* It shall read why. */
    assert_false(d->admitted[conn]);
}

static void the_right_token(void **state)
{
    static struct door d;
    struct shake s;

    (void)state;
    door_open(&d, "secret");
    shake_hello(&d, &s, 1, "secret", 1, 11);
    assert_int_equal(d.n_sent, 1); /* The challenge, and nothing of the job. */
    assert_int_equal(d.peers[1].state, PEER_UNSEEN);
    shake_prove(&d, &s, 1);
    door_say(&d, 1, &s.proof);
    assert_int_equal(d.n_sent, 3);
    assert_int_equal(d.sent[1].m.kind, WIRE_PROOF);
    assert_true(auth_check(&s.auth, AUTH_ZERO, s.script, d.sent[1].m.proof));
    assert_int_equal(d.sent[2].m.kind, WIRE_WELCOME);
    assert_int_equal(d.sent[2].m.incarnation, 100);
    assert_true(d.admitted[1]);
    assert_int_equal(d.peers[1].hello.incarnation, 11);
}

static void a_wrong_token_is_refused_alone(void **state)
{
    static struct door d;
    struct shake s;

    (void)state;
    door_open(&d, "secret");
    shake(&d, &s, 1, "Secret", 1, 11);
    assert_refused(&d, 1, "node rank 1 (pod) has a wrong token");
    assert_int_equal(d.peers[1].state, PEER_UNSEEN);
    shake(&d, &s, 2, "secret", 1, 12);
    assert_true(d.admitted[2]);
    assert_int_equal(d.b.phase, BAR_GATHER);
}

static void a_token_on_one_side(void **state)
{
    static struct door d;
    struct wire_msg hello = door_hello(1, 11);
    struct shake s;

    (void)state;
    door_open(&d, "secret");
    barrier_open(&d.b, d.now, 1, "10.0.0.9:4000");
    door_say(&d, 1, &hello);
    assert_refused(&d, 1, "has no token, and node rank 0 has one");
    door_open(&d, NULL);
    shake_hello(&d, &s, 1, "secret", 1, 11);
    assert_refused(&d, 1, "has a token, and node rank 0 has none");
    barrier_open(&d.b, d.now, 2, "10.0.0.9:4001");
    door_say(&d, 2, &hello);
    assert_non_null(door_last(&d, 2, WIRE_WELCOME));
}

/* What was heard on one connection is worth nothing on the next. */
static void a_replayed_handshake(void **state)
{
    static struct door d;
    struct shake s;

    (void)state;
    door_open(&d, "secret");
    shake(&d, &s, 1, "secret", 1, 11);
    assert_true(d.admitted[1]);
    barrier_closed(&d.b, d.now, 1);
    barrier_open(&d.b, d.now, 2, "10.0.0.66:1");
    door_say(&d, 2, &s.hello);
    assert_memory_not_equal(door_last(&d, 2, WIRE_CHALLENGE)->nonce,
                            d.sent[0].m.nonce, WIRE_NONCE_SIZE);
    door_say(&d, 2, &s.proof);
    assert_refused(&d, 2, "wrong token");
    assert_int_equal(d.peers[1].conn, BARRIER_NO_CONN);
}

/* Pod 0's own proofs, sent back to it. */
static void a_reflected_proof(void **state)
{
    static struct door d;
    struct wire_msg proof = {.kind = WIRE_PROOF};
    struct shake s;

    (void)state;
    door_open(&d, "secret");
    shake_hello(&d, &s, 1, "secret", 1, 11);
    shake_prove(&d, &s, 1);
    auth_proof(&s.auth, AUTH_ZERO, s.script, proof.proof);
    door_say(&d, 1, &proof);
    assert_refused(&d, 1, "wrong token");
}

/* A proof made for another HELLO: rank, incarnation, anything in it. */
static void a_proof_for_another_pod(void **state)
{
    static struct door d;
    struct shake s;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        door_open(&d, "secret");
        shake_hello(&d, &s, 1, "secret", 1, 11);
        s.hello.incarnation += i == 0;
        s.hello.node_rank += i == 1;
        s.hello.nproc += i == 2;
        s.hello.nonce[0] ^= i == 3;
        shake_prove(&d, &s, 1);
        door_say(&d, 1, &s.proof);
        assert_refused(&d, 1, "wrong token");
    }
}

static void nothing_else_before_the_proof(void **state)
{
    static const enum wire_kind kinds[] = {
        WIRE_HELLO, WIRE_ARRIVED, WIRE_FAILED, WIRE_DONE, WIRE_BYE, WIRE_PING,
        WIRE_CHALLENGE, WIRE_WELCOME, WIRE_END};
    static struct door d;
    struct shake s;

    (void)state;
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct wire_msg m = {.kind = kinds[i]};

        door_open(&d, "secret");
        shake_hello(&d, &s, 1, "secret", 1, 11);
        door_say(&d, 1, &m);
        assert_true(d.aborted[1]);
        shake_prove(&d, &s, 1); /* Too late. */
        door_say(&d, 1, &s.proof);
        assert_false(d.admitted[1]);
        barrier_open(&d.b, d.now, 2, "10.0.0.9:1");
        door_say(&d, 2, &s.proof); /* Without a HELLO. */
        assert_true(d.aborted[2]);
    }
}

/* An untrue HELLO neither ends the job nor takes a rank. */
static void a_hello_is_not_acted_on_before_the_proof(void **state)
{
    static struct door d;
    struct shake s;

    (void)state;
    door_open(&d, "secret");
    shake(&d, &s, 1, "secret", 1, 11);
    s.hello = door_hello(2, 12);
    s.hello.nnodes = 9; /* Would end the job with 78. */
    s.hello.has_token = 1;
    barrier_open(&d.b, d.now, 2, "10.0.0.9:1");
    door_say(&d, 2, &s.hello);
    assert_int_equal(d.b.phase, BAR_GATHER);
    shake_hello(&d, &s, 3, "other", 1, 13); /* A held rank. */
    assert_int_equal(d.peers[1].challenger, BARRIER_NO_CONN);
    shake_prove(&d, &s, 3);
    door_say(&d, 3, &s.proof);
    assert_int_equal(d.peers[1].challenger, BARRIER_NO_CONN);
    assert_refused(&d, 3, "wrong token");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_right_token),
        cmocka_unit_test(a_wrong_token_is_refused_alone),
        cmocka_unit_test(a_token_on_one_side),
        cmocka_unit_test(a_replayed_handshake),
        cmocka_unit_test(a_reflected_proof),
        cmocka_unit_test(a_proof_for_another_pod),
        cmocka_unit_test(nothing_else_before_the_proof),
        cmocka_unit_test(a_hello_is_not_acted_on_before_the_proof),
    };

    return cmocka_run_group_tests_name("barrier_token", tests, NULL, NULL);
}
