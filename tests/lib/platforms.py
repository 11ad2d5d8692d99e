"""The examples of docs/platforms.md: `list` their sections, or check one.

Each pod of the example runs its command as it is written, with the variables
that the platform would set, all of them in a network namespace whose hosts file
has their names: one job of all ranks must come of it. A pod of an Indexed Job
also has the host name and the hosts file that kubelet gives it. Of srun and
mpirun it is what they start on each node."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import yaml

GPUS = "0,1,2,3,4,5,6,7"
TRAIN = """import json, os
print(json.dumps({k: os.environ[k] for k in (
    "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR")}))
"""


def sections():
    text = pathlib.Path("docs/platforms.md").read_text()
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", part, re.M | re.S)
        if blocks:
            yield part.split("\n", 1)[0], blocks


def only(things):
    things = list(things)
    assert len(things) == 1, things
    return things[0]


def container(template, name=None):
    spec = template["spec"]
    c = only(spec["containers"])
    assert name in (None, c["name"]), "the operator looks for this name"
    check_shm(spec, c)
    return c["command"]


def check_shm(spec, c):
    """A container's own /dev/shm has 64 MiB."""
    assert c["volumeMounts"] == [{"name": "shm", "mountPath": "/dev/shm"}]
    assert spec["volumes"] == [{"name": "shm",
                                "emptyDir": {"medium": "Memory"}}]


def pytorchjob(job):
    replicas = job["spec"]["pytorchReplicaSpecs"]
    assert replicas["Master"]["replicas"] == 1
    n = sum(r["replicas"] for r in replicas.values())
    name, nproc = job["metadata"]["name"], job["spec"]["nprocPerNode"]
    for rank in range(n):
        kind = "Worker" if rank else "Master"
        at = {"MASTER_ADDR": name + "-master-0", "MASTER_PORT": "23456"}
        yield {**at, **{"PET_" + k: v for k, v in at.items()},
               "RANK": rank, "PET_NODE_RANK": rank, "PET_NNODES": n,
               "WORLD_SIZE": n * int(nproc), "PET_NPROC_PER_NODE": nproc}, \
            container(replicas[kind]["template"], "pytorch"), \
            name + "-master-0"


def trainjob(job):
    trainer, name = job["spec"]["trainer"], job["metadata"]["name"]
    zero = f"{name}-node-0-0.{name}"
    patch = only(job["spec"]["runtimePatches"])["trainingRuntimeSpec"]
    node = only(patch["template"]["spec"]["replicatedJobs"])
    spec = node["template"]["spec"]["template"]["spec"]
    assert (node["name"], only(spec["containers"])["name"]) == ("node", "node")
    check_shm(spec, only(spec["containers"]))
    for rank in range(trainer["numNodes"]):
        yield {"PET_NNODES": trainer["numNodes"], "PET_NODE_RANK": rank,
               "PET_NPROC_PER_NODE": "auto", "PET_MASTER_ADDR": zero,
               "PET_MASTER_PORT": 29500, "JOB_COMPLETION_INDEX": rank}, \
            trainer["command"], zero


def indexed(spec, name, subdomain):
    codes = only(spec["podFailurePolicy"]["rules"])["onExitCodes"]
    pod = spec["template"]["spec"]
    assert codes["containerName"] == only(pod["containers"])["name"]
    assert pod["restartPolicy"] == "Never", "the policy needs it"
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"]
    full = [f"{name}-{rank}.{subdomain}.default.svc.cluster.local"
            for rank in range(spec["completions"])]
    for rank, host in enumerate(full):
        yield {"JOB_COMPLETION_INDEX": rank}, container(spec["template"]), \
            full[0], host


def indexed_job(service, job):
    pod, name = job["spec"]["template"]["spec"], job["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": name}
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert pod["subdomain"] == service["metadata"]["name"]
    yield from indexed(job["spec"], name, pod["subdomain"])


