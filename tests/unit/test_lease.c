/* lease: a stage on a file system that hosts share and whose flock(2) does not
 * work: the calls wrapped here say so of any. */
#include "dataset/lease_file.h"
#include "dataset/tree.h"
#include "unit/stage_fixture.h"

#include <signal.h>
#include <sys/vfs.h>
#include <utime.h>

#define N_PODS 8

/* What the wrapped calls do at their next call. */
static bool stop_at_publish;
static void (*at_aside)(void), (*at_begin)(void), (*at_renew)(void);
static bool is_read_only, has_no_proc;

int __real_fstatfs(int fd, struct statfs *v);
int __wrap_fstatfs(int fd, struct statfs *v);
int __wrap_fstatfs(int fd, struct statfs *v)
{
    int rc = __real_fstatfs(fd, v);

    v->f_type = 0x6969; /* NFS */
    return rc;
}

int __wrap_flock(int fd, int op);
int __wrap_flock(int fd, int op)
{
    (void)fd;
    (void)op;
    errno = ENOSYS;
    return -1;
}

int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...)
{
    void (**fn)(void) = flags & O_EXCL ? &at_begin : &at_renew;
    void (*now)(void) = *fn;
    unsigned mode;
    va_list ap;
    int fd;

    va_start(ap, flags);
    mode = flags & O_CREAT ? va_arg(ap, unsigned) : 0;
    va_end(ap);
    if (!now || !strstr(path, ".part/lease") || !(flags & (O_EXCL | O_RDWR)))
        return __real_openat(folder, path, flags, mode);
    *fn = NULL;
    if (fn == &at_begin) /* Between mkdir and the first word. */
        now();
    fd = __real_openat(folder, path, flags, mode);
    if (fn == &at_renew) /* Between the look at a word and the next one. */
        now();
    return fd;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    unsigned mode;
    va_list ap;

    va_start(ap, flags);
    mode = flags & O_CREAT ? va_arg(ap, unsigned) : 0;
    va_end(ap);
    if (has_no_proc && strncmp(path, "/proc/", 6) == 0) {
        errno = ENOENT;
        return -1;
    }
    return __real_open(path, flags, mode);
}

/* Whose attributes were asked for anew. */
static unsigned n_fresh;

int __real_statx(int folder, const char *path, int flags, unsigned mask,
                 struct statx *x);
int __wrap_statx(int folder, const char *path, int flags, unsigned mask,
                 struct statx *x);
int __wrap_statx(int folder, const char *path, int flags, unsigned mask,
                 struct statx *x)
{
    n_fresh += (flags & AT_STATX_FORCE_SYNC) != 0;
    return __real_statx(folder, path, flags, mask, x);
}

int __real_mkdirat(int folder, const char *path, mode_t mode);
int __wrap_mkdirat(int folder, const char *path, mode_t mode);
int __wrap_mkdirat(int folder, const char *path, mode_t mode)
{
    if (!is_read_only)
        return __real_mkdirat(folder, path, mode);
    errno = EROFS;
    return -1;
}

int __real_renameat(int a, const char *b, int c, const char *d);
int __wrap_renameat(int a, const char *b, int c, const char *d);
int __wrap_renameat(int a, const char *b, int c, const char *d)
{
    if (at_aside && strstr(d, ".part.old")) {
        void (*fn)(void) = at_aside;

        at_aside = NULL;
        fn();
    }
    return __real_renameat(a, b, c, d);
}

int __real_renameat2(int a, const char *b, int c, const char *d, unsigned f);
int __wrap_renameat2(int a, const char *b, int c, const char *d, unsigned f);
int __wrap_renameat2(int a, const char *b, int c, const char *d, unsigned f)
{
    if (stop_at_publish) {
        stop_at_publish = false;
        (void)raise(SIGSTOP);
    }
    return __real_renameat2(a, b, c, d, f);
}

