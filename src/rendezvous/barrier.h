/* barrier: pod 0's side of the job. Who has arrived, when a round starts, who
 * was lost, how often the job may still restart, and how it ends.
 *
 * Pure: no I/O, no clock, no allocation. Feed it events with the time in them;
 * it calls `out` for what is to be done. These calls must not step it again.
 * Pod 0's own side talks to it as connection BARRIER_LOCAL, by the same
 * messages as the others.
 *
 *   GATHER --all arrived, back-off over--> RUN --all done--> ENDING --> OVER
 *     ^                                     |                  ^
 *     +--- a failure that may be retried ---+--- a permanent --+
 */
#ifndef RENDEZVOUS_BARRIER_H
#define RENDEZVOUS_BARRIER_H

#include "base/err.h"
#include "base/log.h"
#include "rendezvous/barrier_guests.h"
#include "rendezvous/mesh.h"
#include "rendezvous/wire.h"

#include <stdbool.h>
#include <stdint.h>

#define BARRIER_LOCAL 0u           /* Pod 0's own side; others are >= 1. */
#define BARRIER_NO_CONN UINT32_MAX
#define BARRIER_ADDR_MAX 64
#define BARRIER_GUESTS 1024        /* Not admitted, beyond one for each pod. */

#define BARRIER_PING_MS 7000       /* Heartbeat; pods answer it. */
#define BARRIER_NEVER (UINT64_MAX / 2) /* A time that does not come. */
#define BARRIER_SILENCE_MS 15000   /* The lease: nothing heard, pod is lost. */
#define BARRIER_STILL_MS 1000      /* Woken later than this: it stood still. */
#define BARRIER_LATE_MS 2000       /* For frames on their way, beyond that. */
#define BARRIER_RESUME_MS 2000     /* The same incarnation may come back. */
#define BARRIER_SETTLE_MS 60       /* After a failure: was another its cause? */
#define BARRIER_PEER_MS 500        /* The same where its words are that a peer
                                      ended: that one may still be at it. */
#define BARRIER_PROBE_MS 2000      /* A live rank answers within this. */
#define BARRIER_HELLO_MS 10000     /* A connection is admitted within this. */
#define BARRIER_SUMMARY_MS 10000   /* Who is missing, this often. */
#define BARRIER_NEWS_MS 500        /* What has changed; 1 ms more a pod. */
#define BARRIER_SAY_MAX 64         /* Pods whose changes pod 0 tells singly. */
#define BARRIER_HEAR_MS 30000      /* How long pod 0 stays to tell the end. */
#define BARRIER_RESTARTS_MAX 1000 /* With a period. */
#define BARRIER_SAME_MS 10000     /* So early a failure may be the same. */
#define BARRIER_WHY_MAX 192       /* Why there is a restart, or none. */
#define BARRIER_END_MS 10000      /* Who lost its connection may hear, too. */
#define BARRIER_STAGING_MS 60000   /* Progress this recent is not late. */

enum barrier_phase { BAR_GATHER, BAR_RUN, BAR_ENDING, BAR_OVER };

enum bar_state {
    PEER_UNSEEN,
    PEER_STAGING,  /* Admitted; has not arrived. */
    PEER_ARRIVED,  /* Ready for the round that is being gathered. */
    PEER_RUNNING,  /* START was sent. */
    PEER_DONE,     /* All its workers of this round ended with 0. */
    PEER_STOPPING, /* Its workers are being stopped. */
    PEER_LOST,     /* Its connection was lost and did not come back. */
    PEER_LEFT,     /* It said that it was told to stop. */
    PEER_BYE,      /* It has heard the end. */
    PEER_STATES,
};

enum bar_refused { /* Why a pod with this rank was refused last. */
    BAR_NOT_REFUSED,
    BAR_WRONG_JOB,
    BAR_WRONG_TOKEN,
    BAR_WRONG_NNODES,
};

struct barrier_config {
    uint64_t incarnation; /* Of pod 0's agent; random. */
    uint64_t seed;        /* For jitter. */
    struct auth auth;
    struct bar_guest *guests; /* n_guests; borrowed for life. */
    uint32_t n_guests;    /* 0: no bound, and no token. */
    uint32_t nnodes;      /* At most so many pods; with `min_nodes` fewer. */
    uint32_t min_nodes;   /* Start with so many after the last call. */
    uint64_t last_call_ms;
    const char *job_id;   /* Borrowed for life. */
    uint64_t barrier_timeout_ms, rejoin_timeout_ms, grace_ms;
    uint64_t backoff_min_ms, backoff_max_ms, restart_reset_ms;
    uint32_t max_restarts;
    uint64_t restart_period_ms; /* Of max_restarts; 0: the job's life. */
    bool restart_never, restart_always, restart_by_code; /* The policy. */
    bool no_restart_on[256];
    bool scope_worker;   /* A failed worker alone is started again. */
    uint32_t same_limit; /* So many equal failures in a row are permanent; 0:
                            never. */
    uint32_t master_port;
    uint32_t mesh_reach; /* MESH_RING, MESH_FULL, or 0: no test. */
    bool tell_hosts;     /* START has the pods' names and addresses; */
    bool tell_nproc;     /* it has how many workers are where. */
    bool mesh_strict;    /* A pair that cannot reach each other is 200. */
};

