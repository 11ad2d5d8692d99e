/* child: what a worker gets, and what is known of its end. */
#include "supervise/child.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 30000
#define TEXT_MAX 4096

static char path_var[] = "PATH=/usr/local/bin:/usr/bin:/bin";
static char *const env[] = {path_var, NULL};

struct end { /* Of a child, with all that it wrote. */
    int code, signo, exec_errno;
    char out[TEXT_MAX], err[TEXT_MAX];
};

/* All of a pipe, to its end. */
static void drain(int fd, char *buf)
{
    size_t len = 0;

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n;

        assert_int_equal(poll(&p, 1, WAIT_MS), 1);
        n = read(fd, buf + len, TEXT_MAX - 1 - len);
        assert_true(n >= 0);
        if (n == 0)
            break;
        len += (size_t)n;
        assert_true(len < TEXT_MAX - 1);
    }
    buf[len] = '\0';
    (void)close(fd);
}

static void spawn(char *const *argv, struct child *ret)
{
    struct err e = {0};
    autoclose int in = child_open_stdin();
    struct child_spec spec = {.argv = argv, .envp = env, .stdin_fd = in,
                              .ignored = child_ignored()};

    assert_true(in >= 0);
    if (child_spawn(&spec, ret, &e) != 0)
        fail_msg("%s", e.text);
}

static void run(char *const *argv, struct end *ret)
{
    struct child c;
    int status;

    spawn(argv, &c);
    drain(c.out_fd, ret->out);
    drain(c.err_fd, ret->err);
    assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
    ret->code = child_code(status, &ret->signo);
    ret->exec_errno = child_exec_errno(&c.exec_fd);
    assert_int_equal(c.exec_fd, -1); /* Closed; again does no harm. */
    assert_int_equal(child_exec_errno(&c.exec_fd), 0);
}

static void run_sh(const char *script, struct end *ret)
{
    char text[512];
    char sh[] = "/bin/sh", c[] = "-c";
    char *const argv[] = {sh, c, text, NULL};

    assert_true(snprintf(text, sizeof text, "%s", script) <
                (int)sizeof text);
    run(argv, ret);
}

static void test_ends(void **state)
{
    static const struct {
        const char *script;
        int code, signo;
    } rows[] = {
        {"exit 0", 0, 0},
        {"exit 7", 7, 0},
        {"exit 255", 255, 0},
        {"kill -TERM $$", 143, SIGTERM},
        {"kill -KILL $$", 137, SIGKILL},
        {"exit 143", 143, 0}, /* Of its own will. */
    };
    struct end end;

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        run_sh(rows[i].script, &end);
        assert_int_equal(end.code, rows[i].code);
        assert_int_equal(end.signo, rows[i].signo);
        assert_int_equal(end.exec_errno, 0);
    }
}

static void test_streams(void **state)
{
    struct end end;

    (void)state;
    run_sh("echo one; echo two >&2; echo three", &end);
    assert_string_equal(end.out, "one\nthree\n");
    assert_string_equal(end.err, "two\n");
}

static void make_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    (void)close(fd);
}

/* A failed exec is a death with a shell's code, and the reason is known. */
static void test_exec_fails(void **state)
{
    char dir[] = "/tmp/test_child.XXXXXX", plain[64], orphan[64];
    char missing[] = "no-such-program-anywhere", empty[] = "";
    char slashes[] = "/no/such/program";
    struct {
        char *name;
        int code, why;
    } rows[] = {
        {missing, 127, ENOENT},   {slashes, 127, ENOENT},
        {empty, 127, ENOENT},     {plain, 126, EACCES},
        {dir, 126, EACCES},       {orphan, 127, ENOENT},
    };
    struct end end;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(plain, sizeof plain, "%s/plain", dir);
    (void)snprintf(orphan, sizeof orphan, "%s/orphan", dir);
    make_file(plain, "not executable\n", 0600);
    make_file(orphan, "#!/no/such/interpreter\n", 0700);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *const argv[] = {rows[i].name, NULL};

        run(argv, &end);
        assert_int_equal(end.code, rows[i].code);
        assert_int_equal(end.signo, 0);
        assert_int_equal(end.exec_errno, rows[i].why);
        assert_string_equal(end.out, "");
        assert_string_equal(end.err, "");
    }
    (void)unlink(plain);
    (void)unlink(orphan);
    (void)rmdir(dir);
}

