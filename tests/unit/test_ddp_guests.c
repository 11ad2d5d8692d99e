/* Tests of strangers at libddp's listeners, and of a process that has no
 * descriptor left: nothing may spin, and whoever belongs gets in. */
#include "ddp/guests.h"
#include "ddp_fake.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#define STRANGERS 70 /* More than wait at one time where the ring is made. */
#define POLLS_MAX 1000 /* Of a rank that waits a second; one that spins makes
                        * some hundred thousand. */

static atomic_uint n_polls;
static atomic_uint n_accepts_left = UINT32_MAX; /* Then there is no room. */
static _Thread_local bool has_no_room;

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    if (has_no_room || atomic_load(&n_accepts_left) == 0) {
        errno = EMFILE;
        return -1;
    }
    fd = (int)syscall(SYS_accept4, fd, addr, len, flags);
    if (fd >= 0 && atomic_load(&n_accepts_left) < UINT32_MAX)
        (void)atomic_fetch_sub(&n_accepts_left, 1);
    return fd;
}

int poll(struct pollfd *fds, nfds_t n, int ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    (void)atomic_fetch_add(&n_polls, 1);
    return (int)syscall(SYS_ppoll, fds, n, ms < 0 ? NULL : &t, NULL, 0);
}

static bool is_closed(struct ddp_conn *c)
{
    struct ddp_frame f;

    return ddp_conn_get(c, &f) == DDP_GOT_EOF;
}

static void knock(const struct ddp_addr *at, struct ddp_conn *c, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        fake_connect(at, &c[i]);
}

static void leave(struct ddp_conn *c, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        ddp_conn_close(&c[i]);
}

static void test_the_oldest_makes_room(void **state)
{
    struct ddp_guests *g = malloc(sizeof *g);
    struct ddp_conn c[6];
    struct ddp_addr at;
    int port, fd = fake_listen(&port);

    (void)state;
    assert_non_null(g);
    at = loopback(port);
    ddp_guests_init(g, 4);
    for (unsigned i = 0; i < 6; i++) { /* One by one: in this order. */
        knock(&at, &c[i], 1);
        wait_for(fd, POLLIN);
        ddp_guests_accept(g, fd, 1000);
    }
    assert_int_equal(g->n, 4);
    wait_for(c[1].fd, POLLIN);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(is_closed(&c[i]), i < 2);
    ddp_guests_drop(g, 1); /* One in the middle: the others keep their order. */
    wait_for(c[3].fd, POLLIN);
    assert_true(is_closed(&c[3]));
    knock(&at, &c[0], 1);
    knock(&at, &c[1], 1);
    wait_for(fd, POLLIN);
    do
        ddp_guests_accept(g, fd, 1000);
    while (!is_closed(&c[2]));
    assert_false(is_closed(&c[4]));
    assert_int_equal(g->n, 4);
    g->at[0].since = 1; /* Long ago. */
    ddp_guests_expire(g, g->at[1].since);
    assert_int_equal(g->n, 3);
    ddp_guests_end(g);
    assert_int_equal(g->n, 0);
    leave(c, 6);
    (void)close(fd);
    free(g);
}

static void test_no_descriptor_left(void **state)
{
    struct ddp_guests *g = malloc(sizeof *g);
    char note[DDP_GUESTS_NOTE];
    struct pollfd p[1 + DDP_GUESTS_MAX];
    struct ddp_conn c[3];
    struct ddp_addr at;
    int port, fd = fake_listen(&port), ms = 5000;

    (void)state;
    assert_non_null(g);
    at = loopback(port);
    ddp_guests_init(g, DDP_GUESTS_MAX);
    assert_string_equal(ddp_guests_note(g, note), "");
    knock(&at, c, 2);
    wait_for(fd, POLLIN);
    while (g->n < 2)
        ddp_guests_accept(g, fd, 1000);

    atomic_store(&n_accepts_left, 0);
    ddp_guests_accept(g, fd, 1000); /* Nobody is there: nobody has to go. */
    assert_int_equal(g->n, 2);
    assert_int_equal(ddp_guests_poll(g, fd, p, 1000, &ms), 3);
    assert_int_equal(p[0].fd, fd);
    assert_int_equal(ms, 5000);

    knock(&at, &c[2], 1); /* The others make room, to no avail. */
    wait_for(fd, POLLIN);
    ddp_guests_accept(g, fd, 1000);
    assert_int_equal(g->n, 0);
    assert_int_equal(ddp_guests_poll(g, fd, p, 1000, &ms), 1);
    assert_int_equal(p[0].fd, -1); /* For a moment nobody is waited for. */
    assert_true(ms > 0 && ms < 1000);
    assert_non_null(strstr(ddp_guests_note(g, note), "Too many open files"));

    atomic_store(&n_accepts_left, UINT32_MAX);
    ddp_guests_accept(g, fd, 1000); /* The moment is not over. */
    assert_int_equal(g->n, 0);
    ddp_guests_accept(g, fd, 1000 + (uint64_t)ms);
    assert_int_equal(g->n, 1);
    assert_int_equal(g->error, 0); /* But some had to go for it. */
    assert_non_null(strstr(ddp_guests_note(g, note), "(see ulimit -n)"));
    ddp_guests_end(g);
    leave(c, 3);
    (void)close(fd);
    free(g);
}

