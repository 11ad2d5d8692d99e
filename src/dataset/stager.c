/* stager: see stager.h. */
#include "dataset/stager.h"

#include "base/digest.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pipe_child.h"
#include "base/show.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SIGN_OF_LIFE_MS 5000
#define WAITING 1u /* Bits in a line of progress. */
#define SYNCING 2u

struct channel {
    int fd;
    unsigned index, n;
    unsigned said;     /* Last percent, and when it was said: again only */
    uint64_t said_ms;  /* after `every_ms`: a sign of life, or for a bar. */
    uint64_t every_ms;
    bool said_waiting;
};

static void say(const struct channel *c, const struct stager_line *l)
{
    char line[STAGER_LINE_MAX];
    size_t len, done = 0;

    if (!stager_format(l, line, sizeof line))
        return;
    len = strlen(line);
    while (done < len) {
        ssize_t n = write(c->fd, line + done, len - done);

        if (n < 0 && errno != EINTR)
            _exit(ERR_AGENT); /* agent is gone. */
        done += n > 0 ? (size_t)n : 0;
    }
}

static uint64_t now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void on_progress(void *ctx, const struct stage_progress *p)
{
    static struct stager_line l; /* Large; one thread, one use. */
    struct channel *c = ctx;
    double part = p->total > 0 ? (double)p->done / (double)p->total : 0;

    l.kind = STAGER_PROGRESS;
    l.now = *p;
    (void)text_copy(l.set.name, sizeof l.set.name, p->name);
    l.percent = (unsigned)(100.0 * ((double)c->index + part) / c->n);
    if (c->said <= 100 && l.percent < c->said)
        l.percent = c->said; /* A piece of work is done once more. */
    if (l.percent == c->said && p->waiting == c->said_waiting &&
        now() - c->said_ms < c->every_ms)
        return;
    c->said = l.percent;
    c->said_waiting = p->waiting;
    c->said_ms = now();
    say(c, &l);
}

static void __attribute__((noreturn))
stager_main(const struct stage_request *req, unsigned n, int fd)
{
    static struct stager_line l; /* Large; one thread, one use. */
    struct channel c = {.fd = fd, .n = n, .said = 101,
                        .every_ms = isatty(STDERR_FILENO) == 1
                                        ? SHOW_BAR_MS
                                        : SIGN_OF_LIFE_MS};

    log_set_sink(NULL, NULL); /* The parent's queue is not ours. */
    for (unsigned i = 0; i < n; i++) {
        c.index = i;
        l.index = i;
        l.kind = STAGER_SET;
        l.err.code = 0;
        if (stage_run(&req[i], on_progress, &c, &l.set, &l.err) != 0) {
            l.kind = STAGER_ERROR;
            stage_advise(&req[i], &l.set, &l.err);
            say(&c, &l);
            _exit(l.err.code);
        }
        stage_warn(&l.set);
        say(&c, &l);
    }
    _exit(0);
}

pid_t stager_start(const struct stage_request *req, unsigned n, int *ret_fd,
                   struct err *e)
{
    pid_t pid = pipe_child_start(ret_fd);
    sigset_t none;

    if (pid == 0) {
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        stager_main(req, n, *ret_fd);
    }
    if (pid < 0)
        return err_set(e, ERR_RESOURCE, "no process for the stager: %s",
                       strerror(-pid));
    return pid;
}

static bool parse_digest(const char *hex, uint8_t ret[32])
{
    for (unsigned i = 0; i < 32; i++) {
        unsigned byte;

        if (sscanf(hex + 2 * (size_t)i, "%2x", &byte) != 1)
            return false;
        ret[i] = (uint8_t)byte;
    }
    return true;
}

