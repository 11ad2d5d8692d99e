/* Tests of fetch/part: the folder that is fetched into. */
#include "fetch/part.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int sync_error;

int __wrap_syncfs(int fd);
int __wrap_syncfs(int fd)
{
    (void)fd;
    errno = sync_error;
    return sync_error ? -1 : 0;
}

/* Only now some file systems say that the disk was full. */
static void test_a_disk_that_fails_at_the_end(void **state)
{
    char path[] = "/tmp/agent-test-XXXXXX";
    struct part_root r;
    struct err e = {.code = 0};

    (void)state;
    assert_non_null(mkdtemp(path));
    assert_int_equal(part_root_open(&r, path, &e), 0);
    assert_int_equal(part_root_sync(&r, &e), 0);
    sync_error = ENOSPC;
    assert_int_equal(part_root_sync(&r, &e), -ERR_RESOURCE);
    assert_non_null(strstr(e.text, "No space left on device"));
    assert_non_null(strstr(e.text, path));
    sync_error = EIO;
    assert_int_equal(part_root_sync(&r, &e), -ERR_RESOURCE);
    assert_non_null(strstr(e.text, "Input/output error"));
    part_root_close(&r);
    assert_int_equal(rmdir(path), 0);
}

static void test_folders_that_cannot_be_made(void **state)
{
    struct part_root r;
    struct err e = {.code = 0};

    (void)state;
    assert_int_equal(part_root_open(&r, "", &e), -ERR_RESOURCE);
    assert_int_equal(part_root_open(&r, "/dev/null/x/y", &e), -ERR_USAGE);
    assert_non_null(strstr(e.text, "Not a directory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_disk_that_fails_at_the_end),
        cmocka_unit_test(test_folders_that_cannot_be_made),
    };

    return cmocka_run_group_tests_name("fetch_part", tests, NULL, NULL);
}
