/* topology_lists: platforms that list their hosts: Volcano, Slurm, and the
 * host file of the MPI operator. */
#include "agent/hostlist.h"
#include "agent/topology_parts.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* True where the `len` bytes at `host` are this name, or begin with it and a
 * dot. */
static bool is_host(const char *host, size_t len, const char *name)
{
    size_t n = strlen(name);

    return n > 0 && len >= n && memcmp(host, name, n) == 0 &&
           (len == n || host[n] == '.');
}

/* --- Volcano: VC_<TASK>_HOSTS, and the index within this pod's task --- */

#define TASKS_MAX 64

struct task {
    const char *entry; /* "VC_<TASK>_HOSTS=..." */
    size_t name_len;
    const char *hosts;
};

/* Who coordinates stands first; else the names' order. */
static int weight(const struct task *t)
{
    static const char *const first[] = {"VC_MASTER_", "VC_CHIEF_",
                                        "VC_LAUNCHER_", "VC_SCHEDULER_"};

    for (int i = 0; i < 4; i++)
        if (strncmp(t->entry, first[i], strlen(first[i])) == 0)
            return i;
    return 4;
}

static bool comes_before(const struct task *a, const struct task *b)
{
    int wa = weight(a), wb = weight(b);

    return wa != wb ? wa < wb : strcmp(a->entry, b->entry) < 0;
}

static unsigned find_tasks(char *const *envp, struct task *tasks)
{
    unsigned n = 0;

    for (; *envp && n <= TASKS_MAX; envp++) {
        const char *eq = strchr(*envp, '=');
        struct task t = {*envp, eq ? (size_t)(eq - *envp) : 0,
                         eq ? eq + 1 : NULL};
        unsigned i;

        if (t.name_len < 10 || strncmp(*envp, "VC_", 3) != 0 ||
            strncmp(eq - 6, "_HOSTS", 6) != 0 || !*t.hosts)
            continue;
        if (n == TASKS_MAX)
            return n + 1; /* Too many. */
        for (i = n++; i > 0 && comes_before(&t, &tasks[i - 1]); i--)
            tasks[i] = tasks[i - 1];
        tasks[i] = t;
    }
    return n;
}

struct position {
    uint32_t n, rank;
    bool found;
    const char *first; /* Host; */
    size_t first_len;
};

/* `index` is this pod's place where there is one list alone. */
static struct position find_host(const struct task *tasks, unsigned n_tasks,
                                 const char *name)
{
    struct position p = {0};

    for (unsigned i = 0; i < n_tasks; i++)
        for (const char *s = tasks[i].hosts; *s;) {
            size_t len = strcspn(s, ",");

            if (p.n == 0) {
                p.first = s;
                p.first_len = len;
            }
            if (!p.found && is_host(s, len, name)) {
                p.found = true;
                p.rank = p.n;
            }
            p.n++;
            s += len + (s[len] == ',');
        }
    return p;
}

int topo_read_volcano(struct topo_guess *g)
{
    const char *name = topo_get(g, "VC_TASK_INDEX") ? "VC_TASK_INDEX"
                                                    : "VK_TASK_INDEX";
    const char *index = topo_get(g, name);
    struct task tasks[TASKS_MAX];
    unsigned n = find_tasks(g->in->envp, tasks);
    struct position p;
    uint32_t rank;

    if (!topo_number(index, &rank) || n == 0)
        return 0;
    p = find_host(tasks, n > TASKS_MAX ? TASKS_MAX : n,
                  topo_place(g)->host);
    if ((n > TASKS_MAX || (!p.found && n > 1)) &&
        g->in->given[TOPO_NODE_RANK])
        return 0;
    if (n > TASKS_MAX)
        return topo_fail(g, "VC_*_HOSTS: more than %d tasks; give --nnodes, "
                         "--node-rank and --master-addr", TASKS_MAX);
    if (!p.found && n > 1) /* Each pod would train alone. */
        return topo_fail(g, "VC_*_HOSTS: several tasks with %u pods, and this "
                         "host, '%.60s', is in none of them (hostNetwork?); "
                         "give --nnodes, --node-rank and --master-addr, or "
                         "--nnodes 1 for this pod alone", p.n,
                         topo_place(g)->host);
    g->is_complete =
        topo_say(g, TOPO_NNODES, "VC_*_HOSTS", "%u", p.n) &&
        topo_say(g, TOPO_NODE_RANK, p.found ? "VC_*_HOSTS" : name, "%u",
                 p.found ? p.rank : rank) &&
        topo_say(g, TOPO_MASTER_ADDR, "VC_*_HOSTS", "%.*s", (int)p.first_len,
                 p.first);
    return 0;
}

/* --- Slurm --- */

#define COMPONENT "SLURM_JOB_NODELIST_HET_GROUP_"
#define COMPONENTS_MAX 128
#define LOOK_AT 16 /* Nodes of a component: a step takes the first ones. */

static const char *first_of(const struct topo_guess *g, const char *a,
                            const char *b, const char *c)
{
    return topo_get(g, a) ? a : topo_get(g, b) ? b : c;
}

