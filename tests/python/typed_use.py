# SPDX-License-Identifier: MIT
"""Ordinary use of the package, whose types are checked and which is run
(test_api.py)."""

import tempfile
from pathlib import Path

import faiss_ext
import numpy as np
from faiss_ext.sklearn import KernelNeighbors, KernelNeighborsTransformer
from numpy.typing import NDArray

x: NDArray[np.float32] = np.random.default_rng(1).random((400, 16), dtype="float32")
queries = x[:5]

# factories, searches, parts and parameters
index = faiss_ext.index_factory(16, "KFlat(laplacian)")
index.train(x)
index.add(x)
D, I = index.search(queries, 3)
distances: NDArray[np.float32] = D
lims, D, I = index.range_search(queries, 0.5)
gamma: float = index.kernel.gamma
values: NDArray[np.float64] = faiss_ext.kernel_values(index, D)
faiss_ext.index_factory(16, "KFlat(chi2)").search(queries, 3)
total: int = index.ntotal
total = len(index)
restored = index.reconstruct_n(0, 2)

refined = faiss_ext.index_factory(16, "AHK64(chi2,center=1),BFlat,Refine(KFlat(chi2))")
refined.train(x)
refined.add(x)
refined.k_factor = 10
refined.search(queries, 3)
lists = faiss_ext.index_factory(16, "HKM1(chi2),KIVF4")
lists.train(x)
lists.add(x)
faiss_ext.set_index_parameter(lists, "nprobe", 2)
nprobe = faiss_ext.index_parameters(lists)["nprobe"]
description: str = faiss_ext.index_string(lists)

# binary indexes
fingerprints = np.packbits(x > 0.5, axis=1)
binary = faiss_ext.index_binary_factory(16, "BKFlat(jaccard)")
binary.add(fingerprints)
integers, I = binary.search(fingerprints[:2], 3)
binary.range_search(fingerprints[:2], binary.distance(0.8))

# classes
flat = faiss_ext.IndexFlatKernel(16, faiss_ext.GaussianKernel(0.5))
flat.add(x)
D, I = flat.search(queries, 3)
gamma = flat.kernel.gamma
kernel = faiss_ext.kernel_factory("gaussian(gamma=2)")
gamma = kernel.gamma
matrix: NDArray[np.float32] = kernel.gram(queries)
value: float = kernel(x[0], x[1])
hash = faiss_ext.kernel_hash_factory(16, "SIK64(gaussian)")
hash.train(x)
codes: NDArray[np.uint8] = hash.encode(x)
bits: int = hash.nbits
gamma = hash.kernel.gamma
map = faiss_ext.map_factory(16, "HKM1(chi2)")
features: NDArray[np.float32] = map.apply(x)
mine = faiss_ext.CallbackKernel(lambda X, Y: np.minimum(X[:, None], Y[None]).sum(axis=2))
faiss_ext.KernelizedLSH(16, 64, mine).train(x)

# files and copies
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "vectors.index"
    faiss_ext.write_index(index, path)
    index = faiss_ext.read_index(path)
    index.search(queries, 3)
    binary_path = str(Path(folder) / "binary.index")
    faiss_ext.write_index_binary(binary, binary_path)
    faiss_ext.read_index_binary(binary_path).search(fingerprints[:2], 3)
    np.save(Path(folder) / "x.npy", x)
    mapped = faiss_ext.file_index(Path(folder) / "x.npy", "chi2")
    mapped.search(queries, 3)
faiss_ext.clone_index(index).search(queries, 3)

# advice and calibration
found = faiss_ext.recommend(x[:100], "chi2", recall=0.9)
print(found)
string: str = found.string
found.build(x).search(queries, 3)
calibration = faiss_ext.calibrate(refined, x, queries, k=40)
likely: NDArray[np.float64] = calibration.value(refined.search(queries, 3)[0])
low, high = calibration.interval(D)

# scikit-learn
neighbors = KernelNeighbors("KFlat(chi2)", n_neighbors=5).fit(x)
far, which = neighbors.kneighbors(queries)
print(far.max(), which.shape, neighbors.index_.ntotal)
ids: NDArray[np.int64] = neighbors.kneighbors(queries, return_distance=False)
within, which = neighbors.radius_neighbors(queries, 0.5)
graph = KernelNeighborsTransformer(n_neighbors=5).fit(x).transform(queries)
print(graph.shape)

for field in faiss_ext.describe("AHK").fields:
    print(field.key)
