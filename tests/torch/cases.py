"""Command lines of side_by_side.py, and what may differ. No PyTorch here.

A case: name, words after "torchrun", and by keyword env (variables), pods
(words of each pod, in place of one), cpus (so many), tmp (TMPDIR is compared), worker (what the worker does, as
worker.py takes it), signal (to the launcher, once all ranks have started), code
(agent's own where no worker starts).
In words and variables {d} is the folder of the run, which is the current one,
and {p} a port of its own."""
import re
import socket

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
                  r"[0-9a-f]{12}")
SCRIPT = "{d}/worker.py"


def case(name, *words, **more):
    return {"name": name, "words": list(words), "env": {}, "pods": [[]],
            "worker": "", "signal": None, "cpus": 0, "tmp": False, "code": 64,
            **more}


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
    except OSError:
        return False
    return True


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
    case("letters together", "-mt3", "--log-dir", "{d}/log", "worker", "a"),
    case("a letter with =", "-t=3", "-r=0:1", "--log-dir", "{d}/log", SCRIPT),
    case("the last one counts", "--nproc-per-node", "3", "--nproc-per-node",
         "2", "--rdzv-backend", "etcd", "--rdzv-backend", "static", SCRIPT),
    case("numbers with blanks", "--nproc-per-node", " 2 ", "--max-restarts",
         " 0", SCRIPT, env={"PET_NNODES": " 1:1\n", "PET_NO_PYTHON": " 0\n",
                            "PET_RDZV_CONF": " timeout = 60 , a = b \n"}),
    case("values with a dash", "--rdzv-id", "-7", "--role", "-",
         "--master-port", "{p}", SCRIPT),
    case("empty values", "--log-dir", "", "--role", "", "--local-addr", "",
         "--master-addr", "", SCRIPT),
    case("dashes after options", "--nproc-per-node", "2", "--", SCRIPT, "a",
         "--", "b"),
    case("--help after the script", SCRIPT, "--help", "-h"),
    case("a folder", "{d}/package", "x"),
    case("an archive", "{d}/worker.zip", "x"),
    case("a run path of a folder", "--run-path", "{d}/package"),
    case("a program in PATH", "--no-python", "python3", SCRIPT, "x"),
    case("no such script", "{d}/none.py", code=2),
    case("no such module", "-m", "none", code=1),
    case("a program without permission", "--no-python", "{d}/plain", code=126),
    case("no such program", "--no-python", "none", code=127),
    case("plug-ins that are there", "--logs-specs", "default",
         "--event-log-handler", "console", SCRIPT),
    # Rendezvous.
    case("standalone, and others that do not count", "--standalone",
         "--rdzv-endpoint", "no:such:port", SCRIPT,
         env={"PET_RDZV_BACKEND": "etcd"}),
    *([case("an end point of IPv6", "--rdzv-endpoint", " [::1]:{p}", SCRIPT),
       case("the same without brackets", "--master-addr", "::1",
            "--master-port", "{p}", SCRIPT)] if has_ipv6() else []),
    case("any port", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0",
         SCRIPT),
    case("static, unequal nodes", "--nnodes", "2", "--master-port", "{p}",
         "--rdzv-conf", "timeout=60",
         pods=[["--node-rank", "0", SCRIPT],
               ["--node-rank", "1", "--nproc-per-node", "3", SCRIPT]]),
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
    case("variables of another worker", SCRIPT, env={
        "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "4", "GROUP_RANK": "5",
        "GROUP_WORLD_SIZE": "8", "ROLE_RANK": "7", "ROLE_NAME": "o",
        "TORCHELASTIC_RUN_ID": "old", "TORCHELASTIC_RESTART_COUNT": "9",
        "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGX", "OMP_NUM_THREADS": "",
        "CUDA_VISIBLE_DEVICES": "", "MASTER_PORT": "tcp://10.0.0.1:80"}),
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
    case("a prefix with braces", "-t", "1", "--log-dir", "{d}/log", "--role",
         "a b{{rank}}$x", SCRIPT, env={"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE":
                                       "{{rank}} $role_name|"}),
    case("an empty filter", "-t", "3", "--duplicate-stdout-filters", "",
         "--log-dir", "{d}/log", SCRIPT),
    case("a relative log folder", "--log-dir", "./log//a/../b", "-r", "3",
         SCRIPT),
    case("ranks that are not there", "-r", "5:1", "--local-ranks-filter",
         "0 , 7", "--log-dir", "{d}/log", SCRIPT),
    case("a log folder that is a file", "--log-dir", SCRIPT, "-r", "1", SCRIPT,
         code=202),
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
    case("tee over a restart", "-t", "3", "--log-dir", "{d}/log",
         "--max-restarts", "1", SCRIPT, worker="0:exit 3"),
    case("INT", "--nproc-per-node", "2", SCRIPT, worker="wait", signal=2),
    case("TERM", "--nproc-per-node", "2", "--shutdown-timeout", "1", SCRIPT,
         worker="rank0 wait,rank1 stay", signal=15),
    case("a further signal", "--signals-to-handle", "SIGTERM,SIGUSR1",
         "--nproc-per-node", "2", SCRIPT, worker="usr1", signal=10),
    # Refused by both, before a worker starts.
    case("an unknown option", "--no-such-option", SCRIPT),
    case("no script"),
    case("an option in a value's place", "--role", "-m", "worker"),
    case("no such option in a value's place", "--role", "-x", "worker"),
    case("a value for a flag", "--standalone=1", SCRIPT),
    case("one dash", "-nnodes", "1", SCRIPT),
    case("no workers", "--nproc-per-node", "0", SCRIPT),
    case("GPUs that are not there", "--nproc-per-node", "gpu", SCRIPT,
         env={"CUDA_VISIBLE_DEVICES": ""}),
    case("no port", "--rdzv-endpoint", "localhost", SCRIPT),
    case("a port that cannot be", "--rdzv-endpoint", "localhost:65536",
         SCRIPT),
    case("a comma too many", "--rdzv-conf", "timeout=60,", SCRIPT),
    case("a time before now", "--shutdown-timeout", "-5", SCRIPT),
    case("signals that nobody handles", "--signals-to-handle",
         "SIGTERM,SIGKILL", SCRIPT),
    case("no such event handler", "--event-log-handler", "zeus", SCRIPT),
    case("a variable that is no number", SCRIPT, env={"PET_MAX_RESTARTS": "x"}),
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
