/* loop_workers: the workers of a round: start, signals, deaths, what they
 * left behind. */
#include "agent/loop_parts.h"

#include "agent/offline.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "supervise/brand.h"
#include "supervise/facts.h"
#include "supervise/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int loop_workers_new(struct loop *l, struct err *e)
{
    static const struct pod_round none;
    struct contract_in in;
    size_t n = l->plan->n_procs, relays;

    if (l->plan->o->pre_start)
        n++;
    l->n_slots = (uint32_t)n;
    relays = 2 * n * RELAY_BUF_BYTES;
    loop_describe(l, &in, &none, 0);
    /* In one call for all: each is microseconds of a start. */
    l->workers = mem_pages(n * sizeof *l->workers + relays + l->line_room);
    l->no_proxy = in.dead_port ? malloc(OFFLINE_LIST_MAX) : NULL;
    if (!l->workers || (in.dead_port && !l->no_proxy) ||
        loop_contract_new(l, &in) != 0)
        return err_set(e, ERR_AGENT, "no memory for %zu worker%s", n,
                       text_plural(n));
    l->relay_bytes = (char *)(l->workers + n);
    l->scratch = l->relay_bytes + relays;
    for (size_t i = 0; i < n; i++) {
        struct worker *w = &l->workers[i];

        w->exec_fd = -1;
        w->out.loop = w->err.loop = l;
        w->out.out = l->stdout_q;
        w->err.out = l->stderr_q;
        w->err.tail = &w->tail;
        w->out.tail = &w->out_tail;
        tail_init(&w->tail, w->rings[0]);
        tail_init(&w->out_tail, w->rings[1]);
        w->err.is_err = true;
        w->out.file = 2 * (unsigned)i;
        w->err.file = w->out.file + 1;
    }
    return 0;
}

/* The pod's CPUs may be others than at the start of agent: a worker that none
 * of its own is left for runs on all. To do it again tells. */
static void check_cpus(const struct loop *l, uint32_t i, pid_t pid)
{
    const struct cpu_mask *m = &l->plan->cpus.masks[i];
    char list[256];
    struct text t;

    if (syscall(SYS_sched_setaffinity, pid, sizeof m->bits, m->bits) == 0 ||
        errno == ESRCH)
        return;
    text_init(&t, list, sizeof list);
    cpu_print(m, &t);
    log_warning("worker %u is not pinned to CPUs %s: %s; have the pod's CPUs "
                "changed? Going on", i, list, strerror(errno));
}

static void start_worker(struct loop *l, const struct pod_round *round,
                         uint32_t i)
{
    struct worker *w = &l->workers[i];
    char *const pre_start[] = {(char []){"sh"}, (char []){"-c"},
                               (char *)(uintptr_t)l->plan->o->pre_start, NULL};
    const struct machine_files *files = &l->plan->files;
    struct child_spec spec = {.argv = pre_start,
                              .stdin_fd = l->stdin_fd,
                              .ignored = l->ignored,
                              .brand = brand_of_worker(l->plan->brand, i),
                              .tty = loop_tty_for(l, i),
                              .max_files = files->raised ? files->before : 0};
    struct contract_in in;
    struct child c;

    if (l->plan->cpus.masks && i < l->plan->nproc) {
        spec.cpus = l->plan->cpus.masks[i].bits;
        spec.cpus_size = sizeof l->plan->cpus.masks[i].bits;
    }
    spec.beat_fd = loop_beat_open(l, i);
    loop_describe(l, &in, round, i);
    in.heartbeat_fd = spec.beat_fd >= 0 ? CHILD_BEAT_FD : -1;
    stream_begin(&w->out, &in,
                 l->relay_bytes + 2 * (size_t)i * RELAY_BUF_BYTES);
    stream_begin(&w->err, &in,
                 l->relay_bytes + (2 * (size_t)i + 1) * RELAY_BUF_BYTES);
    w->n_starts++;
    w->start_ms = loop_now();
    w->stop_told = false;
    if (l->plan->n_procs > 1)
        loop_guard_open(l); /* Else some ms later: loop_settle(). */
    w->unborn = loop_write_contract(l, &in, &spec, &w->unborn_err) != 0;
    if (!w->unborn)
        w->unborn = child_spawn(&spec, &c, &w->unborn_err) != 0;
    mem_close_at(&spec.beat_fd);
    if (w->unborn) {
        l->n_unborn++;
        return;
    }
    w->pid = w->last_pid = c.pid;
    w->exec_fd = c.exec_fd;
    if (spec.cpus_size > 0)
        check_cpus(l, i, c.pid);
    if (spec.tty)
        return;
    stream_open(&w->out, c.out_fd);
    stream_open(&w->err, c.err_fd);
}

