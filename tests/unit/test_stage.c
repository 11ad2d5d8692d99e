/* stage: what a finished stage holds, when it is taken as it is, and when it
 * is made anew. */
#include "dataset/manifest.h"
#include "dataset/marker.h"

#include "stage_fixture.h"

static void two_files(struct fixture *f)
{
    sh("mkdir -p %s/sub", f->src);
    add_file(f, "a", "hello", "");
    add_file(f, "sub/b", "world!", "");
    write_manifest(f);
}

static void stages_and_publishes(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    char want[PATH_MAX], digest[DIGEST_HEX_MAX];

    two_files(f);
    put_file(f->src, "unlisted", "x", 1);
    assert_int_equal(run_stage(f), 0);
    digest_hex(f->r.digest, 8, digest);
    (void)snprintf(want, sizeof want, "%s/set@%s", f->stage, digest);
    assert_string_equal(f->r.dir, want);
    assert_string_equal(f->r.name, "set");
    assert_string_equal(f->r.note, "");
    assert_false(f->r.reused);
    assert_int_equal(f->r.n_files, 2);
    assert_int_equal(f->r.n_bytes, 11);
    assert_content(f->r.dir, "a", "hello", 5);
    assert_content(f->r.dir, "sub/b", "world!", 6);
    assert_int_equal(count_names(f->r.dir, ""), 5); /* . .. a sub marker */
    /* Nothing but the folder and the lock. */
    assert_int_equal(count_names(f->stage, ""), 4);
    assert_int_equal(count_names(f->stage, ".set@"), 1);
    assert_true(stat_in(f->r.dir, "a", &st));
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_true(stat_in(f->r.dir, "sub", &st));
    assert_int_equal(st.st_mode & 07777, 0755);
}

static void second_start_copies_nothing(void **state)
{
    struct fixture *f = *state;
    ino_t before;

    two_files(f);
    assert_int_equal(run_stage(f), 0);
    before = inode(f->r.dir, "a");
    sh("rm -r %s", f->src); /* Not even the source is needed. */
    assert_int_equal(run_stage(f), 0);
    assert_true(f->r.reused);
    assert_int_equal(inode(f->r.dir, "a"), before);
    assert_int_equal(run_with(f, true, true), 0); /* --reverify. */
    assert_true(f->r.reused);
    assert_int_equal(inode(f->r.dir, "a"), before);
}

static void changed_bytes_are_staged_anew(void **state)
{
    struct fixture *f = *state;

    two_files(f);
    assert_int_equal(run_stage(f), 0);
    put_file(f->r.dir, "sub/b", "w0rld!", 6);
    assert_int_equal(run_stage(f), 0);
    assert_false(f->r.reused);
    assert_non_null(strstr(f->r.note, "the set is staged anew: '"));
    assert_non_null(strstr(f->r.note, "/sub/b' has sha256 "));
    assert_content(f->r.dir, "sub/b", "world!", 6);
    assert_int_equal(count_names(f->stage, ".set@"), 1); /* The lock. */
    assert_int_equal(run_stage(f), 0);
    assert_true(f->r.reused);
    assert_string_equal(f->r.note, "");
}

static void missing_file_is_staged_anew(void **state)
{
    struct fixture *f = *state;

    two_files(f);
    assert_int_equal(run_stage(f), 0);
    sh("rm %s/a", f->r.dir);
    assert_int_equal(run_stage(f), 0);
    assert_false(f->r.reused);
    assert_content(f->r.dir, "a", "hello", 5);
}

/* As kubelet does to a volume with fsGroup, and a restore from a backup. */
static void changed_looks_are_hashed_and_kept(void **state)
{
    struct fixture *f = *state;
    ino_t file, marker;

    two_files(f);
    assert_int_equal(run_stage(f), 0);
    file = inode(f->r.dir, "a");
    marker = inode(f->r.dir, DATASET_MARKER);
    sh("chmod g+w %s/a; touch %s/sub/b", f->r.dir, f->r.dir);
    assert_int_equal(run_stage(f), 0);
    assert_true(f->r.reused);
    assert_int_equal(inode(f->r.dir, "a"), file);
    /* The marker knows the new looks now, and so stays the next time. */
    assert_int_not_equal(inode(f->r.dir, DATASET_MARKER), marker);
    marker = inode(f->r.dir, DATASET_MARKER);
    assert_int_equal(run_stage(f), 0);
    assert_true(f->r.reused);
    assert_int_equal(inode(f->r.dir, DATASET_MARKER), marker);
}

static void torn_marker_is_staged_anew(void **state)
{
    static const char *const tear[] = { /* $m is the marker. */
        "truncate -s -1 $m", "truncate -s 0 $m",       "rm $m",
        "sed -i 3d $m",      "sed -i 's/^5 /6 /' $m",  "echo >>$m",
        "rm $m; mkdir $m",   "rm -r $m; mkfifo $m",    "rm $m; ln -s a $m",
    };
    struct fixture *f = *state;

    two_files(f);
    assert_int_equal(run_stage(f), 0);
    for (size_t i = 0; i < sizeof tear / sizeof tear[0]; i++) {
        sh("cd %s; m=" DATASET_MARKER "; %s", f->r.dir, tear[i]);
        assert_int_equal(run_stage(f), 0);
        assert_false(f->r.reused);
        assert_int_equal(run_stage(f), 0);
        assert_true(f->r.reused);
    }
}

