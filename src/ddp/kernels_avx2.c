/* kernels_avx2: the loops of kernels.h for processors with AVX2 and F16C. No
 * fused multiply-add: results are those of kernels_base to the bit. */
#ifdef __x86_64__
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,f16c"))),           \
                             apply_to = function)
#else
#pragma GCC target("avx2,f16c")
#endif

#include "ddp/half.h"
#include "ddp/kernels.h"

#include <immintrin.h>

#define KERNELS ddp_kernels_avx2

static void from_f16(float *out, const uint16_t *in, size_t n)
{
    for (; n >= 8; n -= 8, in += 8, out += 8)
        _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(
                                  (const __m128i_u *)in)));
    for (size_t i = 0; i < n; i++)
        out[i] = ddp_from_f16(in[i]);
}

static void to_f16(uint16_t *out, const float *in, size_t n)
{
    for (; n >= 8; n -= 8, in += 8, out += 8)
        _mm_storeu_si128((__m128i_u *)out,
                         _mm256_cvtps_ph(_mm256_loadu_ps(in),
                                         _MM_FROUND_TO_NEAREST_INT));
    for (size_t i = 0; i < n; i++)
        out[i] = ddp_to_f16(in[i]);
}

static void from_bf16(float *out, const uint16_t *in, size_t n)
{
    for (; n >= 8; n -= 8, in += 8, out += 8)
        _mm256_storeu_ps(
            out, _mm256_castsi256_ps(_mm256_slli_epi32(
                     _mm256_cvtepu16_epi32(
                         _mm_loadu_si128((const __m128i_u *)in)), 16)));
    for (size_t i = 0; i < n; i++)
        out[i] = ddp_from_bf16(in[i]);
}

/* The sums of ddp_to_bf16; where a float is NaN, its other branch. */
static __m256i to_bf16_eight(__m256 f)
{
    __m256i u = _mm256_castps_si256(f), top = _mm256_srli_epi32(u, 16);
    __m256i odd = _mm256_and_si256(top, _mm256_set1_epi32(1));
    __m256i up = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(u, up), 16);
    __m256i quiet = _mm256_or_si256(top, _mm256_set1_epi32(0x40));
    __m256 is_nan = _mm256_cmp_ps(f, f, _CMP_UNORD_Q);

    return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(is_nan));
}

static void to_bf16(uint16_t *out, const float *in, size_t n)
{
    for (; n >= 8; n -= 8, in += 8, out += 8) {
        __m256i v = to_bf16_eight(_mm256_loadu_ps(in));

        v = _mm256_permute4x64_epi64(_mm256_packus_epi32(v, v), 0x08);
        _mm_storeu_si128((__m128i_u *)out, _mm256_castsi256_si128(v));
    }
    for (size_t i = 0; i < n; i++)
        out[i] = ddp_to_bf16(in[i]);
}

#include "ddp/kernels_body.h"

#ifdef __clang__
#pragma clang attribute pop
#endif
#else
extern int ddp_kernels_avx2_is_empty; /* A file is never empty in C. */
#endif
