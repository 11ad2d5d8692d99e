/* loop_ask: who may ask this agent how it is: connections of the unix socket
 * and of --http, one request each. Internal to the loop. */
#ifndef AGENT_LOOP_ASK_H
#define AGENT_LOOP_ASK_H

#include "agent/http.h"
#include "agent/loop_parts.h"
#include "agent/status.h"
#include "agent/status_socket.h"
#include "supervise/usage.h"

#define ASK_MS 5000        /* From the connection to the last byte. */
#define ASK_BURST 16       /* Accepted in one go. */
#define ASK_REST_MS 100    /* Where there is no descriptor left. */
#define ASK_HELD_MAX (8u << 20)  /* Answers that wait for slow readers. */
#define ASK_UNREAD_MAX 65536     /* Read and dropped after the answer. */
#define ASK_USAGE_MS 500   /* /proc is not looked at more often. */
#define ASK_OPEN_MS 5      /* A job that is over by then has no socket. */

struct ask { /* A connection. Freed when libuv has closed it. */
    uv_poll_t poll;
    struct door *door;
    int fd;
    bool is_stranger; /* Of another uid. */
    bool answered;    /* What still comes is dropped. */
    uint64_t until_ms;
    size_t len, unread, out_len, sent;
    char *out; /* NULL: not made yet, or all sent. */
    char in[HTTP_HEAD_MAX];
};

struct door { /* A listening socket. */
    struct loop *l;
    uv_poll_t poll;
    int fd; /* -1: none. */
    bool is_local;
    uint64_t rests_until_ms; /* 0: it accepts. */
    struct ask *at[HTTP_CONNS]; /* The oldest first; full: it goes. */
    unsigned n, max;
};

struct asks {
    uv_timer_t timer, opener;
    bool tried; /* To make the socket. */
    struct status_socket socket;
    struct door local, http;
    size_t held; /* Bytes of answers under way. */
    struct status_worker *workers; /* Made when someone asks, then kept. */
    struct usage *usage;
    pid_t *sessions; /* Whose usage that is. */
    uint64_t usage_ms;
};

/* loop_status.c: the answer's head and body; free() it. NULL: no memory. */
char *loop_page(struct loop *l, int status, const struct http_request *r,
                size_t *ret_len);

/* loop_http.c: the door of --http. */
int loop_http_open(struct loop *l, struct door *d, struct err *e);

/* Accept at d->fd from now on. */
void door_open(struct loop *l, struct door *d, int fd);

#endif
