/* wire: the frames of the handshake, and what a connection that is not
 * admitted may send. */
#include "rendezvous/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct wire_msg hello(void)
{
    struct wire_msg m = {.kind = WIRE_HELLO, .incarnation = 1, .nnodes = 2,
                         .nproc = 1};

    memset(m.job_id, 'j', sizeof m.job_id - 1);
    memset(m.host, 'h', sizeof m.host - 1);
    m.has_token = 1;
    memset(m.nonce, 0xab, sizeof m.nonce);
    for (uint32_t i = 0; i < PAST_RUNS_MAX; i++)
        past_add(&m.past, i, 1);
    for (uint32_t i = 0; i < PAST_LOST_MAX; i++)
        assert_true(past_lose(&m.past, i, i));
    return m;
}

static void what_is_written_is_read(void **state)
{
    struct wire_msg in[3] = {hello(), {.kind = WIRE_CHALLENGE,
                                       .incarnation = 7},
                             {.kind = WIRE_PROOF}};
    uint8_t frame[WIRE_FRAME_MAX];

    (void)state;
    memset(in[1].nonce, 0xcd, sizeof in[1].nonce);
    memset(in[2].proof, 0xef, sizeof in[2].proof);
    for (unsigned i = 0; i < 3; i++) {
        size_t len = wire_encode(&in[i], frame);
        const char *why = "";
        struct wire_msg out;
        unsigned version;

        for (size_t n = 0; n < len; n++)
            assert_int_equal(wire_decode(frame, n, &out, &why, &version), 0);
        assert_int_equal(wire_decode(frame, len, &out, &why, &version), len);
        assert_memory_equal(&out, &in[i], offsetof(struct wire_msg, hosts));
        assert_true(len <= WIRE_GUEST_MAX);
    }
}

static void a_guest_says_hello_and_proof(void **state)
{
    uint8_t frame[WIRE_FRAME_MAX];

    (void)state;
    for (unsigned kind = 1; wire_name(kind)[0] != '?'; kind++) {
        struct wire_msg m = hello(), out;
        bool may = kind == WIRE_HELLO || kind == WIRE_PROOF;
        const char *why = "";
        unsigned version;
        size_t len;

        m.kind = (enum wire_kind)kind;
        len = wire_encode(&m, frame);
        assert_int_equal(wire_decode(frame, len, &out, &why, &version), len);
        assert_int_equal(wire_decode_guest(frame, len, &out, &why, &version),
                         may ? (int)len : -1);
        /* Seen from the head alone. */
        assert_int_equal(wire_decode_guest(frame, WIRE_HEAD, &out, &why,
                                           &version), may ? 0 : -1);
        assert_int_equal(version, WIRE_VERSION);
    }
}

static void a_guest_says_little(void **state)
{
    struct wire_msg m = hello(), out;
    uint8_t frame[WIRE_FRAME_MAX];
    const char *why = "";
    unsigned version;

    (void)state;
    (void)wire_encode(&m, frame);
    frame[6] = (WIRE_GUEST_MAX - WIRE_HEAD + 1) >> 8;
    frame[7] = (WIRE_GUEST_MAX - WIRE_HEAD + 1) & 255;
    assert_int_equal(wire_decode(frame, WIRE_HEAD, &out, &why, &version), 0);
    assert_int_equal(wire_decode_guest(frame, WIRE_HEAD, &out, &why,
                                       &version), -1);
    /* Another version is still told so. */
    frame[4] = WIRE_VERSION + 1;
    assert_int_equal(wire_decode_guest(frame, WIRE_HEAD, &out, &why,
                                       &version), -1);
    assert_int_equal(version, WIRE_VERSION + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_guest_says_hello_and_proof),
        cmocka_unit_test(a_guest_says_little),
    };

    return cmocka_run_group_tests_name("wire_guest", tests, NULL, NULL);
}
