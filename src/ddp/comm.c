/* comm: making and ending a communicator; see comm.h. */
#include "ddp/comm.h"
#include "ddp/clock.h"
#include "ddp/fault.h"
#include "ddp/meet.h"
#include "ddp/nccl.h"
#include "ddp/rails.h"
#include "ddp/small.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

/* What the neighbour sent meanwhile is read off, as a socket that is closed
 * with unread bytes resets its connection, last word and all. */
static void end(struct ddp_conn *conn, const struct ddp_frame *last)
{
    struct ddp_frame got;

    if (conn->fd < 0)
        return;
    (void)ddp_conn_put(conn, last);
    for (unsigned i = 0; i < 1000; i++)
        if (ddp_conn_get(conn, &got) != DDP_GOT_FRAME)
            break;
    ddp_conn_close(conn);
}

static void end_links(struct ddp_links *l, const struct ddp_frame *last)
{
    end(&l->prev, last);
    end(&l->next, last);
    for (unsigned i = 0; i < l->n_data; i++) {
        ddp_socket_close(&l->prev_data[i]);
        ddp_socket_close(&l->next_data[i]);
    }
    for (unsigned i = 0; i < l->n_pairs; i++)
        ddp_pair_end(&l->pairs[i], last);
}

void ddp_comm_end(struct ddp_comm *c, const struct ddp_frame *last)
{
    end_links(&c->links, last);
    end_links(&c->rail, last);
}

static void boot_free(struct ddp_boot *b)
{
    for (unsigned i = 0; b->conns && i < b->n_conns; i++)
        ddp_conn_close(&b->conns[i]);
    ddp_socket_close(&b->ring_fd);
    ddp_lives_free(&b->lives);
    ddp_shm_free(b->shm);
    free(b->conns);
    free(b->listens);
}

/* Watch the ranks that this one is connected to, and whose process it knows:
 * where memory is shared all of them, from the time on that all have it. */
static void watch_lives(struct ddp_comm *c)
{
    const struct ddp_links *const all[] = {&c->links, &c->rail};

    for (unsigned k = 0; k < 2; k++) {
        const struct ddp_links *l = all[k];

        if (l == &c->rail && l->seats > 0) { /* The ring is watched already. */
            ddp_lives_conn(&c->lives, l->prev.rank, l->prev.fd);
            ddp_lives_conn(&c->lives, l->next.rank, l->next.fd);
        }
        for (unsigned i = 0; i < l->n_pairs; i++)
            ddp_lives_conn(&c->lives, l->pairs[i].rank, l->pairs[i].fd);
    }
    for (unsigned r = 0; c->shm && r < c->shm->n; r++)
        ddp_lives_process(&c->lives, c->shm->world[r], c->shm->ranks[r].pid);
}

/* By the ring that stands: rails where there may be some, else pairs. */
static int connect_more(struct ddp_comm *c, const struct ddp_boot *b,
                        struct ddp_error *err)
{
    struct ddp_home *homes = calloc((size_t)c->size, sizeof *homes);
    uint64_t now = ddp_now(), timeout_ms = c->timeout_ms;
    int rc;

    /* For the calls over the ring: what is left of ddp_init's time. */
    c->timeout_ms = b->deadline > now ? b->deadline - now : 1;
    rc = homes ? ddp_meet_homes(c, b, homes, err)
                : ddp_comm_no_memory(c, err);
    if (!rc)
        rc = ddp_rails_connect(c, b, homes, err);
    if (!rc && c->rail.seats == 0)
        rc = ddp_small_connect(c, b, homes, err);
    c->timeout_ms = timeout_ms;
    c->n_calls = 0; /* Those above are not the caller's. */
    free(homes);
    return rc;
}

/* Find the others and connect to the neighbours. */
static int boot(struct ddp_comm *c, const struct ddp_conf *conf,
                struct ddp_error *err)
{
    struct ddp_boot b = {.conf = conf, .err = err, .ring_fd = -1,
                         .deadline = ddp_now() + conf->timeout_ms};
    int rc;

