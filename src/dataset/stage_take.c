/* stage_take: see stage_take.h. */
#include "dataset/stage_take.h"

#include "base/mem.h"
#include "base/text.h"
#include "dataset/build.h"
#include "dataset/found.h"
#include "dataset/lease.h"
#include "dataset/lock.h"
#include "dataset/tree.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

/* So many others may fail before us, or find us suspended. */
#define TRIES_MAX 100

#define ANEW "the set is staged anew: "

__attribute__((format(printf, 2, 3))) static void
set_note(char note[ERR_TEXT_MAX], const char *fmt, ...)
{
    struct text t;
    va_list ap;

    text_init(&t, note, ERR_TEXT_MAX);
    va_start(ap, fmt);
    text_vadd(&t, fmt, ap);
    va_end(ap);
}

/* Take a folder whose files changed their looks but not their bytes: a volume
 * that was restored, or whose owner kubelet set anew (fsGroup). The marker is
 * brought up to date where that can be, so that the next start is quick. */
static bool take_changed(struct found *f, const struct stage_set *s, bool all,
                         bool locked, char note[ERR_TEXT_MAX])
{
    struct err why;

    if (found_hash(f, s, all, &why)) {
        set_note(note, ANEW "%s", why.text);
        return false;
    }
    if (locked && f->state == FOUND_CHANGED)
        (void)marker_write(f->fd, s->m, &f->marker);
    return true;
}

/* A size that the manifest does not list, from the stage itself. */
static void know_size(struct manifest *m, const struct marker_row *row)
{
    const struct manifest_output *out;
    struct manifest_entry *entry;

    if (row->output == MARKER_NO_OUTPUT)
        return;
    out = &m->outputs[row->output];
    entry = &m->entries[out->entry];
    if (entry->has_size || out->unpacked || entry->size > 0)
        return;
    entry->size = row->size;
    m->n_bytes += row->size;
}

/* 1: a finished stage is there; 0: not, so far as can be said at this point. */
static int look(const struct stage_set *s, bool reverify, bool locked,
                char note[ERR_TEXT_MAX], struct err *e)
{
    struct found f;
    int rc = found_look(&f, s, e);
    bool good = false;

    if (rc == 0 && f.state == FOUND_SAME)
        good = !reverify || take_changed(&f, s, true, locked, note);
    else if (rc == 0 && f.state == FOUND_CHANGED && locked)
        good = take_changed(&f, s, reverify, locked, note);
    else if (rc == 0 && f.state == FOUND_OTHER && locked)
        set_note(note,
                 ANEW "'%s' has no marker of a finished stage of it",
                 s->final);
    for (size_t i = 0; good && i < f.marker.n; i++)
        know_size(s->m, &f.marker.rows[i]);
    found_free(&f);
    return rc ? rc : good;
}

/* A stager that was killed after an exchange leaves what it replaced. */
static void sweep(const struct stage_set *s)
{
    struct stat st;
    int lock;

    if (fstatat(s->root.fd, s->part, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
        fstatat(s->root.fd, s->old, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    lock = lock_try(&s->root, s->lock);
    if (lock < 0)
        return;
    if (s->is_shared)
        lease_sweep(s, lock);
    else
        (void)tree_remove(s->root.fd, s->part);
    (void)close(lock);
}

/* With the lock. `*ret_again`: another one was waited for and came to its end,
 * or the lease was lost while it worked. */
static int make_locked(struct stage_set *s, int lock, bool reverify,
                       struct stage_result *ret, bool *ret_again,
                       struct err *e)
{
    struct lease lease;
    int rc = lease_take(&lease, s, lock, s->work, e);

    *ret_again = rc > 0;
    if (rc > 0) { /* 1: it has left a finished stage. */
        rc = look(s, reverify, false, ret->note, e);
        ret->reused = rc == 1;
        *ret_again = rc == 0;
    }
    if (rc || *ret_again)
        return rc < 0 ? rc : 0;
    rc = look(s, reverify, true, ret->note, e);
    if (rc == 0)
        rc = build_stage(s, e);
    else if (rc > 0)
        ret->reused = true;
    if (rc > 0 && !s->is_shared)
        (void)tree_remove(s->root.fd, s->part); /* See sweep(). */
    if (!ret->note[0] && lease.took_over && !ret->reused)
        set_note(ret->note,
                 "'%s' was being staged by a process on another host that "
                 "fell silent for %u s: this one has done it",
                 s->final, (unsigned)(s->silent_ms / 1000));
    *ret_again = !lease_drop(&lease) && rc < 0;
    return rc < 0 ? rc : 0;
}

/* A read-only stage can still be right, if slow to check. `e` is why there can
 * be no other: where it is wrong both are told. */
static int take_as_it_is(const struct stage_set *s, bool reverify,
                         struct stage_result *ret, struct err *e)
{
    struct err fault = *e, ignored;

    ret->note[0] = '\0';
    ret->reused = look(s, reverify, true, ret->note, &ignored) == 1;
    if (ret->reused)
        return 0;
    if (ret->note[0])
        return err_set(e, ERR_DATA, "%s, and it cannot be staged anew: %s",
                       ret->note + sizeof ANEW - 1, fault.text);
    return -fault.code;
}

static int make(struct stage_set *s, bool reverify, struct stage_result *ret,
                struct err *e)
{
    autoclose int lock = -1;
    bool again;
    int rc = lock_take(&s->root, s->lock, s->is_shared, s->meter, &lock, e);

    again = rc == 0;
    for (unsigned i = 0; again && i < TRIES_MAX; i++)
        rc = make_locked(s, lock, reverify, ret, &again, e);
    /* No lock, no lease, or no part folder. */
    if (rc == -ERR_USAGE)
        return take_as_it_is(s, reverify, ret, e);
    if (again && rc == 0)
        return err_set(e, ERR_RESOURCE,
                       "stage '%s': %u others have begun it and failed",
                       s->root.shown, TRIES_MAX);
    return rc;
}

int stage_take(struct stage_set *s, bool reverify, struct stage_result *ret,
               struct err *e)
{
    int rc = look(s, reverify, false, ret->note, e);

    ret->note[0] = '\0'; /* Told again, or no longer so, under the lock. */
    if (rc < 0)
        return rc;
    if (rc == 0)
        return make(s, reverify, ret, e);
    sweep(s);
    ret->reused = true;
    return 0;
}
