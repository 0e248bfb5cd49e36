# SPDX-License-Identifier: MIT
"""Search parameters by name, their tuning, and the versions."""

import ctypes
import importlib.util
import itertools
import re

import numpy as np
import pytest

import faiss
import faiss_ext
from helpers import BASE, QUERIES, made

XB, XQ = BASE[:600], QUERIES[:50]
K = 5


def empty(string):
    return faiss.index_factory(64, string)


# what a string's index has, in this order
PARAMETERS = {
    "KFlat(laplacian)": {},
    "SIK64(gaussian),BFlat": {},
    "AHK64(chi2,center=1),AFlat": {},
    "SIK64(gaussian),BHash24": {"nflip": 0},
    "SIK64(gaussian),BHash2x16": {"nflip": 0},
    "SIK64(gaussian),BIVF16": {"nprobe": 1, "max_codes": 0},
    "SIK64(gaussian),BIVF16_HNSW8": {
        "nprobe": 1, "max_codes": 0, "quantizer_efSearch": 16},
    "SIK64(gaussian),BHNSW8": {"efSearch": 16},
    "RHBE64,BPerm(M=5,B=3)": {"B": 3},
    "KIVF8(nprobe=3)": {"nprobe": 3},
    "HNSW16,KFlat(laplacian)": {"efSearch": 16},
    "PCA16,HNSW16,KFlat(laplacian)": {"efSearch": 16},
    "HNSW16,KFlat(laplacian,store=u8),Refine(KFlat(laplacian))": {
        "efSearch": 16, "k_factor": 1},
    "HKM1(chi2),PCAR16,KIVF8,Refine(KFlat(chi2))": {"nprobe": 8, "k_factor": 1},
    "HKM1(chi2),IVF16_HNSW8,PQ8,Refine(KFlat(chi2))": {
        "nprobe": 1, "max_codes": 0, "quantizer_efSearch": 16, "k_factor": 1},
    "KPCA8(chi2,p=40),IVF16,Flat,Refine(KFlat(chi2))": {
        "nprobe": 1, "max_codes": 0, "k_factor": 1},
    "HKM2(chi2),HNSW16": {"efSearch": 16},
    "RFF32(gaussian),IVF16,PQ8": {"nprobe": 1, "max_codes": 0},
    "L2norm,PCA32,SIK64(gaussian),BIVF16": {"nprobe": 1, "max_codes": 0},
    "IDMap2,PCA16,HNSW16,KFlat(gaussian)": {"efSearch": 16},
    "IDMap,PCA16,SIK64(gaussian),BHash16": {"nflip": 0},
    "IVF16,Flat": {"nprobe": 1, "max_codes": 0},
    "IDMap,IVF16_HNSW8,Flat,Refine(Flat)": {
        "nprobe": 1, "max_codes": 0, "quantizer_efSearch": 16, "k_factor": 1},
}


@pytest.mark.parametrize("string", PARAMETERS)
def test_parameters_of_strings(string):
    index = empty(string)
    assert faiss_ext.index_parameters(index) == PARAMETERS[string]
    assert list(faiss_ext.index_parameters(index)) == list(PARAMETERS[string])
    expected = dict(PARAMETERS[string])
    for name in expected:
        expected[name] += 2
        faiss_ext.set_index_parameter(index, name, expected[name])
        assert faiss_ext.index_parameters(index) == expected
    with pytest.raises(ValueError) as error:
        faiss_ext.set_index_parameter(index, "nprobes", 4)
    assert all(name in str(error.value) for name in expected)


@pytest.mark.parametrize("most", [10**9, 999_999_999])  # as floats the same
def test_the_largest_k_factor(most):
    index = made("AHK64(chi2),BFlat,Refine(KFlat(chi2))", XB)
    faiss_ext.set_index_parameter(index, "k_factor", most)
    assert index.search(XQ, K)[1].min() >= 0
    with pytest.raises(ValueError, match="from 1 to 1000000000, got 2000000000"):
        index.k_factor = 2 * 10**9


