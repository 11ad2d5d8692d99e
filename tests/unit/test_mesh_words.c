/* Tests of rendezvous/mesh_words: how pairs that do not reach each other are
 * named, as a warning and as the job's end. */
#include "mesh_fixture.h"

#define GOING_ON "starting all the same (with --mesh given it is an error)\n"
#define PAIR12 "node rank 1 cannot reach node rank 2 at 10.0.0.2:4002: "
#define PAIR21 "node rank 2 cannot reach node rank 1 at 10.0.0.1:4001: "

/* Pods 0 to 2 in a ring; pods 1 and 2 say what they could not reach. */
static const struct {
    uint32_t to1;
    enum mesh_reason reason1;
    uint32_t to2;
    enum mesh_reason reason2;
    const char *text;
} cases[] = {
    {2, MESH_TIMED_OUT, 0, MESH_FINE,
     PAIR12 "no answer (timed out); the other way round works"},
    {0, MESH_FINE, 1, MESH_REFUSED,
     PAIR21 "connection refused; the other way round works"},
    {2, MESH_TIMED_OUT, 1, MESH_TIMED_OUT,
     PAIR12 "no answer (timed out); nor the other way round"},
    {2, MESH_STUCK_THERE, 1, MESH_STUCK_HERE,
     PAIR12 "small packets pass, 64 KiB do not arrive there: is the MTU too "
            "large?; nor the other way round: small packets pass, 64 KiB from "
            "there do not arrive: is the MTU too large?"},
};

static void test_pair(void **state)
{
    char want[1024];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int strict = 0; strict < 2; strict++) {
            begin(3, MESH_RING, strict);
            all_arrive();
            answer(0, 0, MESH_FINE);
            answer(1, cases[i].to1, cases[i].reason1);
            answer(2, cases[i].to2, cases[i].reason2);
            assert_int_equal(n_started(), strict ? 0 : 3);
            for (uint32_t r = 0; r < 3; r++)
                assert_int_equal(f.pods[r].n_end, strict);
            (void)snprintf(want, sizeof want, "%s\n" GOING_ON, cases[i].text);
            if (!strict) {
                assert_string_equal(f.log, want);
                continue;
            }
            assert_int_equal(f.pods[1].end.code, ERR_BARRIER);
            assert_int_equal(f.pods[1].end.failure.kind, FAILURE_AGENT);
            assert_string_equal(f.pods[1].end.failure.text, cases[i].text);
        }
}

static void test_one_pod_in_all(void **state)
{
    (void)state;
    for (int strict = 0; strict < 2; strict++) {
        begin(5, MESH_RING, strict);
        all_arrive();
        answer(0, 0, MESH_FINE);
        answer(1, 2, MESH_TIMED_OUT);
        answer(3, 2, MESH_TIMED_OUT);
        answer(4, 0, MESH_FINE);
        answer(2, 3, MESH_TIMED_OUT);
        if (strict)
            assert_string_equal(
                f.pods[4].end.failure.text,
                PAIR12 "no answer (timed out); the other way round works. "
                "node rank 3 cannot reach node rank 2 at 10.0.0.2:4002: no "
                "answer (timed out); nor the other way round. Node rank 2 is "
                "in all of them");
        else
            assert_non_null(strstr(f.log, "\nnode rank 2 is in all of these "
                                          "pairs; " GOING_ON));
    }
}

/* More pairs than the text, the log and the memory have room for. */
static void test_many_pairs(void **state)
{
    static const uint32_t numbers[] = {20, 200};
    unsigned lines = 0;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        uint32_t n = numbers[i];

        begin(n, MESH_RING, true);
        all_arrive();
        for (uint32_t r = 0; r < n; r++)
            answer(r, (r + 1) % n, MESH_NO_ROUTE);
        assert_int_equal(f.pods[n - 1].end.code, ERR_BARRIER);
        assert_non_null(strstr(f.pods[n - 1].end.failure.text,
                               "node rank 0 cannot reach node rank 1 at "));
        assert_non_null(strstr(f.pods[n - 1].end.failure.text,
                               i == 0 ? ". And 16 more pairs"
                                      : ". 200 connections fail in all"));
        assert_int_equal(strlen(f.pods[n - 1].end.failure.text),
                         strnlen(f.pods[n - 1].end.failure.text,
                                 FAILURE_TEXT_MAX - 1));
        begin(n, MESH_RING, false);
        all_arrive();
        for (uint32_t r = 0; r < n; r++)
            answer(r, (r + 1) % n, MESH_NO_ROUTE);
        assert_int_equal(n_started(), n);
    }
    for (const char *s = f.log; (s = strchr(s, '\n')); s++)
        lines++;
    assert_int_equal(lines, MESH_SAY_MAX + 1);
    assert_non_null(strstr(f.log, "\n200 connections between pods fail; "
                                  GOING_ON));
}

static void test_no_answer(void **state)
{
    (void)state;
    for (int strict = 0; strict < 2; strict++) {
        begin(4, MESH_RING, strict);
        all_arrive();
        answer(0, 0, MESH_FINE);
        answer(1, 2, MESH_TIMED_OUT);
        pass(MESH_LIMIT_MS - 1);
        assert_int_equal(f.b.phase, BAR_GATHER);
        pass(1);
        if (strict) {
            /* The pair first: what the silent ones would have said is open. */
            assert_int_equal(f.pods[0].end.code, ERR_BARRIER);
            assert_string_equal(f.pods[0].end.failure.text,
                                PAIR12 "no answer (timed out)");
            continue;
        }
        assert_int_equal(n_started(), 4);
        assert_string_equal(
            f.log, PAIR12 "no answer (timed out)\n"
                   "the mesh test: no answer within 10 s from node rank 2-3\n"
                   GOING_ON);
    }
    begin(3, MESH_RING, true);
    all_arrive();
    answer(1, 0, MESH_FINE);
    answer(2, 0, MESH_FINE);
    pass(MESH_LIMIT_MS);
    assert_string_equal(f.pods[2].end.failure.text,
                        "the mesh test: no answer within 10 s from node rank "
                        "0");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair),
        cmocka_unit_test(test_one_pod_in_all),
        cmocka_unit_test(test_many_pairs),
        cmocka_unit_test(test_no_answer),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
