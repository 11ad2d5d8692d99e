"""stuck_fs.py FOLDER: a file system there that answers nothing but its start:
who looks into it waits in the kernel, and not even KILL ends that while this
program lives. Prints "ready" then. As root, in a mount namespace of its own."""
import ctypes
import os
import struct
import sys

INIT = 26 # FUSE_INIT, of linux/fuse.h

libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/dev/fuse", os.O_RDWR)
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % fd
if libc.mount(b"stuck", os.fsencode(sys.argv[1]), b"fuse", 0, options) != 0:
    sys.exit("mount: " + os.strerror(ctypes.get_errno()))
while True:
    _, what, unique = struct.unpack_from("IIQ", os.read(fd, 1 << 17))
    if what == INIT: # Version 7.31, no feature.
        answer = struct.pack("IIIIHHI", 7, 31, 0, 0, 0, 0, 65536).ljust(64, b"\0")
        os.write(fd, struct.pack("IiQ", 16 + len(answer), 0, unique) + answer)
        print("ready", flush=True)
