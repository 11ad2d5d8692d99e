/* barrier_door, barrier_guests: connections that are no pods, and too many of
 * them. */
#include "door_fixture.h"

static void come(struct door *d, uint32_t conn, const char *addr)
{
    barrier_open(&d->b, d->now, conn, addr);
    d->now++;
}

static void a_full_table_drops_its_oldest(void **state)
{
    static struct door d;
    char addr[32];

    (void)state;
    door_open(&d, NULL);
    for (uint32_t i = 1; i <= GUESTS; i++) {
        (void)snprintf(addr, sizeof addr, "10.0.%u.1:99", i * 7);
        come(&d, i, addr);
        assert_false(d.closed[i]);
    }
    for (uint32_t i = 1; i <= GUESTS; i++)
        assert_false(d.closed[i]);
    come(&d, GUESTS + 1, "10.9.9.9:1");
    assert_true(d.aborted[1]);
    assert_false(d.closed[2]);
    barrier_closed(&d.b, d.now, 2); /* Room again: nobody has to go. */
    come(&d, GUESTS + 2, "10.9.9.8:1");
    assert_false(d.closed[3]);
    come(&d, GUESTS + 3, "10.9.9.7:1");
    assert_true(d.aborted[3]);
    assert_false(d.closed[GUESTS + 3]);
}

static void one_address_has_a_share(void **state)
{
    static struct door d;
    uint32_t share = GUESTS / 4;
    struct wire_msg hello = door_hello(1, 11);

    (void)state;
    door_open(&d, NULL);
    come(&d, 1, "10.0.0.1:1"); /* Older, of another address. */
    for (uint32_t i = 2; i <= 40; i++) {
        char addr[32];

        (void)snprintf(addr, sizeof addr, "10.0.0.2:%u", i);
        come(&d, i, addr);
        assert_false(d.closed[i]);
        assert_int_equal(d.b.guests.all.n,
                         i <= share + 1 ? i : share + 1);
    }
    assert_false(d.closed[1]);
    assert_true(d.aborted[40 - share]);
    assert_false(d.closed[40 - share + 1]);
    /* A real pod of the same address is the newest. */
    come(&d, 41, "10.0.0.2:41");
    door_say(&d, 41, &hello);
    assert_true(d.admitted[41]);
    /* Admitted, it takes no share: the next one pushes out nobody. */
    d.closed[38] = false;
    come(&d, 42, "10.0.0.2:42");
    assert_false(d.closed[38]);
}

static void addresses_of_one_network_share(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } pairs[] = {
        {"10.0.0.1:1", "10.0.0.1:65535", true},
        {"10.0.0.1:1", "10.0.0.2:1", false},
        {"[2001:db8:1:2:3:4:5:6]:1", "[2001:db8:1:2:9::1]:2", true},
        {"[2001:db8:1:2::1]:1", "[2001:db8:1:3::1]:1", false},
        {"[2001:db8::1]:1", "[2001:db8::2]:1", true},
        {"[fe80::1]:1", "[fe80::ffff:1:2:3]:1", true},
    };
    struct bar_guest at[8];
    struct bar_guests g;

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        bar_guests_init(&g, at, 4); /* A share of one. */
        (void)bar_guests_add(&g, 1, 1, pairs[i].a);
        assert_int_equal(bar_guests_surplus(&g, pairs[i].b),
                         pairs[i].same ? 0 : BAR_NO_GUEST);
    }
}

/* Against a list that is kept in the plain way. */
static void the_table_keeps_its_order(void **state)
{
    enum { N = 16 };
    struct bar_guest at[N];
    uint32_t list[N], slot[1000], n = 0, rng = 1;
    struct bar_guests g;

    (void)state;
    bar_guests_init(&g, at, N);
    for (uint32_t conn = 0; conn < 1000; conn++) {
        char addr[32];

        rng = rng * 1664525 + 1013904223;
        while (n == N || (n > 0 && (rng >> 16) % 3 == 0)) {
            uint32_t k = (rng >> 20) % n;

            bar_guests_remove(&g, slot[list[k]]);
            memmove(list + k, list + k + 1, (--n - k) * sizeof list[0]);
            rng = rng * 1664525 + 1013904223;
        }
        (void)snprintf(addr, sizeof addr, "10.0.0.%u:1", (rng >> 24) % 3);
        slot[conn] = bar_guests_add(&g, conn, conn, addr);
        list[n++] = conn;
        assert_int_equal(g.all.n, n);
        assert_int_equal(g.all.newest, slot[conn]);
        for (uint32_t i = g.all.oldest, k = 0; k < n; i = at[i].newer, k++)
            assert_int_equal(at[i].conn, list[k]);
    }
}

