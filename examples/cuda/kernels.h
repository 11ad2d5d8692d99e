/* kernels: the model of ../c/digits_model.h in CUDA: pixels -> `hidden`
 * rectified units -> softmax over `out` digits. Sums go over images in their
 * order, one thread for each sum: the same bits each time.
 *
 * The text is compiled on the machine that runs it, for the GPU that is there:
 * so no CUDA is needed to build. */
#ifndef KERNELS_H
#define KERNELS_H

#ifndef KERNELS
#define KERNELS(...) "extern \"C\" {" #__VA_ARGS__ "}"
static const char kernels[] =
#endif
KERNELS(
struct shape {
    unsigned pixels, hidden, out;
};

/* One thread for each image of pick[0..n): its hidden units, what the output
 * is off by, and its loss. */
__global__ void forward(struct shape s, const float *w,
                        const unsigned char *images,
                        const unsigned char *labels, const unsigned *pick,
                        unsigned n, float *units, float *off, float *loss)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const float *b1 = w + s.pixels * s.hidden;
    const float *w2 = b1 + s.hidden;
    const float *b2 = w2 + s.out * s.hidden;
    float top = -1e30f;
    float sum = 0;
    if (i >= n)
        return;
    images += pick[i] * s.pixels;
    units += i * s.hidden;
    off += i * s.out;
    for (unsigned h = 0; h < s.hidden; h++) {
        float v = b1[h];
        for (unsigned p = 0; p < s.pixels; p++)
            v += w[h * s.pixels + p] * ((float)images[p] / 255.0f);
        units[h] = v > 0 ? v : 0;
    }
    for (unsigned k = 0; k < s.out; k++) {
        off[k] = b2[k];
        for (unsigned h = 0; h < s.hidden; h++)
            off[k] += w2[k * s.hidden + h] * units[h];
        top = off[k] > top ? off[k] : top;
    }
    for (unsigned k = 0; k < s.out; k++)
        sum += off[k] = expf(off[k] - top);
    for (unsigned k = 0; k < s.out; k++)
        off[k] /= sum;
    top = off[labels[pick[i]]];
    loss[i] += -logf(top > 1e-12f ? top : 1e-12f);
    off[labels[pick[i]]] -= 1;
}

/* One thread for each weight and bias of the output. */
__global__ void output_gradient(struct shape s, unsigned n,
                                const float *units, const float *off,
                                float *grad)
{
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned k = at < s.out * s.hidden ? at / s.hidden
                                       : at - s.out * s.hidden;
    float sum = 0;
    if (at >= s.out * (s.hidden + 1))
        return;
    for (unsigned i = 0; i < n; i++)
        sum += off[i * s.out + k] *
               (at < s.out * s.hidden
                    ? units[i * s.hidden + at % s.hidden] : 1.0f);
    grad[(s.pixels + 1) * s.hidden + at] = sum;
}

/* One thread for each weight and bias of the hidden units. */
__global__ void hidden_gradient(struct shape s, const float *w,
                                const unsigned char *images,
                                const unsigned *pick, unsigned n,
                                const float *units, const float *off,
                                float *grad)
{
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned is_bias = at >= s.pixels * s.hidden;
    unsigned h = is_bias ? at - s.pixels * s.hidden : at / s.pixels;
    const float *w2 = w + (s.pixels + 1) * s.hidden;
    float sum = 0;
    if (at >= (s.pixels + 1) * s.hidden)
        return;
    for (unsigned i = 0; i < n; i++) {
        float error = 0;
        for (unsigned k = 0; k < s.out; k++)
            error += off[i * s.out + k] * w2[k * s.hidden + h];
        if (units[i * s.hidden + h] > 0)
            sum += error *
                   (is_bias ? 1.0f
                            : (float)images[pick[i] * s.pixels +
                                            at % s.pixels] / 255.0f);
    }
    grad[at] = sum;
}

__global__ void learn(float *w, const float *grad, unsigned n, float rate)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        w[i] -= rate * grad[i];
}
)
#ifndef KERNELS_ONLY
;
#endif

#endif
