/* digits_cuda: examples/c/digits on GPUs: the same data, model and options.
 *
 *   agent --nproc gpu --dataset examples/digits/manifest.json \
 *       --stage /tmp/stage -- digits_cuda
 *
 * Parameters, gradients and images are in device memory. A part's gradients
 * are ready as soon as their kernel is on the stream: libddp's reducer adds
 * them up over the ranks, by NCCL on a stream of its own, while the kernels of
 * the parts before run; nothing waits on the host until the step's end. */
#include "digits_job.h"
#include "gpu.h"
#include "kernels.h"

#include <stdlib.h>

enum { FORWARD, OUTPUT_GRADIENT, HIDDEN_GRADIENT, LEARN };
static const char *const names[] = {"forward", "output_gradient",
                                    "hidden_gradient", "learn", NULL};

struct shape {
    unsigned pixels, hidden, out;
};

/* What is in device memory. */
struct shard {
    unsigned char *images, *labels;
};

struct training {
    struct digits_job job;
    struct gpu *gpu;
    struct shape shape;
    struct shard train, test;
    float *param, *grad;
    unsigned *pick, *host_pick;     /* The images of a batch that are ours. */
    float *units, *off, *loss;      /* Of each of them. */
    float *host_off, *host_loss;
    unsigned most;                  /* Of images at a time. */
};

static int fail(const struct training *t)
{
    (void)ddp_abort(t->job.comm); /* The others need not wait for us. */
    return digits_fail_data(&t->job, gpu_fault(t->gpu));
}

/* --- memory -------------------------------------------------------------- */

static void put_shard(struct training *t, const struct digits *from,
                      struct shard *to)
{
    size_t n = (size_t)from->n * from->pixels;

    to->images = gpu_alloc(t->gpu, n);
    to->labels = gpu_alloc(t->gpu, from->n);
    gpu_put(t->gpu, to->images, from->images, n);
    gpu_put(t->gpu, to->labels, from->labels, from->n);
}

static int fill(struct training *t)
{
    const struct model *m = &t->job.model;
    struct model on_device = *m;
    size_t bytes = m->n * sizeof(float);

    t->shape = (struct shape){m->pixels, DIGITS_HIDDEN, DIGITS_CLASSES};
    t->most = t->job.opt.batch > t->job.test.n ? t->job.opt.batch
                                               : t->job.test.n;
    t->host_pick = calloc(t->most, sizeof *t->host_pick);
    t->host_off = calloc((size_t)t->most * DIGITS_CLASSES, sizeof(float));
    t->host_loss = calloc(t->most, sizeof(float));
    if (!t->host_pick || !t->host_off || !t->host_loss)
        return digits_fail_data(&t->job, "out of memory");
    put_shard(t, &t->job.train, &t->train);
    put_shard(t, &t->job.test, &t->test);
    t->param = gpu_alloc(t->gpu, bytes);
    t->grad = gpu_alloc(t->gpu, bytes);
    t->pick = gpu_alloc(t->gpu, t->most * sizeof *t->pick);
    t->units = gpu_alloc(t->gpu, sizeof(float) * t->most * DIGITS_HIDDEN);
    t->off = gpu_alloc(t->gpu, sizeof(float) * t->most * DIGITS_CLASSES);
    t->loss = gpu_alloc(t->gpu, sizeof(float) * t->most);
    gpu_put(t->gpu, t->param, m->param, bytes);
    if (gpu_fault(t->gpu))
        return fail(t);
    on_device.grad = t->grad;
    return digits_make_reducer(&t->job, &on_device, gpu_stream(t->gpu));
}

/* --- training ------------------------------------------------------------ */

static void forward(struct training *t, struct shard *s, unsigned n)
{
    void *args[] = {&t->shape, &t->param, &s->images, &s->labels, &t->pick,
                    &n, &t->units, &t->off, &t->loss};

    gpu_put(t->gpu, t->pick, t->host_pick, n * sizeof *t->pick);
    gpu_launch(t->gpu, FORWARD, n, args);
}

/* Each part's kernel, and at once the word that its gradients are ready. */
static int backward(struct training *t, unsigned n)
{
    struct digits_job *j = &t->job;
    void *output[] = {&t->shape, &n, &t->units, &t->off, &t->grad};
    void *hidden[] = {&t->shape, &t->param, &t->train.images, &t->pick, &n,
                      &t->units, &t->off, &t->grad};

    gpu_launch(t->gpu, OUTPUT_GRADIENT, DIGITS_CLASSES * (DIGITS_HIDDEN + 1),
               output);
    if (ddp_reducer_ready(j->reducer, PART_OUTPUT_BIASES, &j->err) ||
        ddp_reducer_ready(j->reducer, PART_OUTPUT_WEIGHTS, &j->err))
        return -1;
    gpu_launch(t->gpu, HIDDEN_GRADIENT,
               DIGITS_HIDDEN * ((size_t)t->shape.pixels + 1), hidden);
    if (ddp_reducer_ready(j->reducer, PART_HIDDEN_BIASES, &j->err) ||
        ddp_reducer_ready(j->reducer, PART_HIDDEN_WEIGHTS, &j->err))
        return -1;
    return ddp_reducer_wait(j->reducer, &j->err);
}