def test_the_parts_have_what_was_set():
    index = empty("IDMap2,PCA16,HNSW16,KFlat(gaussian)")
    faiss_ext.set_index_parameter(index, "efSearch", 40)
    assert index.index.index.hnsw.efSearch == 40
    index = empty("HKM1(chi2),PCAR16,KIVF8,Refine(KFlat(chi2))")
    faiss_ext.set_index_parameter(index, "nprobe", np.int64(5))
    faiss_ext.set_index_parameter(index, "k_factor", 2.5)
    assert index.base_index.index.nprobe == 5 and index.k_factor == 2.5
    index = empty("SIK64(gaussian),BIVF16_HNSW8")
    faiss_ext.set_index_parameter(index, "quantizer_efSearch", 33)
    quantizer = faiss.downcast_IndexBinary(index.storage.quantizer)
    assert quantizer.hnsw.efSearch == 33


def test_binary_indexes():
    index = faiss.index_binary_factory(64, "SIK64(gaussian),BHash2x16")
    faiss_ext.set_index_parameter(index, "nflip", 2)
    assert index.storage.nflip == 2
    outer = faiss.IndexBinaryIDMap2(index)
    faiss_ext.set_index_parameter(outer, "nflip", 1)
    assert faiss_ext.index_parameters(outer) == {"nflip": 1}
    assert index.storage.nflip == 1


def shards_of(kind, *strings):
    """An index of several, and these."""
    parts = [empty(s) for s in strings]
    shards = kind(64)
    for part in parts:
        (shards.add_shard if hasattr(shards, "add_shard") else shards.add_replica)(part)
    return shards, parts


@pytest.mark.parametrize("kind", [faiss.IndexShards, faiss.IndexReplicas])
def test_all_parts_of_shards_are_set(kind):
    string = "HKM1(chi2),KIVF8,Refine(KFlat(chi2))"
    inner, parts = shards_of(kind, string, string)
    outer = kind(64)
    (outer.add_shard if kind is faiss.IndexShards else outer.add_replica)(inner)
    assert faiss_ext.index_parameters(outer) == {"nprobe": 8, "k_factor": 1}
    faiss_ext.set_index_parameter(outer, "nprobe", 2)
    faiss_ext.set_index_parameter(outer, "k_factor", 3)
    for part in parts:
        assert faiss_ext.index_parameters(part) == {"nprobe": 2, "k_factor": 3}


def test_shards_of_different_parts_have_what_any_has():
    strings = "KFlat(chi2)", "IVF8,Flat,Refine(KFlat(chi2))", "KIVF8"
    parts, shards = [made(s, XB) for s in strings], faiss.IndexShards(64)
    for part in parts:
        shards.add_shard(part)
    assert faiss_ext.index_parameters(shards) == {"nprobe": 1, "max_codes": 0, "k_factor": 1}
    faiss_ext.set_index_parameter(shards, "nprobe", 3)
    faiss_ext.set_index_parameter(shards, "k_factor", 2)
    assert [faiss_ext.index_parameters(p) for p in parts] == [
        {}, {"nprobe": 3, "max_codes": 0, "k_factor": 2}, {"nprobe": 3}]
    assert ranges_of(shards) == {"nprobe": powers(0, 2), "k_factor": powers(0, 6)}
    with pytest.raises(ValueError, match="'efSearch'; it has nprobe, max_codes, k_factor"):
        faiss_ext.set_index_parameter(shards, "efSearch", 2)
    # 2^24 is as far as the lists of KIVF go, those of FAISS go farther
    shards, parts = shards_of(faiss.IndexShards, "IVF8,Flat", "KIVF8")
    with pytest.raises(ValueError, match="16777216"):
        faiss_ext.set_index_parameter(shards, "nprobe", 2**25)
    assert [faiss_ext.index_parameters(p)["nprobe"] for p in parts] == [1, 8]


