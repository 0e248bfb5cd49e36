# SPDX-License-Identifier: MIT
"""Searches of one index by two threads, alone and beside a third that adds and removes vectors.

Each thread searches for one query after the other. The third thread removes the oldest vectors and adds them again
under new ids, 1,000 a second. Times are medians of several rounds, in turn. The loss consists of the processor time that the
changes themselves take and of the time that searches wait.

Prints Markdown.
"""

import argparse
import os
import statistics
import threading
import time

import faiss
import numpy as np
from living import load

import faiss_ext

K = 10
STRINGS = ["KFlat(chi2)", "AHK512(chi2),BFlat,Refine(KFlat(chi2))",
           "HKM1(chi2),PCAR96,KIVF256(nprobe=12),Refine(KFlat(chi2))", "HNSW32,KFlat(chi2)"]


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with a dataset (see scripts/datasets.py); else histograms are drawn")
    parser.add_argument("--dataset", help="which, if there are several")
    parser.add_argument("--n", type=int, default=50_000, help="vectors")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--per-second", type=int, default=1000, help="vectors added and removed in a second")
    parser.add_argument("--batch", type=int, nargs="+", default=[100, 10, 1], help="vectors in each change")
    return parser.parse_args()


class Writer:
    """Removes the oldest vectors and adds them again, in a thread."""

    def __init__(self, index, x):
        self.index, self.x = index, x
        self.first, self.next = 0, len(x)

    def change(self, batch):
        index, ids = self.index, np.arange(self.next, self.next + batch)
        index.remove_ids(faiss.IDSelectorRange(self.first, self.first + batch))
        index.add_with_ids(self.x[ids % len(self.x)], ids)
        self.first, self.next = self.first + batch, self.next + batch

    def run(self, end, per_second, batch):
        """Changes until `end`; sets the numbers of vectors and of processor seconds per second."""
        faiss.omp_set_num_threads(1)  # each thread has a setting of its own
        start, done, used = time.perf_counter(), 0, time.thread_time()
        while time.perf_counter() < end:
            due = start + done / per_second
            time.sleep(max(0, due - time.perf_counter()))
            self.change(batch)
            done += batch
        seconds = time.perf_counter() - start
        self.rate, self.share = done / seconds, (time.thread_time() - used) / seconds


def searcher(index, queries, end, results):
    """Searches until `end`; appends the number of queries and the longest time of one."""
    faiss.omp_set_num_threads(1)
    done, longest = 0, 0
    now = time.perf_counter()
    while now < end:
        index.search(queries[done % len(queries):][:1], K)
        before, now = now, time.perf_counter()
        done, longest = done + 1, max(longest, now - before)
    results.append((done, longest))


def measure(index, queries, seconds, writer=None, **changes):
    """Queries a second of two threads, and the longest search in milliseconds."""
    results = []
    start = time.perf_counter()
    end = start + seconds
    threads = [threading.Thread(target=searcher, args=(index, queries, end, results)) for _ in range(2)]
    if writer:
        threads.append(threading.Thread(target=writer.run, args=(end,), kwargs=changes))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done for done, _ in results) / seconds, 1000 * max(longest for _, longest in results)


def main():
    args = parse_args()
    faiss.omp_set_num_threads(1)
    x, queries = load(args, np.random.default_rng(1))
    print(f"{len(x):,} vectors of {x.shape[1]} dimensions, {os.cpu_count()} processors\n")
    print("| index | vectors in a change | queries/s alone | beside changes | loss | changed vectors/s | processor time "
          "of the changes | longest search alone, ms | beside changes, ms |")
    print("|---" * 9 + "|")
    for string in STRINGS:
        index = faiss.index_factory(x.shape[1], "Concurrent," + string)
        index.train(x[:20_000])
        index.add_with_ids(x, np.arange(len(x)))
        if "Refine" in string:
            faiss_ext.set_index_parameter(index, "k_factor", 8)
        writer = Writer(index, x)
        writer.change(1)  # the first removal makes a table
        for batch in args.batch:
            rounds = []
            for _ in range(args.rounds):
                alone, longest_alone = measure(index, queries, args.seconds)
                beside, longest = measure(index, queries, args.seconds, writer, per_second=args.per_second, batch=batch)
                rounds.append((alone, beside, 1 - beside / alone, writer.rate, writer.share, longest_alone, longest))
            alone, beside, loss, rate, share, longest_alone, longest = map(statistics.median, zip(*rounds))
            print(f"| `{string}` | {batch} | {alone:,.0f} | {beside:,.0f} | {100 * loss:.0f} % | {rate:,.0f} | "
                  f"{100 * share:.0f} % of one | {longest_alone:.1f} | {longest:.1f} |", flush=True)


if __name__ == "__main__":
    main()
