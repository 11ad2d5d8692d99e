#!/usr/bin/env python3
"""Train a digit classifier with DistributedDataParallel.

One process for each worker; agent (or torchrun) starts them and sets RANK,
WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT. The data are MNIST's four
files on disk; nothing is ever downloaded. NCCL where each worker of the pod
has a GPU, else gloo on CPUs. Needs PyTorch alone.

    agent --nproc 2 --dataset examples/digits/manifest.json \
        --stage /tmp/stage -- \
        python examples/pytorch/train.py --checkpoint /tmp/digits.pt
"""
import argparse
import io
import os
import signal
import struct
import sys
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def options():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--data", default=os.environ.get("AGENT_DATASET_DIR"),
                   help="folder that has MNIST/raw (AGENT_DATASET_DIR)")
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--batch", type=int, default=16, help="of one worker")
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--checkpoint", help="read at start, replaced each epoch")
    p.add_argument("--timeout", type=float, default=120, help="of collectives")
    p.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    fail = p.add_argument_group("injected failure, to see a restart")
    fail.add_argument("--fail-rank", type=int)
    fail.add_argument("--fail-epoch", type=int, default=2)
    fail.add_argument("--fail-with", default="kill", metavar="kill|raise|CODE")
    fail.add_argument("--fail-always", action="store_true",
                      help="in each attempt, not only in the first")
    args = p.parse_args()
    if not args.data:
        p.error("no data: give --data, or run under agent --dataset")
    return args


def read_idx(path):
    """A tensor from an IDX file of bytes (MNIST's format)."""
    with open(path, "rb") as f:
        raw = bytearray(f.read())
    zero, kind, dims = struct.unpack_from(">HBB", raw)
    shape = struct.unpack_from(f">{dims}I", raw, 4)
    data = torch.frombuffer(raw, dtype=torch.uint8, offset=4 + 4 * dims)
    if zero != 0 or kind != 8 or data.numel() != torch.Size(shape).numel():
        raise ValueError(f"{path} is no IDX file of unsigned bytes")
    return data.view(shape)


def load(folder, part):
    """Images as rows of floats from 0 to 1, and their labels."""
    raw = os.path.join(folder, "MNIST", "raw", part)
    return (read_idx(f"{raw}-images-idx3-ubyte").flatten(1) / 255.0,
            read_idx(f"{raw}-labels-idx1-ubyte").long())


def choose_device(args):
    """The GPU of this worker, or the CPU where not each worker has one."""
    enough = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    if args.device == "cpu" or (args.device == "auto" and not enough):
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    return device


def load_checkpoint(path, rank, device):
    """Rank 0 reads the file and sends it: the pods need no common disk."""
    raw = bytearray()
    if rank == 0 and path and os.path.exists(path):
        with open(path, "rb") as f:
            raw = bytearray(f.read())
    size = torch.tensor([len(raw)], device=device)
    dist.broadcast(size, src=0)
    if size.item() == 0:
        return None
    if rank != 0:
        raw = bytearray(size.item())
    view = torch.frombuffer(raw, dtype=torch.uint8)  # Shares raw's memory.
    sent = view.to(device)
    dist.broadcast(sent, src=0)
    view.copy_(sent)
    return torch.load(io.BytesIO(raw), map_location=device, weights_only=True)


def save_checkpoint(path, epoch, model, optimizer):
    """Whole or not at all: a kill while writing leaves the old file."""
    torch.save({"epoch": epoch, "model": model.state_dict(),
                "optimizer": optimizer.state_dict()}, path + ".tmp")
    os.replace(path + ".tmp", path)


def fail_here(args, rank, epoch):
    first = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
    here = (rank, epoch) == (args.fail_rank, args.fail_epoch)
    if not here or not (first or args.fail_always):
        return
    print(f"rank {rank}: injected failure ({args.fail_with})", flush=True)
    if args.fail_with == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if args.fail_with == "raise":
        raise ValueError(f"injected failure of rank {rank}")
    sys.exit(int(args.fail_with))


def train_epoch(args, epoch, model, optimizer, loader, rank, device):
    """One pass over this rank's share; the mean loss over all ranks."""
    for group in optimizer.param_groups:
        group["lr"] = args.lr * (1 - (epoch - 1) / args.epochs)
    total = torch.zeros((), device=device)
    loader.sampler.set_epoch(epoch)  # Another order for each epoch.
    for step, (images, labels) in enumerate(loader):
        if step == len(loader) // 2:
            fail_here(args, rank, epoch)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images.to(device)),
                                           labels.to(device))
        loss.backward()  # DDP averages the gradients over all ranks here.
        optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)
    return total.item() / (len(loader) * dist.get_world_size())


def accuracy(model, images, labels, device):
    with torch.no_grad():
        guess = model(images.to(device)).argmax(dim=1).cpu()
    return 100.0 * (guess == labels).float().mean().item()


def same_on_all_ranks(model):
    """True where the parameters are equal bit for bit on all ranks."""
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    low = flat.view(torch.int32)
    high = low.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    return torch.equal(low, high)


@record  # An uncaught exception goes to the error file that the agent reads.
def main():
    args = options()
    device = choose_device(args)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo",
                            timeout=timedelta(seconds=args.timeout))
    rank = dist.get_rank()
    say = print if rank == 0 else lambda *_, **__: None

    torch.manual_seed(args.seed)
    data = TensorDataset(*load(args.data, "train"))
    test = load(args.data, "t10k")
    loader = DataLoader(data, args.batch,
                        sampler=DistributedSampler(data, seed=args.seed))
    model = nn.Sequential(nn.Linear(test[0].shape[1], 64), nn.ReLU(),
                          nn.Linear(64, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    say(f"{len(data)} training and {len(test[0])} test images, "
        f"{dist.get_world_size()} ranks, {dist.get_backend()} on {device.type}")

    done = 0
    state = load_checkpoint(args.checkpoint, rank, device)
    if state:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["epoch"]
        say(f"resumed from {args.checkpoint} after epoch {done}")
    ddp = DistributedDataParallel(
        model, device_ids=[device.index] if device.type == "cuda" else None)

    for epoch in range(done + 1, args.epochs + 1):
        loss = train_epoch(args, epoch, ddp, optimizer, loader, rank, device)
        say(f"epoch {epoch}/{args.epochs}: loss {loss:.4f}, test accuracy "
            f"{accuracy(model, *test, device):.2f} %")
        if rank == 0 and args.checkpoint:
            save_checkpoint(args.checkpoint, epoch, model, optimizer)

    if not same_on_all_ranks(model):
        raise RuntimeError("the parameters differ between ranks")
    say(f"test accuracy {accuracy(model, *test, device):.2f} %; parameters "
        f"equal bit for bit on {dist.get_world_size()} ranks")
    dist.destroy_process_group()


def run():
    """The exit status of main, as Python gives it; Ctrl-C is left to Python."""
    try:
        main()
    except SystemExit as e:
        if isinstance(e.code, str):
            print(e.code, file=sys.stderr)
        return e.code if isinstance(e.code, int) else int(e.code is not None)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    # Past the interpreter's own end, however main ended: threads of gloo may
    # crash in it (pytorch/pytorch#190489; seen with 2.13), also those of peers,
    # whose connections it closes: they would end before this process, and be
    # taken for the cause.
    status = run()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
