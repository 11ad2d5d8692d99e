/* pump_sink: where pump.c puts the blocks of a file: they are hashed, and those
 * that were unpacked are written, at once or by another thread. */
#ifndef DATASET_PUMP_SINK_H
#define DATASET_PUMP_SINK_H

#include "dataset/pump.h"

#include <pthread.h>

struct pump_block {
    uint8_t *at;
    size_t len;
    bool unpacked;
};

struct pump_sink {
    struct pump *p;
    struct digest packed, unpacked;
    int error; /* Of writing. */

    bool threaded;
    pthread_t thread;
    pthread_mutex_t lock; /* Of what follows. */
    pthread_cond_t change;
    uint8_t *free[PUMP_BUFFERS];
    unsigned n_free;
    struct pump_block queue[PUMP_BUFFERS]; /* n_queued from `first` on. */
    unsigned first, n_queued;
    bool ended;
};

/* With `threaded`, another thread where there is one to be had. */
void pump_sink_start(struct pump_sink *s, struct pump *p, bool threaded);

/* A free buffer of PUMP_BUFFER bytes; waits for one. */
uint8_t *pump_sink_buffer(struct pump_sink *s);
void pump_sink_give_back(struct pump_sink *s, uint8_t *at);

/* Hand over a block; its buffer is free again after that. False where writing
 * has failed, of this block or one before. */
bool pump_sink_put(struct pump_sink *s, uint8_t *at, size_t len,
                   bool unpacked);

/* All blocks are done. False where writing failed. */
bool pump_sink_end(struct pump_sink *s);

/* write(2) all of it. False: `*ret_error` is the errno. */
bool pump_write(int fd, const uint8_t *data, size_t len, int *ret_error);

#endif
