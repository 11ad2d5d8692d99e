/* options: command lines and environments, and what is read or said. */
#include "options_fixture.h"

#include "agent/contract.h"
#include "agent/option_table.h"
#include "preflight/names.h"

static void test_defaults(void **state)
{
    (void)state;
    good("agent true", NULL);
    assert_int_equal(o.command, CMD_RUN);
    assert_int_equal(o.nproc_kind, NPROC_DEFAULT);
    assert_int_equal(o.nnodes, 1);
    assert_int_equal(o.max_restarts, 3);
    assert_int_equal(o.grace_ms, 25000);
    assert_int_equal(o.backoff_min_ms, 1000);
    assert_int_equal(o.backoff_max_ms, 30000);
    assert_int_equal(o.barrier_timeout_ms, 600000);
    assert_string_equal(o.master_addr, "127.0.0.1");
    assert_false(o.master_port_given);
    assert_string_equal(o.job_id, "none");
    assert_string_equal(o.role, "rank");
    assert_string_equal(o.log_prefix, "[{role}{rank}] ");
    assert_string_equal(o.args[0], "true");
    assert_int_equal(o.n_args, 1);
}

static void test_spelling(void **state)
{
    static const char *const same[] = {
        "agent --max-restarts 7 c", "agent --max-restarts=7 c",
        "agent --max_restarts 7 c", "agent --max_restarts=7 -- c",
        "agent run --max-restarts 7 c", ("agent --max-restarts 1 "
        "--max-restarts 7 c")};

    (void)state;
    for (unsigned i = 0; i < sizeof same / sizeof same[0]; i++) {
        good(same[i], NULL);
        assert_int_equal(o.max_restarts, 7);
        assert_string_equal(o.args[0], "c");
    }
    good("agent --nproc-per-node 2 python --nproc 9", NULL);
    assert_int_equal(o.nproc, 2); /* What follows the command is its own. */
    assert_int_equal(o.n_args, 3);
    good("agent -- --odd", NULL);
    assert_string_equal(o.args[0], "--odd");
    good("agent -- stage", NULL);
    assert_int_equal(o.command, CMD_RUN);
    good("agent -qqv c", NULL);
    assert_true(o.quiet == 2 && o.verbose == 1);
    good("agent --no_restart-on 2 --job-id=--odd c", NULL);
    assert_string_equal(o.job_id, "--odd"); /* With "=" it may be anything. */
    good("agent --node-rank 0 --job-id - c", NULL);
    assert_string_equal(o.job_id, "-");
    good("agent -v stage --dataset m", NULL);
    assert_int_equal(o.command, CMD_RUN); /* Commands are first words. */
    assert_string_equal(o.args[0], "stage");
}

static void test_log_max(void **state)
{
    static const struct {
        const char *line;
        uint64_t bytes;
        unsigned keep;
    } cases[] = {
        {"agent --log-dir d c", 0, 0},
        {"agent --log-dir d --log-max 65536 c", 65536, 1},
        {"agent --log-dir d --log-max 100M:3 c", 100 << 20, 3},
        {"agent --log-dir d --log-max 4k:0 c", 4096, 0},
        {"agent --log-dir d --log-max 2GiB c", (uint64_t)2 << 30, 1},
        {"agent --log-dir d --log-max 1TB:1000 c", (uint64_t)1 << 40, 1000},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        good(cases[i].line, NULL);
        assert_string_equal(o.log_dir, "d");
        assert_true(o.log_max_bytes == cases[i].bytes);
        assert_int_equal(o.log_keep, cases[i].keep);
    }
    good("agent c", "AGENT_LOG_MAX=1M"); /* The image's, for when it is. */
}

static void test_log_ranks(void **state)
{
    (void)state;
    good("agent c", NULL);
    assert_true(options_has_rank(&o.log_ranks, 0));
    assert_true(options_has_rank(&o.log_ranks, 70000));
    good("agent --log-ranks 0,4-7 c", NULL);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(options_has_rank(&o.log_ranks, i),
                         i == 0 || (i >= 4 && i <= 7));
    good("agent --log-ranks 1 --log-ranks all c", NULL);
    assert_true(options_has_rank(&o.log_ranks, 5));
    good("agent c", "AGENT_LOG_RANKS=9");
    assert_false(options_has_rank(&o.log_ranks, 8));
    assert_true(options_has_rank(&o.log_ranks, 9));
}

