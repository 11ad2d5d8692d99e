/* torchrun_table: the options of the torchrun command line, in torchrun's
 * order. Help and manual page are made of it; scripts/check-torch compares it
 * with the --help of the installed torchrun. */
#include "agent/torchrun.h"

#include "agent/option_table.h"

#define AT(field) offsetof(struct options, field)
#define ROW(n, t, init, text)                                                  \
    .name = n, .type = &t, .initial = init, .help = text,                      \
    .commands = OPT_TORCHRUN

static const struct opt_row rows[] = {
    {ROW("nnodes", torchrun_type_nnodes, "1:1",
         "Pods in the job, N or MIN:MAX."),
     .more = "With the static rendezvous MAX of them; with c10d as of "
             "agent's own --nnodes.",
     .group = OPT_GROUP_JOB},
    {ROW("nproc-per-node", torchrun_type_nproc, "1", "Workers in this pod."),
     .more = "xpu and the names of other devices are refused: give the "
             "number.",
     .group = OPT_GROUP_JOB},
    {ROW("rdzv-backend", torchrun_type_backend, "static",
         "static: node ranks are given; c10d: by arrival."),
     .more = "Either way the pods meet at the barrier of node rank 0. etcd "
             "and etcd-v2 are refused.",
     .group = OPT_GROUP_JOB},
    {ROW("rdzv-endpoint", torchrun_type_text, "", "Where the pods meet."),
     .at = AT(torchrun.endpoint), .max = 270, .arg = "HOST[:PORT]",
     .more = "With c10d the coordinator's host, and the port of its barrier, "
             "29400 where there is none. With static the workers' MASTER_ADDR "
             "and MASTER_PORT.",
     .group = OPT_GROUP_JOB},
    {ROW("rdzv-id", opt_type_word, "none",
         "Id of the job; TORCHELASTIC_RUN_ID."),
     .at = AT(job_id), .max = OPT_JOB_ID_MAX, .arg = "ID",
     .group = OPT_GROUP_JOB},
    {ROW("rdzv-conf", torchrun_type_text, "", "Times of the rendezvous."),
     .at = AT(torchrun.conf), .max = 1024, .arg = "K=V,...",
     .more = "timeout (static, 900 s) and join_timeout (c10d, 600 s) bound "
             "the wait for all pods, last_call_timeout (c10d, 30 s) that for "
             "more than MIN, is_host says which pod coordinates. Other keys "
             "have no effect; store_type=file is refused.",
     .group = OPT_GROUP_JOB},
    {ROW("standalone", torchrun_type_flag, NULL,
         "This pod alone, with an own id."),
     .at = AT(torchrun.standalone), .none = "off", .group = OPT_GROUP_JOB},
    {ROW("max-restarts", torchrun_type_number, "0",
         "Restarts of the job, all pods together."),
     .at = AT(max_restarts), .max = 1000000, .group = OPT_GROUP_RESTART},
    {ROW("monitor-interval", torchrun_type_seconds, "0.1",
         "No effect: a death is seen at once."),
     .group = OPT_GROUP_RESTART},
    {ROW("start-method", torchrun_type_method, "spawn",
         "No effect: workers are programs."),
     .group = OPT_GROUP_JOB},
    {ROW("event-log-handler", torchrun_type_handler, "null",
         "No effect: there are no such events; see --report of agent."),
     .group = OPT_GROUP_OTHER},
    {ROW("role", opt_type_word, "default", "ROLE_NAME, and the log prefix."),
     .at = AT(role), .max = OPT_ROLE_MAX, .arg = "NAME",
     .group = OPT_GROUP_JOB},
    {ROW("module", torchrun_type_flag, NULL,
         "The script is a module: python -m."),
     .at = AT(torchrun.module), .letter = 'm', .none = "off",
     .group = OPT_GROUP_JOB},
    {ROW("no-python", torchrun_type_flag, NULL,
         "The script is a program; no python -u before it."),
     .at = AT(torchrun.no_python), .none = "off",
     .more = "Python is PYTHON_EXEC; else the one beside torchrun where that "
             "is in a virtual or conda environment; else that of VIRTUAL_ENV, "
             "of CONDA_PREFIX, beside torchrun, or the first python or python3 "
             "in PATH.",
     .group = OPT_GROUP_JOB},
    {ROW("run-path", torchrun_type_flag, NULL,
         "Run the script by runpy.run_path."),
     .at = AT(torchrun.run_path), .none = "off", .group = OPT_GROUP_JOB},
    {ROW("log-dir", torchrun_type_dir, NULL, "Where the logs go."),
     .at = AT(log_dir), .max = OPT_RUN_DIR_MAX - OPT_JOB_ID_MAX - 16,
     .arg = "DIR", .none = "a new folder in TMPDIR, where there are any",
     .more = "DIR/<id>_<random>/attempt_<n>/<local rank>/ has stdout.log and "
             "stderr.log, as --redirects and --tee ask for, and error.json.",
     .group = OPT_GROUP_OUTPUT},
    {ROW("redirects", torchrun_type_std, "0",
         "To files alone: 0 none, 1 stdout, 2 stderr, 3 both."),
     .at = AT(torchrun.redirects), .letter = 'r',
     .more = "Or by local rank: 0:1,1:2.", .group = OPT_GROUP_OUTPUT},
    {ROW("tee", torchrun_type_std, "0",
         "To files, and with a prefix to the console."),
     .at = AT(torchrun.tee), .letter = 't',
     .more = "What is neither teed nor redirected is shown without a prefix. "
             "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE is another prefix than "
             "[${role_name}${local_rank}]: is.",
     .group = OPT_GROUP_OUTPUT},
    {ROW("local-ranks-filter", torchrun_type_local_ranks, "",
         "Show the lines of these local ranks alone."),
     .group = OPT_GROUP_OUTPUT},
    {ROW("duplicate-stdout-filters", torchrun_type_filter, "",
         "Copy teed lines with one of the words."),
     .at = AT(torchrun.filters[0]), .max = 4096,
     .more = "To attempt_<n>/filtered_stdout.log. Two commas stand for one in "
             "a word.",
     .group = OPT_GROUP_OUTPUT},
    {ROW("duplicate-stderr-filters", torchrun_type_filter, "",
         "The same of stderr, to filtered_stderr.log."),
     .at = AT(torchrun.filters[1]), .max = 4096, .group = OPT_GROUP_OUTPUT},
    {ROW("node-rank", torchrun_type_number, "0",
         "This pod's number; with static alone."),
     .at = AT(node_rank), .max = OPT_MAX_NNODES - 1, .group = OPT_GROUP_JOB},
    {ROW("master-addr", opt_type_word, "127.0.0.1",
         "Host of node rank 0; with static alone."),
     .at = AT(torchrun.host), .max = 253, .arg = "HOST",
     .group = OPT_GROUP_JOB},
    {ROW("master-port", torchrun_type_port, NULL,
         "The workers' MASTER_PORT; with static alone."),
     .at = AT(master_port), .given_at = AT(master_port_given),
     .none = "29500",
     .more = "The barrier takes the port 100 below it; AGENT_BARRIER_PORT is "
             "another one.",
     .group = OPT_GROUP_JOB},
    {ROW("local-addr", opt_type_word, NULL,
         "MASTER_ADDR of a job of one pod."),
     .at = AT(torchrun.local_addr), .max = 253, .arg = "HOST",
     .none = "127.0.0.1", .group = OPT_GROUP_JOB},
    {ROW("logs-specs", torchrun_type_plugin, NULL,
         "default; others, plug-ins in Python, are refused."),
     .none = "none", .no_variable = true, .group = OPT_GROUP_OUTPUT},
    {ROW("numa-binding", torchrun_type_binding, NULL,
         "Pin worker L to CPUs near GPU L."),
     .none = "none", .no_variable = true,
     .more = "node, socket, exclusive (a share of the node's cores) or "
             "core-complex (cores with one last cache).",
     .group = OPT_GROUP_JOB},
    {ROW("signals-to-handle", torchrun_type_signals,
         "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "Signals that are handled."),
     .at = AT(torchrun.signals), .max = 512,
     .more = "These four always stop the job, by TERM to its workers. With "
             "SIGUSR1, SIGUSR2, SIGALRM or SIGWINCH in the list, that one "
             "stops it, too, and the workers get it in place of TERM; else it "
             "is passed on, and the job goes on.",
     .group = OPT_GROUP_RESTART},
    {ROW("shutdown-timeout", torchrun_type_number, NULL,
         "Seconds from TERM to KILL."),
     .at = AT(torchrun.shutdown_s), .max = 86400,
     .none = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 30",
     .group = OPT_GROUP_RESTART},
    {ROW("virtual-local-rank", torchrun_type_flag, NULL,
         "LOCAL_RANK 0 for all, one device each."),
     .at = AT(torchrun.virtual_local_rank), .none = "off",
     .more = "CUDA_VISIBLE_DEVICES is narrowed to the worker's entry.",
     .group = OPT_GROUP_JOB},
    {.name = "help", .type = &opt_type_view, .letter = 'h', .none = "",
     .help = "Print this.", .group = OPT_GROUP_OTHER, .no_variable = true,
     .commands = OPT_TORCHRUN},
};

const struct opt_table *torchrun_table(void)
{
    static const struct opt_table t = {rows, sizeof rows / sizeof rows[0],
                                       "PET_", true};

    return &t;
}
