# SPDX-License-Identifier: MIT
"""Exact search, KFlat beside FAISS's own flat index, which compares batches by BLAS.

    OPENBLAS_NUM_THREADS=1 PYTHONPATH=build/python /usr/bin/python3 bench/exact.py --data FOLDER --dataset NAME

Prints queries per second of the processor's time in Markdown, of the vectors as they are and of 128 random projections of
them; the best of several turns. With --threads N they are queries per second of N threads.
"""

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
import datasets  # noqa: E402

import faiss  # noqa: E402
from faiss_ext import timing  # noqa: E402

KERNELS = ("gaussian", "linear", "laplacian")
K = 10


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with a dataset (see scripts/datasets.py)")
    parser.add_argument("--dataset", help="which, if there are several")
    parser.add_argument("--queries", type=int, nargs="*", default=[1, 20, 512], help="sizes of batches")
    parser.add_argument("--threads", type=int, help="time by the clock")
    return parser.parse_args()


def indexes_of(base):
    d = base.shape[1]
    found = {"FAISS, L2": faiss.IndexFlatL2(d)}
    found |= {f"KFlat({kernel})": faiss.index_factory(d, f"KFlat({kernel})") for kernel in KERNELS}
    for index in found.values():
        index.train(base[:2000])
        index.add(base)
    return found


def seconds_of(indexes, queries):
    """The least of several turns, of each index."""
    timers = {name: timing.Timer(lambda index=index: index.search(queries, K), faiss.omp_get_max_threads())
              for name, index in indexes.items()}
    timing.take_turns(list(timers.values()))
    return {name: timer.least for name, timer in timers.items()}


def main():
    args = parse_args()
    faiss.omp_set_num_threads(args.threads or 1)
    data = datasets.load(args.data, args.dataset, queries=max(args.queries))
    columns = ["FAISS, L2", *(f"KFlat({kernel})" for kernel in KERNELS)]
    print("| d | queries | " + " | ".join(columns) + " |\n" + "|---" * (2 + len(columns)) + "|")
    random = np.random.default_rng(0).standard_normal((data.base.shape[1], 128))
    for few in (False, True):
        axes = np.linalg.qr(random)[0].astype("float32") if few else None
        base, queries = (x @ axes if few else x for x in (data.base, data.queries))
        indexes = indexes_of(base)
        for n in args.queries:
            seconds = seconds_of(indexes, queries[:n])
            print(f"| {base.shape[1]} | {n} | " + " | ".join(f"{n / seconds[c]:,.0f}" for c in columns) + " |", flush=True)


if __name__ == "__main__":
    main()
