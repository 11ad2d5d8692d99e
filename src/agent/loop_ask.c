/* loop_ask: see loop_ask.h. A connection is read until its request is whole,
 * is answered, and is then read until its other side closes. One deadline
 * stands for all of that; where a door is full the oldest connection goes, so
 * that one who asks now is answered whatever lies idle. */
#include "agent/loop_ask.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void arm(struct loop *l);

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

/* Close it, now. */
static void drop(struct ask *a)
{
    struct door *d = a->door;
    unsigned i = 0;

    while (i < d->n && d->at[i] != a)
        i++;
    if (i == d->n)
        return;
    d->n--;
    memmove(&d->at[i], &d->at[i + 1], (d->n - i) * sizeof d->at[0]);
    d->l->asks->held -= a->out ? a->out_len : 0;
    free(a->out);
    a->out = NULL;
    uv_close((uv_handle_t *)&a->poll, on_closed);
    (void)close(a->fd);
}

/* What comes after the request: read, so that closing is no reset. */
static void drain(struct ask *a)
{
    char buf[4096];
    ssize_t n;

    do {
        n = read(a->fd, buf, sizeof buf);
        a->unread += n > 0 ? (size_t)n : 0;
    } while ((n > 0 && a->unread < ASK_UNREAD_MAX) ||
             (n < 0 && errno == EINTR));
    if (n >= 0 || errno != EAGAIN)
        drop(a);
}

static void on_ask(uv_poll_t *poll, int status, int events);

static void send_more(struct ask *a)
{
    while (a->sent < a->out_len) {
        ssize_t n = send(a->fd, a->out + a->sent, a->out_len - a->sent,
                         MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            (void)uv_poll_start(&a->poll, UV_WRITABLE, on_ask);
            return;
        }
        if (n < 0) {
            drop(a);
            return;
        }
        a->sent += (size_t)n;
    }
    a->door->l->asks->held -= a->out_len;
    free(a->out);
    a->out = NULL;
    (void)shutdown(a->fd, SHUT_WR);
    (void)uv_poll_start(&a->poll, UV_READABLE, on_ask);
    drain(a);
}

static void answer(struct ask *a, int status, const struct http_request *r)
{
    struct asks *all = a->door->l->asks;

    if (all->held >= ASK_HELD_MAX)
        status = 503;
    a->answered = true;
    a->out = loop_page(a->door->l, status, r, &a->out_len);
    if (!a->out) {
        drop(a);
        return;
    }
    all->held += a->out_len;
    send_more(a);
}

static void read_request(struct ask *a)
{
    struct http_request r = {.page = HTTP_NONE};
    size_t before, head;
    ssize_t n;
    int status;

    for (;;) {
        n = read(a->fd, a->in + a->len, sizeof a->in - a->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            drop(a);
            return;
        }
        before = a->len;
        a->len += (size_t)n;
        head = http_head_len(a->in, a->len, before);
        if (head > 0) {
            status = http_parse(a->in, head, &r);
            answer(a, a->is_stranger ? 403 : status, &r);
            return;
        }
        if (a->len == sizeof a->in) {
            answer(a, 431, &r);
            return;
        }
    }
}

static void on_ask(uv_poll_t *poll, int status, int events)
{
    struct ask *a = poll->data;
    struct loop *l = a->door->l;

    (void)status;
    (void)events;
    if (a->out)
        send_more(a);
    else if (a->answered)
        drain(a);
    else
        read_request(a);
    arm(l);
}

static bool is_stranger(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 ||
           (peer.uid != 0 && peer.uid != geteuid());
}

static void enter(struct door *d, int fd)
{
    struct ask *a = calloc(1, sizeof *a);

    if (!a || uv_poll_init(&d->l->uv, &a->poll, fd) != 0) {
        free(a);
        (void)close(fd);
        return;
    }
    if (d->n == d->max)
        drop(d->at[0]);
    a->poll.data = a;
    a->door = d;
    a->fd = fd;
    a->is_stranger = d->is_local && is_stranger(fd);
    a->until_ms = loop_now() + ASK_MS;
    d->at[d->n++] = a;
    (void)uv_poll_start(&a->poll, UV_READABLE, on_ask);
    read_request(a); /* It is there already, mostly. */
}

static bool is_shortage(int e)
{
    return e == EMFILE || e == ENFILE || e == ENOBUFS || e == ENOMEM;
}

