/* probe: what this machine has for distributed training: GPUs, NCCL, RDMA.
 *
 * Each part is found by dlopen and may be missing. A part runs in a process of
 * its own with a deadline, for a broken driver hangs or crashes whoever asks
 * it. docs/probe.md has the keys. */
#ifndef PROBE_PROBE_H
#define PROBE_PROBE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define PROBE_FORMAT 1
#define PROBE_TIMEOUT_MS 30000
#define PROBE_BYTES_MAX (1u << 20) /* What a part may say. */
#define PROBE_TEXT 512

/* Fill `part`, an empty object: "found", and "why" where it is false. */
typedef void probe_fill(json_t *part);

probe_fill probe_gpu, probe_nccl, probe_rdma;

/* The object that `fill` made in another process; or one that says why there
 * is none: "found" false, "fault" true and "why". NULL: no memory. */
json_t *probe_part(probe_fill *fill, unsigned timeout_ms);

/* What of it is no UTF-8 becomes '?', as JSON has no other text: a path is
 * bytes, and would be left out. */
void probe_set_text(json_t *o, const char *key, const char *text);

/* "found": false, for this reason; `fault` where that is a defect, and not
 * just a machine without such a thing. */
void probe_missing(json_t *part, bool fault, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
