"""The console blocks of README: `list` those that call agent, or run one.

What is shown after a command must be what it prints, but for pids, times, the
host's name and lines that are left out ("...")."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

PROMPT = "$ "


def is_whole(command):
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True


def examples():
    """Blocks: command lines, each with the lines that follow it."""
    text = pathlib.Path("README.md").read_text()
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        found = []
        for line in block.splitlines():
            if line.startswith(PROMPT):
                found.append([line.removeprefix(PROMPT), []])
            elif not is_whole(found[-1][0]):
                found[-1][0] += "\n" + line
            elif line != "...":
                found[-1][1].append(line)
        found = [e for e in found if e[0].startswith("agent ")]
        if found:
            yield found


def plain(line):
    """A line without what differs from run to run."""
    line = re.sub(r"\b[0-9.]+ (ms|s|min)\b", "T", line)
    line = re.sub(r"\bhost [\w.-]+", "host H", line)
    return re.sub(r"\bpid [0-9]+", "pid P", line)


def start(command, output):
    return subprocess.Popen(["bash", "-c", command], stdin=subprocess.DEVNULL,
                            stdout=output, stderr=subprocess.STDOUT)


def run_pods(command, output, folder):
    """Also what the other shell starts, once it is missed."""
    first = start(command, output)
    while b"waiting: " not in pathlib.Path(output.name).read_bytes():
        assert first.poll() is None
        try:
            first.wait(0.05)
        except subprocess.TimeoutExpired:
            pass
    with open(f"{folder}/other", "wb") as other:
        second = start(command.replace("--node-rank 0", "--node-rank 1"),
                       other)
        assert second.wait(100) == 0
    return first.wait(100)


def check(command, shown, folder):
    mine = command.replace("/tmp/", folder + "/")
    with open(f"{folder}/out", "wb") as output:
        if "--nnodes 2" in command:
            code = run_pods(mine, output, folder)
        else:
            code = start(mine, output).wait(100)
    printed = pathlib.Path(output.name).read_text().replace(
        folder + "/", "/tmp/")
    lines = {plain(line) for line in printed.splitlines()}
    for line in shown:
        assert plain(line) in lines, f"not printed: {line}\n{printed}"
    failed = [int(n) for n in re.findall(r"failed with exit code (\d+)",
                                         "\n".join(shown))]
    assert [code] == (failed or [0]), (code, printed)


found = list(examples())
if sys.argv[1] == "list":
    print("\n".join(block[0][0].split("\n")[0] for block in found))
else:
    os.environ["PATH"] = f"{os.environ['O']}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as where:
        for command, shown in found[int(sys.argv[1])]:
            check(command, shown, where)
