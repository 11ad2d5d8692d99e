/* lease_file: see lease_file.h.
 *
 * The file is opened anew each time: NFS asks its server at an open, and
 * hands over at a close what was written. */
#include "dataset/lease_file.h"

#include "base/mem.h"
#include "dataset/meter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* As often as this it is told how far the work is, at least. */
#define BEAT_MAX_MS 5000
/* So often before others take it for dead. */
#define BEATS 6

static bool file_name(char path[NAME_MAX + 16], const char *part)
{
    int n = snprintf(path, NAME_MAX + 16, "%s/lease", part);

    return n > 0 && n < NAME_MAX + 16;
}

int lease_read_fd(int fd, char ret[LEASE_WORD + 1])
{
    ssize_t n = pread(fd, ret, LEASE_WORD, 0);

    ret[n > 0 ? n : 0] = '\0';
    return n < 0 ? errno : 0;
}

int lease_read(int root, const char *part, char ret[LEASE_WORD + 1])
{
    char path[NAME_MAX + 16];
    autoclose int fd = -1;

    ret[0] = '\0';
    if (!file_name(path, part))
        return ENAMETOOLONG;
    fd = openat(root, path,
                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? errno : lease_read_fd(fd, ret);
}

/* Put the word on the disk, and close. */
static int put(int fd, const struct lease_word *w)
{
    char text[LEASE_WORD];
    int error = 0;
    ssize_t n;

    lease_format(w, text);
    n = pwrite(fd, text, sizeof text, 0);
    if (n < 0 || fdatasync(fd) < 0)
        error = errno;
    else if (n < (ssize_t)sizeof text)
        error = ENOSPC;
    if (close(fd) < 0 && error == 0)
        error = errno;
    return error;
}

int lease_begin(int root, const char *part, const struct lease_word *w)
{
    char path[NAME_MAX + 16];
    int fd;

    if (!file_name(path, part))
        return ENAMETOOLONG;
    fd = openat(root, path,
                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    return fd < 0 ? errno : put(fd, w);
}

int lease_renew(int root, const char *part, const struct lease_word *w)
{
    char path[NAME_MAX + 16], text[LEASE_WORD + 1];
    autoclose int fd = -1;
    struct lease_word there;
    int error;

    if (!file_name(path, part))
        return ENAMETOOLONG;
    fd = openat(root, path,
                O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    error = lease_read_fd(fd, text);
    if (error)
        return error;
    if (lease_parse(text, &there) && strcmp(there.id, w->id) != 0)
        return ENOENT;
    return put(steal_fd(&fd), w);
}

void lease_write_lock(int lock_fd, const struct lease_word *w)
{
    char text[LEASE_WORD];

    if (lock_fd < 0)
        return;
    lease_format(w, text);
    (void)!pwrite(lock_fd, text, sizeof text, 0);
}

/* False: the lease is another's now. */
static bool beat(struct lease *l)
{
    const struct stage_set *s = l->s;
    int error;

    l->word.beat++;
    meter_get(s->meter, &l->word.at);
    lease_write_lock(l->lock_fd, &l->word);
    if (!s->is_shared)
        return true;
    error = lease_renew(s->root.fd, s->part, &l->word);
    /* With any other fault the server may be back at the next beat. */
    return error != ENOENT && error != ENOTDIR;
}

static void wait_ms(struct lease *l, uint64_t ms)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    while (!l->is_over &&
           pthread_cond_timedwait(&l->wake, &l->lock, &until) == 0)
        ;
}

static void *beat_main(void *arg)
{
    struct lease *l = arg;
    uint64_t ms = l->s->is_shared ? l->s->silent_ms / BEATS : 1000;

    if (ms > BEAT_MAX_MS)
        ms = BEAT_MAX_MS;
    (void)pthread_mutex_lock(&l->lock);
    while (wait_ms(l, ms), !l->is_over) {
        bool is_mine;

        (void)pthread_mutex_unlock(&l->lock);
        is_mine = beat(l);
        (void)pthread_mutex_lock(&l->lock);
        if (!is_mine) {
            atomic_store(&l->is_lost, true);
            break;
        }
    }
    (void)pthread_mutex_unlock(&l->lock);
    return NULL;
}

void lease_beat_start(struct lease *l)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&l->lock, NULL);
    (void)pthread_cond_init(&l->wake, &attr);
    (void)pthread_condattr_destroy(&attr);
    /* Without a thread to be had it is like one that is suspended. */
    l->has_thread = pthread_create(&l->thread, NULL, beat_main, l) == 0;
}

void lease_beat_end(struct lease *l)
{
    (void)pthread_mutex_lock(&l->lock);
    l->is_over = true;
    (void)pthread_cond_signal(&l->wake);
    (void)pthread_mutex_unlock(&l->lock);
    if (l->has_thread)
        (void)pthread_join(l->thread, NULL);
    (void)pthread_cond_destroy(&l->wake);
    (void)pthread_mutex_destroy(&l->lock);
}
