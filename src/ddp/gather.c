/* gather: rank 0's part of boot.h, up to the TABLE frames. */
#include "ddp/boot.h"
#include "ddp/clock.h"
#include "ddp/fault.h"
#include "ddp/guests.h"
#include "ddp/hello.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define LINGER_MS 2000 /* After a failure, for those who come late. */

struct gather {
    struct ddp_boot *b;
    int fd;
    struct ddp_addr at; /* Where fd listens. */
    unsigned n_here;
    bool has_failed; /* Late guests are only told so, and count as here. */
    uint64_t next_tick;
    char note[DDP_FRAME_TEXT_MAX]; /* The last one who was refused. */
    struct ddp_guests guests; /* Who have not said HELLO yet. */
    struct pollfd fds[]; /* Listener, guests, b->conns. */
};

/* Say no to guest i. `retry`: it may belong to another attempt or job, so
 * that its own job may still come up elsewhere or later. */
static void refuse(struct gather *g, unsigned i, int code, bool retry,
                   int peer, const char *text)
{
    struct ddp_frame f = {.kind = DDP_REFUSE, .code = (uint32_t)-code,
                          .retry = retry, .peer = (uint32_t)peer};
    struct ddp_addr from;
    char where[DDP_ADDR_TEXT] = "?";

    strncat(f.text, text, sizeof f.text - 1);
    (void)ddp_conn_put(&g->guests.at[i], &f);
    if (ddp_addr_remote(g->guests.at[i].fd, &from))
        (void)ddp_addr_text(&from, where);
    (void)snprintf(g->note, sizeof g->note, "; refused %s: %.300s", where,
                   text);
    ddp_guests_drop(&g->guests, i);
}

/* Guest i has said HELLO. An error only where the whole job must fail. */
static int admit(struct gather *g, unsigned i, const struct ddp_frame *f)
{
    struct ddp_frame welcome = {.kind = DDP_WELCOME};
    char why[DDP_FRAME_TEXT_MAX];
    enum ddp_hello_verdict verdict = ddp_hello_check(g->b->conf, f, why);
    struct ddp_conn *c;

    if (verdict != DDP_HELLO_OTHER && g->has_failed) {
        refuse(g, i, g->b->err->code, false, g->b->err->peer, g->b->err->text);
        g->n_here++;
        return 0;
    }
    if (verdict == DDP_HELLO_OTHER || verdict == DDP_HELLO_FATAL) {
        refuse(g, i, DDP_EMISMATCH, verdict == DDP_HELLO_OTHER, (int)f->rank,
               why);
        if (verdict == DDP_HELLO_OTHER)
            return 0;
        g->n_here++; /* It knows. */
        return ddp_boot_fail(g->b, DDP_EMISMATCH, (int)f->rank, "%s", why);
    }
    if (verdict == DDP_HELLO_FITS && g->b->conns[f->rank - 1].fd >= 0) {
        (void)snprintf(why, sizeof why, "RANK is %u on two processes",
                       (unsigned)f->rank);
        verdict = DDP_HELLO_CLAIMED;
    }
    if (verdict == DDP_HELLO_CLAIMED) {
        /* One that scans may have moved on from here and come back. */
        refuse(g, i, DDP_EINVAL, g->b->conf->n_ports > 1, (int)f->rank, why);
        return 0;
    }
    c = &g->b->conns[f->rank - 1];
    *c = g->guests.at[i];
    c->rank = (int)f->rank;
    g->guests.at[i].fd = -1;
    ddp_guests_drop(&g->guests, i);
    (void)ddp_conn_put(c, &welcome); /* If it fails, the next read tells. */
    g->b->listens[f->rank - 1] = f->addr;
    g->b->n_elsewhere += memcmp(f->host, g->b->host, sizeof f->host) != 0;
    ddp_lives_conn(&g->b->lives, c->rank, c->fd);
    g->n_here++;
    g->next_tick = 0;
    return 0;
}

