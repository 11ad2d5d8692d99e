"""The peer of bench_device: torch.distributed's all_reduce over NCCL.

`table` prints JSON lines (calls one after the other, and each waited for);
`first` makes one all-reduce that is right."""
import json
import os
import sys
import time

import torch
import torch.distributed as dist

MIB = 1 << 20


def measure(t, times, wait):
    for _ in range(10):
        dist.all_reduce(t)
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    began = time.monotonic()
    for _ in range(times):
        dist.all_reduce(t)
        if wait:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return (time.monotonic() - began) / times * 1e6


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    if sys.argv[1] == "first":
        t = torch.ones(256, device="cuda")
        dist.all_reduce(t)
        assert (t == size).all()
    else:
        for b in (1024, 64 << 10, MIB, 25 * MIB, 64 * MIB, 256 * MIB,
                  1024 * MIB):
            t = torch.zeros(b // 4, device="cuda")
            times = 20 if b > 200 * MIB else 50 if b > MIB else 500
            queued = measure(t, times, False)
            waited = measure(t, times, True)
            if rank == 0:
                print(json.dumps({"who": "torch", "ranks": size, "bytes": b,
                                  "us": round(waited, 1),
                                  "us_queued": round(queued, 1)}), flush=True)
    dist.destroy_process_group()


main()
