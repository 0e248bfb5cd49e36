#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Near-duplicates and codes of sets, beside rensa and datasketch.

    PYTHONPATH=build/python python3 bench/near_duplicates.py [--n 25000 100000 400000]

The sets are the words of Python functions on this machine, or other data of
bench/sparse.py, and edited copies of them: in each copy, a share of 1 to 30 %
of the words is replaced.

- pairs: near_duplicates at a Jaccard similarity of 0.8, for each n, and the
  exponent by which its time grows from one n to the next. rensa and datasketch
  find candidates by signatures of 128 numbers in 16 bands. These are not
  compared exactly; candidates counts them.
- codes: CWS codes of 256 bits and signatures of 256 numbers, also of the counts
  of words with datasketch's weighted MinHash, which takes fewer vectors.

Peers are used if they can be imported. Everything runs on one thread. Times are
processor time, the least of some turns.
"""

import argparse
import os

os.environ.setdefault("RAYON_NUM_THREADS", "1")

import faiss
import faiss_ext
import numpy as np
import scipy.sparse
from sparse import DATA, bags, fastest

PERMUTATIONS, BANDS, THRESHOLD = 128, 16, 0.8


def sets_of(x):
    sets = x.copy()
    sets.data[:] = 1
    return sets


def with_copies(sets, n, rng):
    """n sets: the given ones, and edited copies."""
    if n <= sets.shape[0]:
        return sets[:n]
    copies = sets[rng.integers(0, sets.shape[0], n - sets.shape[0])]
    replaced = np.repeat(rng.uniform(0.01, 0.3, copies.shape[0]), np.diff(copies.indptr))
    replaced = rng.random(copies.nnz) < replaced
    copies.indices[replaced] = rng.choice(sets.indices, replaced.sum())  # by frequency
    copies.has_sorted_indices = copies.has_canonical_format = False
    copies.sum_duplicates()
    return scipy.sparse.vstack([sets, sets_of(copies)]).tocsr()[rng.permutation(n)]


def tokens(x, form):
    words = np.array([form(f"w{i}") for i in range(x.shape[1])], dtype=object)
    return [words[x.indices[begin:end]].tolist()
            for begin, end in zip(x.indptr[:-1], x.indptr[1:], strict=True)]


def pair_peers(x):
    """Functions that return candidates of each set."""
    try:
        import rensa
        of_rensa = tokens(x, str)

        def by_rensa():
            table = rensa.RMinHashLSH(THRESHOLD, PERMUTATIONS, BANDS)
            signatures = rensa.RMinHash.from_token_sets(of_rensa, num_perm=PERMUTATIONS, seed=42)
            table.insert_many(signatures)
            return table.query_all(signatures)
        yield "rensa", by_rensa
    except ImportError:
        pass
    try:
        import datasketch
        if x.shape[0] > 500_000:
            return  # a minute for each half million
        of_datasketch = tokens(x, str.encode)

        def by_datasketch():
            table = datasketch.MinHashLSH(params=(BANDS, PERMUTATIONS // BANDS), num_perm=PERMUTATIONS)
            signatures = datasketch.MinHash.bulk(of_datasketch, num_perm=PERMUTATIONS)
            with table.insertion_session() as session:
                for i, signature in enumerate(signatures):
                    session.insert(i, signature, check_duplication=False)
            return [table.query(signature) for signature in signatures]
        yield "datasketch", by_datasketch
    except ImportError:
        pass


def found_by(candidates, pairs, n):
    """The found share of the pairs, and the number of candidates."""
    got = [i * n + c[c > i] for i, c in enumerate(np.asarray(c, "int64") for c in candidates)]
    got = np.unique(np.concatenate(got))
    are_found = np.isin(pairs[:, 0].astype("int64") * n + pairs[:, 1], got)
    return are_found.mean() if len(pairs) else 1, len(got)


def compare_pairs(sets, args):
    before = None
    for n in args.n:
        x = with_copies(sets, n, np.random.default_rng(n))
        exact = faiss_ext.near_duplicates(x, THRESHOLD, missed=0)[0]
        results = {}

        def kept(name, search, results=results):
            def call():
                results[name] = search()
            return call
        searches = {"near_duplicates": lambda x=x: faiss_ext.near_duplicates(x, THRESHOLD),
                    **dict(pair_peers(x))}
        times = fastest({name: kept(name, search) for name, search in searches.items()}, args.turns)
        ours = times["near_duplicates"]
        growth = "" if before is None else (
            f"   n^{np.log(ours / before[1]) / np.log(n / before[0]):.2f}")
        before = n, ours
        print(f"pairs of {n:,} sets of {x.nnz / n:.1f} words: {len(exact):,} at {THRESHOLD} or more")
        for name, seconds in times.items():
            if name == "near_duplicates":
                share = len(results[name][0]) / len(exact) if len(exact) else 1
                text = "compared exactly" + growth
            else:
                share, count = found_by(results[name], exact, n)
                text = f"{count:,} candidates"
            print(f"  {name:16} {seconds:8.2f} s   {seconds / ours:6.2f} x   recall {share:.4f}   {text}", flush=True)


def compare_codes(counts, args):
    sets = sets_of(counts)
    hashes = {"CWS256 of sets": sets, "CWS256 of counts": counts}
    searches = {}
    for name, x in hashes.items():
        hashed = faiss.index_factory(x.shape[1], "CWS256,BFlat")
        hashed.train(x)
        searches[name] = lambda hashed=hashed, x=x: hashed.hash.encode(x)
    sizes = dict.fromkeys(searches, counts.shape[0])
    try:
        import rensa
        of_rensa = tokens(sets, str)
        searches["rensa"] = lambda: rensa.RMinHash.digest_matrix_from_token_sets(of_rensa, 256, 42)
        sizes["rensa"] = counts.shape[0]
    except ImportError:
        pass
    try:
        import datasketch
        few = counts[:200]
        used = np.unique(few.indices)  # its tables have a row for each column
        rows = [row.toarray().ravel() for row in few[:, used]]
        generator = datasketch.WeightedMinHashGenerator(len(used), sample_size=256)
        searches["datasketch"] = lambda: [generator.minhash(row) for row in rows]
        sizes["datasketch"] = len(rows)
    except ImportError:
        pass
    times = fastest(searches, args.turns)
    print(f"codes and signatures of 256 bits or numbers; {counts.nnz / counts.shape[0]:.1f} words each, µs a vector")
    for name, seconds in times.items():
        each = seconds / sizes[name] * 1e6
        ours = times["CWS256 of counts" if name == "datasketch" else "CWS256 of sets"] / counts.shape[0] * 1e6
        print(f"  {name:16} {each:9.2f}   {each / ours:7.2f} x", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=int, nargs="+", default=[25_000, 100_000, 400_000])
    parser.add_argument("--data", choices=DATA, default="functions")
    parser.add_argument("--originals", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", choices=["pairs", "codes"])
    args = parser.parse_args()
    faiss.omp_set_num_threads(1)
    counts = bags(args.data, args.originals)
    if args.only != "pairs":
        compare_codes(counts, args)
    if args.only != "codes":
        compare_pairs(sets_of(counts), args)


if __name__ == "__main__":
    main()
