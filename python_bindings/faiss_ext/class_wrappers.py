"""NumPy methods of the classes that SWIG wraps.

FAISS's own wrappers serve where they can (``faiss.class_wrappers``); before
them, the shapes are checked, so that a mistake gives a message.
"""

import difflib
import functools
import operator

import faiss
import numpy as np
from faiss import class_wrappers as faiss_wrappers

from . import swigfaiss_ext as swig


def as_vectors(x, d, where):
    """x as a C-contiguous float32 array of shape (n, d)."""
    x = np.asarray(x)
    if x.ndim != 2 or x.shape[1] != d:
        raise ValueError(
            f"{where}: expected an array of shape (n, {d}), got {x.shape}")
    if x.dtype.kind not in "fiub":
        raise TypeError(
            f"{where}: expected numbers, got an array of {x.dtype}")
    with np.errstate(over="ignore"):  # the C++ side rejects infinities
        return np.ascontiguousarray(x, dtype="float32")


def as_matrix(x, where):
    """x as a C-contiguous float32 array of shape (n, d), whatever d is."""
    x = np.asarray(x)
    if x.ndim != 2:
        raise ValueError(
            f"{where}: expected an array of shape (n, d), got {x.shape}")
    return as_vectors(x, x.shape[1], where)


def as_codes(x, code_size, where):
    """x as a C-contiguous uint8 array of shape (n, code_size)."""
    x = np.asarray(x)
    if x.dtype != np.uint8:
        raise TypeError(
            f"{where}: expected codes (uint8), got an array of {x.dtype}")
    if x.ndim != 2 or x.shape[1] != code_size:
        raise ValueError(
            f"{where}: expected codes of shape (n, {code_size}), "
            f"got {x.shape} (uint8 arrays are codes, vectors are float32)")
    return np.ascontiguousarray(x)


def as_ids(ids, n, where):
    ids = np.ascontiguousarray(ids, dtype="int64")
    if ids.shape != (n,):
        raise ValueError(
            f"{where}: expected {n} ids, got an array of shape {ids.shape}")
    return ids


def as_k(k, where):
    """k as an int."""
    try:
        k = operator.index(k)
    except TypeError:
        raise TypeError(
            f"{where}: k must be a positive integer, got {k!r}") from None
    if k <= 0:
        raise ValueError(f"{where}: k must be positive, got {k}")
    return k


def take_getter(the_class, name):
    """A getter of C++, which is no longer a method of the class."""
    getter = vars(the_class)[name]
    delattr(the_class, name)
    return getter


# members that are objects
PARTS = {"kernel", "projection", "proj", "map", "hash", "storage"}


def keep_owner(the_class, name):
    """Makes a member keep its owner alive."""
    member = vars(the_class)[name]

    def get(self):
        part = member.fget(self)
        if part is not None:
            part.referenced_objects = [self]
        return part

    setattr(the_class, name, property(get, doc=member.__doc__))


def keep_owners():
    for the_class in {c for c in vars(swig).values() if isinstance(c, type)}:
        for name in PARTS & set(vars(the_class)):
            if isinstance(vars(the_class)[name], property):
                keep_owner(the_class, name)


def keep_arguments(the_class, *positions):
    """Has objects keep those constructor arguments alive that they point to."""
    original_init = the_class.__init__

    def init(self, *args):
        original_init(self, *args)
        self.referenced_objects = [args[i] for i in positions if i < len(args)]

    init.__doc__ = original_init.__doc__
    the_class.__init__ = init


def to_bytes(write, thing):
    writer = faiss.VectorIOWriter()
    write(thing, writer)
    return faiss.vector_to_array(writer.data).tobytes()


def from_bytes(read, data):
    reader = faiss.VectorIOReader()
    faiss.copy_array_to_vector(np.frombuffer(data, dtype="uint8"), reader.data)
    return read(reader)


# ---------------------------------------------------------------- kernels

