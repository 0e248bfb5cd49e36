# SPDX-License-Identifier: MIT
"""Sharded indexes: one index in several pieces, in this process, on a cluster
or in a folder.

All shards have the same trained model, and hold consecutive vectors. A search
asks every shard and merges the answers.
"""

import bisect
import threading

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .arguments import (
    as_asked, as_codes, as_integer, as_k, as_selected, as_vectors,
    checked_packed, python_number)
from .class_wrappers import index_radius, unpacked
from .distances import transformed, values_of_ids
from .errors import renumbering, unsupported
from .files import size_of
from .filters import allowed_by, are_members, ids_of, params_of
from .index_tree import hash_in_front, parts_that_answer, ranking_of, real
from .parameters import Sharded, set_index_parameter
from .shard_folder import ShardError, ShardFolder, read_shard, write_shard
from .showing import text
from .sparse_arrays import as_csr, is_sparse
from .sparse_vectors import PackedVectors, takes_sparse, why_not_sparse
from .vector_files import VectorFileError

# limits of the queries in a batch, and of their candidates
QUERIES, ANSWERS = 4096, 2**22
NO_IDS = np.empty(0, "int64")


# ------------------------------------------------------------ one shard

class Shard:
    """An index of the vectors `first`, `first + 1`, ... of a sharded index.

    The ids in the index, its own, begin at 0. If the shard was opened from a
    folder, only its location is pickled. It is opened again when it is first
    used, so that it stays mapped and no index is sent.
    """

    def __init__(self, index, first, name, opened=None):
        """opened : the arguments of read_shard that open this index again"""
        self._index = None if index is None else real(index)
        self.first, self.name, self.opened = first, name, opened
        self.ntotal = opened[1]["ntotal"] if opened else index.ntotal
        # own ids are below it; they are positions until vectors are removed
        self.num_ids = (opened[1].get("ids", self.ntotal) if opened
                        else self.ntotal)
        self.removed = NO_IDS  # own ids, ascending
        self.parameters = {}
        self.lock = threading.RLock()
        self.size = None

    @property
    def index(self):
        with self.lock:
            if self._index is None:
                index = read_shard(*self.opened)
                for name, value in self.parameters.items():
                    set_index_parameter(index, name, value)
                if len(self.removed):
                    index.remove_ids(self.removed)
                self._index = index
            may_have_table = self.ntotal < self.num_ids
            if (self._index.ntotal != self.ntotal
                    or has_table(self._index) and not may_have_table):
                raise ValueError(
                    "the shard was changed after it was built, so its ids no "
                    "longer continue those of the shards before it; build the "
                    "index again")
            return self._index

    def __sizeof__(self):
        """Size in bytes, by which Dask decides what to move."""
        if self.size is None:
            self.size = (size_of(self.index) if self.opened is None
                         else self.opened[1]["bytes"])
        return self.size

    def __getstate__(self):
        with self.lock:
            return {"index": self._index if self.opened is None else None,
                    **{key: getattr(self, key) for key in STATE_OF_SHARD}}

    def __setstate__(self, state):
        self.__init__(
            state["index"], state["first"], state["name"], state["opened"])
        vars(self).update({key: state[key] for key in STATE_OF_SHARD})

    def set(self, parameters, removed):
        """Brings the shard up to date. Another worker that takes it over
        begins with the shard as it was built.

        removed : the own ids that are removed so far, ascending
        """
        with self.lock:
            if parameters != self.parameters:
                for name, value in parameters.items():
                    set_index_parameter(self.index, name, value)
                self.parameters = dict(parameters)
            if len(removed) != len(self.removed):
                index = self.index
                if not np.isin(self.removed, removed).all():
                    raise ValueError(
                        "an earlier removal has failed half-way; open or build "
                        "the index again")
                index.remove_ids(
                    np.setdiff1d(removed, self.removed, assume_unique=True))
                self.removed, self.ntotal = removed, index.ntotal

    def search(self, x, k, allowed=None):
        """allowed : the own ids to search among, an array or a range"""
        return self.found([self.index], x, k, allowed)

    def candidates(self, x, k):
        """The results of the index in front of the exact one."""
        ranking = ranking_of(self.index)
        return self.found([*ranking.path, ranking.base],
                          mapped(ranking.path, x), k)

    def found(self, path, x, k, allowed=None):
        """The results of the last index of a path, which begins with the
        shard's index and goes on with parts; x are vectors as it sees them."""
        exact = exact_part(path[-1])
        if exact is not None:
            inside = [path[-1], *parts_that_answer(path[-1])]
            x, path = mapped(inside, x), path[:-1] + inside
            labels = None if allowed is None else self.places(path, allowed)
            D, I = exact.search_scores(x, k, **params_for(exact, labels))
        elif allowed is not None:
            index = filtering(path[-1], "search")
            D, I = index.search(x, k, **params_for(index, allowed))
        else:
            D, I = path[-1].search(x, k)
        if self.index.ntotal == 0:  # FAISS's flat index leaves I unset
            I = np.full_like(I, -1)
        for index in path[-2::-1]:
            swig._ids_of_places_c(index, I.size, faiss.swig_ptr(I))
        return D, self.whole_ids(I)

    def places(self, path, ids):
        """Returns own ids as ids of the last index of a path, without ids that
        do not exist."""
        if not any(map(swig._translates_ids, path[:-1])):
            return ids
        if isinstance(ids, range):
            all_ids = ids_of(self.index)
            ids = all_ids[(all_ids >= ids.start) & (all_ids < ids.stop)]
        places = np.array(ids, "int64")
        for index in path[:-1]:
            swig._places_of_ids_c(index, len(places), faiss.swig_ptr(places))
            places = places[places >= 0]
        return places

    def exact(self, x, rows, ids):
        """Exact scores of the ids of some rows of x."""
        ids = np.where(ids >= 0, ids - self.first, -1)
        ranking = ranking_of(self.index)
        for index in ranking.path:
            swig._places_of_ids_c(index, ids.size, faiss.swig_ptr(ids))
        return scores_of(ranking.exact, mapped(ranking.path, x[rows]), ids)

    def kernel_values(self, x, rows, ids):
        """Kernel values of the ids of some rows of x."""
        own = np.where(ids >= 0, ids - self.first, -1)
        self.check_held(own[own >= 0], "kernel_values")
        with renumbering(rows):
            return values_of_ids(self.index, x[rows], own)

    def range_search(self, x, radius, allowed=None):
        index, params = self.index, {}
        if allowed is not None:
            index = filtering(index, "range_search")
            params = params_for(index, allowed)
        lims, D, I = index.range_search(x, radius, **params)
        return lims, D, self.whole_ids(I)

    def reconstruct(self, _, key):
        self.check_held(np.array([key - self.first]), "ShardedIndex.reconstruct")
        return self.index.reconstruct(key - self.first)

    def write(self, _, folder, number):
        return write_shard(
            self.index, folder, number, self.name, num_ids=self.num_ids)

    def ids(self, _):
        return self.whole_ids(ids_of(self.index))

    def held(self, _, ids):
        """The own ids among these that have vectors."""
        return ids[self.are_held(ids)]

    def are_held(self, ids):
        index, found = self.index, np.empty(len(ids), "uint8")
        swig._contains_c(
            index, len(ids), faiss.swig_ptr(ids), faiss.swig_ptr(found))
        return found.view("bool")

    def check_held(self, ids, where):
        if self.ntotal < self.num_ids:
            missing = ids[~self.are_held(ids)]
            if len(missing):
                raise ValueError(f"{where}: there is no vector with id "
                                 f"{missing[0] + self.first}")

    def whole_ids(self, I):
        return np.where(I >= 0, I + self.first, -1)


