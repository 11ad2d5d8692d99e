/* proc: whose a process is, asked of real ones. Each is a `cat` that lives
 * until its stdin is closed; once it has echoed a byte its exec is done. */
#include "supervise/proc.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 30000
#define ROOM (4096 + 128) /* What proc.c reads of an environment at a time. */

static char cookie[64]; /* Of this run alone: others may test at a time. */
static char other[] = "HOME=/root";

struct life {
    pid_t pid, parent; /* parent: that forked it; 0: this process. */
    int in, out;
    uint64_t since; /* Ticks before it was started. */
};

static void __attribute__((noreturn))
become(char *const *argv, char *const *envp, const int *in, const int *out)
{
    if (dup2(in[0], 0) >= 0 && dup2(out[1], 1) >= 0)
        (void)execve(argv[0], argv, envp);
    _exit(127);
}

/* Wait until the process at the other end has echoed. */
static void meet(struct life *l)
{
    struct pollfd p = {.fd = l->out, .events = POLLIN};
    char c = 'x';

    assert_int_equal(write(l->in, &c, 1), 1);
    assert_int_equal(poll(&p, 1, WAIT_MS), 1);
    assert_int_equal(read(l->out, &c, 1), 1);
}

static void begin(struct life *l, char *const *argv, char *const *envp)
{
    int in[2], out[2];

    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    l->since = proc_now_ticks();
    l->pid = fork();
    assert_true(l->pid >= 0);
    if (l->pid == 0)
        become(argv, envp, in, out);
    (void)close(in[0]);
    (void)close(out[1]);
    l->in = in[1];
    l->out = out[0];
    meet(l);
}

static char cat_path[] = "/bin/cat";
static char *const cat[] = {cat_path, NULL};

static void begin_cat(struct life *l, char *first)
{
    char *const envp[] = {first, NULL};

    begin(l, cat, envp);
}

static void end(struct life *l)
{
    int status;

    (void)close(l->in);
    (void)close(l->out);
    assert_int_equal(waitpid(l->pid, &status, 0), l->pid);
}

static struct proc_query query(void)
{
    return (struct proc_query){.cookie = cookie};
}

static unsigned count(const struct proc_query *q)
{
    pid_t one = 0;
    unsigned n = proc_signal_left(q, 0, &one);

    assert_true(n == 0 || one > 0);
    return n;
}

static void test_cookie(void **state)
{
    struct proc_query q = query();
    struct life l;
    pid_t one = 0;

    (void)state;
    assert_int_equal(count(&q), 0);
    begin_cat(&l, cookie);
    assert_int_equal(proc_signal_left(&q, 0, &one), 1);
    assert_int_equal(one, l.pid);
    q.skip = &l.pid;
    q.n_skip = 1;
    assert_int_equal(count(&q), 0);
    q = query();
    q.groups = (const pid_t[]){getpgrp()}; /* Its group has the signal. */
    q.n_groups = 1;
    assert_int_equal(count(&q), 0);
    end(&l);
    q = query();
    assert_int_equal(count(&q), 0);
}

/* Wherever it lies in the environment, also over the edge of a piece. */
static void test_cookie_far_away(void **state)
{
    static const int shifts[] = {-64, -20, -5, -1, 0, 1, 5000, 100000};
    char *pad = malloc(ROOM + 100001);
    struct proc_query q = query();

    (void)state;
    assert_non_null(pad);
    for (unsigned i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
        size_t len = (size_t)(ROOM + shifts[i] - 1); /* Its NUL comes too. */
        char *const envp[] = {pad, cookie, NULL};
        struct life l;

        memset(pad, 'x', len);
        pad[1] = '=';
        pad[len] = '\0';
        begin(&l, cat, envp);
        if (count(&q) != 1)
            fail_msg("not found behind %zu bytes", len + 1);
        end(&l);
    }
    free(pad);
}

