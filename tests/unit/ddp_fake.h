/* A peer of libddp that a test plays byte by byte, while the real rank is a
 * thread. */
#ifndef DDP_FAKE_H
#define DDP_FAKE_H

#include "ddp/addr.h"
#include "ddp/call.h"
#include "ddp/conn.h"
#include "ddp/hello.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000
#define SHORT_MS 300

/* The real one: ddp_init, then an all_reduce where that worked. */
struct real {
    struct ddp_options opt;
    pthread_t thread;
    int rc;
    struct ddp_error err;
};

static inline void *real_main(void *arg)
{
    struct real *r = arg;
    struct ddp_comm *c = NULL;
    float buf[4] = {0};

    r->rc = ddp_init(&c, &r->opt, &r->err);
    if (!r->rc)
        r->rc = ddp_all_reduce(c, buf, buf, 4, DDP_F32, DDP_SUM, NULL, &r->err);
    ddp_free(c);
    return NULL;
}

static inline void real_start(struct real *r, int rank, int size, int port,
                              uint64_t timeout_ms)
{
    r->opt = (struct ddp_options){
        .size = sizeof r->opt, .timeout_ms = timeout_ms, .world_size = size,
        .rank = rank, .master_addr = "127.0.0.1", .master_port = port,
        .job_id = "boot"};
    assert_int_equal(pthread_create(&r->thread, NULL, real_main, r), 0);
}

static inline void real_expect(struct real *r, int code, int peer,
                               const char *want)
{
    (void)pthread_join(r->thread, NULL);
    if (r->rc != code || (code && r->err.peer != peer) ||
        (code && !strstr(r->err.text, want)))
        fail_msg("%d, peer %d, '%s'; wanted %d, %d, '%s'", r->rc, r->err.peer,
                 r->rc ? r->err.text : "", code, peer, want);
}

/* --- the fake one -------------------------------------------------------- */

static inline struct ddp_addr loopback(int port)
{
    return (struct ddp_addr){.ip = {[10] = 0xff, 0xff, 127, 0, 0, 1},
                             .port = (uint16_t)port};
}

static inline int fake_listen(int *ret_port)
{
    struct ddp_addr at = loopback(0);
    int fd = ddp_socket_listen(&at, 16);

    assert_true(fd >= 0 && ddp_addr_local(fd, &at));
    *ret_port = at.port;
    return fd;
}

static inline void wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};

    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

static inline void fake_accept(int listen_fd, struct ddp_conn *ret)
{
    wait_for(listen_fd, POLLIN);
    ddp_conn_open(ret, ddp_socket_accept(listen_fd), -1);
    assert_true(ret->fd >= 0);
}

static inline void fake_connect(const struct ddp_addr *to, struct ddp_conn *ret)
{
    int fd = ddp_socket_connect(to);

    assert_true(fd >= 0);
    wait_for(fd, POLLOUT);
    assert_int_equal(ddp_socket_connected(fd), 0);
    ddp_conn_open(ret, fd, -1);
}

/* The next frame, which must be of this kind. */
static inline void fake_expect(struct ddp_conn *c, enum ddp_frame_kind kind,
                               struct ddp_frame *ret)
{
    enum ddp_got got;

    while ((got = ddp_conn_get(c, ret)) == DDP_GOT_NONE)
        wait_for(c->fd, POLLIN);
    assert_int_equal(got, DDP_GOT_FRAME);
    assert_int_equal(ret->kind, kind);
}

static inline void fake_say(struct ddp_conn *c, const struct ddp_frame *f)
{
    assert_int_equal(ddp_conn_put(c, f), 0);
    assert_int_equal(c->out_len, 0);
}

static inline void fake_kind(struct ddp_conn *c, enum ddp_frame_kind kind)
{
    const struct ddp_frame f = {.kind = kind};

    fake_say(c, &f);
}

static inline void fake_bytes(struct ddp_conn *c, const char *bytes)
{
    assert_int_equal(send(c->fd, bytes, strlen(bytes), MSG_NOSIGNAL),
                     strlen(bytes));
}

/* A fake rank 0 of two ranks, and all its sockets. */
struct fake {
    int listen_fd, ring_fd; /* To gather at; for the real one's ring. */
    struct ddp_conn boot, ctl_in, data_in, ctl_out, data_out;
    struct ddp_addr real_at; /* Where the real one listens. */
};

static const struct ddp_frame token_table = {
    .kind = DDP_TABLE, .token = {4, 2}, .via_root = 1};

