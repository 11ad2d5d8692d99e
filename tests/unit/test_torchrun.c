/* torchrun: its command line and PET_*, read into the options of `run`. */
#include "options_fixture.h"

#include "agent/option_table.h"
#include "agent/torchrun.h"
#include "base/text.h"

/* What the job is, in words: "1:1 rank 0 at 127.0.0.1:29500 barrier 29400". */
static const char *job(void)
{
    static char out[512];
    struct text t;

    text_init(&t, out, sizeof out);
    text_add(&t, "%u:%u rank ", o.min_nodes, o.nnodes);
    if (o.any_node_rank)
        text_add(&t, o.torchrun.never_coordinates ? "never 0" : "auto");
    else
        text_add(&t, "%u", o.node_rank);
    text_add(&t, " at %s:%u%s barrier %u id %s", o.master_addr, o.master_port,
             o.master_port_given ? "!" : "", o.barrier_port,
             o.torchrun.random_id ? "random" : o.job_id);
    return out;
}

static const struct {
    const char *line, *env, *job;
} jobs[] = {
    {"agent torchrun x", NULL,
     "1:1 rank 0 at 127.0.0.1:29500 barrier 29400 id random"},
    {"/opt/venv/bin/torchrun x", NULL,
     "1:1 rank 0 at 127.0.0.1:29500 barrier 29400 id random"},
    {"torchrun --standalone --rdzv-id 7 x", NULL,
     "1:1 rank 0 at 127.0.0.1:29500 barrier 29400 id random"},
    {"torchrun --standalone --nnodes 1:4 x", NULL,
     "1:1 rank 0 at 127.0.0.1:29500 barrier 29400 id random"},
    {"torchrun --master-port 29501 x", NULL,
     "1:1 rank 0 at 127.0.0.1:29501! barrier 29401 id none"},
    {"torchrun --master_port=300 x", NULL,
     "1:1 rank 0 at 127.0.0.1:300! barrier 400 id none"},
    {"torchrun --local-addr 10.0.0.4 x", NULL,
     "1:1 rank 0 at 10.0.0.4:29500 barrier 29400 id random"},
    {"torchrun --nnodes 2 --node-rank 1 --master-addr pod-0 x", NULL,
     "2:2 rank 1 at pod-0:29500 barrier 29400 id none"},
    /* The static rendezvous waits for MAX. */
    {"torchrun --nnodes 2:4 --node-rank 3 --master-addr [fd00::1] x", NULL,
     "4:4 rank 3 at fd00::1:29500 barrier 29400 id none"},
    {"torchrun --nnodes 2 --rdzv-endpoint a:1234 --rdzv-id 3 x", NULL,
     "2:2 rank 0 at a:1234! barrier 1134 id 3"},
    {"torchrun --nnodes 2 --rdzv-endpoint [::1]:2345 x", NULL,
     "2:2 rank 0 at ::1:2345! barrier 2245 id none"},
    {"torchrun --nnodes 2:4 --rdzv-backend c10d --rdzv-endpoint a x", NULL,
     "2:4 rank auto at a:29500 barrier 29400 id none"},
    {"torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint a:77 x", NULL,
     "2:2 rank auto at a:177 barrier 77 id none"},
    {"torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint [::2]:65500 x",
     NULL, "2:2 rank auto at ::2:65400 barrier 65500 id none"},
    {"torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint a "
     "--rdzv-conf is_host=1 x", NULL,
     "2:2 rank 0 at a:29500 barrier 29400 id none"},
    {"torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint a "
     "--rdzv-conf timeout=5,is_host=False x", NULL,
     "2:2 rank never 0 at a:29500 barrier 29400 id none"},
    {"torchrun --rdzv-backend c10d --rdzv-endpoint a:77 --rdzv-id j x", NULL,
     "1:1 rank 0 at 127.0.0.1:29500 barrier 29400 id j"},
    {"torchrun --nnodes 1:2 --rdzv-backend c10d --rdzv-endpoint a:0 x", NULL,
     "1:1 rank 0 at 127.0.0.1:29500 barrier 29400 id none"},
    {"torchrun --rdzv-id= --master-port 4000 x", NULL,
     "1:1 rank 0 at 127.0.0.1:4000! barrier 3900 id random"},
    {"torchrun --standalone --rdzv-backend etcd x", NULL,
     "1:1 rank 0 at 127.0.0.1:29500 barrier 29400 id random"},
    {"torchrun --standalone x", "PET_RDZV_BACKEND=zeus",
     "1:1 rank 0 at 127.0.0.1:29500 barrier 29400 id random"},
    {"torchrun --rdzv-backend etcd --rdzv-backend c10d x", NULL,
     "1:1 rank 0 at 127.0.0.1:29500 barrier 29400 id none"},
    /* What others say of the pod is not torchrun's business. */
    {"torchrun x", "RANK=1 WORLD_SIZE=2 MASTER_ADDR=b MASTER_PORT=3",
     "1:1 rank 0 at 127.0.0.1:29500 barrier 29400 id random"},
    {"torchrun x", "SLURM_JOB_NUM_NODES=2 SLURM_NODEID=1 "
                   "SLURM_JOB_NODELIST=a,b SLURM_JOB_ID=4",
     "1:1 rank 0 at 127.0.0.1:29500 barrier 29400 id random"},
    {"torchrun x", "AGENT_NNODES=2 AGENT_JOB_ID=3 AGENT_MASTER_PORT=5",
     "1:1 rank 0 at 127.0.0.1:29500 barrier 29400 id random"},
    {"torchrun x", "PET_NNODES=2 PET_NODE_RANK=1 PET_MASTER_ADDR=b "
                   "PET_MASTER_PORT=23456 AGENT_BARRIER_PORT=7000",
     "2:2 rank 1 at b:23456! barrier 7000 id none"},
    {"torchrun --nnodes 3 x", "PET_NNODES=2 PET_NODE_RANK=1",
     "3:3 rank 1 at 127.0.0.1:29500 barrier 29400 id none"},
    {"torchrun x", "PET_STANDALONE= PET_NNODES=1 PET_NODE_RANK=",
     "1:1 rank 0 at 127.0.0.1:29500 barrier 29400 id random"},
    {"torchrun --master-port 9 x", "PET_STANDALONE=0",
     "1:1 rank 0 at 127.0.0.1:9! barrier 109 id none"},
    {"torchrun x", "PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT=w-0:23456 "
                   "PET_NNODES=1:2 PET_RDZV_ID=e",
     "1:2 rank auto at w-0:23556 barrier 23456 id e"},
};

