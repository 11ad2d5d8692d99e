#!/usr/bin/env python3
"""Death of a worker to the first instruction of its replacement; TERM to the
end of everything."""
import os
import signal
import subprocess
import sys
import tempfile
import time

import common
from common import AGENT, STAMP, TORCHRUN, have, median

RESTARTS = 60
STOPS = 40


def gaps_ms(command, file, seconds):
    """Of rank 0: from each death to the next start."""
    with subprocess.Popen(common.RT + command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as p:
        try:
            p.wait(seconds)
        except subprocess.TimeoutExpired:
            p.terminate()
            p.wait(60)
    found, death = [], None
    with open(file, encoding="utf-8") as f:
        for line in f:
            what, rank, ns = line.split()
            if rank != "0":
                continue
            if what == "death":
                death = int(ns)
            elif death:
                found.append((int(ns) - death) / 1e6)
                death = None
    os.unlink(file)
    return found


def restart(folder):
    file = os.path.join(folder, "stamps")
    os.mkdir(os.path.join(folder, "s6"))
    b = common.Bench("restart", "Death of a worker to the first instruction "
                     "of its replacement, back-off 0 (median)")
    programs = {
        "sh loop, one worker":
            ["sh", "-c", f"n=0; while [ $n -lt {RESTARTS} ]; do {STAMP} "
             f"{file}; n=$((n + 1)); done"],
        "agent, pod of 4":
            [AGENT, "--nproc", "4", "--max-restarts", str(RESTARTS),
             "--restart-backoff", "0:0", "--", STAMP, file],
        "s6-svscan, one service":
            common.s6_folder(os.path.join(folder, "s6"), f"{STAMP} {file}"),
        "torchrun, pod of 4":
            [TORCHRUN, "--no-python", "--nproc-per-node", "4",
             "--max-restarts", "5", "--monitor-interval", "0.1", STAMP, file]}
    got = {}
    for name, command in programs.items():
        if not have(command[0]):
            b.skip(name, "not installed")
            continue
        gaps = gaps_ms(command, file, 8 if command[0] == "s6-svscan" else 120)
        if not gaps:
            b.skip(name, "no restart was seen")
            continue
        got[name] = median(gaps)
        b.row(name, got[name], "ms", got.get("agent, pod of 4"))
    b.limit("agent", got["agent, pod of 4"], 3, " ms")
    return b.done()


def sleepers(pid):
    return sum(common.command_of(p).startswith("sleep 9876")
               for p in common.children(pid)) == 4


def stop_ms(command):
    with subprocess.Popen(common.RT + command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as p:
        common.wait_until(60, sleepers, p.pid)
        time.sleep(.05)
        start = time.monotonic()
        p.send_signal(signal.SIGTERM)
        p.wait(60)
        return (time.monotonic() - start) * 1000


def stop():
    b = common.Bench("stop", "TERM to the end of everything, 4 workers that "
                     f"obey (median of {STOPS}, in turns)")
    loop = "trap 'kill $(jobs -p); wait; exit' TERM; for i in 1 2 3 4; do " \
           "sleep 9876 & done; wait"
    programs = {"agent": [AGENT, "--nproc", "4", "--", "sleep", "9876"],
                "bash loop": ["bash", "-c", loop],
                "hydra": ["mpiexec.hydra", "-n", "4", "sleep", "9876"],
                "torchrun": [TORCHRUN, "--no-python", "--nproc-per-node", "4",
                             "sleep", "9876"]}
    few = {"torchrun": 5}
    got = {name: [] for name in programs}
    for i in range(STOPS):
        for name, command in programs.items():
            if have(command[0]) and i < few.get(name, STOPS):
                got[name].append(stop_ms(command))
    for name, values in got.items():
        if values:
            b.row(name, median(values), "ms", median(got["agent"]))
        else:
            b.skip(name, "not installed")
    b.limit("agent", median(got["agent"]), 5, " ms")
    return b.done()


def main():
    with tempfile.TemporaryDirectory() as folder:
        return restart(folder) | stop()


if __name__ == "__main__":
    common.need(AGENT, STAMP)
    sys.exit(main())