# what is pickled beside an index
STATE_OF_SHARD = ("first", "name", "opened", "parameters", "ntotal", "num_ids",
                  "removed")


def has_table(index):
    """Whether an index, or a part that answers for it, has a table of ids."""
    return any(map(swig._has_id_table, (index, *parts_that_answer(index))))


def keeps_other_ids(index):
    """Whether a removal from an index leaves the other ids unchanged."""
    return any(map(swig._can_have_ids, (index, *parts_that_answer(index))))


def params_for(index, allowed):
    """Returns the keyword argument with search parameters for some ids."""
    return {} if allowed is None else {
        "params": params_of(allowed, index, "ShardedIndex.search")}


def filtering(index, method):
    """Returns an index whose search accepts filters. FAISS's own indexes expect
    parameters of several classes."""
    if type(index).__module__ == swig.__name__:
        return index
    if isinstance(index, faiss.IndexBinary):
        raise unsupported(
            f"ShardedIndex.{method}: {type(index).__name__} does not support "
            "filters; BFlat and BIVF do")
    return swig.IndexPreTransformSIMD(index)


def shared_ranking(index):
    """How an index ranks candidates again, if it can rank those of all shards;
    or None."""
    ranking = ranking_of(index)
    return ranking if ranking and has_any(
        ranking.exact, "compute_score_subset", "compute_distance_subset") else None


