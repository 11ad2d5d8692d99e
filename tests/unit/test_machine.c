/* machine: GPUs are counted from variables and device files, in a root of the
 * test's own. */
#include "agent/machine.h"

#include "root_fixture.h"

#include <unistd.h>

#define KFD "/sys/class/kfd/kfd/topology/nodes/"
#define MIG "MIG-7b3a9b9c-1f9e-5c64-8c8b-6d1a3f6f0a10"

static void put_devices(const struct root *m)
{
    static const char *const names[] = {
        "nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm",
        "nvidia-caps", "nvidia", "nvidia0x", "null"};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[64];

        (void)snprintf(path, sizeof path, "/dev/%s", names[i]);
        root_put(m, path, "");
    }
}

struct row {
    const char *cuda, *nvidia;
    unsigned want;
};

static void check_rows(const struct root *m, const struct row *rows,
                       unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        unsigned got = machine_count_gpus(r->cuda, r->nvidia, m->path);

        if (got != r->want)
            fail_msg("CUDA_VISIBLE_DEVICES '%s', NVIDIA_VISIBLE_DEVICES '%s': "
                     "%u, not %u", r->cuda ? r->cuda : "unset",
                     r->nvidia ? r->nvidia : "unset", got, r->want);
    }
}

/* This variable alone decides, whatever devices there are. */
static const struct row by_cuda[] = {
    {"", NULL, 0},
    {"0", NULL, 1},
    {"0,1,2,3", NULL, 4},
    {" 0, 1", NULL, 2},
    {"0,1,", NULL, 2},
    {"-1", NULL, 0},
    {"0,-1,1", NULL, 1}, /* CUDA stops at the first invalid one. */
    {"0,,1", NULL, 1},
    {"NoDevFiles", NULL, 0}, /* Slurm: a job without GPUs. */
    {"GPU-8f6d3a1e-0000-1111-2222-333344445555", NULL, 1},
    {MIG, NULL, 1},
    {MIG "," MIG "1," MIG "2", NULL, 3},
    {"MIG-GPU-8f6d3a1e/1/0,MIG-GPU-8f6d3a1e/2/0", NULL, 2},
    {"0,1", "void", 2},
    {"", "all", 0},
};

static void test_cuda_visible(void **state)
{
    check_rows(*state, by_cuda, sizeof by_cuda / sizeof by_cuda[0]);
    put_devices(*state);
    check_rows(*state, by_cuda, sizeof by_cuda / sizeof by_cuda[0]);
}

static void test_nvidia_visible(void **state)
{
    static const struct row rows[] = {
        {NULL, NULL, 3},
        {NULL, "all", 3},
        {NULL, "", 3},
        {NULL, "void", 0},
        {NULL, "none", 0},
        {NULL, "0,1", 2},
        {NULL, MIG "," MIG "1", 2},
        {NULL, "GPU-8f6d3a1e-0000-1111-2222-333344445555", 1},
    };

    put_devices(*state);
    check_rows(*state, rows, sizeof rows / sizeof rows[0]);
}

/* An image may set the variable where there is no GPU. */
static void test_no_devices(void **state)
{
    static const struct row rows[] = {
        {NULL, NULL, 0}, {NULL, "all", 0}, {NULL, "0,1", 0},
        {NULL, "void", 0}, {NULL, "none", 0}, {NULL, "", 0},
    };

    check_rows(*state, rows, sizeof rows / sizeof rows[0]);
    root_put(*state, "/dev/null", "");
    check_rows(*state, rows, sizeof rows / sizeof rows[0]);
}

/* Node 0 is the CPU: it has cores and no SIMD unit. */
static void test_kfd(void **state)
{
    static const struct row rows[] = {
        {NULL, NULL, 2}, {"0", NULL, 1}, {"", NULL, 0}, {NULL, "none", 0},
    };
    const char *root = ((struct root *)*state)->path;

    root_put(*state, KFD "0/properties",
        "cpu_cores_count 64\nsimd_count 0\nmem_banks_count 1\n");
    root_put(*state, KFD "1/properties", "cpu_cores_count 0\nsimd_count 304\n");
    root_put(*state, KFD "2/properties", "cpu_cores_count 0\nsimd_count 304\n");
    assert_int_equal(machine_count_gpus(NULL, NULL, root), 0);
    root_put(*state, "/dev/kfd", "");
    check_rows(*state, rows, sizeof rows / sizeof rows[0]);
    root_put(*state, KFD "3/name", "a node that says nothing\n");
    check_rows(*state, rows, sizeof rows / sizeof rows[0]);
    root_put(*state, "/dev/nvidia0", ""); /* Both: the CUDA devices count. */
    assert_int_equal(machine_count_gpus(NULL, NULL, root), 1);
}

static void test_the_rest(void **state)
{
    char host[256] = "", cut[3] = "xx";
    uint64_t a = machine_random(), b = machine_random();

    (void)state;
    assert_true(machine_cpus(1) >= 1);
    assert_true(machine_cpus(1) <= (unsigned)sysconf(_SC_NPROCESSORS_CONF));
    assert_true(a != 0 && b != 0 && a != b);
    machine_host(host, sizeof host);
    assert_true(host[0] != '\0');
    machine_host(cut, sizeof cut);
    assert_true(strlen(cut) <= 2);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, root_make, root_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_cuda_visible),
        TEST(test_nvidia_visible),
        TEST(test_no_devices),
        TEST(test_kfd),
        cmocka_unit_test(test_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