@pytest.mark.parametrize("name, value, error", [
    ("nprobe", 0, ValueError), ("nprobe", -3, ValueError), ("nprobe", 2.5, ValueError),
    ("nprobe", 2**24 + 1, ValueError), ("nprobe", np.nan, ValueError),
    ("nprobe", np.inf, ValueError), ("nprobe", "8", TypeError), ("nprobe", None, TypeError),
    ("nprobe", True, TypeError), ("nprobe", np.ones(1), TypeError),
    ("k_factor", 0.5, ValueError), ("k_factor", 1.1e9, ValueError), ("k_factor", [2], TypeError),
    (3, 8, TypeError), ("", 8, ValueError)])
def test_bad_values_change_nothing(name, value, error):
    index = empty("HKM1(chi2),KIVF8,Refine(KFlat(chi2))")
    with pytest.raises(error):
        faiss_ext.set_index_parameter(index, name, value)
    assert faiss_ext.index_parameters(index) == {"nprobe": 8, "k_factor": 1}


def test_lists_of_codes_visit_one_at_least():
    index = empty("SIK64(gaussian),BIVF16")
    index.storage.nprobe = 3
    for value in (0, np.int64(0), -1):
        with pytest.raises(ValueError, match="expected an integer from 1"):
            index.storage.nprobe = value
        with pytest.raises(ValueError, match="nprobe must be an integer from 1"):
            faiss_ext.set_index_parameter(index, "nprobe", value)
    assert index.storage.nprobe == 3
    for string in ("HNSW8,KFlat(linear)", "SIK64(gaussian),BHNSW8"):
        with pytest.raises(ValueError, match="efSearch must be an integer from 1"):
            faiss_ext.set_index_parameter(empty(string), "efSearch", 0)


def test_limits():
    index = empty("SIK64(gaussian),BHash16")
    faiss_ext.set_index_parameter(index, "nflip", 16.0)
    with pytest.raises(ValueError, match="nflip must be an integer from 0 to 16, got 17"):
        faiss_ext.set_index_parameter(index, "nflip", 17)
    index = empty("SIK64(gaussian),BIVF16")
    faiss_ext.set_index_parameter(index, "max_codes", 100)
    faiss_ext.set_index_parameter(index, "max_codes", np.inf)
    assert index.storage.max_codes == 0
    for thing in (None, "KIVF8", faiss_ext.Chi2Kernel()):
        with pytest.raises(TypeError, match="expected an index"):
            faiss_ext.index_parameters(thing)
        with pytest.raises(TypeError, match="expected an index"):
            faiss_ext.set_index_parameter(thing, "nprobe", 4)


# ------------------------------------------------------------------- tuning

def space_of(index, **ranges):
    space = faiss_ext.ParameterSpace()
    space.verbose = 0
    space.initialize(index)
    for name, values in ranges.items():
        faiss.copy_array_to_vector(np.array(values, "float64"), space.add_range(name).values)
    return space


def ranges_of(index):
    return {name: values.tolist() for name, values in space_of(index).ranges().items()}


def powers(first, last):
    return [2.0**i for i in range(first, last + 1)]


def test_ranges():
    assert ranges_of(empty("HKM1(chi2),KIVF10,Refine(KFlat(chi2))")) == {
        "nprobe": [1, 2, 4, 8], "k_factor": powers(0, 6)}
    assert ranges_of(empty("SIK64(gaussian),BIVF16_HNSW8")) == {
        "nprobe": powers(0, 3), "quantizer_efSearch": powers(3, 9)}
    assert ranges_of(empty("SIK64(gaussian),BHash16")) == {"nflip": [0, 1, 2]}
    assert ranges_of(empty("KIVF1")) == {"nprobe": [1]}
    assert ranges_of(empty("KFlat(chi2)")) == {}
    assert ranges_of(shards_of(faiss.IndexShards, "KIVF9", "KIVF4")[0]) == {"nprobe": [1, 2]}
    assert ranges_of(faiss.index_binary_factory(64, "SIK64(gaussian),BHNSW8")) == {
        "efSearch": powers(3, 9)}
    space = space_of(empty("KIVF8"))
    space.initialize(empty("HNSW8,KFlat(chi2)"))
    assert list(space.ranges()) == ["efSearch"]  # and nothing of KIVF8
    space = space_of(empty("KIVF8"), nprobe=[])
    with pytest.raises(ValueError, match="no values"):
        space.ranges()


