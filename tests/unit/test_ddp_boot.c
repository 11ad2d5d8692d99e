/* Tests of libddp against a peer that misbehaves: the main thread plays it,
 * byte by byte; the real rank is a thread. */
#include "ddp/addr.h"
#include "ddp/call.h"
#include "ddp/conn.h"
#include "ddp/hello.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000
#define SHORT_MS 300

/* The real one: ddp_init, then an all_reduce where that worked. */
struct real {
    struct ddp_options opt;
    pthread_t thread;
    int rc;
    struct ddp_error err;
};

static void *real_main(void *arg)
{
    struct real *r = arg;
    struct ddp_comm *c = NULL;
    float buf[4] = {0};

    r->rc = ddp_init(&c, &r->opt, &r->err);
    if (!r->rc)
        r->rc = ddp_all_reduce(c, buf, buf, 4, DDP_F32, DDP_SUM, NULL, &r->err);
    ddp_free(c);
    return NULL;
}

static void real_start(struct real *r, int rank, int size, int port,
                       uint64_t timeout_ms)
{
    r->opt = (struct ddp_options){
        .size = sizeof r->opt, .timeout_ms = timeout_ms, .world_size = size,
        .rank = rank, .master_addr = "127.0.0.1", .master_port = port,
        .job_id = "boot"};
    assert_int_equal(pthread_create(&r->thread, NULL, real_main, r), 0);
}

static void real_expect(struct real *r, int code, int peer, const char *want)
{
    (void)pthread_join(r->thread, NULL);
    if (r->rc != code || (code && r->err.peer != peer) ||
        (code && !strstr(r->err.text, want)))
        fail_msg("%d, peer %d, '%s'; wanted %d, %d, '%s'", r->rc, r->err.peer,
                 r->rc ? r->err.text : "", code, peer, want);
}

/* --- the fake one -------------------------------------------------------- */

static struct ddp_addr loopback(int port)
{
    return (struct ddp_addr){.ip = {[10] = 0xff, 0xff, 127, 0, 0, 1},
                             .port = (uint16_t)port};
}

static int fake_listen(int *ret_port)
{
    struct ddp_addr at = loopback(0);
    int fd = ddp_socket_listen(&at, 16);

    assert_true(fd >= 0 && ddp_addr_local(fd, &at));
    *ret_port = at.port;
    return fd;
}

static void wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};

    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

static void fake_accept(int listen_fd, struct ddp_conn *ret)
{
    wait_for(listen_fd, POLLIN);
    ddp_conn_open(ret, ddp_socket_accept(listen_fd), -1);
    assert_true(ret->fd >= 0);
}

static void fake_connect(const struct ddp_addr *to, struct ddp_conn *ret)
{
    int fd = ddp_socket_connect(to);

    assert_true(fd >= 0);
    wait_for(fd, POLLOUT);
    assert_int_equal(ddp_socket_connected(fd), 0);
    ddp_conn_open(ret, fd, -1);
}

/* The next frame, which must be of this kind. */
static void fake_expect(struct ddp_conn *c, enum ddp_frame_kind kind,
                        struct ddp_frame *ret)
{
    enum ddp_got got;

    while ((got = ddp_conn_get(c, ret)) == DDP_GOT_NONE)
        wait_for(c->fd, POLLIN);
    assert_int_equal(got, DDP_GOT_FRAME);
    assert_int_equal(ret->kind, kind);
}

static void fake_say(struct ddp_conn *c, const struct ddp_frame *f)
{
    assert_int_equal(ddp_conn_put(c, f), 0);
    assert_int_equal(c->out_len, 0);
}

static void fake_kind(struct ddp_conn *c, enum ddp_frame_kind kind)
{
    const struct ddp_frame f = {.kind = kind};

    fake_say(c, &f);
}

static void fake_bytes(struct ddp_conn *c, const char *bytes)
{
    assert_int_equal(send(c->fd, bytes, strlen(bytes), MSG_NOSIGNAL),
                     strlen(bytes));
}

/* A fake rank 0 of two ranks, and all its sockets. */
struct fake {
    int listen_fd, ring_fd; /* To gather at; for the real one's ring. */
    struct ddp_conn boot, ctl_in, data_in, ctl_out, data_out;
    struct ddp_addr real_at; /* Where the real one listens. */
};

static const struct ddp_frame token_table = {
    .kind = DDP_TABLE, .token = {4, 2}, .via_root = 1};

