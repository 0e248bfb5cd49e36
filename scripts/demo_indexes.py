# SPDX-License-Identifier: MIT
"""The indexes that the demo measures: groups of factory strings, and search parameters to try.

The strings are those of docs/choosing.md, plus FAISS's own indexes for comparison.
"""

import math
from typing import NamedTuple

import faiss
from demo_options import HISTOGRAM_KERNELS, KERNEL_SHAPES
from faiss_ext import index_factory  # the same as faiss.index_factory, which the import extends
from faiss_ext.advice import lists_for

EXACT = "exact scan"
FAISS = "FAISS's own, under L2"
CODES = "codes"
RERANKED = "codes, re-ranked by the kernel"
BUCKETS = "buckets of codes"
LISTS = "lists and graphs"
GROUPS = (EXACT, FAISS, CODES, RERANKED, BUCKETS, LISTS)

NPROBES = (1, 2, 4, 8, 16, 32, 64, 128)
EF_SEARCHES = (16, 32, 64, 128, 256, 512)
NFLIPS = (0, 1, 2)
CODES_FACTORS = (2, 4, 8, 16, 32, 64)  # candidates for each result
LISTS_FACTORS = (1, 2, 4, 8)
MOST_DIMS = 128  # kept by the PCA in front of lists
LANDMARKS = 500
TRAINS_PQ = 39 * 16  # vectors that FAISS wants for codebooks of 16 entries


class Family(NamedTuple):
    """Indexes that differ in numbers only: one curve of the figure."""

    group: str
    title: str
    strings: str  # without their numbers


class Entry(NamedTuple):
    """One index. `name` is its string in short, `string` has bandwidth and seeds as well."""

    family: Family
    name: str
    string: str
    bits: int = 0  # of codes
    keeps_vectors: bool = True
    effort: str = ""  # the parameter that sets the effort of a search
    efforts: tuple = (None,)  # its values, ascending
    k_factors: tuple = (None,)

    def make(self, d):
        if self.string.startswith("LSH"):  # FAISS 1.7.3 has no strings with a number of bits
            return faiss.IndexLSH(d, self.bits, True, self.string.endswith("t"))
        return index_factory(d, self.string)


def exact(kernel):
    """The exact scan, which chooses the bandwidth."""
    string = f"KFlat({plain(kernel)})"
    return Entry(Family(EXACT, "exact scan", "KFlat"), string, string)


def plain(kernel):
    """A kernel as strings have it, without bandwidth."""
    arguments = ",".join(KERNEL_SHAPES.get(kernel, ()))
    return f"{kernel}({arguments})" if arguments else kernel