/* Rank 0 cannot accept anybody: it waits, and says why nobody has come. */
static void test_gather_without_descriptors(void **state)
{
    struct real r;
    struct ddp_conn c;
    struct ddp_addr at;
    int port, fd = fake_listen(&port);

    (void)state;
    ddp_socket_close(&fd);
    at = loopback(port);
    atomic_store(&n_accepts_left, 0);
    real_start(&r, 0, 2, port, 1000);
    do
        fd = ddp_socket_connect(&at);
    while ((wait_for(fd, POLLOUT), ddp_socket_connected(fd)) &&
           (ddp_socket_close(&fd), true));
    ddp_conn_open(&c, fd, -1);
    atomic_store(&n_polls, 0);
    real_expect(&r, DDP_ETIMEDOUT, 1, "Too many open files (see ulimit -n)");
    atomic_store(&n_accepts_left, UINT32_MAX);
    assert_in_range(atomic_load(&n_polls), 1, POLLS_MAX);
    ddp_conn_close(&c);
}

/* Idle strangers where the rank before is to come: it gets in all the same. */
static void test_strangers_at_the_ring(void **state)
{
    struct ddp_conn strangers[STRANGERS];
    struct ddp_frame f;
    struct real r;
    struct fake k;

    (void)state;
    fake_gather(&k, &r, PATIENCE_MS);
    fake_table(&k);
    knock(&k.real_at, strangers, STRANGERS);
    fake_ring_out(&k, &k.data_out, 1, 4);
    fake_ring_out(&k, &k.ctl_out, 0, 4);
    fake_expect(&k.boot, DDP_READY, &f);
    leave(strangers, STRANGERS);
    fake_close(&k);
    (void)pthread_join(r.thread, NULL);
}

static void test_strangers_do_not_make_it_spin(void **state)
{
    struct ddp_conn strangers[STRANGERS];
    struct real r;
    struct fake k;

    (void)state;
    fake_gather(&k, &r, 1000);
    fake_table(&k);
    atomic_store(&n_polls, 0);
    knock(&k.real_at, strangers, STRANGERS);
    real_expect(&r, DDP_ETIMEDOUT, 0, "rank 1 has heard nothing from rank 0");
    assert_in_range(atomic_load(&n_polls), 1, POLLS_MAX);
    leave(strangers, STRANGERS);
    fake_close(&k);
}

struct member {
    struct ddp_options opt;
    struct ddp_error err;
    pthread_t thread;
    int rc;
};

static void *join(void *arg)
{
    struct member *m = arg;
    struct ddp_comm *c = NULL;

    has_no_room = m->opt.rank == m->opt.world_size - 1;
    m->rc = ddp_init(&c, &m->opt, &m->err);
    ddp_free(c);
    return NULL;
}

/* The rank before it has connected, and is not to blame. */
static void test_who_cannot_accept_names_itself(void **state)
{
    struct member m[3] = {0};
    int port, fd = fake_listen(&port);

    (void)state;
    ddp_socket_close(&fd);
    for (int i = 0; i < 3; i++) {
        m[i].opt = (struct ddp_options){
            .size = sizeof m[i].opt, .rank = i, .world_size = 3,
            .master_addr = "127.0.0.1", .master_port = port,
            .timeout_ms = i == 2 ? 3000 : 20000};
        assert_int_equal(pthread_create(&m[i].thread, NULL, join, &m[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        (void)pthread_join(m[i].thread, NULL);
    for (int i = 0; i < 3; i++)
        if (m[i].rc != DDP_ETIMEDOUT || m[i].err.peer != 2 ||
            !strstr(m[i].err.text, "rank 2 has heard nothing from rank 1 "))
            fail_msg("rank %d: peer %d: %s", i, m[i].err.peer, m[i].err.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_oldest_makes_room),
        cmocka_unit_test(test_no_descriptor_left),
        cmocka_unit_test(test_gather_without_descriptors),
        cmocka_unit_test(test_strangers_at_the_ring),
        cmocka_unit_test(test_strangers_do_not_make_it_spin),
        cmocka_unit_test(test_who_cannot_accept_names_itself),
    };

    (void)unsetenv("DDP_BOOTSTRAP_PORT");
    (void)unsetenv("TORCHELASTIC_USE_AGENT_STORE");
    (void)unsetenv("TORCHELASTIC_RESTART_COUNT");
    return cmocka_run_group_tests_name("ddp_guests", tests, NULL, NULL);
}
