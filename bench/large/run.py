# SPDX-License-Identifier: MIT
"""Indexes of more vectors: memory, rates of building and queries, from files, and on two workers; docs/scaling.md.

    PYTHONPATH=build/python /usr/bin/python3 bench/large/run.py --data FOLDER --work FOLDER [--n 10000000] \\
        [--only REGEX] [--skip-cluster] [--out results.json] [--markdown docs/scaling.md]

The vectors are local descriptors (scripts/datasets.py) with seeded jitter, bytes in a file of the work folder, which takes
about 132 n bytes, and as much again for what is built. Every step is a process of its own, whose memory (but for mapped
files) is looked at 20 times a second. What a step has measured is kept in the work folder and not measured again.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "scripts")]
import datasets  # noqa: E402
import report  # noqa: E402
from multi_index import jittered  # noqa: E402

KERNEL = "chi2"
JITTER_SEED = 77
QUERIES = 1000
RECALL = 0.95
FACTORS = [2, 4, 8, 16, 32, 64, 128]
PROBES = [4, 8, 16, 32, 64, 128]
BLOCK = 200_000


def lists(n):
    """Inverted lists: a power of two, of about 2,000 vectors each."""
    return 2 ** round(np.log2(max(n / 2000, 4)))


def contenders(n):
    """String in front of `Refine(KFlat)`, and settings to try."""
    by_lists = [{"nprobe": p, "k_factor": f} for p in PROBES for f in FACTORS[:4]]
    return {
        "AHK512(chi2,center=1),BFlat": [{"k_factor": f} for f in FACTORS],
        f"AHK512(chi2,center=1),BIVF{lists(n)}": [
            {"nprobe": p, "k_factor": f} for p in (32, 64, 128, 256, 512) for f in FACTORS[3:]],
        f"HKM1(chi2),PCAR128,KIVF{lists(n)}": by_lists}


# ------------------------------------------------------------------ vectors

def write_vectors(path, base, n):
    """n of them as .bvecs: the base, and copies with jitter."""
    d = base.shape[1]
    head = np.frombuffer(np.int32(d).tobytes(), "uint8")
    temporary = path.with_suffix(".part")
    with open(temporary, "wb") as file:
        for begin in range(0, n, BLOCK):
            count = min(BLOCK, n - begin)
            if begin + count <= len(base):
                rows = base[begin : begin + count]
            else:  # (jittered gives what it is given first)
                rows = jittered(base, len(base) + count, JITTER_SEED + begin)[len(base):]
                rows = np.minimum(np.rint(rows), 255)
            packed = np.empty((count, 4 + d), "uint8")
            packed[:, :4], packed[:, 4:] = head, rows
            file.write(packed.tobytes())
    os.replace(temporary, path)


def parts_of(path, n, folder, count=8):
    """The same vectors in several files."""
    names = [folder / f"part-{i}.bvecs" for i in range(count)]
    rows = np.memmap(path, "uint8", "r").reshape(n, -1)
    for i, name in enumerate(names):
        if not name.exists():
            rows[i * n // count : (i + 1) * n // count].tofile(name)
    return names


# ------------------------------------------------------------------ processes

def anonymous_mb(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            return max((int(line.split()[1]) for line in status if line.startswith("RssAnon:")), default=0) / 1024
    except OSError:
        return 0.0


class Steps:
    """Jobs for worker.py, whose answers are kept."""

    def __init__(self, folder):
        self.folder = folder

    def kept(self, name, make):
        path = self.folder / (re.sub(r"[^A-Za-z0-9]+", "-", name) + ".json")
        if not path.exists():
            print(f"{name} ...", flush=True)
            answer = make()
            path.write_text(json.dumps(answer, indent=1))
        answer = json.loads(path.read_text())
        print(f"{name}: {json.dumps(answer)}", flush=True)
        return answer

    def run(self, name, **job):
        return self.kept(name, lambda: self.process(job))

    def process(self, job):
        with tempfile.NamedTemporaryFile("w", suffix=".json", dir=self.folder) as file:
            json.dump(job, file, default=str)
            file.flush()
            process = subprocess.Popen([sys.executable, HERE / "worker.py", file.name], stdout=subprocess.PIPE)
            peak, out = 0.0, []
            reader = threading.Thread(target=lambda: out.append(process.stdout.read()))
            reader.start()
            while process.poll() is None:
                peak = max(peak, anonymous_mb(process.pid))
                time.sleep(0.05)
            reader.join()
        if process.returncode:
            raise SystemExit(f"{job['task']} failed: exit status {process.returncode}")
        return {**json.loads(out[0]), "peak_mb": peak}


# ---------------------------------------------------------------- the cluster

def cluster_figures(args, steps, parts, string, parameters, queries, truth):
    """A process with two threads beside two workers with one each, and with one of them killed."""
    import faiss
    import faiss_ext
    from dask.distributed import Client, LocalCluster
    from worker import rate, recall, single_ms

    options = {"train": args.train, "progress": False, "parameters": parameters}
    q, expected = np.load(queries), np.load(truth)

    def one_process():
        faiss.omp_set_num_threads(2)
        start = time.perf_counter()
        index = faiss_ext.build_shards(parts, string, folder=steps.folder / "one", **options)
        seconds = time.perf_counter() - start
        return {"seconds": seconds, **figures(index)}

    def figures(index):
        answer = {"rate": rate(index, q)}
        answer["single_ms"], answer["single_95_ms"] = single_ms(index, q[:200])
        answer["recall"] = recall(index.search(q, 10)[1], expected)
        return answer

    def two_workers():
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as made, Client(made) as client:
            start = time.perf_counter()
            index = faiss_ext.build_shards(parts, string, client, steps.folder / "two", **options)
            seconds = time.perf_counter() - start
            expected_D, expected_I = faiss_ext.open_shards(steps.folder / "one").search(q, 10)
            D, I = index.search(q, 10)
            answer = {"seconds": seconds, "same": bool((D == expected_D).all() and (I == expected_I).all()),
                      **figures(index)}
            # one is lost while it searches
            worker, pid = next(iter(client.run(os.getpid).items()))
            killer = threading.Timer(0.3, os.kill, (pid, signal.SIGKILL))
            killer.start()
            answer["killed_search_same"], answer["killed_search_s"] = True, 0.0
            while worker in client.scheduler_info()["workers"]:
                start = time.perf_counter()
                D, I = index.search(q, 10)
                answer["killed_search_s"] = max(answer["killed_search_s"], time.perf_counter() - start)
                answer["killed_search_same"] &= bool((D == expected_D).all() and (I == expected_I).all())
            killer.join()
            return answer

    def killed_build():
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as made, Client(made) as client:
            folder = steps.folder / "killed"

            def kill():
                while not (folder / "shard-00000.index").exists():
                    time.sleep(0.05)
                os.kill(list(client.run(os.getpid).values())[0], signal.SIGKILL)

            thread = threading.Thread(target=kill, daemon=True)
            thread.start()
            start = time.perf_counter()
            index = faiss_ext.build_shards(parts, string, client, folder, **options)
            seconds = time.perf_counter() - start
            thread.join()
            expected_D, expected_I = faiss_ext.open_shards(steps.folder / "one").search(q, 10)
            D, I = index.search(q, 10)
            return {"seconds": seconds, "same": bool((D == expected_D).all() and (I == expected_I).all())}

    return {"one": steps.kept("shards in one process", one_process),
            "two": steps.kept("shards on two workers", two_workers),
            "killed": steps.kept("build with a worker killed", killed_build)}


# ------------------------------------------------------------------- all of it

def figures_of(args, steps, base, queries, truth):
    rows = {}
    for front, settings in contenders(args.n).items():
        if not re.search(args.only, front):
            continue
        in_file, in_memory = f"{front},Refine(KFlat({KERNEL}))", f"{front},Refine(KFlat({KERNEL},store=u8))"
        name = re.sub(r"[^A-Za-z0-9]+", "-", front)
        files = {kind: steps.folder / f"{name}.{kind}" for kind in ("file", "memory")}
        common = {"base": base, "queries": queries, "truth": truth, "memory": args.memory, "train": args.train}
        row = rows[front] = {}
        row["build"] = steps.run(f"build {in_file}", task="build", string=in_file, exact="file", output=files["file"], **common)
        row["tune"] = steps.run(f"tune {in_file}", task="tune", index=files["file"], settings=settings, recall=RECALL, **common)
        common["parameters"] = row["tune"]["parameters"]
        row["file"] = steps.run(f"search {in_file}", task="search", index=files["file"], drop=[base], **common)
        if args.mapped:
            row["mapped"] = steps.run(f"search mapped {in_file}", task="search", index=files["file"], mapped=True,
                                      drop=[base, files["file"]], **common)
        steps.run(f"build {in_memory}", task="build", string=in_memory, exact="memory", output=files["memory"], **common)
        row["memory"] = steps.run(f"search {in_memory}", task="search", index=files["memory"], drop=[], **common)
        if not args.keep:
            files["memory"].unlink(missing_ok=True)
    return rows


def parse_args(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with local descriptors")
    parser.add_argument("--dataset", help="which, if there are several")
    parser.add_argument("--work", required=True, type=Path, help="folder for vectors and indexes")
    parser.add_argument("--n", type=int, default=10_000_000)
    parser.add_argument("--train", type=int, default=250_000)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--keep", action="store_true", help="all indexes")
    parser.add_argument("--mapped", action="store_true", help="codes mapped, too")
    parser.add_argument("--skip-cluster", action="store_true")
    parser.add_argument("--out", type=Path, help="file for all figures, JSON")
    parser.add_argument("--markdown", type=Path, help="page whose tables are written")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    args.work.mkdir(parents=True, exist_ok=True)
    data = datasets.load(args.data, args.dataset, queries=QUERIES)
    base, queries, truth = (args.work / name for name in ("base.bvecs", "queries.npy", "truth.npy"))
    if not base.exists():
        write_vectors(base, data.base, args.n)
    np.save(queries, data.queries)
    steps = Steps(args.work)
    steps.run("truth", task="truth", base=base, kernel=KERNEL, queries=queries, answer=truth)
    found = {"n": args.n, "rows": figures_of(args, steps, base, queries, truth)}
    if not args.skip_cluster:
        front = next(front for front in found["rows"] if "KIVF" in front)
        found["cluster"] = cluster_figures(
            args, steps, parts_of(base, args.n, args.work), f"{front},Refine(KFlat({KERNEL}))",
            found["rows"][front]["tune"]["parameters"], queries, truth)
    if args.out:
        args.out.write_text(json.dumps(found, indent=1))
    if args.markdown:
        report.fill(args.markdown, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
