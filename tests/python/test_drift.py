"""Data that change after training: landmarks from one cluster, and neighbours
sought in the others."""

import functools
import gzip

import numpy as np
import pytest
from sklearn.datasets import load_digits

import faiss
import faiss_ext

TOPS = (10, 20, 100)  # how many of the nearest by codes count


def l1_normalized(x):
    return (x / x.sum(axis=1, keepdims=True)).astype("float32")


class Clusters:
    """Vectors to search in and queries, with the cluster of each; the ten nearest
    under chi2 are the truth."""

    def __init__(self, base, clusters, queries, query_clusters):
        self.base, self.clusters = l1_normalized(base), clusters
        self.queries, self.query_clusters = l1_normalized(queries), query_clusters
        exact = faiss.index_factory(base.shape[1], "KFlat(chi2)", faiss.METRIC_INNER_PRODUCT)
        exact.add(self.base)
        self.truth = exact.search(self.queries, 10)[1]

    def one(self, c):
        return self.base[self.clusters == c]

    def sample(self, c, seed):
        """As many vectors as the cluster has, of all clusters."""
        rng = np.random.default_rng([c, seed])
        n = (self.clusters == c).sum()
        return self.base[rng.choice(len(self.base), n, replace=False)]

    def recalls(self, string, training, c):
        """The share of their true neighbours that queries of the other clusters
        have among the first 10, 20 and 100."""
        index = faiss.index_factory(self.base.shape[1], string + ",BFlat")
        index.train(training)
        index.add(self.base)
        others = self.query_clusters != c
        I = index.search(self.queries[others], 100)[1]
        truth = self.truth[others]
        return [np.mean([np.isin(t, f[:n]) for t, f in zip(truth, I)]) for n in TOPS]

    def measure(self, classes, seeds):
        """Of each hash, recalls of all classes and seeds, classes x seeds x 3."""
        found = {}
        strings = {
            "klsh": "KLSH256(chi2,p=100,t=30,seed={})",
            "centred": "AHK256(chi2,center=1,seed={})",
        }
        for name, string in strings.items():
            for training in ("one", "all"):
                found[name, training] = np.array(
                    [
                        [
                            self.recalls(
                                string.format(seed),
                                self.one(c) if training == "one" else self.sample(c, seed),
                                c,
                            )
                            for seed in seeds
                        ]
                        for c in classes
                    ]
                )
        found["plain"] = np.array(
            [
                [self.recalls(f"AHK256(chi2,seed={s})", self.one(c), c) for s in seeds]
                for c in classes
            ]
        )
        return found


def losses(found, name):
    """What training on one cluster loses, for each cluster, seed, and top."""
    return found[name, "all"] - found[name, "one"]


def above(differences, bound):
    """The mean exceeds the bound by three of its standard errors."""
    x = np.ravel(differences)
    return x.mean() - 3 * x.std(ddof=1) / np.sqrt(len(x)) > bound


@pytest.fixture(scope="module")
def digits_clusters():
    data = load_digits()
    order = np.random.default_rng(1).permutation(len(data.data))
    x, y = data.data[order], data.target[order]
    return Clusters(x[200:], y[200:], x[:200], y[:200])


@pytest.fixture(scope="module")
def of_digits(digits_clusters):
    return digits_clusters.measure(range(0, 10, 2), (1, 2, 3))


def idx(path, header):
    return np.frombuffer(gzip.decompress(path.read_bytes()), dtype="uint8")[header:]


@pytest.fixture(scope="module")
def mnist_clusters(data_folder):
    folder = data_folder / "mnist"
    if not (folder / "train-labels-idx1-ubyte.gz").is_file():
        pytest.skip("needs mnist/ with its labels in the folder of FAISS_EXT_DATA")
    parts = []
    for part, n in (("train", 5000), ("t10k", 200)):
        parts.append(idx(folder / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784)[:n])
        parts.append(idx(folder / f"{part}-labels-idx1-ubyte.gz", 8)[:n])
    return Clusters(*parts)


@pytest.fixture(scope="module")
def of_mnist(mnist_clusters):
    return mnist_clusters.measure((0, 1, 4, 7), (1, 2))


@pytest.fixture(params=["digits", "mnist"])
def found(request):
    return request.getfixturevalue("of_" + request.param)


# Measured, 256 bits, p = 100, t = 30, the share of the ten nearest that queries
# of the other classes have among the first 10, 20 and 100:
#
#                              digits (10 classes,      MNIST (5,000, classes 0,
#                              seeds 1 to 3)            1, 4, 7, seeds 1 and 2)
#   KLSH, trained on all       0.699  0.901  0.998      0.591  0.792  0.983
#   KLSH, on one class         0.652  0.860  0.993      0.482  0.670  0.935
#     loss                     0.046  0.041  0.005      0.109  0.122  0.048
#     its standard deviation   0.018  0.014  0.003      0.052  0.069  0.029
#     least, of all runs       0.010  0.019 -0.001      0.058  0.065  0.024
#   AHK, any training          0.635  0.843  0.995      0.534  0.720  0.961
#   AHK center=1, all          0.691  0.893  0.998      0.574  0.765  0.974
#   AHK center=1, one class    0.668  0.873  0.995      0.530  0.718  0.958
#     loss                     0.023  0.020  0.003      0.044  0.047  0.015
#     its standard deviation   0.013  0.012  0.002      0.011  0.020  0.008
#
# The deviation is that of a single run (class and seed). The tests take the even
# classes of digits only. The loss of the mean of 15 or 8 runs is known to 0.004
# (digits) and 0.025 (MNIST) or better; the bounds below are some half of the
# losses. Digits have so few vectors that the first 100 hold nearly all neighbours
# for every hash: there it is the misses that tell.


