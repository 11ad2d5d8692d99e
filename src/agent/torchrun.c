/* torchrun: what its options mean together; see torchrun.h. */
#include "agent/torchrun.h"

#include "agent/options_parts.h"
#include "base/variable.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define STATIC_PORT 29500
#define C10D_PORT 29400
/* The barrier's port is as far from the workers' as the defaults are, so that
 * jobs with different ports do not meet there either. */
#define PORT_GAP 100

static enum opt_origin *from_of(struct reader *r, const char *name)
{
    return option_from(r, opt_find_in(torchrun_table(), name, strlen(name)));
}

static bool is_given(struct reader *r, const char *name)
{
    return *from_of(r, name) > BY_DEFAULT;
}

/* AGENT_* must not change what torchrun's own options decide. */
static void keep(struct reader *r, const char *own)
{
    *option_from(r, opt_find(own, strlen(own))) = BY_WORD;
}

/* --- the rendezvous --- */

/* A host, without the brackets of IPv6, becomes master_addr. */
static int take_host(struct reader *r, const char *option, const char *host,
                     size_t len)
{
    struct options *o = r->o;
    char shown[OPT_SHOWN_MAX];

    if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
        host++;
        len -= 2;
    }
    (void)opt_shown(shown, host, len);
    if (len == 0 || len >= sizeof o->torchrun.address)
        return err_set(r->e, ERR_USAGE, "%s: a host is missing in it", option);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)host[i] <= ' ' || strchr("/[]", host[i]))
            return err_set(r->e, ERR_USAGE, "%s: %s is no host name or address",
                           option, shown);
    memcpy(o->torchrun.address, host, len);
    o->torchrun.address[len] = '\0';
    o->master_addr = o->torchrun.address;
    return 0;
}

/* "host:port", "[v6]:port", "host"; *ret_port is left alone without a port,
 * and 0 is c10d's word for any. */
static int take_endpoint(struct reader *r, unsigned *ret_port)
{
    static const char option[] = "--rdzv-endpoint";
    const char *text = r->o->torchrun.endpoint, *colon;
    size_t len = strlen(text);
    uint64_t port;

    torchrun_strip(&text, &len);
    colon = memrchr(text, ':', len);
    if (colon && text[len - 1] != ']') {
        if (!opt_read_uint(colon + 1, len - (size_t)(colon + 1 - text), 0,
                           65535, &port))
            return err_set(r->e, ERR_USAGE, "%s=%.80s: use HOST:PORT, or "
                           "[ADDRESS]:PORT for IPv6", option, text);
        *ret_port = (unsigned)port;
        len = (size_t)(colon - text);
    }
    return take_host(r, option, text, len);
}

static void set_barrier_port(struct options *o, unsigned from)
{
    o->barrier_port = from > PORT_GAP + 1024 ? from - PORT_GAP
                                             : from + PORT_GAP;
}

/* All node ranks are given, and MAX pods are waited for. */
static int settle_static(struct reader *r)
{
    struct options *o = r->o;
    unsigned port = 0;
    int e;

    o->min_nodes = o->nnodes;
    if (o->torchrun.endpoint[0]) {
        e = take_endpoint(r, &port);
        if (e == 0 && port == 0)
            e = err_set(r->e, ERR_USAGE, "--rdzv-endpoint=%.80s: with "
                        "--rdzv-backend=static it needs a port, HOST:PORT",
                        o->torchrun.endpoint);
        o->master_port = port;
        o->master_port_given = true;
    } else {
        e = take_host(r, "--master-addr", o->torchrun.host,
                      strlen(o->torchrun.host));
        if (!is_given(r, "master-port"))
            o->master_port = STATIC_PORT;
    }
    set_barrier_port(o, o->master_port);
    return e;
}

/* One pod meets nobody; its address is for its own workers. */
static int settle_alone(struct reader *r)
{
    struct options *o = r->o;
    const char *given = o->torchrun.local_addr;
    const char *host = given && *given ? given : "127.0.0.1";

    o->nnodes = o->min_nodes = 1;
    o->node_rank = 0;
    o->master_port = STATIC_PORT;
    o->master_port_given = false;
    return take_host(r, "--local-addr", host, strlen(host));
}

