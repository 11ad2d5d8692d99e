/* supervisor: see supervisor.h. */
#include "supervise/supervisor.h"

#include <signal.h>
#include <string.h>

void supervisor_init(struct supervisor *s, const struct sup_out *out,
                     uint32_t n_workers, uint64_t grace_ms)
{
    memset(s, 0, sizeof *s);
    s->out = *out;
    s->n_workers = n_workers;
    s->grace_ms = grace_ms;
    s->poll_ms = UINT64_MAX;
}

enum sup_news supervisor_start(struct supervisor *s, uint32_t n_workers,
                               uint32_t n_servers)
{
    s->state = n_servers < n_workers ? SUP_RUNNING : SUP_SERVING;
    s->n_workers = s->n_alive = n_workers;
    s->n_servers = n_servers;
    s->n_working = n_workers - n_servers;
    s->term_ms = 0;
    s->n_held = 0;
    for (uint32_t i = 0; i < s->n_workers; i++)
        s->alive[i] = true;
    s->killed = s->sweeping = s->swept_term = false;
    s->look_ms = 0;
    s->poll_ms = UINT64_MAX;
    s->poll_step_ms = SUP_POLL_MS;
    return s->state == SUP_SERVING ? SUP_SERVES : SUP_QUIET;
}

static bool is_server(const struct supervisor *s, uint32_t worker)
{
    return worker >= s->n_workers - s->n_servers;
}

static bool is_ending(const struct supervisor *s)
{
    return s->state == SUP_STOPPING || s->state == SUP_CLEANING;
}

uint64_t supervisor_stuck_ms(uint64_t kill_ms, uint64_t look_ms, bool soon)
{
    if (look_ms)
        return look_ms + SUP_LAST_LOOK_MS;
    return kill_ms + (soon ? SUP_STUCK_SOON_MS : SUP_STUCK_MS);
}

static uint64_t stuck_ms(const struct supervisor *s)
{
    return supervisor_stuck_ms(s->kill_ms, s->look_ms, s->soon);
}

static void signal_all(struct supervisor *s, int signo)
{
    for (uint32_t i = 0; i < s->n_workers; i++)
        if (s->alive[i])
            s->out.kill(s->out.ctx, i, signo);
}

static void sweep(struct supervisor *s, int signo)
{
    if (s->sweeping)
        return;
    s->sweeping = true;
    s->poll_ms = UINT64_MAX;
    s->out.sweep(s->out.ctx, signo);
}

/* All workers are dead: see what they left behind. */
static void look(struct supervisor *s)
{
    int signo = s->killed ? SIGKILL : s->swept_term ? 0 : SIGTERM;

    s->swept_term = true;
    sweep(s, signo);
}

static void begin_end(struct supervisor *s, uint64_t now_ms,
                      enum sup_state state)
{
    s->state = state;
    s->n_held = 0;
    s->term_ms = 0;
    s->kill_ms = now_ms + s->grace_ms;
    signal_all(s, SIGTERM);
    if (s->n_alive == 0)
        look(s);
    else
        s->poll_ms = now_ms + SUP_LOOK_MS;
}

/* RUNNING, SERVING: whether that is over. */
static enum sup_news look_for_end(struct supervisor *s, uint64_t now_ms)
{
    bool first = s->state == SUP_RUNNING;

    if (s->n_working + s->n_held > 0)
        return SUP_QUIET;
    if (s->n_alive == 0)
        begin_end(s, now_ms, SUP_CLEANING);
    else
        s->state = SUP_SERVING;
    return first && s->n_alive > 0 ? SUP_SERVES : SUP_QUIET;
}

enum sup_news supervisor_exited(struct supervisor *s, uint64_t now_ms,
                                uint32_t worker, bool ok)
{
    enum sup_news news = SUP_QUIET;

    if (worker >= s->n_workers || !s->alive[worker])
        return SUP_QUIET;
    s->alive[worker] = false;
    s->n_alive--;
    if (!is_server(s, worker))
        s->n_working--;
    if (!is_ending(s) && !ok) {
        begin_end(s, now_ms, SUP_STOPPING);
        news = SUP_FAILED;
    } else if (!is_ending(s)) {
        news = look_for_end(s, now_ms);
    } else if (is_ending(s) && s->n_alive == 0) {
        look(s);
    }
    return news;
}

void supervisor_hold(struct supervisor *s, uint32_t worker)
{
    s->alive[worker] = false;
    s->n_alive--;
    s->n_working--;
    s->n_held++;
}

