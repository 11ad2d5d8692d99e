/* shm: see shm.h. */
#include "ddp/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
/* A wait spins for so long where each rank can have a processor. It never
 * yields: on a busy machine that costs a turn of everybody else, while one
 * who sleeps and is woken gets a processor at once. */
#define SPIN_NS 30000

static void mix(uint64_t h[2], const char *text)
{
    for (; *text; text++) {
        h[0] = (h[0] ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
        h[1] = (h[1] + (unsigned char)*text) * UINT64_C(0x9e3779b97f4a7c15);
        h[1] ^= h[1] >> 29;
    }
}

/* Begin with the machine; false where that is unknown. */
static bool mix_machine(uint64_t h[2])
{
    char text[128] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool is_known = f && fgets(text, sizeof text, f);

    if (f)
        (void)fclose(f);
    h[0] = UINT64_C(0xcbf29ce484222325);
    h[1] = 1;
    mix(h, text);
    return is_known;
}

void ddp_shm_host(uint8_t ret[DDP_TOKEN])
{
    static const char *const spaces[] = {"/proc/self/ns/net",
                                         "/proc/self/ns/pid"};
    uint64_t h[2];
    char text[128];
    bool is_known = mix_machine(h);

    memset(ret, 0, DDP_TOKEN);
    for (unsigned i = 0; i < 2 && is_known; i++) {
        ssize_t n = readlink(spaces[i], text, sizeof text - 1);

        is_known = n > 0;
        text[is_known ? n : 0] = '\0';
        mix(h, text);
    }
    (void)snprintf(text, sizeof text, "%u", (unsigned)getuid());
    mix(h, text);
    if (is_known)
        memcpy(ret, h, sizeof h);
}

static size_t slot_of(unsigned n)
{
    size_t slot = DDP_SHM_BUDGET / DDP_SHM_SLOTS / n / PAGE * PAGE;

    return slot > DDP_SHM_SLOT_MAX   ? DDP_SHM_SLOT_MAX
           : slot < DDP_SHM_SLOT_MIN ? DDP_SHM_SLOT_MIN
                                     : slot;
}

static size_t pages(size_t n)
{
    return (n + PAGE - 1) / PAGE * PAGE;
}

static size_t size_of(unsigned n)
{
    return pages(sizeof(struct ddp_shm_head)) +
           pages(n * sizeof(struct ddp_shm_rank)) +
           n * DDP_SHM_SLOTS * slot_of(n);
}

/* A file of memory with all its pages, or -1. A file size limit of the
 * process would kill it instead of failing the call. */
static int make_file(size_t size)
{
    struct rlimit limit;
    int fd, rc;

    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < size)
        return -1;
    fd = memfd_create("ddp", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    do
        rc = posix_fallocate(fd, 0, (off_t)size);
    while (rc == EINTR);
    if (rc || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static unsigned processors(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set))
        return 1;
    return (unsigned)CPU_COUNT(&set);
}

void ddp_shm_processors(uint8_t ret[DDP_TOKEN])
{
    uint64_t h[2];
    cpu_set_t set;
    bool is_known = mix_machine(h) && !sched_getaffinity(0, sizeof set, &set);

    memset(ret, 0, DDP_TOKEN);
    for (size_t i = 0; is_known && i < CPU_SETSIZE; i++)
        mix(h, CPU_ISSET(i, &set) ? "1" : "0");
    if (is_known)
        memcpy(ret, h, sizeof h);
}

void ddp_shm_crowd(struct ddp_shm *s, unsigned n)
{
    if (n > processors())
        s->spin_ns = 0;
}

static struct ddp_shm *map(int fd, unsigned rank, unsigned n)
{
    struct ddp_shm *s = calloc(1, sizeof *s);
    size_t size = size_of(n);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_POPULATE, fd, 0);

    if (!s || at == MAP_FAILED) {
        free(s);
        if (at != MAP_FAILED)
            (void)munmap(at, size);
        return NULL;
    }
    s->fd = -1;
    s->size = size;
    s->slot = slot_of(n);
    s->n = n;
    s->rank = rank;
    s->head = at;
    s->ranks = (void *)((uint8_t *)at + pages(sizeof *s->head));
    s->data = (uint8_t *)s->ranks + pages(n * sizeof *s->ranks);
    s->spin_ns = n <= processors() ? SPIN_NS : 0;
    s->heard = calloc(n, sizeof *s->heard);
    s->parts = calloc(n, sizeof *s->parts);
    s->world = calloc(n, sizeof *s->world);
    if (!s->heard || !s->parts || !s->world) {
        ddp_shm_free(s);
        return NULL;
    }
    for (unsigned r = 0; r < n; r++)
        s->world[r] = (int)r;
    return s;
}

