/* guests: see guests.h. */
#include "ddp/guests.h"
#include "ddp/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PAUSE_MS 100
#define ACCEPTS_MAX 64 /* At a time: then those who are in get their turn. */

void ddp_guests_init(struct ddp_guests *g, unsigned max)
{
    memset(g, 0, sizeof *g);
    g->max = max < DDP_GUESTS_MAX ? max : DDP_GUESTS_MAX;
}

void ddp_guests_end(struct ddp_guests *g)
{
    while (g->n > 0)
        ddp_guests_drop(g, g->n - 1);
}

void ddp_guests_drop(struct ddp_guests *g, unsigned i)
{
    ddp_conn_close(&g->at[i]);
    g->n--;
    memmove(&g->at[i], &g->at[i + 1], (g->n - i) * sizeof g->at[0]);
}

void ddp_guests_expire(struct ddp_guests *g, uint64_t now)
{
    while (g->n > 0 && now - g->at[0].since > DDP_GUEST_MS)
        ddp_guests_drop(g, 0);
}

void ddp_guests_accept(struct ddp_guests *g, int listen_fd, uint64_t now)
{
    if (now < g->resumes)
        return;
    for (unsigned i = 0; i < ACCEPTS_MAX; i++) {
        int fd = ddp_socket_accept(listen_fd);

        if (fd == -EAGAIN)
            return;
        if (ddp_socket_is_shortage(-fd)) {
            /* Said by the kernel before it looks whether anybody waits. */
            struct pollfd p = {.fd = listen_fd, .events = POLLIN};

            if (poll(&p, 1, 0) <= 0)
                return;
            g->error = -fd;
            if (g->n == 0) {
                g->resumes = now + PAUSE_MS;
                return;
            }
            g->had_to_go = -fd; /* It may have been one that belongs. */
            ddp_guests_drop(g, 0);
            continue;
        }
        if (fd < 0)
            continue; /* Of this one alone: it is gone already, say. */
        g->error = 0;
        if (g->n == g->max)
            ddp_guests_drop(g, 0);
        ddp_conn_open(&g->at[g->n++], fd, -1);
    }
}

unsigned ddp_guests_poll(const struct ddp_guests *g, int listen_fd,
                         struct pollfd *p, uint64_t now, int *ms)
{
    bool pauses = now < g->resumes;

    p[0] = (struct pollfd){.fd = pauses ? -1 : listen_fd, .events = POLLIN};
    for (unsigned i = 0; i < g->n; i++)
        p[1 + i] = (struct pollfd){.fd = g->at[i].fd, .events = POLLIN};
    if (pauses)
        *ms = ddp_until(now, g->resumes, *ms);
    return 1 + g->n;
}

bool ddp_guests_is_short(const struct ddp_guests *g)
{
    return g->error || g->had_to_go;
}

const char *ddp_guests_note(const struct ddp_guests *g,
                            char buf[DDP_GUESTS_NOTE])
{
    int error = g->error ? g->error : g->had_to_go;

    buf[0] = '\0';
    if (error)
        (void)snprintf(buf, DDP_GUESTS_NOTE, "; connections could not be "
                       "accepted here: %.80s", ddp_socket_error(error));
    return buf;
}
