# SPDX-License-Identifier: MIT
"""How the time of a query with lists grows with the number of vectors; docs/scaling.md.

    PYTHONPATH=build/python /usr/bin/python3 bench/large/growth.py --data FOLDER --work FOLDER [--sizes 225000,2250000] \\
        [--sigma 8] [--kernel chi2] [--newest-faiss PYTHON] [--only REGEX]

The vectors are local descriptors of bytes (scripts/datasets.py), and copies of them: each copy adds normal noise of its own
seed, rounded and clipped to 0 to 255. Queries are other descriptors. For each size and index, the fastest setting with
enough recall counts, for single queries and for a batch, on one thread and in processor time. PYTHON has the newest FAISS
and faiss_ext; without it, only KIVF is measured. Every index is built and measured in a process of its own, whose results stay in
the work folder. Prints Markdown.
"""

import argparse
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
PROBES, FACTORS = [4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256], [2, 3, 4, 6, 8, 16]
MAPS = {"chi2": "HKM1(chi2),PCAR64", "l2": "PCAR64"}
LISTS = {"KIVF": "KIVF{nlist}(M=64)", "FAISS": "IVF{nlist},PQ64x4fs"}
CHUNK = 200_000


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


def neighbours(path, x, queries, kernel):
    """The exact ones, kept in a file."""
    if not path.exists():
        import faiss
        import faiss_ext  # noqa: F401

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


def measure(args, string, n):
    """Builds an index, and finds its fastest settings."""
    import faiss
    import faiss_ext

    faiss.omp_set_num_threads(1)
    data = datasets.load(args.data, args.dataset, queries=QUERIES)
    x, queries = copies(data.base, n, args.sigma), np.ascontiguousarray(data.queries, np.float32)
    expected = neighbours(args.work / f"{args.kernel}-{n}-{args.sigma}.npy", x, queries, args.kernel)
    index = faiss.index_factory(x.shape[1], string)
    nlist = int(re.search(r"IVF(\d+)", string)[1])
    start = time.process_time()
    index.train(x[np.random.default_rng(0).permutation(n)[: max(100_000, args.train * nlist)]].astype(np.float32))
    trained = time.process_time() - start
    for rows in in_chunks(x):
        index.add(rows)
    built = time.process_time() - start
    del x

    def set_parameters(setting):
        index.k_factor = setting[1]
        faiss_ext.set_index_parameter(index, "nprobe", setting[0])

    found = []
    for factor in FACTORS:
        for probes in PROBES:
            set_parameters((probes, factor))
            share = recall(index.search(queries, K)[1], expected)
            if share >= RECALL:  # more lists take longer
                found.append((probes, factor))
                break
    if not found:
        return {"train_s": trained, "build_s": built, "recall": share}
    singles = [queries[i : i + 1] for i in range(QUERIES)]
    return {
        "train_s": trained, "build_s": built,
        "batch": best(found, set_parameters, lambda: seconds(lambda: index.search(queries, K), 5)),
        "single": best(found, set_parameters, lambda: seconds(lambda: [index.search(q, K) for q in singles], 5))}


def lists_for(n):
    """Numbers of lists to try: powers of two of about 1.25, 2.5 and 5 square roots of n."""
    middle = 2 ** round(np.log2(2.5 * np.sqrt(n)))
    return [middle // 2, middle, 2 * middle]


def measured(args, kind, n, nlist):
    """The figures of one index, from a process of its own or kept from before."""
    string = f"{MAPS[args.kernel]},{LISTS[kind].format(nlist=nlist)},Refine(KFlat({args.kernel},store=u8))"
    path = args.work / f"{args.kernel}-{n}-{args.sigma}-{kind}-{nlist}.json"
    if not path.exists():
        python = args.newest_faiss if kind == "FAISS" else sys.executable
        job = [python, __file__, *sys.argv[1:], "--string", string, "--n", str(n), "--answer", str(path)]
        environment = dict(os.environ)
        if kind == "FAISS":
            environment.pop("PYTHONPATH", None)  # it has its own faiss_ext
        if subprocess.run(job, env=environment, check=False).returncode:
            raise SystemExit(f"{string} with {n} vectors failed")
    found = json.loads(path.read_text())
    print(f"{string}, {n} vectors: {found}", file=sys.stderr, flush=True)
    return found


def exponent(points):
    """The slope of log time against log n."""
    return np.polyfit(np.log([n for n, _ in points]), np.log([t for _, t in points]), 1)[0]


def report(args):
    kinds = ["KIVF"] + ["FAISS"] * bool(args.newest_faiss)
    print("| vectors | index | us, single query | lists, nprobe, k_factor | us, in a batch | lists, nprobe, k_factor |")
    print("|---|---|---|---|---|---|")
    points = {}
    for n, kind in itertools.product(args.sizes, kinds):
        found = {}
        for nlist in args.lists or lists_for(n):
            if re.search(args.only, f"{kind}{nlist}"):
                found[nlist] = measured(args, kind, n, nlist)
        cells = []
        for how in ("single", "batch"):
            reached = {nlist: f[how] for nlist, f in found.items() if how in f}
            if not reached:
                cells += ["", ""]
                continue
            nlist = min(reached, key=lambda nlist: reached[nlist]["us"])
            us, setting = reached[nlist]["us"], reached[nlist]["setting"]
            points.setdefault((kind, how), []).append((n, us))
            cells += [f"{us:.0f}", ", ".join(f"{v:,}" for v in (nlist, *setting))]
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
    parser.add_argument("--lists", type=lambda text: [int(n) for n in text.split(",")], help="numbers of lists")
    parser.add_argument("--train", type=int, default=40, help="training vectors for each list")
    parser.add_argument("--newest-faiss", help="Python with the newest FAISS and faiss_ext")
    parser.add_argument("--only", default="", metavar="REGEX", help="kind and number of lists, such as KIVF4096")
    for name in ("--string", "--answer"):  # of a process for one index
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--n", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    if args.string:
        Path(args.answer).write_text(json.dumps(measure(args, args.string, args.n)))
    else:
        report(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
