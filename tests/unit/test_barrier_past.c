/* barrier: the losses of pod 0 that a new one hears of. */
#include "barrier_fixture.h"

#define LAST 77u /* The incarnation of the last pod 0. */

/* A pod that was in a round of the last pod 0, which is lost `lost` ms ago; it
 * had told of `n` losses, the last one `age` ms ago. */
static struct wire_msg witness(uint32_t rank, uint32_t n, uint64_t age,
                               uint64_t lost)
{
    struct wire_msg m = hello(rank, 100 + rank);

    m.last_zero = LAST;
    m.last_end = WIRE_END_CLOSED;
    m.round = m.running = 4;
    m.zero_lost = WIRE_LOST_LAST;
    m.lost_age_ms = lost;
    m.past.zero_losses = n;
    m.past.zero_age_ms = age;
    return m;
}

static void two_of_three(struct wire_msg one, struct wire_msg two)
{
    join(10, BARRIER_LOCAL, 0);
    arrive(10, BARRIER_LOCAL, 5);
    come(100000, 1, one);
    if (b.phase == BAR_GATHER)
        come(100200, 2, two);
}

static void start_all(uint64_t now)
{
    arrive(now, BARRIER_LOCAL, 5);
    arrive(now, 1, 5);
    arrive(now, 2, 5);
    barrier_timeout(&b, b.not_before_ms > now ? b.not_before_ms : now);
    assert_int_equal(b.phase, BAR_RUN);
    assert_int_equal(b.round, 5);
}

/* One loss, however many report it; what is told then is counted already. */
static void test_first(void **state)
{
    struct wire_msg m;

    (void)state;
    begin(3);
    two_of_three(witness(1, 0, 0, 700), witness(2, 0, 0, 900));
    assert_int_equal(b.zero.n, 1);
    assert_int_equal(last.kind, WIRE_STOP);
    assert_string_equal(last.failure.text,
                        "node rank 0 was lost: its agent is gone");
    assert_string_equal(last.text,
                        "the first loss of a pod costs no restart");
    assert_int_equal(last.past.zero_losses, 1);
    assert_int_equal(last.past.zero_age_ms, 900);
    start_all(101000);
    assert_int_equal(last.kind, WIRE_START);
    assert_int_equal(last.n_restarts, 0);
    assert_int_equal(last.past.zero_losses, 1);
    assert_int_equal(last.past.zero_age_ms, 1700);
    /* That pod was cut off for a moment. */
    m = witness(1, 1, 1900, 0);
    m.last_zero = cfg.incarnation;
    m.running = 5;
    barrier_closed(&b, 101100, 1);
    come(101200, 5, m);
    assert_int_equal(b.zero.n, 1);
    assert_int_equal(b.phase, BAR_RUN);
}

static const struct {
    struct {
        uint32_t n;
        uint64_t age, lost;
    } pod[2];
    uint32_t n, n_restarts;
} cases[] = {
    {{{1, 30000, 500}, {1, 30100, 600}}, 2, 1}, /* The same from both. */
    {{{1, 600499, 500}, {1, 600499, 500}}, 2, 1}, /* Just within the reset. */
    {{{1, 600500, 500}, {1, 600500, 500}}, 2, 0},
    {{{1, 9000000, 500}, {0, 0, 600}}, 2, 0}, /* Longer than it has run. */
    {{{7, 20000, 500}, {6, 90000, 30000}}, 8, 1},
    {{{0, 0, 30000}, {1, 20000, 500}}, 2, 1}, /* The highest comes late. */
    {{{0, 0, 30000}, {0, 0, 20}}, 1, 0},
};

static void test_table(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(3);
        two_of_three(witness(1, cases[i].pod[0].n, cases[i].pod[0].age,
                             cases[i].pod[0].lost),
                     witness(2, cases[i].pod[1].n, cases[i].pod[1].age,
                             cases[i].pod[1].lost));
        assert_int_equal(b.zero.n, cases[i].n);
        assert_int_equal(b.n_restarts, cases[i].n_restarts);
        assert_int_equal(b.not_before_ms > 100200, cases[i].n_restarts);
        start_all(101000);
        assert_int_equal(last.n_restarts, cases[i].n_restarts);
    }
}

