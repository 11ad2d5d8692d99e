/* lease: see lease.h. */
#include "dataset/lease.h"

#include "base/mem.h"
#include "base/text.h"
#include "dataset/lease_file.h"
#include "dataset/lock.h"
#include "dataset/meter.h"
#include "dataset/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* So often it must have been looked at, too: this process may have been the
 * one that was suspended. */
#define LOOKS_MIN 5

/* Of one kernel, whatever is mounted where. */
static const unsigned long local_file_systems[] = {
    0xef53,     /* ext2, ext3, ext4 */
    0x58465342, /* XFS */
    0x9123683e, /* Btrfs */
    0xca451a4e, /* bcachefs */
    0x2fc12fc1, /* ZFS */
    0xf2f52010, /* F2FS */
    0x01021994, /* tmpfs */
    0x858458f6, /* ramfs */
    0x794c7630, /* overlayfs */
    0x3153464a, /* JFS */
    0x4d44,     /* FAT */
    0x2011bab0, /* exFAT */
};

bool lease_is_shared(int folder)
{
    struct statfs v;

    if (fstatfs(folder, &v) < 0)
        return false;
    for (size_t i = 0;
         i < sizeof local_file_systems / sizeof local_file_systems[0]; i++)
        if ((unsigned long)v.f_type == local_file_systems[i])
            return false;
    return true;
}

/* The kernel's boot and the device: two mounts of one server's folder may have
 * locks of their own, and have devices of their own then. Where they cannot be
 * told, `mine`: a pid would not do, as containers have the same ones. */
static void make_key(const struct stage_set *s, const char *mine,
                     char ret[LEASE_KEY_MAX])
{
    char boot[37] = "";
    autoclose int fd = open("/proc/sys/kernel/random/boot_id",
                            O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || read(fd, boot, 36) != 36 || strpbrk(boot, " \n") ||
        fstat(s->root.fd, &st) < 0)
        (void)snprintf(ret, LEASE_KEY_MAX, "?%s", mine);
    else
        (void)snprintf(ret, LEASE_KEY_MAX, "%s:%" PRIx64, boot,
                       (uint64_t)st.st_dev);
}

static int make_word(struct lease *l, struct err *e)
{
    uint64_t id;

    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
        return err_set(e, ERR_RESOURCE, "getrandom: %s", strerror(errno));
    (void)snprintf(l->word.id, sizeof l->word.id, "%016" PRIx64, id);
    make_key(l->s, l->word.id, l->word.key);
    l->word.silent_ms = l->s->silent_ms;
    return 0;
}

struct watch { /* Of another's lease. */
    char text[LEASE_WORD + 1];
    uint64_t since_ms, silent_ms;
    unsigned n_looks;
    bool any;
};

static uint64_t now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* True where its maker is dead. */
static bool look(struct lease *l, struct watch *w, struct stage_progress *at)
{
    char text[LEASE_WORD + 1];
    struct lease_word word;
    bool is_word;

    (void)lease_read(l->s->root.fd, l->s->part, text);
    is_word = lease_parse(text, &word);
    if (is_word)
        *at = word.at;
    if (!w->any || strcmp(text, w->text) != 0) {
        w->any = true;
        w->since_ms = now();
        w->n_looks = 0;
        w->silent_ms = l->s->silent_ms;
        if (is_word && word.silent_ms > w->silent_ms)
            w->silent_ms = word.silent_ms;
        (void)text_copy(w->text, sizeof w->text, text);
    }
    w->n_looks++;
    /* It held the lock that we have now. */
    if (is_word && l->lock_fd >= 0 && strcmp(word.key, l->word.key) == 0)
        return true;
    l->took_over = w->n_looks > LOOKS_MIN &&
                   now() - w->since_ms >= w->silent_ms;
    return l->took_over;
}

/* Move `.part` out of the way, and remove it; `text` is the word that it
 * should have in it: what has another one is put back. 0, or an errno. */
static int set_aside(const struct stage_set *s, const char *text)
{
    char there[LEASE_WORD + 1];
    int rc = tree_remove(s->root.fd, s->old);

    if (rc)
        return -rc;
    if (renameat(s->root.fd, s->part, s->root.fd, s->old) < 0)
        return errno == EEXIST || errno == ENOTEMPTY ? ENOENT : errno;
    (void)lease_read(s->root.fd, s->old, there);
    if (strcmp(there, text) != 0 &&
        renameat(s->root.fd, s->old, s->root.fd, s->part) == 0)
        return ENOENT;
    return 0;
}

/* What try_once() says besides 0: it is ours, and an errno. */
#define ONCE_MORE (-1)
#define OVER (-2) /* One that was waited for is gone. */

