/* hello: see hello.h. */
#include "ddp/hello.h"

#include <stdio.h>
#include <string.h>

/* 1 on a little-endian machine, else 0. */
static uint32_t byte_order(void)
{
    const uint16_t one = 1;
    uint8_t first;

    memcpy(&first, &one, 1);
    return first;
}

void ddp_hello_put(const struct ddp_conf *conf, const struct ddp_addr *listens,
                   const uint8_t host[DDP_TOKEN], struct ddp_frame *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->kind = DDP_HELLO;
    ret->rank = (uint32_t)conf->rank;
    ret->world = (uint32_t)conf->size;
    ret->attempt = conf->attempt;
    ret->master_port = conf->master_port;
    ret->order = byte_order();
    ret->addr = *listens;
    memcpy(ret->host, host, DDP_TOKEN);
    strncat(ret->text, conf->job, sizeof ret->text - 1);
}

static int differs(const struct ddp_conf *conf, const struct ddp_frame *f,
                   char *ret_why)
{
    if (strcmp(f->text, conf->job))
        return snprintf(ret_why, DDP_FRAME_TEXT_MAX, "job id is '%.128s' on "
                        "rank 0 but '%.128s' on rank %u (TORCHELASTIC_RUN_ID)",
                        conf->job, f->text, (unsigned)f->rank);
    if (f->master_port != conf->master_port)
        return snprintf(ret_why, DDP_FRAME_TEXT_MAX, "MASTER_PORT is %u on "
                        "rank 0 but %u on rank %u",
                        (unsigned)conf->master_port, (unsigned)f->master_port,
                        (unsigned)f->rank);
    if (f->attempt != conf->attempt)
        return snprintf(ret_why, DDP_FRAME_TEXT_MAX, "the attempt is %d on "
                        "rank 0 but %d on rank %u (TORCHELASTIC_RESTART_COUNT;"
                        " -1 where not set)", (int)conf->attempt,
                        (int)f->attempt, (unsigned)f->rank);
    return 0;
}

enum ddp_hello_verdict ddp_hello_check(const struct ddp_conf *conf,
                                       const struct ddp_frame *f,
                                       char ret_why[DDP_FRAME_TEXT_MAX])
{
    if (differs(conf, f, ret_why))
        return DDP_HELLO_OTHER;
    if (f->world != (uint32_t)conf->size) {
        (void)snprintf(ret_why, DDP_FRAME_TEXT_MAX, "WORLD_SIZE is %d on rank "
                       "0 but %u on rank %u", conf->size, (unsigned)f->world,
                       (unsigned)f->rank);
        return DDP_HELLO_FATAL;
    }
    if (f->order != byte_order()) {
        (void)snprintf(ret_why, DDP_FRAME_TEXT_MAX, "the byte order of rank "
                       "%u's machine differs from that of rank 0's",
                       (unsigned)f->rank);
        return DDP_HELLO_FATAL;
    }
    if (f->rank == 0 || f->rank >= (uint32_t)conf->size) {
        (void)snprintf(ret_why, DDP_FRAME_TEXT_MAX, "RANK is %u on two "
                       "processes, or not below WORLD_SIZE %d",
                       (unsigned)f->rank, conf->size);
        return DDP_HELLO_CLAIMED;
    }
    return DDP_HELLO_FITS;
}
