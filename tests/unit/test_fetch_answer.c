/* Tests of fetch/answer: what an answer is worth. */
#include "fetch/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Lines of a head with "|" between them. */
static struct answer head_of(const char *lines)
{
    struct answer a = {0};

    while (*lines) {
        size_t len = strcspn(lines, "|");

        answer_header(&a, lines, len);
        lines += len + (lines[len] == '|');
    }
    return a;
}

static void test_answers(void **state)
{
    static const struct {
        const char *head, *first;
        uint64_t offset;
        enum item_outcome want;
        bool from_start;
        const char *text; /* Part of it. */
    } cases[] = {
        {"HTTP/1.1 200 OK|Content-Length: 100\r\n", "x", 0, ITEM_DONE, true,
         ""},
        {"HTTP/2 200|content-length:100", "x", 0, ITEM_DONE, true, ""},
        {"HTTP/1.1 200 OK", "x", 0, ITEM_DONE, true, ""},
        {"HTTP/1.1 200 OK|Content-Length: 100", "<html>", 0, ITEM_DONE, true,
         ""}, /* Of the right size: the hash decides. */
        {"", "x", 0, ITEM_DONE, true, ""}, /* file:// */
        {"Content-Length: 100", "x", 40, ITEM_DONE, false, ""},
        {"Content-Length: 60", "x", 40, ITEM_DONE, false, ""},
        {"Content-Length: 99", "x", 0, ITEM_NO_DATA, false, "99 bytes, 100"},
        /* Ranges. */
        {"HTTP/1.1 206 x|Content-Range: bytes 40-99/100|Content-Length: 60",
         "x", 40, ITEM_DONE, false, ""},
        {"HTTP/1.1 206 x|Content-Range: bytes 40-99/*", "x", 40, ITEM_DONE,
         false, ""},
        {"HTTP/1.1 200 OK|Content-Length: 100", "x", 40, ITEM_DONE, true, ""},
        {"HTTP/1.1 206 x|Content-Range: bytes 41-99/100", "x", 40,
         ITEM_NO_RANGE, false, "from 40"},
        {"HTTP/1.1 206 x", "x", 40, ITEM_NO_RANGE, false, ""},
        {"HTTP/1.1 206 x|Content-Range: lines 40-99/100", "x", 40,
         ITEM_NO_RANGE, false, ""},
        {"HTTP/1.1 206 x|Content-Range: bytes 40-69/100|Content-Length: 30",
         "x", 40, ITEM_NO_RANGE, false, "from 40"}, /* Ends early. */
        {"HTTP/1.1 206 x|Content-Range: bytes 40-69/*", "x", 40,
         ITEM_NO_RANGE, false, "from 40"},
        {"HTTP/1.1 206 x|Content-Range: bytes 40-99/120", "x", 40,
         ITEM_NO_DATA, false, "the file there has 120 bytes"},
        {"HTTP/1.1 416 x|Content-Range: bytes */30", "", 40, ITEM_NO_RANGE,
         false, "416"},
        /* What is not the file. */
        {"HTTP/1.1 200 OK|Content-Length: 7", "<HTML>x", 0, ITEM_NO_DATA,
         true, "7 bytes, 100 are wanted: it is an HTML page; it begins: <HTM"},
        {"HTTP/1.1 200 OK", " \n<!DOCTYPE HTML>", 0, ITEM_NO_DATA, true,
         "an HTML page came instead of the file"},
        {"HTTP/1.1 200 OK", "version https://git-lfs.github.com/spec/v1\n", 0,
         ITEM_NO_DATA, true, "a Git LFS pointer came"},
        {"HTTP/1.1 200 OK|Content-Length: 60", "x", 40, ITEM_NO_DATA, true,
         "60 bytes, 100"},
        {"HTTP/1.1 200 OK|Content-Encoding: gzip|Content-Length: 9", "x", 0,
         ITEM_NO_DATA, true, "compressed"},
        /* Status. */
        {"HTTP/1.1 404 no", "<p>\x1b[31m", 0, ITEM_NO_FILE, false,
         "HTTP status 404; it begins: <p>?[31m"},
        {"HTTP/1.1 401 no", "", 0, ITEM_NO_FILE, false, "netrc"},
        {"HTTP/1.1 407 no", "", 0, ITEM_NO_FILE, false, "proxy"},
        {"HTTP/1.1 408 no", "", 0, ITEM_AGAIN, false, "408"},
        {"HTTP/1.1 429 no", "", 0, ITEM_AGAIN, false, "429"},
        {"HTTP/1.1 500 no", "", 0, ITEM_AGAIN, false, "500"},
        {"HTTP/1.1 503 no", "", 0, ITEM_AGAIN, false, "503"},
        {"HTTP/1.1 204 no", "", 0, ITEM_NO_FILE, false, "204"},
        /* The last head counts. */
        {"HTTP/1.1 302 x|Content-Length: 7|HTTP/1.1 200 OK", "x", 0, ITEM_DONE,
         true, ""},
        {"HTTP/garbage", "x", 0, ITEM_NO_FILE, false, "status 0"},
    };
    char text[ANSWER_TEXT_MAX];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct answer a = head_of(cases[i].head);
        struct answer_want want = {"f.bin", 100, cases[i].offset};
        bool from_start = false;
        enum item_outcome o = answer_judge(&a, &want, cases[i].first,
                                           strlen(cases[i].first),
                                           &from_start, text);

        if (o != cases[i].want || !strstr(text, cases[i].text))
            fail_msg("%s: %d, %s", cases[i].head, (int)o, text);
        if (o == ITEM_DONE)
            assert_int_equal(from_start, cases[i].from_start);
    }
}

