/* gpu: NVIDIA GPUs, by the driver's own library; the CUDA runtime's version.
 * Numbers are those of NVIDIA's cuda.h. */
#include "probe/library.h"
#include "probe/nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPUS_MAX 64
#define VERSION_MIN 1000 /* 12040 is 12.4, and 0 is none at all. */
#define CU_MAJOR 75 /* CUdevice_attribute: compute capability. */
#define CU_MINOR 76
#define CU_P2P_RANK 1 /* CUdevice_P2PAttribute. */
#define CU_NO_DEVICE 100

struct cuda {
    struct library lib;
    int (*init)(unsigned);
    int (*driver_version)(int *);
    int (*count)(int *);
    int (*get)(int *, int);
    int (*name)(char *, int, int);
    int (*uuid)(unsigned char *, int);
    int (*pci)(char *, int, int);
    int (*memory)(size_t *, int);
    int (*attribute)(int *, int, int);
    int (*can_access)(int *, int, int);
    int (*p2p)(int *, int, int, int);
    int (*error)(int, const char **);
};

static void set_number(json_t *o, const char *key, long long n)
{
    (void)json_object_set_new(o, key, json_integer(n));
}

static void set_version(json_t *o, const char *key, int version)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%d.%d", version / 1000,
                   version % 1000 / 10);
    probe_set_text(o, key, text);
}

static bool find_all(struct cuda *c)
{
    struct library *l = &c->lib;
    /* They came with one library: it has all of them, or is none. */
    void *all[] = {
        LIBRARY_FIND(l, c->init, "cuInit"),
        LIBRARY_FIND(l, c->driver_version, "cuDriverGetVersion"),
        LIBRARY_FIND(l, c->count, "cuDeviceGetCount"),
        LIBRARY_FIND(l, c->get, "cuDeviceGet"),
        LIBRARY_FIND(l, c->name, "cuDeviceGetName"),
        LIBRARY_FIND(l, c->uuid, "cuDeviceGetUuid_v2"),
        LIBRARY_FIND(l, c->pci, "cuDeviceGetPCIBusId"),
        LIBRARY_FIND(l, c->memory, "cuDeviceTotalMem_v2"),
        LIBRARY_FIND(l, c->attribute, "cuDeviceGetAttribute"),
        LIBRARY_FIND(l, c->can_access, "cuDeviceCanAccessPeer"),
        LIBRARY_FIND(l, c->p2p, "cuDeviceGetP2PAttribute"),
        LIBRARY_FIND(l, c->error, "cuGetErrorString"),
    };

    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!all[i])
            return false;
    return true;
}

static const char *error_text(const struct cuda *c, int code)
{
    const char *text = NULL;

    return c->error(code, &text) == 0 && text ? text : "unknown error";
}

/* -1: the machine does not say. */
static int numa_node(const char *pci)
{
    char path[128], small[32] = "";
    int node = -1;
    FILE *f;

    for (unsigned i = 0; i + 1 < sizeof small && pci[i]; i++)
        small[i] = (char)(pci[i] >= 'A' && pci[i] <= 'F' ? pci[i] + 32
                                                         : pci[i]);
    (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node",
                   small);
    f = fopen(path, "re");
    if (!f)
        return -1;
    if (fscanf(f, "%d", &node) != 1)
        node = -1;
    (void)fclose(f);
    return node;
}

