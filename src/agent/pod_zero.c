/* pod_zero: pod 0 and its own barrier: the events of connections to it, and
 * what it does and says. */
#include "agent/pod.h"

#include "agent/pod_parts.h"

#include <string.h>

static void bar_send_to(void *ctx, uint32_t conn, const struct wire_msg *m)
{
    struct pod *p = ctx;

    if (conn != BARRIER_LOCAL) {
        p->out.conn_send(p->out.ctx, conn, m);
        return;
    }
    /* Heartbeats to oneself say nothing. */
    if (m->kind != WIRE_PING && p->n_queue < POD_QUEUE_MAX)
        wire_copy(&p->queue[p->n_queue++], m);
}

static void bar_close(void *ctx, uint32_t conn, bool abort)
{
    struct pod *p = ctx;

    if (conn != BARRIER_LOCAL)
        p->out.conn_close(p->out.ctx, conn, abort);
}

static void bar_admit(void *ctx, uint32_t conn)
{
    struct pod *p = ctx;

    if (p->out.conn_admit)
        p->out.conn_admit(p->out.ctx, conn);
}

static void bar_log(void *ctx, enum log_level level, const char *text)
{
    struct pod *p = ctx;

    p->out.log(p->out.ctx, level, text);
}

void pod_own_barrier(struct pod *p, struct barrier *b,
                     const struct barrier_config *cfg, struct bar_peer *peers,
                     struct bar_conn *conns, uint32_t n_conns,
                     uint64_t now_ms)
{
    struct barrier_out out = {.ctx = p,
                              .send = bar_send_to,
                              .close = bar_close,
                              .admit = bar_admit,
                              .log = bar_log};

    p->bar = b;
    barrier_init(b, cfg, &out, peers, conns, n_conns, now_ms);
}

void pod_take_queue(struct pod *p, uint64_t now_ms)
{
    struct wire_msg m;

    while (p->n_queue > 0) {
        wire_copy(&m, &p->queue[0]);
        p->n_queue--;
        for (uint32_t i = 0; i < p->n_queue; i++)
            wire_copy(&p->queue[i], &p->queue[i + 1]);
        pod_link_message(p, now_ms, &m);
    }
    if (p->bar && p->bar->phase == BAR_OVER && p->state == POD_LEAVING)
        pod_gone(p);
}

void pod_say_stays(struct pod *p, uint64_t now_ms)
{
    bool failed = p->exit_code != 0 && !p->end_told;
    char buf[2 * WIRE_TEXT_MAX], who[160];
    struct text t, w;
    uint64_t ms;

    if (!p->bar || p->state != POD_LEAVING || now_ms < p->say_ms)
        return;
    text_init(&w, who, sizeof who);
    ms = barrier_stays(p->bar, now_ms, &w);
    if (ms == 0)
        return;
    p->say_ms = now_ms + BARRIER_SUMMARY_MS;
    p->end_told = true;
    text_init(&t, buf, sizeof buf);
    if (failed)
        verdict_cause_line(&t, &p->cause);
    text_add(&t, "%s: waiting for %s to hear of it and leave",
             failed ? "; this ends the job" : "the job is over", who);
    pod_add_left(&t, ms, NULL);
    pod_say(p, failed ? LOG_WARNING : LOG_INFO, "%s", buf);
}

void pod_conn_open(struct pod *p, uint64_t now_ms, uint32_t conn,
                   const char *addr)
{
    barrier_open(p->bar, now_ms, conn, addr);
    pod_take_queue(p, now_ms);
}

void pod_conn_closed(struct pod *p, uint64_t now_ms, uint32_t conn)
{
    barrier_closed(p->bar, now_ms, conn);
    pod_take_queue(p, now_ms);
}

bool pod_conn_make_room(struct pod *p)
{
    return barrier_make_room(p->bar);
}

void pod_conn_message(struct pod *p, uint64_t now_ms, uint32_t conn,
                      const struct wire_msg *m)
{
    barrier_message(p->bar, now_ms, conn, m);
    pod_take_queue(p, now_ms);
}

void pod_conn_garbage(struct pod *p, uint64_t now_ms, uint32_t conn,
                      const char *why, unsigned version)
{
    barrier_garbage(p->bar, now_ms, conn, why, version);
    pod_take_queue(p, now_ms);
}
