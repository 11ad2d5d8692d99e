/* loop_ranks: what is said where an option shows ranks that are not there. */
#include "agent/loop_parts.h"

#include "base/log.h"
#include "base/text.h"

#include <inttypes.h>

static void warn(const char *option, const struct rank_list *list,
                 uint64_t n_ranks, const char *of)
{
    char missing[64], last[32] = "";
    struct text t;

    text_init(&t, missing, sizeof missing);
    if (!options_ranks_beyond(list, n_ranks, &t))
        return;
    if (n_ranks > 1)
        (void)snprintf(last, sizeof last, " to %" PRIu64, n_ranks - 1);
    log_warning("%s: %s has no rank %s: its ranks are 0%s, so nothing is shown "
                "for that; name some of these, or leave the option out, going "
                "on", option, of, missing, last);
}

void loop_warn_ranks(struct loop *l, const struct pod_round *round)
{
    const struct options *o = l->plan->o;
    uint64_t n = round->world_size, most = (uint64_t)o->nnodes * l->plan->nproc;

    if (l->ranks_said)
        return;
    l->ranks_said = true;
    if (o->min_nodes < o->nnodes && n < most)
        n = most; /* The pods that are missing may come. */
    warn("--log-ranks", &o->log_ranks, n, "the job");
    if (o->torchrun.is_on)
        warn("--local-ranks-filter", &o->torchrun.local_ranks, l->plan->nproc,
             "this pod");
}
