# SPDX-License-Identifier: MIT
"""One step of run.py, in a process of its own: builds an index of a file, or searches one.

    PYTHON worker.py JOB.json

The job says what to do (`task`) and with which files; the answer is printed as JSON.
"""

import json
import os
import sys
import time

import faiss
import faiss_ext
import numpy as np
from faiss_ext import timing

K = 10


def anonymous_mb():
    """Memory that is this process's own, without mapped files."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:")) / 1024


def truth(job):
    """The exact neighbours of the queries, in the file."""
    index = faiss_ext.file_index(job["base"], job["kernel"])
    np.save(job["answer"], index.search(np.load(job["queries"]), K)[1])
    return {}


def build(job):
    start = time.perf_counter()
    index = faiss_ext.build_from(
        job["base"], job["string"], job["memory"], job["output"], exact=job["exact"], train=job["train"], progress=False)
    seconds = time.perf_counter() - start
    return {"n": index.ntotal, "seconds": seconds, "bytes": os.path.getsize(job["output"])}


def recall(found, expected):
    return float(np.mean([len(set(a) & set(b)) / K for a, b in zip(found.tolist(), expected.tolist())]))


def drop(*paths):
    """Has the system forget what it keeps of files."""
    for path in paths:
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def opened(job):
    """An index, or the shards of one, with the seconds that opening it took."""
    start = time.perf_counter()
    if job.get("folder"):
        index = faiss_ext.open_shards(job["folder"])
    else:
        index = faiss.read_index(job["index"], faiss.IO_FLAG_MMAP if job.get("mapped") else 0)
    return index, time.perf_counter() - start


def set_all(index, parameters):
    for name, value in parameters.items():
        if isinstance(index, faiss_ext.ShardedIndex):
            index.set_parameter(name, value)
        else:
            faiss_ext.set_index_parameter(index, name, value)


def searching(index, queries, parameters=None):
    """A timing.Timer of a search in a batch. (By the clock: shards may be in other processes, and files on disk.)"""

    def search():
        set_all(index, parameters or {})
        return index.search(queries, K)

    return timing.Timer(search, os.cpu_count())


def rate(index, queries):
    """Queries a second in a batch; the best of a few."""
    timer = searching(index, queries)
    timing.take_turns([timer])
    return len(queries) / timer.least


def first_rate(index, queries):
    """The same of one search, while files are read."""
    start = time.perf_counter()
    index.search(queries, K)
    return len(queries) / (time.perf_counter() - start)


def single_ms(index, queries):
    """Milliseconds of single queries: the median, and the one that 95 % do not exceed."""
    times = []
    for i in range(len(queries)):
        start = time.perf_counter()
        index.search(queries[i : i + 1], K)
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times)), float(np.quantile(times, 0.95))


def tune(job):
    """The fastest of some settings with enough recall, or else the one that finds most."""
    index, _ = opened(job)
    queries, expected = np.load(job["queries"]), np.load(job["truth"])
    timers = [searching(index, queries, parameters) for parameters in job["settings"]]
    recalls = [recall(timer.call()[1], expected) for timer in timers]
    timing.take_turns(timers)
    found = [(share, 1 / timer.least, parameters)
             for share, timer, parameters in zip(recalls, timers, job["settings"])]
    good = [f for f in found if f[0] >= job["recall"]]
    best = max(good, key=lambda f: f[1]) if good else max(found, key=lambda f: f[:2])
    return {"recall": best[0], "parameters": best[2]}


def search(job):
    """With the files in memory (warm), and at first use (cold)."""
    queries, expected = np.load(job["queries"]), np.load(job["truth"])
    before = anonymous_mb()
    drop(*job["drop"])
    index, seconds = opened(job)
    set_all(index, job["parameters"])
    answer = {"open_s": seconds, "memory_mb": anonymous_mb() - before}
    if job["drop"]:
        drop(*job["drop"])
        half = min(200, len(queries) // 2)
        answer["cold_single_ms"], answer["cold_single_95_ms"] = single_ms(index, queries[:half])
        drop(*job["drop"])
        answer["cold_rate"] = first_rate(index, queries)
    answer["rate"] = rate(index, queries)
    answer["recall"] = recall(index.search(queries, K)[1], expected)
    faiss.omp_set_num_threads(1)
    answer["rate_1"] = rate(index, queries)
    answer["single_ms"], answer["single_95_ms"] = single_ms(index, queries[:200])
    answer["memory_after_mb"] = anonymous_mb() - before
    return answer


def main(path):
    with open(path, encoding="utf-8") as file:
        job = json.load(file)
    if job.get("threads"):
        faiss.omp_set_num_threads(job["threads"])
    print(json.dumps(globals()[job["task"]](job)))


if __name__ == "__main__":
    main(sys.argv[1])
