/* logs_io: both ends of a relay of lines, for bench/logs.py.
 *
 *   write LINES LEN    a worker: so many lines of LEN bytes, at full speed;
 *                      its CPU time is added to the file $LOGS_CPU
 *   sink               read stdin to its end; print bytes, user and system ms
 *   ping N MS          a worker: a line with the time in it, every MS
 *   pong N             read such lines; print the median and p99 in us
 *   soak BYTES         a worker: lines of all lengths, from its rank's seed
 *   check RANKS BYTES  compare "[rankR] " lines with what soak wrote */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 65536
#define LINE_MAX_BYTES 8192
#define RANKS_MAX 64
#define PINGS_MAX 100000

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool write_all(int fd, const char *s, size_t n)
{
    while (n > 0) {
        ssize_t did = write(fd, s, n);

        if (did < 0)
            return false;
        s += did;
        n -= (size_t)did;
    }
    return true;
}

static uint64_t number(const char *s)
{
    return s ? strtoull(s, NULL, 10) : 0;
}

static uint64_t cpu_us(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000u +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static int do_write(uint64_t lines, size_t len)
{
    static char block[BLOCK];
    const char *path = getenv("LOGS_CPU");
    size_t in_block = BLOCK / len;
    char text[32];
    int fd, n;

    memset(block, 'x', sizeof block);
    for (size_t i = 1; i <= in_block; i++)
        block[i * len - 1] = '\n';
    for (uint64_t left = lines; left > 0;) {
        size_t now = left < in_block ? (size_t)left : in_block;

        if (!write_all(1, block, now * len))
            return 1;
        left -= now;
    }
    fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)
              : -1;
    n = snprintf(text, sizeof text, "%" PRIu64 "\n", cpu_us());
    return fd >= 0 && !write_all(fd, text, (size_t)n);
}

static int do_sink(void)
{
    static char block[4 * BLOCK];
    uint64_t bytes = 0;
    ssize_t n;

    while ((n = read(0, block, sizeof block)) > 0)
        bytes += (uint64_t)n;
    (void)printf("%" PRIu64 "\n", bytes);
    return 0;
}

static int do_ping(uint64_t n, uint64_t ms)
{
    struct timespec pause = {(time_t)(ms / 1000),
                             (long)(ms % 1000 * 1000000)};
    char text[64];

    for (uint64_t i = 0; i < n; i++) {
        int len;

        (void)nanosleep(&pause, NULL);
        len = snprintf(text, sizeof text, "ping %" PRIu64 "\n", now_ns());
        if (!write_all(1, text, (size_t)len))
            return 1;
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static int do_pong(void)
{
    static uint64_t late[PINGS_MAX];
    static char text[4096];
    size_t n = 0;
    ssize_t got;

    /* One line a read: they are milliseconds apart. */
    while ((got = read(0, text, sizeof text - 1)) > 0) {
        uint64_t now = now_ns();
        char *at;

        text[got] = '\0';
        for (at = strstr(text, "ping "); at && n < PINGS_MAX;
             at = strstr(at + 1, "ping "))
            late[n++] = now - number(at + 5);
    }
    if (n == 0)
        return 1;
    qsort(late, n, sizeof late[0], compare);
    (void)printf("%zu %" PRIu64 " %" PRIu64 "\n", n, late[n / 2] / 1000,
                 late[n * 99 / 100] / 1000);
    return 0;
}

struct source { /* What a rank writes. */
    uint64_t seed, left;
};

/* The next line, with its newline; 0 at the end. */
static size_t next_line(struct source *s, char line[LINE_MAX_BYTES])
{
    uint64_t x = s->seed;
    size_t len;

    if (s->left == 0)
        return 0;
    s->seed = x * 6364136223846793005u + 1442695040888963407u;
    x ^= x >> 29;
    len = 20 + x % 160 + (x >> 40) % 64 / 63 * 5000;
    if (len > s->left)
        len = (size_t)s->left;
    for (size_t i = 0; i < len; i += 8) {
        uint64_t w = ((x + i) * 0x9e3779b97f4a7c15u & 0x3f3f3f3f3f3f3f3fu) +
                     0x3030303030303030u;

        memcpy(line + i, &w, 8);
    }
    line[len - 1] = '\n';
    s->left -= len;
    return len;
}

static int do_soak(uint64_t bytes)
{
    static char block[BLOCK + LINE_MAX_BYTES];
    struct source s = {number(getenv("RANK")) * 77 + 5, bytes};
    size_t n = 0, len;

    while ((len = next_line(&s, block + n)) > 0) {
        n += len;
        if (n >= BLOCK) {
            if (!write_all(1, block, n))
                return 1;
            n = 0;
        }
    }
    return !write_all(1, block, n);
}

/* One line that was read, without its newline. */
static bool check_line(struct source *s, unsigned ranks, const char *line,
                       size_t len)
{
    static char want[LINE_MAX_BYTES];
    char *end;
    unsigned long rank;
    size_t n;

    if (len < 8 || memcmp(line, "[rank", 5) != 0)
        return false;
    rank = strtoul(line + 5, &end, 10);
    if (rank >= ranks || memcmp(end, "] ", 2) != 0)
        return false;
    n = next_line(&s[rank], want);
    len -= (size_t)(end + 2 - line);
    return n == len + 1 && memcmp(want, end + 2, len) == 0;
}

static int do_check(unsigned ranks, uint64_t bytes)
{
    static struct source s[RANKS_MAX];
    static char block[8 * BLOCK];
    size_t held = 0;
    uint64_t lines = 0;
    ssize_t n;

    if (ranks > RANKS_MAX)
        return 1;
    for (unsigned i = 0; i < ranks; i++)
        s[i] = (struct source){i * 77 + 5, bytes};
    while ((n = read(0, block + held, sizeof block - held)) > 0) {
        char *at = block, *end = block + held + n, *newline;

        while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
            if (!check_line(s, ranks, at, (size_t)(newline - at))) {
                (void)printf("line %" PRIu64 " is another: %.60s\n", lines,
                             at);
                return 1;
            }
            lines++;
            at = newline + 1;
        }
        held = (size_t)(end - at);
        memmove(block, at, held);
    }
    for (unsigned i = 0; i < ranks; i++)
        if (s[i].left > 0 || held > 0) {
            (void)printf("rank %u: %" PRIu64 " bytes are missing\n", i,
                         s[i].left);
            return 1;
        }
    (void)printf("%" PRIu64 " lines, %" PRIu64 " bytes: all are there\n",
                 lines, bytes * ranks);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    uint64_t a = argc > 2 ? number(argv[2]) : 0;
    uint64_t b = argc > 3 ? number(argv[3]) : 0;

    if (strcmp(what, "write") == 0 && b > 0 && b <= BLOCK)
        return do_write(a, (size_t)b);
    if (strcmp(what, "sink") == 0)
        return do_sink();
    if (strcmp(what, "ping") == 0)
        return do_ping(a, b);
    if (strcmp(what, "pong") == 0)
        return do_pong();
    if (strcmp(what, "soak") == 0)
        return do_soak(a);
    if (strcmp(what, "check") == 0)
        return do_check((unsigned)a, b);
    (void)fprintf(stderr, "logs_io: see bench/logs_io.c\n");
    return 64;
}
