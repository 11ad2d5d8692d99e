/* sim: run whole jobs from seeds.
 *   sim --seeds N [--from S]   N seeds; prints TAP and what was reached
 *   sim --seed S [--trace]     one seed, byte for byte the same each time
 *   sim --planned K [--trace]  the K-th planned job; --seeds ends with all */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENOUGH_SEEDS 2000 /* To have reached every fault. */

static struct world w;
static const char *const fault_words[] = {
#define X(name, words, explains) words,
    FAULT_TABLE(X)
#undef X
};

static unsigned report(uint64_t seeds, uint64_t rounds,
                       const uint64_t n[FAULTS])
{
    unsigned never = 0;

    printf("# %" PRIu64 " jobs, %" PRIu64 " rounds; reached:", seeds, rounds);
    for (unsigned i = 0; i < FAULTS; i++) {
        printf("%s %" PRIu64 " %s", i ? "," : "", n[i], fault_words[i]);
        never += n[i] == 0;
    }
    printf("\n");
    return seeds >= ENOUGH_SEEDS ? never : 0;
}

static void add_reached(uint64_t n[FAULTS])
{
    for (unsigned i = 0; i < FAULTS; i++)
        n[i] += w.history.n[i];
}

/* From the `from`-th on; how many failed. */
static unsigned run_planned(unsigned from, unsigned to, bool trace,
                            uint64_t n[FAULTS])
{
    unsigned failed = 0;

    for (unsigned i = from; i < to && world_scenario(i); i++) {
        if (!world_run_scenario(&w, i, trace)) {
            failed++;
            printf("not ok - planned job %u, %s: %s\n", i, world_scenario(i),
                   w.fault);
        }
        add_reached(n);
    }
    return failed;
}

int main(int argc, char **argv)
{
    uint64_t seeds = 0, from = 1, rounds = 0, n[FAULTS] = {0}, s;
    unsigned failed = 0, never = 0;
    bool trace = false, planned = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0)
            trace = true;
        else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0)
            seeds = strtoull(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--from") == 0)
            from = strtoull(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
            from = strtoull(argv[++i], NULL, 10), seeds = 1;
        else if (i + 1 < argc && strcmp(argv[i], "--planned") == 0)
            from = strtoull(argv[++i], NULL, 10), planned = true;
        else
            return fprintf(stderr, "sim: unknown word %s\n", argv[i]), 64;
    }
    if (planned)
        return run_planned((unsigned)from, (unsigned)from + 1, trace, n) != 0;
    for (s = from; s < from + seeds && failed < 5; s++) {
        if (!world_run(&w, s, trace)) {
            failed++;
            printf("not ok - seed %" PRIu64 ": %s\n", s, w.fault);
        }
        rounds += w.history.n_rounds;
        add_reached(n);
    }
    if (!failed && seeds > 1)
        failed = run_planned(0, UINT16_MAX, false, n);
    never = report(s - from, rounds, n);
    if (!failed)
        printf("ok 1 - %" PRIu64 " seeds of whole jobs, and planned ones\n",
               seeds);
    if (!failed)
        printf("%sok 2 - each fault was reached\n", never ? "not " : "");
    printf("1..%u\n", failed ? failed : 2);
    return failed != 0 || never != 0;
}
