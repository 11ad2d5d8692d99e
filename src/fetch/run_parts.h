/* run_parts: what the files of the run share. Internal to the run. */
#ifndef FETCH_RUN_PARTS_H
#define FETCH_RUN_PARTS_H

#include "base/show.h"
#include "fetch/run.h"
#include "fetch/transfer.h"

#define SLOTS_MAX (ARGS_PARALLEL_MAX + RUN_WAITING_MAX)

enum slot_state {
    SLOT_FREE,
    SLOT_STEP, /* Bytes on disk are hashed. */
    SLOT_WAIT, /* For `at_ms`, and for a place among those that fly. */
    SLOT_FLY,  /* libcurl has it. */
};

struct slot {
    enum slot_state state;
    uint64_t at_ms;
    size_t entry;
    struct transfer t;
};

struct run {
    const struct args *args;
    const struct manifest *m;
    struct urls *urls;
    const struct part_root *root;
    CURLM *multi;
    int signal_fd;
    struct slot *slots; /* SLOTS_MAX */
    unsigned n_used, n_busy; /* Not FREE; STEP and FLY. */
    size_t next, n;  /* Items that were begun, and all. */
    size_t url_entry; /* --check: the entry of the next URL. */
    uint64_t rng;

    size_t n_done, n_fetched, n_failed;
    uint64_t bytes, fetched; /* Of the done. */
    uint64_t n_arrived, seen_arrived, alive_ms;
    bool *good;      /* --check: entries with a URL that has them. */
    bool saw[3];     /* DATA, NODATA, RESOURCE. */
    int signo;
    struct err fatal; /* code 0: none. */
    struct show show;
};

/* Monotonic. */
uint64_t run_now(void);

/* run_slot.c: one file from its first byte on disk to its end. */
void slot_move(struct run *r, struct slot *s, enum slot_state to);
void slot_free(struct run *r, struct slot *s);
/* Nothing can go on: `e` ends the run. */
void slot_fatal(struct run *r, struct slot *s, const struct err *e);
/* Start an attempt, or wait for its time. */
void slot_go(struct run *r, struct slot *s);
/* A step of hashing. */
void slot_step(struct run *r, struct slot *s);
/* libcurl is done with it. */
void slot_landed(struct run *r, struct slot *s, CURLcode code);

#endif