/* What the job does not have; a range of which it has some is as it may be. */
static void test_log_ranks_beyond(void **state)
{
    static const struct {
        const char *line;
        unsigned n_ranks;
        const char *beyond;
    } cases[] = {
        {"agent c", 1, ""},
        {"agent --log-ranks 9 c", 2, "9"},
        {"agent --log-ranks 9 c", 9, "9"},
        {"agent --log-ranks 9 c", 10, ""},
        {"agent --log-ranks 0-99 c", 2, ""},
        {"agent --log-ranks 0,4-7,1,2 c", 2, "4-7,2"},
    };
    char text[32];
    struct text t;

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        good(cases[i].line, NULL);
        text_init(&t, text, sizeof text);
        assert_int_equal(options_ranks_beyond(&o.log_ranks, cases[i].n_ranks,
                                              &t),
                         cases[i].beyond[0] != '\0');
        assert_string_equal(text, cases[i].beyond);
    }
}

static void test_values(void **state)
{
    (void)state;
    good("agent --nproc auto c", NULL);
    assert_int_equal(o.nproc_kind, NPROC_AUTO);
    good("agent --grace 500ms c", NULL);
    assert_int_equal(o.grace_ms, 500);
    good("agent --grace 1.5s c", NULL);
    assert_int_equal(o.grace_ms, 1500);
    good("agent --grace 0 c", NULL);
    assert_int_equal(o.grace_ms, 0);
    good("agent --barrier-timeout 2h c", NULL);
    assert_int_equal(o.barrier_timeout_ms, 7200000);
    good("agent --restart-backoff 10ms:2m c", NULL);
    assert_true(o.backoff_min_ms == 10 && o.backoff_max_ms == 120000);
    good("agent --no-restart-on 2,77 c", NULL);
    assert_true(o.no_restart_on[2] && o.no_restart_on[77]);
    assert_false(o.no_restart_on[3]);
    assert_int_equal(o.contracts, CONTRACT_TORCH);
    good("agent --contract all c", NULL);
    assert_int_equal(o.contracts, (1u << CONTRACTS) - 1);
    good("agent --contract mpi,jax --expand c", NULL);
    assert_int_equal(o.contracts, CONTRACT_MPI | CONTRACT_JAX);
    assert_true(o.expand && !o.pass_local_rank);
    assert_true(o.procs_per_gpu == 1 && !o.bind_gpus && !o.dry_run);
    good("agent --procs-per-gpu 4 --gpu-bind=single --dry-run c", NULL);
    assert_true(o.procs_per_gpu == 4 && o.bind_gpus && o.dry_run);
    good("agent --pass-local-rank c", NULL);
    assert_string_equal(o.pass_local_rank, "--local-rank=");
    assert_string_equal(o.args[0], "c");
    good("agent --pass-local-rank=underscore c", NULL);
    assert_string_equal(o.pass_local_rank, "--local_rank=");
    good("agent c", "AGENT_PASS_LOCAL_RANK=1");
    assert_string_equal(o.pass_local_rank, "--local-rank=");
    good("agent c", "AGENT_PASS_LOCAL_RANK=0");
    assert_null(o.pass_local_rank);
    good("agent --restart-scope worker --pre-start x c", NULL);
    assert_int_equal(o.restart_scope, SCOPE_WORKER);
    assert_string_equal(o.pre_start, "x");
    good("agent --exit-map stopped=0,worker=1,exec=255 "
         "--same-failure-limit 3 c", NULL);
    assert_int_equal(exit_map_code(&o.exit_map, EXIT_CLASS_STOPPED, 143), 0);
    assert_int_equal(exit_map_code(&o.exit_map, EXIT_CLASS_WORKER, 9), 1);
    assert_int_equal(exit_map_code(&o.exit_map, EXIT_CLASS_OK, 0), 0);
    assert_int_equal(exit_map_code(&o.exit_map, exit_class_of(ERR_NOTFOUND),
                                   127), 255);
    assert_int_equal(o.same_failure_limit, 3);
    good("agent --nnodes 2:5 --node-rank auto c", NULL);
    assert_true(o.min_nodes == 2 && o.nnodes == 5 && o.any_node_rank);
    good("agent --max-restarts 5/1h c", NULL);
    assert_true(o.max_restarts == 5 && o.restart_period_ms == 3600000);
    good("agent --dataset a --source b --dataset c --stage s c", NULL);
    assert_true(o.n_datasets == 2 && o.n_sources == 1);
    assert_string_equal(o.datasets[1], "c");
    good("agent --master-port 1234 c", NULL);
    assert_true(o.master_port_given);
    good("agent --master-addr fe80::1 c", NULL);
    assert_string_equal(o.master_addr, "fe80::1");
    assert_int_equal(o.origins[TOPO_MASTER_ADDR], BY_WORD);
    good("agent --nnodes 2 --node-rank 1 c", NULL);
    assert_int_equal(o.node_rank, 1); /* Two agents on a laptop. */
    assert_string_equal(o.master_addr, "127.0.0.1");
    assert_int_equal(o.origins[TOPO_MASTER_ADDR], BY_DEFAULT);
    good("agent c", NULL);
    assert_true(o.mesh == MESH_CHOICE_RING && !o.mesh_given);
    good("agent --mesh ring c", NULL);
    assert_true(o.mesh == MESH_CHOICE_RING && o.mesh_given);
    good("agent --mesh-port 4567 c", "AGENT_MESH=full");
    assert_true(o.mesh == MESH_CHOICE_FULL && o.mesh_given);
    assert_int_equal(o.mesh_port, 4567);
    good("agent --mesh off c", "AGENT_MESH=full");
    assert_int_equal(o.mesh, MESH_CHOICE_OFF);
}

