/* verdict_hint: from a worker's death to its likely cause. See verdict.h.
 *
 * A hint says what is likely and what to do, in one line of less than
 * FAILURE_TEXT_MAX bytes. */
#include "supervise/verdict.h"

#include "base/err.h"
#include "supervise/verdict_patterns.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static void add_bytes(struct text *t, uint64_t n)
{
    if (n >> 30 >= 10)
        text_add(t, "%llu GiB", (unsigned long long)(n >> 30));
    else if (n >> 20 > 0)
        text_add(t, "%llu MiB", (unsigned long long)(n >> 20));
    else
        text_add(t, "%llu KiB", (unsigned long long)(n >> 10));
}

static void add_shm(struct text *t, const struct verdict_facts *facts)
{
    uint64_t size = facts->shm_bytes, used = facts->shm_used;

    if (size == 0)
        return;
    text_add(t, "; /dev/shm has ");
    add_bytes(t, size);
    text_add(t, ", %u %% used", (unsigned)((double)used * 100 / (double)size));
}

/* For a limit the kernel counts whole ticks: by what was really used, a busy
 * machine reaches it with a tenth less. */
static bool is_cpu_used(const struct verdict_facts *facts, uint64_t limit_s)
{
    return limit_s > 0 && facts->cpu_ms >= limit_s * 750;
}

static void add_cpu(struct text *t, uint64_t limit_s)
{
    text_add(t, "most likely the limit of CPU time that agent was started "
             "with, %llu s, was reached: `ulimit -t unlimited` before agent",
             (unsigned long long)limit_s);
}

static void add_kill(struct text *t, const struct verdict_facts *facts)
{
    if (is_cpu_used(facts, facts->cpu_hard_s)) {
        add_cpu(t, facts->cpu_hard_s);
    } else if (facts->oom_kills > 0) {
        text_add(t, "the kernel's OOM killer was at work in this pod (%llu "
                 "kill%s since the worker's start): most likely the memory "
                 "limit ", (unsigned long long)facts->oom_kills,
                 text_plural(facts->oom_kills));
        if (facts->memory_limit > 0) {
            text_add(t, "of ");
            add_bytes(t, facts->memory_limit);
            text_add(t, " ");
        }
        text_add(t, "was reached; raise resources.limits.memory (docker: "
                 "--memory), or use less (batch, data workers)");
    } else if (facts->node_oom_kills > 0)
        text_add(t, "the pod's own memory limit was not hit, but the OOM "
                 "killer was at work on this node (%llu kill%s meanwhile): the "
                 "node ran out of memory, or a limit above this container's "
                 "was reached; ask for what the job needs "
                 "(resources.requests.memory), and see `dmesg` on the node",
                 (unsigned long long)facts->node_oom_kills,
                 text_plural(facts->node_oom_kills));
    else
        text_add(t, "agent did not send it, and the pod's memory limit was not "
                 "hit as far as its counter tells: somebody's kill -9, or the "
                 "node ran out of memory (`dmesg` on the node)");
}

static void add_exec_error(struct text *t, const char *what,
                           const struct verdict_facts *facts)
{
    switch (facts->exec_errno) {
    case ENOENT:
        if (strchr(what, '/'))
            text_add(t, "'%.160s' was not found; if it exists, the "
                     "interpreter of its #! line (a carriage return there?) or "
                     "its loader is missing in the image", what);
        else
            text_add(t, "'%.160s' was not found in PATH", what);
        break;
    case EACCES:
        text_add(t, "'%.160s' cannot be run: no execute permission (chmod +x), "
                 "a folder, a path that may not be searched, or a mount with "
                 "noexec", what);
        break;
    case ENOEXEC:
        text_add(t, "'%.160s' is no program of this machine's architecture, or "
                 "a script without a #! line", what);
        break;
    case E2BIG:
        text_add(t, "arguments and environment are too large; in Kubernetes "
                 "enableServiceLinks: false makes the environment smaller");
        break;
    default:
        text_add(t, "'%.160s' could not be started: %s", what,
                 strerror(facts->exec_errno));
        break;
    }
}

static void add_exec(struct text *t, const struct verdict_facts *facts)
{
    const char *what = facts->command ? facts->command : "the command";

    if (facts->exec_text && facts->exec_text[0])
        text_add(t, "%s", facts->exec_text);
    else
        add_exec_error(t, what, facts);
    if (what[0] == '-')
        text_add(t, "; options go before --");
}

static bool add_known(struct text *t, const char *line,
                      const struct verdict_facts *facts)
{
    const struct verdict_pattern *p = verdict_pattern_of(line);

    if (!p)
        return false;
    text_add(t, "%s", p->hint);
    switch (p->more) {
    case HINT_PLAIN:
    case HINT_PEER:
    case HINT_AT_END:
        break;
    case HINT_SHM:
        add_shm(t, facts);
        break;
    case HINT_KILL:
        add_kill(t, facts);
        break;
    case HINT_PORT:
        if (facts->port_holder && facts->port_holder[0])
            text_add(t, "; port %u is held by %s", facts->port,
                     facts->port_holder);
        break;
    case HINT_PIDS:
        if (facts->pids_max > 0)
            text_add(t, "; the pod's limit (pids.max) is %llu",
                     (unsigned long long)facts->pids_max);
        break;
    case HINT_DISK:
        if (facts->full && facts->full[0])
            text_add(t, "; %s", facts->full);
        break;
    }
    return true;
}

