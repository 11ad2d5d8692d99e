#!/usr/bin/env python3
"""A TCP port for a test that starts its servers later.

    free_port.py [PID]   prints it; it is PID's (the caller's) until that ends

The kernel gives ports of its own range to whoever connects, and to whoever
asks for any: one of them that was free a moment ago may be taken now. So it is
of below that range, and no other test gets it."""
import fcntl
import os
import random
import socket
import sys


def is_free(port):
    for family, host in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as s:
                if family == socket.AF_INET6:
                    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                s.bind((host, port))
        except OSError:
            # Without IPv6 nobody can have it there.
            if family == socket.AF_INET or os.path.exists("/proc/net/if_inet6"):
                return False
    return True


def is_alive(claim):
    try:
        return os.path.exists("/proc/" + os.readlink(claim))
    except FileNotFoundError:
        return False


def take(ports, folder, pid):
    """All of them, or none."""
    claims = [os.path.join(folder, str(p)) for p in ports]
    if any(map(is_alive, claims)) or not all(map(is_free, ports)):
        return False
    for claim in claims:
        if os.path.islink(claim):
            os.unlink(claim)
        os.symlink(str(pid), claim)
    return True


def claim_port(pid, beside=()):
    """With those at these distances from it."""
    folder = f"/tmp/agent-ports-{os.getuid()}"
    if os.path.exists(folder) and not os.access(folder, os.W_OK):
        folder += "-ns"  # Root of a user namespace is not the folder's owner.
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        end = int(f.read().split()[0])
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        for _ in range(1000):
            port = random.randrange(10000, max(end, 11000))
            if take([port, *(port + b for b in beside)], folder, pid):
                return port
    finally:
        os.close(lock)
    raise SystemExit("no free port")


if __name__ == "__main__":
    print(claim_port(sys.argv[1] if len(sys.argv) > 1 else os.getppid()))
