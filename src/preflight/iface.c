/* iface: the interfaces of this pod, which one leads to node rank 0, and
 * whether NCCL would take the same. */
#include "preflight/check.h"
#include "preflight/net.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

/* The way to pod 0, of a literal address; with `ask`, of a name, too. False
 * where there is nothing to say (a name that does not resolve is for `dns`). */
static bool find_zero(const struct preflight_sink *s, bool ask,
                      struct sockaddr_storage *ret, socklen_t *ret_len)
{
    const struct preflight_job *job = s->job;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    bool found;

    if (net_literal(job->master_addr, job->barrier_port, ret, ret_len))
        return true;
    if (!ask)
        return false;
    finding_step(s, "looking up the name %.200s", job->master_addr);
    if (getaddrinfo(job->master_addr, NULL, &hints, &list) != 0 || !list)
        return false;
    found = list->ai_addrlen <= sizeof *ret;
    if (found) {
        memset(ret, 0, sizeof *ret);
        memcpy(ret, list->ai_addr, list->ai_addrlen);
        *ret_len = list->ai_addrlen;
        if (ret->ss_family == AF_INET)
            ((struct sockaddr_in *)ret)->sin_port = htons(1);
        else
            ((struct sockaddr_in6 *)ret)->sin6_port = htons(1);
    }
    freeaddrinfo(list);
    return found;
}

static void say_no_route(const struct preflight_sink *s, int e)
{
    struct preflight_finding f = finding_new(PREFLIGHT_RETRY);

    FINDING_SET(f.what, "no way leads to node rank 0 at %.200s: %s",
                s->job->master_addr, strerror(e));
    FINDING_SET(f.why, "this pod cannot join the job");
    FINDING_SET(f.fix, "look at the pod's network (ip route), at --master-addr "
                "and, in Kubernetes, at the CNI plug-in of this node");
    finding_add(s, &f);
}

static void say_none(const struct preflight_sink *s, const char *names)
{
    struct preflight_finding f = finding_new(PREFLIGHT_RETRY);

    FINDING_SET(f.what, "this pod has no interface but loopback (%s), and the "
                "job has %u pods", names, s->job->nnodes);
    FINDING_SET(f.why, "no other pod can be reached");
    FINDING_SET(f.fix, "give the pod a network: docker and podman without "
                "--network none; in Kubernetes look at the CNI plug-in");
    finding_add(s, &f);
}

static void say_choice(const struct preflight_sink *s, const char *choice,
                       const char *way, const char *spec)
{
    struct preflight_finding f = finding_new(PREFLIGHT_WARN);

    FINDING_SET(f.what, "packets to node rank 0 (%.160s) leave by %s, and NCCL "
                "would take %s%s%.100s", s->job->master_addr, way,
                choice ? choice : "none", spec ? ": NCCL_SOCKET_IFNAME=" : "",
                spec ? spec : "");
    FINDING_SET(f.why, "the ranks would wait for each other at addresses that "
                "other pods cannot reach: a hang in ncclCommInitRank");
    FINDING_SET(f.fix, "NCCL_SOCKET_IFNAME==%s in the workers' environment "
                "(one = is part of the value: exactly this name)", way);
    FINDING_SET(f.yaml, "containers:\n- env:\n  - name: NCCL_SOCKET_IFNAME\n"
                "    value: \"=%s\"\n", way);
    finding_add(s, &f);
}

static void look(const struct preflight_sink *s, bool ask)
{
    const char *spec = check_variable(s->job, "NCCL_SOCKET_IFNAME");
    char names[NET_IF_MAX * 4], way[NET_NAME_MAX] = "", shown[NET_SHOWN_MAX];
    const struct net_if *choice, *at;
    struct sockaddr_storage zero;
    struct net_list l;
    bool others = false;
    socklen_t len;
    int e;

    /* The check of variables says the same. */
    if (!(s->job->checks & PREFLIGHT_BIT(ENV)))
        check_ifname_variables(s);
    if (s->job->nnodes == 1 && !ask)
        return;
    net_list(&l);
    net_names(&l, names, sizeof names);
    for (unsigned i = 0; i < l.n; i++)
        others = others || (!l.at[i].is_loopback && l.at[i].is_up);
    if (s->job->nnodes == 1) {
        finding_pass(s, "interfaces: %s; one pod needs no way out",
                     l.n ? names : "none");
        return;
    }
    if (!find_zero(s, ask, &zero, &len)) {
        if (!others)
            say_none(s, names);
        return;
    }
    e = net_route(&zero, len, way);
    if (e != 0) {
        if (!others)
            say_none(s, names);
        else
            say_no_route(s, -e);
        return;
    }
    at = net_find(&l, way, strlen(way));
    choice = s->job->names_way ? at : net_choice(&l, spec);
    if (at && !at->is_loopback && choice != at)
        say_choice(s, choice ? choice->name : NULL, way, spec);
    else if (ask)
        finding_pass(s, "%s leads to node rank 0 at %s; there are %s", way,
                     net_shown(shown, (struct sockaddr *)&zero), names);
}

void look_iface(const struct preflight_sink *s)
{
    look(s, false);
}

void check_iface(const struct preflight_sink *s)
{
    look(s, true);
}
