/* kernels: the loops of reduce.h, compiled for each instruction set. Pure. */
#ifndef DDP_KERNELS_H
#define DDP_KERNELS_H

#include "ddp.h"

#include <stddef.h>
#include <stdint.h>

#define DDP_N_OPS 5
#define DDP_N_TYPES 10

typedef void ddp_combine_fn(void *out, const void *own, const void *in,
                            size_t n);
typedef void ddp_divide_fn(void *out, const void *in, size_t n, unsigned by);

/* Indexed by enum ddp_type and ddp_op; AVG sums. */
struct ddp_kernels {
    ddp_combine_fn *combine[DDP_N_TYPES][DDP_N_OPS];
    ddp_divide_fn *divide[DDP_N_TYPES];
    /* f16 and bf16, from and to float. */
    void (*from_f16)(float *out, const uint16_t *in, size_t n);
    void (*to_f16)(uint16_t *out, const float *in, size_t n);
    void (*from_bf16)(float *out, const uint16_t *in, size_t n);
    void (*to_bf16)(uint16_t *out, const float *in, size_t n);
};

extern const struct ddp_kernels ddp_kernels_base;
#ifdef __x86_64__
#define DDP_HAS_AVX2 1
extern const struct ddp_kernels ddp_kernels_avx2; /* AVX2 and F16C. */
#endif

#endif