/* Ranks by arrival; MASTER_PORT is any that is free. */
static int settle_c10d(struct reader *r)
{
    struct options *o = r->o;
    unsigned port = C10D_PORT;
    int e = 0;

    if (o->torchrun.endpoint[0])
        e = take_endpoint(r, &port);
    if (e != 0 || o->nnodes == 1 || (port == 0 && o->min_nodes == 1))
        return e ? e : settle_alone(r);
    if (port == 0 || !o->torchrun.endpoint[0])
        return err_set(r->e, ERR_USAGE, "%u pods and %s--rdzv-endpoint%s%.80s: "
                       "the others cannot know where to meet; give "
                       "--rdzv-endpoint=HOST:PORT, the same to all",
                       o->min_nodes, o->torchrun.endpoint[0] ? "" : "no ",
                       o->torchrun.endpoint[0] ? "=" : "",
                       o->torchrun.endpoint);
    if (o->node_rank != 0)
        (void)snprintf(o->topology.warning, sizeof o->topology.warning,
                       "node rank %u is not used with c10d: ranks are by "
                       "arrival, going on", o->node_rank);
    o->node_rank = 0;
    o->any_node_rank = true;
    o->barrier_port = port;
    o->master_port = port < 65535 - PORT_GAP ? port + PORT_GAP
                                             : port - PORT_GAP;
    o->master_port_given = false;
    return 0;
}

static int conf_fault(struct reader *r, const char *item, size_t len,
                      const char *why)
{
    char shown[OPT_SHOWN_MAX];

    return err_set(r->e, ERR_USAGE, "--rdzv-conf: %s: %s",
                   opt_shown(shown, item, len), why);
}

/* Python's words for yes and no. */
static int read_yes(const char *s, size_t len)
{
    static const char *const words[] = {"0", "1", "false", "true", "f", "t",
                                        "no", "yes", "n", "y"};

    for (int i = 0; i < 10; i++)
        if (strlen(words[i]) == len && strncasecmp(words[i], s, len) == 0)
            return i % 2;
    return -1;
}

static int take_conf(struct reader *r, const char *item, size_t len)
{
    struct options *o = r->o;
    bool is_c10d = o->torchrun.is_c10d;
    const struct {
        const char *key;
        uint64_t *ms; /* NULL: of no effect here. */
    } times[] = {{"timeout", is_c10d ? NULL : &o->barrier_timeout_ms},
                 {"join_timeout", is_c10d ? &o->barrier_timeout_ms : NULL},
                 {"last_call_timeout", is_c10d ? &o->last_call_ms : NULL}};
    size_t key = strcspn(item, "="), all = len;
    const char *value = item + key + 1;
    uint64_t s;
    int yes;

    len = key < len ? len - key - 1 : 0;
    torchrun_strip(&value, &len);
    torchrun_strip(&item, &key);
    if (key == 0 || len == 0)
        return conf_fault(r, item, all, "use KEY=VALUE,KEY=VALUE");
    for (unsigned i = 0; i < 3; i++) {
        if (strlen(times[i].key) != key || memcmp(times[i].key, item, key) != 0)
            continue;
        if (!opt_read_uint(value, len, 1, 86400 * 365, &s))
            return conf_fault(r, item, all, "use whole seconds");
        if (times[i].ms)
            *times[i].ms = s * 1000;
    }
    if (key == 7 && memcmp(item, "is_host", 7) == 0 && is_c10d) {
        yes = read_yes(value, len);
        if (yes < 0)
            return conf_fault(r, item, all, "use 0 or 1");
        o->any_node_rank = o->any_node_rank && yes == 0;
        o->torchrun.never_coordinates = yes == 0;
    }
    if (key == 10 && memcmp(item, "store_type", 10) == 0 &&
        !(len == 3 && memcmp(value, "tcp", 3) == 0))
        return conf_fault(r, item, all, "only tcp is served: the "
                          "pods meet at a port of node rank 0");
    return 0;
}

static int read_conf(struct reader *r)
{
    const char *s = r->o->torchrun.conf;
    size_t all = strlen(s);
    int e = 0;

    r->o->barrier_timeout_ms = r->o->torchrun.is_c10d ? 600000 : 900000;
    torchrun_strip(&s, &all);
    for (bool more = all > 0; e == 0 && more;) {
        size_t len = strcspn(s, ","), n = len;
        const char *item = s;

        more = s[len] == ',';
        s += len + more;
        torchrun_strip(&item, &n);
        e = take_conf(r, item, n);
    }
    return e;
}

