/* fault: see fault.h. */
#include "ddp/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int ddp_fault(struct ddp_error *e, int code, int rank, int peer,
              const char *fmt, ...)
{
    char text[sizeof e->text]; /* An argument may point into *e. */
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    memset(e, 0, sizeof *e);
    e->code = code;
    e->rank = rank;
    e->peer = peer;
    memcpy(e->text, text, sizeof text);
    return code;
}

void ddp_fault_put(const struct ddp_error *e, struct ddp_frame *ret)
{
    size_t len = strnlen(e->text, DDP_FRAME_TEXT_MAX);

    memset(ret, 0, sizeof *ret);
    ret->kind = DDP_FAULT;
    ret->code = (uint32_t)-e->code;
    ret->rank = (uint32_t)e->rank;
    ret->peer = (uint32_t)e->peer;
    memcpy(ret->text, e->text, len);
}

int ddp_fault_take(struct ddp_error *e, int own_rank,
                   const struct ddp_frame *f)
{
    int code = -(int)f->code;
    const char *verb = f->kind == DDP_REFUSE ? "refuses" : "reports";

    /* A code of a later version is some failure of a peer to this one. */
    if (code >= 0 || code < DDP_EUNUSED)
        code = DDP_EPEER;
    return ddp_fault(e, code, own_rank, (int)f->peer, "rank %u %s: %s",
                     (unsigned)f->rank, verb, f->text);
}
