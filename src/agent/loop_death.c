/* loop_death: children that died, in order, and what is known of a worker's
 * death: its last words, its error file, and what this machine knows. */
#include "agent/loop_parts.h"
#include "agent/option_table.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/result_file.h"
#include "base/text.h"
#include "base/variable.h"
#include "rendezvous/port.h"
#include "supervise/error_file.h"
#include "supervise/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAIL_LINES 8
#define COPY_MAX (64u << 20) /* Of an error file that is handed on. */

/* A plain file; -1 where it is none: a worker may have put anything there. */
static int open_plain(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW |
                            O_NOCTTY);
    struct stat st;

    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* As much as there is and fits. */
static bool read_some(int fd, char *buf, size_t cap, size_t *ret_n)
{
    size_t n = 0;
    ssize_t r = 1;

    while (n < cap && r > 0) {
        r = read(fd, buf + n, cap - n);
        n += r > 0 ? (size_t)r : 0;
    }
    *ret_n = n;
    return r >= 0 && n > 0;
}

/* What its error file says, as its last words. */
static bool read_error_file(const struct loop *l, uint32_t i, char *out,
                            size_t cap)
{
    char path[LOOP_ERROR_PATH], buf[ERROR_FILE_MAX];
    struct error_file f;
    size_t n;

    if (i >= l->plan->nproc || !l->workers[i].has_error_dir)
        return false;
    loop_error_file(l, i, path, sizeof path);
    autoclose int fd = open_plain(path);

    return fd >= 0 && read_some(fd, buf, sizeof buf, &n) &&
           error_file_read(buf, n, &f) && error_file_text(&f, out, cap) > 0;
}

/* The port that the last lines speak of, as torch writes it; else the
 * workers' own. */
static unsigned port_in(const struct loop *l, const char *tail)
{
    const char *at = strstr(tail, "port: ");
    unsigned long port = at ? strtoul(at + 6, NULL, 10) : 0;

    return port > 0 && port < 65536 ? (unsigned)port : l->pod.at.master_port;
}

/* A kill that this group's limit did not ask for is counted here, too (v2). */
static void add_oom(const struct loop *l, const struct worker *w,
                    struct verdict_facts *facts)
{
    struct facts_oom now = facts_oom();
    uint64_t node = facts_node_oom_kills();
    uint64_t kills = now.kills > w->oom.kills ? now.kills - w->oom.kills : 0;

    if (l->has_node_oom && node > l->node_oom_kills)
        facts->node_oom_kills = node - l->node_oom_kills;
    if (now.at_limit > w->oom.at_limit) {
        facts->oom_kills = kills;
        facts->memory_limit = kills > 0 ? facts_memory_limit() : 0;
    } else if (kills > facts->node_oom_kills) {
        facts->node_oom_kills = kills;
    }
}

/* Workers have agent's limits, unless they set their own. */
static void add_cpu(const struct worker *w, struct verdict_facts *facts)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_CPU, &r) != 0)
        return;
    facts->cpu_ms = w->cpu_ms;
    facts->cpu_soft_s = r.rlim_cur == RLIM_INFINITY ? 0 : r.rlim_cur;
    facts->cpu_hard_s = r.rlim_max == RLIM_INFINITY ? 0 : r.rlim_max;
}

/* "agent stag": was a command meant? */
static void say_near(const char *command, char why[FACTS_TEXT_MAX])
{
    const char *near = opt_near_command(command);

    if (near)
        (void)snprintf(why, FACTS_TEXT_MAX, "'%.40s' was not found in PATH; "
                       "did you mean 'agent %s'?", command, near);
}

void loop_explain_death(struct loop *l, uint32_t i, int exec_errno,
                        struct failure *f)
{
    struct worker *w = &l->workers[i];
    char holder[96] = "", full[FACTS_TEXT_MAX] = "", why[FACTS_TEXT_MAX] = "";
    struct verdict_facts facts = {.exec_errno = exec_errno,
                                  .command = i == l->plan->n_procs
                                                 ? "sh"
                                                 : l->plan->o->args[0],
                                  .exec_text = why,
                                  .port_holder = holder,
                                  .full = full,
                                  .pids_max = facts_pids_limit(),
                                  .cwd_gone = facts_cwd_gone()};

    add_oom(l, w, &facts);
    add_cpu(w, &facts);
    facts_shm(&facts.shm_bytes, &facts.shm_used);
    if (exec_errno)
        facts_exec(facts.command, exec_errno, why, sizeof why);
    if (exec_errno == ENOENT && !why[0])
        say_near(facts.command, why);
    (void)tail_text(&w->tail, TAIL_LINES, f->tail, sizeof f->tail);
    if (strcasestr(f->tail, "address already in use")) {
        facts.port = port_in(l, f->tail);
        port_holder(facts.port, holder, sizeof holder);
    }
    if (strcasestr(f->tail, "No space left"))
        facts_full(full, sizeof full);
    verdict_hint(f->text, sizeof f->text, f, &facts);
    if (!read_error_file(l, i, f->tail, sizeof f->tail))
        return;
    f->from_file = true;
    if (!f->text[0]) /* The last lines say nothing that is known. */
        verdict_hint(f->text, sizeof f->text, f, &facts);
}

