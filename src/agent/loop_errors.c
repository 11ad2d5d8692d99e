/* loop_errors: the folders for TORCHELASTIC_ERROR_FILE: nice to have, not a
 * must. Each start of a worker has a fresh one, so that no old file is read
 * as a new failure. */
#include "agent/loop_parts.h"

#include "dataset/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* torchrun's folder of logs has them, and they stay. */
static bool is_kept(const struct loop *l)
{
    return l->plan->o->torchrun.run_dir[0];
}

const char *loop_error_root(const struct loop *l)
{
    const struct torchrun_options *t = &l->plan->o->torchrun;

    if (t->no_logs) /* torchrun has none then, either. */
        return NULL;
    if (is_kept(l))
        return t->run_dir;
    return l->folder.path[0] ? l->folder.path : NULL;
}

static void attempt_dir(const struct loop *l, uint32_t attempt, char *path,
                        size_t cap)
{
    (void)snprintf(path, cap, "%s/attempt_%u", loop_error_root(l), attempt);
}

void loop_error_file(const struct loop *l, uint32_t i, char *path, size_t cap)
{
    (void)snprintf(path, cap, "%s/attempt_%u/%u/error.json", loop_error_root(l),
                   l->workers[i].attempt, i);
}

void loop_make_error_dir(struct loop *l, uint32_t i, uint32_t attempt)
{
    struct worker *w = &l->workers[i];
    char path[LOOP_ERROR_PATH];
    int n;

    if (!loop_error_root(l))
        scratch_make(&l->folder);
    if (!loop_error_root(l))
        return;
    loop_forget_errors_of(l, i);
    attempt_dir(l, attempt, path, sizeof path);
    (void)mkdir(path, 0700);
    n = snprintf(path, sizeof path, "%s/attempt_%u/%u", loop_error_root(l),
                 attempt, i);
    w->attempt = attempt;
    /* In torchrun's folder the log files' thread may have been first. */
    w->has_error_dir = n > 0 && (mkdir(path, 0700) == 0 ||
                                 (errno == EEXIST && is_kept(l)));
}

void loop_forget_errors_of(struct loop *l, uint32_t i)
{
    struct worker *w = &l->workers[i];
    char path[LOOP_ERROR_PATH];

    if (!w->has_error_dir)
        return;
    w->has_error_dir = false;
    if (is_kept(l))
        return;
    (void)snprintf(path, sizeof path, "%s/attempt_%u/%u", loop_error_root(l),
                   w->attempt, i);
    if (rmdir(path) != 0) /* A worker may have put more than one file there. */
        (void)tree_remove(AT_FDCWD, path);
    attempt_dir(l, w->attempt, path, sizeof path);
    (void)rmdir(path); /* Of the last of this attempt. */
}

void loop_forget_errors(struct loop *l)
{
    for (uint32_t i = 0; l->workers && i < l->plan->nproc; i++)
        loop_forget_errors_of(l, i);
}
