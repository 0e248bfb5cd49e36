# SPDX-License-Identifier: MIT
"""How the time of a query grows with the number of vectors; docs/scaling.md.

    PYTHONPATH=build/python /usr/bin/python3 bench/large/growth.py --data FOLDER --work FOLDER [--sizes 225000,2250000] \\
        [--sigma 8] [--kernel chi2] [--newest-faiss PYTHON] [--only REGEX] [--small-pages]

The vectors are local descriptors of bytes (scripts/datasets.py), and copies of them: each copy adds normal noise of its own
seed, rounded and clipped to 0 to 255. Queries are other descriptors. For each size and index, the fastest setting with
enough recall counts, for single queries and for a batch, on one thread and in processor time. PYTHON has the newest FAISS
and faiss_ext; without it, FAISS's lists and graphs are left out. Every index is built in a process of its own, and measured in
another one. With --small-pages, the memory of the searches gets no huge pages. The work folder keeps the indexes and the
figures, so a second run measures only what is missing. Use --build to build on a busy machine, and measure later on an idle
one. Prints Markdown.
"""

import argparse
import ctypes
import itertools
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "scripts")]
import datasets  # noqa: E402

K, RECALL, QUERIES = 10, 0.95, 500
FACTORS = [2, 3, 4, 6, 8, 16, 32]
MAPS = {"chi2": "HKM1(chi2),", "l2": ""}
LISTS = {"KIVF": "KIVF{nlist}(M={dims})", "FAISS, lists": "IVF{nlist},PQ{dims}x4fs"}
GRAPHS = {"HNSW": "HNSW{links},KFlat(linear,store=i8)", "FAISS, HNSW": "HNSW{links}_SQ8"}
EF_CONSTRUCTION = 100
EFFORTS = {
    "nprobe": [4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256],
    "efSearch": [16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024],
}
CHUNK = 200_000
PR_SET_THP_DISABLE = 41


def copies(base, n, sigma):
    """n vectors of bytes: the base, and copies with noise."""
    out = np.empty((n, base.shape[1]), np.uint8)
    for copy, begin in enumerate(range(0, n, len(base))):
        rows = base[: n - begin]
        if copy:
            noise = np.random.default_rng(copy).standard_normal(rows.shape, dtype=np.float32)
            rows = np.clip(np.rint(rows + sigma * noise), 0, 255)
        out[begin : begin + len(rows)] = rows
    return out


def in_chunks(x):
    for begin in range(0, len(x), CHUNK):
        yield x[begin : begin + CHUNK].astype(np.float32)


def neighbours(path, vectors, queries, kernel):
    """The exact ones, kept in a file."""
    if not path.exists():
        import faiss
        import faiss_ext  # noqa: F401

        x = vectors()
        index = faiss.index_factory(x.shape[1], f"KFlat({kernel},store=u8)")
        for rows in in_chunks(x):
            index.add(rows)
        np.save(path, index.search(queries, K)[1])
    return np.load(path)


def recall(found, expected):
    return np.mean([len(set(a) & set(b)) / K for a, b in zip(found.tolist(), expected.tolist())])


def seconds(call, rounds):
    """Processor time, the least of some rounds."""
    least = np.inf
    for _ in range(rounds):
        start = time.process_time()
        call()
        least = min(least, time.process_time() - start)
    return least


def best(settings, set_parameters, time_of):
    """The fastest of the settings."""
    times = []
    for setting in settings:
        set_parameters(setting)
        times.append(time_of())
    return {"us": 1e6 * min(times) / QUERIES, "setting": settings[int(np.argmin(times))]}


def build(args, string, n, path):
    """Builds an index and writes it, with its times behind its name."""
    import faiss
    import faiss_ext  # noqa: F401

    x = copies(datasets.load(args.data, args.dataset, queries=QUERIES).base, n, args.sigma)
    index = faiss.index_factory(x.shape[1], string)
    if "HNSW" in string:
        behind_pca = faiss.downcast_index(faiss.downcast_index(index.base_index).index)
        behind_pca.hnsw.efConstruction = EF_CONSTRUCTION
    lists = re.search(r"IVF(\d+)", string)
    in_training = max(100_000, args.train * int(lists[1])) if lists else 100_000
    start = time.process_time()
    index.train(x[np.random.default_rng(0).permutation(n)[:in_training]].astype(np.float32))
    trained = time.process_time() - start
    for rows in in_chunks(x):
        index.add(rows)
    times = {"train_s": trained, "build_s": time.process_time() - start}
    path.with_suffix(".build.json").write_text(json.dumps(times))
    unfinished = path.with_suffix(".unfinished")
    faiss.write_index(index, str(unfinished))
    unfinished.rename(path)


def measure(args, n, path):
    """Finds the fastest settings of an index and writes their figures."""
    if args.small_pages and ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0:
        raise SystemExit("the system cannot turn off huge pages")
    import faiss
    import faiss_ext

    faiss.omp_set_num_threads(1)
    data = datasets.load(args.data, args.dataset, queries=QUERIES)
    queries = np.ascontiguousarray(data.queries, np.float32)
    truth = args.work / f"{base_name(args, n)}.npy"
    expected = neighbours(truth, lambda: copies(data.base, n, args.sigma), queries, args.kernel)
    index = faiss.read_index(str(path))
    effort = "nprobe" if "IVF" in path.name else "efSearch"

    def set_parameters(setting):
        index.k_factor = setting[1]
        faiss_ext.set_index_parameter(index, effort, setting[0])

    found = []
    for factor in FACTORS:
        for value in EFFORTS[effort]:
            if effort == "efSearch" and value < factor * K:
                continue  # the same as the smallest that is not skipped
            set_parameters((value, factor))
            share = recall(index.search(queries, K)[1], expected)
            if share >= RECALL:  # more effort takes longer
                found.append((value, factor))
                break
    figures = json.loads(path.with_suffix(".build.json").read_text()) | {"bytes": path.stat().st_size / n}
    if found:
        singles = [queries[i : i + 1] for i in range(QUERIES)]
        figures["batch"] = best(found, set_parameters, lambda: seconds(lambda: index.search(queries, K), 5))
        figures["single"] = best(found, set_parameters, lambda: seconds(lambda: [index.search(q, K) for q in singles], 5))
    else:
        figures["recall"] = share
    answer_of(args, path).write_text(json.dumps(figures))