static void test_a_page_that_is_wanted(void **state)
{
    struct answer a = head_of("HTTP/1.1 200 OK|Content-Type: text/html");
    struct answer_want want = {"doc/index.HTML", 100, 0};
    char text[ANSWER_TEXT_MAX];
    bool from_start;

    (void)state;
    assert_int_equal(answer_judge(&a, &want, "<html>", 6, &from_start, text),
                     ITEM_DONE);
}

static void test_without_a_size(void **state)
{
    static const struct {
        const char *head, *first;
        enum item_outcome want;
    } cases[] = {
        {"HTTP/1.1 200 OK|Content-Length: 7", "x", ITEM_DONE},
        {"HTTP/1.1 200 OK|Content-Length: 7", "<html>", ITEM_NO_DATA},
        {"HTTP/1.1 206 x|Content-Range: bytes 40-119/120", "x", ITEM_DONE},
        {"HTTP/1.1 206 x|Content-Range: bytes 40-99/*", "x", ITEM_DONE},
        {"HTTP/1.1 206 x|Content-Range: bytes 40-99/120", "x",
         ITEM_NO_RANGE},
        {"HTTP/1.1 206 x|Content-Range: bytes 41-99/120", "x", ITEM_NO_RANGE},
    };
    char text[ANSWER_TEXT_MAX];
    bool from_start;

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct answer a = head_of(cases[i].head);
        struct answer_want want = {"f", ANSWER_ANY_SIZE, i < 2 ? 0 : 40};

        assert_int_equal(answer_judge(&a, &want, cases[i].first,
                                      strlen(cases[i].first), &from_start,
                                      text), cases[i].want);
    }
}

