/* option_table: see option_table.h. */
#include "agent/option_table.h"

#include "agent/torchrun.h"
#include "preflight/names.h"

#define AT(field) offsetof(struct options, field)
#define ROW(of, n, t, init, text)                                              \
    .name = n, .type = &opt_type_##t, .initial = init, .help = text,           \
    .commands = of
#define MANIFEST(of)                                                           \
    .group = OPT_GROUP_MANIFEST, .no_variable = true, .commands = of
#define STAGED (OPT_RUN | OPT_STAGE)
#define HOUR ((uint64_t)3600000)
#define YEAR (8760 * HOUR)

static const struct opt_row rows[] = {
    {ROW(OPT_RUN, "nproc", nproc, NULL, "Workers in this pod."),
     .none = "GPUs if any, else 1", .alias = "nproc-per-node",
     .more = "\"auto\": the GPUs if any, else the usable CPUs (affinity and "
             "the cgroup's quota). GPUs are counted from "
             "CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES, /dev/nvidiaN and "
             "/dev/kfd.",
     .group = OPT_GROUP_JOB},
    {ROW(OPT_RUN, "nnodes", nnodes, "1", "Pods in the job."),
     .more = "MIN:MAX starts with MAX, or after --last-call with MIN or more; "
             "a lost pod makes the next round smaller, one that comes back "
             "larger.",
     .group = OPT_GROUP_JOB},
    {ROW(OPT_RUN, "node-rank", node_rank, "0",
         "This pod's number; 0 coordinates."),
     .group = OPT_GROUP_JOB},
    {ROW(OPT_RUN, "last-call", duration, "30s",
         "With MIN:MAX: wait for more once MIN are there."),
     .at = AT(last_call_ms), .max = YEAR, .group = OPT_GROUP_JOB},
    {ROW(OPT_RUN, "master-addr", host, "127.0.0.1",
             "Host of node rank 0: its barrier and MASTER_ADDR."),
     .at = AT(master_addr), .min = 1, .max = 253,
     .more = "The default serves pods on one machine. The name may appear in "
             "DNS late; on node rank 0 it need not resolve.",
     .group = OPT_GROUP_JOB},
    {ROW(OPT_RUN, "master-port", port, "29500", "The workers' MASTER_PORT."),
     .at = AT(master_port), .given_at = AT(master_port_given),
     .more = "A default that is busy on node rank 0 is replaced by a free one; "
             "a busy one that was asked for is an error (202).",
     .group = OPT_GROUP_JOB},
    {ROW(OPT_RUN, "barrier-port", port, "29400",
             "TCP port of node rank 0's barrier."),
     .at = AT(barrier_port), .group = OPT_GROUP_JOB},
    {ROW(OPT_RUN, "barrier-timeout", duration, "10m",
             "All pods must arrive within this."),
     .at = AT(barrier_timeout_ms), .min = 100, .max = YEAR,
     .more = "A pod that stages its data and gets on is not late.",
     .group = OPT_GROUP_JOB},
    {ROW(OPT_RUN, "rejoin-timeout", duration, "5m",
             "How long the job waits for a lost pod."),
     .at = AT(rejoin_timeout_ms), .min = 100, .max = YEAR,
     .group = OPT_GROUP_JOB},
    {ROW(OPT_RUN, "mesh", mesh, "ring",
         "Whether pods reach each other is tested first."),
     .more = "Once all have arrived, pods connect to each other both ways and "
             "move 64 KiB: each to its neighbours (ring), or to all (full; at "
             "most the 512 ranks on either side). It takes at most 10 s. A "
             "pair that fails is a warning; where this option is given to "
             "node rank 0 it is an error (200).",
     .group = OPT_GROUP_JOB},
    {ROW(OPT_RUN, "mesh-port", port, NULL,
         "TCP port of this pod for that test."),
     .at = AT(mesh_port), .none = "a free one",
     .more = "A busy one is an error (202). It is closed before the workers "
             "start.",
     .group = OPT_GROUP_JOB},
    {ROW(OPT_RUN, "preflight", checks, PREFLIGHT_DEFAULT,
         "Check this pod before the workers meet; agent preflight by "
         "default: all but allreduce."),
     .more = "By default cheap look-ups that warn. A LIST is tried for real, "
             "and ends the job with 69, or 204 (try again). Also: dns, storage,"
             " env; with agent-probe gpu, rdma, nccl; allreduce[=GB/s].",
     .group = OPT_GROUP_JOB},
    {ROW(OPT_RUN, "job-id", word, "none",
             "Pods of different jobs never join; TORCHELASTIC_RUN_ID."),
     .at = AT(job_id), .min = 1, .max = OPT_JOB_ID_MAX, .arg = "ID",
     .group = OPT_GROUP_JOB},
    {ROW(OPT_RUN, "role", word, "rank",
         "ROLE_NAME, and {role} in the log prefix."),
     .at = AT(role), .given_at = AT(role_given), .min = 1,
     .max = OPT_ROLE_MAX, .arg = "NAME", .group = OPT_GROUP_JOB},
    {ROW(OPT_RUN, "token-file", path, NULL,
             "Shared secret of the job: pods prove that they have it."),
     .at = AT(token_file), .none = "AGENT_TOKEN; none: the barrier is open",
     .more = "At most 4096 bytes; newlines at the end do not count. All "
             "pods of the job need the same. AGENT_TOKEN holds the token "
             "itself. It never goes over the network (a challenge with "
             "HMAC-SHA256, both ways), and workers do not get it. Nothing is "
             "encrypted by it. A pod with a wrong token, or none, ends with "
             "77, it alone.",
     .group = OPT_GROUP_JOB},

    {ROW(OPT_RUN, "contract", contract, "torch",
         "Whose variables tell workers who they are."),
     .more = "\"torch\": as torchrun. \"jax\": JAX_COORDINATOR_ADDRESS, "
             "JAX_NUM_PROCESSES, JAX_PROCESS_ID, and JAX_LOCAL_DEVICE_IDS "
             "where it is unset and there are GPUs. \"tensorflow\": "
             "TF_CONFIG; worker R listens on MASTER_PORT + R. \"mxnet\": "
             "DMLC_ROLE and others. \"mpi\": OMPI_COMM_WORLD_*, the names "
             "alone. \"horovod\": HOROVOD_RANK and others. All of them use "
             "node rank 0's address and MASTER_PORT.",
     .group = OPT_GROUP_WORKERS},
    {ROW(OPT_RUN, "servers", number, "0", "mxnet: servers in each pod."),
     .at = AT(servers), .max = 1000,
     .more = "With --contract mxnet. They run the same command with DMLC_ROLE "
             "server, and on node rank 0 the scheduler beside them. All "
             "workers with 0 is success; servers that do not end by "
             "themselves then get TERM. Where the platform sets DMLC_ROLE a "
             "pod has one process, of that role.",
     .group = OPT_GROUP_WORKERS},
    {ROW(OPT_RUN, "procs-per-gpu", number, "1",
         "So many workers share each GPU."),
     .at = AT(procs_per_gpu), .min = 1, .max = 64,
     .more = "Where the workers are counted by GPUs there are so many times "
             "as many. Worker L has GPU L / K: AGENT_GPU, {gpu}.",
     .group = OPT_GROUP_WORKERS},
    {ROW(OPT_RUN, "gpu-bind", gpu_bind, "none",
         "\"single\": each worker sees its own GPU alone."),
     .more = "Its CUDA_VISIBLE_DEVICES is the one entry, LOCAL_RANK is 0. "
             "There must be a GPU for each worker.",
     .group = OPT_GROUP_WORKERS},
    {ROW(OPT_RUN, "cpu-bind", cpu_bind, "none",
         "Pin each worker to CPUs near its GPU."),
     .more = "\"numa\": to all CPUs of one NUMA node that the pod may use. "
             "\"cores\": to an exclusive share of its cores. Without GPUs "
             "workers are spread over the nodes. Where the machine does not "
             "say enough, a warning, and they are not pinned.",
     .group = OPT_GROUP_WORKERS},
    {ROW(OPT_RUN, "nccl-ifname", nccl_ifname, "none",
         "\"barrier\": NCCL uses the interface that leads to pod 0."),
     .more = "With several pods, NCCL_SOCKET_IFNAME is =eth0 or so where "
             "unset, never lo. GLOO_SOCKET_IFNAME is so in any case.",
     .group = OPT_GROUP_WORKERS},
    {ROW(OPT_RUN, "pass-local-rank", local_rank, NULL,
         "Append --local-rank=N."),
     .none = "off",
     .more = "As torch.distributed.launch did; \"underscore\": "
             "--local_rank=N. The value with = only.",
     .group = OPT_GROUP_WORKERS},
    {ROW(OPT_RUN, "expand", flag, NULL,
         "Replace macros in the command's arguments."),
     .at = AT(expand), .none = "off",
     .more = "Those of --log-prefix; the command's name stays as it is. "
             "{master_ip} is the address of node rank 0. Other braces stay.",
     .group = OPT_GROUP_WORKERS},

    {ROW(STAGED, "dataset", paths, NULL,
             "Verify this manifest's files before any worker starts."),
     .at = AT(datasets), .count_at = AT(n_datasets), .arg = "MANIFEST",
     .none = "no data set",
     .more = "May be repeated; the variable holds a list with commas. Read are "
             "our own JSON (agent manifest), lines of sha256sum, sha512sum, "
             "sha1sum and md5sum, also with --tag, BagIt bags, .dir objects "
             "of DVC, and Git LFS pointers. Without a name in it the set has "
             "the folder's.",
     .group = OPT_GROUP_DATA},
    {ROW(STAGED, "source", paths, NULL, "Where the files are."),
     .at = AT(sources), .count_at = AT(n_sources), .arg = "DIR",
     .none = "the manifest's folder",
     .more = "The n-th belongs to the n-th --dataset.",
     .group = OPT_GROUP_DATA},
    {ROW(STAGED, "stage", path, NULL,
             "Copy and unpack into DIR/<name>@<digest16>/."),
     .at = AT(stage), .arg = "DIR", .none = "verify in place",
     .group = OPT_GROUP_DATA},
    {ROW(STAGED, "reverify", flag, NULL,
             "Hash again where a finished stage is found."),
     .at = AT(reverify), .none = "off", .group = OPT_GROUP_DATA},
    {ROW(STAGED, "stage-lease", duration, "1m",
         "Take over from a stager of another host after this silence."),
     .at = AT(stage_lease_ms), .min = 1000, .max = HOUR,
     .more = "For a stage on NFS and the like, where a file lock may not reach "
             "from host to host: who stages a set writes a file anew every "
             "few seconds, and those who wait look whether it changes, each by "
             "its own value. Clocks are not compared. Not used on ext4, XFS, "
             "tmpfs and other local file systems.",
     .group = OPT_GROUP_DATA},
    {ROW(OPT_RUN, "offline", flag, NULL,
         "Let stray downloads by workers fail at once."),
     .at = AT(offline), .none = "off",
     .more = "Workers get HF_HUB_OFFLINE, HF_DATASETS_OFFLINE, "
             "TRANSFORMERS_OFFLINE and PIP_NO_INDEX as 1, and as proxy for "
             "HTTP and HTTPS a port of loopback that refuses. Reached as ever "
             "are: this machine, the job's pods, names in .svc and "
             ".cluster.local, KUBERNETES_SERVICE_HOST. It is a guard against "
             "accident and no sandbox: what uses no proxy is not stopped.",
     .group = OPT_GROUP_DATA},
    {ROW(OPT_RUN, "offline-allow", hosts, NULL,
         "With --offline: other hosts that are reached."),
     .at = AT(offline_allow), .min = 1, .max = OPT_HOSTS_MAX, .none = "none",
     .more = "As in no_proxy: a name also stands for what ends in it.",
     .group = OPT_GROUP_DATA},

    {ROW(OPT_RUN, "max-restarts", restarts, "3",
             "Restarts of the job, all pods together."),
     .more = "Node rank 0's value counts (5/1h: at most 5 within an hour); "
             "another pod's is in its own messages alone: give all the same.",
     .group = OPT_GROUP_RESTART},
    {ROW(OPT_RUN, "restart-policy", policy, "on-failure",
             "When to restart: never, on-failure, always or exit-code."),
     .more = "A worker's codes at which there is a restart:"
             RESTART_POLICIES(RESTART_POLICY_HELP),
     .group = OPT_GROUP_RESTART},
    {ROW(OPT_RUN, "restart-scope", scope, "job",
         "What a failed worker restarts: job or worker."),
     .more = "\"job\": every worker of every pod, as collectives need it. "
             "\"worker\": it alone, with the same rank and the next "
             "TORCHELASTIC_RESTART_COUNT, once nothing of its session or with "
             "its environment lives; each counts against --max-restarts. A "
             "lost pod still restarts the job.",
     .group = OPT_GROUP_RESTART},
    {ROW(OPT_RUN, "pre-start", script, NULL,
         "Run CMD by sh -c in each pod before each round."),
     .at = AT(pre_start), .none = "none",
     .more = "No worker of any pod starts before it has ended with 0 in all "
             "of them. A failure counts one restart, and it is run again after "
             "the back-off. It has the workers' environment but for ranks, "
             "world size and MASTER_PORT. What it leaves running is stopped; "
             "--barrier-timeout bounds it.",
     .group = OPT_GROUP_RESTART},
    {ROW(OPT_RUN, "restart-backoff", backoff, "1s:30s",
             "Wait before a restart; doubles, with jitter, in these bounds."),
     .max = 24 * HOUR, .group = OPT_GROUP_RESTART},
    {ROW(OPT_RUN, "restart-reset", duration, "10m",
             "Health after which the back-off starts over."),
     .at = AT(restart_reset_ms), .max = YEAR, .group = OPT_GROUP_RESTART},
    {ROW(OPT_RUN, "no-restart-on", codes, NULL,
         "Exit codes that are permanent."),
     .none = "126,127", .more = "126 and 127 always are.",
     .group = OPT_GROUP_RESTART},
    {ROW(OPT_RUN, "same-failure-limit", number, NULL,
         "N equal failures in a row are permanent."),
     .at = AT(same_failure_limit), .none = "off", .min = 1, .max = 1000000,
     .more = "Equal: the same rank fails first, with the same code, in the "
             "first 10 s. A code bug is then not tried again and again.",
     .group = OPT_GROUP_RESTART},
    {ROW(OPT_RUN, "exit-map", exit_map, NULL,
         "Other exit codes for classes of ends."),
     .none = "the codes of EXIT STATUS",
     .more = "Classes: ok, worker, stopped, and the words of EXIT STATUS. "
             "\"stopped=0\" ends with 0 after TERM; \"worker=1\" gives one "
             "code for all workers. For usage=CODE put it first.",
     .group = OPT_GROUP_RESTART},
    {ROW(OPT_RUN, "grace", duration, "25s", "From TERM to KILL."),
     .at = AT(grace_ms), .max = 24 * HOUR,
     .more = "One deadline for a whole stop: the workers and all that they "
             "left behind. Kubernetes gives a pod 30 s in all.",
     .group = OPT_GROUP_RESTART},
    {ROW(OPT_RUN, "hang-timeout", duration, NULL,
         "Restart where all workers of a pod hang for so long."),
     .at = AT(hang_timeout_ms), .min = 1000, .max = YEAR, .none = "off",
     .more = "Hang: no output, and below 1 % of a core with all descendants; "
             "once a worker has written a byte to AGENT_HEARTBEAT_FD only that "
             "counts for it, as it must where a wait for a GPU spins. A fault "
             "like others, code 203. No worker has the terminal itself then.",
     .group = OPT_GROUP_RESTART},
    {ROW(OPT_RUN, "hang-signal", signal, "USR1",
         "What they get 5 s before they are stopped."),
     .at = AT(hang_signal),
     .more = "So that they can say where they are, as with Python's "
             "faulthandler.register(signal.SIGUSR1); others die of it.",
     .group = OPT_GROUP_RESTART},

    {ROW(OPT_RUN, "log-prefix", template, "[{role}{rank}] ",
             "Before each line of a worker, or \"none\"."),
     .at = AT(log_prefix), .max = OPT_PREFIX_MAX,
     .more = "Macros: {rank} {local_rank} {world_size} {local_world_size} "
             "{node_rank} {nnodes} {role} {master_addr} {master_ip} "
             "{master_port} {attempt} {gpu} {process_index} {process_num} "
             "{dataset_dir}. On a terminal it is coloured by rank, but for a "
             "NO_COLOR that is not empty.",
     .group = OPT_GROUP_OUTPUT},
    {ROW(OPT_RUN, "log-timestamps", flag, NULL,
             "RFC 3339, UTC, microseconds, before the prefix; agent's, too."),
     .at = AT(log_timestamps), .none = "off", .group = OPT_GROUP_OUTPUT},
    {ROW(OPT_RUN, "log-format", log_format, "text", "How lines are written."),
     .more = "\"json\": one object a line, with the keys time, node, rank, "
             "local_rank, stream (stdout or stderr), attempt and line; bytes "
             "that are no UTF-8 become U+FFFD; rank null, stream agent: "
             "agent's own. Of a line over 64 KiB all parts but the last have "
             "goes_on, true; as text they end with \" [line goes on]\".",
     .group = OPT_GROUP_OUTPUT},
    {ROW(OPT_RUN, "log-dir", path, NULL, "Also files: DIR/attempt_N/rank_R/."),
     .at = AT(log_dir), .arg = "DIR", .none = "no files",
     .more = "In each folder stdout.log and stderr.log with the raw bytes; "
             "what is there already stays. They are on the disk before the "
             "verdict. A full disk is reported, and no failure.",
     .group = OPT_GROUP_OUTPUT},
    {ROW(OPT_RUN, "log-max", log_max, NULL,
         "Size at which such a file is rotated, and how many stay."),
     .none = "not rotated",
     .more = "100M:3 keeps stdout.log and stdout.log.1 (the newest) to .3, of "
             "100 MiB each at most; without :KEEP one stays. K, M, G, T are "
             "powers of 1024.",
     .group = OPT_GROUP_OUTPUT},
    {ROW(OPT_RUN, "log-ranks", ranks, "all", "Show the lines of these ranks."),
     .more = "As in 0,4-7; the last words of any that fails are shown, too. A "
             "rank that the job does not have is warned of.",
     .group = OPT_GROUP_OUTPUT},
    {ROW(OPT_RUN, "log-overflow", overflow, "block",
         "Where nobody reads the output: workers wait, or lines go."),
     .more = "\"drop\": lines that do not fit are dropped, counted and "
             "reported. In either case agent itself never waits.",
     .group = OPT_GROUP_OUTPUT},
    {ROW(OPT_RUN, "report", path, NULL, "Write the verdict to FILE, as JSON."),
     .at = AT(report), .arg = "FILE", .none = "none",
     .more = "Written at the end, then renamed: nobody reads half of it. Each "
             "pod writes its own; docs/report.md has the members.",
     .group = OPT_GROUP_OUTPUT},
    {ROW(OPT_RUN, "termination-log", path, NULL, "Also for the verdict."),
     .at = AT(termination_log), .none = "/dev/termination-log if it exists",
     .group = OPT_GROUP_OUTPUT},
    {ROW(OPT_EVERY, "quiet", count, NULL,
         "Less of agent's own lines; repeatable."),
     .at = AT(quiet), .letter = 'q', .none = "0",
     .more = "The variable holds how often.", .group = OPT_GROUP_OUTPUT},
    {ROW(OPT_EVERY, "verbose", count, NULL, "More of them; repeatable."),
     .at = AT(verbose), .letter = 'v', .none = "0", .group = OPT_GROUP_OUTPUT},

    {.name = "output", .type = &opt_type_path, .at = AT(output), .letter = 'o',
     .arg = "FILE", .help = "Where the manifest is written.",
     .none = "stdout", MANIFEST(OPT_MANIFEST)},
    {.name = "name", .type = &opt_type_component, .at = AT(name), .min = 1,
     .max = 255, .help = "The data set's name.", .none = "the folder's name",
     MANIFEST(OPT_MANIFEST)},
    {.name = "unpack", .type = &opt_type_flag, .at = AT(unpack),
     .help = "Let .gz files, tars and zips be unpacked into the stage.",
     .none = "off", MANIFEST(OPT_MANIFEST)},
    {.name = "format", .type = &opt_type_format, .initial = "json",
     .help = "json, or sha256sum: lines for sha256sum -c.",
     MANIFEST(OPT_MANIFEST)},

    {.name = "structure", .type = &opt_type_flag, .at = AT(structure),
     .help = "Look for files that are cut, or no data at all.", .none = "off",
     .more = "With a folder alone there need be no manifest: pointers of Git "
             "LFS and HTML pages in place of data, and gzip, tar, zip, IDX, "
             "safetensors and other files that are not whole are named. "
             "No hash is checked then. It is about this pod's files alone.",
     MANIFEST(OPT_VERIFY)},
    {ROW(OPT_RUN, "http", listen, NULL,
         "Answer /healthz, /readyz and /status."),
     .none = "off",
     .more = "A port alone is on loopback; *:PORT is on all addresses, IPv4 "
             "and IPv6. Whoever reaches the port may ask; nothing can be "
             "changed by it. A busy one is an error (202).",
     .group = OPT_GROUP_ASK},
    {ROW(OPT_RUN | OPT_STATUS, "socket", path, NULL,
         "Where agent status asks."),
     .at = AT(socket), .max = 92, .none = "/run/agent.sock and others",
     .more = "The first of /run/agent.sock, $XDG_RUNTIME_DIR/agent.sock and "
             "/tmp/agent-<uid>.sock that can be made. Where another agent has "
             "it, a second one puts -<pid> into the name.",
     .group = OPT_GROUP_ASK},
    {.name = "json", .type = &opt_type_flag, .at = AT(json),
     .help = "As one JSON object.", .none = "off", .group = OPT_GROUP_ASK,
     .no_variable = true, .commands = OPT_STATUS | OPT_ENV | OPT_PREFLIGHT},
    {.name = "watch", .type = &opt_type_flag, .at = AT(watch),
     .help = "Again every second, until the agent ends.", .none = "off",
     .group = OPT_GROUP_ASK, .no_variable = true, .commands = OPT_STATUS},

    {ROW(OPT_RUN, "dry-run", flag, NULL,
         "Print what would be started, as JSON, and start nothing."),
     .at = AT(dry_run), .none = "off",
     .more = "Ranks, command lines, the variables that agent sets, deadlines; "
             "as if all pods had as many workers. Nothing is opened or "
             "waited for, so what only a start can tell is left out: "
             "TF_CONFIG of several pods, folders of data.",
     .group = OPT_GROUP_OTHER},
    {.name = "help", .type = &opt_type_view, .letter = 'h', .none = "",
     .help = "Print this, or another view: man, bash, zsh, env, json.",
     .group = OPT_GROUP_OTHER, .no_variable = true, .commands = OPT_EVERY},
    {.name = "version", .type = &opt_type_flag, .none = "",
     .help = "Print the version.", .group = OPT_GROUP_OTHER,
     .no_variable = true, .commands = OPT_EVERY},
};

const struct opt_row *opt_rows(unsigned *ret_n)
{
    *ret_n = sizeof rows / sizeof rows[0];
    return rows;
}

const struct opt_table *opt_table_of(const struct opt_command *c)
{
    static const struct opt_table own = {rows, sizeof rows / sizeof rows[0],
                                         "AGENT_", false};

    return c->bit == OPT_TORCHRUN ? torchrun_table() : &own;
}

const char *opt_arg(const struct opt_row *row)
{
    return row->arg ? row->arg : row->type->arg;
}
