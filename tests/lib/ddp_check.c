/* ddp_check: one rank of a test of libddp, placed by its environment.
 *
 *   ddp_check sums             every type, op and call against a reference
 *   ddp_check loop COUNT [RANK...]
 *                              all_reduce COUNT floats until that fails; RANKs
 *                              stay away after the first one
 *   ddp_check differ WHAT      count, type, op, root or call differs on the
 *                              last rank
 *   ddp_check abort            rank 0 aborts itself while all wait for it
 *   ddp_check leave            the last rank leaves after one call
 *   ddp_check exit             rank 0 exits after one call without a word;
 *                              rank 2 does not make that call
 *   ddp_check time COUNT N     median time of N all_reduce of COUNT floats
 * An error of libddp is printed as `rank R: code C peer P after T ms: TEXT`,
 * and ends the program with status 3; a wrong sum with status 1. */
#include "ddp.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GUARD 0x5a
#define LARGE 50000 /* From here on only the narrowest and the widest type. */

static double now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int fail(const struct ddp_error *e, double since)
{
    printf("rank %d: code %d peer %d after %.0f ms: %s\n", e->rank, e->code,
           e->peer, now_ms() - since, e->text);
    return 3;
}

/* --- sums ---------------------------------------------------------------- */

static const struct kind {
    enum ddp_type type;
    const char *name;
    size_t width;
} kinds[] = {
    {DDP_I8, "i8", 1},   {DDP_U8, "u8", 1},   {DDP_I32, "i32", 4},
    {DDP_U32, "u32", 4}, {DDP_I64, "i64", 8}, {DDP_U64, "u64", 8},
    {DDP_F32, "f32", 4}, {DDP_F64, "f64", 8},
};

static const char *const op_names[] = {"sum", "prod", "max", "min", "avg"};

/* Small whole numbers, so that every type holds every result exactly. */
static long value(int rank, size_t i, enum ddp_op op, const struct kind *k)
{
    long v = (long)((i * 7 + (size_t)rank * 13 + i / 3) % 5);

    if (op == DDP_PROD)
        return v % 2 + 1;
    return k->type == DDP_U8 || k->type == DDP_U32 || k->type == DDP_U64
               ? v + 1
               : v - 2;
}

static void store(void *buf, size_t i, const struct kind *k, double v)
{
    switch (k->type) {
    case DDP_I8:
        ((int8_t *)buf)[i] = (int8_t)v;
        return;
    case DDP_U8:
        ((uint8_t *)buf)[i] = (uint8_t)v;
        return;
    case DDP_I32:
        ((int32_t *)buf)[i] = (int32_t)v;
        return;
    case DDP_U32:
        ((uint32_t *)buf)[i] = (uint32_t)v;
        return;
    case DDP_I64:
        ((int64_t *)buf)[i] = (int64_t)v;
        return;
    case DDP_U64:
        ((uint64_t *)buf)[i] = (uint64_t)v;
        return;
    case DDP_F64:
        ((double *)buf)[i] = v;
        return;
    case DDP_F32:
    case DDP_F16:
    case DDP_BF16:
        ((float *)buf)[i] = (float)v;
    }
}

static double reduced(int size, size_t i, enum ddp_op op, const struct kind *k)
{
    double r = (double)value(0, i, op, k);

    for (int rank = 1; rank < size; rank++) {
        double v = (double)value(rank, i, op, k);

        r = op == DDP_PROD  ? r * v
            : op == DDP_MIN ? (v < r ? v : r)
            : op == DDP_MAX ? (v > r ? v : r)
                            : r + v;
    }
    return op == DDP_AVG ? r / size : r; /* store() rounds toward zero. */
}

struct sums {
    struct ddp_comm *c;
    int rank, size;
    size_t count;
    void *send, *recv, *want; /* Each of size * count * 8 + 8 bytes. */
    unsigned n_checks;
    struct ddp_error err;
};

