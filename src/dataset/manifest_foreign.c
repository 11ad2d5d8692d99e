/* manifest_foreign: DVC's .dir objects and Git LFS pointers; see
 * manifest_reader.h. */
#include "dataset/manifest.h"

#include "dataset/manifest_reader.h"

#include <stdlib.h>
#include <string.h>

/* A value of a key that is not ours to know: DVC adds some now and then. */
static int skip_value(struct reader *r)
{
    size_t at;
    json_t *v = reader_value(r, &at);

    json_decref(v);
    return v ? 0 : -r->e->code;
}

static int read_md5(struct reader *r, struct manifest_entry *entry)
{
    size_t at;
    char *hex = reader_string(r, "md5", &at);
    bool good;

    if (!hex)
        return -r->e->code;
    good = digest_read_hex(hex, entry->hash, digest_size(DIGEST_MD5));
    free(hex);
    return good ? 0 : reader_fail(r, at, "'md5' must be 32 hex digits");
}

static int read_relpath(struct reader *r, struct manifest_entry *entry)
{
    size_t at;
    struct path_shown p;
    const char *why;

    entry->path = reader_string(r, "relpath", &at);
    if (!entry->path)
        return -r->e->code;
    why = path_fault(entry->path);
    if (!why)
        return 0;
    return reader_fail(r, at, "path '%s' is refused: %s",
                       path_show(&p, NULL, entry->path), why);
}

struct dvc_seen {
    bool md5, relpath;
};

static int read_dvc_key(struct reader *r, struct manifest_entry *entry,
                        struct dvc_seen *seen)
{
    size_t at;
    char *key = NULL;
    bool again = false;
    int rc;

    if (reader_peek(r) != '"')
        return reader_fail(r, r->pos,
                           "a key in double quotes should come here");
    key = reader_string(r, "key", &at);
    if (!key)
        return -r->e->code;
    rc = reader_expect(r, ':', "after the key");
    if (rc == 0 && strcmp(key, "md5") == 0) {
        again = seen->md5;
        seen->md5 = true;
        rc = read_md5(r, entry);
    } else if (rc == 0 && strcmp(key, "relpath") == 0) {
        again = seen->relpath;
        seen->relpath = true;
        if (!again)
            rc = read_relpath(r, entry);
    } else if (rc == 0) {
        rc = skip_value(r);
    }
    if (again)
        rc = reader_fail(r, at, "'%s' is given twice", key);
    free(key);
    return rc;
}

static int read_dvc_entry(struct reader *r)
{
    struct manifest_entry e = {.hash_kind = DIGEST_MD5}, *entry;
    struct dvc_seen seen = {.md5 = false};
    bool first = true;
    size_t at;
    int rc = reader_expect(r, '{', "for a file");

    at = r->pos - 1;
    e.line = reader_line(r);
    while (rc == 0 &&
           (rc = reader_item(r, &first, '}', "between two keys")) > 0)
        rc = read_dvc_key(r, &e, &seen);
    if (rc == 0 && !(seen.md5 && seen.relpath))
        rc = reader_fail(r, at, "an entry without '%s'",
                         seen.md5 ? "relpath" : "md5");
    if (rc) {
        free(e.path);
        return rc;
    }
    entry = manifest_add(r->m, e.path, r->e);
    if (!entry)
        return -r->e->code;
    e.out_path = e.path;
    *entry = e;
    return 0;
}

int manifest_read_dvc(struct reader *r)
{
    bool first = true;
    int rc = reader_expect(r, '[', "for the files");

    while (rc == 0 && (rc = reader_item(r, &first, ']', "in the list")) > 0) {
        rc = reader_refill(r);
        if (rc == 0)
            rc = read_dvc_entry(r);
    }
    if (rc == 0)
        rc = reader_refill(r);
    if (rc == 0 && (reader_peek(r) != '\0' || r->pos < r->len))
        return reader_fail(r, r->pos, "text after the end of the manifest");
    return rc;
}

/* The rest of the line where it begins with `key` and a space, in `out`. */
static bool take_lfs_line(struct reader *r, const char *key, char *out,
                          size_t cap)
{
    size_t n = strlen(key), len = 0;
    const char *line = r->text + r->pos;

    while (r->pos + len < r->len && line[len] != '\n')
        len++;
    if (len <= n || memcmp(line, key, n) != 0 || line[n] != ' ' ||
        len - n - 1 >= cap)
        return false;
    memcpy(out, line + n + 1, len - n - 1);
    out[len - n - 1] = '\0';
    if (out[0] && out[strlen(out) - 1] == '\r')
        out[strlen(out) - 1] = '\0';
    r->pos += len + (r->pos + len < r->len);
    return true;
}

/* "version", any "ext-" lines, "oid", "size": the keys are sorted. */
int manifest_read_lfs(struct reader *r)
{
    char value[256];
    struct manifest_entry *entry;
    char *path = strdup(""), *end;
    size_t start = r->pos;

    if (!path)
        return err_set(r->e, ERR_RESOURCE, "no memory left for the manifest");
    entry = manifest_add(r->m, path, r->e);
    if (!entry)
        return -r->e->code;
    entry->line = 1;
    entry->hash_kind = DIGEST_SHA256;
    (void)take_lfs_line(r, "version", value, sizeof value);
    if (r->len - r->pos > 4 && memcmp(r->text + r->pos, "ext-", 4) == 0)
        return reader_fail(r, r->pos,
                           "a Git LFS pointer with extensions, which say how "
                           "the object was changed: it cannot be verified");
    start = r->pos;
    if (!take_lfs_line(r, "oid", value, sizeof value) ||
        strncmp(value, "sha256:", 7) != 0 ||
        !digest_read_hex(value + 7, entry->hash, 32))
        return reader_fail(r, start,
                           "a Git LFS pointer needs 'oid sha256:' and 64 hex "
                           "digits here");
    start = r->pos;
    if (!take_lfs_line(r, "size", value, sizeof value) || value[0] < '0' ||
        value[0] > '9')
        return reader_fail(r, start, "a Git LFS pointer needs 'size' here");
    entry->size = strtoull(value, &end, 10);
    entry->has_size = true;
    if (*end || strlen(value) > 16 || entry->size > MANIFEST_FILE_MAX)
        return reader_fail(r, start + 5, "'size' must be a whole number, at "
                                         "most 1 PiB");
    if (reader_peek(r) != '\0' || r->pos < r->len)
        return reader_fail(r, r->pos, "text after the end of the pointer");
    return 0;
}