@pytest.mark.parametrize("string", ["IVF16,Flat", "IVF16,PQ8,Refine(Flat)", "HNSW8", "PQ8"])
def test_ranges_of_faiss_are_those_of_faiss(string):
    index, theirs = empty(string), faiss.ParameterSpace()
    theirs.initialize(index)
    ours = space_of(index)
    assert ours.n_combinations() == theirs.n_combinations()
    for cno in range(ours.n_combinations()):
        assert ours.combination_name(cno) == theirs.combination_name(cno)
        ours.set_index_parameters(index, cno)
        ours.set_index_parameters(index, ours.combination_name(cno))
    assert ranges_of(faiss.IndexIDMap(empty("IVF16,Flat"))) == {"nprobe": powers(0, 3)}


def test_space_sets_parameters():
    index = empty("HKM1(chi2),PCAR16,KIVF8,Refine(KFlat(chi2))")
    space = space_of(index)
    space.set_index_parameter(index, "nprobe", 2)
    assert faiss_ext.index_parameters(index) == {"nprobe": 2, "k_factor": 1}
    space.set_index_parameters(index, "nprobe=8, k_factor=4")
    assert faiss_ext.index_parameters(index) == {"nprobe": 8, "k_factor": 4}
    space.set_index_parameters(index, "k_factor_rf=2")  # FAISS's name
    assert index.k_factor == 2
    space.set_index_parameters(index, 5)
    assert space.combination_name(5) == "nprobe=4,k_factor=2"
    before = {"nprobe": 4, "k_factor": 2}
    assert faiss_ext.index_parameters(index) == before
    for bad in (
            "nprobe=8,k_factor=0", "nprobe=8,nflip=1", "nprobe=8,k_factor", "nprobe=8,k_factor=a",
            "ht=3,nprobe=8", -1, space.n_combinations()):
        with pytest.raises(ValueError):
            space.set_index_parameters(index, bad)
        assert faiss_ext.index_parameters(index) == before
    with pytest.raises(TypeError):
        space.set_index_parameters(index, 2.5)
    with pytest.raises(ValueError, match="it has nprobe, k_factor"):
        space.set_index_parameter(index, "nprobs", 3)


def test_what_only_faiss_knows_is_left_to_it():
    index = empty("IVF16_HNSW8,PQ8")
    space = space_of(index)
    space.set_index_parameters(index, "ht=20,nprobe=4,efSearch=50")
    assert index.polysemous_ht == 20 and index.nprobe == 4
    assert faiss_ext.index_parameters(index)["quantizer_efSearch"] == 50
    # two that are called k_factor
    index = empty("IVF4,PQ4+4")
    refined = faiss.IndexRefineFlat(index)
    space.set_index_parameters(refined, "k_factor=3,k_factor_rf=2")
    assert index.k_factor == 3 and refined.k_factor == 2


def criterion(kind, exact, R=K):
    crit = kind(len(XQ), R)
    crit.nnn = K
    crit.set_groundtruth(None, exact.search(XQ, K)[1])
    return crit


def evaluation(crit, index):
    return faiss.AutoTuneCriterion.evaluate(crit, *index.search(XQ, K))


def points_of(vector):
    points = [vector.at(i) for i in range(vector.size())]
    return [(p.perf, p.t, p.key, p.cno) for p in points]


