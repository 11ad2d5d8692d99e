"""What the benchmarks share: where things are, tables, and the record.

A benchmark is a file bench/run_<name>.py with a main(). It measures agent and
its peers in turn, in one run, and ends with Bench.done(). `make bench` runs
them all, `make bench ONLY=start` one.
"""
import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
O = os.path.abspath(os.environ.get("O", os.path.join(TOP, "build")))
AGENT = os.path.join(O, "agent")
SPAWN = os.path.join(O, "bench", "spawn")
LOOP = os.path.join(O, "bench", "loop")
STAMP = os.path.join(O, "bench", "stamp")
TORCHRUN = os.path.join(O, "torch-venv", "bin", "torchrun")
RECORD = os.path.join(O, "bench.jsonl")
# The environment of a launcher must not reach the ones that are measured.
for v in list(os.environ):
    if v.startswith(("AGENT_", "PET_", "TORCHELASTIC_")) or v in (
            "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
            "MASTER_ADDR", "MASTER_PORT"):
        del os.environ[v]
# Open MPI and hydra as root of a container.
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1",
                  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  OMPI_MCA_rmaps_base_oversubscribe="1")


def real_time():
    """What a command begins with so that other work does not disturb it."""
    try:
        if subprocess.run(["chrt", "-r", "10", "true"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0:
            return ["chrt", "-r", "10"]
    except OSError:
        pass
    return []


RT = real_time()


def have(program):
    return shutil.which(program) is not None


def need(*programs):
    """Ends, and says what to do, where one of them is not built."""
    for program in programs:
        if not have(program):
            raise SystemExit(f"{program} is not there: make bench-built")


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * q))]


def median(values):
    return statistics.median(values)


def first_line(*command):
    try:
        r = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                           stderr=subprocess.STDOUT, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (r.stdout.strip().splitlines() or [""])[0]


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def spawn_times(rounds, commands, prefix=()):
    """{name: command line} -> {name: [microseconds] or a reason}."""
    r = subprocess.run([*prefix, SPAWN, str(rounds), *commands.values()],
                       stdout=subprocess.PIPE, text=True, check=True)
    times = {}
    for name, line in zip(commands, r.stdout.splitlines()):
        times[name] = (line[2:] if line.startswith("- ") else
                       [float(v) for v in line.split()])
    return times


def wait_until(seconds, what, *args):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = what(*args)
        if got:
            return got
        time.sleep(0.01)
    raise SystemExit(f"waited {seconds} s for {what.__name__}{args}")


def children(pid):
    """All descendants of a process, itself first."""
    parents = {}
    for d in os.listdir("/proc"):
        if d.isdigit():
            try:
                with open(f"/proc/{d}/stat", encoding="utf-8",
                          errors="replace") as f:
                    ppid = int(f.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            parents.setdefault(ppid, []).append(int(d))
    found = [pid]
    for p in found:
        found += parents.get(p, [])
    return found


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def s6_folder(folder, run, ends=False):
    """The command that supervises `run` alone; `ends`: once, and then it ends.
    s6 starts a service again at most once a second."""
    service = os.path.join(folder, "one")
    os.mkdir(service)
    scripts = {"run": f"exec {run}"}
    if ends:
        scripts["finish"] = f"exec s6-svscanctl -t {folder}"
    for name, words in scripts.items():
        path = os.path.join(service, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\n{words}\n")
        os.chmod(path, 0o755)
    return ["s6-svscan", folder]


class Bench:
    """Rows of one benchmark: a value for each program, ratios and limits."""

    def __init__(self, name, title):
        self.name, self.title = name, title
        self.rows, self.checks = [], []

    def row(self, program, value, unit, base=None):
        """`base` is what the ratio is taken to: another value, or None."""
        self.rows.append((program, value, unit,
                          value / base if base else None))

    def skip(self, program, why):
        self.rows.append((program, None, why, None))

    def limit(self, what, got, limit, unit="", at_least=False):
        good = got >= limit if at_least else got <= limit
        self.checks.append((what, got, limit, unit, at_least, good))

    def done(self):
        """Print as Markdown, write the record; 1 where a limit is missed."""
        now = datetime.datetime.now(datetime.timezone.utc)
        print(f"\n### {self.title}\n")
        print("| | value | ratio |\n|---|---|---|")
        for program, value, unit, ratio in self.rows:
            if value is None:
                print(f"| {program} | not measured: {unit} | |")
                continue
            print(f"| {program} | {value:,.4g} {unit} | "
                  f"{f'{ratio:.3g}' if ratio else ''} |")
        for what, got, limit, unit, at_least, good in self.checks:
            print(f"\n{what}: {got:.3g}{unit}, wanted at "
                  f"{'least' if at_least else 'most'} {limit:g}{unit}: "
                  f"{'met' if good else 'MISSED'}")
        with open(RECORD, "a", encoding="utf-8") as f:
            f.write(json.dumps({
                "bench": self.name,
                "time": now.isoformat(timespec="seconds"),
                "cpu": cpu_name(), "cpus": os.cpu_count(),
                "kernel": platform.release(),
                "agent": first_line(AGENT, "--version"),
                "rows": [dict(zip(("program", "value", "unit", "ratio"), r))
                         for r in self.rows],
                "limits": [dict(zip(("what", "got", "limit", "unit",
                                     "at_least", "met"), c))
                           for c in self.checks]}) + "\n")
        sys.stdout.flush()
        return 0 if all(c[5] for c in self.checks) else 1
