/* pod_hang: all workers of a pod hang: the signal, 5 s, and a failure. */
#include "pod_fixture.h"

#include "base/err.h"

static void on_describe(void *c, uint32_t worker, struct pod_exit *x)
{
    (void)c;
    x->pid = 70 + worker;
    x->ran_ms = 8000;
    x->tail = "in all_reduce";
}

/* Pod 1, whose two workers (and so many servers) run, hangs at 1000. */
static void hangs(uint32_t n_servers)
{
    struct pod_out with = out;

    member_runs();
    with.describe = on_describe;
    p.out = with;
    p.cfg.hang_signal = SIGUSR1;
    p.cfg.hang_timeout_ms = 60000;
    if (n_servers > 0) {
        p.sup.n_workers = p.sup.n_alive = 2 + n_servers;
        p.sup.n_servers = n_servers;
        p.sup.alive[2] = true;
    }
    said[0] = '\0';
    pod_hang(&p, 1000, 0);
    told("kill0:10 kill1:10 ");
    assert_non_null(strstr(said, "hang"));
    assert_non_null(strstr(said, "60 s"));
    assert_non_null(strstr(said, "a program without a handler dies"));
    pod_hang(&p, 1100, 0); /* Once is enough. */
    told("");
    assert_int_equal(p.state, POD_RUNNING);
}

static void is_told(void)
{
    const struct failure *f = &sent.failure;

    assert_int_equal(sent.kind, WIRE_FAILED);
    assert_int_equal(f->kind, FAILURE_WORKER);
    assert_true(f->hung);
    assert_int_equal(f->code, ERR_HANG);
    assert_int_equal(f->signo, 0);
    assert_int_equal(f->rank, 2);
    assert_int_equal(f->pid, 70);
    assert_int_equal(f->ran_ms, 8000);
    assert_string_equal(f->tail, "in all_reduce");
}

static void test_nobody_obeys(void **state)
{
    (void)state;
    hangs(0);
    assert_true(pod_deadline(&p) <= 6000);
    pod_timeout(&p, 5999);
    assert_int_equal(p.state, POD_RUNNING);
    story[0] = '\0'; /* PING. */
    pod_timeout(&p, 6000);
    told("kill0:15 kill1:15 FAILED ");
    assert_int_equal(p.state, POD_STOPPING);
    is_told();
}

/* Also if the signal kills them, and if they then end with 0. */
static void test_the_signal_ends_them(void **state)
{
    (void)state;
    for (int code = 0; code <= 138; code += 138) {
        hangs(0);
        ends(1001, 0, code);
        told(""); /* The other one may yet say where it is. */
        ends(1002, 1, code);
        assert_int_equal(p.state, POD_STOPPING);
        assert_int_equal(p.hang_ms, 0);
        is_told();
        assert_int_equal(strstr(sent.failure.text, "it was SIGUSR1 "
                                "(--hang-signal) that ended") != NULL,
                         code == 138);
        assert_int_equal(pod_deadline(&p) > 6000 || p.hang_ms == 0, 1);
    }
}

static void test_one_ends_and_the_other_does_not(void **state)
{
    (void)state;
    hangs(0);
    ends(1001, 0, 138);
    told("");
    pod_timeout(&p, 6000);
    is_told();
    assert_null(strstr(sent.failure.text, "SIGUSR1"));
    assert_int_equal(p.state, POD_STOPPING);
}

static void test_servers_do_not_get_it(void **state)
{
    (void)state;
    hangs(1);
    ends(1001, 0, 138);
    ends(1002, 1, 138);
    assert_int_equal(p.state, POD_STOPPING);
    pod_timeout(&p, 1002 + POD_SETTLE_MS);
    is_told();
}

/* What else ends the round is not held up by it. */
static void test_told_to_stop_meanwhile(void **state)
{
    (void)state;
    hangs(0);
    pod_signal(&p, 1500, SIGTERM);
    told("FAILED kill0:15 kill1:15 ");
    assert_int_equal(sent.failure.kind, FAILURE_STOPPED);
    pod_timeout(&p, 6000);
    ends(6001, 0, 143);
    ends(6002, 1, 143);
    assert_int_equal(p.cause.kind, FAILURE_STOPPED);
    hangs(0);
    hear(1500, (struct wire_msg){.kind = WIRE_STOP});
    told("kill0:15 kill1:15 ");
    assert_int_equal(p.hang_ms, 0);
}

static void test_only_while_they_run(void **state)
{
    (void)state;
    hangs(0);
    ends(1001, 0, 1);
    ends(1002, 1, 1);
    story[0] = '\0';
    pod_hang(&p, 1003, 0);
    told("");
    member_runs();
    pod_hang(&p, 1000, 7); /* No such worker. */
    told("");
    ends(1001, 0, 0);
    pod_hang(&p, 1002, 0); /* It has ended. */
    told("");
}

/* A job of one pod: a restart, and then its code. */
static void test_it_is_restarted(void **state)
{
    (void)state;
    make(0, 1, false);
    p.cfg.hang_signal = SIGUSR1;
    story[0] = '\0';
    for (uint64_t at = 1000; at < 60000; at += 20000) {
        pod_hang(&p, at, 0);
        pod_timeout(&p, at + 5000);
        ends(at + 5001, 0, 143);
        ends(at + 5002, 1, 143);
        pod_swept(&p, at + 5003, 0, false);
        if (p.state == POD_GONE)
            break;
        pod_timeout(&p, pod_deadline(&p));
        assert_int_equal(p.state, POD_RUNNING);
    }
    assert_int_equal(p.state, POD_GONE);
    assert_int_equal(p.exit_code, ERR_HANG);
    assert_int_equal(p.n_rounds, 2);
    assert_true(p.cause.hung);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_obeys),
        cmocka_unit_test(test_the_signal_ends_them),
        cmocka_unit_test(test_one_ends_and_the_other_does_not),
        cmocka_unit_test(test_servers_do_not_get_it),
        cmocka_unit_test(test_told_to_stop_meanwhile),
        cmocka_unit_test(test_only_while_they_run),
        cmocka_unit_test(test_it_is_restarted),
    };

    return cmocka_run_group_tests_name("pod_hang", tests, NULL, NULL);
}
