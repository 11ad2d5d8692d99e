#!/usr/bin/env python3
"""A worker of side_by_side.py: writes down how it was started, and then does
what WORKER says: items with commas, "[ATTEMPT:][rankN ]ACTION"; the first that
fits counts. No PyTorch here, so that it starts at once."""
import json
import os
import signal
import sys
import time

rank, attempt = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]


def action():
    for item in os.environ.get("WORKER", "").split(","):
        when, _, what = item.rpartition(":")
        if what.startswith("rank"):
            who, _, what = what.partition(" ")
            if who != "rank" + rank:
                continue
        if when in ("", attempt):
            return what
    return ""


def record():
    path = f"record/{rank}.{attempt}.json"
    with open(path + ".part", "w") as f:
        json.dump({"env": dict(os.environ), "argv": sys.argv,
                   "words": sys.orig_argv[1:-len(sys.argv)],
                   "python": os.path.realpath(sys.executable),
                   "cwd": os.getcwd(), "path": sys.path[0], "name": __name__,
                   "session": os.getsid(0) == os.getpid(),
                   "stdin": os.path.exists("/proc/self/fd/0")}, f)
    os.rename(path + ".part", path)


def got_usr1(*_):
    print("out of", rank, "after USR1", flush=True)
    os._exit(0)


def main():
    what = action()
    if what == "stay":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if what == "usr1":
        signal.signal(signal.SIGUSR1, got_usr1)
    print("out of", rank, flush=True)
    print("err of", rank, file=sys.stderr, flush=True)
    record()  # Last: it tells that a signal may come.
    if what.startswith("exit"):
        sys.exit(int(what.split()[1]))
    if what == "kill":
        while not os.path.exists("record/1.0.json"):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "error":
        with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as f:
            json.dump({"message": {"message": "ValueError: why", "extraInfo": {
                "py_callstack": "where", "timestamp": "1"}}}, f)
        sys.exit(1)
    if what in ("wait", "stay", "usr1"):
        time.sleep(600)


main()
