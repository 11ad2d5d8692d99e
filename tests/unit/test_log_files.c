/* log_files: all bytes in order, rotation, a full disk. */
#include "supervise/log_files.h"

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
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 60000

/* Each lives as long as the process: its thread never ends. */
static struct log_files *made[16];
static unsigned n_made;
static char top[64];
static int wake_fd;

static struct log_files *start(const char *dir, uint64_t max, unsigned keep)
{
    char path[128];
    struct err e;
    struct log_files_config c = {.dir = path, .max_bytes = max, .keep = keep,
                                 .n_files = 4, .wake_fd = wake_fd};

    (void)snprintf(path, sizeof path, "%s/%s", top, dir);
    if (log_files_new(&made[n_made], &c, &e) != 0)
        fail_msg("%s", e.text);
    return made[n_made++];
}

static void put(struct log_files *f, unsigned i, const char *s, size_t len)
{
    struct pollfd p = {.fd = wake_fd, .events = POLLIN};
    uint64_t n;

    while (!log_files_has_room(f)) {
        log_files_want_room(f);
        assert_int_equal(poll(&p, 1, WAIT_MS), 1);
        assert_int_equal(read(wake_fd, &n, sizeof n), sizeof n);
    }
    assert_true(log_files_put(f, i, i, s, len));
}

/* The file's bytes and a NUL; NULL where there is none. */
static char *bytes_of(const char *name, size_t *ret_len)
{
    char path[160], *s;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", top, name);
    file = fopen(path, "r");
    if (!file)
        return NULL;
    s = calloc(1, 64 << 20);
    assert_non_null(s);
    *ret_len = fread(s, 1, (64 << 20) - 1, file);
    (void)fclose(file);
    return s;
}

static void holds(const char *name, const char *want)
{
    size_t len = 0;
    char *s = bytes_of(name, &len);

    if (!want) {
        assert_null(s);
        return;
    }
    if (!s)
        fail_msg("%s is missing", name);
    assert_string_equal(s, want);
    free(s);
}

static void lost_is(struct log_files *f, uint64_t bytes, int why)
{
    struct log_files_lost lost;

    log_files_lost(f, &lost);
    assert_int_equal(lost.bytes, bytes);
    assert_int_equal(lost.why, why);
}

static void test_files_are_made_and_appended_to(void **state)
{
    struct log_files *f = start("a/b/c", 0, 0);

    (void)state;
    assert_true(log_files_open(f, 0, "attempt_0/rank_0/stdout.log"));
    assert_true(log_files_open(f, 1, "attempt_0/rank_0/stderr.log"));
    put(f, 0, "one\n", 4);
    put(f, 1, "err\0\xff", 5);
    put(f, 0, "two", 3);
    assert_true(log_files_open(f, 0, "attempt_1/rank_0/stdout.log"));
    put(f, 0, "three\n", 6);
    assert_true(log_files_open(f, 0, "attempt_0/rank_0/stdout.log"));
    put(f, 0, "more\n", 5);
    assert_true(log_files_sync(f, WAIT_MS, -1));
    holds("a/b/c/attempt_0/rank_0/stdout.log", "one\ntwomore\n");
    holds("a/b/c/attempt_1/rank_0/stdout.log", "three\n");
    holds("a/b/c/attempt_0/rank_0/stderr.log", "err");
    lost_is(f, 0, 0);
}

static void test_a_folder_that_cannot_be_made(void **state)
{
    char path[128];
    struct err e;
    struct log_files *f;
    struct log_files_config c = {.dir = path, .n_files = 1};

    (void)state;
    (void)snprintf(path, sizeof path, "%s/file", top);
    (void)close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(log_files_new(&f, &c, &e), -ERR_RESOURCE);
    assert_non_null(strstr(e.text, "Not a directory"));
    (void)snprintf(path, sizeof path, "%s/file/below", top);
    assert_int_equal(log_files_new(&f, &c, &e), -ERR_RESOURCE);
    assert_non_null(strstr(e.text, path));
    c.dir = "/proc/no";
    assert_int_equal(log_files_new(&f, &c, &e), -ERR_RESOURCE);
    assert_non_null(strstr(e.text, ": give a folder that can be written to"));
}

