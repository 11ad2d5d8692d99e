/* role: see role.h. */
#include "rendezvous/role.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/stops.h"
#include "base/text.h"
#include "rendezvous/port.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RETRY_MS 200
#define SAY_MS 10000              /* Between words on a wait. */
#define STEP_MS 60000             /* Of a longer wait. */
#define LOOK_STACK (512u * 1024)

bool role_is_named(const char *host, const char *name)
{
    size_t label = strcspn(host, "."), len = strcspn(name, ".");

    if (label == 0 || host[strspn(host, "0123456789.")] == '\0' ||
        strchr(host, ':'))
        return false; /* An address has no labels. */
    return len == label && strncasecmp(host, name, len) == 0;
}

static bool same(const struct sockaddr *a, const struct sockaddr *b)
{
    const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
    const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

    if (a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return a4->sin_addr.s_addr == b4->sin_addr.s_addr ||
               (ntohl(a4->sin_addr.s_addr) >> 24 == 127 &&
                ntohl(b4->sin_addr.s_addr) >> 24 == 127);
    return a->sa_family == AF_INET6 &&
           memcmp(&a6->sin6_addr, &b6->sin6_addr, 16) == 0;
}

static bool is_here(const struct addrinfo *addrs)
{
    struct ifaddrs *list = NULL;
    bool found = false;

    if (getifaddrs(&list) != 0)
        return false;
    for (const struct addrinfo *a = addrs; a && !found; a = a->ai_next)
        for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next)
            found = i->ifa_addr && same(a->ai_addr, i->ifa_addr);
    freeifaddrs(list);
    return found;
}

/* --- a look-up --- */

/* A name server that does not answer is waited for up to minutes, and nothing
 * ends that; so another thread waits. Where it is not waited for any more,
 * this stays until the process ends. */
struct look {
    int fd; /* Readable once it is over. */
    int code;
    struct addrinfo *addrs;
    char host[];
};

static void *ask(void *arg)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct look *l = arg;
    uint64_t one = 1;

    l->code = getaddrinfo(l->host, NULL, &hints, &l->addrs);
    (void)!write(l->fd, &one, sizeof one);
    return NULL;
}

static struct look *begin_look(const char *host)
{
    struct look *l = calloc(1, sizeof *l + strlen(host) + 1);
    pthread_attr_t a;
    pthread_t thread;

    if (!l)
        return NULL;
    memcpy(l->host, host, strlen(host) + 1);
    l->fd = eventfd(0, EFD_CLOEXEC);
    (void)pthread_attr_init(&a);
    (void)pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&a, LOOK_STACK);
    if (l->fd < 0 || pthread_create(&thread, &a, ask, l) != 0)
        (void)ask(l); /* No thread, no descriptor: wait here. */
    (void)pthread_attr_destroy(&a);
    return l;
}

static void end_look(struct look *l)
{
    if (l->fd >= 0)
        (void)close(l->fd);
    if (l->code == 0)
        freeaddrinfo(l->addrs);
    free(l);
}

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* For `fd` (-1: none), a signal to stop, or the time: false, and the signal's
 * number or 0. */
static bool wait_for(int fd, int stop_fd, uint64_t until_ms, int *ret_signo)
{
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN},
                          {.fd = stop_fd, .events = POLLIN}};
    struct signalfd_siginfo si;

    *ret_signo = 0;
    for (;;) {
        uint64_t now = now_ms(), left = until_ms > now ? until_ms - now : 0;

        (void)poll(p, 2, left > STEP_MS ? STEP_MS : (int)left);
        if (stop_fd >= 0 && read(stop_fd, &si, sizeof si) == (ssize_t)sizeof si)
            *ret_signo = (int)si.ssi_signo;
        if (*ret_signo)
            return false;
        if (fd >= 0 && p[0].revents)
            return true;
        if (left == 0)
            return false;
    }
}

struct patience { /* For a name to resolve. */
    const char *host, *why;
    uint64_t until_ms, say_ms;
    int stop_fd, signo; /* The signal to stop that came; or 0. */
};

/* Now and then what is waited for, and how long yet. */
static void say_waiting(struct patience *p)
{
    uint64_t now = now_ms();
    char left[64];
    struct text t;

    if (now < p->say_ms || now >= p->until_ms || p->signo)
        return;
    p->say_ms = now + SAY_MS;
    text_init(&t, left, sizeof left);
    text_add_duration(&t, (p->until_ms - now + 999) / 1000 * 1000);
    log_info("waiting: --master-addr %s does not resolve: %s; for at most %s "
             "more (--barrier-timeout)", p->host, p->why, left);
}

/* For an answer. False: no time is left, or a signal to stop came. */
static bool await(struct patience *p, int fd)
{
    bool done;

    do {
        done = wait_for(fd, p->stop_fd, p->say_ms < p->until_ms ? p->say_ms
                                                                : p->until_ms,
                        &p->signo);
        if (!done)
            say_waiting(p);
    } while (!done && !p->signo && now_ms() < p->until_ms);
    return done;
}

/* True where an interface has an address of the host; waits for the name. */
static int find_here(struct patience *p, bool *ret_here, struct err *e)
{
    for (bool first = true;; first = false) {
        struct look *l = begin_look(p->host);

        if (!l)
            return err_set(e, ERR_AGENT, "no memory for a look-up");
        if (l->fd >= 0 && !await(p, l->fd))
            break;
        if (l->code == 0) {
            *ret_here = is_here(l->addrs);
            end_look(l);
            return 0;
        }
        p->why = gai_strerror(l->code);
        end_look(l);
        if (first)
            p->say_ms = 0;
        say_waiting(p);
        (void)wait_for(-1, p->stop_fd, now_ms() + RETRY_MS, &p->signo);
        if (p->signo || now_ms() >= p->until_ms)
            break;
    }
    if (p->signo)
        return err_set(e, 128 + p->signo,
                       "told to stop while --master-addr %s did not resolve",
                       p->host);
    return err_set(e, ERR_BARRIER, "--master-addr %s does not resolve: %s",
                   p->host, p->why);
}

int role_find(const char *host, unsigned barrier_port, uint64_t timeout_ms,
              bool *ret_coordinates, struct err *e)
{
    char name[256] = "";
    bool here = false;
    sigset_t stops;
    struct patience p = {.host = host,
                         .why = "no answer of the name server in time",
                         .until_ms = now_ms() + timeout_ms,
                         .say_ms = now_ms() + SAY_MS};
    int r = 0;

    stops_fill(&stops);
    autoclose int stop_fd = signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK);

    p.stop_fd = stop_fd;
    if (gethostname(name, sizeof name - 1) == 0)
        here = role_is_named(host, name);
    if (!here)
        r = find_here(&p, &here, e);
    *ret_coordinates = r == 0 && here &&
                       port_claim_name("barrier", barrier_port);
    return r;
}
