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
#include "ddp.h"
#include "digits_data.h"
#include "digits_model.h"
#include "digits_save.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REPORT_EPOCHS 5 /* Between two lines, and two checkpoints. */
#define EXIT_DDP 1
#define EXIT_DATA 2
#define EXIT_USE 64

struct options {
    uint32_t epochs, batch, epoch_ms;
    uint64_t seed;
    float rate;
    const char *data, *checkpoint;
};

struct training {
    struct options opt;
    struct ddp_comm *comm;
    struct ddp_reducer *reducer;
    int rc; /* Of ddp_reducer_ready. */
    uint32_t rank, size;
    struct digits train, test;
    struct model model;
    uint32_t *order;     /* Of the images of an epoch; the same everywhere. */
    uint32_t first_epoch; /* Done before this run. */
    struct ddp_error err;
};

static const char usage[] =
    "usage: digits [--data DIR] [--epochs N] [--batch N] [--lr RATE]\n"
    "              [--seed N] [--checkpoint FILE] [--epoch-ms N]\n"
    "DIR (default: AGENT_DATASET_DIR) holds MNIST/raw/*-ubyte.\n";

/* --- options ------------------------------------------------------------- */

static bool read_number(const char *s, uint64_t max, uint64_t *ret)
{
    char *end;

    *ret = strtoull(s, &end, 10);
    return *s >= '0' && *s <= '9' && !*end && *ret <= max;
}

static bool read_option(struct options *o, int name, const char *s)
{
    uint64_t n = 0;
    char *end;

    if (name == 'd')
        o->data = s;
    else if (name == 'c')
        o->checkpoint = s;
    else if (name == 'l')
        o->rate = strtof(s, &end);
    else if (!read_number(s, name == 's' ? UINT64_MAX : 1000000, &n))
        return false;
    if (name == 'e')
        o->epochs = (uint32_t)n;
    if (name == 'b')
        o->batch = (uint32_t)n;
    if (name == 'm')
        o->epoch_ms = (uint32_t)n;
    if (name == 's')
        o->seed = n;
    return name != '?' && o->batch > 0 &&
           (name != 'l' || (!*end && o->rate > 0 && o->rate < 1000));
}

static int read_options(struct options *o, int argc, char **argv)
{
    static const struct option table[] = {
        {"data", required_argument, NULL, 'd'},
        {"epochs", required_argument, NULL, 'e'},
        {"batch", required_argument, NULL, 'b'},
        {"lr", required_argument, NULL, 'l'},
        {"seed", required_argument, NULL, 's'},
        {"checkpoint", required_argument, NULL, 'c'},
        {"epoch-ms", required_argument, NULL, 'm'},
        {NULL, 0, NULL, 0}};
    int name;

    *o = (struct options){.epochs = 60, .batch = 32, .seed = 1, .rate = 0.2f,
                          .data = getenv("AGENT_DATASET_DIR")};
    while ((name = getopt_long(argc, argv, "", table, NULL)) != -1)
        if (name == '?' || !read_option(o, name, optarg)) {
            (void)fprintf(stderr, "digits: bad option or value\n%s", usage);
            return EXIT_USE;
        }
    if (optind < argc || !o->data || !*o->data) {
        (void)fprintf(stderr, "digits: %s\n%s",
                      optind < argc ? "takes no arguments"
                                    : "where is the data? give --data DIR",
                      usage);
        return EXIT_USE;
    }
    return 0;
}

/* --- failures: one line each --------------------------------------------- */

static int fail_ddp(const struct ddp_error *e)
{
    if (e->rank >= 0)
        (void)fprintf(stderr, "digits: rank %d: %s\n", e->rank, e->text);
    else
        (void)fprintf(stderr, "digits: %s\n", e->text);
    return EXIT_DDP;
}

static int fail_data(const struct training *t, const char *why)
{
    (void)fprintf(stderr, "digits: rank %u: %s\n", t->rank, why);
    return EXIT_DATA;
}

