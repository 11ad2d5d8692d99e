/* peer_link: the connection of a pod to pod 0; see peer.h. */
#include "rendezvous/peer_parts.h"

#include "base/text.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void try_next(struct peers *p);

static void forget_addresses(struct peers *p)
{
    if (p->addrs)
        uv_freeaddrinfo(p->addrs);
    p->addrs = p->next_addr = NULL;
}

static void give_up(struct peers *p)
{
    forget_addresses(p);
    p->out.link_down(p->out.ctx, p->why);
}

/* Called when the handle is closed: after a failed attempt the next address
 * has its turn; a link that was up is reported. */
void link_closed(struct peers *p, struct conn *c, const char *why)
{
    if (p->link != c)
        return; /* Dropped on purpose, or never reported. */
    p->link = NULL;
    if (c->open)
        p->out.link_down(p->out.ctx, why);
    else if (p->next_addr)
        try_next(p);
    else
        give_up(p);
}

static void attempt_failed(struct peers *p, const char *why)
{
    (void)text_copy(p->why, sizeof p->why, why);
    conn_close(p->link, true);
}

static void on_connected(uv_connect_t *req, int status)
{
    struct conn *c = (struct conn *)req->handle;
    struct peers *p = c->peers;

    (void)uv_timer_stop(&p->limit);
    if (p->link != c || uv_is_closing((uv_handle_t *)c))
        return;
    if (status != 0) {
        attempt_failed(p, uv_strerror(status));
        return;
    }
    forget_addresses(p);
    conn_learn(c);
    conn_start(c);
    p->out.link_up(p->out.ctx);
}

static void on_limit(uv_timer_t *t)
{
    struct peers *p = t->data;

    if (!p->link)
        give_up(p); /* The look-up could not even be started. */
    else if (!p->link->open)
        attempt_failed(p, "no answer (timed out): is a firewall in between?");
}

static void try_next(struct peers *p)
{
    const struct addrinfo *a = p->next_addr;
    int r;

    p->link = conn_new(p, PEER_LINK);
    if (!p->link) {
        (void)text_copy(p->why, sizeof p->why, "no memory");
        give_up(p);
        return;
    }
    p->next_addr = a->ai_next;
    r = uv_tcp_connect(&p->connecting, &p->link->tcp, a->ai_addr,
                       on_connected);
    if (r != 0)
        attempt_failed(p, uv_strerror(r));
    else
        (void)uv_timer_start(&p->limit, on_limit, PEER_CONNECT_MS, 0);
}

static void on_resolved(uv_getaddrinfo_t *req, int status,
                        struct addrinfo *res)
{
    struct peers *p = req->data;

    if (status != 0) {
        (void)snprintf(p->why, sizeof p->why,
                       "the name does not resolve (%s)", uv_strerror(status));
        give_up(p);
        return;
    }
    p->addrs = p->next_addr = res;
    try_next(p);
}

void peers_link_connect(struct peers *p)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV};
    char port[16];
    int r;

    if (p->link || p->addrs)
        return;
    (void)snprintf(port, sizeof port, "%u", p->port);
    r = uv_getaddrinfo(p->loop, &p->lookup, on_resolved, p->host, port,
                       &hints);
    if (r != 0) {
        (void)snprintf(p->why, sizeof p->why, "look-up of the name: %s",
                       uv_strerror(r));
        (void)uv_timer_start(&p->limit, on_limit, 0, 0);
    }
}

void peers_link_send(struct peers *p, const struct wire_msg *m)
{
    conn_send(p->link, m);
}

void peers_link_close(struct peers *p, bool abort)
{
    struct conn *c = p->link;

    if (!c)
        return;
    (void)text_copy(p->why, sizeof p->why, "closed");
    if (abort)
        p->link = NULL; /* The caller knows; no report. */
    conn_close(c, abort);
}
