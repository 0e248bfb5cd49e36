# SPDX-License-Identifier: MIT
"""Times the Hamming scan of whatever FAISS this Python has, on one thread; prints JSON.

Run by run_all.py in a process of its own, with the newest faiss-cpu in a virtual environment, since two FAISS cannot
live in one process. Codes, queries and k are those of bench_hamming.
"""

import json
import time

import faiss
import numpy as np

N, NQ = 500_000, 200


def main():
    faiss.omp_set_num_threads(1)
    times = {}
    for bits in (64, 128, 256, 512, 1024):
        rng = np.random.default_rng(bits)
        codes = rng.integers(0, 256, (N, bits // 8), dtype=np.uint8)
        queries = rng.integers(0, 256, (NQ, bits // 8), dtype=np.uint8)
        index = faiss.IndexBinaryFlat(bits)
        index.add(codes)
        for k in (10, 1000, 10000):
            nq = NQ if k == 10 else NQ // 10
            best = 1e30
            for _ in range(5):
                start = time.perf_counter()
                index.search(queries[:nq], k)
                best = min(best, time.perf_counter() - start)
            times[f"{bits}/{k}"] = best * 1e9 / (N * nq)
    print(json.dumps({"version": faiss.__version__, "options": faiss.get_compile_options(), "ns": times}))


if __name__ == "__main__":
    main()
