/* digits_job: what the digits programs share, on whatever they compute: their
 * options, data, and start; the order of the images, lines and checkpoints.
 * Functions give 0 or the exit status; what was wrong is on stderr. */
#ifndef DIGITS_JOB_H
#define DIGITS_JOB_H

#include "ddp.h"
#include "digits_data.h"
#include "digits_model.h"

#define DIGITS_EXIT_DDP 1
#define DIGITS_EXIT_DATA 2
#define DIGITS_EXIT_USE 64

struct digits_options {
    uint32_t epochs, batch, epoch_ms;
    uint64_t seed;
    float rate;
    const char *data, *checkpoint;
};

struct digits_job {
    struct digits_options opt;
    struct ddp_comm *comm;
    struct ddp_reducer *reducer;
    uint32_t rank, size;
    struct digits train, test; /* This rank's shards. */
    struct model model;
    uint32_t *order;      /* Of the images of an epoch. */
    uint32_t first_epoch; /* Done before this run. */
    struct ddp_error err;
};

/* Read the options, join the job; then the data and a checkpoint, if any. */
int digits_begin(struct digits_job *j, int argc, char **argv);
int digits_load_all(struct digits_job *j);
/* For gradients as they lie in m->grad: this host's, or those that `stream`
 * makes in a GPU's memory. */
int digits_make_reducer(struct digits_job *j, const struct model *m,
                        void *stream);
void digits_end(struct digits_job *j);

int digits_fail(const struct ddp_error *e);
int digits_fail_data(const struct digits_job *j, const char *why);

/* Put the images of an epoch in order: alike on all ranks, and after a
 * restart. */
void digits_shuffle(struct digits_job *j, uint32_t epoch);

/* Whether a line and a checkpoint are due after an epoch. */
int digits_is_due(const struct digits_job *j, uint32_t epoch);

/* Loss and accuracy over all ranks, of this one's loss and right answers;
 * rank 0 prints them and keeps a checkpoint of j->model. */
int digits_report(struct digits_job *j, uint32_t epoch, double loss,
                  double n_right);

/* All ranks must hold the same parameters, to the bit. */
int digits_compare(struct digits_job *j);

#endif
