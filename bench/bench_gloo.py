"""As bench_ddp's all_reduce, for gloo through torch: COUNT floats, CALLS
times. Rank 0 prints "least median" in microseconds."""
import os
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import torch
import torch.distributed as dist

WARM_UP = 3


def main():
    count, calls = int(sys.argv[1]), int(sys.argv[2])
    row = 50 if count <= 65536 else 1
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    a, us = torch.zeros(count), []
    for _ in range(max(1, calls // row) + WARM_UP):
        dist.barrier()
        began = time.perf_counter()
        for _ in range(row):
            dist.all_reduce(a)
        us.append((time.perf_counter() - began) / row * 1e6)
    us = sorted(us[WARM_UP:])
    if dist.get_rank() == 0:
        print(f"{us[0]:.2f} {us[len(us) // 2]:.2f}")
    dist.destroy_process_group()


main()
sys.stdout.flush()
os._exit(0)  # Python's own end may abort in a thread of gloo.
