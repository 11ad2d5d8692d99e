/* kernels_base: the loops of kernels.h for any processor. */
#include "ddp/half.h"
#include "ddp/kernels.h"

#define KERNELS ddp_kernels_base

static void from_f16(float *out, const uint16_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = ddp_from_f16(in[i]);
}

static void to_f16(uint16_t *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = ddp_to_f16(in[i]);
}

static void from_bf16(float *out, const uint16_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = ddp_from_bf16(in[i]);
}

static void to_bf16(uint16_t *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = ddp_to_bf16(in[i]);
}

#include "ddp/kernels_body.h"
