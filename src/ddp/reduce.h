/* reduce: out[i] = own[i] op in[i]. Pure. */
#ifndef DDP_REDUCE_H
#define DDP_REDUCE_H

#include "ddp.h"

#include <stdbool.h>

/* Bytes of an element, 0 for no type; "f32", "sum", "?" for none. */
size_t ddp_type_width(int type);
const char *ddp_type_name(unsigned type);
const char *ddp_op_name(unsigned op);

/* Whether ddp_reduce can combine this type. */
bool ddp_type_reduces(int type);

/* Combine n elements. `out` may be `own`, but overlaps nothing else. For
 * DDP_AVG only the sum: ddp_divide ends it. */
void ddp_reduce(int type, int op, void *out, const void *own, const void *in,
                size_t n);

/* out[i] = in[i] / by; `out` may be `in`. */
void ddp_divide(int type, void *out, const void *in, size_t n, unsigned by);

#endif
