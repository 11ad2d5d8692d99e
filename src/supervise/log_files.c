/* log_files: see log_files.h. This file is the queue; log_file.h writes. */
#include "supervise/log_files.h"

#include "supervise/log_file.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum kind { PUT, OPEN, SYNC };

struct record { /* In the queue, before its bytes. */
    uint8_t kind;
    uint8_t hole; /* Of enum hole: what had no room before it. */
    uint16_t owner, file;
    uint32_t len;
};

enum hole { NO_HOLE, BETWEEN_LINES, WITHIN_A_LINE };

struct log_files {
    struct log_file *files; /* n_files; the thread's alone. */
    unsigned n_files;
    int wake_fd;
    struct log_file_rules rules; /* The thread's alone. */
    char *dir;
    uint8_t *holes; /* n_files; the producer's alone. */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, ready;
    /* Under the lock: bytes ever put and ever done; their difference lies in
     * the ring. */
    uint64_t head, tail;
    bool want_room, is_ready, is_synced;
    int open_errno;
    bool given_up; /* Nothing is counted any more. */
    struct log_files_lost lost;
    uint64_t *lost_of; /* n_files; of which `lost` is the sum. */
    char ring[LOG_FILES_BYTES];
};

static void ring_read(const struct log_files *f, uint64_t from, void *to,
                      size_t len)
{
    size_t at = (size_t)(from % LOG_FILES_BYTES);
    size_t first = LOG_FILES_BYTES - at < len ? LOG_FILES_BYTES - at : len;

    memcpy(to, f->ring + at, first);
    memcpy((char *)to + first, f->ring, len - first);
}

static void ring_write(struct log_files *f, uint64_t to, const void *from,
                       size_t len)
{
    size_t at = (size_t)(to % LOG_FILES_BYTES);
    size_t first = LOG_FILES_BYTES - at < len ? LOG_FILES_BYTES - at : len;

    memcpy(f->ring + at, from, first);
    memcpy(f->ring, (const char *)from + first, len - first);
}

static void wake(struct log_files *f)
{
    uint64_t one = 1;

    (void)!write(f->wake_fd, &one, sizeof one);
}

static int sync_all(struct log_files *f)
{
    int why = 0;

    for (unsigned i = 0; i < f->n_files; i++) {
        int r = log_file_sync(&f->files[i]);

        why = r ? r : why;
    }
    return why;
}

/* Carry out one record; returns the bytes that were lost. */
static size_t carry_out(struct log_files *f, const struct record *r,
                        uint64_t from, int *ret_why)
{
    size_t at = (size_t)(from % LOG_FILES_BYTES);
    size_t first = LOG_FILES_BYTES - at < r->len ? LOG_FILES_BYTES - at
                                                 : r->len;
    struct log_file *file = &f->files[r->file];
    char name[LOG_FILES_NAME_MAX];
    size_t lost;

    switch ((enum kind)r->kind) {
    case OPEN:
        ring_read(f, from, name, r->len);
        *ret_why = log_file_open(file, &f->rules, name);
        return 0;
    case SYNC:
        *ret_why = sync_all(f);
        return 0;
    case PUT:
        break;
    }
    if (r->hole)
        log_file_lose(file, r->hole == BETWEEN_LINES);
    lost = log_file_write(file, &f->rules, f->ring + at, first, ret_why);
    return lost + log_file_write(file, &f->rules, f->ring, r->len - first,
                                 ret_why);
}

/* Under the lock. */
static void count_lost(struct log_files *f, unsigned owner, size_t n)
{
    f->lost.bytes += n;
    f->lost_of[owner] += n;
}

