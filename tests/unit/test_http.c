/* http: requests that are whole, cut, too long, or none at all. */
#include "agent/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *text;
    int status; /* 0: not whole. */
    enum http_page page;
    bool is_head;
} corpus[] = {
    {"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", 200, HTTP_HEALTHZ, false},
    {"GET /readyz HTTP/1.0\r\n\r\n", 200, HTTP_READYZ, false},
    {"HEAD /status HTTP/1.1\r\nHost: a\r\n\r\n", 200, HTTP_STATUS, true},
    {"GET /status.txt HTTP/1.1\n\n", 200, HTTP_STATUS_TEXT, false},
    {"GET /status?pretty=1&b HTTP/1.1\r\n\r\n", 200, HTTP_STATUS, false},
    {"GET http://10.0.0.1:80/status HTTP/1.1\r\n\r\n", 200, HTTP_STATUS,
     false},
    {"GET /healthz HTTP/1.1\r\nHost: 10.0.0.7:8080\r\nUser-Agent: "
     "kube-probe/1.31\r\nAccept: */*\r\nConnection: close\r\n\r\n", 200,
     HTTP_HEALTHZ, false},
    {"GET /healthz HTTP/1.1\r\nX-Empty:\r\nX-Tab:\ta\r\nX-8: \xc3\xa4\r\n\r\n",
     200, HTTP_HEALTHZ, false},
    {"GET /healthz HTTP/1.1\r\n\r\nGET /status HTTP/1.1\r\n\r\n", 200,
     HTTP_HEALTHZ, false},
    {"GET /healthz HTTP/1.9\r\n\r\n", 200, HTTP_HEALTHZ, false},
    {"GET / HTTP/1.1\r\n\r\n", 404, HTTP_NONE, false},
    {"HEAD /none HTTP/1.1\r\n\r\n", 404, HTTP_NONE, true},
    {"GET /status/ HTTP/1.1\r\n\r\n", 404, HTTP_NONE, false},
    {"GET /STATUS HTTP/1.1\r\n\r\n", 404, HTTP_NONE, false},
    {"GET /%73tatus HTTP/1.1\r\n\r\n", 404, HTTP_NONE, false},
    {"GET /../healthz HTTP/1.1\r\n\r\n", 404, HTTP_NONE, false},
    {"GET /healthz/../status HTTP/1.1\r\n\r\n", 404, HTTP_NONE, false},
    {"GET ?/status HTTP/1.1\r\n\r\n", 400, HTTP_NONE, false},
    {"POST /status HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405, HTTP_NONE,
     false},
    {"get /status HTTP/1.1\r\n\r\n", 405, HTTP_NONE, false},
    {"OPTIONS * HTTP/1.1\r\n\r\n", 405, HTTP_NONE, false},
    {"GETT /status HTTP/1.1\r\n\r\n", 405, HTTP_NONE, false},
    {"GET /status HTTP/2.0\r\n\r\n", 505, HTTP_NONE, false},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, HTTP_NONE, false},
    {"GET /status\r\n\r\n", 400, HTTP_NONE, false},
    {"GET  /status HTTP/1.1\r\n\r\n", 400, HTTP_NONE, false},
    {"GET /status  HTTP/1.1\r\n\r\n", 400, HTTP_NONE, false},
    {"GET /status HTTP/1.1 \r\n\r\n", 400, HTTP_NONE, false},
    {"GET /status HTTP/1.12\r\n\r\n", 400, HTTP_NONE, false},
    {"GET /status HTTP/11\r\n\r\n", 400, HTTP_NONE, false},
    {"GET /status http/1.1\r\n\r\n", 400, HTTP_NONE, false},
    {"GET status HTTP/1.1\r\n\r\n", 400, HTTP_NONE, false},
    {"GET http://nohost HTTP/1.1\r\n\r\n", 400, HTTP_NONE, false},
    {"GET https://a/status HTTP/1.1\r\n\r\n", 400, HTTP_NONE, false},
    {"GET /sta\ttus HTTP/1.1\r\n\r\n", 400, HTTP_NONE, false},
    {"GET /\xc3\xa4 HTTP/1.1\r\n\r\n", 400, HTTP_NONE, false},
    {" GET /status HTTP/1.1\r\n\r\n", 400, HTTP_NONE, false},
    {"\r\nGET /status HTTP/1.1\r\n\r\n", 400, HTTP_NONE, false},
    {"GET /status HTTP/1.1\r\nno field\r\n\r\n", 400, HTTP_NONE, false},
    {"GET /status HTTP/1.1\r\n: x\r\n\r\n", 400, HTTP_NONE, false},
    {"GET /status HTTP/1.1\r\nA : x\r\n\r\n", 400, HTTP_NONE, false},
    {"GET /status HTTP/1.1\r\nA: x\r\n folded\r\n\r\n", 400, HTTP_NONE, false},
    {"GET /status HTTP/1.1\r\nA: \001\r\n\r\n", 400, HTTP_NONE, false},
    {"\r\n\r\n", 400, HTTP_NONE, false},
    {"\n\n", 400, HTTP_NONE, false},
    {"\x16\x03\x01\x02\n\n", 400, HTTP_NONE, false},
    {"GET /status HTTP/1.1\r\n", 0, HTTP_NONE, false},
    {"GET /status HTTP/1.1\r\n\r", 0, HTTP_NONE, false},
    {"GET /status HTTP/1.1\r\nHost: a\r\n", 0, HTTP_NONE, false},
    {"GET /status HTTP/1.1\n \n", 0, HTTP_NONE, false},
    {"GET /status HTTP/1.1\r\r\n", 0, HTTP_NONE, false},
    {"", 0, HTTP_NONE, false},
};
#define N_CORPUS (sizeof corpus / sizeof corpus[0])

