/* command_status: see command_status.h. The agent that is asked writes the
 * table or the JSON; here it is only shown. */
#include "agent/command_status.h"

#include "agent/http.h"
#include "agent/status_find.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define REPLY_MAX (32u << 20)
#define REPLY_MS 5000    /* Until the answer is there, all of it. */
#define WATCH_MS 1000

struct reply {
    char *buf; /* To be freed. */
    struct http_reply http;
};

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* False where nothing comes before `until`. */
static bool wait_readable(int fd, uint64_t until)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t now;
    int n;

    do {
        now = now_ms();
        n = now < until ? poll(&p, 1, (int)(until - now)) : 0;
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

static int no_answer(const char *path, const char *why, struct err *e)
{
    return err_set(e, ERR_RESOURCE, "the agent at %s %s", path, why);
}

/* All that comes until the other side closes. */
static int read_all(int fd, const char *path, char **ret, size_t *ret_len,
                    struct err *e)
{
    uint64_t until = now_ms() + REPLY_MS;
    size_t len = 0, cap = 0;
    autofree char *buf = NULL;

    for (;;) {
        ssize_t n;

        if (cap - len < 4096) {
            char *more = cap < REPLY_MAX ? realloc(buf, cap + 65536 + cap)
                                         : NULL;

            if (!more)
                return no_answer(path, "says too much", e);
            buf = more;
            cap += 65536 + cap;
        }
        if (!wait_readable(fd, until))
            return no_answer(path, "does not answer within 5 s: is it "
                             "stopped (SIGSTOP), or too busy?", e);
        n = read(fd, buf + len, cap - len);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return no_answer(path, strerror(errno), e);
        len += n > 0 ? (size_t)n : 0;
    }
    *ret = steal(&buf);
    *ret_len = len;
    return 0;
}

static int ask(int fd, const char *path, bool json, struct reply *ret,
               struct err *e)
{
    const char *request = json ? "GET /status HTTP/1.0\r\n\r\n"
                               : "GET /status.txt HTTP/1.0\r\n\r\n";
    size_t len = 0;
    int r;

    if (send(fd, request, strlen(request), MSG_NOSIGNAL) !=
        (ssize_t)strlen(request))
        return no_answer(path, strerror(errno), e);
    r = read_all(fd, path, &ret->buf, &len, e);
    if (r != 0)
        return r;
    if (!http_read_reply(ret->buf, len, &ret->http)) {
        free(ret->buf);
        return no_answer(path, "closed the connection without an answer: it "
                         "ends, or is no agent", e);
    }
    if (ret->http.status == 200)
        return 0;
    r = err_set(e, ret->http.status == 403 ? ERR_AUTH : ERR_RESOURCE,
                "the agent at %s refuses: %.*s", path,
                (int)strcspn(ret->http.body, "\n"), ret->http.body);
    free(ret->buf);
    return r;
}

/* --- what is shown --- */

/* On a terminal lines are cut at its edge: a table that wraps is none. */
static void print_cut(const char *s, size_t len, unsigned columns)
{
    while (len > 0) {
        const char *end = memchr(s, '\n', len);
        size_t line = end ? (size_t)(end - s) : len, shown = 0;
        unsigned n = 0;

        while (shown < line) {
            /* Characters; those of double width are rare here. */
            n += ((unsigned char)s[shown] & 0xc0) != 0x80;
            if (n > columns)
                break;
            shown++;
        }
        (void)printf("%.*s\033[K\n", (int)shown, s);
        line += end ? 1 : 0;
        s += line;
        len -= line;
    }
}

static int show(const struct options *o, const struct http_reply *r)
{
    struct winsize w = {0};
    bool tty = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0;

    if (tty && o->watch)
        (void)fputs("\033[H", stdout);
    if (tty && !o->json)
        print_cut(r->body, r->len, w.ws_col);
    else
        (void)fwrite(r->body, 1, r->len, stdout);
    if (tty && o->watch)
        (void)fputs("\033[J", stdout);
    else if (o->watch && !o->json)
        (void)fputs("\n", stdout);
    return log_end_stdout();
}

static int once(const struct options *o, struct err *e)
{
    char path[STATUS_SOCKET_PATH_MAX];
    struct reply r = {0};
    autoclose int fd = status_find(o->socket, path, e);
    int code;

    if (fd < 0)
        return fd;
    if (ask(fd, path, o->json, &r, e) != 0)
        return -e->code;
    code = show(o, &r.http);
    free(r.buf);
    /* Not below the table where this is repainted, nor for programs. */
    if (!o->socket && !o->json && !o->watch)
        status_say_others(path);
    return code;
}

int command_status(const struct options *o)
{
    struct timespec pause = {.tv_sec = WATCH_MS / 1000};
    bool answered = false;
    struct err e;
    int r;

    if (o->watch && isatty(STDOUT_FILENO))
        (void)fputs("\033[2J", stdout);
    for (;;) {
        r = once(o, &e);
        if (r != 0 || !o->watch)
            break;
        answered = true;
        (void)nanosleep(&pause, NULL);
    }
    if (r >= 0)
        return r;
    if (answered && e.code == ERR_RESOURCE) {
        log_info("the agent has ended");
        return 0;
    }
    log_error("%s", e.text);
    return e.code;
}
