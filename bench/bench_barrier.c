/* bench_barrier: one real pod 0 and N peers on loopback.
 *   bench_barrier AGENT [N [RUNS]]
 * Measures the time from the last ARRIVED sent to the last START received,
 * beside a bare epoll barrier of 64-byte frames with the same client; memory
 * of pod 0 for each peer; its CPU while only heartbeats flow. Prints a table
 * in Markdown; fails where a limit is missed. */
#include "barrier_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUNS_MAX 15
#define BARE 64
#define STEADY_S 15
#define MAX_RATIO 1.5
#define MAX_BYTES 16384.0
#define MAX_CPU 2.0

/* --- the bare barrier --- */

static void bare_server(unsigned port, unsigned n)
{
    struct sockaddr_in a = address(1, port);
    struct epoll_event ev[512], add = {.events = EPOLLIN};
    int l = socket(AF_INET, SOCK_STREAM, 0), one = 1, e = epoll_create1(0);
    int *fds = calloc(n, sizeof *fds);
    uint8_t frame[BARE] = {0};
    unsigned n_fds = 0, n_here = 0;

    (void)setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (!fds || bind(l, (struct sockaddr *)&a, sizeof a) != 0 ||
        listen(l, 4096) != 0)
        die("bare server");
    while (n_fds < n) {
        fds[n_fds] = accept4(l, NULL, NULL, SOCK_NONBLOCK);
        if (fds[n_fds] < 0)
            die("accept");
        (void)setsockopt(fds[n_fds], IPPROTO_TCP, 1, &one, sizeof one);
        add.data.fd = fds[n_fds++];
        (void)epoll_ctl(e, EPOLL_CTL_ADD, add.data.fd, &add);
    }
    while (n_here < n) {
        int r = epoll_wait(e, ev, 512, -1);

        for (int i = 0; i < r; i++)
            n_here += recv(ev[i].data.fd, frame, BARE, 0) == BARE;
    }
    for (unsigned i = 0; i < n; i++)
        send_all(fds[i], frame, BARE);
    (void)pause(); /* Until it is killed. */
    _exit(0);
}

static double run_bare(struct client *c)
{
    uint8_t frame[BARE] = {0};
    double start, took;
    pid_t pid;

    c->port = free_port();
    frame[5] = WIRE_START;
    frame[7] = BARE - WIRE_HEAD;
    pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0)
        bare_server(c->port, c->n);
    open_all(c, false);
    (void)usleep(200000); /* Until it has accepted all. */
    tell_all(c, frame, sizeof frame);
    start = now_s();
    wait_for(c, WIRE_START, c->n);
    took = now_s() - start;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    close_all(c);
    return took;
}

/* --- pod 0 --- */

struct result {
    double start_s, bytes, cpu;
};

static pid_t start_agent(const char *agent, const struct client *c)
{
    char nnodes[16], port[16];
    pid_t pid = fork();

    (void)snprintf(nnodes, sizeof nnodes, "%u", c->n + 1);
    (void)snprintf(port, sizeof port, "%u", c->port);
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        execl(agent, agent, "-q", "--nnodes", nnodes, "--node-rank", "0",
              "--nproc", "1", "--master-addr", "127.0.0.1", "--barrier-port",
              port, "--mesh", "off", "--", "true", (char *)NULL);
        die(agent);
    }
    return pid;
}

static double cpu_s(pid_t pid)
{
    char path[64], line[1024] = "";
    unsigned long user = 0, kernel = 0;
    const char *s;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (!f || !fgets(line, sizeof line, f))
        die(path);
    (void)fclose(f);
    s = strrchr(line, ')');
    if (!s || sscanf(s + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu "
                            "%lu", &user, &kernel) != 2)
        die("/proc/PID/stat");
    return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static double rss_bytes(pid_t pid)
{
    char path[64], line[256];
    double kib = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %lf", &kib) == 1)
            break;
    if (f)
        (void)fclose(f);
    return kib * 1024;
}

/* Pod 0 sends heartbeats, and the client answers as pods do. */
static double steady_cpu(struct client *c, pid_t pid)
{
    double start = now_s(), used = cpu_s(pid);

    while (now_s() - start < STEADY_S)
        pump(c, 10);
    return (cpu_s(pid) - used) / (now_s() - start) * 100;
}

static void run_agent(struct client *c, const char *agent, bool steady,
                      struct result *ret)
{
    double start;
    int status;
    pid_t pid;

    c->port = free_port();
    pid = start_agent(agent, c);
    open_all(c, true);
    tell_kind(c, WIRE_ARRIVED);
    start = now_s();
    wait_for(c, WIRE_START, c->n);
    ret->start_s = now_s() - start;
    ret->bytes = rss_bytes(pid) / c->n;
    if (steady)
        ret->cpu = steady_cpu(c, pid);
    tell_kind(c, WIRE_DONE);
    wait_for(c, WIRE_END, c->n);
    tell_kind(c, WIRE_BYE);
    close_all(c);
    if (waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "bench_barrier: agent's status is %d\n", status);
        exit(1);
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, unsigned n)
{
    qsort(v, n, sizeof *v, by_size);
    return v[n / 2];
}

int main(int argc, char **argv)
{
    double bare[RUNS_MAX], ours[RUNS_MAX], b, a;
    struct client c = {.n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10)
                                     : 10000};
    unsigned runs = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 5;
    struct result r = {0};
    struct rlimit lim;

    if (argc < 2 || c.n < 1 || runs < 1 || runs > RUNS_MAX)
        return fprintf(stderr, "bench_barrier AGENT [N [RUNS]]\n"), 64;
    if (getrlimit(RLIMIT_NOFILE, &lim) == 0) {
        lim.rlim_cur = lim.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &lim);
    }
    c.peers = calloc(c.n, sizeof *c.peers);
    if (!c.peers)
        die("memory");
    for (unsigned i = 0; i < runs; i++) {
        bare[i] = run_bare(&c);
        run_agent(&c, argv[1], i + 1 == runs, &r);
        ours[i] = r.start_s;
        fprintf(stderr, "# run %u: bare %.1f ms, agent %.1f ms\n", i + 1,
                bare[i] * 1e3, ours[i] * 1e3);
    }
    b = median(bare, runs);
    a = median(ours, runs);
    printf("| %u peers, median of %u | value | limit |\n|---|---|---|\n", c.n,
           runs);
    printf("| last ARRIVED to last START, bare epoll barrier | %.1f ms | |\n"
           "| the same, pod 0 of agent | %.1f ms | |\n"
           "| ratio | %.2f | %.1f |\n", b * 1e3, a * 1e3, a / b, MAX_RATIO);
    printf("| memory of pod 0 for each peer | %.1f KiB | %.0f KiB |\n",
           r.bytes / 1024, MAX_BYTES / 1024);
    printf("| CPU of pod 0 with heartbeats only | %.2f %% of a core | %.0f %% "
           "|\n", r.cpu, MAX_CPU);
    free(c.peers);
    return a / b > MAX_RATIO || r.bytes > MAX_BYTES || r.cpu > MAX_CPU;
}