static void test_jobs(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        good(jobs[i].line, jobs[i].env);
        assert_int_equal(o.command, CMD_RUN);
        assert_true(o.torchrun.is_on);
        assert_string_equal(o.args[0], "x");
        if (strcmp(job(), jobs[i].job) != 0)
            fail_msg("%s [%s]: '%s', wanted '%s'", jobs[i].line,
                     jobs[i].env ? jobs[i].env : "", job(), jobs[i].job);
    }
}

static void test_defaults_are_torchruns(void **state)
{
    (void)state;
    good("torchrun train.py --nnodes 2", NULL);
    assert_int_equal(o.n_args, 3);
    assert_int_equal(o.nproc_kind, NPROC_NUMBER);
    assert_int_equal(o.nproc, 1);
    assert_int_equal(o.max_restarts, 0);
    assert_int_equal(o.backoff_max_ms, 0);
    assert_int_equal(o.grace_ms, 30000);
    assert_int_equal(o.barrier_timeout_ms, 600000);
    assert_string_equal(o.role, "default");
    assert_string_equal(o.log_prefix, "[{role}{local_rank}]:");
    assert_null(o.log_dir);
    assert_string_equal(o.torchrun.signals, "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
    good("agent true", NULL);
    assert_false(o.torchrun.is_on);
}

static void test_dashes(void **state)
{
    (void)state;
    good("torchrun -- x -- y", NULL);
    assert_int_equal(o.n_args, 3);
    good("torchrun x -- y -- z", NULL);
    assert_int_equal(o.n_args, 4);
    assert_string_equal(o.args[0], "x");
    assert_string_equal(o.args[1], "y");
    assert_string_equal(o.args[2], "--");
    good("torchrun x --", NULL);
    assert_int_equal(o.n_args, 1);
    assert_string_equal(o.args[0], "x");
    assert_null(o.args[1]);
    good("torchrun x y --", NULL);
    assert_int_equal(o.n_args, 3);
}

/* --rdzv-conf with blanks in it, under the static rendezvous. */
static int conf(const char *text)
{
    char *argv[] = {(char[]){"torchrun"}, (char[]){"--master-port=5"},
                    (char[]){"--rdzv-conf"}, (char *)(uintptr_t)text,
                    (char[]){"x"}, NULL};
    char *envp[] = {NULL};

    return options_read(&o, 5, argv, envp, &e);
}

static void test_times(void **state)
{
    (void)state;
    good("torchrun --master-port 5 x", NULL);
    assert_int_equal(o.barrier_timeout_ms, 900000);
    good("torchrun --master-port 5 --rdzv-conf=timeout=20 x", NULL);
    assert_int_equal(o.barrier_timeout_ms, 20000);
    good("torchrun --master-port 5 --rdzv-conf=timeout=20 x",
         "AGENT_BARRIER_TIMEOUT=7s");
    assert_int_equal(o.barrier_timeout_ms, 7000);
    good("torchrun --rdzv-backend c10d --rdzv-conf "
         "timeout=20,join_timeout=40,last_call_timeout=3,read_timeout=9 x",
         NULL);
    assert_int_equal(o.barrier_timeout_ms, 40000);
    assert_int_equal(o.last_call_ms, 3000);
    assert_int_equal(conf(" timeout = 7 ,\tread_timeout=3\n"), 0);
    assert_int_equal(o.barrier_timeout_ms, 7000);
    assert_int_equal(conf(" "), 0);
    assert_int_equal(o.barrier_timeout_ms, 900000);
    good("torchrun x", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=4");
    assert_int_equal(o.grace_ms, 4000);
    good("torchrun x", "AGENT_GRACE=9s TORCH_ELASTIC_SHUTDOWN_TIMEOUT=4");
    assert_int_equal(o.grace_ms, 9000);
    good("torchrun --shutdown-timeout 2 x",
         "AGENT_GRACE=9s TORCH_ELASTIC_SHUTDOWN_TIMEOUT=4");
    assert_int_equal(o.grace_ms, 2000);
    good("torchrun x", "PET_SHUTDOWN_TIMEOUT=0 AGENT_GRACE=9s");
    assert_int_equal(o.grace_ms, 0);
}

static void test_spellings(void **state)
{
    static const char *const same[] = {
        "torchrun --max-restarts 7 -m x y", "torchrun -m --max_restarts=7 x y",
        "torchrun --module --max-r 7 x y", "torchrun --mod --max_re=7 -- x y"};

    (void)state;
    for (unsigned i = 0; i < sizeof same / sizeof same[0]; i++) {
        good(same[i], NULL);
        assert_int_equal(o.max_restarts, 7);
        assert_true(o.torchrun.module);
        assert_int_equal(o.n_args, 2);
    }
    good("torchrun -mt3 -r 0:1,9:2 --event-log-handler console "
         "--start-method fork --monitor-interval 0.5 x", "AGENT_DATASET=d");
    assert_int_equal(o.torchrun.tee.rest, 3);
    assert_int_equal(o.n_datasets, 1);
    good("torchrun -t=3 -r=0:1 --rdzv-id -7 --role - x", NULL);
    assert_int_equal(o.torchrun.tee.rest, 3);
    assert_int_equal(o.torchrun.redirects.of[0], 1);
    assert_string_equal(o.job_id, "-7");
    assert_string_equal(o.role, "-");
    good("torchrun --log-dir= --role= --master-addr= --local-addr= "
         "--logs-specs default --duplicate-stdout-filters= x", NULL);
    assert_null(o.log_dir);
    assert_string_equal(o.role, "");
    assert_string_equal(o.master_addr, "127.0.0.1");
    assert_string_equal(o.torchrun.filters[0], "");
    assert_null(o.torchrun.filters[1]);
    good("torchrun x", "PET_MODULE=2 PET_NO_PYTHON=00");
    assert_true(o.torchrun.module && !o.torchrun.no_python);
    good("torchrun x", "PET_MODULE=1 PET_TEE=2 PET_ROLE=r PET_LOG_DIR=d "
                       "PET_MAX_RESTARTS=2 PET_NPROC_PER_NODE=gpu");
    assert_true(o.torchrun.module);
    assert_int_equal(o.torchrun.tee.of[3], 2);
    assert_int_equal(o.nproc_kind, NPROC_GPU);
    assert_string_equal(o.role, "r");
    assert_string_equal(o.log_dir, "d");
}

/* As files and YAML blocks have them. */
static void test_blanks(void **state)
{
    static const char *const env[] = {
        "PET_NNODES= 2\n", "PET_NPROC_PER_NODE=3\n", "PET_NODE_RANK= 1 ",
        "PET_MASTER_PORT=\t77", "PET_MAX_RESTARTS=4 ",
        "PET_MONITOR_INTERVAL=0.5\n", "PET_MODULE= 1\n",
        "PET_LOCAL_RANKS_FILTER=0 , 2", NULL};
    char *argv[] = {(char[]){"torchrun"}, (char[]){"x"}, NULL};

    (void)state;
    assert_int_equal(options_read(&o, 2, argv,
                                  (char *const *)(uintptr_t)env, &e), 0);
    assert_string_equal(job(), "2:2 rank 1 at 127.0.0.1:77! barrier 177 id "
                               "none");
    assert_int_equal(o.nproc, 3);
    assert_int_equal(o.max_restarts, 4);
    assert_true(o.torchrun.module);
    assert_int_equal(o.torchrun.local_ranks.n, 2);
}

static const struct {
    const char *line, *env, *part;
} faults[] = {
    {"agent torchrun", NULL, "no script to run; use: torchrun"},
    {"torchrun --rdzv-backend etcd x", NULL, "etcd is not served"},
    {"torchrun x", "PET_RDZV_BACKEND=etcd-v2", "PET_RDZV_BACKEND=etcd-v2: etcd "
                                               "is not served"},
    {"torchrun --rdzv-backend zeus x", NULL, "use one of: static, c10d"},
    {"torchrun --nnodes 2 --rdzv-backend c10d x", NULL, "2 pods and no "
     "--rdzv-endpoint: the others cannot know where to meet"},
    {"torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint a:0 x", NULL,
     "where to meet"},
    {"torchrun --standalone --nnodes 2 x", NULL, "could not join"},
    {"torchrun --rdzv-endpoint a x", NULL, "it needs a port"},
    {"torchrun --rdzv-endpoint a:b x", NULL, "use HOST:PORT"},
    {"torchrun --rdzv-endpoint :5 x", NULL, "a host is missing"},
    {"torchrun --master-addr= --nnodes 2 x", NULL, "a host is missing"},
    {"torchrun --master-addr a/b --master-port 5 x", NULL, "no host name"},
    {"torchrun --node-rank 2 --nnodes 2 x", NULL, "less than --nnodes 2"},
    {"torchrun --nnodes 2 x", "PET_NODE_RANK=2", "must be less"},
    {"torchrun --rdzv-conf a x", NULL, "a: use KEY=VALUE"},
    {"torchrun --rdzv-conf =1 x", NULL, "use KEY=VALUE"},
    {"torchrun --rdzv-conf a= x", NULL, "use KEY=VALUE"},
    {"torchrun --rdzv-conf a=1,,b=2 x", NULL, "use KEY=VALUE"},
    {"torchrun --rdzv-conf a=1, x", NULL, "use KEY=VALUE"},
    {"torchrun --rdzv-conf a,b=1 x", NULL, "a: use KEY=VALUE"},
    {"torchrun --role -x y", NULL, "it needs a value, NAME, and -x follows"},
    {"torchrun -t -m x", NULL, "it needs a value"},
    {"torchrun --max-restarts -1x y", NULL, "it needs a value"},
    {"torchrun --signals-to-handle SIGTERM,SIGKILL x", NULL,
     "nobody can handle SIGKILL"},
    {"torchrun --rdzv-conf join_timeout=x x", NULL, "use whole seconds"},
    {"torchrun --rdzv-backend c10d --rdzv-conf is_host=2 x", NULL,
     "is_host=2: use 0 or 1"},
    {"torchrun --rdzv-conf store_type=file x", NULL, "only tcp is served"},
    {"torchrun --logs-specs a x", NULL, "a plug-in in Python"},
    {"torchrun --event-log-handler zeus x", NULL, "use one of: null, console"},
    {"torchrun --numa-binding numa x", NULL, "node, socket, exclusive, core"},
    {"torchrun --nproc-per-node xpu x", NULL, "use a number"},
    {"torchrun --max-restarts -1 x", NULL, "use a whole number"},
    {"torchrun --max-restarts 3/1h x", NULL, "use a whole number"},
    {"torchrun --monitor-interval x x", NULL, "use a number of seconds"},
    {"torchrun --start-method vfork x", NULL, "spawn, fork, forkserver"},
    {"torchrun --tee 4 x", NULL, "use 0, 1, 2 or 3"},
    {"torchrun -r 0:3,11:1 x", NULL, "-r=0:3,11:1: use 0, 1, 2 or 3"},
    {"torchrun --tee 0:3, x", NULL, "use 0, 1, 2 or 3"},
    {"torchrun --tee= x", NULL, "use 0, 1, 2 or 3"},
    {"torchrun --local-ranks-filter 1, x", NULL, "use local ranks"},
    {"torchrun --local-ranks-filter a x", NULL, "use local ranks"},
    {"torchrun --signals-to-handle SIGFOO x", NULL, "use names of signals"},
    {"torchrun --signals-to-handle TERM x", NULL, "use names of signals"},
    {"torchrun --signals-to-handle SIGTERM, x", NULL, "use names of signals"},
    {"torchrun -m --no-python x", NULL, "a module needs Python"},
    {"torchrun x", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=5s", "use whole seconds"},
    {"torchrun --r 3 x", NULL, "no such option"}, /* Of several names. */
    {"torchrun --nprocs-per-node 2 x", NULL, "did you mean --nproc-per-node"},
    {"torchrun --graze 3 x", NULL, "see agent torchrun --help"},
    {"torchrun --barrier_timeout 3s x", NULL, "agent's own, and none of "
     "torchrun's: give AGENT_BARRIER_TIMEOUT in the environment"},
    {"agent --rdzv_endpoint=h:29400 x", NULL, "--rdzv_endpoint: an option of "
     "torchrun's, and none of agent's own: use agent torchrun, or see agent "
     "--help"},
    {"agent -t 3 x", NULL, "-t: an option of torchrun's"},
    {"agent --rdzv 3 x", NULL, "--rdzv: no such option"},
    {"agent --t 3 x", NULL, "--t: no such option"},
    {"agent env --standalone", NULL, "--standalone: no such option"},
    {"torchrun x", "PET_TEE=9", "PET_TEE=9: use 0, 1, 2 or 3"},
    {"torchrun --standalone=1 x", NULL, "it takes no value"},
};

static void test_faults(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        int r = read_line(faults[i].line, faults[i].env);

        if (r != -ERR_USAGE || !strstr(e.text, faults[i].part))
            fail_msg("%s [%s]: %d '%s', wanted '%s'", faults[i].line,
                     faults[i].env ? faults[i].env : "", r, e.text,
                     faults[i].part);
    }
}

static void test_signals(void **state)
{
    static const struct {
        const char *list;
        uint64_t stop_with;
    } cases[] = {
        {"SIGTERM,SIGINT,SIGHUP,SIGQUIT", 0},
        {"SIGUSR1", (uint64_t)1 << 10},
        {"SIGTERM,SIGUSR1,SIGUSR2", (uint64_t)1 << 10 | 1 << 12},
    };
    char line[128];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(line, sizeof line, "torchrun --signals-to-handle %s x",
                       cases[i].list);
        good(line, NULL);
        assert_string_equal(o.torchrun.signals, cases[i].list);
        assert_true(o.torchrun.stop_with == cases[i].stop_with);
    }
    good("agent x", NULL);
    assert_true(o.torchrun.stop_with == 0);
}

static void test_c10d_ignores_a_node_rank(void **state)
{
    (void)state;
    good("torchrun --nnodes 2 --node-rank 1 --rdzv-backend c10d "
         "--rdzv-endpoint a x", NULL);
    assert_true(o.any_node_rank);
    assert_non_null(strstr(o.topology.warning, "node rank 1 is not used"));
}

static void test_prefixes(void **state)
{
    static const struct {
        const char *template, *prefix;
    } cases[] = {
        {"[${role_name}${local_rank}|${rank}]:", "[r1|7]:"},
        {"$rank $local_rank|", "7 1|"},
        {"$$rank ${other} $ranks ${rank", "$rank ${other} $ranks ${rank"},
        {"", "[r1]:"},
        {"{rank}", "{rank}"}, /* Agent's own macros are not torchrun's. */
        {"none", "none"},
    };
    char env[128], prefix[64];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *argv[] = {(char[]){"torchrun"}, (char[]){"x"}, NULL};
        char *envp[] = {env, NULL};

        (void)snprintf(env, sizeof env,
                       "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=%s",
                       cases[i].template);
        assert_int_equal(options_read(&o, 2, argv, envp, &e), 0);
        torchrun_prefix(&o, "r", 1, 7, prefix, sizeof prefix);
        assert_string_equal(prefix, cases[i].prefix);
    }
    torchrun_prefix(&o, "role", 1, 7, prefix, 3); /* Cut. */
    assert_int_equal(strlen(prefix), 2);
}

