/* gpu: one GPU, through libcudart (memory, a stream), libnvrtc (compiling) and
 * libcuda (launching), each opened at run time. The first thing that fails
 * stays: later calls do nothing, and gpu_fault() says what it was. */
#ifndef GPU_H
#define GPU_H

#include <stddef.h>

#define GPU_WHY 1024
#define GPU_KERNELS 8

struct gpu;

/* GPU number `device`, with the kernels of `source` by their names, NULL after
 * the last; NULL with `why`. */
struct gpu *gpu_new(int device, const char *source, const char *const *names,
                    char why[GPU_WHY]);
void gpu_free(struct gpu *g);

/* NULL, or the first fault. */
const char *gpu_fault(const struct gpu *g);

/* The stream that all is put on: a cudaStream_t. */
void *gpu_stream(const struct gpu *g);

/* Zeros; freed with the GPU. */
void *gpu_alloc(struct gpu *g, size_t size);
/* Both return when it is done. */
void gpu_put(struct gpu *g, void *to, const void *from, size_t size);
void gpu_get(struct gpu *g, void *to, const void *from, size_t size);

/* At least `n` threads of kernel number k. */
void gpu_launch(struct gpu *g, unsigned k, size_t n, void **args);

#endif