static bool is_gone(const struct stage_set *s)
{
    struct stat st;

    return fstatat(s->root.fd, s->part, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
           errno == ENOENT;
}

/* `.part` has just been made. Who is suspended now finds it gone (ENOENT), or
 * finds another one's there, who has not been idle (EEXIST). */
static int write_first(struct lease *l)
{
    const struct stage_set *s = l->s;
    int error = lease_begin(s->root.fd, s->part, &l->word);

    if (error == ENOENT || error == EEXIST)
        return ONCE_MORE;
    if (error)
        (void)tree_remove(s->root.fd, s->part);
    return error;
}

static int try_once(struct lease *l, struct watch *w,
                    struct stage_progress *at)
{
    const struct stage_set *s = l->s;
    int error;

    if (w->any && is_gone(s))
        return OVER;
    if (mkdirat(s->root.fd, s->part, 0755) == 0)
        return write_first(l);
    if (errno != EEXIST)
        return errno;
    if (!look(l, w, at))
        return ONCE_MORE;
    error = set_aside(s, w->text);
    w->any = false;
    return error == ENOENT || error == 0 ? ONCE_MORE : error;
}

static void wait_for_others(const struct lease *l, struct stage_progress *at)
{
    uint64_t ms = l->s->silent_ms / 20;
    struct timespec pause;

    ms = ms < 20 ? 20 : ms > 1000 ? 1000 : ms;
    pause = (struct timespec){.tv_sec = (time_t)(ms / 1000),
                              .tv_nsec = (long)(ms % 1000) * 1000000L};
    meter_tell_waiting(l->s->meter, at);
    (void)nanosleep(&pause, NULL);
}

static int take_shared(struct lease *l, struct err *e)
{
    struct watch w = {.any = false};
    const uint64_t end = now() + LOCK_WAIT_MAX_S * UINT64_C(1000);
    struct path_shown p;

    while (now() < end) {
        struct stage_progress at = {.total = 0};
        struct lease_word told = l->word;
        bool was_there = w.any;
        int error = try_once(l, &w, &at);

        if (error == 0)
            return 0;
        if (error == OVER) {
            l->took_over = false;
            return 1;
        }
        if (error > 0)
            return space_fault(&l->s->root, "make folder", l->s->part, error,
                               e);
        if (was_there && !w.any) /* Moved aside: at once. */
            continue;
        told.at = at; /* For those who wait for our lock. */
        lease_write_lock(l->lock_fd, &told);
        wait_for_others(l, &at);
    }
    return err_set(e, ERR_RESOURCE,
                   "lease '%s': another process has held it for a day",
                   path_show(&p, l->s->root.shown, l->s->part));
}

int lease_take(struct lease *l, const struct stage_set *s, int lock_fd,
               char ret_work[STAGE_WORK_MAX], struct err *e)
{
    int rc;

    memset(l, 0, sizeof *l);
    l->s = s;
    l->lock_fd = lock_fd;
    rc = make_word(l, e);
    if (rc == 0 && s->is_shared)
        rc = take_shared(l, e);
    if (rc)
        return rc;
    (void)snprintf(ret_work, STAGE_WORK_MAX, "%s%s%s", s->part,
                   s->is_shared ? "/" : "", s->is_shared ? l->word.id : "");
    lease_beat_start(l);
    if (s->is_shared)
        (void)tree_remove(s->root.fd, s->old);
    return 0;
}

bool lease_drop(struct lease *l)
{
    const struct stage_set *s = l->s;
    char text[LEASE_WORD + 1];
    struct lease_word there;

    lease_beat_end(l);
    if (l->lock_fd >= 0)
        (void)!ftruncate(l->lock_fd, 0);
    if (!s->is_shared)
        return true;
    if (lease_read(s->root.fd, s->part, text) != 0 ||
        !lease_parse(text, &there) || strcmp(there.id, l->word.id) != 0)
        return false;
    if (set_aside(s, text) == 0)
        (void)tree_remove(s->root.fd, s->old);
    return !atomic_load(&l->is_lost);
}

void lease_sweep(const struct stage_set *s, int lock_fd)
{
    struct lease l = {.s = s, .lock_fd = lock_fd};
    char text[LEASE_WORD + 1];
    struct lease_word there;

    make_key(s, "", l.word.key);
    if (lease_read(s->root.fd, s->part, text) == 0 &&
        lease_parse(text, &there) && strcmp(there.key, l.word.key) == 0)
        (void)set_aside(s, text);
    (void)tree_remove(s->root.fd, s->old);
}
