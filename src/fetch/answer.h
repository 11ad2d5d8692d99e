/* answer: what a server's answer is worth, from its head and its first bytes,
 * before anything of it is kept.
 *
 * Pure. */
#ifndef FETCH_ANSWER_H
#define FETCH_ANSWER_H

#include "fetch/item.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ANSWER_TEXT_MAX 400
#define ANSWER_TYPE_MAX 64
#define ANSWER_ANY_SIZE UINT64_MAX

struct answer { /* All zero at the start of each head. */
    bool is_http;
    unsigned status;             /* HTTP. */
    bool has_length, has_range, is_chunked, is_encoded;
    uint64_t length;             /* Content-Length. */
    uint64_t range_from, range_to; /* Content-Range. */
    uint64_t range_total;        /* 0: not told. */
    uint64_t retry_after_ms;
    char type[ANSWER_TYPE_MAX];  /* Content-Type. */
};

/* One line of the head, with or without its end. A status line starts a new
 * head (after a redirect, say). */
void answer_header(struct answer *a, const char *line, size_t len);

struct answer_want {
    const char *path; /* Of the manifest. */
    uint64_t size;    /* ANSWER_ANY_SIZE: not known. */
    uint64_t offset;  /* > 0: a range from there on. */
};

/* Judge the answer by its head, and where `n` > 0 by its first bytes. ITEM_DONE
 * where it may be what is wanted; *ret_from_start: all of it and not the
 * range. Else what to make of it, and `text` says why. */
enum item_outcome answer_judge(const struct answer *a,
                               const struct answer_want *want,
                               const char *first, size_t n,
                               bool *ret_from_start,
                               char text[ANSWER_TEXT_MAX]);

/* The same for the answer to HEAD. */
enum item_outcome answer_judge_head(const struct answer *a,
                                    const struct answer_want *want,
                                    char text[ANSWER_TEXT_MAX]);

/* All that was sent has come, and it ends at `offset`: too early. */
enum item_outcome answer_judge_end(const struct answer *a,
                                   const struct answer_want *want,
                                   char text[ANSWER_TEXT_MAX]);

/* A URL for a message: without what may be secret in it (user, password,
 * query), on one line, cut. */
#define ANSWER_URL_MAX 160
const char *answer_show_url(char buf[ANSWER_URL_MAX], const char *url);

#endif
