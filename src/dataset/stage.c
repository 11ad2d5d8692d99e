/* stage: see stage.h.
 *
 * The happy path of a stage: read the manifest; a finished folder that still
 * looks as its marker says is taken at once, without the lock and without a
 * write, so that a read-only stage will do. Else take the lock, look again
 * (another stager may have made it meanwhile), and build.
 *
 * What may fail: the manifest, the source or a file of it (ERR_DATA,
 * ERR_NODATA); the stage cannot be written to (ERR_USAGE) or is full or
 * failing (ERR_RESOURCE). None of this leaves anything that looks finished. */
#include "dataset/stage.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "dataset/build.h"
#include "dataset/found.h"
#include "dataset/load.h"
#include "dataset/lock.h"
#include "dataset/tree.h"
#include "dataset/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

/* False where it does not fit. */
__attribute__((format(printf, 3, 4))) static bool
format(char *buf, size_t cap, const char *fmt, ...)
{
    struct text t;
    va_list ap;

    text_init(&t, buf, cap);
    va_start(ap, fmt);
    text_vadd(&t, fmt, ap);
    va_end(ap);
    return !t.cut;
}

static int no_path(const char *what, const char *path, struct err *e)
{
    struct path_shown p;
    int error = errno;

    return err_set(e, error == ENOMEM ? ERR_RESOURCE : ERR_USAGE,
                   "%s '%s': %s", what, path_show(&p, NULL, path),
                   strerror(error));
}

static int in_place(struct manifest *m, const char *source,
                    struct meter *meter, struct stage_result *ret,
                    struct err *e)
{
    struct verify_report report;
    int rc = verify_set(m, source, false, meter, &report, e);

    if (rc == 0 && !realpath(source, ret->dir))
        rc = no_path("source", source, e);
    if (rc == 0 && report.n_packed > 0)
        (void)format(ret->note, sizeof ret->note,
                     "%zu of the %zu files of '%s' are packed, and without "
                     "--stage stay so: give --stage DIR where the workers "
                     "want them unpacked",
                     report.n_packed, m->n_entries, m->name);
    verify_free(&report);
    return rc;
}

/* Make the stage's folder, and those above, where they are missing. */
static int make_root(const char *path, struct err *e)
{
    char part[PATH_MAX];
    struct space s = {.fd = AT_FDCWD};
    char *at = part;

    if (!text_copy(part, sizeof part, path)) {
        errno = ENAMETOOLONG;
        return no_path("stage", path, e);
    }
    do {
        char was;

        at += strspn(at, "/");
        at += strcspn(at, "/");
        was = *at;
        *at = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST && errno != EISDIR) {
            struct stat st;
            int error = errno;

            if (stat(part, &st) < 0) /* EROFS, say, of what is there. */
                return space_fault(&s, "make folder", part, error, e);
        }
        *at = was;
    } while (*at);
    return 0;
}

static int open_root(const char *path, char real[PATH_MAX], int *ret_fd,
                     struct err *e)
{
    struct space s = {.fd = AT_FDCWD};
    int fd, rc;

    if (path[0] == '\0') {
        errno = ENOENT;
        return no_path("stage", path, e);
    }
    rc = make_root(path, e);
    if (rc)
        return rc;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return space_fault(&s, "open stage", path, errno, e);
    if (!realpath(path, real)) {
        (void)close(fd);
        return no_path("stage", path, e);
    }
    *ret_fd = fd;
    return 0;
}

static int name_parts(struct stage_set *s, struct stage_result *ret,
                      struct err *e)
{
    char digest16[17];

    digest_hex(s->m->digest, 8, digest16);
    /* The part folder's path is the longest that is shown or returned. */
    if (format(s->final, sizeof s->final, "%s@%s", s->m->name, digest16) &&
        format(s->part, sizeof s->part, ".%s.part", s->final) &&
        format(s->lock, sizeof s->lock, ".%s.lock", s->final) &&
        format(ret->dir, sizeof ret->dir, "%s/%s", s->root.shown, s->part) &&
        format(ret->dir, sizeof ret->dir, "%s%s%s", s->root.shown,
               s->root.shown[1] ? "/" : "", s->final))
        return 0;
    errno = ENAMETOOLONG;
    return no_path("stage", s->root.shown, e);
}

