/* facts: OOM counters, as they lie in the containers of several runtimes. */
#include "supervise/facts.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SELF "proc/self/cgroup"
#define MOUNT "sys/fs/cgroup/"
#define EVENTS "low 0\nhigh 0\nmax 31\noom 2\noom_kill %u\noom_group_kill 0\n"
#define CONTROL "oom_kill_disable 0\nunder_oom 0\noom_kill %u\n"

static char top[64];

static void write_file(const char *name, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void write_file(const char *name, const char *fmt, ...)
{
    char path[512];
    va_list ap;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", top, name);
    for (char *s = path + strlen(top) + 1; (s = strchr(s, '/')) != NULL; s++) {
        *s = '\0';
        (void)mkdir(path, 0755);
        *s = '/';
    }
    f = fopen(path, "w");
    assert_non_null(f);
    va_start(ap, fmt);
    (void)vfprintf(f, fmt, ap);
    va_end(ap);
    (void)fclose(f);
}

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(top, sizeof top, "/tmp/test-facts-XXXXXX");
    return mkdtemp(top) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static uint64_t kills(void)
{
    return facts_oom_of(top).kills;
}

static bool is_group(void)
{
    return facts_oom_group_of(top);
}

/* Kubernetes today: its own namespace, the group at the top. */
static void test_v2(void **state)
{
    (void)state;
    write_file(SELF, "0::/\n");
    write_file(MOUNT "memory.events", EVENTS, 3);
    assert_int_equal(kills(), 3);
    assert_false(is_group());
    write_file(MOUNT "memory.oom.group", "1\n");
    assert_true(is_group());
    write_file(MOUNT "memory.oom.group", "0\n");
    assert_false(is_group());
}

/* The host's tree is there: the counter of this group, not of the top. */
static void test_v2_of_the_host(void **state)
{
    (void)state;
    write_file(SELF, "0::/kubepods.slice/pod1/c1\n");
    write_file(MOUNT "memory.events", EVENTS, 99);
    write_file(MOUNT "kubepods.slice/pod1/c1/memory.events", EVENTS, 4);
    assert_int_equal(kills(), 4);
}

/* A kill for a limit above, or for the node, is counted here as well; `oom`
 * alone tells that it was this group's limit. */
static void test_whose_limit_it_was(void **state)
{
    (void)state;
    write_file(SELF, "0::/\n");
    write_file(MOUNT "memory.events", EVENTS, 3);
    assert_int_equal(facts_oom_of(top).at_limit, 2);
    write_file(MOUNT "memory.events", "oom 0\noom_kill 1\n");
    assert_int_equal(facts_oom_of(top).kills, 1);
    assert_int_equal(facts_oom_of(top).at_limit, 0);
    write_file(MOUNT "memory.events", "oom_kill 1\n"); /* It cannot be told. */
    assert_int_equal(facts_oom_of(top).at_limit, 1);
}

/* A group above takes all below it along. */
static void test_the_group_of_a_host(void **state)
{
    (void)state;
    write_file(SELF, "0::/pod/c1\n");
    write_file(MOUNT "pod/memory.oom.group", "1\n");
    write_file(MOUNT "pod/c1/memory.oom.group", "0\n");
    assert_true(is_group());
}

/* v1, the host's path in /proc, the container's folder at the mount. */
static void test_v1(void **state)
{
    (void)state;
    write_file(SELF, "9:name=systemd:/libpod_parent/libpod-1\n"
                       "4:memory:/libpod_parent/libpod-1\n3:cpuset:/x\n0::/\n");
    write_file(MOUNT "memory/memory.oom_control", CONTROL, 5);
    assert_int_equal(kills(), 5);
    write_file(SELF, "4:memory:/libpod_parent/libpod-1/inner\n0::/\n");
    write_file(MOUNT "memory/inner/memory.oom_control", CONTROL, 6);
    assert_int_equal(kills(), 6);
    write_file(SELF, "4:memory:/\n"); /* A namespace of its own. */
    assert_int_equal(kills(), 5);
    assert_int_equal(facts_oom_of(top).at_limit, 5);
    assert_false(is_group());
}

/* Nothing mounted, no /proc, files of nonsense. */
static void test_nothing_to_read(void **state)
{
    (void)state;
    assert_int_equal(kills(), 0);
    write_file(SELF, "4:memory:/a\n0::/b\n");
    assert_int_equal(kills(), 0);
    write_file(MOUNT "memory.events", "oom_kill x\n");
    assert_int_equal(kills(), 0);
    write_file(SELF, "noise\n::\n\n");
    write_file(MOUNT "memory.events", EVENTS, 7);
    assert_int_equal(kills(), 7); /* At the top is the best guess. */
}

static void why(const char *name, int exec_errno, const char *want)
{
    char path[256], out[FACTS_TEXT_MAX];

    (void)snprintf(path, sizeof path, "%s/%s", top, name);
    facts_exec(path, exec_errno, out, sizeof out);
    if (want[0] ? !strstr(out, want) : out[0])
        fail_msg("%s: '%s', wanted '%s'", name, out, want);
}

static void test_exec(void **state)
{
    (void)state;
    write_file("script", "#!/no/such\n");
    why("script", ENOENT, "its interpreter '/no/such' is missing");
    write_file("dos", "#!/bin/sh\r\n");
    why("dos", ENOENT, "carriage return");
    why("none", ENOENT, "in the image");
    write_file("empty", "%s", "");
    why("empty", ENOEXEC, "is empty");
    why("empty", EACCES, "no execute permission");
    write_file("text", "hello");
    why("text", ENOEXEC, "no #! line");
    why("", EACCES, "is a folder");
    assert_false(facts_ran_by_shell("/bin/sh", 2));
    assert_false(facts_ran_by_shell("no-such-command-here", 127));
}

/* Folders of PATH without a name are the current one. */
static void test_path(void **state)
{
    static const char *const paths[] = {"", ":/no/such", "/no/such:",
                                        "/no/such::/none"};
    const char *old = getenv("PATH");
    char was[4096], here[PATH_MAX], out[FACTS_TEXT_MAX];

    (void)state;
    (void)snprintf(was, sizeof was, "%s", old ? old : "");
    assert_non_null(getcwd(here, sizeof here));
    write_file("here", "hello");
    assert_int_equal(chdir(top), 0);
    for (unsigned i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_int_equal(setenv("PATH", paths[i], 1), 0);
        facts_exec("here", ENOEXEC, out, sizeof out);
        if (!strstr(out, "'./here' is no program"))
            fail_msg("PATH=%s: '%s'", paths[i], out);
    }
    assert_int_equal(setenv("PATH", was, 1), 0);
    assert_int_equal(chdir(here), 0);
}

int main(void)
{
#define CASE(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(test_v2), CASE(test_v2_of_the_host), CASE(test_v1),
        CASE(test_whose_limit_it_was), CASE(test_the_group_of_a_host),
        CASE(test_nothing_to_read), CASE(test_exec), CASE(test_path),
    };

    return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