def all_points(space, index, crit):
    found = space.explore(index, XQ, crit)  # which owns the vector
    return points_of(found.all_pts)


# a string, the exact one, and values to try
EXPLORED = {
    "SIK64(gaussian),BFlat,Refine(KFlat(gaussian))": ("KFlat(gaussian)", {"k_factor": [1, 4, 16]}),
    "HKM1(chi2),PCAR16,KIVF8,Refine(KFlat(chi2))": (
        "KFlat(chi2)", {"nprobe": [1, 4, 8], "k_factor": [1, 2, 8]}),
    "HNSW16,KFlat(laplacian)": ("KFlat(laplacian)", {"efSearch": [8, 32, 128]}),
    "IVF16,Flat": ("Flat", {}),
}


@pytest.mark.parametrize("string", EXPLORED)
@pytest.mark.parametrize("kind", [faiss.OneRecallAtRCriterion, faiss.IntersectionCriterion])
def test_explore_equals_trying_everything(string, kind):
    exact, ranges = EXPLORED[string]
    index, crit = made(string, XB), criterion(kind, made(exact, XB))
    space = space_of(index, **ranges)
    before = faiss_ext.index_parameters(index)
    names = list(space.ranges())
    assert names == (list(ranges) or ["nprobe"])

    expected = {}
    for values in itertools.product(*space.ranges().values()):
        for name, value in zip(names, values):
            faiss_ext.set_index_parameter(index, name, value)
        key = ",".join(f"{name}={value:g}" for name, value in zip(names, values))
        expected[key] = evaluation(crit, index)
    for name, value in before.items():
        faiss_ext.set_index_parameter(index, name, value)

    space.n_experiments = 0
    found = space.explore(index, XQ, crit)
    assert isinstance(found, faiss.OperatingPoints)
    everything = points_of(found.all_pts)
    assert {key: perf for perf, _, key, _ in everything} == expected
    assert [cno for *_, cno in everything] == list(range(len(expected)))
    assert all(space.combination_name(cno) == key for _, _, key, cno in everything)
    assert faiss_ext.index_parameters(index) == before

    # with skipping: what was tried is right
    space.n_experiments = 500
    found = space.explore(index, XQ, crit)
    tried = points_of(found.all_pts)
    assert all(expected[key] == perf for perf, _, key, _ in tried)
    assert [cno for *_, cno in tried[:2]] == [0, len(expected) - 1][:len(tried)]
    best = points_of(found.optimal_pts)
    assert best[-1][0] == max(perf for perf, *_ in tried) >= everything[-1][0]
    for perf, t, *_ in best[1:]:
        assert not any(p >= perf and s <= t and (p > perf or s < t) for p, s, *_ in tried)
    # the key is what sets it
    space.set_index_parameters(index, best[-1][2])
    assert evaluation(crit, index) == best[-1][0]


class Fake(faiss_ext.ParameterSpace):
    """Searches take the time that the settings say."""

    def _timer(self, index, xq, k, cno, found):
        timer = super()._timer(index, xq, k, cno, found)
        turn = timer.turn

        def take_turn():
            turn()
            timer.turns[-1] = faiss_ext.index_parameters(index)["nprobe"] / 100

        timer.turn = take_turn
        return timer


def test_settings_that_cannot_be_optimal_are_skipped(capsys):
    index, crit = made("KIVF8", XB), faiss.OneRecallAtRCriterion(len(XQ), K)
    faiss_ext.set_index_parameter(index, "nprobe", 2)  # as much as two lists hold
    crit.set_groundtruth(None, index.search(XQ, K)[1])
    space = Fake()
    space.initialize(index)
    faiss.copy_array_to_vector(np.array([2.0, 4, 5, 8]), space.add_range("nprobe").values)
    # the first finds everything, in no more time than the others must take
    found = space.explore(index, XQ, crit)
    assert points_of(found.all_pts) == [(1, 0.02, "nprobe=2", 0)]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and sum(line.endswith(" skip") for line in lines) == 3
    space.n_experiments, space.verbose = 0, 0
    assert space.explore(index, XQ, crit).all_pts.size() == 4


