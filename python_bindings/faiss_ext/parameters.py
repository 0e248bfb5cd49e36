# SPDX-License-Identifier: MIT
"""Search parameters of an index by name, and their tuning."""

import abc
import functools
import math
import numbers
import operator
import sys
from typing import NamedTuple

import faiss
import numpy as np

from . import swigfaiss_ext as swig, timing
from .arguments import as_array, python_number
from .index_tree import real
from .sparse_arrays import as_csr, is_sparse


# ------------------------------------------------------------- settings

class Setting(NamedTuple):
    """A search parameter of an index."""

    name: str
    is_integer: bool
    expected: str  # "an integer from 1 to 64"
    value: float
    values: tuple  # those that ParameterSpace tries

    @property
    def kind(self):
        return int if self.is_integer else float

    def as_float(self, value):
        """A number as a float; raises an error for other types."""
        value = python_number(value)
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(f"{self.name} must be {self.expected}, got "
                            f"{value!r}")
        if self.name.endswith("max_codes") and value == math.inf:
            return 0.0  # means no limit, as in FAISS's ParameterSpace
        most = sys.float_info.max
        return value if isinstance(value, float) else float(
            max(-most, min(value, most)))


def settings_of(index):
    """The search parameters of an index and its parts, by name.

    Parameters of the innermost part come first.
    """
    return {} if index is None else {
        parameter[0]: Setting(*parameter)
        for parameter in swig._search_parameters(index)}


def settings_of_root(index, where):
    if not isinstance(index, (faiss.Index, faiss.IndexBinary)):
        raise TypeError(f"{where}: expected an index, got {index!r}")
    return settings_of(index)


