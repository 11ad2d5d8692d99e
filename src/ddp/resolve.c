/* resolve: look-ups of names for addr.h, the one thing here that blocks.
 *
 * getaddrinfo knows no deadline: it may ask three servers twice, 5 s each.
 * So it runs in a detached thread that owns a share of the query; the last of
 * the two owners frees it. */
#include "ddp/addr.h"
#include "ddp/clock.h"
#include "ddp/conf.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct query {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_ended, is_left; /* By the thread; by the one who asked. */
    int status;              /* Of getaddrinfo. */
    unsigned n;
    struct ddp_addr addrs[DDP_ADDRS_MAX];
    char host[DDP_HOST_MAX];
};

static unsigned collect(const struct addrinfo *list, struct ddp_addr *ret)
{
    unsigned n = 0;

    for (; list && n < DDP_ADDRS_MAX; list = list->ai_next)
        if (ddp_addr_from(list->ai_addr, &ret[n]))
            n++;
    return n;
}

static int look_up(const char *host, int flags,
                   struct ddp_addr ret[DDP_ADDRS_MAX], unsigned *ret_n)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *list = NULL;
    int status = getaddrinfo(host, NULL, &hints, &list);

    *ret_n = 0;
    if (status)
        return status;
    *ret_n = collect(list, ret);
    freeaddrinfo(list);
    return 0;
}

bool ddp_addr_literal(const char *host, uint16_t port, struct ddp_addr *ret)
{
    struct ddp_addr addrs[DDP_ADDRS_MAX];
    unsigned n;

    if (!strcmp(host, "localhost"))
        host = "127.0.0.1";
    if (look_up(host, AI_NUMERICHOST, addrs, &n) || n == 0)
        return false;
    *ret = addrs[0];
    ret->port = port;
    return true;
}

static void query_free(struct query *q)
{
    (void)pthread_cond_destroy(&q->ended);
    (void)pthread_mutex_destroy(&q->lock);
    free(q);
}

static void *query_run(void *arg)
{
    struct query *q = arg;
    struct ddp_addr addrs[DDP_ADDRS_MAX];
    unsigned n;
    int status = look_up(q->host, 0, addrs, &n);
    bool is_left;

    (void)pthread_mutex_lock(&q->lock);
    q->status = status;
    q->n = n;
    memcpy(q->addrs, addrs, n * sizeof addrs[0]);
    q->has_ended = true;
    is_left = q->is_left;
    (void)pthread_cond_signal(&q->ended);
    (void)pthread_mutex_unlock(&q->lock);
    if (is_left)
        query_free(q);
    return NULL;
}

/* Start a detached thread that takes no signals of the program. */
static int query_start(struct query *q)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, was;
    int status;

    if (pthread_attr_init(&attr))
        return -1;
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &was);
    status = pthread_create(&thread, &attr, query_run, q);
    (void)pthread_sigmask(SIG_SETMASK, &was, NULL);
    (void)pthread_attr_destroy(&attr);
    return status ? -1 : 0;
}

static struct query *query_new(const char *host)
{
    struct query *q = calloc(1, sizeof *q);
    pthread_condattr_t attr;

    if (!q)
        return NULL;
    strncat(q->host, host, sizeof q->host - 1);
    (void)pthread_mutex_init(&q->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&q->ended, &attr);
    (void)pthread_condattr_destroy(&attr);
    return q;
}

/* Wait for the thread and leave the query. True where it has ended. */
static bool query_wait(struct query *q, uint64_t deadline,
                       struct ddp_addr *ret, unsigned *ret_n, int *ret_status)
{
    struct timespec until = {.tv_sec = (time_t)(deadline / 1000),
                             .tv_nsec = (long)(deadline % 1000) * 1000000};
    bool has_ended;

    (void)pthread_mutex_lock(&q->lock);
    while (!q->has_ended &&
           pthread_cond_timedwait(&q->ended, &q->lock, &until) != ETIMEDOUT)
        ;
    has_ended = q->has_ended;
    q->is_left = true;
    *ret_status = q->status;
    *ret_n = q->n;
    memcpy(ret, q->addrs, sizeof q->addrs);
    (void)pthread_mutex_unlock(&q->lock);
    if (has_ended)
        query_free(q);
    return has_ended;
}

unsigned ddp_addr_resolve(const char *host, uint64_t deadline,
                          struct ddp_addr ret[DDP_ADDRS_MAX],
                          const char **ret_why)
{
    unsigned n;
    int status = look_up(host, AI_NUMERICHOST, ret, &n);
    struct query *q;

    if (status == 0 && n > 0)
        return n;
    q = query_new(host);
    if (!q || query_start(q)) {
        if (q)
            query_free(q);
        *ret_why = "no memory or thread for the look-up";
        return 0;
    }
    if (!query_wait(q, deadline, ret, &n, &status)) {
        *ret_why = "no answer from the name server";
        return 0;
    }
    *ret_why = status ? gai_strerror(status) : "no address";
    return status ? 0 : n;
}
