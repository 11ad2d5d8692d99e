/* env: variables of NCCL and Gloo that name what this pod does not have. They
 * come from an image or a manifest that was made for another machine. */
#include "preflight/check.h"
#include "preflight/net.h"

#include "base/mem.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

enum kind {
    NCCL_IFNAMES, /* As net_matches() takes it. */
    GLOO_IFNAMES, /* Whole names with commas. */
    HCAS,         /* RDMA devices; "host" is NCCL_IB_HCA's syntax. */
    FILE_READ,    /* A file. */
    FILE_WRITTEN, /* Its folder must be there. */
    PLUGIN,       /* A file where it is a path; else agent-probe's to find. */
    PLUGINS,      /* The same, with commas. */
};

static const struct {
    const char *name;
    enum kind kind;
    enum preflight_level level;
    const char *why;
} rows[] = {
    {"NCCL_SOCKET_IFNAME", NCCL_IFNAMES, PREFLIGHT_FATAL,
     "NCCL fails in ncclCommInitRank: \"no socket interface found\", "
     "\"internal error\""},
    {"GLOO_SOCKET_IFNAME", GLOO_IFNAMES, PREFLIGHT_FATAL,
     "Gloo fails in init_process_group: \"Unable to find address for\""},
    {"TP_SOCKET_IFNAME", GLOO_IFNAMES, PREFLIGHT_FATAL,
     "torch.distributed.rpc finds no address"},
    {"NCCL_IB_HCA", HCAS, PREFLIGHT_WARN,
     "NCCL leaves RDMA out, says so with NCCL_DEBUG=INFO alone, and goes over "
     "TCP: many times slower"},
    {"NCCL_TOPO_FILE", FILE_READ, PREFLIGHT_WARN,
     "NCCL goes on with the topology that it finds itself"},
    {"NCCL_GRAPH_FILE", FILE_READ, PREFLIGHT_WARN,
     "NCCL goes on with a graph of its own"},
    {"NCCL_CONF_FILE", FILE_READ, PREFLIGHT_WARN,
     "NCCL goes on without these settings"},
    {"NCCL_TOPO_DUMP_FILE", FILE_WRITTEN, PREFLIGHT_WARN,
     "the topology is not written"},
    {"NCCL_GRAPH_DUMP_FILE", FILE_WRITTEN, PREFLIGHT_WARN,
     "the graph is not written"},
    {"NCCL_DEBUG_FILE", FILE_WRITTEN, PREFLIGHT_WARN,
     "NCCL's messages are lost"},
    {"NCCL_NET_PLUGIN", PLUGINS, PREFLIGHT_WARN,
     "NCCL goes on without the plug-in: over its own sockets or verbs"},
    {"NCCL_TUNER_PLUGIN", PLUGIN, PREFLIGHT_WARN,
     "NCCL goes on without the tuner"},
    {"NCCL_PROFILER_PLUGIN", PLUGIN, PREFLIGHT_WARN,
     "NCCL goes on without the profiler"},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static void say(const struct preflight_sink *s, unsigned row, const char *value,
                const char *wrong, const char *fix)
{
    struct preflight_finding f = finding_new(rows[row].level);

    FINDING_SET(f.what, "%s=%.120s: %s", rows[row].name, value, wrong);
    FINDING_SET(f.why, "%s", rows[row].why);
    FINDING_SET(f.fix, "%s", fix);
    finding_add(s, &f);
}

/* As if there were no other pods, loopback does. */
static void look_ifnames(const struct preflight_sink *s, unsigned row,
                         const char *value)
{
    const struct net_if *choice = NULL;
    char names[NET_IF_MAX * 4], wrong[200], fix[256];
    const char *unknown = NULL;
    struct net_list l;
    size_t len = 0;

    net_list(&l);
    net_names(&l, names, sizeof names);
    if (rows[row].kind == NCCL_IFNAMES)
        choice = net_choice(&l, value);
    else
        unknown = net_unknown(&l, value, &len);
    FINDING_SET(fix, "name one of %.120s, or leave %s out", names,
                rows[row].name);
    if (unknown)
        FINDING_SET(wrong, "there is no interface %.*s",
                    (int)(len > 100 ? 100 : len), unknown);
    else if (rows[row].kind == NCCL_IFNAMES && !choice)
        FINDING_SET(wrong, "no interface fits");
    else if (s->job->nnodes > 1 &&
             (choice ? choice->is_loopback : strcmp(value, "lo") == 0))
        FINDING_SET(wrong, "loopback does not lead to the other %u pod%s",
                    s->job->nnodes - 1, text_plural(s->job->nnodes - 1));
    else
        return;
    say(s, row, value, wrong, fix);
}

static void look_hcas(const struct preflight_sink *s, unsigned row,
                      const char *value)
{
    char path[PATH_MAX], names[160], wrong[256];
    const struct dirent *d;
    struct text t;
    bool fits = check_rdma_is_off(s->job); /* Nobody reads it then. */
    DIR *dir;

    text_init(&t, names, sizeof names);
    (void)snprintf(path, sizeof path, "%s/sys/class/infiniband",
                   s->job->root);
    dir = opendir(path);
    while (dir && (d = readdir(dir)) != NULL)
        if (d->d_name[0] != '.') {
            fits = fits || net_hca_matches(value, d->d_name, 0);
            text_add(&t, "%s%s", t.len ? ", " : "", d->d_name);
        }
    if (dir)
        (void)closedir(dir);
    if (fits)
        return;
    FINDING_SET(wrong, "no RDMA device fits; there %s %s",
                t.len ? "are" : "is", t.len ? names : "none");
    say(s, row, value, wrong,
        "name a device of /sys/class/infiniband, or leave it out; Kubernetes: "
        "ask for the RDMA device plug-in's resource in the pod");
}

const char *check_plugin_why(const char *variable)
{
    for (unsigned i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].name, variable) == 0)
            return rows[i].why;
    return "NCCL goes on without it";
}

