/* layout: see layout.h. */
#include "ddp/layout.h"

#include <string.h>

#define FREE UINT32_MAX

/* The pod of a rank: its number in the order of the pods' first ranks, which
 * lie in l->ranks. A new one where that is n_pods. */
static unsigned find_pod(const struct ddp_layout *l, const uint8_t *hosts,
                         size_t stride, unsigned rank)
{
    unsigned p = 0;

    while (p < l->n_pods && memcmp(hosts + l->ranks[p] * stride,
                                   hosts + rank * stride, DDP_TOKEN))
        p++;
    return p;
}

/* How many pods there are; the first rank of each. */
static void find_pods(struct ddp_layout *l, const uint8_t *hosts, size_t stride,
                      unsigned size)
{
    l->n_pods = 0;
    for (unsigned r = 0; r < size; r++)
        if (find_pod(l, hosts, stride, r) == l->n_pods)
            l->ranks[l->n_pods++] = r;
}

/* Whether each rank of a rail is above those of the pods before. */
static bool is_in_order(const struct ddp_layout *l)
{
    for (unsigned i = l->n_seats; i < l->n_pods * l->n_seats; i++)
        if (l->ranks[i] < l->ranks[i - l->n_seats])
            return false;
    return true;
}

/* Ranks get the next seat of their pod, in their order. False where a pod has
 * more of them than another. The first ones have seat 0 already. */
static bool seat_all(struct ddp_layout *l, const uint8_t *hosts, size_t stride,
                     unsigned size)
{
    unsigned n = l->n_seats;

    for (unsigned p = l->n_pods; p-- > 0;) { /* Upwards, none is lost. */
        unsigned first = l->ranks[p];

        for (unsigned s = 0; s < n; s++)
            l->ranks[p * n + s] = FREE;
        l->ranks[p * n] = first;
    }
    for (unsigned r = 0; r < size; r++) {
        unsigned p = 0, s = 1;

        while (memcmp(hosts + l->ranks[p * n] * stride, hosts + r * stride,
                      DDP_TOKEN))
            p++;
        if (l->ranks[p * n] == r)
            continue;
        while (s < n && l->ranks[p * n + s] != FREE)
            s++;
        if (s == n)
            return false;
        l->ranks[p * n + s] = r;
    }
    return true;
}

bool ddp_layout_find(struct ddp_layout *l, const uint8_t *hosts, size_t stride,
                     unsigned rank, unsigned size)
{
    static const uint8_t none[DDP_TOKEN];

    for (unsigned r = 0; r < size; r++)
        if (!memcmp(hosts + r * stride, none, DDP_TOKEN))
            return false;
    find_pods(l, hosts, stride, size);
    l->n_seats = size / l->n_pods;
    if (l->n_pods < 2 || l->n_seats < 2 || size % l->n_pods ||
        !seat_all(l, hosts, stride, size) || !is_in_order(l))
        return false;
    for (unsigned i = 0; i < size; i++)
        if (l->ranks[i] == rank) {
            l->pod = i / l->n_seats;
            l->seat = i % l->n_seats;
        }
    return true;
}
