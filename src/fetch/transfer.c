/* transfer: see transfer.h. */
#include "fetch/transfer.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES (256L << 10) /* What libcurl hands over at most. */
#define SLOW_BYTES 1024L          /* A second; less is a stall. */
#define REDIRECTS_MAX 10L

static void refuse(struct transfer *t, enum item_outcome outcome)
{
    t->refused = true;
    t->outcome = outcome;
}

static void judge(struct transfer *t, const char *data, size_t n)
{
    enum item_outcome o;

    t->judged = true;
    o = t->args->check
            ? answer_judge_head(&t->answer, &t->want, t->why)
            : answer_judge(&t->answer, &t->want, data, n, &t->from_start,
                           t->why);
    if (o != ITEM_DONE)
        refuse(t, o);
    else if (t->from_start && t->part.size > 0 &&
             part_restart(&t->part, &t->disk) != 0)
        refuse(t, ITEM_AGAIN);
}

static size_t on_head(char *data, size_t one, size_t n, void *ctx)
{
    struct transfer *t = ctx;

    (void)one;
    answer_header(&t->answer, data, n);
    return n;
}

/* A short count ends the transfer. */
static size_t on_data(char *data, size_t one, size_t n, void *ctx)
{
    struct transfer *t = ctx;

    (void)one;
    *t->n_arrived += n;
    if (!t->judged)
        judge(t, data, n);
    if (t->refused)
        return 0;
    if (n > t->want.size - t->part.size) {
        (void)snprintf(t->why, sizeof t->why, "more than the %" PRIu64
                       " byte%s of the manifest come", t->entry->size,
                       text_plural(t->entry->size));
        refuse(t, ITEM_NO_DATA);
        return 0;
    }
    t->wrote = true;
    if (part_write(&t->part, data, n, &t->disk) != 0) {
        refuse(t, ITEM_AGAIN);
        return 0;
    }
    return n;
}

/* The same variables as the curl program has. */
static void set_certificates(CURL *c)
{
    const char *bundle = getenv("CURL_CA_BUNDLE");
    const char *file = getenv("SSL_CERT_FILE"), *dir = getenv("SSL_CERT_DIR");

    if (bundle && *bundle) {
        (void)curl_easy_setopt(c, CURLOPT_CAINFO, bundle);
        return;
    }
    if (file && *file)
        (void)curl_easy_setopt(c, CURLOPT_CAINFO, file);
    if (dir && *dir)
        (void)curl_easy_setopt(c, CURLOPT_CAPATH, dir);
}

static void set_limits(CURL *c, const struct args *a)
{
    (void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)a->connect_ms);
    (void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES);
    (void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME,
                           (long)((a->stall_ms + 999) / 1000));
    (void)curl_easy_setopt(c, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    (void)curl_easy_setopt(c, CURLOPT_MAXREDIRS, REDIRECTS_MAX);
    (void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR,
                           "http,https,ftp,ftps,file");
    /* A server must not point at files of this machine. */
    (void)curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
}

static void set_up(struct transfer *t, CURL *c)
{
    (void)curl_easy_setopt(c, CURLOPT_PRIVATE, t);
    (void)curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->curl_text);
    (void)curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_head);
    (void)curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
    (void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
    (void)curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
    (void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(c, CURLOPT_NOPROGRESS, 1L);
    (void)curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
    (void)curl_easy_setopt(c, CURLOPT_USERAGENT, "agent-fetch/" AGENT_VERSION);
    (void)curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    if (t->args->netrc)
        (void)curl_easy_setopt(c, CURLOPT_NETRC_FILE, t->args->netrc);
    /* The head of a proxy's CONNECT is none of the server's. */
    (void)curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (t->args->check)
        (void)curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    set_certificates(c);
    set_limits(c, t->args);
}

int transfer_start(struct transfer *t, struct err *e)
{
    const struct item_url *u = &t->it->urls[t->it->url];
    char range[32];

    if (!t->easy)
        t->easy = curl_easy_init();
    if (!t->easy)
        return err_set(e, ERR_RESOURCE, "no memory left for a transfer");
    if (u->no_range && t->part.size > 0 && part_restart(&t->part, e) != 0)
        return -e->code;
    memset(&t->answer, 0, sizeof t->answer);
    t->judged = t->refused = t->from_start = t->wrote = false;
    t->why[0] = t->curl_text[0] = '\0';
    t->want = (struct answer_want){.path = t->entry->path,
                                   .size = part_want(t->entry),
                                   .offset = t->part.size};
    curl_easy_reset(t->easy);
    set_up(t, t->easy);
    (void)snprintf(range, sizeof range, "%" PRIu64 "-", t->part.size);
    if (curl_easy_setopt(t->easy, CURLOPT_URL, u->url) != CURLE_OK ||
        (t->part.size > 0 &&
         curl_easy_setopt(t->easy, CURLOPT_RANGE, range) != CURLE_OK))
        return err_set(e, ERR_RESOURCE, "no memory left for a transfer");
    return 0;
}

/* Faults of libcurl that no later attempt changes. */
static enum item_outcome outcome_of(CURLcode code)
{
    switch ((int)code) {
    case CURLE_REMOTE_FILE_NOT_FOUND:
    case CURLE_FILE_COULDNT_READ_FILE:
    case CURLE_REMOTE_ACCESS_DENIED:
    case CURLE_LOGIN_DENIED:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return ITEM_NO_FILE;
    case CURLE_RANGE_ERROR:
    case CURLE_BAD_DOWNLOAD_RESUME:
        return ITEM_NO_RANGE;
    default:
        return ITEM_AGAIN;
    }
}

static enum item_outcome outcome_of_all(struct transfer *t, CURLcode code)
{
    if (t->refused)
        return t->outcome;
    if (code != CURLE_OK) {
        (void)text_copy(t->why, sizeof t->why,
                        t->curl_text[0] ? t->curl_text
                                        : curl_easy_strerror(code));
        return outcome_of(code);
    }
    if (!t->judged) /* Nothing but a head came. */
        judge(t, NULL, 0);
    if (t->refused)
        return t->outcome;
    if (t->args->check || t->want.size == ANSWER_ANY_SIZE ||
        t->part.size == t->want.size)
        return ITEM_DONE;
    t->want.offset = t->part.size;
    return answer_judge_end(&t->answer, &t->want, t->why);
}

void transfer_ended(struct transfer *t, CURLcode code,
                    struct item_result *ret)
{
    *ret = (struct item_result){.outcome = outcome_of_all(t, code)};
    /* Bytes of another file would spoil what other URLs have. */
    if (ret->outcome == ITEM_NO_DATA && t->wrote && !t->disk.code)
        (void)part_restart(&t->part, &t->disk);
    ret->offset = t->part.size;
    if (t->answer.status >= 400)
        ret->retry_after_ms = t->answer.retry_after_ms;
}

void transfer_free(struct transfer *t)
{
    if (t->easy)
        curl_easy_cleanup(t->easy);
    t->easy = NULL;
    part_close(&t->part);
}
