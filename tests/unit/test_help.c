/* help: each view is whole, and says what the table says. */
#include "agent/help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/option_table.h"

static struct err e;

/* The caller frees it. */
static char *view_of(const char *view)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    if (help_write(out, view, &e) != 0)
        fail_msg("%s: %s", view, e.text);
    (void)fclose(out);
    assert_int_equal(strlen(text), len);
    assert_true(len > 0 && text[len - 1] == '\n');
    return text;
}

/* `name` in `text`, not as a part of a longer name. */
static bool has_word(const char *text, const char *name)
{
    size_t len = strlen(name);

    for (const char *s = strstr(text, name); s; s = strstr(s + 1, name))
        if (!strchr("-_abcdefghijklmnopqrstuvwxyz", s[len]))
            return true;
    return false;
}

static const struct {
    const char *view, *mark; /* What stands before a name. */
    unsigned commands;       /* Whose options it has. */
} views[] = {
    {"text", "--", OPT_RUN},           {"run", "--", OPT_RUN},
    {"torchrun", "--", OPT_TORCHRUN},
    {"agent env", "--", OPT_RUN | OPT_ENV},
    {"stage", "--", OPT_STAGE},        {"verify", "--", OPT_VERIFY},
    {"manifest", "--", OPT_MANIFEST},
    {"man", "Fl Fl ", OPT_EVERY | OPT_TORCHRUN},
    {"status", "--", OPT_STATUS},
    {"bash", "--", OPT_EVERY | OPT_TORCHRUN},
    {"zsh", "--", OPT_EVERY | OPT_TORCHRUN},
    {"json", "\"name\": \"", OPT_EVERY},
};

static void look_for(const struct opt_table *t)
{
    const struct opt_row *rows = t->rows;

    for (unsigned v = 0; v < sizeof views / sizeof views[0]; v++) {
        char *text = view_of(views[v].view), word[64];

        for (unsigned i = 0; i < t->n; i++) {
            bool is_there;

            (void)snprintf(word, sizeof word, "%s%s", views[v].mark,
                           rows[i].name);
            is_there = has_word(text, word);
            if ((rows[i].commands & views[v].commands) && !is_there)
                fail_msg("%s: no %s", views[v].view, word);
        }
        free(text);
    }
}

static void test_every_option_is_in_each_view(void **state)
{
    (void)state;
    look_for(opt_table_of(opt_find_command("run")));
    look_for(opt_table_of(opt_find_command("torchrun")));
}

static void test_text_is_80_columns_wide(void **state)
{
    static const char *const of[] = {"text", "stage", "verify", "manifest",
                                     "status", "agent env", "torchrun"};

    (void)state;
    for (unsigned v = 0; v < sizeof of / sizeof of[0]; v++) {
        char *text = view_of(of[v]), *save = NULL;

        assert_memory_equal(text, "usage: agent ", 13);
        for (char *l = strtok_r(text, "\n", &save); l;
             l = strtok_r(NULL, "\n", &save))
            if (strlen(l) > 80 || l[strlen(l) - 1] == ' ')
                fail_msg("%s: '%s'", of[v], l);
        free(text);
    }
}

static void test_text_has_defaults_and_commands(void **state)
{
    char *text = view_of("text");

    (void)state;
    assert_non_null(strstr(text, "--grace T                   From TERM to "
                                 "KILL. [25s]\n"));
    assert_non_null(strstr(text, "[[{role}{rank}] ]\n"));
    assert_non_null(strstr(text, "\n  manifest   "));
    free(text);
}

static void test_env_lists_variables(void **state)
{
    char *text = view_of("env");

    (void)state;
    assert_non_null(strstr(text, "AGENT_NPROC=\n"));
    assert_non_null(strstr(text, "AGENT_GRACE=25s\n"));
    assert_non_null(strstr(text, "AGENT_LOG_PREFIX=[{role}{rank}] \n"));
    assert_null(strstr(text, "AGENT_HELP"));
    assert_non_null(strstr(text, "AGENT_HANG_TIMEOUT=\n"));
    free(text);
}

static void test_man_has_its_sections(void **state)
{
    static const char *const sections[] = {
        ".Sh NAME\n", ".Sh SYNOPSIS\n", ".Sh DESCRIPTION\n", ".Sh COMMANDS\n",
        ".Sh OPTIONS\n", ".Sh ENVIRONMENT\n", ".Sh SIGNALS\n", ".Sh FILES\n",
        ".Sh EXIT STATUS\n", ".Sh EXAMPLES\n", ".Sh SEE ALSO\n"};
    char *text = view_of("man"), item[32];
    const char *at = text;
    unsigned n;
    const struct err_row *rows = err_rows(&n);

    (void)state;
    for (unsigned i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        at = strstr(at, sections[i]);
        if (!at)
            fail_msg("no %s, or not there", sections[i]);
    }
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(item, sizeof item, ".It %d Pq ", rows[i].status);
        assert_non_null(strstr(text, item));
    }
    assert_non_null(strstr(text, ".It Fl h , Fl Fl help Ns Op = Ns Ar VIEW\n"));
    free(text);
}

/* Nothing in a JSON string but what may be there; brackets pair. */
static void test_json_is_well_formed(void **state)
{
    char *text = view_of("json");
    int depth = 0;
    bool in_string = false;

    (void)state;
    for (const char *s = text; *s; s++) {
        if (in_string && *s == '\\')
            s++;
        else if (*s == '"')
            in_string = !in_string;
        else if (in_string)
            assert_true((unsigned char)*s >= 0x20);
        else if (*s == '[' || *s == '{')
            depth++;
        else if (*s == ']' || *s == '}')
            depth--;
        assert_true(depth >= 0);
    }
    assert_true(depth == 0 && !in_string);
    assert_non_null(strstr(text, "a worker, or \\\"none\\\""));
    free(text);
}

static void test_faults(void **state)
{
    FILE *out = fopen("/dev/full", "w");

    (void)state;
    assert_non_null(out);
    assert_int_equal(help_write(out, "text", &e), -ERR_RESOURCE);
    (void)fclose(out);
    assert_int_equal(help_write(stderr, "html", &e), -ERR_USAGE);
    assert_non_null(strstr(e.text, "html"));
    assert_int_equal(help_write(stderr, "fetch", &e), -ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_option_is_in_each_view),
        cmocka_unit_test(test_text_is_80_columns_wide),
        cmocka_unit_test(test_text_has_defaults_and_commands),
        cmocka_unit_test(test_env_lists_variables),
        cmocka_unit_test(test_man_has_its_sections),
        cmocka_unit_test(test_json_is_well_formed),
        cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
