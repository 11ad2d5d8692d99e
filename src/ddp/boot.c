/* boot: see boot.h; failures, and the ring connections. */
#include "ddp/boot.h"
#include "ddp/clock.h"
#include "ddp/fault.h"
#include "ddp/guests.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_MS 1000 /* Until rank 0 has said why others fail. */

enum { CONTROL, DATA, N_CHANNELS = DATA + DDP_SOCKETS_MAX };

struct ringing {
    struct ddp_boot *b;
    struct ddp_conn out[N_CHANNELS]; /* To the next rank. */
    bool is_connected[N_CHANNELS];
    struct ddp_conn in[N_CHANNELS]; /* From the one before. */
    struct ddp_guests guests;
    bool is_ready, is_go;
    bool has_memory;   /* Rank 0: all that are ready have it; later: all. */
    unsigned n_ready;  /* Rank 0: how many others are. */
    uint8_t *readies;  /* Rank 0: which. */
    struct pollfd *fds;
};

/* Connections each way. */
static unsigned channels(const struct ringing *r)
{
    return DATA + r->b->n_sockets;
}

static void tell_all(struct ddp_boot *b, const struct ddp_frame *f)
{
    for (unsigned i = 0; i < b->n_conns; i++)
        (void)ddp_conn_put(&b->conns[i], f);
}

int ddp_boot_fail(struct ddp_boot *b, int code, int peer, const char *fmt, ...)
{
    char text[sizeof b->err->text];
    struct ddp_frame f;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)ddp_fault(b->err, code, b->conf->rank, peer, "%s", text);
    ddp_fault_put(b->err, &f);
    tell_all(b, &f);
    return code;
}

int ddp_boot_relay(struct ddp_boot *b, const struct ddp_frame *fault)
{
    if (b->conf->rank == 0)
        tell_all(b, fault);
    return ddp_fault_take(b->err, b->conf->rank, fault);
}

/* The last word of a rank whose connection to rank 0 has ended: false: it has
 * said nothing that tells why. */
static bool has_told(struct ddp_conn *c, struct ddp_frame *ret)
{
    while (c->fd >= 0 && ddp_conn_get(c, ret) == DDP_GOT_FRAME)
        if (ret->kind == DDP_FAULT)
            return true;
    return false;
}

int ddp_boot_lost(struct ddp_boot *b, int rank, const char *when)
{
    unsigned n = b->conf->rank == 0 ? ddp_lives_look(&b->lives) : 0;
    struct ddp_frame f;

    for (unsigned i = 0; i < n; i++) {
        struct ddp_conn *c = &b->conns[b->lives.ended[i] - 1];

        if (c->fd < 0 && c->rank != rank)
            continue; /* It had left before, and may come back. */
        if (has_told(c, &f))
            return ddp_boot_relay(b, &f);
        rank = c->rank;
        break;
    }
    return ddp_boot_fail(b, DDP_EPEER, rank, "rank %d %s", rank, when);
}

static int before(const struct ddp_conf *conf)
{
    return (conf->rank + conf->size - 1) % conf->size;
}

static int after(const struct ddp_conf *conf)
{
    return (conf->rank + 1) % conf->size;
}

/* Whether rank 0 tells within a moment why the job has failed. */
static bool is_told(struct ddp_boot *b, struct ddp_frame *ret)
{
    struct ddp_conn *root = &b->conns[0];
    uint64_t now = ddp_now(), until = now + TOLD_MS;

    for (; b->conf->rank > 0; now = ddp_now()) {
        struct pollfd p = {.fd = root->fd, .events = POLLIN};

        if (has_told(root, ret))
            return true;
        if (root->fd < 0 || now >= until)
            return false;
        (void)poll(&p, 1, ddp_until(now, until, TOLD_MS));
    }
    return false;
}

/* It may be gone because another one was: then rank 0 has told both. */
static int unreachable(struct ringing *r, int error)
{
    char where[DDP_ADDR_TEXT];
    const struct ddp_conf *conf = r->b->conf;
    int peer = ddp_socket_is_shortage(error) ? conf->rank : after(conf);
    struct ddp_frame f;

    if (is_told(r->b, &f))
        return ddp_boot_relay(r->b, &f);
    return ddp_boot_fail(r->b, DDP_ESYSTEM, peer, "rank %d cannot reach rank "
                         "%d at %s: %s", conf->rank, after(conf),
                         ddp_addr_text(&r->b->next, where),
                         ddp_socket_error(error));
}

static int start_out(struct ringing *r)
{
    for (unsigned i = 0; i < channels(r); i++) {
        int fd = ddp_socket_connect(&r->b->next);

        if (fd < 0)
            return unreachable(r, -fd);
        ddp_conn_open(&r->out[i], fd, after(r->b->conf));
    }
    return 0;
}

