/* peer: see peer.h. This file has what all connections share. */
#include "rendezvous/peer.h"

#include "base/text.h"
#include "rendezvous/peer_parts.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct out_frame {
    uv_write_t req;
    uint8_t bytes[]; /* Of one frame. */
};

static void on_closed(uv_handle_t *h)
{
    struct conn *c = (struct conn *)h;
    struct peers *p = c->peers;
    uint32_t id = c->id;

    if (id == PEER_LINK) {
        link_closed(p, c, p->why);
    } else if (id != PEER_GONE) {
        peers_id_free(p, id);
        p->out.conn_closed(p->out.ctx, id);
    }
    free(c);
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
    uv_handle_t *h = (uv_handle_t *)req->handle;

    (void)status;
    free(req);
    if (!uv_is_closing(h))
        uv_close(h, on_closed);
}

void conn_close(struct conn *c, bool abort)
{
    uv_shutdown_t *req;

    if (uv_is_closing((uv_handle_t *)c))
        return;
    if (!abort && c->open) {
        if (c->closing)
            return;
        c->closing = true;
        req = malloc(sizeof *req);
        if (req && uv_shutdown(req, (uv_stream_t *)&c->tcp, on_shutdown) == 0)
            return;
        free(req);
    }
    c->closing = true;
    if (abort && c->open && uv_tcp_close_reset(&c->tcp, on_closed) == 0)
        return;
    uv_close((uv_handle_t *)c, on_closed);
}

void conn_fail(struct conn *c, const char *why)
{
    if (c->id == PEER_LINK)
        (void)text_copy(c->peers->why, sizeof c->peers->why, why);
    conn_close(c, true);
}

static void on_written(uv_write_t *req, int status)
{
    /* A failed write shows as a failed read, too. */
    (void)status;
    free(req);
}

void conn_send(struct conn *c, const struct wire_msg *m)
{
    uint8_t bytes[WIRE_FRAME_MAX];
    size_t len = wire_encode(m, bytes);
    struct out_frame *f;
    uv_buf_t buf = uv_buf_init((char *)bytes, (unsigned)len);
    size_t sent = 0;
    int n;

    if (!c || !c->open || c->closing)
        return;
    /* Nearly always all of it fits: no copy, no call back. */
    n = uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);
    if (n > 0)
        sent = (size_t)n;
    if (sent == len)
        return;
    len -= sent;
    if (c->tcp.write_queue_size > PEER_PENDING_MAX) {
        conn_fail(c, "it does not read what is sent");
        return;
    }
    f = malloc(sizeof *f + len);
    if (!f) {
        conn_fail(c, "no memory");
        return;
    }
    memcpy(f->bytes, bytes + sent, len);
    buf = uv_buf_init((char *)f->bytes, (unsigned)len);
    if (uv_write(&f->req, (uv_stream_t *)&c->tcp, &buf, 1, on_written) != 0) {
        free(f);
        conn_fail(c, "cannot write");
    }
}

static void give_room(uv_handle_t *h, size_t hint, uv_buf_t *buf)
{
    struct conn *c = (struct conn *)h;

    (void)hint;
    *buf = uv_buf_init((char *)c->in + c->n_in,
                       (unsigned)(sizeof c->in - c->n_in));
}

/* Take one frame from the front; false where there is none (any more). */
static bool take_frame(struct conn *c)
{
    struct peers *p = c->peers;
    struct wire_msg m;
    const char *why = "";
    unsigned version;
    int n = c->is_guest
                ? wire_decode_guest(c->in, c->n_in, &m, &why, &version)
                : wire_decode(c->in, c->n_in, &m, &why, &version);

    if (n == 0)
        return false;
    if (n < 0) {
        if (c->id != PEER_LINK)
            p->out.conn_garbage(p->out.ctx, c->id, why, version);
        else
            conn_fail(c, why);
        c->n_in = 0;
        return false;
    }
    c->n_in -= (size_t)n;
    memmove(c->in, c->in + n, c->n_in);
    if (c->id == PEER_LINK)
        p->out.link_message(p->out.ctx, &m);
    else
        p->out.conn_message(p->out.ctx, c->id, &m);
    return !c->closing && !uv_is_closing((uv_handle_t *)c);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct conn *c = (struct conn *)s;
    char why[128];

    (void)buf;
    if (n == UV_EOF) {
        conn_fail(c, "it closed the connection");
    } else if (n < 0) {
        (void)snprintf(why, sizeof why, "%s", uv_strerror((int)n));
        conn_fail(c, why);
    } else {
        c->n_in += (size_t)n;
        while (take_frame(c))
            ;
    }
}

struct conn *conn_new(struct peers *p, uint32_t id)
{
    struct conn *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->peers = p;
    c->id = id;
    c->is_guest = id != PEER_LINK;
    (void)uv_tcp_init(p->loop, &c->tcp);
    return c;
}

void conn_start(struct conn *c)
{
    c->open = true;
    (void)uv_tcp_nodelay(&c->tcp, 1);
    (void)uv_read_start((uv_stream_t *)&c->tcp, give_room, on_read);
}

void peer_addr(const struct sockaddr *a, struct wire_addr *ret)
{
    const struct sockaddr_in6 *a6 = (const void *)a;
    const struct sockaddr_in *a4 = (const void *)a;

    memset(ret, 0, sizeof *ret);
    ret->port = ntohs(a6->sin6_port); /* At the same place in both. */
    if (a->sa_family == AF_INET6) {
        memcpy(ret->ip, &a6->sin6_addr, sizeof ret->ip);
    } else {
        ret->ip[10] = ret->ip[11] = 0xff;
        memcpy(ret->ip + 12, &a4->sin_addr, 4);
    }
}

int peers_new(struct peers **ret, uv_loop_t *loop, const struct peers_out *out,
              uint32_t n_conns, const char *host, unsigned port, struct err *e)
{
    struct peers *p = calloc(1, sizeof *p);

    if (p) {
        p->conns = calloc(n_conns ? n_conns : 1, sizeof(struct conn *));
        p->free_ids = calloc(n_conns ? n_conns : 1, sizeof *p->free_ids);
    }
    if (!p || !p->conns || !p->free_ids) {
        if (p) {
            free(p->conns);
            free(p->free_ids);
        }
        free(p);
        return err_set(e, ERR_AGENT, "no memory for %u connections", n_conns);
    }
    p->loop = loop;
    p->out = *out;
    p->n_conns = n_conns;
    for (uint32_t id = n_conns; id-- > 1;)
        p->free_ids[p->n_free++] = id;
    p->host = host;
    p->port = port;
    (void)uv_timer_init(loop, &p->limit);
    p->limit.data = p;
    p->lookup.data = p;
    *ret = p;
    return 0;
}

void peers_send(struct peers *p, uint32_t conn, const struct wire_msg *m)
{
    if (conn < p->n_conns && p->conns[conn])
        conn_send(p->conns[conn], m);
}

void peers_close(struct peers *p, uint32_t conn, bool abort)
{
    struct conn *c = conn < p->n_conns ? p->conns[conn] : NULL;

    if (!c)
        return;
    conn_close(c, abort);
    if (abort) {
        peers_id_free(p, conn);
        c->id = PEER_GONE; /* The caller knows; no report. */
    }
}

void peers_admit(struct peers *p, uint32_t conn)
{
    if (conn >= p->n_conns || !p->conns[conn])
        return;
    p->conns[conn]->is_guest = false;
    conn_learn(p->conns[conn]);
}
