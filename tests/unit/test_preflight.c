/* preflight's checks, over trees of files that stand for /dev, /proc and /sys;
 * and how checks that hang, die or say too much are taken. */
#include "preflight/child.h"

#include "preflight/check.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];
static char *no_env[] = {NULL};
static struct preflight_job job;
static struct preflight_finding found[64];
static unsigned n_found, n_over;
static enum preflight_level last_worst;

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof root, "/tmp/test_preflight.XXXXXX");
    memset(&job, 0, sizeof job);
    job.nproc = job.nnodes = 1;
    job.master_addr = "127.0.0.1";
    job.envp = no_env;
    job.root = root;
    n_found = n_over = 0;
    (void)setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
    return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[128];
    pid_t pid = fork();

    (void)state;
    (void)snprintf(command, sizeof command, "exec /bin/rm -rf '%s'", root);
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    return waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

static void put(const char *path, const char *text)
{
    char full[256];
    FILE *f;

    (void)snprintf(full, sizeof full, "%s%s", root, path);
    for (char *s = full + strlen(root) + 1; (s = strchr(s, '/')); *s++ = '/') {
        *s = '\0';
        assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
    }
    if (!text)
        return;
    f = fopen(full, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
}

static void on_finding(void *ctx, const struct preflight_finding *f)
{
    (void)ctx;
    assert_true(n_found < 64);
    found[n_found++] = *f;
}

static void on_over(void *ctx, enum preflight_check check,
                    enum preflight_level worst, uint64_t ms)
{
    (void)ctx;
    (void)check;
    assert_true(ms < 60000);
    last_worst = worst;
    n_over++;
}

static const struct preflight_out out = {.finding = on_finding,
                                         .over = on_over};

static enum preflight_level run(unsigned checks)
{
    n_found = n_over = 0;
    job.checks = checks;
    return preflight_run(&job, &out);
}

/* A finding of this level has these words in `what` or `fix`; after a ^, at the
 * beginning of `what`. */
static void has(enum preflight_level level, const char *words)
{
    for (unsigned i = 0; i < n_found; i++)
        if (found[i].level == (uint8_t)level &&
            (*words == '^' ? strncmp(found[i].what, words + 1,
                                     strlen(words + 1)) == 0
                           : strstr(found[i].what, words) ||
                                 strstr(found[i].fix, words)))
            return;
    for (unsigned i = 0; i < n_found; i++)
        print_message("# %s: %s\n", preflight_level_word(
                          (enum preflight_level)found[i].level),
                      found[i].what);
    fail_msg("no such finding: %s", words);
}

/* On a disk it is no tmpfs; what is there is there. */
static void test_shm(void **state)
{
    struct statvfs st;

    (void)state;
    assert_int_equal(run(PREFLIGHT_BIT(SHM)), PREFLIGHT_FATAL);
    has(PREFLIGHT_FATAL, "/dev/shm: No such file");
    has(PREFLIGHT_FATAL, "medium: Memory");
    assert_non_null(strstr(found[0].yaml, "mountPath: /dev/shm"));

    put("/dev/shm/x", NULL);
    assert_int_equal(statvfs(root, &st), 0);
    if ((uint64_t)st.f_bavail * st.f_frsize < 256 * MIB)
        skip();
    assert_true(run(PREFLIGHT_BIT(SHM)) <= PREFLIGHT_WARN);
    has(PREFLIGHT_PASS, "48 MiB could be allocated");

    put("/proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n");
    put("/sys/fs/cgroup/memory.max", "67108864\n");
    put("/sys/fs/cgroup/memory.current", "57671680\n");
    assert_int_equal(run(PREFLIGHT_BIT(SHM)), PREFLIGHT_WARN);
    has(PREFLIGHT_WARN, "memory has 8 MiB left");
    has(PREFLIGHT_PASS, "4 MiB could be allocated");
}

static void test_shm_that_kills(void **state)
{
    struct rlimit was, low;

    (void)state;
    put("/dev/shm/x", NULL);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    low = was;
    low.rlim_cur = 1 << 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    assert_int_equal(run(PREFLIGHT_BIT(SHM)), PREFLIGHT_RETRY);
    has(PREFLIGHT_RETRY, "it was allocating 48 MiB in /dev/shm");
    assert_int_equal(run(PREFLIGHT_BIT(LIMITS)), PREFLIGHT_FATAL);
    has(PREFLIGHT_FATAL, "size of a file (ulimit -f) is 1 MiB");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
}

static void test_limits(void **state)
{
    (void)state;
    put("/sys/fs/cgroup/pids.max", "max\n");
    put("/sys/fs/cgroup/pids.current", "7\n");
    job.max_files = 4096;
    assert_true(run(PREFLIGHT_BIT(LIMITS)) <= PREFLIGHT_WARN);
    job.max_files = 100;
    assert_int_equal(run(PREFLIGHT_BIT(LIMITS)), PREFLIGHT_FATAL);
    has(PREFLIGHT_FATAL, "open files (ulimit -n) is 100");
    job.max_files = 512;
    assert_int_equal(run(PREFLIGHT_BIT(LIMITS)), PREFLIGHT_WARN);
    job.max_files = 4096;
    put("/sys/fs/cgroup/pids.max", "107\n");
    assert_int_equal(run(PREFLIGHT_BIT(LIMITS)), PREFLIGHT_WARN);
    has(PREFLIGHT_WARN, "107 processes and threads (pids.max), and has 7");
    job.nproc = 8;
    assert_int_equal(run(PREFLIGHT_BIT(LIMITS)), PREFLIGHT_FATAL);
}

/* What a user without capabilities, who may lock nothing, is told. */
static void lock_nothing(enum preflight_level wanted, const char *words)
{
    struct rlimit low = {0};
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        (void)getrlimit(RLIMIT_MEMLOCK, &low);
        low.rlim_cur = 0;
        if (setrlimit(RLIMIT_MEMLOCK, &low) != 0 ||
            (getuid() == 0 && setuid(65534) != 0))
            _exit(99);
        if (run(PREFLIGHT_BIT(MEMLOCK)) != wanted)
            _exit(1);
        has(wanted, words);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static char *rdma_off[] = {(char[]){"NCCL_IB_DISABLE=1"}, NULL};
static char *rdma_on[] = {(char[]){"NCCL_IB_DISABLE=0"}, NULL};

static void test_memlock(void **state)
{
    (void)state;
    assert_int_equal(chmod(root, 0755), 0);
    put("/proc/self/status", "CapBnd:\t0000000000004000\n"
                             "CapEff:\t0000000000000000\n");
    lock_nothing(PREFLIGHT_PASS, "at most 0 KiB may be locked");
    job.asked = PREFLIGHT_BIT(MEMLOCK);
    lock_nothing(PREFLIGHT_WARN, "in the bounding set but not effective");
    job.asked = 0;
    put("/dev/infiniband/uverbs0", "");
    lock_nothing(PREFLIGHT_FATAL, "memlock=-1");
    job.envp = rdma_off;
    lock_nothing(PREFLIGHT_PASS, "NCCL_IB_DISABLE keeps NCCL from RDMA");
    job.envp = rdma_on;
    lock_nothing(PREFLIGHT_FATAL, "memlock=-1");
}

static void test_variables(void **state)
{
    char *env[] = {
        (char[]){"NCCL_SOCKET_IFNAME=no-such"},
        (char[]){"GLOO_SOCKET_IFNAME=lo,nope"},
        (char[]){"NCCL_IB_HCA==mlx5_7"}, (char[]){"NCCL_TOPO_FILE=/no/file"},
        (char[]){"NCCL_DEBUG_FILE=/no/folder/log.%h"},
        (char[]){"NCCL_NET_PLUGIN=aws-ofi,/bin/sh,/no/a.so,/no/b.so"},
        (char[]){"NCCL_TUNER_PLUGIN=tuner"}, (char[]){"NCCL_DEBUG=INFO"},
        NULL};

    (void)state;
    assert_int_equal(run(PREFLIGHT_BIT(ENV)), PREFLIGHT_PASS);
    put("/sys/class/infiniband/mlx5_0/x", NULL);
    job.envp = env;
    assert_int_equal(run(PREFLIGHT_BIT(ENV)), PREFLIGHT_FATAL);
    has(PREFLIGHT_FATAL, "NCCL_SOCKET_IFNAME=no-such: no interface fits");
    has(PREFLIGHT_FATAL, "there is no interface nope");
    has(PREFLIGHT_FATAL, "name one of lo");
    has(PREFLIGHT_WARN, "=mlx5_7: no RDMA device fits; there are mlx5_0");
    has(PREFLIGHT_WARN, "NCCL_TOPO_FILE=/no/file: No such file");
    has(PREFLIGHT_WARN, "NCCL_DEBUG_FILE=/no/folder/log.%h: No such file");
    has(PREFLIGHT_WARN, "^NCCL_NET_PLUGIN=/no/a.so: No such file");
    has(PREFLIGHT_WARN, "^NCCL_NET_PLUGIN=/no/b.so: No such file");
    assert_int_equal(n_found, 8);
    /* `iface` alone says what it is about. */
    assert_int_equal(run(PREFLIGHT_BIT(IFACE)), PREFLIGHT_FATAL);
    has(PREFLIGHT_FATAL, "there is no interface nope");
    assert_int_equal(run(PREFLIGHT_BIT(IFACE) | PREFLIGHT_BIT(ENV)),
                     PREFLIGHT_FATAL);
    assert_int_equal(n_over, 2);
    assert_int_equal(n_found, 9);
}

/* For a user who may not write to its folder. */
static void test_a_file_that_is_there(void **state)
{
    char file[160], folder[128], variable[200];
    char *env[] = {variable, NULL};
    int status;
    pid_t pid;

    (void)state;
    put("/logs/file", "");
    (void)snprintf(folder, sizeof folder, "%s/logs", root);
    (void)snprintf(file, sizeof file, "%s/file", folder);
    (void)snprintf(variable, sizeof variable, "NCCL_DEBUG_FILE=%s", file);
    job.envp = env;
    assert_int_equal(chmod(root, 0755), 0);
    assert_int_equal(chmod(file, 0666), 0);
    assert_int_equal(chmod(folder, 0555), 0);
    pid = fork();
    if (pid == 0)
        _exit(getuid() == 0 && setuid(65534) != 0
                  ? 99 : (int)run(PREFLIGHT_BIT(ENV)));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(status, 0);
    (void)snprintf(variable, sizeof variable, "NCCL_DEBUG_FILE=%s/%%h/%%p",
                   folder);
    assert_int_equal(run(PREFLIGHT_BIT(ENV)), PREFLIGHT_PASS);
}

static void test_devices_that_nobody_uses(void **state)
{
    char *env[] = {(char[]){"NCCL_IB_HCA=mlx5_7"},
                   (char[]){"NCCL_IB_DISABLE=1"}, NULL};

    (void)state;
    job.envp = env;
    assert_int_equal(run(PREFLIGHT_BIT(ENV)), PREFLIGHT_PASS);
    env[1] = NULL;
    assert_int_equal(run(PREFLIGHT_BIT(ENV)), PREFLIGHT_WARN);
}

/* What a terminal would obey is not shown, nor what JSON has not. */
static void test_odd_bytes(void **state)
{
    char *env[] = {(char[]){"NCCL_SOCKET_IFNAME=a\033[31m\nb\377"}, NULL};

    (void)state;
    job.envp = env;
    assert_int_equal(run(PREFLIGHT_BIT(ENV)), PREFLIGHT_FATAL);
    has(PREFLIGHT_FATAL, "^NCCL_SOCKET_IFNAME=a?[31m?b?: no interface");
    n_found = 0;
    job.checks = PREFLIGHT_BIT(IFACE);
    assert_int_equal(preflight_look(&job, &out), PREFLIGHT_FATAL);
    has(PREFLIGHT_FATAL, "^NCCL_SOCKET_IFNAME=a?[31m?b?: no interface");
}

static void test_loopback_for_others(void **state)
{
    char *env[] = {(char[]){"NCCL_SOCKET_IFNAME=lo"}, NULL};

    (void)state;
    job.envp = env;
    assert_int_equal(run(PREFLIGHT_BIT(ENV)), PREFLIGHT_PASS);
    job.nnodes = 3;
    assert_int_equal(run(PREFLIGHT_BIT(ENV)), PREFLIGHT_FATAL);
    has(PREFLIGHT_FATAL, "does not lead to the other 2 pods");
    job.envp = no_env;
    assert_int_equal(run(PREFLIGHT_BIT(DNS)), PREFLIGHT_WARN);
    has(PREFLIGHT_WARN, "which is this pod itself");
    job.master_addr = "127.0.1.1"; /* As Debian has it in /etc/hosts. */
    assert_int_equal(run(PREFLIGHT_BIT(DNS)), PREFLIGHT_WARN);
    has(PREFLIGHT_WARN, "127.0.1.1, which is this pod itself");
    job.master_addr = "::ffff:127.0.0.2";
    assert_int_equal(run(PREFLIGHT_BIT(DNS)), PREFLIGHT_WARN);
    job.coordinates = true;
    assert_int_equal(run(PREFLIGHT_BIT(DNS)), PREFLIGHT_PASS);
}

static void test_storage(void **state)
{
    char dir[128], data[128], file[128], deep[160];

    (void)state;
    put("/dir/sub/x", NULL);
    put("/data/file", "bytes");
    put("/file", "bytes");
    (void)snprintf(dir, sizeof dir, "%s/dir", root);
    (void)snprintf(data, sizeof data, "%s/data", root);
    (void)snprintf(file, sizeof file, "%s/file", root);
    (void)snprintf(deep, sizeof deep, "%s/dir/not/yet", root);
    job.dirs[0] = (struct preflight_dir){dir, "--log-dir", PREFLIGHT_WRITES};
    job.dirs[1] = (struct preflight_dir){data, "--source", PREFLIGHT_READS};
    job.dirs[2] = (struct preflight_dir){dir, "--source", PREFLIGHT_READS};
    job.dirs[3] = (struct preflight_dir){deep, "--stage", PREFLIGHT_WRITES};
    job.n_dirs = 4;
    assert_true(run(PREFLIGHT_BIT(STORAGE)) <= PREFLIGHT_WARN);
    has(PREFLIGHT_PASS, "--log-dir: 1 MiB written");
    has(PREFLIGHT_PASS, "/data' could be read");
    has(PREFLIGHT_PASS, "/dir' could be listed");
    has(PREFLIGHT_PASS, "--stage: 1 MiB written");
    (void)snprintf(deep, sizeof deep, "%s/sub", dir);
    assert_int_equal(rmdir(deep), 0);
    assert_int_equal(rmdir(dir), 0); /* Nothing was left in it. */
    assert_int_equal(run(PREFLIGHT_BIT(STORAGE)), PREFLIGHT_FATAL);
    has(PREFLIGHT_FATAL, "--source: ");
    job.dirs[0].path = file; /* Not a folder. */
    job.n_dirs = 1;
    assert_int_equal(run(PREFLIGHT_BIT(STORAGE)), PREFLIGHT_FATAL);
    has(PREFLIGHT_FATAL, "Not a directory");
    has(PREFLIGHT_FATAL, "name a folder");
    put("/data/sub/x", NULL);
    (void)snprintf(dir, sizeof dir, "%s/data/sub", root);
    job.dirs[0] = (struct preflight_dir){dir, "TMPDIR",
                                         PREFLIGHT_WRITES_THERE};
    assert_true(run(PREFLIGHT_BIT(STORAGE)) <= PREFLIGHT_WARN);
    has(PREFLIGHT_PASS, "TMPDIR: 1 MiB written");
    job.dirs[0].path = deep; /* Nobody makes it. */
    assert_int_equal(run(PREFLIGHT_BIT(STORAGE)), PREFLIGHT_WARN);
    has(PREFLIGHT_WARN, "/dir/sub' is not there");
    assert_int_equal(n_found, 1);
}

/* agent-probe, as a script in PATH that answers with `body`. */
static void put_probe(const char *body)
{
    char path[160], text[2048];

    (void)snprintf(text, sizeof text, "#!/bin/sh\n%s\n", body);
    put("/bin/agent-probe", text);
    (void)snprintf(path, sizeof path, "%s/bin/agent-probe", root);
    assert_int_equal(chmod(path, 0755), 0);
    (void)snprintf(path, sizeof path, "%s/bin:/usr/bin:/bin", root);
    assert_int_equal(setenv("PATH", path, 1), 0);
}

/* Files are open up to the limit. */
static void test_no_files(void **state)
{
    struct rlimit was, low;
    int fds[64], n = 0, r;

    (void)state;
    put_probe("exit 0");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    low = was;
    low.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    while ((r = open("/dev/null", O_RDONLY)) >= 0)
        fds[n++] = r;
    assert_int_equal(run(PREFLIGHT_BIT(ENV)), PREFLIGHT_FATAL);
    has(PREFLIGHT_FATAL, "no process for the check: Too many open files");
    has(PREFLIGHT_FATAL, "ulimit -n");
    (void)close(fds[--n]);
    (void)close(fds[--n]); /* For the check itself. */
    assert_int_equal(run(PREFLIGHT_BIT(GPU)), PREFLIGHT_RETRY);
    has(PREFLIGHT_RETRY, "^agent-probe cannot be started: Too many open");
    while (n > 0)
        (void)close(fds[--n]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

static void test_no_probe(void **state)
{
    (void)state;
    assert_int_equal(setenv("PATH", root, 1), 0);
    assert_int_equal(run(PREFLIGHT_BIT(GPU)), PREFLIGHT_WARN);
    has(PREFLIGHT_WARN, "agent-probe is not installed");
    job.asked = PREFLIGHT_BIT(GPU);
    assert_int_equal(run(PREFLIGHT_BIT(GPU)), PREFLIGHT_FATAL);
}

static void test_probe_says(void **state)
{
    static const struct {
        const char *json;
        unsigned check, asked;
        enum preflight_level level;
        const char *words;
    } cases[] = {
        {"{\"gpu\":{\"found\":false,\"fault\":false,\"why\":\"none\"}}",
         PREFLIGHT_GPU, 0, PREFLIGHT_PASS, "no GPU: none"},
        {"{\"gpu\":{\"found\":false,\"fault\":false,\"why\":\"none\"}}",
         PREFLIGHT_GPU, 1, PREFLIGHT_FATAL, "no GPU: none"},
        {"{\"nccl\":{\"found\":false,\"fault\":false,\"why\":\"no NCCL "
         "here\"}}", PREFLIGHT_NCCL, 0, PREFLIGHT_PASS, "^no NCCL here"},
        {"{\"nccl\":{\"found\":false,\"fault\":false,\"why\":\"no NCCL "
         "here\"}}", PREFLIGHT_NCCL, 1, PREFLIGHT_FATAL, "^no NCCL here"},
        {"{\"gpu\":{\"found\":false,\"fault\":true,\"why\":\"803\"}}",
         PREFLIGHT_GPU, 0, PREFLIGHT_FATAL, "GPU: 803"},
        {"{\"gpu\":{\"found\":false,\"fault\":true,\"hangs\":true}}",
         PREFLIGHT_GPU, 0, PREFLIGHT_RETRY, "GPU: ?"},
        {"{\"nccl\":{\"found\":false,\"fault\":true,\"hangs\":true}}",
         PREFLIGHT_NCCL, 1, PREFLIGHT_RETRY, "NCCL: ?"},
        {"{\"nccl\":{\"found\":false,\"fault\":true,\"hangs\":true}}",
         PREFLIGHT_NCCL, 0, PREFLIGHT_WARN, "NCCL: ?"},
        {"{\"nccl\":{\"found\":false,\"fault\":true,\"why\":\"crashes\"}}",
         PREFLIGHT_NCCL, 1, PREFLIGHT_FATAL, "NCCL: crashes"},
        {"{\"gpu\":{\"found\":true,\"gpus\":[{\"index\":0,\"name\":\"H\"}]}}",
         PREFLIGHT_GPU, 0, PREFLIGHT_FATAL, "2 workers, and the driver has 1"},
        {"{\"gpu\":{\"found\":true,\"gpus\":[{\"index\":0},{\"index\":1,"
         "\"name\":\"H\",\"ecc_uncorrected\":3,\"nvlinks\":4,"
         "\"nvlinks_active\":3,\"memory_used_bytes\":5000000000}]}}",
         PREFLIGHT_GPU, 0, PREFLIGHT_WARN, "GPU 1 (H): 3 of 4 NVLinks"},
        {"{\"nccl\":{\"found\":true,\"version\":\"2.7.8\",\"code\":2708}}",
         PREFLIGHT_NCCL, 0, PREFLIGHT_WARN, "NCCL 2.7.8 is old"},
        {"{\"nccl\":{\"found\":true,\"version\":\"2.27.3\",\"code\":22703,"
         "\"wheel\":{\"version\":\"2.29.1\",\"code\":22901}}}",
         PREFLIGHT_NCCL, 0, PREFLIGHT_WARN, "two NCCLs: 2.27.3"},
        {"{\"nccl\":{\"found\":true,\"version\":\"2.27.3\",\"code\":22703,"
         "\"wheel\":{\"found\":false,\"fault\":true,\"why\":\"short\"}}}",
         PREFLIGHT_NCCL, 0, PREFLIGHT_WARN, "^pip's NCCL: short"},
        {"{\"nccl\":{\"found\":false,\"why\":\"no NCCL here\",\"plugins\":["
         "{\"variable\":\"NCCL_NET_PLUGIN\",\"name\":\"ofi\",\"found\":"
         "false,\"why\":\"no file\"}]}}", PREFLIGHT_NCCL, 0, PREFLIGHT_WARN,
         "^NCCL_NET_PLUGIN=ofi: no file"},
        {"{\"nccl\":{\"found\":false,\"why\":\"no NCCL here\",\"plugins\":["
         "{\"variable\":\"NCCL_NET_PLUGIN\",\"name\":\"ofi\",\"found\":"
         "true}]}}", PREFLIGHT_NCCL, 0, PREFLIGHT_PASS, "no NCCL here"},
        {"{\"rdma\":{\"found\":true,\"devices\":[{\"name\":\"m\",\"ports\":"
         "[{\"port\":1,\"state\":\"down\"}],\"register\":{\"ok\":true}}]}}",
         PREFLIGHT_RDMA, 0, PREFLIGHT_RETRY, "port 1 of m is down"},
        {"{\"rdma\":{\"found\":true,\"devices\":[{\"name\":\"m\",\"ports\":"
         "[],\"register\":{\"ok\":false,\"why\":\"ENOMEM\"}}]}}",
         PREFLIGHT_RDMA, 0, PREFLIGHT_FATAL, "cannot be registered: ENOMEM"},
        {"{\"rdma\":[]}", PREFLIGHT_RDMA, 0, PREFLIGHT_RETRY,
         "no answer that can be read"},
        {"{", PREFLIGHT_RDMA, 0, PREFLIGHT_RETRY, "no answer"},
    };

    (void)state;
    job.nproc = 2;
    job.nproc_by_gpus = true;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char body[1024];

        (void)snprintf(body, sizeof body, "echo '%s'", cases[i].json);
        put_probe(body);
        job.asked = cases[i].asked << cases[i].check;
        if (run(1u << cases[i].check) != cases[i].level)
            fail_msg("%s: level %d", cases[i].json, (int)last_worst);
        has(cases[i].level, cases[i].words);
    }
    put_probe("exit 7");
    assert_int_equal(run(PREFLIGHT_BIT(GPU)), PREFLIGHT_RETRY);
    has(PREFLIGHT_RETRY, "agent-probe --only gpu ended with 7");
}

/* How many workers are too many for the driver's one GPU. */
static void test_workers_share_gpus(void **state)
{
    char *mig[] = {(char[]){"CUDA_VISIBLE_DEVICES=MIG-a,MIG-b,MIG-c"}, NULL};

    (void)state;
    put_probe("echo '{\"gpu\":{\"found\":true,\"gpus\":["
              "{\"index\":0}]}}'");
    job.nproc_by_gpus = true;
    job.procs_per_gpu = 3;
    job.nproc = 3;
    assert_int_equal(run(PREFLIGHT_BIT(GPU)), PREFLIGHT_PASS);
    job.nproc = 4;
    assert_int_equal(run(PREFLIGHT_BIT(GPU)), PREFLIGHT_FATAL);
    has(PREFLIGHT_FATAL, "4 workers, and the driver has 1 GPU");
    job.procs_per_gpu = 1;
    job.nproc = 3;
    job.binds_gpus = true;
    assert_int_equal(run(PREFLIGHT_BIT(GPU)), PREFLIGHT_FATAL);
    job.envp = mig;
    assert_int_equal(run(PREFLIGHT_BIT(GPU)), PREFLIGHT_PASS);
    job.binds_gpus = false;
    assert_int_equal(run(PREFLIGHT_BIT(GPU)), PREFLIGHT_FATAL);
}

/* What NCCL_IB_HCA leaves out is none of the job's; the fix that a finding
 * names mends it. */
static void test_rdma_that_is_left_out(void **state)
{
    char *env[] = {(char[]){"NCCL_IB_HCA=^=m1:1"}, NULL};

    (void)state;
    put_probe("echo '{\"rdma\":{\"found\":true,\"devices\":["
              "{\"name\":\"m1\",\"ports\":[{\"port\":1,\"state\":\"down\"}],"
              "\"register\":{\"ok\":false}},"
              "{\"name\":\"m10\",\"ports\":[{\"port\":1,\"state\":\"active\"}],"
              "\"register\":{\"ok\":true}}]}}'");
    assert_int_equal(run(PREFLIGHT_BIT(RDMA)), PREFLIGHT_FATAL);
    has(PREFLIGHT_RETRY, "NCCL_IB_HCA=^=m1:1");
    job.envp = env;
    assert_int_equal(run(PREFLIGHT_BIT(RDMA)), PREFLIGHT_PASS);
    job.envp = rdma_off;
    assert_int_equal(run(PREFLIGHT_BIT(RDMA)), PREFLIGHT_PASS);
    job.asked = PREFLIGHT_BIT(RDMA);
    assert_int_equal(run(PREFLIGHT_BIT(RDMA)), PREFLIGHT_WARN);
    has(PREFLIGHT_WARN, "NCCL_IB_DISABLE=1 keeps NCCL from all RDMA devices");
}

static void test_rdma_that_cannot_be_opened(void **state)
{
    (void)state;
    put_probe("echo '{\"rdma\":{\"found\":true,\"devices\":["
              "{\"name\":\"m1\",\"why\":\"No such file\"},"
              "{\"name\":\"m2\",\"why\":\"No such file\"}]}}'");
    assert_int_equal(run(PREFLIGHT_BIT(RDMA)), PREFLIGHT_WARN);
    has(PREFLIGHT_WARN, "^2 of 2 RDMA devices cannot be opened; m1: No such");
    job.asked = PREFLIGHT_BIT(RDMA);
    assert_int_equal(run(PREFLIGHT_BIT(RDMA)), PREFLIGHT_FATAL);
}

/* Of one name no server says a word. */
int getaddrinfo(const char *name, const char *service,
                const struct addrinfo *hints, struct addrinfo **list)
{
    int (*real)(const char *, const char *, const struct addrinfo *,
                struct addrinfo **);

    while (strcmp(name, "silent.test") == 0)
        (void)pause();
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(name, service, hints, list);
}

static void test_a_check_that_hangs(void **state)
{
    (void)state;
    put_probe("sleep 100; echo '{}'");
    job.limit_ms = 300;
    assert_int_equal(run(PREFLIGHT_BIT(GPU)), PREFLIGHT_RETRY);
    has(PREFLIGHT_RETRY, "did not come back within 300 ms; it was running "
                         "agent-probe --only gpu");
    job.nnodes = 2;
    job.master_addr = "silent.test";
    assert_int_equal(run(PREFLIGHT_BIT(DNS)), PREFLIGHT_RETRY);
    has(PREFLIGHT_RETRY, "it was looking up the name silent.test");
    has(PREFLIGHT_RETRY, "no name server of /etc/resolv.conf answers");
}

static void test_cheap_forms(void **state)
{
    char *env[] = {(char[]){"NCCL_SOCKET_IFNAME=no-such"}, NULL};

    (void)state;
    put("/dev/shm/x", NULL);
    n_found = 0;
    job.checks = (1u << PREFLIGHT_CHECKS) - 1;
    (void)preflight_look(&job, &out);
    for (unsigned i = 0; i < n_found; i++)
        assert_int_not_equal(found[i].level, PREFLIGHT_PASS);
    job.envp = env;
    job.max_files = 10;
    job.checks = PREFLIGHT_BIT(IFACE) | PREFLIGHT_BIT(LIMITS);
    n_found = 0;
    assert_int_equal(preflight_look(&job, &out), PREFLIGHT_FATAL);
    has(PREFLIGHT_FATAL, "NCCL_SOCKET_IFNAME=no-such");
    has(PREFLIGHT_FATAL, "open files (ulimit -n) is 10");
}

/* All of it as a child of agent, record by record. */
static void test_child(void **state)
{
    struct preflight_reader r = {.got = 0};
    unsigned n = 0, over = 0;
    struct err e;
    pid_t pid;
    int fd, status;

    (void)state;
    job.checks = PREFLIGHT_BIT(SHM) | PREFLIGHT_BIT(ENV);
    pid = preflight_child_start(&job, &fd, &e);
    assert_true(pid > 0);
    for (;;) {
        enum preflight_got got = preflight_child_read(&r, fd);
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (got == PREFLIGHT_GOT_END)
            break;
        if (got == PREFLIGHT_GOT_NOTHING)
            assert_int_equal(poll(&p, 1, 60000), 1);
        else if (r.finding.level == PREFLIGHT_CHILD_OVER)
            over++;
        else
            n++;
    }
    assert_int_equal(n, 2);
    assert_int_equal(over, 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    (void)close(fd);
}

int main(void)
{
#define CASE(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(test_shm),
        CASE(test_shm_that_kills),
        CASE(test_limits),
        CASE(test_memlock),
        CASE(test_variables),
        CASE(test_a_file_that_is_there),
        CASE(test_devices_that_nobody_uses),
        CASE(test_odd_bytes),
        CASE(test_loopback_for_others),
        CASE(test_storage),
        CASE(test_no_files),
        CASE(test_no_probe),
        CASE(test_probe_says),
        CASE(test_workers_share_gpus),
        CASE(test_rdma_that_is_left_out),
        CASE(test_rdma_that_cannot_be_opened),
        CASE(test_a_check_that_hangs),
        CASE(test_cheap_forms),
        CASE(test_child),
    };

    return cmocka_run_group_tests_name("preflight", tests, NULL, NULL);
}
