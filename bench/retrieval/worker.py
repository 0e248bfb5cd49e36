# SPDX-License-Identifier: MIT
"""A process that builds an index, searches it, maps vectors or re-ranks candidates; run by run.py, also in peers' Pythons.

    PYTHON worker.py JOB.json

The job says what to do (`task`), with which files; the answer is written to the file that it names as `answer`. Arrays go
from process to process as .npy files.
"""

import json
import os
import sys
import time

import numpy as np
from libraries import LIBRARIES
from neighbours import Truth
from timing import revisit, seconds_of, single_rows, sweep, timed


def build(job):
    """Builds a contender's index from the base vectors and writes it to a file."""
    base = np.load(job["base"], mmap_mode="r")
    library = LIBRARIES[job["contender"]["library"]](job["contender"], job["threads"])
    if job["contender"].get("compiled"):  # by numba, at the first use
        LIBRARIES[job["contender"]["library"]](job["contender"], job["threads"]).build(base[:500])
    base = np.array(base)  # reading is not building
    seconds, _ = timed(lambda: library.build(base), job["threads"])
    library.save(job["index"])
    return {"build_s": seconds}


def search(job):
    """Searches an index over its grid, or with given settings (of effort and factor, for each k).

    The answer has the points; labels of each are in a file beside it.
    """
    contender = job["contender"]
    queries = queries_of(job)
    truth = Truth.load(job["truth"]).first(len(queries))
    library = LIBRARIES[contender["library"]](contender, job["threads"])
    library.load(job["index"], np.load(job["base"], mmap_mode="r"))
    library.configure(contender["efforts"][0], contender["factors"][0])
    library.search(queries[:50], 10)  # what is compiled is compiled then
    library.search(queries[:1], 10)
    points = []

    def visit(labels, point):
        path = f"{job['answer']}_{len(points)}.npy"
        np.save(path, labels)
        points.append({**point, "labels": path})

    wall, cpu = time.perf_counter(), time.process_time()
    for k in job["ks"]:
        if job["once"]:
            revisit(library, contender, queries, k, job["settings"].get(str(k), []), visit, job["threads"])
        else:
            sweep(library, contender, queries, truth, k, job["slowest"].get(str(k), float("inf")), visit, job["threads"])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"points": points, "cores": cpu / max(wall, 1e-9)}


def queries_of(job):
    return np.array(np.load(job["queries"], mmap_mode="r")[: job["count"]])


def map_queries(job):
    """Times the map in front of an index; or the map and the PCA, by a search among one vector."""
    import faiss
    import faiss_ext  # noqa: F401

    faiss.omp_set_num_threads(job["threads"])
    index = faiss.read_index(job["map"])
    queries = queries_of(job)
    if index.ntotal:
        distances, labels = np.empty((len(queries), 1), np.float32), np.empty((len(queries), 1), np.int64)

        def mapped(n, x, d, i):
            index.search_c(n, x, 1, d, i)

        batch, single = seconds_of_c_calls(job, mapped, queries, distances, labels)
    else:
        transform = index.chain.at(0)
        out = np.empty((len(queries), transform.d_out), np.float32)
        batch, single = seconds_of_c_calls(job, transform.apply_noalloc, queries, out)
    return {"batch_s": batch, "single_s": single}


def rerank(job):
    """Times how the exact kernel ranks peers' candidates; each point gets the time and its final recall.

    What sorts the distances is not timed.
    """
    import faiss
    import faiss_ext  # noqa: F401

    faiss.omp_set_num_threads(job["threads"])
    exact = faiss.read_index(job["exact"])
    queries = queries_of(job)
    truth = Truth.load(job["truth"]).first(len(queries))
    for point in job["points"]:
        labels = np.ascontiguousarray(np.load(point["labels"]), np.int64)
        width = labels.shape[1]
        distances = np.empty(labels.shape, np.float32)

        def compare(n, x, d, i, width=width):
            exact._compute_distance_subset_c(n, x, width, d, i)

        point["rerank_batch_s"], point["rerank_single_s"] = seconds_of_c_calls(
            job, compare, queries, distances, labels)
        distances[labels < 0] = np.inf
        order = np.argsort(distances, axis=1, kind="stable")[:, : point["k"]]
        point["labels"] = np.take_along_axis(labels, order, axis=1)
        recalls(point, truth)
    return {"points": job["points"]}


def rate(job):
    """The recall of points that need no re-ranking."""
    truth = Truth.load(job["truth"]).first(job["count"])
    for point in job["points"]:
        point["labels"] = np.load(point["labels"])
        recalls(point, truth)
    return {"points": job["points"]}


def recalls(point, truth):
    labels = point.pop("labels")
    for r in (10, 100):
        if r <= point["k"]:
            point[f"recall_at_{r}"] = truth.recall(labels[:, :r], r)


def seconds_of_c_calls(job, function, *arrays):
    """Seconds for a row of a C++ function of (n, pointers): of all rows, and one row at a time; without NumPy's checks."""
    import faiss

    n, threads, once = len(arrays[0]), job["threads"], job["once"]
    whole = [faiss.swig_ptr(a) for a in arrays]
    rows = [[faiss.swig_ptr(a[i : i + 1]) for a in arrays] for i in single_rows(n, once)]

    def one_by_one():
        for pointers in rows:
            function(1, *pointers)

    batch = seconds_of(lambda: function(n, *whole), threads, once)
    return batch / n, seconds_of(one_by_one, threads, once) / len(rows)


def walk(job):
    """Writes to memory again and again, as another program would that uses the cache, as long as its parent runs."""
    memory, parent = np.zeros(job["bytes"], np.uint8), os.getppid()
    while os.getppid() == parent:
        memory[::64] += 1


TASKS = {f.__name__: f for f in (build, search, map_queries, rerank, rate, walk)}


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    answer = TASKS[job["task"]](job)
    with open(job["answer"], "w") as file:
        json.dump(answer, file)
    sys.stdout.flush()
    os._exit(0)  # what libraries leave running does not count


if __name__ == "__main__":
    main()
