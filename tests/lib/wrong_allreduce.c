/* wrong_allreduce: ddp_all_reduce that gives one wrong element on rank
 * WRONG_RANK, in calls of WRONG_COUNT elements or more; see the Makefile. */
#include "ddp.h"

#include <stdlib.h>

int __real_ddp_all_reduce(struct ddp_comm *c, const void *send, void *recv,
                          size_t count, enum ddp_type type, enum ddp_op op,
                          void *stream, struct ddp_error *err);
int __wrap_ddp_all_reduce(struct ddp_comm *c, const void *send, void *recv,
                          size_t count, enum ddp_type type, enum ddp_op op,
                          void *stream, struct ddp_error *err);

int __wrap_ddp_all_reduce(struct ddp_comm *c, const void *send, void *recv,
                          size_t count, enum ddp_type type, enum ddp_op op,
                          void *stream, struct ddp_error *err)
{
    const char *rank = getenv("WRONG_RANK"), *from = getenv("WRONG_COUNT");
    int rc = __real_ddp_all_reduce(c, send, recv, count, type, op, stream,
                                   err);

    if (!rc && rank && from && strtol(rank, NULL, 10) == ddp_rank(c) &&
        count >= strtoul(from, NULL, 10))
        ((uint8_t *)recv)[count / 2 * (type == DDP_U8 ? 1 : 4)] ^= 0x40;
    return rc;
}
