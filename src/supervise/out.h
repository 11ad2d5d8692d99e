/* out: one of agent's outputs: a bounded queue and a thread that writes it.
 *
 * A reader that stalls blocks the thread, never agent. O_NONBLOCK is not
 * touched: others hold the same descriptor. One producer (the main thread). */
#ifndef SUPERVISE_OUT_H
#define SUPERVISE_OUT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUT_BYTES (1u << 20)

struct out;

/* `fd` is borrowed; `wake_fd` (an eventfd, borrowed) is written to when there
 * is room again after out_want_room(), or when a write fails. The thread
 * starts with the first byte. */
int out_new(struct out **ret, int fd, int wake_fd, struct err *e);

size_t out_room(struct out *o);
/* `len` <= out_room(). Lines that are put in one call stay together. */
void out_put(struct out *o, const char *bytes, size_t len);
/* Wake when at least `room` bytes are free. */
void out_want_room(struct out *o, size_t room);
/* True where everything was written (or given up). */
bool out_is_empty(struct out *o);
/* Wait until empty, at most `ms`, or until `stop_fd` (-1: none) is readable. */
bool out_flush(struct out *o, uint64_t ms, int stop_fd);
/* Bytes that could not be written; *ret_errno says why (0: none). */
uint64_t out_lost(struct out *o, int *ret_errno);

#endif
