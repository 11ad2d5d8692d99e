/* manifest_write: the formats of `agent manifest`; see manifest.h. */
#include "dataset/manifest.h"

#include "base/std_fds.h"

#include <jansson.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(struct err *e)
{
    return err_set(e, ERR_RESOURCE, "no memory left to write the manifest");
}

static int check_stream(FILE *out, struct err *e)
{
    const char *why = std_fds_end(out);

    return why ? err_set(e, ERR_RESOURCE, "write the manifest: %s", why) : 0;
}

/* Write `s` as a JSON string. False where it is no UTF-8. */
static bool put_string(FILE *out, const char *s)
{
    json_t *v = json_string(s);
    char *text = v ? json_dumps(v, JSON_ENCODE_ANY) : NULL;

    if (text)
        (void)fputs(text, out);
    free(text);
    json_decref(v);
    return text != NULL;
}

/* Looked at before anything is written. */
static int check_strings(const struct manifest *m, struct err *e)
{
    struct path_shown p;

    for (size_t i = 0; i <= m->n_entries; i++) {
        const char *s = i < m->n_entries ? m->entries[i].path : m->name;
        json_t *v = json_string(s);

        if (!v)
            return err_set(e, ERR_DATA,
                           "'%s' is no UTF-8, which JSON needs: %s",
                           path_show(&p, NULL, s),
                           i < m->n_entries
                               ? "rename it, or use --format sha256sum"
                               : "give another --name");
        json_decref(v);
    }
    return 0;
}

static int put_entry(FILE *out, const struct manifest_entry *entry,
                     struct err *e)
{
    char hex[DIGEST_HEX_MAX];

    (void)fputs("  {\"path\": ", out);
    if (!put_string(out, entry->path))
        return no_memory(e);
    digest_hex(entry->hash, digest_size(entry->hash_kind), hex);
    (void)fprintf(out, ", \"size\": %" PRIu64 ",\n   \"%s\": \"%s\"",
                  entry->size, digest_word(entry->hash_kind), hex);
    if (entry->unpack != UNPACK_NONE)
        (void)fprintf(out, ",\n   \"unpack\": \"%s\"%s",
                      manifest_unpack_word(entry->unpack),
                      entry->keep ? ", \"keep\": true" : "");
    if (entry->has_unpacked_size)
        (void)fprintf(out, ", \"unpacked_size\": %" PRIu64,
                      entry->unpacked_size);
    if (entry->has_unpacked_sha256) {
        digest_hex(entry->unpacked_sha256, 32, hex);
        (void)fprintf(out, ",\n   \"unpacked_sha256\": \"%s\"", hex);
    }
    (void)fputs("}", out);
    return 0;
}

int manifest_write_json(FILE *out, const struct manifest *m, struct err *e)
{
    int rc = check_strings(m, e);

    if (rc)
        return rc;
    (void)fputs("{\"manifest\": 1, \"name\": ", out);
    if (!put_string(out, m->name))
        return no_memory(e);
    (void)fputs(",\n \"files\": [\n", out);
    for (size_t i = 0; i < m->n_entries; i++) {
        if (i > 0)
            (void)fputs(",\n", out);
        rc = put_entry(out, &m->entries[i], e);
        if (rc)
            return rc;
    }
    (void)fputs("\n ]}\n", out);
    return check_stream(out, e);
}

/* sha256sum(1) puts a backslash before a line whose name is escaped. */
static void put_sum(FILE *out, const struct manifest_entry *entry)
{
    char hex[DIGEST_HEX_MAX];
    bool odd = strpbrk(entry->path, "\\\n\r") != NULL;

    digest_hex(entry->hash, digest_size(entry->hash_kind), hex);
    /* A bare "-" would be read as standard input. */
    (void)fprintf(out, "%s%s  %s", odd ? "\\" : "", hex,
                  strcmp(entry->path, "-") == 0 ? "./" : "");
    for (const char *at = entry->path; *at; at++) {
        if (*at == '\\')
            (void)fputs("\\\\", out);
        else if (*at == '\n')
            (void)fputs("\\n", out);
        else if (*at == '\r')
            (void)fputs("\\r", out);
        else
            (void)fputc(*at, out);
    }
    (void)fputc('\n', out);
}

int manifest_write_sums(FILE *out, const struct manifest *m, struct err *e)
{
    for (size_t i = 0; i < m->n_entries; i++)
        put_sum(out, &m->entries[i]);
    return check_stream(out, e);
}
