/* What is said while pods are missing: the summary, and what has changed. */
#include "barrier_fixture.h"

static struct auth auth_of_the_job(void)
{
    struct auth a = {.has_token = true};

    memset(a.key, 7, sizeof a.key);
    return a;
}

static void describes(uint64_t now, const char *want)
{
    char text[WIRE_TEXT_MAX];

    barrier_describe(&b, now, text, sizeof text);
    assert_string_equal(text, want);
}

/* The pods hear of it half a second later; pod 0 has said it at once. */
static void test_arrivals_are_told(void **state)
{
    (void)state;
    begin(4);
    join(10, BARRIER_LOCAL, 0);
    arrive(11, BARRIER_LOCAL, 0);
    join(20, 1, 1);
    arrive(21, 1, 0);
    join(30, 2, 2);
    story[0] = '\0';
    barrier_timeout(&b, barrier_deadline(&b));
    told("1:WAITING 2:WAITING ");
    assert_string_equal(last.text, "node rank 2 staging (0 %); node ranks 0-1 "
                                   "arrived; 2 of 4 pods are there");
    barrier_timeout(&b, 2000);
    told(""); /* Nothing new. */
    arrive(3000, 2, 0);
    barrier_timeout(&b, 3000 + BARRIER_NEWS_MS);
    told(""); /* A little more, for there are 4. */
    barrier_timeout(&b, 3004 + BARRIER_NEWS_MS);
    told("1:WAITING 2:WAITING ");
    assert_string_equal(last.text, "node rank 2 arrived; 3 of 4 pods are "
                                   "there");
}

static void test_a_start_is_news_enough(void **state)
{
    (void)state;
    run_all(3);
    barrier_timeout(&b, 3000);
    told("");
    say(4000, 1, failed(1, 0));
    say(4000, 2, failed(1, 0));
    barrier_timeout(&b, 4000 + BARRIER_SETTLE_MS);
    assert_int_equal(b.phase, BAR_GATHER);
    story[0] = '\0';
    for (uint32_t i = 0; i < 3; i++)
        arrive(4100, i, 1);
    barrier_timeout(&b, 4100 + BARRIER_NEWS_MS + 3);
    told(""); /* All are there, and the back-off is known. */
}

static void test_a_loss_is_told(void **state)
{
    (void)state;
    begin(4);
    for (uint32_t i = 0; i < 3; i++) {
        join(10, i, i);
        arrive(11, i, 0);
    }
    barrier_timeout(&b, 1000);
    story[0] = '\0';
    barrier_closed(&b, 2000, 2);
    barrier_timeout(&b, 2600);
    told(""); /* It may come back. */
    barrier_timeout(&b, 2000 + BARRIER_RESUME_MS);
    barrier_timeout(&b, 2600 + BARRIER_RESUME_MS);
    told("1:WAITING ");
    assert_string_equal(last.text, "node rank 2 seen and lost, last heard 4.5 "
                                   "s ago at 10.0.0.2:1; 2 of 4 pods are "
                                   "there");
    barrier_timeout(&b, 9000);
    told("");
    join(9001, 7, 2); /* The same agent, after all. */
    story[0] = '\0';
    arrive(9002, 7, 0);
    barrier_timeout(&b, 9900);
    told("1:WAITING 7:WAITING ");
}

/* It is not just missing: it was there, and wrong. */
static void test_refused(void **state)
{
    struct wire_msg m = hello(1, 900);

    (void)state;
    begin(4);
    join(10, BARRIER_LOCAL, 0);
    join(10, 3, 3);
    memcpy(m.job_id, "other", 6);
    come(20, 5, m);
    m = hello(2, 901);
    m.node_rank = 77;
    m.nnodes = 78;
    memcpy(m.job_id, "other", 6);
    come(21, 6, m); /* No such rank here. */
    describes(30, "node rank 2 not seen yet; node rank 1 refused (wrong job "
                  "id); node ranks 0,3 staging (0 %)");
    barrier_timeout(&b, 1000);
    assert_string_equal(last.text,
                        "node rank 1 refused (wrong job id); node ranks 0,3 "
                        "staging (0 %); 0 of 4 pods are there");
    join(2000, 1, 1);
    describes(2000, "node rank 2 not seen yet; node ranks 0-1,3 staging (0 "
                    "%)");
}

static void test_wrong_token(void **state)
{
    struct barrier_config c = usual(3);

    (void)state;
    c.auth = auth_of_the_job();
    begin_with(&c);
    join(10, BARRIER_LOCAL, 0);
    join(11, 1, 1); /* Without any. */
    describes(30, "node rank 2 not seen yet; node rank 1 refused (wrong "
                  "token); node rank 0 staging (0 %)");
}

/* Who joins a job that runs is told the number of pods, and why not. */
static void test_wrong_nnodes(void **state)
{
    struct wire_msg m = hello(1, 900);

    (void)state;
    run_all(3);
    barrier_closed(&b, 1000, 1);
    barrier_timeout(&b, 1000 + BARRIER_RESUME_MS);
    m.nnodes = 9;
    come(4000, 5, m);
    describes(4000, "node rank 1 seen and lost, last heard 3.9 s ago at "
                    "10.0.0.1:1; node ranks 0,2 still stopping the workers of "
                    "the last round");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrivals_are_told),
        cmocka_unit_test(test_a_start_is_news_enough),
        cmocka_unit_test(test_a_loss_is_told),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_wrong_token),
        cmocka_unit_test(test_wrong_nnodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
