/* stage: what is wrong with a source, and how it is told. */
#include "dataset/tree.h"

#include "stage_fixture.h"

#define HELLO "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

static void one_file(struct fixture *f)
{
    add_file(f, "a", "hello", "");
    write_manifest(f);
}

/* Nothing that looks finished, nothing half. */
static void assert_stage_empty(struct fixture *f)
{
    assert_int_equal(count_names(f->stage, "set@"), 0);
    assert_int_equal(count_names(f->stage, ".set@"), 1); /* The lock. */
}

static void flipped_byte(void **state)
{
    struct fixture *f = *state;
    char hex[DIGEST_HEX_MAX], want[ERR_TEXT_MAX];

    one_file(f);
    put_file(f->src, "a", "jello", 5);
    sha256_hex("jello", 5, hex);
    (void)snprintf(want, sizeof want,
                   "'T/src/a' has sha256 %s, the manifest says " HELLO, hex);
    assert_fault(f, run_stage(f), ERR_DATA, want);
    assert_stage_empty(f);
    assert_fault(f, run_with(f, false, false), ERR_DATA, want);
}

static void short_and_long_file(void **state)
{
    struct fixture *f = *state;

    one_file(f);
    put_file(f->src, "a", "hell", 4);
    assert_fault(f, run_stage(f), ERR_DATA,
                 "'T/src/a' has 4 bytes, the manifest says 5: the copy is not "
                 "complete");
    assert_stage_empty(f);
    put_file(f->src, "a", "hello\n", 6);
    assert_fault(f, run_stage(f), ERR_DATA,
                 "'T/src/a' has 6 bytes, the manifest says 5");
}

static void lfs_pointer(void **state)
{
    static const char pointer[] =
        "version https://git-lfs.github.com/spec/v1\n"
        "oid sha256:" HELLO "\nsize 5\n";
    struct fixture *f = *state;

    one_file(f);
    put_file(f->src, "a", pointer, sizeof pointer - 1);
    assert_fault(f, run_stage(f), ERR_DATA,
                 "'T/src/a' has 126 bytes, the manifest says 5: it is a Git "
                 "LFS pointer, not the data: run 'git lfs pull' where the "
                 "source is made");
}

static void missing_things(void **state)
{
    struct fixture *f = *state;

    assert_fault(f, run_stage(f), ERR_NODATA,
                 "manifest 'T/m.json' is missing");
    one_file(f);
    sh("rm %s/a", f->src);
    assert_fault(f, run_stage(f), ERR_NODATA, "'T/src/a' is missing");
    assert_fault(f, run_with(f, false, false), ERR_NODATA,
                 "'T/src/a' is missing");
    sh("rmdir %s", f->src);
    assert_fault(f, run_stage(f), ERR_NODATA,
                 "source folder 'T/src' is missing");
    put_file(f->top, "src", "", 0);
    assert_fault(f, run_stage(f), ERR_NODATA, "source 'T/src' is no folder");
    assert_stage_empty(f);
}

static void no_regular_file(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];

    one_file(f);
    sh("cd %s; rm a; mkfifo a", f->src);
    assert_fault(f, run_stage(f), ERR_DATA,
                 "'T/src/a' is a pipe, no regular file");
    sh("cd %s; rm a; mkdir a", f->src);
    assert_fault(f, run_stage(f), ERR_DATA,
                 "'T/src/a' is a folder, no regular file");
    sh("rmdir %s/a", f->src);
    (void)snprintf(path, sizeof path, "%s/a", f->src);
    assert_int_equal(mknod(path, S_IFSOCK | 0600, 0), 0);
    assert_fault(f, run_stage(f), ERR_DATA, "'T/src/a' is no regular file");
    sh("rm %s; mkfifo %s", f->manifest, f->manifest);
    assert_fault(f, run_stage(f), ERR_DATA,
                 "manifest 'T/m.json' is no regular file");
    sh("rm %s; mkdir %s", f->manifest, f->manifest);
    assert_fault(f, run_stage(f), ERR_DATA,
                 "manifest 'T/m.json' is a folder, and no BagIt bag: give the "
                 "manifest file in it");
}

static void links_that_leave(void **state)
{
    static const char *const targets[] = {"../out", "/etc/hostname",
                                          "../src/../out", "sub/../../out"};
    struct fixture *f = *state;

    one_file(f);
    put_file(f->top, "out", "hello", 5);
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        sh("cd %s; mkdir -p sub; ln -sf %s a", f->src, targets[i]);
        assert_fault(f, run_stage(f), ERR_DATA,
                     "'T/src/a' is refused: a link on its way leaves the "
                     "source folder: copy the file into it, or give a "
                     "--source that holds both");
    }
    assert_stage_empty(f);
    sh("cd %s; ln -sf a a", f->src);
    assert_fault(f, run_stage(f), ERR_DATA,
                 "'T/src/a' is refused: a loop of links");
    sh("cd %s; ln -sf nothing a", f->src);
    assert_fault(f, run_stage(f), ERR_NODATA, "'T/src/a' is missing");
}

