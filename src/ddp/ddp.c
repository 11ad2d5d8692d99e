/* ddp: the calls of ddp.h; arguments are checked here, work is in comm.h. */
#include "ddp.h"
#include "ddp/comm.h"
#include "ddp/fault.h"
#include "ddp/nccl.h"
#include "ddp/rails.h"
#include "ddp/reduce.h"
#include "ddp/share.h"
#include "ddp/small.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *from_environ(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name);
}

int ddp_init(struct ddp_comm **ret, const struct ddp_options *opt,
             struct ddp_error *err)
{
    struct ddp_error own;
    struct ddp_error *e = err ? err : &own;
    struct ddp_conf conf;
    struct ddp_comm *c;

    if (!ret)
        return ddp_fault(e, DDP_EINVAL, -1, -1, "ddp_init: ret is NULL");
    if (ddp_conf_read(&conf, opt, from_environ, NULL, e))
        return e->code;
    c = ddp_comm_new(&conf, e);
    if (!c)
        return e->code;
    *ret = c;
    return 0;
}

void ddp_free(struct ddp_comm *c)
{
    ddp_comm_free(c);
}

int ddp_rank(const struct ddp_comm *c)
{
    return c ? c->rank : DDP_EINVAL;
}

int ddp_size(const struct ddp_comm *c)
{
    return c ? c->size : DDP_EINVAL;
}

int ddp_local_rank(const struct ddp_comm *c)
{
    return c ? c->local_rank : DDP_EINVAL;
}

