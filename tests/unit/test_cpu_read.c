/* Tests of agent/cpu_read and agent/cpu_bind: the machine as sysfs and the
 * drivers describe it, in a root of the test's own. */
#include "agent/cpu_bind.h"
#include "agent/cpu_read.h"

#include "root_fixture.h"

#define CPU "/sys/devices/system/cpu"
#define NODE "/sys/devices/system/node"
#define UUID "GPU-%u%u-6cc0-0849-b393-fbca26b4db8b"

static void __attribute__((format(printf, 3, 4)))
put(const struct root *r, const char *text, const char *fmt, ...)
{
    char path[256];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(path, sizeof path, fmt, ap);
    va_end(ap);
    root_put(r, path, text);
}

/* Two nodes, each a socket of two cores with two CPUs: n and n + 4. */
static void put_cpus(const struct root *r)
{
    static const char *const pairs[] = {"0,4\n", "1,5\n", "2,6\n", "3,7\n"};
    static const char *const node[] = {"0-1,4-5\n", "2-3,6-7\n"};

    root_put(r, CPU "/online", "0-7\n");
    root_put(r, NODE "/online", "0-1\n");
    for (unsigned i = 0; i < 2; i++)
        put(r, node[i], NODE "/node%u/cpulist", i);
    for (unsigned i = 0; i < 8; i++) {
        unsigned core = i % 4;

        put(r, pairs[core], CPU "/cpu%u/topology/thread_siblings_list", i);
        put(r, core < 2 ? "0\n" : "1\n",
            CPU "/cpu%u/topology/physical_package_id", i);
        put(r, "Data\n", CPU "/cpu%u/cache/index0/type", i);
        put(r, "1\n", CPU "/cpu%u/cache/index0/level", i);
        put(r, pairs[core], CPU "/cpu%u/cache/index0/shared_cpu_list", i);
        put(r, "Unified\n", CPU "/cpu%u/cache/index1/type", i);
        put(r, "3\n", CPU "/cpu%u/cache/index1/level", i);
        put(r, node[core / 2], CPU "/cpu%u/cache/index1/shared_cpu_list", i);
        put(r, "Instruction\n", CPU "/cpu%u/cache/index2/type", i);
        put(r, "9\n", CPU "/cpu%u/cache/index2/level", i);
        put(r, pairs[core], CPU "/cpu%u/cache/index2/shared_cpu_list", i);
    }
}

/* As NVIDIA's driver 580 writes it. Minors are against the order. */
static void put_gpu(const struct root *r, unsigned i, const char *model,
                    const char *node)
{
    char text[512];

    (void)snprintf(text, sizeof text,
                   "Model: \t\t %s\nIRQ:   \t\t 41\n"
                   "GPU UUID: \t " UUID "\n"
                   "Video BIOS: \t 96.00.a5.00.1a\nBus Type: \t PCIe\n"
                   "Bus Location: \t 0000:%X0:00.0\n"
                   "Device Minor: \t %u\nGPU Excluded:\t No\n", model, i, i,
                   i + 10, 3 - i);
    put(r, text, "/proc/driver/nvidia/gpus/0000:%X0:00.0/information", i + 10);
    put(r, node, "/sys/bus/pci/devices/0000:%x0:00.0/numa_node", i + 10);
    put(r, "", "/dev/nvidia%u", 3 - i);
}

static struct cpu_mask some(const char *list)
{
    struct cpu_mask m = {{0}};

    assert_true(cpu_parse(list, &m));
    return m;
}

static void test_cpus_are_read(void **state)
{
    static struct cpu_machine m;
    const struct root *r = *state;
    struct cpu_mask allowed = some("1,5,6");
    struct err e = {0};

    put_cpus(r);
    assert_int_equal(cpu_read(r->path, &allowed, &m, &e), 0);
    assert_true(m.has_cores && m.has_sockets && m.has_caches);
    assert_int_equal(m.n_cpus, 3);
    assert_int_equal(m.end, 7);
    assert_false(m.cpus[0].usable);
    assert_true(m.cpus[5].usable);
    assert_int_equal(m.cpus[5].core, 1);
    assert_int_equal(m.cpus[5].node, 0);
    assert_int_equal(m.cpus[5].cache, 0);
    assert_int_equal(m.cpus[6].core, 2);
    assert_int_equal(m.cpus[6].node, 1);
    assert_int_equal(m.cpus[6].socket, 1);
    assert_int_equal(m.cpus[6].cache, 2);
}

