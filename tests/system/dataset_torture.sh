#!/usr/bin/env bash
# The real program is killed at 200 random moments: what lies at the final
# place is right, each byte of it, and the next one is not stopped.
# In memory, where 200 copies do not have to wait for the disk.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

mkdir -p "$T/src/sub"
python3 - "$T/src" <<'PY'
import gzip, io, random, sys, tarfile
random.seed(1)
top = sys.argv[1] + "/"
for i in range(20):
    open(top + "sub/%d" % i, "wb").write(random.randbytes(100000 + i))
open(top + "z.gz", "wb").write(gzip.compress(random.randbytes(300000) * 4, 1))
with tarfile.open(top + "t.tar", "w") as t:
    for i in range(30):
        info = tarfile.TarInfo("tar/%d/x" % i)
        info.size = 20000 + i
        t.addfile(info, io.BytesIO(random.randbytes(info.size)))
PY
"$agent" manifest "$T/src" --unpack --name set -o "$T/m.json"
python3 - "$agent" "$T" >"$T/log" 2>&1 <<'PY'
import glob, hashlib, os, random, shutil, signal, subprocess, sys, time
agent, top = sys.argv[1:]
seed = int.from_bytes(os.urandom(4), "little")
random.seed(seed)
print("seed", seed)
stage = top + "/stage"
cmd = [agent, "stage", "--dataset", top + "/m.json", "--source", top + "/src",
       "--stage", stage]

def content(folder):
    out = {}
    for at, _, files in os.walk(folder):
        for f in files:
            if f != ".agent-stage":
                p = os.path.join(at, f)
                out[os.path.relpath(p, folder)] = hashlib.sha256(
                    open(p, "rb").read()).digest()
    return out

def run():
    return subprocess.run(cmd, capture_output=True, text=True, timeout=120)

first = time.monotonic()
r = run()
took = time.monotonic() - first
want = content(r.stdout.strip())
assert r.returncode == 0 and len(want) == 51, (r.stderr, len(want))
killed = published = wrong = stuck = 0
for i in range(200):
    # Every fourth goes on with what the one before has left.
    if i % 4 == 0:
        shutil.rmtree(stage)
    if i % 8 == 5:
        for d in glob.glob(stage + "/set@*"):
            open(d + "/sub/3", "ab").write(b"x")
    p = subprocess.Popen(cmd, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    time.sleep(random.uniform(0, took * 1.1))
    p.kill()
    killed += p.wait() == -signal.SIGKILL
    for d in glob.glob(stage + "/set@*"):
        published += 1
        if content(d) != want and i % 8 not in (5, 6, 7):
            print("wrong:", i, d)
            wrong += 1
    if i % 4 == 3:
        r = run()
        if r.returncode or content(r.stdout.strip()) != want or \
                [n for n in os.listdir(stage) if n.endswith(".part")]:
            print("stuck:", i, r.returncode, r.stderr, os.listdir(stage))
            stuck += 1
print("killed", killed, "published", published, "wrong", wrong, "stuck", stuck)
PY
is "200 stagers are started and killed" "$?" 0
# shellcheck disable=SC2034
read -r _ killed _ published _ wrong _ stuck < <(tail -n 1 "$T/log")
sed 's/^/# /' "$T/log"
ok "most of them in the middle of it" [ "${killed:-0}" -ge 50 ]
is "none left a finished folder that is wrong" "${wrong:-none}" 0
is "none stopped the next one" "${stuck:-none}" 0
