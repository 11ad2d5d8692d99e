/* nvml: what the NVIDIA management library adds about a GPU. */
#ifndef PROBE_NVML_H
#define PROBE_NVML_H

#include "probe/library.h"

#include <stdbool.h>

struct nvml {
    struct library lib;
    bool ready;
};

/* Where it is missing, `part` says so in "nvml", and the GPUs have less. */
void nvml_begin(struct nvml *n, json_t *part);
/* Into `gpu`: memory, MIG, NVLinks, ECC errors; as far as it can tell. */
void nvml_add(const struct nvml *n, const char *pci, json_t *gpu);

#endif
