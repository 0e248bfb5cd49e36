# SPDX-License-Identifier: MIT
"""One set under one kernel: what contenders are given, and the processes that build, search and re-rank."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import contenders
import faiss
import faiss_ext  # noqa: F401 (extends FAISS's factory)
import neighbours
import numpy as np
from report import code

HERE = Path(__file__).resolve().parent
VERSION = "import {0}, importlib.metadata as m; print(m.version('{1}'))"
PEER_PACKAGES = {  # and code that prints the version, or fails
    "faiss-cpu": ("faiss", VERSION),
    **{name: (name, VERSION) for name in ("hnswlib", "usearch", "pynndescent", "nmslib", "numba", "rabitqlib")},
    "scann-core": ("scann", VERSION),
    "glass": ("glass", "import glass, importlib.metadata as m; print(m.version(m.packages_distributions()['glass'][0]))"),
    "FLANN": ("flann", "import ctypes.util as u; name = u.find_library('flann'); print(name) if name else exit('no libflann')"),
}
DEPTH = 100  # exact neighbours that are looked for
EXACT_U8 = 1e-5  # relative: what u8 rounds where it is exact


def all_threads():
    return len(os.sched_getaffinity(0))


def environment(threads, is_ours):
    """That of a worker, with every library's number of threads in it."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    env = {**os.environ, **dict.fromkeys(names, str(threads)), "OMP_WAIT_POLICY": "passive"}
    if not is_ours:
        env.pop("PYTHONPATH", None)
    elif "avx512f" in Path("/proc/cpuinfo").read_text():
        env["OPENBLAS_CORETYPE"] = "SkylakeX"  # OpenBLAS 0.3.21 does not know newer processors
    return env


def packages(python, notes):
    """Versions of the peers' packages, and the names of those that the peers' Python does not have."""
    versions = {"FAISS linked": faiss.__version__}
    if not python:
        notes.append("No peers: `--peers` names no interpreter.")
        return versions, set()
    missing = set()
    for package, (module, version) in PEER_PACKAGES.items():
        command = [python, "-c", version.format(module, package)]
        result = subprocess.run(command, env=environment(1, False), capture_output=True, text=True)
        if result.returncode == 0:
            versions[package] = result.stdout.split()[-1]
        else:
            missing.add(module)
            reason = (result.stderr.strip().splitlines() or ["no message"])[-1]
            notes.append(f"{package} is left out: the peers' Python does not have it ({reason}).")
    return versions, missing


def last_exception(lines):
    """The message at the end of a traceback, which may have several lines; else the last line."""
    begins = [i for i, line in enumerate(lines) if re.match(r"[A-Za-z_.]*(Error|Exception)\b", line)]
    text = " ".join(line.strip() for line in lines[begins[-1] if begins else -1:])
    return text if len(text) <= 300 else text[:300] + " ..."


class WorkerError(Exception):
    """A worker that did not end well; the message is its last exception."""


class Built(NamedTuple):
    index: Path
    seconds: float
    size: int  # of all files


