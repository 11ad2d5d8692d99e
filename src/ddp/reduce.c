/* reduce: see reduce.h.
 *
 * The loops are written so that gcc and clang use vector instructions at -O2:
 * blocks of a constant length, and a promise that iterations are independent
 * (they are: out[i] depends on own[i] and in[i] alone). */
#include "ddp/reduce.h"

#include <stdint.h>

#define BLOCK 64

#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

typedef void combine_fn(void *out, const void *own, const void *in, size_t n);

#define SUM(T, a, b) ((T)((a) + (b)))
#define PROD(T, a, b) ((T)((a) * (b)))
#define MIN(T, a, b) ((a) < (b) ? (a) : (b))
#define MAX(T, a, b) ((a) > (b) ? (a) : (b))
/* NaN in either gives NaN: the comparison is false where b is NaN. */
#define FMIN(T, a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define FMAX(T, a, b) ((a) > (b) || (a) != (a) ? (a) : (b))

#define COMBINE(name, T, OP)                                                   \
    static void name(void *out, const void *own, const void *in, size_t n)     \
    {                                                                          \
        T *o = out;                                                            \
        const T *x = own, *y = in;                                             \
                                                                               \
        for (; n >= BLOCK; n -= BLOCK, o += BLOCK, x += BLOCK, y += BLOCK) {   \
            INDEPENDENT                                                        \
            for (unsigned i = 0; i < BLOCK; i++)                               \
                o[i] = OP(T, x[i], y[i]);                                      \
        }                                                                      \
        for (size_t i = 0; i < n; i++)                                         \
            o[i] = OP(T, x[i], y[i]);                                          \
    }

/* Sums and products of signed integers wrap: they are those of unsigned. */
COMBINE(sum_u8, uint8_t, SUM)
COMBINE(sum_u32, uint32_t, SUM)
COMBINE(sum_u64, uint64_t, SUM)
COMBINE(sum_f32, float, SUM)
COMBINE(sum_f64, double, SUM)
COMBINE(prod_u8, uint8_t, PROD)
COMBINE(prod_u32, uint32_t, PROD)
COMBINE(prod_u64, uint64_t, PROD)
COMBINE(prod_f32, float, PROD)
COMBINE(prod_f64, double, PROD)
COMBINE(min_i8, int8_t, MIN)
COMBINE(min_u8, uint8_t, MIN)
COMBINE(min_i32, int32_t, MIN)
COMBINE(min_u32, uint32_t, MIN)
COMBINE(min_i64, int64_t, MIN)
COMBINE(min_u64, uint64_t, MIN)
COMBINE(min_f32, float, FMIN)
COMBINE(min_f64, double, FMIN)
COMBINE(max_i8, int8_t, MAX)
COMBINE(max_u8, uint8_t, MAX)
COMBINE(max_i32, int32_t, MAX)
COMBINE(max_u32, uint32_t, MAX)
COMBINE(max_i64, int64_t, MAX)
COMBINE(max_u64, uint64_t, MAX)
COMBINE(max_f32, float, FMAX)
COMBINE(max_f64, double, FMAX)

#define DIVIDE(name, T, BY)                                                    \
    static void name(void *out, const void *in, size_t n, unsigned by)         \
    {                                                                          \
        T *o = out;                                                            \
        const T *x = in;                                                       \
                                                                               \
        for (size_t i = 0; i < n; i++)                                         \
            o[i] = (T)(x[i] / (BY)by);                                         \
    }

/* Divided in a type that holds every world size. */
DIVIDE(divide_i8, int8_t, int32_t)
DIVIDE(divide_u8, uint8_t, uint32_t)
DIVIDE(divide_i32, int32_t, int32_t)
DIVIDE(divide_u32, uint32_t, uint32_t)
DIVIDE(divide_i64, int64_t, int64_t)
DIVIDE(divide_u64, uint64_t, uint64_t)
DIVIDE(divide_f32, float, float)
DIVIDE(divide_f64, double, double)

#define N_OPS 5
#define N_TYPES 10

/* Indexed by enum ddp_op; AVG sums. */
static const struct {
    const char *name;
    size_t width;
    combine_fn *combine[N_OPS];
    void (*divide)(void *out, const void *in, size_t n, unsigned by);
} types[N_TYPES] = {
    [DDP_I8] = {"i8", 1, {sum_u8, prod_u8, max_i8, min_i8, sum_u8}, divide_i8},
    [DDP_U8] = {"u8", 1, {sum_u8, prod_u8, max_u8, min_u8, sum_u8}, divide_u8},
    [DDP_I32] = {"i32", 4, {sum_u32, prod_u32, max_i32, min_i32, sum_u32},
                 divide_i32},
    [DDP_U32] = {"u32", 4, {sum_u32, prod_u32, max_u32, min_u32, sum_u32},
                 divide_u32},
    [DDP_I64] = {"i64", 8, {sum_u64, prod_u64, max_i64, min_i64, sum_u64},
                 divide_i64},
    [DDP_U64] = {"u64", 8, {sum_u64, prod_u64, max_u64, min_u64, sum_u64},
                 divide_u64},
    [DDP_F16] = {"f16", 2, {NULL}, NULL},
    [DDP_F32] = {"f32", 4, {sum_f32, prod_f32, max_f32, min_f32, sum_f32},
                 divide_f32},
    [DDP_F64] = {"f64", 8, {sum_f64, prod_f64, max_f64, min_f64, sum_f64},
                 divide_f64},
    [DDP_BF16] = {"bf16", 2, {NULL}, NULL},
};

size_t ddp_type_width(int type)
{
    return type < 0 || type >= N_TYPES ? 0 : types[type].width;
}

const char *ddp_type_name(unsigned type)
{
    return type < N_TYPES ? types[type].name : "?";
}

const char *ddp_op_name(unsigned op)
{
    static const char *const names[N_OPS] = {"sum", "prod", "max", "min",
                                             "avg"};

    return op < N_OPS ? names[op] : "?";
}

bool ddp_type_reduces(int type)
{
    return ddp_type_width(type) > 0 && types[type].divide != NULL;
}

void ddp_reduce(int type, int op, void *out, const void *own, const void *in,
                size_t n)
{
    types[type].combine[op](out, own, in, n);
}

void ddp_divide(int type, void *out, const void *in, size_t n, unsigned by)
{
    types[type].divide(out, in, n, by);
}
