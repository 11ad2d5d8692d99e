/* stage, tortured: the n-th call of each kind fails, does less than asked or
 * kills the process, for each n that there is. What must hold: a folder at the
 * final place has the right bytes, each of them; and the next stager is not
 * stopped by what was left. */
#include "dataset/tree.h"
#include "unit/fault_wrap.h"
#include "unit/stage_fixture.h"

#define BIG 600000u
/* Sets: of plain files, each put on the disk by itself; with archives; and one
 * file alone that is large enough to be hashed by a second thread. */
enum set { PLAIN, ARCHIVES, LARGE, N_SETS };
/* What is at the stage before: nothing, a damaged stage, a good one. */
enum before { NOTHING, DAMAGED, GOOD, N_BEFORES };

static uint8_t big[BIG], packed[BIG + 1000];

static void make_archives(struct fixture *f)
{
    sh("cd %s && mkdir t && echo tar >t/a && ln -s a t/l && ln t/a t/h && "
       "tar -cf t.tar t && rm -r t && python3 -c \"import zipfile as z; "
       "z.ZipFile('z.zip', 'w').writestr('z/f', 'zip')\"",
       f->src);
    for (unsigned i = 0; i < 2; i++) {
        const char *name = i ? "z.zip" : "t.tar";
        static char data[65536];
        char path[256];
        size_t n;
        FILE *in;

        (void)snprintf(path, sizeof path, "%s/%s", f->src, name);
        in = fopen(path, "re");
        assert_non_null(in);
        n = fread(data, 1, sizeof data, in);
        assert_int_equal(fclose(in), 0);
        list_file(f, name, data, n,
                  i ? ", \"unpack\": \"zip\"" : ", \"unpack\": \"tar\"");
    }
}

static void make_set(struct fixture *f, enum set set)
{
    size_t n;

    for (size_t i = 0; i < BIG; i++)
        big[i] = (uint8_t)(i * 2654435761u >> 13);
    n = gzip(packed, sizeof packed, big, BIG);
    assert_int_equal(mkdir(f->src, 0755) && errno != EEXIST, 0);
    sh("mkdir -p %s/sub", f->src);
    if (set != LARGE) {
        add_file(f, "a", "hello", "");
        put_file(f->src, "sub/big", big, BIG);
        list_file(f, "sub/big", big, BIG, "");
    }
    put_file(f->src, "g.gz", packed, n);
    list_file(f, "g.gz", packed, n, ", \"unpack\": \"gzip\", \"keep\": true");
    if (set == ARCHIVES)
        make_archives(f);
    write_manifest(f);
}

/* The oracle. False where there is nothing at the final place. */
static bool check_published(struct fixture *f, enum set set)
{
    char dir[PATH_MAX];
    struct dirent *d;
    DIR *stage = opendir(f->stage);
    bool any = false;
    struct stat st;

    while (stage && (d = readdir(stage))) {
        if (strncmp(d->d_name, "set@", 4) != 0)
            continue;
        (void)snprintf(dir, sizeof dir, "%s/%s", f->stage, d->d_name);
        any = true;
    }
    if (stage)
        (void)closedir(stage);
    if (!any || !stat_in(dir, ".agent-stage", &st))
        return false; /* Without its marker nobody takes it for finished. */
    assert_content(dir, "g", big, BIG);
    if (set == LARGE)
        return true;
    assert_content(dir, "a", "hello", 5);
    assert_content(dir, "sub/big", big, BIG);
    if (set == ARCHIVES) {
        assert_content(dir, "t/a", "tar\n", 4);
        assert_content(dir, "t/l", "tar\n", 4);
        assert_content(dir, "t/h", "tar\n", 4);
        assert_content(dir, "z/f", "zip", 3);
    }
    return true;
}

static void prepare(struct fixture *f, enum before before)
{
    fault_set(FAULT_NOTHING, FAULT_ANY, 0, 0, false);
    assert_int_equal(tree_remove(AT_FDCWD, f->stage), 0);
    if (before == NOTHING)
        return;
    assert_int_equal(run_stage(f), 0);
    if (before == DAMAGED) /* Not what is looked at by the oracle then. */
        sh("rm %s/.agent-stage && echo x >%s/a", f->r.dir, f->r.dir);
}

/* After whatever happened: it comes right. */
static void check_next(struct fixture *f, enum set set)
{
    fault_set(FAULT_NOTHING, FAULT_ANY, 0, 0, false);
    if (run_stage(f))
        fail_msg("the next run: %s", f->e.text);
    assert_true(check_published(f, set));
    assert_int_equal(count_names(f->stage, ".set@"), 1); /* The lock. */
    assert_int_equal(count_names(f->stage, "set@"), 1);
}

