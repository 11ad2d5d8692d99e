/* loop_net: the connections to other pods: their events for the pod, and how
 * they are opened. */
#include "agent/loop_parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void net_open(void *ctx, uint32_t conn, const char *addr,
                     const struct wire_addr *here)
{
    pod_conn_open(&((struct loop *)ctx)->pod, loop_now(), conn, addr);
    pod_conn_here(&((struct loop *)ctx)->pod, conn, here);
    loop_after(ctx);
}

static void net_closed(void *ctx, uint32_t conn)
{
    pod_conn_closed(&((struct loop *)ctx)->pod, loop_now(), conn);
    loop_after(ctx);
}

static void net_message(void *ctx, uint32_t conn, const struct wire_msg *m)
{
    pod_conn_message(&((struct loop *)ctx)->pod, loop_now(), conn, m);
    loop_after(ctx);
}

static void net_garbage(void *ctx, uint32_t conn, const char *why,
                        unsigned version)
{
    pod_conn_garbage(&((struct loop *)ctx)->pod, loop_now(), conn, why,
                     version);
    loop_after(ctx);
}

static void net_link_up(void *ctx)
{
    pod_link_up(&((struct loop *)ctx)->pod, loop_now());
    loop_after(ctx);
}

static void net_link_down(void *ctx, const char *why)
{
    pod_link_down(&((struct loop *)ctx)->pod, loop_now(), why);
    loop_after(ctx);
}

static void net_link_message(void *ctx, const struct wire_msg *m)
{
    pod_link_message(&((struct loop *)ctx)->pod, loop_now(), m);
    loop_after(ctx);
}

const char *loop_master_ip(struct loop *l)
{
    const char *host = l->plan->o->master_addr;
    unsigned char ip[sizeof(struct in6_addr)];

    if (inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1)
        return host;
    if (l->plan->o->nnodes == 1)
        return "127.0.0.1"; /* Alone. */
    return l->peers ? peers_zero_ip(l->peers) : NULL;
}

int loop_net_open(struct loop *l, struct err *e)
{
    const struct options *o = l->plan->o;
    uint32_t n = l->plan->node_rank == 0
                     ? barrier_n_conns(o->nnodes, l->plan->n_guests)
                     : 0;
    struct peers_out out = {.ctx = l,
                            .conn_open = net_open,
                            .conn_closed = net_closed,
                            .conn_message = net_message,
                            .conn_garbage = net_garbage,
                            .make_room = loop_conn_make_room,
                            .link_up = net_link_up,
                            .link_down = net_link_down,
                            .link_message = net_link_message};
    int r;

    if (o->nnodes == 1)
        return 0;
    if (loop_uv_open(l) != 0)
        return err_set(e, ERR_AGENT, "no descriptors: %s", strerror(errno));
    (void)setenv("UV_THREADPOOL_SIZE", "1", 1); /* Only for getaddrinfo. */
    r = peers_new(&l->peers, &l->uv, &out, n, o->master_addr, o->barrier_port,
                  e);
    if (r == 0 && l->plan->node_rank == 0)
        r = peers_listen(l->peers, o->barrier_port, e);
    return r;
}