static void test_environment(void **state)
{
    (void)state;
    good("agent c", "AGENT_GRACE=3s AGENT_NPROC=4");
    assert_true(o.grace_ms == 3000 && o.nproc == 4);
    good("agent --grace 9s c", "AGENT_GRACE=3s");
    assert_int_equal(o.grace_ms, 9000); /* The command line wins. */
    good("agent c", "AGENT_GRACE=");
    assert_int_equal(o.grace_ms, 25000); /* Empty is unset. */
    good("agent c", "AGENT_REVERIFY=yes AGENT_DATASET=a,b AGENT_SOURCE=x,y");
    assert_true(o.reverify && o.n_datasets == 2 && o.n_sources == 2);
    assert_string_equal(o.sources[1], "y");
    good("agent c", "AGENT_REVERIFY=True AGENT_VERBOSE=2 AGENT_QUIET=on");
    assert_true(o.reverify && o.verbose == 2 && o.quiet == 1);
    good("agent -v c", "AGENT_VERBOSE=2");
    assert_int_equal(o.verbose, 1);
    good("agent c", "AGENT_REVERIFY=off");
    assert_false(o.reverify);
    /* A name wins over its alias, whatever their order. */
    good("agent c", "AGENT_NPROC=3 AGENT_NPROC_PER_NODE=2");
    assert_int_equal(o.nproc, 3);
    good("agent c", "AGENT_NPROC_PER_NODE=2 AGENT_NPROC=3");
    assert_int_equal(o.nproc, 3);
    /* The image may have a stage for jobs that have data. */
    good("agent c", "AGENT_STAGE=/scratch");
    assert_string_equal(o.stage, "/scratch");
    /* What the command line says is not asked of the environment. */
    good("agent --master-port 1 c", "AGENT_MASTER_PORT=tcp://10.0.0.1:1");
    assert_int_equal(o.master_port, 1);
    good("agent verify m", "AGENT_NPROC=x AGENT_LOG_DIR=/x");
    good("agent --help", "AGENT_NPROC=x");
    good("agent fetch x", "AGENT_NPROC=x");
    /* Near a name of four letters, in lower case, or with no variable. */
    good("agent c", "AGENT_ROLES=1 AGENT_HTTPS=1 AGENT_grace=1 AGENT_Grace=1 "
         "AGENT_VERSIONS=1 AGENT_HELP=1 AGENT_NAME=n AGENT_OUTPUT=o");
    /* Service links and agent's own variables are no options. */
    good("agent c", "AGENT_PORT=tcp://10.0.0.1:80 AGENT_SERVICE_HOST=10.0.0.1 "
         "AGENT_PORT_29400_TCP=x AGENT_STAGE_PORT=1 AGENT_COOKIE=1 "
         "AGENT_DATASET_DIR=/d AGENT_DATASET_DIR_X=/d AGENT_GPU=1 "
         "AGENT_PROCESS_INDEX=1 AGENT_HEARTBEAT_FD=3 AGENT_X");
}

