/* barrier_client: see barrier_client.h. */
#include "barrier_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define PENDING 256     /* Connections being made at a time. */
#define PER_ADDRESS 5000

void die(const char *what)
{
    fprintf(stderr, "bench_barrier: %s: %s\n", what, strerror(errno));
    exit(1);
}

double now_s(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct sockaddr_in address(unsigned host, unsigned port)
{
    struct sockaddr_in a = {.sin_family = AF_INET};

    a.sin_addr.s_addr = htonl(0x7f000000u + host);
    a.sin_port = htons((uint16_t)port);
    return a;
}

unsigned free_port(void)
{
    struct sockaddr_in a = address(1, 0);
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &len) != 0)
        die("a free port");
    (void)close(fd);
    return ntohs(a.sin_port);
}

void send_all(int fd, const uint8_t *bytes, size_t len)
{
    if (send(fd, bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
        die("send");
}

static void take_frames(struct client *c, struct peer *p)
{
    size_t at = 0, len;

    while (p->n_in - at >= WIRE_HEAD) {
        len = WIRE_HEAD + ((size_t)p->in[at + 6] << 8 | p->in[at + 7]);
        if (p->n_in - at < len)
            break;
        c->seen[p->in[at + 5] % KINDS]++;
        if (p->in[at + 5] == WIRE_PING)
            send_all(p->fd, p->in + at, len); /* As pods do. */
        at += len;
    }
    p->n_in -= at;
    if (at && p->n_in)
        memmove(p->in, p->in + at, p->n_in);
}

void pump(struct client *c, int ms)
{
    struct epoll_event ev[512];
    int n = epoll_wait(c->epoll, ev, 512, ms);

    for (int i = 0; i < n; i++) {
        struct peer *p = ev[i].data.ptr;
        ssize_t r = recv(p->fd, p->in + p->n_in, sizeof p->in - p->n_in, 0);

        if (r > 0) {
            p->n_in += (size_t)r;
            take_frames(c, p);
        } else if (r == 0 || (errno != EAGAIN && errno != EINTR)) {
            fprintf(stderr, "bench_barrier: the server closed\n");
            exit(1);
        }
    }
}

void wait_for(struct client *c, unsigned kind, unsigned n)
{
    double limit = now_s() + 120;

    while (c->seen[kind] < n) {
        pump(c, 1000);
        if (now_s() > limit) {
            fprintf(stderr, "bench_barrier: %u of %u frames of kind %u\n",
                    c->seen[kind], n, kind);
            exit(1);
        }
    }
}

static void connect_one(struct client *c, struct peer *p, unsigned i)
{
    struct sockaddr_in from = address(2 + i / PER_ADDRESS, 0);
    struct sockaddr_in to = address(1, c->port);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = p};
    int one = 1;

    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->fd < 0)
        die("socket (ulimit -n?)");
    (void)setsockopt(p->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one,
                     sizeof one);
    if (bind(p->fd, (struct sockaddr *)&from, sizeof from) != 0)
        die("bind");
    for (int k = 0; connect(p->fd, (struct sockaddr *)&to, sizeof to) != 0;
         k++) {
        if (errno != ECONNREFUSED || k == 500)
            die("connect");
        (void)usleep(10000); /* The server is not there yet. */
    }
    if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, p->fd, &ev) != 0)
        die("epoll_ctl");
}

static void say_hello(struct client *c, unsigned i)
{
    struct wire_msg m = {.kind = WIRE_HELLO, .incarnation = i + 1000,
                         .node_rank = i + 1, .nnodes = c->n + 1, .nproc = 1,
                         .running = WIRE_NO_ROUND, .job_id = "none",
                         .host = "bench"};
    uint8_t bytes[WIRE_FRAME_MAX];

    send_all(c->peers[i].fd, bytes, wire_encode(&m, bytes));
}

void open_all(struct client *c, bool hello)
{
    memset(c->seen, 0, sizeof c->seen);
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned i = 0; i < c->n; i++) {
        c->peers[i].n_in = 0;
        connect_one(c, &c->peers[i], i);
        if (!hello)
            continue;
        say_hello(c, i);
        if (i >= PENDING)
            wait_for(c, WIRE_WELCOME, i - PENDING);
    }
    if (hello)
        wait_for(c, WIRE_WELCOME, c->n);
}

void close_all(struct client *c)
{
    for (unsigned i = 0; i < c->n; i++)
        (void)close(c->peers[i].fd);
    (void)close(c->epoll);
}

void tell_all(struct client *c, const uint8_t *bytes, size_t len)
{
    for (unsigned i = 0; i < c->n; i++)
        send_all(c->peers[i].fd, bytes, len);
}

void tell_kind(struct client *c, enum wire_kind kind)
{
    struct wire_msg m = {.kind = kind};
    uint8_t bytes[WIRE_FRAME_MAX];

    tell_all(c, bytes, wire_encode(&m, bytes));
}
