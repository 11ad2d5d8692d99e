#!/usr/bin/env python3
"""How fast data is verified, staged and found again, against other programs.

bench/dataset.py AGENT [DIR]: DIR should be a tmpfs with 12 GiB free (default:
/dev/shm); all is in the page cache. Best of 5, alternated. Prints a table;
fails where a limit is missed."""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

agent = os.path.abspath(sys.argv[1])
runs = int(os.environ.get("BENCH_RUNS", "5"))
scale = float(os.environ.get("BENCH_SCALE", "1"))  # Of sizes and counts.
missed = []


def sh(cmd, **more):
    subprocess.run(cmd, shell=True, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, executable="/bin/bash", **more)


def once(cmd):
    start = time.monotonic()
    sh(cmd)
    return time.monotonic() - start


def best(*cmds):
    """The shortest time of each (command, what to do before it)."""
    times = [[] for _ in cmds]
    for _ in range(runs):
        for i, (cmd, before) in enumerate(cmds):
            if before:
                sh(before)
            times[i].append(once(cmd))
    return [min(t) for t in times]


def row(what, ours, theirs, ratio, limit, good):
    print(f"{what:44} {ours:>12} {theirs:>28} {ratio:6.2f}  {limit}"
          f"{'' if good else '  MISSED'}", flush=True)
    if not good:
        missed.append(what)


def ms(t):
    return f"{1000 * t:.0f} ms"


def big(path, n):
    with open(path, "wb") as f:
        for _ in range(n >> 20):
            f.write(random.randbytes(1 << 20))


def manifest(folder, *options):
    out = str(folder) + ".json"
    sh(f"{agent} manifest {folder} -o {out} {' '.join(options)}")
    return out


def verify(t):
    one, eight = t / "one", t / "eight"
    one.mkdir(), eight.mkdir()
    size = int(scale * (2 << 30))
    big(one / "f", size)
    m = manifest(one)
    speed = 0
    took = []
    for _ in range(runs):
        out = subprocess.run(
            ["openssl", "speed", "-elapsed", "-seconds", "1", "-bytes",
             "16384", "-evp", "sha256"],
            capture_output=True, text=True, check=True).stdout
        speed = max(speed, float(out.split()[-1].rstrip("k")) * 1000)
        took.append(once(f"{agent} verify {m} {one}"))
    rate = size / min(took)
    row("verify one large file", f"{rate / 1e6:.0f} MB/s",
        f"openssl speed {speed / 1e6:.0f} MB/s", rate / speed, ">= 0.85",
        rate >= 0.85 * speed)
    for i in range(8):
        big(eight / str(i), size // 8)
    m = manifest(eight)
    a, b = best((f"{agent} verify {m} {eight}", None),
                (f"ls {eight}/* | xargs -P{os.cpu_count()} -n1 "
                 "openssl dgst -sha256", None))
    row("verify 8 files", ms(a), f"xargs openssl dgst {ms(b)}", a / b,
        "<= 1", a <= b)
    shutil.rmtree(eight)
    return one


def stage(t, one):
    m = manifest(one)
    copy, check, ours = best(
        (f"cp {one}/f {t}/copy && sync -f {t}/copy", f"rm -f {t}/copy"),
        (f"{agent} verify {m} {one}", None),
        (f"{agent} stage --dataset {m} --source {one} --stage {t}/stage",
         f"rm -rf {t}/stage {t}/copy"))
    slower = max(copy, check)
    row("stage one large file", ms(ours),
        f"cp {ms(copy)}, verify {ms(check)}", ours / slower, "<= 1.15",
        ours <= 1.15 * slower)
    sh(f"rm -rf {t}/stage {t}/copy {one}")


def small(t):
    top, n = t / "small", int(scale * 20000)
    for i in range(n):
        d = top / f"d{i % 100:02}"
        d.mkdir(parents=True, exist_ok=True)
        (d / f"f{i:05}").write_bytes(random.randbytes(10240))
    m = manifest(top)
    sh(f"{agent} manifest {top} --format sha256sum -o {t}/sums")
    a, b = best((f"{agent} verify {m} {top}", None),
                (f"cd {top} && sha256sum --quiet -c {t}/sums", None))
    row(f"verify {n} files of 10 KiB", ms(a), f"sha256sum -c {ms(b)}", b / a,
        ">= 3", b >= 3 * a)
    again = f"{agent} stage --dataset {m} --source {top} --stage {t}/stage"
    sh(again)
    a, b = best((again, None),
                (f"find {t}/stage/small* -printf '%s %T@ %C@ %i'", None))
    row(f"second start, {n} files", ms(a), f"find -printf {ms(b)}", a / b,
        "<= 2", a <= 2 * b)
    sh(f"rm -rf {t}/stage {top}")


def unpack(t):
    """Text of words, in members of 64 MiB."""
    one, four = t / "gz", t / "gz4"
    one.mkdir(), four.mkdir()
    words = [bytes(random.choices(b"etaoinshrdlu", k=random.randint(2, 9)))
             for _ in range(20000)]
    with open(t / "text", "wb") as f:
        for _ in range(int(scale * 64)):
            f.write(b" ".join(random.choices(words, k=170000))[:1 << 20])
    sh(f"gzip -c {t}/text >{t}/text.gz")
    sh(f"cat {' '.join([str(t / 'text.gz')] * 12)} >{one}/x.gz")
    m = manifest(one, "--unpack")
    a, b = best(
        (f"{agent} stage --dataset {m} --source {one} --stage {t}/stage",
         f"rm -rf {t}/stage {t}/plain"),
        (f"gzip -dc {one}/x.gz >{t}/plain", f"rm -rf {t}/stage {t}/plain"))
    row("unpack one gzip file, with both hashes", ms(a), f"gzip -dc {ms(b)}",
        a / b, "<= 0.75", a <= 0.75 * b)
    for i in range(4):
        sh(f"cat {' '.join([str(t / 'text.gz')] * 3)} >{four}/{i}.gz")
    m = manifest(four, "--unpack")
    c, d = best(
        (f"{agent} stage --dataset {m} --source {four} --stage {t}/stage",
         f"rm -rf {t}/stage {t}/plain"),
        (f"ls {four}/*.gz | xargs -P{os.cpu_count()} -n1 gzip -dc "
         f">{t}/plain", f"rm -rf {t}/stage {t}/plain"))
    row("unpack 4 gzip files, with both hashes", ms(c),
        f"xargs gzip -dc {ms(d)}", c / d, "<= 1", c <= d)


def main():
    where = sys.argv[2] if len(sys.argv) > 2 else "/dev/shm"
    need = int(scale * (9 << 30))
    if shutil.disk_usage(where).free < need:
        sys.exit(f"{where} has less than {need >> 30} GiB free")
    with tempfile.TemporaryDirectory(dir=where) as tmp:
        t = pathlib.Path(tmp)
        print(f"{'':44} {'agent':>12} {'against':>28}  ratio  limit")
        stage(t, verify(t))
        small(t)
        unpack(t)
    if missed:
        sys.exit("missed: " + "; ".join(missed))


main()
