# SPDX-License-Identifier: MIT
# Written by scripts/make_stubs.py.

import os
from typing import Any, Callable, Iterator, NamedTuple, type_check_only

import faiss
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .advice import Tried

__version__: str

__all__ = [
    "AdditiveKernel",
    "AdditiveKernelHash",
    "BandwidthKernel",
    "BilinearProjection",
    "BilinearShiftInvariantHash",
    "BitKernel",
    "Calibration",
    "CallbackKernel",
    "CenteredHash",
    "Chi2Kernel",
    "CombinedKernel",
    "ConsistentSamplingHash",
    "CosineBitKernel",
    "CosineKernel",
    "DenseProjection",
    "Description",
    "DiceBitKernel",
    "DiceKernel",
    "ExpChi2Kernel",
    "ExponentialKernel",
    "FeatureMap",
    "Field",
    "Fingerprints",
    "FrequencyHash",
    "FrequencyMap",
    "GaussianKernel",
    "GeneratedProjection",
    "HammingBitKernel",
    "HashAndStorage",
    "HellingerKernel",
    "HomogeneousKernelMap",
    "HyperplaneHash",
    "IndexAsymmetricHash",
    "IndexBinaryConcurrent",
    "IndexBinaryFlatKernel",
    "IndexBinaryFlatSIMD",
    "IndexBinaryHNSWKernel",
    "IndexBinaryHNSWSIMD",
    "IndexBinaryIDTable",
    "IndexBinaryIVFSIMD",
    "IndexBinaryKernelHash",
    "IndexBinaryPermuted",
    "IndexBinaryPermutedStats",
    "IndexBinaryRefineKernel",
    "IndexConcurrent",
    "IndexFileKernel",
    "IndexFlatKernel",
    "IndexHNSWKernel",
    "IndexIDTable",
    "IndexIVFPQ4",
    "IndexKernelHash",
    "IndexPreTransformSIMD",
    "IndexRefineKernel",
    "IndexSparseKernel",
    "IntersectionKernel",
    "JaccardBitKernel",
    "JaccardKernel",
    "JensenShannonKernel",
    "Kernel",
    "KernelHash",
    "KernelPCA",
    "KernelizedLSH",
    "LaplacianKernel",
    "LinearKernel",
    "MaternKernel",
    "Names",
    "NormalizedKernel",
    "OverlapKernel",
    "ParameterSpace",
    "PolynomialKernel",
    "ProductKernel",
    "Projection",
    "ProjectionChoice",
    "ProjectionHash",
    "RandomFourierMap",
    "Recommendation",
    "RussellRaoBitKernel",
    "SearchParametersRefine",
    "ShardError",
    "ShardedIndex",
    "ShiftInvariantHash",
    "ShiftInvariantKernel",
    "SignCauchyHash",
    "SpectralHash",
    "StructuredProjection",
    "SumKernel",
    "Transform",
    "TverskyBitKernel",
    "VectorFileError",
    "WrappedKernel",
    "bit_kernel_factory",
    "bit_kernel_names",
    "bits_for",
    "build_from",
    "build_shards",
    "butina_clusters",
    "calibrate",
    "clone_binary_index",
    "clone_index",
    "describe",
    "described_names",
    "file_index",
    "fingerprint_batches",
    "hash_names",
    "holds_faiss_ext",
    "index_binary_factory",
    "index_factory",
    "index_parameters",
    "index_string",
    "instruction_set",
    "is_faiss_ext_string",
    "kernel_factory",
    "kernel_hash_factory",
    "kernel_names",
    "kernel_values",
    "map_factory",
    "map_names",
    "maxmin_picks",
    "mean_neighbor_distance",
    "near_duplicate_groups",
    "near_duplicates",
    "open_shards",
    "read_VectorTransform",
    "read_fingerprints",
    "read_index",
    "read_index_binary",
    "read_names",
    "recommend",
    "retrained",
    "set_index_parameter",
    "show_progress",
    "show_versions",
    "threshold_graph",
    "versions",
    "write_VectorTransform",
    "write_fps",
    "write_index",
    "write_index_binary",
]

class BitKernel:
    def __init__(self) -> None: ...
    def is_symmetric(self) -> bool: ...
    def is_one_for_equal(self) -> bool: ...
    def description(self) -> str: ...
    def copy(self) -> BitKernel: ...
    def check_parameters(self) -> None: ...
    def gram(
        self,
        x: ArrayLike,
        y: ArrayLike | None = ...,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.float32]: ...
    def __call__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> float: ...

class Calibration:
    distances: NDArray[np.float64]
    values: NDArray[np.float64]
    width: int
    maximum: float
    exact: Callable | None
    def __init__(
        self,
        distances: ArrayLike,
        values: ArrayLike,
        width: int = ...,
        *,
        maximum: float = ...,
        exact: Callable | None = ...,
    ) -> None: ...
    def value(self, D: ArrayLike) -> NDArray[np.float64]: ...
    def interval(
        self,
        D: ArrayLike,
        failure: float = ...,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

class Description:
    name: str
    summary: str
    fields: tuple[Field, ...]
    def __init__(
        self,
        name: str,
        summary: str,
        fields: tuple[Field, ...],
    ) -> None: ...
    def __iter__(self) -> Iterator[Field]: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object) -> bool: ...
    def __getitem__(self, key: str) -> Field: ...

class HashAndStorage:
    @property
    def hash(self) -> _AnyHash: ...
    @property
    def storage(self) -> _AnyBinaryIndex: ...
    own_fields: bool
    def __init__(self) -> None: ...

class IndexBinaryPermutedStats:
    nq: int
    ncandidates: int
    ntotal: int
    def reset(self) -> None: ...
    def __init__(self) -> None: ...

class Kernel:
    is_trained: bool
    verbose: bool
    max_self_value: float
    least_self_value: float
    def __init__(self) -> None: ...
    def description(self) -> str: ...
    def copy(self) -> _AnyKernel: ...
    def check_parameters(self) -> None: ...
    def train(self, x: ArrayLike) -> None: ...
    def gram(
        self,
        x: ArrayLike,
        y: ArrayLike | None = ...,
        *,
        packed: bool | int | None = ...,
    ) -> NDArray[np.float32]: ...
    def __call__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        packed: bool | int | None = ...,
    ) -> float: ...

class Names:
    def __init__(self) -> None: ...
    def add(
        self,
        names: Sequence[str],
        ids: ArrayLike | None = ...,
    ) -> NDArray[np.int64]: ...
    def ids(self, names: Sequence[str]) -> NDArray[np.int64]: ...
    def contains(
        self,
        names: Sequence[str] | ArrayLike,
    ) -> NDArray[np.bool_]: ...
    def of(self, ids: ArrayLike) -> NDArray[np.object_]: ...
    def remove(
        self,
        names: Sequence[str] | ArrayLike,
    ) -> NDArray[np.int64]: ...
    def __len__(self) -> Any: ...
    def __contains__(self, name: Any) -> Any: ...
    def __iter__(self) -> Any: ...

