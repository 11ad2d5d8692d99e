/* lease: one maker of a stage at a time, also where flock(2) does not reach
 * from one host to the other: NFS mounted with local locks, FUSE, 9p.
 *
 * There the folder `.part` is the lease: mkdir(2) is atomic on all of them. In
 * it lies a file `lease` that its holder writes anew each few seconds; who
 * waits looks whether it changes, by a clock of its own. Clocks of different
 * hosts are never compared. One that stands still for long enough is of a dead
 * holder: its folder is moved aside, and the next one makes its own.
 *
 * A holder that was only suspended has lost it then. It works in a folder of
 * its own name inside `.part`, and publishes by a rename from there, which
 * fails once `.part` was moved: so nothing wrong can be published by two, and
 * the lease only saves work.
 *
 * Where flock(2) reaches everybody, it alone counts, and the lock file holds
 * the words for those who wait. docs/decisions/025-lease.md */
#ifndef DATASET_LEASE_H
#define DATASET_LEASE_H

#include "base/err.h"
#include "dataset/lease_word.h"
#include "dataset/stage_set.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LEASE_SILENT_MS 60000

struct lease {
    const struct stage_set *s; /* Borrowed. */
    int lock_fd; /* Borrowed; -1: the file system has no flock(2). */
    struct lease_word word;
    bool took_over; /* From one that fell silent. */
    pthread_t thread;
    pthread_mutex_t lock; /* Of `is_over`. */
    pthread_cond_t wake;
    bool has_thread, is_over;
    atomic_bool is_lost;
};

/* True where those who could write to this folder may be of other kernels. */
bool lease_is_shared(int folder);

/* Wait for others, then have it, and say so each few seconds until
 * lease_drop(). `s->is_shared` and `s->silent_ms` are set. Where it is shared
 * the folder to work in is `ret_work`, which is not there yet; else it is
 * s->part. 1, and it is not held: another one that was waited for is over;
 * look what it has left. Fails as space_fault(). */
int lease_take(struct lease *l, const struct stage_set *s, int lock_fd,
               char ret_work[STAGE_WORK_MAX], struct err *e);

/* Where it is shared, `.part` is removed with all that is left in it. False:
 * it had been lost, and a fault of the work may be due to that. */
bool lease_drop(struct lease *l);

/* Remove what a dead one has left, if that can be said at once. */
void lease_sweep(const struct stage_set *s, int lock_fd);

#endif
