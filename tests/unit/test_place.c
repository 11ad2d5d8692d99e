/* place: nothing gets out of the folder, whatever the path and the links. */
#include "dataset/place.h"

#include <errno.h>
#include <fcntl.h>
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

struct target {
    const char *path, *target;
    bool good;
};

static const struct target targets[] = {
    {"l", "a", true},          {"l", "a/b/..", true},
    {"l", ".", true},          {"l", "./././", true},
    {"l", "", false},          {"l", "/a", false},
    {"l", "..", false},        {"l", "a/../..", false},
    {"d/l", "..", true},       {"d/l", "../a", true},
    {"d/l", "../..", false},   {"d/l", "..//..//a", false},
    {"d/l", "..a/..", true},   {"d/e/l", "../../x", true},
    {"d/e/l", "../../../x", false}, {"l", "a/b/../../../c", false},
};

static void targets_of_links(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        const struct target *t = &targets[i];

        if (!place_target_fault(t->path, t->target) != t->good)
            fail_msg("%s -> %s", t->path, t->target);
    }
}

static int open_tmp(char *path)
{
    assert_non_null(mkdtemp(path));
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void nothing_goes_through_a_link(void **state)
{
    char path[] = "/tmp/agent-test-XXXXXX", other[] = "/tmp/agent-test-XXXXXX";
    int root = open_tmp(path), out = open_tmp(other), fd;
    struct place p;
    struct stat st;

    (void)state;
    assert_true(root >= 0 && out >= 0);
    assert_int_equal(symlinkat(other, root, "link"), 0);
    place_start(&p, root);
    fd = place_file(&p, "a/b/file", false);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(place_file(&p, "a/b/file", false), -EEXIST);
    assert_int_equal(place_file(&p, "link", false), -EEXIST);
    assert_true(place_file(&p, "link/file", false) < 0);
    assert_true(place_folder(&p, "link") < 0);
    assert_true(place_folder(&p, "link/folder") < 0);
    assert_true(place_link(&p, "link/l", "x") < 0);
    assert_true(place_name(&p, "link/n", "a/b/file") < 0);
    assert_true(place_name(&p, "n", "link/x") < 0);
    assert_int_equal(place_name(&p, "n", "link"), -ENOENT);
    assert_int_equal(place_file(&p, "a/b/file/x", false), -ENOTDIR);
    assert_int_equal(place_name(&p, "c/n", "a/b/file"), 0);
    assert_int_equal(fstatat(root, "c/n", &st, 0), 0);
    assert_int_equal(st.st_nlink, 2);
    assert_int_equal(place_remove(&p, "c/n"), 0);
    place_end(&p);
    assert_int_equal(unlinkat(out, ".", AT_REMOVEDIR), -1);
    assert_int_equal(rmdir(other), 0); /* It is empty. */
    assert_int_equal(unlinkat(root, "a/b/file", 0), 0);
    assert_int_equal(unlinkat(root, "a/b", AT_REMOVEDIR), 0);
    assert_int_equal(unlinkat(root, "a", AT_REMOVEDIR), 0);
    assert_int_equal(unlinkat(root, "c", AT_REMOVEDIR), 0);
    assert_int_equal(unlinkat(root, "link", 0), 0);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(close(root) | close(out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_of_links),
        cmocka_unit_test(nothing_goes_through_a_link),
    };

    return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
