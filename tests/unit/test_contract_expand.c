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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expand),
        cmocka_unit_test(test_expand_into_little_room),
    };

    return cmocka_run_group_tests_name("contract_expand", tests, NULL, NULL);
}