/* For local ranks 0 and 1, stdout then stderr: shown, prefix, file, filter. */
static const char *streams(void)
{
    static char out[64];
    struct text t;

    text_init(&t, out, sizeof out);
    for (unsigned i = 0; i < 4; i++) {
        struct torchrun_stream s;

        torchrun_stream(&o, i / 2, i % 2, &s);
        text_add(&t, "%s%s%s%s%s", i ? " " : "", s.is_shown ? "s" : "-",
                 s.is_shown && s.has_prefix ? "p" : "", s.has_file ? "f" : "",
                 s.is_filtered ? "x" : "");
    }
    return out;
}

static void test_streams(void **state)
{
    static const struct {
        const char *options, *streams;
        bool has_files;
    } cases[] = {
        {"", "s s s s", false},
        {"--tee 3", "spf spf spf spf", true},
        {"-t 1", "spf s spf s", true},
        {"-r 3", "-f -f -f -f", true},
        {"-r 2", "s -f s -f", true},
        {"-r 3 -t 1", "spf -f spf -f", true},
        {"-t 0:3", "spf spf s s", true},
        {"-t 1:2 -r 0:1", "-f s s spf", true},
        {"--local-ranks-filter 1", "- - s s", false},
        {"--local-ranks-filter 0 -t 3", "spf spf -f -f", true},
        {"--duplicate-stdout-filters a -t 3", "spfx spf spfx spf", true},
        {"--duplicate-stderr-filters a -t 3 --local-ranks-filter 1",
         "-f -f spf spfx", true},
        {"--duplicate-stdout-filters a", "s s s s", true},
        {"--log-dir /dev/null -t 3 --local-ranks-filter 1", "s s s s", false},
        {"-t 3:3", "s s s s", true},
    };
    char line[256];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(line, sizeof line, "torchrun %s x", cases[i].options);
        good(line, NULL);
        if (strcmp(streams(), cases[i].streams) != 0)
            fail_msg("%s: '%s', wanted '%s'", line, streams(),
                     cases[i].streams);
        assert_int_equal(torchrun_has_files(&o), cases[i].has_files);
    }
}