/* False where the call that was to fail did not come. */
static bool fail_one(struct fixture *f, enum set set, enum before before,
                     enum fault_what what, enum fault_op op, unsigned n,
                     int error, bool on)
{
    int rc;
    bool done, published;

    prepare(f, before);
    fault_set(what, op, n, error, on);
    rc = run_with(f, true, before == GOOD);
    done = atomic_load(&fault.n_done) > 0;
    fault.what = FAULT_NOTHING;
    published = check_published(f, set);
    if (rc == 0 && !published)
        fail_msg("%s %u: a success without a stage", fault_names[op], n);
    if (rc != 0 && f->e.text[0] == '\0')
        fail_msg("%s %u: no text", fault_names[op], n);
    if (what == FAULT_SHORT && rc != 0)
        fail_msg("%s %u: short is no fault: %s", fault_names[op], n,
                 f->e.text);
    check_next(f, set);
    return done;
}

static const struct {
    enum fault_op op;
    int errors[5];
} faults[] = {
    {FAULT_open, {EACCES, ESTALE}},
    {FAULT_openat, {EACCES, EROFS, ENOSPC, EMFILE}},
    {FAULT_read, {EIO, ESTALE}},
    {FAULT_pread, {EIO}},
    {FAULT_write, {ENOSPC, EDQUOT, EIO}},
    {FAULT_close, {EIO, EDQUOT}},
    {FAULT_fsync, {EIO, ENOSPC}},
    {FAULT_syncfs, {EIO}},
    {FAULT_mkdirat, {ENOSPC, EROFS}},
    {FAULT_unlinkat, {EIO, EACCES}},
    {FAULT_renameat, {EIO, ENOSPC}},
    {FAULT_renameat2, {EINVAL, EIO}},
    {FAULT_symlinkat, {ENOSPC, EPERM}},
    {FAULT_linkat, {EMLINK, EPERM}},
    {FAULT_fstat, {EIO}},
    {FAULT_fstatat, {EIO, ESTALE}},
    {FAULT_openat2, {EACCES, ESTALE, EIO, ENOSYS}},
};

static unsigned n_runs;

static void each_call_fails(struct fixture *f, enum set set,
                            enum before before)
{
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        for (size_t k = 0; k < 5 && faults[i].errors[k]; k++) {
            unsigned n = 1;

            while (fail_one(f, set, before, FAULT_FAIL, faults[i].op, n,
                            faults[i].errors[k], false))
                n++;
            n_runs += n;
        }
    }
}

static void test_each_call_fails(void **state)
{
    struct fixture *f = *state;

    make_set(f, PLAIN);
    for (unsigned b = 0; b < N_BEFORES; b++)
        each_call_fails(f, PLAIN, (enum before)b);
}

static void test_each_call_fails_with_archives(void **state)
{
    struct fixture *f = *state;

    make_set(f, ARCHIVES);
    each_call_fails(f, ARCHIVES, NOTHING);
}

static void test_each_call_fails_of_a_large_file(void **state)
{
    struct fixture *f = *state;

    make_set(f, LARGE);
    each_call_fails(f, LARGE, NOTHING);
}

/* The disk is full from the n-th write on; the disk fails for good. */
static void test_failing_for_good(void **state)
{
    static const enum fault_op ops[] = {FAULT_write, FAULT_fsync, FAULT_read,
                                        FAULT_openat};
    struct fixture *f = *state;

    make_set(f, ARCHIVES);
    for (size_t i = 0; i < 4; i++) {
        unsigned n = 1;

        while (fail_one(f, ARCHIVES, NOTHING, FAULT_FAIL, ops[i], n,
                        ops[i] == FAULT_write ? ENOSPC : EIO, true))
            n++;
        n_runs += n;
    }
}

static void test_short_reads_and_writes(void **state)
{
    static const enum fault_op ops[] = {FAULT_write, FAULT_read, FAULT_pread};
    struct fixture *f = *state;

    make_set(f, ARCHIVES);
    for (size_t i = 0; i < 3; i++) {
        unsigned n = 1;

        while (fail_one(f, ARCHIVES, NOTHING, FAULT_SHORT, ops[i], n, 0,
                        false))
            n++;
        n_runs += n;
    }
}

/* A file on NFS that was replaced is opened again. */
static void test_stale_files_are_opened_again(void **state)
{
    static const enum fault_op ops[] = {FAULT_read, FAULT_openat2};
    struct fixture *f = *state;

    make_set(f, ARCHIVES);
    for (size_t i = 0; i < 2; i++) {
        prepare(f, NOTHING);
        /* The first reads are of the manifest. */
        fault_set(FAULT_FAIL, ops[i], 4, ESTALE, false);
        assert_int_equal(run_stage(f), 0);
        assert_int_equal(atomic_load(&fault.n_done), 1);
        assert_true(check_published(f, ARCHIVES));
    }
}

