# SPDX-License-Identifier: MIT
"""The command line: python3 -m faiss_ext COMMAND ...

  recommend   find the fastest index for your vectors and kernel
  build       build an index of a file of vectors
  search      search an index for the vectors of a file
  info        show the parts of an index or a factory string, and its theory
  bench       measure recall and speed of an index, by search parameters
  add         add vectors to an index
  update      replace vectors of an index
  remove      remove vectors from an index
  retrain     train an index again on its vectors, or on others
  duplicates  find near-duplicates among the vectors of a file
  clusters    divide the vectors of a file into clusters
  picks       pick vectors of a file that differ as much as possible

Files of vectors: .npy, .npz, .fvecs, .bvecs, .hdf5, .parquet, .csv, and
MNIST's images. Sparse ones: .npz of SciPy, .svmlight, .h5ad, and folders with
indptr.npy, indices.npy and data.npy. FILE:NAME selects an array of .npz or
HDF5, a matrix of .h5ad, or a column of Parquet. Fingerprints with names: .fps,
and .smi, .smiles and .sdf by RDKit, plain or with .gz. With --format fps, smi
or sdf, - reads them from standard input.

IDS is a file of integers or of names, or a list of ids and ranges such as
3,17,20-30, in which 20-30 includes 20 and 30. Files: .npy, .npz, .parquet, or
.csv and .txt with an id or a name per line. FILE:NAME selects an array or a
column. The index keeps names in its file. If it has some, IDS may also be a
list of names such as aspirin,ibuprofen.

add, update, remove and retrain replace the index's file when the new one is
complete. After an error or Ctrl-C the old file is unchanged.

Exit status:
    0 on success
    1 for an error in data, files, strings, kernels or search parameters, or if
      recommend finds no index within all limits
    2 for any other error in the command
  130 after Ctrl-C
  141 if the reader closes the pipe early
"""

import argparse
import contextlib
import os
import sys

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .advice import (
    RecallCriterion, Truth, TruthOfBits, as_bit_kernel, as_kernel,
    check_vectors, one_thread_if_busy, recommend, set_all, trained_kernel)
from .command_changes import run_add, run_remove, run_retrain, run_update
from .command_files import (
    UsageError, as_dense, check_count, check_inputs_stay, file_and_part,
    ids_or_names_given, index_and_names, name_standard_input,
    names_of_packed, number_of_vectors, own_words, packed_given, reading,
    report, rows_given, show, size_of, vectors_and_names)
from .command_search import run_search
from .command_sets import run_clusters, run_duplicates, run_picks
from .file_builds import build_from
from .files import check_writable
from .fingerprint_builds import build_from_fingerprints
from .fingerprint_files import WITH_NAMES, is_fingerprint_file
from .id_files import Ids
from .index_tree import hash_of, parts_of
from .name_files import write_with_names
from .name_lists import checked_names, is_names
from .named_vectors import fingerprint_of
from .names import Names
from .out_of_core import number_of_bytes, takes_packed_bits
from .parameters import ParameterSpace, index_parameters
from .showing import class_name, text
from .swigfaiss_ext import index_binary_factory
from .timing import Stopwatch
from .vector_files import VectorFileError

KERNEL_VALUES = (0.99, 0.9, 0.8, 0.6, 0.4, 0.2, 0.0)


# ------------------------------------------------------------ arguments

def number(kind, low, high=None, above=False, below=False):
    """Parses a number from low to high; `above` excludes low itself, and
    `below` high."""

    def parse(word):
        try:
            value = kind(word)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"expected {'an integer' if kind is int else 'a number'}, "
                f"got {word!r}") from None
        if not (low <= value and (high is None or value <= high)) or (
                above and value == low) or (below and value == high):
            raise argparse.ArgumentTypeError(
                f"expected a number {'above' if above else 'from'} {low}"
                + (f"{', up' if above else ''} to {'below ' * below}{high}"
                   if high is not None else "")
                + f", got {word}")
        return value

    return parse


def size(word):
    try:
        return number_of_bytes(word, before="")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def setting(word):
    name, equals, value = word.partition("=")
    try:
        if not equals:
            raise ValueError
        return name, int(value) if value.lstrip("-").isdigit() else float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected NAME=NUMBER such as nprobe=16, got {word!r}") from None


