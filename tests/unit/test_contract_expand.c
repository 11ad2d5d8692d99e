/* Tests of agent/contract: macros. */
#include "unit/contract_env.h"

static void test_expand(void **state)
{
    static const struct contract_dataset sets[] = {{"d", "/s/d"}};
    static const struct {
        const char *src, *want;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"[{role}{rank}] ", "[rank10] "},
        {"{local_rank}/{local_world_size}", "2/4"},
        {"{world_size} {node_rank} {nnodes}", "12 1 2"},
        {"{master_addr}:{master_port}", "10.0.0.1:29501"},
        {"{master_ip}", "10.0.0.1"},
        {"{attempt}", "3"},
        {"{gpu}", "7"},
        {"{process_index} of {process_num}", "10 of 12"},
        {"{dataset_dir}/raw", "/s/d/raw"},
        {"{rank}{rank}", "1010"},
        /* Other braces stay. */
        {"{", "{"},
        {"}", "}"},
        {"{}", "{}"},
        {"{rank", "{rank"},
        {"{{rank}}", "{10}"},
        {"{RANK}", "{RANK}"},
        {"{ranks}", "{ranks}"},
        {"{ran}", "{ran}"},
        {"{rank }", "{rank }"},
        {"${HOME} {a: 1} {x{rank}", "${HOME} {a: 1} {x10"},
        {"awk '{print $1}' %s%n", "awk '{print $1}' %s%n"},
    };
    struct contract_in in = job(no_env);
    char out[64];

    (void)state;
    in.master_addr = "10.0.0.1";
    in.datasets = sets;
    in.n_datasets = 1;
    in.gpu = 7;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(contract_expand(&in, cases[i].src, out, sizeof out));
        assert_string_equal(out, cases[i].want);
    }
    in.n_datasets = 0;
    in.gpu = -1;
    in.master_ip = "10.0.0.9";
    in.master_addr = "w0";
    assert_true(contract_expand(&in, "{master_addr} {master_ip}", out,
                                sizeof out));
    assert_string_equal(out, "w0 10.0.0.9");
    in.role = "{rank}"; /* A value is not expanded again. */
    assert_true(contract_expand(&in, "<{dataset_dir}{gpu}{role}>", out,
                                sizeof out));
    assert_string_equal(out, "<{rank}>");
}

static void test_expand_into_little_room(void **state)
{
    struct contract_in in = job(no_env);
    char out[8];

    (void)state;
    assert_true(contract_expand(&in, "12345{rank}", out, sizeof out));
    assert_string_equal(out, "1234510");
    assert_false(contract_expand(&in, "123456{rank}", out, sizeof out));
    assert_string_equal(out, "1234561");
    assert_false(contract_expand(&in, "12345678{rank}", out, sizeof out));
    assert_false(contract_expand(&in, "1234567{", out, sizeof out));
    assert_false(contract_expand(&in, "x", out, 1));
    assert_false(contract_expand(&in, "", out, 0));
    assert_true(contract_expand(&in, "", out, 1));
}

/* "sh" keeps its name; words without a macro are the caller's own. */
static void test_a_command(void **state)
{
    static const struct {
        bool expand;
        const char *local_rank, *want;
    } cases[] = {
        {false, NULL, "{role}|--r={rank}|{x}|"},
        {true, NULL, "{role}|--r=10|{x}|"},
        {false, "--local-rank=", "{role}|--r={rank}|{x}||--local-rank=2"},
        {true, "--local_rank=", "{role}|--r=10|{x}||--local_rank=2"},
    };
    char *const words[] = {(char []){"{role}"}, (char []){"--r={rank}"},
                           (char []){"{x}"}, (char []){""}, NULL};
    struct contract_in in = job(no_env);

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct contract_command c = {words, cases[i].expand,
                                     cases[i].local_rank, false};
        char all[100] = "", *buf, **argv;
        size_t bytes, entries, n = 0;
        struct err e;

        contract_command_room(&in, &c, &bytes, &entries);
        buf = malloc(bytes);
        argv = calloc(entries, sizeof *argv);
        assert_true(buf && argv);
        assert_int_equal(contract_command(&in, &c, buf, bytes, argv, entries,
                                          &e), 0);
        for (; argv[n]; n++)
            (void)snprintf(all + strlen(all), sizeof all - strlen(all),
                           "%s%s", n ? "|" : "", argv[n]);
        assert_string_equal(all, cases[i].want);
        assert_ptr_equal(argv[0], words[0]);
        assert_ptr_equal(argv[3], words[3]);
        assert_true(n < entries);
        free(buf);
        free(argv);
    }
}

