"""The peer of bench_device: torch.distributed's all_reduce over NCCL.

`table` prints JSON lines (calls one after the other, and each waited for);
`first` makes one all-reduce that is right; `overlap` and `tf32` are
DistributedDataParallel over the layers of bench_device's."""
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


LAYERS, SIDE, STEPS = 16, 2560, 200


def milliseconds(f):
    for _ in range(3):
        f()
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    began = time.monotonic()
    for _ in range(STEPS):
        f()
        torch.cuda.synchronize()
    t = torch.tensor((time.monotonic() - began) / STEPS * 1e3, device="cuda")
    dist.all_reduce(t, dist.ReduceOp.MAX)  # The slowest rank's.
    return t.item()


def overlap(rank, tf32):
    batch = 8192 if tf32 else 2048
    torch.backends.cuda.matmul.allow_tf32 = tf32
    model = torch.nn.Sequential(*[torch.nn.Linear(SIDE, SIDE, bias=False)
                                  for _ in range(LAYERS)]).cuda()
    ddp = torch.nn.parallel.DistributedDataParallel(
        model, gradient_as_bucket_view=True)
    x = torch.randn(batch, SIDE, device="cuda")
    dy = torch.randn(batch, SIDE, device="cuda")
    grads = [torch.zeros(SIDE * SIDE, device="cuda") for _ in range(LAYERS)]

    def forward():
        ddp(x)

    def step(syncs):
        ddp.require_backward_grad_sync = syncs
        ddp(x).backward(dy)

    def reduce():
        for g in grads:
            dist.all_reduce(g)

    before = milliseconds(forward)
    alone = milliseconds(lambda: step(False)) - before
    both = milliseconds(lambda: step(True)) - before
    only = milliseconds(reduce)
    alone = (alone + milliseconds(lambda: step(False)) - before) / 2
    if rank == 0:
        kind = "products, " + ("TF32" if tf32 else "float")
        print(json.dumps({"who": "torch", "beside": kind,
                          "backward_ms": round(alone, 2),
                          "reduce_ms": round(only, 2),
                          "both_ms": round(both, 2),
                          "overlap": round(1 - (both - alone) / only, 2)}))


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    if sys.argv[1] == "first":
        t = torch.ones(256, device="cuda")
        dist.all_reduce(t)
        assert (t == size).all()
    elif sys.argv[1] in ("overlap", "tf32"):
        overlap(rank, sys.argv[1] == "tf32")
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
