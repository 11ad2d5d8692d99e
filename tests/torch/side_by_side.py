#!/usr/bin/env python3
"""The torchrun command line of agent beside the real torchrun: the same command
lines under both; what the workers get, how it ends, attempts, console and log
files are the same but for DIFFERENCES of cases.py. Prints TAP.

Run with the Python of $O/torch-venv. torch is imported once here, and the real
torchrun's script runs in a fork of this process, since its import takes seconds;
one case runs it as users do, and gives the same."""
import json
import os
import pathlib
import re
import runpy
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path.append(str(TOP / "tests/lib"))
from cases import CASES, DIFFERENCES, UUID
from free_port import claim_port

O = pathlib.Path(os.environ.get("O", TOP / "build"))
AGENT = O / "agent"
TORCHRUN = O / "torch-venv/bin/torchrun"
LIMIT_S = 120  # Of one run.
AT_ONCE = 6
SIDES = ("real", "agent")
BESIDE = (-100, 100)  # agent's barrier, MASTER_PORT with c10d.


class Run:
    """One case on one side: a process for each pod."""

    def __init__(self, case, side, folder, cold=False):
        self.case, self.side, self.dir = case, side, folder
        self.cold = cold  # The real one as users start it.
        self.port = claim_port(os.getpid(), beside=BESIDE)
        self.pids, self.codes, self.start = {}, {}, 0
        self.signalled, self.sleeps = False, 0
        for name in ("record", "tmp"):
            (folder / name).mkdir(parents=True)
        shutil.copy(HERE / "worker.py", folder)
        (folder / "python").symlink_to(sys.executable)
        (folder / "package").mkdir()
        (folder / "package/__main__.py").symlink_to(folder / "worker.py")
        with zipfile.ZipFile(folder / "worker.zip", "w") as z:
            z.write(HERE / "worker.py", "__main__.py")
        (folder / "plain").write_text("#!/bin/sh\n")

    def fill(self, text):
        return text.format(d=self.dir, p=self.port)

    def env(self):
        path = f"{O}/torch-venv/bin:/usr/local/bin:/usr/bin:/bin"
        env = {"PATH": path, "HOME": str(self.dir), "LC_ALL": "C",
               "TMPDIR": str(self.dir / "tmp"), "PYTHONWARNINGS": "ignore",
               "WORKER": self.case["worker"]}
        return env | {k: self.fill(v) for k, v in self.case["env"].items()}

    def spawn(self):
        self.start = time.monotonic()
        for pod, extra in enumerate(self.case["pods"]):
            words = [self.fill(w) for w in self.case["words"] + extra]
            pid = os.fork()
            if pid == 0:
                self.become(pod, words)
            self.pids[pid] = pod

    def become(self, pod, words):
        """The launcher, in the child."""
        code = 99
        try:
            os.chdir(self.dir)
            for fd, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(f"{name}{pod}", os.O_WRONLY | os.O_CREAT), fd)
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            if self.case["cpus"]:
                cpus = sorted(os.sched_getaffinity(0))[:self.case["cpus"]]
                os.sched_setaffinity(0, cpus)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if self.side == "agent":
                os.execve(AGENT, ["agent", "torchrun", *words], self.env())
            if self.cold:
                os.execve(TORCHRUN, [str(TORCHRUN), *words], self.env())
            code = warm(words, self.env())
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def ended(self, pid, status):
        self.codes[self.pids.pop(pid)] = os.waitstatus_to_exitcode(status)

    def watch(self):
        """The signal when all have started; an end when it is too late."""
        late = time.monotonic() - self.start > LIMIT_S
        if self.case["signal"] and not self.signalled and \
                len(list(self.dir.glob("record/*.json"))) == 2 and \
                self.looks_after_them():
            self.signalled = True
            self.kill(self.case["signal"])
        if late:
            self.kill(signal.SIGKILL)

    def looks_after_them(self):
        """torchrun forgets its workers where a signal comes before it has
        begun to poll them; each poll is a sleep."""
        if self.side == "agent":
            return True
        sleeps = sum(int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)",
                                   pathlib.Path(f"/proc/{pid}/status")
                                   .read_text())[1]) for pid in self.pids)
        self.sleeps = self.sleeps or sleeps
        return sleeps > self.sleeps + 5

    def kill(self, signo):
        for pid in self.pids:
            os.kill(pid, signo)

    # What came of it, in words that do not name the run.

    def plain(self, text):
        text = text.replace(str(self.dir), "@")
        text = re.sub(r"torchelastic_\w+", "torchelastic_R", text)
        random = r"\w{8}" if self.side == "real" else r"\w{6}"
        text = re.sub(rf"([^/]+)_{random}(?=/attempt_|$)", r"\1_R", text)
        text = re.sub(UUID.pattern + "_R", "ID_R", text)
        text = re.sub(rf"\b{self.port}\b", "PORT", text)
        return text

    def records(self):
        found = {}
        for path in sorted(self.dir.glob("record/*.json")):
            found[path.stem] = json.loads(path.read_text())
        return found

    def end(self):
        if any(self.codes.values()):
            return "failed" if self.records() else "refused"
        return "ok"

    def console(self, name):
        lines = []
        for path in sorted(self.dir.glob(name + "?")):
            lines += [line for line in path.read_text().splitlines()
                      if re.search(r"\b(out|err) of \d", line)
                      and not line.startswith("agent[")]
        return sorted(lines)

    def files(self):
        """Of the logs: path and content, the lines sorted where ranks share
        a file."""
        roots = [self.dir / "log"]
        if self.case["tmp"]:  # Else there is nothing of interest in it.
            roots.append(self.dir / "tmp")
        found = {}
        for root in roots:
            for path in sorted(root.rglob("*")):
                text = path.read_text() if path.is_file() else "(folder)"
                if path.name.startswith("filtered"):
                    text = "\n".join(sorted(text.splitlines()))
                found[self.plain(str(path))] = text
        outer = self.dir / "outer.json"
        if outer.exists():
            found["outer.json"] = json.loads(outer.read_text())
        return found


