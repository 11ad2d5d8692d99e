/* meet: more connections between ranks, once the ring stands.
 *
 * Each rank tells by the ring where it listens; of two ranks that are to be
 * connected, the lower one connects and says by a RING frame which connection
 * that is. What may fail: a rank that its ring neighbours reach, but not others
 * (a firewall); so all agree by the ring whether all have all. */
#ifndef DDP_MEET_H
#define DDP_MEET_H

#include "ddp/comm.h"

/* Channels of RING frames: which connection of two ranks it is. */
enum {
    DDP_MEET_PAIR = 64, /* One of double.h, among all, */
    DDP_MEET_RAIL_PAIR, /* or on a rail. */
    DDP_MEET_UP = 128,  /* A rail's ring, from the lower rank to the higher */
    DDP_MEET_DOWN = 160 /* one, and back; control, and on: data. */
};

/* Where a rank listens, its host, and its processors, as they travel. */
struct ddp_home {
    uint8_t ip[16], port[2], host[DDP_TOKEN], processors[DDP_TOKEN];
};

struct ddp_meeting {
    int rank;
    uint32_t channel;
    int fd;            /* -1: not begun, or not yet accepted. */
    bool is_connected; /* It is the caller's. */
};

/* The homes of all ranks: room for c->size. An error where the ring broke. */
int ddp_meet_homes(struct ddp_comm *c, const struct ddp_boot *b,
                    struct ddp_home *ret, struct ddp_error *err);

/* Make n connections, all of them or none. *ret: whether all ranks have all of
 * theirs. An error only where the ring broke. */
int ddp_meet_all(struct ddp_comm *c, const struct ddp_boot *b,
                 const struct ddp_home *homes, struct ddp_meeting *m,
                 unsigned n, bool *ret, struct ddp_error *err);

/* Whether all ranks say yes. */
int ddp_meet_agree(struct ddp_comm *c, bool mine, bool *ret,
                   struct ddp_error *err);

#endif
