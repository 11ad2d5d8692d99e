/* status_socket: places, two agents, and what a dead one left. */
#include "agent/status_socket.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64], path[96], second[128];
static struct err e;

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/test_status.XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/a.sock", dir);
    (void)snprintf(second, sizeof second, "%s/a-%d.sock", dir, (int)getpid());
    return 0;
}

/* Nothing is left in the folder. */
static int tear_down(void **state)
{
    (void)state;
    return rmdir(dir);
}

static void open_at(struct status_socket *s, uint64_t seed)
{
    if (status_socket_open(path, seed, s, &e) != 0)
        fail_msg("%s", e.text);
}

/* What an agent leaves that is killed. */
static void leave_stale(const char *at)
{
    struct status_socket s;

    assert_int_equal(status_socket_open(at, 99, &s, &e), 0);
    assert_string_equal(s.path, at);
    (void)close(s.fd);
}

static bool answers(const char *at)
{
    autoclose int fd = status_socket_connect(at, false);

    return fd >= 0;
}

static void test_places(void **state)
{
    char at[STATUS_SOCKET_PATH_MAX], longest[200];

    (void)state;
    assert_true(status_socket_place(0, 7, NULL, at));
    assert_string_equal(at, "/run/agent.sock");
    assert_false(status_socket_place(1, 7, NULL, at));
    assert_false(status_socket_place(1, 7, "relative", at));
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    assert_false(status_socket_place(1, 7, longest, at));
    assert_true(status_socket_place(1, 7, "/run/user/7", at));
    assert_string_equal(at, "/run/user/7/agent.sock");
    assert_true(status_socket_place(2, 7, NULL, at));
    assert_string_equal(at, "/tmp/agent-7.sock");
    assert_false(status_socket_place(3, 7, NULL, at));
    status_socket_second("/tmp/agent-7.sock", 12, at);
    assert_string_equal(at, "/tmp/agent-7-12.sock");
    status_socket_second("plain", 12, at);
    assert_string_equal(at, "plain-12");
}

static void test_one(void **state)
{
    struct status_socket s;
    struct stat st;
    mode_t old = umask(0);

    (void)state;
    open_at(&s, 1);
    (void)umask(old);
    assert_string_equal(s.path, path);
    assert_string_equal(s.taken, "");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(fcntl(s.fd, F_GETFD), FD_CLOEXEC);
    assert_true(answers(path));
    status_socket_close(&s);
    assert_int_equal(s.fd, -1);
    assert_int_equal(access(path, F_OK), -1);
    status_socket_close(&s); /* Again is fine. */
}

static void test_a_live_one_is_not_taken(void **state)
{
    struct status_socket a, b, c;

    (void)state;
    open_at(&a, 1);
    open_at(&b, 2);
    assert_string_equal(b.path, second);
    assert_string_equal(b.taken, path);
    assert_true(answers(path) && answers(second));
    /* A third of this pid finds no name. */
    assert_true(status_socket_open(path, 3, &c, &e) < 0);
    assert_int_equal(c.fd, -1);
    status_socket_close(&a);
    assert_true(!answers(path) && answers(second));
    status_socket_close(&b);
}

static void test_a_stale_one_is_replaced(void **state)
{
    struct status_socket s;

    (void)state;
    leave_stale(path);
    assert_int_equal(status_socket_connect(path, true), -ECONNREFUSED);
    open_at(&s, 1);
    assert_string_equal(s.path, path);
    assert_true(answers(path));
    status_socket_close(&s);
    /* Of a second one, too. */
    open_at(&s, 1);
    leave_stale(second);
    {
        struct status_socket b;

        open_at(&b, 2);
        assert_string_equal(b.path, second);
        status_socket_close(&b);
    }
    status_socket_close(&s);
}

/* While another agent replaces it, it is let be. */
static void test_a_stale_one_under_lock(void **state)
{
    struct status_socket s;
    int lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    leave_stale(path);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    open_at(&s, 1);
    assert_string_equal(s.path, second);
    status_socket_close(&s);
    (void)close(lock);
    assert_int_equal(unlink(path), 0);
}

