/* run: one check after the other, each in a child with a deadline. Its
 * findings come over a pipe, record by record, so that what was found before
 * it hung or died is not lost. */
#include "preflight/check.h"

#include "base/mem.h"
#include "base/pipe_child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEAD_WAIT_MS 1000 /* From KILL: else it sits in the kernel. */

static const struct {
    preflight_fn *check, *look;
} functions[PREFLIGHT_CHECKS] = {
    [PREFLIGHT_SHM] = {check_shm, look_shm},
    [PREFLIGHT_MEMLOCK] = {check_memlock, look_memlock},
    [PREFLIGHT_LIMITS] = {check_limits, look_limits},
    [PREFLIGHT_IFACE] = {check_iface, look_iface},
    [PREFLIGHT_DNS] = {check_dns, NULL},
    [PREFLIGHT_STORAGE] = {check_storage, NULL},
    [PREFLIGHT_ENV] = {check_env, NULL},
    [PREFLIGHT_GPU] = {check_gpu, NULL},
    [PREFLIGHT_RDMA] = {check_rdma, NULL},
    [PREFLIGHT_NCCL] = {check_nccl, NULL},
    [PREFLIGHT_ALLREDUCE] = {check_allreduce, NULL},
};

struct one { /* A check that runs. */
    const struct preflight_out *out;
    enum preflight_check check;
    enum preflight_level worst;
    unsigned n;
    char step[sizeof ((struct preflight_finding *)0)->what];
};

int preflight_exit_code(enum preflight_level level)
{
    return 10 * (int)level;
}

const char *preflight_level_word(enum preflight_level level)
{
    static const char *const words[] = {"pass", "warn", "retryable", "fatal"};

    return words[level];
}

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* --- in the child --- */

static void send_finding(void *ctx, const struct preflight_finding *f)
{
    const int *fd = ctx;

    if (write(*fd, f, sizeof *f) != (ssize_t)sizeof *f)
        _exit(1); /* Nobody listens. */
}

static void __attribute__((noreturn))
run_child(const struct preflight_job *job, enum preflight_check check, int fd)
{
    struct preflight_sink s = {.job = job, .check = check, .ctx = &fd,
                               .add = send_finding};

    functions[check].check(&s);
    _exit(0);
}

/* --- outside --- */

static void take(struct one *o, struct preflight_finding *f)
{
    finding_end(f);
    f->check = (uint8_t)o->check;
    if (f->level > PREFLIGHT_FATAL)
        f->level = PREFLIGHT_FATAL;
    if (f->is_step) {
        memcpy(o->step, f->what, sizeof o->step);
        return;
    }
    if (f->level > (uint8_t)o->worst)
        o->worst = (enum preflight_level)f->level;
    if (o->n++ < PREFLIGHT_FINDINGS_MAX)
        o->out->finding(o->out->ctx, f);
}

/* Until the check has closed its end. False: `end_ms` is over. */
static bool read_all(struct one *o, int fd, uint64_t end_ms)
{
    struct preflight_finding f;
    size_t got = 0;

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        uint64_t now = now_ms();
        ssize_t n;

        if (now >= end_ms)
            return false;
        if (poll(&p, 1, (int)(end_ms - now)) <= 0)
            continue;
        n = read(fd, (char *)&f + got, sizeof f - got);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return true;
        got += (size_t)n;
        if (got == sizeof f) {
            take(o, &f);
            got = 0;
        }
    }
}

/* Its status, or -1: it is not dead in time, and left behind. */
static int reap(pid_t pid)
{
    uint64_t end_ms = now_ms() + DEAD_WAIT_MS;
    struct timespec step = {.tv_nsec = 2000000};
    int status;

    for (;;) {
        pid_t r = waitpid(pid, &status, WNOHANG);

        if (r == pid)
            return status;
        if ((r < 0 && errno != EINTR) || now_ms() >= end_ms)
            return -1;
        (void)nanosleep(&step, NULL);
    }
}

