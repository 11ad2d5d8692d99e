"""Command lines of side_by_side.py, and what may differ. No PyTorch here.

A case: name, words after "torchrun", and by keyword env (variables), pods
(words of each pod, in place of one), cpus (so many), tmp (TMPDIR is compared), worker (what the worker does, as
worker.py takes it), signal (to the launcher, once all ranks have started).
In words and variables {d} is the folder of the run, which is the current one,
and {p} a port of its own."""
import re

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
                  r"[0-9a-f]{12}")
SCRIPT = "{d}/worker.py"


def case(name, *words, **more):
    return {"name": name, "words": list(words), "env": {}, "pods": [[]],
            "worker": "", "signal": None, "cpus": 0, "tmp": False, **more}


C10D = ("--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:{p}")
CASES = [
    # How the script is started.
    case("defaults", SCRIPT, "a", "--nnodes", "7", "-r"),
    case("two workers, a template in the arguments", "--nproc-per-node", "2",
         SCRIPT, "${{local_rank}}", "$local_rank$$x", "$RANK"),
    case("underscores and =", "--nproc_per_node=2", "--max_restarts=0",
         "--monitor_interval=0.05", "--start_method=fork",
         "--event_log_handler=null", SCRIPT),
    case("beginnings of names", "--standa", "--nproc-per", "2", SCRIPT),
    case("a module", "-m", "worker", "x"),
    case("a program", "--no-python", SCRIPT, "--", "y", "--"),
    case("dashes before the script", "--", SCRIPT, "--", "y"),
    case("a run path", "--run-path", SCRIPT, "z"),
    case("PYTHON_EXEC", SCRIPT, env={"PYTHON_EXEC": "{d}/python"}),
    case("a role", "--role", "trainer", "--nproc-per-node", "2", SCRIPT),
    # Rendezvous.
    case("standalone", "--standalone", "--rdzv-id", "no", SCRIPT),
    case("a port", "--master-port", "{p}", "--rdzv-id", "job7", SCRIPT),
    case("static, end point", "--rdzv-endpoint", "127.0.0.1:{p}", SCRIPT),
    case("static, two nodes", "--nnodes", "2", "--nproc-per-node", "2",
         "--master-addr", "127.0.0.1", "--master-port", "{p}", "--rdzv-conf",
         "timeout=60", pods=[["--node-rank", "0", SCRIPT],
                             ["--node-rank", "1", SCRIPT]]),
    case("c10d, one node", *C10D, "--rdzv-id", "c", SCRIPT),
    case("c10d, two nodes", "--nnodes", "2", "--nproc-per-node", "2", *C10D,
         pods=[[SCRIPT], [SCRIPT]]),
    case("c10d, MIN:MAX, one comes", "--nnodes", "1:2", *C10D, "--rdzv-conf",
         "last_call_timeout=1,join_timeout=60", SCRIPT),
    # Variables.
    case("PET_*", SCRIPT, env={"PET_NPROC_PER_NODE": "2", "PET_ROLE": "e",
                               "PET_MAX_RESTARTS": "1", "PET_NNODES": "1:1"}),
    case("PET_* of flags; words come first", "--role", "w", SCRIPT,
         env={"PET_NO_PYTHON": "1", "PET_STANDALONE": "0", "PET_ROLE": "e"}),
    case("variables that are there", "--nproc-per-node", "2", SCRIPT,
         env={"OMP_NUM_THREADS": "3", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0",
              "RANK": "9", "WORLD_SIZE": "10", "MASTER_ADDR": "other",
              "SLURM_JOB_NUM_NODES": "2", "SLURM_NODEID": "1"}),
    case("as many as CPUs", "--nproc-per-node", "auto", SCRIPT, cpus=1),
    case("virtual local rank", "--virtual-local-rank", "--nproc-per-node", "2",
         SCRIPT, env={"CUDA_VISIBLE_DEVICES": "4, GPU-b"}),
    case("signals to handle", "--signals-to-handle", "SIGTERM, SIGUSR1",
         SCRIPT),
    # Output.
    case("tee", "-t", "3", "--log-dir", "{d}/log", "--nproc-per-node", "2",
         SCRIPT),
    case("redirects", "-r", "3", "--log-dir", "{d}/log/deep",
         "--nproc-per-node", "2", SCRIPT),
    case("by local rank", "-r", "0:1", "-t", "1:2", "--log-dir", "{d}/log",
         "--nproc-per-node", "2", SCRIPT),
    case("local ranks filter", "--local-ranks-filter", "1", "-t", "1",
         "--log-dir", "{d}/log", "--nproc-per-node", "2", SCRIPT),
    case("duplicate filters", "-t", "3", "--duplicate-stdout-filters",
         "no such,,line,out of 1", "--duplicate-stderr-filters", "err",
         "--log-dir", "{d}/log", "--nproc-per-node", "2", SCRIPT),
    case("prefix", "-t", "1", "--log-dir", "{d}/log", SCRIPT,
         env={"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE":
              "$$ ${{role_name}}/$rank ${{other}}|"}),
    case("no logs", "-t", "3", "--log-dir", "/dev/null", SCRIPT),
    case("a log folder, no streams", "--log-dir", "{d}/log", SCRIPT),
    case("redirects without a folder", "-r", "1", SCRIPT, tmp=True),
    # Failures.
    case("fails twice of three", "--max-restarts", "2", "-r", "1",
         "--log-dir", "{d}/log", SCRIPT, worker="0:exit 3,1:exit 4"),
    case("fails always", "--max-restarts", "1", "-r", "3", "--log-dir",
         "{d}/log", SCRIPT, worker="exit 3"),
    case("is killed", "--nproc-per-node", "2", SCRIPT,
         worker="rank0 kill,rank1 wait"),
    case("an error file", "--log-dir", "{d}/log", SCRIPT, worker="error",
         env={"TORCHELASTIC_ERROR_FILE": "{d}/outer.json"}),
    case("TERM", "--nproc-per-node", "2", "--shutdown-timeout", "1", SCRIPT,
         worker="rank0 wait,rank1 stay", signal=15),
    case("a further signal", "--signals-to-handle", "SIGTERM,SIGUSR1",
         "--nproc-per-node", "2", SCRIPT, worker="usr1", signal=10),
    # Refused by both, before a worker starts.
    case("an unknown option", "--no-such-option", SCRIPT),
    case("no script"),
    case("MAX is less than MIN", "--nnodes", "2:1", SCRIPT),
    case("no number", "--max-restarts", "x", SCRIPT),
    case("no such streams", "--tee", "4", SCRIPT),
    case("no such start method", "--start-method", "vfork", SCRIPT),
    case("a module that is a program", "-m", "--no-python", "x"),
    case("no local ranks", "--local-ranks-filter", "a", SCRIPT),
    case("no such backend", "--rdzv-backend", "zeus", SCRIPT),
    case("etcd", "--rdzv-backend", "etcd", "--rdzv-endpoint", "localhost:{p}",
         SCRIPT),
    case("a plug-in that is not there", "--logs-specs", "none", SCRIPT),
    case("more workers than devices", "--virtual-local-rank",
         "--nproc-per-node", "2", SCRIPT, env={"CUDA_VISIBLE_DEVICES": "4"}),
]

