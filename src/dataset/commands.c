/* commands: `agent stage` and `agent verify`; see commands.h. */
#include "dataset/commands.h"

#include "agent/options.h"
#include "base/log.h"
#include "dataset/load.h"
#include "dataset/stage.h"
#include "dataset/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const struct err *e)
{
    log_error("%s", e->text);
    return e->code;
}

/* What cannot be printed is lost to whoever waits for it: a fault. */
static int flush_stdout(void)
{
    struct err e;

    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    (void)err_set(&e, ERR_RESOURCE, "write to stdout: %s", strerror(errno));
    return failed(&e);
}

static void on_progress(void *ctx, uint64_t done, uint64_t total, bool waiting)
{
    bool *said = ctx;

    (void)done;
    (void)total;
    if (waiting && !*said)
        log_info("another process stages this set: waiting for it");
    *said |= waiting;
}

static int stage_one(const struct options *o, unsigned i)
{
    static struct stage_result result; /* Large. */
    struct err e;
    bool said = false;
    struct stage_request req = {
        .manifest = o->datasets[i],
        .source = i < o->n_sources ? o->sources[i] : NULL,
        .stage_dir = o->stage,
        .reverify = o->reverify,
    };

    if (stage_run(&req, on_progress, &said, &result, &e))
        return failed(&e);
    stage_warn(&result);
    log_info("%s: %" PRIu64 " files, %" PRIu64 " bytes, %s", result.name,
             result.n_files, result.n_bytes,
             result.reused ? "already staged" : "staged");
    (void)printf("%s\n", result.dir);
    return flush_stdout();
}

int dataset_command_stage(const struct options *o)
{
    struct err e;
    int status = 0;

    if (o->n_datasets == 0 || !o->stage) {
        (void)err_set(&e, ERR_USAGE, "stage: %s is missing: agent stage "
                                     "--dataset MANIFEST --stage DIR",
                      o->stage ? "--dataset" : "--stage");
        return failed(&e);
    }
    for (unsigned i = 0; status == 0 && i < o->n_datasets; i++)
        status = stage_one(o, i);
    return status;
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

static int report(const struct manifest *m, const struct verify_report *r)
{
    char digest[DIGEST_HEX_MAX];
    int status;

    for (size_t i = 0; i < r->n_bad; i++)
        (void)printf("%s\n", r->bad[i].err.text);
    status = flush_stdout();
    if (status)
        return status;
    digest_hex(m->digest, sizeof m->digest, digest);
    if (r->n_bad == 0) {
        log_info("%s: %zu files, %" PRIu64 " bytes, all right; digest %s",
                 m->name, m->n_entries, m->n_bytes, digest);
        return 0;
    }
    log_error("%s: %zu of %zu files %s bad", m->name, r->n_bad, m->n_entries,
              r->n_bad == 1 ? "is" : "are");
    return worst(r);
}

static int verify(struct manifest *m, const char *folder)
{
    struct meter meter = {.fn = NULL};
    struct verify_report r;
    struct err e;
    int status;

    if (verify_set(m, folder, true, &meter, &r, &e))
        status = failed(&e);
    else
        status = report(m, &r);
    verify_free(&r);
    return status;
}

int dataset_command_verify(const struct options *o)
{
    struct manifest m;
    struct err e;
    char *folder = NULL;
    int status;

    if (o->n_args < 1 || o->n_args > 2) {
        (void)err_set(&e, ERR_USAGE, "verify: agent verify MANIFEST [DIR]");
        return failed(&e);
    }
    if (load_manifest(&m, o->args[0], o->n_args > 1 ? o->args[1] : NULL,
                      &folder, &e))
        return failed(&e);
    stage_warn_hash(m.name, manifest_weak_hash(&m));
    status = verify(&m, folder);
    free(folder);
    manifest_free(&m);
    return status;
}