/* An exec session, a side-car: never ours, although it may be a child. */
static void test_other_environment(void **state)
{
    struct proc_query q = query();
    struct life l;

    (void)state;
    begin_cat(&l, other);
    q.self = getpid();
    q.since = 0;
    assert_int_equal(count(&q), 0);
    q.sessions = (const pid_t[]){getsid(0)}; /* But a worker's session is. */
    q.n_sessions = 1;
    assert_true(count(&q) >= 1);
    end(&l);
}

/* A daemon that overwrote its environment, adopted since the round began. */
static void test_cleared_environment(void **state)
{
    char *const none[] = {NULL};
    struct proc_query q = query();
    struct life l;
    pid_t one = 0;

    (void)state;
    begin(&l, cat, none);
    q.self = getpid();
    q.since = l.since;
    assert_int_equal(proc_signal_left(&q, 0, &one), 1);
    assert_int_equal(one, l.pid);
    q.since = l.since + 1000000; /* Older than the round. */
    assert_int_equal(count(&q), 0);
    q.since = 0;
    q.self = 0; /* Nobody adopts here. */
    assert_int_equal(count(&q), 0);
    q.self = getppid(); /* It has another parent. */
    q.since = l.since;
    assert_int_equal(count(&q), 0);
    end(&l);
}

