/* verify_structure: see verify.h. */
#include "dataset/verify.h"

#include "base/mem.h"
#include "dataset/pool.h"
#include "dataset/structure.h"
#include "dataset/tree.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct looking {
    const struct manifest *m;
    struct tree tree;
    struct meter *meter;
    struct verify_report *report;
};

static int look_at(struct looking *l, const char *path, struct err *e)
{
    autoclose int fd = -1;
    struct structure s;
    struct stat st;
    struct path_shown p;
    int rc = tree_open_file(&l->tree, path, &fd, &st, e);

    if (rc)
        return rc;
    structure_check(fd, (uint64_t)st.st_size, path, &s);
    if (s.error)
        return tree_fault(&l->tree, path, s.error, e);
    if (s.kind || s.fault[0]) {
        (void)pthread_mutex_lock(&l->report->lock);
        l->report->n_known++;
        (void)pthread_mutex_unlock(&l->report->lock);
    }
    if (!s.fault[0])
        return 0;
    return err_set(e, ERR_DATA, "'%s': %s", path_show(&p, l->tree.shown, path),
                   s.fault);
}

/* A pool_fn. What is there unpacked only is looked at unpacked. */
static int look_one(void *ctx, const struct pool_turn *turn, struct err *e)
{
    struct looking *l = ctx;
    const struct manifest_entry *entry = &l->m->entries[turn->i];
    bool packed = tree_has(&l->tree, entry->path);
    int rc;

    meter_add_file(l->meter);
    if (!packed && !tree_has(&l->tree, entry->out_path))
        return 0; /* Missing: others say so. */
    rc = look_at(l, packed ? entry->path : entry->out_path, e);
    return rc ? verify_note(l->report, turn->i, e) : 0;
}

int verify_structure(const struct manifest *m, const char *folder,
                     struct meter *meter, struct verify_report *ret,
                     struct err *e)
{
    struct looking l = {.m = m, .meter = meter, .report = ret};
    int rc;

    memset(ret, 0, sizeof *ret);
    (void)pthread_mutex_init(&ret->lock, NULL);
    rc = tree_open(&l.tree, folder, e);
    if (rc)
        return rc;
    meter_begin(meter, 0, m->n_entries); /* Only some of each is read. */
    rc = pool_run(m->n_entries, 1, look_one, &l, meter, e);
    verify_sort(ret);
    (void)close(l.tree.fd);
    return rc;
}
