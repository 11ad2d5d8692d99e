/* loop_dry: --dry-run: the plan as JSON. What a process would get is made by
 * the same code as for a start; nothing is opened, forked or waited for. */
#include "agent/loop_parts.h"

#include "base/jsonw.h"
#include "base/std_fds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRY_HEAD 8192 /* Of all that is not of one process. */
#define DRY_GROWTH 6  /* A byte in JSON, at most. */

/* Of one run, or known at the start alone. */
static bool is_of_a_run(const char *entry)
{
    static const char *const names[] = {"AGENT_COOKIE=", "AGENT_DATASET_DIR",
                                        "TORCHELASTIC_ERROR_FILE="};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* What agent sets; the rest is the image's and may be secret. */
static void add_env(struct jsonw *j, const struct loop *l)
{
    char name[128];

    jsonw_open(j, "env", '{');
    for (const char **v = l->envp; *v; v++) {
        size_t len = strcspn(*v, "=");
        bool is_ours = *v >= l->env_bytes && *v < l->env_bytes + l->env_cap;

        if (!is_ours || is_of_a_run(*v) || len >= sizeof name)
            continue;
        memcpy(name, *v, len);
        name[len] = '\0';
        jsonw_string(j, name, *v + len + 1);
    }
    jsonw_close(j, '}');
}

static void add_words(struct jsonw *j, const char *name, char *const *words)
{
    jsonw_open(j, name, '[');
    for (; *words; words++)
        jsonw_string(j, NULL, *words);
    jsonw_close(j, ']');
}

static void add_cpus(struct jsonw *j, const struct cpu_mask *m)
{
    char list[2048]; /* Of 400 ranges. */
    struct text t;

    text_init(&t, list, sizeof list);
    cpu_print(m, &t);
    jsonw_string(j, "cpus", list);
}

static int add_process(struct jsonw *j, struct loop *l,
                       const struct pod_round *at, uint32_t i, struct err *e)
{
    struct child_spec spec = {.argv = NULL};
    struct contract_in in;
    int r;

    loop_describe(l, &in, at, i);
    in.n_datasets = 0;
    if (l->plan->o->nnodes > 1)
        in.dialects &= ~(unsigned)CONTRACT_TENSORFLOW; /* Others tell it. */
    r = loop_write_contract(l, &in, &spec, e);
    if (r != 0)
        return r;
    jsonw_open(j, NULL, '{');
    jsonw_string(j, "role", in.role);
    if (in.kind == CONTRACT_WORKER) {
        jsonw_int(j, "rank", in.rank_base + in.local_rank);
        jsonw_int(j, "local_rank", in.local_rank);
    } else {
        jsonw_int(j, "index", in.index);
    }
    if (in.kind == CONTRACT_WORKER && l->plan->cpus.masks)
        add_cpus(j, &l->plan->cpus.masks[i]);
    add_words(j, "argv", spec.argv);
    add_env(j, l);
    jsonw_close(j, '}');
    return 0;
}

static void add_plan(struct jsonw *j, const struct plan *p,
                     const struct pod_round *at)
{
    const struct options *o = p->o;

    jsonw_int(j, "nnodes", o->nnodes);
    if (o->any_node_rank)
        jsonw_string(j, "node_rank", "auto");
    else
        jsonw_int(j, "node_rank", o->node_rank);
    jsonw_int(j, "nproc", p->nproc);
    jsonw_int(j, "world_size", at->world_size);
    jsonw_string(j, "master_addr", o->master_addr);
    jsonw_int(j, "master_port", at->master_port);
    jsonw_int(j, "barrier_port", o->barrier_port);
    jsonw_string(j, "job_id", o->job_id);
    jsonw_int(j, "max_restarts", o->max_restarts);
    jsonw_open(j, "deadlines", '{');
    jsonw_seconds(j, "barrier_timeout_s", o->barrier_timeout_ms);
    jsonw_seconds(j, "rejoin_timeout_s", o->rejoin_timeout_ms);
    jsonw_seconds(j, "restart_backoff_min_s", o->backoff_min_ms);
    jsonw_seconds(j, "restart_backoff_max_s", o->backoff_max_ms);
    jsonw_seconds(j, "restart_reset_s", o->restart_reset_ms);
    jsonw_seconds(j, "grace_s", o->grace_ms);
    jsonw_close(j, '}');
}

/* Room for what is between two flushes: one process. */
static size_t room(const struct loop *l)
{
    size_t n = l->env_cap + l->word_cap + 8 * (l->envp_max + l->argv_max);

    for (char *const *w = l->plan->o->args; *w; w++)
        n += strlen(*w);
    return DRY_HEAD + DRY_GROWTH * n;
}

/* Write what there is, and go on in the same buffer. */
static int flush(struct text *t, struct err *e)
{
    const char *why;

    if (t->cut)
        return err_set(e, ERR_AGENT, "the plan does not fit in %zu bytes; "
                       "this is a fault of agent", t->cap);
    (void)fwrite(t->at, 1, t->len, stdout);
    why = std_fds_end(stdout);
    if (why)
        return err_set(e, ERR_RESOURCE, "write to stdout: %s", why);
    text_init(t, t->at, t->cap);
    return 0;
}

static int print(struct loop *l, struct err *e)
{
    const struct plan *p = l->plan;
    struct pod_round at = {.group_rank = p->o->node_rank,
                           .rank_base = p->o->node_rank * p->nproc,
                           .world_size = p->o->nnodes * p->nproc,
                           .master_port = p->master_port};
    struct contract_in in;
    struct jsonw j;
    struct text t;
    char *buf;
    int r;

    l->pod.cfg.max_restarts = p->o->max_restarts;
    (void)snprintf(at.hosts, sizeof at.hosts, "%s*%u", p->host, p->nproc);
    loop_describe(l, &in, &at, 0);
    in.n_datasets = 0;
    r = loop_contract_new(l, &in);
    buf = r == 0 ? malloc(room(l)) : NULL;
    if (!buf)
        return err_set(e, ERR_AGENT, "no memory for the plan");
    text_init(&t, buf, room(l));
    jsonw_begin(&j, &t);
    add_plan(&j, p, &at);
    jsonw_open(&j, "processes", '[');
    for (uint32_t i = 0; r == 0 && i < p->n_procs; i++) {
        r = add_process(&j, l, &at, i, e);
        if (r == 0)
            r = flush(&t, e);
    }
    jsonw_close(&j, ']');
    jsonw_close(&j, '}');
    text_add(&t, "\n");
    if (r == 0)
        r = flush(&t, e);
    free(buf);
    return r;
}

int loop_dry_run(const struct plan *plan)
{
    struct loop *l = calloc(1, sizeof *l); /* Until exit. */
    struct err e;

    if (!l) {
        log_error("no memory");
        return ERR_AGENT;
    }
    l->plan = plan;
    loop_say_cpus(plan);
    if (print(l, &e) == 0)
        return 0;
    log_error("%s", e.text);
    return e.code;
}
