/* brand: a mark that a process hands on to all that it starts and that hardly
 * anything removes: a value of RLIMIT_RTTIME so large that it means "without
 * end". It survives a cleared environment, a new session, a new name and the
 * death of all parents, and /proc/PID/limits shows it to everybody. */
#ifndef SUPERVISE_BRAND_H
#define SUPERVISE_BRAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BRAND_WORKER_MASK 0x7ffu /* The low bits: the worker's index. */

/* From 64 random bits, the same for all workers of an agent; 0 where this
 * process has a limit of its own that must be kept. */
uint64_t brand_make(uint64_t random);

static inline uint64_t brand_of_worker(uint64_t brand, uint32_t worker)
{
    return brand ? brand | (worker & BRAND_WORKER_MASK) : 0;
}

/* Put it on the calling process; async-signal-safe. */
void brand_put(uint64_t brand);

enum brand_says { BRAND_SAME, BRAND_OTHER, BRAND_UNKNOWN };

/* What a process carries, apart from the bits of `ignore`; UNKNOWN where it
 * cannot be read. */
enum brand_says brand_ask(pid_t pid, uint64_t brand, uint64_t ignore);

#endif
