/* manifest_json: our own JSON, read strictly. */
#include "dataset/manifest.h"

#include "dataset/manifest_reader.h"

#include <stdlib.h>
#include <string.h>

enum entry_key {
    KEY_PATH,
    KEY_SIZE,
    KEY_HASH, /* One for each row of DIGEST_TABLE, in its order. */
    KEY_UNPACK = KEY_HASH + 4,
    KEY_UNPACKED_SIZE,
    KEY_UNPACKED_SHA256,
    KEY_KEEP,
    KEY_URLS,
    N_ENTRY_KEYS
};

static const char *const entry_keys[N_ENTRY_KEYS] = {
    "path",
    "size",
#define X(name, word, bytes) word,
    DIGEST_TABLE(X)
#undef X
    "unpack",
    "unpacked_size",
    "unpacked_sha256",
    "keep",
    "urls",
};

enum top_key { KEY_MANIFEST, KEY_NAME, KEY_FILES, N_TOP_KEYS };

static const char *const top_keys[N_TOP_KEYS] = {"manifest", "name", "files"};

/* Hex digits of a hash; "sha256:" and the like may stand before them. */
static int read_hash(struct reader *r, const char *key, enum digest_kind kind,
                     uint8_t *ret)
{
    size_t at, n = strlen(digest_word(kind));
    char *hex = reader_string(r, key, &at);
    const char *digits = hex;
    bool good;

    if (!hex)
        return -r->e->code;
    if (strncmp(hex, digest_word(kind), n) == 0 && hex[n] == ':')
        digits += n + 1;
    good = digest_read_hex(digits, ret, digest_size(kind));
    free(hex);
    if (!good)
        return reader_fail(r, at, "'%s' must be %zu hex digits", key,
                           2 * digest_size(kind));
    return 0;
}

static int read_unpack(struct reader *r, enum manifest_unpack *ret)
{
    size_t at;
    char *word = reader_string(r, "unpack", &at);
    unsigned i = 0;

    if (!word)
        return -r->e->code;
    while (i < N_UNPACKS &&
           strcmp(word, manifest_unpack_word((enum manifest_unpack)i)) != 0)
        i++;
    free(word);
    if (i == N_UNPACKS)
        return reader_fail(r, at,
                           "'unpack' must be none, gzip, tar, tar.gz, "
                           "tar.zst, tar.xz or zip");
    *ret = (enum manifest_unpack)i;
    return 0;
}

/* Only checked: what to download is agent-fetch's business. */
static int read_urls(struct reader *r)
{
    bool first = true;
    unsigned n = 0;
    int rc = reader_expect(r, '[', "for 'urls'");

    while (rc == 0 && (rc = reader_item(r, &first, ']', "in 'urls'")) > 0) {
        size_t at;
        char *url = reader_string(r, "urls", &at);

        if (!url)
            return -r->e->code;
        rc = 0;
        if (*url == '\0')
            rc = reader_fail(r, at, "an empty URL");
        else if (++n > MANIFEST_MAX_URLS)
            rc = reader_fail(r, at, "more than %u URLs", MANIFEST_MAX_URLS);
        free(url);
    }
    return rc;
}

struct draft {
    struct manifest_entry entry; /* path is owned until it is added. */
    uint32_t seen;
    size_t path_at;
};

static int read_path(struct reader *r, struct draft *d)
{
    const char *why;
    struct path_shown p;

    d->entry.path = reader_string(r, "path", &d->path_at);
    if (!d->entry.path)
        return -r->e->code;
    why = path_fault(d->entry.path);
    if (why)
        return reader_fail(r, d->path_at, "path '%s' is refused: %s",
                           path_show(&p, NULL, d->entry.path), why);
    return 0;
}

static int read_entry_value(struct reader *r, struct draft *d, unsigned key)
{
    struct manifest_entry *entry = &d->entry;

    switch ((enum entry_key)key) {
    case KEY_PATH:
        return read_path(r, d);
    case KEY_SIZE:
        entry->has_size = true;
        return reader_size(r, "size", &entry->size);
    case KEY_UNPACK:
        return read_unpack(r, &entry->unpack);
    case KEY_UNPACKED_SIZE:
        entry->has_unpacked_size = true;
        return reader_size(r, "unpacked_size", &entry->unpacked_size);
    case KEY_UNPACKED_SHA256:
        entry->has_unpacked_sha256 = true;
        return read_hash(r, "unpacked_sha256", DIGEST_SHA256,
                         entry->unpacked_sha256);
    case KEY_KEEP:
        return reader_bool(r, "keep", &entry->keep);
    case KEY_URLS:
        return read_urls(r);
    case KEY_HASH:
    case N_ENTRY_KEYS:
        break;
    }
    if (d->seen & ((1u << KEY_UNPACK) - (1u << KEY_HASH)) & ~(1u << key))
        return reader_fail(r, r->pos,
                           "a second hash of one file: keep one of sha256, "
                           "sha512, sha1, md5");
    entry->hash_kind = (enum digest_kind)(key - KEY_HASH);
    return read_hash(r, entry_keys[key], entry->hash_kind, entry->hash);
}