static void work(struct log_files *f)
{
    for (;;) {
        struct record r;
        size_t lost;
        int why = 0;

        while (f->head == f->tail)
            (void)pthread_cond_wait(&f->work, &f->lock);
        ring_read(f, f->tail, &r, sizeof r);
        (void)pthread_mutex_unlock(&f->lock);
        lost = carry_out(f, &r, f->tail + sizeof r, &why);
        (void)pthread_mutex_lock(&f->lock);
        f->tail += sizeof r + r.len;
        if (!f->given_up)
            count_lost(f, r.owner, lost);
        if (why)
            f->lost.why = why;
        f->is_synced = f->is_synced || r.kind == SYNC;
        if (lost > 0 || r.kind == SYNC ||
            (f->want_room && f->head - f->tail <= LOG_FILES_BYTES / 2)) {
            f->want_room = false;
            wake(f);
        }
    }
}

static void *files_thread(void *arg)
{
    struct log_files *f = arg;
    int why = log_file_open_dir(&f->rules);

    (void)pthread_mutex_lock(&f->lock);
    f->open_errno = why;
    f->is_ready = true;
    (void)pthread_cond_signal(&f->ready);
    if (why == 0)
        work(f);
    (void)pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* False where the folder did not answer. */
static bool wait_ready(struct log_files *f)
{
    struct timespec end;
    int r = 0;
    bool ready;

    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += LOG_FILES_OPEN_MS / 1000;
    (void)pthread_mutex_lock(&f->lock);
    while (!f->is_ready && r == 0)
        r = pthread_cond_timedwait(&f->ready, &f->lock, &end);
    ready = f->is_ready;
    (void)pthread_mutex_unlock(&f->lock);
    return ready;
}

static void files_free(struct log_files *f)
{
    if (f) {
        free(f->files);
        free(f->dir);
        free(f->holes);
        free(f->lost_of);
    }
    free(f);
}

int log_files_new(struct log_files **ret, const struct log_files_config *c,
                  struct err *e)
{
    struct log_files *f = calloc(1, sizeof *f);
    pthread_attr_t small;
    int r;

    if (f) {
        f->files = calloc(c->n_files, sizeof *f->files);
        f->dir = strdup(c->dir);
        f->holes = calloc(c->n_files, sizeof *f->holes);
        f->lost_of = calloc(c->n_files, sizeof *f->lost_of);
    }
    if (!f || !f->files || !f->dir || !f->holes || !f->lost_of) {
        files_free(f);
        return err_set(e, ERR_AGENT, "no memory for %u log files",
                       c->n_files);
    }
    for (unsigned i = 0; i < c->n_files; i++)
        f->files[i].fd = -1;
    f->n_files = c->n_files;
    f->wake_fd = c->wake_fd;
    f->rules.dir = f->dir;
    f->rules.max_bytes = c->max_bytes;
    f->rules.keep = c->keep;
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_cond_init(&f->work, NULL);
    (void)pthread_cond_init(&f->ready, NULL);
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, 64 * 1024);
    r = pthread_create(&f->thread, &small, files_thread, f);
    if (r != 0) {
        files_free(f);
        return err_set(e, ERR_RESOURCE, "--log-dir: no thread: %s (limits: "
                       "ulimit -u, the cgroup's pids.max)", strerror(r));
    }
    if (!wait_ready(f)) /* The thread has it still. */
        return err_set(e, ERR_RESOURCE, "--log-dir %s: no answer in %d s; is "
                       "its file system reachable?", c->dir,
                       LOG_FILES_OPEN_MS / 1000);
    if (f->open_errno != 0) {
        r = f->open_errno;
        (void)pthread_join(f->thread, NULL);
        files_free(f);
        return err_set(e, ERR_RESOURCE, "--log-dir %s: %s%s", c->dir,
                       strerror(r), log_files_advice(r));
    }
    *ret = f;
    return 0;
}

static size_t room(struct log_files *f)
{
    size_t n;

    (void)pthread_mutex_lock(&f->lock);
    n = LOG_FILES_BYTES - (size_t)(f->head - f->tail);
    (void)pthread_mutex_unlock(&f->lock);
    return n;
}

bool log_files_has_room(struct log_files *f)
{
    return room(f) >= 2 * sizeof(struct record) + LOG_FILES_PUT_MAX;
}

