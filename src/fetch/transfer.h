/* transfer: one attempt at one URL, by libcurl: the answer is judged as it
 * comes, and what is good of it goes to the part.
 *
 * Happy path: transfer_start, head, first bytes (judged), bytes to the part,
 * transfer_ended: ITEM_DONE. Failures: libcurl's (no host, cut, too slow, a
 * certificate), the server's (a status, a page, another size), the disk's
 * (`disk` is set, and no other URL will help). */
#ifndef FETCH_TRANSFER_H
#define FETCH_TRANSFER_H

#include "fetch/answer.h"
#include "fetch/args.h"
#include "fetch/item.h"
#include "fetch/part.h"

#include <curl/curl.h>

struct transfer {
    /* Set by whoever uses it: */
    const struct args *args;
    const struct manifest_entry *entry;
    struct item *it;
    struct part part;    /* Not with --check. */
    uint64_t *n_arrived; /* Bytes of all transfers; added to. */

    CURL *easy;          /* Kept from one attempt to the next. */
    struct answer answer;
    struct answer_want want;
    bool judged, refused, from_start, wrote;
    enum item_outcome outcome; /* Where refused. */
    char why[ERR_TEXT_MAX];
    struct err disk; /* code 0: none. */
    char curl_text[CURL_ERROR_SIZE];
};

/* Set up t->easy for it->url, from t->part.size on. ERR_RESOURCE without
 * memory. */
int transfer_start(struct transfer *t, struct err *e);

/* libcurl is done with it. t->why says what was wrong, t->disk.code is set
 * where it is this machine. All bytes: DONE, though not verified yet. */
void transfer_ended(struct transfer *t, CURLcode code,
                    struct item_result *ret);

void transfer_free(struct transfer *t);

#endif
