#!/usr/bin/env python3
"""A command on a terminal of its own, and someone who types.

    terminal.py [-n] STEP... -- COMMAND...

STEP: `expect REGEX` waits until what was written since the last match has it;
`send TEXT` types, with Python's escapes (\\x03 is Ctrl-C); `size ROWS COLUMNS`;
`hangup` closes the terminal. With -n the terminal is nobody's: it controls no
session. All that was written goes to stdout. The exit
code is the command's, 128 + signal, or 99 where a step was in vain.
"""
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

LIMIT = 30


def size(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns,
                                                    0, 0))


class Terminal:
    def __init__(self, command, controls):
        self.seen = b""
        self.mark = 0
        self.end = time.monotonic() + LIMIT
        self.pid, self.fd = pty.fork() if controls else self.fork()
        if self.pid == 0:
            os.execvp(command[0], command)
        size(self.fd, 24, 80)

    @staticmethod
    def fork():
        master, slave = pty.openpty()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            for fd in range(3):
                os.dup2(slave, fd)
            os.closerange(3, 100)
        else:
            os.close(slave)
        return pid, master

    def read(self):
        """False at the end, or where nothing came in time."""
        left = self.end - time.monotonic()
        if left <= 0 or not select.select([self.fd], [], [], left)[0]:
            return False
        try:
            piece = os.read(self.fd, 65536)
        except OSError:
            piece = b""
        self.seen += piece
        os.write(1, piece)
        return bool(piece)

    def expect(self, regex):
        while True:
            m = re.compile(regex.encode()).search(self.seen, self.mark)
            if m:
                self.mark = m.end()
                return True
            if not self.read():
                print(f"\nno match: {regex}")
                return False

    def step(self, line):
        what, _, arg = line.partition(" ")
        if what == "expect":
            return self.expect(arg)
        if what == "send":
            os.write(self.fd, arg.encode().decode("unicode_escape").encode())
        elif what == "size":
            size(self.fd, *map(int, arg.split()))
        elif what == "hangup":
            os.close(self.fd)
            self.fd = -1
        else:
            sys.exit(f"no such step: {line}")
        return True

    def wait(self):
        while self.fd >= 0 and self.read():
            pass
        while time.monotonic() < self.end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            time.sleep(.02)
        print("\nit did not end")
        return 99


def main():
    at = sys.argv.index("--")
    steps = sys.argv[1:at]
    controls = steps[:1] != ["-n"]
    t = Terminal(sys.argv[at + 1:], controls)
    for line in steps if controls else steps[1:]:
        if not t.step(line):
            if t.fd >= 0:
                os.close(t.fd)
            return 99
    return t.wait()


if __name__ == "__main__":
    sys.exit(main())