struct bar_hello { /* What is kept of a HELLO. */
    uint64_t incarnation, command_hash, last_zero;
    uint8_t last_end, zero_lost;
    bool any_rank;
    uint32_t claims; /* The rank that it says it has. */
    uint32_t nproc, round, running, n_restarts, in_a_row;
    uint64_t came_ms, lost_age_ms;
    struct past past; /* As of came_ms. */
    char host[FAILURE_HOST_MAX];
};

struct bar_lost { /* The other pods that were lost last, for the past. */
    struct past past; /* As of at_ms. */
    uint64_t at_ms;
};

struct bar_zero { /* The losses of node rank 0. */
    uint32_t n;       /* That ended a round; */
    uint64_t last_ms; /* when, on this clock: it may be before its begin. */
    char text[160];   /* The last one, where it was this pod 0 that counted; */
    char why[BARRIER_WHY_MAX]; /* and what it costs. */
};

struct bar_peer {
    enum bar_state state;
    uint32_t conn; /* BARRIER_NO_CONN: none now. */
    struct bar_hello hello;
    uint64_t heard_ms;    /* When anything was last heard. */
    uint64_t down_ms;     /* Connection closed, resume window runs; else 0. */
    uint64_t lost_ms;     /* LOST, LEFT: since when. */
    uint64_t progress_ms; /* Last staging progress. */
    uint64_t last_loss_ms;
    uint32_t n_losses;
    bool member; /* Of the round that runs. */
    uint32_t next_round; /* ARRIVED for less is about a round that it ran. */
    uint8_t percent;
    uint8_t refused; /* enum bar_refused, while UNSEEN. */
    uint8_t told;    /* What was told of it: barrier_words.c. */
    uint32_t serial;   /* Of the last question about trying again, */
    uint64_t again_ms; /* and its answer. */
    uint8_t again_go;
    uint32_t challenger; /* A newcomer with the same rank, being checked. */
    uint64_t challenge_ms;
    bool answered; /* Something was heard since the challenge. */
    bool is_fresh; /* Its rank is by arrival, and from this pod 0. */
    bool quiet;    /* LEFT, and nothing runs there any more. */
    uint8_t signo; /* LEFT: the signal that it got. */
    struct bar_hello challenge;
    char addr[BARRIER_ADDR_MAX];
    struct mesh_peer mesh;
};

struct bar_conn {
    uint32_t rank;    /* UINT32_MAX: has not said HELLO, or not admitted. */
    uint32_t guest;   /* While it is one; else BAR_NO_GUEST. */
    uint32_t challenges; /* The rank that it waits for; else UINT32_MAX. */
    uint64_t open_ms; /* 0: not open. */
    char addr[BARRIER_ADDR_MAX];
    struct wire_addr here; /* Pod 0, as the other side reaches it. */
};

/* The last one that was refused for what no rank of its own can be told for;
 * while gathering. It may have been a stranger. */
struct bar_stray {
    uint64_t at_ms; /* 0: none was. */
    uint32_t what;  /* The rank that it claims, its protocol version, or enum
                       bar_refused. */
    bool told;
    char addr[BARRIER_ADDR_MAX];
};

struct barrier_out {
    void *ctx;
    void (*send)(void *ctx, uint32_t conn, const struct wire_msg *m);
    /* Close after what was sent; or at once, with a reset: the number is then
     * free at once, and barrier_closed() is not called for it. */
    void (*close)(void *ctx, uint32_t conn, bool abort);
    /* It may send every kind of frame from now on. May be NULL. */
    void (*admit)(void *ctx, uint32_t conn);
    void (*log)(void *ctx, enum log_level level, const char *text);
};

struct barrier {
    struct barrier_config cfg;
    struct barrier_out out;
    struct bar_peer *peers; /* cfg.nnodes. */
    struct bar_conn *conns; /* n_conns; index is the connection's id. */
    uint32_t n_conns;