/* A pod 0 in between has counted the loss and told one of them. */
static void test_counted_before(void **state)
{
    struct wire_msg one = witness(1, 1, 90000, 40000);
    struct wire_msg two = witness(2, 2, 40000, 0);

    (void)state;
    one.n_restarts = 1;
    two.n_restarts = 2;
    two.zero_lost = 0;
    for (unsigned i = 0; i < 2; i++) {
        begin(3);
        two_of_three(i ? one : two, i ? two : one);
        assert_int_equal(b.zero.n, 2);
        assert_int_equal(b.n_restarts, 2);
    }
    one.zero_lost = WIRE_LOST_OLDER; /* It has had this one before. */
    one.last_zero = 1;
    one.n_restarts = 0;
    begin(3);
    two_of_three(one, one);
    assert_int_equal(b.zero.n, 2);
    assert_int_equal(b.n_restarts, 1);
}

/* It has heard the end. */
static void leave(uint64_t now, uint32_t conn)
{
    bye(now, conn);
    barrier_closed(&b, now, conn);
}

/* No restart is left: the end, also for the pod that is not there yet. */
static void test_too_often(void **state)
{
    struct wire_msg m = witness(1, 3, 21500, 500);

    (void)state;
    m.n_restarts = 2;
    begin(3);
    two_of_three(m, m);
    assert_int_equal(b.phase, BAR_ENDING);
    assert_int_equal(last.kind, WIRE_END);
    assert_int_equal(last.code, ERR_PEER);
    assert_int_equal(last.failure.kind, FAILURE_LOST);
    assert_int_equal(last.failure.node_rank, 0);
    assert_string_equal(last.failure.text,
                        "node rank 0 was lost for the 4th time, 21 s after "
                        "the time before: its agent is gone");
    bye(100010, BARRIER_LOCAL);
    leave(100020, 1);
    barrier_timeout(&b, 101100);
    assert_int_equal(b.phase, BAR_ENDING);
    m.node_rank = 2;
    m.incarnation = 102;
    story[0] = '\0';
    come(102000, 2, m);
    told("2:WELCOME 2:END ");
    leave(102010, 2);
    assert_int_equal(b.phase, BAR_OVER);
}

/* By arrival: a pod that is new to the job had the rank of another one, heard
 * the end, and is gone. The other one must hear it, too, and so must the last
 * one, which comes late. */
static void test_too_often_by_arrival(void **state)
{
    struct wire_msg fresh, m;

    (void)state;
    begin(4);
    fresh = hello(WIRE_ANY_RANK, 900);
    m = witness(2, 3, 1, 1);
    fresh.any_rank = m.any_rank = 1;
    m.n_restarts = 2;
    join(10, BARRIER_LOCAL, 0);
    come(1000, 9, fresh);
    assert_int_equal(last.node_rank, 1);
    come(1010, 2, m);
    assert_int_equal(b.phase, BAR_ENDING);
    bye(1020, BARRIER_LOCAL);
    leave(1030, 9);
    leave(1040, 2);
    m.node_rank = 1;
    m.incarnation = 101;
    come(1050, 1, m);
    assert_int_equal(last.kind, WIRE_END);
    leave(1060, 1);
    barrier_timeout(&b, 3000);
    assert_int_equal(b.phase, BAR_ENDING);
    m.node_rank = 3;
    m.incarnation = 103;
    come(4000, 3, m);
    assert_int_equal(last.kind, WIRE_END);
    leave(4010, 3);
    assert_int_equal(b.phase, BAR_OVER);
}

static void test_never(void **state)
{
    struct barrier_config c = usual(3);

    (void)state;
    c.restart_never = true;
    begin_with(&c);
    two_of_three(witness(1, 0, 0, 700), witness(2, 0, 0, 900));
    assert_int_equal(b.phase, BAR_ENDING);
    assert_int_equal(last.code, ERR_PEER);
    assert_string_equal(last.text, "--restart-policy is never");
}

