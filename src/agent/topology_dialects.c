/* topology_dialects: platforms that name each value by a variable of its own:
 * torchrun's PET_*, RANK and WORLD_SIZE, LeaderWorkerSet, Indexed Jobs, MPI. */
#include "agent/topology_parts.h"

#include "base/text.h"
#include "base/variable.h"

#include <string.h>
#include <strings.h>

struct row {
    enum topo_key key;
    const char *name;
};

#define TAKE(g, rows) take_all(g, rows, sizeof(rows) / sizeof((rows)[0]))

static void take_all(struct topo_guess *g, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)topo_take(g, rows[i].key, rows[i].name);
}

/* --- PET_*: Trainer v2, PyTorchJob v1, and whoever sets torchrun's own --- */

static const struct row pet[] = {
    {TOPO_NNODES, "PET_NNODES"},
    {TOPO_NODE_RANK, "PET_NODE_RANK"},
    {TOPO_NPROC, "PET_NPROC_PER_NODE"},
    {TOPO_MASTER_ADDR, "PET_MASTER_ADDR"},
    {TOPO_MASTER_PORT, "PET_MASTER_PORT"},
    {TOPO_JOB_ID, "PET_RDZV_ID"},
    {TOPO_MAX_RESTARTS, "PET_MAX_RESTARTS"},
};

static int pet_backend(struct topo_guess *g, const char *backend)
{
    static const char *const served[] = {"c10d", "static"};

    for (unsigned i = 0; backend && i < 2; i++)
        if (strcmp(backend, served[i]) == 0)
            return 0;
    if (!backend)
        return 0;
    return topo_fail(g, "PET_RDZV_BACKEND=%.40s: this rendezvous is not "
                     "served: agent has its own on node rank 0; use c10d or "
                     "static", backend);
}

/* "host:port", "[v6]:port", "host". The port of c10d is where the pods meet,
 * that of static is the workers'. */
static bool pet_endpoint(struct topo_guess *g, const char *text,
                         bool is_static)
{
    static const char name[] = "PET_RDZV_ENDPOINT";
    const char *host = text, *port = NULL, *colon = strrchr(text, ':');
    size_t len = strlen(text);

    if (*text == '[') {
        host = text + 1;
        len = strcspn(host, "]");
        port = host[len] && host[len + 1] == ':' ? host + len + 2 : NULL;
    } else if (colon) { /* As torchrun has it: the last one. */
        len = (size_t)(colon - text);
        port = colon + 1;
    }
    if (!g->at[TOPO_MASTER_ADDR].text &&
        !topo_say(g, TOPO_MASTER_ADDR, name, "%.*s", (int)len, host))
        return false;
    /* "0" is c10d's word for any. */
    if (port && strcmp(port, "0") != 0 &&
        !g->at[is_static ? TOPO_MASTER_PORT : TOPO_BARRIER_PORT].text)
        return topo_say(g, is_static ? TOPO_MASTER_PORT : TOPO_BARRIER_PORT,
                        name, "%s", port);
    return true;
}

/* PyTorchJob sets it to the empty string, for yes. */
static bool is_alone(const struct topo_guess *g)
{
    static const char *const no[] = {"false", "no", "off"};
    const char *text = topo_get(g, "PET_STANDALONE");

    for (unsigned i = 0; text && i < sizeof no / sizeof no[0]; i++)
        if (strcasecmp(text, no[i]) == 0)
            return false;
    return variable_find(g->in->envp, "PET_STANDALONE") &&
           (!text || text[strspn(text, "0")] != '\0');
}

static int pet_alone(struct topo_guess *g)
{
    static const enum topo_key keys[] = {TOPO_NNODES, TOPO_NODE_RANK,
                                         TOPO_MASTER_ADDR};

    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct topo_value *v = &g->at[keys[i]];

        if (v->text && (keys[i] != TOPO_NNODES || !topo_is_one_pod(g)))
            topo_ignore(g->to, v->source, v->text,
                        "PET_STANDALONE: this pod alone");
        if (keys[i] == TOPO_MASTER_ADDR)
            *v = (struct topo_value){NULL, NULL};
    }
    g->is_complete = topo_say(g, TOPO_NNODES, "PET_STANDALONE", "1") &&
                     topo_say(g, TOPO_NODE_RANK, "PET_STANDALONE", "0");
    return 0;
}

