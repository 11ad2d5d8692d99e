/* usage: CPU time and memory of the workers, read from /proc when someone
 * asks. A worker has a session of its own, so what it starts is found by that;
 * in usage_read() a process that made itself a new session is not counted. */
#ifndef SUPERVISE_USAGE_H
#define SUPERVISE_USAGE_H

#include <stdint.h>
#include <sys/types.h>

#define USAGE_PROCESSES_MAX 16384 /* Looked at in one go. */

struct usage {
    uint64_t cpu_ms;    /* Of those alive, and of children waited for. */
    uint64_t rss_bytes; /* The sum; what they share counts for each. */
    uint32_t n_procs;   /* 0: nothing is known. */
};

/* For each of the `n` sessions (0: none) what its processes use together; all
 * 0 where /proc cannot tell. */
void usage_read(const pid_t *sessions, unsigned n, struct usage *ret);
/* The same of leaders, which need not lead a session, with all descendants,
 * whatever their session: of what has lost its parents alone it is not
 * known. */
void usage_read_trees(const pid_t *leaders, unsigned n, struct usage *ret);

#endif