static void test_tools(void **state)
{
    (void)state;
    good("agent manifest d -o f --name n --unpack --format sha256sum", NULL);
    assert_int_equal(o.command, CMD_MANIFEST);
    assert_string_equal(o.args[0], "d");
    assert_string_equal(o.output, "f");
    assert_true(o.unpack && o.format == FORMAT_SHA256SUM && o.n_args == 1);
    good("agent verify m d", NULL);
    assert_true(o.command == CMD_VERIFY && o.n_args == 2);
    good("agent stage --dataset m --stage s", NULL);
    assert_int_equal(o.command, CMD_STAGE);
    good("agent fetch --any -thing", NULL);
    assert_true(o.command == CMD_FETCH && o.n_args == 2);
    good("agent --help=man", NULL);
    assert_int_equal(o.command, CMD_HELP);
    assert_string_equal(o.help_view, "man");
    good("agent stage --help", NULL);
    assert_string_equal(o.help_view, "stage");
    good("agent status --json --watch --socket s", "AGENT_SOCKET=x");
    assert_true(o.command == CMD_STATUS && o.json && o.watch);
    assert_string_equal(o.socket, "s");
    good("agent status", "AGENT_SOCKET=x AGENT_HTTP=nonsense");
    assert_string_equal(o.socket, "x");
    good("agent --version", NULL);
    assert_int_equal(o.command, CMD_VERSION);
}

