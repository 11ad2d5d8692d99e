/* check: see check.h. */
#include "preflight/check.h"

#include "base/cgroup.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/variable.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct preflight_finding finding_new(enum preflight_level level)
{
    struct preflight_finding f;

    memset(&f, 0, sizeof f); /* All of it is written to a pipe. */
    f.level = (uint8_t)level;
    return f;
}

void finding_end(struct preflight_finding *f)
{
    (void)text_make_line(f->what, sizeof f->what - 1);
    (void)text_make_line(f->why, sizeof f->why - 1);
    (void)text_make_line(f->fix, sizeof f->fix - 1);
    (void)text_make_utf8(f->yaml, sizeof f->yaml - 1);
    if (f->check >= PREFLIGHT_CHECKS)
        f->check = 0;
}

void finding_add(const struct preflight_sink *s, struct preflight_finding *f)
{
    f->check = (uint8_t)s->check;
    s->add(s->ctx, f);
}

static void __attribute__((format(printf, 3, 0)))
add_line(const struct preflight_sink *s, bool is_step,
         const char *fmt, va_list ap)
{
    struct preflight_finding f = finding_new(PREFLIGHT_PASS);

    f.is_step = is_step;
    (void)vsnprintf(f.what, sizeof f.what, fmt, ap);
    finding_add(s, &f);
}

void finding_pass(const struct preflight_sink *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_line(s, false, fmt, ap);
    va_end(ap);
}

void finding_step(const struct preflight_sink *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_line(s, true, fmt, ap);
    va_end(ap);
}

const char *check_variable(const struct preflight_job *job, const char *name)
{
    return variable_given(job->envp, name);
}

uint64_t check_safe_bytes(const char *root)
{
    uint64_t limit, used, left = UINT64_MAX, kib = 0;
    char line[128];
    autofclose FILE *f = NULL;

    (void)snprintf(line, sizeof line, "%.64s/proc/meminfo", root);
    f = fopen(line, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            left = kib * 1024;
    if (cgroup_tightest(root, CGROUP_MEMORY, &limit, &used) &&
        (limit > used ? limit - used : 0) < left)
        left = limit > used ? limit - used : 0;
    return left / 2;
}

bool check_rdma_is_off(const struct preflight_job *job)
{
    const char *value = check_variable(job, "NCCL_IB_DISABLE");

    return value && strtoll(value, NULL, 0) != 0;
}

bool check_has_rdma(const struct preflight_job *job)
{
    char path[PATH_MAX];
    const struct dirent *d;
    bool found = false;
    DIR *dir;

    if (check_rdma_is_off(job))
        return false;
    (void)snprintf(path, sizeof path, "%s/dev/infiniband", job->root);
    dir = opendir(path);
    while (dir && !found && (d = readdir(dir)) != NULL)
        found = strncmp(d->d_name, "uverbs", 6) == 0;
    if (dir)
        (void)closedir(dir);
    return found;
}
