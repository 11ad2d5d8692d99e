"""stuck_fs.py FOLDER [BYTES ANSWERED]: a file system there that answers nothing
but its start: who looks into it waits in the kernel, and not even KILL ends
that while this program lives. With BYTES it has one file, "data", of so many
zeros, and only reads of the first ANSWERED ones are answered. Prints "ready"
then. As root, in a mount namespace of its own."""
import ctypes
import os
import struct
import sys

# Of linux/fuse.h.
LOOKUP, GETATTR, OPEN, READ, OPENDIR, INIT = 1, 3, 14, 15, 27, 26
FORGET, INTERRUPT, BATCH_FORGET, ENOENT, ENOSYS = 2, 36, 42, 2, 38
ROOT, DATA = 1, 2

libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/dev/fuse", os.O_RDWR)
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % fd
if libc.mount(b"stuck", os.fsencode(sys.argv[1]), b"fuse", 0, options) != 0:
    sys.exit("mount: " + os.strerror(ctypes.get_errno()))
has_file = len(sys.argv) > 2
size, answered = map(int, sys.argv[2:4]) if has_file else (0, 0)


def say(unique, body=b"", error=0):
    os.write(fd, struct.pack("IiQ", 16 + len(body), -error, unique) + body)


def attr(node):
    mode = 0o40755 if node == ROOT else 0o100644
    return struct.pack("6Q10I", node, size if node == DATA else 0, 0, 1, 1, 1,
                       0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


while True:
    request = os.read(fd, 1 << 17)
    _, what, unique, node = struct.unpack_from("IIQQ", request)
    body = request[40:]
    if what == INIT:  # Version 7.31, no feature.
        say(unique, struct.pack("IIIIHHI", 7, 31, 0, 0, 0, 0,
                                65536).ljust(64, b"\0"))
        print("ready", flush=True)
    elif not has_file or what in (FORGET, BATCH_FORGET, INTERRUPT):
        continue
    elif what == LOOKUP and body != b"data\0":
        say(unique, error=ENOENT)
    elif what == LOOKUP:
        say(unique, struct.pack("4Q2I", DATA, 0, 3600, 3600, 0, 0) + attr(DATA))
    elif what == GETATTR:
        say(unique, struct.pack("QII", 3600, 0, 0) + attr(node))
    elif what in (OPEN, OPENDIR):
        say(unique, struct.pack("QII", 0, 0, 0))
    elif what == READ:
        _, offset, length = struct.unpack_from("QQI", body)
        length = min(length, size - offset)
        if offset + length <= answered:
            say(unique, bytes(length))
    else:
        say(unique, error=ENOSYS)
