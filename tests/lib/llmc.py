"""Stands for a trainer of llm.c: the same arguments, each letter pair with one
value, and the same two ways for NCCL's id to get to all ranks."""
import os
import socket
import sys
import time

KNOWN = {"-i": str, "-pn": int, "-pr": int, "-pg": int, "-pi": str, "-ps": str,
         "-pf": str}
PORT = int(os.environ.get("LLMC_PORT", 12345))
SIZE = 128


def read(words):
    if len(words) % 2:
        sys.exit("an argument has no value")
    a = {}
    for name, value in zip(words[::2], words[1::2]):
        if name not in KNOWN:
            sys.exit(f"no such argument: {name}")
        a[name] = KNOWN[name](value)
    return a


def over_tcp(a, own):
    socket.inet_aton(a["-ps"])  # A name is not looked up.
    if a["-pr"] == 0:
        with socket.create_server((a["-ps"], PORT)) as s:
            s.settimeout(60)
            for _ in range(a["-pn"] - 1):
                with s.accept()[0] as c:
                    c.sendall(own)
        return own
    for _ in range(300):
        try:
            with socket.create_connection((a["-ps"], PORT), 60) as c:
                return c.recv(SIZE, socket.MSG_WAITALL)
        except ConnectionRefusedError:
            time.sleep(0.1)
    sys.exit("rank 0 does not listen")


def over_folder(a, own):
    path = a["-pf"] + "/ncclUniqueId.sync"
    if a["-pr"] == 0:
        with open(path + ".new", "wb") as f:
            f.write(own)
        os.rename(path + ".new", path)
    for _ in range(600):
        if os.path.exists(path):
            with open(path, "rb") as f:
                return f.read()
        time.sleep(0.1)
    sys.exit("no file of rank 0")


def main():
    a = read(sys.argv[1:])
    own = os.urandom(SIZE)
    got = (over_tcp if a["-pi"] == "tcp" else over_folder)(a, own)
    print(f"rank {a['-pr']} of {a['-pn']} on GPU {a['-pr'] % a['-pg']}: "
          f"{len(got)} {got.hex()[:16]} {a.get('-i', '')}", flush=True)
    if os.environ.get("FAIL_FIRST") and a["-pr"] == 1 and \
            os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        sys.exit(1)


main()
