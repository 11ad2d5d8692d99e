/* sim: run whole jobs from seeds.
 *   sim --seeds N [--from S]   N seeds; prints TAP and what was reached
 *   sim --seed S [--trace]     one seed, byte for byte the same each time */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct world w;

struct reached {
    uint64_t jobs, rounds, terms, kills, cuts, stage_faults, ignored;
};

static void add(struct reached *r)
{
    r->jobs++;
    r->rounds += w.history.n_rounds;
    r->terms += w.history.n_terms;
    r->kills += w.history.n_kills;
    r->cuts += w.history.n_cuts;
    r->stage_faults += w.history.n_stage_faults;
    r->ignored += w.history.n_ignored_terms;
}

int main(int argc, char **argv)
{
    uint64_t seeds = 0, from = 1;
    unsigned failed = 0;
    struct reached r = {0};
    bool trace = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0)
            trace = true;
        else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0)
            seeds = strtoull(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--from") == 0)
            from = strtoull(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
            from = strtoull(argv[++i], NULL, 10), seeds = 1;
        else
            return fprintf(stderr, "sim: unknown word %s\n", argv[i]), 64;
    }
    for (uint64_t s = from; s < from + seeds && failed < 5; s++) {
        if (!world_run(&w, s, trace)) {
            failed++;
            printf("not ok - seed %" PRIu64 ": %s\n", s, w.fault);
        }
        add(&r);
    }
    printf("# %" PRIu64 " jobs, %" PRIu64 " rounds; reached: %" PRIu64
           " TERM, %" PRIu64 " pods killed, %" PRIu64 " connections cut, %"
           PRIu64 " bad data, %" PRIu64 " TERM ignored\n",
           r.jobs, r.rounds, r.terms, r.kills, r.cuts, r.stage_faults,
           r.ignored);
    if (!failed)
        printf("ok 1 - %" PRIu64 " seeds of whole jobs\n", seeds);
    printf("1..%u\n", failed ? failed : 1);
    return failed != 0;
}