static void look_file(const struct preflight_sink *s, unsigned row,
                      const char *value)
{
    char path[PATH_MAX];
    bool writes = rows[row].kind == FILE_WRITTEN;
    char *slash;

    (void)text_copy(path, sizeof path, value);
    if (access(path, writes ? W_OK : R_OK) == 0) /* /dev/stderr, say. */
        return;
    if (writes) { /* NCCL puts host and process in the place of a %. */
        path[strcspn(path, "%")] = '\0';
        slash = strrchr(path, '/');
        if (slash)
            slash[1] = '\0';
        else
            (void)text_copy(path, sizeof path, "./");
        if (access(path, W_OK) == 0)
            return;
    }
    say(s, row, value, strerror(errno),
        writes ? "make the folder, mount a volume there, or leave it out"
               : "mount the file (a ConfigMap), or leave it out");
}

static void look_plugins(const struct preflight_sink *s, unsigned row,
                         const char *value)
{
    char one[PATH_MAX];

    while (*value) {
        size_t len = rows[row].kind == PLUGINS ? strcspn(value, ",")
                                               : strlen(value);

        (void)snprintf(one, sizeof one, "%.*s",
                       (int)(len < sizeof one ? len : sizeof one - 1), value);
        if (strchr(one, '/'))
            look_file(s, row, one);
        value += len + (value[len] == ',');
    }
}

static void look_at(const struct preflight_sink *s, unsigned row)
{
    const char *value = check_variable(s->job, rows[row].name);

    if (!value)
        return;
    switch (rows[row].kind) {
    case NCCL_IFNAMES:
    case GLOO_IFNAMES:
        look_ifnames(s, row, value);
        break;
    case HCAS:
        look_hcas(s, row, value);
        break;
    case FILE_READ:
    case FILE_WRITTEN:
        finding_step(s, "looking at the file of %s", rows[row].name);
        look_file(s, row, value);
        break;
    case PLUGIN:
    case PLUGINS:
        finding_step(s, "looking at the file of %s", rows[row].name);
        look_plugins(s, row, value);
        break;
    }
}

void check_ifname_variables(const struct preflight_sink *s)
{
    for (unsigned i = 0; i < N_ROWS; i++)
        if (rows[i].kind == NCCL_IFNAMES || rows[i].kind == GLOO_IFNAMES)
            look_at(s, i);
}

void check_env(const struct preflight_sink *s)
{
    unsigned n = 0;

    for (unsigned i = 0; i < N_ROWS; i++) {
        n += check_variable(s->job, rows[i].name) != NULL;
        look_at(s, i);
    }
    finding_pass(s, "%u of the %zu variables that name interfaces, devices "
                 "and files %s set", n, N_ROWS, n == 1 ? "is" : "are");
}
