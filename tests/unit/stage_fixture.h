/* stage_fixture: a temporary folder with a source, a manifest and a stage. */
#ifndef TESTS_STAGE_FIXTURE_H
#define TESTS_STAGE_FIXTURE_H

#include "base/digest.h"
#include "base/text.h"
#include "dataset/stage.h"

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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

struct fixture {
    char top[64], src[96], stage[96], manifest[128];
    char json[65536]; /* The entries of the manifest, so far. */
    struct text entries;
    struct stage_result r;
    struct err e;
};

static inline void sh(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
static inline void sh(const char *fmt, ...)
{
    char cmd[1024];
    pid_t pid;
    int status = -1;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(cmd, sizeof cmd, fmt, ap);
    va_end(ap);
    pid = fork();
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-ec", cmd, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
}

static inline int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (!f)
        return -1;
    /* In memory where that can be: some tests make thousands of files. */
    (void)snprintf(f->top, sizeof f->top, "/dev/shm/agent-test-XXXXXX");
    if (!mkdtemp(f->top)) {
        (void)snprintf(f->top, sizeof f->top, "/tmp/agent-test-XXXXXX");
        if (!mkdtemp(f->top))
            return -1;
    }
    (void)snprintf(f->src, sizeof f->src, "%s/src", f->top);
    (void)snprintf(f->stage, sizeof f->stage, "%s/stage", f->top);
    (void)snprintf(f->manifest, sizeof f->manifest, "%s/m.json", f->top);
    if (mkdir(f->src, 0755) < 0)
        return -1;
    text_init(&f->entries, f->json, sizeof f->json);
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;

    sh("chmod -R u+rwx %s; rm -rf %s", f->top, f->top);
    free(f);
    return 0;
}

static inline void put_file(const char *folder, const char *name,
                            const void *data, size_t len)
{
    char path[PATH_MAX + 300];
    FILE *out;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    out = fopen(path, "we");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, len, out), len);
    assert_int_equal(fclose(out), 0);
}

static inline void sha256_hex(const void *data, size_t len, char *hex)
{
    uint8_t sum[DIGEST_MAX];
    struct digest d;

    digest_start(&d, DIGEST_SHA256);
    digest_add(&d, data, len);
    digest_end(&d, sum);
    digest_hex(sum, 32, hex);
}

/* List a file of these bytes; `more` is put at the end: ", \"keep\": true". */
static inline void list_file(struct fixture *f, const char *path,
                             const void *data, size_t len, const char *more)
{
    char hex[DIGEST_HEX_MAX];

    sha256_hex(data, len, hex);
    text_add(&f->entries,
             "%s\n{\"path\": \"%s\", \"size\": %zu, \"sha256\": \"%s\"%s}",
             f->entries.len ? "," : "", path, len, hex, more);
    assert_false(f->entries.cut);
}

/* Put a file into the source, and list it. */
static inline void add_file(struct fixture *f, const char *path,
                            const char *text, const char *more)
{
    put_file(f->src, path, text, strlen(text));
    list_file(f, path, text, strlen(text), more);
}

static inline void write_manifest(struct fixture *f)
{
    FILE *out = fopen(f->manifest, "we");

    assert_non_null(out);
    (void)fprintf(out, "{\"manifest\": 1, \"name\": \"set\", \"files\": [%s]}",
                  f->json);
    assert_int_equal(fclose(out), 0);
}

/* One gzip member, appended to `out`. */
static inline size_t gzip(uint8_t *out, size_t cap, const void *data,
                          size_t len)
{
    z_stream z = {.next_out = out, .avail_out = (uInt)cap};

    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9,
                                  Z_DEFAULT_STRATEGY),
                     Z_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)len;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&z), Z_OK);
    return z.total_out;
}

static inline int run_with(struct fixture *f, bool into_stage, bool reverify)
{
    struct stage_request req = {.manifest = f->manifest, .source = f->src,
                                .stage_dir = into_stage ? f->stage : NULL,
                                .reverify = reverify, .silent_ms = 50};

    f->e.text[0] = '\0';
    return stage_run(&req, NULL, NULL, &f->r, &f->e);
}

static inline int run_stage(struct fixture *f)
{
    return run_with(f, true, false);
}

/* The fault's class, and its text with the folder's name taken out. */
static inline void assert_fault(struct fixture *f, int rc, int code,
                                const char *want)
{
    char got[ERR_TEXT_MAX];
    char *at, *to = got;

    assert_int_equal(rc, -code);
    assert_int_equal(f->e.code, code);
    for (at = f->e.text; *at;) {
        if (strncmp(at, f->top, strlen(f->top)) == 0) {
            at += strlen(f->top);
            *to++ = 'T';
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
    assert_string_equal(got, want);
}

static inline void assert_content(const char *folder, const char *name,
                                  const void *data, size_t len)
{
    char path[PATH_MAX + 300], *got = malloc(len + 2);
    FILE *in;

    assert_non_null(got);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    in = fopen(path, "re");
    assert_non_null(in);
    assert_int_equal(fread(got, 1, len + 1, in), len);
    assert_memory_equal(got, data, len);
    assert_int_equal(fclose(in), 0);
    free(got);
}

static inline bool stat_in(const char *folder, const char *name,
                           struct stat *st)
{
    char path[PATH_MAX + 300];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return lstat(path, st) == 0;
}

static inline ino_t inode(const char *folder, const char *name)
{
    struct stat st;

    assert_true(stat_in(folder, name, &st));
    return st.st_ino;
}

/* Number of names in a folder that begin with `start`. */
static inline int count_names(const char *folder, const char *start)
{
    DIR *dir = opendir(folder);
    struct dirent *d;
    int n = 0;

    assert_non_null(dir);
    while ((d = readdir(dir)))
        n += strncmp(d->d_name, start, strlen(start)) == 0;
    (void)closedir(dir);
    return n;
}

#endif
