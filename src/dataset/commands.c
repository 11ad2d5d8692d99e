/* commands: `agent stage`; see commands.h. */
#include "dataset/commands.h"

#include "agent/options.h"
#include "base/log.h"
#include "base/text.h"
#include "dataset/stage.h"
#include "dataset/telling.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const struct err *e)
{
    log_error("%s", e->text);
    return e->code;
}

static int stage_one(const struct options *o, unsigned i)
{
    static struct stage_result result; /* Large. */
    struct err e;
    struct telling telling;
    int rc;
    struct stage_request req = {
        .manifest = o->datasets[i],
        .source = i < o->n_sources ? o->sources[i] : NULL,
        .stage_dir = o->stage,
        .reverify = o->reverify,
        .silent_ms = o->stage_lease_ms,
    };

    telling_begin(&telling, o->quiet == 0);
    rc = stage_run(&req, telling_tell, &telling, &result, &e);
    telling_end(&telling);
    if (rc) {
        stage_advise(&req, &result, &e);
        return failed(&e);
    }
    stage_warn(&result);
    log_info("%s: %" PRIu64 " file%s, %" PRIu64 " byte%s, %s", result.name,
             result.n_files, text_plural(result.n_files), result.n_bytes,
             text_plural(result.n_bytes),
             result.reused ? "already staged" : "staged");
    (void)printf("%s\n", result.dir);
    return log_end_stdout();
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
