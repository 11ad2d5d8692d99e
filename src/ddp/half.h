/* half: f16 and bf16, the 16-bit floats, to and from float. Pure.
 *
 * To 16 bits rounds to the nearest, ties to even, as the instructions of
 * processors do, and NaN stays a quiet NaN with the top of its payload, so
 * that a result does not depend on which of the two did the work. */
#ifndef DDP_HALF_H
#define DDP_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t ddp_bits_of(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float ddp_float_of(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

static inline float ddp_from_bf16(uint16_t h)
{
    return ddp_float_of((uint32_t)h << 16);
}

static inline uint16_t ddp_to_bf16(float f)
{
    uint32_t u = ddp_bits_of(f);

    if (f != f)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float ddp_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;

    if (rest >= 0x7c00) /* Infinity, NaN: made quiet. */
        return ddp_float_of(sign | 0x7f800000 | rest << 13 |
                            (rest > 0x7c00 ? 0x400000u : 0));
    if (rest >= 0x400)
        return ddp_float_of(sign | (rest + ((127 - 15) << 10)) << 13);
    /* Subnormal or 0: rest * 2^-24, which float holds exactly. */
    return ddp_float_of(sign | ddp_bits_of((float)rest * 0x1p-24f));
}

static inline uint16_t ddp_to_f16(float f)
{
    uint32_t u = ddp_bits_of(f), sign = u >> 16 & 0x8000;

    u &= 0x7fffffff;
    if (u > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (u >> 13 & 0x1ff));
    if (u >= 0x477ff000) /* From 65520 on: infinity. */
        return (uint16_t)(sign | 0x7c00);
    if (u >= 0x38800000) { /* From 2^-14 on: normal. */
        u += 0xfff + (u >> 13 & 1);
        return (uint16_t)(sign | (u - ((127 - 15) << 23)) >> 13);
    }
    /* Subnormal: adding 0.5 leaves multiples of 2^-24, rounded, at the end. */
    u = ddp_bits_of(ddp_float_of(u) + 0.5f) - ddp_bits_of(0.5f);
    return (uint16_t)(sign | u);
}

#endif
