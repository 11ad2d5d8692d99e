/* peer_mesh_talk: one connection of the mesh test. What is said on it, and
 * what a fault is called, is in mesh_talk.c. */
#include "rendezvous/peer_mesh_parts.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf);

static void on_closed(uv_handle_t *h)
{
    free(h);
}

/* Out of the list at once: a handle that closes is nobody's business. */
void talk_drop(struct talk *k, bool reset)
{
    struct peer_mesh *m = k->mesh;
    struct talk **at = &m->talks;

    while (*at && *at != k)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = k->next;
    *(k->t.calls ? &m->n_calls : &m->n_answers) -= 1;
    if (!reset || uv_tcp_close_reset(&k->tcp, on_closed) != 0)
        uv_close((uv_handle_t *)&k->tcp, on_closed);
}

struct talk *talk_new(struct peer_mesh *m, bool calls)
{
    struct talk *k = calloc(1, sizeof *k);

    if (!k)
        return NULL;
    k->mesh = m;
    k->t.calls = calls;
    k->t.me = m->rank;
    k->begin_ms = uv_now(m->peers->loop);
    (void)uv_tcp_init(m->peers->loop, &k->tcp);
    k->next = m->talks;
    m->talks = k;
    *(calls ? &m->n_calls : &m->n_answers) += 1;
    return k;
}

static void fail(struct talk *k, enum mesh_reason reason)
{
    struct peer_mesh *m = k->mesh;

    if (k->t.calls)
        mesh_note_bad(m, &k->to, reason);
    talk_drop(k, true);
    mesh_go_on(m);
    mesh_answer_more(m);
}

static void say(struct talk *k, unsigned i, uint8_t *bytes, size_t n)
{
    uv_buf_t buf = uv_buf_init((char *)bytes, (unsigned)n);

    /* A failed write shows as a failed read, too. */
    (void)uv_write(&k->writes[i], (uv_stream_t *)&k->tcp, &buf, 1, NULL);
}

/* The hello alone in its packet: it passes where large ones do not. */
static void say_all(struct talk *k)
{
    mesh_hello(k->hello, k->mesh->nonce, k->mesh->rank, k->t.them);
    say(k, 0, k->hello, sizeof k->hello);
    say(k, 1, k->mesh->block, MESH_BLOCK);
}

static void give_room(uv_handle_t *h, size_t hint, uv_buf_t *buf)
{
    struct talk *k = (struct talk *)h;

    (void)hint;
    *buf = uv_buf_init((char *)k->mesh->in,
                       (unsigned)mesh_talk_room(&k->t));
}

/* Its hello is here: false where it is of no use (any more). */
static bool judge(struct talk *k)
{
    struct peer_mesh *m = k->mesh;

    if (!k->t.calls && !m->runs && !m->is_over) {
        k->waits = true; /* Pod 0's word to this pod is still on its way. */
        (void)uv_read_stop((uv_stream_t *)&k->tcp);
        return true;
    }
    if (!mesh_talk_judge(&k->t, m->nonce)) {
        fail(k, MESH_STRANGER);
        return false;
    }
    if (!k->t.calls)
        say_all(k);
    return true;
}

static void take(struct talk *k, size_t n)
{
    struct peer_mesh *m = k->mesh;
    enum mesh_reason reason = MESH_FAILED;

    switch (mesh_talk_take(&k->t, m->in, n, m->block, &reason)) {
    case MESH_TALK_READ:
        break;
    case MESH_TALK_JUDGE:
        (void)judge(k);
        break;
    case MESH_TALK_THANK:
        k->thanks = MESH_GOT_IT;
        say(k, 2, &k->thanks, 1);
        break;
    case MESH_TALK_OVER:
        if (!k->t.calls)
            break; /* The caller closes. */
        talk_drop(k, true);
        mesh_go_on(m);
        break;
    case MESH_TALK_FAILED:
        fail(k, reason);
        break;
    }
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct talk *k = (struct talk *)s;

    (void)buf;
    if (n == UV_EOF)
        fail(k, MESH_CLOSED);
    else if (n < 0)
        fail(k, mesh_reason_of_errno((int)-n));
    else
        take(k, (size_t)n);
}

void talk_start(struct talk *k)
{
    k->t.connected = true;
    (void)uv_tcp_nodelay(&k->tcp, 1);
    (void)uv_read_start((uv_stream_t *)&k->tcp, give_room, on_read);
}

static void on_connected(uv_connect_t *req, int status)
{
    struct talk *k = (struct talk *)req->handle;

    if (uv_is_closing((uv_handle_t *)k))
        return;
    if (status != 0) {
        fail(k, mesh_reason_of_errno(-status));
        return;
    }
    talk_start(k);
    say_all(k);
}

static bool is_link_local(const struct wire_addr *a)
{
    return a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80;
}

static void to_sockaddr(const struct peer_mesh *m, const struct wire_addr *a,
                        struct sockaddr_storage *ret)
{
    struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)(void *)ret;
    struct sockaddr_in *a4 = (struct sockaddr_in *)(void *)ret;

    memset(ret, 0, sizeof *ret);
    memcpy(&a6->sin6_addr, a->ip, sizeof a->ip);
    if (IN6_IS_ADDR_V4MAPPED(&a6->sin6_addr)) {
        memset(ret, 0, sizeof *ret);
        a4->sin_family = AF_INET;
        a4->sin_port = htons(a->port);
        memcpy(&a4->sin_addr, a->ip + 12, 4);
        return;
    }
    a6->sin6_family = AF_INET6;
    a6->sin6_port = htons(a->port);
    if (is_link_local(a))
        a6->sin6_scope_id = m->peers->scope_id;
}

void talk_call(struct peer_mesh *m, const struct wire_partner *to)
{
    struct talk *k = talk_new(m, true);
    struct sockaddr_storage addr;
    int r;

    if (!k) {
        mesh_note_bad(m, to, MESH_NO_ROOM);
        return;
    }
    k->to = *to;
    k->t.them = to->rank;
    to_sockaddr(m, &to->at, &addr);
    r = uv_tcp_connect(&k->connecting, &k->tcp, (struct sockaddr *)&addr,
                       on_connected);
    if (r != 0) {
        mesh_note_bad(m, to, mesh_reason_of_errno(-r));
        talk_drop(k, true);
    }
}

static size_t unsent(struct talk *k)
{
    int n = 0, fd = -1;

    if (uv_fileno((uv_handle_t *)&k->tcp, &fd) != 0 ||
        ioctl(fd, SIOCOUTQ, &n) != 0)
        n = 1;
    return k->tcp.write_queue_size + (size_t)n;
}

enum mesh_reason talk_late(struct talk *k)
{
    return mesh_talk_late(&k->t, unsent(k));
}

bool talk_wake(struct talk *k)
{
    k->waits = false;
    if (!judge(k))
        return false;
    (void)uv_read_start((uv_stream_t *)&k->tcp, give_room, on_read);
    return true;
}
