/* rdma: InfiniBand and RoCE devices, by libibverbs: the state of each port,
 * and whether memory can really be registered. Numbers and the layout of a
 * port's attributes are those of libibverbs' verbs.h, whose ABI is stable. */
#include "probe/library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 64
#define PORTS_MAX 8
#define REGISTER_BYTES (64u << 20)
#define IBV_LOCAL_WRITE 1

struct port { /* struct ibv_port_attr, and room for more of it. */
    int state, max_mtu, active_mtu, gid_tbl_len;
    uint32_t cap_flags, max_msg_size, bad_pkeys, qkey_violations;
    uint16_t pkey_tbl_len, lid, sm_lid;
    uint8_t lmc, max_vl, sm_sl, subnet_timeout, init_type, active_width,
        active_speed, phys_state, link_layer, flags;
    uint8_t more[256];
};

struct verbs {
    struct library lib;
    void **(*list)(int *);
    void (*free_list)(void **);
    const char *(*name)(void *);
    void *(*open)(void *);
    int (*close)(void *);
    int (*port)(void *, uint8_t, struct port *);
    void *(*alloc_pd)(void *);
    int (*free_pd)(void *);
    void *(*reg)(void *, void *, size_t, int);
    int (*dereg)(void *);
};

static bool find_all(struct verbs *v)
{
    struct library *l = &v->lib;
    void *all[] = {
        LIBRARY_FIND(l, v->list, "ibv_get_device_list"),
        LIBRARY_FIND(l, v->free_list, "ibv_free_device_list"),
        LIBRARY_FIND(l, v->name, "ibv_get_device_name"),
        LIBRARY_FIND(l, v->open, "ibv_open_device"),
        LIBRARY_FIND(l, v->close, "ibv_close_device"),
        LIBRARY_FIND(l, v->port, "ibv_query_port"),
        LIBRARY_FIND(l, v->alloc_pd, "ibv_alloc_pd"),
        LIBRARY_FIND(l, v->free_pd, "ibv_dealloc_pd"),
        LIBRARY_FIND(l, v->reg, "ibv_reg_mr"),
        LIBRARY_FIND(l, v->dereg, "ibv_dereg_mr"),
    };

    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!all[i])
            return false;
    return true;
}

static const char *of(const char *const *names, unsigned n, unsigned i)
{
    return i < n ? names[i] : "unknown";
}

static void add_ports(const struct verbs *v, void *context, json_t *device)
{
    static const char *const states[] = {"nop",   "down",   "init",
                                         "armed", "active", "active-defer"};
    static const char *const layers[] = {"unspecified", "InfiniBand",
                                         "Ethernet"};
    json_t *ports = json_array();
    struct port p;

    (void)json_object_set_new(device, "ports", ports);
    for (uint8_t i = 1; i <= PORTS_MAX; i++) {
        json_t *port;

        memset(&p, 0, sizeof p);
        if (v->port(context, i, &p) != 0)
            break; /* There is no such port. */
        port = json_object();
        (void)json_object_set_new(port, "port", json_integer(i));
        (void)json_object_set_new(
            port, "state", json_string(of(states, 6, (unsigned)p.state)));
        (void)json_object_set_new(
            port, "link_layer", json_string(of(layers, 3, p.link_layer)));
        (void)json_object_set_new(port, "lid", json_integer(p.lid));
        /* IBV_MTU_256 is 1, and each next one twice as much. */
        if (p.active_mtu >= 1 && p.active_mtu <= 5)
            (void)json_object_set_new(port, "mtu",
                                      json_integer(128 << p.active_mtu));
        (void)json_array_append_new(ports, port);
    }
}

/* What NCCL will do: ENOMEM here is its "unhandled system error" there. */
static void try_register(const struct verbs *v, void *context, json_t *device)
{
    void *pd = v->alloc_pd(context), *region = NULL, *bytes = NULL;
    json_t *result = json_object();
    char why[PROBE_TEXT] = "";

    (void)json_object_set_new(device, "register", result);
    (void)json_object_set_new(result, "bytes", json_integer(REGISTER_BYTES));
    if (!pd) {
        (void)snprintf(why, sizeof why, "ibv_alloc_pd: %s", strerror(errno));
    } else if (posix_memalign(&bytes, 4096, REGISTER_BYTES) != 0) {
        (void)snprintf(why, sizeof why, "no memory");
    } else {
        region = v->reg(pd, bytes, REGISTER_BYTES, IBV_LOCAL_WRITE);
        if (!region)
            (void)snprintf(why, sizeof why, "ibv_reg_mr: %s%s",
                           strerror(errno),
                           errno == ENOMEM ? "; is `ulimit -l` too small? The "
                                             "pod needs the capability "
                                             "IPC_LOCK, or memlock unlimited"
                                           : "");
    }
    (void)json_object_set_new(result, "ok", json_boolean(region != NULL));
    if (!region)
        probe_set_text(result, "why", why);
    else
        (void)v->dereg(region);
    free(bytes);
    if (pd)
        (void)v->free_pd(pd);
}

static json_t *describe(const struct verbs *v, void *device)
{
    json_t *d = json_object();
    void *context;

    probe_set_text(d, "name", v->name(device));
    context = v->open(device);
    if (!context) {
        probe_set_text(d, "why", strerror(errno));
        return d;
    }
    add_ports(v, context, d);
    try_register(v, context, d);
    (void)v->close(context);
    return d;
}

void probe_rdma(json_t *part)
{
    json_t *devices = json_array();
    struct verbs v;
    void **list;
    int n = 0;

    (void)json_object_set_new(part, "devices", devices);
    if (!library_open(&v.lib, "libibverbs.so.1")) {
        probe_missing(part, v.lib.is_there, "%s: %s",
                      v.lib.is_there ? "libibverbs cannot be loaded"
                                     : "no RDMA here", v.lib.why);
        return;
    }
    probe_set_text(part, "library", v.lib.path);
    if (!find_all(&v)) {
        probe_missing(part, true, "%s lacks functions of verbs", v.lib.path);
        return;
    }
    errno = 0;
    list = v.list(&n);
    if (!list || n == 0) { /* ENOSYS: the kernel has no such thing. */
        bool fault = !list && errno != 0 && errno != ENOSYS && errno != ENOENT;

        probe_missing(part, fault, "no RDMA here%s%s",
                      !list && errno ? ": " : "",
                      !list && errno ? strerror(errno) : "");
    } else {
        (void)json_object_set_new(part, "found", json_true());
    }
    for (int i = 0; list && i < n && i < DEVICES_MAX; i++)
        (void)json_array_append_new(devices, describe(&v, list[i]));
    if (list)
        v.free_list(list);
}