/* Connections to the next rank: introduce them once they stand. */
static int step_out(struct ringing *r, const struct pollfd *p)
{
    struct ddp_frame f = {.kind = DDP_RING,
                          .rank = (uint32_t)r->b->conf->rank,
                          .to = (uint32_t)after(r->b->conf)};

    memcpy(f.token, r->b->token, sizeof f.token);
    for (unsigned i = 0; i < channels(r); i++) {
        int rc;

        if (r->is_connected[i] || !p[i].revents)
            continue;
        rc = ddp_socket_connected(r->out[i].fd);
        if (rc)
            return unreachable(r, -rc);
        r->is_connected[i] = true;
        f.channel = i;
        if (ddp_conn_put(&r->out[i], &f) || r->out[i].out_len > 0)
            return unreachable(r, EPIPE);
    }
    return 0;
}

/* True where the frame introduces a connection of the rank before this. */
static bool introduces(const struct ringing *r, const struct ddp_frame *f)
{
    return f->kind == DDP_RING && f->channel < channels(r) &&
           !memcmp(f->token, r->b->token, sizeof f->token) &&
           f->rank == (uint32_t)before(r->b->conf) &&
           f->to == (uint32_t)r->b->conf->rank && r->in[f->channel].fd < 0;
}

static void step_in(struct ringing *r)
{
    for (unsigned i = r->guests.n; i-- > 0;) {
        struct ddp_conn *c = &r->guests.at[i];
        struct ddp_frame f;
        enum ddp_got got = ddp_conn_get(c, &f);

        if (got == DDP_GOT_NONE)
            continue;
        if (got == DDP_GOT_FRAME && introduces(r, &f)) {
            r->in[f.channel] = *c;
            r->in[f.channel].rank = before(r->b->conf);
            c->fd = -1;
        }
        ddp_guests_drop(&r->guests, i);
    }
    ddp_guests_expire(&r->guests, ddp_now());
    ddp_guests_accept(&r->guests, r->b->ring_fd, ddp_now());
}

/* READY, GO or bad news on the connections that ranks gathered on. */
static int step_boot(struct ringing *r)
{
    struct ddp_boot *b = r->b;

    for (unsigned i = 0; i < b->n_conns && !r->is_go; i++) {
        struct ddp_conn *c = &b->conns[i];
        struct ddp_frame f;
        enum ddp_got got = ddp_conn_get(c, &f);

        if (got == DDP_GOT_NONE)
            continue;
        if (got == DDP_GOT_FRAME && f.kind == DDP_FAULT)
            return ddp_boot_relay(b, &f);
        if (got == DDP_GOT_FRAME && f.kind == DDP_GO && b->conf->rank > 0) {
            r->is_go = true;
            r->has_memory = f.shm == 1;
            b->has_pairs = f.pairs == 1;
        } else if (got == DDP_GOT_FRAME && f.kind == DDP_READY &&
                   b->conf->rank == 0 && !r->readies[i]) {
            r->readies[i] = 1;
            r->n_ready++;
            r->has_memory = r->has_memory && f.shm == 1;
            b->has_pairs = b->has_pairs && f.pairs == 1;
        } else {
            return ddp_boot_lost(b, c->rank, "closed the connection while the "
                                 "ring was made");
        }
    }
    return 0;
}

static bool is_connected(const struct ringing *r)
{
    for (unsigned i = 0; i < channels(r); i++)
        if (!r->is_connected[i])
            return false;
    return true;
}

static bool is_accepted(const struct ringing *r)
{
    for (unsigned i = 0; i < channels(r); i++)
        if (r->in[i].fd < 0)
            return false;
    return true;
}

/* Say READY once, and on rank 0 GO once all are. */
static void step_ready(struct ringing *r)
{
    struct ddp_frame f = {.kind = DDP_READY, .pairs = 1,
                          .shm = r->b->shm != NULL};

    if (!r->is_ready && is_connected(r) && is_accepted(r)) {
        r->is_ready = true;
        if (r->b->conf->rank > 0)
            tell_all(r->b, &f);
    }
    if (r->b->conf->rank > 0 || !r->is_ready || r->n_ready < r->b->n_conns)
        return;
    r->is_go = true;
    f.kind = DDP_GO;
    f.shm = r->has_memory;
    f.pairs = r->b->has_pairs;
    tell_all(r->b, &f); /* A rank that it does not reach is dead: the ring
                         * will tell. */
}

/* The rank before cannot get in for want of room here: said while the others
 * wait, as they cannot know why. */
static bool is_too_short(const struct ringing *r)
{
    return is_connected(r) && !r->is_ready && ddp_guests_is_short(&r->guests) &&
           ddp_now() + r->b->conf->timeout_ms / 2 >= r->b->deadline;
}

