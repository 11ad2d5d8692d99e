#!/usr/bin/env python3
"""Resets a TCP connection of this host, as a middle box does.

    reset.py PORT THERE    of this host's PORT with the host THERE: THERE gets
                           a RST that seems to come from here

A segment that fits nowhere makes THERE say which number it expects."""
import re
import select
import socket
import struct
import subprocess
import sys
import time

ACK, RST = 0x10, 0x04


def ports_of(port, there):
    """(here, port there) of each established connection."""
    out = subprocess.run(["ss", "-tnH", "state", "established", "sport",
                          "=", f":{port}"], capture_output=True, text=True,
                         check=True).stdout
    for line in out.splitlines():
        ends = [re.sub(r"[][]|::ffff:", "", x).rsplit(":", 1)
                for x in line.split()[-2:]]
        if ends[1][0] == there:
            yield ends[0][0], int(ends[1][1])


def segment(here, there, port, to, seq, flags):
    a = socket.inet_aton(here) + socket.inet_aton(there)
    head = struct.pack(">HHIIBBHHH", port, to, seq, 0, 5 << 4, flags, 1024, 0,
                       0)
    words = struct.unpack(">16H", a + struct.pack(">HH", 6, 20) + head)
    total = sum(words)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return head[:16] + struct.pack(">H", ~total & 0xFFFF) + head[18:]


def expected(s, there, port, to):
    """The acknowledgement in the next segment of that connection."""
    end = time.monotonic() + 1
    while (left := end - time.monotonic()) > 0:
        if not select.select([s], [], [], left)[0]:
            return None
        data, source = s.recvfrom(65536)
        tcp = data[(data[0] & 15) * 4:]
        if source[0] == there and len(tcp) >= 20 and \
                struct.unpack(">HH", tcp[:4]) == (to, port) and tcp[13] & ACK:
            return struct.unpack(">I", tcp[8:12])[0]
    return None


def main():
    port, there = int(sys.argv[1]), sys.argv[2]
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    for _ in range(20):
        for here, to in ports_of(port, there):
            s.sendto(segment(here, there, port, to, 1, ACK), (there, 0))
            seq = expected(s, there, port, to)
            if seq is not None:
                s.sendto(segment(here, there, port, to, seq, RST), (there, 0))
                return 0
        time.sleep(0.6)  # Such an answer comes twice a second at most.
    print("no answer")
    return 1


sys.exit(main())