def answer_of(args, path):
    """The file for the figures of an index."""
    return path.with_suffix(".small_pages.json" if args.small_pages else ".json")


def lists_for(n):
    """Numbers of lists to try: powers of two of about 1.25, 2.5 and 5 square roots of n."""
    middle = 2 ** round(np.log2(2.5 * np.sqrt(n)))
    return [middle // 2, middle, 2 * middle]


def codes_of(args, kind, n):
    """The indexes to try, as strings without the map and the re-ranking."""
    if kind in GRAPHS:
        return [f"PCAR{dims},{GRAPHS[kind].format(links=links)}" for dims, links in itertools.product(args.dims, args.links)]
    return [
        f"PCAR{dims},{LISTS[kind].format(nlist=nlist, dims=dims)}"
        for dims, nlist in itertools.product(args.dims, args.lists or lists_for(n))]


def base_name(args, n):
    """Of the files for n vectors."""
    return f"{args.dataset}-{args.kernel}-{n}-{args.sigma:g}"


def measured(args, kind, code, n):
    """The figures of one index, or None if it is only built."""
    string = f"{MAPS[args.kernel]}{code},Refine(KFlat({args.kernel},store=u8))"
    name = f"{base_name(args, n)}-{args.train}-" + re.sub("[^A-Za-z0-9]+", "-", code).strip("-")
    path = args.work / f"{name}.index"
    answer = answer_of(args, path)
    is_newest = kind.startswith("FAISS")
    python = args.newest_faiss if is_newest else sys.executable
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}  # waiting threads take no processor time
    if is_newest:
        environment.pop("PYTHONPATH", None)  # it has its own faiss_ext

    def run(task):
        job = [python, __file__, *sys.argv[1:], "--task", task, "--string", string, "--n", str(n), "--index", str(path)]
        if subprocess.run(job, env=environment, check=False).returncode:
            raise SystemExit(f"{string} with {n} vectors failed")

    if not answer.exists():
        if not path.exists():
            run("build")
        if args.build:
            return None
        run("measure")
    found = json.loads(answer.read_text())
    print(f"{string}, {n} vectors: {found}", file=sys.stderr, flush=True)
    return found


def exponent(points):
    """The slope of log time against log n."""
    return np.polyfit(np.log([n for n, _ in points]), np.log([t for _, t in points]), 1)[0]


def report(args):
    print("| vectors | index | us, single query | settings | us, in a batch | settings |")
    print("|---|---|---|---|---|---|")
    points = {}
    for n, kind in itertools.product(args.sizes, LISTS | GRAPHS):
        if kind.startswith("FAISS") and not args.newest_faiss:
            continue
        found = [
            (code, f) for code in codes_of(args, kind, n)
            if re.search(args.only, code) and (f := measured(args, kind, code, n))]
        cells = []
        for how in ("single", "batch"):
            reached = [(f[how], code) for code, f in found if how in f]
            if not reached:
                cells += ["", ""]
                continue
            fastest, code = min(reached, key=lambda r: r[0]["us"])
            points.setdefault((kind, how), []).append((n, fastest["us"]))
            cells += [f"{fastest['us']:.0f}", f"`{code}`, " + ", ".join(str(v) for v in fastest["setting"])]
        if found:
            print(f"| {n:,} | {kind} | " + " | ".join(cells) + " |", flush=True)
    for (kind, how), of_sizes in points.items():
        if len(of_sizes) > 1:
            print(f"\n{kind}, {how}: the time grows as n^{exponent(of_sizes):.2f}.")


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with local descriptors")
    parser.add_argument("--dataset", help="which, if there are several")
    parser.add_argument("--work", required=True, type=Path, help="folder for figures and exact neighbours")
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=[225_000, 2_250_000])
    parser.add_argument("--sigma", type=float, default=8, help="standard deviation of the noise")
    parser.add_argument("--kernel", choices=list(MAPS), default="chi2")
    parser.add_argument(
        "--dims", type=lambda text: [int(n) for n in text.split(",")], default=[64, 128], help="dimensions behind the PCA")
    parser.add_argument("--lists", type=lambda text: [int(n) for n in text.split(",")], help="numbers of lists")
    parser.add_argument(
        "--links", type=lambda text: [int(n) for n in text.split(",")], default=[16], help="links of a vertex of a graph")
    parser.add_argument("--train", type=int, default=40, help="training vectors for each list")
    parser.add_argument("--newest-faiss", help="Python with the newest FAISS and faiss_ext")
    parser.add_argument("--only", default="", metavar="REGEX", help="indexes, such as KIVF4096")
    parser.add_argument("--small-pages", action="store_true", help="search without huge pages of memory")
    parser.add_argument("--build", action="store_true", help="only build what is missing")
    for name in ("--task", "--string", "--index"):  # of a process for one index
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--n", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    if args.task == "build":
        build(args, args.string, args.n, Path(args.index))
    elif args.task == "measure":
        measure(args, args.n, Path(args.index))
    else:
        report(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
