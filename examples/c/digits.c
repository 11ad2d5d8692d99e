/* digits: data-parallel training in C with libddp.
 *
 *   agent --nproc 4 -- digits --data DIR --checkpoint FILE
 *
 * Each rank reads its own shard of the images. A batch is the same set of
 * images for any number of ranks: each takes those of its shard, and a reducer
 * adds the gradients while the backward pass of the last image goes on, so
 * that N ranks compute what one process does, up to rounding. Rank 0 keeps a
 * checkpoint, from which all go on after a restart. Exit status: 1 a
 * collective failed, 2 bad data or checkpoint, 64 usage. */
#include "digits_job.h"

#include <string.h>

struct training {
    struct digits_job job;
    int rc; /* Of ddp_reducer_ready. */
};

/* A part of the gradients is complete on this rank. */
static void part_done(void *ctx, enum model_part part)
{
    struct training *t = ctx;

    if (!t->rc)
        t->rc = ddp_reducer_ready(t->job.reducer, part, &t->job.err);
}

/* Learn from images order[from..to), of which this rank has a share. */
static int learn_batch(struct training *t, uint32_t from, uint32_t to,
                       double *loss)
{
    struct model *m = &t->job.model;
    uint32_t n_mine = 0;

    memset(m->grad, 0, m->n * sizeof *m->grad);
    for (uint32_t i = from; i < to; i++)
        n_mine += t->job.order[i] % t->job.size == t->job.rank;
    for (unsigned part = N_PARTS; part-- > 0 && n_mine == 0;)
        part_done(t, part); /* All zeros. */
    for (uint32_t i = from; i < to; i++) {
        uint32_t mine = t->job.order[i] / t->job.size;

        if (t->job.order[i] % t->job.size == t->job.rank)
            *loss += model_learn(
                m, t->job.train.images + (size_t)mine * t->job.train.pixels,
                t->job.train.labels[mine], --n_mine == 0 ? part_done : NULL, t);
    }
    if (t->rc || ddp_reducer_wait(t->job.reducer, &t->job.err))
        return digits_fail(&t->job.err);
    model_step(m, t->job.opt.rate / (float)(to - from));
    return 0;
}

static int report(struct digits_job *j, uint32_t epoch, double loss)
{
    uint32_t n_right = 0;

    for (uint32_t i = 0; i < j->test.n; i++)
        n_right += model_classify(&j->model, j->test.images + (size_t)i *
                                  j->test.pixels) == j->test.labels[i];
    return digits_report(j, epoch, loss, n_right);
}

static int train(struct training *t)
{
    struct digits_job *j = &t->job;
    uint32_t n = j->train.n_all, last = j->opt.epochs;
    int rc = 0;

    for (uint32_t epoch = j->first_epoch + 1; epoch <= last && !rc; epoch++) {
        double loss = 0;

        digits_shuffle(j, epoch);
        for (uint32_t from = 0; from < n && !rc; from += j->opt.batch)
            rc = learn_batch(t, from, n - from < j->opt.batch
                                          ? n
                                          : from + j->opt.batch, &loss);
        if (!rc && digits_is_due(j, epoch))
            rc = report(j, epoch, loss);
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct training t = {.rc = 0};
    int rc = digits_begin(&t.job, argc, argv);

    if (!rc)
        rc = digits_load_all(&t.job);
    if (!rc)
        rc = digits_make_reducer(&t.job, &t.job.model, NULL);
    if (!rc)
        rc = train(&t);
    if (!rc)
        rc = digits_compare(&t.job);
    digits_end(&t.job);
    return rc;
}
