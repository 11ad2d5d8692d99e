/* item: one file that is to be fetched: which of its URLs is tried next, and
 * when; when it is given up.
 *
 * Pure: no I/O, no clock, no allocation. Each URL has failures in a row and a
 * time before which it is not tried again; its host has failures in a row over
 * all files. The URL with the fewest of both is next, the first listed of
 * equals: so a mirror that fails is left for one that does not, at once, and
 * there is no wait while another one may be tried. */
#ifndef FETCH_ITEM_H
#define FETCH_ITEM_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define ITEM_BACKOFF_MIN_MS 500
#define ITEM_BACKOFF_MAX_MS 60000
#define ITEM_RETRY_AFTER_MAX_MS 120000 /* What a server may ask for. */
#define ITEM_PROGRESS_MIN (64u << 10)  /* An attempt that got on so far. */
#define ITEM_MISMATCHES_MAX 2          /* Of one URL. */

struct item_host {
    const char *name; /* "https://host:port"; borrowed. */
    unsigned failures; /* In a row, over all files. */
};

struct item_url {
    const char *url; /* Borrowed. */
    uint32_t host;   /* Index. */
    uint16_t failures, mismatches;
    bool dead;
    bool no_range; /* Answers to ranges were wrong: from the start, always. */
    uint64_t ready_ms;
};

struct item {
    struct item_url *urls; /* Borrowed. */
    unsigned n_urls;
    unsigned url;          /* That was tried last. */
    uint64_t furthest;     /* Bytes, in any attempt. */
    bool saw_data, saw_resource; /* Why URLs died; neither: no such file. */
};

enum item_outcome {
    ITEM_DONE,     /* The whole file is there, and right. */
    ITEM_AGAIN,    /* A fault that may pass. */
    ITEM_NO_FILE,  /* It is not at this URL. */
    ITEM_NO_DATA,  /* What is at this URL is not the file. */
    ITEM_MISMATCH, /* All bytes came, and the hash is another. */
    ITEM_NO_RANGE, /* The range was answered wrongly. */
};

struct item_result {
    enum item_outcome outcome;
    uint64_t offset;      /* Bytes that are there now. */
    uint64_t retry_after_ms; /* AGAIN: as the server asks; 0: it does not. */
};

/* The next URL, in it->url. Returns 0 to try it now, the time from which on to
 * ask again, or UINT64_MAX: none is left. */
uint64_t item_next(struct item *it, const struct item_host *hosts,
                   uint64_t now_ms);

/* How the attempt at it->url ended; `retries` failures in a row are borne.
 * `random` spreads the back-off. */
void item_ended(struct item *it, struct item_host *hosts,
                const struct item_result *r, unsigned retries, uint64_t random,
                uint64_t now_ms);

/* The class of a file that no URL gives. */
enum err_class item_class(const struct item *it);

#endif
