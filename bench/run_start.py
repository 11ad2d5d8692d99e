#!/usr/bin/env python3
"""Start to end: one worker of `true`, and 64 of them."""
import sys
import tempfile

import common
from common import AGENT, LOOP, SPAWN, TORCHRUN, have, quantile

ROUNDS = 500
MANY_ROUNDS = 40
TORCH_ROUNDS = 4


def torchrun_ms(nproc):
    """Its median in ms, or a reason."""
    if not have(TORCHRUN):
        return "no torchrun: make check-torch fetches PyTorch"
    t = common.spawn_times(TORCH_ROUNDS, {
        "t": f"{TORCHRUN} --no-python --nproc-per-node {nproc} true"})["t"]
    return t if isinstance(t, str) else common.median(t) / 1000


def one_worker(folder):
    s6 = common.s6_folder(folder, "true", ends=True)
    b = common.Bench("start", "Start to end of `true`, one worker (25th "
                     f"percentile of {ROUNDS}, in turns)")
    commands = {"tini-static -s": "tini-static -s -- true",
                "agent": f"{AGENT} --nproc 1 -- true",
                "bare C loop": f"{LOOP} 1 true",
                "tini": "tini -s -- true",
                "dumb-init": "dumb-init true",
                "catatonit": "catatonit -- true",
                "hydra": "mpiexec.hydra -n 1 true"}
    slow = {"Open MPI": "mpirun.openmpi -n 1 true",
            "GNU parallel": "parallel true ::: 1",
            "chronic, of moreutils": "chronic true",
            "s6-svscan, one service": " ".join(s6)}
    for table in (commands, slow):
        for name in list(table):
            if not have(table[name].split()[0]):
                b.skip(name, "not installed (make bench-deps)")
                del table[name]
    times = common.spawn_times(ROUNDS, commands, common.RT)
    if slow:
        times.update(common.spawn_times(20, slow))
    ms = {n: t if isinstance(t, str) else quantile(t, .25) / 1000
          for n, t in times.items()}
    ms["torchrun"] = torchrun_ms(1)
    base = ms.get("tini-static -s")
    for name, value in ms.items():
        if isinstance(value, str):
            b.skip(name, value)
        else:
            b.row(name, value, "ms", base)
    if base:
        b.limit("agent to tini-static", ms["agent"] / base, 1.35)
    if not isinstance(ms["torchrun"], str):
        b.limit("torchrun to agent", ms["torchrun"] / ms["agent"], 500,
                at_least=True)
    return b.done()


def many_workers():
    b = common.Bench("start64", "Start to end of 64 workers of `true` (25th "
                     f"percentile of {MANY_ROUNDS}, in turns)")
    commands = {"bare C loop": f"{LOOP} 64 true",
                "agent": f"{AGENT} --nproc 64 -- true"}
    if have("mpiexec.hydra"):
        commands["hydra"] = "mpiexec.hydra -n 64 true"
    ms = {n: t if isinstance(t, str) else quantile(t, .25) / 1000 for n, t in
          common.spawn_times(MANY_ROUNDS, commands, common.RT).items()}
    for name, value in ms.items():
        if isinstance(value, str):
            b.skip(name, value)
        else:
            b.row(name, value, "ms", ms["bare C loop"])
    b.limit("agent to a bare C loop", ms["agent"] / ms["bare C loop"], 1.3)
    return b.done()


if __name__ == "__main__":
    common.need(AGENT, LOOP, SPAWN)
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(one_worker(scratch) | many_workers())
