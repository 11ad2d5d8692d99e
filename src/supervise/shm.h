/* shm: what dead workers left in shared memory (/dev/shm), where it is lost
 * memory at best, and at worst is taken for that of the next round.
 *
 * A file goes where all of these hold: its name is one that NCCL, PyTorch and
 * the like give (the table in shm.c), it is a plain file of this user with no
 * other name, it was made since the first worker's start, and nobody has it
 * open or mapped. The last is asked of the kernel by a lease, which counts
 * every process of the machine, also those of other containers that share
 * this folder and that /proc does not show here. */
#ifndef SUPERVISE_SHM_H
#define SUPERVISE_SHM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define SHM_DIR "/dev/shm"
#define SHM_NAMES_MAX 65536 /* Looked at; the rest stays. */
#define SHM_OLD_MAX 4096    /* Beyond, nothing is removed. */

struct shm_start { /* What was there before the first worker. */
    bool taken;    /* By shm_begin(). */
    bool blind;    /* It could not be seen: nothing is removed. */
    struct timespec since; /* Of the mark: its birth */
    ino_t number;          /* and its number. */
    ino_t *old;    /* Where the kernel does not tell births, else NULL. */
    unsigned n_old;
};

struct shm_swept {
    unsigned n;
    uint64_t bytes;
    char name[64]; /* Of one of them. */
};

/* Before the first worker starts. `mark`: what was just made in `dir`; files
 * are older or younger than that. `old_kernel`: as before Linux 5.18, which
 * did not keep the time of birth of such a file. */
void shm_begin(struct shm_start *s, const char *dir, const char *mark,
               bool old_kernel);

/* Remove what dead workers left. `shared`: others use this folder, too; then
 * what may be meant for later, though nobody has it open now, stays. */
void shm_sweep(const struct shm_start *s, const char *dir, bool shared,
               struct shm_swept *ret);

/* True where this process has the machine's own shared memory, but does not
 * see the machine's processes: `--ipc=host`, hostIPC. */
bool shm_is_of_host(void);

#endif