static const struct {
    const char *line, *env, *part; /* Part of the text. */
} faults[] = {
    {"agent", NULL, "no command to run"},
    {"agent --nprocs 4 c", NULL, "--nprocs: no such option; did you mean "
                                 "--nproc?"},
    {"agent --max-restart 4 c", NULL, "did you mean --max-restarts?"},
    {"agent --offline-allow a c", NULL, "--offline-allow without --offline"},
    {"agent --offline --offline-allow a,,b c", NULL, "use hosts with commas"},
    {"agent --offline --offline-allow * c", NULL, "name the hosts"},
    {"agent --offline c", "AGENT_OFFLINE_ALLOW=a\tb", "use commas between"},
    {"agent --max-r 4 c", NULL, "did you mean --max-restarts?"},
    {"agent --restarts 4 c", NULL, "did you mean --max-restarts?"},
    {"agent --gracE=3 c", NULL, "--gracE: no such option; did you mean "
                                "--grace?"},
    {"agent --nnode_rank 4 c", NULL, "did you mean --node-rank?"},
    {"agent --rgace 4 c", NULL, "did you mean --grace?"},
    {"agent --workers 4 c", NULL, "--workers: no such option; see agent "
                                  "--help"},
    {"agent verify --manifest a", NULL, "no such option; see agent verify "
                                        "--help"},
    {"agent -nproc 4 c", NULL, "-nproc: no such option; did you mean --nproc?"},
    {"agent -\033[31m c", NULL, "-?[31m: no such option"},
    {"agent --=3 c", NULL, "--: no such option; see agent --help"},
    {"agent --dataset --stage /x c", NULL,
     "--dataset: it needs a value, MANIFEST, and --stage follows"},
    {"agent --grace -- c", NULL, "--grace: it needs a value"},
    {"agent verify a --nproc", NULL, "--nproc: not an option of"},
    {"agent -o x c", NULL, "-o: not an option of 'agent run'"},
    {"agent manifest d -o", NULL, "-o: it needs a value: FILE"},
    {"agent --version=1", NULL, "--version=1: it takes no value"},
    {"agent --help=html", NULL, "use one of: text, man"},
    {"agent -- ", NULL, "no command to run"},
    {"agent run", NULL, "no command to run"},
    {"agent --master-addr host:29500 c", NULL, "without a port"},
    {"agent --master-addr [::1] c", NULL, "without a port"},
    {"agent --master-addr http://host c", NULL, "without a port"},
    {"agent --nproc 0 c", NULL, "--nproc=0: use a number from 1 to 1024"},
    {"agent --nproc 1025 c", NULL, "use a number from 1 to 1024"},
    {"agent --nproc", NULL, "--nproc: it needs a value"},
    {"agent --reverify=x c", NULL, "--reverify=x: it takes no value"},
    {"agent --grace 12x c", NULL, "--grace=12x: a duration is"},
    {"agent --grace -1 c", NULL, "a duration is"},
    {"agent --grace 9999999h c", NULL, "it must be from"},
    {"agent --restart-backoff 5s c", NULL, "5s: MAX is missing: use MIN:MAX"},
    {"agent --restart-backoff 5: c", NULL, "use MIN:MAX; a duration is"},
    {"agent --restart-backoff 5s:1s c", NULL, "MIN is more than MAX"},
    {"agent --master-port 0 c", NULL, "a port is a number"},
    {"agent --master-port tcp://10.0.0.1:80 c", NULL, "service link"},
    {"agent c", "AGENT_MASTER_PORT=tcp://1.2.3.4:5", "service link"},
    {"agent --nnodes 0 c", NULL, "from 1 to 65536"},
    {"agent --nnodes 3:2 c", NULL, "MIN:MAX with MIN at most MAX"},
    {"agent --node-rank 1 c", NULL, "less than --nnodes 1, the default: say"},
    {"agent --max-restarts x c", NULL, "to 1000000, or N/PERIOD: 5/1h"},
    {"agent --max-restarts x/1h c", NULL, "use a number from 0 to 1000"},
    {"agent --nnodes 2 --node-rank 2 c", NULL,
     "--node-rank 2 must be less than --nnodes 2"},
    {"agent --no-restart-on 0 c", NULL, "exit codes from 1 to 255"},
    {"agent --no-restart-on 2, c", NULL, "exit codes from 1 to 255"},
    {"agent --exit-map worker c", NULL, "use CLASS=CODE,... with codes"},
    {"agent --exit-map worker=1, c", NULL, "use CLASS=CODE"},
    {"agent --exit-map worker=256 c", NULL, "use CLASS=CODE"},
    {"agent --exit-map =1 c", NULL, "use CLASS=CODE"},
    {"agent --exit-map workers=1 c", NULL, "ok, worker, stopped, usage, data"},
    {"agent --same-failure-limit 0 c", NULL, "from 1 to 1000000"},
    {"agent --restart-scope pod c", NULL, "use one of: job, worker"},
    {"agent --pre-start= c", NULL, "--pre-start=: it must not be empty"},
    {"agent --restart-policy sometimes c", NULL, "use one of: never"},
    {"agent --contract torch,caffe c", NULL, "use some of torch, mxnet"},
    {"agent --contract torch, c", NULL, "use some of torch"},
    {"agent --contract= c", NULL, "use some of torch"},
    {"agent --pass-local-rank=2 c", NULL, "use one of: dash, underscore"},
    {"agent --expand=1 c", NULL, "it takes no value"},
    {"agent --gpu-bind closest c", NULL, "use one of: none, single"},
    {"agent --procs-per-gpu 0 c", NULL, "a whole number from 1 to 64"},
    {"agent --log-max 1M c", NULL, "without --log-dir"},
    {"agent --log-dir d --log-max 1000 c", NULL, "at least 4096"},
    {"agent --log-dir d --log-max 1X c", NULL, "SIZE:KEEP"},
    {"agent --log-dir d --log-max 1M: c", NULL, "KEEP"},
    {"agent --log-dir d --log-max 99999999T c", NULL, "SIZE:KEEP"},
    {"agent --log-format xml c", NULL, "use one of: text, json"},
    {"agent --log-overflow wait c", NULL, "use one of: block, drop"},
    {"agent --log-ranks 3-1 c", NULL, "0,4-7"},
    {"agent --log-ranks 1, c", NULL, "0,4-7"},
    {"agent --log-ranks -1 c", NULL, "0,4-7"},
    {"agent c", "AGENT_HANG_TIMEOUT=9d", "AGENT_HANG_TIMEOUT=9d: a duration"},
    {"agent --hang-timeout 999ms c", NULL, "from 1 s"},
    {"agent --hang-signal SIGFOO c", NULL, "USR1, USR2, QUIT, ABRT"},
    {"agent --hang-signal STOP c", NULL, "USR1, USR2, QUIT, ABRT"},
    {"agent --hang-signal SIG c", NULL, "USR1, USR2, QUIT, ABRT"},
    {"agent --cpu-bind all c", NULL, "use one of: none, numa, cores"},
    {"agent --nccl-ifname eth0 c", NULL, "use one of: none, barrier"},
    {"agent c", "AGENT_GRCAE=3s", "AGENT_GRCAE: no such variable; did you mean "
                                  "AGENT_GRACE?"},
    {"agent c", "AGENT_GRACE=x", "AGENT_GRACE=x: a duration is"},
    {"agent c", "AGENT_REVERIFY=maybe", "AGENT_REVERIFY=maybe: use 1 or 0"},
    {"agent c", "AGENT_VERBOSE=10", "from 0 to 9"},
    {"agent c", "AGENT_DATASET=a,,b", "AGENT_DATASET=a,,b: it must not be"},
    {"agent c", "AGENT_NPROC_PER_NODES=1", "AGENT_NPROC_PER_NODE?"},
    {"agent c", "AGENT_SOURCE=a", "1 --source but 0 --dataset"},
    {"agent c", "AGENT_SOURCES=x", "did you mean AGENT_SOURCE?"},
    {"agent --source a c", NULL, "1 --source but 0 --dataset"},
    {"agent --stage s c", NULL, "without --dataset"},
    {"agent --reverify c", NULL, "--reverify without --dataset"},
    {"agent status x", NULL, "too many words: use: agent status [--json]"},
    {"agent --json c", NULL, "--json: not an option of 'agent run'"},
    {"agent status --socket /xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", NULL,
     "at most 92 bytes"},
    {"agent --http 0 c", NULL, "--http=0: a port is a number from 1"},
    {"agent --http 65536 c", NULL, "a port is a number from 1"},
    {"agent --http 127.0.0.1 c", NULL, "a port is a number from 1"},
    {"agent --http ::1:80 c", NULL, "--http=::1:80: use PORT (on loopback)"},
    {"agent --http [::1] c", NULL, "use PORT (on loopback)"},
    {"agent --http [::1:80 c", NULL, "use PORT (on loopback)"},
    {"agent --http []:80 c", NULL, "use PORT (on loopback)"},
    {"agent --http [1.2.3.4]:80 c", NULL, "use PORT (on loopback)"},
    {"agent --http pod-0:80 c", NULL, "with an address, not a name"},
    {"agent --http 1.2.3.4:80:90 c", NULL, "use PORT (on loopback)"},
    {"agent --http **:80 c", NULL, "use PORT (on loopback)"},
    {"agent --http : c", NULL, "a port is a number from 1"},
    {"agent --nnodes 2 --master-addr a --master-port 29400 c", NULL,
     "port 29400 is both --master-port and --barrier-port"},
    {"agent --http 29500 c", NULL, "--http 29500: this port is that of "
                                   "--master-port"},
    {"agent --nnodes 2 --http *:29400 c", NULL, "that of --barrier-port"},
    {"agent --nnodes 2 --mesh-port 7 --http 7 c", NULL, "of --mesh-port"},
    {"agent verify", NULL, "use: agent verify MANIFEST [DIR]"},
    {"agent verify a b c", NULL, "too many words"},
    {"agent verify a --nproc 2", NULL, "not an option of 'agent verify'; see "
                                       "agent verify --help"},
    {"agent stage --dataset m", NULL, "--stage is missing; use: agent stage"},
    {"agent stage --stage s", NULL, "--dataset is missing; use: agent stage"},
    {"agent stage --dataset a --dataset b --stage s", NULL,
     "one --dataset at a time"},
    {"agent stage w --dataset a --stage s", NULL, "too many words"},
    {"agent manifest d --name a/b", NULL, "one path component"},
    {"agent -x c", NULL, "-x: no such option"},
    {"agent --log-prefix a\nb c", NULL, "control characters"},
};

