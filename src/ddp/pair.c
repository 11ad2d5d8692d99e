/* pair: see pair.h. */
#include "ddp/pair.h"
#include "ddp/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int ddp_pair_new(struct ddp_pair *p, int rank)
{
    memset(p, 0, sizeof *p);
    p->fd = -1;
    p->rank = rank;
    p->in = malloc(DDP_PAIR_BUFFER);
    p->out = malloc(DDP_PAIR_BUFFER);
    return p->in && p->out ? 0 : -1;
}

void ddp_pair_free(struct ddp_pair *p)
{
    ddp_socket_close(&p->fd);
    free(p->in);
    free(p->out);
    p->in = p->out = NULL;
}

/* What the other one sent meanwhile is read off, as a socket that is closed
 * with unread bytes resets its connection, last word and all. */
void ddp_pair_end(struct ddp_pair *p, const struct ddp_frame *last)
{
    if (p->fd < 0)
        return;
    (void)ddp_pair_put(p, last, NULL, 0);
    for (unsigned i = 0; i < 1000 && !p->is_gone; i++) {
        p->in_len = 0;
        if (!ddp_pair_read(p))
            break;
    }
    ddp_socket_close(&p->fd);
}

static void lose(struct ddp_pair *p, int error)
{
    p->is_gone = true;
    p->error = error;
}

int ddp_pair_flush(struct ddp_pair *p)
{
    while (p->out_len > 0 && !p->is_gone) {
        ssize_t n = send(p->fd, p->out, p->out_len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0) {
            lose(p, errno);
            break;
        }
        p->out_len -= (size_t)n;
        memmove(p->out, p->out + n, p->out_len);
    }
    return p->is_gone ? -1 : 0;
}

int ddp_pair_put(struct ddp_pair *p, const struct ddp_frame *f,
                 const void *after, size_t len)
{
    if (p->fd < 0 || p->is_gone ||
        DDP_PAIR_BUFFER - p->out_len < DDP_FRAME_MAX + len)
        return -1;
    p->out_len += ddp_frame_encode(f, p->out + p->out_len);
    if (len > 0)
        memcpy(p->out + p->out_len, after, len);
    p->out_len += len;
    return ddp_pair_flush(p);
}

bool ddp_pair_read(struct ddp_pair *p)
{
    ssize_t n;

    if (p->is_gone || p->in_len == DDP_PAIR_BUFFER)
        return false;
    do
        n = recv(p->fd, p->in + p->in_len, DDP_PAIR_BUFFER - p->in_len, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0)
        lose(p, n < 0 ? errno : 0);
    else
        p->in_len += (size_t)n;
    return true;
}

int ddp_pair_peek(const struct ddp_pair *p, struct ddp_frame *ret)
{
    unsigned version;

    return ddp_frame_decode(p->in, p->in_len, ret, &version);
}

void ddp_pair_take(struct ddp_pair *p, size_t n)
{
    p->in_len -= n;
    memmove(p->in, p->in + n, p->in_len);
}
