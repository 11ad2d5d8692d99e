/* loop_mesh: the pod's actions and events of the mesh test. */
#include "agent/loop_parts.h"

#include "rendezvous/peer_mesh.h"

static void on_done(void *ctx, const struct wire_msg *m)
{
    pod_meshed(&((struct loop *)ctx)->pod, loop_now(), m);
    loop_after(ctx);
}

static int act_open(void *ctx, uint32_t rank, struct wire_addr *ret,
                    struct err *e)
{
    struct loop *l = ctx;
    int r = l->mesh ? 0 : peer_mesh_new(&l->mesh, l->peers, l, on_done, e);

    return r ? r : peer_mesh_open(l->mesh, rank, l->plan->o->mesh_port, ret,
                                  e);
}

static void act_test(void *ctx, const struct wire_msg *m)
{
    struct loop *l = ctx;

    if (l->mesh)
        peer_mesh_test(l->mesh, m);
}

static void act_close(void *ctx)
{
    struct loop *l = ctx;

    if (l->mesh)
        peer_mesh_close(l->mesh);
}

void loop_mesh_actions(struct pod_out *out)
{
    out->mesh_open = act_open;
    out->mesh_test = act_test;
    out->mesh_close = act_close;
}
