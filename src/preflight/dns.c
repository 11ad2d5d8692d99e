/* dns: the name of node rank 0, asked until it is there or time is up. */
#include "preflight/check.h"
#include "preflight/net.h"

#include <netdb.h>
#include <string.h>
#include <time.h>

#define WAIT_MS 5000 /* For a name that appears late. */
#define SLOW_MS 2000
#define STEP_MS 250

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void say_unknown(const struct preflight_sink *s, int e)
{
    struct preflight_finding f = finding_new(PREFLIGHT_RETRY);

    FINDING_SET(f.what, "the name of node rank 0, %.160s, does not resolve: %s",
                s->job->master_addr, gai_strerror(e));
    FINDING_SET(f.why, "this pod cannot find the job; run waits for the name "
                "until --barrier-timeout");
    FINDING_SET(f.fix, "Kubernetes: a headless Service whose name is the "
                "pods' subdomain, with publishNotReadyAddresses: true, and "
                "pod 0 scheduled; then look at --master-addr, the cluster's "
                "DNS and the pod's dnsPolicy");
    FINDING_SET(f.yaml, "apiVersion: v1\nkind: Service\nspec:\n"
                "  clusterIP: None\n  publishNotReadyAddresses: true\n");
    finding_add(s, &f);
}

static void say_slow(const struct preflight_sink *s, uint64_t ms)
{
    struct preflight_finding f = finding_new(PREFLIGHT_WARN);

    FINDING_SET(f.what, "the name of node rank 0, %.160s, took %llu.%llu s to "
                "resolve", s->job->master_addr,
                (unsigned long long)ms / 1000,
                (unsigned long long)ms % 1000 / 100);
    FINDING_SET(f.why, "each rank asks for it, and some libraries give up "
                "after seconds");
    FINDING_SET(f.fix, "use the full name with a dot at its end (no search "
                "list), or lower ndots in the pod's dnsConfig");
    FINDING_SET(f.yaml, "dnsConfig:\n  options:\n  - name: ndots\n"
                "    value: \"1\"\n");
    finding_add(s, &f);
}

static void say_loopback(const struct preflight_sink *s, const char *addr)
{
    struct preflight_finding f = finding_new(PREFLIGHT_WARN);

    FINDING_SET(f.what, "node rank 0 is at %.160s, %s, which is this pod "
                "itself, and the job has %u pods", s->job->master_addr, addr,
                s->job->nnodes);
    FINDING_SET(f.why, "%s", s->job->coordinates
                ? "workers of other pods get the same MASTER_ADDR from their "
                  "agent, and would not find this one by it"
                : "this pod would look for node rank 0 in itself");
    FINDING_SET(f.fix, "--master-addr with the name of pod 0 as the others "
                "know it");
    finding_add(s, &f);
}

/* On pod 0 itself Debian's 127.0.1.1 for the own name is no fault: the others
 * have another address for it. */
static bool is_loopback(const struct preflight_sink *s,
                        const struct sockaddr *a)
{
    char name[NET_NAME_MAX];

    return (!s->job->coordinates && net_is_loopback(a)) ||
           (net_holder(a, name) && strcmp(name, "lo") == 0);
}

void check_dns(const struct preflight_sink *s)
{
    struct timespec step = {.tv_nsec = STEP_MS * 1000000};
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    uint64_t start = now_ms(), at;
    char shown[NET_SHOWN_MAX];
    unsigned n = 0;
    int e;

    if (s->job->nnodes == 1) {
        finding_pass(s, "one pod needs no name");
        return;
    }
    for (;;) {
        finding_step(s, "looking up the name %.200s", s->job->master_addr);
        at = now_ms();
        e = getaddrinfo(s->job->master_addr, NULL, &hints, &list);
        if (e == 0 || now_ms() - start >= WAIT_MS)
            break;
        (void)nanosleep(&step, NULL);
    }
    if (e != 0) {
        say_unknown(s, e);
        return;
    }
    at = now_ms() - at;
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        n++;
    (void)net_shown(shown, list->ai_addr);
    if (at >= SLOW_MS)
        say_slow(s, at);
    if (is_loopback(s, list->ai_addr))
        say_loopback(s, shown);
    else
        finding_pass(s, "%.200s is %s%s", s->job->master_addr, shown,
                     n > 1 ? " and others" : "");
    freeaddrinfo(list);
}
