# SPDX-License-Identifier: MIT
"""Recommends an index by measuring candidates on the caller's vectors."""

import contextlib
import dataclasses
import functools
import math
import numbers
import operator
import os
from typing import Any, Callable, NamedTuple

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .arguments import (
    as_any_codes, as_array, as_codes, as_float32, as_packed, as_vectors,
    number_of_bits, python_number)
from .errors import renumbering
from .out_of_core import located
from .parameters import ParameterSpace, index_parameters, set_index_parameter
from .progress import bar
from .sources import drawn
from .sparse_arrays import as_csr, is_sparse, place_of
from .timing import Timer, are_apart, is_loaded, take_turns, timed

SMALL = 2000  # with fewer vectors, only the exact scan is considered
TRAINING = 20_000  # sparse vectors that train a kernel, at most
GROWTH = 4  # ratio of the two sizes that are measured
REPEATED_S = 0.05  # a search is repeated for this long
SINGLE = 50  # queries that are searched for one by one, at most


# ------------------------------------------------------------ candidates

class Candidate(NamedTuple):
    """An index to try."""

    string: str
    make: Callable  # makes the index, given the dimension
    # a function of the dimension, if a file cannot tell the size
    bytes_per_vector: Any = None


def made_of(string, d):
    return faiss.index_factory(d, string)


def of_string(string):
    return Candidate(string, functools.partial(made_of, string))


def base_class_of(kernel):
    for the_class in (swig.AdditiveKernel, swig.ShiftInvariantKernel,
                      swig.JaccardKernel):
        if isinstance(kernel, the_class):
            return the_class
    return swig.Kernel


def power_of_2(x):
    return 2 ** max(0, round(math.log2(max(x, 1))))


def lists_for(n):
    """The number of inverted lists that suits n vectors."""
    return max(4, power_of_2(n / 200))


def reduced(front, dims):
    """The PCA in front of lists, and the parameters of the lists: one code
    for each of up to 64 components, or for every two of up to 128. The first
    PCA also suits graphs."""
    few, many = min(64, dims), min(128, dims)
    return [(f"{front}PCAR{few}", f"(M={few})"), (f"{front}PCAR{many}", "")]


def landmarks_of(kernel):
    """The map that compares a vector with landmarks."""
    as_they_are = "" if kernel._is_normalized() else ",normalize=0"
    return f"KPCA128({kernel.description()},p=500{as_they_are})"


def codes_of(kernel):
    """The codes for any kernel. The best rank depends on the number of bits and
    the data, so train chooses it."""
    return f"KLSH256({kernel.description()},rank=auto)"


SPARSE = ",store=sparse"


def sparse_candidates(kernel, nlist):
    """The strings for sparse vectors. Without a number of lists, only exact
    search."""
    name = kernel.description()
    rows = f"KFlat({name}{SPARSE})"
    if nlist is None:
        return [of_string(rows)]
    kind = base_class_of(kernel)
    codes = ([f"AHK256({name})", f"AHK512({name})"]
             if kind is swig.AdditiveKernel else
             ["CWS512"] if kind is swig.JaccardKernel else
             ["RHBE512"] if isinstance(kernel, swig.CosineKernel) else
             [f"SIK512({name})"] if kind is swig.ShiftInvariantKernel else
             [codes_of(kernel)])
    found = [rows, f"{landmarks_of(kernel)},KIVF{nlist},Refine({rows})"]
    found += [f"{c},BFlat,Refine({rows})" for c in codes]
    found += [f"{c},BFlat" for c in codes]
    return [of_string(s) for s in found]


def string_candidates(kernel, d, stores, nlist):
    """The strings that docs/choosing.md recommends for a kernel.

    stores are keys of KFlat; the first one is for sparse vectors, or for the
    exact vectors behind other indexes. Without a number of lists, only exact
    search.
    """
    name = kernel.description()
    if stores[0] == SPARSE:
        return sparse_candidates(kernel, nlist)
    found = [f"KFlat({name}{store})" for store in stores]
    rows = found[0]
    again = f",Refine({rows})"
    if nlist is None:
        return [of_string(s) for s in found]
    lists = f"KIVF{nlist}"
    kind = base_class_of(kernel)
    pca = landmarks_of(kernel)
    if kind is swig.AdditiveKernel:
        mapped = made_of(f"HKM1({name}),Flat", d).chain.at(0).d_out
        maps = reduced(f"HKM1({name}),", mapped)
        codes = [f"AHK256({name},center=1)", f"AHK512({name},center=1)"]
        scores = [f"AHK256({name},rot=pca)"] if d >= 86 else []
    elif isinstance(kernel, swig.CosineKernel):
        maps = reduced("L2norm,", d)
        codes = ["RHBE256", "RHBE512"]
        scores = []
    elif isinstance(kernel, swig.LinearKernel):
        maps = reduced("", d)
        codes = [codes_of(kernel)]
        scores = []
    elif isinstance(kernel, swig.GaussianKernel):
        maps = reduced("", d)
        codes = [f"SIK256({name})", f"SIK512({name})"]
        scores = []
    elif kind is swig.ShiftInvariantKernel:
        maps = [(pca, "")]
        codes = [f"SIK256({name})", f"SIK512({name})"]
        scores = []
    else:
        maps = [(pca, "")]
        codes = ["CWS512"] if kind is swig.JaccardKernel else [
            codes_of(kernel)]
        scores = []
    found += [f"{m},{lists}{parts}{again}" for m, parts in maps]
    few, _ = maps[0]
    if few != pca:  # mapping takes longer than a walk
        found.append(f"{few},HNSW16(efConstruction=100),"
                     f"KFlat(linear,store=i8){again}")
    found.append(f"HNSW32,{rows}")
    found += [f"{c},BFlat{again}" for c in codes]
    # codes only, without the exact vectors
    found += [f"{m},{lists}{parts}" for m, parts in maps]
    found += [f"{c},AFlat" for c in scores]
    found += [f"{c},BFlat" for c in codes]
    return [of_string(s) for s in found]