/* The pods of a round may be others than before. */
static void list_hosts(struct loop *l, const struct pod_round *round)
{
    const struct plan *p = l->plan;
    struct offline_in in = {.master_addr = p->o->master_addr,
                            .host = p->host,
                            .addresses = p->addresses,
                            .pods = round->hosts,
                            .service_host = p->service_host,
                            .allow = p->o->offline_allow};

    if (l->no_proxy && !offline_no_proxy(&in, l->no_proxy, OFFLINE_LIST_MAX))
        log_warning("--offline: the list of hosts that workers reach is "
                    "longer than %d bytes; the pods at its end are left out, "
                    "going on", OFFLINE_LIST_MAX);
}

void loop_spawn(struct loop *l, const struct pod_round *round)
{
    struct facts_oom oom;

    for (uint32_t i = 0; i < l->n_slots; i++) {
        stream_close(&l->workers[i].out); /* Of the round before. */
        stream_close(&l->workers[i].err);
    }
    loop_forget_errors(l);
    loop_warn_ranks(l, round);
    loop_shm_begin(l);
    for (uint32_t i = 0; i < l->plan->nproc; i++)
        loop_make_error_dir(l, i, round->round);
    list_hosts(l, round);
    l->round_ticks = proc_now_ticks();
    for (uint32_t i = l->plan->n_procs; i-- > l->plan->nproc;)
        start_worker(l, round, i); /* The scheduler first. */
    for (uint32_t i = 0; i < l->plan->nproc; i++)
        start_worker(l, round, i);
    oom = facts_oom(); /* While they load. */
    for (uint32_t i = 0; i < l->plan->n_procs; i++)
        l->workers[i].oom = oom;
    loop_settle(l);
    loop_hang_begin(l);
}

void loop_spawn_one(struct loop *l, const struct pod_round *round, uint32_t i)
{
    stream_close(&l->workers[i].out); /* Of the one before. */
    stream_close(&l->workers[i].err);
    if (i < l->plan->nproc)
        loop_make_error_dir(l, i, round->round);
    l->workers[i].oom = facts_oom();
    loop_shm_begin(l);
    start_worker(l, round, i);
    loop_settle(l);
}

static void report_death(struct loop *l, uint32_t i, int code, int signo,
                         int exec_errno)
{
    struct worker *w = &l->workers[i];
    struct failure f = {.kind = FAILURE_WORKER, .code = code, .signo = signo};
    struct pod_exit x = {.worker = loop_is_pre_start(l, i) ? 0 : i,
                         .pid = (uint32_t)w->pid,
                         .code = code,
                         .signo = signo,
                         .ran_ms = loop_now() - w->start_ms};

    loop_name_process(l, i, &x);
    if (code != 0)
        loop_explain_death(l, i, exec_errno, &f);
    if (w->unborn)
        (void)text_copy(f.text, sizeof f.text, w->unborn_err.text);
    x.hint = f.text;
    x.tail = f.tail;
    x.from_file = f.from_file;
    w->code = code;
    w->signo = signo;
    w->end_ms = loop_now();
    w->pid = 0;
    w->unborn = false;
    pod_worker_exit(&l->pod, loop_now(), &x);
}

