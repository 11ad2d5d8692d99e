/* Tests of base/err. */
#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_set_returns_the_negative_class(void **state)
{
    struct err e = {0};

    (void)state;
    assert_int_equal(err_set(&e, ERR_DATA, "'%s' has %d bytes", "a", 5), -65);
    assert_int_equal(e.code, 65);
    assert_string_equal(e.text, "'a' has 5 bytes");
}

static void test_wrap_puts_words_before(void **state)
{
    struct err e = {0};

    (void)state;
    (void)err_set(&e, ERR_NODATA, "no such file");
    assert_int_equal(err_wrap(&e, "open '%s'", "m.json"), -66);
    assert_int_equal(err_wrap(&e, "stage"), -66);
    assert_string_equal(e.text, "stage: open 'm.json': no such file");
}

static void test_the_text_may_be_its_own_argument(void **state)
{
    struct err e = {0};

    (void)state;
    (void)err_set(&e, ERR_DATA, "short");
    (void)err_set(&e, ERR_NODATA, "%s, and %s", e.text, e.text);
    assert_string_equal(e.text, "short, and short");
    (void)err_wrap(&e, "again (%s)", e.text);
    assert_string_equal(e.text, "again (short, and short): short, and short");
}

/* What users gave may have anything in it. */
static void test_one_line_of_utf8(void **state)
{
    struct err e = {0};

    (void)state;
    (void)err_set(&e, ERR_USAGE, "PET_NNODES=%s: use a number",
                  "2\n\t\x1b\xff");
    assert_string_equal(e.text, "PET_NNODES=2????: use a number");
    (void)err_wrap(&e, "%s", "a\nb");
    assert_string_equal(e.text, "a?b: PET_NNODES=2????: use a number");
}

static void test_long_texts_are_cut(void **state)
{
    char longest[ERR_TEXT_MAX + 100];
    struct err e = {0};

    (void)state;
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    (void)err_set(&e, ERR_AGENT, "%s", longest);
    assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
    assert_int_equal(err_wrap(&e, "what"), -125);
    assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
    assert_memory_equal(e.text, "what: xxx", 9);
    (void)err_wrap(&e, "%s", longest);
    assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
    assert_memory_equal(e.text, "xxx", 3);
}

static void test_a_cut_tears_no_character(void **state)
{
    char longest[ERR_TEXT_MAX + 10] = "a";
    struct err e = {0};

    (void)state;
    while (strlen(longest) + 2 < sizeof longest)
        memcpy(longest + strlen(longest), "\xc3\xa9", 3);
    (void)err_set(&e, ERR_AGENT, "%s", longest);
    assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
    (void)err_set(&e, ERR_AGENT, "b%s", longest);
    assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 2);
}

/* interface.md's table of exit codes; a change breaks users' rules. */
static void test_the_table_is_the_promise(void **state)
{
    static const struct {
        int status;
        const char *word;
        bool retry;
    } want[] = {
        {64, "usage", false},     {65, "data", false},
        {66, "nodata", false},    {69, "preflight", false},
        {77, "auth", false},      {78, "mismatch", false},
        {125, "agent", false},    {126, "exec", false},
        {127, "exec", false},     {200, "barrier", true},
        {201, "peer", true},      {202, "resource", true},
        {203, "hang", true},      {204, "preflight-retry", true},
    };
    unsigned n;
    const struct err_row *rows = err_rows(&n);

    (void)state;
    assert_int_equal(n, sizeof want / sizeof want[0]);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(rows[i].status, want[i].status);
        assert_string_equal(rows[i].word, want[i].word);
        assert_int_equal(rows[i].retry, want[i].retry);
        assert_true(rows[i].meaning[0] != '\0' && rows[i].name[0] != '\0');
        assert_ptr_equal(err_row(want[i].status), &rows[i]);
    }
    assert_null(err_row(0));
    assert_null(err_row(1));
    assert_null(err_row(143));
    assert_null(err_row(-64));
}

/* A full disk may have room again, and a name may come to be. */
static void test_what_another_path_mends(void **state)
{
    static const int path[] = {EACCES, EPERM, EROFS,       ENOTDIR,
                               EISDIR, ELOOP, ENAMETOOLONG};
    static const int not_path[] = {0,      ENOENT, ENOSPC, EDQUOT, EIO,
                                   EINTR,  EMFILE, ENOMEM, ESTALE, ETIMEDOUT,
                                   EAGAIN, ETXTBSY};

    (void)state;
    for (unsigned i = 0; i < sizeof path / sizeof path[0]; i++)
        assert_true(err_wants_other_path(path[i]));
    for (unsigned i = 0; i < sizeof not_path / sizeof not_path[0]; i++)
        assert_false(err_wants_other_path(not_path[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_returns_the_negative_class),
        cmocka_unit_test(test_wrap_puts_words_before),
        cmocka_unit_test(test_the_text_may_be_its_own_argument),
        cmocka_unit_test(test_one_line_of_utf8),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_a_cut_tears_no_character),
        cmocka_unit_test(test_the_table_is_the_promise),
        cmocka_unit_test(test_what_another_path_mends),
    };

    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