/* Many at once, a stale name: one alone gets it, and it answers. */
static void test_many_find_a_stale_one(void **state)
{
    enum { N = 16 };
    int go[2], ready[2], end[2], won = 0;
    pid_t pids[N];

    (void)state;
    leave_stale(path);
    assert_int_equal(pipe(go) + pipe(ready) + pipe(end), 0);
    for (int i = 0; i < N; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct status_socket s;
            char byte = 0;

            (void)close(end[1]);
            (void)!read(go[0], &byte, 1);
            if (status_socket_open(path, (uint64_t)i + 5, &s, &e) != 0)
                _exit(2);
            byte = strcmp(s.path, path) == 0;
            (void)!write(ready[1], &byte, 1);
            (void)!read(end[0], &byte, 1); /* Until all have theirs. */
            status_socket_close(&s);
            _exit(0);
        }
    }
    assert_int_equal(write(go[1], "................", N), N);
    for (int i = 0; i < N; i++) {
        char byte = 0;

        assert_int_equal(read(ready[0], &byte, 1), 1);
        won += byte;
    }
    assert_int_equal(won, 1);
    assert_true(answers(path));
    (void)close(end[1]);
    for (int i = 0; i < N; i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)close(go[i]);
        (void)close(ready[i]);
    }
    (void)close(end[0]);
}

/* A file, a folder, a link, a socket of another kind: not ours. */
static void test_what_is_not_ours_is_let_be(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct status_socket s;
        struct stat before, after;
        int fd = -1;

        if (kind == 0)
            fd = open(path, O_CREAT | O_WRONLY, 0600);
        else if (kind == 1)
            assert_int_equal(mkdir(path, 0700), 0);
        else if (kind == 2)
            assert_int_equal(symlink("/etc/passwd", path), 0);
        else
            assert_int_equal(mknod(path, S_IFIFO | 0600, 0), 0);
        mem_close_at(&fd);
        assert_int_equal(lstat(path, &before), 0);
        open_at(&s, 1);
        assert_string_equal(s.path, second);
        assert_int_equal(lstat(path, &after), 0);
        assert_true(before.st_ino == after.st_ino);
        status_socket_close(&s);
        assert_int_equal(kind == 1 ? rmdir(path) : unlink(path), 0);
    }
}

/* Another one has the name by now: it stays. */
static void test_only_the_own_file_is_removed(void **state)
{
    struct status_socket a, b;

    (void)state;
    open_at(&a, 1);
    assert_int_equal(unlink(path), 0);
    open_at(&b, 2);
    status_socket_close(&a);
    assert_true(answers(path));
    status_socket_close(&b);
}

/* Each step of an agent at which it may be killed. */
static void test_what_a_killed_one_leaves_is_forgotten(void **state)
{
    struct status_socket first, s;
    char temp[128];

    (void)state;
    leave_stale(path);
    status_socket_forget(path, 99, getpid());
    assert_int_equal(access(path, F_OK), -1);

    open_at(&first, 1);
    open_at(&s, 2);
    assert_string_equal(s.path, second);
    status_socket_forget(path, 2, getpid()); /* Both are alive. */
    assert_true(answers(path) && answers(second));
    (void)close(s.fd);
    status_socket_forget(path, 2, getpid());
    assert_true(answers(path));
    assert_int_equal(access(second, F_OK), -1);
    status_socket_close(&first);

    (void)snprintf(temp, sizeof temp, "%s/.agent-%08x", dir, 3);
    leave_stale(temp);
    status_socket_forget(path, 3, getpid());
    assert_int_equal(access(temp, F_OK), -1);
}

static void test_no_place(void **state)
{
    struct status_socket s;
    char at[128];

    (void)state;
    (void)snprintf(at, sizeof at, "%s/none/a.sock", dir);
    assert_int_equal(status_socket_open(at, 1, &s, &e), -ERR_RESOURCE);
    assert_non_null(strstr(e.text, "No such file"));
    assert_int_equal(s.fd, -1);
    memset(at, 'x', 100);
    at[100] = '\0';
    assert_int_equal(status_socket_open(at, 1, &s, &e), -ERR_RESOURCE);
}

int main(void)
{
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        IN_FOLDER(test_one),
        IN_FOLDER(test_a_live_one_is_not_taken),
        IN_FOLDER(test_a_stale_one_is_replaced),
        IN_FOLDER(test_a_stale_one_under_lock),
        IN_FOLDER(test_many_find_a_stale_one),
        IN_FOLDER(test_what_is_not_ours_is_let_be),
        IN_FOLDER(test_only_the_own_file_is_removed),
        IN_FOLDER(test_what_a_killed_one_leaves_is_forgotten),
        IN_FOLDER(test_no_place),
    };

    return cmocka_run_group_tests_name("status_socket", tests, NULL, NULL);
}