static void test_all_is_on_the_disk_before_the_rename(void **state)
{
    struct fixture *f = *state;

    for (unsigned set = 0; set < N_SETS; set++) {
        text_init(&f->entries, f->json, sizeof f->json);
        make_set(f, (enum set)set);
        prepare(f, NOTHING);
        assert_int_equal(run_stage(f), 0);
        assert_true(atomic_load(&fault.count[FAULT_renameat2]) > 0);
        assert_int_equal(atomic_load(&fault.n_early), 0);
    }
}

/* Not all file systems can fsync(2) a folder. */
static void test_folders_without_fsync(void **state)
{
    struct fixture *f = *state;

    for (unsigned set = 0; set < N_SETS; set++) {
        text_init(&f->entries, f->json, sizeof f->json);
        make_set(f, (enum set)set);
        prepare(f, NOTHING);
        fault.has_no_folder_sync = true;
        if (run_stage(f))
            fail_msg("%s", f->e.text);
        fault.has_no_folder_sync = false;
        assert_true(check_published(f, (enum set)set));
    }
}

/* The last bytes of a tar cannot be read, after one of its names was found to
 * be another file's: that one is left alone, and all is tried again. */
static void test_stale_after_a_clash(void **state)
{
    struct fixture *f = *state;
    static char data[65536];
    char path[256];
    size_t n;
    FILE *in;

    add_file(f, "t", "listed", "");
    sh("cd %s && mkdir x && echo packed >x/t && tar -C x -cf zz.tar t && "
       "rm -r x", f->src);
    (void)snprintf(path, sizeof path, "%s/zz.tar", f->src);
    in = fopen(path, "re");
    assert_non_null(in);
    n = fread(data, 1, sizeof data, in);
    assert_int_equal(fclose(in), 0);
    list_file(f, "zz.tar", data, n, ", \"unpack\": \"tar\"");
    write_manifest(f);
    for (unsigned i = 1;; i++) { /* Whichever read it is. */
        prepare(f, NOTHING);
        fault_set(FAULT_FAIL, FAULT_read, i, ESTALE, false);
        assert_int_not_equal(run_stage(f), 0);
        if (atomic_load(&fault.n_done) == 0)
            break;
        assert_true(i < 100);
    }
    assert_int_equal(f->e.code, ERR_DATA);
    assert_int_equal(count_names(f->stage, "set@"), 0);
}

/* kill -9 at the n-th call of all. */
static bool kill_one(struct fixture *f, enum set set, enum before before,
                     unsigned n)
{
    int status = 0;
    pid_t pid;

    prepare(f, before);
    pid = fork();
    if (pid == 0) {
        fault_set(FAULT_KILL, FAULT_ANY, n, 0, false);
        _exit(run_with(f, true, before == GOOD) ? 1 : 0);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    (void)check_published(f, set);
    check_next(f, set);
    if (WIFSIGNALED(status))
        return true;
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

static void test_killed_at_each_call(void **state)
{
    struct fixture *f = *state;

    make_set(f, ARCHIVES);
    for (unsigned b = 0; b < N_BEFORES; b++) {
        unsigned n = 1;

        while (kill_one(f, ARCHIVES, (enum before)b, n))
            n++;
        assert_true(n > 20);
        n_runs += n;
    }
}

/* With a lease besides the lock: see lease.h. */
static void test_where_hosts_share_it(void **state)
{
    struct fixture *f = *state;
    unsigned n = 1;

    make_set(f, PLAIN);
    fault.is_shared = true;
    each_call_fails(f, PLAIN, NOTHING);
    while (kill_one(f, PLAIN, NOTHING, n))
        n++;
    fault.is_shared = false;
    assert_true(n > 20);
    (void)printf("# %u runs with a fault\n", n_runs + n);
}

int main(void)
{
#define TEST(fn)                                                               \
    cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_each_call_fails),
        TEST(test_each_call_fails_with_archives),
        TEST(test_each_call_fails_of_a_large_file),
        TEST(test_failing_for_good),
        TEST(test_short_reads_and_writes),
        TEST(test_stale_files_are_opened_again),
        TEST(test_all_is_on_the_disk_before_the_rename),
        TEST(test_folders_without_fsync),
        TEST(test_stale_after_a_clash),
        TEST(test_killed_at_each_call),
        TEST(test_where_hosts_share_it),
    };

    return cmocka_run_group_tests_name("stage_torture", tests, NULL, NULL);
}