static void add_uuid(const struct cuda *c, int device, const char *name,
                     json_t *gpu)
{
    unsigned char u[16];
    char text[64];
    int n;

    if (c->uuid(u, device) != 0)
        return;
    n = snprintf(text, sizeof text, "%s-", strstr(name, "MIG") ? "MIG"
                                                               : "GPU");
    for (unsigned i = 0; i < 16; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%02x",
                      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
    probe_set_text(gpu, "uuid", text);
}

static json_t *describe(const struct cuda *c, const struct nvml *n, int index)
{
    json_t *gpu = json_object();
    char name[256] = "", pci[32] = "", cc[32];
    int device = 0, major = 0, minor = 0;
    size_t bytes = 0;

    set_number(gpu, "index", index);
    if (c->get(&device, index) != 0)
        return gpu;
    if (c->name(name, sizeof name - 1, device) == 0)
        probe_set_text(gpu, "name", name);
    add_uuid(c, device, name, gpu);
    if (c->memory(&bytes, device) == 0)
        set_number(gpu, "memory_bytes", (long long)bytes);
    if (c->attribute(&major, CU_MAJOR, device) == 0 &&
        c->attribute(&minor, CU_MINOR, device) == 0) {
        (void)snprintf(cc, sizeof cc, "%d.%d", major, minor);
        probe_set_text(gpu, "compute_capability", cc);
    }
    if (c->pci(pci, sizeof pci - 1, device) == 0) {
        probe_set_text(gpu, "pci", pci);
        set_number(gpu, "numa_node", numa_node(pci));
        nvml_add(n, pci, gpu);
    }
    return gpu;
}

/* p2p[i][j]: whether i can read and write the memory of j; and how near it is,
 * 0 the nearest, as the driver ranks it. */
static void add_p2p(const struct cuda *c, int n, json_t *part)
{
    json_t *can = json_array(), *ranks = json_array();

    for (int i = 0; i < n; i++) {
        json_t *can_row = json_array(), *rank_row = json_array();

        for (int j = 0; j < n; j++) {
            int yes = i == j, rank = 0;

            if (i != j && c->can_access(&yes, i, j) != 0)
                yes = 0;
            if (i != j && c->p2p(&rank, CU_P2P_RANK, i, j) != 0)
                rank = -1;
            (void)json_array_append_new(can_row, json_boolean(yes));
            (void)json_array_append_new(rank_row, json_integer(rank));
        }
        (void)json_array_append_new(can, can_row);
        (void)json_array_append_new(ranks, rank_row);
    }
    (void)json_object_set_new(part, "p2p", can);
    (void)json_object_set_new(part, "p2p_rank", ranks);
}

static bool add_runtime_of(const struct library *l, json_t *runtime)
{
    int (*get)(int *), version = 0;

    if (!l->handle || !LIBRARY_FIND(l, get, "cudaRuntimeGetVersion") ||
        get(&version) != 0 || version < VERSION_MIN)
        return false;
    (void)json_object_set_new(runtime, "found", json_true());
    probe_set_text(runtime, "library", l->path);
    set_version(runtime, "version", version);
    return true;
}

static void add_runtime(json_t *part)
{
    static const struct {
        const char *name, *python;
    } places[] = {{"libcudart.so.13", "nvidia/cu13/lib"},
                  {"libcudart.so.12", "nvidia/cuda_runtime/lib"},
                  {"libcudart.so.11.0", "nvidia/cuda_runtime/lib"}};
    json_t *runtime = json_object();
    struct library l;

    (void)json_object_set_new(part, "runtime", runtime);
    for (unsigned i = 0; i < 3; i++) {
        (void)library_open(&l, places[i].name);
        if (add_runtime_of(&l, runtime))
            return;
        (void)library_open_wheel(&l, places[i].name, places[i].python);
        if (add_runtime_of(&l, runtime))
            return;
    }
    (void)json_object_set_new(runtime, "found", json_false());
    probe_set_text(runtime, "why", "no libcudart.so of CUDA 11 to 13");
}

void probe_gpu(json_t *part)
{
    json_t *list = json_array();
    struct cuda c;
    struct nvml n;
    int r, count = 0, version = 0;

    add_runtime(part);
    (void)json_object_set_new(part, "gpus", list);
    if (!library_open(&c.lib, "libcuda.so.1")) {
        probe_missing(part, false, "no NVIDIA driver here: %s", c.lib.why);
        return;
    }
    probe_set_text(part, "library", c.lib.path);
    if (!find_all(&c)) {
        probe_missing(part, true, "%s lacks functions of CUDA 11.4 and later",
                      c.lib.path);
        return;
    }
    r = c.init(0);
    if (r != 0) {
        probe_missing(part, r != CU_NO_DEVICE, "cuInit failed with %d: %s", r,
                      error_text(&c, r));
        return;
    }
    nvml_begin(&n, part);
    if (c.driver_version(&version) == 0 && version >= VERSION_MIN)
        set_version(part, "driver_cuda", version);
    r = c.count(&count);
    if (r != 0 && r != CU_NO_DEVICE) {
        probe_missing(part, true, "cuDeviceGetCount failed with %d: %s", r,
                      error_text(&c, r));
        return;
    }
    if (r != 0 || count <= 0) {
        probe_missing(part, false, "the driver sees no GPU");
        return;
    }
    (void)json_object_set_new(part, "found", json_true());
    count = count > GPUS_MAX ? GPUS_MAX : count;
    for (int i = 0; i < count; i++)
        (void)json_array_append_new(list, describe(&c, &n, i));
    add_p2p(&c, count, part);
}
