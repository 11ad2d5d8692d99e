/* scratch: agents' own folders, those of dead agents, and who else is there. */
#include "agent/scratch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];
static const struct scratch own = {.id = 1, .job = 7, .lock_fd = -1};

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof root, "/tmp/test_scratch.XXXXXX");
    assert_non_null(mkdtemp(root));
    return 0;
}

/* Nothing may be left but what the test removes. */
static int tear_down(void **state)
{
    (void)state;
    return rmdir(root);
}

static const char *folder(uint32_t job, uint64_t id)
{
    static char path[128];

    (void)snprintf(path, sizeof path, "%s/agent-run-%08x-%016llx", root, job,
                   (unsigned long long)id);
    return path;
}

static bool there(uint32_t job, uint64_t id)
{
    return access(folder(job, id), F_OK) == 0;
}

/* The folder of an agent that lives until the descriptor is closed. */
static int live(uint32_t job, uint64_t id)
{
    int fd;

    assert_int_equal(mkdir(folder(job, id), 0700), 0);
    fd = open(folder(job, id), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    return fd;
}

static void test_jobs(void **state)
{
    uint32_t a = scratch_job("j", "h:1", 2, 5);

    (void)state;
    assert_int_equal(a, scratch_job("j", "h:1", 4, 6));
    assert_int_not_equal(a, scratch_job("k", "h:1", 2, 5));
    assert_int_not_equal(a, scratch_job("j", "h:2", 2, 5));
    assert_int_not_equal(scratch_job("jh", ":1", 2, 5),
                         scratch_job("j", "h:1", 2, 5));
    /* Alone: two of them are two jobs. */
    assert_int_not_equal(scratch_job("none", "127.0.0.1:29400", 1, 5),
                         scratch_job("none", "127.0.0.1:29400", 1, 6));
}

static void test_dead_and_alive(void **state)
{
    char inside[160];
    int other, same;

    (void)state;
    assert_int_equal(mkdir(folder(8, 2), 0700), 0);
    (void)snprintf(inside, sizeof inside, "%s/attempt_0", folder(8, 2));
    assert_int_equal(mkdir(inside, 0700), 0);
    assert_int_equal(mkdir(folder(7, 1), 0700), 0); /* Its own. */
    assert_true(scratch_sweep(&own, root, 60)); /* Too young to tell. */
    assert_true(there(8, 2));
    assert_false(scratch_sweep(&own, root, 0));
    assert_false(there(8, 2));
    assert_true(there(7, 1));

    same = live(7, 3); /* Another pod of the same job. */
    assert_false(scratch_sweep(&own, root, 0));
    other = live(9, 4);
    assert_true(scratch_sweep(&own, root, 0));
    assert_true(there(7, 3) && there(9, 4));
    (void)close(other);
    assert_false(scratch_sweep(&own, root, 0));
    assert_false(there(9, 4));
    (void)close(same);
    assert_false(scratch_sweep(&own, root, 0));
    assert_false(there(7, 3));
    assert_int_equal(rmdir(folder(7, 1)), 0);
}

static void test_what_is_no_folder_of_an_agent(void **state)
{
    char link[128];

    (void)state;
    (void)snprintf(link, sizeof link, "%s/agent-run-link", root);
    assert_int_equal(symlink("/tmp", link), 0);
    assert_int_equal(mkdir(folder(8, 2), 0700), 0);
    if (geteuid() == 0)
        assert_int_equal(chown(folder(8, 2), 12345, 12345), 0);
    assert_false(scratch_sweep(&own, root, 0));
    assert_int_equal(there(8, 2), geteuid() == 0);
    (void)rmdir(folder(8, 2));
    assert_int_equal(unlink(link), 0);
}

static void test_from_the_start_to_the_end(void **state)
{
    struct scratch s = {.id = 0xabcdef0000000000u + (uint64_t)getpid(),
                        .job = 3, .lock_fd = -1};
    char path[SCRATCH_PATH_MAX], inside[SCRATCH_PATH_MAX + 16];

    (void)state;
    scratch_lock(&s); /* Not made yet: nothing. */
    assert_int_equal(s.lock_fd, -1);
    scratch_make(&s);
    assert_true(s.path[0]);
    (void)snprintf(path, sizeof path, "%s", s.path);
    scratch_make(&s); /* Again is fine. */
    assert_string_equal(path, s.path);
    scratch_lock(&s);
    assert_true(s.lock_fd >= 0);
    scratch_end(&s);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(s.lock_fd, -1);

    scratch_make(&s); /* Then it is killed. */
    (void)snprintf(inside, sizeof inside, "%s/attempt_0", s.path);
    assert_int_equal(mkdir(inside, 0700), 0);
    s.path[0] = '\0'; /* The guard may not know it. */
    scratch_forget(&s);
    assert_int_equal(access(path, F_OK), -1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_jobs),
        TEST(test_dead_and_alive),
        TEST(test_what_is_no_folder_of_an_agent),
        TEST(test_from_the_start_to_the_end),
    };

    return cmocka_run_group_tests_name("scratch", tests, NULL, NULL);
}
