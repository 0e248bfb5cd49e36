# SPDX-License-Identifier: MIT
"""The command search: searches an index for the vectors of a file."""

import itertools
import json
import os
import sys

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .advice import set_all
from .arguments import counted
from .command_files import (
    UsageError, as_dense, batches_for, check_class, check_results_file,
    ids_or_names_given, index_and_names, naming, shards_of, vectors_and_names)
from .fingerprint_files import is_standard_input
from .id_files import read_filter
from .index_tree import part_that_compares
from .name_lists import is_names
from .named_vectors import check_has_names, known_names
from .result_files import as_lists, write_results, write_rows, write_table
from .result_tables import lines_of, table_of, with_values_and_names
from .timing import Stopwatch


class Searcher:
    """Searches an index as the options of the command say.

    Attributes
    ----------
    index, names : the index in the file or a shard in the folder, and its
        names or None
    n, seconds : the number of queries so far, and the time of their searches
    """

    def __init__(self, args):
        self.args, self.n, self.seconds = args, 0, 0.0
        if os.path.isdir(args.index):  # shards find the same as one index
            self.searched = shards_of(args.index, args.mmap)
            self.index, self.names = self.searched.place.shards[0].index, None
            for name, value in args.parameter:
                self.searched.set_parameter(name, value)
        else:
            self.index, self.names = index_and_names(args.index, args.mmap)
            self.searched = self.index
            set_all(self.index, dict(args.parameter))
        self.radius = radius_of(args, self.index)
        self.filter = filter_given(args, self.index, self.names)

    def results(self, queries, query_names):
        """The arrays of results of some queries."""
        queries = as_dense(queries)
        stopwatch = Stopwatch()
        with naming(self.args.queries):
            arrays = found_by(self.searched, queries, self.args.k, self.radius,
                              self.filter)
        self.seconds += stopwatch.seconds
        self.n += queries.shape[0]
        if isinstance(self.index, faiss.IndexBinary):
            arrays["D"] = arrays["D"].astype("int32")  # floats for ranges
        return with_values_and_names(
            arrays, self.searched, queries, self.names, query_names)

    def report(self):
        print(f"{counted(self.n, 'query', 'queries')} in {self.seconds:.3f} s",
              file=sys.stderr)


def run_search(args):
    if args.k is not None and args.radius is not None:
        raise UsageError("-k and --radius exclude each other; --threshold "
                         "may be combined with -k")
    searcher = Searcher(args)
    check_results_file(args.output, args.index, args.queries, args.filter)
    if is_standard_input(args.queries) and args.output is None and (
            not args.json):
        return print_as_they_come(args, searcher)
    queries, query_names = vectors_and_names(
        args, searcher.index, searcher.names, args.queries)
    arrays = searcher.results(queries, query_names)
    columns, rows = table_of(searcher.searched, arrays)
    if args.output is not None:
        write_results(args.output, arrays, columns, rows)
    if args.json:
        print(json.dumps({"seconds": searcher.seconds, **(
            {} if args.output is not None else as_lists(arrays))}))
        return 0
    if args.output is None and (
            searcher.names is not None or query_names is not None):
        write_table(sys.stdout, columns, rows, "\t")
    elif args.output is None:
        print("\n".join(lines_of(queries.shape[0], rows)))
    searcher.report()
    return 0


def print_as_they_come(args, searcher):
    """Prints the results of fingerprints from standard input, of all that have
    come in at a time."""
    batches = batches_for(args, searcher.index, searcher.names, args.queries)
    for number, (queries, query_names) in enumerate(batches):
        columns, rows = table_of(
            searcher.searched, searcher.results(queries, query_names))
        write_rows(sys.stdout, itertools.chain([columns][number:], rows), "\t")
        sys.stdout.flush()
    searcher.report()
    return 0


def found_by(searched, queries, k, radius, filter):
    """The results of a search for the k nearest, within a radius, or both."""
    if radius is not None and k is None:
        lims, D, I = searched.range_search(queries, radius, **filter)
        return {"lims": lims, "D": D, "I": I}
    D, I = searched.search(queries, k or 10, **filter)
    if radius is not None:
        is_beyond = D >= radius
        I[is_beyond], D[is_beyond] = -1, np.iinfo("int32").max
    return {"D": D, "I": I}


def radius_of(args, index):
    """The radius of a search by --radius or --threshold; otherwise None."""
    radius = args.radius
    if args.threshold is not None:
        if not is_scaled(index):
            raise UsageError("--threshold is for indexes with BKFlat; --radius "
                             "is a distance of any index")
        return swig.IndexBinaryFlatKernel.distance(args.threshold) + 1
    if radius is None or not isinstance(index, faiss.IndexBinary):
        return radius
    if not (radius.is_integer() and abs(radius) < 2**31):
        hint = (f"; --threshold {radius:g} finds kernel values"
                if 0 < radius < 1 and is_scaled(index) else "")
        raise UsageError(f"the radius is {radius:g}, expected an integer below "
                         f"2^31, as distances of this index are{hint}")
    return int(radius)


def is_scaled(index):
    """Whether distances are integers that tell kernel values exactly."""
    return swig._distance_kind(part_that_compares(index)) == "scaled"


def filter_given(args, index, names):
    """The arguments of a search with --filter."""
    if args.filter is None:
        return {}
    if os.path.isdir(args.index):
        raise UsageError("--filter is for an index in a file, but "
                         f"{args.index} is a folder")
    check_class(index, args.index)
    given = ids_or_names_given(args.filter, names, read_filter, are_known=True)
    if not is_names(given):
        return {"filter": given.ids}
    check_has_names(args.index, names, given)
    there = known_names(names, given.ids)
    if len(there) < len(given.ids):
        missing = len(given.ids) - len(there)
        print(f"{counted(missing, 'name')} in {given.name} "
              f"{'is' if missing == 1 else 'are'} not in the index",
              file=sys.stderr)
    return {"filter": names.ids(there)}
