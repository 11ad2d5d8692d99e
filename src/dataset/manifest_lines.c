/* manifest_lines: lines of a hash and a path, as sha256sum and its kin write
 * them, BSD's --tag lines, BagIt's; see manifest_reader.h.
 *
 * Read as coreutils reads them, and a little more: "sha256:" before a hash, a
 * PGP signature around the lines (not checked), "./" before a path. */
#include "dataset/manifest.h"

#include "dataset/manifest_reader.h"

#include <stdlib.h>
#include <string.h>

struct line {
    struct reader *r;
    size_t at, end; /* In the window; without the line's end. */
    bool escaped;   /* A backslash stood before it. */
    enum digest_kind kind;
    uint8_t hash[DIGEST_MAX];
};

static int fail(struct line *l, size_t at, const char *why)
{
    return reader_fail(l->r, at, "%s", why);
}

static bool starts(const struct line *l, const char *word)
{
    size_t n = strlen(word);

    return l->end - l->at >= n && memcmp(l->r->text + l->at, word, n) == 0;
}

static char at(const struct line *l, size_t i)
{
    return i < l->end ? l->r->text[i] : '\0';
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
           (c >= 'A' && c <= 'F');
}

static int read_hash(struct line *l, size_t from, size_t n, bool any_kind)
{
    char hex[DIGEST_HEX_MAX];

    if (any_kind) {
        static const enum digest_kind kinds[] = {DIGEST_MD5, DIGEST_SHA1,
                                                 DIGEST_SHA256, DIGEST_SHA512};
        size_t i = 0;

        while (i < 4 && n != 2 * digest_size(kinds[i]))
            i++;
        if (i == 4)
            return reader_fail(l->r, from,
                               "a hash of %zu hex digits: md5 has 32, sha1 "
                               "40, sha256 64, sha512 128",
                               n);
        l->kind = kinds[i];
    }
    if (n != 2 * digest_size(l->kind))
        return reader_fail(l->r, from, "%s has %zu hex digits, not %zu",
                           digest_word(l->kind), 2 * digest_size(l->kind), n);
    memcpy(hex, l->r->text + from, n);
    hex[n] = '\0';
    if (!digest_read_hex(hex, l->hash, digest_size(l->kind)))
        return fail(l, from, "no hex digits");
    return 0;
}

/* The character that is written as `c` after a backslash; NUL: none. */
static char unescape(char c)
{
    return c == '\\' ? '\\' : c == 'n' ? '\n' : c == 'r' ? '\r' : '\0';
}

/* What BagIt writes as %0A, %0D and %25. */
static char percent(const struct line *l, size_t i)
{
    char a = at(l, i + 1), b = at(l, i + 2);

    if (a == '0' && (b == 'A' || b == 'a'))
        return '\n';
    if (a == '0' && (b == 'D' || b == 'd'))
        return '\r';
    return a == '2' && b == '5' ? '%' : '\0';
}

/* The path from `from` to `to`, without escapes; to be freed. */
static char *copy_path(struct line *l, size_t from, size_t to)
{
    bool bag = l->r->m->form == FORM_BAG || l->r->m->form == FORM_TAGS;
    char *path = malloc(to - from + 1), *out = path;

    if (!path) {
        (void)err_set(l->r->e, ERR_RESOURCE, "no memory left for the manifest");
        return NULL;
    }
    for (size_t i = from; i < to; i++) {
        char c = l->r->text[i];

        if (l->escaped && c == '\\') {
            c = i + 1 < to ? unescape(l->r->text[++i]) : '\0';
        } else if (bag && c == '%' && percent(l, i)) {
            c = percent(l, i);
            i += 2;
        }
        if (c == '\0') {
            (void)fail(l, i, l->r->text[i] ? "an unknown escape in the path"
                                           : "a NUL in the path");
            free(path);
            return NULL;
        }
        *out++ = c;
    }
    *out = '\0';
    return path;
}

static int add(struct line *l, size_t from, size_t to)
{
    struct manifest_entry *entry;
    struct path_shown p;
    uint32_t line = reader_line(l->r);
    const char *why;
    char *path;

    if (to - from == 1 && at(l, from) == '-')
        return fail(l, from, "the hash of standard input, of no file");
    if (to - from > 4 * DATASET_PATH_MAX)
        return fail(l, from, "the path has more than 4000 bytes");
    path = copy_path(l, from, to);
    if (!path)
        return -l->r->e->code;
    while (strncmp(path, "./", 2) == 0)
        memmove(path, path + 2, strlen(path + 2) + 1);
    why = path_fault(path);
    if (!why && l->r->m->form == FORM_BAG && strncmp(path, "data/", 5) != 0)
        why = "the payload of a bag is under data/";
    if (why) {
        (void)reader_fail(l->r, from, "path '%s' is refused: %s",
                          path_show(&p, NULL, path), why);
        free(path);
        return -l->r->e->code;
    }
    entry = manifest_add(l->r->m, path, l->r->e);
    if (!entry)
        return -l->r->e->code;
    entry->line = line;
    entry->hash_kind = l->kind;
    memcpy(entry->hash, l->hash, sizeof entry->hash);
    return 0;
}

/* The names of hashes in tag lines: of coreutils and BSD, of openssl dgst. */
static const struct {
    const char *word;
    enum digest_kind kind;
} tags[] = {
    {"SHA256", DIGEST_SHA256},   {"SHA512", DIGEST_SHA512},
    {"SHA1", DIGEST_SHA1},       {"MD5", DIGEST_MD5},
    {"SHA2-256", DIGEST_SHA256}, {"SHA2-512", DIGEST_SHA512},
};