static void test_filter(void **state)
{
    static const struct {
        const char *list, *line;
        bool passes;
    } cases[] = {
        {"apple", "an apple", true},   {"apple", "an appl", false},
        {"apple,pear", "pear", true},  {"a,,b", "a,b", true},
        {"a,,b", "ab", false},         {"a,,b,c", "xcx", true},
        {"x,", "anything", true}, /* As Python has it: "" is in all. */
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (torchrun_filter(cases[i].list, cases[i].line,
                            strlen(cases[i].line)) != cases[i].passes)
            fail_msg("'%s' of '%s'", cases[i].line, cases[i].list);
}

static void test_devices(void **state)
{
    static const struct {
        const char *visible;
        unsigned rank;
        const char *device; /* NULL: there is none. */
    } cases[] = {
        {NULL, 3, "3"},         {"4,5, 6 ", 0, "4"},   {"4,5, 6 ", 2, "6"},
        {"4,5", 2, NULL},       {"MIG-a,GPU-b", 1, "GPU-b"},
        {"", 0, ""},            {"7", 0, "7"},
    };
    char device[32];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool found = torchrun_device(cases[i].visible, cases[i].rank, device,
                                     sizeof device);

        assert_int_equal(found, cases[i].device != NULL);
        if (found)
            assert_string_equal(device, cases[i].device);
    }
    good("torchrun --virtual-local-rank x", NULL);
    assert_int_equal(torchrun_check_devices(&o, 2, "1,2", &e), 0);
    assert_int_equal(torchrun_check_devices(&o, 2, NULL, &e), 0);
    assert_int_equal(torchrun_check_devices(&o, 3, "1,2", &e), -ERR_USAGE);
    good("torchrun x", NULL);
    assert_int_equal(torchrun_check_devices(&o, 3, "1,2", &e), 0);
}

static void test_table(void **state)
{
    const struct opt_table *t = torchrun_table();

    (void)state;
    assert_true(t->n <= OPT_MAX_ROWS);
    for (unsigned i = 0; i < t->n; i++) {
        const struct opt_row *r = &t->rows[i];

        assert_true(strlen(r->name) < OPT_NAME_MAX && r->help);
        assert_int_equal(r->commands, OPT_TORCHRUN);
        assert_ptr_equal(opt_find_in(t, r->name, strlen(r->name)), r);
        if (r->letter)
            assert_ptr_equal(opt_find_letter(t, r->letter), r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_defaults_are_torchruns),
        cmocka_unit_test(test_dashes),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_blanks),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_c10d_ignores_a_node_rank),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_table),
    };

    return cmocka_run_group_tests_name("torchrun", tests, NULL, NULL);
}
