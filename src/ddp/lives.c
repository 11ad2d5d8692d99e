/* lives: see lives.h. */
#include "ddp/lives.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS 64

void ddp_lives_init(struct ddp_lives *l, unsigned n)
{
    memset(l, 0, sizeof *l);
    l->n = n;
    l->ended = calloc(n, sizeof *l->ended);
    l->is_known = calloc(n, sizeof *l->is_known);
    l->fd = l->ended && l->is_known ? epoll_create1(EPOLL_CLOEXEC) : -1;
}

void ddp_lives_free(struct ddp_lives *l)
{
    for (unsigned i = 0; l->processes && i < l->n; i++)
        if (l->processes[i] >= 0)
            (void)close(l->processes[i]);
    if (l->n > 0 && l->fd >= 0)
        (void)close(l->fd);
    free(l->ended);
    free(l->is_known);
    free(l->processes);
    memset(l, 0, sizeof *l);
    l->fd = -1;
}

static void end(struct ddp_lives *l, uint32_t rank)
{
    if (rank >= l->n || (l->is_known[rank] & DDP_LIFE_ENDED))
        return;
    l->is_known[rank] |= DDP_LIFE_ENDED;
    l->ended[l->n_ended++] = (int)rank;
}

/* Each end is handed out once; nothing else that happens to `fd` counts. */
static int watch(struct ddp_lives *l, int rank, int fd, uint32_t events)
{
    struct epoll_event e = {.events = events | EPOLLET,
                            .data.u32 = (uint32_t)rank};

    if (epoll_ctl(l->fd, EPOLL_CTL_ADD, fd, &e))
        return -1;
    l->n_watched += !(l->is_known[rank] & DDP_LIFE_WATCHED);
    l->is_known[rank] |= DDP_LIFE_WATCHED;
    return 0;
}

void ddp_lives_conn(struct ddp_lives *l, int rank, int fd)
{
    if (l->fd >= 0 && fd >= 0 && rank >= 0 && (unsigned)rank < l->n)
        (void)watch(l, rank, fd, EPOLLRDHUP);
}

/* Room for descriptors of processes. */
static bool has_room(struct ddp_lives *l)
{
    if (l->processes)
        return true;
    l->processes = calloc(l->n, sizeof *l->processes);
    for (unsigned i = 0; l->processes && i < l->n; i++)
        l->processes[i] = -1;
    return l->processes != NULL;
}

void ddp_lives_process(struct ddp_lives *l, int rank, uint32_t pid)
{
    int fd;

    /* Ranks may be threads of one process, which does not outlive itself. */
    if (l->fd < 0 || rank < 0 || (unsigned)rank >= l->n || pid == 0 ||
        pid == (uint32_t)getpid() || !has_room(l) || l->processes[rank] >= 0)
        return;
    fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (fd < 0 && errno == ESRCH)
        end(l, (uint32_t)rank); /* And has been waited for. */
    if (fd < 0)
        return;
    if (watch(l, rank, fd, EPOLLIN))
        (void)close(fd);
    else
        l->processes[rank] = fd;
}

bool ddp_lives_knows_all(const struct ddp_lives *l)
{
    return l->n_watched + 1 >= l->n;
}

unsigned ddp_lives_look(struct ddp_lives *l)
{
    struct epoll_event e[EVENTS];
    int n = l->fd < 0 ? 0 : EVENTS;

    while (n == EVENTS) {
        n = epoll_wait(l->fd, e, EVENTS, 0);
        for (int i = 0; i < n; i++)
            end(l, e[i].data.u32);
    }
    return l->n_ended;
}