def warm(words, env):
    os.environ.clear()
    os.environ.update(env)
    tempfile.tempdir = None
    sys.argv = [str(TORCHRUN), *words]
    try:
        runpy.run_path(str(TORCHRUN), run_name="__main__")
    except SystemExit as e:
        if isinstance(e.code, int) or e.code is None:
            return e.code or 0
        print(e.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def run_all(runs):
    waiting, running = list(runs), {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            run = waiting.pop(0)
            run.spawn()
            running.update(dict.fromkeys(run.pids, run))
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in running:
            running.pop(pid).ended(pid, status)
            continue
        for run in set(running.values()):
            run.watch()
        time.sleep(0.01)


def kill_left(folder):
    """What torchrun leaves where it is killed itself."""
    for cwd in pathlib.Path("/proc").glob("[0-9]*/cwd"):
        try:
            if os.readlink(cwd).startswith(str(folder) + "/"):
                os.kill(int(cwd.parent.name), signal.SIGKILL)
        except OSError:
            pass


used = set()


def differences(real, agent, where):
    """Of the variables of one worker."""
    for name in sorted(real.keys() | agent.keys()):
        r, a = real.get(name), agent.get(name)
        if r == a:
            continue
        for known, fits, _ in DIFFERENCES:
            if known == name and fits(r, a):
                used.add(name)
                break
        else:
            yield f"{where}: {name} is {r!r} there, {a!r} here"


def compare(real, agent):
    for what in ("end", "files"):
        r, a = getattr(real, what)(), getattr(agent, what)()
        if r != a:
            yield f"{what}: {r!r} there, {a!r} here"
    for name in ("out", "err"):
        r, a = real.console(name), agent.console(name)
        if r != a:
            yield f"console, {name}: {r!r} there, {a!r} here"
    code = real.case["code"]
    if agent.end() == "refused" and set(agent.codes.values()) != {code}:
        yield f"refused with {agent.codes}, not {code}"
    theirs, ours = real.records(), agent.records()
    if theirs.keys() != ours.keys():
        yield f"ranks and attempts: {[*theirs]} there, {[*ours]} here"
    for key in theirs.keys() & ours.keys():
        r, a = theirs[key], ours[key]
        yield from differences(
            {k: real.plain(v) for k, v in r.pop("env").items()},
            {k: agent.plain(v) for k, v in a.pop("env").items()}, key)
        if "--run-path" in real.case["words"]:  # A fresh Python runs it here.
            for k in ("words", "path", "session"):
                r.pop(k), a.pop(k)
        r, a = real.plain(json.dumps(r)), agent.plain(json.dumps(a))
        if r != a:
            yield f"{key}: {r} there, {a} here"


def options(text):
    return {"-" + m[0].replace("_", "-").lstrip("-") if len(m[0]) == 2 else
            m[0].replace("_", "-")
            for m in re.finditer(r"(?<![\w-])--?[a-z][\w-]*", text)}


def names_of(text):
    """Options that a --help describes: at the beginning of its lines."""
    lines = re.findall(r"^  (-.*?)(?:  .*)?$", text, re.M)
    return {n for line in lines for n in options(line)}


def unknown(theirs, ours):
    return [f"{n} of torchrun is not known" for n in
            sorted(names_of(theirs) - names_of(ours))]


def output(*argv):
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(w, 1)
        os.execv(argv[0], list(argv))
    os.close(w)
    with os.fdopen(r) as f:
        text = f.read()
    os.waitpid(pid, 0)
    return text


def check_help(helps):
    """Each option is known; and the check finds one that is not."""
    theirs, ours = helps
    if len(names_of(theirs)) < 30:
        yield f"only {sorted(names_of(theirs))} found in torchrun's help"
    if not unknown(theirs + "\n  --no-such THING\n", ours):
        yield "a planted option was not found"
    yield from unknown(theirs, ours)


def shown_default(line):
    m = re.search(r"\[([^][]*)\]$", line)
    return m[1] if m else None


def check_parser(ours, manual):
    """Variables, values and defaults, of torchrun's own parser."""
    from torch.distributed.run import get_args_parser
    text = re.sub(r"\n {3,}", " ", ours)
    for action in get_args_parser()._actions:
        if not action.option_strings or action.dest == "help":
            continue
        name = max(action.option_strings, key=len).replace("_", "-")
        m = re.search(rf"^  (?:-\w, )?{name}( [^ ]+)?( .*)?$", text, re.M)
        if not m:
            yield f"{name} is not known"
            continue
        if bool(m[1] and not m[1].startswith("  ")) != (action.nargs != 0):
            yield f"{name}: a value here, and not there, or the reverse"
        variable = "PET_" + action.dest.upper()
        if (type(action).__name__ in ("env", "check_env")) != bool(
                re.search(rf"\.Ev {variable} ", manual)):
            yield f"{variable}: of one of the two alone"
        default = action.default
        if default not in (None, "", [], False) and \
                shown_default(m[0]) != str(default):
            yield f"{name}: {default} there, {shown_default(m[0])} here"


def check_list():
    text = re.sub(r"\s+", " ", (TOP / "docs/torchrun.md").read_text())
    for name, _, words in DIFFERENCES:
        if name not in used:
            yield f"{name} never differed: leave it out"
        if words and words not in text:
            yield f"docs/torchrun.md does not say '{words}'"


def check_itself(real, agent):
    """Faults that are planted are found."""
    r, a = real.records()["0.0"]["env"], agent.records()["0.0"]["env"]
    for name, value in (("RANK", "1"), ("NEW", "x"), ("LOCAL_RANK", None),
                        ("TORCHELASTIC_USE_AGENT_STORE", "True ")):
        wrong = {k: v for k, v in (a | {name: value}).items() if v is not None}
        if not list(differences(r, wrong, "planted")):
            yield f"a planted {name}={value} was not found"


n_tests, failed = 0, False


def ok(name, faults):
    global n_tests, failed
    n_tests += 1
    faults = list(faults)
    failed = failed or bool(faults)
    print(f"{'not ' if faults else ''}ok {n_tests} - {name}")
    for f in faults:
        print(f"# {f}")


def compare_twice(real, agent, folder):
    """What torchrun does beside others of its kind varies: once in some hundred
    runs its workers' output is missing. A difference is there alone, too."""
    faults = list(compare(real, agent))
    if not faults:
        return
    for f in faults:
        print(f"# {real.case['name']}, once more, alone: {f}")
    again = [Run(real.case, side, folder / side) for side in SIDES]
    run_all(again)
    yield from compare(*again)


def main():
    sys.stdout.reconfigure(line_buffering=True)  # Nothing is left for a fork.
    warnings.simplefilter("ignore")
    os.environ["PYTHONWARNINGS"] = "ignore"
    import torch.distributed.run  # noqa: F401, once for all forks.
    folder = pathlib.Path(tempfile.mkdtemp())
    only = sys.argv[1:]
    cases = [c for c in CASES if not only or c["name"] in only]
    try:
        pairs = [[Run(c, side, folder / str(n) / side) for side in SIDES]
                 for n, c in enumerate(cases)]
        cold = [Run(CASES[0], "real", folder / "cold/real", cold=True),
                Run(CASES[0], "agent", folder / "cold/agent")]
        run_all([run for pair in [cold, *pairs] for run in pair])
        for n, (real, agent) in enumerate(pairs):
            ok(real.case["name"], compare_twice(real, agent, folder / f"{n}-"))
        ok("torchrun as users start it", compare(*cold))
        ok("the comparison finds planted faults", check_itself(*cold))
        if not only:
            ok("the listed differences are met, and in the manual",
               check_list())
        ours = output(str(AGENT), "torchrun", "--help")
        manual = output(str(AGENT), "--help=man")
        ok("each option of torchrun is known",
           check_help((output(str(TORCHRUN), "--help"), ours)))
        ok("with its value, variable and default", check_parser(ours, manual))
        ok("a changed default is found", [] if list(check_parser(
            ours.replace("[1:1]", "[1]"), manual)) else ["it was not"])
    finally:
        kill_left(folder)
        if os.environ.get("KEEP"):
            print(f"# {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"1..{n_tests}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
