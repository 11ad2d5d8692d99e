#!/usr/bin/env python3
"""What comes to a barrier's port, or stands in pod 0's place.

  idle PORT N [HOSTS]       N connections that say nothing, from HOSTS loopback
                            addresses; prints "ready", holds them until killed
  noise PORT N              N connections with random bytes, HTTP, half a
                            frame, a huge length, frames before HELLO
  drip PORT                 a good HELLO, a byte at a time; ends when closed
  pod PORT TOKEN [HOW]      a pod, made from docs/wire.md; prints what it gets.
                            HOW: wrong, reflect
  replay PORT FILE          says again what FILE recorded; prints what it gets
  relay 0 TO FILE           passes connections on, records what pods say;
                            prints its port
  zero PORT HOW             pod 0, without the token: welcome, challenge, mirror
"""
import hashlib
import hmac
import os
import resource
import socket
import struct
import sys
import threading
import time

NAMES = {2: "WELCOME", 3: "REFUSE", 14: "CHALLENGE", 15: "PROOF"}


def frame(kind, payload=b"", round_=0):
    return struct.pack(">4sBBHI", b"AGNT", 3, kind, len(payload),
                       round_) + payload


def hello(nonce, rank=1, nnodes=2, job=b"none", host=b"python"):
    return frame(1, struct.pack(">QIIIIBQQBBQ", 0x1122334455667788, rank,
                                nnodes, 1, 0xffffffff, 0, 0, 0, 0, 0, 0) +
                 struct.pack(">IIIQHH", 0, 0, 0, 0, 0, 0) +
                 struct.pack(">H", len(job)) + job +
                 struct.pack(">H", len(host)) + host +
                 struct.pack(">B32s", 1 if nonce else 0, nonce))


def proof(token, who, script):
    key = hmac.digest(token, b"agent barrier key 1", "sha256")
    return hmac.digest(key, who + script, "sha256")


def connect(port, source=None):
    address = ("127.0.0.1", port)
    return socket.create_connection(address, 20, source)


def read_frame(s):
    """(bytes, kind, payload), or None at the end."""
    def exactly(n):
        data = b""
        while len(data) < n:
            more = s.recv(n - len(data))
            if not more:
                raise EOFError
            data += more
        return data
    try:
        head = exactly(12)
        n = struct.unpack(">H", head[6:8])[0]
        payload = exactly(n)
    except (EOFError, ConnectionError):
        return None
    return head + payload, head[5], payload


def show(got):
    if got is None:
        print("closed", flush=True)
    elif got[1] == 3:
        print("REFUSE", got[2][0], got[2][3:].decode(), flush=True)
    else:
        print(NAMES.get(got[1], got[1]), flush=True)
    return got


def idle(port, n, hosts=1):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = []
    for i in range(int(n)):
        held.append(connect(port, ("127.0.%d.%d" % (1 + i % int(hosts) // 200,
                                                   1 + i % int(hosts) % 200),
                                   0)))
    print("ready", flush=True)
    while True:
        time.sleep(3600)


def noise(port, n):
    kinds = [
        lambda: os.urandom(200), lambda: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        lambda: b"AGNT", lambda: frame(1)[:7],
        lambda: b"AGNT\x03\x01\xff\xff\0\0\0\0" + b"x" * 4000,
        lambda: frame(8, b"x" * 1000), lambda: frame(12), lambda: frame(15),
        lambda: hello(b"\1" * 32) * 3, lambda: b"AGNT\x63" + b"\0" * 7,
        lambda: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        lambda: b"", lambda: b"\0" * 100000,
    ]
    for i in range(int(n)):
        s = connect(port)
        try:
            s.sendall(kinds[i % len(kinds)]())
            if i % 3 == 0:
                s.shutdown(socket.SHUT_WR)
            s.settimeout(0.01)
            s.recv(100)
        except OSError:
            pass
        s.close()


def drip(port):
    s = connect(port)
    s.settimeout(0.2)
    sent = 0
    for byte in hello(b"\1" * 32)[:150]:
        try:
            s.sendall(bytes([byte]))
            sent += 1
            if s.recv(1) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    print("closed" if sent < 150 else "still open", flush=True)


def pod(port, token, how="right"):
    token = token.encode()
    s = connect(port)
    first = hello(os.urandom(32))
    s.sendall(first)
    got = show(read_frame(s))
    script = hashlib.sha256(first + got[0]).digest()
    who = b"zero" if how == "reflect" else b"pod "
    s.sendall(frame(15, proof(token, who, script)))
    got = show(read_frame(s))
    if got and got[1] == 15:
        good = proof(token, b"zero", script) == got[2]
        print("pod 0 has the token" if good else "pod 0 lies", flush=True)
        show(read_frame(s))


def replay(port, file):
    with open(file, "rb") as f:
        said = f.read()
    n = 12 + struct.unpack(">H", said[6:8])[0]
    s = connect(port)
    s.sendall(said[:n])
    show(read_frame(s))
    s.sendall(said[n:])
    show(read_frame(s))


def relay(port, to, file):
    listener = socket.create_server(("127.0.0.1", port))
    print(listener.getsockname()[1], flush=True)

    def pump(a, b, log):
        try:
            while data := a.recv(65536):
                if log:
                    log.write(data)
                    log.flush()
                b.sendall(data)
        except OSError:
            pass
        for x in (a, b):
            try:
                x.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    for n in range(1000):
        a = listener.accept()[0]
        try:
            b = connect(int(to))
        except OSError:  # Nobody is there now.
            a.close()
            continue
        a.settimeout(None)
        b.settimeout(None)
        up = open(f"{file}.{n}.up", "wb")
        down = open(f"{file}.{n}.down", "wb")
        for args in ((a, b, up), (b, a, down)):
            threading.Thread(target=pump, args=args, daemon=True).start()


def zero(port, how):
    listener = socket.create_server(("127.0.0.1", port))
    print("ready", flush=True)
    s = listener.accept()[0]
    s.settimeout(20)
    read_frame(s)
    welcome = frame(2, struct.pack(">QIIQ", 1, 1, 3, 0))
    if how == "welcome":
        s.sendall(welcome)
    elif how == "challenge":
        s.sendall(frame(14, struct.pack(">Q32s", 1, b"n" * 32)))
        read_frame(s)
        s.sendall(frame(15, b"p" * 32) + welcome)
    elif how == "mirror":
        s.sendall(frame(14, struct.pack(">Q32s", 1, b"n" * 32)))
        s.sendall(read_frame(s)[0] + welcome)
    elif how == "refuse":
        s.sendall(frame(3, b"\0\0\4nope"))
    show(read_frame(s))


def main():
    what, port, *rest = sys.argv[1:]
    globals()[what](int(port), *rest)


main()
