/* verify: see verify.h.
 *
 * A file to unpack may be there packed, unpacked, or both, as the folder is a
 * source or a stage: all that is there must be right. Where only the unpacked
 * one is there, the manifest must have its hash. */
#include "dataset/verify.h"

#include "dataset/copy.h"
#include "dataset/found.h"
#include "dataset/sizes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct verify {
    struct copy copy;
    bool all;
    struct marker marker; /* Of a stage with archives; n is 0: none. */
    struct verify_report *report;
};

static int check_unpacked_alone(struct verify *v,
                                const struct manifest_entry *entry,
                                const struct pool_turn *turn, struct err *e)
{
    struct copy_want want = {
        entry->out_path,
        entry->has_unpacked_size ? entry->unpacked_size : UINT64_MAX,
        DIGEST_SHA256, entry->unpacked_sha256, "the manifest"};
    struct stat st;

    return copy_check_file(&v->copy, turn, &want, &st, e);
}

/* The packed file, and the unpacked one against what that has just given. */
static int check_both(struct verify *v, const struct manifest_entry *entry,
                      const struct pool_turn *turn, struct err *e)
{
    struct copy_want want = {entry->out_path, UINT64_MAX, DIGEST_SHA256,
                             v->copy.unpacked[turn->i], "the packed file"};
    struct stat st;
    int rc = copy_entry(&v->copy, turn, e);

    if (rc)
        return rc;
    if (tree_has(&v->copy.from, entry->out_path))
        return copy_check_file(&v->copy, turn, &want, &st, e);
    (void)pthread_mutex_lock(&v->report->lock);
    v->report->n_packed++;
    (void)pthread_mutex_unlock(&v->report->lock);
    return 0;
}

/* In a stage the marker says what was in it: see check_row(). */
static int check_archive(struct verify *v, const struct manifest_entry *entry,
                         const struct pool_turn *turn, struct err *e)
{
    int rc;

    if (v->marker.n > 0 && !tree_has(&v->copy.from, entry->path))
        return 0;
    rc = copy_entry(&v->copy, turn, e);
    if (rc || v->marker.n > 0)
        return rc;
    (void)pthread_mutex_lock(&v->report->lock);
    v->report->n_packed++;
    (void)pthread_mutex_unlock(&v->report->lock);
    return 0;
}

/* A pool_fn: a file that came from an archive. */
static int check_row(void *ctx, const struct pool_turn *turn, struct err *e)
{
    struct verify *v = ctx;
    struct marker_row *row = &v->marker.rows[turn->i];
    struct copy_want want = {row->path, row->size, DIGEST_SHA256, row->sha256,
                             "the stage's marker"};
    struct stat st;
    int rc;

    if (row->output != MARKER_NO_OUTPUT)
        return 0;
    rc = row->link ? found_check_link(&v->copy.from, row, e)
                   : copy_check_file(&v->copy, turn, &want, &st, e);
    return rc && v->all ? verify_note(v->report, v->copy.m->n_entries, e) : rc;
}

static int check_entry(struct verify *v, const struct pool_turn *turn,
                       struct err *e)
{
    const struct manifest_entry *entry = &v->copy.m->entries[turn->i];

    if (entry->unpack == UNPACK_NONE)
        return copy_entry(&v->copy, turn, e);
    if (manifest_is_archive(entry->unpack))
        return check_archive(v, entry, turn, e);
    if (entry->has_unpacked_sha256 && !tree_has(&v->copy.from, entry->path) &&
        tree_has(&v->copy.from, entry->out_path))
        return check_unpacked_alone(v, entry, turn, e);
    return check_both(v, entry, turn, e);
}

int verify_note(struct verify_report *r, size_t i, struct err *e)
{
    struct verify_bad *more;

    (void)pthread_mutex_lock(&r->lock);
    more = reallocarray(r->bad, r->n_bad + 1, sizeof *r->bad);
    if (more) {
        r->bad = more;
        r->bad[r->n_bad].entry = i;
        r->bad[r->n_bad++].err = *e;
    }
    (void)pthread_mutex_unlock(&r->lock);
    return more ? 0 : err_set(e, ERR_RESOURCE, "no memory left to verify");
}

/* A pool_fn. */
static int verify_one(void *ctx, const struct pool_turn *turn, struct err *e)
{
    struct verify *v = ctx;
    int rc = check_entry(v, turn, e);

    meter_add_file(v->copy.meter);
    return rc && v->all ? verify_note(v->report, turn->i, e) : rc;
}

static int by_entry(const void *a, const void *b)
{
    size_t x = ((const struct verify_bad *)a)->entry;
    size_t y = ((const struct verify_bad *)b)->entry;

    return (x > y) - (x < y);
}

void verify_sort(struct verify_report *r)
{
    if (r->n_bad > 0)
        qsort(r->bad, r->n_bad, sizeof *r->bad, by_entry);
}

void verify_free(struct verify_report *r)
{
    free(r->bad);
    (void)pthread_mutex_destroy(&r->lock);
    memset(r, 0, sizeof *r);
}

/* Also what is there and not listed, where that is a fault. */
static int verify_all(struct verify *v, struct manifest *m, struct err *e)
{
    int rc = sizes_fill(m, &v->copy.from, v->copy.meter, e);

    if (rc)
        return rc;
    meter_begin(v->copy.meter, m->n_bytes, m->n_entries);
    if (manifest_has_archives(m) &&
        !marker_read(v->copy.from.fd, m, &v->marker))
        marker_free(&v->marker);
    rc = pool_run(m->n_entries, sizeof(struct pump_buffers), verify_one, v,
                  v->copy.meter, e);
    if (rc == 0)
        rc = pool_run(v->marker.n, sizeof(struct pump_buffers), check_row, v,
                      v->copy.meter, e);
    marker_free(&v->marker);
    if (rc)
        return rc;
    rc = sizes_check_bag(m, &v->copy.from, e);
    return rc && v->all ? verify_note(v->report, m->n_entries, e) : rc;
}

int verify_set(struct manifest *m, const char *folder, bool all,
               struct meter *meter, struct verify_report *ret, struct err *e)
{
    struct verify v = {.all = all, .report = ret};
    uint8_t (*unpacked)[32];
    int rc;

    memset(ret, 0, sizeof *ret);
    (void)pthread_mutex_init(&ret->lock, NULL);
    v.copy = (struct copy){.m = m, .to = {.fd = -1}, .meter = meter};
    rc = tree_open(&v.copy.from, folder, e);
    if (rc)
        return rc;
    v.copy.unpacked = unpacked = calloc(m->n_entries, sizeof *unpacked);
    if (unpacked) {
        rc = verify_all(&v, m, e);
        verify_sort(ret);
    } else {
        rc = err_set(e, ERR_RESOURCE, "no memory left to verify");
    }
    (void)close(v.copy.from.fd);
    free(unpacked);
    return rc;
}