static const char *fix_of_death(const struct one *o, bool in_time, int status)
{
    if (in_time && status != -1 && WIFSIGNALED(status) &&
        WTERMSIG(status) == SIGKILL)
        return "raise the memory limit: most likely the OOM killer was at work";
    if (!in_time && (o->check == PREFLIGHT_DNS || o->check == PREFLIGHT_IFACE))
        return "no name server of /etc/resolv.conf answers: look at the "
               "cluster's DNS, the way to it, and the pod's dnsPolicy and "
               "dnsConfig";
    return "look at the volume, the device or the server behind it (dmesg on "
           "the node); another node may do better";
}

static void say_died(struct one *o, bool in_time, int status, uint32_t limit)
{
    struct preflight_finding f = finding_new(PREFLIGHT_RETRY);
    const char *step = o->step[0] ? o->step : "starting";

    if (in_time && status != -1 && WIFEXITED(status) &&
        WEXITSTATUS(status) == 0)
        return;
    if (!in_time)
        FINDING_SET(f.what, "the check did not come back within %u ms%s; it "
                    "was %.200s", limit,
                    status == -1 ? ", and cannot be killed" : "", step);
    else if (status != -1 && WIFSIGNALED(status))
        FINDING_SET(f.what, "the check was killed by signal %d (%s); it was "
                    "%.200s", WTERMSIG(status), strsignal(WTERMSIG(status)),
                    step);
    else
        FINDING_SET(f.what, "the check ended with no word; it was %.200s",
                    step);
    FINDING_SET(f.why, "what a worker does in the same place would end "
                "likewise");
    FINDING_SET(f.fix, "%s", fix_of_death(o, in_time, status));
    take(o, &f);
}

/* Its own limit of files is as it is on each node. */
static void say_none(struct one *o, int e)
{
    struct preflight_finding f = finding_new(e == EMFILE ? PREFLIGHT_FATAL
                                                         : PREFLIGHT_RETRY);

    FINDING_SET(f.what, "no process for the check: %s", strerror(e));
    FINDING_SET(f.why, "workers would not start, either");
    FINDING_SET(f.fix, "%s", e == EMFILE || e == ENFILE
                ? "raise the limit of open files (ulimit -n; of the node: "
                  "fs.file-max)"
                : "raise the limit of processes (ulimit -u, pids.max)");
    take(o, &f);
}

static enum preflight_level run_one(const struct preflight_job *job,
                                    const struct preflight_out *out,
                                    enum preflight_check check)
{
    struct one o = {.out = out, .check = check};
    uint32_t limit = job->limit_ms ? job->limit_ms
                                   : preflight_row(check)->limit_ms;
    uint64_t start_ms = now_ms();
    bool in_time;
    int status;
    autoclose int fd = -1;
    pid_t pid = pipe_child_start(&fd);

    if (pid == 0)
        run_child(job, check, fd);
    if (pid < 0) {
        say_none(&o, -pid);
    } else {
        in_time = read_all(&o, fd, start_ms + limit);
        if (!in_time)
            (void)kill(pid, SIGKILL);
        status = reap(pid);
        say_died(&o, in_time, status, limit);
    }
    out->over(out->ctx, check, o.worst, now_ms() - start_ms);
    return o.worst;
}

enum preflight_level preflight_run(const struct preflight_job *job,
                                   const struct preflight_out *out)
{
    enum preflight_level worst = PREFLIGHT_PASS;

    for (int i = 0; i < PREFLIGHT_CHECKS; i++)
        if (job->checks >> i & 1) {
            enum preflight_level l = run_one(job, out,
                                             (enum preflight_check)i);

            worst = l > worst ? l : worst;
        }
    return worst;
}

static void look_finding(void *ctx, const struct preflight_finding *f)
{
    struct preflight_finding copy = *f;

    take(ctx, &copy);
}

enum preflight_level preflight_look(const struct preflight_job *job,
                                    const struct preflight_out *out)
{
    enum preflight_level worst = PREFLIGHT_PASS;

    for (int i = 0; i < PREFLIGHT_CHECKS; i++) {
        struct one o = {.out = out, .check = (enum preflight_check)i};
        struct preflight_sink s = {.job = job, .check = o.check, .ctx = &o,
                                   .add = look_finding};

        if (!(job->checks >> i & 1) || !functions[i].look)
            continue;
        functions[i].look(&s);
        worst = o.worst > worst ? o.worst : worst;
    }
    return worst;
}
