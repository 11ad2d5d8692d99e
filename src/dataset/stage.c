/* stage: see stage.h.
 *
 * The happy path of a stage: read the manifest; find a finished folder, or
 * make one (stage_take.c).
 *
 * What may fail: the manifest, the source or a file of it (ERR_DATA,
 * ERR_NODATA); the stage cannot be written to (ERR_USAGE) or is full or
 * failing (ERR_RESOURCE). None of this leaves anything that looks finished. */
#include "dataset/stage.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "dataset/lease.h"
#include "dataset/load.h"
#include "dataset/stage_take.h"
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
    /* The part folder's path is about the longest that is shown. */
    if (format(s->final, sizeof s->final, "%s@%s", s->m->name, digest16) &&
        format(s->part, sizeof s->part, ".%s.part", s->final) &&
        format(s->old, sizeof s->old, "%s.old", s->part) &&
        format(s->lock, sizeof s->lock, ".%s.lock", s->final) &&
        format(ret->dir, sizeof ret->dir, "%s/%s", s->root.shown, s->part) &&
        format(ret->dir, sizeof ret->dir, "%s%s%s", s->root.shown,
               s->root.shown[1] ? "/" : "", s->final))
        return 0;
    errno = ENAMETOOLONG;
    return no_path("stage", s->root.shown, e);
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
    s.is_shared = lease_is_shared(fd);
    s.silent_ms = req->silent_ms ? req->silent_ms : LEASE_SILENT_MS;
    return stage_take(&s, req->reverify, ret, e);
}

void stage_advise(const struct stage_request *req,
                  const struct stage_result *r, struct err *e)
{
    char text[ERR_TEXT_MAX];
    struct path_shown m, s;
    struct text t;

    if (e->code != ERR_DATA)
        return;
    text_init(&t, text, sizeof text);
    text_add(&t, "%s", e->text);
    if (r->is_read)
        text_add(&t, "; agent verify '%s'%s%s%s names all that is bad",
                 path_show(&m, NULL, req->manifest), req->source ? " '" : "",
                 req->source ? path_show(&s, NULL, req->source) : "",
                 req->source ? "'" : "");
    else if (!strstr(text, "agent manifest"))
        text_add(&t, "; agent manifest DIR writes a manifest");
    if (!t.cut) /* What is wrong comes first. */
        (void)text_copy(e->text, sizeof e->text, text);
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
    struct meter meter = {.fn = progress, .ctx = ctx, .name = ret->name};
    struct manifest m;
    autofree char *source = NULL;
    int rc;

    memset(ret, 0, sizeof *ret);
    rc = load_manifest(&m, req->manifest, req->source, &source, e);
    if (rc)
        return rc;
    ret->is_read = true;
    (void)text_copy(ret->name, sizeof ret->name, m.name);
    memcpy(ret->digest, m.digest, sizeof ret->digest);
    ret->n_files = m.n_entries;
    ret->weak_hash = manifest_weak_hash(&m);
    meter_begin(&meter, m.n_bytes, m.n_entries);
    rc = req->stage_dir ? into_stage(req, &m, source, &meter, ret, e)
                        : in_place(&m, source, &meter, ret, e);
    if (rc == 0) {
        meter_begin(&meter, m.n_bytes, m.n_entries);
        atomic_store(&meter.done, m.n_bytes);
        atomic_store(&meter.n_done, m.n_entries);
        meter_tell(&meter);
    }
    ret->n_bytes = m.n_bytes;
    manifest_free(&m);
    if (rc == -ERR_NODATA && !req->source)
        rc = err_set(e, ERR_NODATA, "%s (without --source files are looked for "
                     "in the manifest's folder)", e->text);
    return rc;
}
