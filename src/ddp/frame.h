/* frame: the messages between ranks, byte by byte.
 *
 * Pure. A frame is a head of 8 bytes (magic "LDDP", version, kind, length of
 * the payload as u16) and the payload; integers are big-endian, text is a u16
 * length and that many bytes. Frames travel on the connections to rank 0
 * while ddp_init runs, and on the control connection between neighbours in
 * the ring afterwards. The data connection carries the elements themselves,
 * in the byte order of the machines (HELLO makes sure that it is one), in an
 * order that the CALL frames fix. REFUSE never changes between versions. */
#ifndef DDP_FRAME_H
#define DDP_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define DDP_FRAME_MAGIC 0x4c444450u
#define DDP_FRAME_VERSION 5
#define DDP_FRAME_HEAD 8
#define DDP_FRAME_MAX 512 /* Head and payload. */
#define DDP_FRAME_TEXT_MAX 450
#define DDP_TOKEN 16

enum ddp_frame_kind {
    DDP_HELLO = 1, /* To rank 0: who I am, and where I listen. */
    DDP_WELCOME,   /* From rank 0: you are one of us. */
    DDP_REFUSE,    /* From rank 0: you are not, and why. */
    DDP_WAITING,   /* From rank 0: how many are missing. */
    DDP_TABLE,     /* From rank 0: all are here; where your next one listens. */
    DDP_RING,      /* To the next rank: first frame of a ring connection. */
    DDP_READY,     /* To rank 0: my ring connections stand; whether I have
                    * the shared memory. */
    DDP_GO,        /* From rank 0: everybody's do; all have it. */
    DDP_FAULT,     /* To all that one is connected to: it is over, and why. */
    DDP_CALL,      /* To both neighbours: the call that I am in. */
    DDP_PING,      /* To both neighbours: I am in it still, waiting for. */
    DDP_BYE        /* To both neighbours: I leave (ddp_free). */
};

/* An address: IPv6, or IPv4 as ::ffff:a.b.c.d. */
struct ddp_addr {
    uint8_t ip[16];
    uint16_t port;
    uint32_t scope; /* Of this machine: not sent. */
};

struct ddp_frame {
    enum ddp_frame_kind kind;
    uint32_t rank;        /* HELLO, RING: sender. FAULT: who found it. */
    uint32_t world;       /* HELLO. */
    uint32_t attempt;     /* HELLO. */
    uint32_t master_port; /* HELLO. */
    uint32_t order;       /* HELLO: 1 little-endian, 0 big-endian. */
    uint32_t n;           /* WAITING: how many are missing. */
    uint32_t to;          /* RING: receiver. */
    uint32_t channel;     /* RING: 0 control, 1 and on: data; meet.h. */
    uint32_t sockets;     /* TABLE: for data, between neighbours; 0 is 1. */
    uint32_t retry;       /* REFUSE: 1 where a later try may be welcome. */
    uint32_t code;        /* REFUSE, FAULT: -enum ddp_code. */
    uint32_t peer;        /* REFUSE, FAULT: to blame; PING: waited for;
                           * WAITING: first missing. UINT32_MAX: nobody. */
    uint8_t host[DDP_TOKEN]; /* HELLO: see shm.h; 0: no shared memory. */
    uint32_t shm_pid, shm_fd; /* TABLE: where the shared memory is; pid 0:
                               * there is none. */
    uint32_t shm;         /* READY, GO: 1 or 0. */
    uint32_t pairs;       /* READY, GO: 1 where pairs are to be made. */
    uint32_t via_root;    /* TABLE: 1 where the next is rank 0: it listens on
                           * the address that HELLO went to. */
    uint32_t what, type, op, root; /* CALL. */
    uint64_t count, seq;           /* CALL. */
    struct ddp_addr addr;          /* HELLO, TABLE. */
    uint8_t token[DDP_TOKEN];      /* TABLE, RING: random, of the job. */
    char text[DDP_FRAME_TEXT_MAX + 1]; /* HELLO: job; REFUSE, FAULT: why. */
};

/* Write *f to `buf` of DDP_FRAME_MAX bytes and return its length. Text that
 * is too long is cut. */
size_t ddp_frame_encode(const struct ddp_frame *f, uint8_t *buf);

/* Read a frame from buf[0..len): the bytes it took, 0 where more are needed,
 * or -1 where this is no frame (*ret_version: the peer's version, 0 where it
 * does not speak this protocol at all). Text is free of control characters. */
int ddp_frame_decode(const uint8_t *buf, size_t len, struct ddp_frame *ret,
                     unsigned *ret_version);

#endif
