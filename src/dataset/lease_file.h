/* lease_file: the words of leases, on disk. Internal to lease. */
#ifndef DATASET_LEASE_FILE_H
#define DATASET_LEASE_FILE_H

#include "dataset/lease.h"

/* The word in `<part>/lease`; "" where there is none. Returns 0 or an errno. */
int lease_read(int root, const char *part, char ret[LEASE_WORD + 1]);
/* Likewise, of an open file. */
int lease_read_fd(int fd, char ret[LEASE_WORD + 1]);

/* Write `w` there and on the disk: a new file; or over the last word of the
 * same id, in the same file: ENOENT where there is another's. 0, or an
 * errno. */
int lease_begin(int root, const char *part, const struct lease_word *w);
int lease_renew(int root, const char *part, const struct lease_word *w);

/* For those who wait for the lock; what fails is of no account. */
void lease_write_lock(int lock_fd, const struct lease_word *w);

/* The thread of the holder; lease_beat_end() waits for its end. */
void lease_beat_start(struct lease *l);
void lease_beat_end(struct lease *l);

#endif