/* What the keys of one entry say together. */
static int check_entry(struct reader *r, struct draft *d, size_t at)
{
    const struct manifest_entry *entry = &d->entry;
    struct path_shown p;
    const char *why = NULL;

    if (!(d->seen & 1u << KEY_PATH))
        return reader_fail(r, at, "an entry without 'path'");
    if (!(d->seen & 1u << KEY_SIZE))
        why = "no 'size'";
    else if (!(d->seen & ((1u << KEY_UNPACK) - (1u << KEY_HASH))))
        why = "none of sha256, sha512, sha1, md5";
    else if (entry->unpack == UNPACK_NONE &&
             (entry->has_unpacked_size || entry->has_unpacked_sha256))
        why = "an unpacked size or hash, but no 'unpack'";
    else if (manifest_is_archive(entry->unpack) && entry->has_unpacked_sha256)
        why = "an unpacked hash, but many files in it";
    if (!why)
        return 0;
    return reader_fail(r, at, "'%s' has %s", path_show(&p, NULL, entry->path),
                       why);
}

static int add_entry(struct reader *r, struct draft *d)
{
    struct manifest_entry *entry;
    char *path = d->entry.path, *out = path;
    const char *why;
    int rc;

    d->entry.path = NULL;
    entry = manifest_add(r->m, path, r->e);
    if (!entry)
        return -r->e->code;
    *entry = d->entry;
    entry->path = entry->out_path = path;
    if (entry->unpack != UNPACK_GZIP)
        return 0;
    rc = manifest_out_path(path, &out, r->e);
    if (rc)
        return rc;
    if (out == path)
        return reader_fail(r, d->path_at, "a path to unpack must end with .gz");
    entry->out_path = out;
    why = path_fault(out);
    if (!why)
        return 0;
    return reader_fail(r, d->path_at, "the path without .gz is refused: %s",
                       why);
}

static int read_entry(struct reader *r)
{
    struct draft d = {.seen = 0};
    bool first = true;
    unsigned key = 0;
    size_t at;
    int rc = reader_expect(r, '{', "for a file");

    at = r->pos - 1;
    d.entry.line = reader_line(r);
    while (rc == 0 && (rc = reader_key(r, &first, entry_keys, N_ENTRY_KEYS,
                                     &d.seen, &key)) > 0)
        rc = read_entry_value(r, &d, key);
    if (rc == 0)
        rc = check_entry(r, &d, at);
    if (rc == 0)
        rc = add_entry(r, &d);
    free(d.entry.path);
    return rc;
}

static int read_files(struct reader *r)
{
    bool first = true;
    int rc = reader_expect(r, '[', "for 'files'");

    while (rc == 0 && (rc = reader_item(r, &first, ']', "in 'files'")) > 0) {
        rc = reader_refill(r);
        if (rc == 0)
            rc = read_entry(r);
    }
    return rc ? rc : reader_refill(r);
}

static int read_version(struct reader *r)
{
    size_t at;
    json_t *v = reader_value(r, &at);
    bool one;

    if (!v)
        return -r->e->code;
    one = json_is_integer(v) && json_integer_value(v) == 1;
    json_decref(v);
    if (one)
        return 0;
    return reader_fail(r, at,
                       "'manifest' must be 1, the only version of the format "
                       "that is read");
}

static int read_name(struct reader *r)
{
    size_t at;
    char *name = reader_string(r, "name", &at);
    const char *why;
    int rc = 0;

    if (!name)
        return -r->e->code;
    why = path_name_fault(name);
    if (why)
        rc = reader_fail(r, at, "'name' is refused: %s", why);
    else
        memcpy(r->m->name, name, strlen(name) + 1);
    free(name);
    return rc;
}

int manifest_read_ours(struct reader *r)
{
    bool first = true;
    uint32_t seen = 0;
    unsigned key = 0;
    int rc;

    rc = reader_expect(r, '{', "for the manifest");
    if (rc)
        return rc;
    while ((rc = reader_key(r, &first, top_keys, N_TOP_KEYS, &seen,
                            &key)) > 0) {
        if (key == KEY_MANIFEST)
            rc = read_version(r);
        else if (key == KEY_NAME)
            rc = read_name(r);
        else
            rc = read_files(r);
        if (rc)
            return rc;
    }
    for (unsigned k = 0; rc == 0 && k < N_TOP_KEYS; k++)
        if (!(seen & 1u << k))
            return reader_fail(r, r->pos - 1, "'%s' is missing", top_keys[k]);
    if (rc == 0 && (reader_peek(r) != '\0' || r->pos < r->len))
        return reader_fail(r, r->pos, "text after the end of the manifest");
    return rc;
}