/* Length of the tag that the line begins with, up to its '('; 0: none. */
static size_t find_tag(struct line *l)
{
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        size_t n = strlen(tags[i].word);

        if (!starts(l, tags[i].word))
            continue;
        if (at(l, l->at + n) == ' ')
            n++;
        if (at(l, l->at + n) == '(') {
            l->kind = tags[i].kind;
            return n + 1;
        }
    }
    return 0;
}

/* "SHA256 (path) = hash", from behind: the path may hold a ')'. */
static int read_tag(struct line *l, size_t n)
{
    size_t from = l->at + n, hex = l->end, to;
    int rc;

    while (hex > from && is_hex(at(l, hex - 1)))
        hex--;
    rc = read_hash(l, hex, l->end - hex, false);
    if (rc)
        return rc;
    to = hex;
    while (to > from && at(l, to - 1) == ' ')
        to--;
    if (to == from || at(l, --to) != '=')
        return fail(l, hex, "a '=' should stand before the hash");
    while (to > from && at(l, to - 1) == ' ')
        to--;
    if (to == from || at(l, --to) != ')')
        return fail(l, to, "a ')' should stand after the path");
    return add(l, from, to);
}

/* "hash  path", "hash *path", "hash path". */
static int read_plain(struct line *l)
{
    bool bag = l->r->m->form == FORM_BAG || l->r->m->form == FORM_TAGS;
    size_t from = l->at, to;
    bool any_kind = true;
    int rc;

    for (size_t i = 0; i < 4; i++) {
        enum digest_kind kind = (enum digest_kind)i;
        size_t n = strlen(digest_word(kind));

        if (starts(l, digest_word(kind)) && at(l, from + n) == ':') {
            from += n + 1;
            l->kind = kind;
            any_kind = false;
            break;
        }
    }
    to = from;
    while (is_hex(at(l, to)))
        to++;
    if (to - from < 32 || (at(l, to) != ' ' && at(l, to) != '\t'))
        return fail(l, l->at,
                    "neither JSON nor a line of a hash and a path, as "
                    "sha256sum writes it");
    rc = read_hash(l, from, to - from, any_kind);
    if (rc)
        return rc;
    to++;
    while (bag && (at(l, to) == ' ' || at(l, to) == '\t'))
        to++;
    if (at(l, to) == ' ' || at(l, to) == '*')
        to++;
    if (to >= l->end)
        return fail(l, l->at, "a hash without a path");
    return add(l, to, l->end);
}

enum armour { ARMOUR_NONE, ARMOUR_HEAD, ARMOUR_TEXT, ARMOUR_SIGNATURE };

/* True where the line is no sum but PGP's. */
static bool is_armour(struct line *l, enum armour *state)
{
    if (starts(l, "-----BEGIN PGP SIGNED MESSAGE-----")) {
        *state = ARMOUR_HEAD;
    } else if (starts(l, "-----BEGIN PGP SIGNATURE-----")) {
        *state = ARMOUR_SIGNATURE;
    } else if (starts(l, "-----END PGP SIGNATURE-----")) {
        *state = ARMOUR_NONE;
    } else if (*state == ARMOUR_HEAD) {
        if (l->at == l->end)
            *state = ARMOUR_TEXT;
    } else if (*state != ARMOUR_SIGNATURE) {
        if (*state == ARMOUR_TEXT && starts(l, "- "))
            l->at += 2;
        return false;
    }
    return true;
}

static int read_line(struct line *l, enum armour *state)
{
    bool bag = l->r->m->form == FORM_BAG || l->r->m->form == FORM_TAGS;
    size_t n;

    if (l->end > l->at && at(l, l->end - 1) == '\r')
        l->end--;
    if (memchr(l->r->text + l->at, '\0', l->end - l->at))
        return fail(l, l->at, "a NUL byte: this is data and no manifest; "
                    "agent manifest DIR writes one");
    if (is_armour(l, state))
        return 0;
    while (at(l, l->at) == ' ' || at(l, l->at) == '\t')
        l->at++;
    if (l->at == l->end || at(l, l->at) == '#')
        return 0;
    if (!bag && at(l, l->at) == '\\') {
        l->escaped = true;
        l->at++;
    }
    if (starts(l, "BLAKE2") || starts(l, "SHA224") || starts(l, "SHA384"))
        return fail(l, l->at,
                    "this hash is not read: use sha256, sha512, sha1 or md5");
    n = bag ? 0 : find_tag(l);
    return n > 0 ? read_tag(l, n) : read_plain(l);
}

int manifest_read_lines(struct reader *r)
{
    enum armour state = ARMOUR_NONE;
    int rc = 0;

    while (rc == 0) {
        struct line l = {.r = r};
        const char *newline;

        rc = reader_refill(r);
        if (rc || r->pos == r->len)
            break;
        newline = memchr(r->text + r->pos, '\n', r->len - r->pos);
        if (!newline && r->input && !r->ended)
            return reader_fail(r, r->len, "a line without end");
        l.at = r->pos;
        l.end = newline ? (size_t)(newline - r->text) : r->len;
        rc = read_line(&l, &state);
        r->pos = newline ? (size_t)(newline - r->text) + 1 : r->len;
    }
    return rc;
}