/* Many bytes through the ring, of four files, in pieces of all sizes. */
static void test_order_over_the_edge(void **state)
{
    static char piece[LOG_FILES_PUT_MAX];
    struct log_files *f = start("edge", 0, 0);
    uint64_t n[4] = {0};
    unsigned seed = 7;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        (void)snprintf(piece, sizeof piece, "%u", i);
        assert_true(log_files_open(f, i, piece));
    }
    for (unsigned k = 0; k < 600; k++) {
        unsigned i = k % 4;
        size_t len;

        seed = seed * 1103515245u + 12345u;
        len = 1 + seed / 65536 % sizeof piece;
        for (size_t at = 0; at < len; at++)
            piece[at] = (char)((n[i] + at) * 2654435761u >> 13);
        put(f, i, piece, len);
        n[i] += len;
    }
    assert_true(log_files_sync(f, WAIT_MS, -1));
    lost_is(f, 0, 0);
    for (unsigned i = 0; i < 4; i++) {
        char name[16];
        size_t len = 0;
        char *s;

        (void)snprintf(name, sizeof name, "edge/%u", i);
        s = bytes_of(name, &len);
        assert_non_null(s);
        assert_int_equal(len, n[i]);
        for (size_t at = 0; at < len; at++)
            if (s[at] != (char)(at * 2654435761u >> 13))
                fail_msg("file %u, byte %zu is another", i, at);
        free(s);
    }
}

/* No file is larger; between lines where that can be; all together hold what
 * was written, but for what went. */
static void test_rotation(void **state)
{
    static char line[4097], want[4 * 4096 + 1];
    struct log_files *f = start("rotate", 4096, 2);

    (void)state;
    assert_true(log_files_open(f, 0, "out"));
    memset(line, 'x', 1000);
    line[999] = '\n';
    for (unsigned i = 0; i < 9; i++) {
        line[0] = (char)('0' + i);
        put(f, 0, line, 1000);
    }
    assert_true(log_files_sync(f, WAIT_MS, -1));
    for (unsigned i = 0; i < 4; i++) {
        line[0] = (char)('4' + i);
        memcpy(want + 1000 * i, line, 1000);
    }
    holds("rotate/out.1", want);
    line[0] = '8';
    line[1000] = '\0';
    holds("rotate/out", line);
    line[0] = '0';
    holds("rotate/out.3", NULL);

    f = start("keep0", 4096, 0);
    assert_true(log_files_open(f, 0, "out"));
    memset(want, 'y', sizeof want - 1);
    put(f, 0, want, 4096); /* No newline, to the last byte. */
    put(f, 0, "new\n", 4);
    assert_true(log_files_sync(f, WAIT_MS, -1));
    holds("keep0/out", "new\n");
    holds("keep0/out.1", NULL);

    f = start("long", 4096, 3);
    assert_true(log_files_open(f, 0, "out"));
    put(f, 0, want, 2 * 4096 + 10); /* A line that no file can hold. */
    assert_true(log_files_sync(f, WAIT_MS, -1));
    want[4096] = '\0';
    holds("long/out.2", want);
    holds("long/out.1", want);
    holds("long/out", "yyyyyyyyyy");
    lost_is(f, 0, 0);
}

/* No file may be larger; 0: as before. */
static void limit_files(rlim_t most)
{
    struct rlimit r;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0);
    r.rlim_cur = most ? most : r.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

static void until_lost(struct log_files *f, uint64_t bytes)
{
    struct log_files_lost lost = {.bytes = 0};

    while (lost.bytes != bytes) {
        log_files_lost(f, &lost);
        (void)poll(NULL, 0, 1);
    }
}

/* A line that is torn ends before what follows; the rest of a line whose
 * beginning was lost is left out, and counted. */
static void test_a_full_disk_is_counted_and_tried_again(void **state)
{
    static const struct {
        rlim_t most;
        const char *lost[3];
        uint64_t n_lost;
        const char *more[3], *want;
        uint64_t n_lost_then;
    } cases[] = {
        {6, {"one\ntwo\n", "three\n"}, 8, {"four\n"},
         "one\ntw\nfour\n", 8},
        {4, {"one\n", "two\n"}, 4, {"three\n"}, "one\nthree\n", 4},
        {6, {"one\ntwo\nth"}, 4, {"re", "e\nfour\nfi", "ve\n"},
         "one\ntw\nfour\nfive\n", 8},
        {2, {"one", " more\n", "t"}, 8, {"wo\nfour\n"}, "on\nfour\n", 11},
    };

    (void)state;
    for (unsigned k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char dir[16], name[24];
        struct log_files *f;

        (void)snprintf(dir, sizeof dir, "full%u", k);
        (void)snprintf(name, sizeof name, "%s/out", dir);
        f = start(dir, 0, 0);
        assert_true(log_files_open(f, 0, "out"));
        limit_files(cases[k].most);
        for (unsigned i = 0; i < 3 && cases[k].lost[i]; i++)
            put(f, 0, cases[k].lost[i], strlen(cases[k].lost[i]));
        until_lost(f, cases[k].n_lost);
        limit_files(0);
        for (unsigned i = 0; i < 3 && cases[k].more[i]; i++)
            put(f, 0, cases[k].more[i], strlen(cases[k].more[i]));
        assert_true(log_files_sync(f, WAIT_MS, -1));
        holds(name, cases[k].want);
        lost_is(f, cases[k].n_lost_then, EFBIG);
    }
}

