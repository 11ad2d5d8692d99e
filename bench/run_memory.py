#!/usr/bin/env python3
"""Memory with 4 sleeping workers, and wake-ups while they sleep."""
import os
import subprocess
import sys
import time

import common
from common import AGENT, TORCHRUN, have

SLEEP = "sleep 98765"
IDLE_S = 10


def workers(pid):
    found = [p for p in common.children(pid)
             if common.command_of(p).strip() == SLEEP]
    return found if len(found) == 4 else None


def pss_kib(pid):
    """Of the launcher and its helpers, without the workers."""
    total = 0
    for p in common.children(pid):
        if common.command_of(p).strip() == SLEEP:
            continue
        with open(f"/proc/{p}/smaps_rollup", encoding="utf-8") as f:
            total += sum(int(line.split()[1]) for line in f
                         if line.startswith("Pss:"))
    return total


def switches(pid):
    """Voluntary context switches of all threads of all but the workers."""
    total = 0
    for p in common.children(pid):
        if common.command_of(p).strip() == SLEEP:
            continue
        for t in os.listdir(f"/proc/{p}/task"):
            with open(f"/proc/{p}/task/{t}/status", encoding="utf-8") as f:
                total += sum(int(line.split()[1]) for line in f
                             if line.startswith("voluntary"))
    return total


def measure(command):
    with subprocess.Popen(command.split(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as p:
        try:
            try:
                common.wait_until(30, workers, p.pid)
            except SystemExit:
                return None
            time.sleep(1)
            pss, before = pss_kib(p.pid), switches(p.pid)
            time.sleep(IDLE_S)
            return pss, switches(p.pid) - before
        finally:
            p.terminate()
            p.wait(60)


def main():
    programs = {"agent": f"{AGENT} --nproc 4 -- {SLEEP}",
                "hydra": f"mpiexec.hydra -n 4 {SLEEP}",
                "Open MPI": f"mpirun.openmpi -n 4 {SLEEP}",
                "torchrun": f"{TORCHRUN} --no-python --nproc-per-node 4 "
                            f"{SLEEP}"}
    b = common.Bench("memory", "Memory with 4 sleeping workers (PSS of the "
                     "launcher and its helpers)")
    idle = common.Bench("idle", f"Wake-ups in {IDLE_S} s with 4 sleeping "
                        "workers, one pod")
    got = {}
    for name, command in programs.items():
        if not have(command.split()[0]):
            b.skip(name, "not installed")
            continue
        both = measure(command)
        if both is None:
            b.skip(name, "its 4 workers did not start within 30 s")
            continue
        got[name] = both
        b.row(name, got[name][0], "KiB", got["agent"][0])
        idle.row(name, got[name][1], "voluntary context switches")
    b.limit("agent", got["agent"][0], 1536, " KiB")
    if "torchrun" in got:
        b.limit("torchrun to agent", got["torchrun"][0] / got["agent"][0],
                100, at_least=True)
    idle.limit("agent", got["agent"][1], 0)
    return b.done() | idle.done()


if __name__ == "__main__":
    common.need(AGENT)
    sys.exit(main())
