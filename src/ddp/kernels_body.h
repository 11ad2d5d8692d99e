/* kernels_body: the loops, for the file that includes this: it defines
 * KERNELS, the name of its table, and the four conversions before.
 *
 * They are written so that gcc and clang use vector instructions at -O2:
 * blocks of a constant length, and a promise that iterations are independent
 * (they are: out[i] depends on own[i] and in[i] alone). */
#define BLOCK 64

#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

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

/* 16-bit floats are combined as floats, and rounded once. */
#define COMBINE_HALF(name, type, combine)                                      \
    static void name(void *out, const void *own, const void *in, size_t n)     \
    {                                                                          \
        uint16_t *o = out;                                                     \
        const uint16_t *x = own, *y = in;                                      \
        float a[BLOCK], b[BLOCK];                                              \
                                                                               \
        for (size_t m; n > 0; n -= m, o += m, x += m, y += m) {                \
            m = n < BLOCK ? n : BLOCK;                                         \
            from_##type(a, x, m);                                              \
            from_##type(b, y, m);                                              \
            combine(a, a, b, m);                                               \
            to_##type(o, a, m);                                                \
        }                                                                      \
    }

COMBINE_HALF(sum_f16, f16, sum_f32)
COMBINE_HALF(prod_f16, f16, prod_f32)
COMBINE_HALF(min_f16, f16, min_f32)
COMBINE_HALF(max_f16, f16, max_f32)
COMBINE_HALF(sum_bf16, bf16, sum_f32)
COMBINE_HALF(prod_bf16, bf16, prod_f32)
COMBINE_HALF(min_bf16, bf16, min_f32)
COMBINE_HALF(max_bf16, bf16, max_f32)

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
DIVIDE(divide_f64, double, double)

static void divide_f32(void *out, const void *in, size_t n, unsigned by)
{
    float *o = out;
    const float *x = in;

    for (; n >= BLOCK; n -= BLOCK, o += BLOCK, x += BLOCK) {
        INDEPENDENT
        for (unsigned i = 0; i < BLOCK; i++)
            o[i] = x[i] / (float)by;
    }
    for (size_t i = 0; i < n; i++)
        o[i] = x[i] / (float)by;
}

#define DIVIDE_HALF(name, type)                                                \
    static void name(void *out, const void *in, size_t n, unsigned by)         \
    {                                                                          \
        uint16_t *o = out;                                                     \
        const uint16_t *x = in;                                                \
        float a[BLOCK];                                                        \
                                                                               \
        for (size_t m; n > 0; n -= m, o += m, x += m) {                        \
            m = n < BLOCK ? n : BLOCK;                                         \
            from_##type(a, x, m);                                              \
            divide_f32(a, a, m, by);                                           \
            to_##type(o, a, m);                                                \
        }                                                                      \
    }

DIVIDE_HALF(divide_f16, f16)
DIVIDE_HALF(divide_bf16, bf16)

/* sum, prod, max, min, avg: the order of enum ddp_op. */
#define OPS(sum, prod, max, min) {sum, prod, max, min, sum}

const struct ddp_kernels KERNELS = {
    .combine = {
        [DDP_I8] = OPS(sum_u8, prod_u8, max_i8, min_i8),
        [DDP_U8] = OPS(sum_u8, prod_u8, max_u8, min_u8),
        [DDP_I32] = OPS(sum_u32, prod_u32, max_i32, min_i32),
        [DDP_U32] = OPS(sum_u32, prod_u32, max_u32, min_u32),
        [DDP_I64] = OPS(sum_u64, prod_u64, max_i64, min_i64),
        [DDP_U64] = OPS(sum_u64, prod_u64, max_u64, min_u64),
        [DDP_F16] = OPS(sum_f16, prod_f16, max_f16, min_f16),
        [DDP_F32] = OPS(sum_f32, prod_f32, max_f32, min_f32),
        [DDP_F64] = OPS(sum_f64, prod_f64, max_f64, min_f64),
        [DDP_BF16] = OPS(sum_bf16, prod_bf16, max_bf16, min_bf16),
    },
    .divide = {
        [DDP_I8] = divide_i8,   [DDP_U8] = divide_u8,
        [DDP_I32] = divide_i32, [DDP_U32] = divide_u32,
        [DDP_I64] = divide_i64, [DDP_U64] = divide_u64,
        [DDP_F16] = divide_f16, [DDP_F32] = divide_f32,
        [DDP_F64] = divide_f64, [DDP_BF16] = divide_bf16,
    },
    .from_f16 = from_f16,
    .to_f16 = to_f16,
    .from_bf16 = from_bf16,
    .to_bf16 = to_bf16,
};