def jobset(job):
    part, name = only(job["spec"]["replicatedJobs"]), job["metadata"]["name"]
    assert part["replicas"] == 1
    assert only(job["spec"]["failurePolicy"]["rules"]) == {
        "name": "permanent", "action": "FailJobSet",
        "onJobFailureReasons": ["PodFailurePolicy"]}
    yield from indexed(part["template"]["spec"], f"{name}-{part['name']}-0",
                       name)


def lws(job):
    t, name = job["spec"]["leaderWorkerTemplate"], job["metadata"]["name"]
    zero = f"{name}-0.{name}.default"
    for rank in range(t["size"]):
        yield {"LWS_LEADER_ADDRESS": zero, "LWS_GROUP_SIZE": t["size"],
               "LWS_WORKER_INDEX": rank}, \
            container(t["workerTemplate"]), zero


def volcano(job):
    task, name = only(job["spec"]["tasks"]), job["metadata"]["name"]
    assert {"svc", "env"} <= set(job["spec"]["plugins"])
    assert job["spec"]["minAvailable"] == task["replicas"]
    # kubelet must not start it again, whatever the code.
    assert task["template"]["spec"]["restartPolicy"] == "Never"
    assert any("exitCode" in p for p in job["spec"]["policies"])
    assert job["spec"]["policies"][-1]["event"] == "PodFailed"
    hosts = [f"{name}-{task['name']}-{i}.{name}"
             for i in range(task["replicas"])]
    upper = task["name"].upper().replace("-", "_")
    for rank, _ in enumerate(hosts):
        yield {"VC_TASK_INDEX": rank, "VK_TASK_INDEX": rank,
               f"VC_{upper}_HOSTS": ",".join(hosts),
               f"VC_{upper}_NUM": len(hosts)}, \
            container(task["template"]), hosts[0]


def compose(file):
    for name, service in file["services"].items():
        assert service["shm_size"]
        yield {}, service["command"], "node0"


def slurm(script):
    n = int(re.search(r"--nodes=(\d+)", script)[1])
    assert "--ntasks-per-node=1" in script
    words = shlex.split(only(re.findall(r"^srun (.*)$", script, re.M)))
    for rank in range(n):
        yield {"SLURM_JOB_ID": 7, "SLURM_JOB_NUM_NODES": n, "SLURM_NNODES": n,
               "SLURM_NODEID": rank, "SLURM_PROCID": rank, "SLURM_LOCALID": 0,
               "SLURM_STEP_ID": 0, "SLURM_NTASKS": n,
               "SLURM_JOB_NODELIST": "n[01-02]"}, \
            words[words.index("agent"):], "n01"


def mpirun(line):
    words = shlex.split(line)
    n, hosts = int(words[words.index("-np") + 1]), \
        words[words.index("--host") + 1].split(",")
    assert n == len(hosts) and "ppr:1:node" in words
    for rank in range(n):
        yield {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": n,
               "OMPI_COMM_WORLD_LOCAL_RANK": 0,
               "OMPI_COMM_WORLD_LOCAL_SIZE": 1}, \
            words[words.index("agent"):], hosts[0]


def laptop(line):
    yield {}, shlex.split(line), "127.0.0.1"


READERS = {
    "Kubeflow PyTorchJob": pytorchjob, "Kubeflow Trainer v2": trainjob,
    "Indexed Job": indexed_job, "JobSet": jobset, "LeaderWorkerSet": lws,
    "Volcano": volcano, "Slurm": slurm,
    "Open MPI and the MPI operator": mpirun, "Docker Compose": compose,
    "A laptop": laptop,
}


# A host name and a hosts file of its own, as kubelet writes it.
AS_POD = """
hostname "${1%%.*}"
hosts=$(mktemp)
{ cat /etc/hosts; printf '127.0.0.1\\t%s\\t%s\\n' "$1" "${1%%.*}"; } >"$hosts"
mount --bind "$hosts" /etc/hosts
rm "$hosts"
shift
exec "$@"
"""