/* Up to HELLO, by which the real rank 1 has come. */
static inline void fake_gather(struct fake *k, struct real *r,
                               uint64_t timeout_ms)
{
    struct ddp_frame f;
    int port;

    memset(k, 0, sizeof *k);
    k->ring_fd = k->ctl_in.fd = k->data_in.fd = -1;
    k->ctl_out.fd = k->data_out.fd = -1;
    k->listen_fd = fake_listen(&port);
    real_start(r, 1, 2, port, timeout_ms);
    fake_accept(k->listen_fd, &k->boot);
    fake_expect(&k->boot, DDP_HELLO, &f);
    assert_int_equal(f.rank, 1);
    assert_int_equal(f.world, 2);
    assert_string_equal(f.text, "boot");
    k->real_at = f.addr;
}

/* Up to the ring connections that the real one makes. */
static inline void fake_table(struct fake *k)
{
    struct ddp_frame f = token_table;
    int port;

    k->ring_fd = fake_listen(&port);
    f.addr.port = (uint16_t)port;
    fake_kind(&k->boot, DDP_WELCOME);
    fake_say(&k->boot, &f);
    for (unsigned i = 0; i < 2; i++) {
        struct ddp_conn c;

        fake_accept(k->ring_fd, &c);
        fake_expect(&c, DDP_RING, &f);
        assert_memory_equal(f.token, token_table.token, sizeof f.token);
        assert_int_equal(f.rank, 1);
        assert_int_equal(f.to, 0);
        *(f.channel ? &k->data_in : &k->ctl_in) = c;
    }
}

static inline void fake_ring_out(struct fake *k, struct ddp_conn *c,
                                 uint32_t channel, uint8_t token)
{
    struct ddp_frame f = {.kind = DDP_RING, .rank = 0, .to = 1,
                          .channel = channel, .token = {token, 2}};

    fake_connect(&k->real_at, c);
    fake_say(c, &f);
}

/* Up to READY. */
static inline void fake_ring(struct fake *k)
{
    struct ddp_conn stranger;
    struct ddp_frame f;

    fake_table(k);
    fake_ring_out(k, &stranger, 0, 5); /* A wrong token: not taken in. */
    fake_ring_out(k, &k->data_out, 1, 4);
    fake_ring_out(k, &k->ctl_out, 0, 4);
    fake_expect(&k->boot, DDP_READY, &f);
    ddp_conn_close(&stranger);
}

/* Up to the real one's CALL, on both connections. */
static inline void fake_call(struct fake *k, struct ddp_frame *ret)
{
    struct ddp_frame f;

    fake_ring(k);
    fake_kind(&k->boot, DDP_GO);
    fake_expect(&k->ctl_in, DDP_CALL, ret);
    fake_expect(&k->ctl_out, DDP_CALL, &f);
}

static inline void fake_close(struct fake *k)
{
    ddp_conn_close(&k->boot);
    ddp_conn_close(&k->ctl_in);
    ddp_conn_close(&k->ctl_out);
    ddp_conn_close(&k->data_in);
    ddp_conn_close(&k->data_out);
    ddp_socket_close(&k->ring_fd);
    ddp_socket_close(&k->listen_fd);
}

/* As rank 1 of three, which listens at `at`, up to WELCOME; rank 2 is real,
 * too. */
static inline void fake_join_at(struct real r[3], struct ddp_conn *c,
                                const struct ddp_addr *at, uint64_t timeout_ms)
{
    const uint8_t host[DDP_TOKEN] = {0};
    struct ddp_conf conf = {.rank = 1, .size = 3, .job = "boot",
                            .attempt = DDP_NO_ATTEMPT};
    struct ddp_addr root;
    struct ddp_frame f;
    int port, fd = fake_listen(&port);

    ddp_socket_close(&fd);
    root = loopback(port);
    conf.master_port = (uint16_t)port;
    real_start(&r[0], 0, 3, port, timeout_ms);
    for (fd = -1; fd < 0 || ddp_socket_connected(fd);) {
        ddp_socket_close(&fd);
        fd = ddp_socket_connect(&root);
        assert_true(fd >= 0);
        wait_for(fd, POLLOUT);
    }
    ddp_conn_open(c, fd, 0);
    ddp_hello_put(&conf, at, host, &f);
    fake_say(c, &f);
    fake_expect(c, DDP_WELCOME, &f);
}

/* Nobody listens where it says. */
static inline void fake_join(struct real r[3], struct ddp_conn *c)
{
    const struct ddp_addr at = loopback(9);

    fake_join_at(r, c, &at, PATIENCE_MS);
}

static inline int clear_environment(void **state)
{
    static const char *const names[] = {
        "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_USE_AGENT_STORE",
        "LOCAL_RANK", "LOCAL_WORLD_SIZE", "DDP_BOOTSTRAP_PORT"};

    (void)state;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unsetenv(names[i]);
    return 0;
}

#endif
