/* cpu_gpu: near which CPUs the GPUs are: the node of each in CUDA's order,
 * without CUDA. NVIDIA's driver lists its cards in /proc/driver/nvidia/gpus,
 * AMD's in /sys/class/kfd; sysfs knows the node of a PCI address. */
#include "agent/cpu_read.h"

#include "base/mem.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define NVIDIA "/proc/driver/nvidia/gpus"
#define KFD "/sys/class/kfd/kfd/topology/nodes"
#define KFD_MAX 256

struct card {
    char pci[16];   /* 0000:17:00.0 */
    char uuid[64];  /* NVIDIA's. */
    char model[64];
    int node;       /* -1: not known. */
};

struct cards {
    unsigned n;
    bool is_mixed; /* The order is not known: CUDA sorts cards of several
                      models by speed, ROCm has variables of its own. */
    struct card of[CPU_GPUS_MAX];
};

static int by_address(const void *a, const void *b)
{
    return strcmp(((const struct card *)a)->pci, ((const struct card *)b)->pci);
}

/* The words after "Key:", without the spaces around them. */
static bool value_of(const char *line, const char *key, char *out, size_t cap)
{
    size_t len = strlen(key);

    if (strncmp(line, key, len) != 0)
        return false;
    line += len;
    while (isspace((unsigned char)*line))
        line++;
    len = strcspn(line, "\n");
    while (len > 0 && isspace((unsigned char)line[len - 1]))
        len--;
    (void)snprintf(out, cap, "%.*s", (int)len, line);
    return true;
}

static void read_node(const char *root, struct card *c)
{
    char path[PATH_MAX];
    autofclose FILE *f = NULL;

    c->node = -1;
    (void)snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/numa_node",
                   root, c->pci);
    f = fopen(path, "re");
    if (!f || fscanf(f, "%d", &c->node) != 1 || c->node >= CPU_MAX)
        c->node = -1;
}

/* A card whose device file is missing is another container's. */
static bool read_nvidia(const char *root, const char *name, struct card *c)
{
    char path[PATH_MAX], line[256], minor[16] = "";
    autofclose FILE *f = NULL;

    memset(c, 0, sizeof *c);
    (void)snprintf(c->pci, sizeof c->pci, "%.15s", name);
    for (char *s = c->pci; *s; s++)
        *s = (char)tolower((unsigned char)*s);
    (void)snprintf(path, sizeof path, "%s" NVIDIA "/%s/information", root,
                   name);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        (void)(value_of(line, "Model:", c->model, sizeof c->model) ||
               value_of(line, "GPU UUID:", c->uuid, sizeof c->uuid) ||
               value_of(line, "Device Minor:", minor, sizeof minor));
    (void)snprintf(path, sizeof path, "%s/dev/nvidia%s", root, minor);
    if (minor[0] == '\0' || access(path, F_OK) != 0)
        return false;
    read_node(root, c);
    return true;
}

static void list_nvidia(const char *root, struct cards *all)
{
    char path[PATH_MAX];
    const struct dirent *ent;
    DIR *d;

    (void)snprintf(path, sizeof path, "%s" NVIDIA, root);
    d = opendir(path);
    while (d && all->n < CPU_GPUS_MAX && (ent = readdir(d)) != NULL)
        if (ent->d_name[0] != '.' &&
            read_nvidia(root, ent->d_name, &all->of[all->n]))
            all->n++;
    if (d)
        (void)closedir(d);
    qsort(all->of, all->n, sizeof all->of[0], by_address);
    for (unsigned i = 1; i < all->n; i++)
        if (strcmp(all->of[i].model, all->of[0].model) != 0)
            all->is_mixed = true;
}

