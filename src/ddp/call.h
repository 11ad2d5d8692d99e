/* call: one collective in progress. */
#ifndef DDP_CALL_H
#define DDP_CALL_H

#include "ddp/beside.h"

/* A neighbour, as this call sees it. */
struct ddp_side {
    struct ddp_conn *conn;
    struct ddp_ahead *ahead;
    bool has_call;  /* Its CALL frame is in and fits. */
    bool is_gone;   /* Its connection ended; nothing more can come. */
    uint64_t heard; /* When something came from it, or the call began. */
    int waits_for;  /* The silent rank that it waits for, or -1. */
};

struct ddp_call {
    struct ddp_comm *c;
    struct ddp_links *l; /* The ring that it goes over. */
    const struct ddp_request *q;
    struct ddp_error *err;
    struct ddp_schedule schedule;
    struct ddp_frame mine; /* The CALL frame. */
    struct ddp_side prev, next;
    struct ddp_beside beside; /* Where there are rails: the other ring. */
    uint8_t *tmp;          /* DDP_TMP, or NULL. */
    unsigned n_sent, n_got;    /* Steps done, */
    size_t sent, got;          /* and bytes of the current ones. */
    size_t n_scratch;          /* Bytes of a torn element in the scratch. */
    uint64_t n_moved, n_moved_then; /* Bytes in all; at the last tick. */
    uint64_t began, deadline, tick_ms, next_tick;
    int told;                       /* What the last PING said, or -1. */
    struct ddp_side *lost; /* Its elements ended: a FAULT may tell why, */
    uint64_t lost_until;   /* until then. */
};

/* Whether elements wait to go to the next rank; whether there is room for
 * those of the rank before, and it is in this call. */
bool ddp_call_can_push(struct ddp_call *x);
bool ddp_call_can_pull(struct ddp_call *x);

/* The sockets that the next bytes go over. */
int ddp_call_push_fd(const struct ddp_call *x);
int ddp_call_pull_fd(const struct ddp_call *x);

/* Move some. 0, or -1 where the connection has ended. */
int ddp_call_push(struct ddp_call *x);
int ddp_call_pull(struct ddp_call *x);

/* Whether all elements have gone, or have come. */
bool ddp_call_has_sent(struct ddp_call *x);
bool ddp_call_has_got(struct ddp_call *x);

#endif