class MakerOfObjects:
    """Makes an index whose kernel has no string."""

    def __init__(self, make):
        self.make = make

    def __call__(self, d):
        return self.make(d)

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(
            "this Recommendation cannot be pickled, because its kernel "
            "contains a Python function; pickle `string`, `parameters` and "
            "the figures")


def callback_candidates(kernel, nlist):
    """Candidates for a kernel that has no string."""

    def flat(d):
        return swig.IndexFlatKernel(d, kernel)

    def graph(d):
        return swig.IndexHNSWKernel(flat(d), 32)

    def lists(d):
        pca = swig.KernelPCA(d, 128, kernel)
        pca.p = 500
        chain = swig.IndexPreTransformSIMD(
            swig.IndexIVFPQ4(128, nlist))
        chain.prepend_transform(pca)
        return swig.IndexRefineKernel(chain, flat(d))

    def codes(d):
        hash = swig.KernelizedLSH(d, 256, kernel)
        hash.map.auto_rank = True
        index = swig.IndexKernelHash(hash, swig.IndexBinaryFlatSIMD(256))
        return swig.IndexRefineKernel(index, flat(d))

    def rows(d):
        return 4 * d

    found = [Candidate("KFlat(kernel)", MakerOfObjects(flat), rows)]
    if nlist is not None:
        found += [
            Candidate(f"KPCA128(kernel,p=500),KIVF{nlist},"
                      "Refine(KFlat(kernel))", MakerOfObjects(lists),
                      lambda d: rows(d) + 44),
            Candidate("HNSW32,KFlat(kernel)", MakerOfObjects(graph),
                      lambda d: rows(d) + 272),
            Candidate("KLSH256(kernel,rank=auto),BFlat,Refine(KFlat(kernel))",
                      MakerOfObjects(codes), lambda d: rows(d) + 32)]
    return found


def made_of_bits(string, unused, size):
    return swig.index_binary_factory(8 * size - unused, string)


def bit_candidates(kernel, nlist, unused):
    """Candidates for packed bits, made from the number of bytes, of which the
    last one has some unused bits."""
    exact = f"BKFlat({kernel.description()})"
    found = [exact]
    if nlist is not None:
        if kernel.is_symmetric() and kernel.is_one_for_equal():
            found.append(f"BHNSW32,{exact}")
        fronts = [f"BIVF{nlist}", "BFlat"]
        if isinstance(kernel, (swig.JaccardBitKernel, swig.DiceBitKernel)):
            fronts += [f"CWS512,BIVF{nlist}", "CWS512,BFlat"]
        found += [f"{front},Refine({exact})" for front in fronts]
    return [Candidate(s, functools.partial(made_of_bits, s, unused))
            for s in found]


# ----------------------------------------------------------- measurement

class Truth:
    """The exact neighbours of queries among vectors.

    The nearest ones by distance, or by kernel value under
    METRIC_INNER_PRODUCT.
    """

    def __init__(self, kernel, x, queries, k, metric=faiss.METRIC_L2):
        self.queries, self.k = queries, min(k, x.shape[0])
        make = swig.IndexSparseKernel if is_sparse(x) else swig.IndexFlatKernel
        self.index = make(x.shape[1], kernel, metric)
        self.index.add(x)
        last = self.index.search_scores(queries, self.k)[0][:, -1:]
        # a vector as near as the k-th counts as found
        self.radius = last + 1e-5 * np.abs(last)

    def recall(self, ids):
        """The fraction of the k nearest neighbours among k results."""
        ids = ids[:, :self.k]
        scores = self.index.compute_score_subset(self.queries, ids)
        return float(((scores <= self.radius) & (ids >= 0)).mean())


