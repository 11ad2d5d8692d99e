/* digits_data: images and labels in the IDX format of MNIST. */
#ifndef DIGITS_DATA_H
#define DIGITS_DATA_H

#include <stddef.h>
#include <stdint.h>

#define DIGITS_CLASSES 10
#define DIGITS_PIXELS_MAX 4096 /* Of an image. */
#define DIGITS_WHY 1024

/* A rank's shard: images rank, rank + size, rank + 2 * size ... of the file. */
struct digits {
    uint32_t n_all;  /* Images in the file, */
    uint32_t n;      /* and in this shard. */
    uint32_t pixels; /* Of an image. */
    uint8_t *images; /* n * pixels, 0..255. */
    uint8_t *labels; /* n, 0..9. */
};

/* Read DIR/MNIST/raw/SET-{images-idx3,labels-idx1}-ubyte; SET is "train" or
 * "t10k". 0, or -1 with one line in `why`. */
int digits_load(struct digits *ret, const char *dir, const char *set,
                uint32_t rank, uint32_t size, char why[DIGITS_WHY]);
void digits_free(struct digits *d);

#endif