static void fill(struct sums *s, void *buf, size_t n, enum ddp_op op,
                 const struct kind *k)
{
    for (size_t i = 0; i < n; i++)
        store(buf, i, k, (double)value(s->rank, i, op, k));
}

static int compare(struct sums *s, const void *got, size_t n,
                   const struct kind *k, const char *what)
{
    s->n_checks++;
    if (!memcmp(got, s->want, n * k->width))
        return 0;
    printf("rank %d: wrong: %s of %zu x %s, %d ranks\n", s->rank, what,
           s->count, k->name, s->size);
    return 1;
}

static int check_reduce(struct sums *s, const struct kind *k, enum ddp_op op)
{
    size_t n = s->count, all = n * (size_t)s->size;
    size_t mine = (size_t)s->rank * n;
    uint8_t *place;
    char what[32];

    (void)snprintf(what, sizeof what, "all_reduce %s", op_names[op]);
    fill(s, s->send, n, op, k);
    memset(s->recv, GUARD, n * k->width + 8);
    for (size_t i = 0; i < n; i++)
        store(s->want, i, k, reduced(s->size, i, op, k));
    memset((uint8_t *)s->want + n * k->width, GUARD, 8);
    if (ddp_all_reduce(s->c, s->send, s->recv, n, k->type, op, NULL, &s->err))
        return fail(&s->err, 0);
    if (memcmp((uint8_t *)s->recv + n * k->width,
               (uint8_t *)s->want + n * k->width, 8) ||
        compare(s, s->recv, n, k, what))
        return 1;
    if (ddp_all_reduce(s->c, s->send, s->send, n, k->type, op, NULL, &s->err))
        return fail(&s->err, 0);
    if (compare(s, s->send, n, k, what))
        return 1;

    (void)snprintf(what, sizeof what, "reduce_scatter %s", op_names[op]);
    fill(s, s->send, all, op, k);
    for (size_t i = 0; i < n; i++)
        store(s->want, i, k, reduced(s->size, mine + i, op, k));
    if (ddp_reduce_scatter(s->c, s->send, s->recv, n, k->type, op, NULL,
                           &s->err))
        return fail(&s->err, 0);
    if (compare(s, s->recv, n, k, what))
        return 1;
    place = (uint8_t *)s->send + mine * k->width;
    if (ddp_reduce_scatter(s->c, s->send, place, n, k->type, op, NULL, &s->err))
        return fail(&s->err, 0);
    return compare(s, place, n, k, what);
}

static int check_move(struct sums *s, const struct kind *k)
{
    size_t n = s->count, all = n * (size_t)s->size;
    uint8_t *place = (uint8_t *)s->recv + (size_t)s->rank * n * k->width;

    for (int root = 0; root < s->size; root++) {
        fill(s, s->send, n, DDP_SUM, k);
        for (size_t i = 0; i < n; i++)
            store(s->want, i, k, (double)value(root, i, DDP_SUM, k));
        if (ddp_broadcast(s->c, s->send, n, k->type, root, NULL, &s->err))
            return fail(&s->err, 0);
        if (compare(s, s->send, n, k, "broadcast"))
            return 1;
    }
    for (size_t i = 0; i < all; i++)
        store(s->want, i, k, (double)value((int)(i / n), i % n, DDP_SUM, k));
    for (int in_place = 0; in_place < 2; in_place++) {
        memset(s->recv, GUARD, all * k->width);
        fill(s, in_place ? place : s->send, n, DDP_SUM, k);
        if (ddp_all_gather(s->c, in_place ? place : s->send, s->recv, n,
                           k->type, NULL, &s->err))
            return fail(&s->err, 0);
        if (compare(s, s->recv, all, k, "all_gather"))
            return 1;
    }
    return 0;
}