class Projection:
    @property
    def d_in(self) -> int: ...
    @property
    def d_out(self) -> int: ...
    def __init__(self) -> None: ...
    def matrix(self) -> NDArray[np.float32]: ...
    def apply(self, x: ArrayLike) -> NDArray[np.float32]: ...

class ProjectionChoice:
    kind: str
    d_w: int
    d_v: int
    m: int
    w: str
    shuffle: bool
    most_stored_inputs: int
    def __init__(self, kind: str) -> None: ...
    def is_independent(self) -> bool: ...

class Recommendation:
    string: str
    parameters: dict
    recall: float
    queries_per_second: float
    usual_queries_per_second: float
    bytes_per_vector: float
    build_seconds: float
    fits: bool
    tried: list[Tried]
    disturbed: bool
    impossible: dict[str, str]
    limits: dict[str, float]
    n: int
    extrapolated: bool
    sample_size: int
    k: int
    d: int
    threads: int
    make: Callable[[int], _AnyIndex | _AnyBinaryIndex]
    packed: bool
    single_queries_per_second: float | None
    packed: bool
    @property
    def fastest_single(self) -> Tried | None: ...
    @property
    def as_fast(self) -> list[str]: ...
    def build(self, x: ArrayLike) -> _AnyIndex | _AnyBinaryIndex: ...
    def __init__(
        self,
        string: str,
        parameters: dict,
        recall: float,
        queries_per_second: float,
        usual_queries_per_second: float,
        bytes_per_vector: float,
        build_seconds: float,
        fits: bool,
        tried: list[Tried],
        disturbed: bool,
        impossible: dict[str, str],
        limits: dict[str, float],
        n: int,
        extrapolated: bool,
        sample_size: int,
        k: int,
        d: int,
        threads: int,
        make: Callable[[int], faiss.Index | faiss.IndexBinary],
        packed: bool = ...,
        single_queries_per_second: float | None = ...,
    ) -> None: ...

class ShardedIndex:
    d: int
    ntotal: int
    metric_type: int
    shards: list[dict[str, Any]]
    model: _AnyIndex | _AnyBinaryIndex
    string: str
    def __init__(
        self,
        model: Any,
        string: Any,
        shards: Any,
        place: Any,
        seed: Any = ...,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any: ...
    def close(self) -> None: ...
    def set_parameter(self, name: str, value: float) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[Any], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        radius: float,
        *,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.uint64], NDArray[Any], NDArray[np.int64]]: ...
    def reconstruct(self, key: int) -> NDArray[Any]: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def to_faiss(self) -> faiss.IndexShards | faiss.IndexBinaryShards: ...
    def save(self, folder: str | os.PathLike[str]) -> None: ...

class AdditiveKernel(Kernel):
    def __init__(self) -> None: ...
    def signature(self, _lambda: float) -> float: ...
    def spectrum(self, omega: float) -> float: ...
    def default_period(self, order: int, window: str) -> float: ...

class BandwidthKernel(Kernel):
    @property
    def gamma(self) -> float: ...
    @property
    def auto_gamma(self) -> bool: ...
    min_gamma: float
    max_gamma: float
    def __init__(self) -> None: ...

class BilinearProjection(Projection):
    @property
    def d_w(self) -> int: ...
    @property
    def d_v(self) -> int: ...
    @property
    def m(self) -> int: ...
    @property
    def structured(self) -> bool: ...
    @property
    def k_w(self) -> int: ...
    @property
    def k_v(self) -> int: ...
    source: faiss.Int32Vector
    W: faiss.Float32Vector
    signs: faiss.Float32Vector
    norms: faiss.Float32Vector
    pair_w: faiss.Int32Vector
    pair_v: faiss.Int32Vector
    @property
    def V(self) -> NDArray[np.float32]: ...
    def __init__(
        self,
        d_w: int,
        d_v: int,
        d_out: int,
        m: int,
        structured: bool,
        seed: int,
        factor: float = ...,
        shuffle: bool = ...,
    ) -> None: ...
    def padded_d_v(self) -> int: ...
    def memory(self) -> int: ...
    @staticmethod
    def nearly_square(d: int) -> int: ...

class CallbackKernel(Kernel):
    @property
    def name(self) -> str: ...
    max_name_length: int
    def __init__(
        self,
        function: Callable[[NDArray[np.float32], NDArray[np.float32]], Any],
        name: str | None = ...,
    ) -> None: ...
    def description(self) -> str: ...

class CombinedKernel(Kernel):
    def __init__(self) -> None: ...

class CosineBitKernel(BitKernel):
    def __init__(self) -> None: ...

class CosineKernel(Kernel):
    def __init__(self) -> None: ...

class DenseProjection(Projection):
    def __init__(self, d_in: int, d_out: int) -> None: ...

class DiceBitKernel(BitKernel):
    def __init__(self) -> None: ...

class Field(NamedTuple):
    key: str
    values: str
    default: str
    meaning: str

class Fingerprints(faiss.tuple):
    codes: ForwardRef('NDArray[np.uint8]')
    names: ForwardRef('list[str] | None')
    bits: int
    type: ForwardRef('str | None')
    skipped: ForwardRef('list[str]')

class GeneratedProjection(Projection):
    seed: int
    law: str
    scales: faiss.Float32Vector
    def __init__(self) -> None: ...

class HammingBitKernel(BitKernel):
    def __init__(self) -> None: ...