class Experiment:
    """Files for the contenders in `folder`: base vectors and queries, their maps, exact neighbours, the exact index."""

    def __init__(self, args, data, kernel, folder, notes):
        self.args, self.data, self.folder, self.notes = args, data, folder, notes
        faiss.omp_set_num_threads(all_threads())
        self.kernel = self._with_bandwidth(kernel)
        self.truth = neighbours.exact(self.kernel, data.base, data.queries, DEPTH, args.cache)
        self._save("vectors", data.base, data.queries)
        self.store = self._compact_store()
        self._write_exact_index()
        self.map_s = {}
        self._write_map(contenders.explicit_map(self.kernel))
        for p in contenders.pca_dims(self.map_dims):
            self._write_pca(p)
        self.slowest = {}
        self.built = {}
        self.jobs = 0
        self.settings = None  # while grids are searched

    def build(self, contender):
        """Builds a contender's index, which later searches find in its folder; whether it did not fail."""
        folder = Path(tempfile.mkdtemp(prefix="built", dir=self.folder))
        try:
            answer = self._work(
                "build", contender, all_threads(), base=self._file(contender, "base"), index=str(folder / "index"))
        except WorkerError as error:
            shutil.rmtree(folder)
            self._note(contender, f"failed: {error}")
            return False
        size = sum(path.stat().st_size for path in folder.iterdir())
        if not contender["ranks_itself"]:
            size += (self.folder / "exact").stat().st_size
        self.built[contender["name"]] = Built(folder / "index", answer["build_s"], size)
        return True

    @contextlib.contextmanager
    def busy_cache(self, megabytes):
        """Has another process write to so much memory all the while."""
        if not megabytes:
            yield
            return
        job = self.folder / "walk.json"
        job.write_text(json.dumps({"task": "walk", "bytes": megabytes << 20, "answer": os.devnull}))
        walker = subprocess.Popen([sys.executable, str(HERE / "worker.py"), str(job)], env=environment(1, True))
        try:
            yield
        finally:
            walker.kill()
            walker.wait()

    def revisit(self, contender, rows):
        """New rows of a contender for the settings of these: every query once, in a batch and alone."""
        self.settings = {}
        for row in rows:
            self.settings.setdefault(str(row["k"]), []).append((row["effort"], row["factor"]))
        try:
            return self.search(contender)
        finally:
            self.settings = None

    def search(self, contender):
        """Rows of all points of a contender that was built; none, and a note, where it fails."""
        built = self.built[contender["name"]]
        rows = []
        try:
            for threads in self.args.threads:
                for point in self._points(contender, threads, built.index):
                    rows.append(self._row(contender, threads, point, built))
            if not rows:
                self._note(contender, "no setting finds enough in less than twice the time of the exact scan")
        except WorkerError as error:
            self._note(contender, f"failed: {error}")
        for path in self.folder.glob("job*"):
            path.unlink()
        return rows

    def _note(self, contender, text):
        note = f"{self.data.name}, {self.kernel}, {code(contender['name'])}: {text}."
        if note not in self.notes:
            self.notes.append(note)

    # ------------------------------------------------------------ what contenders are given

    def _with_bandwidth(self, kernel):
        """The kernel with the bandwidth that the data set, where it was left to them."""
        index = faiss.index_factory(self.data.d, f"KFlat({kernel})")
        index.train(self.data.base)
        if hasattr(index.kernel, "gamma") and "gamma=" not in kernel:
            name, _, rest = kernel.partition("(")
            return f"{name}({rest.rstrip(')') + ',' if rest else ''}gamma={index.kernel.gamma:.6g})"
        return kernel

    def _compact_store(self):
        """u8 where it loses nothing but a float's last bits, else f16: what both sides re-rank with."""
        index = faiss.index_factory(self.data.d, f"KFlat({self.kernel},store=u8)")
        sample = self.data.base[:1000]
        if (sample < 0).any():
            return "f16"
        index.add(sample)
        error = np.abs(index.reconstruct_n(0, len(sample)) - sample).max(axis=1)
        return "u8" if (error <= EXACT_U8 * sample.max(axis=1)).all() else "f16"

    def _write_exact_index(self):
        index = faiss.index_factory(self.data.d, f"KFlat({self.kernel},store={self.store})")
        index.train(self.data.base)
        index.add(self.data.base)
        faiss.write_index(index, str(self.folder / "exact"))

    def _write_map(self, string):
        self.has_map = bool(string)
        self.map_dims = self.data.d
        if self.has_map:
            index = faiss.index_factory(self.data.d, f"{string},Flat")
            transform = index.chain.at(0)
            self.map_dims = transform.d_out
            self._save("map", transform.apply(self.data.base), transform.apply(self.data.queries))
            faiss.write_index(index, str(self.folder / "map"))

    def _write_pca(self, p):
        """Reduces what peers get to p dimensions, by our PCA of the map or of the vectors.

        The index has one vector: the time of its search is the time of the map and the PCA.
        """
        front = contenders.explicit_map(self.kernel) + "," if self.has_map else ""
        index = faiss.index_factory(self.data.d, f"{front}PCAR{p},Flat")
        index.train(self.data.base)
        reduced = []
        for x in (self.data.base, self.data.queries):
            index.reset()
            index.add(x)
            reduced.append(faiss.downcast_index(index.index).reconstruct_n(0, len(x)))
        self._save(f"pca{p}", *reduced)
        index.reset()
        index.add(self.data.base[:1])
        faiss.write_index(index, str(self.folder / f"pca{p}"))

    def _save(self, kind, base, queries):
        np.save(self.folder / f"{kind}_base.npy", base)
        np.save(self.folder / f"{kind}_queries.npy", queries)

    def _file(self, contender, part):
        kind = "vectors" if contender["input"] == "map" and not self.has_map else contender["input"]
        return str(self.folder / f"{kind}_{part}.npy")

    # ------------------------------------------------------------ processes

    def _work(self, task, contender, threads, **job):
        """The answer of a worker process: the peers' Python for peers, this one for all that is ours."""
        is_ours = contender is None or contender["side"] == "ours"
        self.jobs += 1
        name, answer = (self.folder / f"job{self.jobs}{suffix}" for suffix in (".json", "_answer"))
        job |= {
            "task": task, "contender": contender, "threads": threads, "answer": str(answer), "settings": self.settings,
            "once": self.settings is not None,
            "count": self.args.queries if self.settings is None else len(self.data.queries)}
        name.write_text(json.dumps(job))
        python = sys.executable if is_ours else self.args.peers
        try:
            result = subprocess.run(
                [python, str(HERE / "worker.py"), str(name)], env=environment(threads, is_ours),
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=self.args.limit_s)
        except subprocess.TimeoutExpired:
            raise WorkerError(f"{task} took more than {self.args.limit_s:.0f} s") from None
        if result.returncode:
            said = result.stderr.strip().splitlines() or [f"exit status {result.returncode}"]
            raise WorkerError(f"{task}: {last_exception(said)}")
        return json.loads(answer.read_text())

    def _points(self, contender, threads, index):
        """The points of a contender's sweep, with times of the map and of re-ranking, and recall."""
        found = self._work(
            "search", contender, threads, index=str(index), base=self._file(contender, "base"),
            queries=self._file(contender, "queries"), truth=str(self.truth), ks=self.args.k,
            slowest=self.slowest.get(threads, {}))
        if found["cores"] > threads + 0.2:
            self._note(contender, f"kept {found['cores']:.1f} cores busy where it was given {threads}")
        task = "rate" if contender["ranks_itself"] else "rerank"
        points = self._work(
            task, None, threads, points=found["points"], truth=str(self.truth), exact=str(self.folder / "exact"),
            queries=str(self.folder / "vectors_queries.npy"))["points"]
        if contender["family"] == "KFlat" and self.settings is None:
            self.slowest[threads] = {str(point["k"]): point["batch_s"] for point in points}
        for point in points:
            point["cores"] = found["cores"]
            point["map_batch_s"], point["map_single_s"] = self._map_seconds(contender, threads)
        return points

    def _map_seconds(self, contender, threads):
        """Seconds for a query, in a batch and alone, that the map takes which the contender is given."""
        kind = contender["input"]
        if kind == "vectors" or kind == "map" and not self.has_map:
            return 0.0, 0.0
        if (kind, threads) not in self.map_s:
            answer = self._work(
                "map_queries", None, threads, map=str(self.folder / kind),
                queries=str(self.folder / "vectors_queries.npy"))
            self.map_s[kind, threads] = answer["batch_s"], answer["single_s"]
        return self.map_s[kind, threads]

    def _row(self, contender, threads, point, built):
        parts = {way: [point.get(f"{part}{way}_s", 0.0) for part in ("", "map_", "rerank_")] for way in ("batch", "single")}
        settings = []
        if contender["parameter"]:
            settings.append(f"{contender['parameter']}={point['effort']}")
        if not contender["ranks_itself"]:
            settings.append(f"candidates={round(point['k'] * point['factor'])}")
        elif len(contender["factors"]) > 1:
            settings.append(f"k_factor={point['factor']}")
        return {
            "set": self.data.name, "kernel": self.kernel, "n": len(self.data.base), "d": self.data.d,
            **{key: contender[key] for key in ("side", "library", "family")}, "contender": contender["name"],
            "setting": ", ".join(settings), "effort": point["effort"], "factor": point["factor"], "k": point["k"],
            "threads": threads, "cores_busy": point["cores"],
            "recall_at_10": point["recall_at_10"], "recall_at_100": point.get("recall_at_100", ""),
            "batch_queries_per_s": 1 / sum(parts["batch"]), "single_queries_per_s": 1 / sum(parts["single"]),
            "build_s": built.seconds, "bytes_per_vector": built.size / len(self.data.base),
            **{f"{part}_{way}_us": 1e6 * seconds for way in parts
               for part, seconds in zip(("search", "map", "rerank"), parts[way])},
        }
