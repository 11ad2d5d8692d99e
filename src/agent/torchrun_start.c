/* torchrun_start: what the torchrun command line needs of the machine before
 * the job; see torchrun.h. */
#include "agent/torchrun.h"

#include "agent/machine.h"
#include "base/log.h"
#include "base/variable.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEFORE_SCRIPT 4 /* Words that come before the script, at most. */

static bool try(char *out, size_t cap, const char *dir, size_t dir_len,
                const char *name)
{
    struct stat s;
    int n = snprintf(out, cap, "%.*s/%s", dir_len ? (int)dir_len : 1,
                     dir_len ? dir : ".", name); /* "" in PATH is here. */

    return n > 0 && (size_t)n < cap && stat(out, &s) == 0 &&
           S_ISREG(s.st_mode) && access(out, X_OK) == 0;
}

static bool python_in(char *out, size_t cap, const char *dir, size_t dir_len)
{
    return try(out, cap, dir, dir_len, "python") ||
           try(out, cap, dir, dir_len, "python3");
}

/* The first folder of PATH with `name`; NULL: with any Python. */
static bool in_path(char *out, size_t cap, const char *path, const char *name,
                    size_t *ret_len)
{
    while (path) {
        size_t len = strcspn(path, ":");

        *ret_len = len ? len : 1;
        if (name ? try(out, cap, path, len, name)
                 : python_in(out, cap, path, len))
            return true;
        path = path[len] ? path + len + 1 : NULL;
    }
    return false;
}

/* A folder of programs that belongs to an environment of Python's. */
static bool is_environment(const char *bin)
{
    static const char *const marks[] = {"../pyvenv.cfg", "../conda-meta"};
    char path[PATH_MAX + 16];
    bool found = false;

    for (unsigned i = 0; i < 2 && !found; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", bin, marks[i]);
        found = access(path, F_OK) == 0;
    }
    return found;
}

/* The folder of the torchrun that this is; "" where it is called agent. */
static void find_own(char *dir, size_t cap, const char *argv0,
                     const char *path)
{
    const char *slash = strrchr(argv0, '/');
    size_t len = slash ? (size_t)(slash - argv0) : 0;

    dir[0] = '\0';
    if (strcmp(slash ? slash + 1 : argv0, "torchrun") != 0)
        return;
    if (slash)
        (void)snprintf(dir, cap, "%.*s", (int)len, len ? argv0 : "/");
    else if (in_path(dir, cap, path, argv0, &len) && len < cap)
        dir[len] = '\0';
}

/* Of an environment, by its variable. */
static bool python_of(char *out, size_t cap, const char *home)
{
    char bin[PATH_MAX];
    int n = home ? snprintf(bin, sizeof bin, "%s/bin", home) : 0;

    return n > 0 && (size_t)n < sizeof bin &&
           python_in(out, cap, bin, (size_t)n);
}

/* torchrun's script runs with the Python beside it. That counts first where it
 * is of an environment; /usr/local/bin has the link for all of them. */
static const char *find_python(const char *argv0, char *const *envp)
{
    static char out[PATH_MAX]; /* Lives until exit. */
    const char *exec = variable_given(envp, "PYTHON_EXEC");
    const char *path = variable_given(envp, "PATH");
    char own[PATH_MAX];
    size_t len;

    if (exec)
        return exec;
    find_own(own, sizeof own, argv0, path);
    if ((own[0] && is_environment(own) &&
         python_in(out, sizeof out, own, strlen(own))) ||
        python_of(out, sizeof out, variable_given(envp, "VIRTUAL_ENV")) ||
        python_of(out, sizeof out, variable_given(envp, "CONDA_PREFIX")) ||
        (own[0] && python_in(out, sizeof out, own, strlen(own))) ||
        in_path(out, sizeof out, path, NULL, &len))
        return out;
    return NULL;
}

/* Workers have /dev/null there, and Python would end with 0. */
static bool is_stdin(const char *script)
{
    static const char *const names[] = {"-", "/dev/stdin", "/dev/fd/0",
                                        "/proc/self/fd/0"};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(script, names[i]) == 0)
            return true;
    return false;
}