def has_any(index, *methods):
    return any(hasattr(index, method) for method in methods)


def exact_part(index):
    """The part that searches under a kernel, by scan or graph, possibly inside
    wrappers; or None."""
    *_, last = real(index), *parts_that_answer(index)
    return last if has_any(last, "search_scores") else None


def finished(index, D, I):
    """Converts scores to the results that an index's search returns."""
    exact = exact_part(index)
    return (D, I) if exact is None else exact.values_of_scores(D, I)


def mapped(path, x):
    """Vectors as the last index of a path of parts sees them."""
    for index in path[:-1]:
        x = transformed(index, x)
    return x


def scores_of(index, x, ids):
    """Scores of each row of x with the vectors of its own ids.

    Scores at id -1 are arbitrary.
    """
    if has_any(index, "compute_score_subset"):
        return index.compute_score_subset(x, ids)
    D = np.zeros(ids.shape, "float32")
    index.compute_distance_subset(
        len(x), faiss.swig_ptr(x), ids.shape[1], faiss.swig_ptr(D),
        faiss.swig_ptr(ids))
    return D


# ------------------------------------------------------------ merging answers

def ordered(D, larger_is_better):
    """Distances as integers that ascend from the best one on."""
    if D.dtype.kind == "i":
        keys = D.astype("int64")
    else:
        bits = D.astype("float32").view("int32").astype("int64")
        keys = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
    return -keys if larger_is_better else keys


def best(D, I, k, larger_is_better):
    """The k best results of each row. Ties keep their order.

    Results with id -1 come last, as padding.
    """
    width = D.shape[1]
    keys = ordered(D, larger_is_better)
    keys[(I < 0) | np.isnan(D)] = 2**32
    keys *= max(width, 1)  # below 2^62 for fewer than 2^29 columns
    keys += np.arange(width)
    if k < width:
        keys = np.partition(keys, k - 1, axis=1)[:, :k]
    keys.sort(axis=1)
    columns = keys % max(width, 1)
    D = np.take_along_axis(D, columns, axis=1)
    I = np.take_along_axis(I, columns, axis=1)
    if k > width:
        D = np.pad(D, ((0, 0), (0, k - width)))
        I = np.pad(I, ((0, 0), (0, k - width)), constant_values=-1)
    worst = (np.iinfo("int32").max if D.dtype.kind == "i"
             else np.finfo("float32").max * (-1 if larger_is_better else 1))
    D[I < 0] = worst
    return D, I


def together(answers):
    """The answers of all shards, side by side."""
    return (np.concatenate([D for D, _ in answers], axis=1),
            np.concatenate([I for _, I in answers], axis=1))


# ---------------------------------------------------------- shards in memory

class LocalShards:
    """Shards in this process."""

    def __init__(self, shards):
        self.shards = shards

    def run(self, method, x, own, parameters, removed):
        """Calls a method of each shard, with x and with the shard's own
        arguments.

        Shards whose arguments are None are skipped.
        """
        return [called(shard, method, x, mine, parameters, gone)
                if mine is not None else None
                for shard, mine, gone in zip(self.shards, own, removed)]

    def close(self):
        self.shards = []


def called(shard, method, x, mine, parameters, removed):
    shard.set(parameters, removed)
    return getattr(shard, method)(x, *mine)


def failed(failures):
    """A ShardError with the name of each partition that failed."""
    return ShardError("; ".join(map(failure_text, *zip(*failures))))


def failure_text(name, error):
    message = str(error).rstrip()
    if not isinstance(error, ValueError):
        message = f"{type(error).__name__}: {message}"
    if isinstance(error, VectorFileError):  # names the file
        return f"partition {message}"
    return f"partition {name}: {message}"


