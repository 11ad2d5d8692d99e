/* topology: see topology.h. The dialects' order, and what becomes of those
 * that are not used. */
#include "agent/topology_parts.h"

#include "base/text.h"
#include "base/variable.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct topo_dialect dialects[] = {
    {"PET", "", topo_read_pet},
    {"RANK", "PET_* come first", topo_read_plain},
    {"LeaderWorkerSet", "another platform comes first", topo_read_lws},
    {"Indexed Job", "another platform comes first", topo_read_indexed},
    {"Volcano", "another platform comes first", topo_read_volcano},
    {"Slurm", "another platform comes first", topo_read_slurm},
    {"Open MPI", "another platform comes first", topo_read_open_mpi},
    {"PMI", "another platform comes first", topo_read_pmi},
    {"host file", "another platform comes first", topo_read_hostfile},
};
#define N_DIALECTS (sizeof dialects / sizeof dialects[0])

const char *topo_get(const struct topo_guess *g, const char *name)
{
    return variable_given(g->in->envp, name);
}

bool topo_take(struct topo_guess *g, enum topo_key key, const char *name)
{
    const char *text = topo_get(g, name);

    if (g->at[key].text || !text)
        return false;
    g->at[key] = (struct topo_value){text, name};
    return true;
}

bool topo_say(struct topo_guess *g, enum topo_key key, const char *source,
              const char *fmt, ...)
{
    struct topology *t = g->to;
    char *at = t->texts + t->n_texts;
    size_t room = sizeof t->texts - t->n_texts;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(at, room, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= room)
        return false;
    t->n_texts += (size_t)n + 1;
    g->at[key] = (struct topo_value){at, source};
    return true;
}

bool topo_number(const char *s, uint32_t *ret)
{
    size_t len = s ? strlen(s) : 0;

    if (len == 0 || len > 9 || s[strspn(s, "0123456789")] != '\0')
        return false;
    *ret = (uint32_t)strtoul(s, NULL, 10);
    return true;
}

const struct topo_place *topo_place(const struct topo_guess *g)
{
    static const struct topo_place nowhere = {"", "", NULL, NULL};

    return g->in->place ? g->in->place(g->in->ctx) : &nowhere;
}

void topo_ignore(struct topology *t, const char *name, const char *text,
                 const char *why)
{
    for (unsigned i = 0; i < t->n_ignored; i++)
        if (strcmp(t->ignored[i].name, name) == 0)
            return;
    if (t->n_ignored < TOPO_IGNORED_MAX)
        t->ignored[t->n_ignored++] = (struct topo_ignored){name, text, why};
}

int topo_fail(struct topo_guess *g, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(g->e, ERR_USAGE, "%s", text);
}

bool topo_is_one_pod(const struct topo_guess *g)
{
    const char *s = g->at[TOPO_NNODES].text;
    uint32_t n;

    return s && (strcmp(s, "1:1") == 0 || (topo_number(s, &n) && n == 1));
}

bool topo_has_zero(const struct topo_guess *g)
{
    return g->at[TOPO_MASTER_ADDR].text || g->in->given[TOPO_MASTER_ADDR] ||
           topo_is_one_pod(g);
}

const char *topology_option(enum topo_key key)
{
    static const char *const options[] = {
#define X(name, option) option,
        TOPO_TABLE(X)
#undef X
    };

    return options[key];
}

/* RANK's WORLD_SIZE may count processes. */
static bool is_same_size(const struct topology *t, const char *text)
{
    uint32_t a, b, nproc = 1;

    if (!topo_number(t->at[TOPO_NNODES].text, &a) || !topo_number(text, &b))
        return true; /* MIN:MAX, say: nothing to compare. */
    return a == b || (topo_number(t->at[TOPO_NPROC].text, &nproc) &&
                      (uint64_t)a * nproc == b);
}

/* The first value in which a complete dialect differs from the one that
 * counts. */