/* Backwards, since those behind a guest that goes move up. */
static int hear_guests(struct gather *g)
{
    for (unsigned i = g->guests.n; i-- > 0;) {
        struct ddp_frame f;
        struct ddp_conn *c = &g->guests.at[i];
        enum ddp_got got = ddp_conn_get(c, &f);

        if (got == DDP_GOT_FRAME && f.kind == DDP_HELLO) {
            int rc = admit(g, i, &f);

            if (rc)
                return rc;
        } else if (got == DDP_GOT_BAD && c->version) {
            char why[96];

            (void)snprintf(why, sizeof why, "the protocol of libddp is %d on "
                           "rank 0 but %u there", DDP_FRAME_VERSION,
                           c->version);
            refuse(g, i, DDP_EMISMATCH, true, -1, why);
        } else if (got != DDP_GOT_NONE) {
            ddp_guests_drop(&g->guests, i);
        }
    }
    ddp_guests_expire(&g->guests, ddp_now());
    return 0;
}

/* Ranks that are here already: only bad news can come. */
static int hear_ranks(struct gather *g)
{
    for (unsigned i = 0; i < g->b->n_conns; i++) {
        struct ddp_conn *c = &g->b->conns[i];
        struct ddp_frame f;
        enum ddp_got got = c->fd < 0 ? DDP_GOT_NONE : ddp_conn_get(c, &f);

        if (got == DDP_GOT_NONE)
            continue;
        if (got == DDP_GOT_FRAME && f.kind == DDP_FAULT)
            return ddp_boot_relay(g->b, &f);
        if (g->b->conf->n_ports == 1)
            return ddp_boot_lost(g->b, c->rank, "left while the job was "
                                 "gathering");
        ddp_conn_close(c);
        g->b->n_elsewhere = g->b->conf->n_ports; /* Not worth counting. */
        g->n_here--; /* It scans ports, and may have moved on too soon. */
    }
    return 0;
}

/* Tell those who wait how many are missing, so that they can say it too. */
static void tell_missing(struct gather *g, uint64_t now)
{
    struct ddp_frame f = {.kind = DDP_WAITING, .peer = UINT32_MAX};

    if (now < g->next_tick || g->n_here == g->b->n_conns)
        return;
    g->next_tick = now + DDP_BOOT_TICK_MS;
    f.n = g->b->n_conns - g->n_here;
    for (unsigned i = g->b->n_conns; i-- > 0;)
        if (g->b->conns[i].fd < 0)
            f.peer = i + 1;
    for (unsigned i = 0; i < g->b->n_conns; i++)
        (void)ddp_conn_put(&g->b->conns[i], &f);
}

static int gather_late(struct gather *g)
{
    char list[128] = "", where[DDP_ADDR_TEXT], note[DDP_GUESTS_NOTE];
    int first = -1;
    size_t len = 0;

    for (unsigned i = 0; i < g->b->n_conns && len < sizeof list - 16; i++) {
        if (g->b->conns[i].fd >= 0)
            continue;
        if (first < 0)
            first = (int)i + 1;
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%u",
                                len ? ", " : "", i + 1);
    }
    return ddp_boot_fail(g->b, DDP_ETIMEDOUT, first,
                         "%u of %d ranks have not come to %s within %.1f s: "
                         "%s%s%s%s", g->b->n_conns - g->n_here,
                         g->b->conf->size,
                         ddp_addr_text(&g->at, where),
                         (double)g->b->conf->timeout_ms / 1000, list,
                         len >= sizeof list - 16 ? " ..." : "",
                         ddp_guests_note(&g->guests, note), g->note);
}

static int gather_turn(struct gather *g)
{
    struct pollfd *p = g->fds;
    uint64_t now = ddp_now();
    int ms = ddp_until(now, g->b->deadline, DDP_BOOT_TICK_MS), rc;
    unsigned n = ddp_guests_poll(&g->guests, g->fd, p, now, &ms);

    for (unsigned i = 0; i < g->b->n_conns; i++)
        p[n++] = (struct pollfd){.fd = g->b->conns[i].fd, .events = POLLIN};
    (void)poll(p, n, ms);
    rc = hear_ranks(g);
    if (!rc)
        rc = hear_guests(g);
    if (rc)
        return rc;
    ddp_guests_accept(&g->guests, g->fd, ddp_now());
    tell_missing(g, ddp_now());
    return 0;
}

