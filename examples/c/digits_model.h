/* digits_model: pixels -> 32 rectified units -> softmax over ten digits. */
#ifndef DIGITS_MODEL_H
#define DIGITS_MODEL_H

#include <stddef.h>
#include <stdint.h>

#define DIGITS_HIDDEN 32

/* The parameters, in the order of a forward pass. */
enum model_part {
    PART_HIDDEN_WEIGHTS,
    PART_HIDDEN_BIASES,
    PART_OUTPUT_WEIGHTS,
    PART_OUTPUT_BIASES,
    N_PARTS
};

struct model {
    uint32_t pixels;
    size_t n;     /* Parameters. */
    float *param; /* All parts, one after the other. */
    float *grad;  /* Alike: sums over the images of model_learn. */
};

/* Random start, the same for the same seed. -1: out of memory. */
int model_new(struct model *m, uint32_t pixels, uint64_t seed);
void model_free(struct model *m);

/* Where a part's gradients are, and how many. */
float *model_gradient(const struct model *m, enum model_part part, size_t *ret);

/* Add an image's gradient to m->grad; returns its loss. `done`, if any, is
 * called as soon as a part of m->grad has it. */
double model_learn(struct model *m, const uint8_t *image, unsigned label,
                   void (*done)(void *ctx, enum model_part part), void *ctx);

/* The digit that the model sees. */
unsigned model_classify(const struct model *m, const uint8_t *image);

/* param -= rate * grad. */
void model_step(struct model *m, float rate);

/* FNV-1a, 64 bits; start with h = DIGITS_FNV. */
#define DIGITS_FNV UINT64_C(0xcbf29ce484222325)
uint64_t digits_fnv(uint64_t h, const void *data, size_t len);

/* splitmix64: the next random number of a state. */
uint64_t digits_random(uint64_t *state);

#endif
