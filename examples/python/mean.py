#!/usr/bin/env python3
"""libddp from Python, through ctypes: ranks learn the mean of their numbers.

    agent --nproc 4 -- python3 mean.py

Needs libddp.so.1 where the loader finds it, and nothing else."""
import ctypes
import sys
from ctypes import (POINTER, Structure, byref, c_char, c_char_p, c_int,
                    c_size_t, c_uint64, c_void_p)


class Error(Structure):
    """struct ddp_error"""
    _fields_ = [("code", c_int), ("rank", c_int), ("peer", c_int),
                ("reserved", c_int * 5), ("text", c_char * 480)]


class Options(Structure):
    """struct ddp_options"""
    _fields_ = [("size", c_size_t), ("timeout_ms", c_uint64),
                ("world_size", c_int), ("rank", c_int),
                ("local_world_size", c_int), ("local_rank", c_int),
                ("master_addr", c_char_p), ("master_port", c_int),
                ("bootstrap_port", c_int), ("job_id", c_char_p)]


F32, F64 = 7, 8  # enum ddp_type
SUM, PROD, MAX, MIN, AVG = range(5)  # enum ddp_op

lib = ctypes.CDLL("libddp.so.1")
lib.ddp_init.argtypes = [POINTER(c_void_p), POINTER(Options), POINTER(Error)]
lib.ddp_rank.argtypes = lib.ddp_size.argtypes = [c_void_p]
lib.ddp_all_reduce.argtypes = [c_void_p, c_void_p, c_void_p, c_size_t, c_int,
                               c_int, c_void_p, POINTER(Error)]
lib.ddp_free.argtypes = [c_void_p]
lib.ddp_free.restype = None


class Comm:
    """A communicator; errors are exceptions."""

    def __init__(self, timeout_ms=0):
        self.handle, self.err = c_void_p(), Error()
        opt = Options(size=ctypes.sizeof(Options), timeout_ms=timeout_ms)
        self.check(lib.ddp_init(byref(self.handle), opt, byref(self.err)))
        self.rank = lib.ddp_rank(self.handle)
        self.size = lib.ddp_size(self.handle)

    def check(self, code):
        if code:
            raise RuntimeError(f"libddp: {self.err.text.decode()}")

    def all_reduce(self, array, op=AVG):
        """Reduce an array of ctypes floats or doubles in place."""
        kind = F32 if array._type_ is ctypes.c_float else F64
        self.check(lib.ddp_all_reduce(self.handle, array, array, len(array),
                                      kind, op, None, byref(self.err)))

    def close(self):
        lib.ddp_free(self.handle)
        self.handle = c_void_p()


def main():
    comm = Comm()
    weight, mine = 0.0, comm.rank + 1.0
    for _ in range(50):
        grad = (ctypes.c_float * 1)(weight - mine)
        comm.all_reduce(grad)
        weight -= 0.5 * grad[0]
    if comm.rank == 0:
        print(f"{comm.size} ranks agree on {weight:.3f}")
    comm.close()


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as e:
        sys.exit(str(e))
