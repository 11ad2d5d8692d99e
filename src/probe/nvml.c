/* nvml: see nvml.h. Numbers are those of NVIDIA's nvml.h. */
#include "probe/nvml.h"

#include <stdio.h>

#define NVML_UNCORRECTED 1
#define NVML_SINCE_BOOT 0
#define NVLINKS_MAX 18

struct memory {
    unsigned long long total, free, used;
};

/* Why it tells nothing, in `why`; or true. */
static bool begin(struct nvml *n, char *why, size_t cap)
{
    int (*init)(void), r;

    if (!library_open(&n->lib, "libnvidia-ml.so.1")) {
        (void)snprintf(why, cap, "%s", n->lib.why);
        return false;
    }
    if (!LIBRARY_FIND(&n->lib, init, "nvmlInit_v2")) {
        (void)snprintf(why, cap, "%s has no nvmlInit_v2", n->lib.path);
        return false;
    }
    r = init();
    if (r != 0)
        (void)snprintf(why, cap, "%s: nvmlInit_v2 failed with %d",
                       n->lib.path, r);
    return r == 0;
}

void nvml_begin(struct nvml *n, json_t *part)
{
    json_t *nvml = json_object();
    int (*driver)(char *, unsigned);
    char version[96] = "", why[PATH_MAX + 64];

    n->ready = begin(n, why, sizeof why);
    (void)json_object_set_new(nvml, "found", json_boolean(n->ready));
    probe_set_text(nvml, n->ready ? "library" : "why",
                   n->ready ? n->lib.path : why);
    (void)json_object_set_new(part, "nvml", nvml);
    if (n->ready &&
        LIBRARY_FIND(&n->lib, driver, "nvmlSystemGetDriverVersion") &&
        driver(version, sizeof version - 1) == 0)
        probe_set_text(part, "driver", version);
}

static void add_memory(const struct nvml *n, void *device, json_t *gpu)
{
    int (*get)(void *, struct memory *);
    struct memory m;

    if (!LIBRARY_FIND(&n->lib, get, "nvmlDeviceGetMemoryInfo") ||
        get(device, &m) != 0)
        return;
    (void)json_object_set_new(gpu, "memory_used_bytes",
                              json_integer((json_int_t)m.used));
}

static void add_mig(const struct nvml *n, void *device, json_t *gpu)
{
    int (*get)(void *, unsigned *, unsigned *);
    unsigned now = 0, pending = 0;

    if (LIBRARY_FIND(&n->lib, get, "nvmlDeviceGetMigMode") &&
        get(device, &now, &pending) == 0)
        (void)json_object_set_new(gpu, "mig", json_boolean(now != 0));
}

static void add_nvlinks(const struct nvml *n, void *device, json_t *gpu)
{
    int (*get)(void *, unsigned, unsigned *);
    unsigned n_links = 0, n_active = 0, active;

    if (!LIBRARY_FIND(&n->lib, get, "nvmlDeviceGetNvLinkState"))
        return;
    for (unsigned i = 0; i < NVLINKS_MAX; i++) {
        if (get(device, i, &active) != 0)
            continue;
        n_links++;
        n_active += active != 0;
    }
    (void)json_object_set_new(gpu, "nvlinks", json_integer(n_links));
    (void)json_object_set_new(gpu, "nvlinks_active", json_integer(n_active));
}

static void add_ecc(const struct nvml *n, void *device, json_t *gpu)
{
    int (*get)(void *, int, int, unsigned long long *);
    unsigned long long errors = 0;

    if (LIBRARY_FIND(&n->lib, get, "nvmlDeviceGetTotalEccErrors") &&
        get(device, NVML_UNCORRECTED, NVML_SINCE_BOOT, &errors) == 0)
        (void)json_object_set_new(gpu, "ecc_uncorrected",
                                  json_integer((json_int_t)errors));
}

void nvml_add(const struct nvml *n, const char *pci, json_t *gpu)
{
    int (*by_pci)(const char *, void **);
    void *device = NULL;

    if (!n->ready ||
        !LIBRARY_FIND(&n->lib, by_pci, "nvmlDeviceGetHandleByPciBusId_v2") ||
        by_pci(pci, &device) != 0)
        return;
    add_memory(n, device, gpu);
    add_mig(n, device, gpu);
    add_nvlinks(n, device, gpu);
    add_ecc(n, device, gpu);
}
