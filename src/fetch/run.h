/* run: all transfers, so many at a time: libcurl's multi handle, the steps of
 * hashing, the waits, the progress, the signals. It decides nothing that
 * item.h and answer.h decide. */
#ifndef FETCH_RUN_H
#define FETCH_RUN_H

#include "dataset/manifest.h"
#include "fetch/args.h"
#include "fetch/part.h"
#include "fetch/urls.h"

/* What a run does not start at once, it keeps waiting: at most so many. */
#define RUN_WAITING_MAX 256

/* Fetch all files, or check all URLs. What goes wrong with a file is logged,
 * and the others go on. Returns the exit status; TERM, INT, HUP and QUIT must
 * be blocked. */
int run_all(const struct args *a, const struct manifest *m, struct urls *u,
            const struct part_root *root);

#endif
