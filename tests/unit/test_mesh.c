/* Tests of rendezvous/mesh: who is to test whom, and what follows. */
#include "mesh_fixture.h"

/* "1,2" in the order in which pod r was told. */
static const char *told(uint32_t r)
{
    static char buf[8192];
    struct text t;

    text_init(&t, buf, sizeof buf);
    for (uint32_t i = 0; i < f.pods[r].n_partners; i++)
        text_add(&t, "%s%u", i ? "," : "", f.pods[r].partners[i]);
    return buf;
}

static void all_answer(void)
{
    for (uint32_t r = 0; r < f.n; r++)
        answer(r, 0, MESH_FINE);
}

static void test_partners(void **state)
{
    static const struct {
        uint32_t n, reach, rank;
        const char *partners;
    } cases[] = {
        {2, MESH_RING, 0, "1"},          {2, MESH_RING, 1, "0"},
        {3, MESH_RING, 0, "1,2"},        {3, MESH_RING, 2, "0,1"},
        {5, MESH_RING, 0, "1,4"},        {5, MESH_RING, 3, "4,2"},
        {2, MESH_FULL, 0, "1"},          {3, MESH_FULL, 1, "2,0"},
        {4, MESH_FULL, 1, "2,0,3"},      {5, MESH_FULL, 0, "1,4,2,3"},
        {6, MESH_FULL, 5, "0,4,1,3,2"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(cases[i].n, cases[i].reach, false);
        all_arrive();
        assert_string_equal(told(cases[i].rank), cases[i].partners);
        assert_int_equal(n_started(), 0);
        for (uint32_t r = 0; r + 1 < f.n; r++)
            answer(r, 0, MESH_FINE);
        assert_int_equal(n_started(), 0);
        answer(f.n - 1, 0, MESH_FINE);
        assert_int_equal(n_started(), f.n);
        assert_string_equal(f.log, "");
    }
}

static void test_nothing_to_test(void **state)
{
    (void)state;
    begin(1, MESH_RING, true);
    all_arrive();
    assert_int_equal(n_started(), 1);
    begin(3, 0, true);
    all_arrive();
    assert_int_equal(n_started(), 3);
    assert_int_equal(f.pods[1].n_mesh, 0);
}

/* Pods are told the address by which they themselves have reached pod 0. */
static void test_addresses(void **state)
{
    struct wire_addr want;

    (void)state;
    begin(3, MESH_RING, false);
    all_arrive();
    assert_string_equal(told(2), "0,1");
    want = address(9, 2);
    assert_memory_equal(f.pods[2].at[0].ip, want.ip, 16);
    assert_int_equal(f.pods[2].at[0].port, 4000);
    want = address(10, 1);
    assert_memory_equal(&f.pods[2].at[1], &want, sizeof want);
    assert_memory_equal(&f.pods[0].at[0], &want, sizeof want);
}

static void test_many_pods(void **state)
{
    static bool pair[MAX_PODS][MAX_PODS];

    (void)state;
    begin(MAX_PODS, MESH_FULL, false);
    all_arrive();
    memset(pair, 0, sizeof pair);
    for (uint32_t r = 0; r < f.n; r++) {
        assert_int_equal(f.pods[r].n_total, MESH_PARTNERS_MAX);
        assert_int_equal(f.pods[r].n_partners, MESH_PARTNERS_MAX);
        assert_int_equal(f.pods[r].n_mesh,
                         MESH_PARTNERS_MAX / WIRE_PARTNERS_MAX);
        for (uint32_t i = 0; i < f.pods[r].n_partners; i++) {
            assert_false(pair[r][f.pods[r].partners[i]]);
            pair[r][f.pods[r].partners[i]] = true;
        }
    }
    for (uint32_t r = 0; r < f.n; r++)
        for (uint32_t k = 0; k < f.n; k++)
            assert_int_equal(pair[r][k], pair[k][r]);
    all_answer();
    assert_int_equal(n_started(), MAX_PODS);
}

/* Pod r is killed; all others stop and are ready again, it is not. */
static void lose(uint32_t r)
{
    barrier_closed(&f.b, f.now, f.pods[r].conn);
    pass(BARRIER_RESUME_MS);
    for (uint32_t i = 0; i < f.n; i++) {
        f.pods[i].n_mesh = f.pods[i].n_start = f.pods[i].n_partners = 0;
        if (i != r && f.peers[i].state == PEER_STOPPING)
            arrive(i);
    }
}

static void test_only_new_ones(void **state)
{
    struct wire_msg failed = {.kind = WIRE_FAILED};

    (void)state;
    begin(5, MESH_RING, false);
    all_arrive();
    all_answer();
    /* A worker fails: the same agents start anew. */
    failed.failure.kind = FAILURE_WORKER;
    failed.failure.code = 3;
    failed.failure.node_rank = 1;
    barrier_message(&f.b, f.now, f.pods[1].conn, &failed);
    pass(5000);
    for (uint32_t r = 0; r < 5; r++) {
        f.pods[r].n_mesh = f.pods[r].n_start = 0;
        arrive(r);
    }
    pass(1000);
    assert_int_equal(n_started(), 5);
    for (uint32_t r = 0; r < 5; r++)
        assert_int_equal(f.pods[r].n_mesh, 0);
    /* Another pod takes a place: it and its neighbours. */
    lose(3);
    f.pods[3].incarnation = 5000;
    hello(3);
    arrive(3);
    assert_string_equal(told(3), "4,2");
    assert_string_equal(told(2), "3");
    assert_string_equal(told(4), "3");
    assert_int_equal(f.pods[0].n_mesh + f.pods[1].n_mesh, 0);
    assert_int_equal(n_started(), 0);
    answer(3, 0, MESH_FINE);
    answer(2, 0, MESH_FINE);
    answer(4, 0, MESH_FINE);
    assert_int_equal(n_started(), 5);
}

/* The old rank 3 in a full mesh: all test with it, and with nobody else. */
static void test_only_new_ones_full(void **state)
{
    (void)state;
    begin(4, MESH_FULL, false);
    all_arrive();
    all_answer();
    lose(3);
    f.pods[3].incarnation = 5000;
    hello(3);
    arrive(3);
    assert_string_equal(told(3), "0,2,1");
    assert_string_equal(told(1), "3");
    assert_string_equal(told(0), "3");
}

/* With fewer pods the ring closes over those that are there. */
static void test_elastic(void **state)
{
    (void)state;
    begin(5, MESH_RING, false);
    f.b.cfg.min_nodes = 3;
    f.b.cfg.last_call_ms = 1000;
    for (uint32_t r = 0; r < 4; r++) {
        hello(r);
        arrive(r);
    }
    assert_int_equal(f.pods[0].n_mesh, 0);
    pass(1000);
    assert_string_equal(told(0), "1,3");
    assert_string_equal(told(3), "0,2");
    all_answer();
    assert_int_equal(n_started(), 4);
    lose(2);
    pass(1000);
    /* 1 and 3 have become neighbours. */
    assert_string_equal(told(1), "3");
    assert_string_equal(told(3), "1");
    assert_int_equal(f.pods[0].n_mesh, 0);
    answer(1, 0, MESH_FINE);
    answer(3, 0, MESH_FINE);
    assert_int_equal(n_started(), 3);
}

/* Another one arrives, or one goes, while the test runs. */
static void test_pods_change_meanwhile(void **state)
{
    uint64_t nonce;

    (void)state;
    begin(4, MESH_RING, true);
    f.b.cfg.min_nodes = 2;
    f.b.cfg.last_call_ms = 1000;
    for (uint32_t r = 0; r < 3; r++) {
        hello(r);
        arrive(r);
    }
    pass(1000);
    nonce = f.pods[1].nonce;
    assert_string_equal(told(1), "2,0");
    hello(3);
    arrive(3);
    assert_string_equal(told(2), "3,1");
    assert_true(f.pods[1].nonce != nonce);
    /* What belongs to the old test says nothing. */
    f.pods[1].nonce = nonce;
    answer(1, 2, MESH_TIMED_OUT);
    assert_int_equal(f.b.phase, BAR_GATHER);
    /* Pod 2 dies, and the others cannot reach it: no reason to end. */
    f.pods[1].nonce = f.b.mesh.nonce;
    answer(0, 0, MESH_FINE);
    answer(2, 0, MESH_FINE);
    answer(1, 2, MESH_REFUSED);
    barrier_closed(&f.b, f.now, f.pods[2].conn);
    answer(3, 2, MESH_REFUSED);
    assert_int_equal(f.b.phase, BAR_GATHER);
    pass(BARRIER_RESUME_MS + 1000);
    assert_string_equal(told(1), "3,0");
    answer(0, 0, MESH_FINE);
    answer(1, 0, MESH_FINE);
    assert_int_equal(n_started(), 0);
    answer(3, 0, MESH_FINE);
    assert_int_equal(n_started(), 3);
}

/* A pod whose connection is cut is asked again, if it has not answered. */
static void test_new_connection(void **state)
{
    (void)state;
    begin(3, MESH_RING, true);
    all_arrive();
    answer(1, 0, MESH_FINE);
    for (uint32_t r = 1; r < 3; r++) {
        barrier_closed(&f.b, f.now, f.pods[r].conn);
        hello(r);
        arrive(r);
    }
    assert_int_equal(f.pods[1].n_mesh, 1);
    assert_int_equal(f.pods[2].n_mesh, 2);
    assert_string_equal(told(2), "0,1");
    answer(2, 0, MESH_FINE);
    answer(0, 0, MESH_FINE);
    assert_int_equal(n_started(), 3);
}

/* Addresses that cannot be meant for each other, and pods without one. */
static void test_who_takes_part(void **state)
{
    struct wire_addr loopback = address(127, 1), six = {.port = 4003},
                     none = {.port = 0};

    (void)state;
    six.ip[0] = 0xfd;
    begin(6, MESH_FULL, true);
    for (uint32_t r = 0; r < 6; r++)
        hello(r);
    arrive(0);
    arrive_at(1, loopback);
    arrive(2);
    arrive_at(3, six);
    arrive_at(4, none);
    arrive(5);
    assert_string_equal(told(0), "1,5,2,3");
    assert_string_equal(told(1), "0");
    assert_string_equal(told(2), "0,5");
    assert_string_equal(told(3), "0");
    assert_string_equal(told(4), "");
    assert_string_equal(told(5), "0,2");
    for (uint32_t r = 0; r < 6; r++)
        if (r != 4)
            answer(r, 0, MESH_FINE);
    assert_int_equal(n_started(), 6);
}

static void test_nonsense(void **state)
{
    struct wire_msg m = {.kind = WIRE_MESHED};

    (void)state;
    begin(3, MESH_RING, false);
    all_arrive();
    /* Ranks that do not exist, counts that are not true; twice. */
    m.mesh_nonce = f.pods[1].nonce;
    m.n_partners = WIRE_PARTNERS_MAX;
    m.n_bad = UINT32_MAX;
    for (uint32_t i = 0; i < WIRE_PARTNERS_MAX; i++)
        m.partners[i].rank = 3 + i;
    barrier_message(&f.b, f.now, f.pods[1].conn, &m);
    barrier_message(&f.b, f.now, f.pods[1].conn, &m);
    assert_int_equal(f.b.mesh.n_kept, 0);
    assert_int_equal(f.b.mesh.n_answered, 1);
    for (uint32_t i = 0; i < WIRE_PARTNERS_MAX; i++)
        m.partners[i].rank = 1;
    barrier_message(&f.b, f.now, f.pods[2].conn, &m);
    assert_int_equal(f.b.mesh.n_kept, MESH_BAD_MAX);
    answer(0, 0, MESH_FINE);
    assert_int_equal(n_started(), 3);
}

static void test_wire(void **state)
{
    static uint8_t bytes[WIRE_FRAME_MAX];
    static struct wire_msg m, back;
    const char *why;
    unsigned version;
    size_t len;

    (void)state;
    for (int answer_too = 0; answer_too < 2; answer_too++) {
        memset(&m, 0, sizeof m);
        m.kind = answer_too ? WIRE_MESHED : WIRE_MESH;
        m.mesh_nonce = UINT64_MAX - 5;
        m.n_total = 1024;
        m.first = answer_too ? 0 : 128;
        m.n_bad = answer_too ? 700 : 0;
        m.n_partners = WIRE_PARTNERS_MAX;
        for (uint32_t i = 0; i < WIRE_PARTNERS_MAX; i++) {
            m.partners[i].rank = UINT32_MAX - i;
            m.partners[i].at = address(10, i);
            m.partners[i].reason = (uint8_t)(answer_too ? i : 0);
        }
        len = wire_encode(&m, bytes);
        assert_int_equal(len, 12 + 18 + 128 * (answer_too ? 23 : 22));
        assert_int_equal(wire_decode(bytes, len, &back, &why, &version), len);
        assert_memory_equal(&back, &m, sizeof m);
        /* One more than there is room for. */
        bytes[12 + 17]++;
        assert_int_equal(wire_decode(bytes, len, &back, &why, &version), -1);
        assert_string_equal(why, "a list is too long");
        bytes[12 + 17] -= 2;
        assert_int_equal(wire_decode(bytes, len, &back, &why, &version), -1);
    }
    memset(&m, 0, sizeof m);
    m.kind = WIRE_ARRIVED;
    m.mesh = address(10, 9);
    len = wire_encode(&m, bytes);
    assert_int_equal(wire_decode(bytes, len, &back, &why, &version), len);
    /* The lists behind that are not cleared where there is none. */
    assert_memory_equal(&back, &m, offsetof(struct wire_msg, hosts));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_partners),
        cmocka_unit_test(test_nothing_to_test),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_many_pods),
        cmocka_unit_test(test_only_new_ones),
        cmocka_unit_test(test_only_new_ones_full),
        cmocka_unit_test(test_elastic),
        cmocka_unit_test(test_pods_change_meanwhile),
        cmocka_unit_test(test_new_connection),
        cmocka_unit_test(test_who_takes_part),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_wire),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