    if (!conf->no_shm)
        ddp_shm_host(b.host);
    ddp_lives_init(&c->lives, (unsigned)conf->size);
    if (conf->rank == 0)
        ddp_lives_init(&b.lives, (unsigned)conf->size);
    else
        b.lives.fd = -1;
    b.n_conns = conf->rank == 0 ? (unsigned)conf->size - 1 : 1;
    b.conns = calloc(b.n_conns, sizeof *b.conns);
    b.listens = calloc(b.n_conns, sizeof *b.listens);
    for (unsigned i = 0; b.conns && i < b.n_conns; i++)
        b.conns[i].fd = -1;
    if (b.conns && b.listens)
        rc = conf->rank == 0 ? ddp_boot_gather(&b) : ddp_boot_join(&b);
    else
        rc = ddp_fault(err, DDP_ENOMEM, conf->rank, -1, "out of memory");
    if (!rc)
        rc = ddp_boot_ring(&b, &c->links);
    ddp_lives_conn(&c->lives, c->links.prev.rank, c->links.prev.fd);
    ddp_lives_conn(&c->lives, c->links.next.rank, c->links.next.fd);
    if (!rc && b.shm) {
        ddp_socket_close(&b.shm->fd); /* All have it open. */
        c->shm = b.shm;
        b.shm = NULL;
    } else if (!rc && b.has_pairs) {
        rc = connect_more(c, &b, err);
    }
    if (!rc)
        watch_lives(c);
    boot_free(&b);
    return rc;
}

struct ddp_comm *ddp_comm_new(const struct ddp_conf *conf,
                              struct ddp_error *err)
{
    struct ddp_comm *c = calloc(1, sizeof *c);

    if (c) {
        c->rank = conf->rank;
        c->size = conf->size;
        c->local_rank = conf->local_rank;
        c->timeout_ms = conf->timeout_ms;
        c->links.prev.fd = c->links.next.fd = -1;
        c->rail.prev.fd = c->rail.next.fd = -1;
        c->rail.prev.rank = c->rail.next.rank = -1;
        c->links.seat = (unsigned)conf->rank;
        c->links.seats = (unsigned)conf->size;
        c->lives.fd = -1;
        atomic_init(&c->is_aborted, false);
        atomic_flag_clear(&c->busy);
        c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        c->scratch = aligned_alloc(64, DDP_SCRATCH);
    }
    if (!c || !c->scratch) {
        (void)ddp_fault(err, DDP_ENOMEM, conf->rank, -1, "out of memory");
        ddp_comm_free(c);
        return NULL;
    }
    if (c->wake_fd < 0) {
        (void)ddp_fault(err, DDP_ESYSTEM, conf->rank, -1, "eventfd: %s",
                        ddp_socket_error(errno));
        ddp_comm_free(c);
        return NULL;
    }
    ddp_nccl_look(c);
    if (conf->size > 1 && boot(c, conf, err)) {
        ddp_comm_free(c);
        return NULL;
    }
    return c;
}

void ddp_comm_tell(struct ddp_comm *c, const struct ddp_error *e)
{
    struct ddp_frame f;

    if (c->shm)
        ddp_shm_fail(c->shm, e);
    ddp_fault_put(e, &f);
    ddp_comm_end(c, &f);
}

int ddp_comm_no_memory(struct ddp_comm *c, struct ddp_error *err)
{
    (void)ddp_fault(err, DDP_ENOMEM, c->rank, -1, "out of memory");
    ddp_comm_tell(c, err);
    return err->code;
}

void ddp_comm_break(struct ddp_comm *c, const struct ddp_error *e)
{
    if (c->broken.code)
        return;
    c->broken = *e;
    ddp_comm_tell(c, e);
    ddp_nccl_free(c->nccl, true); /* What is queued may wait for others. */
    c->nccl = NULL;
}

void ddp_comm_free(struct ddp_comm *c)
{
    const struct ddp_frame bye = {.kind = DDP_BYE};

    if (!c)
        return;
    ddp_nccl_free(c->nccl, c->broken.code != 0 || atomic_load(&c->is_aborted));
    ddp_comm_end(c, &bye);
    ddp_pairs_free(&c->links);
    ddp_pairs_free(&c->rail);
    ddp_lives_free(&c->lives);
    ddp_shm_free(c->shm);
    ddp_socket_close(&c->wake_fd);
    free(c->scratch);
    free(c);
}