    enum barrier_phase phase;
    uint32_t counts[PEER_STATES];
    uint32_t n_gone;     /* Have said BYE and closed. */
    uint32_t round;      /* That runs, or is being gathered. */
    uint32_t next_round; /* Is not below this: a pod has told of it. */
    uint32_t n_restarts; /* Counted against the budget. */
    uint32_t n_failures_in_a_row;
    struct bar_zero zero;
    struct bar_lost lost;
    struct { /* Rounds in a row that ended by one rank and code, early. */
        uint32_t rank, n;
        int code;
    } same;
    uint64_t suspect_ms; /* Since when; 0: no failure in this round. */
    bool started;        /* Some round has been started by this pod 0. */
    bool has_digest;
    uint8_t digest[WIRE_DIGEST];
    uint32_t digest_rank; /* Whose digest it is. */
    uint32_t world_size;
    uint32_t n_members;   /* Pods of the round that runs. */
    uint64_t enough_ms;   /* Since when min_nodes have arrived; 0: not yet. */
    uint64_t rng;

    uint64_t begin_ms;      /* When this pod 0 began; */
    uint64_t last_zero;     /* an older one that a pod has told of; 0: none. */
    uint64_t gather_ms;     /* When this gathering began. */
    uint64_t not_before_ms; /* Back-off, or the lease of a silent pod; */
    uint64_t fence_ms;      /* when that lease is over, or 0. */
    struct bar_stray twin, foreign; /* A rank claimed twice; a version; */
    struct bar_stray unranked;      /* refused before it had a rank. */
    uint64_t round_ms;      /* When the round started. */
    uint64_t summary_ms, ping_ms; /* When next. */
    bool has_news;       /* Something has changed that is not told yet; */
    uint64_t news_ms;    /* when it will be, or 0. */
    uint64_t end_ms;        /* When ENDING began. */
    bool end_waits;         /* Stay for pods that were not there, too. */
    uint64_t wake_ms;

    uint64_t n_nonces;
    uint32_t n_refused;   /* Since the last heartbeat. */
    uint64_t n_dropped;   /* Not reported yet. */
    uint64_t drop_say_ms; /* Not before this. */
    struct mesh mesh;

    /* Not cleared at the start, as mesh.bad is not: pages that most jobs never
     * touch. */
    struct bar_guests guests;
    struct failure suspect; /* The cause, as far as known; with suspect_ms. */
    struct wire_msg end; /* END, once phase >= ENDING. */
    uint64_t restarts_ms[BARRIER_RESTARTS_MAX]; /* The last ones, a ring; read
                                                   with restart_period_ms. */
};

/* How many connections may be guests, and how many numbers there must be. */
static inline uint32_t barrier_n_guests(uint32_t nnodes)
{
    return nnodes > 1 ? BARRIER_GUESTS + nnodes : 0;
}

static inline uint32_t barrier_n_conns(uint32_t nnodes, uint32_t n_guests)
{
    return nnodes > 1 ? 2 * nnodes + n_guests + 64 : 1;
}

/* `peers` holds cfg->nnodes, `conns` `n_conns` entries; both borrowed for life
 * and initialised here. Copies cfg and out. */
void barrier_init(struct barrier *b, const struct barrier_config *cfg,
                  const struct barrier_out *out, struct bar_peer *peers,
                  struct bar_conn *conns, uint32_t n_conns, uint64_t now_ms);

/* A connection was accepted; `conn` < n_conns. */
void barrier_open(struct barrier *b, uint64_t now_ms, uint32_t conn,
                  const char *addr);
/* No more connections can be accepted: the oldest of those that are not
 * admitted is dropped. False where there is none. */
bool barrier_make_room(struct barrier *b);
/* A connection was closed or reset by the other side, or by `out.close`. */
void barrier_closed(struct barrier *b, uint64_t now_ms, uint32_t conn);
/* A frame came. */
void barrier_message(struct barrier *b, uint64_t now_ms, uint32_t conn,
                     const struct wire_msg *m);
/* Bytes came that are no frame; `version` as of wire_decode(). */
void barrier_garbage(struct barrier *b, uint64_t now_ms, uint32_t conn,
                     const char *why, unsigned version);
/* It is barrier_deadline() or later. */
void barrier_timeout(struct barrier *b, uint64_t now_ms);
/* UINT64_MAX for never. */
uint64_t barrier_deadline(const struct barrier *b);

/* Who is missing and what is known of each, in words, folded. */
void barrier_describe(const struct barrier *b, uint64_t now_ms, char *out,
                      size_t cap);
/* The end was told: how long pod 0 stays at most for who has not heard of it
 * yet, which is put in words; 0: for nobody. */
struct text;
uint64_t barrier_stays(const struct barrier *b, uint64_t now_ms,
                       struct text *t);

#endif
