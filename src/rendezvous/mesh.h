/* mesh: pod 0's side of the test whether the pods reach each other: once all
 * have arrived, and before their workers start.
 *
 * Pure; a part of the barrier. Pod 0 sends MESH to each pod that has a
 * partner to test: the ranks next to it, or (full) up to MESH_FULL away. Both
 * pods of a pair connect to each other, so a filter that lets connections
 * through one way only is found. Each answers with MESHED. A pair is tested
 * once for two incarnations; what was lost with a connection is sent again. */
#ifndef RENDEZVOUS_MESH_H
#define RENDEZVOUS_MESH_H

#include "rendezvous/wire.h"

#include <stdbool.h>
#include <stdint.h>

#define MESH_RING 1u
#define MESH_FULL 512u        /* Ranks on either side of a pod, at most. */
#define MESH_PARTNERS_MAX (2 * MESH_FULL)
#define MESH_TEST_MS 7000     /* A pod's connections, all of them together. */
#define MESH_LIMIT_MS 10000   /* All pods must have answered. */
#define MESH_BAD_MAX 64       /* That pod 0 remembers. */
#define MESH_SAY_MAX 16       /* Lines of warning. */

struct barrier;

struct mesh_bad {
    uint32_t from;
    struct wire_partner to;
};

struct mesh {
    bool runs;
    uint64_t nonce;
    uint64_t begin_ms;
    uint32_t n_pods; /* That had arrived when the test began. */
    uint32_t n_asked, n_answered;
    uint32_t n_bad;  /* As the pods count; n_kept of them are in bad[]. */
    uint32_t n_kept;
    struct mesh_bad bad[MESH_BAD_MAX];
};

enum mesh_state { MESH_NOT_ASKED, MESH_ASKED, MESH_ANSWERED };

struct mesh_peer { /* What the barrier keeps of a pod. */
    struct wire_addr at;  /* Port 0: it takes no part. Of pod 0 the port. */
    uint64_t tested;      /* Incarnation that was tested, or 0; and that of */
    uint64_t tested_next; /* the next pod in the ring then. */
    uint32_t place;       /* Among the pods of the test. */
    uint32_t at_place;    /* Rank of the pod whose place is this one's rank. */
    enum mesh_state state;
    bool hides;           /* It has not named all its bad partners. */
};

/* The address on this side of a connection that was accepted. */
void mesh_here(struct barrier *b, uint32_t conn, const struct wire_addr *here);
/* ARRIVED came. Of a pod that has arrived already it comes on a new
 * connection: it may have missed MESH. Else a test that runs is void, for
 * there was one pod more or less when it began. */
void mesh_arrived(struct barrier *b, uint32_t rank, const struct wire_msg *m);
/* MESHED came. */
void mesh_answered(struct barrier *b, uint64_t now_ms, uint32_t rank,
                   const struct wire_msg *m);
/* All have arrived: true where nothing is left to test. Else the test runs,
 * or the job has just been ended. */
bool mesh_is_over(struct barrier *b, uint64_t now_ms);

#endif
