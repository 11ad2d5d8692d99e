/* Tests of libddp against a peer that misbehaves: the main thread plays it,
 * byte by byte; the real rank is a thread. */
#include "ddp_fake.h"

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
    real_expect(&r, DDP_ETIMEDOUT, 0, "rank 0 has not said");
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