void supervisor_again(struct supervisor *s, uint32_t worker)
{
    s->alive[worker] = true;
    s->n_alive++;
    s->n_working++;
    s->n_held--;
}

enum sup_news supervisor_drop(struct supervisor *s, uint64_t now_ms)
{
    s->n_held--;
    return s->state == SUP_RUNNING ? look_for_end(s, now_ms) : SUP_QUIET;
}

void supervisor_stop(struct supervisor *s, uint64_t now_ms)
{
    if (s->state == SUP_RUNNING || s->state == SUP_SERVING)
        begin_end(s, now_ms, SUP_STOPPING);
}

void supervisor_soon(struct supervisor *s)
{
    s->soon = true;
}

void supervisor_dismiss(struct supervisor *s, uint64_t now_ms)
{
    uint64_t wait = s->grace_ms / 2;

    if (s->state != SUP_SERVING)
        return;
    if (wait > SUP_DISMISS_MS)
        wait = SUP_DISMISS_MS;
    s->state = SUP_CLEANING;
    s->kill_ms = now_ms + s->grace_ms;
    s->term_ms = now_ms + wait;
    if (s->term_ms == 0)
        s->term_ms = 1;
}

void supervisor_hurry(struct supervisor *s, uint64_t now_ms)
{
    if (is_ending(s) && !s->killed)
        s->kill_ms = now_ms;
}

enum sup_news supervisor_swept(struct supervisor *s, uint64_t now_ms,
                               uint32_t n_left, bool output_pending)
{
    enum sup_news news;

    s->sweeping = false;
    if (!is_ending(s))
        return SUP_QUIET;
    if (s->n_alive == 0 && n_left == 0 && s->swept_term &&
        (!output_pending || now_ms >= s->kill_ms)) {
        news = s->state == SUP_CLEANING ? SUP_DONE : SUP_STOPPED;
        s->state = SUP_IDLE;
        s->poll_ms = UINT64_MAX;
        return news;
    }
    if (s->n_alive == 0 && !s->swept_term) {
        look(s); /* The last worker died while the first sweep ran. */
        return SUP_QUIET;
    }
    if (s->n_alive == 0 || s->killed) {
        s->poll_ms = now_ms + s->poll_step_ms;
        if (s->poll_step_ms < SUP_POLL_MAX_MS)
            s->poll_step_ms *= 2;
    }
    return SUP_QUIET;
}

void supervisor_nudge(struct supervisor *s, uint64_t now_ms)
{
    if (is_ending(s) && !s->sweeping && s->poll_ms != UINT64_MAX &&
        (s->n_alive == 0 || s->killed))
        s->poll_ms = now_ms;
}

enum sup_news supervisor_timeout(struct supervisor *s, uint64_t now_ms)
{
    if (!is_ending(s))
        return SUP_QUIET;
    if (s->term_ms && now_ms >= s->term_ms && s->n_alive > 0 &&
        now_ms < s->kill_ms) {
        s->term_ms = 0;
        signal_all(s, SIGTERM);
        sweep(s, SIGTERM);
    }
    if (now_ms >= s->kill_ms && !s->killed) {
        s->killed = true;
        s->term_ms = 0;
        s->kill_ms = now_ms; /* This agent may have been frozen. */
        s->poll_step_ms = SUP_POLL_MS;
        signal_all(s, SIGKILL);
        sweep(s, SIGKILL);
        return SUP_QUIET;
    }
    if (s->killed && now_ms >= stuck_ms(s)) {
        if (s->look_ms == 0) {
            s->look_ms = now_ms;
            sweep(s, SIGKILL);
            return SUP_QUIET;
        }
        s->state = SUP_IDLE;
        s->stuck = true;
        return SUP_STUCK;
    }
    if (now_ms >= s->poll_ms)
        sweep(s, s->killed ? SIGKILL : s->n_alive > 0 ? SIGTERM : 0);
    return SUP_QUIET;
}

uint64_t supervisor_grace_left(const struct supervisor *s, uint64_t now_ms)
{
    if (is_ending(s))
        return s->killed || now_ms >= s->kill_ms ? 0 : s->kill_ms - now_ms;
    return s->n_alive > 0 ? s->grace_ms : 0;
}

uint64_t supervisor_deadline(const struct supervisor *s)
{
    uint64_t at = s->poll_ms;
    uint64_t limit;

    if (!is_ending(s))
        return UINT64_MAX;
    limit = s->killed ? stuck_ms(s) : s->kill_ms;
    if (s->term_ms && s->n_alive > 0 && s->term_ms < limit)
        limit = s->term_ms;
    return limit < at ? limit : at;
}
