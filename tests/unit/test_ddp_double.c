/* Tests of ddp/double: whatever the number of ranks, all end with all. */
#include "ddp/double.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RANKS_MAX 70
#define WORLD_MAX 4096 /* DDP_SIZE_MAX. */

/* A rank of a job on paper: how often it has the part of each rank. */
struct paper {
    struct ddp_step steps[DDP_STEPS_MAX];
    unsigned pairs[DDP_PAIRS_MAX], n_pairs, n_steps, at;
    bool has_sent; /* In step `at`. */
    uint8_t has[RANKS_MAX];
    unsigned n_sent[DDP_PAIRS_MAX], n_got[DDP_PAIRS_MAX];
    uint8_t sent[DDP_PAIRS_MAX][RANKS_MAX]; /* What went last. */
};

static struct paper ranks[RANKS_MAX];

/* Of rank r's partner p: which of its pairs is r. */
static unsigned index_of(unsigned p, unsigned r)
{
    for (unsigned i = 0; i < ranks[p].n_pairs; i++)
        if (ranks[p].pairs[i] == r)
            return i;
    fail_msg("rank %u has no pair for rank %u", p, r);
    return 0;
}

/* One step of rank r, as far as it goes; whether anything moved. */
static bool advance(unsigned r, unsigned size)
{
    struct paper *me = &ranks[r], *other;
    const struct ddp_step *s = &me->steps[me->at];
    unsigned back;

    if (me->at == me->n_steps)
        return false;
    other = &ranks[me->pairs[s->pair]];
    back = index_of(me->pairs[s->pair], r);
    if (s->sends && !me->has_sent) {
        memcpy(me->sent[s->pair], me->has, size);
        me->n_sent[s->pair]++;
        me->has_sent = true;
        return true;
    }
    if (s->receives && me->n_got[s->pair] == other->n_sent[back])
        return false;
    if (s->receives) {
        me->n_got[s->pair]++;
        for (unsigned i = 0; i < size; i++)
            me->has[i] = (uint8_t)((s->combines ? me->has[i] : 0) +
                                   other->sent[back][i]);
    }
    me->at++;
    me->has_sent = false;
    return true;
}

static void play(unsigned size)
{
    bool moved = true;

    memset(ranks, 0, sizeof ranks);
    for (unsigned r = 0; r < size; r++) {
        ranks[r].has[r] = 1;
        ranks[r].n_pairs = ddp_double_pairs(r, size, ranks[r].pairs);
        ranks[r].n_steps = ddp_double_steps(r, size, ranks[r].steps);
    }
    while (moved) {
        moved = false;
        for (unsigned r = 0; r < size; r++)
            moved = advance(r, size) || moved;
    }
    for (unsigned r = 0; r < size; r++) {
        if (ranks[r].at != ranks[r].n_steps)
            fail_msg("%u ranks: rank %u waits in step %u", size, r,
                     ranks[r].at);
        for (unsigned i = 0; i < size; i++)
            if (ranks[r].has[i] != 1)
                fail_msg("%u ranks: rank %u has %u times rank %u", size, r,
                         ranks[r].has[i], i);
        for (unsigned i = 0; i < ranks[r].n_pairs; i++)
            assert_true(ranks[r].n_sent[i] == 1 && ranks[r].n_got[i] == 1);
    }
}

static void test_all_have_all_once(void **state)
{
    (void)state;
    for (unsigned size = 2; size <= RANKS_MAX; size++)
        play(size);
}

/* Pairs are mutual, in range, and there is room for all of them. */
static void test_pairs(void **state)
{
    (void)state;
    for (unsigned size = 2; size <= WORLD_MAX; size += 1 + size / 3)
        for (unsigned r = 0; r < size; r++) {
            unsigned mine[DDP_PAIRS_MAX], theirs[DDP_PAIRS_MAX];
            unsigned n = ddp_double_pairs(r, size, mine);

            assert_true(n >= 1 && n <= DDP_PAIRS_MAX);
            for (unsigned i = 0; i < n; i++) {
                unsigned m, k = 0;

                assert_true(mine[i] < size && mine[i] != r);
                m = ddp_double_pairs(mine[i], size, theirs);
                while (k < m && theirs[k] != r)
                    k++;
                assert_true(k < m);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_have_all_once),
        cmocka_unit_test(test_pairs),
    };

    return cmocka_run_group_tests_name("ddp_double", tests, NULL, NULL);
}
