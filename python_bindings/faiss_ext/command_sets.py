# SPDX-License-Identifier: MIT
"""Commands that compare the vectors of a file with each other: duplicates,
clusters and picks."""

import contextlib
import json
import sys

import numpy as np

from .arguments import counted
from .clusters import butina_clusters
from .command_files import (
    UsageError, check_results_file, naming, packed_given, rows_given)
from .duplicates import found_pairs, near_duplicate_groups
from .picks import as_row, maxmin_picks
from .progress import show_progress
from .result_files import as_lists, write_results, write_table
from .sources import as_floats
from .timing import Stopwatch


def rows_to_compare(args):
    """The vectors of a file, whether they are packed bits or their number, and
    their names or None."""
    check_results_file(args.output, args.vectors)
    x, packed, names = rows_given(args, args.vectors, packed_given(args))
    return x if packed else as_floats(x, args.vectors), packed, names


def run_duplicates(args):
    x, packed, names = rows_to_compare(args)
    find = near_duplicate_groups if args.groups else found_pairs
    found, about = computed(args, x, lambda: find(
        x, args.threshold, args.kernel, args.missed, packed, args.seed))
    name = namer(names)
    if args.groups:
        counts = {"groups": len(np.unique(found))}
        return show_results(
            args, names, {"groups": found}, about, counts, ("vector", "group"),
            ((name(i), name(group)) for i, group in enumerate(found)))
    pairs, values, about["missed"] = found
    note = ("" if about["missed"] == 0 else "; a pair is missing with a "
            f"probability of at most {about['missed']:.2g}")
    return show_results(
        args, names, {"pairs": pairs, "values": values}, about,
        {"pairs": len(pairs)}, ("i", "j", "value"),
        ((name(i), name(j), value) for (i, j), value in zip(pairs, values)),
        note)


def run_clusters(args):
    x, packed, names = rows_to_compare(args)
    (labels, centres), about = computed(args, x, lambda: butina_clusters(
        x, args.threshold, args.kernel, packed))
    name = namer(names)
    is_other = centres[labels] != np.arange(len(labels))
    order = np.lexsort((is_other, labels))  # the centre of a cluster first
    return show_results(
        args, names, {"labels": labels, "centres": centres}, about,
        {"clusters": len(centres)}, ("vector", "cluster", "centre"),
        ((name(i), labels[i], name(centres[labels[i]])) for i in order))


def run_picks(args):
    x, packed, names = rows_to_compare(args)
    first = first_given(args, names, x.shape[0])
    (picks, values), about = computed(args, x, lambda: maxmin_picks(
        x, args.n_picks, args.kernel, first, packed, args.seed))
    name = namer(names)
    return show_results(
        args, names, {"picks": picks, "values": values}, about,
        {"picks": len(picks)}, ("vector", "similarity"),
        ((name(i), value) for i, value in zip(picks, values)))


def first_given(args, names, n):
    """The row that --first tells by its name or number; None without it."""
    word = args.first
    if word is None:
        return None
    if word.isdecimal() and word not in (names or ()):
        return as_row(int(word), None, n, args.vectors)
    if names is None:
        raise UsageError(f"--first is {word!r}, but {args.vectors} has no names; "
                         f"expected a position from 0 to {n - 1}")
    return as_row(word, names, n, args.vectors)


def computed(args, x, function):
    """The result of a function, and facts about it for JSON."""
    progress = contextlib.nullcontext() if args.quiet else show_progress()
    stopwatch = Stopwatch()
    with naming(args.vectors), progress:
        return function(), {"seconds": stopwatch.seconds, "n": x.shape[0]}


def namer(names):
    """A function that returns the name of a vector, or its number."""
    return (lambda i: i) if names is None else names.__getitem__


def show_results(args, names, arrays, about, counts, columns, rows, note=""):
    """Writes or prints arrays or rows, and how many there are."""
    if names is not None:
        arrays["names"] = np.array(names, dtype=object)
    if args.output is not None:
        write_results(args.output, arrays, columns, rows)
    if args.json:
        print(json.dumps({**about, **(
            counts if args.output is not None else as_lists(arrays))}))
        return 0
    if args.output is None:
        rows = ([f"{a:.7g}" if isinstance(a, np.floating) else a for a in row]
                for row in rows)
        if names is not None:
            write_table(sys.stdout, columns, rows, "\t")
        for row in rows:  # without names, numbers alone
            print(*row)
    (noun, n), = counts.items()
    print(f"{counted(n, noun[:-1])} of {counted(about['n'], 'vector')} in "
          f"{about['seconds']:.3f} s{note}", file=sys.stderr)
    return 0