/* Take a folder whose files changed their looks but not their bytes: a volume
 * that was restored, or whose owner kubelet set anew (fsGroup). The marker is
 * brought up to date where that can be, so that the next start is quick. */
static bool take_changed(struct found *f, const struct stage_set *s, bool all,
                         bool locked, char note[ERR_TEXT_MAX])
{
    struct err why;

    if (found_hash(f, s, all, &why)) {
        (void)format(note, ERR_TEXT_MAX, "the set is staged anew: %s",
                     why.text);
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
        (void)format(note, ERR_TEXT_MAX,
                     "the set is staged anew: '%s' has no marker of a "
                     "finished stage of it",
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

    if (fstatat(s->root.fd, s->part, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    lock = lock_try(&s->root, s->lock);
    if (lock < 0)
        return;
    (void)tree_remove(s->root.fd, s->part);
    (void)close(lock);
}

static int make(const struct stage_set *s, bool reverify,
                struct stage_result *ret, struct err *e)
{
    autoclose int lock = -1;
    int rc = lock_take(&s->root, s->lock, s->meter, &lock, e);

    if (rc) {
        /* A read-only stage can still be right, if slow to check. */
        struct err ignored;

        if (rc == -ERR_USAGE && look(s, reverify, true, ret->note,
                                     &ignored) == 1) {
            ret->reused = true;
            return 0;
        }
        return rc;
    }
    rc = look(s, reverify, true, ret->note, e);
    if (rc == 0)
        return build_stage(s, e);
    if (rc < 0)
        return rc;
    (void)tree_remove(s->root.fd, s->part); /* See sweep(). */
    ret->reused = true;
    return 0;
}

static int into_stage(const struct stage_request *req,
                      struct manifest *m, const char *source,
                      struct meter *meter, struct stage_result *ret,
                      struct err *e)
{
    char real[PATH_MAX];
    autoclose int fd = -1;
    struct stage_set s = {.m = m, .source = source, .meter = meter};
    int rc = open_root(req->stage_dir, real, &fd, e);

    if (rc)
        return rc;
    s.root = (struct space){.fd = fd, .shown = real};
    rc = name_parts(&s, ret, e);
    if (rc)
        return rc;
    rc = look(&s, req->reverify, false, ret->note, e);
    ret->note[0] = '\0'; /* Told again, or no longer so, under the lock. */
    if (rc < 0)
        return rc;
    if (rc == 0)
        return make(&s, req->reverify, ret, e);
    sweep(&s);
    ret->reused = true;
    return 0;
}

void stage_warn_hash(const char *name, const char *weak_hash)
{
    if (weak_hash)
        log_warning("%s: %s is good against accidents, not against intent: "
                    "use sha256 where the source is not trusted",
                    name, weak_hash);
}

void stage_warn(const struct stage_result *r)
{
    if (r->note[0])
        log_warning("%s", r->note);
    stage_warn_hash(r->name, r->weak_hash);
}

int stage_run(const struct stage_request *req, stage_progress_fn *progress,
              void *ctx, struct stage_result *ret, struct err *e)
{
    struct meter meter = {.fn = progress, .ctx = ctx};
    struct manifest m;
    autofree char *source = NULL;
    int rc;

    memset(ret, 0, sizeof *ret);
    rc = load_manifest(&m, req->manifest, req->source, &source, e);
    if (rc)
        return rc;
    (void)text_copy(ret->name, sizeof ret->name, m.name);
    memcpy(ret->digest, m.digest, sizeof ret->digest);
    ret->n_files = m.n_entries;
    ret->weak_hash = manifest_weak_hash(&m);
    meter.total = m.n_bytes;
    atomic_init(&meter.done, 0);
    rc = req->stage_dir ? into_stage(req, &m, source, &meter, ret, e)
                        : in_place(&m, source, &meter, ret, e);
    if (rc == 0) {
        atomic_store(&meter.done, meter.total);
        meter_tell(&meter, false);
    }
    ret->n_bytes = m.n_bytes;
    manifest_free(&m);
    return rc;
}
