/* digits_job: see digits_job.h. */
#include "digits_job.h"
#include "digits_save.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define REPORT_EPOCHS 5 /* Between two lines, and two checkpoints. */

static const char usage[] =
    "usage: digits [--data DIR] [--epochs N] [--batch N] [--lr RATE]\n"
    "              [--seed N] [--checkpoint FILE] [--epoch-ms N]\n"
    "DIR (default: AGENT_DATASET_DIR) holds MNIST/raw/*-ubyte.\n";

static bool read_number(const char *s, uint64_t max, uint64_t *ret)
{
    char *end;

    *ret = strtoull(s, &end, 10);
    return *s >= '0' && *s <= '9' && !*end && *ret <= max;
}

static bool read_option(struct digits_options *o, int name, const char *s)
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

static int read_options(struct digits_options *o, int argc, char **argv)
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

    *o = (struct digits_options){.epochs = 60, .batch = 32, .seed = 1,
                                 .rate = 0.2f,
                                 .data = getenv("AGENT_DATASET_DIR")};
    while ((name = getopt_long(argc, argv, "", table, NULL)) != -1)
        if (name == '?' || !read_option(o, name, optarg)) {
            (void)fprintf(stderr, "digits: bad option or value\n%s", usage);
            return DIGITS_EXIT_USE;
        }
    if (optind < argc || !o->data || !*o->data) {
        (void)fprintf(stderr, "digits: %s\n%s",
                      optind < argc ? "takes no arguments"
                                    : "where is the data? give --data DIR",
                      usage);
        return DIGITS_EXIT_USE;
    }
    return 0;
}

/* --- failures: one line each --------------------------------------------- */

int digits_fail(const struct ddp_error *e)
{
    if (e->rank >= 0)
        (void)fprintf(stderr, "digits: rank %d: %s\n", e->rank, e->text);
    else
        (void)fprintf(stderr, "digits: %s\n", e->text);
    return DIGITS_EXIT_DDP;
}

int digits_fail_data(const struct digits_job *j, const char *why)
{
    (void)fprintf(stderr, "digits: rank %u: %s\n", j->rank, why);
    return DIGITS_EXIT_DATA;
}

/* --- start and end ------------------------------------------------------- */

int digits_begin(struct digits_job *j, int argc, char **argv)
{
    int rc = read_options(&j->opt, argc, argv);

    if (rc)
        return rc;
    if (ddp_init(&j->comm, NULL, &j->err))
        return digits_fail(&j->err);
    j->rank = (uint32_t)ddp_rank(j->comm);
    j->size = (uint32_t)ddp_size(j->comm);
    return 0;
}

/* Rank 0 reads the checkpoint; all go on from what it found. */
static int resume(struct digits_job *j)
{
    char why[DIGITS_WHY];
    struct model *m = &j->model;

    if (j->rank == 0 && j->opt.checkpoint &&
        checkpoint_load(j->opt.checkpoint, m, j->opt.seed, &j->first_epoch,
                        why))
        return digits_fail_data(j, why);
    if (ddp_broadcast(j->comm, &j->first_epoch, 1, DDP_U32, 0, NULL, &j->err) ||
        ddp_broadcast(j->comm, m->param, m->n, DDP_F32, 0, NULL, &j->err))
        return digits_fail(&j->err);
    if (j->rank == 0 && j->first_epoch > 0)
        printf("resumed from epoch %u (checkpoint %s)\n", j->first_epoch,
               j->opt.checkpoint);
    return 0;
}

int digits_load_all(struct digits_job *j)
{
    char why[DIGITS_WHY];

    if (digits_load(&j->train, j->opt.data, "train", j->rank, j->size, why) ||
        digits_load(&j->test, j->opt.data, "t10k", j->rank, j->size, why))
        return digits_fail_data(j, why);
    if (j->train.pixels != j->test.pixels)
        return digits_fail_data(j, "training and test images differ in size");
    j->order = calloc(j->train.n_all, sizeof *j->order);
    if (!j->order || model_new(&j->model, j->train.pixels, j->opt.seed))
        return digits_fail_data(j, "out of memory");
    return resume(j);
}