def test_klsh_loses_with_landmarks_of_one_class(found):
    loss = losses(found, "klsh")
    assert above(loss[..., 0], 0.02)
    assert above(loss[..., 1], 0.02)
    assert above(loss[..., 2], 0)
    misses = 1 - found["klsh", "one"][..., 2].mean()
    # measured: 3.3 times as many on digits, 3.8 times on MNIST
    assert misses > 1.7 * (1 - found["klsh", "all"][..., 2].mean())


def test_a_mean_of_one_class_loses_less_than_landmarks_of_one_class(found):
    klsh, centred = losses(found, "klsh"), losses(found, "centred")
    for top in (0, 1):
        # it does lose, for it learns from the data too
        assert above(centred[..., top], 0.005)
        # but less: measured a half, 0.44 on MNIST
        assert centred[..., top].mean() < 0.8 * klsh[..., top].mean()


def test_a_mean_of_one_class_is_no_worse_than_none(found):
    """Measured in the first 20: 0.030 better on digits (standard deviation of a
    run 0.012), 0.002 worse on MNIST (0.014)."""
    difference = found["centred", "one"] - found["plain"]
    assert above(difference[..., 1], -0.025)


def test_on_mnist_a_hash_without_training_is_ahead_of_the_wrong_landmarks(of_mnist):
    """In the first 10 by 0.052 (standard deviation of a run 0.048, least 0.008)
    and in the first 100 by 0.026 (0.028, least 0.005). Not so on digits: there
    it is 0.018 behind in the first 10, and 0.002 ahead in the first 100."""
    difference = of_mnist["plain"] - of_mnist["klsh", "one"]
    assert (difference[..., 0].mean(axis=1) > 0).all()
    assert difference[..., 0].mean() > 0.02
    assert difference[..., 2].mean() > 0.01


@pytest.mark.parametrize("string", ["AHK256(chi2)", "AHK256(js,order=3)", "SCR256", "RHBE256"])
def test_hashes_without_training_have_the_same_codes_whatever_they_are_given(
    digits_clusters, string
):
    data = digits_clusters
    untrained = faiss_ext.kernel_hash_factory(64, string)
    codes = untrained.encode(data.base)
    for training in (data.one(0), data.one(7), data.base, data.base[:1]):
        index = faiss.index_factory(64, string + ",BFlat")
        index.train(training)
        np.testing.assert_array_equal(index.hash.encode(data.base), codes)
        # nor does it matter where in a program train is called
        index.add(training)
        index.train(data.one(3))
        np.testing.assert_array_equal(index.hash.encode(data.base), codes)


def test_what_learns_has_other_codes_for_each_cluster(digits_clusters):
    data = digits_clusters
    for string in ("KLSH256(chi2,p=100,t=30)", "AHK256(chi2,center=1)"):
        codes = []
        for c in (0, 1, 0):
            hash = faiss_ext.kernel_hash_factory(64, string)
            hash.train(data.one(c))
            codes.append(hash.encode(data.base))
        np.testing.assert_array_equal(codes[0], codes[2])
        assert np.unpackbits(codes[0] ^ codes[1], axis=1).mean() > 0.05


# ------------------------------------------- clusters with nothing in common


@functools.lru_cache(maxsize=None)
def strangers():
    """Ten clusters, each with eight bins of its own among 80."""
    rng = np.random.default_rng(6)
    clusters = np.repeat(np.arange(10), 120)
    x = np.zeros((1200, 80))
    for c in range(10):
        x[clusters == c, 8 * c : 8 * c + 8] = rng.dirichlet(np.ones(8), 120)
    order = rng.permutation(1200)
    x, clusters = x[order], clusters[order]
    return Clusters(x[200:], clusters[200:], x[:200], clusters[:200])


@pytest.mark.parametrize("center", [0, 1])
def test_landmarks_see_nothing_of_clusters_they_share_no_bin_with(center):
    """Every kernel value is 0 there, so that all have one code."""
    data = strangers()
    for c in (0, 4):
        hash = faiss_ext.kernel_hash_factory(80, f"KLSH256(chi2,p=50,t=15,center={center})")
        hash.train(data.one(c))
        codes = hash.encode(data.base[data.clusters != c])
        assert (codes == codes[0]).all()
        own = hash.encode(data.one(c))
        assert len(np.unique(own, axis=0)) > 0.9 * len(own)


def test_hashes_of_maps_see_all_clusters():
    """With clusters 0 to 4 to learn from and seeds 1 and 2: the share of the ten
    nearest that queries of other clusters have among the first 20.
    Measured: KLSH 0.03 (by chance 0.02), AHK 0.96, with center=1 0.92."""
    data = strangers()
    chance = 20 / len(data.base)
    shares = {
        string: np.mean(
            [
                data.recalls(string.format(s), data.one(c), c)[1]
                for c in range(5)
                for s in (1, 2)
            ]
        )
        for string in (
            "KLSH256(chi2,p=50,t=15,seed={})",
            "AHK256(chi2,seed={})",
            "AHK256(chi2,center=1,seed={})",
        )
    }
    klsh, plain, centred = shares.values()
    assert klsh < 3 * chance
    assert plain > 0.6
    assert centred > 0.6
