/* command_status: see command_status.h. The agent that is asked writes the
 * table or the JSON; here it is only shown. */
#include "agent/command_status.h"

#include "agent/http.h"
#include "agent/status_socket.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define REPLY_MAX (32u << 20)
#define REPLY_MS 5000    /* Until the answer is there, all of it. */
#define WATCH_MS 1000
#define SECONDS_SHOWN 8

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

/* --- which agent --- */

static int no_access(const char *path, struct err *e)
{
    return err_set(e, ERR_AUTH, "the agent at %s is that of another user: ask "
                   "as the user that it runs as, or as root", path);
}

static int connect_asked(const char *path, struct err *e)
{
    int fd = status_socket_connect(path, true);

    if (fd >= 0)
        return fd;
    if (fd == -EACCES || fd == -EPERM)
        return no_access(path, e);
    return err_set(e, ERR_RESOURCE, "no agent answers at --socket %s: %s",
                   path, strerror(-fd));
}

struct seconds { /* Second agents that answer: /run/agent-123.sock. */
    char path[STATUS_SOCKET_PATH_MAX];
    int fd; /* Of the last one found. */
    unsigned n;
    struct text list;
};

/* `place` is the first agent's name, "/run/agent.sock". */
static void look_beside(const char *place, struct seconds *s)
{
    const char *name = strrchr(place, '/') + 1;
    size_t stem = strlen(name) - strlen(".sock");
    char dir[STATUS_SOCKET_PATH_MAX], path[STATUS_SOCKET_PATH_MAX];
    const struct dirent *ent;
    DIR *d;

    (void)snprintf(dir, sizeof dir, "%.*s", (int)(name - place), place);
    d = opendir(dir);
    while (d && (ent = readdir(d)) != NULL) {
        const char *digits = ent->d_name + stem + 1;
        int n, fd;

        if (strncmp(ent->d_name, name, stem) != 0 ||
            ent->d_name[stem] != '-' ||
            strcmp(digits + strspn(digits, "0123456789"), ".sock") != 0)
            continue;
        n = snprintf(path, sizeof path, "%s%s", dir, ent->d_name);
        fd = n < (int)sizeof path ? status_socket_connect(path, false) : -1;
        if (fd < 0)
            continue;
        mem_close_at(&s->fd);
        s->fd = fd;
        (void)text_copy(s->path, sizeof s->path, path);
        if (s->n++ < SECONDS_SHOWN)
            text_add(&s->list, " %s", path);
    }
    if (d)
        (void)closedir(d);
}

/* Nobody has a first agent's name: the only second one is meant. */
static int connect_second(char *path, const char *tried, struct err *e)
{
    char place[STATUS_SOCKET_PATH_MAX], list[1024], other[80] = "";
    struct stat init;
    struct seconds s = {.fd = -1};

    text_init(&s.list, list, sizeof list);
    for (unsigned i = 0; i < STATUS_SOCKET_PLACES; i++)
        if (status_socket_place(i, geteuid(), getenv("XDG_RUNTIME_DIR"),
                                place))
            look_beside(place, &s);
    if (s.n == 1) {
        (void)text_copy(path, STATUS_SOCKET_PATH_MAX, s.path);
        return s.fd;
    }
    mem_close_at(&s.fd);
    if (s.n > 1)
        return err_set(e, ERR_USAGE, "%u agents run here: choose one by "
                       "--socket:%s", s.n, list);
    /* In a container, asked as root: docker exec -u 0. */
    if (stat("/proc/1", &init) == 0 && init.st_uid != 0 &&
        init.st_uid != geteuid())
        (void)snprintf(other, sizeof other, "; PID 1 is of uid %u: if it is "
                       "agent, ask as that uid", (unsigned)init.st_uid);
    return err_set(e, ERR_RESOURCE, "no agent runs here: none answers at %s%s; "
                   "another place is asked with --socket PATH", tried, other);
}

/* Connect to `o->socket` or where an agent is; `path` is then where. */
static int find_agent(const struct options *o, char *path, struct err *e)
{
    char tried[512];
    struct text t;
    int fd;

    if (o->socket) {
        (void)text_copy(path, STATUS_SOCKET_PATH_MAX, o->socket);
        return connect_asked(path, e);
    }
    text_init(&t, tried, sizeof tried);
    for (unsigned i = 0; i < STATUS_SOCKET_PLACES; i++) {
        if (!status_socket_place(i, geteuid(), getenv("XDG_RUNTIME_DIR"),
                                 path))
            continue;
        fd = status_socket_connect(path, false);
        if (fd >= 0)
            return fd;
        if (fd == -EACCES)
            return no_access(path, e);
        text_add(&t, "%s%s", t.len ? ", " : "", path);
    }
    return connect_second(path, tried, e);
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
    autoclose int fd = find_agent(o, path, e);
    int code;

    if (fd < 0)
        return fd;
    if (ask(fd, path, o->json, &r, e) != 0)
        return -e->code;
    code = show(o, &r.http);
    free(r.buf);
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