static bool parse_set(const char *line, struct stager_line *ret)
{
    char hex[65];
    unsigned reused;
    int at = 0;
    const char *tab;

    if (sscanf(line, "set %u %64[0-9a-f] %u %" SCNu64 " %" SCNu64 " %n",
               &ret->index, hex, &reused, &ret->set.n_files,
               &ret->set.n_bytes, &at) != 5 ||
        at == 0 || strlen(hex) != 64 || !parse_digest(hex, ret->set.digest))
        return false;
    ret->set.reused = reused != 0;
    /* The name cannot hold a slash, and the folder begins with one. */
    tab = strchr(line + at, '/');
    if (!tab || tab == line + at || tab[-1] != '\t' ||
        (size_t)(tab - 1 - (line + at)) >= sizeof ret->set.name)
        return false;
    memcpy(ret->set.name, line + at, (size_t)(tab - 1 - (line + at)));
    ret->set.name[tab - 1 - (line + at)] = '\0';
    return text_copy(ret->set.dir, sizeof ret->set.dir, tab);
}

static bool parse_progress(const char *line, struct stager_line *ret)
{
    struct stage_progress *p = &ret->now;
    unsigned state;
    int at = 0;

    if (sscanf(line, "progress %u %u %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 "%n", &ret->percent, &state, &p->done, &p->total,
               &p->n_done, &p->n_files, &at) != 6 ||
        line[at] != ' ' || ret->percent > 100 || state > (WAITING | SYNCING) ||
        p->done > p->total || p->n_done > p->n_files)
        return false;
    p->waiting = state & WAITING;
    p->syncing = state & SYNCING;
    p->name = ret->set.name;
    return text_copy(ret->set.name, sizeof ret->set.name, line + at + 1);
}

bool stager_parse(const char *line, struct stager_line *ret)
{
    int at = 0;

    memset(ret, 0, sizeof *ret);
    if (strncmp(line, "progress ", 9) == 0) {
        ret->kind = STAGER_PROGRESS;
        return parse_progress(line, ret);
    }
    if (strncmp(line, "set ", 4) == 0) {
        ret->kind = STAGER_SET;
        return parse_set(line, ret);
    }
    ret->kind = STAGER_ERROR;
    if (sscanf(line, "error %d %n", &ret->err.code, &at) != 1 || at == 0 ||
        ret->err.code < 1 || ret->err.code > 255)
        return false;
    return text_copy(ret->err.text, sizeof ret->err.text, line + at);
}

static unsigned state_of(const struct stage_progress *p)
{
    return (p->waiting ? WAITING : 0) | (p->syncing ? SYNCING : 0);
}

bool stager_format(const struct stager_line *l, char *out, size_t cap)
{
    struct text t;

    text_init(&t, out, cap);
    switch (l->kind) {
    case STAGER_PROGRESS:
        text_add(&t, "progress %u %u %" PRIu64 " %" PRIu64 " %" PRIu64
                 " %" PRIu64 " %s", l->percent, state_of(&l->now), l->now.done,
                 l->now.total, l->now.n_done, l->now.n_files, l->set.name);
        break;
    case STAGER_SET:
        text_add(&t, "set %u ", l->index);
        for (unsigned i = 0; i < 32; i++)
            text_add(&t, "%02x", l->set.digest[i]);
        text_add(&t, " %u %" PRIu64 " %" PRIu64 " %s\t%s", l->set.reused,
                 l->set.n_files, l->set.n_bytes, l->set.name, l->set.dir);
        break;
    case STAGER_ERROR:
        text_add(&t, "error %d %s", l->err.code, l->err.text);
        break;
    }
    for (size_t i = 0; i < t.len; i++)
        if (out[i] == '\n')
            out[i] = ' '; /* A file's name may hold one. */
    text_add(&t, "\n");
    return !t.cut;
}

void stager_digest(const struct stage_result *sets, unsigned n,
                   uint8_t ret[32])
{
    uint8_t sum[DIGEST_MAX];
    struct digest d;

    memcpy(ret, sets[0].digest, 32);
    if (n == 1)
        return;
    digest_start(&d, DIGEST_SHA256);
    for (unsigned i = 0; i < n; i++)
        digest_add(&d, sets[i].digest, sizeof sets[i].digest);
    digest_end(&d, sum);
    memcpy(ret, sum, 32);
}
