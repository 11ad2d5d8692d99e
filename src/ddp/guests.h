/* guests: connections that were accepted and have not said yet who they are.
 *
 * Anybody may connect. The oldest one makes room where a table is full or the
 * process has no descriptor left; where none is left even so, nobody is
 * accepted for a moment, so that nothing ever spins. */
#ifndef DDP_GUESTS_H
#define DDP_GUESTS_H

#include "ddp/conn.h"

#include <poll.h>

#define DDP_GUESTS_MAX 64
#define DDP_GUESTS_NOTE 160
#define DDP_GUEST_MS 5000 /* Then one that has said nothing goes. */

struct ddp_guests {
    unsigned n, max;
    int error;        /* Why nobody could be accepted of late, or 0; */
    uint64_t resumes; /* and no try before. */
    int had_to_go;    /* Why one was dropped to accept another, or 0. */
    struct ddp_conn at[DDP_GUESTS_MAX]; /* The oldest one first. */
};

/* Of at most `max`. */
void ddp_guests_init(struct ddp_guests *g, unsigned max);
void ddp_guests_end(struct ddp_guests *g);

/* Guest i goes; its connection is closed, unless it was taken over. */
void ddp_guests_drop(struct ddp_guests *g, unsigned i);

/* Those that have said nothing for too long go. */
void ddp_guests_expire(struct ddp_guests *g, uint64_t now);

/* Take in who waits at the listener. */
void ddp_guests_accept(struct ddp_guests *g, int listen_fd, uint64_t now);

/* Somebody could not be accepted, or kept, for want of room. */
bool ddp_guests_is_short(const struct ddp_guests *g);

/* Why somebody may be missing, to be put behind an error: "" where all could
 * be accepted and kept. Returns `buf`. */
const char *ddp_guests_note(const struct ddp_guests *g,
                            char buf[DDP_GUESTS_NOTE]);

/* For poll: the listener and the guests, n + 1 places of p; and for how long
 * to wait, at most `ms`. */
unsigned ddp_guests_poll(const struct ddp_guests *g, int listen_fd,
                         struct pollfd *p, uint64_t now, int *ms);

#endif
