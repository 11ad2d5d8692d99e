/* log: see log.h. */
#include "base/log.h"

#include "base/err.h"
#include "base/std_fds.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *log_program = "agent";
static int log_node_rank = -1;
static enum log_level log_max_level = LOG_INFO;
static bool log_time;
static void (*log_sink)(void *ctx, const char *line, size_t len);
static void *log_sink_ctx;

void log_setup(int node_rank, enum log_level max_level)
{
    log_node_rank = node_rank;
    log_max_level = max_level;
}

void log_setup_program(const char *name)
{
    log_program = name;
}

void log_setup_rank(int node_rank)
{
    log_node_rank = node_rank;
}

void log_setup_time(bool on)
{
    log_time = on;
}

bool log_has_time(void)
{
    return log_time;
}

void log_stamp(char buf[LOG_STAMP_MAX])
{
    struct timespec t;
    struct tm tm;
    size_t n;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    (void)gmtime_r(&t.tv_sec, &tm);
    n = strftime(buf, LOG_STAMP_MAX - 10, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(buf + n, LOG_STAMP_MAX - n, ".%06ldZ", t.tv_nsec / 1000);
}

void log_set_sink(void (*sink)(void *ctx, const char *line, size_t len),
                  void *ctx)
{
    log_sink = sink;
    log_sink_ctx = ctx;
}

int log_shows(enum log_level level)
{
    return level <= log_max_level;
}

static size_t line_start(char *buf, size_t cap, enum log_level level)
{
    static const char *const names[] = {"error: ", "warning: ", "", "debug: "};
    char stamp[LOG_STAMP_MAX] = "";
    const char *space = log_time ? " " : "";
    int n;

    if (log_time)
        log_stamp(stamp);
    if (log_node_rank < 0)
        n = snprintf(buf, cap, "%s%s%s: %s", stamp, space, log_program,
                     names[level]);
    else
        n = snprintf(buf, cap, "%s%s%s[%d]: %s", stamp, space, log_program,
                     log_node_rank, names[level]);
    return n < 0 ? 0 : (size_t)n;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    char buf[LOG_LINE_MAX];
    size_t len;
    int n;
    va_list ap;

    if (!log_shows(level))
        return;
    len = line_start(buf, sizeof buf, level);
    va_start(ap, fmt);
    n = vsnprintf(buf + len, sizeof buf - len, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    len += (size_t)n;
    if (len > sizeof buf - 1)
        len = sizeof buf - 1;
    buf[len++] = '\n';
    if (log_sink)
        log_sink(log_sink_ctx, buf, len);
    else
        (void)!write(STDERR_FILENO, buf, len);
}

int log_end_stdout(void)
{
    const char *why = std_fds_end(stdout);

    if (!why)
        return 0;
    log_error("write to stdout: %s", why);
    return ERR_RESOURCE;
}
