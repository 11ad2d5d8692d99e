#!/usr/bin/env python3
"""Speed of the relay of lines, beside what else relays them.

    bench/logs.py AGENT LOGS_IO [TORCHRUN]

Four workers write lines at full speed; one reader takes all. Peers that are
not installed are left out. Best of 5, in turns. Fails where a limit is
missed; docs/benchmarks.md says which."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

AGENT, IO = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
TORCHRUN = sys.argv[3] if len(sys.argv) > 3 else ""
N, RUNS = 4, 5
QUICK = bool(os.environ.get("LOGS_QUICK"))
root = ["--allow-run-as-root", "--oversubscribe"]


def each(filter_command, worker):
    """N workers, each through a filter of its own, into one pipe."""
    return ["sh", "-c", " ".join(
        f"{worker} | {filter_command.format(i=i)} &" for i in range(N)) +
        " wait"]


def contenders(worker):
    words = worker.split()
    have = shutil.which
    yield "cat", each("cat", worker)
    yield "agent", [AGENT, "-q", "--nproc", str(N), "--", *words]
    yield "agent json", [AGENT, "-q", "--log-format", "json", "--nproc",
                         str(N), "--", *words]
    if have("parallel"):
        yield "parallel --tag", [
            "sh", "-c", f"seq {N} | parallel -j{N} --tag --line-buffer -n0 "
            f"'{worker}' 2>/dev/null"]
    if have("mpirun.openmpi"):
        yield "mpirun --tag-output", ["mpirun.openmpi", *root, "-n", str(N),
                                      "--tag-output", *words]
    if have("mpiexec.hydra"):
        yield "hydra -prepend-rank", ["mpiexec.hydra", "-n", str(N),
                                      "-prepend-rank", *words]
    if have("s6-log"):
        yield "s6-log", each("s6-log -b 1", worker)
    if TORCHRUN and os.path.exists(TORCHRUN):
        yield "torchrun --tee 3", [
            TORCHRUN, "--nproc_per_node", str(N), "--tee", "3", "--no_python",
            "--master_port", "29655", *words]
    if have("ts"):
        yield "ts", each("ts {i}", worker)
    yield "sed -u", each("sed -u s/^/[rank{i}]/", worker)


SLOW = {"ts": 20, "sed -u": 20, "torchrun --tee 3": 4,
        "mpirun --tag-output": 4, "hydra -prepend-rank": 4, "s6-log": 2,
        "parallel --tag": 2}


def once(command, cpu_file):
    """Seconds, bytes read, and CPU seconds of all but the workers."""
    open(cpu_file, "w").close()
    env = dict(os.environ, LOGS_CPU=cpu_file, OMPI_MCA_btl="self")
    start = time.monotonic()
    p = subprocess.Popen(command, stdout=subprocess.PIPE, env=env,
                         stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    sink = subprocess.Popen([IO, "sink"], stdin=p.stdout,
                            stdout=subprocess.PIPE, text=True)
    p.stdout.close()
    _, _, usage = os.wait4(p.pid, 0)
    n = int(sink.communicate()[0])
    took = time.monotonic() - start
    with open(cpu_file) as f:
        workers = sum(map(int, f.read().split())) / 1e6
    return took, n, usage.ru_utime + usage.ru_stime - workers


def table(length, total):
    rows, tmp = {}, tempfile.mkdtemp()
    for run in range(2 if QUICK else RUNS):
        for name in [c[0] for c in contenders("x")]:
            lines = total // N // SLOW.get(name, 1)
            if name in SLOW and run >= 2:
                continue
            worker = f"{IO} write {lines} {length}"
            command = dict(contenders(worker))[name]
            took, n, cpu = once(command, f"{tmp}/cpu")
            if n < lines * N * (length - 1):
                print(f"  {name}: only {n} bytes came out")
                continue
            rows.setdefault(name, []).append(
                (lines * N / took / 1e6, lines * N * length / took / 1e6,
                 cpu / (lines * N) * 1e9))
    shutil.rmtree(tmp)
    print(f"| lines of {length} bytes | M lines/s | MB/s | CPU, ns a line |")
    print("|---|---|---|---|")
    best = {}
    for name, all_runs in rows.items():
        speed, mb, _ = max(all_runs)
        cpu = min(r[2] for r in all_runs)
        best[name] = (speed, mb, cpu)
        print(f"| {name} | {speed:.2f} | {mb:.0f} | {cpu:.0f} |")
    return best


def latency():
    print("| one line each 5 ms | p50, us | p99, us |\n|---|---|---|")
    p99 = {}
    for name, command in (
            ("cat", ["sh", "-c", f"{IO} ping 400 5 | cat"]),
            ("agent", [AGENT, "-q", "--", IO, "ping", "400", "5"])):
        best = None
        for _ in range(1 if QUICK else 3):
            p = subprocess.Popen(command, stdout=subprocess.PIPE)
            out = subprocess.run([IO, "pong"], stdin=p.stdout, text=True,
                                 capture_output=True, check=True).stdout
            p.wait()
            _, p50, now = map(int, out.split())
            best = min(best or (now, p50), (now, p50))
        p99[name] = best[0]
        print(f"| {name} | {best[1]} | {best[0]} |")
    return p99


def main():
    ok = True

    def limit(what, value, good):
        nonlocal ok
        ok = ok and good
        print(f"{'ok' if good else 'MISSED'}: {what}: {value}")

    small = table(100, 4000000 if QUICK else 12000000)
    large = table(1024, 600000 if QUICK else 2000000)
    p99 = latency()
    s, l = small["agent"], large["agent"]
    limit("100 bytes: 3 M lines/s, or 60 % of cat's", f"{s[0]:.2f} M, "
          f"{100 * s[0] / small['cat'][0]:.0f} %",
          s[0] >= 3 or s[0] >= .6 * small["cat"][0])
    limit("1 KiB: 1 GB/s, or 60 % of cat's", f"{l[1]:.0f} MB/s, "
          f"{100 * l[1] / large['cat'][1]:.0f} %",
          l[1] >= 1000 or l[1] >= .6 * large["cat"][1])
    for name, t in (("100 bytes", small), ("1 KiB", large)):
        ratio = t["agent"][2] / t["cat"][2]
        limit(f"{name}: CPU at most 1.5 times cat's", f"{ratio:.2f}",
              ratio <= 1.5)
    limit("p99 of a line under 1 ms", f"{p99['agent']} us",
          p99["agent"] < 1000)
    for name, times in (("torchrun --tee 3", 5), ("parallel --tag", 1.3)):
        if name in small:
            ratio = s[0] / small[name][0]
            limit(f"100 bytes: at least {times} times {name}",
                  f"{ratio:.1f}", ratio >= times)
    return not ok


sys.exit(main())