/* In order, or of this very pod 0: no loss. */
static void test_none(void **state)
{
    struct wire_msg m = witness(1, 0, 0, 700);

    (void)state;
    m.zero_lost = 0;
    begin(3);
    two_of_three(m, witness(2, 0, 0, 0));
    assert_int_equal(b.zero.n, 1); /* The other one's word. */
    begin(3);
    two_of_three(m, m);
    assert_int_equal(b.zero.n, 0);
    m.zero_lost = WIRE_LOST_LAST;
    m.last_zero = cfg.incarnation;
    begin(3);
    two_of_three(m, m);
    assert_int_equal(b.zero.n, 0);
}

/* Restarts within a period: those of the last pod 0 count, while they are
 * young enough. */
static void test_period(void **state)
{
    struct barrier_config c = usual(3);
    struct wire_msg m = witness(1, 1, 30000, 500);

    (void)state;
    c.restart_period_ms = 60000;
    m.n_restarts = 2;
    past_add(&m.past, 10000, 1);
    past_add(&m.past, 50000, 1);
    begin_with(&c);
    two_of_three(m, m);
    assert_int_equal(b.phase, BAR_ENDING);
    assert_string_equal(last.text, "all 2 within 60 s are used");
    m.past.runs[1].age_ms = 60000;
    begin_with(&c);
    two_of_three(m, m);
    assert_int_equal(b.phase, BAR_GATHER);
    assert_int_equal(b.n_restarts, 3);
    assert_int_equal(last.past.n_runs, 2); /* And so the next one hears it. */
    assert_int_equal(last.past.runs[0].age_ms, 200);
    assert_int_equal(last.past.runs[1].age_ms, 10200);
}

/* Another pod's second loss, with a new pod 0 in between. */
static void test_others(void **state)
{
    struct wire_msg m = witness(1, 0, 0, 700);

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin(3);
        m.past.n_lost = 0;
        (void)past_lose(&m.past, 2, i ? 580000 : 590000);
        (void)past_lose(&m.past, 0, 1); /* Those are no such ranks. */
        (void)past_lose(&m.past, 3, 1);
        two_of_three(m, witness(2, 0, 0, 900));
        start_all(101000);
        assert_int_equal(last.past.n_lost, 1);
        assert_int_equal(last.past.lost[0].rank, 2);
        assert_int_equal(last.past.lost[0].age_ms, i ? 581000 : 591000);
        barrier_closed(&b, 110000, 2);
        barrier_timeout(&b, 110000 + BARRIER_RESUME_MS);
        assert_int_equal(b.phase, BAR_GATHER);
        assert_int_equal(b.n_restarts, i);
        assert_int_equal(last.past.n_lost, 1);
        assert_int_equal(last.past.lost[0].age_ms, 0);
    }
}

/* A smaller group runs and had no idea, when a pod comes that saw the loss. */
static void late_with(uint32_t n_restarts)
{
    struct barrier_config c = usual(3);
    struct wire_msg m = witness(2, 3, 20000, 500);

    c.min_nodes = 2;
    begin_with(&c);
    for (uint32_t i = 0; i < 2; i++) {
        join(10, i, i);
        arrive(20, i, 0);
    }
    barrier_timeout(&b, 20);
    assert_int_equal(b.phase, BAR_RUN);
    m.n_restarts = n_restarts;
    come(1000, 2, m);
}

/* It does not end for that. */
static void test_late(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= 2; i++) {
        late_with(i);
        assert_int_equal(b.phase, BAR_RUN);
        assert_int_equal(b.zero.n, 4);
        assert_int_equal(b.n_restarts, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_counted_before),
        cmocka_unit_test(test_too_often),
        cmocka_unit_test(test_too_often_by_arrival),
        cmocka_unit_test(test_never),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_period),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_late),
    };

    return cmocka_run_group_tests_name("barrier_past", tests, NULL, NULL);
}