void loop_report_unborn(struct loop *l)
{
    l->n_unborn = 0;
    for (uint32_t i = 0; i < l->n_slots; i++)
        if (l->workers[i].unborn)
            report_death(l, i, l->workers[i].unborn_err.code, 0, 0);
}

bool loop_worker_died(struct loop *l, pid_t pid, int status, uint64_t cpu_ms)
{
    for (uint32_t i = 0; i < l->n_slots; i++) {
        struct worker *w = &l->workers[i];
        int signo, code, exec_errno;

        if (w->pid != pid)
            continue;
        w->cpu_ms = cpu_ms;
        code = child_code(status, &signo);
        loop_tty_ended(l, i, code, signo);
        exec_errno = child_exec_errno(&w->exec_fd);
        if (exec_errno == 0 && !loop_is_pre_start(l, i) &&
            facts_ran_by_shell(l->plan->o->args[0], code)) {
            exec_errno = ENOEXEC;
            code = ERR_NOEXEC;
        }
        /* Its last words come before its verdict. */
        stream_drain(&w->err, true);
        stream_drain(&w->out, true);
        report_death(l, i, code, signo, exec_errno);
        return true;
    }
    return false;
}

void loop_kill(struct loop *l, uint32_t worker, int signo)
{
    struct worker *w =
        &l->workers[l->pod.prepares ? l->plan->n_procs : worker];
    pid_t pid = w->pid;

    if (pid <= 0)
        return;
    if (signo == l->pod.stop_signo && signo != SIGTERM)
        w->asked = pid;
    /* Between fork and setsid there is no such group yet. */
    if (kill(-pid, signo) != 0 && errno == ESRCH)
        (void)kill(pid, signo);
    if (signo == SIGTERM || signo == l->pod.stop_signo)
        (void)kill(-pid, SIGCONT); /* A stopped one must see it. */
}

/* What is still unread of the workers' output, once they are all gone. */
static bool drain_all(struct loop *l)
{
    bool pending = false;

    for (uint32_t i = 0; i < l->n_slots; i++) {
        struct worker *w = &l->workers[i];

        stream_drain(&w->out, false);
        stream_drain(&w->err, false);
        pending = pending || stream_waits(&w->out) || stream_waits(&w->err);
    }
    return pending;
}

void loop_sweep(struct loop *l)
{
    pid_t groups[SUP_MAX_WORKERS + 1], asked[SUP_MAX_WORKERS + 1];
    pid_t skip[2] = {l->guard_pid, l->stage_pid};
    struct proc_query q = {.cookie = l->plan->own_cookie,
                           .brand = l->plan->brand,
                           .brand_ignore = BRAND_WORKER_MASK,
                           .self = getpid(),
                           .since = l->round_ticks,
                           .skip = skip,
                           .n_skip = 2,
                           .groups = groups,
                           .asked = asked,
                           .asked_by = l->pod.stop_signo};
    unsigned left = 0;
    int signo = l->sweep_signo;

    l->sweep_asked = false;
    for (uint32_t i = 0; i < l->n_slots; i++) {
        if (l->workers[i].pid > 0)
            groups[q.n_groups++] = l->workers[i].pid;
        if (l->workers[i].asked > 0)
            asked[q.n_asked++] = l->workers[i].asked;
    }
    /* The helpers are the only children left: no need to look at /proc. */
    if (q.n_groups > 0 ||
        proc_has_other_children(skip, (l->guard_pid > 0 ||
                                       l->stage_pid > 0) ? 2 : 0))
        left = proc_signal_left(&q, signo, &l->stuck_pid);
    pod_swept(&l->pod, loop_now(), left,
              left == 0 && q.n_groups == 0 && drain_all(l));
}