/* Learn from images order[from..to), of which this rank has a share. */
static int learn_batch(struct training *t, uint32_t from, uint32_t to)
{
    const struct digits_job *j = &t->job;
    float rate = j->opt.rate / (float)(to - from);
    unsigned n_mine = 0, n = (unsigned)j->model.n;
    void *learn[] = {&t->param, &t->grad, &n, &rate};

    for (uint32_t i = from; i < to; i++)
        if (j->order[i] % j->size == j->rank)
            t->host_pick[n_mine++] = j->order[i] / j->size;
    forward(t, &t->train, n_mine);
    if (backward(t, n_mine))
        return gpu_fault(t->gpu) ? fail(t) : digits_fail(&j->err);
    gpu_launch(t->gpu, LEARN, n, learn);
    return gpu_fault(t->gpu) ? fail(t) : 0;
}

/* The sum of all losses since the last call. */
static double take_loss(struct training *t)
{
    double sum = 0;

    gpu_get(t->gpu, t->host_loss, t->loss, t->most * sizeof(float));
    for (unsigned i = 0; i < t->most; i++) {
        sum += (double)t->host_loss[i];
        t->host_loss[i] = 0;
    }
    gpu_put(t->gpu, t->loss, t->host_loss, t->most * sizeof(float));
    return sum;
}

/* The kernel leaves each probability, less 1 where the label says so: right
 * is who has the largest of the probabilities there. */
static unsigned count_right(struct training *t)
{
    unsigned n = t->job.test.n, n_right = 0;

    for (unsigned i = 0; i < n; i++)
        t->host_pick[i] = i;
    forward(t, &t->test, n);
    gpu_get(t->gpu, t->host_off, t->off,
            sizeof(float) * n * DIGITS_CLASSES);
    for (unsigned i = 0; i < n; i++) {
        float *off = t->host_off + (size_t)i * DIGITS_CLASSES;
        unsigned best = 0;

        off[t->job.test.labels[i]] += 1;
        for (unsigned k = 1; k < DIGITS_CLASSES; k++)
            if (off[k] > off[best])
                best = k;
        n_right += best == t->job.test.labels[i];
    }
    (void)take_loss(t);
    return n_right;
}

static int report(struct training *t, uint32_t epoch, double loss)
{
    struct digits_job *j = &t->job;
    unsigned n_right = count_right(t);

    gpu_get(t->gpu, j->model.param, t->param, j->model.n * sizeof(float));
    return gpu_fault(t->gpu) ? fail(t)
                             : digits_report(j, epoch, loss, n_right);
}

static int train(struct training *t)
{
    struct digits_job *j = &t->job;
    uint32_t n = j->train.n_all, batch = j->opt.batch;
    int rc = 0;

    for (uint32_t e = j->first_epoch + 1; e <= j->opt.epochs && !rc; e++) {
        double loss;

        digits_shuffle(j, e);
        for (uint32_t from = 0; from < n && !rc; from += batch)
            rc = learn_batch(t, from, n - from < batch ? n : from + batch);
        loss = take_loss(t);
        if (!rc && digits_is_due(j, e))
            rc = report(t, e, loss);
    }
    return rc;
}

static int run(struct training *t)
{
    char why[GPU_WHY];
    int rc = digits_load_all(&t->job);

    if (rc)
        return rc;
    t->gpu = gpu_new(ddp_local_rank(t->job.comm), kernels, names, why);
    if (!t->gpu) {
        (void)ddp_abort(t->job.comm);
        return digits_fail_data(&t->job, why);
    }
    rc = fill(t);
    if (!rc)
        rc = train(t);
    return rc ? rc : digits_compare(&t->job);
}

int main(int argc, char **argv)
{
    struct training t = {.gpu = NULL};
    int rc = digits_begin(&t.job, argc, argv);

    if (!rc)
        rc = run(&t);
    digits_end(&t.job); /* Its reducer needs the stream. */
    gpu_free(t.gpu);
    free(t.host_pick);
    free(t.host_off);
    free(t.host_loss);
    return rc;
}