int ddp_abort(struct ddp_comm *c)
{
    const uint64_t one = 1;
    int was = errno; /* A signal handler may be calling. */

    if (!c)
        return DDP_EINVAL;
    atomic_store(&c->is_aborted, true);
    /* The descriptor stays readable, so that no call waits from here on. */
    while (write(c->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
    errno = was;
    return 0;
}

static bool overlap(const void *a, const void *b, size_t a_len, size_t b_len)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return a_len && b_len && x < y + b_len && y < x + a_len;
}

/* How many times `count` elements the caller's buffers hold. */
static void extents(const struct ddp_comm *c, const struct ddp_request *q,
                    size_t *ret_send, size_t *ret_recv)
{
    *ret_send = q->what == DDP_REDUCE_SCATTER ? (size_t)c->size : 1;
    *ret_recv = q->what == DDP_ALL_GATHER ? (size_t)c->size : 1;
}

/* The one way in which two buffers may share memory. */
static bool in_place(const struct ddp_comm *c, const struct ddp_request *q)
{
    size_t mine = (size_t)c->rank * q->count * q->width;
    const uint8_t *send = q->send, *recv = q->recv;

    if (q->what == DDP_REDUCE_SCATTER)
        return send + mine == recv;
    if (q->what == DDP_ALL_GATHER)
        return send == recv + mine;
    return send == recv;
}

static const char *buffers_fault(const struct ddp_comm *c,
                                 const struct ddp_request *q)
{
    size_t n_send, n_recv, len;

    if (q->count == 0)
        return NULL;
    if (!q->send || !q->recv)
        return "a buffer is NULL";
    if (q->count > (size_t)PTRDIFF_MAX / q->width / 2 / (size_t)c->size)
        return "count is too large for this machine's memory";
    if ((uintptr_t)q->send % q->width || (uintptr_t)q->recv % q->width)
        return "a buffer is not aligned for its type";
    extents(c, q, &n_send, &n_recv);
    len = q->count * q->width;
    if (!in_place(c, q) &&
        overlap(q->send, q->recv, n_send * len, n_recv * len))
        return "send and recv overlap in part";
    return NULL;
}

/* 0, or an error that leaves the communicator as it is. */
static int check(const struct ddp_comm *c, const struct ddp_request *q,
                 struct ddp_error *e)
{
    const char *name = ddp_what_name(q->what), *fault;

    if (q->width == 0)
        return ddp_fault(e, DDP_EINVAL, c->rank, -1, "%s: type %d is no enum "
                         "ddp_type", name, q->type);
    if (q->op < DDP_SUM || q->op > DDP_AVG)
        return ddp_fault(e, DDP_EINVAL, c->rank, -1, "%s: op %d is no enum "
                         "ddp_op", name, q->op);
    if (q->root >= (unsigned)c->size)
        return ddp_fault(e, DDP_EINVAL, c->rank, -1, "%s: root %d is no rank "
                         "of %d", name, (int)q->root, c->size);
    fault = buffers_fault(c, q);
    return fault ? ddp_fault(e, DDP_EINVAL, c->rank, -1, "%s: %s", name, fault)
                 : 0;
}

/* One process: the result is its own part. */
static void run_alone(const struct ddp_request *q)
{
    if (q->count > 0 && q->send != q->recv)
        memmove(q->recv, q->send, q->count * q->width);
}

/* An all_gather receives all but this rank's own block. */
static void place_own_block(const struct ddp_comm *c,
                            const struct ddp_request *q)
{
    size_t len = q->count * q->width;

    if (len > 0 && !in_place(c, q))
        memcpy((uint8_t *)q->recv + (size_t)c->rank * len, q->send, len);
}

int ddp_host_run(struct ddp_comm *c, const struct ddp_request *q,
                 struct ddp_error *err)
{
    if (ddp_rails_fits(c, q))
        return ddp_rails_run(c, q, err);
    if (c->shm && c->rail.seats == 0)
        return ddp_share_run(c, q, err);
    if (ddp_small_fits(&c->links, q))
        return ddp_small_run(c, &c->links, q, err);
    return ddp_ring_run(c, q, err);
}

/* Carry out a checked call; the first error stays. */
static int run(struct ddp_comm *c, const struct ddp_request *q, bool is_device,
               void *stream, struct ddp_error *e)
{
    if (!c->broken.code && atomic_load(&c->is_aborted) && c->size == 1)
        (void)ddp_fault(&c->broken, DDP_EABORTED, c->rank, c->rank,
                        "%s: aborted by ddp_abort", ddp_what_name(q->what));
    if (!c->broken.code && is_device) {
        (void)ddp_nccl_run(c, q, stream, &c->broken);
    } else if (!c->broken.code && c->size > 1) {
        if (q->what == DDP_ALL_GATHER)
            place_own_block(c, q);
        (void)ddp_host_run(c, q, &c->broken);
    } else if (!c->broken.code) {
        run_alone(q);
    }
    if (c->broken.code) {
        ddp_nccl_free(c->nccl, true); /* What is queued may wait for ever. */
        c->nccl = NULL;
        *e = c->broken;
    }
    return c->broken.code;
}

static int call(struct ddp_comm *c, const struct ddp_request *q, void *stream,
                struct ddp_error *err)
{
    struct ddp_error own;
    struct ddp_error *e = err ? err : &own;
    bool is_device;
    int rc;

    if (!c)
        return ddp_fault(e, DDP_EINVAL, -1, -1, "%s: the communicator is NULL",
                         ddp_what_name(q->what));
    if (atomic_flag_test_and_set(&c->busy))
        return ddp_fault(e, DDP_EINVAL, c->rank, -1, "%s: another thread is "
                         "in a call of this communicator",
                         ddp_what_name(q->what));
    rc = check(c, q, e);
    if (!rc)
        rc = ddp_nccl_wants(c, q, stream, &is_device, e);
    if (!rc)
        rc = run(c, q, is_device, stream, e);
    atomic_flag_clear(&c->busy);
    return rc;
}

int ddp_all_reduce(struct ddp_comm *c, const void *send, void *recv,
                   size_t count, enum ddp_type type, enum ddp_op op,
                   void *stream, struct ddp_error *err)
{
    const struct ddp_request q = {
        .what = DDP_ALL_REDUCE, .send = send, .recv = recv, .count = count,
        .width = ddp_type_width((int)type), .type = (int)type, .op = (int)op};

    return call(c, &q, stream, err);
}

int ddp_reduce_scatter(struct ddp_comm *c, const void *send, void *recv,
                       size_t recv_count, enum ddp_type type, enum ddp_op op,
                       void *stream, struct ddp_error *err)
{
    const struct ddp_request q = {
        .what = DDP_REDUCE_SCATTER, .send = send, .recv = recv,
        .count = recv_count, .width = ddp_type_width((int)type),
        .type = (int)type, .op = (int)op};

    return call(c, &q, stream, err);
}

int ddp_all_gather(struct ddp_comm *c, const void *send, void *recv,
                   size_t send_count, enum ddp_type type, void *stream,
                   struct ddp_error *err)
{
    const struct ddp_request q = {
        .what = DDP_ALL_GATHER, .send = send, .recv = recv,
        .count = send_count, .width = ddp_type_width((int)type),
        .type = (int)type};

    return call(c, &q, stream, err);
}

int ddp_broadcast(struct ddp_comm *c, void *buf, size_t count,
                  enum ddp_type type, int root, void *stream,
                  struct ddp_error *err)
{
    const struct ddp_request q = {
        .what = DDP_BROADCAST, .send = buf, .recv = buf, .count = count,
        .width = ddp_type_width((int)type), .type = (int)type,
        .root = (unsigned)root};

    return call(c, &q, stream, err);
}

int ddp_barrier(struct ddp_comm *c, struct ddp_error *err)
{
    uint8_t token = 1;
    const struct ddp_request q = {.what = DDP_BARRIER, .send = &token,
                                  .recv = &token, .count = 1, .width = 1,
                                  .type = DDP_U8, .op = DDP_MIN};

    return call(c, &q, NULL, err);
}