/* Up to HELLO, by which the real rank 1 has come. */
static void fake_gather(struct fake *k, struct real *r, uint64_t timeout_ms)
{
    struct ddp_frame f;
    int port;

    memset(k, 0, sizeof *k);
    k->ring_fd = k->ctl_in.fd = k->data_in.fd = -1;
    k->ctl_out.fd = k->data_out.fd = -1;
    k->listen_fd = fake_listen(&port);
    real_start(r, 1, 2, port, timeout_ms);
    fake_accept(k->listen_fd, &k->boot);
    fake_expect(&k->boot, DDP_HELLO, &f);
    assert_int_equal(f.rank, 1);
    assert_int_equal(f.world, 2);
    assert_string_equal(f.text, "boot");
    k->real_at = f.addr;
}

/* Up to the ring connections that the real one makes. */
static void fake_table(struct fake *k)
{
    struct ddp_frame f = token_table;
    int port;

    k->ring_fd = fake_listen(&port);
    f.addr.port = (uint16_t)port;
    fake_kind(&k->boot, DDP_WELCOME);
    fake_say(&k->boot, &f);
    for (unsigned i = 0; i < 2; i++) {
        struct ddp_conn c;

        fake_accept(k->ring_fd, &c);
        fake_expect(&c, DDP_RING, &f);
        assert_memory_equal(f.token, token_table.token, sizeof f.token);
        assert_int_equal(f.rank, 1);
        assert_int_equal(f.to, 0);
        *(f.channel ? &k->data_in : &k->ctl_in) = c;
    }
}

static void fake_ring_out(struct fake *k, struct ddp_conn *c, uint32_t channel,
                          uint8_t token)
{
    struct ddp_frame f = {.kind = DDP_RING, .rank = 0, .to = 1,
                          .channel = channel, .token = {token, 2}};

    fake_connect(&k->real_at, c);
    fake_say(c, &f);
}

/* Up to READY. */
static void fake_ring(struct fake *k)
{
    struct ddp_conn stranger;
    struct ddp_frame f;

    fake_table(k);
    fake_ring_out(k, &stranger, 0, 5); /* A wrong token: not taken in. */
    fake_ring_out(k, &k->data_out, 1, 4);
    fake_ring_out(k, &k->ctl_out, 0, 4);
    fake_expect(&k->boot, DDP_READY, &f);
    ddp_conn_close(&stranger);
}

/* Up to the real one's CALL, on both connections. */
static void fake_call(struct fake *k, struct ddp_frame *ret)
{
    struct ddp_frame f;

    fake_ring(k);
    fake_kind(&k->boot, DDP_GO);
    fake_expect(&k->ctl_in, DDP_CALL, ret);
    fake_expect(&k->ctl_out, DDP_CALL, &f);
}

static void fake_close(struct fake *k)
{
    ddp_conn_close(&k->boot);
    ddp_conn_close(&k->ctl_in);
    ddp_conn_close(&k->ctl_out);
    ddp_conn_close(&k->data_in);
    ddp_conn_close(&k->data_out);
    ddp_socket_close(&k->ring_fd);
    ddp_socket_close(&k->listen_fd);
}

/* --- a rank 0 that misbehaves -------------------------------------------- */

static void test_a_server_that_is_no_rank_0(void **state)
{
    struct real r;
    struct fake k;

    (void)state;
    fake_gather(&k, &r, SHORT_MS);
    fake_bytes(&k.boot, "HTTP/1.1 400 Bad Request\r\n\r\n");
    ddp_socket_close(&k.listen_fd);
    /* It is tried again, to no avail. */
    real_expect(&r, DDP_ETIMEDOUT, 0, "last try: 127.0.0.1:");
    fake_close(&k);
}

/* The one after a crowd of others is the right one. */
static void test_the_right_one_comes_late(void **state)
{
    struct real r;
    struct fake k;
    struct ddp_conn c;
    struct ddp_frame f = {.kind = DDP_REFUSE, .retry = 1, .code = 7};

    (void)state;
    fake_gather(&k, &r, PATIENCE_MS);
    ddp_conn_close(&k.boot); /* Closed, without a word, */
    fake_accept(k.listen_fd, &c);
    fake_bytes(&c, "220 mail.example ESMTP\r\n"); /* another protocol, */
    fake_accept(k.listen_fd, &k.boot);
    ddp_conn_close(&c);
    fake_say(&k.boot, &f); /* refused for now, */
    fake_accept(k.listen_fd, &c);
    ddp_conn_close(&k.boot);
    fake_expect(&c, DDP_HELLO, &f); /* and at last welcome. */
    k.boot = c;
    k.real_at = f.addr;
    fake_table(&k);
    ddp_conn_close(&k.boot);
    real_expect(&r, DDP_EPEER, 0,
                "rank 0 closed the connection while the ring");
    fake_close(&k);
}