static void test_what_sysfs_leaves_out(void **state)
{
    static struct cpu_machine m;
    const struct root *r = *state;
    struct cpu_mask allowed = some("0-1");
    struct err e = {0};
    unsigned first = 9;

    assert_int_equal(cpu_read(r->path, &allowed, &m, &e), -ERR_RESOURCE);
    assert_non_null(strstr(e.text, "/sys/devices/system/cpu/online cannot"));
    /* A kernel without NUMA, and a virtual machine without caches. */
    root_put(r, CPU "/online", "0-1\n");
    assert_int_equal(cpu_read(r->path, &allowed, &m, &e), 0);
    assert_int_equal(cpu_nodes(&m, &first), 1);
    assert_int_equal(first, 0);
    assert_false(m.has_cores || m.has_sockets || m.has_caches);
    root_put(r, NODE "/online", "0\n");
    assert_int_equal(cpu_read(r->path, &allowed, &m, &e), -ERR_RESOURCE);
    root_put(r, NODE "/node0/cpulist", "0\n");
    assert_int_equal(cpu_read(r->path, &allowed, &m, &e), -ERR_RESOURCE);
    assert_non_null(strstr(e.text, "CPU 1 is of no NUMA node"));
    root_put(r, NODE "/node0/cpulist", "0-x\n");
    assert_int_equal(cpu_read(r->path, &allowed, &m, &e), -ERR_RESOURCE);
}

struct gpus {
    const char *visible, *order;
    unsigned n;
    const char *want; /* Nodes; or what the fault says. */
};

static void check_gpus(const struct root *r, const struct gpus *rows,
                       unsigned n_rows)
{
    for (unsigned i = 0; i < n_rows; i++) {
        uint16_t nodes[8];
        char got[ERR_TEXT_MAX] = "";
        struct err e = {0};
        struct text t;

        text_init(&t, got, sizeof got);
        if (cpu_gpu_nodes(r->path, rows[i].visible, rows[i].order, rows[i].n,
                          nodes, &e) == 0)
            for (unsigned k = 0; k < rows[i].n; k++)
                text_add(&t, "%u", nodes[k]);
        else
            text_add(&t, "%s", e.text);
        if (!strstr(got, rows[i].want))
            fail_msg("row %u: \"%s\", not \"%s\"", i, got, rows[i].want);
    }
}

static void test_gpus(void **state)
{
    static const struct gpus alike[] = {
        {NULL, NULL, 4, "0011"},
        {NULL, NULL, 2, "00"},
        {"3,0", NULL, 2, "10"},
        {" 2 , 1", NULL, 2, "10"},
        {"GPU-33-6cc0,gpu-1", NULL, 1, "1"},
        {"GPU-00-6CC0-0849-b393-fbca26b4db8b,GPU-22", NULL, 2, "01"},
        {"MIG-GPU-22-6cc0-0849-b393-fbca26b4db8b/1/0", NULL, 1, "1"},
        /* Without the driver's library nobody knows where that is. */
        {"MIG-3f2d-c", NULL, 1, "which card GPU 0 is cannot be told"},
        {"GPU-", NULL, 1, "cannot be told"}, /* Several begin so. */
        {"GPU-44", NULL, 1, "cannot be told"},
        {"4", NULL, 1, "CUDA_VISIBLE_DEVICES names others"},
        {NULL, NULL, 5, "which card GPU 4 is"},
    };
    static const struct gpus mixed[] = {
        {NULL, NULL, 4, "set CUDA_DEVICE_ORDER=PCI_BUS_ID"},
        {NULL, "FASTEST_FIRST", 4, "set CUDA_DEVICE_ORDER=PCI_BUS_ID"},
        {NULL, "PCI_BUS_ID", 4, "0011"},
        {"GPU-33,GPU-00", NULL, 2, "10"},
        {"3", NULL, 1, "cannot be told"},
    };
    const struct root *r = *state;

    for (unsigned i = 0; i < 4; i++)
        put_gpu(r, i, "NVIDIA H200", i < 2 ? "0\n" : "1\n");
    check_gpus(r, alike, sizeof alike / sizeof alike[0]);
    put_gpu(r, 1, "NVIDIA T400", "0\n");
    check_gpus(r, mixed, sizeof mixed / sizeof mixed[0]);
}