/* The last line of the tail that a row fits decides, but nothing before an
 * exception that no row knows: that one speaks for itself. */
static bool add_pattern(struct text *t, const struct failure *f,
                        const struct verdict_facts *facts, bool *ret_speaks)
{
    size_t end = strnlen(f->tail, sizeof f->tail);

    *ret_speaks = false;
    while (end > 0) {
        const char *newline = memrchr(f->tail, '\n', end);
        size_t start = newline ? (size_t)(newline + 1 - f->tail) : 0;
        char line[FAILURE_TAIL_MAX];

        memcpy(line, f->tail + start, end - start);
        line[end - start] = '\0';
        if (add_known(t, line, facts))
            return true;
        if (verdict_is_exception(line)) {
            *ret_speaks = true;
            return false;
        }
        end = start > 0 ? start - 1 : 0;
    }
    return false;
}

static void add_bus(struct text *t, const struct verdict_facts *facts)
{
    text_add(t, "SIGBUS most often means that /dev/shm is full: "
             HINT_SHM_FIX);
    add_shm(t, facts);
    text_add(t, "; else a mapped file became shorter, or its disk failed");
}

/* Hints for a signal whose sender or reason the tail cannot know better. */
static bool add_signal(struct text *t, int signo,
                       const struct verdict_facts *facts)
{
    if (signo == SIGKILL)
        add_kill(t, facts);
    else if (signo == SIGBUS)
        add_bus(t, facts);
    else if (signo == SIGTERM || signo == SIGINT || signo == SIGHUP ||
             signo == SIGQUIT)
        text_add(t, "agent did not send it: somebody or the program itself did "
                 "(kill, timeout(1), a shell's trap)");
    else
        return false;
    return true;
}

/* Hints for where the tail said nothing known. */
static void add_crash(struct text *t, int signo, int code,
                      const struct verdict_facts *facts)
{
    if (signo == SIGSEGV)
        text_add(t, "a bug in native code, or libraries that do not fit each "
                 "other; PYTHONFAULTHANDLER=1 shows where in Python");
    else if (signo == SIGABRT)
        text_add(t, "the program aborted by itself (an assertion, an uncaught "
                 "C++ exception, a corrupted heap): its last lines tell");
    else if (signo == SIGILL)
        text_add(t, "the program was likely built for a newer CPU than this "
                 "node has");
    else if (signo == SIGFPE)
        text_add(t, "an integer division by zero in native code");
    else if (signo == SIGSYS)
        text_add(t, "a seccomp profile forbids a system call that the program "
                 "makes");
    else if (signo == SIGXCPU && is_cpu_used(facts, facts->cpu_soft_s))
        add_cpu(t, facts->cpu_soft_s);
    else if (signo == SIGXCPU || signo == SIGXFSZ)
        text_add(t, "a limit of the process was reached (`ulimit -%c`)",
                 signo == SIGXCPU ? 't' : 'f');
    else if (code == ERR_NOTFOUND)
        text_add(t, "a shell did not find a command, or a loader a library");
    else if (code == ERR_NOEXEC)
        text_add(t, "a shell found a command that cannot be run: no execute "
                 "permission, or another architecture");
}

/* A shell reports the death of its own child by signal as 128 + signal. */
static int shell_signal(int code)
{
    static const int known[] = {SIGKILL, SIGBUS, SIGSEGV, SIGABRT, SIGILL,
                                SIGFPE, SIGXCPU, SIGXFSZ};

    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++)
        if (code == 128 + known[i])
            return known[i];
    return 0;
}

void verdict_hint(char *ret, size_t cap, const struct failure *f,
                  const struct verdict_facts *facts)
{
    struct text t;
    int signo = f->signo;
    bool speaks;
    char name[16];

    text_init(&t, ret, cap);
    if (facts->cwd_gone && signo == 0 &&
        (facts->exec_errno == ENOENT || strcasestr(f->tail, "getcwd") ||
         strcasestr(f->tail, "No such file or directory"))) {
        text_add(&t, "the working directory of agent has been removed, so "
                 "nothing is found by a relative path: start it in another "
                 "(workingDir of the pod, WORKDIR of the image)");
        return;
    }
    if (facts->exec_errno) {
        add_exec(&t, facts);
        return;
    }
    if (signo == 0 && shell_signal(f->code)) {
        signo = shell_signal(f->code);
        text_add(&t, "%d is what a shell returns whose command was killed by "
                 "%s: ", f->code, verdict_signal_name(signo, name));
    }
    if (add_signal(&t, signo, facts) || add_pattern(&t, f, facts, &speaks))
        return;
    add_crash(&t, signo, f->code, facts);
    if (t.len == 0 && !speaks && facts->oom_kills > 0) {
        text_add(&t, "a process that it started was likely killed: ");
        add_kill(&t, facts);
    }
}
