/* blame: see blame.h. */
#include "ddp/blame.h"
#include "ddp/fault.h"
#include "ddp/reduce.h"

#include <stdio.h>
#include <string.h>

int ddp_blame(struct ddp_comm *c, const struct ddp_request *q,
              struct ddp_error *err, int code, int peer, const char *why)
{
    (void)ddp_fault(err, code, c->rank, peer, "%s (call %llu): %s",
                    ddp_what_name(q->what), (unsigned long long)c->n_calls,
                    why);
    ddp_comm_tell(c, err);
    return code;
}

int ddp_blame_by_frame(struct ddp_comm *c, const struct ddp_frame *f,
                       struct ddp_error *err)
{
    int code = ddp_fault_take(err, c->rank, f);

    if (c->shm) {
        struct ddp_error first = {.code = code, .rank = (int)f->rank,
                                  .peer = (int)f->peer};

        strncat(first.text, f->text, sizeof first.text - 1);
        ddp_shm_fail(c->shm, &first);
    }
    ddp_links_end(&c->links, f);
    return code;
}

int ddp_blame_aborted(struct ddp_comm *c, const struct ddp_request *q,
                      struct ddp_error *err)
{
    return ddp_blame(c, q, err, DDP_EABORTED, c->rank, "aborted by ddp_abort");
}

int ddp_blame_lost(struct ddp_comm *c, const struct ddp_request *q,
                   struct ddp_error *err, int peer, bool has_left, int error)
{
    char why[DDP_WHY];

    if (has_left)
        (void)snprintf(why, sizeof why, "rank %d has left the job", peer);
    else
        (void)snprintf(why, sizeof why, "rank %d died or failed: its "
                       "connection %s%s", peer,
                       error ? "broke: " : "was closed",
                       error ? strerror(error) : "");
    return ddp_blame(c, q, err, DDP_EPEER, peer, why);
}

int ddp_blame_late(struct ddp_comm *c, const struct ddp_request *q,
                   struct ddp_error *err, int peer, bool has_call)
{
    double sec = (double)c->timeout_ms / 1000;
    char why[DDP_WHY];

    if (peer < 0)
        (void)snprintf(why, sizeof why, "timed out after %.1f s, though all "
                       "ranks are there: too slow", sec);
    else
        (void)snprintf(why, sizeof why, "timed out after %.1f s: rank %d %s",
                       sec, peer, has_call ? "is silent"
                                           : "has not made this call");
    return ddp_blame(c, q, err, DDP_ETIMEDOUT, peer, why);
}

void ddp_call_frame(const struct ddp_comm *c, const struct ddp_request *q,
                    struct ddp_frame *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->kind = DDP_CALL;
    ret->what = q->what;
    ret->type = (uint32_t)q->type;
    ret->op = (uint32_t)q->op;
    ret->root = q->root;
    ret->count = q->count;
    ret->seq = c->n_calls;
}

int ddp_blame_difference(struct ddp_comm *c, const struct ddp_request *q,
                         struct ddp_error *err, int peer,
                         const struct ddp_frame *m, const struct ddp_frame *f)
{
    char why[DDP_WHY];

    if (f->what == m->what && f->count == m->count && f->type == m->type &&
        f->op == m->op && f->root == m->root && f->seq == m->seq)
        return 0;
    if (f->what != m->what || f->seq != m->seq)
        (void)snprintf(why, sizeof why, "rank %d is in %s (call %llu)", peer,
                       ddp_what_name(f->what), (unsigned long long)f->seq);
    else
        (void)snprintf(why, sizeof why, "%llu x %s, %s, root %u on rank %d, "
                       "but %llu x %s, %s, root %u on rank %d",
                       (unsigned long long)m->count, ddp_type_name(m->type),
                       ddp_op_name(m->op), (unsigned)m->root, c->rank,
                       (unsigned long long)f->count, ddp_type_name(f->type),
                       ddp_op_name(f->op), (unsigned)f->root, peer);
    return ddp_blame(c, q, err, DDP_EMISMATCH, peer, why);
}
