/* command_manifest: `agent manifest`; see commands.h. */
#include "dataset/commands.h"

#include "agent/options.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "dataset/listing.h"
#include "dataset/telling.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Where the manifest goes. */
struct output {
    const char *path;     /* NULL: stdout. */
    char real[PATH_MAX];  /* The file itself where `path` is a link. */
    char tmp[PATH_MAX];   /* "": written to as it is, a pipe or device. */
    const char *name;     /* Last component of `real`. */
    struct listing_skip skip;
};

static int output_fault(const struct output *o, const char *what,
                        struct err *e)
{
    struct path_shown p;
    int error = errno;
    int code = error == ENOENT || err_wants_other_path(error) ? ERR_USAGE
                                                              : ERR_RESOURCE;

    return err_set(e, code, "%s '%s': %s%s", what,
                   path_show(&p, NULL, o->path), strerror(error),
                   code == ERR_USAGE ? ": give an -o that can be written" : "");
}

/* Split `real` into folder and name; the temporary file lies beside it. */
static int name_tmp(struct output *o, struct err *e)
{
    char *slash = strrchr(o->real, '/');
    size_t n_folder = slash ? (size_t)(slash - o->real) + 1 : 0;
    char folder[PATH_MAX];
    int n;

    o->name = o->real + n_folder;
    memcpy(folder, o->real, n_folder);
    memcpy(folder + n_folder, n_folder ? "" : ".", n_folder ? 1 : 2);
    n = snprintf(o->tmp, sizeof o->tmp, "%.*s.%s.%ld.tmp", (int)n_folder,
                 o->real, o->name, (long)getpid());
    if (o->name[0] == '\0' || n < 0 || (size_t)n >= sizeof o->tmp ||
        strlen(o->name) > NAME_MAX - 24)
        errno = o->name[0] ? ENAMETOOLONG : EISDIR;
    else if (stat(folder, &o->skip.folder) == 0)
        return 0;
    return output_fault(o, "write", e);
}

static int output_open(struct output *o, const char *path, struct err *e)
{
    struct stat st;

    memset(o, 0, sizeof *o);
    o->path = path && strcmp(path, "-") != 0 ? path : NULL;
    if (!o->path) {
        o->skip.by_inode = fstat(STDOUT_FILENO, &o->skip.file) == 0 &&
                           S_ISREG(o->skip.file.st_mode);
        return 0;
    }
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode)) {
            errno = EISDIR;
            return output_fault(o, "write", e);
        }
        if (!S_ISREG(st.st_mode))
            return 0; /* A device, say: never replaced. */
        if (!realpath(path, o->real))
            return output_fault(o, "write", e);
    } else if (strlen(path) < sizeof o->real) {
        memcpy(o->real, path, strlen(path) + 1);
    } else {
        errno = ENAMETOOLONG;
        return output_fault(o, "write", e);
    }
    if (name_tmp(o, e))
        return -e->code;
    o->skip.by_name = true;
    o->skip.name = o->name;
    return 0;
}

static int write_to(FILE *f, const struct manifest *m, const struct options *o,
                    struct err *e)
{
    return o->format == FORMAT_SHA256SUM ? manifest_write_sums(f, m, e)
                                         : manifest_write_json(f, m, e);
}

/* Readers of the file see the old one or the whole new one. */
static int replace_file(const struct output *out, const struct manifest *m,
                        const struct options *o, struct err *e)
{
    autofclose FILE *f = NULL;
    int rc, fd = open(out->tmp,
                      O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                      0644);

    if (fd < 0)
        return output_fault(out, "write", e);
    f = fdopen(fd, "w");
    if (!f) {
        (void)close(fd);
        rc = output_fault(out, "write", e);
    } else {
        rc = write_to(f, m, o, e);
    }
    if (rc == 0 && (fsync(fd) < 0 || rename(out->tmp, out->real) < 0))
        rc = output_fault(out, "write", e);
    if (rc)
        (void)unlink(out->tmp);
    return rc;
}

static int output_write(const struct output *out, const struct manifest *m,
                        const struct options *o, struct err *e)
{
    autofclose FILE *f = NULL;

    if (!out->path)
        return write_to(stdout, m, o, e);
    if (out->tmp[0])
        return replace_file(out, m, o, e);
    f = fopen(out->path, "we");
    return f ? write_to(f, m, o, e) : output_fault(out, "write", e);
}

static int choose_name(struct manifest *m, const char *folder,
                       const char *name, struct err *e)
{
    autofree char *real = NULL;
    struct path_shown p;
    const char *why;

    if (!name) {
        real = realpath(folder, NULL);
        name = real ? strrchr(real, '/') + 1 : "";
        if (!real && errno == ENOENT)
            return err_set(e, ERR_NODATA, "folder '%s' is missing",
                           path_show(&p, NULL, folder));
    }
    why = path_name_fault(name);
    if (why)
        return err_set(e, ERR_USAGE, "name '%s' is refused: %s: give --name",
                       path_show(&p, NULL, name), why);
    memcpy(m->name, name, strlen(name) + 1);
    return 0;
}

static void warn(const struct listing_notes *notes, const char *folder)
{
    struct path_shown p;

    if (notes->n_odd > 0)
        log_warning("%zu file%s look%s wrong, '%s' first: %s", notes->n_odd,
                    text_plural(notes->n_odd), notes->n_odd == 1 ? "s" : "",
                    path_show(&p, folder, notes->odd), notes->odd_why);
    if (notes->n_links > 0)
        log_warning("%zu link%s to folders %s left out, '%s' first",
                    notes->n_links, text_plural(notes->n_links),
                    notes->n_links == 1 ? "is" : "are",
                    path_show(&p, folder, notes->link));
}

static int make_manifest(const struct options *o, struct err *e)
{
    struct manifest m = {.n_entries = 0};
    struct output out;
    struct listing_notes notes;
    struct telling telling;
    struct meter meter = {.fn = telling_tell, .ctx = &telling, .name = m.name};
    const char *folder = o->args[0];
    int rc = choose_name(&m, folder, o->name, e);

    if (rc == 0)
        rc = output_open(&out, o->output, e);
    telling_begin(&telling, o->quiet == 0);
    if (rc == 0)
        rc = listing_make(&m, folder, o->unpack, &out.skip, &notes,
                          &meter, e);
    telling_end(&telling);
    if (rc == 0) {
        warn(&notes, folder);
        rc = output_write(&out, &m, o, e);
    }
    manifest_free(&m);
    return rc;
}

int dataset_command_manifest(const struct options *o)
{
    struct err e = {.code = 0};

    if (o->n_args != 1)
        (void)err_set(&e, ERR_USAGE, "manifest: agent manifest DIR");
    else if (o->unpack && o->format == FORMAT_SHA256SUM)
        (void)err_set(&e, ERR_USAGE,
                      "manifest: --unpack has no place in the sha256sum "
                      "format: leave one of them out");
    else
        (void)make_manifest(o, &e);
    if (e.code)
        log_error("%s", e.text);
    return e.code;
}
