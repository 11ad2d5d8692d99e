"""A stand-in for a program of ps-lite: the same command for scheduler, servers
and workers, told apart by DMLC_ROLE. All meet at the scheduler, workers add
one to each server, and the scheduler lets all go when the workers are done.
With STAY=1 servers and scheduler do not go by themselves."""
import os
import signal
import socket
import struct
import sys
import time

role = os.environ["DMLC_ROLE"]
n_workers = int(os.environ["DMLC_NUM_WORKER"])
n_servers = int(os.environ["DMLC_NUM_SERVER"])
root = (os.environ["DMLC_PS_ROOT_URI"], int(os.environ["DMLC_PS_ROOT_PORT"]))
who = os.environ.get("DMLC_" + role.upper() + "_ID", "0")


def connect(to):
    for _ in range(2000):
        try:
            return socket.create_connection(to, 30)
        except OSError:
            time.sleep(0.01)
    sys.exit(f"{role}{who}: nobody at {to}")


def number(s):
    data = s.recv(4, socket.MSG_WAITALL)
    return struct.unpack("!I", data)[0] if len(data) == 4 else None


def stay():
    while os.environ.get("STAY"):
        signal.pause()


def schedule():
    at, ports, workers = socket.create_server(root), [], []
    everybody = [at.accept()[0] for _ in range(n_workers + n_servers)]
    for s in everybody:
        port = number(s)
        ports += [port] if port else []
        workers += [] if port else [s]
    assert len(ports) == n_servers and len(workers) == n_workers
    for s in workers:
        s.sendall(struct.pack("!%dI" % n_servers, *ports))
    for s in workers:
        number(s)
    print("scheduler: all are done", flush=True)
    stay()


def serve():
    at = socket.create_server((os.environ["DMLC_NODE_HOST"], 0))
    to = connect(root)
    to.sendall(struct.pack("!I", at.getsockname()[1]))
    total = sum(number(at.accept()[0]) for _ in range(n_workers))
    print(f"server {who}: the sum is {total}", flush=True)
    if os.environ.get("FAIL") == "server" + who:
        sys.exit(7)
    to.recv(1)  # Until the scheduler is gone.
    stay()


def work():
    to = connect(root)
    to.sendall(struct.pack("!I", 0))
    for _ in range(n_servers):
        s = connect((root[0], number(to)))
        s.sendall(struct.pack("!I", 1))
    print(f"worker {who} of {n_workers}, {n_servers} servers", flush=True)
    if os.environ.get("FAIL"):
        signal.pause()


{"scheduler": schedule, "server": serve, "worker": work}[role]()
