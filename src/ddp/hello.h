/* hello: what a rank says of itself to rank 0, and whether it belongs. Pure. */
#ifndef DDP_HELLO_H
#define DDP_HELLO_H

#include "ddp/conf.h"
#include "ddp/frame.h"

enum ddp_hello_verdict {
    DDP_HELLO_FITS,
    DDP_HELLO_OTHER,   /* Another job or attempt: refuse it, and go on. */
    DDP_HELLO_CLAIMED, /* No such rank, or rank 0: refuse it, and go on. */
    DDP_HELLO_FATAL    /* The job cannot work: all fail. */
};

/* The HELLO of a rank that listens at *listens. */
void ddp_hello_put(const struct ddp_conf *conf, const struct ddp_addr *listens,
                   const uint8_t host[DDP_TOKEN], struct ddp_frame *ret);

/* Compare a HELLO with rank 0's own `conf`; the reason goes to ret_why. */
enum ddp_hello_verdict ddp_hello_check(const struct ddp_conf *conf,
                                       const struct ddp_frame *f,
                                       char ret_why[DDP_FRAME_TEXT_MAX]);

#endif