static void test_refused_for_good(void **state)
{
    struct ddp_frame f = {.kind = DDP_REFUSE, .code = 7, .peer = 1,
                          .text = "no"};
    struct real r;
    struct fake k;

    (void)state;
    fake_gather(&k, &r, PATIENCE_MS);
    fake_say(&k.boot, &f);
    real_expect(&r, DDP_EMISMATCH, 1, "rank 0 refuses: no");
    fake_close(&k);
}

static void test_rank_0_dies_while_gathering(void **state)
{
    struct real r;
    struct fake k;

    (void)state;
    fake_gather(&k, &r, PATIENCE_MS);
    fake_kind(&k.boot, DDP_WELCOME);
    ddp_conn_close(&k.boot);
    real_expect(&r, DDP_EPEER, 0, "closed the connection while the job");
    fake_close(&k);
}

static void test_rank_0_waits_for_others(void **state)
{
    const struct ddp_frame f = {.kind = DDP_WAITING, .n = 3, .peer = 5};
    struct ddp_frame got;
    struct real r;
    struct fake k;

    (void)state;
    fake_gather(&k, &r, SHORT_MS);
    fake_kind(&k.boot, DDP_WELCOME);
    fake_say(&k.boot, &f);
    fake_expect(&k.boot, DDP_FAULT, &got); /* At its deadline it says so. */
    assert_int_equal(got.code, -DDP_ETIMEDOUT);
    real_expect(&r, DDP_ETIMEDOUT, 5, "the first of them is rank 5");
    fake_close(&k);
}

static void test_the_next_rank_is_not_there(void **state)
{
    struct ddp_frame f = token_table;
    struct real r;
    struct fake k;
    int port, fd;

    (void)state;
    fake_gather(&k, &r, PATIENCE_MS);
    fd = fake_listen(&port);
    ddp_socket_close(&fd);
    f.addr.port = (uint16_t)port;
    fake_kind(&k.boot, DDP_WELCOME);
    fake_say(&k.boot, &f);
    real_expect(&r, DDP_ESYSTEM, 0, "rank 1 cannot reach rank 0 at 127.0.0.1:");
    fake_close(&k);
}

static void test_the_rank_before_does_not_come(void **state)
{
    struct real r;
    struct fake k;

    (void)state;
    fake_gather(&k, &r, SHORT_MS);
    fake_table(&k);
    real_expect(&r, DDP_ETIMEDOUT, 0, "rank 1 has heard nothing from rank 0");
    fake_close(&k);
}

static void test_no_go(void **state)
{
    struct real r;
    struct fake k;

    (void)state;
    fake_gather(&k, &r, SHORT_MS);
    fake_ring(&k);
    real_expect(&r, DDP_ETIMEDOUT, -1, "some ranks could not reach each other");
    fake_close(&k);
}

static void test_a_fault_while_the_ring_is_made(void **state)
{
    const struct ddp_frame f = {.kind = DDP_FAULT, .code = 4, .rank = 0,
                                .peer = 1, .text = "bad"};
    struct real r;
    struct fake k;

    (void)state;
    fake_gather(&k, &r, PATIENCE_MS);
    fake_ring(&k);
    fake_say(&k.boot, &f);
    real_expect(&r, DDP_ESYSTEM, 1, "rank 0 reports: bad");
    fake_close(&k);
}

/* --- a neighbour that misbehaves in a call ------------------------------- */

/* The whole call, by hand: what test_torn_elements etc. deviate from. */
static void test_a_call_that_works(void **state)
{
    struct real r;
    struct fake k;
    struct ddp_frame call;
    float in[4], out[4] = {1, 2, 3, 4};

    (void)state;
    fake_gather(&k, &r, PATIENCE_MS);
    fake_call(&k, &call);
    assert_int_equal(call.what, DDP_ALL_REDUCE);
    assert_int_equal(call.seq, 1);
    assert_int_equal(call.count, 4);
    fake_say(&k.ctl_out, &call);
    fake_say(&k.ctl_in, &call);
    for (size_t i = 0; i < 2 * sizeof out[0]; i++) { /* Torn elements. */
        assert_int_equal(send(k.data_out.fd, (uint8_t *)out + i, 1, 0), 1);
        wait_for(k.data_in.fd, POLLIN);
    }
    assert_int_equal(send(k.data_out.fd, out + 2, 2 * sizeof *out, 0),
                     2 * sizeof *out);
    for (size_t n = 0; n < sizeof in;) {
        ssize_t got;

        wait_for(k.data_in.fd, POLLIN);
        got = recv(k.data_in.fd, (uint8_t *)in + n, sizeof in - n, 0);
        assert_true(got > 0);
        n += (size_t)got;
    }
    assert_true(in[2] == 1 && in[3] == 2); /* Block 0: ours plus its zeros. */
    real_expect(&r, 0, -1, "");
    fake_close(&k);
}

