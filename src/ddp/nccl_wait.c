/* nccl_wait: waiting for what goes on in NCCL or on a stream, and how it may
 * end; see nccl.h. */
#include "ddp/blame.h"
#include "ddp/clock.h"
#include "ddp/nccl_parts.h"

#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

#define SPIN_NS 10000000 /* Then it sleeps between two looks, for a small   */
#define NAP_PART 512     /* part of the time until then: what a nap is too  */
#define NAP_MAX_NS 500000 /* long is no part of a step that anybody notices. */

int ddp_nccl_fail(struct ddp_nccl *n, struct ddp_watch *w, const char *doing,
                  int result)
{
    const char *last = n->lib.handle ? n->lib.last_error(n->comm) : "";
    const char *text = n->cuda_error ? n->cuda->text(n->cuda_error)
                                     : n->lib.text(result);
    char why[DDP_WHY + 128], hint[160];
    int rc = result == DDP_NCCL_REMOTE_ERROR
                 ? ddp_blame_dead(w->c, w->q, w->err) : 0;

    if (rc)
        return rc;
    ddp_nccl_hint(result, last ? last : "", hint, sizeof hint);
    (void)snprintf(why, sizeof why, "rank %d: %s: %.60s (%d)%s%.120s%s%s",
                   w->c->rank, doing, text, result,
                   last && *last ? ": " : "", last ? last : "",
                   hint[0] ? "; likely: " : "", hint);
    return ddp_blame(w->c, w->q, w->err,
                     result == DDP_NCCL_REMOTE_ERROR ? DDP_EPEER : DDP_ESYSTEM,
                     result == DDP_NCCL_REMOTE_ERROR ? -1 : w->c->rank, why);
}

static int fail_late(struct ddp_watch *w, const char *doing)
{
    char why[DDP_WHY];

    (void)snprintf(why, sizeof why, "%s: not done within %.1f s: a rank has "
                   "not made this call, made another one, or NCCL cannot get "
                   "through (NCCL_DEBUG=INFO tells which interface it takes)",
                   doing, (double)w->c->timeout_ms / 1000);
    return ddp_blame(w->c, w->q, w->err, DDP_ETIMEDOUT, -1, why);
}

/* The kernel ends a sleep up to a thread's slack late: 50 us by default. */
static void nap(uint64_t since_ns, uint64_t now_ns)
{
    uint64_t ns = (now_ns - since_ns) / NAP_PART;
    struct timespec t = {0};
    int slack;

    if (now_ns - since_ns < SPIN_NS)
        return;
    t.tv_nsec = ns > NAP_MAX_NS ? NAP_MAX_NS : (long)ns;
    slack = prctl(PR_GET_TIMERSLACK);
    (void)prctl(PR_SET_TIMERSLACK, 1);
    (void)nanosleep(&t, NULL);
    if (slack > 0)
        (void)prctl(PR_SET_TIMERSLACK, slack);
}

/* NCCL tells of a failure that came while work was on the stream. */
static bool has_failed(struct ddp_nccl *n, int *ret)
{
    int r = n->comm ? n->lib.async_error(n->comm, ret) : DDP_NCCL_SUCCESS;

    if (!n->comm)
        return false;
    if (r != DDP_NCCL_SUCCESS)
        *ret = r;
    return *ret != DDP_NCCL_SUCCESS && *ret != DDP_NCCL_IN_PROGRESS;
}

int ddp_nccl_wait(struct ddp_nccl *n, struct ddp_watch *w, const char *doing,
                  int (*is_done)(struct ddp_nccl *n, int *ret_error))
{
    uint64_t since = ddp_now_ns(), looked = since;

    for (;;) {
        uint64_t now_ns = ddp_now_ns();
        int result = DDP_NCCL_SUCCESS;
        int done = is_done(n, &result), rc;

        if (done < 0)
            return ddp_nccl_fail(n, w, doing, result);
        if (done)
            return 0;
        if (now_ns - looked >= DDP_NCCL_LOOK_NS) {
            looked = now_ns;
            rc = ddp_watch_look(w, ddp_now());
            if (!rc && has_failed(n, &result))
                rc = ddp_nccl_fail(n, w, doing, result);
            if (!rc && ddp_now() >= w->deadline)
                rc = fail_late(w, doing);
            if (rc)
                return rc;
        }
        nap(since, now_ns);
    }
}

int ddp_nccl_is_settled(struct ddp_nccl *n, int *ret)
{
    int r = n->lib.async_error(n->comm, ret);

    if (r != DDP_NCCL_SUCCESS)
        *ret = r;
    return *ret == DDP_NCCL_IN_PROGRESS ? 0 : *ret == DDP_NCCL_SUCCESS ? 1 : -1;
}