int topo_read_pet(struct topo_guess *g)
{
    const char *backend = topo_get(g, "PET_RDZV_BACKEND");
    const char *endpoint = topo_get(g, "PET_RDZV_ENDPOINT");
    bool is_static, is_known;
    int rc;

    TAKE(g, pet);
    if (is_alone(g))
        return pet_alone(g);
    if (!g->at[TOPO_NNODES].text)
        return 0;
    rc = pet_backend(g, backend);
    if (rc != 0)
        return rc;
    /* Rank and address count, and a PyTorchJob has this besides. */
    is_known = g->at[TOPO_NODE_RANK].text && g->at[TOPO_MASTER_ADDR].text;
    if (endpoint && is_known)
        topo_ignore(g->to, "PET_RDZV_ENDPOINT", endpoint,
                    "PET_NODE_RANK and PET_MASTER_ADDR come first");
    is_static = backend ? strcmp(backend, "static") == 0
                        : g->at[TOPO_NODE_RANK].text != NULL;
    if (endpoint && !is_known && !pet_endpoint(g, endpoint, is_static))
        return topo_fail(g, "PET_RDZV_ENDPOINT=%.60s: too long", endpoint);
    /* c10d without ranks: whose address it is, coordinates. */
    if (!g->at[TOPO_NODE_RANK].text && endpoint && !topo_is_one_pod(g))
        (void)topo_say(g, TOPO_NODE_RANK, "PET_RDZV_ENDPOINT", "auto");
    g->is_complete = topo_is_one_pod(g) ||
                     (g->at[TOPO_NNODES].text &&
                      (g->at[TOPO_NODE_RANK].text ||
                       g->in->given[TOPO_NODE_RANK]) && topo_has_zero(g));
    return 0;
}

/* --- RANK and WORLD_SIZE of pods --- */

static const struct row plain[] = {
    {TOPO_NNODES, "WORLD_SIZE"},
    {TOPO_NODE_RANK, "RANK"},
    {TOPO_MASTER_ADDR, "MASTER_ADDR"},
    {TOPO_MASTER_PORT, "MASTER_PORT"},
};

int topo_read_plain(struct topo_guess *g)
{
    const char *port = topo_get(g, "MASTER_PORT");

    TAKE(g, plain);
    if (port && strncmp(port, "tcp://", 6) == 0)
        g->at[TOPO_MASTER_PORT] = (struct topo_value){NULL, NULL};
    g->is_complete = g->at[TOPO_NNODES].text && g->at[TOPO_NODE_RANK].text &&
                     topo_has_zero(g);
    return 0;
}

/* --- LeaderWorkerSet --- */

static const struct row lws[] = {
    {TOPO_NNODES, "LWS_GROUP_SIZE"},
    {TOPO_NODE_RANK, "LWS_WORKER_INDEX"},
    {TOPO_MASTER_ADDR, "LWS_LEADER_ADDRESS"},
};

int topo_read_lws(struct topo_guess *g)
{
    TAKE(g, lws);
    g->is_complete = g->at[TOPO_NNODES].text && g->at[TOPO_NODE_RANK].text &&
                     topo_has_zero(g);
    return 0;
}

/* --- Indexed Job, JobSet --- */

/* Pod 0 has this pod's name with another number at its end. */
static void say_first(struct topo_guess *g, const char *index)
{
    static const char name[] = "JOB_COMPLETION_INDEX";
    const struct topo_place *p = topo_place(g);
    size_t len = strlen(p->host), tail = strlen(index);

    if (len <= tail + 1 || strcmp(p->host + len - tail, index) != 0 ||
        p->host[len - tail - 1] != '-')
        return;
    (void)topo_say(g, TOPO_MASTER_ADDR, name, "%.*s0%s%s", (int)(len - tail),
                   p->host, *p->domain ? "." : "", p->domain);
}