static void test_a_command_has_room(void **state)
{
    static char longest[PATH_MAX];
    struct contract_dataset set = {"d", ""};
    char *const words[] = {(char []){"a"},
                           (char []){"{dataset_dir}{dataset_dir}{rank}"},
                           (char []){"{dataset_dir}"}, NULL};
    struct contract_command c = {words, true, "--local-rank=", false};
    struct contract_in in = job(no_env);
    size_t bytes, entries, need, n_ok = 0;
    char **argv, *buf;
    struct err e;

    (void)state;
    in.datasets = &set;
    in.n_datasets = 1;
    contract_command_room(&in, &c, &bytes, &entries);
    memset(longest, 'l', sizeof longest - 1);
    set.dir = longest; /* Known later. */
    in.local_rank = UINT32_MAX;
    in.rank_base = 0;
    buf = malloc(bytes);
    argv = calloc(entries, sizeof *argv);
    assert_true(buf && argv);
    assert_int_equal(contract_command(&in, &c, buf, bytes, argv, entries, &e),
                     0);
    need = 3 * sizeof longest + strlen(argv[1]) - 2 * strlen(longest) +
           strlen(argv[3]);
    assert_int_equal(strlen(argv[1]), 2 * strlen(longest) + 10);
    assert_string_equal(argv[3], "--local-rank=4294967295");
    for (size_t cap = need - 100; cap < need + 10; cap++) {
        char *small = malloc(cap + 1);

        n_ok += contract_command(&in, &c, small, cap, argv, entries, &e) == 0;
        free(small);
    }
    assert_int_equal(n_ok, 10);
    for (size_t max = 0; max < entries; max++)
        assert_int_equal(contract_command(&in, &c, buf, bytes, argv, max, &e),
                         -ERR_AGENT);
    free(buf);
    free(argv);
}

static void test_a_template_comes_first(void **state)
{
    char *const words[] = {(char []){"$$"}, (char []){"$$${local_rank}"},
                           (char []){"${local_rank}{rank}"},
                           (char []){"$ ${rank $1"}, NULL};
    struct contract_command c = {.words = words, .has_template = true};
    struct contract_in in = job(no_env);
    size_t bytes, entries;
    char *argv[8], buf[PATH_MAX * 4];
    struct err e;

    (void)state;
    in.local_rank = 7;
    in.rank_base = 10;
    for (int expand = 0; expand < 2; expand++) {
        c.expand = expand;
        contract_command_room(&in, &c, &bytes, &entries);
        assert_true(bytes <= sizeof buf && entries <= 8);
        assert_int_equal(contract_command(&in, &c, buf, bytes, argv, entries,
                                          &e), 0);
        assert_string_equal(argv[0], "$$"); /* The program. */
        assert_string_equal(argv[1], "$7");
        assert_string_equal(argv[2], expand ? "717" : "7{rank}");
        assert_string_equal(argv[3], "$ ${rank $1");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expand),
        cmocka_unit_test(test_expand_into_little_room),
        cmocka_unit_test(test_a_command),
        cmocka_unit_test(test_a_command_has_room),
        cmocka_unit_test(test_a_template_comes_first),
    };

    return cmocka_run_group_tests_name("contract_expand", tests, NULL, NULL);
}