def wrap_kernels():
    gram_c = swig.Kernel.gram

    def train(self, x):
        """Sets the parameters that were left to the data, from an array of
        shape (n, d)."""
        x = as_matrix(x, "Kernel.train")
        self.train_c(x.shape[0], faiss.swig_ptr(x), x.shape[1])

    def gram(self, x, y=None):
        """The kernel matrix, float32 of shape (n, m).

        Parameters
        ----------
        x : array_like, shape (n, d)
        y : array_like, shape (m, d); x if left out
        """
        x = as_matrix(x, "Kernel.gram")
        d = x.shape[1]
        y = x if y is None else as_vectors(y, d, "Kernel.gram")
        out = np.empty((x.shape[0], y.shape[0]), dtype="float32")
        gram_c(self, x.shape[0], faiss.swig_ptr(x), y.shape[0],
               faiss.swig_ptr(y), d, faiss.swig_ptr(out))
        return out

    def call(self, x, y):
        """k(x, y) of two vectors of the same length."""
        x, y = np.asarray(x), np.asarray(y)
        if x.ndim != 1 or x.shape != y.shape:
            raise ValueError(
                "Kernel: expected two vectors of the same length, got shapes "
                f"{x.shape} and {y.shape}")
        return float(self.gram(x[None], y[None])[0, 0])

    swig.CallbackKernel.__init__ = init_callback_kernel
    for the_class in subclasses(swig.Kernel):
        if "train" in vars(the_class):
            the_class.train_c = the_class.train
            del the_class.train
        del the_class.__repr__
    swig.Kernel.train = train
    swig.Kernel.gram = gram
    swig.Kernel.__call__ = call
    swig.Kernel.__repr__ = lambda self: f"<faiss_ext kernel {self.description()}>"
    swig.Kernel.__reduce__ = reduce_kernel
    swig.Kernel.__copy__ = lambda self: self.copy()
    swig.Kernel.__deepcopy__ = lambda self, memo: self.copy()


def reduce_kernel(self):
    description = self.description()
    try:
        swig.kernel_factory(description)
    except RuntimeError:
        raise TypeError(f"the kernel {description} cannot be pickled: "
                        "no string makes it") from None
    return swig.kernel_factory, (description,)


def init_callback_kernel(self, function):
    """A kernel that a Python function computes.

    Parameters
    ----------
    function : callable
        function(X, Y) takes float32 arrays of shape (n, d) and (m, d) and
        returns the kernel values, shape (n, m). It is called by one thread at
        a time. Its exceptions reach the caller.
    """

    def fill(x, y, out, n, m, d):
        X = np.frombuffer(x, dtype="float32").reshape(n, d).copy()
        Y = np.frombuffer(y, dtype="float32").reshape(m, d).copy()
        values = np.asarray(function(X, Y))
        if values.shape != (n, m):
            raise ValueError(
                f"CallbackKernel: expected kernel values of shape ({n}, {m}), "
                f"got {values.shape}")
        if values.dtype.kind not in "fiub":
            raise TypeError("CallbackKernel: expected real kernel values, got "
                            f"an array of {values.dtype}")
        with np.errstate(over="ignore"):
            values = values.astype("float32")
        if not np.isfinite(values).all():
            raise ValueError("CallbackKernel: the kernel is not finite")
        np.frombuffer(out, dtype="float32").reshape(n, m)[...] = values

    if not callable(function):
        raise TypeError(f"CallbackKernel: {function!r} is not callable")
    self.this = swig.make_callback_kernel(fill).this


# ----------------------------------------------------------------- hashes

def of_arrays(method):
    """A method of one number, for arrays of numbers too."""

    def function(self, values):
        if np.ndim(values) == 0:
            return method(self, float(values))
        unique, inverse = np.unique(values, return_inverse=True)
        results = np.array([method(self, float(v)) for v in unique])
        return results[inverse].reshape(np.shape(values))

    function.__name__ = method.__name__
    function.__doc__ = method.__doc__
    return function


def unpickle_transform(data):
    return from_bytes(swig.read_VectorTransform, data)


def wrap_transform(the_class):
    own = set(vars(the_class))
    faiss_wrappers.handle_VectorTransform(the_class)
    # what is inherited has been wrapped already
    for name in ("train", "reverse_transform"):
        if name not in own and name in vars(the_class):
            delattr(the_class, name)
            delattr(the_class, name + "_c")
    for name, d in [("train", "d_in"), ("apply", "d_in"), ("apply_py", "d_in"),
                    ("reverse_transform", "d_out")]:
        if the_class.__mro__[1] is faiss.VectorTransform and name not in own:
            setattr(the_class, name, inherited(the_class, name))
        check_first_argument(the_class, name, d)


def copied_and_pickled(transform_class):
    transform_class.__copy__ = lambda self: self.copy()
    transform_class.__deepcopy__ = lambda self, memo: self.copy()
    transform_class.__reduce__ = lambda self: (
        unpickle_transform, (to_bytes(swig.write_VectorTransform, self),))