int topo_read_indexed(struct topo_guess *g)
{
    static const char name[] = "JOB_COMPLETION_INDEX";

    if (!topo_take(g, TOPO_NODE_RANK, name))
        return 0;
    if (!g->in->given[TOPO_NNODES]) {
        topo_ignore(g->to, name, g->at[TOPO_NODE_RANK].text,
                    g->to->dialect ? "another platform comes first"
                                   : "how many pods there are is not told: "
                                     "give --nnodes");
        return 0;
    }
    if (!g->in->given[TOPO_MASTER_ADDR])
        say_first(g, g->at[TOPO_NODE_RANK].text);
    if (!topo_has_zero(g))
        return topo_fail(g, "JOB_COMPLETION_INDEX=%.20s, and where index 0 is "
                         "cannot be told from the host's name '%.60s': give "
                         "--master-addr <job>-0.<service>",
                         g->at[TOPO_NODE_RANK].text, topo_place(g)->host);
    g->is_complete = true;
    return 0;
}

/* --- MPI: one agent on each node --- */

static int check_local(struct topo_guess *g, const char *name,
                       const char *what)
{
    const char *text = topo_get(g, name);
    uint32_t n;

    if (!topo_number(text, &n) || n <= 1)
        return 0;
    return topo_fail(g, "%s=%s: %s started %s agents on this node, one is "
                     "wanted: it starts the workers itself; use mpirun "
                     "--map-by ppr:1:node (mpiexec -ppn 1)", name, text, what,
                     text);
}

/* The first host of the host file is where rank 0 runs. */
static int complete_mpi(struct topo_guess *g)
{
    const char *line, *file;
    size_t len;

    g->is_complete = g->at[TOPO_NNODES].text && g->at[TOPO_NODE_RANK].text;
    if (!g->is_complete || topo_has_zero(g))
        return 0;
    line = topo_place(g)->hostfile;
    file = line ? topo_place(g)->hostfile_name : NULL;
    while (line && *line) {
        line += strspn(line, " \t\r\n");
        len = strcspn(line, " \t\r\n:");
        if (len > 0 && *line != '#' &&
            topo_say(g, TOPO_MASTER_ADDR, topo_place(g)->hostfile_name, "%.*s",
                     (int)len, line))
            return 0;
        line += strcspn(line, "\n");
    }
    return topo_fail(g, "%s=%s, and where rank 0 runs is not told%s%.80s%s: "
                     "give --master-addr HOST, the host of rank 0",
                     g->at[TOPO_NNODES].source, g->at[TOPO_NNODES].text,
                     file ? " ('" : "", file ? file : "",
                     file ? "' names no host)" : "");
}

static const struct row open_mpi[] = {
    {TOPO_NNODES, "OMPI_COMM_WORLD_SIZE"},
    {TOPO_NODE_RANK, "OMPI_COMM_WORLD_RANK"},
};

int topo_read_open_mpi(struct topo_guess *g)
{
    TAKE(g, open_mpi);
    if (!g->at[TOPO_NNODES].text || !g->at[TOPO_NODE_RANK].text)
        return 0;
    if (check_local(g, "OMPI_COMM_WORLD_LOCAL_SIZE", "mpirun") != 0)
        return -g->e->code;
    return complete_mpi(g);
}

static const struct row pmi[] = {
    {TOPO_NNODES, "PMI_SIZE"},
    {TOPO_NODE_RANK, "PMI_RANK"},
};

int topo_read_pmi(struct topo_guess *g)
{
    TAKE(g, pmi);
    if (!g->at[TOPO_NNODES].text || !g->at[TOPO_NODE_RANK].text)
        return 0;
    if (check_local(g, "MPI_LOCALNRANKS", "mpiexec") != 0)
        return -g->e->code;
    return complete_mpi(g);
}
