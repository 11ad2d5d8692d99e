"""The examples of docs/platforms.md: `list` their sections, or check one.

For each pod of the example agent gets the variables that the platform would
set, and its command's own options; all pods must agree on one job."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import yaml

NPROC = {"nvidia.com/gpu": 8}


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
    mounts = {m["name"] for m in c.get("volumeMounts", [])}
    assert mounts == {v["name"] for v in spec.get("volumes", [])}
    return c["command"]


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
    for rank in range(trainer["numNodes"]):
        yield {"PET_NNODES": trainer["numNodes"], "PET_NODE_RANK": rank,
               "PET_NPROC_PER_NODE": "auto", "PET_MASTER_ADDR": zero,
               "PET_MASTER_PORT": 29500, "JOB_COMPLETION_INDEX": rank}, \
            trainer["command"], zero


def indexed(spec, zero):
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"]
    for rank in range(spec["completions"]):
        yield {"JOB_COMPLETION_INDEX": rank}, container(spec["template"]), zero


def indexed_job(service, job):
    pod, name = job["spec"]["template"]["spec"], job["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": name}
    assert pod["subdomain"] == service["metadata"]["name"]
    codes = only(job["spec"]["podFailurePolicy"]["rules"])["onExitCodes"]
    assert codes["containerName"] == only(pod["containers"])["name"]
    table = pathlib.Path("src/base/err.h").read_text()
    permanent = re.findall(r"X\(\w+, (\d+), \"\w+\", false", table)
    assert set(codes["values"]) == {int(c) for c in permanent} - {125}, \
        (codes["values"], permanent)
    yield from indexed(job["spec"], f"{name}-0.{pod['subdomain']}")


def jobset(job):
    part, name = only(job["spec"]["replicatedJobs"]), job["metadata"]["name"]
    assert part["replicas"] == 1
    yield from indexed(part["template"]["spec"],
                       f"{name}-{part['name']}-0-0.{name}")


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
        yield {}, service["command"], "node0"


def slurm(script):
    n = int(re.search(r"--nodes=(\d+)", script)[1])
    assert "--ntasks-per-node=1" in script
    words = shlex.split(only(re.findall(r"^srun (.*)$", script, re.M)))
    for rank in range(n):
        yield {"SLURM_JOB_ID": 7, "SLURM_JOB_NUM_NODES": n, "SLURM_NNODES": n,
               "SLURM_NODEID": rank, "SLURM_PROCID": rank, "SLURM_LOCALID": 0,
               "SLURM_NTASKS": n, "SLURM_JOB_NODELIST": "n[01-02]"}, \
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


def check(name):
    agent = os.environ["AGENT_PROGRAM"]
    language, text = only(dict(sections())[name])
    docs = list(yaml.safe_load_all(text)) if language == "yaml" else [text]
    pods = list(READERS[name](*docs))
    for rank, (env, command, zero) in enumerate(pods):
        assert command[0] == "agent" and "--" in command, command
        options = command[1:command.index("--")]
        env = {"PATH": os.environ["PATH"], "CUDA_VISIBLE_DEVICES":
               "0,1,2,3,4,5,6,7", **{k: str(v) for k, v in env.items()}}
        run = subprocess.run([agent, "env", "--json", *options], env=env,
                             capture_output=True, text=True)
        assert run.returncode == 0 and not run.stderr, run.stderr
        got = {k: v["value"] for k, v in json.loads(run.stdout).items()}
        want = {"nnodes": len(pods), "node_rank": rank, "master_addr": zero}
        nproc = [w for w in options if w.startswith("--nproc")]
        want["nproc"] = 8 if not nproc else got["nproc"]
        assert {k: got[k] for k in want} == want, (got, want)
        # `agent -- true` in that place has no option that is refused.
        alone = [w for w in options if not re.match(
            "--(nnodes|node-rank|master-addr|nproc)", w)]
        if " ".join(alone) == " ".join(options):
            subprocess.run([agent, "--nnodes=1", "--nproc=1", *options, "--",
                            "true"], env=env, check=True, timeout=60)


if sys.argv[1] == "list":
    print("\n".join(name for name, _ in sections()))
else:
    check(sys.argv[1])