class LocalEngine:
    """Does the work in this process."""

    def shared(self, value):
        """A value that several calls take."""
        return value

    def all(self, function, calls, names, count=lambda n: None):
        """The results of a function for each call; names are the partitions'
        names."""
        results, failures = [], []
        for arguments, name in zip(calls, names):
            try:
                results.append(function(*arguments))
            except Exception as error:
                failures.append((name, error))
            count(1)
        if failures:
            raise failed(failures)
        return results

    def keep(self, function, calls, names, count=lambda n: None):
        """Keeps the shards that a function returns, where they are."""
        return LocalShards(self.all(function, calls, names, count))


# ------------------------------------------------------------ sharded index

@Sharded.register
class ShardedIndex:
    """One index in several pieces, made by `build_shards` or `open_shards`.

    Ids count from the first vector of the first shard. They do not change if
    other vectors are removed. A search returns the same results and distances
    as one index of all vectors. The reason is that the candidates of all shards
    are merged, and the exact kernel ranks as many of them again as in one
    index. Graphs are an exception, because each shard has its own.

    Attributes
    ----------
    d : int
        Dimension, as in faiss.Index.
    ntotal : int
        Number of vectors in all shards.
    metric_type : int
        As in faiss.Index.
    shards : list of dict
        The partition, first id and number of vectors of each shard; if vectors
        have been removed from it, also the number of its ids.
    model : faiss.Index or faiss.IndexBinary
        The trained index without vectors from which all shards were made.
    string : str
        The factory string.
    """

    d: int
    ntotal: int
    metric_type: int
    shards: "list[dict[str, Any]]"
    model: "faiss.Index | faiss.IndexBinary"
    string: str

    def __init__(self, model, string, shards, place, seed=None):
        vars(self).update(
            model=model, string=string, shards=shards, seed=seed, d=model.d,
            is_binary=isinstance(model, faiss.IndexBinary),
            metric_type=model.metric_type,
            ntotal=sum(shard["ntotal"] for shard in shards),
            num_ids=sum(map(num_ids_of, shards)))
        self.place, self.parameters = place, {}
        self.removed = [NO_IDS] * len(shards)  # own ids of the shards

    def __setattr__(self, name, value):
        if name not in ("place", "parameters", "removed"):
            hint = ("is read-only" if name in vars(self) else
                    f"does not exist; set_parameter({name!r}, value) sets search "
                    "parameters")
            raise AttributeError(f"ShardedIndex.{name} {hint}")
        object.__setattr__(self, name, value)

    def __repr__(self):
        return (f"ShardedIndex({text(real(self.model))}, "
                f"shards={len(self.shards)}, d={self.d}, "
                f"ntotal={self.ntotal})")

    def __len__(self) -> int:
        """The number of vectors, ntotal."""
        return self.ntotal

    def __bool__(self) -> bool:
        """True, also for an empty index."""
        return True

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.close()

    def close(self) -> None:
        """Releases the shards. Workers free the shards that they hold."""
        self.place.close()

    def _check_open(self):
        if len(self.place.shards) != len(self.shards):
            raise ValueError("the sharded index has been closed")

    def set_parameter(self, name: str, value: float) -> None:
        """Sets a search parameter of all shards.

        Do not call it while another thread searches.

        Parameters
        ----------
        name : str
            Such as "k_factor" or "nprobe".
        value : int or float
            The new value.
        """
        self._check_open()
        value = python_number(value)
        set_index_parameter(self.model, name, value)
        self.parameters[name] = value

    def _run(self, method, x, own):
        self._check_open()
        if not isinstance(own, list):
            own = [own] * len(self.shards)
        return self.place.run(method, x, own, self.parameters, self.removed)

    def _queries(self, x, packed, where):
        self._check_open()
        packed = checked_packed(packed, where)
        if packed:
            x = self._vectors_of_bits(x, packed, where)
        hash = hash_in_front(self.model) if self.is_binary else None
        if self.is_binary and hash is None:
            return as_codes(x, -(-self.d // 8), where)
        d = self.d if hash is None else hash.d_in
        if not is_sparse(x):
            return as_vectors(x, d, where)
        if not takes_sparse(self.model):
            raise unsupported(f"{where}: {why_not_sparse(self.string)}")
        return as_csr(x, d, where)

    def _vectors_of_bits(self, x, packed, where):
        """Packed bits as vectors, sparse ones if the index takes them; as they
        are for an index of codes."""
        x = unpacked(self.model, x, packed, where)
        return x.csr() if isinstance(x, PackedVectors) else x

    def search(
            self, x: "ArrayLike", k: int, *,
            filter: (
                "ArrayLike | set[int] | Callable[..., Any] | "
                "faiss.IDSelector | None"
            ) = None, packed: "bool | int" = False
    ) -> "tuple[NDArray[Any], NDArray[np.int64]]":
        """Finds the k nearest neighbours of each query.

        Parameters
        ----------
        x : array_like or sparse array, shape (n, d)
            Queries.
        k : int
            Number of neighbours.
        filter : array_like, set, range, callable or faiss.IDSelector, optional
            Search among some vectors only: an array or set of their ids, a
            boolean mask over all ids, a range of ids, or a function that gets an
            array of ids and returns a boolean mask. With Refine, each shard then
            ranks its own candidates again. Together these are more candidates
            than in one index.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits.

        Returns
        -------
        D : float32 (int32 for binary indexes), shape (n, k)
            Distances, as returned by faiss.Index.
        I : int64, shape (n, k)
            Ids, padded with -1.
        """
        x = self._queries(x, packed, "ShardedIndex.search")
        k = as_k(k, "ShardedIndex.search")
        n = x.shape[0]
        D = np.empty((n, k), "int32" if self.is_binary else "float32")
        I = np.empty((n, k), "int64")
        allowed = self._allowed(filter, "ShardedIndex.search")

        def find(x, k):
            if ranking is not None:
                return self._refined(x, k, ranking)
            return self._plain(x, k, allowed)

        ranking = shared_ranking(self.model) if allowed is None else None
        wanted = max(min(self._wanted(k, ranking), self.ntotal), 1)
        most = ANSWERS // (len(self.shards) * wanted)
        step = min(max(most, 1), QUERIES)
        for i in range(0, n, step):
            part = slice(i, i + step)
            D[part], I[part] = find(x[part], k)
        return D, I

    def _allowed(self, filter, where):
        """Returns the own ids of each shard that a filter allows. Without a
        filter, returns None."""
        if filter is None:
            return None
        allowed = allowed_by(filter, self, where)
        if isinstance(allowed, faiss.IDSelector):
            return [np.flatnonzero(are_members(
                        allowed, np.arange(first, first + n)))
                    for first, n in self._spans()]
        if isinstance(allowed, range):
            return [range(*np.clip([allowed.start - first,
                                    allowed.stop - first], 0, n).tolist())
                    for first, n in self._spans()]
        return self._divided(np.unique(allowed))

    def _spans(self):
        """The first id and the number of ids of each shard."""
        return [(shard["first"], num_ids_of(shard)) for shard in self.shards]

    def _divided(self, ids):
        """Splits ascending ids into the own ids of each shard."""
        return [ids[slice(*np.searchsorted(ids, [first, first + n]))] - first
                for first, n in self._spans()]

    def _plain(self, x, k, allowed=None):
        own = (k,) if allowed is None else [(k, ids) for ids in allowed]
        answers = self._run("search", x, own)
        return finished(
            self.model, *self._best(self.model, *together(answers), k))

    def _best(self, index, D, I, k):
        """The k best results of each row.

        D are distances or scores, as Shard.search returns them for an index
        like `index`.
        """
        larger = exact_part(index) is None and (
            index.metric_type == faiss.METRIC_INNER_PRODUCT)
        return best(D, I, k, larger)

    def _wanted(self, k, ranking):
        """The number of candidates that one index would rank again."""
        factor = np.float32(ranking.k_factor if ranking else 1)
        return max(k, int(min(np.float32(k) * factor, self.ntotal)))

    def _refined(self, x, k, ranking):
        wanted = self._wanted(k, ranking)
        answers = self._run("candidates", x, (wanted,))
        _, I = self._best(ranking.base, *together(answers), wanted)
        D = self._of_ids("exact", x, I)  # distances or scores
        # ties are ordered by id
        order = np.argsort(np.where(I >= 0, I, self.num_ids), axis=1)
        return finished(ranking.exact, *self._best(
            ranking.exact, np.take_along_axis(D, order, axis=1),
            np.take_along_axis(I, order, axis=1), k))

    def _of_ids(self, method, x, I):
        """The results of a shard method for each row of x and its ids; 0 at id
        -1."""
        firsts = [shard["first"] for shard in self.shards]
        owner = np.searchsorted(firsts, I, side="right") - 1  # -1: padding
        own, places = [], []
        for shard in range(len(firsts)):
            rows, columns, ids = of_shard(owner == shard, I)
            own.append((rows, ids) if len(rows) else None)
            places.append((rows, columns))
        D = np.zeros(I.shape, "float32")
        for (rows, columns), scores in zip(
                places, self._run(method, x, own)):
            if scores is not None:
                valid = columns >= 0
                D[np.broadcast_to(rows[:, None], columns.shape)[valid],
                  columns[valid]] = scores[valid]
        return D

    def _kernel_values(self, x, I):
        """Kernel values of queries and the vectors of their ids.

        Values at id -1 are arbitrary.
        """
        if I.size and I.max() >= self.num_ids:
            raise ValueError(f"kernel_values: id {I.max()}, expected ids up to "
                             f"{self.num_ids - 1}")
        self._check_open()
        return self._of_ids("kernel_values", x, I)

    def range_search(
            self, x: "ArrayLike", radius: float, *,
            filter: (
                "ArrayLike | set[int] | Callable[..., Any] | "
                "faiss.IDSelector | None"
            ) = None, packed: "bool | int" = False
    ) -> "tuple[NDArray[np.uint64], NDArray[Any], NDArray[np.int64]]":
        """Finds all vectors within a radius of each query.

        A vector is found if its distance is below the radius, or, under
        METRIC_INNER_PRODUCT, if its score is above the radius.

        Parameters
        ----------
        x : array_like or sparse array, shape (n, d)
            Queries.
        radius : float
            The radius.
        filter : array_like, set, range, callable or faiss.IDSelector, optional
            As for search.
        packed : bool or int, optional
            As for search.

        Returns
        -------
        lims, D, I
            As returned by faiss.Index: query i has the results [lims[i]:lims[i
            + 1]].
        """
        x = self._queries(x, packed, "ShardedIndex.range_search")
        radius = index_radius(
            self.model, radius, "ShardedIndex.range_search")
        allowed = self._allowed(filter, "ShardedIndex.range_search")
        own = ((radius,) if allowed is None
               else [(radius, ids) for ids in allowed])
        answers = self._run("range_search", x, own)
        counts = np.stack([np.diff(lims.astype("int64"))
                           for lims, _, _ in answers])  # shards x queries
        lims = np.zeros(x.shape[0] + 1, "uint64")
        lims[1:] = np.cumsum(counts.sum(axis=0))
        # the positions at which each shard's results of a query begin
        begins = lims[:-1].astype("int64") + np.cumsum(counts, axis=0) - counts
        D = np.empty(int(lims[-1]), answers[0][1].dtype)
        I = np.empty(int(lims[-1]), "int64")
        for (own, d, i), begin, count in zip(answers, begins, counts):
            to = np.repeat(begin - own[:-1].astype("int64"), count)
            to += np.arange(len(i))
            D[to], I[to] = d, i
        return lims, D, I

    def reconstruct(self, key: int) -> "NDArray[Any]":
        """Returns the vector with an id, as the index stores it.

        Parameters
        ----------
        key : int
            The id.
        """
        key = as_integer(key, "key", "ShardedIndex.reconstruct")
        if not 0 <= key < self.num_ids:
            raise ValueError(f"ShardedIndex.reconstruct: id {key}, expected 0 "
                             f"to {self.num_ids - 1}")
        at = bisect.bisect([s["first"] for s in self.shards], key) - 1
        own = [None] * len(self.shards)
        own[at] = (key,)
        return self._run("reconstruct", None, own)[at]

    def ids(self) -> "NDArray[np.int64]":
        """The ids of all vectors, in no particular order."""
        return np.concatenate(self._run("ids", None, ()))

    def contains(self, ids: "ArrayLike") -> "NDArray[np.bool_]":
        """Whether the index has vectors with these ids.

        Parameters
        ----------
        ids : array_like of int64, shape (n,), or int
            The ids.

        Returns
        -------
        bool, of the shape of ids
        """
        shape, ids = as_asked(ids, "ShardedIndex.contains")
        self._check_open()
        held = self._held(self._divided(np.unique(ids)))
        firsts = [first for first, _ in self._spans()]
        all_held = np.concatenate([
            own + first for own, first in zip(held, firsts)])
        return np.isin(ids, all_held).reshape(shape)[()]

    def _held(self, given):
        """For each shard, those of the given own ids that have vectors."""
        answers = self._run("held", None, [
            (ids,) if len(ids) and shard["ntotal"] < num_ids_of(shard) else None
            for ids, shard in zip(given, self.shards)])
        return [ids if found is None else found
                for ids, found in zip(given, answers)]

    def remove_ids(self, x: "ArrayLike | faiss.IDSelector") -> int:
        """Removes vectors. The others keep their ids.

        Do not call it while another thread searches. The files of an opened
        folder stay as they are; `save` writes the remaining vectors to a new
        folder.

        Parameters
        ----------
        x : array_like of int64, or faiss.IDSelector
            Ids of the vectors. Ids that do not exist are ignored.

        Returns
        -------
        int
            The number of removed vectors.
        """
        where = "ShardedIndex.remove_ids"
        x = as_selected(x, "x", where)
        self._check_open()
        if not keeps_other_ids(real(self.model)):
            raise unsupported(
                f"{where}: {type(real(self.model)).__name__} cannot remove vectors "
                "without changing other ids; build the shards again without "
                "the vectors")
        given = (self._allowed(x, where) if isinstance(x, faiss.IDSelector)
                 else self._divided(np.unique(x)))
        found = self._held(given)
        before = self.removed
        self.removed = [np.union1d(*ids) for ids in zip(before, found)]
        try:
            # a shard is brought up to date before any call
            self._run("held", None, [
                (NO_IDS,) if len(ids) else None for ids in found])
        except BaseException:
            self.removed = before
            raise
        for shard, ids in zip(self.shards, found):
            shard.update(ids=num_ids_of(shard),
                         ntotal=shard["ntotal"] - len(ids))
            if shard["ids"] == shard["ntotal"]:
                del shard["ids"]
        count = sum(map(len, found))
        vars(self)["ntotal"] -= count
        return count

    def to_faiss(self) -> "faiss.IndexShards | faiss.IndexBinaryShards":
        """Makes a faiss.IndexShards or faiss.IndexBinaryShards of the same shards.

        The shards must be in this process. They are shared with this index,
        and so are their search parameters. Once you have changed one of them,
        this index raises an error. In FAISS's index each shard ranks its own
        candidates again. Together these are more candidates than in one index,
        so it finds the same neighbours, or nearer ones.
        """
        self._check_open()
        if not isinstance(self.place, LocalShards):
            raise ValueError("to_faiss: the shards are on a cluster; "
                             "open_shards opens a folder in this process")
        if self.ntotal < self.num_ids:
            raise ValueError("to_faiss is not available after a removal, because "
                             "faiss.IndexShards numbers vectors consecutively")
        if self.is_binary and self.d % 8 != 0:
            raise ValueError(f"to_faiss: the codes have {self.d} bits, and "
                             "faiss.IndexBinaryShards takes multiples of 8")
        group = (faiss.IndexBinaryShards if self.is_binary
                 else faiss.IndexShards)(self.d, True, True)
        for shard in self.place.shards:
            shard.set(self.parameters, NO_IDS)
            # an empty flat index of FAISS returns no answers
            if shard.index.ntotal > 0:
                group.add_shard(shard.index)
        return group

    def save(self, folder: "str | os.PathLike[str]") -> None:
        """Writes the shards to a new folder, which `open_shards` opens.

        Parameters
        ----------
        folder : str or path
            The folder. The workers that hold the shards must be able to write
            to it.
        """
        self._check_open()
        folder = ShardFolder(folder)
        with folder.building(None):
            folder.finish(self, self._run("write", None, [
                (folder.path, number) for number in range(len(self.shards))]))


def num_ids_of(entry):
    """The number of ids of a shard, also of removed vectors, from its entry in
    the manifest or in `shards`."""
    return entry.get("ids", entry["ntotal"])


def of_shard(mine, I):
    """The rows that have candidates in one shard, with their columns and ids,
    padded with -1."""
    counts = mine.sum(axis=1)
    rows = np.flatnonzero(counts)
    if len(rows) == 0:
        return rows, None, None
    columns = np.argsort(~mine[rows], axis=1, kind="stable")[
        :, : counts.max()]
    ids = np.take_along_axis(I[rows], columns, axis=1)
    padding = np.arange(columns.shape[1]) >= counts[rows, None]
    columns[padding] = ids[padding] = -1
    return rows, columns, ids
