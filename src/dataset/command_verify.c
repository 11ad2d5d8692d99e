/* command_verify: `agent verify`; see commands.h. */
#include "dataset/commands.h"

#include "agent/options.h"
#include "base/log.h"
#include "base/text.h"
#include "dataset/listing.h"
#include "dataset/load.h"
#include "dataset/stage.h"
#include "dataset/telling.h"
#include "dataset/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int failed(const struct err *e)
{
    log_error("%s", e->text);
    return e->code;
}

/* The status of a set with bad files. What is wrong comes before what is
 * missing, and both before what may be better next time. */
static int worst(const struct verify_report *r)
{
    int status = ERR_RESOURCE;

    for (size_t i = 0; i < r->n_bad; i++) {
        if (r->bad[i].err.code == ERR_DATA)
            return ERR_DATA;
        if (r->bad[i].err.code == ERR_NODATA)
            status = ERR_NODATA;
    }
    return status;
}

/* One line for each bad file; the status, or 0. */
static int print_bad(const struct verify_report *r)
{
    for (size_t i = 0; i < r->n_bad; i++)
        (void)printf("%s\n", r->bad[i].err.text);
    if (log_end_stdout())
        return ERR_RESOURCE;
    return r->n_bad > 0 ? worst(r) : 0;
}

static void log_bad(const struct manifest *m, const struct verify_report *r)
{
    log_error("%s: %zu of %zu files %s bad%s", m->name, r->n_bad, m->n_entries,
              r->n_bad == 1 ? "is" : "are",
              r->n_bad == m->n_entries && worst(r) == ERR_NODATA
                  ? ": is DIR, or else the manifest's folder, where they are?"
                  : "");
}

static int verify_hashes(struct manifest *m, const char *folder, bool quiet)
{
    struct telling telling;
    struct meter meter = {.fn = telling_tell, .ctx = &telling,
                          .name = m->name};
    char digest[DIGEST_HEX_MAX];
    struct verify_report r;
    struct err e;
    int rc, status;

    telling_begin(&telling, !quiet);
    rc = verify_set(m, folder, true, &meter, &r, &e);
    telling_end(&telling);
    if (rc)
        status = failed(&e);
    else
        status = print_bad(&r);
    digest_hex(m->digest, sizeof m->digest, digest);
    if (status == 0)
        log_info("%s: %zu file%s, %" PRIu64 " byte%s, all right; digest %s",
                 m->name, m->n_entries, text_plural(m->n_entries), m->n_bytes,
                 text_plural(m->n_bytes), digest);
    else if (r.n_bad > 0)
        log_bad(m, &r);
    verify_free(&r);
    return status;
}

static int verify_looks(const struct manifest *m, const char *folder,
                        bool quiet)
{
    struct telling telling;
    struct meter meter = {.fn = telling_tell, .ctx = &telling,
                          .name = m->name};
    struct verify_report r;
    struct err e;
    int rc, status;

    telling_begin(&telling, !quiet);
    rc = verify_structure(m, folder, &meter, &r, &e);
    telling_end(&telling);
    if (rc)
        status = failed(&e);
    else
        status = print_bad(&r);
    if (status == 0)
        log_info("%s: %zu file%s, %zu of a known structure, none looks "
                 "wrong; no hash was checked here", m->name, m->n_entries,
                 text_plural(m->n_entries), r.n_known);
    else if (r.n_bad > 0)
        log_bad(m, &r);
    verify_free(&r);
    return status;
}

/* Without a manifest: all that lies in a folder. */
static int verify_folder(const char *folder, bool quiet)
{
    static struct listing_notes notes; /* Large. */
    const struct listing_skip skip = {.by_name = false};
    struct manifest m = {.name = "structure"};
    struct err e;
    int status;

    if (listing_names(&m, folder, &skip, &notes, &e))
        status = failed(&e);
    else
        status = verify_looks(&m, folder, quiet);
    manifest_free(&m);
    return status;
}

static int verify_manifest(const struct options *o)
{
    struct manifest m;
    struct err e;
    char *folder = NULL;
    int status;

    if (load_manifest(&m, o->args[0], o->n_args > 1 ? o->args[1] : NULL,
                      &folder, &e))
        return failed(&e);
    stage_warn_hash(m.name, manifest_weak_hash(&m));
    status = verify_hashes(&m, folder, o->quiet > 0);
    if (status == 0 && o->structure)
        status = verify_looks(&m, folder, o->quiet > 0);
    free(folder);
    manifest_free(&m);
    return status;
}

int dataset_command_verify(const struct options *o)
{
    struct stat st;
    struct err e;

    if (o->n_args < 1 || o->n_args > 2) {
        (void)err_set(&e, ERR_USAGE,
                      "verify: agent verify MANIFEST [DIR], or agent verify "
                      "--structure DIR");
        return failed(&e);
    }
    /* What is missing was meant as a folder, too. */
    if (o->structure && o->n_args == 1 &&
        (stat(o->args[0], &st) != 0 || S_ISDIR(st.st_mode)))
        return verify_folder(o->args[0], o->quiet > 0);
    return verify_manifest(o);
}
