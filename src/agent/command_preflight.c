/* command_preflight: see command_preflight.h. */
#include "agent/command_preflight.h"

#include "agent/machine.h"
#include "agent/plan.h"
#include "agent/preflight_job.h"
#include "base/log.h"
#include "base/tool.h"
#include "preflight/show.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FINDINGS_MAX (PREFLIGHT_CHECKS * (PREFLIGHT_FINDINGS_MAX + 2))
#define JSON_MAX ((size_t)2 << 20)

struct run {
    bool json, quiet;
    struct show_check checks[PREFLIGHT_CHECKS];
    struct preflight_finding all[FINDINGS_MAX];
    unsigned n;
};

static void on_finding(void *ctx, const struct preflight_finding *f)
{
    struct run *r = ctx;
    char buf[4096];
    struct text t;

    if (r->n < FINDINGS_MAX)
        r->all[r->n++] = *f;
    if (r->json || (r->quiet && f->level == PREFLIGHT_PASS))
        return;
    text_init(&t, buf, sizeof buf);
    show_finding(&t, f);
    (void)fputs(buf, stdout);
    (void)fflush(stdout); /* Before the next check, and its fork. */
}

static void on_over(void *ctx, enum preflight_check check,
                    enum preflight_level worst, uint64_t ms)
{
    struct run *r = ctx;

    r->checks[check] = (struct show_check){.is_over = true, .worst = worst,
                                           .ms = ms};
}

/* All that there is but a job of its own; libraries only where somebody may
 * tell of them, or a GPU misses them. */
static unsigned choose(const struct options *o)
{
    unsigned all = (1u << PREFLIGHT_CHECKS) - 1;
    char path[PATH_MAX];

    if (o->preflight_given)
        return o->preflight;
    all &= ~PREFLIGHT_BIT(ALLREDUCE);
    if (!tool_find("agent-probe", path, sizeof path) && machine_gpus() == 0)
        all &= ~(PREFLIGHT_BIT(GPU) | PREFLIGHT_BIT(RDMA) |
                 PREFLIGHT_BIT(NCCL));
    return all;
}

static int print_end(const struct run *r, enum preflight_level worst)
{
    char host[256], *buf = malloc(JSON_MAX);
    struct text t;

    if (!buf) {
        log_error("no memory for the answer");
        return ERR_AGENT;
    }
    text_init(&t, buf, JSON_MAX);
    machine_host(host, sizeof host);
    if (r->json)
        show_json(&t, host, worst, r->checks, r->all, r->n);
    else
        show_end(&t, worst, r->all, r->n);
    (void)fputs(buf, stdout);
    free(buf);
    return log_end_stdout() ? ERR_RESOURCE : preflight_exit_code(worst);
}

int command_preflight(const struct options *o, char *const *envp)
{
    static struct run r; /* Large, and used once. */
    struct preflight_out out = {.ctx = &r, .finding = on_finding,
                                .over = on_over};
    static struct plan plan; /* For its counting of workers alone. */
    struct preflight_job job;
    struct err e;

    plan.o = o;
    if (plan_count_workers(&plan, &e) != 0) {
        log_error("%s", e.text);
        return e.code;
    }
    r.json = o->json;
    r.quiet = o->quiet > 0;
    preflight_job_of(o, plan.nproc, o->nproc_kind != NPROC_NUMBER &&
                                        plan.has_gpus, envp, &job);
    job.checks = choose(o);
    job.asked = o->preflight_given ? o->preflight : 0;
    if (job.checks == 0) {
        log_error("--preflight off: there is nothing to check");
        return ERR_USAGE;
    }
    return print_end(&r, preflight_run(&job, &out));
}