static void test_heads(void **state)
{
    static const struct {
        const char *head;
        enum item_outcome want;
        const char *text;
    } cases[] = {
        {"HTTP/1.1 200 OK|Content-Length: 100", ITEM_DONE, ""},
        {"HTTP/1.1 200 OK", ITEM_DONE, ""}, /* It does not say. */
        {"HTTP/1.1 200 OK|Content-Length: 5|Content-Type: text/html; x",
         ITEM_NO_DATA, "an HTML page"},
        {"Content-Length: 100", ITEM_DONE, ""},
        {"Content-Length: 101", ITEM_NO_DATA, "101 bytes"},
        {"HTTP/1.1 404 x", ITEM_NO_FILE, "404"},
        {"HTTP/1.1 405 x", ITEM_NO_FILE, "no HEAD"},
        {"HTTP/1.1 501 x", ITEM_NO_FILE, "no HEAD"},
        {"HTTP/1.1 502 x", ITEM_AGAIN, "502"},
    };
    struct answer_want want = {"f", 100, 0};
    char text[ANSWER_TEXT_MAX];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct answer a = head_of(cases[i].head);

        assert_int_equal(answer_judge_head(&a, &want, text), cases[i].want);
        assert_non_null(strstr(text, cases[i].text));
    }
}

/* A marked end that is too early is another file; any other a cut. */
static void test_ends(void **state)
{
    struct answer chunked = head_of("HTTP/1.1 200 OK|Transfer-Encoding: "
                                    "chunked");
    struct answer plain = head_of("HTTP/1.0 200 OK"), file = {0};
    struct answer_want want = {"f", 100, 60};
    char text[ANSWER_TEXT_MAX];

    (void)state;
    assert_int_equal(answer_judge_end(&chunked, &want, text), ITEM_NO_DATA);
    assert_int_equal(answer_judge_end(&file, &want, text), ITEM_NO_DATA);
    assert_int_equal(answer_judge_end(&plain, &want, text), ITEM_AGAIN);
    assert_string_equal(text, "it ends after 60 of 100 bytes");
}

static void test_retry_after(void **state)
{
    (void)state;
    assert_int_equal(head_of("HTTP/1.1 503 x|Retry-After: 7").retry_after_ms,
                     7000);
    assert_int_equal(head_of("HTTP/1.1 503 x|Retry-After: 99999999999999999999")
                         .retry_after_ms, 0);
    assert_int_equal(head_of("HTTP/1.1 503 x|Retry-After: Fri, 1 Jan")
                         .retry_after_ms, 0);
}

static void test_shown_urls(void **state)
{
    static const char *const cases[][2] = {
        {"https://h/a/b", "https://h/a/b"},
        {"https://u:p@h:8/a?sig=x#y", "https://h:8/a?..."},
        {"http://u:p@x@h/a@b", "http://h/a@b"},
        {"file:///a/b", "file:///a/b"},
        {"http://h?x=http://u:p@h", "http://h?..."},
    };
    char buf[ANSWER_URL_MAX], longest[400] = "http://user:pw@h/";

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(answer_show_url(buf, cases[i][0]), cases[i][1]);
    memset(longest + 17, 'a', sizeof longest - 18);
    assert_true(strlen(answer_show_url(buf, longest)) < sizeof buf);
    assert_string_equal(buf + strlen(buf) - 3, "...");
}

/* Heads of any bytes. */
static void test_random_heads(void **state)
{
    uint64_t r = 88172645463325252u;
    struct answer_want want = {"f", 100, 40};
    char line[600], text[ANSWER_TEXT_MAX];
    bool from_start;

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        static const char *const begin[] = {"HTTP/", "Content-Range: bytes ",
                                            "Content-Length: ", "", "Retry-"};
        struct answer a = {0};
        size_t n = (size_t)snprintf(line, 100, "%s", begin[r % 5]), len;

        for (len = n + r % 500; n < len; n++) {
            r ^= r << 13, r ^= r >> 7, r ^= r << 17;
            line[n] = r & 64 ? "0123456789-/* :"[r % 15] : (char)(r >> 8);
        }
        answer_header(&a, line, len);
        (void)answer_judge(&a, &want, line, len, &from_start, text);
        assert_true(strlen(text) < sizeof text);
        assert_null(strpbrk(text, "\r\n\x1b"));
        r++;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_a_page_that_is_wanted),
        cmocka_unit_test(test_without_a_size),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_shown_urls),
        cmocka_unit_test(test_random_heads),
    };

    return cmocka_run_group_tests_name("fetch_answer", tests, NULL, NULL);
}
