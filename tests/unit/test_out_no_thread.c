/* out: where no thread is to be had (a pids limit), the bytes are written all
 * the same, and those that cannot be are counted. */
#include "supervise/out.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

/* Instead of libc's. */
int pthread_create(pthread_t *ret, const pthread_attr_t *attr,
                   void *(*start)(void *), void *arg)
{
    (void)ret;
    (void)attr;
    (void)start;
    (void)arg;
    return EAGAIN;
}

static struct out *o; /* Never freed: it lives as long as agent. */

static void test_written_and_counted(void **state)
{
    int fds[2], wake = eventfd(0, EFD_CLOEXEC);
    struct out_lost lost;
    struct err e;
    char buf[16];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(out_new(&o, fds[1], wake, 3, &e), 0);
    out_put(o, "one\n", 4);
    out_put(o, "two\n", 4);
    assert_int_equal(out_pending(o), 0);
    assert_int_equal(read(fds[0], buf, sizeof buf), 8);
    assert_memory_equal(buf, "one\ntwo\n", 8);
    out_lost(o, &lost);
    assert_int_equal(lost.bytes, 0);
    (void)close(fds[0]);
    out_put(o, "three\n", 6);
    assert_true(out_flush(o, 0, -1));
    out_lost(o, &lost);
    assert_int_equal(lost.bytes, 6);
    assert_int_equal(lost.why, EPIPE);
    (void)close(fds[1]);
    (void)close(wake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_and_counted),
    };
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    (void)sigaction(SIGPIPE, &ignore, NULL); /* As agent: blocked there. */
    (void)alarm(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
