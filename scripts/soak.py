#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Works on indexes for a long time with two threads, and watches the memory.

    PYTHONPATH=build/python python3 scripts/soak.py [--minutes 60] [--seed 1]

One thread adds, removes, saves and reads; the other one searches. A lock separates changes of an index from its searches, as
FAISS requires, but searches run in parallel with work on other indexes. Results are compared with brute force throughout. The
resident memory is sampled once a second after a warm-up, and must not grow: the run fails if the mean of its last quarter is
more than 5 MB above the mean of its first quarter. Prints a line for each minute, and a summary at the end.
"""

import argparse
import resource
import tempfile
import threading
import time
from pathlib import Path

import faiss
import faiss_ext  # noqa: F401
import numpy as np

D, MOST = 32, 3000
STRINGS = {
    "IDMap2,KFlat(chi2)": True, "KIVF8(M=8,nprobe=8)": True, "IDMap2,AHK128(chi2),BFlat": True,
    "SIK128(gaussian,gamma=0.1),BIVF8": False, "RHBE128,BPerm(M=5)": True, "HNSW8,KFlat(chi2)": False,
    "HKM1(chi2),PCAR16,KIVF4,Refine(KFlat(chi2))": False}
GROWTH_MB = 5


def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


class Worked:
    """An index with its lock, and for IDMap2,KFlat what it holds."""

    def __init__(self, string, rng):
        self.string, self.removes, self.lock = string, STRINGS[string], threading.Lock()
        self.rng, self.next_id, self.model = rng, 0, {}
        self.has_ids = string.startswith("IDMap2")
        self.index = faiss.index_factory(D, string)
        self.index.train(self.vectors(500))

    def vectors(self, n):
        return self.rng.gamma(0.5, 1, (n, D)).astype("float32")

    def add(self):
        x = self.vectors(int(self.rng.integers(1, 200)))
        with self.lock:
            if self.index.ntotal > MOST:
                self.index.reset()
                self.model.clear()
            if self.has_ids:
                ids = np.arange(self.next_id, self.next_id + len(x))
                self.next_id += len(x)
                self.index.add_with_ids(x, ids)
                self.model.update(zip(ids.tolist(), x))
            else:
                self.index.add(x)

    def remove(self):
        if not self.removes or not self.index.ntotal:
            return
        with self.lock:
            if self.has_ids:
                ids = self.rng.choice(sorted(self.model), min(len(self.model), 100), replace=False)
                assert self.index.remove_ids(ids) == len(ids)
                for id in ids.tolist():
                    del self.model[id]
            else:
                self.index.remove_ids(faiss.IDSelectorRange(0, int(self.index.ntotal // 10)))

    def save(self, folder):
        path = str(Path(folder) / "index")
        with self.lock:
            faiss.write_index(self.index, path)
            self.index = faiss.read_index(path) if self.rng.random() < 0.5 else faiss.clone_index(self.index)

    def search(self, queries):
        with self.lock:
            distances, labels = self.index.search(queries, 10)
            if self.string == "IDMap2,KFlat(chi2)" and self.model:
                x = np.stack(list(self.model.values()))
                truth = np.sort(((queries[:1] - x) ** 2 / np.maximum(queries[:1] + x, 1e-30)).sum(axis=1))[:10]
                np.testing.assert_allclose(distances[0, : len(truth)], truth, rtol=1e-4)
            assert (labels < max(self.next_id, 10**6)).all()
        return len(queries)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    end = time.monotonic() + 60 * args.minutes
    works = [Worked(string, np.random.default_rng([args.seed, i])) for i, string in enumerate(STRINGS)]
    counts, errors = {"changes": 0, "queries": 0}, []

    def guarded(function):
        rng = np.random.default_rng([args.seed, len(function.__name__)])
        try:
            while time.monotonic() < end and not errors:
                function(works[rng.integers(len(works))], rng)
        except BaseException as error:
            errors.append(error)

    with tempfile.TemporaryDirectory() as folder:
        def change(work, rng):
            counts["changes"] += 1
            step = rng.random()
            if step < 0.6:
                work.add()
            elif step < 0.9:
                work.remove()
            else:
                work.save(folder)

        def search(work, rng):
            counts["queries"] += work.search(rng.gamma(0.5, 1, (5, D)).astype("float32"))

        threads = [threading.Thread(target=guarded, args=(f,)) for f in (change, search)]
        for thread in threads:
            thread.start()
        begin, samples = time.monotonic(), []
        warm_up = min(60.0, 15 * args.minutes)
        while any(thread.is_alive() for thread in threads):
            time.sleep(1)
            elapsed = time.monotonic() - begin
            if elapsed > warm_up:
                samples.append(resident_mb())
            if int(elapsed) % 60 == 59:
                print(f"{elapsed / 60:4.0f} min: {counts['changes']:,} changes, {counts['queries']:,} queries, "
                      f"{resident_mb():.1f} MB", flush=True)
    if errors:
        raise errors[0]
    quarter = max(1, len(samples) // 4)
    first, last = np.mean(samples[:quarter]), np.mean(samples[-quarter:])
    print(f"{counts['changes']:,} changes, {counts['queries']:,} queries; {first:.1f} MB in the first quarter, "
          f"{last:.1f} MB in the last", flush=True)
    if last - first > GROWTH_MB:
        raise SystemExit(f"the memory grew by {last - first:.1f} MB")


if __name__ == "__main__":
    main()
