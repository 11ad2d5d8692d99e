"""A web server with faults, for the tests of agent-fetch.

http_server.py ROOT STATE: prints its port. The first part of a path says what
it does with the file that the rest names; what it does "n times" it does for
the first n requests of that path. Each request is a line of STATE/log."""
import http.server, pathlib, re, sys, threading, time, urllib.parse

root, state = map(pathlib.Path, sys.argv[1:3])
seen, lock = {}, threading.Lock()
page = b"<!DOCTYPE html><title>Sign in</title>" + b" " * 200


def until(path):
    end = time.monotonic() + 60
    while not (state / path).exists() and time.monotonic() < end:
        time.sleep(0.02)


class Faulty(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *a):
        pass

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass  # The other side went away.

    def head(self, status, headers):
        self.send_response(status)
        for k, v in headers.items():
            self.send_header(k, str(v))
        self.end_headers()

    def answer(self, status, body, **headers):
        self.head(status, {"Content-Length": len(body), **headers})
        if self.command != "HEAD":
            self.wfile.write(body)

    def chunked(self, body, kind):
        self.head(200, {"Transfer-Encoding": "chunked", "Content-Type": kind})
        for i in range(0, len(body), 50000):
            piece = body[i:i + 50000]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def plain(self, data, limit=None, ranges=True, lie=0):
        """The file or the range; cut off after `limit` bytes."""
        want, status, headers = self.headers.get("Range"), 200, {}
        if want and ranges:
            start = int(want.split("=")[1].split("-")[0])
            if start >= len(data):
                return self.answer(416, b"", **{
                    "Content-Range": f"bytes */{len(data)}"})
            headers["Content-Range"] = \
                f"bytes {start + lie}-{len(data) - 1}/{len(data)}"
            status, data = 206, data[start + lie:]
        self.head(status, {"Content-Length": len(data), **headers})
        if self.command != "HEAD":
            self.wfile.write(data[:limit])
            self.wfile.flush()
        self.close_connection = limit is not None
        return None

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        how, _, name = self.path.lstrip("/").partition("/")
        name = re.sub("^[0-9]+/", "", name)  # As another path.
        name = urllib.parse.unquote(name.split("?")[0])
        with lock:
            n = seen[self.path] = seen.get(self.path, 0) + 1
            with open(state / "log", "a", encoding="utf-8") as log:
                print(self.command, self.path, self.headers.get("Range", "-"),
                      self.headers.get("Authorization", "-"), file=log)
        try:
            data = (root / name).read_bytes()
        except OSError:
            return self.answer(404, b"no such file")
        return getattr(self, "do_" + how)(data, n, name)

    def do_plain(self, data, n, name):
        self.plain(data)

    def do_cut(self, data, n, name):  # Three times after a fifth of it.
        self.plain(data, len(data) // 5 if n <= 3 else None)

    def do_cutoff(self, data, n, name):  # Always, and takes no range.
        self.plain(data, len(data) // 2, ranges=False)

    def do_norange(self, data, n, name):  # Cut once; a range gets all.
        self.plain(data, len(data) // 2 if n == 1 else None, ranges=False)

    def do_badrange(self, data, n, name):  # Cut once; another range comes.
        self.plain(data, len(data) // 2 if n == 1 else None, lie=7)

    def do_shortrange(self, data, n, name):  # Cut once; a piece of the range.
        want = re.match("bytes=([0-9]+)-", self.headers.get("Range", ""))
        if not want:
            return self.plain(data, len(data) // 2 if n == 1 else None)
        at = int(want[1])
        return self.answer(206, data[at:at + 100], **{
            "Content-Range": f"bytes {at}-{at + 99}/{len(data)}"})

    def do_wrongbytes(self, data, n, name):  # Cut once; the rest is wrong.
        if self.headers.get("Range"):
            data = data[:len(data) // 2] + bytes(len(data) - len(data) // 2)
        self.plain(data, len(data) // 2 if n == 1 else None)

    def do_s503(self, data, n, name):  # Twice.
        if n <= 2:
            return self.answer(503, b"busy", **{"Retry-After": 0})
        return self.plain(data)

    def do_s429(self, data, n, name):  # Once, and asks for two seconds.
        if n == 1:
            return self.answer(429, b"slow down", **{"Retry-After": 2})
        return self.plain(data)

    def do_s408(self, data, n, name):  # Once.
        return self.answer(408, b"") if n == 1 else self.plain(data)

    def do_s500(self, data, n, name):  # Always.
        self.answer(500, b"oops")

    def do_gone(self, data, n, name):
        self.answer(410, b"<html>gone")

    def do_redirect(self, data, n, name):
        self.answer(302, b"there", Location="/plain/" + name)

    def do_loop(self, data, n, name):
        self.answer(302, b"here", Location=self.path)

    def do_tofile(self, data, n, name):
        self.answer(302, b"", Location=f"file://{root}/{name}")

    def do_drip(self, data, n, name):  # Once, ten bytes a second.
        if n > 1:
            return self.plain(data)
        self.head(200, {"Content-Length": len(data)})
        for i in range(600):
            self.wfile.write(data[i:i + 1])
            self.wfile.flush()
            time.sleep(0.1)
        return None

    def do_mute(self, data, n, name):  # Once: no answer at all.
        if n > 1:
            return self.plain(data)
        self.rfile.read(1)  # Until the other side goes.
        self.close_connection = True
        return None

    def do_html(self, data, n, name):
        self.chunked(page, "text/html")

    def do_htmlsize(self, data, n, name):
        self.answer(200, page, **{"Content-Type": "text/html"})

    def do_lfs(self, data, n, name):
        self.answer(200, b"version https://git-lfs.github.com/spec/v1\n"
                         b"oid sha256:00\nsize 5\n")

    def do_short(self, data, n, name):
        self.answer(200, data[:-1])

    def do_shortchunked(self, data, n, name):
        self.chunked(data[:-1], "application/octet-stream")

    def do_longchunked(self, data, n, name):
        self.chunked(data + b"x", "application/octet-stream")

    def do_chunked(self, data, n, name):
        self.chunked(data, "text/html")  # Of a server that knows no types.

    def do_flip(self, data, n, name):  # One bit is wrong, always.
        self.plain(data[:-1] + bytes([data[-1] ^ 1]))

    def do_fliponce(self, data, n, name):
        self.plain(data[:-1] + bytes([data[-1] ^ 1]) if n == 1 else data)

    def do_auth(self, data, n, name):  # user:secret
        if self.headers.get("Authorization") != "Basic dXNlcjpzZWNyZXQ=":
            return self.answer(401, b"", **{
                "WWW-Authenticate": 'Basic realm="x"'})
        return self.plain(data)

    def do_gate(self, data, n, name):  # Once: half, and the rest after "gate".
        if n > 1 or self.headers.get("Range"):
            return self.plain(data)
        self.head(200, {"Content-Length": len(data)})
        self.wfile.write(data[:len(data) // 2])
        self.wfile.flush()
        until("gate")
        self.wfile.write(data[len(data) // 2:])
        return None

    def do_together(self, data, n, name):  # Nobody before three are here.
        (state / f"in-{name.replace('/', '_')}").touch()
        end = time.monotonic() + 30
        while len(list(state.glob("in-*"))) < 3 and time.monotonic() < end:
            time.sleep(0.02)
        self.plain(data)

    def do_nohead(self, data, n, name):
        if self.command == "HEAD":
            return self.answer(405, b"")
        return self.plain(data)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Faulty)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
