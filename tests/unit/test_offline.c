/* Tests of agent/offline: the list of hosts that are still reached. */
#include "agent/offline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ALWAYS "localhost,127.0.0.1,127.0.0.0/8,::1,[::1],.svc,.cluster.local"

static void test_lists(void **state)
{
    static const struct {
        struct offline_in in;
        const char *want;
    } cases[] = {
        {{.master_addr = "127.0.0.1", .host = "w0"}, ALWAYS ",w0"},
        {{.master_addr = "127.0.0.1", .host = ""}, ALWAYS},
        /* A pod's host name is the first label of its name. */
        {{.master_addr = "t-0.t", .host = "t-1", .pods = "t-0,10.0.0.1,t-1,"
                                                         "10.0.0.2,t-2.t"},
         ALWAYS ",t-0.t,t-1,t-1.t,t-0,10.0.0.1,10.0.0.2,t-2.t"},
        {{.master_addr = "job-master-0", .host = "job-worker-0",
          .pods = "job-master-0*8,job-worker-0,10.1.1.1*4"},
         ALWAYS ",job-master-0,job-worker-0,10.1.1.1"},
        /* An address has no domain. */
        {{.master_addr = "10.0.0.1", .host = "a"}, ALWAYS ",10.0.0.1,a"},
        {{.master_addr = "fd00::1", .host = "a", .addresses = "10.0.0.9,fd::9"},
         ALWAYS ",fd00::1,[fd00::1],a,10.0.0.9,fd::9,[fd::9]"},
        {{.master_addr = "a", .host = "a", .service_host = "10.96.0.1",
          .allow = "hub.local:8080,.example.org,fd00::/8,10.0.0.0/8"},
         ALWAYS ",10.96.0.1,a,hub.local:8080,.example.org,fd00::/8,10.0.0.0/8"},
        {{.master_addr = "a", .host = "b", .service_host = "fd::1"},
         ALWAYS ",fd::1,[fd::1],a,b"},
    };
    char out[OFFLINE_LIST_MAX];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(offline_no_proxy(&cases[i].in, out, sizeof out));
        assert_string_equal(out, cases[i].want);
    }
}

/* What does not fit is left out whole, and that is told. */
static void test_too_long(void **state)
{
    struct offline_in in = {.master_addr = "127.0.0.1", .host = "host",
                            .pods = "pod-a,pod-bbbbbbbbbbbbbbbbbb,c"};
    char out[sizeof ALWAYS + 16];

    (void)state;
    assert_false(offline_no_proxy(&in, out, sizeof out));
    assert_string_equal(out, ALWAYS ",host,pod-a,c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_too_long),
    };

    return cmocka_run_group_tests_name("offline", tests, NULL, NULL);
}