class TruthOfBits:
    """The exact neighbours of packed bits."""

    def __init__(self, bits, kernel, codes, queries, k):
        self.queries, self.k = queries, min(k, len(codes))
        self.index = swig.IndexBinaryFlatKernel(bits, kernel)
        self.index.add(codes)
        self.radius = self.index.search(queries, self.k)[0][:, -1:]

    def recall(self, ids):
        """The fraction of the k nearest neighbours among k results."""
        ids = np.ascontiguousarray(ids[:, :self.k])
        distances = np.empty(ids.shape, "int32")
        swig._bit_distances_c(
            self.index, len(ids), faiss.swig_ptr(self.queries), ids.shape[1],
            faiss.swig_ptr(distances), faiss.swig_ptr(ids))
        return float(((distances <= self.radius) & (ids >= 0)).mean())


class RecallCriterion(faiss.IntersectionCriterion):
    def __init__(self, truth):
        super().__init__(truth.queries.shape[0], truth.k)
        self.truth = truth

    def evaluate(self, D, I):
        return self.truth.recall(np.asarray(I).reshape(self.truth.queries.shape[0], -1))


class Built(NamedTuple):
    index: Any
    seconds: float
    learnt_bytes: float  # size of the trained, empty index
    bytes_per_vector: float  # beyond learnt_bytes


def size_of(index):
    serialize = (faiss.serialize_index_binary
                 if isinstance(index, faiss.IndexBinary)
                 else faiss.serialize_index)
    return len(serialize(index))


def build(candidate, x):
    index = candidate.make(x.shape[1])
    by_file = candidate.bytes_per_vector is None
    threads = faiss.omp_get_max_threads()
    seconds, _ = timed(lambda: index.train(x), threads)
    empty = size_of(index) if by_file else 0
    seconds += timed(lambda: index.add(x), threads)[0]
    each = ((size_of(index) - empty) / x.shape[0] if by_file
            else candidate.bytes_per_vector(x.shape[1]))
    return Built(index, seconds, empty, each)


def searching(index, truth):
    """A Timer of one search for all queries."""
    return Timer(lambda: index.search(truth.queries, truth.k),
                 faiss.omp_get_max_threads())


def searching_singly(index, truth):
    """A Timer of searches for one query each."""
    queries = [truth.queries[i:i + 1] for i in range(single_queries(truth))]

    def search():
        for query in queries:
            index.search(query, truth.k)

    return Timer(search, faiss.omp_get_max_threads())


def single_queries(truth):
    return min(SINGLE, truth.queries.shape[0])


def recall_of(index, truth):
    return truth.recall(index.search(truth.queries, truth.k)[1])


def settings_of_key(key):
    settings = {}
    for word in filter(None, key.split(",")):
        name, value = word.split("=")
        number = float(value)
        settings[name] = int(number) if number.is_integer() else number
    return settings


def tuned(index, truth):
    """The best operating points of an index, as (settings, recall), fastest
    first."""
    space = ParameterSpace()
    space.initialize(index)
    space.n_experiments = 40
    space.min_test_duration = REPEATED_S / 5
    space.verbose = 0
    if space.n_combinations() <= 1:
        return [({}, recall_of(index, truth))]
    points = space.explore(index, truth.queries, RecallCriterion(truth))
    best = [points.optimal_pts.at(i) for i in range(points.optimal_pts.size())]
    return [(settings_of_key(p.key), p.perf) for p in best if p.key or p.perf]


def set_all(index, settings):
    for name, value in settings.items():
        set_index_parameter(index, name, value)


def extrapolated(small, large, factor, scans):
    """Extrapolates a cost from two sizes to `factor` times the larger one.

    small and large are the costs at the two sizes, whose ratio is GROWTH. The
    cost of a scan grows along a straight line. Other costs grow as a power of
    the size, with an exponent between 0 and 1.3.
    """
    if scans:
        slope = max(large - small, 0) / (1 - 1 / GROWTH)
        return large + slope * (factor - 1)
    exponent = math.log(max(large, 1e-9) / max(small, 1e-9)) / math.log(GROWTH)
    return large * factor ** min(max(exponent, 0), 1.3)


@dataclasses.dataclass
class Tried:
    """One measured index, at the search parameters that reach the recall.

    Attributes
    ----------
    string : str
        The factory string, for all the vectors.
    parameters : dict
        Search parameters by name, for faiss_ext.set_index_parameter.
    recall : float
        The fraction of the k nearest neighbours that are found.
    queries_per_second : float
        The speed of the fastest of several searches for all queries in a
        batch.
    usual_queries_per_second : float
        The speed that half of these searches reach. It is far lower if other
        programs keep the machine busy.
    single_queries_per_second : float or None
        The speed of searches for one query each, if the index keeps all
        limits. Otherwise it is not measured.
    bytes_per_vector : float
        The size of the index's file per vector, including what was learnt in
        training. If the kernel is a function, the learnt part is unknown and
        not included.
    build_seconds : float
        Time to train and to add all vectors.
    fits : bool
        Whether the index keeps all limits.
    """

    string: str
    parameters: dict
    recall: float
    queries_per_second: float
    usual_queries_per_second: float
    bytes_per_vector: float
    build_seconds: float
    fits: bool
    single_queries_per_second: "float | None" = None