static int ring_late(struct ringing *r)
{
    const struct ddp_conf *conf = r->b->conf;
    int left = ddp_until(ddp_now(), r->b->deadline, INT_MAX);
    double s = ((double)conf->timeout_ms - left) / 1000;
    char note[DDP_GUESTS_NOTE];
    struct ddp_frame f;
    unsigned first = 0;

    if (!is_connected(r))
        return unreachable(r, ETIMEDOUT);
    (void)ddp_guests_note(&r->guests, note);
    if (!r->is_ready) /* Whoever could not accept has itself to blame. */
        return ddp_boot_fail(r->b, DDP_ETIMEDOUT,
                             *note ? conf->rank : before(conf), "rank %d has "
                             "heard nothing from rank %d within %.1f s while "
                             "the ring was made%s", conf->rank, before(conf),
                             s, note);
    if (conf->rank > 0)
        return is_told(r->b, &f)
                   ? ddp_boot_relay(r->b, &f)
                   : ddp_boot_fail(r->b, DDP_ETIMEDOUT, 0, "rank 0 has not "
                                   "said within %.1f s that the ring "
                                   "stands", s);
    /* One that hangs keeps the next one waiting, but that comes after it. */
    while (first + 1 < r->b->n_conns && r->readies[first])
        first++;
    return ddp_boot_fail(r->b, DDP_ETIMEDOUT, (int)first + 1, "%u of %d ranks "
                         "have not connected to their neighbours within %.1f "
                         "s; the first of them is rank %u",
                         r->b->n_conns - r->n_ready, conf->size, s, first + 1);
}

static int ring_turn(struct ringing *r)
{
    struct ddp_boot *b = r->b;
    struct pollfd *p = r->fds;
    uint64_t now = ddp_now();
    int ms = ddp_until(now, b->deadline, DDP_BOOT_TICK_MS), rc;
    unsigned n = 0;

    for (unsigned i = 0; i < channels(r); i++)
        p[n++] = (struct pollfd){.fd = r->is_connected[i] ? -1 : r->out[i].fd,
                                 .events = POLLOUT};
    n += ddp_guests_poll(&r->guests, b->ring_fd, p + n, now, &ms);
    for (unsigned i = 0; i < b->n_conns; i++)
        p[n++] = (struct pollfd){.fd = b->conns[i].fd,
                                 .events = ddp_conn_events(&b->conns[i])};
    (void)poll(p, n, ms);
    rc = step_boot(r);
    if (!rc)
        rc = step_out(r, p);
    if (rc)
        return rc;
    step_in(r);
    step_ready(r);
    if (!r->is_go && (ddp_now() >= b->deadline || is_too_short(r)))
        return ring_late(r);
    return 0;
}

static void give_links(struct ringing *r, struct ddp_links *ret)
{
    ret->prev = r->in[CONTROL];
    ret->next = r->out[CONTROL];
    ret->n_data = r->b->n_sockets;
    for (unsigned i = 0; i < ret->n_data; i++) {
        ret->prev_data[i] = r->in[DATA + i].fd;
        ret->next_data[i] = r->out[DATA + i].fd;
        ddp_socket_keep_short(ret->next_data[i]);
    }
    for (unsigned i = 0; i < N_CHANNELS; i++)
        r->in[i].fd = r->out[i].fd = -1;
}

int ddp_boot_ring(struct ddp_boot *b, struct ddp_links *ret)
{
    struct ringing *r = calloc(1, sizeof *r);
    int rc = 0;

    if (r) {
        r->b = b;
        r->has_memory = b->shm != NULL;
        ddp_guests_init(&r->guests, DDP_GUESTS_MAX);
        b->has_pairs = b->conf->rank == 0; /* Others hear of it. */
        r->fds = calloc(N_CHANNELS + 1 + DDP_GUESTS_MAX + b->n_conns,
                        sizeof *r->fds);
        r->readies = calloc(b->n_conns, 1);
        for (unsigned i = 0; i < N_CHANNELS; i++)
            r->in[i].fd = r->out[i].fd = -1;
    }
    if (!r || !r->fds || !r->readies)
        rc = ddp_boot_fail(b, DDP_ENOMEM, -1, "out of memory");
    if (!rc)
        rc = start_out(r);
    while (!rc && !r->is_go)
        rc = ring_turn(r);
    if (!rc)
        give_links(r, ret);
    if (!rc && !r->has_memory) {
        ddp_shm_free(b->shm);
        b->shm = NULL;
    }
    for (unsigned i = 0; r && i < N_CHANNELS; i++) {
        ddp_conn_close(&r->in[i]);
        ddp_conn_close(&r->out[i]);
    }
    if (r) {
        ddp_guests_end(&r->guests);
        free(r->fds);
        free(r->readies);
    }
    free(r);
    return rc;
}