/* A ConfigMap volume, as kubelet makes it, and its manifest in it. */
static void links_that_stay(void **state)
{
    struct fixture *f = *state;

    one_file(f);
    sh("cd %s; mkdir ..2026_01_01; mv a ../m.json ..2026_01_01;"
       " ln -s ..2026_01_01 ..data; ln -s ..data/a a;"
       " ln -s ..data/m.json m.json",
       f->src);
    (void)snprintf(f->manifest, sizeof f->manifest, "%s/m.json", f->src);
    assert_int_equal(run_stage(f), 0);
    assert_content(f->r.dir, "a", "hello", 5);
    assert_int_equal(run_with(f, false, false), 0);
    assert_string_equal(f->r.dir, f->src);
}

/* openat2 and the walk that stands in for it must not differ. */
static void walk_is_like_openat2(void **state)
{
    static const char *const paths[] = {
        "f",        "d/f",      "d/up",     "d/out",  "abs",   "loop",
        "none",     "d/none",   "todir/f",  "todir",  "chain", "d/../f",
        "f/x",      "d",        "dangling", "dot/f",  "far",   "../src/f",
        "d/e/back", "selfdir/f",
    };
    struct fixture *f = *state;
    int root;

    sh("cd %s; mkdir -p d/e; echo 1 >f; echo 2 >d/f; ln -s ../f d/up;"
       " ln -s ../../out d/out; ln -s /etc/hostname abs; ln -s loop loop;"
       " ln -s d todir; ln -s todir/up chain; ln -s none dangling;"
       " ln -s ./d/. dot; ln -s d/e/../../../src/f far;"
       " ln -s ../../todir/up d/e/back; ln -s . selfdir; echo 3 >../out",
       f->src);
    root = open(f->src, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(root >= 0);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        int a, b, error_a, error_b;
        struct stat st_a = {.st_ino = 0}, st_b = {.st_ino = 0};

        a = tree_open_beneath(root, paths[i], O_RDONLY);
        error_a = a < 0 ? errno : 0;
        b = tree_walk_beneath(root, paths[i], O_RDONLY);
        error_b = b < 0 ? errno : 0;
        if (error_a != error_b)
            print_error("%s: %d, %d\n", paths[i], error_a, error_b);
        assert_int_equal(error_a, error_b);
        if (a < 0)
            continue;
        assert_int_equal(fstat(a, &st_a), 0);
        assert_int_equal(fstat(b, &st_b), 0);
        assert_int_equal(st_a.st_ino, st_b.st_ino);
        (void)close(a);
        (void)close(b);
    }
    (void)close(root);
}

/* What it cannot follow is never taken for a link to nothing. */
static void walk_says_what_is_too_deep(void **state)
{
    struct fixture *f = *state;
    char path[2 * 200 + 8];
    int root, fd;

    for (unsigned i = 0; i < 200; i++)
        memcpy(path + 2 * (size_t)i, "d/", 2);
    path[399] = '\0';
    sh("mkdir -p %s/%s", f->src, path);
    root = open(f->src, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = openat(root, path, O_PATH | O_CLOEXEC);
    assert_true(root >= 0 && fd >= 0);
    (void)close(fd);
    assert_int_equal(tree_walk_beneath(root, path, O_PATH), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    (void)close(root);
}

/* Sums have no sizes: those of the files are held to the same limits. */
static void larger_than_a_file_may_be(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];
    int fd;

    one_file(f);
    put_file(f->top, "m.json", HELLO "  a\n", sizeof HELLO + 3);
    assert_int_equal(run_with(f, false, false), 0);
    (void)snprintf(path, sizeof path, "%s/a", f->src);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    if (ftruncate(fd, (off_t)1 << 51) < 0) {
        (void)close(fd);
        skip(); /* On a file system that holds no such file. */
    }
    (void)close(fd);
    assert_fault(f, run_stage(f), ERR_DATA,
                 "'T/src/a' is over the limit of 1 PiB");
}

#define TEST(fn)                                                               \
    cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(flipped_byte),      TEST(short_and_long_file),
        TEST(lfs_pointer),       TEST(missing_things),
        TEST(no_regular_file),   TEST(links_that_leave),
        TEST(links_that_stay),   TEST(walk_is_like_openat2),
        TEST(walk_says_what_is_too_deep), TEST(larger_than_a_file_may_be),
    };

    (void)umask(022);
    return cmocka_run_group_tests_name("stage_source", tests, NULL, NULL);
}