def scans(index):
    """Whether a search visits every vector: no parameter chooses some."""
    return set(index_parameters(index)) <= {"k_factor"}


class Searches:
    """Searches of a contender, which are timed in turns with another one's.

    timers has the search among the sample. If its speed is extrapolated by
    `factor`, the search among the smaller sample follows.
    """

    def __init__(self, timers, queries, scans, factor):
        self.timers, self.queries = timers, queries
        self.scans, self.factor = scans, factor

    def speeds(self):
        """Queries per second among all vectors: of the fastest turn, and of
        the median turn."""
        large = self.timers[0]
        seconds = [large.least, large.middle]
        if len(self.timers) == 2:
            small = self.timers[1].least
            seconds = [extrapolated(small, each, self.factor, self.scans)
                       for each in seconds]
        return [self.queries / each for each in seconds]

    def take_turns(self, rival):
        """Times both in turn until it is clear which one is faster.

        Returns whether other programs disturbed the measurement.
        """
        both = [self] if rival is None else [self, rival]

        def are_clear(timers):
            if rival is None:
                return are_apart(self.timers[:1])
            slower, faster = sorted(each.speeds() for each in both)
            return slower[0] < faster[1]

        timers = [timer for each in both for timer in each.timers]
        take_turns(timers, REPEATED_S, are_clear)
        return any(timer.is_disturbed for timer in timers)


class Contender:
    """A candidate that is built and tuned, and timed in turns with others.

    sample and small are pairs (vectors, truth). candidate is built on sample,
    smaller on small. Without a truth of small, nothing is extrapolated.
    """

    def __init__(self, candidate, smaller, n, sample, small, recall):
        x, truth = sample
        large = build(candidate, x)
        choices = tuned(large.index, truth)
        enough = [c for c in choices if c[1] >= recall] or choices[-1:]
        factor = 1 if small[1] is None else n / x.shape[0]
        is_scan = scans(large.index)
        self.batch = Searches([searching(large.index, truth)],
                              truth.queries.shape[0], is_scan, factor)
        self.single = Searches([searching_singly(large.index, truth)],
                               single_queries(truth), is_scan, factor)
        if factor == 1:
            settings = enough[0][0]
            set_all(large.index, settings)
            found = recall_of(large.index, truth)
            learnt, seconds = large.learnt_bytes, large.seconds
        else:
            fewer = build(smaller, small[0])
            for settings, _ in enough:
                set_all(large.index, settings)
                set_all(fewer.index, settings)
                found = recall_of(large.index, truth)
                loss = recall_of(fewer.index, small[1]) - found
                loss *= math.log(factor) / math.log(GROWTH)
                found = min(max(found - max(loss, 0), 0), 1)
                if found >= recall:
                    break
            self.batch.timers.append(searching(fewer.index, small[1]))
            self.single.timers.append(searching_singly(fewer.index, small[1]))
            # a part of it, such as centroids of lists, may grow with n
            slope = max(0, (large.learnt_bytes - fewer.learnt_bytes)
                        / (x.shape[0] - small[0].shape[0]))
            learnt = large.learnt_bytes + slope * (n - x.shape[0])
            seconds = extrapolated(
                fewer.seconds, large.seconds, factor, is_scan)
        self.tried = Tried(
            candidate.string, settings, found, 0, 0,
            large.bytes_per_vector + learnt / n, seconds, False)

    def take_turns(self, rival):
        """Times batches of both. Returns whether other programs disturbed the
        measurement."""
        disturbed = self.batch.take_turns(rival and rival.batch)
        for each in filter(None, (self, rival)):
            (each.tried.queries_per_second,
             each.tried.usual_queries_per_second) = each.batch.speeds()
        return disturbed

    def take_single_turns(self, rival):
        """Times single queries of both."""
        self.single.take_turns(rival and rival.single)
        for each in filter(None, (self, rival)):
            each.tried.single_queries_per_second = each.single.speeds()[0]


# ---------------------------------------------------------- the advice

def listed(parameters):
    return ", ".join(f"{name}={value:g}" for name, value in parameters.items())