void log_files_want_room(struct log_files *f)
{
    (void)pthread_mutex_lock(&f->lock);
    f->want_room = true;
    if (f->head - f->tail <= LOG_FILES_BYTES / 2) {
        f->want_room = false;
        wake(f);
    }
    (void)pthread_mutex_unlock(&f->lock);
}

/* SYNC, which has no bytes, always finds room: the others leave it. */
static bool add(struct log_files *f, struct record r, const char *bytes)
{
    size_t len = r.len;

    if (room(f) < sizeof r * (r.kind == SYNC ? 1 : 2) + len)
        return false;
    /* Only this thread moves head, and the writer stays behind it. */
    ring_write(f, f->head, &r, sizeof r);
    ring_write(f, f->head + sizeof r, bytes, len);
    (void)pthread_mutex_lock(&f->lock);
    f->head += sizeof r + len;
    (void)pthread_cond_signal(&f->work);
    (void)pthread_mutex_unlock(&f->lock);
    return true;
}

bool log_files_open(struct log_files *f, unsigned i, const char *name)
{
    struct record r = {.kind = OPEN, .file = (uint16_t)i};

    r.len = (uint32_t)strnlen(name, LOG_FILES_NAME_MAX - 1) + 1;
    return add(f, r, name);
}

bool log_files_put(struct log_files *f, unsigned i, unsigned owner,
                   const char *bytes, size_t len)
{
    struct record r = {.kind = PUT, .file = (uint16_t)i, .hole = f->holes[i],
                       .owner = (uint16_t)owner, .len = (uint32_t)len};

    if (len == 0)
        return true;
    f->holes[i] = NO_HOLE;
    if (add(f, r, bytes))
        return true;
    f->holes[i] = bytes[len - 1] == '\n' ? BETWEEN_LINES : WITHIN_A_LINE;
    (void)pthread_mutex_lock(&f->lock);
    count_lost(f, owner, len);
    (void)pthread_mutex_unlock(&f->lock);
    return false;
}

/* The deadline has passed: what is queued, and what is being written, will be
 * nowhere. */
static void give_up(struct log_files *f)
{
    struct record r;

    (void)pthread_mutex_lock(&f->lock);
    for (uint64_t at = f->tail; at < f->head && !f->given_up;
         at += sizeof r + r.len) {
        ring_read(f, at, &r, sizeof r);
        if (r.kind == PUT)
            count_lost(f, r.owner, r.len);
    }
    f->given_up = true;
    (void)pthread_mutex_unlock(&f->lock);
}

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

bool log_files_sync(struct log_files *f, uint64_t ms, int stop_fd)
{
    struct pollfd p[2] = {{.fd = f->wake_fd, .events = POLLIN},
                          {.fd = stop_fd, .events = POLLIN}};
    uint64_t end = now_ms() + ms, ignored;
    const struct record sync = {.kind = SYNC};

    if (!add(f, sync, "")) {
        give_up(f);
        return false; /* One is there already. */
    }
    for (;;) {
        uint64_t now = now_ms();
        bool done;

        (void)pthread_mutex_lock(&f->lock);
        done = f->is_synced;
        (void)pthread_mutex_unlock(&f->lock);
        if (!done && (now >= end || p[1].revents)) {
            give_up(f);
            return false;
        }
        if (done)
            return true;
        (void)poll(p, stop_fd < 0 ? 1 : 2,
                   end - now > 100 ? 100 : (int)(end - now));
        if (p[0].revents)
            (void)!read(f->wake_fd, &ignored, sizeof ignored);
    }
}

void log_files_lost(struct log_files *f, struct log_files_lost *ret)
{
    (void)pthread_mutex_lock(&f->lock);
    *ret = f->lost;
    (void)pthread_mutex_unlock(&f->lock);
}

uint64_t log_files_lost_of(struct log_files *f, unsigned owner)
{
    uint64_t n;

    (void)pthread_mutex_lock(&f->lock);
    n = f->lost_of[owner];
    (void)pthread_mutex_unlock(&f->lock);
    return n;
}
