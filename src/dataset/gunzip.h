/* gunzip: gzip data in pieces, several members, nothing after the last. The
 * only module that sees zlib. */
#ifndef DATASET_GUNZIP_H
#define DATASET_GUNZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gunzip;

/* NULL without memory. End with gunzip_free(). */
struct gunzip *gunzip_new(void);
void gunzip_free(struct gunzip *g); /* NULL is fine. */

/* Hand over the next piece of packed data, borrowed until all of it is used:
 * call gunzip_next() until it returns no bytes. */
void gunzip_add(struct gunzip *g, const uint8_t *data, size_t len);

/* Unpack up to `cap` bytes to `out`. Returns how many; 0 where more input is
 * needed, or after a fault: see gunzip_fault(). */
size_t gunzip_next(struct gunzip *g, uint8_t *out, size_t cap);

/* What is wrong with the data so far, or NULL. `at_end`: there is no more
 * data, so a member that has not ended is a fault too. */
const char *gunzip_fault(const struct gunzip *g, bool at_end);

/* True where the fault is ours, for want of memory, and not the data's. */
bool gunzip_no_memory(const struct gunzip *g);

#endif