@dataclasses.dataclass
class Recommendation:
    """The result of recommend.

    Attributes
    ----------
    string : str
        The factory string of the fastest index that keeps all limits. If none
        does, the index with the highest recall within the limits of bytes and
        seconds. If none keeps these either, the index that exceeds them least.
    parameters : dict
        Its search parameters by name.
    recall, queries_per_second, usual_queries_per_second : float
        Its recall and speed, as in Tried.
    single_queries_per_second : float or None
        Its speed for one query at a time, as in Tried.
    bytes_per_vector, build_seconds : float
        Its size and build time, as in Tried. All these figures are measured, or
        extrapolated if `extrapolated` is true.
    fits : bool
        Whether it keeps all limits.
    tried : list of Tried
        All measured indexes, the fastest first.
    disturbed : bool
        Whether other programs kept the machine busy. The index may then be
        faster than measured.
    impossible : dict
        Strings that cannot be built from these vectors, and why.
    limits : dict
        The limits that were requested: recall, and bytes_per_vector and
        build_seconds if they were given.
    n : int
        Number of vectors that the index is for, with held-out queries.
    extrapolated : bool
        Whether the figures are extrapolated to more vectors than were
        measured.
    sample_size : int
        Number of vectors that were measured.
    k : int
        Number of neighbours.
    d : int
        Dimension of the vectors, or number of bits.
    packed : bool
        Whether the vectors are packed bits.
    threads : int
        Number of threads that were used; 1 if other programs kept the
        processors busy.
    """

    string: str
    parameters: dict
    recall: float
    queries_per_second: float
    usual_queries_per_second: float
    bytes_per_vector: float
    build_seconds: float
    fits: bool
    tried: "list[Tried]"
    disturbed: bool
    impossible: "dict[str, str]"
    limits: "dict[str, float]"
    n: int
    extrapolated: bool
    sample_size: int
    k: int
    d: int
    threads: int
    make: "Callable[[int], faiss.Index | faiss.IndexBinary]" = dataclasses.field(
        repr=False)
    packed: bool = False
    single_queries_per_second: "float | None" = None

    @property
    def fastest_single(self) -> "Tried | None":
        """The fastest index for one query at a time, with its string and
        parameters, among the indexes within all limits. None if no index keeps
        them."""
        timed = [t for t in self.tried if t.single_queries_per_second]
        return max(timed, key=lambda t: t.single_queries_per_second,
                   default=None)

    @property
    def as_fast(self) -> "list[str]":
        """Other strings within all limits whose measured speeds overlap with
        this one's."""
        return [t.string for t in self.tried
                if t.fits and self.fits and t.string != self.string
                and t.queries_per_second >= self.usual_queries_per_second]

    def build(self, x: "ArrayLike") -> "faiss.Index | faiss.IndexBinary":
        """Builds the recommended index: trains it, adds the vectors, and sets
        its search parameters.

        Parameters
        ----------
        x : array_like, shape (n, d)
            The vectors, or the packed bits.

        Returns
        -------
        faiss.Index or faiss.IndexBinary
        """
        where = "Recommendation.build"
        if self.packed:
            x = as_codes(x, -(-self.d // 8), where)
        elif not is_sparse(x):
            x = as_vectors(x, self.d, where)
        index = self.make(x.shape[1])
        index.train(x)
        index.add(x)
        set_all(index, self.parameters)
        return index

    def _misses(self, tried):
        """The limits that an index does not keep, in words."""
        words = [f"recall below {self.limits['recall']:g}"
                 ] if tried.recall < self.limits["recall"] else []
        words += [
            f"above {self.limits[name]:,g} {unit}" for name, unit in (
                ("bytes_per_vector", "bytes/vector"),
                ("build_seconds", "s to build"))
            if getattr(tried, name) > self.limits.get(name, math.inf)]
        return ", ".join(words)

    def __str__(self) -> str:
        heads = "recall", "queries/s", "one by one", "bytes/vector", "build s"
        lines = [f"{self.string}"]
        if self.parameters:
            lines.append("with " + listed(self.parameters))
        if not self.fits:
            lines.append("(none keeps all limits: this one comes nearest)")
        lines.append("")
        lines.append(" ".join(f"{head:>12}" for head in heads))
        for t in self.tried:
            setting = listed(t.parameters)
            alone = ("" if t.single_queries_per_second is None
                     else f"{t.single_queries_per_second:,.0f}")
            lines.append(
                f"{t.recall:12.3f} {t.queries_per_second:12,.0f} {alone:>12} "
                f"{t.bytes_per_vector:12,.0f} {t.build_seconds:12,.1f}  "
                f"{t.string}{'  ' + setting if setting else ''}"
                f"{'' if t.fits else f'  ({self._misses(t)})'}")
        lines += [f"not possible: {string}: {reason}"
                  for string, reason in self.impossible.items()]
        lines.append("")
        threads = self.threads
        times = self.n / self.sample_size
        lines.append(
            f"Recall of the {min(self.k, self.sample_size)} nearest among "
            f"{self.n if self.extrapolated else self.sample_size:,} vectors, "
            + (f"extrapolated from {self.sample_size // GROWTH:,} and "
               f"{self.sample_size:,}" if self.extrapolated else "measured")
            + (f" (a rough guess, at {times:,.0f} times as many)"
               if times >= 20 else "")
            + f"; {threads} thread{'s' if threads > 1 else ''}, queries in a "
              "batch or one by one.")
        if self.disturbed:
            lines.append(
                "Other programs kept the machine busy: the first index answers "
                f"{self.usual_queries_per_second:,.0f} to "
                f"{self.queries_per_second:,.0f} queries/s."
                + (" Processor time, which is measured with one thread, tells "
                   "more (faiss.omp_set_num_threads(1))."
                   if threads > 1 else ""))
        single = self.fastest_single
        if single is not None and single.string != self.string:
            lines.append(
                f"The fastest for one query at a time is {single.string}"
                f"{' with ' if single.parameters else ''}"
                f"{listed(single.parameters)}: "
                f"{single.single_queries_per_second:,.0f} queries/s instead of "
                f"{self.single_queries_per_second:,.0f}.")
        if self.as_fast:
            lines.append("Too close to tell which is faster: "
                         + "; ".join([self.string, *self.as_fast]))
        return "\n".join(lines)


def as_kernel(kernel):
    """A kernel from a string, a Kernel or a function."""
    if isinstance(kernel, str):
        kernel = swig.kernel_factory(kernel)
    elif callable(kernel) and not isinstance(kernel, swig.Kernel):
        kernel = swig.CallbackKernel(kernel)
    elif not isinstance(kernel, swig.Kernel):
        raise TypeError("the kernel must be a string such as "
                        f"'chi2', a Kernel or a function, got {kernel!r}")
    return kernel


def as_bit_kernel(kernel):
    """A kernel of bits from a string, a BitKernel, or a Kernel with the same
    name."""
    if isinstance(kernel, swig.Kernel):
        kernel = kernel.description()
    if isinstance(kernel, str):
        kernel = swig.bit_kernel_factory(kernel)
    if not isinstance(kernel, swig.BitKernel):
        raise TypeError("with packed=True, the kernel must be a string such as "
                        f"'jaccard', or a BitKernel, got {kernel!r}")
    return kernel


def check_vectors(kernel, x, name, numbers):
    """Raises RuntimeError if the kernel is undefined for a vector, and names
    its number."""
    try:
        if is_sparse(x):  # adding checks them
            checked = kernel if kernel.is_trained else swig.LinearKernel()
            swig.IndexSparseKernel(x.shape[1], checked).add(x)
            return
        kernel._check_vectors_c(
            len(x), faiss.swig_ptr(x), x.shape[1], name)
    except RuntimeError as error:
        # `check` raises the same error with another name
        raise located(
            error, str, numbers, argument=name,
            check=lambda name: check_vectors(kernel, x, name, numbers)
        ) from None


def trained_kernel(kernel, x):
    """A kernel, with its bandwidth learnt from x if it has none yet."""
    kernel = as_kernel(kernel)
    if not kernel.is_trained:
        kernel = kernel.copy()
        if is_sparse(x):
            x = x[drawn(x.shape[0], TRAINING, 1234)]
        kernel.train(x)
    return kernel


def narrowest_store(kernel, truth, x, recall):
    """The `store=` key of KFlat that needs the fewest bytes and still finds
    the neighbours.

    A narrower store qualifies if its recall is at least 0.999 and at least
    `recall`.
    """
    if is_sparse(x):
        return SPARSE
    for store in ("u8", "f16"):
        if store == "u8" and x.min() < 0:
            continue
        index = swig.IndexFlatKernel(
            x.shape[1], kernel, faiss.METRIC_L2, store)
        index.add(x)
        found = recall_of(index, truth)
        if found >= max(0.999, recall):
            return f",store={store}"
    return ""


def stores_for(kernel, truth, x, recall):
    """The `store=` keys of KFlat to try. Vectors that are mostly zeros may be
    searched faster as sparse ones."""
    stores = [narrowest_store(kernel, truth, x, recall)]
    if not is_sparse(x) and 2 * np.count_nonzero(x) <= x.size:
        stores.append(SPARSE)
    return stores


def float_rows(x, numbers):
    """Some rows as float32."""
    rows = x[numbers]
    with renumbering(numbers):
        if not is_sparse(rows):
            return as_float32(rows, "recommend")
        rows.data = as_float32(
            rows.data, "recommend", lambda at: place_of(rows, at))
        return rows


def check_number(name, value, low, none_too=True):
    if value is None and none_too:
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"recommend: {name} must be a number, got {value!r}")
    if not value > low:
        raise ValueError(
            f"recommend: {name} must be above {low}, got {value!r}")


@contextlib.contextmanager
def one_thread_if_busy():
    """Yields the number of threads to measure with.

    All threads, or one if other programs keep the processors busy: processor
    time is then more reliable, and it is only measured with one thread.
    """
    threads = faiss.omp_get_max_threads()
    try:
        if threads > 1 and is_loaded():
            faiss.omp_set_num_threads(1)
        yield faiss.omp_get_max_threads()
    finally:
        faiss.omp_set_num_threads(threads)


def recommend(
    x: "ArrayLike", kernel: "str | Kernel | Callable", recall: float = 0.95, *,
    k: int = 10, queries: "ArrayLike | None" = None, n: "int | None" = None,
    bytes_per_vector: "float | None" = None,
    build_seconds: "float | None" = None, sample_size: int = 20000,
    seed: int = 1234, progress: bool = True,
    packed: "bool | int | None" = None,
) -> Recommendation:
    """Measures which index is the fastest for your vectors and kernel.

    Candidate indexes are built on a sample and tuned to the recall, using
    held-out queries whose exact neighbours are known. If there will be fewer
    than 2,000 vectors, only the exact scan is considered. `print` shows a
    table of all candidates.

    Parameters
    ----------
    x : array_like or sparse array of SciPy, shape (n, d)
        The vectors, or a random sample of them.
    kernel : str, Kernel or function
        A string such as "chi2", a kernel, or a function f(X, Y) as for
        CallbackKernel. If the kernel has no bandwidth, it is learnt from the
        sample and becomes part of the string. With `packed=True`, a kernel of
        bits.
    recall : float
        The fraction of the k nearest neighbours to be found, at most 1.
    k : int
        Number of neighbours. If there are fewer vectors, all of them.
    queries : array_like, shape (nq, d), optional
        Queries. By default up to 200 of the vectors, which are held out.
    n : int, optional
        Number of vectors that the index will hold. By default, and at least,
        the number of vectors in x.
    bytes_per_vector : float, optional
        Limit of the size of the index.
    build_seconds : float, optional
        Limit of the time to train and to add all vectors.
    sample_size : int
        Largest number of vectors to measure. If there are more vectors than
        that, the sample must have at least 40 k.
    seed : int
        Seed of the sample.
    progress : bool
        Whether to show a progress bar on stderr.
    packed : bool or int, optional
        Whether the rows of x and queries are packed bits, as `numpy.packbits`
        gives; or their number of bits. It must be given for arrays of uint8
        under jaccard and dice. Other bytes are numbers by default.

    Returns
    -------
    Recommendation

    Notes
    -----
    If there will be more vectors than the sample has, each index is also built
    on a quarter of the sample, and its figures are extrapolated from the two
    sizes: times of scans along a straight line, times of lists and graphs as
    powers of the number of vectors, and recall by its loss from one size to
    the next. The figures are rough if there are many times as many vectors; a
    larger `sample_size` helps.

    Each candidate is timed in turns with the fastest one before it, until it
    is clear which is faster. The fastest turn of each counts. With one thread,
    processor time is measured, so other programs hardly matter. If other
    programs keep the processors busy, only one thread is used.

    Queries are searched for in a batch. Indexes that keep all limits are also
    timed with one query at a time; `fastest_single` is the fastest one then.

    Examples
    --------
    >>> found = recommend(xb, "chi2", recall=0.95)
    >>> print(found)
    >>> index = found.build(xb)
    """
    if isinstance(x, (str, os.PathLike)):
        raise TypeError("recommend: expected an array, got a file name: faiss_ext."
                        "vector_files.read_vectors reads the vectors of a file")
    packed = as_packed(packed, x, kernel, "recommend")
    x = (as_any_codes(x, "recommend: x") if packed
         else as_csr(x, x.shape[-1], "recommend") if is_sparse(x)
         else as_array(x, "recommend"))
    if len(x.shape) != 2 or x.shape[0] < 2:
        raise ValueError("recommend: expected at least 2 vectors in an array "
                         f"of shape (n, d), got shape {x.shape}")
    # sums of NumPy's small integers would wrap
    recall, k, n, bytes_per_vector, build_seconds, sample_size, seed = map(
        python_number, (recall, k, n, bytes_per_vector, build_seconds,
                        sample_size, seed))
    check_number("recall", recall, 0, False)
    if recall > 1:
        raise ValueError(f"recommend: recall must be at most 1, got {recall}")
    check_number("bytes_per_vector", bytes_per_vector, 0)
    check_number("build_seconds", build_seconds, 0)
    if x.dtype.kind not in "fiub":
        raise TypeError("recommend: expected an array of real numbers, got "
                        f"{x.dtype}")
    for name, value in (("k", k), ("sample_size", sample_size), ("n", n)):
        if name == "n" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise TypeError(f"recommend: {name} must be an integer, got "
                            f"{value!r}")
        check_number(name, value, 0)
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or (
            seed < 0):
        raise ValueError("recommend: seed must be an integer from 0, got "
                         f"{seed!r}")
    rows_of = operator.getitem if packed else float_rows
    order = np.random.default_rng(seed).permutation(x.shape[0])
    if queries is None:
        held_out = min(200, max(1, x.shape[0] // 10))
        of_queries, order = np.sort(order[:held_out]), order[held_out:]
        queries = rows_of(x, of_queries)
    else:
        if packed:
            queries = as_codes(queries, x.shape[1], "recommend: queries")
        elif not is_sparse(queries) or not is_sparse(x):
            queries = as_vectors(queries, x.shape[1], "recommend: queries")
        if queries.shape[0] == 0:
            raise ValueError("recommend: no queries were given")
        of_queries = None
    if n is not None and n < x.shape[0]:
        raise ValueError(f"recommend: n is {n}, expected at least {x.shape[0]} "
                         "(the number of vectors)")
    n = int(n or x.shape[0])
    # (the held-out vectors, at most a tenth, need no extrapolation)
    is_measured = n == x.shape[0] and len(order) <= sample_size
    order = order[:sample_size]
    if not is_measured and len(order) < 40 * k:
        held_out = len(of_queries) if of_queries is not None else 0
        raise ValueError(
            f"recommend: the sample has {len(order)} vectors, expected at "
            f"least 40 k = {40 * k} to extrapolate to {n} (sample_size is "
            f"{sample_size}, and {held_out} of {x.shape[0]} vectors are "
            "queries)")
    whole = rows_of(x, np.sort(order))
    part = rows_of(x, np.sort(order[:max(1, len(order) // GROWTH)]))
    d = x.shape[1]
    if packed:
        d = number_of_bits(packed, x.shape[1], "recommend")
        kernel = as_bit_kernel(kernel)
        truth_of = functools.partial(TruthOfBits, d)
    else:
        kernel, truth_of = as_kernel(kernel), Truth
        check_vectors(kernel, whole, "recommend", np.sort(order))
        check_vectors(kernel, queries, *(
            ("recommend", of_queries) if of_queries is not None
            else ("queries", range(queries.shape[0]))))
        kernel = trained_kernel(kernel, whole)
    truth = truth_of(kernel, whole, queries, k)
    few = None if is_measured else truth_of(kernel, part, queries, k)
    stores = None
    if not packed:
        with contextlib.suppress(RuntimeError):
            swig.kernel_factory(kernel.description())
            stores = stores_for(kernel, truth, whole, recall)

    def candidates(size):
        nlist = lists_for(size) if n >= SMALL else None
        if packed:
            return bit_candidates(kernel, nlist, 8 * x.shape[1] - d)
        if stores is None:
            return callback_candidates(kernel, nlist)
        return string_candidates(kernel, d, stores, nlist)

    costs = {name: limit for name, limit in (
        ("bytes_per_vector", bytes_per_vector),
        ("build_seconds", build_seconds)) if limit is not None}

    def excess(found):
        """Returns the factor by which it exceeds the limits of bytes and seconds;
        1 if it keeps them."""
        return max([1] + [getattr(found, name) / limit
                          for name, limit in costs.items()])

    tried, impossible = [], {}
    # the fastest ones that fit so far, for batches and for single queries
    rival, single_rival, disturbed = None, None, False
    sizes = n if is_measured else whole.shape[0], part.shape[0], n
    with (one_thread_if_busy() as threads, contextlib.closing(bar(
            list(zip(*map(candidates, sizes))), "recommend", progress)) as todo):
        for candidate, smaller, final in todo:
            try:
                contender = Contender(
                    candidate, smaller, n, (whole, truth), (part, few), recall)
                disturbed |= contender.take_turns(rival)
            except RuntimeError as error:
                if getattr(error, "interrupted", False):
                    raise
                impossible[final.string] = str(error).rstrip()
                continue
            found = contender.tried
            found.string = final.string
            found.fits = found.recall >= recall and excess(found) == 1
            tried.append((found, final))
            if found.fits and (rival is None or found.queries_per_second
                               > rival.tried.queries_per_second):
                rival = contender
            if found.fits:
                contender.take_single_turns(single_rival)
                if single_rival is None or (
                        found.single_queries_per_second
                        > single_rival.tried.single_queries_per_second):
                    single_rival = contender
    tried.sort(key=lambda pair: -pair[0].queries_per_second)
    good = [pair for pair in tried if pair[0].fits]
    best, final = good[0] if good else min(
        tried, key=lambda pair: (excess(pair[0]), -pair[0].recall))
    return Recommendation(
        **dataclasses.asdict(best), tried=[pair[0] for pair in tried],
        disturbed=disturbed, impossible=impossible,
        limits={"recall": recall, **costs}, n=n, extrapolated=not is_measured,
        sample_size=whole.shape[0], k=k, d=d, threads=threads,
        packed=bool(packed), make=final.make)
