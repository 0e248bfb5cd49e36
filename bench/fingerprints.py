#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exact search of molecular fingerprints, beside other libraries.

    PEERS/bin/pip install rdkit FPSim2 usearch
    PYTHONPATH=build/python PEERS/bin/python bench/fingerprints.py [--n 250000] [--keep FOLDER]

The molecules are made from 4,500 that RDKit's package contains: each is cut at a
bond, and two pieces of different molecules are joined. Their fingerprints are
Morgan's, of radius 2, as 2,048 bits, or the 166 MACCS keys (--bits maccs). RDKit
makes some 2,000 molecules a second, so keep them for later runs (--keep).

FPSim2's loops and RDKit's functions get fingerprints and queries in their own
types, which are made before; FPSim2 gets no files. RDKit's
bulk functions compare all fingerprints; NumPy then selects the nearest. FAISS
ranks by Hamming distance, so it finds only some of the nearest.

Everything runs on one thread, in turns. Times are processor time, and the
fastest turn counts.
"""

import argparse
import functools
import os
import random
import time
from pathlib import Path

import faiss
import faiss_ext
import numpy as np

BITS = {"morgan": 2048, "maccs": 166}


def pieces():
    """Pieces of molecules, each with one place for a bond."""
    from rdkit import Chem, RDConfig
    # a single bond outside rings, between atoms that have other neighbours
    bond = Chem.MolFromSmarts("[!$([D1]);!#1]-&!@[!$([D1]);!#1]")
    found = []
    for line in Path(RDConfig.RDDataDir, "NCI", "first_5K.smi").read_text().splitlines():
        molecule = Chem.MolFromSmiles(line.split()[0])
        if molecule is None:
            continue
        for a, b in molecule.GetSubstructMatches(bond):
            cut = Chem.FragmentOnBonds(
                molecule, [molecule.GetBondBetweenAtoms(a, b).GetIdx()], dummyLabels=[(0, 0)])
            for piece in Chem.GetMolFrags(cut, asMols=True, sanitizeFrags=False):
                places = [atom for atom in piece.GetAtoms() if atom.GetAtomicNum() == 0]
                if len(places) == 1 and 5 <= piece.GetNumAtoms() <= 25:
                    found.append((piece, places[0].GetIdx(), places[0].GetNeighbors()[0].GetIdx()))
    return found


def molecules(seed=0):
    """Molecules of two pieces each, without end."""
    from rdkit import Chem
    all_pieces, chosen = pieces(), random.Random(seed)
    while True:
        (first, place, atom), (second, other_place, other_atom) = (
            chosen.choice(all_pieces) for _ in range(2))
        joined = Chem.RWMol(Chem.CombineMols(first, second))
        shift = first.GetNumAtoms()
        joined.AddBond(atom, other_atom + shift, Chem.BondType.SINGLE)
        joined.RemoveAtom(other_place + shift)
        joined.RemoveAtom(place)
        try:
            Chem.SanitizeMol(joined)
        except ValueError:
            continue
        yield joined


def fingerprints(kind, n):
    """n different fingerprints as packed bits."""
    from rdkit import DataStructs, RDLogger
    from rdkit.Chem import MACCSkeys, rdFingerprintGenerator
    RDLogger.DisableLog("rdApp.*")
    morgan = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)

    def maccs(molecule):  # key 0 is never set
        bits = np.zeros(167, "uint8")
        DataStructs.ConvertToNumpyArray(MACCSkeys.GenMACCSKeys(molecule), bits)
        return bits[1:]
    made = morgan.GetFingerprintAsNumPy if kind == "morgan" else maccs
    found = {}
    for molecule in molecules():
        found.setdefault(np.packbits(made(molecule)).tobytes())
        if len(found) == n:
            return np.frombuffer(b"".join(found), "uint8").reshape(n, -1)


def kept_fingerprints(kind, n, folder):
    path = folder and Path(folder, f"{kind}-{n}.npy")
    if path and path.exists():
        return np.load(path)
    made = fingerprints(kind, n)
    if path:
        np.save(path, made)
    return made


def tanimoto(x, y):
    return faiss_ext.bit_kernel_factory("jaccard").gram(x, y)


class FPSim2:
    def __init__(self, x):
        from FPSim2.FPSim2lib import GenericSearch
        from FPSim2.io.backends.base import BaseStorageBackend
        from FPSim2.io.chem import get_bounds_range
        rows = self.layout(x)
        self.fps = np.ascontiguousarray(rows[np.argsort(rows[:, -1], kind="stable")])
        self.bins = BaseStorageBackend.calc_popcnt_bins(self.fps)
        self.search, self.range_of = GenericSearch, get_bounds_range

    @staticmethod
    def layout(x):
        words = np.zeros((len(x), (x.shape[1] + 7) // 8 * 8), "uint8")
        words[:, : x.shape[1]] = x
        ones = np.unpackbits(x, axis=1).sum(axis=1, dtype="uint64")[:, None]
        return np.hstack([np.arange(len(x), dtype="uint64")[:, None], words.view("uint64"), ones])

    def found(self, query, threshold, k):
        bounds = self.range_of(query, threshold, 0, 0, self.bins, "tanimoto")
        return self.search(query, self.fps, threshold, k, 0, *bounds) if bounds else []

    def nearest(self, queries, k):
        return [[hit["mol_id"] for hit in self.found(q, 0.0, k)[:k]] for q in queries]

    def within(self, queries, threshold):
        return [len(self.found(q, threshold, 0)) for q in queries]


class RDKit:
    def __init__(self, x):
        from rdkit import DataStructs
        self.structs, self.bits = DataStructs, x.shape[1] * 8
        self.vectors = self.layout(x)

    def layout(self, x):
        return [self.vector(row) for row in x]

    def vector(self, row):
        vector = self.structs.ExplicitBitVect(self.bits)
        vector.SetBitsFromList(np.flatnonzero(np.unpackbits(row)).tolist())
        return vector

    def values(self, q):
        return np.array(self.structs.BulkTanimotoSimilarity(q, self.vectors))

    def nearest(self, queries, k):
        return [np.argpartition(-self.values(q), k)[:k] for q in queries]

    def within(self, queries, threshold):
        return [(self.values(q) >= threshold).sum() for q in queries]


class Usearch:
    def __init__(self, x):
        from usearch.index import MetricKind, search
        self.x, self.metric, self.exact = x, MetricKind.Tanimoto, search

    def nearest(self, queries, k):
        return self.exact(self.x, queries, k, self.metric, exact=True, threads=1).keys.reshape(-1, k)


class Index:
    def __init__(self, x, index):
        self.index = index
        self.index.add(x)

    def nearest(self, queries, k):
        return self.index.search(queries, k)[1]

    def within(self, queries, threshold):
        # a search finds codes with larger values
        radius = self.index.distance(threshold) + 1
        return np.diff(self.index.range_search(queries, radius)[0])


PEERS = {"FPSim2": FPSim2, "RDKit": RDKit, "usearch": Usearch}


def searches(x, bits, peers):
    """The searches of some libraries by their names."""
    made = {"BKFlat": Index(x, faiss_ext.index_binary_factory(bits, "BKFlat(jaccard)")),
            "FAISS BFlat": Index(x, faiss.IndexBinaryFlat(x.shape[1] * 8))}
    for name in peers:
        try:
            made[name] = PEERS[name](x)
        except ImportError:
            print(f"  {name} is not installed")
    return made


def fastest(calls, turns):
    """The least processor time of each call, in turns."""
    times = dict.fromkeys(calls, np.inf)
    for _ in range(turns):
        for name, call in calls.items():
            start = time.process_time()
            call()
            times[name] = min(times[name], time.process_time() - start)
    return times


def one_by_one(search, queries, how):
    return [search(queries[i : i + 1], how)[0] for i in range(len(queries))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=int, default=250_000)
    parser.add_argument("--bits", choices=BITS, default="morgan")
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--threshold", type=float, default=0.7)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS, help="libraries beside ours and FAISS")
    parser.add_argument("--keep", metavar="FOLDER", help="folder for the fingerprints")
    args = parser.parse_args()
    faiss.omp_set_num_threads(1)
    all_fingerprints = kept_fingerprints(args.bits, args.n + args.queries, args.keep)
    x, queries = all_fingerprints[: args.n], all_fingerprints[args.n :]
    values = tanimoto(queries, x)
    kth = -np.partition(-values, args.k - 1, axis=1)[:, args.k - 1]
    print(f"{args.n:,} fingerprints of {BITS[args.bits]} bits, "
          f"{np.unpackbits(x[:1000], axis=1).sum() / 1000:.0f} of them 1; "
          f"the {args.k}th nearest has {kth.mean():.2f} in the mean; ms a query")
    made = searches(x, BITS[args.bits], args.peers)
    prepared = {name: one.layout(queries) if hasattr(one, "layout") else queries for name, one in made.items()}
    tests = {f"top {args.k}, one by one": ("nearest", args.k, one_by_one),
             f"top {args.k}, batch": ("nearest", args.k, lambda search, q, k: search(q, k)),
             f">= {args.threshold}, one by one": ("within", args.threshold, one_by_one),
             f">= {args.threshold}, batch": ("within", args.threshold, lambda search, q, t: search(q, t))}
    for title, (method, how, run) in tests.items():
        calls = {name: functools.partial(run, getattr(one, method), prepared[name], how)
                 for name, one in made.items()
                 if hasattr(one, method) and not (method == "within" and name == "FAISS BFlat")}
        times = fastest(calls, args.turns)
        for name, call in calls.items():
            found = call()
            if method == "nearest":
                good = np.mean([np.mean(row[np.asarray(ids, "int64")] >= least - 1e-6)
                                for row, ids, least in zip(values, found, kth, strict=True)])
                result = f"recall {good:.3f}"
            else:
                right = (values >= how - 1e-7).sum(axis=1)
                result = "all found" if np.array_equal(found, right) else "some missing"
            print(f"  {title:22} {name:12} {times[name] / len(queries) * 1e3:8.3f}"
                  f"   {times[name] / times['BKFlat']:6.1f} x   {result}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