static void compare(struct topology *t, const struct topo_guess *g)
{
    static const enum topo_key keys[] = {TOPO_NNODES, TOPO_NODE_RANK};
    uint32_t a, b;

    for (unsigned i = 0; i < 2 && !t->warning[0]; i++) {
        const struct topo_value *is = &t->at[keys[i]];
        const struct topo_value *other = &g->at[keys[i]];
        bool same = keys[i] == TOPO_NNODES
                        ? is_same_size(t, other->text)
                        : !topo_number(is->text, &a) ||
                              !topo_number(other->text, &b) || a == b;

        if (is->text && other->text && !same)
            (void)snprintf(t->warning, sizeof t->warning,
                           "%s=%.60s, but %s=%.60s: the first counts, going on",
                           is->source, is->text, other->source, other->text);
    }
    (void)text_make_line(t->warning, sizeof t->warning - 1);
}

/* But for what was taken all the same: PET_NPROC_PER_NODE and the like. */
static void ignore_all(struct topology *t, const struct topo_guess *g,
                       const char *why)
{
    for (int k = 0; k < TOPO_KEYS; k++)
        if (g->at[k].text && g->at[k].text != t->at[k].text)
            topo_ignore(t, g->at[k].source, g->at[k].text, why);
}

/* A Service named "master" makes this variable. */
static int check_service_link(const struct topo_guess *g)
{
    const char *text = variable_find(g->in->envp, "MASTER_PORT");

    if (!text || strncmp(text, "tcp://", 6) != 0 ||
        g->in->given[TOPO_MASTER_PORT] || topo_get(g, "PET_MASTER_PORT"))
        return 0;
    return err_set(g->e, ERR_USAGE, "MASTER_PORT=%.60s: this is a Kubernetes "
                   "service link, no port: a Service named 'master' is in the "
                   "namespace; rename it, set enableServiceLinks: false, or "
                   "give --master-port", text);
}

/* In a worker of an outer agent (or torchrun) these are the worker's, not this
 * pod's. */
static bool is_inside(struct topology *t, const struct topology_in *in)
{
    static const char *const names[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK",
                                        "LOCAL_WORLD_SIZE", "MASTER_ADDR",
                                        "MASTER_PORT", "GROUP_RANK",
                                        "GROUP_WORLD_SIZE"};

    if (!variable_find(in->envp, "LOCAL_RANK") ||
        !variable_find(in->envp, "LOCAL_WORLD_SIZE"))
        return false;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = variable_find(in->envp, names[i]);

        if (text)
            topo_ignore(t, names[i], text, "of the worker that agent is in");
    }
    return true;
}

/* More than one pod, says a dialect that lacks the rest. */
static bool is_half(const struct topo_guess *g)
{
    return g->at[TOPO_NNODES].text && !topo_is_one_pod(g) &&
           (g->at[TOPO_NODE_RANK].text ||
            strcmp(g->at[TOPO_NNODES].source, "PET_NNODES") == 0);
}

/* "4", "2:4"; what else it must be is said where it is read. */
static bool is_pods(const char *s)
{
    static const char digits[] = "0123456789";
    size_t n = strspn(s, digits), more;

    if (n == 0 || s[n] != ':')
        return n > 0 && s[n] == '\0';
    more = strspn(s + n + 1, digits);
    return more > 0 && s[n + 1 + more] == '\0';
}

static int fail_half(const struct topo_guess *g)
{
    const struct topo_value *pods = &g->at[TOPO_NNODES];
    bool option = g->in->given[TOPO_NNODES];
    bool has_rank = g->at[TOPO_NODE_RANK].text ||
                    g->in->given[TOPO_NODE_RANK];
    char said[96];

    if (option)
        (void)text_copy(said, sizeof said, "--nnodes asks for several pods");
    else if (is_pods(pods->text))
        (void)snprintf(said, sizeof said, "%s=%.40s pods", pods->source,
                       pods->text);
    else
        return err_set(g->e, ERR_USAGE, "%s=%.40s: use a number of pods, or "
                       "MIN:MAX", pods->source, pods->text);
    return err_set(g->e, ERR_USAGE, "%s, but %s is not told: give %s", said,
                   has_rank ? "the host of node rank 0" : "this pod's rank",
                   has_rank ? "--master-addr HOST" : "--node-rank");
}