/* Bytes without lines are not left out for ever. */
static void test_a_hole_ends(void **state)
{
    static char piece[LOG_FILES_PUT_MAX + 1];
    struct log_files *f = start("hole", 0, 0);

    (void)state;
    assert_true(log_files_open(f, 0, "out"));
    limit_files(1);
    put(f, 0, "abc", 3);
    until_lost(f, 2);
    limit_files(0);
    memset(piece, 'x', sizeof piece);
    put(f, 0, piece, LOG_FILES_PUT_MAX - 1);
    put(f, 0, "yz", 2);
    assert_true(log_files_sync(f, WAIT_MS, -1));
    holds("hole/out", "a\nz");
    lost_is(f, LOG_FILES_PUT_MAX + 2, EFBIG);
}

/* Whose bytes they were, also in a file that several write to. */
static void test_lost_bytes_have_an_owner(void **state)
{
    struct log_files *f = start("owner", 0, 0);

    (void)state;
    assert_true(log_files_open(f, 0, "zero"));
    assert_true(log_files_open(f, 3, "both"));
    limit_files(4);
    assert_true(log_files_put(f, 0, 0, "all\n", 4));
    assert_true(log_files_put(f, 3, 1, "one\n", 4));
    assert_true(log_files_put(f, 3, 2, "two!\n", 5));
    assert_true(log_files_put(f, 3, 1, "1\n", 2));
    assert_true(log_files_sync(f, WAIT_MS, -1));
    limit_files(0);
    assert_int_equal(log_files_lost_of(f, 0), 0);
    assert_int_equal(log_files_lost_of(f, 1), 2);
    assert_int_equal(log_files_lost_of(f, 2), 5);
    lost_is(f, 7, EFBIG);
}

static void remove_at(const char *name)
{
    char path[160];
    pid_t pid;

    (void)snprintf(path, sizeof path, "%s/%s", top, name);
    pid = fork();
    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", path, NULL);
        _exit(1);
    }
    (void)waitpid(pid, NULL, 0);
}

/* Somebody removes a file, a folder, all of it: nothing that comes after that
 * goes to files without a name. */
static void test_what_is_removed_is_made_again(void **state)
{
    static const char *const what[] = {"gone/a/out", "gone/a", "gone"};
    struct log_files *f = start("gone", 0, 0);
    char path[128];
    struct stat st;

    (void)state;
    assert_true(log_files_open(f, 0, "a/out"));
    put(f, 0, "one\n", 4);
    for (unsigned i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s/gone/a/out", top);
        while (stat(path, &st) != 0 || st.st_size != 4)
            (void)poll(NULL, 0, 1);
        remove_at(what[i]);
        put(f, 0, "two\n", 4);
    }
    assert_true(log_files_sync(f, WAIT_MS, -1));
    holds("gone/a/out", "two\n");
    lost_is(f, 0, 0);
}

/* The disk hangs (a FIFO that nobody reads): puts fail in the end, the sync
 * ends at its deadline. */
static void test_a_hung_disk(void **state)
{
    static char piece[LOG_FILES_PUT_MAX];
    struct log_files *f = start("hung", 0, 0);
    char path[128];
    unsigned n = 0;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/hung/out", top);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_true(log_files_open(f, 0, "out"));
    while (log_files_has_room(f) && n < 1000) {
        assert_true(log_files_put(f, 0, 0, piece, sizeof piece));
        n++;
    }
    assert_true(n > 10 && n < 1000);
    assert_false(log_files_put(f, 0, 1, piece, sizeof piece));
    lost_is(f, sizeof piece, 0);
    /* What is queued at the deadline is nowhere. */
    assert_false(log_files_sync(f, 50, -1));
    lost_is(f, (n + 1) * sizeof piece, 0);
    assert_int_equal(log_files_lost_of(f, 1), sizeof piece);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_made_and_appended_to),
        cmocka_unit_test(test_a_folder_that_cannot_be_made),
        cmocka_unit_test(test_order_over_the_edge),
        cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_a_full_disk_is_counted_and_tried_again),
        cmocka_unit_test(test_a_hole_ends),
        cmocka_unit_test(test_lost_bytes_have_an_owner),
        cmocka_unit_test(test_what_is_removed_is_made_again),
        cmocka_unit_test(test_a_hung_disk),
    };
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    int failed;

    (void)sigaction(SIGXFSZ, &ignore, NULL); /* As agent: blocked there. */
    (void)alarm(120); /* Each wait ends, at the latest so. */
    (void)snprintf(top, sizeof top, "/tmp/test_log_files.XXXXXX");
    wake_fd = eventfd(0, EFD_CLOEXEC);
    if (!mkdtemp(top) || wake_fd < 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_at("");
    return failed;
}
