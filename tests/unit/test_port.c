/* port: claims of ports and names, against sockets of the test's own. */
#include "rendezvous/port.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "free_port.h"

/* Listen on any free port of `ip`; -1 where the family is not there. */
static int listen_on(const char *ip, unsigned *ret_port)
{
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6};
    struct sockaddr_in a4 = {.sin_family = AF_INET};
    int family = strchr(ip, ':') ? AF_INET6 : AF_INET, fd;
    struct sockaddr *a = family == AF_INET ? (struct sockaddr *)&a4
                                           : (struct sockaddr *)&a6;
    socklen_t len = family == AF_INET ? sizeof a4 : sizeof a6;

    assert_int_equal(inet_pton(family, ip, family == AF_INET
                                               ? (void *)&a4.sin_addr
                                               : (void *)&a6.sin6_addr), 1);
    fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, a, len) != 0) {
        mem_close_at(&fd);
        return -1;
    }
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, a, &len), 0);
    *ret_port = ntohs(family == AF_INET ? a4.sin_port : a6.sin6_port);
    return fd;
}

static void me(char *out, size_t cap)
{
    char name[16] = "";

    assert_int_equal(prctl(PR_GET_NAME, name), 0);
    (void)snprintf(out, cap, "pid %d (%s)", (int)getpid(), name);
}

static void test_claim_free(void **state)
{
    unsigned port = (unsigned)free_port(), was = port;
    unsigned taken = 1;
    struct err e = {0};

    (void)state;
    assert_int_equal(port_claim(&port, 1, true, &taken, &e), 0);
    assert_int_equal(port, was);
    assert_int_equal(taken, 0);
    assert_int_equal(e.code, 0);
}

/* Two agents in one network namespace with the same default: nothing listens
 * yet, and still the second one must see that the port is given away. */
static void test_claimed_by_another_agent(void **state)
{
    unsigned port = (unsigned)free_port(), other;
    unsigned taken;
    char who[128], want[320];
    struct err e = {0};

    (void)state;
    me(who, sizeof who);
    assert_int_equal(port_claim(&port, 1, false, &taken, &e), 0);
    other = port;
    assert_int_equal(port_claim(&other, 1, true, &taken, &e), -ERR_RESOURCE);
    (void)snprintf(want, sizeof want, "--master-port %u is taken by another "
                   "agent, %s, which reserved it for its workers: give another "
                   "one, or none to have a free one chosen", port, who);
    assert_string_equal(e.text, want);
    assert_int_equal(other, port);
    assert_int_equal(port_claim(&other, 1, false, &taken, &e), 0);
    assert_int_equal(taken, port);
    assert_true(other != port && other > 0 && other < 65536);
}

/* A port that somebody listens on: on one address, or on one family only. */
static void claim_taken(const char *ip)
{
    unsigned port = 0, moved_to;
    autoclose int fd = listen_on(ip, &port);
    char who[128], holder[128], want[256];
    unsigned taken = 1;
    struct err e = {0};

    if (fd < 0)
        return; /* No such family here. */
    me(who, sizeof who);
    port_holder(port, holder, sizeof holder);
    assert_string_equal(holder, who);
    moved_to = port;
    assert_int_equal(port_claim(&moved_to, 1, true, &taken, &e), -ERR_RESOURCE);
    assert_int_equal(e.code, ERR_RESOURCE);
    (void)snprintf(want, sizeof want, "--master-port %u is taken by %s: give "
                   "another one, or none to have a free one chosen", port,
                   who);
    assert_string_equal(e.text, want);
    assert_int_equal(port_claim(&moved_to, 1, false, &taken, &e), 0);
    assert_int_equal(taken, port);
    assert_int_not_equal(moved_to, port);
}

/* A row of ports, of which a later one is taken. */
static void test_a_row(void **state)
{
    unsigned held = 0, port, first;
    autoclose int fd = listen_on("127.0.0.1", &held);
    char want[64];
    unsigned taken;
    struct err e = {0};

    (void)state;
    assert_true(fd >= 0 && held > 2);
    first = port = held - 2;
    assert_int_equal(port_claim(&port, 3, true, &taken, &e), -ERR_RESOURCE);
    (void)snprintf(want, sizeof want, "on 3 ports from it on, and %u is taken",
                   held);
    if (!strstr(e.text, want)) /* Or somebody has one before it. */
        assert_non_null(strstr(e.text, "is taken"));
    assert_int_equal(port_claim(&port, 3, false, &taken, &e), 0);
    assert_true(taken >= first && taken <= held);
    assert_true(port + 2 < first || port > held);
    port = 65535; /* That there are none is said elsewhere. */
    (void)port_claim(&port, 2, true, &taken, &e);
    assert_null(strstr(e.text, "65536"));
}

static void test_taken(void **state)
{
    static const char *const ips[] = {"127.0.0.1", "0.0.0.0", "::1", "::"};

    (void)state;
    for (unsigned i = 0; i < sizeof ips / sizeof ips[0]; i++)
        claim_taken(ips[i]);
}

static void test_nobody_holds_it(void **state)
{
    char holder[128] = "x";

    (void)state;
    port_holder((unsigned)free_port(), holder, sizeof holder);
    assert_string_equal(holder, "");
}

/* A name is held for the life of the process that claimed it. */
static void test_names(void **state)
{
    int ready[2], stop[2], status;
    unsigned port = (unsigned)free_port();
    char c;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(stop), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(stop[1]);
        c = port_claim_name("barrier", port) ? 'y' : 'n';
        (void)!write(ready[1], &c, 1);
        (void)!read(stop[0], &c, 1); /* Until the test closes its end. */
        _exit(0);
    }
    (void)close(stop[0]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(c, 'y');
    assert_false(port_claim_name("barrier", port));
    assert_true(port_claim_name("master", port)); /* Another name. */
    assert_false(port_claim_name("master", port));
    (void)close(stop[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(port_claim_name("barrier", port));
    (void)close(ready[0]);
    (void)close(ready[1]);
}

static void test_dead_port(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    unsigned port = port_hold_dead();
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    assert_in_range(port, 1, 65535);
    assert_int_not_equal(port, port_hold_dead());
    a.sin_port = htons((uint16_t)port);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), -1);
    assert_int_equal(errno, ECONNREFUSED);
    (void)close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), -1);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claim_free),
        cmocka_unit_test(test_claimed_by_another_agent),
        cmocka_unit_test(test_a_row),
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_nobody_holds_it),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_dead_port),
    };

    (void)alarm(60); /* Each wait ends, at the latest so. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