def wrap_maps():
    for the_class in subclasses(swig.Transform):
        wrap_transform(the_class)
    copied_and_pickled(swig.FeatureMap)
    swig.HomogeneousKernelMap.map_signature = of_arrays(
        swig.HomogeneousKernelMap.map_signature)
    wrap_set_landmarks(swig.KernelPCA)


def wrap_set_landmarks(the_class):
    set_landmarks_c = the_class.set_landmarks

    def set_landmarks(self, x):
        """Sets the landmarks, shape (p, d_in), instead of sampling them."""
        x = as_vectors(x, self.d_in, "set_landmarks")
        set_landmarks_c(self, x.shape[0], faiss.swig_ptr(x))

    the_class.set_landmarks = set_landmarks


def wrap_hashes():
    encode_c = swig.KernelHash.encode

    def encode(self, x):
        """The codes of vectors, uint8 of shape (n, code_size()).

        Parameters
        ----------
        x : array_like, shape (n, d_in)
        """
        x = as_vectors(x, self.d_in, "KernelHash.encode")
        codes = np.empty((x.shape[0], self.code_size()), dtype="uint8")
        encode_c(self, x.shape[0], faiss.swig_ptr(x), faiss.swig_ptr(codes))
        return codes

    for the_class in subclasses(swig.KernelHash):
        for name in ("expected_hamming", "kernel_estimate"):
            if name in vars(the_class):
                setattr(the_class, name, of_arrays(vars(the_class)[name]))
    swig.KernelHash.encode = encode
    copied_and_pickled(swig.KernelHash)
    get_matrix = take_getter(swig.Projection, "get_matrix")

    def matrix(self):
        """The matrix, float32 of shape (d_out, d_in)."""
        A = np.empty((self.d_out, self.d_in), dtype="float32")
        get_matrix(self, faiss.swig_ptr(A))
        return A

    swig.Projection.matrix = matrix

    get_V = take_getter(swig.BilinearProjection, "get_V")

    def V(self):
        """The v, float32 of shape (k_v, d_v); a copy."""
        v = np.empty((self.k_v, self.padded_d_v()), dtype="float32")
        get_V(self, faiss.swig_ptr(v))
        return v[:, :self.d_v]

    swig.BilinearProjection.V = property(V)
    apply_c = swig.Projection.apply

    def apply(self, x):
        """A x of vectors of shape (n, d_in), shape (n, d_out)."""
        x = as_vectors(x, self.d_in, "Projection.apply")
        y = np.empty((x.shape[0], self.d_out), dtype="float32")
        apply_c(self, x.shape[0], faiss.swig_ptr(x), faiss.swig_ptr(y))
        return y

    for the_class in subclasses(swig.Projection):
        the_class.apply = apply

    def of_pair(name):
        method = getattr(swig.BilinearShiftInvariantHash, name)

        def function(self, x, y):
            x, y = (as_vectors(np.atleast_2d(v), self.d_in, name)
                    for v in (x, y))
            if len(x) != 1 or len(y) != 1:
                raise ValueError(f"{name}: expected two vectors")
            return method(self, faiss.swig_ptr(x), faiss.swig_ptr(y))

        function.__name__ = name
        function.__doc__ = method.__doc__
        setattr(swig.BilinearShiftInvariantHash, name, function)

    of_pair("bilinear_kernel")
    of_pair("expected_hamming_of_pair")

    wrap_set_landmarks(swig.KernelizedLSH)


def subclasses(base):
    """The wrapped classes from a base on, bases first."""
    found = [c for c in vars(swig).values()
             if isinstance(c, type) and issubclass(c, base)]
    return sorted(set(found), key=lambda c: len(c.__mro__))


def check_first_argument(the_class, name, d_name):
    """Checks the vectors that a method takes before anything else."""
    if name not in vars(the_class):
        return
    method = vars(the_class)[name]
    if getattr(method, "checks_vectors", False):
        return

    @functools.wraps(method)
    def checked(self, x, *args, **kwargs):
        where = f"{type(self).__name__}.{name}"
        x = as_vectors(x, getattr(self, d_name), where)
        args, kwargs = checked_arguments(name, len(x), args, kwargs, where)
        return method(self, x, *args, **kwargs)

    checked.checks_vectors = True
    setattr(the_class, name, checked)


