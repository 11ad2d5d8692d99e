/* structure: see structure.h. */
#include "dataset/structure.h"

#include "base/mem.h"
#include "dataset/gunzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE (256u << 10)
#define SAFETENSORS_MAX 100000000u /* Of a header, as in the library. */
#define EXPLAIN_MAX (UINT64_C(1) << 30)
#define ZIP_TAIL_MAX (65535u + 22u)

/* Bytes at `at`, fewer only at the end. False: ret->error is set. */
static bool read_at(int fd, void *buf, size_t n, uint64_t at, size_t *ret_n,
                    struct structure *ret)
{
    size_t done = 0;

    while (done < n) {
        ssize_t got = pread(fd, (char *)buf + done, n - done,
                            (off_t)(at + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            ret->error = errno;
            return false;
        }
        if (got == 0)
            break;
        done += (size_t)got;
    }
    *ret_n = done;
    return true;
}

static void check_tar(int fd, uint64_t size, struct structure *ret)
{
    struct structure_tar t = {.n = 0};
    uint8_t block[STRUCTURE_BLOCK];
    size_t n = sizeof block;

    ret->kind = "tar";
    while (!t.ended && t.n < size) {
        if (!read_at(fd, block, sizeof block, t.n, &n, ret) ||
            n < sizeof block || !structure_tar_block(&t, block, ret))
            break;
    }
    if (!ret->error && !ret->fault[0])
        (void)structure_tar_end(&t, size, ret);
}

static void check_safetensors(int fd, const struct structure_view *v,
                              struct structure *ret)
{
    uint64_t len = 0;
    autofree char *text = NULL;
    size_t n = 0;

    ret->kind = "safetensors";
    for (unsigned i = 0; i < 8 && i < v->n_head; i++)
        len |= (uint64_t)v->head[i] << (8 * i);
    if (v->n_head < 9 || v->head[8] != '{' || len > SAFETENSORS_MAX) {
        (void)structure_fail(ret, "it has no safetensors header");
        return;
    }
    if (len > v->size - 8) {
        (void)structure_fail(ret, "it ends within its safetensors header: it "
                                  "is cut");
        return;
    }
    text = malloc(len);
    if (!text)
        ret->error = ENOMEM;
    else if (read_at(fd, text, len, 8, &n, ret) && n == len)
        (void)structure_safetensors(text, len, v->size, ret);
}

/* Frames of zstd that hold no data; pzstd begins each of its own with one. */
static bool is_skippable(const struct structure_view *v)
{
    return v->n_head >= 4 && (v->head[0] & 0xf0) == 0x50 &&
           memcmp(v->head + 1, "\x2a\x4d\x18", 3) == 0;
}

/* Where the name alone says what the first and the last bytes must be. */
static void check_ends(int fd, const struct structure_view *v,
                       struct structure *ret)
{
    static const struct {
        const char *end, *kind, *head, *tail;
        size_t n_head;
    } ends[] = {
        {".parquet", "parquet", "PAR1", "PAR1", 4},
        {".xz", "xz", "\xfd"
                      "7zXZ",
         "YZ", 6},
        {".zst", "zstd", "\x28\xb5\x2f\xfd", "", 4},
        {".npy", "npy", "\x93NUMPY", "", 6},
    };

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t n_tail = strlen(ends[i].tail), n = 0;
        char tail[4];

        if (!structure_ends(v->path, ends[i].end))
            continue;
        ret->kind = ends[i].kind;
        if (strcmp(ret->kind, "zstd") == 0 && is_skippable(v))
            return;
        if (v->n_head < ends[i].n_head ||
            memcmp(v->head, ends[i].head, ends[i].n_head) != 0)
            (void)structure_fail(ret, "it does not begin as %s", ret->kind);
        else if (n_tail > 0 && (v->size < 2 * n_tail ||
                                !read_at(fd, tail, n_tail, v->size - n_tail,
                                         &n, ret) ||
                                memcmp(tail, ends[i].tail, n_tail) != 0))
            (void)structure_fail(ret, "it does not end as %s: it is cut",
                                 ret->kind);
        return;
    }
}

/* A zip ends with its directory's end, and a comment. */
static void check_zip(int fd, const struct structure_view *v,
                      struct structure *ret)
{
    size_t len = v->size < ZIP_TAIL_MAX ? (size_t)v->size : ZIP_TAIL_MAX;
    autofree uint8_t *tail = malloc(len + 1);
    size_t n = 0;

    ret->kind = "zip";
    if (!tail) {
        ret->error = ENOMEM;
        return;
    }
    if (!read_at(fd, tail, len, v->size - len, &n, ret))
        return;
    for (size_t i = 0; i + 22 <= n; i++)
        if (memcmp(tail + i, "PK\5\6", 4) == 0)
            return;
    (void)structure_fail(ret, "the zip has no directory at its end: it is "
                              "cut");
}