/* The job has failed early: others may still be on their way, and would
 * knock until their deadline. */
static void gather_linger(struct gather *g)
{
    uint64_t until = ddp_now() + LINGER_MS;

    g->has_failed = true;
    for (unsigned i = 0; i < g->b->n_conns; i++)
        ddp_conn_close(&g->b->conns[i]); /* They have been told. */
    if (until > g->b->deadline)
        until = g->b->deadline;
    g->b->deadline = until;
    while (g->n_here < g->b->n_conns && ddp_now() < until)
        (void)gather_turn(g);
}

/* Memory for all, where all are on this host. */
static void offer_memory(struct ddp_boot *b, struct ddp_frame *table)
{
    static const uint8_t none[DDP_TOKEN];

    if (b->n_elsewhere > 0 || b->conf->size > DDP_SHM_RANKS_MAX ||
        !memcmp(b->host, none, sizeof none))
        return;
    b->shm = ddp_shm_create((unsigned)b->conf->size, b->token);
    if (!b->shm)
        return;
    table->shm_pid = (uint32_t)getpid();
    table->shm_fd = (uint32_t)b->shm->fd;
}

/* All are here: listen for rank size - 1 on the address that it came to, and
 * tell everybody where the next one listens. */
static int gather_deal(struct gather *g)
{
    struct ddp_boot *b = g->b;
    struct ddp_frame f = {.kind = DDP_TABLE};
    struct ddp_addr at;
    unsigned last = b->n_conns - 1;

    memset(&at, 0, sizeof at);
    (void)ddp_addr_local(b->conns[last].fd, &at);
    at.port = 0;
    b->ring_fd = ddp_socket_listen(&at, SOMAXCONN);
    if (b->ring_fd < 0 || !ddp_addr_local(b->ring_fd, &at))
        return ddp_boot_fail(b, DDP_ESYSTEM, -1, "cannot listen for rank %u: "
                             "%s", last + 1,
                             ddp_socket_error(b->ring_fd < 0 ? -b->ring_fd
                                                             : errno));
    if (getrandom(b->token, sizeof b->token, 0) != sizeof b->token)
        return ddp_boot_fail(b, DDP_ESYSTEM, -1, "getrandom: %s",
                             strerror(errno));
    memcpy(f.token, b->token, sizeof f.token);
    offer_memory(b, &f);
    f.sockets = b->n_sockets = b->conf->n_sockets;
    for (unsigned i = 0; i <= last; i++) {
        f.via_root = i == last;
        f.addr = i == last ? at : b->listens[i + 1];
        (void)ddp_conn_put(&b->conns[i], &f);
    }
    b->next = b->listens[0];
    if (ddp_addr_is_link_local(&b->next) && ddp_addr_local(b->conns[0].fd, &at))
        b->next.scope = at.scope;
    return 0;
}

int ddp_boot_gather(struct ddp_boot *b)
{
    size_t n_fds = 1 + DDP_GUESTS_MAX + b->n_conns;
    struct gather *g = calloc(1, sizeof *g + n_fds * sizeof g->fds[0]);
    int rc;

    if (!g)
        return ddp_boot_fail(b, DDP_ENOMEM, -1, "out of memory");
    g->b = b;
    g->fd = -1;
    ddp_guests_init(&g->guests, DDP_GUESTS_MAX);
    rc = ddp_boot_listen(b, &g->fd, &g->at);
    while (!rc && g->n_here < b->n_conns) {
        rc = gather_turn(g);
        if (!rc && g->n_here < b->n_conns && ddp_now() >= b->deadline)
            rc = gather_late(g);
    }
    if (rc && g->fd >= 0)
        gather_linger(g);
    ddp_socket_close(&g->fd);
    ddp_guests_end(&g->guests);
    if (!rc)
        rc = gather_deal(g);
    free(g);
    return rc;
}
