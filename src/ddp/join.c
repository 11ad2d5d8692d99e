/* join: the part of boot.h that ranks other than 0 play, up to TABLE. */
#include "ddp/boot.h"
#include "ddp/clock.h"
#include "ddp/fault.h"
#include "ddp/hello.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define CONNECT_MS 3000 /* For one address; then the next is tried. */
#define ANSWER_MIN_MS 1000 /* Where several ports are scanned, for one; */
#define ANSWER_MAX_MS 10000 /* doubles with each round. */
#define ROOT_SILENT_MS (3 * DDP_BOOT_TICK_MS)
#define RETRY_MIN_MS 20
#define RETRY_MAX_MS 500

enum outcome { JOINED, TRY_AGAIN, FAILED };

struct join {
    struct ddp_boot *b;
    struct ddp_conn *root;  /* To rank 0: b->conns[0]. */
    struct ddp_addr at;     /* Where rank 0 may be: being tried. */
    struct ddp_addr local;  /* This end of the connection. */
    char last[256];         /* Why the last try came to nothing. */
    uint64_t answer_ms;
    uint32_t n_missing, first_missing; /* As rank 0 said; 0: not heard. */
    uint64_t heard;                    /* When it last said that. */
};

static enum outcome again(struct join *j, const char *why)
{
    char where[DDP_ADDR_TEXT];

    (void)snprintf(j->last, sizeof j->last, "%s: %.180s",
                   ddp_addr_text(&j->at, where), why);
    ddp_conn_close(j->root);
    ddp_socket_close(&j->b->ring_fd);
    return TRY_AGAIN;
}

/* Wait until the socket of `c` is ready or `until` has come. */
static bool wait_for(const struct ddp_conn *c, short events, uint64_t until)
{
    struct pollfd p = {.fd = c->fd, .events = events};
    uint64_t now = ddp_now();

    while (now < until) {
        if (poll(&p, 1, ddp_until(now, until, 60000)) > 0)
            return true;
        now = ddp_now();
    }
    return false;
}

/* A connection to j->at, and a listener on its own end's address. */
static enum outcome reach(struct join *j)
{
    struct ddp_boot *b = j->b;
    uint64_t until = ddp_now() + CONNECT_MS;
    int fd = ddp_socket_connect(&j->at), rc;

    if (until > b->deadline)
        until = b->deadline;
    if (fd < 0)
        return again(j, ddp_socket_error(-fd));
    ddp_conn_open(j->root, fd, 0);
    if (!wait_for(j->root, POLLOUT, until))
        return again(j, "no answer to the connection attempt");
    rc = ddp_socket_connected(fd);
    if (rc)
        return again(j, strerror(-rc));
    if (!ddp_addr_local(fd, &j->local))
        return again(j, strerror(errno));
    /* A socket on loopback may connect to itself while nobody listens. */
    if (!memcmp(j->local.ip, j->at.ip, sizeof j->at.ip) &&
        j->local.port == j->at.port)
        return again(j, strerror(ECONNREFUSED));
    j->local.port = 0;
    b->ring_fd = ddp_socket_listen(&j->local, SOMAXCONN);
    if (b->ring_fd < 0)
        return again(j, ddp_socket_error(-b->ring_fd));
    return JOINED;
}

/* Where the next one listens, seen from here. */
static enum outcome take_table(struct join *j, const struct ddp_frame *f)
{
    struct ddp_boot *b = j->b;
    char where[DDP_ADDR_TEXT];
    int next = (b->conf->rank + 1) % b->conf->size;

    memcpy(b->token, f->token, sizeof b->token);
    b->next = f->addr;
    b->n_sockets = f->sockets > DDP_SOCKETS_MAX ? DDP_SOCKETS_MAX
                   : f->sockets == 0            ? 1
                                                : f->sockets;
    if (f->shm_pid)
        b->shm = ddp_shm_open((unsigned)b->conf->rank, (unsigned)b->conf->size,
                              f->shm_pid, f->shm_fd, b->token);
    if (f->via_root) {
        b->next = j->at;
        b->next.port = f->addr.port;
    }
    if (ddp_addr_is_link_local(&b->next))
        b->next.scope = j->local.scope;
    if (!ddp_addr_is_loopback(&b->next) || ddp_addr_is_loopback(&j->local))
        return JOINED;
    (void)ddp_boot_fail(b, DDP_EINVAL, next, "rank %d reaches rank 0 by the "
                        "loopback address %s, where rank %d on another machine "
                        "cannot reach it: MASTER_ADDR must not be loopback on "
                        "rank %d's machine (see its /etc/hosts)", next,
                        ddp_addr_text(&b->next, where), b->conf->rank, next);
    return FAILED;
}

static enum outcome take_refusal(struct join *j, const struct ddp_frame *f)
{
    if (f->retry)
        return again(j, f->text);
    (void)ddp_fault_take(j->b->err, j->b->conf->rank, f);
    return FAILED;
}

/* Rank 0 is gone after its WELCOME, or talks nonsense. */
static enum outcome lost_root(struct join *j)
{
    char where[DDP_ADDR_TEXT];

