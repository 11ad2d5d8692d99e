/* pair: a connection to a rank that is not only a neighbour in the ring: that
 * of small calls (small.h). Frames go both ways, and behind a CALL frame the
 * elements of that call. */
#ifndef DDP_PAIR_H
#define DDP_PAIR_H

#include "ddp/frame.h"

#include <stdbool.h>

#define DDP_SMALL_MAX (64 * 1024) /* Bytes of a call. */
#define DDP_PAIR_BUFFER (DDP_SMALL_MAX + 4 * DDP_FRAME_MAX)

struct ddp_pair {
    int fd; /* -1: not open. */
    int rank;
    bool said_bye;
    bool is_gone;  /* Its connection has ended. */
    int error;     /* With this; 0: was closed. */
    size_t in_len, out_len;
    uint8_t *in, *out; /* Of DDP_PAIR_BUFFER. */
    /* Of the call that is in progress: */
    bool is_wanted; /* Elements are to come. */
    bool was_heard; /* Anything came. */
    uint64_t heard; /* When; or when the call began. */
    int waits_for;  /* The silent rank that it waits for, or -1. */
};

/* No connection yet; 0 or -1: no memory. */
int ddp_pair_new(struct ddp_pair *p, int rank);
void ddp_pair_free(struct ddp_pair *p);

/* Say a last word, and close. */
void ddp_pair_end(struct ddp_pair *p, const struct ddp_frame *last);

/* Queue a frame and what follows it, and send what the kernel takes. -1: no
 * room, or the connection is gone. */
int ddp_pair_put(struct ddp_pair *p, const struct ddp_frame *f,
                 const void *after, size_t len);
int ddp_pair_flush(struct ddp_pair *p);

/* Read what is there, as far as there is room. True where something came or
 * the connection has ended. */
bool ddp_pair_read(struct ddp_pair *p);

/* The first frame that has come, without taking it: its length, 0 where none
 * is complete, -1 where it is none. */
int ddp_pair_peek(const struct ddp_pair *p, struct ddp_frame *ret);

/* Take n bytes off. */
void ddp_pair_take(struct ddp_pair *p, size_t n);

#endif