static void test_gpus_that_say_little(void **state)
{
    static const struct gpus none[] = {{NULL, NULL, 1, "none in /proc/driver"}};
    static const struct gpus unknown[] = {
        {"0", NULL, 1, "the NUMA node of GPU 0 (0000:a0:00.0) is not known"}};
    /* All on one: it does not matter which is which. */
    static const struct gpus same[] = {{"MIG-3f2d-c", NULL, 1, "1"},
                                       {"MIG-3f2d-c,MIG-4", NULL, 2, "11"}};
    static const struct gpus other[] = {{NULL, NULL, 1, "1"}};
    const struct root *r = *state;
    char path[128];

    check_gpus(r, none, 1);
    put_gpu(r, 0, "NVIDIA H200", "-1\n");
    check_gpus(r, unknown, 1);
    put_gpu(r, 0, "NVIDIA H200", "1\n");
    put_gpu(r, 1, "NVIDIA A2", "1\n");
    check_gpus(r, same, 2);
    /* A card of which there is no device file is another pod's. */
    put_gpu(r, 0, "NVIDIA H200", "0\n");
    (void)snprintf(path, sizeof path, "%s/dev/nvidia3", r->path);
    assert_int_equal(remove(path), 0);
    check_gpus(r, other, 1);
}

static void test_amd(void **state)
{
    static const struct gpus rows[] = {{NULL, NULL, 2, "10"},
                                       {"1", NULL, 1, "0"}};
    static const char kfd[] = "/sys/class/kfd/kfd/topology/nodes";
    const struct root *r = *state;

    put(r, "simd_count 0\nlocation_id 0\n", "%s/0/properties", kfd);
    put(r, "cpu_cores_count 0\nsimd_count 304\ndomain 1\n"
           "location_id 50432\n", "%s/1/properties", kfd);
    put(r, "simd_count 304\nlocation_id 1288\ndomain 0\n", "%s/2/properties",
        kfd);
    root_put(r, "/sys/bus/pci/devices/0001:c5:00.0/numa_node", "1\n");
    root_put(r, "/sys/bus/pci/devices/0000:05:01.0/numa_node", "0\n");
    check_gpus(r, rows, 2);
    assert_int_equal(setenv("HIP_VISIBLE_DEVICES", "1", 1), 0);
    check_gpus(r, &(const struct gpus){NULL, NULL, 1, "cannot be told"}, 1);
    assert_int_equal(unsetenv("HIP_VISIBLE_DEVICES"), 0);
}

/* With the CPUs of this machine, of which no more is said than that they are
 * there, or not even that. */
static void test_nothing_known_is_no_binding(void **state)
{
    const struct root *r = *state;
    struct cpu_ask ask = {.how = CPU_BIND_CORES, .nproc = 1,
                          .procs_per_gpu = 1, .root = r->path};
    struct cpu_binding b;
    struct err e = {0};

    assert_int_equal(cpu_bind_make(&ask, &b, &e), 0);
    assert_null(b.masks);
    assert_non_null(strstr(b.why, "cannot be read"));
    root_put(r, CPU "/online", "0-1\n");
    assert_int_equal(cpu_bind_make(&ask, &b, &e), 0);
    assert_null(b.masks);
    assert_non_null(strstr(b.why, "does not say which CPUs make up a core"));
    /* One node: all there is. */
    ask.how = CPU_BIND_NODE;
    assert_int_equal(cpu_bind_make(&ask, &b, &e), 0);
    assert_null(b.masks);
    assert_string_equal(b.why, "");
    /* torchrun's has GPUs, or fails. */
    ask.is_torchrun = true;
    assert_int_equal(cpu_bind_make(&ask, &b, &e), -ERR_USAGE);
    assert_non_null(strstr(e.text, "0 GPUs are visible here for 1 worker"));
    ask.n_gpus = 1;
    assert_int_equal(cpu_bind_make(&ask, &b, &e), 0);
    ask.how = CPU_BIND_COMPLEX;
    assert_int_equal(cpu_bind_make(&ask, &b, &e), -ERR_USAGE);
    ask.how = CPU_BIND_NONE;
    assert_int_equal(cpu_bind_make(&ask, &b, &e), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, root_make, root_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_cpus_are_read),
        TEST(test_what_sysfs_leaves_out),
        TEST(test_gpus),
        TEST(test_gpus_that_say_little),
        TEST(test_amd),
        TEST(test_nothing_known_is_no_binding),
    };

    return cmocka_run_group_tests_name("cpu_read", tests, NULL, NULL);
}