/* The text lies at the end of a block of its own, so that reading beyond it is
 * found by the sanitizers. */
static int ask(const char *text, size_t len, struct http_request *r)
{
    char *copy = malloc(len ? len : 1);
    size_t head;
    int status = 0;

    assert_non_null(copy);
    memcpy(copy, text, len);
    head = http_head_len(copy, len, 0);
    assert_true(head <= len);
    if (head > 0)
        status = http_parse(copy, head, r);
    free(copy);
    return status;
}

static void test_corpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CORPUS; i++) {
        struct http_request r = {.page = HTTP_NONE};
        int status = ask(corpus[i].text, strlen(corpus[i].text), &r);

        if (status != corpus[i].status || r.page != corpus[i].page ||
            r.is_head != corpus[i].is_head)
            fail_msg("%zu: %d, page %d, head %d: %s", i, status, r.page,
                     r.is_head, corpus[i].text);
    }
}

/* However it is cut into reads, the end is found at the same byte. */
static void test_the_end_is_found_in_any_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CORPUS; i++) {
        const char *s = corpus[i].text;
        size_t len = strlen(s), whole = http_head_len(s, len, 0);

        for (size_t step = 1; step < 8; step++) {
            size_t at = 0, found = 0, before = 0;

            while (!found && at < len) {
                at = at + step < len ? at + step : len;
                found = http_head_len(s, at, before);
                before = at;
            }
            if (found != whole)
                fail_msg("%zu in pieces of %zu: %zu, not %zu", i, step, found,
                         whole);
        }
    }
}

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static bool is_one_of(int status)
{
    return status == 0 || status == 200 || status == 400 || status == 404 ||
           status == 405 || status == 505;
}

/* Requests with bytes changed, taken out and repeated, and mere noise: each is
 * answered by one of the statuses, and a page only with 200. */
static void test_random(void **state)
{
    static const char bytes[] = " /:\r\n\t?%.HTTP1GE\x7f\x80\xff";
    uint32_t seed = 7;

    (void)state;
    for (int round = 0; round < 200000; round++) {
        const char *from = corpus[next(&seed) % N_CORPUS].text;
        struct http_request r = {.page = HTTP_NONE};
        char s[512];
        size_t len = strlen(from);
        int status;

        memcpy(s, from, len);
        for (uint32_t n = next(&seed) % 6; n > 0 && len > 1; n--) {
            size_t at = next(&seed) % len;

            switch (next(&seed) % 4) {
            case 0:
                s[at] = bytes[next(&seed) % (sizeof bytes - 1)];
                break;
            case 1:
                s[at] = (char)next(&seed);
                break;
            case 2:
                memmove(s + at, s + at + 1, --len - at);
                break;
            default:
                memmove(s + at + 1, s + at, len++ - at);
            }
        }
        status = ask(s, len, &r);
        if (!is_one_of(status) || (r.page != HTTP_NONE) != (status == 200))
            fail_msg("round %d: %d, page %d: %.*s", round, status, r.page,
                     (int)len, s);
    }
}

static void test_answers_are_read_again(void **state)
{
    static const int statuses[] = {200, 400, 403, 404, 405, 431, 503, 505};

    (void)state;
    for (unsigned i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        const char *body = http_error_text(statuses[i]);
        char buf[HTTP_REPLY_HEAD_MAX + 256];
        struct http_reply r;
        struct text t;

        text_init(&t, buf, HTTP_REPLY_HEAD_MAX);
        http_answer(&t, statuses[i], HTTP_NONE, strlen(body));
        assert_false(t.cut);
        assert_int_equal(http_head_len(buf, t.len, 0), t.len);
        text_init(&t, buf, sizeof buf);
        http_answer(&t, statuses[i], HTTP_NONE, strlen(body));
        text_add(&t, "%s", body);
        assert_true(http_read_reply(buf, t.len, &r));
        assert_int_equal(r.status, statuses[i]);
        assert_int_equal(r.len, strlen(body));
        assert_memory_equal(r.body, body, r.len);
        /* Cut, it is none. */
        for (size_t n = 0; n < t.len; n++)
            assert_false(http_read_reply(buf, n, &r));
    }
}

static void test_an_answer_says_what_it_is(void **state)
{
    char buf[HTTP_REPLY_HEAD_MAX];
    struct text t;

    (void)state;
    text_init(&t, buf, sizeof buf);
    http_answer(&t, 200, HTTP_STATUS, 7);
    assert_memory_equal(buf, "HTTP/1.1 200 OK\r\n", 17);
    assert_non_null(strstr(buf, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(buf, "\r\nContent-Length: 7\r\n"));
    assert_non_null(strstr(buf, "\r\nConnection: close\r\n"));
    text_init(&t, buf, sizeof buf);
    http_answer(&t, 405, HTTP_NONE, 7);
    assert_non_null(strstr(buf, "\r\nAllow: GET, HEAD\r\n"));
}

static void test_no_answers(void **state)
{
    static const char *const none[] = {
        "", "HTTP/1.1 200 OK\r\n\r\n", "hello\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"};
    struct http_reply r;

    (void)state;
    for (unsigned i = 0; i < sizeof none / sizeof none[0]; i++)
        if (http_read_reply(none[i], strlen(none[i]), &r))
            fail_msg("taken for an answer: %s", none[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corpus),
        cmocka_unit_test(test_the_end_is_found_in_any_pieces),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_answers_are_read_again),
        cmocka_unit_test(test_an_answer_says_what_it_is),
        cmocka_unit_test(test_no_answers),
    };

    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