static void test_faults(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        int r = read_line(faults[i].line, faults[i].env);

        if (r != -ERR_USAGE || e.code != ERR_USAGE ||
            !strstr(e.text, faults[i].part))
            fail_msg("%s [%s]: %d '%s', wanted '%s'", faults[i].line,
                     faults[i].env ? faults[i].env : "", r, e.text,
                     faults[i].part);
    }
}

static void test_variables(void **state)
{
    static const char *const ours[] = {"AGENT_NPROC", "AGENT_NPROC_PER_NODE",
                                       "AGENT_LOG_DIR", "AGENT_TOKEN",
                                       "AGENT_VERBOSE"};
    static const char *const others[] = {"AGENT_PORT", "AGENT_COOKIE", "AGENT_",
                                         "NPROC", "AGENT_nproc", "AGENT_NAME",
                                         "AGENT_DATASET_DIR", "AGENT_VERSION"};

    (void)state;
    for (unsigned i = 0; i < sizeof ours / sizeof ours[0]; i++)
        assert_true(options_is_variable(ours[i], strlen(ours[i])));
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(options_is_variable(others[i], strlen(others[i])));
}

/* What a default reads as is what it says, and reads as the same again. */
static void test_print(void **state)
{
    static const struct {
        const char *line, *row, *print;
    } cases[] = {
        {"--nproc=8", "nproc", "8"},        {"--nproc=gpu", "nproc", "gpu"},
        {"--nnodes=2:5", "nnodes", "2:5"},  {"--grace=90s", "grace", "90s"},
        {"--grace=120", "grace", "2m"},     {"--grace=1.5s", "grace", "1500ms"},
        {"--no-restart-on=77,2", "no-restart-on", "2,77"},
        {"--restart-backoff=0:1h", "restart-backoff", "0s:1h"},
        {"--node-rank=auto", "node-rank", "auto"},
        {"--offline --offline-allow=a,b:1,::1", "offline-allow", "a,b:1,::1"},
        {"--dataset=d --reverify", "reverify", "1"}, {"-vv", "verbose", "2"},
        {"--http=8080", "http", ":8080"},   {"--http=:80", "http", ":80"},
        {"--http=localhost:80", "http", ":80"},
        {"--http=*:80", "http", "*:80"},
        {"--http=10.0.0.1:80", "http", "10.0.0.1:80"},
        {"--http=[fe80::1%eth0]:80", "http", "[fe80::1%eth0]:80"},
        {"--http=29400", "http", ":29400"}, /* One pod has no barrier port. */
        {"--restart-policy=exit-code", "restart-policy", "exit-code"},
        {"--contract=horovod,torch", "contract", "torch,horovod"},
        {"--pass-local-rank", "pass-local-rank", "dash"},
        {"--pass-local-rank=underscore", "pass-local-rank", "underscore"},
        {"--expand", "expand", "1"},
        {"--gpu-bind=single", "gpu-bind", "single"},
        {"--procs-per-gpu=2", "procs-per-gpu", "2"},
    };
    unsigned n;
    const struct opt_row *rows = opt_rows(&n);
    char line[256], buf[256];
    struct text t;

    (void)state;
    good("agent c", NULL);
    for (unsigned i = 0; i < n; i++) {
        text_init(&t, buf, sizeof buf);
        rows[i].type->print(&rows[i], &o, &t);
        if (rows[i].initial)
            assert_string_equal(buf, rows[i].initial);
    }
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct opt_row *row = opt_find(cases[i].row,
                                             strlen(cases[i].row));

        (void)snprintf(line, sizeof line, "agent %s c", cases[i].line);
        good(line, NULL);
        text_init(&t, buf, sizeof buf);
        row->type->print(row, &o, &t);
        assert_string_equal(buf, cases[i].print);
    }
}

