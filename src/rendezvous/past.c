/* past: see past.h. */
#include "rendezvous/past.h"

#include <string.h>

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void past_age(struct past *p, uint64_t ms)
{
    uint32_t n = 0;

    if (p->zero_losses > 0)
        p->zero_age_ms = sum(p->zero_age_ms, ms);
    for (uint32_t i = 0; i < p->n_lost; i++) {
        uint64_t age = sum(p->lost[i].age_ms, ms);

        if (age <= UINT32_MAX)
            p->lost[n++] = (struct past_lost){p->lost[i].rank, (uint32_t)age};
    }
    p->n_lost = n;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        uint64_t age = sum(p->runs[i].age_ms, ms);

        if (age > UINT32_MAX) { /* Those that follow are older. */
            p->n_runs = i;
            return;
        }
        p->runs[i].age_ms = (uint32_t)age;
    }
}

bool past_lose(struct past *p, uint32_t rank, uint64_t age_ms)
{
    uint32_t at = p->n_lost, oldest = 0;

    for (uint32_t i = 0; i < p->n_lost; i++) {
        if (p->lost[i].rank == rank)
            at = i;
        if (p->lost[i].age_ms > p->lost[oldest].age_ms)
            oldest = i;
    }
    if (at == PAST_LOST_MAX)
        at = oldest;
    if (age_ms > UINT32_MAX ||
        (at < p->n_lost && p->lost[at].age_ms <= age_ms))
        return false;
    p->lost[at] = (struct past_lost){rank, (uint32_t)age_ms};
    p->n_lost += at == p->n_lost;
    return true;
}

/* Make room for one more: where two neighbours are nearest. */
static void join_nearest(struct past *p)
{
    uint32_t best = 0, least = UINT32_MAX;

    for (uint32_t i = 0; i + 1 < p->n_runs; i++) {
        uint32_t gap = p->runs[i + 1].age_ms - p->runs[i].age_ms;

        if (gap < least && p->runs[i].n + p->runs[i + 1].n <= UINT16_MAX) {
            best = i;
            least = gap;
        }
    }
    p->runs[best + 1].n = (uint16_t)(p->runs[best + 1].n + p->runs[best].n);
    memmove(p->runs + best, p->runs + best + 1,
            (p->n_runs - best - 1) * sizeof *p->runs);
    p->n_runs--;
}

void past_add(struct past *p, uint64_t age_ms, uint32_t n)
{
    if (n == 0 || n > UINT16_MAX || age_ms > UINT32_MAX)
        return;
    if (p->n_runs > 0 && p->runs[p->n_runs - 1].age_ms == age_ms &&
        p->runs[p->n_runs - 1].n + n <= UINT16_MAX) {
        p->runs[p->n_runs - 1].n = (uint16_t)(p->runs[p->n_runs - 1].n + n);
        return;
    }
    if (p->n_runs == PAST_RUNS_MAX)
        join_nearest(p);
    p->runs[p->n_runs++] = (struct past_run){(uint32_t)age_ms, (uint16_t)n};
}

void past_count(struct past *p, uint32_t n)
{
    if (n == 0 || n > UINT16_MAX)
        return;
    if (p->n_runs == PAST_RUNS_MAX)
        join_nearest(p);
    memmove(p->runs + 1, p->runs, p->n_runs * sizeof *p->runs);
    p->runs[0] = (struct past_run){0, (uint16_t)n};
    p->n_runs++;
}
