/* pod: what it keeps of the job's past, and tells the next pod 0. */
#include "pod_fixture.h"

static struct wire_msg frame(enum wire_kind kind, uint32_t round)
{
    struct wire_msg m = {.kind = kind, .round = round, .nnodes = 2,
                         .world_size = 4, .group_size = 2};

    return m;
}

static void welcome(uint64_t now, uint64_t incarnation, uint32_t round)
{
    struct wire_msg m = frame(WIRE_WELCOME, round);

    m.incarnation = incarnation;
    m.node_rank = 1;
    m.restart_period_ms = 100000; /* This pod has no such option. */
    pod_link_up(&p, now);
    hear(now, m);
}

static void tell(uint64_t now, struct wire_msg m, uint32_t n, uint64_t age)
{
    m.n_restarts = m.in_a_row = n;
    m.past.zero_losses = n;
    m.past.zero_age_ms = age;
    if (n > 0)
        past_add(&m.past, age, n);
    hear(now, m);
}

static void cut(uint64_t now)
{
    pod_link_down(&p, now, "closed");
    pod_timeout(&p, now + POD_RETRY_MIN_MS);
}

/* What HELLO says, without an answer. */
static void says(uint64_t now, unsigned lost, uint64_t lost_age, uint32_t n,
                 uint64_t age)
{
    pod_link_up(&p, now);
    assert_int_equal(sent.kind, WIRE_HELLO);
    assert_int_equal(sent.zero_lost, lost);
    assert_int_equal(sent.lost_age_ms, lost_age);
    assert_int_equal(sent.n_restarts, n);
    assert_int_equal(sent.in_a_row, n);
    assert_int_equal(sent.past.zero_losses, n);
    assert_int_equal(sent.past.zero_age_ms, age);
    if (n > 0)
        assert_int_equal(sent.past.runs[0].age_ms, age);
    cut(now);
}

static void begin(void)
{
    make(1, 2, false);
    welcome(10, 1, 0);
    tell(20, frame(WIRE_START, 0), 2, 500);
}

static void test_lost(void **state)
{
    (void)state;
    begin();
    cut(1020);
    says(1520, WIRE_LOST_LAST, 500, 2, 2000);
    welcome(2020, 1, 0); /* It was the same one. */
    cut(3020);
    says(3030, WIRE_LOST_LAST, 10, 2, 3510);
    welcome(3520, 7, 1); /* Another one, which is lost before it starts. */
    cut(4020);
    says(5020, WIRE_LOST_OLDER, 2000, 2, 5500);
    welcome(5520, 8, 1);
    tell(5530, frame(WIRE_STOP, 0), 3, 2510); /* It has counted it. */
    cut(6020);
    says(6030, 0, 0, 3, 3010);
}

/* Its workers end with pod 0's; no STOP says why the next round starts. */
static void test_told_at_the_start(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        cut(1020);
        ends(1030, 0, 1);
        ends(1030, 1, 143);
        pod_swept(&p, 1040, 0, false);
        pod_swept(&p, 1040, 0, false);
        welcome(1100, 7, 1);
        tell(1200, frame(WIRE_START, 1), 2 + i, 200);
        assert_int_equal(p.state, POD_RUNNING);
        assert_int_equal(!strstr(said, "starts, for node rank 0 was lost; "),
                         !i);
    }
}

static void test_in_order(void **state)
{
    static const struct {
        enum wire_kind kind;
        uint32_t round;
        bool ends;
    } cases[] = {
        {WIRE_STOP, 0, true},    {WIRE_STOP, 3, false},
        {WIRE_WAITING, 1, false}, {WIRE_PING, 0, false},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin();
        tell(100, frame(cases[i].kind, cases[i].round), 2, 580);
        cut(1020);
        says(1520, cases[i].ends ? 0 : WIRE_LOST_LAST,
             cases[i].ends ? 0 : 500, 2, 2000);
    }
    begin(); /* STOP was lost. */
    cut(1020);
    welcome(1520, 1, 1);
    cut(2020);
    says(2520, 0, 0, 2, 3000);
}

/* A round that was long enough ends the row of failures, also under a pod 0
 * that did not live to say so; to the same pod 0 it means nothing. */
static void test_health(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t end = 20 + p.cfg.restart_reset_ms - 1 + i;

        begin();
        cut(end);
        pod_link_up(&p, end + 500);
        assert_int_equal(sent.n_restarts, 2);
        assert_int_equal(sent.in_a_row, i ? 0 : 2);
        cut(end + 600);
        welcome(end + 1000, 7, 1); /* Another one, lost before it starts. */
        cut(end + 1500);
        pod_link_up(&p, end + 2000);
        assert_int_equal(sent.zero_lost, WIRE_LOST_OLDER);
        assert_int_equal(sent.in_a_row, i ? 0 : 2);
    }
}

/* Of a round that runs nothing is known before the first START. */
static void test_before(void **state)
{
    (void)state;
    make(1, 2, false);
    welcome(10, 1, 0);
    cut(100);
    says(200, 0, 0, 0, 0);
    welcome(300, 2, 0);
    cut(400);
    says(500, 0, 0, 0, 0);
}

/* A restart of a worker alone is known to its pod. */
static void test_again(void **state)
{
    struct wire_msg m = frame(WIRE_AGAIN, 0);

    (void)state;
    begin();
    p.asks = true;
    p.serial = m.serial = 7;
    p.asks_worker = UINT32_MAX; /* --pre-start; it has ended meanwhile. */
    m.n_restarts = 3;
    hear(1020, m);
    cut(1520);
    pod_link_up(&p, 2020);
    assert_int_equal(sent.n_restarts, 3);
    assert_int_equal(sent.past.n_runs, 2);
    assert_int_equal(sent.past.runs[0].age_ms, 1000);
    assert_int_equal(sent.past.runs[0].n, 1);
    assert_int_equal(sent.past.runs[1].age_ms, 2500);
    begin(); /* And one of another pod. */
    p.asks = true;
    p.serial = 7;
    m.serial = 0;
    story[0] = '\0';
    hear(1020, m);
    told("");
    assert_true(p.asks); /* That is still to be answered. */
    cut(1520);
    pod_link_up(&p, 2020);
    assert_int_equal(sent.n_restarts, 3);
    assert_int_equal(sent.past.runs[0].age_ms, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_told_at_the_start),
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_health),
        cmocka_unit_test(test_before),
        cmocka_unit_test(test_again),
    };

    return cmocka_run_group_tests_name("pod_past", tests, NULL, NULL);
}
