/* Tests of rendezvous/barrier_hosts: START names the pods where asked to. */
#include "unit/barrier_fixture.h"

#include "rendezvous/barrier_round.h"

static void begin_telling(uint32_t nnodes, bool tell)
{
    struct barrier_config c = usual(nnodes);

    c.tell_hosts = tell;
    begin_with(&c);
}

static void test_only_where_asked(void **state)
{
    (void)state;
    begin_telling(2, false);
    all_arrive();
    assert_int_equal(last.kind, WIRE_START);
    assert_string_equal(last.hosts, "");
}

static void test_names_and_addresses(void **state)
{
    static const struct wire_addr zero = {
        .ip = {[10] = 0xff, 0xff, 10, 0, 0, 100}, .port = 29400};

    (void)state;
    begin_telling(3, true);
    join(10, 0, 0);
    join(10, 1, 1);
    come(10, 2, hello(2, 102));
    conns[1].here = conns[2].here = zero;
    for (uint32_t i = 0; i < 3; i++)
        arrive(11, i, 0);
    assert_int_equal(last.kind, WIRE_START);
    assert_string_equal(last.hosts,
                        "w0,w1,10.0.0.1,10.0.0.100,w2,10.0.0.2");
}

static void test_ipv6(void **state)
{
    struct wire_addr zero = {.ip = {0xfd, [15] = 1}, .port = 29400};

    (void)state;
    begin_telling(2, true);
    join(10, 0, 0);
    barrier_open(&b, 10, 1, "[fd00::2]:4711");
    say(10, 1, hello(1, 101));
    conns[1].here = zero;
    arrive(11, 0, 0);
    arrive(11, 1, 0);
    assert_string_equal(last.hosts, "w0,w1,fd00::2,fd00::1");
}

/* For lists of all workers: the place of each pod has its number of these. */
static void test_how_many_are_where(void **state)
{
    static const struct {
        bool hosts;
        const char *want;
    } cases[] = {{false, "w0*2,10.0.0.1*2"}, {true, "w0*2,w1,10.0.0.1*2"}};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct barrier_config c = usual(2);

        c.tell_hosts = cases[i].hosts;
        c.tell_nproc = true;
        begin_with(&c);
        all_arrive();
        if (strncmp(last.hosts, cases[i].want, strlen(cases[i].want)) != 0)
            fail_msg("%s", last.hosts);
    }
}

/* A pod that comes back to its round is told again. */
static void test_told_again(void **state)
{
    (void)state;
    begin_telling(2, true);
    all_arrive();
    barrier_closed(&b, 100, 1);
    come(200, 3, hello(1, 101));
    arrive(201, 3, 0);
    assert_int_equal(last.kind, WIRE_START);
    assert_non_null(strstr(last.hosts, "w0,w1,10.0.0.3"));
}

static void test_too_many(void **state)
{
    static struct bar_peer many[200];
    static struct wire_msg m;
    struct barrier big = {.cfg = {.nnodes = 200, .tell_hosts = true},
                          .peers = many, .conns = conns};

    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        many[i].member = true;
        many[i].conn = BARRIER_NO_CONN;
        (void)snprintf(many[i].hello.host, sizeof many[i].hello.host,
                       "worker-%u", i);
        (void)snprintf(many[i].addr, sizeof many[i].addr, "10.0.0.%u:1", i);
    }
    assert_false(bar_list_hosts(&big, m.hosts));
    assert_string_equal(m.hosts, "");
    big.cfg.nnodes = 100;
    assert_true(bar_list_hosts(&big, m.hosts));
    assert_non_null(strstr(m.hosts, "worker-99,10.0.0.99"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_where_asked),
        cmocka_unit_test(test_names_and_addresses),
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_how_many_are_where),
        cmocka_unit_test(test_told_again),
        cmocka_unit_test(test_too_many),
    };

    return cmocka_run_group_tests_name("barrier_hosts", tests, NULL, NULL);
}