def own_name(found, name):
    """The name of a setting; also accepts FAISS's name of the k_factor."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a parameter must be str, got {name!r}")
    return ("k_factor" if name == "k_factor_rf" and name not in found
            and "k_factor" in found else name)


def checked(index, found, name, value):
    """Returns the value as a float. Raises an error if an index has no such
    setting, or if the setting cannot have the value."""
    value = found[name].as_float(value) if name in found else 0.0
    try:
        swig._check_search_parameter(index, name, value)
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    return value


def assign(index, changes):
    """Sets pairs of names and values, which must have been checked."""
    for name, value in changes:
        swig._set_search_parameter(index, name, value)


class Sharded(abc.ABC):
    """Base class of ShardedIndex. It is not an index of FAISS; its `model` is."""


def is_sharded(index):
    return isinstance(index, Sharded)


def index_parameters(
    index: "faiss.Index | faiss.IndexBinary | ShardedIndex"
) -> "dict[str, int | float]":
    """The search parameters of an index and of all its parts.

    Parameters
    ----------
    index : faiss.Index, faiss.IndexBinary or ShardedIndex
        An index of this package or of FAISS.

    Returns
    -------
    dict
        The values by name:

        - `nprobe` and `max_codes` (0: no limit) of inverted lists
        - `quantizer_efSearch` and similar names, of their quantizer
        - `efSearch` of graphs
        - `nflip` of hash tables (`BHash`)
        - `B` of `BPerm`
        - `k_factor` of `Refine`; if a part has a `k_factor`, too, the outer
          one is called `k_factor_rf`

        Shards and Replicas have the parameters of all their parts. Each value
        is taken from the first part that has the parameter.

    Examples
    --------
    >>> index_parameters(faiss.index_factory(64, "KIVF16,Refine(KFlat(chi2))"))
    {'nprobe': 8, 'k_factor': 1.0}
    """
    if is_sharded(index):
        index = index.model
    return {name: setting.kind(setting.value) for name, setting in
            settings_of_root(index, "index_parameters").items()}


def set_index_parameter(
    index: "faiss.Index | faiss.IndexBinary | ShardedIndex", name: str,
    value: float
) -> None:
    """Sets a search parameter of an index or of one of its parts.

    In Shards and Replicas it is set in all parts that have the parameter.

    Parameters
    ----------
    index : faiss.Index, faiss.IndexBinary or ShardedIndex
        An index of this package or of FAISS.
    name : str
        A name that index_parameters returns.
    value : int or float
        The new value.

    Raises
    ------
    ValueError
        If there is no such parameter, or if it cannot have this value. The
        index is not modified.
    TypeError
        If the value is not a number.
    """
    if is_sharded(index):
        index.set_parameter(name, value)
        return
    found = settings_of_root(index, "set_index_parameter")
    name = own_name(found, name)
    assign(index, [(name, checked(index, found, name, value))])


# --------------------------------------------------------------- tuning

class ParameterSpace(faiss.ParameterSpace):
    """Explores search parameters, for indexes of FAISS and of this package.

    Extends faiss.ParameterSpace, and has the same attributes.

    Attributes
    ----------
    verbose : int
        Whether explore prints its progress.
    n_experiments : int
        Number of settings that explore considers. 0: all, without skipping any.
    batchsize : int
        Number of queries per search.
    min_test_duration : float
        Least time for which a search is repeated, in seconds.
    thread_over_batches : bool
        Has no effect.
    is_disturbed : bool
        Whether other programs slowed down the last explore.
    usual_times : dict of str to float
        For each key of the last explore, the time of the median search in
        seconds. If explore was disturbed, the true time lies between `t` of the
        operating point and this time.

    Examples
    --------
    >>> crit = faiss.OneRecallAtRCriterion(len(xq), 10)
    >>> crit.set_groundtruth(None, exact_ids)
    >>> space = ParameterSpace()
    >>> space.initialize(index)
    >>> points = space.explore(index, xq, crit)
    >>> points.display()
    >>> best = points.optimal_pts.at(points.optimal_pts.size() - 1)
    >>> space.set_index_parameters(index, best.key)
    """

    is_disturbed = False
    usual_times: "dict[str, float]" = {}

    def initialize(self, index: "faiss.Index | faiss.IndexBinary") -> None:
        """Sets the ranges to values worth trying for an index, replacing
        earlier ranges.

        The values are powers of 2: `nprobe` below the number of lists,
        `k_factor` 1 to 64, `efSearch` 8 to 512, and `B` 0 and 1 to 1024.
        `nflip` is 0 to 2. An index that contains nothing of this package gets FAISS's
        ranges; FAISS calls the `k_factor` of `Refine` `k_factor_rf`.

        To try other values of a parameter, set its range:
        `faiss.copy_array_to_vector(np.array([4., 8.]),
        space.add_range("nprobe").values)`.

        Parameters
        ----------
        index : faiss.Index or faiss.IndexBinary
            The index.
        """
        found = settings_of_root(index, "ParameterSpace.initialize")
        self._drop_ranges()
        if isinstance(index, faiss.Index) and not swig.holds_faiss_ext(index):
            super().initialize(real(index))
            if self.n_combinations() > 0 and self.combination_name(0):
                return
            self._drop_ranges()  # FAISS does not look behind an IDMap
        for name, setting in found.items():
            if setting.values:
                faiss.copy_array_to_vector(
                    np.array(setting.values, dtype="float64"),
                    self.add_range(name).values)

    def _drop_ranges(self):
        # FAISS 1.7.3 lets Python assign the ranges, but not read them
        empty = faiss.ParameterSpace()
        self.parameter_ranges = empty.parameter_ranges

    def ranges(self) -> "dict[str, NDArray[np.float64]]":
        """The values to try, by parameter name.

        Returns
        -------
        dict
        """
        if self.n_combinations() == 0:
            raise ValueError(
                "ParameterSpace: a parameter has no values to try")
        names = [part.split("=")[0]
                 for part in self.combination_name(0).split(",") if part]
        return {name: faiss.vector_to_array(self.add_range(name).values)
                for name in names}

    def set_index_parameter(
        self, index: "faiss.Index | faiss.IndexBinary", name: str, val: float
    ) -> None:
        """Sets a search parameter of an index, like
        faiss_ext.set_index_parameter.

        Parameters that only FAISS's ParameterSpace knows, such as `ht`, are
        passed to it.

        Parameters
        ----------
        index : faiss.Index or faiss.IndexBinary
            The index.
        name : str
            The name of the parameter.
        val : int or float
            The new value.
        """
        self._set(index, [(name, val)])

    def set_index_parameters(
        self, index: "faiss.Index | faiss.IndexBinary", params: "str | int"
    ) -> None:
        """Sets several search parameters of an index.

        On error none is changed, except parameters that only FAISS's
        ParameterSpace knows.

        Parameters
        ----------
        index : faiss.Index or faiss.IndexBinary
            The index.
        params : str or int
            Settings such as "nprobe=8,k_factor=4", or the number of a
            combination of the ranges, from 0 to n_combinations() - 1.
        """
        if isinstance(params, str):
            pairs = [self._pair(word) for word in
                     params.replace(",", " ").split()]
        else:
            pairs = self._combination(params)
        self._set(index, pairs)

    @staticmethod
    def _pair(word):
        name, _, value = word.partition("=")
        try:
            return name, float(value)
        except ValueError:
            raise ValueError(
                "ParameterSpace: expected settings such as "
                f"\"nprobe=8,k_factor=4\", got {word!r}") from None

    def _combination(self, cno):
        """The names and values of a combination."""
        try:
            cno = operator.index(cno)
        except TypeError:
            raise TypeError("ParameterSpace: expected settings such as "
                            "\"nprobe=8,k_factor=4\" or the number of a "
                            f"combination, got {cno!r}") from None
        n = self.n_combinations()
        if not 0 <= cno < n:
            raise ValueError(f"ParameterSpace: there are {n} combinations, "
                             f"and none has the number {cno}")
        pairs = []
        for name, values in self.ranges().items():
            cno, i = divmod(cno, len(values))
            pairs.append((name, float(values[i])))
        return pairs

    def _set(self, index, pairs):
        found = settings_of_root(index, "ParameterSpace")
        changes, others = [], []
        for name, value in pairs:
            name = own_name(found, name)
            if name in found:
                changes.append((name, checked(index, found, name, value)))
            else:
                others.append((name, value))
        for name, value in others:
            try:
                super().set_index_parameter(real(index), name, float(value))
            except (RuntimeError, TypeError):
                checked(index, found, name, value)  # there is none
        assign(index, changes)

    def explore(
        self, index: "faiss.Index | faiss.IndexBinary", xq: "ArrayLike",
        crit: "faiss.AutoTuneCriterion"
    ) -> "faiss.OperatingPoints":
        """Measures the quality and speed of searches for combinations of the
        ranges' values.

        Afterwards the search parameters of the index are as before.

        Parameters
        ----------
        index : faiss.Index or faiss.IndexBinary
            A trained index with vectors.
        xq : array_like, shape (crit.nq, d)
            Queries.
        crit : faiss.AutoTuneCriterion
            A faiss.OneRecallAtRCriterion, a faiss.IntersectionCriterion, or a
            subclass with a method evaluate(D, I). Its ground truth must be
            set.

        Returns
        -------
        faiss.OperatingPoints
            Its keys are settings such as "nprobe=8,k_factor=4". t is the time
            of a search for all queries, in seconds.

        Notes
        -----
        Combinations are tried in FAISS's order: the first and the last one,
        then the others in a fixed random order. The first search is a warm-up,
        which is not measured. A combination is skipped if the points so far
        show that it cannot be one of the best, assuming that a larger value of
        any parameter takes more time and finds more. With `n_experiments` 0,
        all combinations are tried one after the other.

        Then all combinations that were tried are searched in turn, so that a
        busy moment of the machine affects all of them, until the fastest times
        of the best ones are clear, and each for at least `min_test_duration`
        seconds. t is the fastest time. With one thread, processor time is
        measured. If `verbose`, the printed times are from the first search.
        """
        where = "ParameterSpace.explore"
        settings_of_root(index, where)
        if not isinstance(crit, faiss.AutoTuneCriterion):
            raise TypeError(f"{where}: crit must be a faiss.AutoTuneCriterion, "
                            f"got {crit!r}")
        before = swig._SavedSearchParameters(index)
        sparse = is_sparse(xq)
        xq = (as_csr(xq, xq.shape[-1], where) if sparse
              else as_array(xq, where))
        if len(xq.shape) != 2 or xq.shape[0] != crit.nq:
            raise ValueError(f"{where}: expected {crit.nq} queries, as the "
                             f"criterion has, got an array of shape {xq.shape}")
        if isinstance(index, faiss.Index):
            if xq.shape != (crit.nq, index.d):
                raise ValueError(f"{where}: expected an array of shape (n, "
                                 f"{index.d}), got {xq.shape}")
            if not sparse:
                xq = np.ascontiguousarray(xq, dtype="float32")
        if self.batchsize < 1:
            raise ValueError(f"{where}: batchsize must be positive")
        self.ranges()  # none is empty
        n = self.n_combinations()
        order = self._order(n)
        rough = faiss.OperatingPoints()
        trials, found, k = [], [], int(crit.nnn)
        is_slower = functools.lru_cache(maxsize=None)(timing.is_slower)
        try:
            self._set(index, self._combination(order[0]))
            index.search(xq[:self.batchsize], k)
            for i, cno in enumerate(order):
                key = self.combination_name(cno)
                head = f"  {i}/{len(order)}: cno={cno} {key}"
                if (self.n_experiments
                        and self._is_hopeless(cno, trials, is_slower)):
                    if self.verbose:
                        print(f"{head} skip")
                    continue
                timer = self._timer(index, xq, k, cno, found)
                timer.turn()
                D, I = (np.concatenate(parts) for parts in zip(*found))
                found.clear()
                perf = evaluation(crit, D.astype("float32", copy=False), I)
                del D, I
                trials.append(Trial(cno, perf, timer))
                t = timer.least
                is_best = rough.add(perf, t, key, cno)
                if self.verbose:
                    print(f"{head} perf={perf:.3f} t={t:.6f} s"
                          f"{' *' if is_best else ''}")
            timing.take_turns(
                [trial.timer for trial in trials], self.min_test_duration,
                lambda _: timing.are_steady(timers_of_best(trials)), turns=1)
        finally:
            before.apply()
        self.is_disturbed = any(
            timer.is_disturbed for timer in timers_of_best(trials))
        self.usual_times = {
            self.combination_name(trial.cno): trial.timer.middle
            for trial in trials}
        points = faiss.OperatingPoints()
        for cno, perf, timer in trials:
            points.add(perf, timer.least, self.combination_name(cno), cno)
        return points

    def _order(self, n):
        """The combinations to try, in FAISS's order."""
        if self.n_experiments < 0:
            raise ValueError("ParameterSpace.explore: n_experiments must be "
                             f"at least 0, got {self.n_experiments}")
        if self.n_experiments == 0 or n < 3:
            return list(range(n))
        rest = np.empty(n - 2, dtype="int32")
        faiss.rand_perm(faiss.swig_ptr(rest), n - 2, 1234)
        return [0, n - 1, *(rest + 1).tolist()][:self.n_experiments]

    def _is_hopeless(self, cno, trials, is_slower):
        """Whether the measurements so far rule out a combination.

        They do if one of them finds as much as the combination can, in no more
        time than it must take.
        """
        most_perf = min([1.0, *(trial.perf for trial in trials
                                if self.combination_ge(trial.cno, cno))])
        if most_perf <= 0:
            return True
        timers = [trial.timer for trial in trials if trial.perf >= most_perf]
        smaller = [trial.timer for trial in trials
                   if self.combination_ge(cno, trial.cno)]
        if not timers or not smaller:
            return False
        fastest = min(timers, key=operator.attrgetter("least"))
        slowest = max(smaller, key=operator.attrgetter("least"))
        return fastest.least <= slowest.least and not (
            fastest is not slowest and is_slower(fastest, slowest))

    def _timer(self, index, xq, k, cno, found):
        """A timer of a search for all queries with a combination of the
        values. The results replace those in the list `found`."""
        pairs = self._combination(cno)

        def search():
            found[:] = [index.search(xq[i:i + self.batchsize], k)
                        for i in range(0, xq.shape[0], self.batchsize)]

        return timing.Timer(search, faiss.omp_get_max_threads(),
                            lambda: self._set(index, pairs))


class Trial(NamedTuple):
    """A combination that explore has tried."""

    cno: int
    perf: float
    timer: timing.Timer


def timers_of_best(trials):
    """The timers of the trials that find more than all faster ones."""
    best, most_perf = [], -math.inf
    for trial in sorted(trials, key=lambda t: (t.timer.least, -t.perf)):
        if trial.perf > most_perf:
            best.append(trial.timer)
            most_perf = trial.perf
    return best or [trial.timer for trial in trials]


def evaluation(crit, D, I):
    """The value of a criterion for search results.

    The class of the criterion may be FAISS's or the caller's.
    """
    evaluate = type(crit).evaluate
    if evaluate.__module__.split(".")[0] == "faiss":
        # in FAISS only the base class's evaluate takes arrays
        evaluate = faiss.AutoTuneCriterion.evaluate
    return float(evaluate(crit, D, I))
