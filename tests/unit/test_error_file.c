/* error_file: both forms, older writers, and whatever else lies there. */
#include "supervise/error_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STACK                                                                  \
    "Traceback (most recent call last):\\n  File \\\"/app/train.py\\\", "      \
    "line 12, in main\\n    loss(x)\\n  File \\\"/usr/lib/python3/"            \
    "dist-packages/torch/x.py\\\", line 9, in g\\n    raise V()\\n"            \
    "ValueError: nan\\n"

static const struct {
    const char *json, *want; /* "": nothing that can be used. */
} cases[] = {
    {"{\"message\": {\"message\": \"ValueError: nan\", \"extraInfo\": "
     "{\"py_callstack\": \"" STACK "\", \"timestamp\": \"17\"}}}",
     "ValueError: nan\n  File \"/app/train.py\", line 12, in main\n"
     "    loss(x)\n  File \"/usr/lib/python3/dist-packages/torch/x.py\", line "
     "9, in g\n    raise V()"},
    {"{\"message\": {\"extraInfo\": {\"py_callstack\": [\"T:\\n\", \"  File "
     "\\\"a.py\\\", line 1, in f\\n\", \"    g()\\n\"]}, \"message\": \"E: "
     "x\"}}",
     "E: x\n  File \"a.py\", line 1, in f\n    g()"},
    {"{\"message\": \"text\", \"timestamp\": 5}", "text"},
    {" {\"a\": [1, {\"message\": \"no\"}], \"message\" : \"yes\"} ", "yes"},
    {"{\"message\": {\"message\": \"cut o", "cut o"},
    {"{\"message\": {\"message\": \"E\", \"extraInfo\": {\"py_callsta", "E"},
    {("{\"message\": \"tab\\tnl\\nq\\\" \\u00fc \\ud83d\\ude00 "
      "\\ud800!\\u0000\"}"),
     "tab\tnl\nq\" \xc3\xbc \xf0\x9f\x98\x80 ?!?"},
    {"{\"message\": \"raw \xff\x01 bytes\"}", "raw ?? bytes"},
    {"{\"message\": \"ends\\n\\n\"}", "ends"},
    {"{\"message\": \"bad \\q\"}", "bad "},
    {"{\"message\": {\"message\": \"torch.distributed.elastic."
     "multiprocessing.errors.ChildFailedError: x\"}}", ""},
    {"", ""}, {"{}", ""}, {"[]", ""}, {"null", ""}, {"\"message\"", ""},
    {"{\"message\": \"\"}", ""}, {"{\"message\": 5}", ""},
    {"{message: \"x\"}", ""}, {"Traceback (most", ""},
    {"{\"extraInfo\": {\"message\": \"x\"}}", ""},
};

static void test_forms(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error_file f;
        char out[1024] = "";

        if (error_file_read(cases[i].json, strlen(cases[i].json), &f))
            (void)error_file_text(&f, out, sizeof out);
        if (strcmp(out, cases[i].want) != 0)
            fail_msg("%s: '%s', wanted '%s'", cases[i].json, out,
                     cases[i].want);
    }
}

/* Ten megabytes of stack, of nesting, of a message. */
static void test_huge(void **state)
{
    static const char *const heads[] = {
        ("{\"message\": {\"message\": \"E: x\", \"extraInfo\": "
         "{\"py_callstack\": \""),
        "{\"message\": \"E: x\", \"a\": [[[[",
        "{\"message\": \"",
    };
    static const char fill[] = {'y', '[', 'z'};
    size_t n = 10u << 20;
    char *big = malloc(n);

    (void)state;
    assert_non_null(big);
    for (unsigned i = 0; i < 3; i++) {
        struct error_file f;
        char out[256];
        size_t len;

        memset(big, fill[i], n);
        memcpy(big, heads[i], strlen(heads[i]));
        assert_true(error_file_read(big, n, &f));
        len = error_file_text(&f, out, sizeof out);
        assert_true(len < sizeof out);
        if (i < 2)
            assert_memory_equal(out, "E: x", 4);
        else
            assert_int_equal(len, sizeof out - 1);
    }
    free(big);
}

/* The end of a long stack is kept, not its beginning. */
static void test_long_stack(void **state)
{
    static char json[1 << 16];
    struct error_file f;
    char out[1024];
    size_t n = (size_t)snprintf(json, sizeof json, "{\"message\": {\"message\":"
                                " \"E\", \"extraInfo\": {\"py_callstack\": \"");

    (void)state;
    for (unsigned i = 0; i < 500; i++)
        n += (size_t)snprintf(json + n, sizeof json - n,
                              "  File \\\"f%u.py\\\", line 1, in f\\n    x\\n",
                              i);
    n += (size_t)snprintf(json + n, sizeof json - n, "\"}}}");
    assert_true(error_file_read(json, n, &f));
    (void)error_file_text(&f, out, sizeof out);
    assert_string_equal(out, "E\n  File \"f499.py\", line 1, in f\n    x");
}

static void test_where_a_code_goes(void **state)
{
    static const char inner[] = "{\"message\": {\"message\": \"x\"}}";
    static const char has[] = "{\"message\": {\"message\": \"x\", "
                              "\"errorCode\": 1}}";
    struct error_file f;

    (void)state;
    assert_true(error_file_read(inner, strlen(inner), &f));
    assert_int_equal(f.inner_at, strlen("{\"message\": {"));
    assert_false(f.has_code);
    assert_true(error_file_read(has, strlen(has), &f));
    assert_true(f.has_code);
    assert_true(error_file_read("{\"message\": \"x\"}", 16, &f));
    assert_int_equal(f.inner_at, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_huge),
        cmocka_unit_test(test_long_stack),
        cmocka_unit_test(test_where_a_code_goes),
    };

    return cmocka_run_group_tests_name("error_file", tests, NULL, NULL);
}
