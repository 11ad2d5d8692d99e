/* loop_door: pod 0's barrier and its connections: memory, descriptors, and
 * what is said of both at the start. */
#include "agent/loop_parts.h"

#include "base/log.h"
#include "base/text.h"
#include "rendezvous/port.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int loop_barrier_new(struct loop *l, struct err *e)
{
    struct barrier_config cfg;
    const struct plan *p = l->plan;
    uint32_t nnodes = p->o->nnodes, n = barrier_n_conns(nnodes, p->n_guests);

    if (p->node_rank != 0)
        return 0;
    plan_barrier(p, &cfg);
    l->bar_peers = calloc(nnodes, sizeof *l->bar_peers);
    l->bar_conns = calloc(n, sizeof *l->bar_conns);
    /* Touched as it is used, not before. */
    l->bar_guests = p->n_guests ? calloc(p->n_guests, sizeof *l->bar_guests)
                                : NULL;
    if (!l->bar_peers || !l->bar_conns || (p->n_guests && !l->bar_guests))
        return err_set(e, ERR_AGENT, "no memory for %u pods", nnodes);
    cfg.guests = l->bar_guests;
    pod_own_barrier(&l->pod, &l->barrier, &cfg, l->bar_peers, l->bar_conns, n,
                    loop_now());
    return 0;
}

void loop_conn_admit(void *ctx, uint32_t conn)
{
    peers_admit(((struct loop *)ctx)->peers, conn);
}

bool loop_conn_make_room(void *ctx)
{
    return pod_conn_make_room(&((struct loop *)ctx)->pod);
}

void loop_say_cpus(const struct plan *p)
{
    char list[256];

    if (p->cpus.why[0])
        log_warning("--cpu-bind: %s; the workers are not pinned, going on",
                    p->cpus.why);
    for (uint32_t i = 0; p->cpus.masks && i < p->nproc; i++) {
        struct text t;

        text_init(&t, list, sizeof list);
        cpu_print(&p->cpus.masks[i], &t);
        log_debug("worker %u is pinned to CPUs %s", i, list);
    }
}

/* Who has the port is looked for here alone, not at each start. */
static void say_port(const struct plan *p)
{
    unsigned first = p->o->master_port;
    char who[PORT_WHO_MAX], later[64] = "";

    if (!log_shows(LOG_INFO))
        return;
    port_master_holder(p->master_port_taken, who, sizeof who);
    if (p->master_port_taken != first)
        (void)snprintf(later, sizeof later, "with the ports after it cannot be "
                       "had: %u ", p->master_port_taken);
    log_info("the default --master-port %u %sis taken%s%s; the workers get "
             "MASTER_PORT=%u", first, later, who[0] ? " by " : "", who,
             p->master_port);
}

void loop_say_plan(const struct plan *p)
{
    const struct options *o = p->o;

    if (p->master_port_taken && !o->torchrun.is_c10d) /* There any will do. */
        say_port(p);
    if (p->token.is_open)
        log_warning("--token-file %s may be read by every user (mode %04o): "
                    "use mode 0400, in Kubernetes the Secret volume's "
                    "defaultMode; going on", o->token_file, p->token.mode);
    if (p->token.is_short)
        log_warning("the token is shorter than %d bytes and may be guessed: "
                    "use one such as openssl rand -hex 32 prints; going on",
                    TOKEN_SHORT);
    loop_say_cpus(p);
    if (o->offline)
        log_info("offline: what workers ask of other hosts by HTTP or HTTPS "
                 "fails at once; a guard against accident, no sandbox "
                 "(--offline-allow HOST lets one through)");
    if (p->node_rank != 0 || o->nnodes == 1)
        return;
    if (!p->auth.has_token)
        log_info("no token: whoever reaches barrier port %u can join or end "
                 "this job; --token-file (or AGENT_TOKEN) closes it",
                 o->barrier_port);
    if (p->few_files)
        log_warning("the limit of open files, %" PRIu64 " (ulimit -Hn), is too "
                    "low for %u pods, %u worker%s here and %u newcomers: pods "
                    "may have to try again; going on", p->files.now, o->nnodes,
                    p->nproc, text_plural(p->nproc),
                    barrier_n_guests(o->nnodes));
}