    (void)ddp_fault(j->b->err, DDP_EPEER, j->b->conf->rank, 0, "rank 0 at %s "
                    "closed the connection while the job was gathering",
                    ddp_addr_text(&j->at, where));
    return FAILED;
}

/* HELLO has been said: follow what rank 0 answers, up to its TABLE. */
static enum outcome listen_to_root(struct join *j)
{
    struct ddp_boot *b = j->b;
    uint64_t until = b->deadline;
    bool is_welcome = false;
    struct ddp_frame f;

    if (b->conf->n_ports > 1 && until > ddp_now() + j->answer_ms)
        until = ddp_now() + j->answer_ms;
    for (;;) {
        enum ddp_got got = ddp_conn_get(j->root, &f);

        if (got == DDP_GOT_NONE) {
            if (wait_for(j->root, ddp_conn_events(j->root), until))
                continue;
            if (!is_welcome || ddp_now() < b->deadline)
                return again(j, "connected, but no answer");
            return TRY_AGAIN;
        }
        if (got == DDP_GOT_FRAME && f.kind == DDP_REFUSE)
            return take_refusal(j, &f);
        if (got == DDP_GOT_FRAME && f.kind == DDP_FAULT) {
            (void)ddp_fault_take(b->err, b->conf->rank, &f);
            return FAILED;
        }
        if (got == DDP_GOT_FRAME && f.kind == DDP_TABLE)
            return take_table(j, &f);
        if (got == DDP_GOT_FRAME && f.kind == DDP_WAITING) {
            j->n_missing = f.n;
            j->first_missing = f.peer;
            j->heard = ddp_now();
        } else if (got == DDP_GOT_FRAME && f.kind == DDP_WELCOME) {
            is_welcome = true;
            until = b->deadline;
        } else if (is_welcome) {
            return lost_root(j);
        } else if (got == DDP_GOT_EOF) {
            return again(j, j->root->error ? strerror(j->root->error)
                                           : "connection closed");
        } else {
            return again(j, "what listens there is no rank 0 of this libddp");
        }
    }
}

static enum outcome try_address(struct join *j)
{
    struct ddp_frame f;
    struct ddp_addr listens;
    enum outcome rc = reach(j);

    if (rc != JOINED)
        return rc;
    (void)ddp_addr_local(j->b->ring_fd, &listens);
    ddp_hello_put(j->b->conf, &listens, j->b->host, &f);
    (void)ddp_conn_put(j->root, &f);
    return listen_to_root(j);
}

/* One round over all addresses of the name and all ports to scan. */
static enum outcome try_all(struct join *j)
{
    const struct ddp_conf *conf = j->b->conf;
    struct ddp_addr addrs[DDP_ADDRS_MAX];
    const char *why = "";
    unsigned n = ddp_addr_resolve(conf->host, j->b->deadline, addrs, &why);

    if (n == 0)
        (void)snprintf(j->last, sizeof j->last, "MASTER_ADDR '%.120s' does "
                       "not resolve: %s", conf->host, why);
    for (unsigned p = 0; p < conf->n_ports; p++)
        for (unsigned i = 0; i < n && ddp_now() < j->b->deadline; i++) {
            enum outcome rc;

            j->at = addrs[i];
            j->at.port = (uint16_t)(conf->port + p);
            rc = try_address(j);
            if (rc != TRY_AGAIN)
                return rc;
        }
    return TRY_AGAIN;
}

static int join_late(struct join *j)
{
    const struct ddp_conf *conf = j->b->conf;
    double s = (double)conf->timeout_ms / 1000;
    char where[DDP_ADDR_TEXT];

    if (j->n_missing > 0 && ddp_now() - j->heard > ROOT_SILENT_MS)
        return ddp_boot_fail(j->b, DDP_ETIMEDOUT, 0, "rank 0 at %s is silent, "
                             "so that the job does not gather within %.1f s",
                             ddp_addr_text(&j->at, where), s);
    if (j->n_missing > 0)
        return ddp_boot_fail(j->b, DDP_ETIMEDOUT, (int)j->first_missing,
                             "%u of %d ranks have not come to rank 0 within "
                             "%.1f s; the first of them is rank %u",
                             (unsigned)j->n_missing, conf->size, s,
                             (unsigned)j->first_missing);
    return ddp_boot_fail(j->b, DDP_ETIMEDOUT, 0, "rank 0 was not found at %s "
                         "port %u within %.1f s; last try: %s", conf->host,
                         (unsigned)conf->port, s, j->last);
}

int ddp_boot_join(struct ddp_boot *b)
{
    struct join j = {.b = b, .root = &b->conns[0],
                     .answer_ms = ANSWER_MIN_MS};
    int pause = RETRY_MIN_MS;

    for (;;) {
        enum outcome rc = try_all(&j);
        uint64_t now = ddp_now();

        if (rc == JOINED)
            return 0;
        if (rc == FAILED)
            return b->err->code;
        if (now >= b->deadline)
            return join_late(&j);
        (void)poll(NULL, 0, ddp_until(now, b->deadline, pause));
        pause = pause * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : pause * 2;
        j.answer_ms *= 2;
        if (j.answer_ms > ANSWER_MAX_MS)
            j.answer_ms = ANSWER_MAX_MS;
    }
}