/* Sums that round: the reference is that all ranks agree bit for bit. */
static int check_equal(struct sums *s)
{
    size_t n = s->count;
    float *f = s->send;

    for (size_t i = 0; i < n; i++)
        f[i] = 1.0f / (float)(i + 3 + (size_t)s->rank);
    if (ddp_all_reduce(s->c, f, f, n, DDP_F32, DDP_AVG, NULL, &s->err))
        return fail(&s->err, 0);
    memcpy(s->want, f, n * sizeof *f);
    if (ddp_broadcast(s->c, f, n, DDP_F32, s->size - 1, NULL, &s->err))
        return fail(&s->err, 0);
    return compare(s, f, n, &kinds[6], "equality");
}

static int check_count(struct sums *s)
{
    size_t bytes = s->count * (size_t)s->size * 8 + 8;
    int rc = 0;

    s->send = calloc(1, bytes);
    s->recv = calloc(1, bytes);
    s->want = calloc(1, bytes);
    if (!s->send || !s->recv || !s->want)
        return 1;
    for (size_t t = 0; t < sizeof kinds / sizeof kinds[0] && !rc; t++) {
        if (s->count > LARGE && kinds[t].type != DDP_I8 &&
            kinds[t].type != DDP_F64)
            continue;
        for (int op = DDP_SUM; op <= DDP_AVG && !rc; op++)
            rc = check_reduce(s, &kinds[t], (enum ddp_op)op);
        if (!rc)
            rc = check_move(s, &kinds[t]);
    }
    if (!rc)
        rc = check_equal(s);
    if (!rc && ddp_barrier(s->c, &s->err))
        rc = fail(&s->err, 0);
    free(s->send);
    free(s->recv);
    free(s->want);
    return rc;
}

static int sums(struct ddp_comm *c)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 64, 1001, 20011, 150001};
    struct sums s = {.c = c, .rank = ddp_rank(c), .size = ddp_size(c)};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int rc;

        s.count = counts[i];
        rc = check_count(&s);
        if (rc)
            return rc;
    }
    printf("rank %d of %d: %u results are right\n", s.rank, s.size,
           s.n_checks);
    return 0;
}

/* --- failures ------------------------------------------------------------ */

/* After the first call: in no call, until a signal ends it. */
static void stay_away(int rank, char **away)
{
    for (; *away; away++)
        while (strtol(*away, NULL, 10) == rank)
            (void)pause();
}

static int loop(struct ddp_comm *c, size_t count, char **away)
{
    float *buf = calloc(count, sizeof *buf);
    struct ddp_error err, later;
    bool first = true;
    int rc = 0;

    while (buf && rc == 0) {
        double began = now_ms();

        if (ddp_all_reduce(c, buf, buf, count, DDP_F32, DDP_SUM, NULL, &err))
            rc = fail(&err, began);
        else if (first)
            printf("rank %d: in the loop\n", ddp_rank(c));
        if (!rc && first)
            stay_away(ddp_rank(c), away);
        first = false;
    }
    /* Broken: the next call fails at once, with the same error. */
    if (rc == 3 && (ddp_barrier(c, &later) != err.code ||
                    strcmp(later.text, err.text)))
        rc = 1;
    free(buf);
    return rc ? rc : 1;
}

static int differ(struct ddp_comm *c, const char *what)
{
    bool odd = ddp_rank(c) == ddp_size(c) - 1;
    double buf[8] = {0}, began = now_ms();
    struct ddp_error err;
    int rc;

    if (odd && !strcmp(what, "call"))
        rc = ddp_barrier(c, &err);
    else if (!strcmp(what, "root"))
        rc = ddp_broadcast(c, buf, 4, DDP_F32, odd, NULL, &err);
    else
        rc = ddp_all_reduce(c, buf, buf, odd && !strcmp(what, "count") ? 5 : 4,
                            odd && !strcmp(what, "type") ? DDP_I32 : DDP_F32,
                            odd && !strcmp(what, "op") ? DDP_MAX : DDP_SUM,
                            NULL, &err);
    return rc ? fail(&err, began) : 1;
}

