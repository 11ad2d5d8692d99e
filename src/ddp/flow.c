/* flow: the elements of a call, in and out; see call.h and schedule.h. */
#include "ddp/call.h"
#include "ddp/reduce.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* At most this much in one system call, so that the other way gets its turn. */
#define PUSH_MAX (1024 * 1024)
/* Of several sockets each in turn gets so much: it should fit into the buffer
 * of one that has sent little yet. */
#define STRIPE (32 * 1024)

static unsigned turn_of(const struct ddp_links *l, uint64_t at)
{
    return (unsigned)(at / STRIPE % l->n_data);
}

int ddp_call_push_fd(const struct ddp_call *x)
{
    const struct ddp_links *l = x->l;

    return l->next_data[turn_of(l, l->n_out)];
}

int ddp_call_pull_fd(const struct ddp_call *x)
{
    const struct ddp_links *l = x->l;

    return l->prev_data[turn_of(l, l->n_in)];
}

/* At most n bytes, and what is left of the stripe that begins before `at`. */
static size_t within(const struct ddp_links *l, uint64_t at, size_t n)
{
    size_t left = STRIPE - (size_t)(at % STRIPE);

    return l->n_data > 1 && n > left ? left : n;
}

static const uint8_t *place_of(const struct ddp_call *x,
                               const struct ddp_block *b)
{
    switch (b->place) {
    case DDP_IN:
        return (const uint8_t *)x->q->send + b->at;
    case DDP_TMP:
        return x->tmp + b->at;
    case DDP_OUT:
        break;
    }
    return (const uint8_t *)x->q->recv + b->at;
}

/* Bytes of block b, of step n_sent, that may go now: this rank's own, or
 * those that have come. */
static size_t sendable(const struct ddp_call *x, const struct ddp_block *b)
{
    long needs = ddp_schedule_needs(&x->schedule, x->n_sent);

    if ((long)x->n_got > needs)
        return b->len - x->sent;
    if ((long)x->n_got == needs && x->got > x->sent)
        return x->got - x->sent;
    return 0;
}

/* Bytes of block b, of step n_got, that there is room for: where it is a slot
 * that a block is still being sent from, only what has been sent. */
static size_t room(const struct ddp_call *x, const struct ddp_block *b)
{
    size_t end = b->len;

    if (x->schedule.has_slots && x->n_got > 0 && b->place == DDP_TMP &&
        x->n_sent < x->n_got) {
        if (x->n_sent < x->n_got - 1)
            end = 0;
        else if (x->sent < end)
            end = x->sent;
    }
    return end > x->got ? end - x->got : 0;
}

/* Go on to the first step that has bytes to send; false where none has. */
static bool find_send(struct ddp_call *x, struct ddp_block *ret)
{
    for (; x->n_sent < x->schedule.n_send; x->n_sent++, x->sent = 0) {
        ddp_schedule_send(&x->schedule, x->n_sent, ret);
        if (x->sent < ret->len)
            return true;
    }
    return false;
}

static bool find_recv(struct ddp_call *x, struct ddp_block *ret)
{
    for (; x->n_got < x->schedule.n_recv; x->n_got++, x->got = 0) {
        ddp_schedule_recv(&x->schedule, x->n_got, ret);
        if (x->got < ret->len)
            return true;
    }
    return false;
}

bool ddp_call_has_sent(struct ddp_call *x)
{
    struct ddp_block b;

    return !find_send(x, &b);
}

bool ddp_call_has_got(struct ddp_call *x)
{
    struct ddp_block b;

    return !find_recv(x, &b);
}

bool ddp_call_can_push(struct ddp_call *x)
{
    struct ddp_block b;

    return find_send(x, &b) && sendable(x, &b) > 0;
}

bool ddp_call_can_pull(struct ddp_call *x)
{
    struct ddp_block b;

    return x->prev.has_call && find_recv(x, &b) &&
           room(x, &b) > x->n_scratch;
}

int ddp_call_push(struct ddp_call *x)
{
    struct ddp_links *l = x->l;
    struct ddp_block b;
    size_t n, all = 0;

    while (all < PUSH_MAX && find_send(x, &b) && (n = sendable(x, &b)) > 0) {
        size_t ask = within(l, l->n_out, n < PUSH_MAX ? n : PUSH_MAX);
        ssize_t did = send(ddp_call_push_fd(x), place_of(x, &b) + x->sent,
                           ask, MSG_NOSIGNAL);

        if (did < 0 && errno == EINTR)
            continue;
        if (did < 0)
            return errno == EAGAIN ? 0 : -1;
        x->sent += (size_t)did;
        x->n_moved += (uint64_t)did;
        l->n_out += (uint64_t)did;
        all += (size_t)did;
        if ((size_t)did < ask)
            break;
    }
    return 0;
}

/* Combine the elements that lie in the scratch; keep a torn one. */
static void combine(struct ddp_call *x, const struct ddp_block *b)
{
    const struct ddp_request *q = x->q;
    size_t n = x->n_scratch / q->width, bytes = n * q->width;
    const uint8_t *own = (const uint8_t *)q->send + b->own + x->got;
    uint8_t *out = (uint8_t *)(uintptr_t)place_of(x, b) + x->got;

    ddp_reduce(q->type, q->op, out, own, x->c->scratch, n);
    if (b->is_last && q->op == DDP_AVG)
        ddp_divide(q->type, out, out, n, x->schedule.size);
    x->got += bytes;
    x->n_scratch -= bytes;
    memmove(x->c->scratch, x->c->scratch + bytes, x->n_scratch);
}

/* One read from the rank before. 1: there may be more; 0: not now; -1: the
 * connection ended. */
static int pull_once(struct ddp_call *x, const struct ddp_block *b)
{
    size_t n = room(x, b);
    uint8_t *to;
    ssize_t did;

    if (b->reduce) {
        to = x->c->scratch + x->n_scratch;
        n -= x->n_scratch;
        if (n > DDP_SCRATCH - x->n_scratch)
            n = DDP_SCRATCH - x->n_scratch;
    } else {
        to = (uint8_t *)(uintptr_t)place_of(x, b) + x->got;
    }
    n = within(x->l, x->l->n_in, n);
    do
        did = recv(ddp_call_pull_fd(x), to, n, 0);
    while (did < 0 && errno == EINTR);
    if (did < 0 && errno == EAGAIN)
        return 0;
    if (did <= 0)
        return -1;
    x->n_moved += (uint64_t)did;
    x->l->n_in += (uint64_t)did;
    if (b->reduce) {
        x->n_scratch += (size_t)did;
        combine(x, b);
    } else {
        x->got += (size_t)did;
    }
    return (size_t)did == n;
}

int ddp_call_pull(struct ddp_call *x)
{
    uint64_t began = x->n_moved;
    struct ddp_block b;

    while (ddp_call_can_pull(x) && find_recv(x, &b)) {
        int rc = pull_once(x, &b);

        if (rc <= 0)
            return rc;
        /* What came in can go on: large blocks take turns. */
        if (b.len >= DDP_SCRATCH && x->n_moved - began >= DDP_SCRATCH / 2)
            break;
    }
    return 0;
}
