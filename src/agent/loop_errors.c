/* loop_errors: the folders for TORCHELASTIC_ERROR_FILE: nice to have, not a
 * must. Each start of a worker has a fresh one, so that no old file is read
 * as a new failure. */
#include "agent/loop_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Memory first: making folders on a disk can take longer than all the rest of
 * a start. */
static void make_root(struct loop *l)
{
    static const char *const roots[] = {"/dev/shm", "/tmp"};

    for (unsigned i = 0; i < 2 && !l->error_dir[0]; i++) {
        (void)snprintf(l->error_dir, sizeof l->error_dir,
                       "%s/agent-errors-XXXXXX", roots[i]);
        if (!mkdtemp(l->error_dir))
            l->error_dir[0] = '\0';
    }
}

static void attempt_dir(const struct loop *l, uint32_t attempt, char *path,
                        size_t cap)
{
    (void)snprintf(path, cap, "%s/attempt_%u", l->error_dir, attempt);
}

void loop_error_file(const struct loop *l, uint32_t i, char *path, size_t cap)
{
    (void)snprintf(path, cap, "%s/attempt_%u/%u/error.json", l->error_dir,
                   l->workers[i].attempt, i);
}

void loop_make_error_dir(struct loop *l, uint32_t i, uint32_t attempt)
{
    struct worker *w = &l->workers[i];
    char path[LOOP_ERROR_PATH];
    int n;

    make_root(l);
    if (!l->error_dir[0])
        return;
    loop_forget_errors_of(l, i);
    attempt_dir(l, attempt, path, sizeof path);
    (void)mkdir(path, 0700);
    n = snprintf(path, sizeof path, "%s/attempt_%u/%u", l->error_dir, attempt,
                 i);
    w->attempt = attempt;
    w->has_error_dir = n > 0 && mkdir(path, 0700) == 0;
}

void loop_forget_errors_of(struct loop *l, uint32_t i)
{
    struct worker *w = &l->workers[i];
    char path[LOOP_ERROR_PATH];

    if (!w->has_error_dir)
        return;
    w->has_error_dir = false;
    loop_error_file(l, i, path, sizeof path);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/attempt_%u/%u", l->error_dir,
                   w->attempt, i);
    (void)rmdir(path);
    attempt_dir(l, w->attempt, path, sizeof path);
    (void)rmdir(path); /* Of the last of this attempt. */
}

void loop_forget_errors(struct loop *l)
{
    for (uint32_t i = 0; l->workers && i < l->plan->nproc; i++)
        loop_forget_errors_of(l, i);
}
