/* wire: the frames between a pod and pod 0, byte by byte in docs/wire.md.
 *
 * Pure. A frame is a 12-byte head (magic, version, kind, payload length,
 * round) and a payload; integers are big-endian, a string is a length of two
 * bytes and that many bytes of UTF-8 without control characters (but tab and
 * newline). The head never changes between versions, so that a peer of
 * another version can be told so. */
#ifndef RENDEZVOUS_WIRE_H
#define RENDEZVOUS_WIRE_H

#include "rendezvous/past.h"
#include "supervise/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MAGIC 0x41474e54u /* "AGNT" */
#define WIRE_VERSION 3
#define WIRE_HEAD 12
#define WIRE_FRAME_MAX 4096 /* Head and payload. */
#define WIRE_GUEST_MAX 512  /* Of a connection that is not admitted. */
#define WIRE_JOB_ID_MAX 129 /* NUL included. */
#define WIRE_TEXT_MAX 512
#define WIRE_HOSTS_MAX 3072 /* About a hundred pods. */
#define WIRE_DIGEST 32
#define WIRE_NPROC_MAX 1024
#define WIRE_NONCE_SIZE 32
#define WIRE_PROOF_SIZE 32
#define WIRE_NO_ROUND UINT32_MAX /* HELLO: no workers are running. */
#define WIRE_ANY_RANK UINT32_MAX /* HELLO: give me a node rank. */
#define WIRE_PREPARING 101       /* PROGRESS: --pre-start runs. */
#define WIRE_PARTNERS_MAX 128    /* In one frame. */

/* X(name, number, direction, meaning): the one table of messages. */
#define WIRE_TABLE(X)                                                          \
    X(HELLO, 1, "to pod 0", "who I am; the first frame of a connection")       \
    X(WELCOME, 2, "from pod 0", "you are admitted; the round to arrive for")   \
    X(REFUSE, 3, "from pod 0", "you are not admitted, and why")                \
    X(PROGRESS, 4, "to pod 0", "my data set is being staged, so far")          \
    X(ARRIVED, 5, "to pod 0", "nothing of an older round runs here; ready")    \
    X(WAITING, 6, "from pod 0",                                                \
      "who is missing, or what has changed, in words")                         \
    X(START, 7, "from pod 0", "start the workers of this round")               \
    X(FAILED, 8, "to pod 0", "a failure on my pod, or I was told to stop")     \
    X(STOP, 9, "from pod 0", "stop the workers of this round, and why")        \
    X(DONE, 10, "to pod 0", "all my workers of this round ended with 0")       \
    X(END, 11, "from pod 0", "the job is over: the exit code and the cause")   \
    X(BYE, 12, "to pod 0", "I have heard the end; nothing runs here")          \
    X(PING, 13, "both", "I am alive")                                          \
    X(CHALLENGE, 14, "from pod 0", "prove that you have the job's token")      \
    X(PROOF, 15, "both", "that I have the token; the pod proves it first")     \
    X(MESH, 16, "from pod 0", "connect to these pods, and move bytes")         \
    X(MESHED, 17, "to pod 0", "which of them were not reached, and why")      \
    X(AGAIN, 18, "from pod 0", "start that worker, or --pre-start, again")

enum wire_kind {
#define X(name, number, direction, meaning) WIRE_##name = number,
    WIRE_TABLE(X)
#undef X
};

struct wire_addr {
    uint8_t ip[16]; /* IPv4 as mapped into IPv6; all 0: any. */
    uint16_t port;  /* 0: there is no such address. */
};

struct wire_partner { /* A pod that another one connects to. */
    uint32_t rank;
    struct wire_addr at;
    uint8_t reason; /* MESHED: enum mesh_reason. */
};

/* How the connection to the pod 0 that admitted a pod last has ended. */
enum wire_end {
    WIRE_END_NONE,
    WIRE_END_CLOSED, /* By the kernel: its agent is gone, and its workers. */
    WIRE_END_SILENT, /* They may run yet. */
};

/* WAITING: the option that ends the wait. */
enum wire_bound { WIRE_NO_BOUND, WIRE_BARRIER_TIMEOUT, WIRE_REJOIN_TIMEOUT };

/* A pod's word for a round that it was in and that no pod 0 has ended. Bits. */
enum wire_lost {
    WIRE_LOST_LAST = 1, /* It was of the pod 0 that admitted it last, */
    WIRE_LOST_OLDER = 2, /* of one before that. */
};

struct wire_msg {
    enum wire_kind kind;
    uint32_t round; /* Which round it is about; 0 where none. PING: 1 where
                       somebody else claims the rank. */

