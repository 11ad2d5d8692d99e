/* brand: what a process hands on, whatever else it drops. */
#include "supervise/brand.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BRAND UINT64_C(0x4123456789abc800)

/* A child of a child, in a session of its own, that lives until its pipe to
 * here ends. */
static pid_t grandchild(uint64_t brand, int *ret_fd)
{
    int hold[2], tell[2];
    pid_t pid = 0;

    assert_int_equal(pipe(hold), 0);
    assert_int_equal(pipe(tell), 0);
    if (fork() == 0) {
        brand_put(brand);
        pid = fork();
        if (pid != 0) {
            (void)!write(tell[1], &pid, sizeof pid);
            _exit(0);
        }
        (void)setsid();
        (void)close(hold[1]);
        (void)!read(hold[0], &pid, 1);
        _exit(0);
    }
    (void)close(hold[0]);
    assert_int_equal(read(tell[0], &pid, sizeof pid), sizeof pid);
    (void)close(tell[0]);
    (void)close(tell[1]);
    (void)wait(NULL);
    *ret_fd = hold[1];
    return pid;
}

static void test_is_handed_on(void **state)
{
    int fd;
    pid_t pid = grandchild(BRAND | 5, &fd);

    (void)state;
    assert_int_equal(brand_ask(pid, BRAND | 5, 0), BRAND_SAME);
    assert_int_equal(brand_ask(pid, BRAND | 6, 0), BRAND_OTHER);
    assert_int_equal(brand_ask(pid, BRAND | 6, BRAND_WORKER_MASK), BRAND_SAME);
    assert_int_equal(brand_ask(pid, BRAND ^ 0x800, BRAND_WORKER_MASK),
                     BRAND_OTHER);
    assert_int_equal(brand_ask(getpid(), BRAND, BRAND_WORKER_MASK),
                     BRAND_OTHER);
    (void)close(fd);
}

static void test_none(void **state)
{
    int fd;
    pid_t pid = grandchild(0, &fd);

    (void)state;
    assert_int_equal(brand_ask(pid, BRAND, BRAND_WORKER_MASK), BRAND_OTHER);
    assert_int_equal(brand_of_worker(0, 3), 0);
    (void)close(fd);
    /* Beyond any pid_max. */
    assert_int_equal(brand_ask(0x7fffffff, BRAND, 0), BRAND_UNKNOWN);
}

static void test_make(void **state)
{
    uint64_t a = brand_make(1), b = brand_make(UINT64_MAX);
    int status = 0;

    (void)state;
    if (a == 0)
        skip(); /* The tests themselves run under such a limit. */
    assert_int_equal(a & BRAND_WORKER_MASK, 0);
    assert_int_equal(b & BRAND_WORKER_MASK, 0);
    assert_true(a >> 62 == 1 && b >> 62 == 1);
    assert_int_equal(brand_of_worker(b, 1024), b + 1024);
    /* A limit that someone has set is kept. */
    if (fork() == 0) {
        struct rlimit r = {.rlim_cur = 200000, .rlim_max = 400000};

        (void)setrlimit(RLIMIT_RTTIME, &r);
        a = brand_make(UINT64_MAX);
        brand_put(a);
        (void)getrlimit(RLIMIT_RTTIME, &r);
        _exit(a == 0 && r.rlim_cur == 200000 ? 0 : 1);
    }
    (void)wait(&status);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_handed_on),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_make),
    };

    return cmocka_run_group_tests_name("brand", tests, NULL, NULL);
}
