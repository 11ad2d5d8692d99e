/* barrier_guests: the connections of pod 0 that are not admitted yet, in the
 * order in which they were accepted.
 *
 * Pure. A guest is the pod 0 side of a handshake: until its HELLO (with a
 * token: its proof) is accepted it may as well be a stranger. The table is
 * bounded, and so is the share of one address; the oldest has to go. Nothing
 * here looks at more than one guest at a time. */
#ifndef RENDEZVOUS_BARRIER_GUESTS_H
#define RENDEZVOUS_BARRIER_GUESTS_H

#include "rendezvous/auth.h"
#include "rendezvous/wire.h"

#include <stdbool.h>
#include <stdint.h>

#define BAR_NO_GUEST UINT32_MAX
#define BAR_BUCKETS 256 /* Addresses in one bucket share one share. */

struct bar_guest {
    uint64_t came_ms;
    uint32_t conn;
    uint32_t older, newer;           /* Of all; `newer` chains free ones. */
    uint32_t older_here, newer_here; /* Of the same bucket. */
    uint16_t bucket;
    uint16_t hello_len; /* 0: no HELLO yet, or none to be proved. */
    uint8_t hello[WIRE_GUEST_MAX];
    uint8_t script[AUTH_SCRIPT];
};

struct bar_queue {
    uint32_t oldest, newest, n;
};

struct bar_guests {
    struct bar_guest *at; /* n_max; borrowed. */
    uint32_t n_max, share;
    uint32_t free, n_fresh; /* Used before; never used: from here on. */
    struct bar_queue all, of[BAR_BUCKETS];
};

void bar_guests_init(struct bar_guests *g, struct bar_guest *at, uint32_t n);

/* Who must go before a guest from `addr` can be added; BAR_NO_GUEST: nobody. */
uint32_t bar_guests_surplus(const struct bar_guests *g, const char *addr);
/* There is room for it. Returns its number. */
uint32_t bar_guests_add(struct bar_guests *g, uint64_t now_ms, uint32_t conn,
                        const char *addr);
void bar_guests_remove(struct bar_guests *g, uint32_t guest);

#endif
