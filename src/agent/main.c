/* main: block signals, read the options, and hand over. */
#include "agent/command_preflight.h"
#include "agent/command_status.h"
#include "agent/env.h"
#include "agent/help.h"
#include "agent/last_words.h"
#include "agent/loop.h"
#include "agent/options.h"
#include "agent/plan.h"
#include "agent/topology_place.h"
#include "agent/torchrun.h"
#include "base/log.h"
#include "base/std_fds.h"
#include "base/stops.h"
#include "dataset/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <nss.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Memory of this size and more comes from the kernel, which clears a page when
 * it is first used; calloc() from the heap would clear all of them. */
#define MMAP_FROM (32 << 10)

extern char **environ;
/* glibc's own, in no header: which sources of names to use. */
extern int __nss_configure_lookup(const char *database, const char *sources);

/* An image's nsswitch.conf may name modules of another libc; a static program
 * that loads one of them crashes. Takes a read of that file, so only where
 * names are resolved: one pod alone has none. */
static void use_plain_names(void)
{
    (void)__nss_configure_lookup("hosts", "files dns");
}

/* `agent fetch` and the like: a program of its own, beside agent or in PATH. */
static int exec_tool(const char *tool, const struct options *o)
{
    char path[PATH_MAX + 64];
    char *argv[1024] = {path};
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
    sigset_t none;
    char *slash;

    if (o->n_args > 1000) {
        log_error("%s: too many arguments", tool);
        return ERR_USAGE;
    }
    for (int i = 0; i < o->n_args; i++)
        argv[i + 1] = o->args[i];
    path[n > 0 ? n : 0] = '\0';
    slash = strrchr(path, '/');
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (slash) {
        (void)snprintf(slash + 1, sizeof path - (size_t)(slash + 1 - path),
                       "%s", tool);
        (void)execv(path, argv);
    }
    (void)snprintf(path, sizeof path, "%s", tool);
    (void)execvp(tool, argv);
    log_error("%s is not installed: it is looked for beside agent and in "
              "PATH; it is a program of its own (see agent(1))", tool);
    return errno == ENOENT ? ERR_NOTFOUND : ERR_NOEXEC;
}

static int run(const struct options *o)
{
    static struct plan plan; /* Lives until exit. */
    struct err e;

    if (plan_make(&plan, o, environ, &e) != 0)
        return last_words_early(o, &e);
    return o->dry_run ? loop_dry_run(&plan) : loop_run(&plan);
}

static int dispatch(const struct options *o)
{
    struct err e;

    switch (o->command) {
    case CMD_RUN:
    case CMD_TORCHRUN:
        return run(o);
    case CMD_STAGE:
        return dataset_command_stage(o);
    case CMD_VERIFY:
        return dataset_command_verify(o);
    case CMD_MANIFEST:
        return dataset_command_manifest(o);
    case CMD_STATUS:
        return command_status(o);
    case CMD_ENV:
        return env_command(o);
    case CMD_PREFLIGHT:
        return command_preflight(o, environ);
    case CMD_FETCH:
        return exec_tool("agent-fetch", o);
    case CMD_ALLREDUCE:
        return exec_tool("agent-allreduce", o);
    case CMD_PROBE:
        return exec_tool("agent-probe", o);
    case CMD_VERSION:
        (void)printf("agent %s\n", AGENT_VERSION);
        return log_end_stdout();
    case CMD_HELP:
        break;
    }
    if (help_write(stdout, o->help_view, &e) != 0) {
        log_error("%s", e.text);
        return e.code;
    }
    return log_end_stdout();
}

int main(int argc, char **argv)
{
    static const struct sigaction ignore = {.sa_handler = SIG_IGN}, plain;
    static struct options o;
    struct err e;
    sigset_t all;
    bool no_stdout;
    int level;

    /* PID 1 has no default actions: a signal that comes before its handler is
     * dropped by the kernel. Blocked, it waits. */
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    /* Where it is ignored, as some parents leave it, the kernel reaps: nobody
     * would hear of a worker's end. */
    (void)sigaction(SIGCHLD, &plain, NULL);
    no_stdout = std_fds_fill();
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_FROM);
    if (options_read_at(&o, argc, argv, environ, topology_place, &e) != 0)
        return last_words_early(&o, &e);
    if (no_stdout && o.command == CMD_RUN && !o.dry_run)
        std_fds_swallow();
    level = LOG_INFO + (int)o.verbose - (int)o.quiet;
    if (level < LOG_ERROR)
        level = LOG_ERROR;
    log_setup(o.command == CMD_RUN ? (int)o.node_rank : -1,
              level > LOG_DEBUG ? LOG_DEBUG : (enum log_level)level);
    log_setup_time(o.log_timestamps && o.log_format == LOG_FORMAT_TEXT);
    if (o.nnodes > 1 || o.http_port)
        use_plain_names();
    /* The tools end by Ctrl-C as any tool does. */
    if (o.command != CMD_RUN) {
        (void)sigaction(SIGXFSZ, &ignore, NULL); /* The write tells of it. */
        stops_end_init();
        sigemptyset(&all);
        (void)sigprocmask(SIG_SETMASK, &all, NULL);
    }
    if (o.topology.warning[0])
        log_warning("%s", o.topology.warning);
    if (o.command == CMD_RUN && o.nnodes > 1 &&
        (o.node_rank > 0 || o.any_node_rank) &&
        o.origins[TOPO_MASTER_ADDR] == BY_DEFAULT)
        log_warning("no --master-addr: node rank 0 is looked for on this "
                    "machine, at %s; on others give its host", o.master_addr);
    if (o.command == CMD_RUN && o.torchrun.is_on &&
        torchrun_start(&o, argv[0], environ, &e) != 0)
        return last_words_early(&o, &e);
    return dispatch(&o);
}
