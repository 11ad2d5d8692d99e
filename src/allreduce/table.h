/* table: what agent-allreduce prints: nccl-tests' columns and footer, or JSON.
 * Bandwidths are in GB/s, of 10^9 bytes. */
#ifndef ALLREDUCE_TABLE_H
#define ALLREDUCE_TABLE_H

#include "allreduce/opts.h"
#include "allreduce/pattern.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define TABLE_HOST_MAX 56

/* A rank, as it tells the others. */
struct table_rank {
    int64_t pid;
    char host[TABLE_HOST_MAX];
};

/* One half of a line. */
struct table_cell {
    double time_us;
    uint64_t n_wrong;
};

struct table_line {
    uint64_t bytes, count;
    const struct pattern_type *type;
    const struct pattern_op *op;
    struct table_cell out_of_place, in_place;
};

struct table {
    FILE *out; /* NULL: this rank prints nothing, but adds up the same. */
    const struct opts *opts;
    int size;
    unsigned n_lines;
    double sum_busbw; /* Of both halves of all lines. */
    uint64_t n_wrong;
};

double table_algbw(uint64_t bytes, double time_us);
double table_busbw(uint64_t bytes, double time_us, int size);

void table_begin(struct table *t, const struct table_rank *ranks);
void table_add(struct table *t, const struct table_line *line);

/* Ends the table; whether all was right and fast enough. */
bool table_end(struct table *t);

#endif