def checked_arguments(name, n, args, kwargs, where):
    """What stands behind the n vectors of a method: k, ids and parameters."""
    checks = {"search": ("k", as_k), "assign": ("k", as_k),
              "search_and_reconstruct": ("k", as_k),
              "add_with_ids": ("ids", lambda ids, _: as_ids(ids, n, where))}
    if name in checks:
        key, check = checks[name]
        if args:
            args = (check(args[0], where), *args[1:])
        elif key in kwargs:
            kwargs = {**kwargs, key: check(kwargs[key], where)}
    params = kwargs.get("params")
    if not getattr(params, "k_factor", 1) >= 1:
        raise ValueError(f"{where}: k_factor must be at least 1, "
                         f"got {params.k_factor}")
    return args, kwargs


def check_codes_argument(the_class, name):
    """Checks the codes that a method takes before anything else."""
    method = vars(the_class)[name]

    @functools.wraps(method)
    def checked(self, x, *args, **kwargs):
        where = f"{type(self).__name__}.{name}"
        x = as_codes(x, self.code_size, where)
        args, kwargs = checked_arguments(name, len(x), args, kwargs, where)
        return method(self, x, *args, **kwargs)

    setattr(the_class, name, checked)


# ---------------------------------------------------------- float indexes

def wrap_float_indexes():
    for the_class in (swig.IndexKernelHash, swig.IndexFlatKernel,
                      swig.IndexHNSWKernel, swig.IndexRefineKernel):
        faiss_wrappers.handle_Index(the_class)
        for name in ["train", "add", "add_with_ids", "search", "assign",
                     "range_search", "search_and_reconstruct", "sa_encode"]:
            if name not in vars(the_class):
                setattr(the_class, name, inherited(the_class, name))
            check_first_argument(the_class, name, "d")
    keep_arguments(swig.IndexKernelHash, 0, 1)
    keep_arguments(swig.IndexHNSWKernel, 0)
    keep_arguments(swig.IndexRefineKernel, 0, 1)


def inherited(the_class, name):
    """A method of a base class, as a function of its own."""
    base_method = getattr(the_class, name)

    def method(self, *args, **kwargs):
        return base_method(self, *args, **kwargs)

    method.__name__ = base_method.__name__
    method.__doc__ = base_method.__doc__
    return method


# ---------------------------------------------------------- binary indexes

def wrap_binary_indexes():
    the_class = swig.IndexBinaryKernelHash
    c = {name: getattr(the_class, name) for name in (
        "train", "add", "add_with_ids", "search", "range_search")}

    def as_input(self, x, where):
        """uint8 arrays are codes, all others vectors."""
        x = np.asarray(x)
        where = f"IndexBinaryKernelHash.{where}"
        if x.dtype == np.uint8:
            return as_codes(x, self.code_size, where)
        return as_vectors(x, self.hash.d_in, where)

    def train(self, x):
        """Trains the hash and the storage on vectors, float32 of shape
        (n, hash.d_in), or the storage alone on codes, uint8 of shape
        (n, code_size)."""
        x = as_input(self, x, "train")
        c["train"](self, x.shape[0], faiss.swig_ptr(x))

    def add(self, x):
        """Adds vectors, float32 of shape (n, hash.d_in), or codes, uint8 of
        shape (n, code_size)."""
        x = as_input(self, x, "add")
        c["add"](self, x.shape[0], faiss.swig_ptr(x))

    def add_with_ids(self, x, ids):
        """The same with ids, int64 of shape (n,)."""
        x = as_input(self, x, "add_with_ids")
        ids = as_ids(ids, x.shape[0], "IndexBinaryKernelHash.add_with_ids")
        c["add_with_ids"](
            self, x.shape[0], faiss.swig_ptr(x), faiss.swig_ptr(ids))

    def search(self, x, k, *, params=None):
        """The k nearest codes of each vector (float32) or code (uint8).

        Returns
        -------
        D : int32, shape (n, k), Hamming distances
        I : int64, shape (n, k), ids; -1 where there are fewer than k
        """
        x = as_input(self, x, "search")
        k = as_k(k, "IndexBinaryKernelHash.search")
        D = np.empty((x.shape[0], k), dtype="int32")
        I = np.empty((x.shape[0], k), dtype="int64")
        c["search"](self, x.shape[0], faiss.swig_ptr(x), k, faiss.swig_ptr(D),
                    faiss.swig_ptr(I), params)
        return D, I

    def range_search(self, x, thresh, *, params=None):
        """All codes at a Hamming distance below thresh of each vector
        (float32) or code (uint8).

        Returns
        -------
        lims, D, I : query i has D[lims[i]:lims[i + 1]] and the ids
            I[lims[i]:lims[i + 1]]
        """
        x = as_input(self, x, "range_search")
        if np.isnan(thresh):
            raise ValueError("IndexBinaryKernelHash.range_search: "
                             "the radius is NaN")
        radius = int(np.clip(np.ceil(thresh), 0, self.d + 1))
        result = faiss.RangeSearchResult(x.shape[0])
        c["range_search"](
            self, x.shape[0], faiss.swig_ptr(x), radius, result, params)
        lims = faiss.rev_swig_ptr(result.lims, x.shape[0] + 1).copy()
        found = int(lims[-1])
        D = faiss.rev_swig_ptr(result.distances, found).copy()
        I = faiss.rev_swig_ptr(result.labels, found).copy()
        return lims, D, I

    for flat_class in (swig.IndexBinaryPermuted, swig.IndexBinaryFlatSIMD):
        faiss_wrappers.handle_IndexBinary(flat_class)
        for name in ("add", "search", "range_search"):
            if name not in vars(flat_class):
                setattr(flat_class, name, inherited(flat_class, name))
            check_codes_argument(flat_class, name)
    faiss_wrappers.handle_IndexBinary(the_class)
    for method in (train, add, add_with_ids, search, range_search):
        setattr(the_class, method.__name__, method)
    keep_arguments(the_class, 0, 1)


