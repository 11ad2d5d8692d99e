/* Tests of base/cgroup: limits, as the mounts of containers, hosts and job
 * schedulers show them. */
#include "base/cgroup.h"

#include "root_fixture.h"

#define SELF "/proc/self/cgroup"
#define MOUNT "/sys/fs/cgroup"
#define MIB ((uint64_t)1 << 20)

static uint64_t memory(const struct root *r)
{
    return cgroup_limit(r->path, CGROUP_MEMORY);
}

static void assert_tightest(const struct root *r, enum cgroup_limit which,
                            uint64_t want_max, uint64_t want_used)
{
    uint64_t max = 0, used = 0;

    assert_true(cgroup_tightest(r->path, which, &max, &used));
    assert_int_equal(max, want_max);
    assert_int_equal(used, want_used);
}

/* A container with a namespace: one group, at the top. */
static void test_a_container_of_v2(void **state)
{
    const struct root *r = *state;

    root_put(r, SELF, "0::/\n");
    root_put(r, MOUNT "/memory.max", "67108864\n");
    root_put(r, MOUNT "/memory.current", "1048576\n");
    root_put(r, MOUNT "/pids.max", "max\n");
    root_put(r, MOUNT "/pids.current", "7\n");
    root_put(r, MOUNT "/cpu.max", "150000 100000\n");
    assert_int_equal(memory(r), 64 * MIB);
    assert_tightest(r, CGROUP_MEMORY, 64 * MIB, MIB);
    assert_int_equal(cgroup_limit(r->path, CGROUP_PIDS), UINT64_MAX);
    assert_false(cgroup_tightest(r->path, CGROUP_PIDS, &(uint64_t){0},
                                 &(uint64_t){0}));
    assert_int_equal(cgroup_cpus(r->path), 2);
    root_put(r, MOUNT "/cpu.max", "max 100000\n");
    assert_int_equal(cgroup_cpus(r->path), 0);
    root_put(r, MOUNT "/cpu.max", "nonsense\n");
    assert_int_equal(cgroup_cpus(r->path), 0);
}

/* The host's tree, as Slurm's steps and systemd's slices see it: the limit is
 * one of a group above, and a group may have no files of a controller. */
static void test_the_tree_of_a_host(void **state)
{
    const struct root *r = *state;

    root_put(r, SELF, "0::/slurm/job_7/step_0/task_1\n");
    root_put(r, MOUNT "/cgroup.procs", "");
    root_put(r, MOUNT "/slurm/other/memory.max", "1\n");
    root_put(r, MOUNT "/slurm/memory.max", "max\n");
    root_put(r, MOUNT "/slurm/job_7/memory.max", "67108864\n");
    root_put(r, MOUNT "/slurm/job_7/memory.current", "66060288\n");
    root_put(r, MOUNT "/slurm/job_7/step_0/memory.max", "134217728\n");
    root_put(r, MOUNT "/slurm/job_7/step_0/memory.current", "1048576\n");
    root_put(r, MOUNT "/slurm/job_7/cpu.max", "400000 100000\n");
    root_put(r, MOUNT "/slurm/job_7/step_0/cpu.max", "800000 100000\n");
    root_put(r, MOUNT "/slurm/job_7/step_0/task_1/cgroup.procs", "1\n");
    assert_int_equal(memory(r), 64 * MIB);
    assert_tightest(r, CGROUP_MEMORY, 64 * MIB, 63 * MIB);
    assert_int_equal(cgroup_cpus(r->path), 4);
    /* More is used than is allowed. */
    root_put(r, MOUNT "/slurm/job_7/step_0/memory.current", "134217729\n");
    assert_tightest(r, CGROUP_MEMORY, 128 * MIB, 128 * MIB + 1);
}

/* v1: the host's path in /proc, the container's folder at the mount; cpu is
 * mounted with cpuacct. */
static void test_a_container_of_v1(void **state)
{
    const struct root *r = *state;

    root_put(r, SELF, "9:name=systemd:/pod/1\n7:pids:/pod/1\n"
                      "5:cpuset:/pod/1\n4:cpuacct,cpu:/pod/1\n"
                      "3:memory:/pod/1\n0::/\n");
    root_put(r, MOUNT "/memory/memory.limit_in_bytes", "67108864\n");
    root_put(r, MOUNT "/memory/memory.usage_in_bytes", "1048576\n");
    root_put(r, MOUNT "/pids/pids.max", "100\n");
    root_put(r, MOUNT "/pids/pids.current", "7\n");
    root_put(r, MOUNT "/cpuacct,cpu/cpu.cfs_quota_us", "50000\n");
    root_put(r, MOUNT "/cpuacct,cpu/cpu.cfs_period_us", "100000\n");
    root_put(r, MOUNT "/unified/cgroup.procs", "");
    assert_tightest(r, CGROUP_MEMORY, 64 * MIB, MIB);
    assert_tightest(r, CGROUP_PIDS, 100, 7);
    assert_int_equal(cgroup_cpus(r->path), 1);
    root_put(r, MOUNT "/cpuacct,cpu/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(cgroup_cpus(r->path), 0);
    /* What v1 writes where there is no limit. */
    root_put(r, MOUNT "/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(memory(r), UINT64_MAX);
}

/* The names of v1's mounts differ from those in /proc, and its groups too. */
static void test_the_tree_of_a_host_of_v1(void **state)
{
    const struct root *r = *state;

    root_put(r, SELF, "4:cpu,cpuacct:/a/b\n3:memory:/a/b\n");
    root_put(r, MOUNT "/memory/a/memory.limit_in_bytes", "67108864\n");
    root_put(r, MOUNT "/memory/a/b/memory.limit_in_bytes", "134217728\n");
    root_put(r, MOUNT "/cpu/a/b/cpu.cfs_quota_us", "250000\n");
    root_put(r, MOUNT "/cpu/a/b/cpu.cfs_period_us", "100000\n");
    assert_int_equal(memory(r), 64 * MIB);
    assert_int_equal(cgroup_cpus(r->path), 3);
}

static void test_nothing_to_read(void **state)
{
    const struct root *r = *state;

    assert_int_equal(memory(r), UINT64_MAX);
    assert_int_equal(cgroup_cpus(r->path), 0);
    root_put(r, SELF, "noise\n::\n\n0::\n0::/x (deleted)\n");
    assert_int_equal(memory(r), UINT64_MAX);
    root_put(r, MOUNT "/memory.max", "");
    assert_int_equal(memory(r), UINT64_MAX);
    root_put(r, MOUNT "/memory.max", "67108864\n");
    assert_int_equal(memory(r), 64 * MIB); /* At the top is the best guess. */
}

/* Without /proc. */
static void test_no_proc(void **state)
{
    const struct root *r = *state;

    root_put(r, MOUNT "/cpu/cpu.cfs_quota_us", "300000\n");
    root_put(r, MOUNT "/cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cgroup_cpus(r->path), 3);
    root_put(r, MOUNT "/cpu.max", "200000 100000\n");
    assert_int_equal(cgroup_cpus(r->path), 2);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, root_make, root_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_a_container_of_v2),
        TEST(test_the_tree_of_a_host),
        TEST(test_a_container_of_v1),
        TEST(test_the_tree_of_a_host_of_v1),
        TEST(test_nothing_to_read),
        TEST(test_no_proc),
    };

    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
