/* boot: how the ranks of a job find each other (ddp_init).
 *
 * Happy path: rank 0 listens at MASTER_ADDR:MASTER_PORT; each other rank
 * connects, listens for its neighbour on the address that this connection
 * uses, and says HELLO; rank 0 answers WELCOME; once all are there rank 0
 * closes its listener and sends each rank a TABLE with its next rank's
 * address; everyone connects to the next rank (once for control, and for
 * data) and accepts the rank before it; READY to rank 0; GO from rank 0; the
 * connections to rank 0 are closed. Where all are on one host, TABLE also
 * tells of shared memory, which is used where all say that they have it.
 * What may fail: the name does not resolve yet, nobody listens yet, a
 * stranger or an older attempt listens there: tried again until the deadline.
 * A stranger or an older attempt connects: refused, nobody else notices.
 * World sizes differ, a rank dies, two ranks cannot reach each other: FAULT
 * to rank 0 and from it to all; all fail with one text. */
#ifndef DDP_BOOT_H
#define DDP_BOOT_H

#include "ddp/conf.h"
#include "ddp/conn.h"
#include "ddp/lives.h"
#include "ddp/pair.h"
#include "ddp/shm.h"

/* While ranks are missing, rank 0 says so to those who wait this often. */
#define DDP_BOOT_TICK_MS 1000

/* What a neighbour said during one call that is about the next one, as it
 * may be one call ahead. */
struct ddp_ahead {
    bool has_call;
    struct ddp_frame call;
    bool said_bye; /* It has left by ddp_free. */
};

/* Connections to the neighbours in a ring. Control carries frames both
 * ways, data elements one way: from prev to here, from here to next. Where
 * there are several for data, stripes of their bytes take turns on them. Pairs
 * are for small calls, where all ranks have them: else there are none. */
struct ddp_links {
    unsigned seat, seats; /* This rank's place in the ring; how many it has. */
    struct ddp_conn prev, next;
    struct ddp_ahead prev_ahead, next_ahead;
    unsigned n_data;
    int prev_data[DDP_SOCKETS_MAX], next_data[DDP_SOCKETS_MAX];
    uint64_t n_in, n_out; /* Bytes of data so far. */
    struct ddp_pair *pairs;
    unsigned n_pairs;
};

struct ddp_boot {
    const struct ddp_conf *conf;
    uint64_t deadline;
    struct ddp_error *err;
    struct ddp_conn *conns; /* Rank 0: [r - 1] is rank r; else [0] is rank 0. */
    struct ddp_lives lives; /* Rank 0: of conns. */
    struct ddp_addr *listens; /* Rank 0: [r - 1] is where rank r listens. */
    unsigned n_conns;
    int ring_fd;            /* Listens for the rank before this one. */
    struct ddp_addr next;   /* Where the next one listens. */
    uint8_t token[DDP_TOKEN];
    uint8_t host[DDP_TOKEN]; /* Of this rank; zeros: shares no memory. */
    unsigned n_sockets;      /* For data, between two neighbours. */
    unsigned n_elsewhere;    /* Rank 0: ranks of other hosts. */
    bool has_pairs;          /* All will make pairs: small.h. */
    struct ddp_shm *shm;     /* NULL: this rank has none, or not all have. */
};

/* Rank 0's part up to TABLE, and the others' part. Each fills conns, ring_fd,
 * next and token; on failure all that are connected have been told. */
int ddp_boot_gather(struct ddp_boot *b);
int ddp_boot_join(struct ddp_boot *b);

/* Listen where the others look for rank 0; waits while the port is held. */
int ddp_boot_listen(struct ddp_boot *b, int *ret_fd, struct ddp_addr *ret_at);

/* The rest: the ring. On success *ret is the caller's. */
int ddp_boot_ring(struct ddp_boot *b, struct ddp_links *ret);

/* Fill *b->err, tell all in b->conns, return `code`. */
int ddp_boot_fail(struct ddp_boot *b, int code, int peer, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The connection to a rank has ended: that rank is to blame, or on rank 0 the
 * one whose connection ended before. `when` ends the sentence. */
int ddp_boot_lost(struct ddp_boot *b, int rank, const char *when);

/* The same for a FAULT that came: from rank 0 it goes on to all. */
int ddp_boot_relay(struct ddp_boot *b, const struct ddp_frame *fault);

#endif