/* Names are found by one rule, so no two may be the same or too long. */
static void test_table(void **state)
{
    const struct opt_table *own = opt_table_of(opt_find_command("run"));
    const struct opt_row *rows = own->rows;
    unsigned n = own->n;

    (void)state;
    assert_true(n <= OPT_MAX_ROWS);
    for (unsigned i = 0; i < n; i++) {
        const struct opt_row *r = &rows[i];

        assert_true(strlen(r->name) < OPT_NAME_MAX && r->help && r->commands);
        assert_ptr_equal(opt_find(r->name, strlen(r->name)), r);
        if (r->alias)
            assert_ptr_equal(opt_find(r->alias, strlen(r->alias)), r);
        if (r->letter)
            assert_ptr_equal(opt_find_letter(own, r->letter), r);
        if (!r->initial && !r->none)
            fail_msg("%s: what is it where it is not given?", r->name);
    }
}

static void test_preflight(void **state)
{
    (void)state;
    good("agent true", NULL);
    assert_false(o.preflight_given);
    assert_int_equal(o.preflight, PREFLIGHT_BIT(SHM) | PREFLIGHT_BIT(MEMLOCK) |
                                      PREFLIGHT_BIT(LIMITS) |
                                      PREFLIGHT_BIT(IFACE));
    good("agent --preflight dns,shm true", "AGENT_PREFLIGHT=env");
    assert_true(o.preflight_given);
    assert_int_equal(o.preflight, PREFLIGHT_BIT(SHM) | PREFLIGHT_BIT(DNS));
    good("agent --preflight=off true", NULL);
    assert_true(o.preflight_given);
    assert_int_equal(o.preflight, 0);
    good("agent preflight --json --nnodes 2", "AGENT_PREFLIGHT=env");
    assert_int_equal(o.command, CMD_PREFLIGHT);
    assert_int_equal(o.preflight, PREFLIGHT_BIT(ENV));
    assert_int_equal(o.nnodes, 2);
    assert_int_equal(read_line("agent --preflight shm,foo true", NULL),
                     -ERR_USAGE);
    assert_non_null(strstr(e.text, "'foo' is no check"));
    good("agent --preflight shm,allreduce=0.5 true", NULL);
    assert_int_equal(o.preflight_busbw, 500);
    assert_int_equal(read_line("agent preflight shm", NULL), -ERR_USAGE);
    assert_non_null(strstr(e.text, "too many words"));
}