    /* HELLO; WELCOME (incarnation of pod 0, the pod's node rank); CHALLENGE
     * (incarnation of pod 0). */
    uint64_t incarnation;
    uint32_t node_rank, nnodes, nproc;
    uint32_t max_restarts;      /* WELCOME: how many there may be, */
    uint64_t restart_period_ms; /* within so long; 0: in the job's life. */
    uint32_t n_restarts;    /* HELLO, START, STOP, END, AGAIN: so far. */
    struct past past;       /* HELLO, START, STOP. */
    uint32_t running;       /* HELLO: round that runs, or WIRE_NO_ROUND. */
    uint8_t any_rank;       /* HELLO: another rank will do as well (1). */
    uint64_t command_hash;  /* HELLO: of the workers' command line. */
    uint64_t last_zero;     /* HELLO: the incarnation of pod 0 that admitted
                               this pod last; 0: none. */
    uint8_t last_end;       /* HELLO: enum wire_end. */
    uint8_t zero_lost;      /* HELLO: enum wire_lost; */
    uint64_t lost_age_ms;   /* and how long ago that pod 0 was lost. */
    char job_id[WIRE_JOB_ID_MAX];
    char host[FAILURE_HOST_MAX];

    uint8_t has_token;              /* HELLO: 1 or 0. */
    uint8_t nonce[WIRE_NONCE_SIZE]; /* CHALLENGE, HELLO (zeros: no token). */
    uint8_t proof[WIRE_PROOF_SIZE]; /* PROOF: as of auth.h. */

    uint8_t digest[WIRE_DIGEST]; /* ARRIVED: of the data sets; 0: none. */
    struct wire_addr mesh;       /* ARRIVED: where other pods reach it. */
    uint8_t percent;             /* PROGRESS: 0..100, or WIRE_PREPARING. */
    uint32_t rank_base, world_size; /* START; END (world_size). */
    uint32_t group_rank, group_size; /* START: among this round's pods. */
    uint32_t master_port;           /* START. */
    uint64_t delay_ms;              /* STOP: until the next round opens; AGAIN:
                                       until the new start; WAITING: until it
                                       is given up, */
    uint8_t bound;                  /* by this enum wire_bound. */
    uint32_t serial;   /* FAILED: 0, or asks for AGAIN; AGAIN: the same, or 0
                          to those that did not ask. */
    uint32_t in_a_row; /* FAILED with a serial: without health between; HELLO,
                          START, STOP: of the job. */
    uint32_t same;     /* FAILED: the same early failure. */
    uint8_t go;        /* AGAIN: 1; 0: it is over, with 0. */
    uint8_t code;                   /* REFUSE, END: exit status. */
    char text[WIRE_TEXT_MAX];       /* REFUSE, WAITING; STOP, END, AGAIN: why
                                       there is a restart, or none. */
    struct failure failure;         /* FAILED, STOP, END. */

    uint64_t mesh_nonce; /* MESH, MESHED: of this test. */
    uint32_t n_total;    /* MESH: partners in all frames; MESHED: tried. */
    uint32_t first;      /* MESH: which of them partners[0] is. */
    uint32_t n_bad;      /* MESHED: all; partners[] has the first of them. */
    uint32_t n_partners;

    /* These two are most of it, and mostly of no use: wire_begin() does not
     * clear them, wire_copy() copies what is used. */
    char hosts[WIRE_HOSTS_MAX]; /* START: names and addresses of the pods, with
                                   commas; the one of each pod to reach it by
                                   with "*" and its nproc; "": not told. */
    struct wire_partner partners[WIRE_PARTNERS_MAX];
};

/* All is 0 or empty but these. */
void wire_begin(struct wire_msg *m, enum wire_kind kind, uint32_t round);
void wire_copy(struct wire_msg *to, const struct wire_msg *from);

/* "HELLO"; "?" for a number that is no kind. */
const char *wire_name(unsigned kind);

/* Write the frame to `buf` of WIRE_FRAME_MAX bytes; returns its length.
 * Strings are made valid on the way (text_make_utf8); all messages fit. */
size_t wire_encode(const struct wire_msg *m, uint8_t *buf);

/* Read a frame from the start of buf[0..len). Returns the bytes that it took,
 * 0 where more are needed, or -1 with a reason in *ret_why (static text) where
 * this is no frame; *ret_version is then the peer's version, or 0 where not
 * even the magic is right. What it reads, wire_encode() writes again. */
int wire_decode(const uint8_t *buf, size_t len, struct wire_msg *ret,
                const char **ret_why, unsigned *ret_version);

/* The same for a connection that is not admitted yet: takes nothing but HELLO
 * and PROOF of at most WIRE_GUEST_MAX bytes, and sees that from the head. */
int wire_decode_guest(const uint8_t *buf, size_t len, struct wire_msg *ret,
                      const char **ret_why, unsigned *ret_version);

#endif
