/* wire_walk: the fields of a frame, one after the other. Internal to wire. */
#ifndef RENDEZVOUS_WIRE_WALK_H
#define RENDEZVOUS_WIRE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A walk over the payload: writes to `out`, or reads from `in`. */
struct walk {
    bool writes;
    uint8_t *out;
    const uint8_t *in;
    size_t pos, end;
    const char *why; /* Set on the first fault; later steps do nothing. */
};

void walk_uint(struct walk *w, uint64_t *v, unsigned n);
void walk_u8(struct walk *w, uint8_t *v);
void walk_u16(struct walk *w, uint16_t *v);
void walk_u32(struct walk *w, uint32_t *v);
void walk_u64(struct walk *w, uint64_t *v);
void walk_bytes(struct walk *w, uint8_t *v, size_t n);
/* A string of at most cap - 1 bytes. What is read must already be valid, for
 * these texts end in people's terminals. */
void walk_string(struct walk *w, char *s, size_t cap);

#endif
