/* shm: what is removed of a folder, and what is let be. */
#include "supervise/shm.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];
static struct shm_start start;
static struct shm_swept swept;
static pid_t nobody; /* A pid that is nobody's any more. */

/* Beside the other users of /dev/shm, in a folder of its own. */
static int set_up(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "%s/test_shm.XXXXXX",
                   access(SHM_DIR, W_OK) == 0 ? SHM_DIR : "/tmp");
    assert_non_null(mkdtemp(dir));
    memset(&start, 0, sizeof start);
    nobody = fork();
    if (nobody == 0)
        _exit(0);
    assert_int_equal(waitpid(nobody, NULL, 0), nobody);
    return 0;
}

static const char *at(const char *name) /* Two are good at a time. */
{
    static char path[2][128];
    static unsigned turn;

    turn ^= 1;
    (void)snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static int tear_down(void **state)
{
    DIR *d = opendir(dir);
    const struct dirent *ent;

    (void)state;
    free(start.old);
    while (d && (ent = readdir(d)) != NULL)
        (void)unlinkat(dirfd(d), ent->d_name,
                       ent->d_type == DT_DIR ? AT_REMOVEDIR : 0);
    if (d)
        (void)closedir(d);
    return rmdir(dir);
}

static void make(const char *name)
{
    int fd = open(at(name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, dir, sizeof dir), sizeof dir);
    (void)close(fd);
}

static bool there(const char *name)
{
    struct stat st;

    return lstat(at(name), &st) == 0;
}

static void begin(bool old_kernel)
{
    assert_int_equal(mkdir(at("mark"), 0700), 0);
    shm_begin(&start, dir, at("mark"), old_kernel);
    assert_false(start.blind);
}

static void sweep(bool shared)
{
    shm_sweep(&start, dir, shared, &swept);
}

static void test_names(void **state)
{
    static const struct {
        const char *name;
        bool gone, gone_shared;
    } cases[] = {
        {"nccl-aB3xYz", true, true},
        {"ucx_shm_posix_1a2b", true, true},
        {"vader_segment.h.0.1.2", true, true},
        {"sem.mp-abc", true, false},
        {"psm_0a1b2c3d", true, false},
        {"torch_left", true, false},
        {"cuda.shm.0.1f.1", true, false},
        {"nccl", false, false},
        {"my-nccl-x", false, false},
        {"dataset.bin", false, false},
        {".nccl-x", false, false},
        {"agent-run-x", false, false},
    };

    (void)state;
    begin(false);
    for (unsigned shared = 0; shared < 2; shared++) {
        unsigned want = 0;

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            if (!there(cases[i].name))
                make(cases[i].name);
            want += shared ? cases[i].gone_shared : cases[i].gone;
        }
        sweep(shared);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            if (there(cases[i].name) ==
                (shared ? cases[i].gone_shared : cases[i].gone))
                fail_msg("%s, shared %u", cases[i].name, shared);
        assert_int_equal(swept.n, want);
        assert_true(swept.bytes >= want);
    }
}

static void test_the_pid_in_a_name(void **state)
{
    char mine[64], dead[64], kmp[64];

    (void)state;
    begin(false);
    (void)snprintf(mine, sizeof mine, "torch_%d_1_0", (int)getpid());
    (void)snprintf(dead, sizeof dead, "torch_%d_1_0", (int)nobody);
    (void)snprintf(kmp, sizeof kmp, "__KMP_REGISTERED_LIB_%d_0",
                   (int)getpid());
    make(mine);
    make(dead);
    make(kmp);
    sweep(false);
    assert_true(there(mine));
    assert_false(there(dead));
    assert_true(there(kmp));
    assert_int_equal(swept.n, 1);
    assert_string_equal(swept.name, dead);
}