/* What a gzip file unpacks to, as far as it is looked at. */
struct inside {
    struct structure_view view;
    struct structure_tar tar;
    bool is_tar;
    uint8_t block[STRUCTURE_BLOCK];
    size_t n_block;
    struct structure *ret;
};

static void add_tar(struct inside *in, const uint8_t *data, size_t len)
{
    while (len > 0 && !in->tar.ended && !in->ret->fault[0]) {
        size_t n = STRUCTURE_BLOCK - in->n_block;

        if (in->tar.skip > 0) {
            n = in->tar.skip < len ? (size_t)in->tar.skip : len;
            in->tar.skip -= n;
        } else {
            n = n < len ? n : len;
            memcpy(in->block + in->n_block, data, n);
            in->n_block += n;
            if (in->n_block == STRUCTURE_BLOCK) {
                in->n_block = 0;
                (void)structure_tar_block(&in->tar, in->block, in->ret);
            }
        }
        data += n;
        len -= n;
    }
}

static void add_inside(struct inside *in, const uint8_t *data, size_t len)
{
    size_t room = sizeof in->view.head - in->view.n_head;
    size_t n = len < room ? len : room;

    memcpy(in->view.head + in->view.n_head, data, n);
    in->view.n_head += n;
    in->view.size += len;
    if (in->is_tar)
        add_tar(in, data, len);
}

/* The whole of it; NULL or what is wrong with the gzip data itself. */
static const char *unpack(int fd, struct gunzip *g, uint8_t *buf,
                          struct inside *in)
{
    uint64_t at = 0;
    size_t n, got;

    while (read_at(fd, buf, PIECE, at, &n, in->ret) && n > 0) {
        at += n;
        gunzip_add(g, buf, n);
        while ((got = gunzip_next(g, buf + PIECE, PIECE)) > 0)
            add_inside(in, buf + PIECE, got);
        if (gunzip_no_memory(g))
            in->ret->error = ENOMEM;
        if (gunzip_fault(g, false))
            return gunzip_fault(g, false);
    }
    return in->ret->error ? NULL : gunzip_fault(g, true);
}

static void check_inside(struct inside *in, const char *fault)
{
    if (fault)
        (void)structure_fail(in->ret, "%s", fault);
    if (in->ret->fault[0] || in->ret->error)
        return;
    if (in->is_tar)
        (void)structure_tar_end(&in->tar, in->view.size, in->ret);
    else if (structure_idx(&in->view, in->ret))
        (void)structure_tokens(&in->view, in->ret);
}

static void check_gzip(int fd, const char *path, struct structure *ret)
{
    struct gunzip *g = gunzip_new();
    uint8_t *buf = malloc(2 * PIECE);
    char *name = strdup(path);
    struct inside *in = calloc(1, sizeof *in);

    ret->kind = "gzip";
    if (g && buf && name && in) {
        in->ret = ret;
        in->view.path = name;
        in->is_tar = structure_ends(name, ".tar.gz") ||
                     structure_ends(name, ".tgz");
        if (structure_ends(name, ".gz"))
            name[strlen(name) - 3] = '\0';
        check_inside(in, unpack(fd, g, buf, in));
    } else {
        ret->error = ENOMEM;
    }
    gunzip_free(g);
    free(in);
    free(name);
    free(buf);
}

static bool look(int fd, uint64_t size, const char *path,
                 struct structure_view *v, struct structure *ret)
{
    memset(ret, 0, sizeof *ret);
    *v = (struct structure_view){.path = path, .size = size};
    return read_at(fd, v->head, sizeof v->head, 0, &v->n_head, ret) &&
           structure_page(v, ret);
}

void structure_look(int fd, uint64_t size, const char *path,
                    struct structure *ret)
{
    struct structure_view v;

    if (look(fd, size, path, &v, ret) && structure_idx(&v, ret))
        (void)structure_tokens(&v, ret);
}

void structure_check(int fd, uint64_t size, const char *path,
                     struct structure *ret)
{
    struct structure_view v;

    if (!look(fd, size, path, &v, ret))
        return;
    if ((v.n_head > 2 && memcmp(v.head, "\x1f\x8b", 2) == 0) ||
        structure_ends(path, ".gz") || structure_ends(path, ".tgz"))
        check_gzip(fd, path, ret);
    else if (structure_ends(path, ".tar"))
        check_tar(fd, size, ret);
    else if (structure_ends(path, ".safetensors"))
        check_safetensors(fd, &v, ret);
    else if (structure_ends(path, ".zip") ||
             (v.n_head > 4 && memcmp(v.head, "PK\3\4", 4) == 0))
        check_zip(fd, &v, ret);
    else if (structure_idx(&v, ret) && structure_tokens(&v, ret) && !ret->kind)
        check_ends(fd, &v, ret);
}

void structure_explain(int fd, uint64_t size, const char *path,
                       struct structure *ret)
{
    if (size <= EXPLAIN_MAX)
        structure_check(fd, size, path, ret);
    else
        structure_look(fd, size, path, ret);
}