/* In the order of the topology's nodes, as ROCm has them. */
static void list_kfd(const char *root, struct cards *all)
{
    char path[PATH_MAX], line[128];

    for (unsigned i = 0; i < KFD_MAX && all->n < CPU_GPUS_MAX; i++) {
        struct card *c = &all->of[all->n];
        unsigned long simd = 0, where = 0, domain = 0;
        autofclose FILE *f = NULL;

        all->is_mixed = getenv("ROCR_VISIBLE_DEVICES") != NULL ||
                        getenv("HIP_VISIBLE_DEVICES") != NULL;
        (void)snprintf(path, sizeof path, "%s" KFD "/%u/properties", root, i);
        f = fopen(path, "re");
        if (!f)
            break;
        while (fgets(line, sizeof line, f))
            (void)(sscanf(line, "simd_count %lu", &simd) == 1 ||
                   sscanf(line, "location_id %lu", &where) == 1 ||
                   sscanf(line, "domain %lu", &domain) == 1);
        if (simd == 0)
            continue;
        memset(c, 0, sizeof *c);
        (void)snprintf(c->pci, sizeof c->pci, "%04lx:%02lx:%02lx.%lx",
                       domain & 0xffff, where >> 8 & 0xff, where >> 3 & 0x1f,
                       where & 7);
        read_node(root, c);
        all->n++;
    }
}

/* All on one node: then it does not matter which is which. */
static bool same_node(const struct cards *all)
{
    for (unsigned i = 0; i < all->n; i++)
        if (all->of[i].node < 0 || all->of[i].node != all->of[0].node)
            return false;
    return all->n > 0;
}

/* An entry of CUDA_VISIBLE_DEVICES: a number, or the beginning of a UUID,
 * which MIG's older names have in them. NULL: cannot be told. */
static const struct card *find(const struct cards *all, const char *entry,
                               size_t len, bool by_number)
{
    const struct card *found = NULL;
    char *end;
    unsigned long v = strtoul(entry, &end, 10);

    if (len > 0 && end == entry + len && isdigit((unsigned char)*entry))
        return by_number && v < all->n ? &all->of[v] : NULL;
    if (strncmp(entry, "MIG-GPU-", 8) == 0 && memchr(entry, '/', len)) {
        len = strcspn(entry, "/") - 4;
        entry += 4;
    }
    if (len < 5 || strncmp(entry, "GPU-", 4) != 0)
        return NULL;
    for (unsigned i = 0; i < all->n; i++)
        if (strncasecmp(all->of[i].uuid, entry, len) == 0) {
            if (found)
                return NULL;
            found = &all->of[i];
        }
    return found;
}

static const char *next_entry(const char *s, size_t *ret_len)
{
    while (isspace((unsigned char)*s))
        s++;
    *ret_len = strcspn(s, ",");
    while (*ret_len > 0 && isspace((unsigned char)s[*ret_len - 1]))
        (*ret_len)--;
    return s;
}

static const char *why(const struct cards *all, bool by_number)
{
    return all->n == 0 ? "none in " NVIDIA " or " KFD
           : by_number ? "CUDA_VISIBLE_DEVICES names others"
                       : "several models: set CUDA_DEVICE_ORDER=PCI_BUS_ID";
}

int cpu_gpu_nodes(const char *root, const char *visible, const char *order,
                  unsigned n, uint16_t *ret, struct err *e)
{
    struct cards all = {.n = 0};
    bool by_number, same;
    const char *entry = visible;
    size_t len;

    list_nvidia(root, &all);
    if (all.n == 0)
        list_kfd(root, &all);
    by_number = !all.is_mixed || (order && strcmp(order, "PCI_BUS_ID") == 0);
    same = same_node(&all);
    for (unsigned i = 0; i < n; i++) {
        const struct card *c = NULL;

        if (visible) {
            entry = next_entry(entry, &len);
            c = find(&all, entry, len, by_number);
            entry += strcspn(entry, ",");
            entry += *entry == ',';
        } else if (by_number && i < all.n) {
            c = &all.of[i];
        }
        if (same)
            c = &all.of[0];
        if (!c)
            return err_set(e, ERR_RESOURCE, "which card GPU %u is cannot be "
                           "told (%s)", i, why(&all, by_number));
        if (c->node < 0)
            return err_set(e, ERR_RESOURCE, "the NUMA node of GPU %u (%s) is "
                           "not known to the kernel", i, c->pci);
        ret[i] = (uint16_t)c->node;
    }
    return 0;
}