class IndexAsymmetricHash(faiss.Index):
    @property
    def hash(self) -> _AnyHash: ...
    def __init__(self, hash: KernelHash, metric: int = ...) -> None: ...
    def train(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add_with_ids(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]: ...
    def reconstruct(
        self,
        key: int,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reset(self) -> None: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def check_compatible_for_merge(self, otherIndex: faiss.Index) -> None: ...
    def merge_from(
        self,
        otherIndex: faiss.Index,
        add_id: int = ...,
    ) -> None: ...
    def sa_code_size(self) -> int: ...
    def sa_encode(
        self,
        x: ArrayLike,
        codes: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def sa_decode(
        self,
        codes: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def get_distance_computer(self) -> Any: ...
    def assign(
        self,
        x: ArrayLike,
        k: int,
        labels: NDArray[np.int64] | None = ...,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.int64]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        R: NDArray[np.float32] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexBinaryConcurrent(faiss.IndexBinary):
    @property
    def index(self) -> _AnyBinaryIndex: ...
    own_fields: bool
    def __init__(self, index: faiss.IndexBinary) -> None: ...
    def train(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add_with_ids(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def reset(self) -> None: ...
    def merge_from(
        self,
        other: faiss.IndexBinary,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, other: faiss.IndexBinary) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]: ...
    def reconstruct(self, key: int) -> NDArray[np.uint8]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def train_codes(self, x: ArrayLike) -> None: ...
    def add_codes(self, x: ArrayLike) -> None: ...
    def add_codes_with_ids(self, x: ArrayLike, ids: ArrayLike) -> None: ...
    def search_codes(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def range_search_codes(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]: ...
    def assign(
        self,
        x: ArrayLike,
        k: int = ...,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.int64]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexBinaryFlatKernel(faiss.IndexBinary):
    @property
    def kernel(self) -> BitKernel: ...
    def __init__(self) -> None: ...
    @staticmethod
    def kernel_value(distance: int) -> float: ...
    @staticmethod
    def distance(kernel_value: float) -> int: ...
    def train(self, x: ArrayLike) -> None: ...
    def add(self, x: ArrayLike) -> None: ...
    def add_with_ids(self, x: ArrayLike, ids: ArrayLike) -> None: ...
    def reset(self) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def remember_places(self) -> None: ...
    def reconstruct(self, key: int) -> NDArray[np.uint8]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def merge_from(
        self,
        other: faiss.IndexBinary,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, other: faiss.IndexBinary) -> None: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]: ...
    def assign(self, x: ArrayLike, k: int = ...) -> NDArray[np.int64]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexBinaryPermuted(faiss.IndexBinary):
    eps: float
    M: int
    B: int
    seed: int
    max_gb: float
    xb: faiss.UInt8Vector
    def __init__(self, d: int, eps: float = ..., B: int = ...) -> None: ...
    def add(self, x: ArrayLike) -> None: ...
    def add_with_ids(self, x: ArrayLike, ids: ArrayLike) -> None: ...
    def reset(self) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def reconstruct(self, key: int) -> NDArray[np.uint8]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def merge_from(
        self,
        other: faiss.IndexBinary,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, other: faiss.IndexBinary) -> None: ...
    def num_lists(self, n: int) -> int: ...
    def bytes_of_lists(self, n: int) -> float: ...
    def rebuild(self) -> None: ...
    def check_parameters(self) -> None: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]: ...
    def train(self, x: ArrayLike) -> None: ...
    def assign(self, x: ArrayLike, k: int = ...) -> NDArray[np.int64]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexBinaryRefineKernel(faiss.IndexBinary):
    base_index: _AnyBinaryIndex
    refine_index: IndexBinaryFlatKernel
    own_fields: bool
    k_factor: float
    def __init__(
        self,
        base_index: faiss.IndexBinary,
        refine_index: IndexBinaryFlatKernel,
    ) -> None: ...
    def train(self, x: ArrayLike) -> None: ...
    def add(self, x: ArrayLike) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]: ...
    def add_with_ids(self, x: ArrayLike, ids: ArrayLike) -> None: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def reset(self) -> None: ...
    def merge_from(
        self,
        other: faiss.IndexBinary,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, other: faiss.IndexBinary) -> None: ...
    def reconstruct(self, key: int) -> NDArray[np.uint8]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]: ...
    def assign(self, x: ArrayLike, k: int = ...) -> NDArray[np.int64]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    @staticmethod
    def distance(kernel_value: float) -> int: ...
    @staticmethod
    def kernel_value(distance: int) -> float: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexConcurrent(faiss.Index):
    @property
    def index(self) -> _AnyIndex: ...
    own_fields: bool
    def __init__(self, index: faiss.Index) -> None: ...
    def train(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add_with_ids(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def reset(self) -> None: ...
    def merge_from(
        self,
        otherIndex: faiss.Index,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, otherIndex: faiss.Index) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        R: NDArray[np.float32] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]: ...
    def reconstruct(
        self,
        key: int,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def get_distance_computer(self) -> Any: ...
    def sa_code_size(self) -> int: ...
    def assign(
        self,
        x: ArrayLike,
        k: int,
        labels: NDArray[np.int64] | None = ...,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.int64]: ...
    def sa_encode(
        self,
        x: ArrayLike,
        codes: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def sa_decode(
        self,
        codes: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexIVFPQ4(faiss.Index):
    @property
    def nlist(self) -> int: ...
    @property
    def M(self) -> int: ...
    @property
    def residual(self) -> bool: ...
    nprobe: int
    @property
    def seed(self) -> int: ...
    next_id: int
    def __init__(
        self,
        d: int,
        nlist: int,
        M: int = ...,
        metric: int = ...,
    ) -> None: ...
    def train(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add_with_ids(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]: ...
    def make_direct_map(self, on: bool = ...) -> None: ...
    def reconstruct(
        self,
        key: int,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def reset(self) -> None: ...
    def check_compatible_for_merge(self, otherIndex: faiss.Index) -> None: ...
    def merge_from(
        self,
        otherIndex: faiss.Index,
        add_id: int = ...,
    ) -> None: ...
    def sa_code_size(self) -> int: ...
    def sa_encode(
        self,
        x: ArrayLike,
        codes: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def sa_decode(
        self,
        codes: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def bytes_per_vector(self) -> int: ...
    def check_parameters(self) -> None: ...
    def get_distance_computer(self) -> Any: ...
    def assign(
        self,
        x: ArrayLike,
        k: int,
        labels: NDArray[np.int64] | None = ...,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.int64]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        R: NDArray[np.float32] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class JaccardBitKernel(BitKernel):
    def __init__(self) -> None: ...

class LinearKernel(Kernel):
    def __init__(self) -> None: ...

class OverlapKernel(Kernel):
    def __init__(self) -> None: ...

class ParameterSpace(faiss.ParameterSpace):
    usual_times: dict[str, float]
    is_disturbed: bool
    def initialize(self, index: faiss.Index | faiss.IndexBinary) -> None: ...
    def ranges(self) -> dict[str, NDArray[np.float64]]: ...
    def set_index_parameter(
        self,
        index: faiss.Index | faiss.IndexBinary,
        name: str,
        val: float,
    ) -> None: ...
    def set_index_parameters(
        self,
        index: faiss.Index | faiss.IndexBinary,
        params: str | int,
    ) -> None: ...
    def explore(
        self,
        index: faiss.Index | faiss.IndexBinary,
        xq: ArrayLike,
        crit: faiss.AutoTuneCriterion,
    ) -> faiss.OperatingPoints: ...

class PolynomialKernel(Kernel):
    degree: int
    c: float
    def __init__(self, degree: int, c: float = ...) -> None: ...

class RussellRaoBitKernel(BitKernel):
    def is_one_for_equal(self) -> bool: ...
    def __init__(self) -> None: ...

class SearchParametersRefine(faiss.SearchParameters):
    k_factor: float
    base_params: faiss.SearchParameters
    def __init__(
        self,
        k_factor: float,
        *,
        base_params: faiss.SearchParameters | None = ...,
        sel: faiss.IDSelector | None = ...,
    ) -> None: ...

class StructuredProjection(Projection):
    def __init__(self) -> None: ...
    @staticmethod
    def order(d_in: int) -> int: ...

class Transform(faiss.VectorTransform):
    verbose: bool
    def __init__(self) -> None: ...
    def check_identical(self, other: faiss.VectorTransform) -> None: ...
    def rows_per_block(self, n: int) -> int: ...
    def description(self) -> str: ...
    def train(self, x: ArrayLike) -> None: ...
    def apply(self, x: ArrayLike) -> NDArray[np.float32]: ...
    def apply_py(self, x: ArrayLike) -> NDArray[np.float32]: ...
    def reverse_transform(self, x: ArrayLike) -> NDArray[np.float32]: ...

class TverskyBitKernel(BitKernel):
    alpha: float
    beta: float
    def __init__(self, alpha: float, beta: float) -> None: ...
    def is_symmetric(self) -> bool: ...

class WrappedKernel(Kernel):
    @property
    def kernel(self) -> _AnyKernel: ...
    def __init__(self) -> None: ...

class Chi2Kernel(AdditiveKernel):
    def __init__(self) -> None: ...
    def signature(self, _lambda: float) -> float: ...
    def spectrum(self, omega: float) -> float: ...
    def default_period(self, order: int, window: str) -> float: ...

class DiceKernel(OverlapKernel):
    def __init__(self) -> None: ...

class ExpChi2Kernel(BandwidthKernel):
    def __init__(self, gamma: float = ...) -> None: ...

class ExponentialKernel(WrappedKernel):
    scale: float
    def __init__(self, kernel: Kernel, scale: float) -> None: ...

class FeatureMap(Transform):
    def __init__(self) -> None: ...
    def description(self) -> str: ...
    def copy(self) -> _AnyMap: ...
    def check_parameters(self) -> None: ...

class HellingerKernel(AdditiveKernel):
    def __init__(self) -> None: ...
    def signature(self, _lambda: float) -> float: ...
    def spectrum(self, omega: float) -> float: ...
    def default_period(self, order: int, window: str) -> float: ...

class IndexBinaryFlatSIMD(faiss.IndexBinaryFlat):
    xb: Any
    def __init__(self, d: int) -> None: ...
    def add_with_ids(self, x: ArrayLike, ids: ArrayLike) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]: ...
    def reconstruct(self, key: int) -> NDArray[np.uint8]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def merge_from(
        self,
        other: faiss.IndexBinary,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, other: faiss.IndexBinary) -> None: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]: ...
    def reset(self) -> None: ...
    def train(self, x: ArrayLike) -> None: ...
    def add(self, x: ArrayLike) -> None: ...
    def assign(self, x: ArrayLike, k: int = ...) -> NDArray[np.int64]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexBinaryHNSWSIMD(faiss.IndexBinaryHNSW):
    storage: _AnyBinaryIndex
    hnsw: faiss.HNSW
    def __init__(self, d: int, M: int = ...) -> None: ...
    def add(self, x: ArrayLike) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]: ...
    def reconstruct(self, key: int) -> NDArray[np.uint8]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def reset(self) -> None: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def compact(self) -> None: ...
    def num_removed(self) -> int: ...
    def merge_from(
        self,
        other: faiss.IndexBinary,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, other: faiss.IndexBinary) -> None: ...
    def add_with_ids(self, x: ArrayLike, ids: ArrayLike) -> None: ...
    def get_distance_computer(self) -> Any: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]: ...
    def train(self, x: ArrayLike) -> None: ...
    def assign(self, x: ArrayLike, k: int = ...) -> NDArray[np.int64]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexBinaryIDTable(faiss.IndexBinaryIDMap):
    @property
    def next_id(self) -> int: ...
    index: _AnyBinaryIndex
    id_map: faiss.Int64Vector
    def __init__(self, index: faiss.IndexBinary) -> None: ...
    def train(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add_with_ids(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]: ...
    def reconstruct(self, key: int) -> NDArray[np.uint8]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def merge_from(
        self,
        other: faiss.IndexBinary,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, other: faiss.IndexBinary) -> None: ...
    def reset(self) -> None: ...
    def position_of(self, id: int) -> int: ...
    def train_codes(self, x: ArrayLike) -> None: ...
    def add_codes(self, x: ArrayLike) -> None: ...
    def add_codes_with_ids(self, x: ArrayLike, ids: ArrayLike) -> None: ...
    def search_codes(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def range_search_codes(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]: ...
    def assign(
        self,
        x: ArrayLike,
        k: int = ...,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.int64]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexBinaryIVFSIMD(faiss.IndexBinaryIVF):
    quantizer: _AnyBinaryIndex
    invlists: faiss.InvertedLists
    def __init__(
        self,
        quantizer: faiss.IndexBinary,
        d: int,
        nlist: int,
    ) -> None: ...
    def train(self, x: ArrayLike) -> None: ...
    def merge_from(
        self,
        other: faiss.IndexBinary,
        add_id: int = ...,
    ) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]: ...
    def reconstruct(self, key: int) -> NDArray[np.uint8]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def check_compatible_for_merge(self, other: faiss.IndexBinary) -> None: ...
    def next_new_id(self) -> int: ...
    def reset(self) -> None: ...
    def add(self, x: ArrayLike) -> None: ...
    def add_with_ids(self, x: ArrayLike, ids: ArrayLike) -> None: ...
    def assign(self, x: ArrayLike, k: int = ...) -> NDArray[np.int64]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def replace_invlists(
        self,
        il: faiss.InvertedLists,
        own: bool = ...,
    ) -> None: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexBinaryKernelHash(faiss.IndexBinary, HashAndStorage):
    def __init__(
        self,
        hash: KernelHash,
        storage: faiss.IndexBinary,
    ) -> None: ...
    def train(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add_with_ids(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]: ...
    def reset(self) -> None: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def reconstruct(self, key: int) -> NDArray[np.uint8]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def merge_from(
        self,
        other: faiss.IndexBinary,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, other: faiss.IndexBinary) -> None: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]: ...
    def train_codes(self, x: ArrayLike) -> None: ...
    def add_codes(self, x: ArrayLike) -> None: ...
    def add_codes_with_ids(self, x: ArrayLike, ids: ArrayLike) -> None: ...
    def search_codes(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def range_search_codes(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]: ...
    def assign(
        self,
        x: ArrayLike,
        k: int = ...,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.int64]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexFlatKernel(faiss.IndexFlatCodes):
    @property
    def kernel(self) -> _AnyKernel: ...
    @property
    def store(self) -> str: ...
    codes: Any
    def __init__(
        self,
        d: int,
        kernel: Kernel,
        metric: int = ...,
        store: str = ...,
    ) -> None: ...
    def train(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add_with_ids(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def sa_encode(
        self,
        x: ArrayLike,
        codes: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def sa_decode(
        self,
        codes: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def check_compatible_for_merge(self, otherIndex: faiss.Index) -> None: ...
    def get_FlatCodesDistanceComputer(self) -> Any: ...
    def get_distance_computer(self) -> Any: ...
    def merge_from(
        self,
        otherIndex: faiss.Index,
        add_id: int = ...,
    ) -> None: ...
    def reset(self) -> None: ...
    def sa_code_size(self) -> int: ...
    def assign(
        self,
        x: ArrayLike,
        k: int,
        labels: NDArray[np.int64] | None = ...,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.int64]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        R: NDArray[np.float32] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]: ...
    def reconstruct(
        self,
        key: int,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def compute_distance_subset(
        self,
        x: ArrayLike,
        labels: ArrayLike,
    ) -> NDArray[np.float32]: ...
    def compute_kernel_subset(
        self,
        x: ArrayLike,
        labels: ArrayLike,
    ) -> NDArray[np.float32]: ...
    def compute_score_subset(
        self,
        x: ArrayLike,
        labels: ArrayLike,
    ) -> NDArray[np.float32]: ...
    def search_scores(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
    def values_of_scores(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
    def permute_entries(self, perm: ArrayLike) -> None: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexHNSWKernel(faiss.IndexHNSW):
    storage: _AnyIndex
    hnsw: faiss.HNSW
    def __init__(self, storage: IndexFlatKernel, M: int = ...) -> None: ...
    def add(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]: ...
    def reconstruct(
        self,
        key: int,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reset(self) -> None: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def compact(self) -> None: ...
    def num_removed(self) -> int: ...
    def merge_from(
        self,
        otherIndex: faiss.Index,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, otherIndex: faiss.Index) -> None: ...
    def add_with_ids(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def sa_code_size(self) -> int: ...
    def sa_encode(
        self,
        x: ArrayLike,
        codes: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def sa_decode(
        self,
        codes: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def get_distance_computer(self) -> Any: ...
    def train(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def assign(
        self,
        x: ArrayLike,
        k: int,
        labels: NDArray[np.int64] | None = ...,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.int64]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        R: NDArray[np.float32] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def search_scores(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
    def values_of_scores(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
    def link_singletons(self) -> None: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexIDTable(faiss.IndexIDMap):
    @property
    def next_id(self) -> int: ...
    index: _AnyIndex
    id_map: faiss.Int64Vector
    def __init__(self, index: faiss.Index) -> None: ...
    def train(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add_with_ids(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        R: NDArray[np.float32] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]: ...
    def reconstruct(
        self,
        key: int,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def merge_from(
        self,
        otherIndex: faiss.Index,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, otherIndex: faiss.Index) -> None: ...
    def reset(self) -> None: ...
    def position_of(self, id: int) -> int: ...
    def get_distance_computer(self) -> Any: ...
    def sa_code_size(self) -> int: ...
    def assign(
        self,
        x: ArrayLike,
        k: int,
        labels: NDArray[np.int64] | None = ...,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.int64]: ...
    def sa_encode(
        self,
        x: ArrayLike,
        codes: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def sa_decode(
        self,
        codes: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexKernelHash(faiss.Index, HashAndStorage):
    def __init__(
        self,
        hash: KernelHash,
        storage: faiss.IndexBinary,
        metric: int = ...,
    ) -> None: ...
    def train(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add_with_ids(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]: ...
    def reconstruct(
        self,
        key: int,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reset(self) -> None: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def merge_from(
        self,
        otherIndex: faiss.Index,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, otherIndex: faiss.Index) -> None: ...
    def sa_code_size(self) -> int: ...
    def sa_encode(
        self,
        x: ArrayLike,
        codes: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def sa_decode(
        self,
        codes: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def get_distance_computer(self) -> Any: ...
    def assign(
        self,
        x: ArrayLike,
        k: int,
        labels: NDArray[np.int64] | None = ...,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.int64]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        R: NDArray[np.float32] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexPreTransformSIMD(faiss.IndexPreTransform):
    verify_chain: bool
    index: _AnyIndex
    chain: faiss.VectorTransformVector
    def __init__(self, index: faiss.Index) -> None: ...
    def train(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add_with_ids(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]: ...
    def reconstruct(
        self,
        key: int,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def sa_decode(
        self,
        codes: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def merge_from(
        self,
        otherIndex: faiss.Index,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, otherIndex: faiss.Index) -> None: ...
    def get_distance_computer(self) -> Any: ...
    def reset(self) -> None: ...
    def sa_code_size(self) -> int: ...
    def assign(
        self,
        x: ArrayLike,
        k: int,
        labels: NDArray[np.int64] | None = ...,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.int64]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        R: NDArray[np.float32] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]: ...
    def sa_encode(
        self,
        x: ArrayLike,
        codes: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def prepend_transform(self, ltrans: faiss.VectorTransform) -> None: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexRefineKernel(faiss.IndexRefine):
    base_index: _AnyIndex
    refine_index: _AnyIndex
    def __init__(
        self,
        base_index: faiss.Index,
        refine_index: faiss.Index,
    ) -> None: ...
    def train(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
    def add_with_ids(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def merge_from(
        self,
        otherIndex: faiss.Index,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, otherIndex: faiss.Index) -> None: ...
    def reconstruct(
        self,
        key: int,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def sa_decode(
        self,
        codes: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def get_distance_computer(self) -> Any: ...
    def reset(self) -> None: ...
    def sa_code_size(self) -> int: ...
    def assign(
        self,
        x: ArrayLike,
        k: int,
        labels: NDArray[np.int64] | None = ...,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.int64]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        R: NDArray[np.float32] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]: ...
    def sa_encode(
        self,
        x: ArrayLike,
        codes: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def update_vectors(
        self,
        ids: ArrayLike,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def upsert(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> int: ...
    def ids(self) -> NDArray[np.int64]: ...
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def list_sizes(self) -> NDArray[np.int64]: ...
    def compact(self) -> None: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IntersectionKernel(AdditiveKernel):
    def __init__(self) -> None: ...
    def signature(self, _lambda: float) -> float: ...
    def spectrum(self, omega: float) -> float: ...
    def default_period(self, order: int, window: str) -> float: ...

class JaccardKernel(OverlapKernel):
    def __init__(self) -> None: ...

class JensenShannonKernel(AdditiveKernel):
    def __init__(self) -> None: ...
    def signature(self, _lambda: float) -> float: ...
    def spectrum(self, omega: float) -> float: ...
    def default_period(self, order: int, window: str) -> float: ...

class KernelHash(Transform):
    @property
    def nbits(self) -> int: ...
    def __init__(self) -> None: ...
    def code_size(self) -> int: ...
    def expected_hamming(self, values: ArrayLike) -> Any: ...
    def kernel_estimate(self, values: ArrayLike) -> Any: ...
    def hamming_bounds(self, values: ArrayLike) -> Any: ...
    def kernel_interval(
        self,
        hamming: ArrayLike,
        failure: float = ...,
    ) -> tuple[Any, Any]: ...
    def least_kernel_value(self) -> float: ...
    def asymmetric_kernel_estimate(self, values: ArrayLike) -> Any: ...
    def description(self) -> str: ...
    def copy(self) -> _AnyHash: ...
    def check_parameters(self) -> None: ...
    def encode(
        self,
        x: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.uint8]: ...
    def kernel_value(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> float: ...
    def expected_hamming_of_pair(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> float: ...
    def covariance_of_pair(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> float: ...

class NormalizedKernel(WrappedKernel):
    def __init__(self, kernel: Kernel) -> None: ...

class ProductKernel(CombinedKernel):
    def __init__(self, kernels: Sequence[Kernel]) -> None: ...
    def add(self, kernel: Kernel) -> None: ...

class ShiftInvariantKernel(BandwidthKernel):
    neighbor: int
    sample_queries: int
    sample_points: int
    sample_seed: int
    max_squared_gamma: float
    max_radius: float
    def __init__(self) -> None: ...
    def norm(self) -> str: ...
    def gamma_of_radius(self, radius: float) -> float: ...
    def inverse_length(self) -> float: ...
    def turns(self) -> float: ...
    def profile(self, r: float) -> float: ...
    def inverse_profile(self, k: float) -> float: ...
    def one_minus_profile(self, r: float) -> float: ...
    def lipschitz_constant(self, d: int) -> float: ...
    def frequency_variance(self) -> float: ...
    def check_phases(self, n: int, x: Any, d: int, where: Any) -> None: ...

class SumKernel(CombinedKernel):
    min_weight: float
    max_weight: float
    def __init__(
        self,
        kernels: Sequence[Kernel],
        weights: Sequence[float] | None = ...,
    ) -> None: ...
    def add(self, kernel: Kernel, weight: float = ...) -> None: ...

class ConsistentSamplingHash(KernelHash):
    @property
    def seed(self) -> int: ...
    def __init__(self, d: int, nbits: int, seed: int = ...) -> None: ...
    def expected_hamming(self, values: ArrayLike) -> Any: ...
    def least_kernel_value(self) -> float: ...
    def kernel_estimate(self, values: ArrayLike) -> Any: ...
    def hamming_bounds(self, values: ArrayLike) -> Any: ...
    def asymmetric_kernel_estimate(self, values: ArrayLike) -> Any: ...

class FrequencyMap(FeatureMap):
    @property
    def projection(self) -> _AnyProjection: ...
    def __init__(self, frequencies: ArrayLike) -> None: ...
    def description(self) -> str: ...

class GaussianKernel(ShiftInvariantKernel):
    def __init__(self, gamma: float = ...) -> None: ...
    def norm(self) -> str: ...
    def gamma_of_radius(self, radius: float) -> float: ...
    def inverse_length(self) -> float: ...
    def profile(self, r: float) -> float: ...
    def inverse_profile(self, k: float) -> float: ...
    def one_minus_profile(self, r: float) -> float: ...
    def frequency_variance(self) -> float: ...

class HomogeneousKernelMap(FeatureMap):
    @property
    def kernel(self) -> AdditiveKernel: ...
    @property
    def order(self) -> int: ...
    @property
    def window(self) -> str: ...
    @property
    def period(self) -> float: ...
    @property
    def degree(self) -> float: ...
    negative: str
    norm: str
    amplitudes: faiss.Float32Vector
    def __init__(
        self,
        d: int,
        kernel: AdditiveKernel,
        order: int = ...,
        window: str = ...,
        period: float = ...,
        degree: float = ...,
    ) -> None: ...
    def components(self) -> int: ...
    def squared_norm(self) -> float: ...
    def map_signature(self, values: ArrayLike) -> Any: ...
    def distortion(self) -> float: ...

class IndexBinaryHNSWKernel(IndexBinaryHNSWSIMD):
    @property
    def kernel(self) -> BitKernel: ...
    def __init__(self, d: int, kernel: BitKernel, M: int = ...) -> None: ...
    def get_distance_computer(self) -> Any: ...
    @staticmethod
    def distance(kernel_value: float) -> int: ...
    @staticmethod
    def kernel_value(distance: int) -> float: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexFileKernel(IndexFlatKernel):
    @property
    def path(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def stride(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    def __init__(
        self,
        d: int,
        path: str,
        store: str,
        offset: int,
        stride: int,
        capacity: int,
        kernel: Kernel,
        metric: int = ...,
    ) -> None: ...
    def add_next(self, n: int) -> None: ...
    def verify(self) -> None: ...
    def check_unchanged(self) -> None: ...
    def get_FlatCodesDistanceComputer(self) -> Any: ...
    def get_distance_computer(self) -> Any: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class IndexSparseKernel(IndexFlatKernel):
    def __init__(self, d: int, kernel: Kernel, metric: int = ...) -> None: ...
    def get_FlatCodesDistanceComputer(self) -> Any: ...
    def get_distance_computer(self) -> Any: ...
    def description(index: faiss.Index | faiss.IndexBinary) -> str: ...

class KernelPCA(FeatureMap):
    @property
    def kernel(self) -> _AnyKernel: ...
    p: int
    rank: int
    scale: float
    nystrom: bool
    center: bool
    normalize: bool
    tolerance: float
    seed: int
    auto_rank: bool
    auto_scale: bool
    landmarks: faiss.Float32Vector
    eigenvalues: faiss.Float32Vector
    offset: faiss.Float32Vector
    def __init__(self, d: int, rank: int, kernel: Kernel | None) -> None: ...
    def set_landmarks(self, x: ArrayLike) -> None: ...

class LaplacianKernel(ShiftInvariantKernel):
    def __init__(self, gamma: float = ...) -> None: ...
    def norm(self) -> str: ...
    def gamma_of_radius(self, radius: float) -> float: ...
    def inverse_length(self) -> float: ...
    def profile(self, r: float) -> float: ...
    def inverse_profile(self, k: float) -> float: ...
    def one_minus_profile(self, r: float) -> float: ...
    def frequency_variance(self) -> float: ...

class MaternKernel(ShiftInvariantKernel):
    nu: float
    def __init__(self, nu: float, gamma: float = ...) -> None: ...
    def norm(self) -> str: ...
    def gamma_of_radius(self, radius: float) -> float: ...
    def inverse_length(self) -> float: ...
    def profile(self, r: float) -> float: ...
    def one_minus_profile(self, r: float) -> float: ...
    def frequency_variance(self) -> float: ...

class ProjectionHash(KernelHash):
    @property
    def projection(self) -> _AnyProjection: ...
    threshold: faiss.Float32Vector
    def __init__(self) -> None: ...

class RandomFourierMap(FeatureMap):
    @property
    def kernel(self) -> ShiftInvariantKernel: ...
    @property
    def dims(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def proj(self) -> ProjectionChoice: ...
    @property
    def projection(self) -> _AnyProjection: ...
    def __init__(
        self,
        d: int,
        dims: int,
        kernel: ShiftInvariantKernel,
        seed: int = ...,
        proj: ProjectionChoice = ...,
    ) -> None: ...

class ShardError(faiss.ValueError): ...

class SpectralHash(KernelHash):
    @property
    def seed(self) -> int: ...
    @property
    def projection(self) -> _AnyProjection: ...
    @property
    def lowest(self) -> faiss.Float32Vector: ...
    @property
    def highest(self) -> faiss.Float32Vector: ...
    @property
    def component(self) -> faiss.Int32Vector: ...
    @property
    def mode(self) -> faiss.Int32Vector: ...
    def __init__(self, d: int, nbits: int, seed: int = ...) -> None: ...
    def expected_hamming(self, values: ArrayLike) -> Any: ...
    def kernel_estimate(self, values: ArrayLike) -> Any: ...

class VectorFileError(faiss.ValueError): ...

class CenteredHash(ProjectionHash):
    @property
    def rot(self) -> str: ...
    @property
    def center(self) -> bool: ...
    @property
    def seed(self) -> int: ...
    @property
    def proj(self) -> ProjectionChoice: ...
    mean_value: float
    def __init__(self) -> None: ...

class FrequencyHash(ProjectionHash):
    seed: int
    offset: faiss.Float32Vector
    def __init__(self, frequencies: ArrayLike, seed: int = ...) -> None: ...
    def hamming_bounds(self, values: ArrayLike) -> Any: ...
    def expected_hamming(self, values: ArrayLike) -> Any: ...
    def kernel_estimate(self, values: ArrayLike) -> Any: ...
    def asymmetric_kernel_estimate(self, values: ArrayLike) -> Any: ...
    def description(self) -> str: ...

class KernelizedLSH(ProjectionHash):
    @property
    def map(self) -> KernelPCA: ...
    t: int
    draw: str
    mean_value: float
    def __init__(self, d: int, nbits: int, kernel: Kernel | None) -> None: ...
    def expected_hamming(self, values: ArrayLike) -> Any: ...
    def kernel_estimate(self, values: ArrayLike) -> Any: ...
    def set_landmarks(self, x: ArrayLike) -> None: ...

class ShiftInvariantHash(ProjectionHash):
    @property
    def kernel(self) -> ShiftInvariantKernel: ...
    seed: int
    @property
    def proj(self) -> ProjectionChoice: ...
    offset: faiss.Float32Vector
    def __init__(
        self,
        d: int,
        nbits: int,
        kernel: ShiftInvariantKernel,
        seed: int = ...,
        proj: ProjectionChoice = ...,
    ) -> None: ...
    def expected_hamming(self, values: ArrayLike) -> Any: ...
    def least_kernel_value(self) -> float: ...
    def kernel_estimate(self, values: ArrayLike) -> Any: ...
    def hamming_bounds(self, values: ArrayLike) -> Any: ...
    def asymmetric_kernel_estimate(self, values: ArrayLike) -> Any: ...

class SignCauchyHash(ProjectionHash):
    @property
    def seed(self) -> int: ...
    def __init__(self, d: int, nbits: int, seed: int = ...) -> None: ...
    def expected_hamming(self, values: ArrayLike) -> Any: ...
    def least_kernel_value(self) -> float: ...
    def kernel_estimate(self, values: ArrayLike) -> Any: ...
    def asymmetric_kernel_estimate(self, values: ArrayLike) -> Any: ...

class AdditiveKernelHash(CenteredHash):
    @property
    def map(self) -> HomogeneousKernelMap: ...
    def __init__(
        self,
        map: HomogeneousKernelMap,
        nbits: int,
        center: bool = ...,
        seed: int = ...,
        proj: ProjectionChoice = ...,
        rot: str = ...,
    ) -> None: ...
    def expected_hamming(self, values: ArrayLike) -> Any: ...
    def kernel_estimate(self, values: ArrayLike) -> Any: ...
    def hamming_bounds(self, values: ArrayLike) -> Any: ...
    def least_kernel_value(self) -> float: ...

class BilinearShiftInvariantHash(ShiftInvariantHash):
    def __init__(
        self,
        d_w: int,
        d_v: int,
        nbits: int,
        gamma: float = ...,
        m: int = ...,
        structured: bool = ...,
        seed: int = ...,
        shuffle: bool = ...,
    ) -> None: ...
    def mean_cosine(self, r: float) -> float: ...
    def hamming_bounds(self, values: ArrayLike) -> Any: ...
    @staticmethod
    def covariance_bound(u: float) -> float: ...
    def bilinear_kernel(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> float: ...

class HyperplaneHash(CenteredHash):
    def __init__(
        self,
        d: int,
        nbits: int,
        center: bool = ...,
        seed: int = ...,
        proj: ProjectionChoice = ...,
        rot: str = ...,
    ) -> None: ...
    def expected_hamming(self, values: ArrayLike) -> Any: ...
    def kernel_estimate(self, values: ArrayLike) -> Any: ...
    def hamming_bounds(self, values: ArrayLike) -> Any: ...

@type_check_only
class _AnyKernel(Kernel):
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

@type_check_only
class _AnyMap(FeatureMap):
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

@type_check_only
class _AnyHash(KernelHash):
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

@type_check_only
class _AnyProjection(Projection):
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

@type_check_only
class _AnyIndex(faiss.Index):
    d: int
    metric_type: int
    @property
    def ntotal(self) -> int: ...
    @property
    def is_trained(self) -> bool: ...
    def __len__(self) -> int: ...
    def train(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add(self, x: ArrayLike, *, packed: bool | int = ...) -> None: ...
    def add_with_ids(
        self,
        x: ArrayLike,
        ids: ArrayLike,
        *,
        packed: bool | int = ...,
    ) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
    def assign(
        self,
        x: ArrayLike,
        k: int,
        labels: NDArray[np.int64] | None = ...,
        *,
        packed: bool | int = ...,
    ) -> NDArray[np.int64]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
        D: NDArray[np.float32] | None = ...,
        I: NDArray[np.int64] | None = ...,
        R: NDArray[np.float32] | None = ...,
        packed: bool | int = ...,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]: ...
    def reconstruct(
        self,
        key: int,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def sa_code_size(self) -> int: ...
    def sa_encode(
        self,
        x: ArrayLike,
        codes: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def sa_decode(
        self,
        codes: ArrayLike,
        x: NDArray[np.float32] | None = ...,
    ) -> NDArray[np.float32]: ...
    def reset(self) -> None: ...
    def merge_from(
        self,
        otherIndex: faiss.Index,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, otherIndex: faiss.Index) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

@type_check_only
class _AnyBinaryIndex(faiss.IndexBinary):
    d: int
    metric_type: int
    @property
    def ntotal(self) -> int: ...
    @property
    def is_trained(self) -> bool: ...
    def __len__(self) -> int: ...
    def train(self, x: ArrayLike) -> None: ...
    def add(self, x: ArrayLike) -> None: ...
    def add_with_ids(self, x: ArrayLike, ids: ArrayLike) -> None: ...
    def search(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def range_search(
        self,
        x: ArrayLike,
        thresh: float,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]: ...
    def reconstruct(self, key: int) -> NDArray[np.uint8]: ...
    def reconstruct_n(
        self,
        n0: int = ...,
        ni: int = ...,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def reconstruct_batch(
        self,
        key: ArrayLike,
        x: NDArray[np.uint8] | None = ...,
    ) -> NDArray[np.uint8]: ...
    def search_and_reconstruct(
        self,
        x: ArrayLike,
        k: int,
        *,
        params: faiss.SearchParameters | None = ...,
        filter: ArrayLike | set[int] | Callable[..., Any] | faiss.IDSelector | None = ...,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]: ...
    def assign(self, x: ArrayLike, k: int = ...) -> NDArray[np.int64]: ...
    def remove_ids(self, x: ArrayLike | faiss.IDSelector) -> int: ...
    def reset(self) -> None: ...
    def merge_from(
        self,
        other: faiss.IndexBinary,
        add_id: int = ...,
    ) -> None: ...
    def check_compatible_for_merge(self, other: faiss.IndexBinary) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

def bit_kernel_factory(description: str) -> BitKernel: ...
def bit_kernel_names() -> list[str]: ...
def bits_for(n: int, delta: float, epsilon: float) -> int: ...
def build_from(
    path: Any,
    string: Any,
    memory: Any = ...,
    output: Any = ...,
    part: Any = ...,
    exact: Any = ...,
    metric: Any = ...,
    train: Any = ...,
    seed: Any = ...,
    parameters: Any = ...,
    progress: Any = ...,
    ids: Any = ...,
    names: Any = ...,
    packed: Any = ...,
    fingerprint: Any = ...,
) -> Any: ...
def build_shards(
    partitions: Any,
    string: Any,
    client: Any = ...,
    folder: Any = ...,
    part: Any = ...,
    exact: Any = ...,
    metric: Any = ...,
    train: Any = ...,
    seed: Any = ...,
    parameters: Any = ...,
    memory: Any = ...,
    progress: Any = ...,
    packed: Any = ...,
) -> Any: ...
def butina_clusters(
    x: ArrayLike,
    threshold: float = ...,
    kernel: str | Kernel | BitKernel = ...,
    packed: bool | int | None = ...,
    names: ArrayLike | None = ...,
) -> tuple[NDArray[np.int64], NDArray[np.int64] | list[list[str]]]: ...
def calibrate(
    index: faiss.Index | faiss.IndexBinary,
    base: ArrayLike,
    queries: ArrayLike,
    kernel: str | Kernel | Callable[..., ArrayLike] | None = ...,
    k: int = ...,
    width: int = ...,
    packed: bool | int | None = ...,
) -> Calibration: ...
def clone_binary_index(index: faiss.IndexBinary) -> _AnyBinaryIndex: ...
def clone_index(index: faiss.Index) -> _AnyIndex: ...
def describe(name: str) -> Description: ...
def described_names() -> list[str]: ...
def file_index(
    path: Any,
    kernel: Any,
    metric: Any = ...,
    part: Any = ...,
    n: Any = ...,
    packed: Any = ...,
) -> Any: ...
def fingerprint_batches(
    path: str | os.PathLike,
    fingerprint: str | None = ...,
    skip_errors: bool = ...,
    batch: int = ...,
    name_property: str | None = ...,
    part: str | None = ...,
) -> Iterator[Fingerprints]: ...
def hash_names() -> list[str]: ...
def holds_faiss_ext(
    thing: faiss.Index | faiss.IndexBinary | faiss.VectorTransform,
    /,
) -> bool: ...
def index_binary_factory(d: int, description: str) -> _AnyBinaryIndex: ...
def index_factory(
    d: int,
    description: str,
    metric: int = ...,
) -> _AnyIndex: ...
def index_parameters(
    index: faiss.Index | faiss.IndexBinary | ShardedIndex,
) -> dict[str, int | float]: ...
def index_string(index: faiss.Index | faiss.IndexBinary) -> str: ...
def instruction_set() -> str: ...
def is_faiss_ext_string(description: str) -> bool: ...
def kernel_factory(description: str) -> _AnyKernel: ...
def kernel_hash_factory(d: int, description: str) -> _AnyHash: ...
def kernel_names() -> list[str]: ...
def kernel_values(
    index: faiss.Index | faiss.IndexBinary | ShardedIndex,
    D: ArrayLike,
    I: ArrayLike | None = ...,
    xq: ArrayLike | None = ...,
    lims: ArrayLike | None = ...,
    *,
    packed: bool = ...,
) -> NDArray[np.float64]: ...
def map_factory(d: int, description: str) -> _AnyMap: ...
def map_names() -> list[str]: ...
def maxmin_picks(
    x: ArrayLike,
    n_picks: int,
    kernel: str | Kernel | BitKernel = ...,
    first: int | str | None = ...,
    packed: bool | int | None = ...,
    seed: int = ...,
    names: ArrayLike | None = ...,
) -> tuple[NDArray[np.int64] | list[str], NDArray[np.float32]]: ...
def mean_neighbor_distance(
    x: ArrayLike,
    norm: str = ...,
    neighbor: int = ...,
    max_queries: int = ...,
    max_points: int = ...,
    seed: int = ...,
    *,
    packed: bool | int = ...,
) -> float: ...
def near_duplicate_groups(
    x: ArrayLike,
    threshold: float = ...,
    kernel: str | Kernel = ...,
    missed: float = ...,
    packed: bool | int | None = ...,
    seed: int = ...,
) -> NDArray[np.int64]: ...
def near_duplicates(
    x: ArrayLike,
    threshold: float = ...,
    kernel: str | Kernel = ...,
    missed: float = ...,
    packed: bool | int | None = ...,
    seed: int = ...,
    names: ArrayLike | None = ...,
) -> tuple[NDArray[np.int64] | list[tuple[str, str]], NDArray[np.float32]]: ...
def open_shards(
    folder: Any,
    client: Any = ...,
    io_flags: Any = ...,
) -> Any: ...
def read_VectorTransform(
    f: str | os.PathLike[str] | faiss.IOReader,
) -> faiss.VectorTransform: ...
def read_fingerprints(
    path: str | os.PathLike,
    fingerprint: str | None = ...,
    skip_errors: bool = ...,
    name_property: str | None = ...,
    part: str | None = ...,
) -> Fingerprints: ...
def read_index(
    f: str | os.PathLike[str] | faiss.IOReader,
    io_flags: int = ...,
) -> _AnyIndex: ...
def read_index_binary(
    f: str | os.PathLike[str] | faiss.IOReader,
    io_flags: int = ...,
) -> _AnyBinaryIndex: ...
def read_names(path: str | os.PathLike[str]) -> Names | None: ...
def recommend(
    x: ArrayLike,
    kernel: str | Kernel | Callable,
    recall: float = ...,
    *,
    k: int = ...,
    queries: ArrayLike | None = ...,
    n: int | None = ...,
    bytes_per_vector: float | None = ...,
    build_seconds: float | None = ...,
    sample_size: int = ...,
    seed: int = ...,
    progress: bool = ...,
    packed: bool | int | None = ...,
) -> Recommendation: ...
def retrained(
    index: faiss.Index,
    x: ArrayLike | None = ...,
    *,
    train: int = ...,
    seed: int = ...,
    packed: bool | int = ...,
) -> _AnyIndex: ...
def set_index_parameter(
    index: faiss.Index | faiss.IndexBinary | ShardedIndex,
    name: str,
    value: float,
) -> None: ...
def show_progress(function: Any = ...) -> Any: ...
def show_versions() -> None: ...
def threshold_graph(
    x: ArrayLike,
    threshold: float = ...,
    kernel: str | Kernel | BitKernel = ...,
    packed: bool | int | None = ...,
) -> Any: ...
def versions() -> dict[str, str | int]: ...
def write_VectorTransform(
    vt: faiss.VectorTransform,
    f: str | os.PathLike[str] | faiss.IOWriter,
) -> None: ...
def write_fps(
    path: str | os.PathLike,
    codes: ArrayLike,
    names: Sequence[str],
    bits: int | None = ...,
    type: str | None = ...,
) -> None: ...
def write_index(
    index: faiss.Index | faiss.IndexBinary,
    f: str | os.PathLike[str] | faiss.IOWriter,
    io_flags: int = ...,
    *,
    names: Names | None = ...,
) -> None: ...
def write_index_binary(
    index: faiss.IndexBinary,
    f: str | os.PathLike[str] | faiss.IOWriter,
) -> None: ...