/* What comes on the control connection while the call waits. */
static void fake_disturb(const char *bytes, const struct ddp_frame *f,
                         int code, const char *want)
{
    struct real r;
    struct fake k;
    struct ddp_frame call;

    fake_gather(&k, &r, PATIENCE_MS);
    fake_call(&k, &call);
    fake_say(&k.ctl_in, &call);
    if (bytes)
        fake_bytes(&k.ctl_in, bytes);
    if (f)
        fake_say(&k.ctl_in, f);
    if (!bytes && !f)
        ddp_conn_close(&k.ctl_in);
    real_expect(&r, code, 0, want);
    fake_close(&k);
}

static void test_disturbed_calls(void **state)
{
    const struct ddp_frame go = {.kind = DDP_GO}, bye = {.kind = DDP_BYE};
    struct ddp_frame fault = {.kind = DDP_FAULT, .code = 2, .text = "x"};

    (void)state;
    fake_disturb("nonsense", NULL, DDP_EPEER, "sends what is no frame");
    fake_disturb(NULL, &go, DDP_EPEER, "a frame that has no place here");
    fake_disturb(NULL, &bye, DDP_EPEER, "rank 0 has left the job");
    fake_disturb(NULL, &fault, DDP_ENOTSUP, "rank 0 reports: x");
    fault.code = 1000;
    fake_disturb(NULL, &fault, DDP_EPEER, "rank 0 reports: x");
    fake_disturb(NULL, NULL, DDP_EPEER, "rank 0 died or failed");
}

/* Two calls ahead is further than anyone can be. */
static void test_too_far_ahead(void **state)
{
    struct real r;
    struct fake k;
    struct ddp_frame call;

    (void)state;
    fake_gather(&k, &r, PATIENCE_MS);
    fake_call(&k, &call);
    for (unsigned i = 0; i < 3; i++, call.seq++)
        fake_say(&k.ctl_out, &call);
    real_expect(&r, DDP_EPEER, 0, "a frame that has no place here");
    fake_close(&k);
}

/* The elements end, the control connection does not: an end all the same. */
static void test_elements_end(void **state)
{
    struct real r;
    struct fake k;
    struct ddp_frame call;

    (void)state;
    fake_gather(&k, &r, PATIENCE_MS);
    fake_call(&k, &call);
    fake_say(&k.ctl_out, &call);
    ddp_conn_close(&k.data_out);
    real_expect(&r, DDP_EPEER, 0, "rank 0 died or failed");
    fake_close(&k);
}

/* It answers, but moves nothing: slow, not silent. */
static void test_slow_but_alive(void **state)
{
    const struct ddp_frame ping = {.kind = DDP_PING, .peer = UINT32_MAX};
    struct real r;
    struct fake k;
    struct ddp_frame call;

    (void)state;
    fake_gather(&k, &r, 1000);
    fake_call(&k, &call);
    fake_say(&k.ctl_out, &call);
    fake_say(&k.ctl_in, &call);
    /* Until its FAULT comes on one of the two; then sending may fail. */
    for (struct ddp_frame f = {.kind = DDP_PING};;) {
        enum ddp_got got = ddp_conn_get(&k.ctl_in, &f);

        if (got == DDP_GOT_EOF || (got == DDP_GOT_FRAME && f.kind == DDP_FAULT))
            break;
        (void)ddp_conn_put(&k.ctl_in, &ping);
        (void)ddp_conn_put(&k.ctl_out, &ping);
        (void)poll(NULL, 0, 10);
    }
    real_expect(&r, DDP_ETIMEDOUT, -1, "all ranks are there: too slow");
    fake_close(&k);
}

/* --- a rank that misbehaves towards rank 0 ------------------------------- */