/* The same, but really orphaned and adopted. */
static void test_adopted(void **state)
{
    int in[2], out[2], status;
    struct proc_query q = query();
    struct life l = {.since = proc_now_ticks()};
    pid_t middle, one = 0;

    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    middle = fork();
    assert_true(middle >= 0);
    if (middle == 0) {
        char *const none[] = {NULL};

        if (fork() == 0)
            become(cat, none, in, out);
        _exit(0);
    }
    assert_int_equal(waitpid(middle, &status, 0), middle);
    (void)close(in[0]);
    (void)close(out[1]);
    l.in = in[1];
    l.out = out[0];
    meet(&l);
    q.self = getpid();
    q.since = l.since;
    assert_int_equal(proc_signal_left(&q, SIGKILL, &one), 1);
    l.pid = one;
    end(&l);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

/* A child of ours is ours, whatever its environment says. */
static void test_child_of_ours(void **state)
{
    char sh[] = "/bin/sh", c[] = "-c",
         script[] = "/usr/bin/env -i HOME=/root /bin/cat; :";
    char *const argv[] = {sh, c, script, NULL};
    char *const envp[] = {cookie, NULL};
    struct proc_query q = query();
    struct life l;

    (void)state;
    begin(&l, argv, envp);
    assert_int_equal(count(&q), 2);
    end(&l);
}

static void test_signals(void **state)
{
    struct proc_query q = query();
    struct life l, spared;
    siginfo_t si;
    pid_t one;

    (void)state;
    begin_cat(&spared, other);
    begin_cat(&l, cookie);
    assert_int_equal(kill(l.pid, SIGSTOP), 0); /* It must see TERM even so. */
    assert_int_equal(waitid(P_PID, (id_t)l.pid, &si, WSTOPPED), 0);
    assert_int_equal(proc_signal_left(&q, SIGTERM, &one), 1);
    assert_int_equal(waitid(P_PID, (id_t)l.pid, &si, WEXITED | WNOWAIT), 0);
    assert_int_equal(si.si_status, SIGTERM);
    assert_int_equal(count(&q), 0); /* A zombie has left nothing. */
    end(&l);
    meet(&spared); /* It is alive. */
    end(&spared);
}

/* Its group got INT, which it catches, as dd does: it may still save what it
 * has. In another group, or where it does not catch that, TERM tells it. */
static void test_asked_by_another_signal(void **state)
{
    static char dd[] = "/bin/dd", bs[] = "bs=1", status[] = "status=none";
    struct proc_query q = query();
    struct sigaction usual = {.sa_handler = SIG_DFL};
    struct life saves, l;
    siginfo_t si;
    pid_t one, here = getpgrp(), elsewhere = getpid() + 1;

    (void)state;
    (void)sigaction(SIGINT, &usual, NULL); /* In the background it is not. */
    begin(&saves, (char *[]){dd, bs, status, NULL}, (char *[]){cookie, NULL});
    begin_cat(&l, cookie);
    q.asked = &here;
    q.n_asked = 1;
    q.asked_by = SIGINT;
    assert_int_equal(proc_signal_left(&q, SIGTERM, &one), 2);
    assert_int_equal(waitid(P_PID, (id_t)l.pid, &si, WEXITED | WNOWAIT), 0);
    assert_int_equal(si.si_status, SIGTERM);
    end(&l);
    meet(&saves);
    q.asked = &elsewhere;
    assert_int_equal(proc_signal_left(&q, SIGTERM, &one), 1);
    assert_int_equal(waitid(P_PID, (id_t)saves.pid, &si, WEXITED | WNOWAIT), 0);
    assert_int_equal(si.si_status, SIGTERM);
    end(&saves);
}

static void *wait_for_end(void *fd)
{
    char c;

    (void)!read(*(int *)fd, &c, 1);
    _exit(0);
}

/* Its main thread has ended, and ps calls it a zombie: it runs all the same. */
static void test_main_thread_has_ended(void **state)
{
    struct proc_query q = query();
    struct stat st;
    char path[64], line[512];
    int go[2];
    pid_t pid;
    bool is_zombie = false;

    (void)state;
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        pthread_t t;

        (void)close(go[1]);
        (void)setsid();
        if (pthread_create(&t, NULL, wait_for_end, &go[0]) == 0)
            pthread_exit(NULL);
        _exit(1);
    }
    (void)close(go[0]);
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    for (unsigned i = 0; i < 3000 && !is_zombie; i++) {
        FILE *f = fopen(path, "re");

        assert_non_null(f);
        assert_non_null(fgets(line, sizeof line, f));
        (void)fclose(f);
        is_zombie = strstr(line, ") Z ") != NULL;
        (void)usleep(10000);
    }
    assert_true(is_zombie);
    q.sessions = &pid;
    q.n_sessions = 1;
    assert_int_equal(count(&q), 1);
    (void)close(go[1]);
    assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0},
                            WEXITED | WNOWAIT), 0);
    assert_int_equal(count(&q), 0); /* Now it is one. */
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_other_children(void **state)
{
    struct life a, b;

    (void)state;
    assert_false(proc_has_other_children(NULL, 0));
    begin_cat(&a, other);
    assert_true(proc_has_other_children(NULL, 0));
    assert_false(proc_has_other_children(&a.pid, 1));
    begin_cat(&b, other);
    assert_true(proc_has_other_children(&a.pid, 1));
    assert_false(proc_has_other_children((const pid_t[]){a.pid, b.pid}, 2));
    end(&a);
    end(&b);
    assert_false(proc_has_other_children(NULL, 0));
}

static void test_wchan(void **state)
{
    char what[64] = "x";

    (void)state;
    proc_wchan(-1, what, sizeof what); /* No such process. */
    assert_string_equal(what, "");
    proc_wchan(getpid(), what, sizeof what); /* It runs. */
    assert_string_equal(what, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cookie),
        cmocka_unit_test(test_cookie_far_away),
        cmocka_unit_test(test_other_environment),
        cmocka_unit_test(test_cleared_environment),
        cmocka_unit_test(test_adopted),
        cmocka_unit_test(test_child_of_ours),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_asked_by_another_signal),
        cmocka_unit_test(test_main_thread_has_ended),
        cmocka_unit_test(test_other_children),
        cmocka_unit_test(test_wchan),
    };

    (void)snprintf(cookie, sizeof cookie, "TEST_PROC_ROUND=%d-%llu",
                   (int)getpid(), (unsigned long long)proc_now_ticks());
    (void)alarm(120); /* Each wait ends, at the latest so. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