static void test_what_was_there_stays(void **state)
{
    (void)state;
    for (unsigned old_kernel = 0; old_kernel < 2; old_kernel++) {
        make("nccl-old");
        free(start.old);
        memset(&start, 0, sizeof start);
        begin(old_kernel);
        make("nccl-new");
        /* Used since, but not made. */
        autoclose int fd = open(at("nccl-old"), O_WRONLY | O_CLOEXEC);
        assert_int_equal(write(fd, "x", 1), 1);
        (void)close(steal_fd(&fd));
        sweep(false);
        assert_true(there("nccl-old"));
        assert_false(there("nccl-new"));
        (void)unlink(at("nccl-old"));
        (void)rmdir(at("mark"));
    }
}

static void test_nothing_before_the_start(void **state)
{
    (void)state;
    make("nccl-x");
    sweep(false); /* Without shm_begin(). */
    assert_true(there("nccl-x"));
    for (unsigned i = 0; i <= SHM_OLD_MAX; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, "f%u", i);
        (void)close(open(at(name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    }
    shm_begin(&start, dir, dir, true);
    assert_true(start.blind);
    make("nccl-y");
    sweep(false);
    assert_true(there("nccl-y"));
}

/* Another process that has "nccl-x" open or mapped; ends at a write to *fd. */
static pid_t hold(bool mapped, int flags, int *fd)
{
    int go[2], up[2];
    char c;
    pid_t pid;

    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        int f = open(at("nccl-x"), flags | O_CLOEXEC);
        void *p = mapped ? mmap(NULL, 64, PROT_READ, MAP_SHARED, f, 0) : &f;

        (void)close(go[1]);
        if (mapped)
            (void)close(f);
        if (f < 0 || p == MAP_FAILED || write(up[1], "u", 1) != 1)
            _exit(1);
        (void)!read(go[0], &c, 1);
        _exit(0);
    }
    (void)close(go[0]);
    (void)close(up[1]);
    assert_int_equal(read(up[0], &c, 1), 1);
    (void)close(up[0]);
    *fd = go[1];
    return pid;
}

static void test_what_another_process_has(void **state)
{
    static const struct {
        bool mapped;
        int flags;
    } cases[] = {{false, O_RDONLY}, {false, O_RDWR}, {true, O_RDONLY},
                 {true, O_RDWR}};

    (void)state;
    begin(false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd;
        pid_t pid;

        make("nccl-x");
        pid = hold(cases[i].mapped, cases[i].flags, &fd);
        sweep(false);
        assert_true(there("nccl-x"));
        (void)close(fd);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        sweep(false);
        assert_false(there("nccl-x"));
    }
}

static void test_other_kinds(void **state)
{
    (void)state;
    begin(false);
    assert_int_equal(mkdir(at("nccl-dir"), 0700), 0);
    assert_int_equal(mkfifo(at("nccl-fifo"), 0600), 0);
    make("other");
    assert_int_equal(symlink("other", at("nccl-link")), 0);
    make("nccl-two");
    assert_int_equal(link(at("nccl-two"), at("second-name")), 0);
    make("nccl-locked"); /* May not be written: is removed all the same. */
    assert_int_equal(chmod(at("nccl-locked"), 0400), 0);
    make("nccl-foreign");
    if (geteuid() == 0)
        assert_int_equal(chown(at("nccl-foreign"), 12345, 12345), 0);
    sweep(false);
    assert_true(there("nccl-dir") && there("nccl-fifo") &&
                there("nccl-link") && there("other") && there("nccl-two"));
    assert_false(there("nccl-locked"));
    assert_int_equal(there("nccl-foreign"), geteuid() == 0);
    (void)rmdir(at("nccl-dir"));
}

static void test_a_missing_folder(void **state)
{
    (void)state;
    shm_begin(&start, at("none"), at("none"), false);
    shm_sweep(&start, at("none"), false, &swept);
    assert_int_equal(swept.n, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_names),
        TEST(test_the_pid_in_a_name),
        TEST(test_what_was_there_stays),
        TEST(test_nothing_before_the_start),
        TEST(test_what_another_process_has),
        TEST(test_other_kinds),
        TEST(test_a_missing_folder),
    };

    return cmocka_run_group_tests_name("shm", tests, NULL, NULL);
}