void loop_note_machine(struct loop *l)
{
    bool first = !l->has_node_oom;

    l->node_oom_kills = facts_node_oom_kills();
    l->has_node_oom = true;
    if (first && facts_oom_group())
        log_info("memory.oom.group is set for this container: an OOM kill "
                 "takes agent with the workers, and only other pods can tell "
                 "of it");
}

/* Its beginning is in buf[0..n); torch adds the exit code to what it hands
 * on. 0 or a negative errno. */
static int copy_with_code(int in, struct result_file *out, char *buf, size_t n,
                          int code)
{
    char added[32];
    struct error_file f;
    size_t from = 0, total = 0;
    int r = 0;

    if (error_file_read(buf, n, &f) && f.inner_at > 0 && !f.has_code) {
        from = f.inner_at;
        r = result_file_write(out, buf, from);
        (void)snprintf(added, sizeof added, "\"errorCode\": %d, ", code);
        if (r == 0)
            r = result_file_write(out, added, strlen(added));
    }
    while (r == 0 && n > 0 && total < COPY_MAX) {
        ssize_t more;

        r = result_file_write(out, buf + from, n - from);
        total += n;
        more = read(in, buf, ERROR_FILE_MAX);
        from = 0;
        n = more > 0 ? (size_t)more : 0;
    }
    return r;
}

static void hand_on_error(struct loop *l, const struct failure *f,
                          const char *to)
{
    char path[LOOP_ERROR_PATH], buf[ERROR_FILE_MAX];
    struct result_file out;
    size_t n = 0;
    int r, end;

    loop_error_file(l, f->local_rank, path, sizeof path);
    autoclose int in = open_plain(path);

    if (in < 0 || !read_some(in, buf, sizeof buf, &n))
        return;
    r = result_file_open(&out, to);
    if (r == 0) {
        r = copy_with_code(in, &out, buf, n, f->code);
        end = result_file_close(&out, r == 0);
        r = r ? r : end;
    }
    if (r != 0)
        log_warning("TORCHELASTIC_ERROR_FILE %s: %s, going on", to,
                    strerror(-r));
}

void loop_hand_on_error(struct loop *l, const struct verdict *v)
{
    const struct failure *f = &v->cause;
    const char *to;

    if (f->kind != FAILURE_WORKER || f->node_rank != v->node_rank ||
        f->local_rank >= l->plan->nproc ||
        !l->workers[f->local_rank].has_error_dir)
        return;
    to = variable_given(l->plan->envp, "TORCHELASTIC_ERROR_FILE");
    if (to)
        hand_on_error(l, f, to);
}

static uint64_t cpu_ms_of(const struct rusage *r)
{
    return (uint64_t)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) * 1000 +
           (uint64_t)(r->ru_utime.tv_usec + r->ru_stime.tv_usec) / 1000;
}

/* Its job stands still, and nothing else would tell. Once: some limit what a
 * process takes of the CPU by stopping it many times a second. */
static void say_stopped(struct loop *l, pid_t pid, int signo)
{
    char name[16];

    for (uint32_t i = 0; !l->tty.on && i < l->plan->nproc; i++) {
        struct worker *w = &l->workers[i];

        if (w->pid != pid || w->stop_told)
            continue;
        w->stop_told = true;
        log_warning("rank %u (local rank %u, pid %d) was stopped by %s, not by "
                    "agent: it stands still until `kill -CONT %d`, going on",
                    l->pod.at.rank_base + i, i, (int)pid,
                    verdict_signal_name(signo, name), (int)pid);
    }
}

/* A dead child, `which` or any (-1); false where there is none. */
static bool reap_one(struct loop *l, pid_t which)
{
    int status;
    struct rusage used;
    pid_t pid = wait4(which, &status, WNOHANG | WUNTRACED, &used);

    if (pid <= 0)
        return false;
    if (WIFSTOPPED(status)) {
        say_stopped(l, pid, WSTOPSIG(status));
        loop_tty_stopped(l, pid, WSTOPSIG(status));
        return true;
    }
    if (loop_worker_died(l, pid, status, cpu_ms_of(&used)) ||
        loop_stage_died(l, pid, status) || loop_preflight_died(l, pid, status))
        return true;
    if (pid == l->guard_pid) {
        loop_guard_died(l);
        return true;
    }
    l->n_reaped++;
    supervisor_nudge(&l->pod.sup, loop_now());
    return true;
}

/* waitpid(-1) gives the oldest child first, not who died first. Of SIGCHLDs
 * that are pending together the kernel keeps the first one's pid: `first`. */
void loop_reap(struct loop *l, pid_t first)
{
    (void)reap_one(l, first);
    while (reap_one(l, -1))
        ;
}
