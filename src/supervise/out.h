/* out: one of agent's outputs: a bounded queue and a thread that writes it.
 *
 * A reader that stalls blocks the thread, never agent. What a pipe takes at
 * once is written by the caller's thread, where the kernel can do so without
 * waiting (RWF_NOWAIT). O_NONBLOCK is not
 * touched: others hold the same descriptor. One producer (the main thread),
 * who puts whole lines: where a write fails in the midst of one, what follows
 * begins on a line of its own. */
#ifndef SUPERVISE_OUT_H
#define SUPERVISE_OUT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room of the workers; more for agent's own lines, which come through where
 * the workers' fill the queue; and more for its last words. */
#define OUT_BYTES (1u << 20)
#define OUT_AGENT_BYTES (64u << 10)
#define OUT_VERDICT_BYTES (32u << 10)

enum out_use { OUT_WORKERS, OUT_AGENT, OUT_VERDICT };

struct out_lost {
    uint64_t bytes, lines;
    int why; /* errno of the last failed write; 0: none failed. */
};

struct out;

/* Bytes are those of a stream below `n_owners`, or agent's own.
 * `fd` is borrowed; `wake_fd` (an eventfd, borrowed) is written to when there
 * is room again after out_want_room(), or when a write fails. The thread
 * starts with the first byte that the file does not take at once. */
int out_new(struct out **ret, int fd, int wake_fd, unsigned n_owners,
            struct err *e);

size_t out_room(struct out *o, enum out_use use);
/* The next put or commit is of a stream, `raw` bytes of it without prefix. */
void out_from(struct out *o, unsigned owner, size_t raw);
/* `len` <= out_room(). Lines that are put in one call stay together. */
void out_put(struct out *o, const char *bytes, size_t len);
/* Where the next bytes go, to save a copy: write at most *ret_room of them
 * (that of OUT_WORKERS, or less), then say how many. */
char *out_space(struct out *o, size_t *ret_room);
void out_commit(struct out *o, size_t len);
/* Wake when at least `room` bytes are free for the workers. */
void out_want_room(struct out *o, size_t room);
/* Bytes that are not yet written (or given up). */
size_t out_pending(struct out *o);
/* Wait until there are none, at most `ms`, or until `stop_fd` (-1: none) is
 * readable. */
bool out_flush(struct out *o, uint64_t ms, int stop_fd);
/* What is queued now counts as lost, though the thread still tries. What a
 * write that does not return has handed over already counts, too. */
void out_give_up(struct out *o);
/* What could not be written, in bytes of the queue; and what of it is a
 * stream's, in bytes without prefix, also what was given up. */
void out_lost(struct out *o, struct out_lost *ret);
void out_lost_of(struct out *o, unsigned owner, struct out_lost *ret);

#endif
