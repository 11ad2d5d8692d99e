#!/usr/bin/env python3
"""Clients of --http, for tests/system/http.sh.

  ask.py get HOST PORT PATH [METHOD]   "<status> <body>"; "-" with no answer
  ask.py raw HOST PORT TEXT            sends TEXT (\\r, \\n, xN repeats); same
  ask.py slow HOST PORT                a byte now and then, until it is cut
  ask.py reader HOST PORT N            N clients that ask and read nothing
  ask.py idle HOST PORT N              N connections that stay open, say nothing
`reader` and `idle` print "open" and then wait for their stdin to end."""
import socket
import sys
import time


def connect(host, port):
    return socket.create_connection((host, int(port)), timeout=20)


def answer(s):
    data = b""
    try:
        while True:
            piece = s.recv(65536)
            if not piece:
                break
            data += piece
    except OSError:
        pass
    head, _, body = data.partition(b"\r\n\r\n")
    if not head:
        return "-"
    return head.split(b" ")[1].decode() + " " + body.decode().strip()


def main(what, host, port, *rest):
    if what == "get":
        s = connect(host, port)
        method = rest[1] if len(rest) > 1 else "GET"
        s.sendall(f"{method} {rest[0]} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        print(answer(s))
    elif what == "raw":
        s = connect(host, port)
        text = rest[0].encode().decode("unicode_escape").encode("latin1")
        times = int(rest[1]) if len(rest) > 1 else 1
        try:
            s.sendall(text * times)
        except OSError:
            pass
        print(answer(s))
    elif what == "slow":
        s = connect(host, port)
        start = time.monotonic()
        s.settimeout(0.2)
        while time.monotonic() - start < 60:
            try:
                s.send(b"G")
                if s.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            print("not cut")
            return
        print("cut")
    else:
        held = []
        for _ in range(int(rest[0])):
            s = connect(host, port)
            if what == "reader":
                s.sendall(b"GET /status HTTP/1.1\r\n\r\n")
            held.append(s)
        print("open", flush=True)
        sys.stdin.read()


main(*sys.argv[1:])