/* The interpreter and its options, the script, and what follows. */
static int make_args(struct options *o, const char *argv0, char *const *envp,
                     struct err *e)
{
    static char run_path[] = "import runpy, sys; sys.argv = sys.argv[1:]; "
                             "runpy.run_path(sys.argv[0], "
                             "run_name='__main__')";
    static char unbuffered[] = "-u", module[] = "-m", code[] = "-c";
    const struct torchrun_options *t = &o->torchrun;
    const char *python;
    char **args;
    int n = 0;

    if (t->no_python && !t->run_path)
        return 0;
    if (!t->module && is_stdin(o->args[0]))
        return err_set(e, ERR_USAGE, "%s: the script is on stdin, and workers "
                       "have /dev/null there; write it to a file", o->args[0]);
    python = find_python(argv0, envp);
    if (!python)
        return err_set(e, ERR_NOTFOUND, "no Python: neither python nor python3 "
                       "is beside torchrun, in VIRTUAL_ENV, CONDA_PREFIX or "
                       "PATH; set PYTHON_EXEC, or give --no-python");
    args = calloc((size_t)o->n_args + BEFORE_SCRIPT + 1, sizeof *args);
    if (!args)
        return err_set(e, ERR_AGENT, "no memory for %d arguments", o->n_args);
    args[n++] = (char *)(uintptr_t)python;
    args[n++] = unbuffered;
    if (t->run_path) {
        args[n++] = code;
        args[n++] = run_path;
    } else if (t->module) {
        args[n++] = module;
    }
    memcpy(args + n, o->args, (size_t)o->n_args * sizeof *args);
    o->args = args;
    o->n_args += n;
    return 0;
}

/* As uuid4(). */
static void make_id(struct options *o)
{
    uint64_t a = machine_random(), b = machine_random();

    (void)snprintf(o->torchrun.run_id, sizeof o->torchrun.run_id,
                   "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-%04" PRIx64
                   "-%012" PRIx64, a >> 32, (a >> 16) & 0xffff, a & 0xfff,
                   (b >> 48 & 0x3fff) | 0x8000, b & 0xffffffffffff);
    o->job_id = o->torchrun.run_id;
}

static int make_parents(const char *dir)
{
    char path[OPT_RUN_DIR_MAX];
    size_t len = strlen(dir);

    memcpy(path, dir, len + 1);
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i])
            continue;
        path[i] = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return -errno;
        path[i] = dir[i];
    }
    return 0;
}

/* DIR/<id>_<random>, and DIR in TMPDIR where none was given. */
static int make_run_dir(struct options *o, char *const *envp, struct err *e)
{
    char *dir = o->torchrun.run_dir;
    const char *tmp = variable_given(envp, "TMPDIR");
    char base[OPT_RUN_DIR_MAX];
    int n, m, r = 0;

    if (o->torchrun.no_logs || (!o->log_dir && !torchrun_has_files(o)))
        return 0;
    if (o->log_dir) {
        n = snprintf(base, sizeof base, "%s", o->log_dir);
        r = make_parents(o->log_dir);
    } else {
        n = snprintf(base, sizeof base, "%s/torchelastic_XXXXXX",
                     tmp ? tmp : "/tmp");
        if (n < 0 || (size_t)n >= sizeof base || !mkdtemp(base))
            r = -errno;
    }
    m = snprintf(dir, sizeof o->torchrun.run_dir, "%s/%s_XXXXXX", base,
                 o->job_id);
    if (n < 0 || m < 0 || (size_t)m >= sizeof o->torchrun.run_dir)
        r = -ENAMETOOLONG;
    if (r == 0 && !mkdtemp(dir))
        r = -errno;
    if (r != 0)
        return err_set(e, ERR_RESOURCE, "--log-dir %.120s: %s", base,
                       strerror(-r));
    if (!o->log_dir)
        log_info("the workers' output goes to %s", dir);
    o->log_dir = torchrun_has_files(o) ? dir : NULL;
    return 0;
}

int torchrun_start(struct options *o, const char *argv0, char *const *envp,
                   struct err *e)
{
    int r;

    if (o->torchrun.random_id)
        make_id(o);
    r = make_args(o, argv0, envp, e);
    if (r == 0)
        r = make_run_dir(o, envp, e);
    return r;
}