struct ddp_shm *ddp_shm_create(unsigned n, const uint8_t token[DDP_TOKEN])
{
    int fd = make_file(size_of(n));
    struct ddp_shm *s = fd < 0 ? NULL : map(fd, 0, n);

    if (!s) {
        if (fd >= 0)
            (void)close(fd);
        return NULL;
    }
    s->fd = fd;
    memcpy(s->head->token, token, DDP_TOKEN);
    s->head->size = s->size;
    s->head->n = n;
    s->head->slot = (uint32_t)s->slot;
    atomic_store(&s->ranks[0].pid, (uint32_t)getpid());
    return s;
}

struct ddp_shm *ddp_shm_open(unsigned rank, unsigned n, uint32_t pid,
                             uint32_t fd, const uint8_t token[DDP_TOKEN])
{
    struct ddp_shm *s = NULL;
    char path[64];
    struct stat st;
    int own;

    (void)snprintf(path, sizeof path, "/proc/%u/fd/%u", (unsigned)pid,
                   (unsigned)fd);
    own = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (own < 0)
        return NULL;
    if (fstat(own, &st) == 0 && S_ISREG(st.st_mode) &&
        (uint64_t)st.st_size == size_of(n))
        s = map(own, rank, n);
    (void)close(own);
    if (s && (memcmp(s->head->token, token, DDP_TOKEN) ||
              s->head->size != s->size || s->head->n != n ||
              s->head->slot != s->slot)) {
        ddp_shm_free(s);
        return NULL;
    }
    if (s)
        atomic_store(&s->ranks[rank].pid, (uint32_t)getpid());
    return s;
}

void ddp_shm_free(struct ddp_shm *s)
{
    if (!s)
        return;
    atomic_store(&s->ranks[s->rank].has_left, 1);
    if (s->fd >= 0)
        (void)close(s->fd);
    (void)munmap(s->head, s->size);
    free(s->heard);
    free(s->parts);
    free(s->world);
    free(s);
}

int ddp_shm_seat(const struct ddp_shm *s, int rank)
{
    for (unsigned r = 0; r < s->n; r++)
        if (s->world[r] == rank)
            return (int)r;
    return -1;
}

void ddp_shm_beat(struct ddp_shm *s, int waits_for)
{
    atomic_store(&s->ranks[s->rank].waits_for, (uint32_t)(waits_for + 1));
    (void)atomic_fetch_add(&s->ranks[s->rank].beat, 1);
}

void ddp_shm_post(struct ddp_shm_counter *c, uint32_t chunk)
{
    /* In one order with the waiter, who says so and then looks again. */
    (void)atomic_exchange(&c->value, chunk);
    if (atomic_load(&c->n_waiters) > 0)
        (void)syscall(SYS_futex, &c->value, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void ddp_shm_sleep(struct ddp_shm_counter *c, uint32_t chunk, unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    uint32_t at;

    (void)atomic_fetch_add(&c->n_waiters, 1);
    at = atomic_load(&c->value);
    if ((int32_t)(at - chunk) < 0)
        (void)syscall(SYS_futex, &c->value, FUTEX_WAIT, at, &t, NULL, 0);
    (void)atomic_fetch_sub(&c->n_waiters, 1);
}

void ddp_shm_fail(struct ddp_shm *s, const struct ddp_error *e)
{
    struct ddp_shm_head *h = s->head;
    uint32_t well = DDP_SHM_WELL;

    if (!atomic_compare_exchange_strong(&h->state, &well, DDP_SHM_WRITING))
        return;
    h->code = e->code;
    h->rank = e->rank;
    h->peer = e->peer;
    memcpy(h->text, e->text, DDP_FRAME_TEXT_MAX);
    h->text[DDP_FRAME_TEXT_MAX] = '\0';
    atomic_store(&h->state, DDP_SHM_FAILED);
    for (unsigned r = 0; r < s->n; r++) {
        struct ddp_shm_counter *const all[] = {
            &s->ranks[r].staged, &s->ranks[r].reduced, &s->ranks[r].done};

        for (unsigned i = 0; i < 3; i++)
            (void)syscall(SYS_futex, &all[i]->value, FUTEX_WAKE, INT_MAX, NULL,
                          NULL, 0);
    }
}

bool ddp_shm_failed(const struct ddp_shm *s, struct ddp_frame *ret)
{
    const struct ddp_shm_head *h = s->head;

    if (atomic_load(&h->state) != DDP_SHM_FAILED)
        return false;
    memset(ret, 0, sizeof *ret);
    ret->kind = DDP_FAULT;
    ret->code = (uint32_t)-h->code;
    ret->rank = (uint32_t)h->rank;
    ret->peer = (uint32_t)h->peer;
    memcpy(ret->text, h->text, sizeof h->text);
    ret->text[DDP_FRAME_TEXT_MAX] = '\0';
    return true;
}