/* Pods of one job would each train alone, as rank 0. */
static void warn_alone(struct topology *t, const struct topology_in *in)
{
    const char *index = variable_given(in->envp, "JOB_COMPLETION_INDEX");

    if (!index || in->given[TOPO_NNODES])
        return;
    (void)snprintf(t->warning, sizeof t->warning,
                   "JOB_COMPLETION_INDEX=%.20s, but how many pods there are is "
                   "not told: this one runs alone; give --nnodes (1 if that is "
                   "meant)", index);
    (void)text_make_line(t->warning, sizeof t->warning - 1);
}

/* A batch script itself is on the first node, and nothing runs on the others
 * until it calls srun; or ssh, say, which numbers the pods by option. */
static void warn_no_step(struct topology *t, const struct topology_in *in)
{
    static const char *const steps[] = {"SLURM_STEP_NODELIST", "SLURM_STEP_ID",
                                        "SLURM_STEPID"};
    const char *node = variable_given(in->envp, "SLURM_NODEID");
    uint32_t nnodes;

    if (t->warning[0] || !t->dialect || strcmp(t->dialect, "Slurm") != 0 ||
        in->given[TOPO_NODE_RANK] || !node || strcmp(node, "0") != 0 ||
        !topo_number(t->at[TOPO_NNODES].text, &nnodes) || nnodes < 2)
        return;
    for (unsigned i = 0; i < 3; i++)
        if (variable_given(in->envp, steps[i]))
            return;
    (void)snprintf(t->warning, sizeof t->warning,
                   "%s=%" PRIu32 ", but this is no step of Slurm's: agent runs "
                   "on the first node alone, and waits for the others; start "
                   "it with srun", t->at[TOPO_NNODES].source, nnodes);
}

/* torchrun's variables without a topology go with any. */
static void add_pet(struct topology *t, const struct topo_guess *g)
{
    static const struct {
        enum topo_key key;
        const char *name;
    } rows[] = {{TOPO_NPROC, "PET_NPROC_PER_NODE"},
                {TOPO_JOB_ID, "PET_RDZV_ID"},
                {TOPO_MAX_RESTARTS, "PET_MAX_RESTARTS"}};

    for (unsigned i = 0; i < 3; i++) {
        const char *text = topo_get(g, rows[i].name);

        if (text && !t->at[rows[i].key].text)
            t->at[rows[i].key] = (struct topo_value){text, rows[i].name};
    }
}

int topology_read(struct topology *ret, const struct topology_in *in,
                  struct err *e)
{
    struct topology *t = ret;
    struct topo_guess half = {.in = in}, g;
    int rc;

    memset(t, 0, offsetof(struct topology, texts)); /* A page is 1.5 us. */
    if (is_inside(t, in))
        return 0;
    half.to = t;
    half.e = e;
    add_pet(t, &half);
    /* Whoever asks for one pod by option gets one. */
    if (in->given[TOPO_NNODES] && strcmp(in->given[TOPO_NNODES], "1") == 0)
        return 0;
    rc = check_service_link(&half);
    for (unsigned i = 0; rc == 0 && i < N_DIALECTS; i++) {
        g = (struct topo_guess){.in = in, .to = t, .e = e};
        rc = dialects[i].read(&g);
        if (t->dialect && rc != 0) {
            rc = 0; /* It does not count. */
        } else if (t->dialect && g.is_complete) {
            compare(t, &g);
            ignore_all(t, &g, dialects[i].why);
        } else if (g.is_complete) {
            t->dialect = dialects[i].name;
            memcpy(t->at, g.at, sizeof t->at);
            add_pet(t, &g);
        } else {
            if (!half.at[TOPO_NNODES].text && is_half(&g))
                half = g;
            ignore_all(t, &g, "it does not tell all that is needed");
        }
    }
    if (rc == 0 && !t->dialect)
        warn_alone(t, in);
    warn_no_step(t, in);
    if (rc == 0 && !t->dialect && half.at[TOPO_NNODES].text &&
        !(in->given[TOPO_NNODES] && in->given[TOPO_NODE_RANK]))
        rc = fail_half(&half);
    return rc;
}