@pytest.mark.parametrize("n", [9, 10**6])
def test_the_order_and_the_limit_are_those_of_faiss(n, capfd):
    index = made("IVF16,Flat,Refine(Flat)", XB)
    crit = criterion(faiss.IntersectionCriterion, made("Flat", XB))
    orders = []
    for space in (faiss_ext.ParameterSpace(), faiss.ParameterSpace()):
        space.initialize(index)
        space.n_experiments = n
        space.explore(index, XQ, crit)
        ctypes.CDLL(None).fflush(None)  # FAISS writes by printf
        orders.append(re.findall(r"cno=(\d+)", capfd.readouterr().out))
    ours, theirs = orders
    assert ours == theirs and len(ours) == min(n, space.n_combinations())


def test_batches_and_durations():
    index, crit = made("KIVF8", XB), criterion(faiss.IntersectionCriterion, made("Flat", XB))
    space = space_of(index, nprobe=[4])
    expected = all_points(space, index, crit)
    space.batchsize = 7
    space.min_test_duration = 0.01
    found = all_points(space, index, crit)
    assert found[0][0] == expected[0][0] and 0 < found[0][1] < 10
    space.batchsize = 0
    with pytest.raises(ValueError, match="batchsize"):
        space.explore(index, XQ, crit)


def test_explore_of_binary_indexes_and_own_criteria():
    class Found(faiss.OneRecallAtRCriterion):
        def evaluate(self, D, I):
            return float((I >= 0).mean())

    index = faiss.index_binary_factory(64, "SIK64(gaussian),BHash16")
    index.train(XB)
    index.add(XB)
    space = space_of(index)
    space.n_experiments = 0
    perf = [p for p, *_ in all_points(space, index, Found(len(XQ), K))]
    assert len(perf) == 3 and perf == sorted(perf) and perf[0] < perf[-1]


def test_explore_checks_what_it_is_given():
    index = made("KIVF8", XB)
    space, crit = space_of(index), criterion(faiss.OneRecallAtRCriterion, made("Flat", XB))
    with pytest.raises(ValueError, match="50 queries"):
        space.explore(index, XQ[:9], crit)
    with pytest.raises(ValueError, match="64"):
        space.explore(index, XQ[:, :9], crit)
    with pytest.raises(TypeError, match="expected an index"):
        space.explore(None, XQ, crit)
    faiss_ext.set_index_parameter(index, "nprobe", 3)
    with pytest.raises(RuntimeError, match="ground truth"):
        space.explore(index, XQ, faiss.OneRecallAtRCriterion(len(XQ), K))
    assert index.nprobe == 3


# ----------------------------------------------------------------- versions

def test_versions(capsys, monkeypatch):
    monkeypatch.delenv("FAISS_EXT_SIMD", raising=False)
    found = faiss_ext.versions()
    assert found["faiss_ext"] == faiss_ext.__version__
    assert found["FAISS"] == faiss.__version__
    assert found["instruction set"] == faiss_ext.instruction_set()
    assert found["NumPy"] == np.__version__
    assert found["threads"] == faiss.omp_get_max_threads()
    assert {"Python", "platform"} < set(found)
    for name, module in ("scikit-learn", "sklearn"), ("distributed",) * 2, ("h5py",) * 2:
        assert (name in found) == (importlib.util.find_spec(module) is not None)
    assert "FAISS_EXT_SIMD" not in found
    assert faiss_ext.show_versions() is None
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(found)
    for line, (name, value) in zip(lines, found.items()):
        assert line.startswith(name) and line.endswith(str(value))
    monkeypatch.setenv("FAISS_EXT_SIMD", "SSE4")
    assert faiss_ext.versions()["FAISS_EXT_SIMD"] == "SSE4"