class Plan:
    """All but the exact scan, group by group, for n vectors of d dimensions.

    `store` is the key of KFlat for the rows that re-rank, such as ",store=u8"; `lengths` are those of codes in bits.
    """

    def __init__(self, kernel, gamma, n, d, store, lengths, seed):
        self.kernel, self.n, self.d, self.store, self.lengths = kernel, n, d, store, lengths
        self.rows = f"KFlat({{kernel}}{store})"
        if kernel in HISTOGRAM_KERNELS:
            self.scheme, self.codes = "AHK", "AHK{bits}({kernel},center=1{seed})"
        else:
            self.scheme, self.codes = "SIK", "SIK{bits}({kernel}{seed})"
        # what templates have in braces, in short and in full
        self.short = {"kernel": plain(kernel), "gamma": "", "seed": "", "only_seed": ""}
        self.full = {**self.short, "seed": f",seed={seed}", "only_seed": f"(seed={seed})"}
        if gamma is not None:
            self.full["gamma"] = f",gamma={gamma:.9g}"
            self.full["kernel"] = f"{kernel}({','.join([*KERNEL_SHAPES[kernel], self.full['gamma'][1:]])})"

    def entries(self):
        groups = (self._compact_scan, self._faiss, self._codes, self._reranked, self._buckets, self._lists)
        return [entry for group in groups for entry in group()]

    def _entry(self, family, template, bits=0, **rest):
        name, string = (template.format(bits=bits, **words) for words in (self.short, self.full))
        return Entry(family, name, string, bits, **rest)

    def _each_length(self, family, template, **rest):
        for bits in self.lengths:
            storage = self._hash_tables(bits)
            yield self._entry(family, template.replace("{storage}", storage), bits, **rest)

    def _compact_scan(self):
        if self.store:
            yield self._entry(Family(EXACT, "exact scan, compact", f"KFlat({self.store[1:]})"), self.rows)

    def _faiss(self):
        yield self._entry(Family(FAISS, "exact under L2", "Flat"), "Flat")
        for title, suffix in (("LSH", "r"), ("LSH, trained", "rt")):
            family = Family(FAISS, title, f"LSH{suffix}")
            yield from self._each_length(family, f"LSH{{bits}}{suffix}", keeps_vectors=False)
        if self.n >= TRAINS_PQ:
            p = self._kept(self.d)
            string = f"PCAR{p},IVF{lists_for(self.n)},PQ{p // 2}x4fs,RFlat"
            family = Family(FAISS, "IVF-PQ, re-ranked", "PCAR,IVF,PQ,RFlat")
            yield self._entry(family, string, k_factors=LISTS_FACTORS, **self._nprobe())

    def _codes(self):
        family = Family(CODES, "codes", f"{self.scheme},BFlat")
        yield from self._each_length(family, f"{self.codes},BFlat", keeps_vectors=False)
        family = Family(CODES, "codes, asymmetric", f"{self.scheme},AFlat")
        yield from self._each_length(family, f"{self.codes},AFlat", keeps_vectors=False)
        if self.kernel == "gaussian":
            family = Family(CODES, "bilinear codes", "BSIK,BFlat")
            yield from self._each_length(family, "BSIK{bits}(auto{gamma}{seed}),BFlat", keeps_vectors=False)

    def _reranked(self):
        family = Family(RERANKED, "codes, re-ranked", f"{self.scheme},BFlat,Refine")
        yield from self._each_length(family, f"{self.codes},BFlat,Refine({self.rows})", k_factors=CODES_FACTORS)

    def _buckets(self):
        family = Family(BUCKETS, "buckets of codes", f"{self.scheme},BHash")
        flips = {"effort": "nflip", "efforts": NFLIPS}
        yield from self._each_length(family, f"{self.codes},{{storage}}", keeps_vectors=False, **flips)

    def _lists(self):
        front, strings = self._reduced()
        lists, nprobe = f"{front},KIVF{lists_for(self.n)}{{only_seed}}", self._nprobe()
        yield self._entry(Family(LISTS, "lists", f"{strings},KIVF"), lists, keeps_vectors=False, **nprobe)
        family = Family(LISTS, "lists, re-ranked", f"{strings},KIVF,Refine")
        yield self._entry(family, f"{lists},Refine({self.rows})", k_factors=LISTS_FACTORS, **nprobe)
        family = Family(LISTS, "graph", "HNSW,KFlat")
        yield self._entry(family, f"HNSW32,{self.rows}", effort="efSearch", efforts=EF_SEARCHES)

    def _nprobe(self):
        return {"effort": "nprobe", "efforts": tuple(value for value in NPROBES if value <= lists_for(self.n))}

    def _reduced(self):
        """What stands in front of lists, a map where the kernel takes one; and the same without numbers."""
        if self.kernel in HISTOGRAM_KERNELS:
            dims = index_factory(self.d, f"HKM1({self.kernel}),Flat").chain.at(0).d_out
            return f"HKM1({{kernel}}),PCAR{self._kept(dims)}", "HKM,PCAR"
        if self.kernel == "gaussian":  # whose neighbours are those under L2
            return f"PCAR{self._kept(self.d)}", "PCAR"
        landmarks = min(LANDMARKS, self.n)
        return f"KPCA{self._kept(landmarks)}({{kernel}},p={landmarks}{{seed}})", "KPCA"

    def _kept(self, dims):
        """How many dimensions are kept of so many: an even number, since codes have two in each part."""
        return max(2, min(MOST_DIMS, dims, self.n // 2) // 2 * 2)

    def _hash_tables(self, bits):
        """Multi-index hashing with as many buckets as vectors: a table holds about one vector in each."""
        part = min(bits, max(4, round(math.log2(self.n))))
        return f"BHash{bits // part}x{part}"
