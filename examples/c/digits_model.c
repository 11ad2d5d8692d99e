/* digits_model: see digits_model.h. */
#include "digits_model.h"
#include "digits_data.h"

#include <math.h>
#include <stdlib.h>

enum { HIDDEN = DIGITS_HIDDEN, OUT = DIGITS_CLASSES };

uint64_t digits_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t digits_fnv(uint64_t h, const void *data, size_t len)
{
    const uint8_t *at = data;

    for (size_t i = 0; i < len; i++)
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* Where the parts of the parameters start. */
static size_t bias1(const struct model *m)
{
    return (size_t)m->pixels * HIDDEN;
}

static size_t weight2(const struct model *m)
{
    return bias1(m) + HIDDEN;
}

static size_t bias2(const struct model *m)
{
    return weight2(m) + OUT * HIDDEN;
}

float *model_gradient(const struct model *m, enum model_part part, size_t *ret)
{
    const size_t starts[N_PARTS + 1] = {0, bias1(m), weight2(m), bias2(m),
                                        m->n};

    *ret = starts[part + 1] - starts[part];
    return m->grad + starts[part];
}

/* Weights uniform in +-sqrt(6 / inputs), biases 0. */
static void randomise(float *w, size_t n, uint32_t inputs, uint64_t *state)
{
    float limit = sqrtf(6.0f / (float)inputs);

    for (size_t i = 0; i < n; i++)
        w[i] = limit * ((float)(digits_random(state) >> 40) / 8388608.0f - 1);
}

int model_new(struct model *m, uint32_t pixels, uint64_t seed)
{
    m->pixels = pixels;
    m->n = bias2(m) + OUT;
    m->param = calloc(m->n, sizeof *m->param);
    m->grad = calloc(m->n, sizeof *m->grad);
    if (!m->param || !m->grad)
        return -1;
    randomise(m->param, bias1(m), pixels, &seed);
    randomise(m->param + weight2(m), OUT * HIDDEN, HIDDEN, &seed);
    return 0;
}

void model_free(struct model *m)
{
    free(m->param);
    free(m->grad);
}

/* Hidden units and class probabilities of an image. */
static void forward(const struct model *m, const uint8_t *image,
                    float hidden[HIDDEN], float out[OUT])
{
    const float *b1 = m->param + bias1(m), *b2 = m->param + bias2(m);
    float top = -INFINITY, sum = 0;

    for (unsigned h = 0; h < HIDDEN; h++) {
        const float *w = m->param + (size_t)h * m->pixels;
        float a = b1[h];

        for (uint32_t i = 0; i < m->pixels; i++)
            a += w[i] * ((float)image[i] / 255.0f);
        hidden[h] = a > 0 ? a : 0;
    }
    for (unsigned k = 0; k < OUT; k++) {
        const float *w = m->param + weight2(m) + (size_t)k * HIDDEN;

        out[k] = b2[k];
        for (unsigned h = 0; h < HIDDEN; h++)
            out[k] += w[h] * hidden[h];
        if (out[k] > top)
            top = out[k];
    }
    for (unsigned k = 0; k < OUT; k++)
        sum += out[k] = expf(out[k] - top);
    for (unsigned k = 0; k < OUT; k++)
        out[k] /= sum;
}

double model_learn(struct model *m, const uint8_t *image, unsigned label,
                   void (*done)(void *ctx, enum model_part part), void *ctx)
{
    float hidden[HIDDEN], out[OUT], error[HIDDEN] = {0};
    double p;

    forward(m, image, hidden, out);
    p = out[label] > 1e-12f ? (double)out[label] : 1e-12;
    for (unsigned k = 0; k < OUT; k++) {
        float d = out[k] - (k == label ? 1.0f : 0.0f);
        const float *w = m->param + weight2(m) + (size_t)k * HIDDEN;
        float *g = m->grad + weight2(m) + (size_t)k * HIDDEN;

        for (unsigned h = 0; h < HIDDEN; h++) {
            g[h] += d * hidden[h];
            error[h] += d * w[h];
        }
        m->grad[bias2(m) + k] += d;
    }
    if (done) {
        done(ctx, PART_OUTPUT_BIASES);
        done(ctx, PART_OUTPUT_WEIGHTS);
    }
    for (unsigned h = 0; h < HIDDEN; h++) {
        float *g = m->grad + (size_t)h * m->pixels;

        if (hidden[h] <= 0)
            continue;
        for (uint32_t i = 0; i < m->pixels; i++)
            g[i] += error[h] * ((float)image[i] / 255.0f);
        m->grad[bias1(m) + h] += error[h];
    }
    if (done) {
        done(ctx, PART_HIDDEN_BIASES);
        done(ctx, PART_HIDDEN_WEIGHTS);
    }
    return -log(p);
}

unsigned model_classify(const struct model *m, const uint8_t *image)
{
    float hidden[HIDDEN], out[OUT];
    unsigned best = 0;

    forward(m, image, hidden, out);
    for (unsigned k = 1; k < OUT; k++)
        if (out[k] > out[best])
            best = k;
    return best;
}

void model_step(struct model *m, float rate)
{
    for (size_t i = 0; i < m->n; i++)
        m->param[i] -= rate * m->grad[i];
}
