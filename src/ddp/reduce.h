/* reduce: out[i] = own[i] op in[i]. Pure. */
#ifndef DDP_REDUCE_H
#define DDP_REDUCE_H

#include "ddp.h"

#include <stdbool.h>

/* Bytes of an element, 0 for no type; "f32", "sum", "?" for none. */
size_t ddp_type_width(int type);
const char *ddp_type_name(unsigned type);
const char *ddp_op_name(unsigned op);

/* Combine n elements. `out` may be `own` or `in`, but overlaps nothing
 * else. For DDP_AVG only the sum: ddp_divide ends it. */
void ddp_reduce(int type, int op, void *out, const void *own, const void *in,
                size_t n);

/* out[i] = in[i] / by; `out` may be `in`. */
void ddp_divide(int type, void *out, const void *in, size_t n, unsigned by);

/* The whole reduction of n_in buffers, from the first to the last, division
 * included; f16 and bf16 are rounded once, at the end. `out` may be one of
 * them, but overlaps nothing else. */
void ddp_fold(int type, int op, void *out, const void *const *in,
              unsigned n_in, size_t n);

/* f16 or bf16 (`type`) from floats, and back. */
void ddp_narrow(int type, void *out, const float *in, size_t n);
void ddp_widen(int type, float *out, const void *in, size_t n);

#endif