static void *abort_later(void *c)
{
    struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};

    (void)nanosleep(&pause, NULL); /* Most likely it is blocked by then; */
    (void)ddp_abort(c);            /* if not, it fails all the same. */
    return NULL;
}

/* The last rank stays away; rank 0 gives up by itself. */
static int abort_one(struct ddp_comm *c)
{
    double began = now_ms();
    struct ddp_error err;
    pthread_t thread;
    int rc;

    if (ddp_rank(c) == ddp_size(c) - 1 && ddp_size(c) > 1) {
        struct timespec pause = {.tv_nsec = 300 * 1000 * 1000};

        (void)nanosleep(&pause, NULL);
        return ddp_barrier(c, &err) ? fail(&err, began) : 1;
    }
    if (ddp_rank(c) == 0 && pthread_create(&thread, NULL, abort_later, c))
        return 1;
    do
        rc = ddp_barrier(c, &err);
    while (!rc);
    if (ddp_rank(c) == 0)
        (void)pthread_join(thread, NULL);
    return fail(&err, began);
}

static int leave(struct ddp_comm *c)
{
    struct ddp_error err;
    double began = now_ms();

    if (ddp_barrier(c, &err))
        return fail(&err, began);
    if (ddp_rank(c) == ddp_size(c) - 1)
        return 0;
    return ddp_barrier(c, &err) ? fail(&err, began) : 1;
}

static int exit_early(struct ddp_comm *c)
{
    struct ddp_error err;
    double began = now_ms();
    int x = 0;

    while (ddp_rank(c) == 2)
        (void)pause();
    if (ddp_broadcast(c, &x, 1, DDP_I32, 0, NULL, &err))
        return fail(&err, began);
    if (ddp_rank(c) == 0)
        _exit(0);
    return 1;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static int measure(struct ddp_comm *c, size_t count, size_t n)
{
    float *buf = calloc(count, sizeof *buf);
    double *ms = calloc(n + 1, sizeof *ms);
    struct ddp_error err;
    int rc = buf && ms && n > 0 ? 0 : 1;

    for (size_t i = 0; i < n && !rc; i++) {
        double began;

        if (ddp_barrier(c, &err))
            rc = fail(&err, 0);
        began = now_ms();
        if (!rc && ddp_all_reduce(c, buf, buf, count, DDP_F32, DDP_SUM, NULL,
                                  &err))
            rc = fail(&err, began);
        ms[i] = now_ms() - began;
    }
    if (!rc && ddp_rank(c) == 0) {
        qsort(ms, n, sizeof *ms, by_value);
        printf("%d ranks, %zu bytes: median %.3f ms, least %.3f ms\n",
               ddp_size(c), count * sizeof *buf, ms[n / 2], ms[0]);
    }
    free(buf);
    free(ms);
    return rc;
}

static int run(struct ddp_comm *c, int argc, char **argv)
{
    const char *what = argv[1];

    if (!strcmp(what, "sums"))
        return sums(c);
    if (!strcmp(what, "loop") && argc >= 3)
        return loop(c, strtoul(argv[2], NULL, 10), argv + 3);
    if (!strcmp(what, "differ") && argc == 3)
        return differ(c, argv[2]);
    if (!strcmp(what, "abort"))
        return abort_one(c);
    if (!strcmp(what, "leave"))
        return leave(c);
    if (!strcmp(what, "exit"))
        return exit_early(c);
    if (!strcmp(what, "time") && argc == 4)
        return measure(c, strtoul(argv[2], NULL, 10),
                       strtoul(argv[3], NULL, 10));
    return 64;
}

int main(int argc, char **argv)
{
    struct ddp_comm *c = NULL;
    struct ddp_error err;
    double began = now_ms();
    int rc;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 2)
        return 64;
    if (ddp_init(&c, NULL, &err))
        return fail(&err, began);
    rc = run(c, argc, argv);
    ddp_free(c);
    return rc;
}