/* Nobody but --reverify sees a change that leaves size, times and inode. */
static void reverify_hashes_again(void **state)
{
    struct fixture *f = *state;
    struct marker marker;
    struct manifest m;
    char text[4096];
    FILE *in;
    int folder;

    two_files(f);
    assert_int_equal(run_stage(f), 0);
    in = fopen(f->manifest, "re");
    assert_non_null(in);
    assert_int_equal(
        manifest_read(&m, "m", text, fread(text, 1, sizeof text, in), &f->e),
        0);
    (void)fclose(in);
    put_file(f->r.dir, "a", "jello", 5);
    folder = open(f->r.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(folder >= 0 && marker_read(folder, &m, &marker));
    for (size_t i = 0; i < marker.n; i++) {
        struct stat st;

        assert_true(stat_in(f->r.dir, marker.rows[i].path, &st));
        marker_row_set(&marker.rows[i], &st);
    }
    assert_int_equal(marker_write(folder, &m, &marker), 0);
    marker_free(&marker);
    (void)close(folder);
    manifest_free(&m);
    assert_int_equal(run_stage(f), 0);
    assert_true(f->r.reused);
    assert_int_equal(run_with(f, true, true), 0);
    assert_false(f->r.reused);
    assert_content(f->r.dir, "a", "hello", 5);
}

static void left_over_is_swept(void **state)
{
    struct fixture *f = *state;
    char part[PATH_MAX + 16];

    two_files(f);
    assert_int_equal(run_stage(f), 0);
    (void)snprintf(part, sizeof part, "%s/.%s.part", f->stage,
                   strrchr(f->r.dir, '/') + 1);
    for (int i = 0; i < 2; i++) {
        sh("mkdir -p %s/a/b; cd %s; echo x >a/b/c; ln -s / a/root; "
           "chmod 500 a",
           part, part);
        if (i == 1) /* First where a finished stage is found, then not. */
            sh("rm %s/a", f->r.dir);
        assert_int_equal(run_stage(f), 0);
        assert_int_equal(f->r.reused, i == 0);
        assert_int_not_equal(access(part, F_OK), 0);
    }
}

static void keep_is_not_the_same_stage(void **state)
{
    struct fixture *f = *state;
    uint8_t gz[256];
    size_t n = gzip(gz, sizeof gz, "hello", 5);

    put_file(f->src, "a.gz", gz, n);
    list_file(f, "a.gz", gz, n, ", \"unpack\": \"gzip\"");
    write_manifest(f);
    assert_int_equal(run_stage(f), 0);
    assert_content(f->r.dir, "a", "hello", 5);
    assert_int_equal(count_names(f->r.dir, "a.gz"), 0);
    text_init(&f->entries, f->json, sizeof f->json);
    list_file(f, "a.gz", gz, n, ", \"unpack\": \"gzip\", \"keep\": true");
    write_manifest(f);
    assert_int_equal(run_stage(f), 0); /* Of the same digest. */
    assert_false(f->r.reused);
    assert_content(f->r.dir, "a", "hello", 5);
    assert_content(f->r.dir, "a.gz", gz, n);
}

static void many_files_in_one_sync(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 300; i++) {
        char name[32], text[32];

        (void)snprintf(name, sizeof name, "d%d/f%d", i % 7, i);
        (void)snprintf(text, sizeof text, "content %d", i);
        sh("mkdir -p %s/d%d", f->src, i % 7);
        add_file(f, name, text, "");
    }
    write_manifest(f);
    assert_int_equal(run_stage(f), 0);
    assert_content(f->r.dir, "d6/f174", "content 174", 11);
    assert_int_equal(run_stage(f), 0);
    assert_true(f->r.reused);
}

static void no_place_for_a_stage(void **state)
{
    struct fixture *f = *state;
    char final[PATH_MAX], want[ERR_TEXT_MAX];

    two_files(f);
    put_file(f->top, "stage", "", 0);
    assert_fault(f, run_stage(f), ERR_USAGE,
                 "open stage 'T/stage': Not a directory: give a --stage that "
                 "can be written to");
    sh("rm %s", f->stage);
    assert_int_equal(run_stage(f), 0);
    memcpy(final, f->r.dir, sizeof final);
    sh("rm -r %s; echo mine >%s", final, final);
    (void)snprintf(want, sizeof want,
                   "'T/stage/%s' is in the way of the stage, and is no "
                   "folder: remove it",
                   strrchr(final, '/') + 1);
    assert_fault(f, run_stage(f), ERR_USAGE, want);
}

static void four_at_once_copy_once(void **state)
{
    struct fixture *f = *state;
    pid_t pids[4];
    int n_made = 0;

    two_files(f);
    for (int i = 0; i < 4; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(run_stage(f) ? 2 : f->r.reused);
        assert_true(pids[i] > 0);
    }
    for (int i = 0; i < 4; i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(status == 0 || status == 1 << 8);
        n_made += status == 0;
    }
    assert_int_equal(n_made, 1);
}

#define TEST(fn)                                                               \
    cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(stages_and_publishes),
        TEST(second_start_copies_nothing),
        TEST(changed_bytes_are_staged_anew),
        TEST(missing_file_is_staged_anew),
        TEST(changed_looks_are_hashed_and_kept),
        TEST(torn_marker_is_staged_anew),
        TEST(reverify_hashes_again),
        TEST(left_over_is_swept),
        TEST(keep_is_not_the_same_stage),
        TEST(many_files_in_one_sync),
        TEST(no_place_for_a_stage),
        TEST(four_at_once_copy_once),
    };

    (void)umask(022);
    return cmocka_run_group_tests_name("stage", tests, NULL, NULL);
}