/* As rank 1 of three, up to WELCOME; rank 2 is real too. */
static void fake_join(struct real r[3], struct ddp_conn *c)
{
    const struct ddp_addr at = loopback(9);
    const uint8_t host[DDP_TOKEN] = {0};
    struct ddp_conf conf = {.rank = 1, .size = 3, .job = "boot",
                            .attempt = DDP_NO_ATTEMPT};
    struct ddp_addr root;
    struct ddp_frame f;
    int port, fd = fake_listen(&port);

    ddp_socket_close(&fd);
    root = loopback(port);
    conf.master_port = (uint16_t)port;
    real_start(&r[0], 0, 3, port, PATIENCE_MS);
    for (fd = -1; fd < 0 || ddp_socket_connected(fd);) {
        ddp_socket_close(&fd);
        fd = ddp_socket_connect(&root);
        assert_true(fd >= 0);
        wait_for(fd, POLLOUT);
    }
    ddp_conn_open(c, fd, 0);
    ddp_hello_put(&conf, &at, host, &f);
    fake_say(c, &f);
    fake_expect(c, DDP_WELCOME, &f);
}

static void test_a_rank_dies_while_gathering(void **state)
{
    struct real r[3];
    struct ddp_conn c;

    (void)state;
    fake_join(r, &c);
    ddp_conn_close(&c);
    real_start(&r[2], 2, 3, r[0].opt.master_port, PATIENCE_MS);
    real_expect(&r[0], DDP_EPEER, 1, "rank 1 left while the job was gathering");
    /* Rank 2 came before or after: it is told either way. */
    real_expect(&r[2], DDP_EPEER, 1, "rank 1 left while the job was gathering");
}

static void test_a_rank_fails_while_gathering(void **state)
{
    const struct ddp_frame f = {.kind = DDP_FAULT, .code = 3, .rank = 1,
                                .peer = 1, .text = "no memory"};
    struct real r[3];
    struct ddp_conn c;

    (void)state;
    fake_join(r, &c);
    fake_say(&c, &f);
    real_start(&r[2], 2, 3, r[0].opt.master_port, PATIENCE_MS);
    real_expect(&r[0], DDP_ENOMEM, 1, "rank 1 reports: no memory");
    real_expect(&r[2], DDP_ENOMEM, 1, "rank 1 reports: no memory");
    ddp_conn_close(&c);
}

static void test_a_rank_dies_while_the_ring_is_made(void **state)
{
    struct real r[3];
    struct ddp_conn c;
    struct ddp_frame f;

    (void)state;
    fake_join(r, &c);
    real_start(&r[2], 2, 3, r[0].opt.master_port, PATIENCE_MS);
    do
        while (ddp_conn_get(&c, &f) != DDP_GOT_FRAME)
            wait_for(c.fd, POLLIN);
    while (f.kind == DDP_WAITING);
    assert_int_equal(f.kind, DDP_TABLE);
    ddp_conn_close(&c); /* Nobody listens where it said, either. */
    (void)pthread_join(r[0].thread, NULL);
    (void)pthread_join(r[2].thread, NULL);
    for (unsigned i = 0; i < 3; i += 2) {
        assert_true(r[i].rc == DDP_EPEER || r[i].rc == DDP_ESYSTEM);
        assert_int_equal(r[i].err.peer, 1);
    }
}

static int clear_environment(void **state)
{
    static const char *const names[] = {
        "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_USE_AGENT_STORE",
        "LOCAL_RANK", "LOCAL_WORLD_SIZE", "DDP_BOOTSTRAP_PORT"};

    (void)state;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unsetenv(names[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_server_that_is_no_rank_0),
        cmocka_unit_test(test_the_right_one_comes_late),
        cmocka_unit_test(test_refused_for_good),
        cmocka_unit_test(test_rank_0_dies_while_gathering),
        cmocka_unit_test(test_rank_0_waits_for_others),
        cmocka_unit_test(test_the_next_rank_is_not_there),
        cmocka_unit_test(test_the_rank_before_does_not_come),
        cmocka_unit_test(test_no_go),
        cmocka_unit_test(test_a_fault_while_the_ring_is_made),
        cmocka_unit_test(test_a_call_that_works),
        cmocka_unit_test(test_disturbed_calls),
        cmocka_unit_test(test_too_far_ahead),
        cmocka_unit_test(test_elements_end),
        cmocka_unit_test(test_slow_but_alive),
        cmocka_unit_test(test_a_rank_dies_while_gathering),
        cmocka_unit_test(test_a_rank_fails_while_gathering),
        cmocka_unit_test(test_a_rank_dies_while_the_ring_is_made),
    };

    return cmocka_run_group_tests_name("ddp_boot", tests, clear_environment,
                                       NULL);
}