/* "1(x4)" and "1,1" are one task on each node. */
static bool is_one_each(const char *s)
{
    while (*s) {
        if (*s++ != '1' || (*s && *s != '(' && *s != ','))
            return false;
        s += strcspn(s, ",");
        s += *s == ',';
    }
    return true;
}

static int check_tasks(struct topo_guess *g)
{
    const char *each = topo_get(g, "SLURM_STEP_TASKS_PER_NODE");
    const char *local = topo_get(g, "SLURM_LOCALID");
    uint32_t n;

    if ((!each || is_one_each(each)) && (!topo_number(local, &n) || n == 0))
        return 0;
    return topo_fail(g, "%s=%s: Slurm started several tasks on a node, one "
                     "agent on each is wanted: it starts the workers itself; "
                     "use srun --ntasks-per-node=1",
                     each && !is_one_each(each) ? "SLURM_STEP_TASKS_PER_NODE"
                                                : "SLURM_LOCALID",
                     each && !is_one_each(each) ? each : local);
}

static bool is_listed(const char *list, const char *host)
{
    char other[HOSTLIST_NAME_MAX];

    for (uint32_t i = 0; hostlist_at(list, i, other); i++)
        if (strcmp(other, host) == 0)
            return true;
    return false;
}

/* A heterogeneous job's step counts the nodes of one component after those of
 * the other, while its list is sorted. False where there are no components. */
static bool first_component(const struct topo_guess *g, const char *step,
                            char first[HOSTLIST_NAME_MAX])
{
    char name[48];

    for (unsigned i = 0; i < COMPONENTS_MAX; i++) {
        const char *list;

        (void)snprintf(name, sizeof name, COMPONENT "%u", i);
        list = topo_get(g, name);
        if (!list)
            break;
        for (uint32_t k = 0; k < LOOK_AT && hostlist_at(list, k, first); k++)
            if (is_listed(step, first))
                return true;
    }
    return false;
}

int topo_read_slurm(struct topo_guess *g)
{
    const char *list = first_of(g, "SLURM_STEP_NODELIST",
                                "SLURM_JOB_NODELIST", "SLURM_NODELIST");
    const char *size = first_of(g, "SLURM_STEP_NUM_NODES",
                                "SLURM_JOB_NUM_NODES", "SLURM_NNODES");
    const char *hosts = topo_get(g, list);
    char first[HOSTLIST_NAME_MAX];

    (void)topo_take(g, TOPO_NODE_RANK, "SLURM_NODEID");
    (void)topo_take(g, TOPO_NNODES, size);
    (void)topo_take(g, TOPO_JOB_ID, "SLURM_JOB_ID");
    (void)topo_take(g, TOPO_JOB_ID, "SLURM_JOBID");
    if (!g->at[TOPO_NODE_RANK].text || !g->at[TOPO_NNODES].text)
        return 0;
    if (check_tasks(g) != 0)
        return -g->e->code;
    if (hosts && !hostlist_at(hosts, 0, first))
        return topo_fail(g, "%s=%.100s: no list of hosts, such as n[01-04]",
                         list, hosts);
    if (hosts && first_component(g, hosts, first))
        list = COMPONENT "*";
    else if (hosts)
        (void)hostlist_at(hosts, 0, first);
    if (hosts)
        (void)topo_say(g, TOPO_MASTER_ADDR, list, "%s", first);
    g->is_complete = topo_has_zero(g);
    return 0;
}

/* --- the MPI operator's host file, without mpirun --- */

/* The next host at or after `s`, NULL at the end. */
static const char *next_host(const char *s, size_t *ret_len)
{
    while (*s) {
        s += strspn(s, " \t\r\n");
        *ret_len = strcspn(s, " \t\r\n:");
        if (*ret_len > 0 && *s != '#')
            return s;
        s += strcspn(s, "\n");
    }
    return NULL;
}

/* A host may have a line for each of its slots. */
static bool is_double(const char *file, const char *host, size_t len)
{
    size_t n;

    for (const char *s = next_host(file, &n); s && s < host;
         s = next_host(s + strcspn(s, "\n"), &n))
        if (n == len && memcmp(s, host, len) == 0)
            return true;
    return false;
}

int topo_read_hostfile(struct topo_guess *g)
{
    const struct topo_place *p = topo_place(g);
    const char *file = p->hostfile ? p->hostfile : "", *first = NULL;
    size_t first_len = 0, len;
    uint32_t n = 0, rank = 0;
    bool found = false;

    for (const char *s = next_host(file, &len); s;
         s = next_host(s + strcspn(s, "\n"), &len)) {
        if (is_double(file, s, len))
            continue;
        if (n == 0) {
            first = s;
            first_len = len;
        }
        if (!found && is_host(s, len, p->host)) {
            found = true;
            rank = n;
        }
        n++;
    }
    if (!found)
        return 0; /* The launcher is not in it. */
    g->is_complete =
        topo_say(g, TOPO_NNODES, p->hostfile_name, "%u", n) &&
        topo_say(g, TOPO_NODE_RANK, p->hostfile_name, "%u", rank) &&
        topo_say(g, TOPO_MASTER_ADDR, p->hostfile_name, "%.*s", (int)first_len,
                 first);
    return 0;
}