/* --- training ------------------------------------------------------------ */

/* Shuffle the images of an epoch; alike on all ranks, and after a restart. */
static void shuffle(struct training *t, uint32_t epoch)
{
    uint64_t state = t->opt.seed ^ (uint64_t)epoch << 32;
    uint32_t n = t->train.n_all;

    for (uint32_t i = 0; i < n; i++)
        t->order[i] = i;
    for (uint32_t i = n - 1; i > 0; i--) {
        uint32_t j = (uint32_t)(digits_random(&state) % (i + 1));
        uint32_t was = t->order[i];

        t->order[i] = t->order[j];
        t->order[j] = was;
    }
}

/* A part of the gradients is complete on this rank. */
static void part_done(void *ctx, enum model_part part)
{
    struct training *t = ctx;

    if (!t->rc)
        t->rc = ddp_reducer_ready(t->reducer, part, &t->err);
}

/* Learn from images order[from..to), of which this rank has a share. */
static int learn_batch(struct training *t, uint32_t from, uint32_t to,
                       double *loss)
{
    struct model *m = &t->model;
    uint32_t n_mine = 0;

    memset(m->grad, 0, m->n * sizeof *m->grad);
    for (uint32_t i = from; i < to; i++)
        n_mine += t->order[i] % t->size == t->rank;
    for (unsigned part = N_PARTS; part-- > 0 && n_mine == 0;)
        part_done(t, part); /* All zeros. */
    for (uint32_t i = from; i < to; i++) {
        uint32_t mine = t->order[i] / t->size;

        if (t->order[i] % t->size == t->rank)
            *loss += model_learn(
                m, t->train.images + (size_t)mine * t->train.pixels,
                t->train.labels[mine], --n_mine == 0 ? part_done : NULL, t);
    }
    if (t->rc || ddp_reducer_wait(t->reducer, &t->err))
        return fail_ddp(&t->err);
    model_step(m, t->opt.rate / (float)(to - from));
    return 0;
}

/* Ranks have unequal shares of a batch, so the gradients are added up. */
static int make_reducer(struct training *t)
{
    const struct ddp_reducer_options opt = {.size = sizeof opt, .sum = 1};
    struct ddp_param params[N_PARTS] = {{.type = DDP_F32}};

    for (unsigned part = 0; part < N_PARTS; part++) {
        params[part].grad = model_gradient(&t->model, part,
                                           &params[part].count);
        params[part].type = DDP_F32;
    }
    return ddp_reducer_new(&t->reducer, t->comm, params, N_PARTS, &opt,
                           &t->err) ? fail_ddp(&t->err) : 0;
}

/* Loss and accuracy over all ranks; rank 0 prints and keeps a checkpoint. */
static int report(struct training *t, uint32_t epoch, double loss)
{
    char why[DIGITS_WHY];
    double sums[2] = {loss, 0};

    for (uint32_t i = 0; i < t->test.n; i++)
        sums[1] += model_classify(&t->model, t->test.images + (size_t)i *
                                  t->test.pixels) == t->test.labels[i];
    if (ddp_all_reduce(t->comm, sums, sums, 2, DDP_F64, DDP_SUM, NULL, &t->err))
        return fail_ddp(&t->err);
    if (t->rank > 0)
        return 0;
    printf("epoch %u/%u loss %.4f test accuracy %.1f %%\n", epoch,
           t->opt.epochs, sums[0] / t->train.n_all,
           100 * sums[1] / t->test.n_all);
    (void)fflush(stdout);
    if (t->opt.checkpoint && checkpoint_save(t->opt.checkpoint, &t->model,
                                             t->opt.seed, epoch, why))
        return fail_data(t, why);
    return 0;
}