/* --standalone has a back-end of its own. */
static int settle_backend(struct reader *r)
{
    struct torchrun_options *t = &r->o->torchrun;
    const char *name = *from_of(r, "rdzv-backend") == BY_WORD
                           ? "--rdzv-backend" : "PET_RDZV_BACKEND";

    t->is_c10d = strcmp(t->backend, "c10d") == 0;
    if (t->standalone || t->is_c10d || strcmp(t->backend, "static") == 0)
        return 0;
    if (strncmp(t->backend, "etcd", 4) == 0)
        return err_set(r->e, ERR_USAGE, "%s=%.40s: etcd is not served: agent "
                       "has a rendezvous of its own on node rank 0, and needs "
                       "no other server; use c10d, with the host of one of "
                       "the pods as --rdzv-endpoint", name, t->backend);
    return err_set(r->e, ERR_USAGE, "%s=%.40s: use one of: static, c10d", name,
                   t->backend);
}

static int settle_rendezvous(struct reader *r)
{
    struct options *o = r->o;
    struct torchrun_options *t = &o->torchrun;
    int e = settle_backend(r);
    bool is_default = !t->is_c10d && !t->endpoint[0] && o->nnodes == 1 &&
                      !is_given(r, "master-port");

    if (e != 0)
        return e;
    if (t->standalone && o->min_nodes > 1)
        return err_set(r->e, ERR_USAGE, "--standalone with %u pods or more: "
                       "the others could not join; leave one of the two out",
                       o->min_nodes);
    t->random_id = t->standalone || is_default || !o->job_id[0];
    if (t->standalone || is_default) {
        t->is_c10d = true;
        t->endpoint = "localhost:0";
    }
    o->origins[TOPO_MASTER_ADDR] = t->endpoint[0] ? BY_WORD
                                                  : *from_of(r, "master-addr");
    e = t->is_c10d ? settle_c10d(r) : settle_static(r);
    return e ? e : read_conf(r);
}

/* --- the rest --- */

static int settle_logs(struct reader *r, char *const *envp)
{
    struct options *o = r->o;
    const char *prefix =
        variable_given(envp, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");

    o->torchrun.prefix = prefix            ? prefix
                                           : "[${role_name}${local_rank}]:";
    o->log_prefix = "[{role}{local_rank}]:"; /* Of servers. */
    o->torchrun.no_logs = o->log_dir && strcmp(o->log_dir, "/dev/null") == 0;
    if (o->torchrun.no_logs)
        o->log_dir = NULL;
    if (o->torchrun.module && o->torchrun.no_python && !o->torchrun.run_path)
        return err_set(r->e, ERR_USAGE, "--module and --no-python: a module "
                       "needs Python; give one of the two");
    return 0;
}

static int settle_grace(struct reader *r, char *const *envp)
{
    const char *text = variable_find(envp, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
    uint64_t s = 30;

    if (is_given(r, "shutdown-timeout")) {
        s = r->o->torchrun.shutdown_s;
        keep(r, "grace");
    } else if (text && *text &&
               !opt_read_uint(text, strlen(text), 0, 86400, &s)) {
        return err_set(r->e, ERR_USAGE, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT="
                       "%.40s: use whole seconds", text);
    }
    r->o->grace_ms = s * 1000;
    return 0;
}

/* argparse takes the first "--" for its own, also right after the script. The
 * word before the script is at least the program. */
static void drop_dashes(struct options *o)
{
    if (o->n_args < 2 || strcmp(o->args[1], "--") != 0 ||
        strcmp(o->args[-1], "--") == 0)
        return;
    o->args[1] = o->args[0];
    o->args++;
    o->n_args--;
}

int torchrun_read(struct reader *r, char *const *envp)
{
    static const char *const settled[] = {
        "nnodes", "nproc", "node-rank", "master-addr", "master-port", "job-id",
        "role", "max-restarts", "log-dir", "log-prefix", "log-ranks"};
    int e = options_read_variables(r, torchrun_table(), envp);

    for (unsigned i = 0; i < sizeof settled / sizeof settled[0]; i++)
        keep(r, settled[i]);
    drop_dashes(r->o);
    /* A group is started again at once. */
    r->o->backoff_min_ms = r->o->backoff_max_ms = 0;
    if (e == 0)
        e = settle_rendezvous(r);
    if (e == 0)
        e = settle_grace(r, envp);
    return e ? e : settle_logs(r, envp);
}