# Variables of a worker that differ: name, both values (None: not set), and
# the words of docs/torchrun.md that tell of it. Each must be met in some case.
DIFFERENCES = [
    ("TORCHELASTIC_USE_AGENT_STORE", lambda r, a: (r, a) == ("True", "False"),
     "TORCHELASTIC_USE_AGENT_STORE is False"),
    ("MASTER_ADDR", lambda r, a: a in ("127.0.0.1", "localhost"),
     "MASTER_ADDR** of a job of one pod is 127.0.0.1"),
    ("MASTER_PORT", lambda r, a: r.isdigit() and a.isdigit(),
     "a free one where it is taken"),
    ("TORCHELASTIC_RUN_ID", lambda r, a: UUID.fullmatch(r) and
     UUID.fullmatch(a), None),  # Random, here and there.
    ("TORCHELASTIC_ERROR_FILE", lambda r, a: "torchelastic_" in r and
     re.search(r"/attempt_\d+/\d+/error.json$", a) and
     r.split("/")[-3:] == a.split("/")[-3:], "Error files** are in memory"),
    ("AGENT_COOKIE", lambda r, a: r is None, "AGENT_COOKIE"),
    ("AGENT_PROCESS_INDEX", lambda r, a: r is None, "AGENT_PROCESS_INDEX"),
    ("AGENT_PROCESS_NUM", lambda r, a: r is None, "AGENT_PROCESS_NUM"),
    ("PYTHONUNBUFFERED", lambda r, a: (r, a) == (None, "1"),
     "PYTHONUNBUFFERED=1"),
    ("AGENT_GPU", lambda r, a: r is None, "AGENT_GPU where there are GPUs"),
]
