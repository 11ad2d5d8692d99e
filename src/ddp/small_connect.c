/* small_connect: the pairs of small.h. */
#include "ddp/double.h"
#include "ddp/small.h"

#include <stdlib.h>

bool ddp_pairs_make(struct ddp_links *l)
{
    unsigned seats[DDP_PAIRS_MAX];
    unsigned n = ddp_double_pairs(l->seat, l->seats, seats);
    bool ok = true;

    l->pairs = calloc(n, sizeof *l->pairs);
    for (unsigned i = 0; l->pairs && i < n; i++, l->n_pairs++)
        ok = ddp_pair_new(&l->pairs[i], (int)seats[i]) == 0 && ok;
    return l->pairs && ok;
}

void ddp_pairs_free(struct ddp_links *l)
{
    for (unsigned i = 0; i < l->n_pairs; i++)
        ddp_pair_free(&l->pairs[i]);
    free(l->pairs);
    l->pairs = NULL;
    l->n_pairs = 0;
}

int ddp_small_connect(struct ddp_comm *c, const struct ddp_boot *b,
                      const struct ddp_home *homes, struct ddp_error *err)
{
    struct ddp_meeting m[DDP_PAIRS_MAX];
    struct ddp_links *l = &c->links;
    bool all_have;
    int rc;

    if (!ddp_pairs_make(l))
        return ddp_comm_no_memory(c, err);
    for (unsigned i = 0; i < l->n_pairs; i++)
        m[i] = (struct ddp_meeting){.rank = l->pairs[i].rank,
                                    .channel = DDP_MEET_PAIR};
    rc = ddp_meet_all(c, b, homes, m, l->n_pairs, &all_have, err);
    for (unsigned i = 0; i < l->n_pairs && all_have; i++)
        l->pairs[i].fd = m[i].fd;
    if (!all_have)
        ddp_pairs_free(l);
    return rc;
}