static void test_only_three_descriptors(void **state)
{
    int low = open("/dev/null", O_RDONLY); /* Inheritable, as a launcher's */
    int high = fcntl(low, F_DUPFD, 200);   /* may be. */
    struct end end;

    (void)state;
    assert_true(low > 2 && high >= 200);
    run_sh("for n in 0 1 2 3 4 5 6 7 8 9 10 11 12 200 201; do "
           "[ -e /proc/self/fd/$n ] && echo $n; done; :", &end);
    assert_string_equal(end.out, "0\n1\n2\n");
    assert_true(fcntl(high, F_GETFD) >= 0); /* Not closed here. */
    (void)close(low);
    (void)close(high);
}

static void test_own_session(void **state)
{
    int pid, ppid, group, session;
    struct end end;

    (void)state;
    run_sh("read -r a b c d e f g </proc/self/stat; echo $a $d $e $f", &end);
    assert_int_equal(sscanf(end.out, "%d %d %d %d", &pid, &ppid, &group,
                            &session), 4);
    assert_int_equal(ppid, getpid());
    assert_int_equal(group, pid);
    assert_int_equal(session, pid);
}

/* agent blocks all signals and may have been started with some ignored. */
static void test_default_signals(void **state)
{
    static const char *const want[] = {"\nSigBlk:\t0000000000000000\n",
                                       "\nSigIgn:\t0000000000000000\n"};
    char cat[] = "cat", file[] = "/proc/self/status";
    char *const argv[] = {cat, file, NULL};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, was;
    sigset_t all, old;
    struct end end;

    (void)state;
    sigfillset(&all);
    assert_int_equal(sigprocmask(SIG_SETMASK, &all, &old), 0);
    assert_int_equal(sigaction(SIGHUP, &ignore, &was), 0);
    run(argv, &end);
    assert_int_equal(sigaction(SIGHUP, &was, NULL), 0);
    assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_non_null(strstr(end.out, want[i]));
}

static void test_stdin_is_at_its_end(void **state)
{
    struct end end;

    (void)state;
    run_sh("readlink /proc/self/fd/0; cat; echo end", &end);
    assert_string_equal(end.out, "/dev/null\nend\n");
}

static void test_environment(void **state)
{
    struct end end;

    (void)state;
    assert_int_equal(setenv("TEST_CHILD_OURS", "1", 1), 0);
    run_sh("echo ${TEST_CHILD_OURS-unset}; echo $PATH", &end);
    assert_int_equal(unsetenv("TEST_CHILD_OURS"), 0);
    assert_string_equal(end.out, "unset\n/usr/local/bin:/usr/bin:/bin\n");
}

/* Killed with the process that started it, were that by SIGKILL. */
static void test_dies_with_its_parent(void **state)
{
    char sleeper[] = "sleep", time[] = "600";
    char *const argv[] = {sleeper, time, NULL};
    int fds[2], status, signo;
    struct child c;
    pid_t pid, grandchild = 0;

    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        spawn(argv, &c);
        (void)!write(fds[1], &c.pid, sizeof c.pid);
        (void)kill(getpid(), SIGKILL);
    }
    assert_int_equal(read(fds[0], &grandchild, sizeof grandchild),
                     sizeof grandchild);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(waitpid(grandchild, &status, 0), grandchild);
    assert_int_equal(child_code(status, &signo), 137);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* The lowest free descriptor tells whether any were left open. */
static int lowest_free(void)
{
    int fd = dup(0);

    assert_true(fd >= 0);
    (void)close(fd);
    return fd;
}

static void test_no_descriptors_left(void **state)
{
    char sh[] = "/bin/sh";
    char *const argv[] = {sh, NULL};
    struct child_spec spec = {.argv = argv, .envp = env};
    struct rlimit was, few;
    int before = lowest_free();
    struct child c;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    for (int n = 0; n < 6; n++) { /* The n-th of six descriptors fails. */
        struct err e = {0};
        int r;

        few = was;
        few.rlim_cur = (rlim_t)(before + n);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        r = child_spawn(&spec, &c, &e);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
        assert_int_equal(r, -ERR_RESOURCE);
        assert_int_equal(e.code, ERR_RESOURCE);
        assert_string_equal(e.text, "pipe: Too many open files (descriptor "
                                    "limit: ulimit -n)");
        assert_int_equal(lowest_free(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_exec_fails),
        cmocka_unit_test(test_only_three_descriptors),
        cmocka_unit_test(test_own_session),
        cmocka_unit_test(test_default_signals),
        cmocka_unit_test(test_stdin_is_at_its_end),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_dies_with_its_parent),
        cmocka_unit_test(test_no_descriptors_left),
    };

    /* A folder that may not be read makes EACCES of "not found". */
    (void)putenv(path_var);
    (void)alarm(120); /* Each wait ends, at the latest so. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