static void on_door(uv_poll_t *poll, int status, int events)
{
    struct door *d = poll->data;

    (void)status;
    (void)events;
    for (unsigned i = 0; i < ASK_BURST; i++) {
        int fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            enter(d, fd);
        } else if (errno == EAGAIN) {
            break;
        } else if (is_shortage(errno) && d->n > 0) {
            drop(d->at[0]);
        } else if (is_shortage(errno)) {
            (void)uv_poll_stop(&d->poll);
            d->rests_until_ms = loop_now() + ASK_REST_MS;
            break;
        }
        /* Any other error is that of a connection that is gone again. */
    }
    arm(d->l);
}

void door_open(struct loop *l, struct door *d, int fd)
{
    d->l = l;
    d->fd = fd;
    (void)uv_poll_init(&l->uv, &d->poll, fd);
    d->poll.data = d;
    (void)uv_poll_start(&d->poll, UV_READABLE, on_door);
}

/* --- time --- */

static void check_door(struct door *d, uint64_t now_ms)
{
    while (d->n > 0 && now_ms >= d->at[0]->until_ms)
        drop(d->at[0]);
    if (d->rests_until_ms && now_ms >= d->rests_until_ms) {
        d->rests_until_ms = 0;
        (void)uv_poll_start(&d->poll, UV_READABLE, on_door);
    }
}

static uint64_t door_deadline(const struct door *d)
{
    uint64_t at = d->n > 0 ? d->at[0]->until_ms : UINT64_MAX;

    return d->rests_until_ms && d->rests_until_ms < at ? d->rests_until_ms
                                                       : at;
}

static void on_time(uv_timer_t *t)
{
    struct loop *l = t->data;
    uint64_t now = loop_now();

    check_door(&l->asks->local, now);
    check_door(&l->asks->http, now);
    arm(l);
}

/* No timer runs while nobody asks. */
static void arm(struct loop *l)
{
    uint64_t a = door_deadline(&l->asks->local);
    uint64_t b = door_deadline(&l->asks->http);
    uint64_t at = a < b ? a : b, now = loop_now();

    if (at == UINT64_MAX)
        (void)uv_timer_stop(&l->asks->timer);
    else
        (void)uv_timer_start(&l->asks->timer, on_time, at > now ? at - now : 0,
                             0);
}

/* --- from the start to the end --- */

void loop_asks_open(struct loop *l)
{
    struct asks *all = l->asks;
    const char *asked = l->plan->o->socket;
    struct err e;

    if (all->tried)
        return;
    all->tried = true;
    loop_guard_open(l); /* First: it knows the names that are tried. */
    (void)uv_timer_stop(&all->opener);
    if (status_socket_open(asked, l->plan->incarnation, &all->socket, &e) !=
        0) {
        /* Nice to have: a job runs without. */
        log_line(asked ? LOG_WARNING : LOG_DEBUG,
                 "agent status has no socket: %s; going on", e.text);
        return;
    }
    if (all->socket.taken[0])
        log_line(asked ? LOG_WARNING : LOG_DEBUG,
                 "another agent has %s; agent status of this one is at "
                 "--socket %s", all->socket.taken, all->socket.path);
    else
        log_debug("agent status asks at %s", all->socket.path);
    door_open(l, &all->local, all->socket.fd);
}

static void on_opener(uv_timer_t *t)
{
    loop_asks_open(t->data);
}

int loop_asks_new(struct loop *l, struct err *e)
{
    struct asks *all = calloc(1, sizeof *all);

    if (!all || loop_uv_open(l) != 0)
        return err_set(e, ERR_AGENT, "no memory");
    l->asks = all;
    all->local = (struct door){.l = l, .fd = -1, .is_local = true,
                               .max = HTTP_LOCAL_CONNS};
    all->http = (struct door){.l = l, .fd = -1, .max = HTTP_CONNS};
    all->socket.fd = -1;
    (void)uv_timer_init(&l->uv, &all->timer);
    (void)uv_timer_init(&l->uv, &all->opener);
    all->timer.data = l;
    all->opener.data = l;
    /* Not in the way of the first start. */
    (void)uv_timer_start(&all->opener, on_opener, ASK_OPEN_MS, 0);
    return loop_http_open(l, &all->http, e);
}

void loop_asks_end(struct loop *l)
{
    if (!l->asks)
        return;
    status_socket_close(&l->asks->socket);
    while (l->asks->local.n > 0)
        drop(l->asks->local.at[0]);
    while (l->asks->http.n > 0)
        drop(l->asks->http.at[0]);
    if (l->asks->http.fd >= 0)
        (void)close(l->asks->http.fd);
}
