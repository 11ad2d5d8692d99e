/* reduce: see reduce.h; the loops are those of kernels.h. */
#include "ddp/reduce.h"
#include "ddp/kernels.h"

#include <string.h>

#define FOLD 1024 /* Elements at a time: their floats stay in the L1 cache. */

static const struct {
    const char *name;
    size_t width;
} types[DDP_N_TYPES] = {
    [DDP_I8] = {"i8", 1},   [DDP_U8] = {"u8", 1},   [DDP_I32] = {"i32", 4},
    [DDP_U32] = {"u32", 4}, [DDP_I64] = {"i64", 8}, [DDP_U64] = {"u64", 8},
    [DDP_F16] = {"f16", 2}, [DDP_F32] = {"f32", 4}, [DDP_F64] = {"f64", 8},
    [DDP_BF16] = {"bf16", 2},
};

size_t ddp_type_width(int type)
{
    return type < 0 || type >= DDP_N_TYPES ? 0 : types[type].width;
}

const char *ddp_type_name(unsigned type)
{
    return type < DDP_N_TYPES ? types[type].name : "?";
}

const char *ddp_op_name(unsigned op)
{
    static const char *const names[DDP_N_OPS] = {"sum", "prod", "max", "min",
                                                 "avg"};

    return op < DDP_N_OPS ? names[op] : "?";
}

/* The best loops that this processor has; clang knows no name for F16C, but
 * no processor has AVX2 without it. */
static const struct ddp_kernels *kernels(void)
{
#ifdef DDP_HAS_AVX2
#ifndef __clang__
    if (!__builtin_cpu_supports("f16c"))
        return &ddp_kernels_base;
#endif
    if (__builtin_cpu_supports("avx2"))
        return &ddp_kernels_avx2;
#endif
    return &ddp_kernels_base;
}

void ddp_reduce(int type, int op, void *out, const void *own, const void *in,
                size_t n)
{
    kernels()->combine[type][op](out, own, in, n);
}

void ddp_divide(int type, void *out, const void *in, size_t n, unsigned by)
{
    kernels()->divide[type](out, in, n, by);
}

void ddp_narrow(int type, void *out, const float *in, size_t n)
{
    const struct ddp_kernels *k = kernels();

    (type == DDP_F16 ? k->to_f16 : k->to_bf16)(out, in, n);
}

void ddp_widen(int type, float *out, const void *in, size_t n)
{
    const struct ddp_kernels *k = kernels();

    (type == DDP_F16 ? k->from_f16 : k->from_bf16)(out, in, n);
}

/* Up to FOLD elements, of which the first is number `at`. */
static void fold_half(int type, int op, uint16_t *out, const void *const *in,
                      unsigned n_in, size_t at, size_t n)
{
    float sum[FOLD], next[FOLD];

    ddp_widen(type, sum, (const uint16_t *)in[0] + at, n);
    for (unsigned k = 1; k < n_in; k++) {
        ddp_widen(type, next, (const uint16_t *)in[k] + at, n);
        ddp_reduce(DDP_F32, op, sum, sum, next, n);
    }
    if (op == DDP_AVG)
        ddp_divide(DDP_F32, sum, sum, n, n_in);
    ddp_narrow(type, out + at, sum, n);
}

static void fold_block(int type, int op, uint8_t *out, const void *const *in,
                       unsigned n_in, size_t at, size_t n)
{
    _Alignas(16) uint8_t own[FOLD * 8];
    size_t width = types[type].width;
    /* `out` may be any of the inputs: the sum goes there at the end. */
    uint8_t *sum = n_in > 2 ? own : out + at * width;
    const uint8_t *first = (const uint8_t *)in[0] + at * width;

    if (n_in == 1 && out + at * width != first)
        memcpy(out + at * width, first, n * width);
    for (unsigned k = 1; k < n_in; k++) {
        if (k == n_in - 1)
            ddp_reduce(type, op, out + at * width, first,
                       (const uint8_t *)in[k] + at * width, n);
        else
            ddp_reduce(type, op, sum, first,
                       (const uint8_t *)in[k] + at * width, n);
        first = sum;
    }
    if (op == DDP_AVG)
        ddp_divide(type, out + at * width, out + at * width, n, n_in);
}

void ddp_fold(int type, int op, void *out, const void *const *in,
              unsigned n_in, size_t n)
{
    for (size_t at = 0; at < n; at += FOLD) {
        size_t len = n - at < FOLD ? n - at : FOLD;

        if (type == DDP_F16 || type == DDP_BF16)
            fold_half(type, op, out, in, n_in, at, len);
        else
            fold_block(type, op, out, in, n_in, at, len);
    }
}