def arguments():
    parser = argparse.ArgumentParser(
        prog="python3 -m faiss_ext", description=__doc__.split("\n\n", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False)
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND")

    def command(name, function, summary):
        added = commands.add_parser(
            name, help=summary, description=summary, allow_abbrev=False)
        added.set_defaults(function=function)
        added.add_argument(
            "--json", action="store_true", help="print JSON instead of text")
        added.add_argument(
            "--threads", type=number(int, 1, 1024), metavar="N",
            help="number of threads (default: all)")
        added.add_argument(
            "--quiet", action="store_true",
            help="do not show progress on stderr")
        return added

    sub = command("recommend", run_recommend,
                  "Finds the fastest index for your vectors and kernel.")
    sub.add_argument("vectors", help="file of vectors")
    sub.add_argument("kernel", help="such as chi2 or 'gaussian(gamma=0.1)'")
    sub.add_argument("--queries",
                     help="file of queries (default: some of the vectors)")
    add_packed(sub)
    add_fingerprint(sub, "morgan2:2048")
    sub.add_argument("--recall", type=number(float, 0, 1, above=True),
                     default=0.95,
                     help="recall to reach (default: 0.95)")
    sub.add_argument("-k", type=number(int, 1), default=10,
                     help="number of neighbours (default: 10)")
    sub.add_argument("-n", type=number(int, 1),
                     help="number of vectors that the index will hold "
                     "(default: as in the file)")
    sub.add_argument("--bytes-per-vector", type=number(float, 1),
                     help="limit of the size")
    sub.add_argument("--build-seconds", type=number(float, 0, above=True),
                     help="limit of the build time")
    sub.add_argument("--sample", type=number(int, 100), default=20000,
                     help="number of vectors to measure with (default: 20000)")
    sub.add_argument("--seed", type=number(int, 0), default=1234,
                     help="seed of the sample (default: 1234)")

    sub = command("build", run_build, "Builds an index of a file of vectors.")
    sub.add_argument("vectors", help="file of vectors")
    sub.add_argument("string", help="factory string, such as 'KFlat(chi2)'; "
                     "binary indexes without a scheme, such as BFlat and "
                     "BKFlat(jaccard), take packed bits")
    sub.add_argument("-o", "--output", required=True,
                     help="file to write the index to")
    sub.add_argument("--ids", metavar="IDS",
                     help="the id or name of each vector, in the same order: a "
                     "file, or a list such as 3,17,20-30 (default: the names "
                     "in a file of fingerprints, and as ids the positions in "
                     "the file, from 0)")
    add_packed(sub)
    add_fingerprint(sub, "morgan2:2048")
    sub.add_argument("--exact", choices=("memory", "file"), default="memory",
                     help="where a KFlat of floats, alone or in Refine, finds "
                     "the vectors: memory copies them into the index, file "
                     "reads them from the file of vectors, which must stay "
                     "(default: memory)")
    sub.add_argument("--memory", metavar="SIZE", type=size,
                     help="memory to use, such as 2GB (default: four fifths "
                     "of the machine's)")
    sub.add_argument("--metric", choices=("l2", "ip"), default="l2",
                     help="search by distances (l2) or by kernel values (ip) "
                     "(default: l2)")
    sub.add_argument("--train", type=number(int, 1), default=100000,
                     metavar="N",
                     help="number of training vectors (default: 100000)")
    sub.add_argument("--seed", type=number(int, 0), default=1234,
                     help="seed of the training sample (default: 1234)")
    add_parameters(sub)

    sub = command("search", run_search,
                  "Searches an index for the vectors of a file.")
    sub.add_argument("index", help="file of the index, or folder of shards")
    sub.add_argument("queries", help="file of queries")
    sub.add_argument("-k", type=number(int, 1),
                     help="number of neighbours (default: 10; with "
                     "--threshold, all)")
    either = sub.add_mutually_exclusive_group()
    either.add_argument("--radius", type=float,
                        help="search by range instead of for k neighbours")
    either.add_argument("--threshold", type=number(float, 0, 1), metavar="VALUE",
                        help="find vectors with at least this kernel value, "
                        "in an index with BKFlat")
    sub.add_argument("--filter", metavar="IDS",
                     help="search only the vectors with these ids or names: a "
                     "file, a list such as 3,17,20-30, or an .npy or .npz file "
                     "of a boolean mask over all ids")
    sub.add_argument("-o", "--output",
                     help="file of results: .csv or .tsv with a line per "
                     "result; or .npz with D and I, with --radius or "
                     "--threshold alone also lims, and with similarities, names "
                     "and query_names if there are some")
    add_packed_for_index(sub)
    add_fingerprint(sub)
    add_mmap(sub)
    add_parameters(sub)

    sub = command("info", run_info,
                  "Shows the parts of an index or a factory string.")
    sub.add_argument("index", help="file of an index, folder of shards, or "
                     "factory string")
    sub.add_argument("-d", type=number(int, 1, 2**31 - 1),
                     help="dimension for a factory string (default: 128)")
    sub.add_argument("--at", type=number(float, -1, 1), action="append",
                     metavar="VALUE",
                     help="kernel value for which to print how many bits "
                     "differ; can be repeated")
    add_mmap(sub)

    sub = command("bench", run_bench, "Measures recall and speed of an index.")
    sub.add_argument("index", help="file of the index")
    sub.add_argument("vectors", help="file of the vectors in the index")
    sub.add_argument("queries", help="file of queries")
    sub.add_argument("kernel",
                     help="kernel of the true neighbours, such as chi2, or "
                     "jaccard for packed bits")
    sub.add_argument("-k", type=number(int, 1), default=10,
                     help="number of neighbours (default: 10)")
    sub.add_argument("--settings", type=number(int, 1), default=40,
                     metavar="N",
                     help="largest number of settings to try (default: 40)")
    add_packed_for_index(sub)
    add_fingerprint(sub)
    add_parameters(sub)

    sub = command("add", run_add, "Adds vectors to the index in a file.")
    add_changes(sub)
    sub.add_argument("vectors", help="file of vectors")
    sub.add_argument("--ids", metavar="IDS",
                     help="an id or name for each vector, in the same order, "
                     "none of which the index has: a file, or a list such as "
                     "3,17,20-30 (default: the names in a file of "
                     "fingerprints, and the ids that follow the index's)")
    add_packed_for_index(sub)
    add_fingerprint(sub)

    sub = command("update", run_update,
                  "Replaces vectors of the index in a file.")
    add_changes(sub)
    sub.add_argument("vectors", help="file of the new vectors")
    sub.add_argument("--ids", metavar="IDS",
                     help="the id or name of each vector, in the same order: a "
                     "file, or a list such as 3,17,20-30 (default: the names "
                     "in a file of fingerprints)")
    add_packed_for_index(sub)
    add_fingerprint(sub)
    sub.add_argument("--upsert", action="store_true",
                     help="add the vectors whose ids the index does not have "
                     "(default: an error)")

    sub = command("remove", run_remove,
                  "Removes vectors from the index in a file.")
    add_changes(sub)
    sub.add_argument("--ids", metavar="IDS", required=True,
                     help="ids or names of the vectors: a file, or a list "
                     "such as 3,17,20-30 or aspirin,ibuprofen; ids and names "
                     "in a file that the index does not have are counted")

    sub = command("retrain", run_retrain,
                  "Trains all parts of the index in a file again and encodes "
                  "its vectors anew, for example after its vectors have drifted "
                  "away from the old training vectors. Ids and parameters stay. "
                  "The index must keep its vectors, as with Refine(KFlat(...)).")
    add_changes(sub)
    sub.add_argument("vectors", nargs="?",
                     help="file of training vectors (default: a random sample "
                     "of the index's vectors)")
    sub.add_argument("--train", type=number(int, 1), default=100000,
                     metavar="N",
                     help="size of that sample (default: 100000)")
    sub.add_argument("--seed", type=number(int, 0), default=1234,
                     help="seed of that sample (default: 1234)")
    add_packed_for_index(sub)
    add_fingerprint(sub)

    sub = command("duplicates", run_duplicates,
                  "Finds near-duplicates among the vectors of a file.")
    sub.add_argument("vectors", help="file of vectors, dense or sparse")
    sub.add_argument("--kernel", default="jaccard",
                     help="such as cosine or 'normalized(chi2)' (default: "
                     "jaccard)")
    sub.add_argument("--threshold", type=number(float, 0, above=True),
                     default=0.8, metavar="VALUE",
                     help="least kernel value of a pair (default: 0.8)")
    sub.add_argument("--missed", type=number(float, 0, 1, below=True),
                     default=0.01, metavar="SHARE",
                     help="largest probability with which a pair may be missed "
                     "where an exact search is slow; 0 is always exact "
                     "(default: 0.01)")
    add_packed(sub)
    sub.add_argument("--seed", type=number(int, 0), default=1234,
                     help="seed of the random samples with --missed (default: "
                     "1234)")
    sub.add_argument("--groups", action="store_true",
                     help="give the first vector of each vector's group "
                     "instead of pairs; pairs connect the vectors of a group")
    sub.add_argument("-o", "--output",
                     help="file of results: .npz with pairs and values, or "
                     "with groups; or .csv or .tsv with a line per pair or "
                     "vector")
    add_fingerprint(sub, "morgan2:2048")

    sub = command("clusters", run_clusters,
                  "Divides the vectors of a file into clusters around vectors "
                  "with many neighbours, by Butina's method.")
    add_compared(sub)
    sub.add_argument("--threshold", type=number(float, 0, above=True),
                     default=0.65, metavar="VALUE",
                     help="least kernel value of neighbours (default: 0.65)")
    add_output(sub, "labels and centres", "vector: its cluster and the centre "
               "of the cluster")

    sub = command("picks", run_picks,
                  "Picks vectors of a file that differ as much as possible, by "
                  "the MaxMin method.")
    add_compared(sub)
    sub.add_argument("n_picks", type=number(int, 1), metavar="N",
                     help="number of picks")
    sub.add_argument("--first", metavar="NAME",
                     help="the first pick: its name, or its position in the "
                     "file, from 0 (default: random); if an integer is a name "
                     "in the file, it means the vector of this name")
    sub.add_argument("--seed", type=number(int, 0), default=1234,
                     help="seed of the first pick (default: 1234)")
    add_output(sub, "picks and values", "pick: its largest kernel value with "
               "the earlier ones")
    return parser


def add_compared(sub):
    sub.add_argument("vectors", help="file of vectors, dense or sparse")
    sub.add_argument("--kernel", default="jaccard",
                     help="such as cosine or 'gaussian(gamma=0.1)' (default: "
                     "jaccard)")
    add_packed(sub)
    add_fingerprint(sub, "morgan2:2048")


def add_output(sub, arrays, line):
    sub.add_argument("-o", "--output",
                     help=f"file of results: .npz with {arrays}, or .csv or "
                     f".tsv with a line per {line}")


def add_changes(sub):
    sub.add_argument("index", help="file of the index")
    sub.add_argument("-o", "--output", metavar="FILE",
                     help="write the changed index to this file, and leave "
                     "the first one as it is")


PACKED = "bytes (uint8) in the file are packed bits, as numpy.packbits makes"


def add_packed(sub):
    """Options that tell what bytes are; needed under jaccard and dice."""
    either = sub.add_mutually_exclusive_group()
    either.add_argument("--packed", action="store_true", help=PACKED)
    either.add_argument(
        "--bits", type=number(int, 1), metavar="N",
        help="bytes in the file are N packed bits each, if these do not fill "
        "the bytes; files of fingerprints tell their number")
    either.add_argument(
        "--counts", action="store_true",
        help="bytes (uint8) in the file are counts; the default except under "
        "jaccard, dice and CWS")


def add_packed_for_index(sub):
    """An option of commands on an index, which tells the number of bits."""
    sub.add_argument(
        "--packed", action="store_true",
        help=f"{PACKED}; the default for indexes of packed bits")


def add_fingerprint(sub, default="that of the index"):
    sub.add_argument(
        "--format", choices=WITH_NAMES,
        help="read fingerprints (fps), SMILES (smi) or records of molecules (sdf) "
        "from standard input, which is given as -")
    sub.add_argument(
        "--fingerprint", metavar="TYPE",
        help="type of fingerprints, such as morgan2:2048, rdkit:2048 or maccs; "
        f"for SMILES and .sdf files, what to compute (default: {default}), and "
        "for .fps files in place of the type in the file")
    sub.add_argument(
        "--name-property", metavar="NAME",
        help="property in an .sdf file that has the names (default: the titles)")
    sub.add_argument(
        "--skip-errors", action="store_true",
        help="skip lines and records with errors in a file of fingerprints, and "
        "report how many they are")


def add_mmap(sub):
    sub.add_argument(
        "--mmap", action="store_true",
        help="map codes and vectors from the index's file instead of reading "
        "them")


def add_parameters(sub):
    sub.add_argument(
        "-p", "--parameter", type=setting, action="append", default=[],
        metavar="NAME=VALUE",
        help="search parameter, such as nprobe=16; can be repeated")


# ------------------------------------------------------------- commands

def run_recommend(args):
    x, packed, _ = rows_given(args, args.vectors, packed_given(args))
    queries = (None if args.queries is None
               else rows_given(args, args.queries, packed)[0])
    try:
        found = recommend(
            x, args.kernel, args.recall, k=args.k, queries=queries, n=args.n,
            bytes_per_vector=args.bytes_per_vector,
            build_seconds=args.build_seconds, sample_size=args.sample,
            seed=args.seed, progress=not args.quiet, packed=packed)
    except RuntimeError as error:  # name the file of the vector
        argument = getattr(error, "argument", None)
        if argument is None:
            raise
        error.check(args.queries if argument == "queries" else args.vectors)
        raise
    show(args, {
        "string": found.string, "parameters": found.parameters,
        "recall": found.recall,
        "queries_per_second": found.queries_per_second,
        "usual_queries_per_second": found.usual_queries_per_second,
        "single_queries_per_second": found.single_queries_per_second,
        "fastest_single": found.fastest_single and {
            "string": found.fastest_single.string,
            "parameters": found.fastest_single.parameters},
        "disturbed": found.disturbed, "as_fast": found.as_fast,
        "bytes_per_vector": found.bytes_per_vector,
        "build_seconds": found.build_seconds, "fits": found.fits,
        "n": found.n, "sample_size": found.sample_size, "k": found.k,
        "tried": [vars(t) for t in found.tried],
        "impossible": found.impossible}, [str(found)])
    return 0 if found.fits else 1


def run_build(args):
    stopwatch = Stopwatch()
    index, names = (built_of_fingerprints(args)
                    if is_fingerprint_file(args.vectors)
                    else built_of_vectors(args))
    seconds = stopwatch.seconds
    n, d = index.ntotal, index.d
    unit = "bits" if isinstance(index, faiss.IndexBinary) else "components"
    size = os.path.getsize(args.output)
    result = {
        "index": text(index), "n": n, "d": d, "bytes": size,
        "bytes_per_vector": size / n, "build_seconds": seconds,
        "names": None if names is None else len(names)}
    show(args, result, [
        f"{args.output}: {text(index)}",
        f"{n:,} vectors of {d:,} {unit}"
        f"{'' if names is None else ', with names'}, {size:,} bytes "
        f"({size / n:,.0f} a vector), built in {seconds:.1f} s"])
    return 0


def built_of_vectors(args):
    """Builds and writes an index. Returns it, and its names or None."""
    path, part = file_and_part(args.vectors)
    given, ids, names = given_for_build(args), None, None
    if given is not None and is_names(given):
        names = Names()
        names.add(given.ids)
    elif given is not None:
        ids = np.asarray(given.ids, dtype="int64")
    index = build_from(
        path, args.string, args.memory, args.output, part, args.exact,
        metric_of(args), args.train, args.seed, dict(args.parameter),
        not args.quiet, ids, names, packed_given(args))
    return index, names


def metric_of(args):
    return (faiss.METRIC_L2 if args.metric == "l2"
            else faiss.METRIC_INNER_PRODUCT)


def given_for_build(args):
    """The ids or names that --ids or a file of packed bits gives; or None."""
    if args.ids is not None:
        check_inputs_stay(args.output, args.ids)
        given = ids_or_names_given(args.ids, None)
        check_count(given, args, number_of_vectors(args.vectors))
        return given
    if not (packed_given(args) or swig._is_string_for_codes(args.string)):
        return None
    names = names_of_packed(args.vectors, number_of_vectors(args.vectors))
    return None if names is None else checked_names(Ids(names, args.vectors))


def built_of_fingerprints(args):
    """Builds and writes an index of fingerprints. Returns it, and its
    names."""
    check_writable(args.output)
    check_inputs_stay(args.output, args.vectors, args.ids)
    given = None if args.ids is None else ids_or_names_given(args.ids, None)

    def ids(n):
        if given is None:
            return None, None
        check_count(given, args, n)
        return ((None, given.ids) if is_names(given)
                else (np.asarray(given.ids, dtype="int64"), None))

    index, names, skipped = build_from_fingerprints(
        args.vectors, args.string, args.output, reading(args), ids, args.memory,
        args.train, args.seed, dict(args.parameter), not args.quiet, args.exact,
        metric_of(args))
    write_with_names(index, args.output, names)
    report(skipped)
    return index, names


def tree(index):
    """An index and its parts as JSON."""
    if index is None:
        return None
    return {
        "class": class_name(index), "d": index.d,
        "binary": isinstance(index, faiss.IndexBinary), "ntotal": index.ntotal,
        "is_trained": bool(index.is_trained),
        "settings": swig._settings_of(index),
        "parts": [tree(part.index) for part in parts_of(index)]}


def tree_lines(node, depth=0):
    if node is None:
        return ["  " * depth + "nothing"]
    state = (f"{node['ntotal']:,} vectors" if node["is_trained"]
             else "not trained")
    width = f"{node['d']:,} bits" if node["binary"] else f"d={node['d']}"
    lines = ["  " * depth + f"{node['class']}, {width}, {state}"
             + "".join(f", {setting}" for setting in node["settings"])]
    for part in node["parts"]:
        lines += tree_lines(part, depth + 1)
    return lines


def bits_at(hash, value):
    """The number of bits that differ at a kernel value."""
    low, high = hash.hamming_bounds(value)
    return {"kernel_value": value,
            "expected_hamming": float(hash.expected_hamming(value)),
            "bounds": [float(low), float(high)]}


def theory_of(hash):
    """bits_at for several kernel values, if the theory is known."""
    rows = []
    for value in KERNEL_VALUES:
        try:
            rows.append(bits_at(hash, value))
        except RuntimeError:
            pass
    return rows


def run_info(args):
    if os.path.exists(args.index):
        if args.d is not None:
            raise UsageError(f"-d is for factory strings, but {args.index} is a "
                             "file or folder")
        index, names = index_and_names(args.index, args.mmap)
        size = size_of(args.index)
    else:
        try:
            factory = (index_binary_factory
                       if swig._is_string_for_codes(args.index)
                       else faiss.index_factory)
            index = factory(args.d or 128, args.index)
        except RuntimeError as error:
            raise ValueError(f"{args.index!r} is neither a file nor a factory "
                             f"string{own_words(error)}") from None
        size = names = None
    found = hash_of(index)
    theory = [] if found is None else theory_of(found)
    if theory and args.at:
        theory = [bits_at(found, value) for value in args.at]
    note = found._caution() or None if theory else None
    result = {
        "text": text(index), "metric": swig._metric_text(index) or None,
        "tree": tree(index),
        "parameters": index_parameters(index), "bytes": size,
        "names": None if names is None else len(names),
        "fingerprint": fingerprint_of(names),
        "bits": None if found is None else found.nbits, "theory": theory,
        "note": note}
    lines = tree_lines(result["tree"])
    if result["metric"] is not None:
        lines.append(f"metric: {result['metric']}")
    if size is not None:
        lines.append(f"{size:,} bytes" + (
            f", {size / index.ntotal:,.1f} a vector" if index.ntotal else ""))
    if names is not None:
        lines.append(f"{len(names):,} names")
    if result["fingerprint"] is not None:
        lines.append(f"fingerprints: {result['fingerprint']}")
    if result["parameters"]:
        lines.append("search parameters: " + ", ".join(
            f"{name}={value:g}" for name, value
            in result["parameters"].items()))
    if args.at and not theory:
        lines.append("bits that differ: not known, there is no hash with a "
                     "theory in it")
    if theory:
        lines.append(f"{'kernel value':>12} {'bits that differ':>17}"
                     f"   of {found.nbits}")
        for row in theory:
            low, high = row["bounds"]
            lines.append(
                f"{row['kernel_value']:12g} {row['expected_hamming']:17.1f}"
                + (f"   from {low:.1f} to {high:.1f}"
                   if high - low < found.nbits else ""))
    if note is not None:
        lines.append(f"({note})")
    show(args, result, lines)
    return 0


def keep_values(space, parameters):
    """Restricts the ranges of some parameters to one value."""
    ranges = space.ranges()
    for name, value in parameters:
        for known in (name, f"{name}_rf"):  # FAISS's name for a k_factor
            if known in ranges:
                faiss.copy_array_to_vector(
                    np.array([value], "float64"), space.add_range(known).values)
                break


def truth_for(args, index, x, queries):
    """The exact neighbours of the queries of bench."""
    if takes_packed_bits(index):
        return TruthOfBits(
            index.d, as_bit_kernel(args.kernel), x, queries, args.k)
    for file, array in ((args.vectors, x), (args.queries, queries)):
        check_vectors(
            as_kernel(args.kernel), array, file, range(array.shape[0]))
    return Truth(trained_kernel(args.kernel, x), x, queries, args.k,
                 index.metric_type)


def run_bench(args):
    index, names = index_and_names(args.index)
    x, queries = (as_dense(vectors_and_names(args, index, names, file)[0])
                  for file in (args.vectors, args.queries))
    n, nq = x.shape[0], queries.shape[0]
    if n != index.ntotal:
        raise VectorFileError(f"{args.vectors}: {n:,} vectors, the index "
                              f"has {index.ntotal:,}")
    if args.k > n:
        raise UsageError(f"k is {args.k:,}, the index has {n:,} vectors")
    set_all(index, dict(args.parameter))
    truth = truth_for(args, index, x, queries)
    space = ParameterSpace()
    space.initialize(index)
    space.verbose = 0
    keep_values(space, args.parameter)
    space.n_experiments = args.settings
    space.min_test_duration = 0.2
    with (contextlib.nullcontext() if args.threads is not None
          else one_thread_if_busy()):
        found = space.explore(index, queries, RecallCriterion(truth))
        threads = faiss.omp_get_max_threads()
    if space.is_disturbed:
        hint = "; --threads 1 measures processor time" if threads > 1 else ""
        print("Other programs kept the machine busy: rates may be too low"
              f"{hint}.", file=sys.stderr)
    best = found.optimal_pts  # points into `found`, which must stay alive
    rows = [
        {"parameters": point.key, "recall": point.perf,
         "queries_per_second": nq / point.t,
         "usual_queries_per_second":
             nq / space.usual_times[point.key]}
        for point in map(best.at, range(best.size())) if point.t > 0]

    def rate(row):
        usual = (f"{row['usual_queries_per_second']:,.0f} to "
                 if space.is_disturbed else "")
        return f"{usual}{row['queries_per_second']:,.0f}"

    width = max([12, *(len(rate(row)) for row in rows)])
    show(args, rows, [
        f"{'recall':>8} {'queries/s':>{width}}  parameters", *(
            f"{row['recall']:8.3f} {rate(row):>{width}}  {row['parameters']}"
            for row in rows)])
    return 0


# ----------------------------------------------------------------- main

def main(words=None):
    """Runs a command; returns the exit status."""
    args = arguments().parse_args(words)
    threads = faiss.omp_get_max_threads()
    try:
        name_standard_input(args)
        if args.threads is not None:
            faiss.omp_set_num_threads(args.threads)
        status = args.function(args)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # such as from `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141  # as a program that SIGPIPE ends
    except UsageError as error:
        print(f"faiss_ext: {error}", file=sys.stderr)
        return 2
    except (RuntimeError, ValueError, TypeError, OSError, MemoryError
            ) as error:
        print(f"faiss_ext: {str(error) or type(error).__name__}",
              file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("faiss_ext: interrupted", file=sys.stderr)
        return 130
    finally:
        faiss.omp_set_num_threads(threads)
