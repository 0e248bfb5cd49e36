# SPDX-License-Identifier: MIT
"""Times the Hamming scan of whatever FAISS this Python has, on one thread; prints JSON.

Run by run_all.py in a process of its own, with the newest faiss-cpu in a virtual environment, since two FAISS cannot
live in one process. Codes, queries and k are those of bench_hamming.
"""

import json
import sys
from pathlib import Path

import faiss
import numpy as np

# faiss_ext is for another FAISS; its module of times needs none
sys.path.append(str(Path(__file__).resolve().parents[1] / "python_bindings" / "faiss_ext"))
import timing  # noqa: E402

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
            best = timing.least(lambda index=index, few=queries[:nq], k=k: index.search(few, k), 1)
            times[f"{bits}/{k}"] = best * 1e9 / (N * nq)
    print(json.dumps({"version": faiss.__version__, "options": faiss.get_compile_options(), "ns": times}))


if __name__ == "__main__":
    main()