static void who_says_nothing_goes_in_time(void **state)
{
    static struct door d;
    struct shake s;

    (void)state;
    door_open(&d, "secret");
    d.now = 2000;
    come(&d, 1, "10.0.0.1:1");
    d.now = 3000;
    shake_hello(&d, &s, 2, "secret", 1, 11); /* Then nothing. */
    assert_true(barrier_deadline(&d.b) <= 2000 + BARRIER_HELLO_MS);
    barrier_timeout(&d.b, 1999 + BARRIER_HELLO_MS);
    assert_false(d.closed[1]);
    barrier_timeout(&d.b, 2000 + BARRIER_HELLO_MS);
    assert_true(d.aborted[1]);
    assert_false(d.closed[2]);
    barrier_timeout(&d.b, 3000 + BARRIER_HELLO_MS);
    assert_true(d.aborted[2]);
}

static void room_is_made_for_descriptors(void **state)
{
    static struct door d;
    struct wire_msg hello = door_hello(1, 11);

    (void)state;
    door_open(&d, NULL);
    assert_false(barrier_make_room(&d.b));
    come(&d, 1, "10.0.0.1:1");
    door_say(&d, 1, &hello);
    come(&d, 2, "10.0.0.2:1");
    come(&d, 3, "10.0.0.3:1");
    assert_true(barrier_make_room(&d.b));
    assert_true(d.aborted[2]);
    assert_true(barrier_make_room(&d.b));
    assert_true(d.aborted[3]);
    assert_false(barrier_make_room(&d.b)); /* Never a pod. */
    assert_false(d.closed[1]);
}

/* The number of a claimant that is gone may be somebody else's by now. */
static void a_claim_ends_with_its_connection(void **state)
{
    static struct door d;
    struct wire_msg hello = door_hello(1, 11);

    (void)state;
    door_open(&d, NULL);
    come(&d, 1, "10.0.0.1:1");
    door_say(&d, 1, &hello);
    assert_true(d.admitted[1]);
    hello.incarnation = 12;
    come(&d, 2, "10.0.0.2:1");
    door_say(&d, 2, &hello);
    assert_int_equal(d.peers[1].challenger, 2);
    assert_int_equal(d.b.guests.all.n, 0); /* It is not to be dropped. */
    barrier_closed(&d.b, d.now, 2);
    assert_int_equal(d.peers[1].challenger, BARRIER_NO_CONN);
    come(&d, 2, "10.66.6.6:1");
    d.now += BARRIER_PROBE_MS + 1;
    barrier_timeout(&d.b, d.now);
    barrier_closed(&d.b, d.now, 1);
    assert_false(d.admitted[2]);
    assert_int_equal(d.peers[1].hello.incarnation, 11);
}

static void a_flood_does_not_fill_the_log(void **state)
{
    static struct door d;
    struct wire_msg hello = door_hello(1, 11);

    (void)state;
    door_open(&d, NULL);
    (void)snprintf(hello.job_id, sizeof hello.job_id, "x\nagent: fine");
    for (unsigned i = 0; i < 60; i++) {
        come(&d, 1, "10.0.0.1:1");
        door_say(&d, 1, &hello);
        assert_null(strchr(d.log, '\n'));
        barrier_closed(&d.b, d.now, 1);
    }
    assert_int_equal(d.n_warnings, 20);
    d.n_sent = 0;
    barrier_timeout(&d.b, d.now + BARRIER_PING_MS);
    assert_int_equal(d.n_warnings, 21);
    assert_string_equal(d.log, "refused 40 more connections");
    d.now += BARRIER_PING_MS;
    for (uint32_t i = 1; i < 60; i++)
        come(&d, i, "10.0.0.1:1");
    assert_int_equal(d.n_warnings, 22);
    assert_non_null(strstr(d.log, "dropped 1,"));
    barrier_timeout(&d.b, d.now + 60000);
    assert_int_equal(d.n_warnings, 23);
    assert_non_null(strstr(d.log, "dropped 54,"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_table_drops_its_oldest),
        cmocka_unit_test(one_address_has_a_share),
        cmocka_unit_test(addresses_of_one_network_share),
        cmocka_unit_test(the_table_keeps_its_order),
        cmocka_unit_test(who_says_nothing_goes_in_time),
        cmocka_unit_test(room_is_made_for_descriptors),
        cmocka_unit_test(a_claim_ends_with_its_connection),
        cmocka_unit_test(a_flood_does_not_fill_the_log),
    };

    return cmocka_run_group_tests_name("barrier_door", tests, NULL, NULL);
}