static int train(struct training *t)
{
    struct timespec pause = {.tv_sec = t->opt.epoch_ms / 1000,
                             .tv_nsec = t->opt.epoch_ms % 1000 * 1000000L};
    uint32_t n = t->train.n_all;

    for (uint32_t epoch = t->first_epoch + 1; epoch <= t->opt.epochs; epoch++) {
        double loss = 0;
        int rc = 0;

        shuffle(t, epoch);
        for (uint32_t from = 0; from < n && !rc; from += t->opt.batch)
            rc = learn_batch(t, from, n - from < t->opt.batch
                                          ? n
                                          : from + t->opt.batch, &loss);
        if (!rc && t->opt.epoch_ms > 0)
            (void)nanosleep(&pause, NULL);
        if (!rc && (epoch % REPORT_EPOCHS == 0 || epoch == t->opt.epochs))
            rc = report(t, epoch, loss);
        if (rc)
            return rc;
    }
    return 0;
}

/* Rank 0 reads the checkpoint; all go on from what it found. */
static int resume(struct training *t)
{
    char why[DIGITS_WHY];
    struct model *m = &t->model;

    if (t->rank == 0 && t->opt.checkpoint &&
        checkpoint_load(t->opt.checkpoint, m, t->opt.seed, &t->first_epoch,
                        why))
        return fail_data(t, why);
    if (ddp_broadcast(t->comm, &t->first_epoch, 1, DDP_U32, 0, NULL, &t->err) ||
        ddp_broadcast(t->comm, m->param, m->n, DDP_F32, 0, NULL, &t->err))
        return fail_ddp(&t->err);
    if (t->rank == 0 && t->first_epoch > 0)
        printf("resumed from epoch %u (checkpoint %s)\n", t->first_epoch,
               t->opt.checkpoint);
    return 0;
}

/* All ranks must hold the same parameters, to the bit. */
static int compare(struct training *t)
{
    uint64_t sum = digits_fnv(DIGITS_FNV, t->model.param,
                              t->model.n * sizeof *t->model.param);
    int64_t low = (int64_t)sum, high = low;

    printf("rank %u: parameters fnv64 0x%016llx\n", t->rank,
           (unsigned long long)sum);
    (void)fflush(stdout);
    if (ddp_all_reduce(t->comm, &low, &low, 1, DDP_I64, DDP_MIN, NULL,
                       &t->err) ||
        ddp_all_reduce(t->comm, &high, &high, 1, DDP_I64, DDP_MAX, NULL,
                       &t->err))
        return fail_ddp(&t->err);
    if (low != high) {
        (void)fprintf(stderr, "digits: rank %u: parameters differ between the "
                      "ranks\n", t->rank);
        return EXIT_DDP;
    }
    if (t->rank == 0)
        printf("parameters bit-equal on all %u ranks\n", t->size);
    return 0;
}

static int run(struct training *t)
{
    char why[DIGITS_WHY];
    int rc;

    if (digits_load(&t->train, t->opt.data, "train", t->rank, t->size, why) ||
        digits_load(&t->test, t->opt.data, "t10k", t->rank, t->size, why))
        return fail_data(t, why);
    if (t->train.pixels != t->test.pixels)
        return fail_data(t, "training and test images differ in size");
    t->order = calloc(t->train.n_all, sizeof *t->order);
    if (!t->order || model_new(&t->model, t->train.pixels, t->opt.seed))
        return fail_data(t, "out of memory");
    rc = make_reducer(t);
    if (!rc)
        rc = resume(t);
    if (!rc)
        rc = train(t);
    return rc ? rc : compare(t);
}

int main(int argc, char **argv)
{
    struct training t = {.comm = NULL};
    int rc = read_options(&t.opt, argc, argv);

    if (rc)
        return rc;
    if (ddp_init(&t.comm, NULL, &t.err))
        return fail_ddp(&t.err);
    t.rank = (uint32_t)ddp_rank(t.comm);
    t.size = (uint32_t)ddp_size(t.comm);
    rc = run(&t);
    ddp_reducer_free(t.reducer);
    digits_free(&t.train);
    digits_free(&t.test);
    model_free(&t.model);
    free(t.order);
    ddp_free(t.comm);
    return rc;
}
