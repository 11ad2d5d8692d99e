/* peer_mesh: see peer_mesh.h. This file has the test and the listener; one
 * connection is in peer_mesh_talk.c. */
#include "rendezvous/peer_mesh_parts.h"

#include "rendezvous/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static void on_limit(uv_timer_t *t);

void mesh_note_bad(struct peer_mesh *m, const struct wire_partner *to,
                     enum mesh_reason reason)
{
    struct wire_msg *r = &m->report;

    r->n_bad++;
    if (r->n_partners == WIRE_PARTNERS_MAX)
        return;
    r->partners[r->n_partners] = *to;
    r->partners[r->n_partners++].reason = (uint8_t)reason;
}

void mesh_go_on(struct peer_mesh *m)
{
    if (!m->runs)
        return;
    while (m->n_begun < m->n_partners && m->n_calls < MESH_CALLS_MAX)
        talk_call(m, &m->partners[m->n_begun++]);
    if (m->n_begun == m->n_partners && m->n_calls == 0)
        (void)uv_timer_start(&m->limit, on_limit, 0, 0);
}

static void drop_calls(struct peer_mesh *m, bool note)
{
    struct talk *next;

    for (struct talk *k = m->talks; k; k = next) {
        next = k->next;
        if (!k->t.calls)
            continue;
        if (note)
            mesh_note_bad(m, &k->to, talk_late(k));
        talk_drop(k, true);
    }
}

/* The time is over, or there is nothing left to do, or to do again. */
static void on_limit(uv_timer_t *t)
{
    struct peer_mesh *m = t->data;

    if (m->runs) {
        drop_calls(m, true);
        while (m->n_begun < m->n_partners)
            mesh_note_bad(m, &m->partners[m->n_begun++], MESH_UNTRIED);
        m->runs = false;
        m->is_over = true;
    }
    if (m->is_over)
        m->done(m->ctx, &m->report);
}

static void begin(struct peer_mesh *m)
{
    struct talk *k = m->talks, *next;

    memset(&m->report, 0, sizeof m->report);
    m->report.kind = WIRE_MESHED;
    m->report.mesh_nonce = m->nonce;
    m->report.n_total = m->n_partners;
    m->runs = true;
    m->n_begun = 0;
    mesh_block(m->nonce, m->block);
    (void)uv_timer_start(&m->limit, on_limit, MESH_TEST_MS, 0);
    for (; k; k = next) {
        next = k->next;
        if (k->waits && !talk_wake(k))
            next = m->talks; /* It is gone, and the list may have changed. */
    }
    mesh_go_on(m);
}

void peer_mesh_test(struct peer_mesh *m, const struct wire_msg *msg)
{
    if (msg->mesh_nonce == m->nonce && m->is_over) {
        (void)uv_timer_start(&m->limit, on_limit, 0, 0);
        return;
    }
    if (msg->mesh_nonce == m->nonce && m->runs)
        return;
    if (msg->first == 0) {
        drop_calls(m, false);
        (void)uv_timer_stop(&m->limit);
        m->nonce = msg->mesh_nonce;
        m->runs = m->is_over = false;
        m->n_partners = 0;
    }
    if (msg->mesh_nonce != m->nonce || msg->first != m->n_partners ||
        msg->n_partners > MESH_PARTNERS_MAX - m->n_partners)
        return; /* A part is missing: pod 0 hears nothing, and says so. */
    memcpy(m->partners + m->n_partners, msg->partners,
           msg->n_partners * sizeof msg->partners[0]);
    m->n_partners += msg->n_partners;
    if (m->n_partners == msg->n_total)
        begin(m);
}

/* --- answerers --- */

static void on_stale(uv_timer_t *t)
{
    struct peer_mesh *m = t->data;
    uint64_t now = uv_now(t->loop);
    struct talk *next;

    for (struct talk *k = m->talks; k; k = next) {
        next = k->next;
        if (!k->t.calls && now - k->begin_ms >= MESH_LIMIT_MS)
            talk_drop(k, true);
    }
    mesh_answer_more(m);
    if (m->n_answers > 0)
        (void)uv_timer_start(&m->stale, on_stale, MESH_LIMIT_MS / 4, 0);
}

static void accept_one(struct peer_mesh *m)
{
    struct talk *k = talk_new(m, false);

    if (!k) {
        m->held_back = true;
        return;
    }
    if (uv_accept((uv_stream_t *)m->listener, (uv_stream_t *)&k->tcp) != 0) {
        talk_drop(k, false);
        return;
    }
    talk_start(k);
    if (!uv_is_active((uv_handle_t *)&m->stale))
        (void)uv_timer_start(&m->stale, on_stale, MESH_LIMIT_MS, 0);
}

