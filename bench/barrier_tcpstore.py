#!/usr/bin/env python3
"""Pod 0's barrier beside the one of torch's elastic launcher on a TCPStore.

    barrier_tcpstore.py BENCH_BARRIER AGENT [RUNS]

Run by a Python that has torch. Both are measured in turn: the time from the
last arrival to the last peer that has heard of the start. The store's clients
are threads of a few processes, each with a connection of its own, and the
barrier is that of torch.distributed.elastic.utils.store.barrier(): each adds
one to a key, the last sets another one, and all wait for that.
"""
import datetime
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import threading
import time
import warnings

os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
warnings.simplefilter("ignore")
import torch.distributed as dist  # noqa: E402

PROCESSES = 8
LIMIT = datetime.timedelta(seconds=60)


def client(port, name, ready, ended):
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=LIMIT)
    store.add(f"{name}/n", 1)
    ready.release()
    store.wait([f"{name}/go"], LIMIT)
    ended.append(time.monotonic())


def process(port, name, n, ready, out):
    ended = []
    threads = [threading.Thread(target=client,
                                args=(port, name, ready, ended))
               for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    out.put((len(ended), max(ended)))


def tcpstore_ms(n):
    """One barrier of n clients, of which the last to arrive is here."""
    fork = multiprocessing.get_context("fork")
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=LIMIT,
                          wait_for_workers=False)
    ready, out = fork.Semaphore(0), fork.Queue()
    share = [(n - 1) // PROCESSES] * PROCESSES
    for i in range((n - 1) % PROCESSES):
        share[i] += 1
    others = [fork.Process(target=process,
                           args=(store.port, "b", k, ready, out))
              for k in share]
    for p in others:
        p.start()
    for _ in range(n - 1):
        if not ready.acquire(timeout=60):
            sys.exit("barrier_tcpstore: a client has not arrived in 60 s")
    start = time.monotonic()
    if store.add("b/n", 1) != n:
        sys.exit("barrier_tcpstore: wrong count")
    store.set("b/go", "1")
    results = [out.get(timeout=60) for _ in others]
    for p in others:
        p.join()
    if sum(k for k, _ in results) != n - 1:
        sys.exit("barrier_tcpstore: not all have heard")
    return (max(t for _, t in results) - start) * 1e3


def agent_ms(bench, agent, n):
    """bench_barrier's limits are for 10,000 peers: its status says nothing."""
    done = subprocess.run([bench, agent, str(n), "1"], capture_output=True,
                          text=True, timeout=120)
    m = re.search(r"agent ([0-9.]+) ms", done.stderr)
    if not m:
        sys.exit(f"barrier_tcpstore: {bench} failed: {done.stderr}")
    return float(m[1])


def main():
    bench, agent = sys.argv[1:3]
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    print(f"| last arrival to last release, median of {runs} | agent | "
          "TCPStore | ratio |\n|---|---|---|---|")
    for n in (128, 512):
        ours, theirs = [], []
        for _ in range(runs):
            theirs.append(tcpstore_ms(n))
            ours.append(agent_ms(bench, agent, n))
        a, b = statistics.median(ours), statistics.median(theirs)
        print(f"| {n} peers | {a:.1f} ms | {b:.1f} ms | {b / a:.1f} |")


if __name__ == "__main__":
    main()
