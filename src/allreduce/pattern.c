/* pattern: see pattern.h. */
#include "allreduce/pattern.h"

#include "ddp/half.h"

#include <string.h>

/* So many ranks give something to an element: others 0, or 1 to a product.
 * 32 * 3 fits in an i8 and is exact in a bf16; so is 2^6. */
#define ADDING 32
#define MULTIPLYING 6

static const struct pattern_type types[] = {
    {"int8", DDP_I8, 1, 0},        {"uint8", DDP_U8, 1, 0},
    {"int32", DDP_I32, 4, 0},      {"uint32", DDP_U32, 4, 0},
    {"int64", DDP_I64, 8, 0},      {"uint64", DDP_U64, 8, 0},
    {"half", DDP_F16, 2, 0x1p-9},  {"float", DDP_F32, 4, 0x1p-22},
    {"double", DDP_F64, 8, 0x1p-51}, {"bfloat16", DDP_BF16, 2, 0x1p-6},
};

static const struct pattern_op ops[] = {
    {"sum", DDP_SUM}, {"prod", DDP_PROD}, {"max", DDP_MAX},
    {"min", DDP_MIN}, {"avg", DDP_AVG},
};

const struct pattern_type *pattern_type(unsigned i)
{
    return i < sizeof types / sizeof types[0] ? &types[i] : NULL;
}

const struct pattern_op *pattern_op(unsigned i)
{
    return i < sizeof ops / sizeof ops[0] ? &ops[i] : NULL;
}

static bool is_unsigned(const struct pattern_type *t)
{
    return t->type == DDP_U8 || t->type == DDP_U32 || t->type == DDP_U64;
}

/* Bits that look random. */
static uint32_t mix(uint32_t i, uint32_t rank)
{
    uint32_t x = i * 0x9e3779b1u ^ (rank + 1) * 0x85ebca77u;

    x = (x ^ x >> 15) * 0x2c1b3c6du;
    x = (x ^ x >> 12) * 0x297a2d39u;
    return x ^ x >> 15;
}

static int value(const struct pattern *p, unsigned i, unsigned rank,
                 unsigned size)
{
    unsigned turn = (rank + i) % size;
    uint32_t bits = mix(i, rank);

    switch (p->op->op) {
    case DDP_PROD:
        return turn < MULTIPLYING && bits & 1 ? 2 : 1;
    case DDP_MAX:
    case DDP_MIN:
        return (int)(bits % 101);
    case DDP_SUM:
    case DDP_AVG:
        break;
    }
    if (turn >= ADDING)
        return 0;
    return is_unsigned(p->type) ? (int)(bits % 4) : (int)(bits % 7) - 3;
}

static double combined(const struct pattern *p, unsigned i, unsigned size)
{
    int r = value(p, i, 0, size);

    for (unsigned rank = 1; rank < size; rank++) {
        int v = value(p, i, rank, size);

        switch (p->op->op) {
        case DDP_PROD:
            r *= v;
            break;
        case DDP_MAX:
            r = v > r ? v : r;
            break;
        case DDP_MIN:
            r = v < r ? v : r;
            break;
        case DDP_SUM:
        case DDP_AVG:
            r += v;
            break;
        }
    }
    if (p->op->op != DDP_AVG)
        return r;
    return p->type->slack > 0 ? (double)r / size : r / (int)size;
}

static void put(const struct pattern_type *t, uint8_t *to, double v)
{
    const int64_t whole = (int64_t)v;
    const float single = (float)v;
    uint16_t half;

    switch (t->type) {
    case DDP_F64:
        memcpy(to, &v, sizeof v);
        return;
    case DDP_F32:
        memcpy(to, &single, sizeof single);
        return;
    case DDP_F16:
    case DDP_BF16:
        half = t->type == DDP_F16 ? ddp_to_f16(single) : ddp_to_bf16(single);
        memcpy(to, &half, sizeof half);
        return;
    case DDP_I8:
    case DDP_U8:
        *to = (uint8_t)whole;
        return;
    case DDP_I32:
    case DDP_U32:
        memcpy(to, &(uint32_t){(uint32_t)whole}, 4);
        return;
    case DDP_I64:
    case DDP_U64:
        memcpy(to, &whole, sizeof whole);
        return;
    }
}

static double get(const struct pattern_type *t, const uint8_t *from)
{
    uint64_t u = 0;
    uint32_t word = 0;
    uint16_t half = 0;
    double d;

    memcpy(&half, from, t->width < 2 ? t->width : 2);
    memcpy(&word, from, t->width < 4 ? t->width : 4);
    memcpy(&u, from, t->width);
    memcpy(&d, &u, sizeof d);
    switch (t->type) {
    case DDP_F64:
        return d;
    case DDP_F32:
        return (double)ddp_float_of(word);
    case DDP_F16:
        return (double)ddp_from_f16(half);
    case DDP_BF16:
        return (double)ddp_from_bf16(half);
    case DDP_I8:
        return (int8_t)*from;
    case DDP_U8:
        return *from;
    case DDP_I32:
        return (int32_t)word;
    case DDP_U32:
        return word;
    case DDP_I64:
        return (double)(int64_t)u;
    case DDP_U64:
        break;
    }
    return (double)u;
}

void pattern_init(struct pattern *p, const struct pattern_type *type,
                  const struct pattern_op *op, int rank, int size)
{
    size_t w = type->width;

    p->type = type;
    p->op = op;
    for (unsigned i = 0; i < PATTERN_PERIOD; i++) {
        put(type, p->gives + i * w,
            value(p, i, (unsigned)rank, (unsigned)size));
        p->wants[i] = combined(p, i, (unsigned)size);
        put(type, p->bytes + i * w, p->wants[i]);
    }
}

/* Elements of the block that begins with element `at`. */
static size_t block(size_t at, size_t count)
{
    return count - at < PATTERN_PERIOD ? count - at : PATTERN_PERIOD;
}

void pattern_fill(const struct pattern *p, void *buf, size_t count)
{
    size_t w = p->type->width;

    for (size_t at = 0; at < count; at += PATTERN_PERIOD)
        memcpy((uint8_t *)buf + at * w, p->gives, block(at, count) * w);
}

static bool is_near(const struct pattern *p, double got, double wanted)
{
    double off = got > wanted ? got - wanted : wanted - got;
    double most = wanted < 0 ? -wanted : wanted;

    if (p->op->op != DDP_AVG || p->type->slack <= 0)
        return false;
    return off <= most * p->type->slack; /* Never true for NaN. */
}

void pattern_check(const struct pattern *p, const void *buf, size_t count,
                   struct pattern_wrong *ret)
{
    size_t w = p->type->width;

    *ret = (struct pattern_wrong){0};
    for (size_t at = 0; at < count; at += PATTERN_PERIOD) {
        const uint8_t *got = (const uint8_t *)buf + at * w;
        size_t n = block(at, count);

        if (!memcmp(got, p->bytes, n * w))
            continue;
        for (size_t i = 0; i < n; i++) {
            double is;

            if (!memcmp(got + i * w, p->bytes + i * w, w))
                continue;
            is = get(p->type, got + i * w);
            if (is_near(p, is, p->wants[i]) || ret->n++ > 0)
                continue;
            ret->first = at + i;
            ret->got = is;
            ret->wanted = p->wants[i];
        }
    }
}
