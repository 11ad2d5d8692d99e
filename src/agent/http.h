/* http: the little of HTTP that agent speaks: one GET or HEAD for a connection,
 * one answer, close. So is what `agent status` and agent say to each other.
 *
 * Pure. Nothing is kept of a request but the page that was asked for. */
#ifndef AGENT_HTTP_H
#define AGENT_HTTP_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

#define HTTP_HEAD_MAX 4096  /* Of a request; more is 431. */
#define HTTP_REPLY_HEAD_MAX 512
#define HTTP_LOCAL_CONNS 16u /* At once, at the unix socket; */
#define HTTP_CONNS 64u      /* at --http. */

/* X(name, path, content type): what can be asked for. */
#define HTTP_PAGES(X)                                                          \
    X(HEALTHZ, "/healthz", "text/plain; charset=utf-8")                        \
    X(READYZ, "/readyz", "text/plain; charset=utf-8")                          \
    X(STATUS, "/status", "application/json")                                   \
    X(STATUS_TEXT, "/status.txt", "text/plain; charset=utf-8")

enum http_page {
    HTTP_NONE, /* An error is answered. */
#define X(name, path, type) HTTP_##name,
    HTTP_PAGES(X)
#undef X
};

struct http_request {
    enum http_page page;
    bool is_head; /* The answer has no body. */
};

struct http_reply { /* What `agent status` got. */
    int status;
    const char *body; /* Borrowed. */
    size_t len;
};

/* How many of the `len` bytes are the request's head, its empty line included;
 * 0: more must come. The first `searched` bytes were looked at before. */
size_t http_head_len(const char *buf, size_t len, size_t searched);

/* Read a whole head. Returns the answer's status: 200 with *ret set; 400 is no
 * request, 404 no such page, 405 neither GET nor HEAD, 505 no HTTP/1.x. In
 * errors, too, ret->is_head is right. */
int http_parse(const char *head, size_t len, struct http_request *ret);

/* The head of an answer; `len` is the length of the body that a GET gets. */
void http_answer(struct text *t, int status, enum http_page page, size_t len);

/* What an error's body says, with a newline. */
const char *http_error_text(int status);

/* Read an answer of agent's own, whole. False where it is none, or cut. */
bool http_read_reply(const char *buf, size_t len, struct http_reply *ret);

#endif
