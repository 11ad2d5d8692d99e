/* usage: what sessions use, by a child of the test's own. */
#include "supervise/usage.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES (64u << 20)

/* In its session: itself, and a child that holds memory. */
static void __attribute__((noreturn)) session_main(int ready)
{
    volatile char *memory; /* So that it is really written. */

    (void)setsid();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fork() == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        memory = malloc(BYTES);
        for (size_t i = 0; memory && i < BYTES; i += 1024)
            memory[i] = 1;
        while (clock() < CLOCKS_PER_SEC / 20)
            ;
        (void)!write(ready, memory ? "y" : "n", 1);
        for (;;)
            (void)pause();
    }
    for (;;)
        (void)pause();
}

static void test_a_session(void **state)
{
    struct usage u[3];
    pid_t sessions[3] = {0, 0, 0};
    int ready[2];
    char byte = 0;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    sessions[1] = fork();
    if (sessions[1] == 0)
        session_main(ready[1]);
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    sessions[2] = sessions[1] + 1000000; /* No such session. */
    memset(u, 7, sizeof u);
    usage_read(sessions, 3, u);
    (void)kill(-sessions[1], SIGKILL);
    assert_int_equal(waitpid(sessions[1], NULL, 0), sessions[1]);
    assert_int_equal(u[1].n_procs, 2);
    assert_true(u[1].rss_bytes >= BYTES && u[1].rss_bytes < 4u * BYTES);
    assert_true(u[1].cpu_ms >= 40 && u[1].cpu_ms < 60000);
    assert_true(u[0].n_procs == 0 && u[0].cpu_ms == 0 && u[0].rss_bytes == 0);
    assert_true(u[2].n_procs == 0);
    (void)close(ready[0]);
    /* The child's child is reaped by others, in a moment. */
    for (int i = 0; i < 2000 && (i == 0 || u[1].n_procs > 0); i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        usage_read(sessions, 3, u);
    }
    assert_true(u[1].n_procs == 0);
}

/* As above, but the child has a session of its own. */
static void look_at_tree(bool leads_session)
{
    struct usage alone[2], all[2];
    pid_t leaders[2] = {0, 0};
    int ready[2];
    char byte = 0;

    assert_int_equal(pipe(ready), 0);
    leaders[1] = fork();
    if (leaders[1] == 0) {
        if (leads_session)
            (void)setsid();
        if (fork() == 0)
            session_main(ready[1]);
        for (;;)
            (void)pause();
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    usage_read(leaders, 2, alone);
    usage_read_trees(leaders, 2, all);
    (void)kill(leaders[1], SIGKILL);
    assert_int_equal(waitpid(leaders[1], NULL, 0), leaders[1]);
    (void)close(ready[0]); /* The others die with it. */
    assert_int_equal(alone[1].n_procs, leads_session ? 1 : 0);
    assert_int_equal(all[1].n_procs, 3);
    assert_true(all[1].cpu_ms >= 40 && all[1].rss_bytes >= BYTES);
    assert_int_equal(all[0].n_procs, 0);
}

static void test_a_tree(void **state)
{
    (void)state;
    look_at_tree(true);
    look_at_tree(false); /* A worker on the user's terminal. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_session),
        cmocka_unit_test(test_a_tree),
    };

    return cmocka_run_group_tests_name("usage", tests, NULL, NULL);
}
