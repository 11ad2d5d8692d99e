/* pod_mesh: a pod's part in the mesh test: where it can be reached, and what
 * came of reaching others. What is to be tested is decided by pod 0. */
#include "agent/pod.h"

#include "agent/pod_parts.h"
#include "base/text.h"
#include "rendezvous/mesh_talk.h"

#define SAY_MAX 4

bool pod_mesh_open(struct pod *p, uint64_t now_ms, struct wire_msg *m)
{
    struct err e = {0};

    if (!p->cfg.mesh || p->out.mesh_open(p->out.ctx, p->cfg.node_rank,
                                         &m->mesh, &e) == 0)
        return true;
    if (p->cfg.mesh_port_given) {
        pod_fault(p, now_ms, e.code, e.text);
        return false;
    }
    m->mesh.port = 0;
    pod_say(p, LOG_WARNING, "%s; whether other pods reach this one is not "
            "tested, going on", e.text);
    return true;
}

void pod_conn_here(struct pod *p, uint32_t conn, const struct wire_addr *here)
{
    mesh_here(p->bar, conn, here);
}

void pod_mesh_close(struct pod *p)
{
    if (p->cfg.mesh)
        p->out.mesh_close(p->out.ctx);
}

/* Pod 0 has the whole picture, and says so. */
static void say_bad(const struct pod *p, const struct wire_msg *m)
{
    char line[WIRE_TEXT_MAX];
    struct text t;

    for (uint32_t i = 0; i < m->n_partners && i < SAY_MAX; i++) {
        text_init(&t, line, sizeof line);
        mesh_add_partner(&t, &m->partners[i]);
        pod_say(p, LOG_WARNING, "cannot reach %s", line);
    }
    if (m->n_bad > SAY_MAX)
        pod_say(p, LOG_WARNING, "cannot reach %u pods of %u in all", m->n_bad,
                m->n_total);
}

void pod_meshed(struct pod *p, uint64_t now_ms, const struct wire_msg *m)
{
    struct wire_msg mine;

    if (p->state != POD_WAITING)
        return;
    wire_copy(&mine, m);
    mine.round = p->round;
    if (!p->bar)
        say_bad(p, m);
    pod_tell(p, now_ms, &mine);
    pod_take_queue(p, now_ms);
}