/* One that waits in libuv's hand; it takes no other before. */
void mesh_answer_more(struct peer_mesh *m)
{
    if (!m->held_back || !m->listener || m->n_answers >= MESH_ANSWERS_MAX)
        return;
    m->held_back = false;
    accept_one(m);
}

static void on_connection(uv_stream_t *s, int status)
{
    struct peer_mesh *m = s->data;

    if (status != 0)
        return;
    if (m->n_answers < MESH_ANSWERS_MAX)
        accept_one(m);
    else
        m->held_back = true;
}

static void on_closed(uv_handle_t *h)
{
    free(h);
}

static void stop_listening(struct peer_mesh *m)
{
    if (m->listener)
        uv_close((uv_handle_t *)m->listener, on_closed);
    m->listener = NULL;
    m->held_back = false;
}

/* Where to listen: at the link's address, or (pod 0) as its barrier does. */
static int find_address(struct peer_mesh *m, unsigned port,
                        struct sockaddr_storage *ret)
{
    struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)(void *)ret;
    struct conn *link = m->peers->link;
    socklen_t len = sizeof *ret;
    int fd = -1, r = 0;

    memset(ret, 0, sizeof *ret);
    if (m->rank == 0)
        fd = m->peers->listen_fd;
    else if (link)
        r = uv_fileno((uv_handle_t *)&link->tcp, &fd);
    if (r == 0 && getsockname(fd, (struct sockaddr *)ret, &len) != 0)
        r = -errno;
    a6->sin6_port = htons((uint16_t)port); /* At the same place in both. */
    return r;
}

static int listen_at(struct peer_mesh *m, const struct sockaddr_storage *at)
{
    struct sockaddr_storage is;
    int len = sizeof is, r;

    m->listener = malloc(sizeof *m->listener);
    if (!m->listener)
        return UV_ENOMEM;
    (void)uv_tcp_init(m->peers->loop, m->listener);
    m->listener->data = m;
    r = uv_tcp_bind(m->listener, (const struct sockaddr *)at, 0);
    if (r == 0)
        r = uv_listen((uv_stream_t *)m->listener, MESH_PARTNERS_MAX,
                      on_connection);
    if (r == 0)
        r = uv_tcp_getsockname(m->listener, (struct sockaddr *)&is, &len);
    if (r == 0)
        peer_addr((const struct sockaddr *)&is, &m->here);
    else
        stop_listening(m);
    return r;
}

int peer_mesh_open(struct peer_mesh *m, uint32_t rank, unsigned port,
                   struct wire_addr *ret, struct err *e)
{
    struct sockaddr_storage at;
    char who[128] = "";
    int r;

    m->rank = rank;
    r = find_address(m, port, &at);
    if (r == 0 && m->listener && memcmp(&at, &m->bound, sizeof at) != 0)
        stop_listening(m);
    if (r == 0 && !m->listener) {
        m->bound = at;
        r = listen_at(m, &at);
    }
    if (r == UV_EADDRINUSE && port != 0) {
        port_holder(port, who, sizeof who);
        return err_set(e, ERR_RESOURCE, "--mesh-port %u is taken%s%s: give "
                       "this pod another one", port, who[0] ? " by " : "",
                       who);
    }
    if (r != 0)
        return err_set(e, ERR_RESOURCE, "cannot listen for the mesh test: %s",
                       uv_strerror(r));
    *ret = m->here;
    return 0;
}

int peer_mesh_new(struct peer_mesh **ret, struct peers *peers, void *ctx,
                  void (*done)(void *ctx, const struct wire_msg *m),
                  struct err *e)
{
    struct peer_mesh *m = calloc(1, sizeof *m);

    if (m) {
        m->partners = calloc(MESH_PARTNERS_MAX, sizeof *m->partners);
        m->block = malloc(MESH_BLOCK);
        m->in = malloc(MESH_BLOCK);
    }
    if (!m || !m->partners || !m->block || !m->in) {
        if (m) {
            free(m->partners);
            free(m->block);
            free(m->in);
        }
        free(m);
        return err_set(e, ERR_AGENT, "no memory for the mesh test");
    }
    m->peers = peers;
    m->ctx = ctx;
    m->done = done;
    (void)uv_timer_init(peers->loop, &m->limit);
    (void)uv_timer_init(peers->loop, &m->stale);
    m->limit.data = m->stale.data = m;
    *ret = m;
    return 0;
}

void peer_mesh_close(struct peer_mesh *m)
{
    stop_listening(m);
    m->runs = m->is_over = false;
    m->nonce = 0;
    while (m->talks)
        talk_drop(m->talks, true);
    (void)uv_timer_stop(&m->limit);
    (void)uv_timer_stop(&m->stale);
}