/* Bytes of any kind, as one word and as one variable. */
static void test_random_bytes(void **state)
{
    uint64_t r = 4101842887655102017u;
    char word[40], var[40], name[] = "agent";

    (void)state;
    for (unsigned i = 0; i < 15000; i++) {
        char *argv[] = {name, word, NULL}, *envp[] = {var, NULL};
        size_t len;

        memcpy(word, "--------", 8);
        memcpy(var, "AGENT_", 6);
        for (unsigned k = 0; k < sizeof word; k++) {
            r ^= r << 13, r ^= r >> 7, r ^= r << 17;
            if (k >= r % 3)
                word[k] = (char)(r >> 8);
            if (k >= 6)
                var[k] = (char)(r >> (r & 8 ? 16 : 57));
        }
        word[r % sizeof word] = var[r % sizeof var] = '\0';
        word[sizeof word - 1] = var[sizeof var - 1] = '\0';
        if (options_read(&o, 2, argv, envp, &e) == 0)
            continue;
        assert_true(e.code == ERR_USAGE && e.text[0]);
        len = strlen(e.text);
        assert_int_equal(text_make_utf8(e.text, len), len);
        assert_null(strpbrk(e.text, "\033\r\n"));
    }
}

/* Whatever the words are, it answers; a fault has a text. */
static void test_random_words(void **state)
{
    static const char *const pieces[] = {
        "--", "-", "--nproc", "=", "4", "--grace=", "--stage", "AGENT_", "run",
        "verify", "--help=", "\xff", "--node-rank", "auto", ":", "/", "-o"};
    uint64_t r = 88172645463325252u;
    char line[400], env[400];

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        size_t n = 5, m = 6;

        memcpy(line, "agent", 6);
        memcpy(env, "AGENT_", 7);
        for (unsigned k = 0; k < 8; k++) {
            r ^= r << 13, r ^= r >> 7, r ^= r << 17;
            n += (size_t)snprintf(line + n, sizeof line - n, "%s%s",
                                  r & 64 ? " " : "", pieces[r % 17]);
            m += (size_t)snprintf(env + m, sizeof env - m, "%s%s",
                                  r & 128 ? " AGENT_" : "",
                                  pieces[(r >> 20) % 17]);
        }
        if (read_line(line, env) != 0)
            assert_true(e.code == ERR_USAGE && e.text[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_spelling),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_log_ranks),
        cmocka_unit_test(test_log_ranks_beyond),
        cmocka_unit_test(test_log_max),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_tools),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_preflight),
        cmocka_unit_test(test_random_words),
        cmocka_unit_test(test_random_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