static int run(struct fixture *f, uint64_t silent_ms, stage_progress_fn *fn)
{
    struct stage_request req = {.manifest = f->manifest, .source = f->src,
                                .stage_dir = f->stage,
                                .silent_ms = silent_ms};

    f->e.text[0] = '\0';
    return stage_run(&req, fn, f, &f->r, &f->e);
}

static void make_set(struct fixture *f)
{
    add_file(f, "a", "hello", "");
    add_file(f, "b", "world", "");
    write_manifest(f);
}

static void check(struct fixture *f)
{
    assert_content(f->r.dir, "a", "hello", 5);
    assert_content(f->r.dir, "b", "world", 5);
    assert_int_equal(count_names(f->stage, ".set@"), 1); /* The lock file. */
    assert_int_equal(count_names(f->stage, "set@"), 1);
}

/* The name of the folder that is the lease: known after a first run. */
static char part[NAME_MAX];
static int root = -1;

static void learn_names(struct fixture *f)
{
    assert_int_equal(run(f, 0, NULL), 0);
    (void)snprintf(part, sizeof part, ".%.200s.part",
                   strrchr(f->r.dir, '/') + 1);
    assert_int_equal(tree_remove(AT_FDCWD, f->stage), 0);
    assert_int_equal(mkdir(f->stage, 0755), 0);
    root = open(f->stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(root >= 0);
}

static struct lease_word other = {
    .id = "0123456789abcdef", .key = "another-boot:5", .silent_ms = 100,
    .at = {.done = 30, .total = 100, .n_done = 1, .n_files = 2}};

static void other_begins(void)
{
    char work[NAME_MAX + 32];

    (void)snprintf(work, sizeof work, "%s/%s", part, other.id);
    assert_int_equal(mkdirat(root, part, 0755), 0);
    assert_int_equal(mkdirat(root, work, 0755), 0);
    assert_int_equal(lease_begin(root, part, &other), 0);
}

static void test_words(void **state)
{
    char text[LEASE_WORD + 1] = "";
    struct lease_word w;

    (void)state;
    other.beat = UINT64_MAX;
    other.at.total = UINT64_C(1) << 50;
    lease_format(&other, text);
    assert_int_equal(text[LEASE_WORD - 1], '\n');
    assert_true(lease_parse(text, &w));
    assert_string_equal(w.id, other.id);
    assert_string_equal(w.key, other.key);
    assert_true(w.beat == other.beat && w.at.total == other.at.total);
    assert_true(w.at.n_files == 2 && w.silent_ms == 100);
    assert_false(w.at.syncing);
    other.at.syncing = true;
    lease_format(&other, text);
    assert_true(lease_parse(text, &w) && w.at.syncing);
    other.at.syncing = false;
    lease_format(&other, text);
    for (unsigned i = 0; i < LEASE_WORD; i++) { /* Torn writes. */
        char c = text[i];

        text[i] = '\0';
        assert_false(lease_parse(text, &w));
        text[i] = c;
    }
    assert_false(lease_parse("", &w));
    other.silent_ms = UINT64_MAX; /* A word cannot ask for any patience. */
    lease_format(&other, text);
    assert_false(lease_parse(text, &w));
    other.silent_ms = 100;
    other.beat = 0;
    other.at.total = 100;
}

static void test_one_copies_the_others_reuse(void **state)
{
    struct fixture *f = *state;
    unsigned n_copied = 0;
    pid_t pids[N_PODS];

    make_set(f);
    for (unsigned i = 0; i < N_PODS; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(run(f, 60000, NULL) ? 99 : f->r.reused);
        assert_true(pids[i] > 0);
    }
    for (unsigned i = 0; i < N_PODS; i++) {
        int status = 0;

        assert_true(waitpid(pids[i], &status, 0) == pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
        n_copied += WEXITSTATUS(status) == 0;
    }
    assert_int_equal(n_copied, 1);
    assert_int_equal(run(f, 0, NULL), 0);
    check(f);
}

static void test_a_dead_one_is_replaced(void **state)
{
    struct fixture *f = *state;

    make_set(f);
    learn_names(f);
    other_begins();
    assert_int_equal(run(f, 100, NULL), 0);
    assert_false(f->r.reused);
    assert_non_null(strstr(f->r.note, "fell silent"));
    check(f);

    /* One that died before it could write its word. */
    assert_int_equal(tree_remove(AT_FDCWD, f->r.dir), 0);
    assert_int_equal(mkdirat(root, part, 0755), 0);
    assert_int_equal(run(f, 100, NULL), 0);
    check(f);
}

static unsigned n_told;

/* It lives as long as its word changes, whatever its clock says, and then it
 * gives up. Told by whoever waits, between two looks. */
static void go_on(void *ctx, const struct stage_progress *p)
{
    struct fixture *f = ctx;
    char path[PATH_MAX];
    const struct utimbuf old = {1, 1};

    if (!p->waiting)
        return;
    assert_true(p->done == 30 && p->total == 100 && p->n_files == 2);
    assert_string_equal(p->name, "set");
    if (++n_told < 60) {
        other.beat++;
        assert_int_equal(lease_renew(root, part, &other), 0);
        (void)snprintf(path, sizeof path, "%s/%s/lease", f->stage, part);
        assert_int_equal(utime(path, &old), 0);
    } else {
        assert_int_equal(tree_remove(root, part), 0);
    }
}

static void test_a_live_one_is_waited_for(void **state)
{
    struct fixture *f = *state;

    make_set(f);
    learn_names(f);
    other_begins();
    n_told = 0;
    assert_int_equal(run(f, 100, go_on), 0); /* 60 looks: 12 times 100 ms. */
    assert_int_equal(n_told, 60);
    assert_false(f->r.reused);
    assert_string_equal(f->r.note, "");
    check(f);
}

/* While it was believed to be dead another one was quicker. */
static void be_quicker(void)
{
    assert_int_equal(tree_remove(root, part), 0);
    other.beat = 0;
    memcpy(other.id, "ffff", 4);
    other_begins();
}

static void test_the_wrong_one_is_put_back(void **state)
{
    struct fixture *f = *state;

    make_set(f);
    learn_names(f);
    other_begins();
    n_told = 50;
    at_aside = be_quicker;
    /* Waits out the first one in silence; the other is then found alive. */
    assert_int_equal(run(f, 100, NULL), 0);
    assert_null(at_aside);
    check(f);
    memcpy(other.id, "0123", 4);
}

/* Suspended before it publishes, and woken when another has done so. */
static void test_a_suspended_one_does_no_harm(void **state)
{
    struct fixture *f = *state;
    int status = 0;
    ino_t made;
    pid_t pid;

    make_set(f);
    pid = fork();
    if (pid == 0) {
        stop_at_publish = true;
        _exit(run(f, 100, NULL) ? 99 : f->r.reused);
    }
    assert_true(pid > 0 && waitpid(pid, &status, WUNTRACED) == pid);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(run(f, 100, NULL), 0);
    assert_false(f->r.reused);
    made = inode(f->stage, strrchr(f->r.dir, '/') + 1);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_true(waitpid(pid, &status, 0) == pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1); /* It took what is there. */
    assert_true(inode(f->stage, strrchr(f->r.dir, '/') + 1) == made);
    check(f);
}

/* Suspended for long after it has made the folder: it takes nothing away from
 * the one who has taken it for dead. */
static void another_begins(void)
{
    assert_int_equal(tree_remove(root, part), 0);
    other_begins();
}

static void go_on_once_seen(void *ctx, const struct stage_progress *p)
{
    if (p->total > 0)
        go_on(ctx, p);
}

static void test_one_that_was_slow_to_begin(void **state)
{
    struct fixture *f = *state;

    make_set(f);
    learn_names(f);
    at_begin = another_begins;
    n_told = 0;
    if (run(f, 100, go_on_once_seen) != 0)
        fail_msg("%s", f->e.text);
    assert_null(at_begin);
    assert_int_equal(n_told, 60); /* The other one was there all the time. */
    check(f);
}

/* The same while it looks at its last word: the next one does not get over the
 * other one's. */
static void another_takes_over(void)
{
    assert_int_equal(renameat(root, part, root, "aside"), 0);
    other_begins();
}

static void test_a_beat_of_one_that_is_over(void **state)
{
    struct fixture *f = *state;
    struct lease_word mine = {.id = "00000000deadbeef", .key = "x:1"}, there;
    char text[LEASE_WORD + 1];

    make_set(f);
    learn_names(f);
    assert_int_equal(mkdirat(root, part, 0755), 0);
    assert_int_equal(lease_begin(root, part, &mine), 0);
    assert_int_equal(lease_renew(root, part, &mine), 0);
    at_renew = another_takes_over;
    (void)lease_renew(root, part, &mine);
    assert_null(at_renew);
    assert_int_equal(lease_read(root, part, text), 0);
    assert_true(lease_parse(text, &there));
    assert_string_equal(there.id, other.id);
    assert_int_equal(lease_renew(root, part, &mine), ENOENT);
}

static void test_without_proc_nobody_shares_a_lock(void **state)
{
    struct fixture *f = *state;
    struct meter meter = {.fn = NULL};
    struct stage_set s = {.root = {.shown = f->top}, .part = ".p.part",
                          .old = ".p.part.old", .is_shared = true,
                          .silent_ms = 1000, .meter = &meter};
    char keys[2][LEASE_KEY_MAX], work[STAGE_WORK_MAX];
    struct lease l;

    s.root.fd = open(f->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(s.root.fd >= 0);
    for (unsigned i = 0; i < 4; i++) {
        has_no_proc = i >= 2;
        assert_int_equal(lease_take(&l, &s, -1, work, &f->e), 0);
        memcpy(keys[i % 2], l.word.key, sizeof keys[0]);
        assert_true(lease_drop(&l));
        if (i == 1)
            assert_string_equal(keys[0], keys[1]);
    }
    has_no_proc = false;
    assert_string_not_equal(keys[0], keys[1]);
    (void)close(s.root.fd);
}

static void test_a_finished_one_is_asked_for_anew(void **state)
{
    struct fixture *f = *state;

    make_set(f);
    assert_int_equal(run(f, 0, NULL), 0);
    n_fresh = 0;
    assert_int_equal(run(f, 0, NULL), 0);
    assert_true(f->r.reused);
    assert_int_equal(n_fresh, 2);
}

/* A stage that was made before and is read-only now: what looks otherwise is
 * hashed, though nobody can have the lease. */
static void test_a_read_only_stage(void **state)
{
    struct fixture *f = *state;

    make_set(f);
    assert_int_equal(run(f, 0, NULL), 0);
    sh("chmod g+w %s/a", f->r.dir);
    is_read_only = true;
    if (run(f, 0, NULL) != 0)
        fail_msg("%s", f->e.text);
    assert_true(f->r.reused);
    sh("echo x >>%s/a", f->r.dir);
    assert_int_equal(run(f, 0, NULL), -ERR_DATA);
    is_read_only = false;
    assert_non_null(strstr(f->e.text, "/a' has "));
    assert_non_null(strstr(f->e.text, "Read-only file system"));
}

int main(void)
{
#define TEST(fn)                                                               \
    cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        TEST(test_one_copies_the_others_reuse),
        TEST(test_a_dead_one_is_replaced),
        TEST(test_a_live_one_is_waited_for),
        TEST(test_the_wrong_one_is_put_back),
        TEST(test_a_suspended_one_does_no_harm),
        TEST(test_one_that_was_slow_to_begin),
        TEST(test_a_beat_of_one_that_is_over),
        TEST(test_without_proc_nobody_shares_a_lock),
        TEST(test_a_finished_one_is_asked_for_anew),
        TEST(test_a_read_only_stage),
    };

    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