/* Ranks have unequal shares of a batch, so the gradients are added up. */
int digits_make_reducer(struct digits_job *j, const struct model *m,
                        void *stream)
{
    const struct ddp_reducer_options opt = {.size = sizeof opt, .sum = 1,
                                            .stream = stream};
    struct ddp_param params[N_PARTS] = {{.type = DDP_F32}};

    for (unsigned part = 0; part < N_PARTS; part++) {
        params[part].grad = model_gradient(m, part, &params[part].count);
        params[part].type = DDP_F32;
    }
    return ddp_reducer_new(&j->reducer, j->comm, params, N_PARTS, &opt,
                           &j->err) ? digits_fail(&j->err) : 0;
}

void digits_end(struct digits_job *j)
{
    ddp_reducer_free(j->reducer);
    digits_free(&j->train);
    digits_free(&j->test);
    model_free(&j->model);
    free(j->order);
    ddp_free(j->comm);
}

/* --- epochs -------------------------------------------------------------- */

void digits_shuffle(struct digits_job *j, uint32_t epoch)
{
    uint64_t state = j->opt.seed ^ (uint64_t)epoch << 32;
    uint32_t n = j->train.n_all;

    for (uint32_t i = 0; i < n; i++)
        j->order[i] = i;
    for (uint32_t i = n - 1; i > 0; i--) {
        uint32_t k = (uint32_t)(digits_random(&state) % (i + 1));
        uint32_t was = j->order[i];

        j->order[i] = j->order[k];
        j->order[k] = was;
    }
}

int digits_is_due(const struct digits_job *j, uint32_t epoch)
{
    struct timespec pause = {.tv_sec = j->opt.epoch_ms / 1000,
                             .tv_nsec = j->opt.epoch_ms % 1000 * 1000000L};

    if (j->opt.epoch_ms > 0)
        (void)nanosleep(&pause, NULL);
    return epoch % REPORT_EPOCHS == 0 || epoch == j->opt.epochs;
}

int digits_report(struct digits_job *j, uint32_t epoch, double loss,
                  double n_right)
{
    char why[DIGITS_WHY];
    double sums[2] = {loss, n_right};

    if (ddp_all_reduce(j->comm, sums, sums, 2, DDP_F64, DDP_SUM, NULL,
                       &j->err))
        return digits_fail(&j->err);
    if (j->rank > 0)
        return 0;
    printf("epoch %u/%u loss %.4f test accuracy %.1f %%\n", epoch,
           j->opt.epochs, sums[0] / j->train.n_all,
           100 * sums[1] / j->test.n_all);
    (void)fflush(stdout);
    if (j->opt.checkpoint && checkpoint_save(j->opt.checkpoint, &j->model,
                                             j->opt.seed, epoch, why))
        return digits_fail_data(j, why);
    return 0;
}

int digits_compare(struct digits_job *j)
{
    uint64_t sum = digits_fnv(DIGITS_FNV, j->model.param,
                              j->model.n * sizeof *j->model.param);
    int64_t low = (int64_t)sum, high = low;

    printf("rank %u: parameters fnv64 0x%016llx\n", j->rank,
           (unsigned long long)sum);
    (void)fflush(stdout);
    if (ddp_all_reduce(j->comm, &low, &low, 1, DDP_I64, DDP_MIN, NULL,
                       &j->err) ||
        ddp_all_reduce(j->comm, &high, &high, 1, DDP_I64, DDP_MAX, NULL,
                       &j->err))
        return digits_fail(&j->err);
    if (low != high) {
        (void)fprintf(stderr, "digits: rank %u: parameters differ between the "
                      "ranks\n", j->rank);
        return DIGITS_EXIT_DDP;
    }
    if (j->rank == 0)
        printf("parameters bit-equal on all %u ranks\n", j->size);
    return 0;
}
