/* token: from a file, from the environment, and what is no token. */
#include "agent/token.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/agent-token-XXXXXX";
static char path[sizeof dir + 8];
static char *no_env[] = {NULL};

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof path, "%s/token", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(dir);
}

static void put(const void *bytes, size_t len, mode_t mode)
{
    int fd;

    (void)unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    assert_int_equal(fchmod(fd, mode), 0);
    (void)close(fd);
}

static void assert_key(const struct auth *a, const void *token, size_t len)
{
    uint8_t seed[AUTH_SEED] = {0};
    struct auth want;

    auth_init(&want, token, len, seed);
    assert_true(a->has_token);
    assert_memory_equal(a->key, want.key, sizeof want.key);
}

static void newlines_at_the_end_do_not_count(void **state)
{
    static const struct {
        const char *bytes;
        size_t len, kept;
    } cases[] = {
        {"a secret of the job", 19, 19}, {"a secret of the job\n", 20, 19},
        {"a secret of the job\r\n", 21, 19}, {"a secret\n\n", 10, 8},
        {" a\nb ", 5, 5}, {"nul\0is a byte", 13, 13},
    };
    struct token_notes notes;
    struct auth a;
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put(cases[i].bytes, cases[i].len, 0600);
        assert_int_equal(token_read(path, no_env, &a, &notes, &e), 0);
        assert_key(&a, cases[i].bytes, cases[i].kept);
        assert_int_equal(notes.is_short, cases[i].kept < TOKEN_SHORT);
        assert_false(notes.is_open);
    }
}

static void refused(const char *file, char *const *envp, int code,
                    const char *words)
{
    struct token_notes notes;
    struct auth a;
    struct err e;

    assert_int_equal(token_read(file, envp, &a, &notes, &e), -code);
    assert_int_equal(e.code, code);
    assert_non_null(strstr(e.text, words));
    assert_false(a.has_token);
}

static void no_tokens(void **state)
{
    static char big[TOKEN_MAX + 2];
    struct token_notes notes;
    char empty[] = "AGENT_TOKEN=", file[] = "AGENT_TOKEN_FILE=";
    char *env[] = {empty, NULL}, *env_file[] = {file, NULL};
    struct auth a;
    struct err e;

    (void)state;
    put("", 0, 0600);
    refused(path, no_env, ERR_USAGE, "empty");
    put("\n", 1, 0600);
    refused(path, no_env, ERR_USAGE, "empty");
    refused(NULL, env, ERR_USAGE, "AGENT_TOKEN: the token is empty");
    refused(NULL, env_file, ERR_USAGE, "AGENT_TOKEN_FILE: it is empty");
    memset(big, 'x', sizeof big);
    put(big, TOKEN_MAX + 1, 0600);
    refused(path, no_env, ERR_USAGE, "longer than 4096 bytes");
    big[TOKEN_MAX] = '\n';
    put(big, TOKEN_MAX + 1, 0600);
    assert_int_equal(token_read(path, no_env, &a, &notes, &e), 0);
    assert_key(&a, big, TOKEN_MAX);
    refused("/nonexistent/token", no_env, ERR_NODATA,
            "--token-file /nonexistent/token: No such file");
    refused(dir, no_env, ERR_NODATA, "Is a directory");
}

static void a_file_for_everyone(void **state)
{
    struct token_notes notes;
    struct auth a;
    struct err e;

    (void)state;
    put("a secret of the job", 19, 0644);
    assert_int_equal(token_read(path, no_env, &a, &notes, &e), 0);
    assert_true(notes.is_open);
    assert_int_equal(notes.mode, 0644);
    put("a secret of the job", 19, 0440);
    assert_int_equal(token_read(path, no_env, &a, &notes, &e), 0);
    assert_false(notes.is_open);
}

/* As with --token-file <(vault read ...). */
static void a_pipe(void **state)
{
    struct token_notes notes;
    char name[64];
    struct auth a;
    struct err e;
    int fds[2];

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "a secret\n", 9), 9);
    (void)close(fds[1]);
    (void)snprintf(name, sizeof name, "/dev/fd/%d", fds[0]);
    assert_int_equal(token_read(name, no_env, &a, &notes, &e), 0);
    assert_key(&a, "a secret", 8);
    (void)close(fds[0]);
}

static void the_variable_is_wiped(void **state)
{
    struct token_notes notes;
    char before[] = "AGENT_TOKENS=x", value[] = "AGENT_TOKEN=from the env";
    char *env[] = {before, value, NULL};
    struct auth a;
    struct err e;

    (void)state;
    assert_int_equal(token_read(NULL, env, &a, &notes, &e), 0);
    assert_key(&a, "from the env", 12);
    assert_string_equal(value, "AGENT_TOKEN=");
    for (size_t i = 0; i < sizeof value; i++)
        assert_true(i < 12 || value[i] == '\0');
    assert_string_equal(before, "AGENT_TOKENS=x");
    /* A file is asked first; the variable goes all the same. */
    memcpy(value, "AGENT_TOKEN=from the env", sizeof value);
    put("from the file", 13, 0600);
    assert_int_equal(token_read(path, env, &a, &notes, &e), 0);
    assert_key(&a, "from the file", 13);
    assert_string_equal(value, "AGENT_TOKEN=");
}

static void none_at_all(void **state)
{
    struct token_notes notes;
    struct auth a;
    struct err e;

    (void)state;
    assert_int_equal(token_read(NULL, no_env, &a, &notes, &e), 0);
    assert_false(a.has_token);
    assert_false(notes.is_short);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newlines_at_the_end_do_not_count),
        cmocka_unit_test(no_tokens),
        cmocka_unit_test(a_file_for_everyone),
        cmocka_unit_test(a_pipe),
        cmocka_unit_test(the_variable_is_wiped),
        cmocka_unit_test(none_at_all),
    };

    return cmocka_run_group_tests_name("token", tests, set_up, tear_down);
}
