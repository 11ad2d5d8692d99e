/* bench_barrier: one real pod 0 and N peers on loopback.
 *   bench_barrier AGENT [N [RUNS]]
 * Measures the time from the last ARRIVED sent to the last START received,
 * beside a bare epoll barrier of 64-byte frames with the same client; memory
 * of pod 0 for each peer; its CPU while only heartbeats flow. Prints a table
 * in Markdown; fails where a limit is missed. */
#include "rendezvous/wire.h"

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
#define PENDING 256     /* Connections being made at a time. */
#define PER_ADDRESS 5000
#define BARE 64
#define STEADY_S 15
#define KINDS 16
#define MAX_RATIO 1.5
#define MAX_BYTES 16384.0
#define MAX_CPU 2.0

struct peer {
    int fd;
    size_t n_in;
    uint8_t in[WIRE_FRAME_MAX];
};

struct client {
    int epoll;
    unsigned n, port;
    unsigned seen[KINDS]; /* Frames of each kind. */
    struct peer *peers;
};

static void die(const char *what)
{
    fprintf(stderr, "bench_barrier: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct sockaddr_in address(unsigned host, unsigned port)
{
    struct sockaddr_in a = {.sin_family = AF_INET};

    a.sin_addr.s_addr = htonl(0x7f000000u + host);
    a.sin_port = htons((uint16_t)port);
    return a;
}

static unsigned free_port(void)
{
    struct sockaddr_in a = address(1, 0);
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &len) != 0)
        die("a free port");
    (void)close(fd);
    return ntohs(a.sin_port);
}

/* --- the client: the same for both --- */

static void send_all(int fd, const uint8_t *bytes, size_t len)
{
    if (send(fd, bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
        die("send");
}

static void take_frames(struct client *c, struct peer *p)
{
    size_t at = 0, len;

    while (p->n_in - at >= WIRE_HEAD) {
        len = WIRE_HEAD + ((size_t)p->in[at + 6] << 8 | p->in[at + 7]);
        if (p->n_in - at < len)
            break;
        c->seen[p->in[at + 5] % KINDS]++;
        at += len;
    }
    p->n_in -= at;
    if (at && p->n_in)
        memmove(p->in, p->in + at, p->n_in);
}

static void pump(struct client *c, int ms)
{
    struct epoll_event ev[512];
    int n = epoll_wait(c->epoll, ev, 512, ms);

    for (int i = 0; i < n; i++) {
        struct peer *p = ev[i].data.ptr;
        ssize_t r = recv(p->fd, p->in + p->n_in, sizeof p->in - p->n_in, 0);

        if (r > 0) {
            p->n_in += (size_t)r;
            take_frames(c, p);
        } else if (r == 0 || (errno != EAGAIN && errno != EINTR)) {
            fprintf(stderr, "bench_barrier: the server closed\n");
            exit(1);
        }
    }
}

static void wait_for(struct client *c, unsigned kind, unsigned n)
{
    double limit = now_s() + 120;

    while (c->seen[kind] < n) {
        pump(c, 1000);
        if (now_s() > limit) {
            fprintf(stderr, "bench_barrier: %u of %u frames of kind %u\n",
                    c->seen[kind], n, kind);
            exit(1);
        }
    }
}

static void connect_one(struct client *c, struct peer *p, unsigned i)
{
    struct sockaddr_in from = address(2 + i / PER_ADDRESS, 0);
    struct sockaddr_in to = address(1, c->port);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = p};
    int one = 1;

    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->fd < 0)
        die("socket (ulimit -n?)");
    (void)setsockopt(p->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one,
                     sizeof one);
    if (bind(p->fd, (struct sockaddr *)&from, sizeof from) != 0)
        die("bind");
    for (int k = 0; connect(p->fd, (struct sockaddr *)&to, sizeof to) != 0;
         k++) {
        if (errno != ECONNREFUSED || k == 500)
            die("connect");
        (void)usleep(10000); /* The server is not there yet. */
    }
    if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, p->fd, &ev) != 0)
        die("epoll_ctl");
}

static void say_hello(struct client *c, unsigned i)
{
    struct wire_msg m = {.kind = WIRE_HELLO, .incarnation = i + 1000,
                         .node_rank = i + 1, .nnodes = c->n + 1, .nproc = 1,
                         .running = WIRE_NO_ROUND, .job_id = "none",
                         .host = "bench"};
    uint8_t bytes[WIRE_FRAME_MAX];

    send_all(c->peers[i].fd, bytes, wire_encode(&m, bytes));
}

static void open_all(struct client *c, bool hello)
{
    memset(c->seen, 0, sizeof c->seen);
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned i = 0; i < c->n; i++) {
        c->peers[i].n_in = 0;
        connect_one(c, &c->peers[i], i);
        if (!hello)
            continue;
        say_hello(c, i);
        if (i >= PENDING)
            wait_for(c, WIRE_WELCOME, i - PENDING);
    }
    if (hello)
        wait_for(c, WIRE_WELCOME, c->n);
}

static void close_all(struct client *c)
{
    for (unsigned i = 0; i < c->n; i++)
        (void)close(c->peers[i].fd);
    (void)close(c->epoll);
}

static void tell_all(struct client *c, const uint8_t *bytes, size_t len)
{
    for (unsigned i = 0; i < c->n; i++)
        send_all(c->peers[i].fd, bytes, len);
}

static void tell_kind(struct client *c, enum wire_kind kind)
{
    struct wire_msg m = {.kind = kind};
    uint8_t bytes[WIRE_FRAME_MAX];

    tell_all(c, bytes, wire_encode(&m, bytes));
}

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
              port, "--", "true", (char *)NULL);
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

/* Heartbeats as pods send them: each peer one in 5 s. */
static double steady_cpu(struct client *c, pid_t pid)
{
    struct wire_msg ping = {.kind = WIRE_PING};
    uint8_t bytes[WIRE_FRAME_MAX];
    size_t len = wire_encode(&ping, bytes);
    double start = now_s(), used = cpu_s(pid);
    unsigned sent = 0, due;

    while (now_s() - start < STEADY_S) {
        due = (unsigned)((now_s() - start) * c->n / 5);
        for (; sent < due; sent++)
            send_all(c->peers[sent % c->n].fd, bytes, len);
        pump(c, 10);
    }
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