# --------------------------------------------------------------- settings

# what the wrappers themselves keep in an object
INTERNAL = {"this", "thisown", "referenced_objects"}
# dimensions and counts that follow from others
DERIVED = {"d", "d_in", "d_out", "ntotal", "code_size"}


def check_settings(the_class):
    """Has assignments to an object's attributes fail where they would do
    nothing, or harm."""

    def set_attribute(self, name, value):
        if name in INTERNAL:
            object.__setattr__(self, name, value)
            return
        what = f"{type(self).__name__}.{name}"
        member = getattr(type(self), name, None)
        if member is None and (
                name.startswith("_") or type(self).__module__ != swig.__name__):
            object.__setattr__(self, name, value)  # a subclass's own
            return
        if member is None:
            names = [n for n in dir(type(self)) if not n.startswith("_")]
            near = difflib.get_close_matches(name, names, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}{hint}")
        if name in DERIVED or (isinstance(member, property)
                               and member.fset is None):
            raise AttributeError(f"{what} is read-only")
        if (isinstance(self, swig.Transform) and isinstance(member, property)
                and self.is_trained and name not in ("is_trained", "verbose")):
            raise AttributeError(
                f"{what} has no effect any more: it is trained; give it in the "
                "string, or set it before training")
        before = getattr(self, name) if hasattr(
            self, "check_parameters") and name != "is_trained" else None
        object.__setattr__(self, name, value)
        if before is not None:
            try:
                self.check_parameters()
            except RuntimeError as error:
                object.__setattr__(self, name, before)
                raise ValueError(f"{what}: {error}") from None

    the_class.__setattr__ = set_attribute


def wrap_settings():
    for the_class in (
            swig.Kernel, swig.Projection, swig.KernelHash, swig.FeatureMap,
            swig.IndexFlatKernel,
            swig.IndexHNSWKernel, swig.IndexRefineKernel, swig.IndexKernelHash,
            swig.IndexBinaryKernelHash, swig.IndexBinaryPermuted,
            swig.IndexBinaryFlatSIMD):
        check_settings(the_class)


keep_owners()
wrap_kernels()
wrap_maps()
wrap_hashes()
wrap_float_indexes()
wrap_binary_indexes()
wrap_settings()


def mean_neighbor_distance(x, norm="l2", neighbor=50, max_queries=1000,
                           max_points=65536, seed=1234):
    """Mean distance from a vector to its neighbor-th nearest other vector, on
    a sample: the radius by which bandwidths are chosen.

    Parameters
    ----------
    x : array_like, shape (n, d)
    norm : "l1" or "l2"
    """
    if norm not in ("l1", "l2"):
        raise ValueError(f"norm must be 'l1' or 'l2', got {norm!r}")
    x = as_matrix(x, "mean_neighbor_distance")
    return swig.mean_neighbor_distance(
        norm == "l1", x.shape[0], faiss.swig_ptr(x), x.shape[1], neighbor,
        max_queries, max_points, seed)
