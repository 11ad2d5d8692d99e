#!/usr/bin/env python3
"""A link with delay, where the kernel has no netem.

    delay.py relay IF1 IF2 MS   copy frames between the two, each MS later
    delay.py plain IF           whole packets with checksums, as a wire has
"""
import ctypes
import fcntl
import heapq
import select
import socket
import struct
import sys
import time

ETH_P_ALL = 3
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
SIOCETHTOOL = 0x8946
STXCSUM, STSO, SGSO, SGRO = 0x17, 0x1F, 0x24, 0x2C
WAITING_MAX = 10000  # Frames; more are dropped, as by a full queue.


class EthtoolValue(ctypes.Structure):
    _fields_ = [("cmd", ctypes.c_uint32), ("data", ctypes.c_uint32)]


def plain(name):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for cmd in (STXCSUM, STSO, SGSO, SGRO):
            value = EthtoolValue(cmd, 0)
            request = struct.pack("16sP", name.encode(),
                                  ctypes.addressof(value))
            fcntl.ioctl(s, SIOCETHTOOL, request.ljust(40, b"\0"))


def packet_socket(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                      socket.htons(ETH_P_ALL))
    s.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    s.bind((name, 0))
    return s


def relay(name1, name2, delay_s):
    a, b = packet_socket(name1), packet_socket(name2)
    other = {a: b, b: a}
    waiting, n = [], 0
    print("ready", flush=True)
    while True:
        timeout = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        for s in select.select([a, b], [], [], timeout)[0]:
            frame = s.recv(65536)
            if len(waiting) < WAITING_MAX:
                n += 1
                heapq.heappush(waiting, (time.monotonic() + delay_s, n,
                                         other[s], frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, to, frame = heapq.heappop(waiting)
            try:
                to.send(frame)
            except OSError:
                pass  # The other side is down: lost, as on a wire.


def main():
    if sys.argv[1] == "plain":
        plain(sys.argv[2])
    else:
        relay(sys.argv[2], sys.argv[3], float(sys.argv[4]) / 1e3)


main()