def as_pod(full_name):
    """What goes before a command of the pod of this name, if it has one."""
    return ["unshare", "-mu", "sh", "-ec", AS_POD, "-",
            full_name] if full_name else []


def programs(folder, has_python):
    """What is in the image: agent, Python, and what is trained."""
    (folder / "bin").mkdir()
    (folder / "bin/agent").symlink_to(os.environ["AGENT_PROGRAM"])
    for name in ("python3", "python")[:1 + has_python]:
        (folder / "bin" / name).symlink_to("/usr/bin/python3")
    for name in ("train.py", "serve.py"):
        (folder / name).write_text(TRAIN)


def run_pods(pods):
    """The output of each, as objects of its ranks. In the namespaces."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        programs(folder, len(pods) > 1)
        hosts = "".join(f"127.0.0.1 {n}\n" for n in sorted(
            {"localhost", *(zero for _, _, zero, _ in pods)} - {"127.0.0.1"}))
        (folder / "hosts").write_text(hosts)
        subprocess.run(["mount", "--bind", folder / "hosts", "/etc/hosts"],
                       check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        path = f"{folder}/bin" + (":/usr/bin:/bin" if len(pods) > 1 else "")
        running = [subprocess.Popen(
            as_pod(name) + command, cwd=folder, stdin=subprocess.DEVNULL,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={"PATH": path, **env}) for env, command, _, name in pods]
        for p in running:
            out, err = p.communicate(timeout=120)
            assert p.returncode == 0, err
            yield [json.loads(line[line.index("{"):])
                   for line in out.splitlines()]


def check_job(pods, nprocs):
    """All ranks, each once, and all of them in one job."""
    ranks = [{**rank, "pod": str(pod)}
             for pod, output in enumerate(run_pods(pods)) for rank in output]
    base = [sum(nprocs[:pod]) for pod in range(len(pods) + 1)]
    want = [{"RANK": str(base[pod] + i), "WORLD_SIZE": str(base[-1]),
             "LOCAL_WORLD_SIZE": str(nprocs[pod]), "GROUP_RANK": str(pod),
             "MASTER_ADDR": pods[pod][2], "pod": str(pod)}
            for pod in range(len(pods)) for i in range(nprocs[pod])]
    ranks.sort(key=lambda r: int(r["RANK"]))
    assert ranks == want, (ranks, want)


def check_env(env, options, want, full_name):
    """What agent makes of the pod's variables; its number of workers."""
    run = subprocess.run(
        [*as_pod(full_name), os.environ["AGENT_PROGRAM"], "env", "--json",
         *options], text=True,
        env={"PATH": os.environ["PATH"], **env}, capture_output=True)
    assert run.returncode == 0 and not run.stderr, run.stderr
    got = {k: v["value"] for k, v in json.loads(run.stdout).items()}
    assert {k: got[k] for k in want} == want, (got, want)
    return got["nproc"]


def check(name):
    language, text = only(dict(sections())[name])
    docs = list(yaml.safe_load_all(text)) if language == "yaml" else [text]
    pods, nprocs = [], []
    for rank, (env, command, zero, *of) in enumerate(READERS[name](*docs)):
        assert command[0] == "agent" and "--" in command, command
        env = {**{k: str(v) for k, v in env.items()},
               "CUDA_VISIBLE_DEVICES": GPUS}
        host = of[0] if of else None
        pods.append((env, command, zero, host))
        nprocs.append((rank, env, command[1:command.index("--")], zero, host))
    check_job(pods, [check_env(env, options, {
        "nnodes": len(pods), "node_rank": rank, "master_addr": zero}, host)
        for rank, env, options, zero, host in nprocs])


if sys.argv[1] == "list":
    print("\n".join(name for name, _ in sections()))
else:
    check(sys.argv[1])
