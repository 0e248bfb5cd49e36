# SPDX-License-Identifier: MIT
"""What indexes look like when they are printed."""

import faiss
import faiss_ext
import pytest
from helpers import made, made_binary


@pytest.mark.parametrize("string, expected", [
    ("KFlat(chi2,store=u8)", "IndexFlatKernel(chi2, store=u8, d=64, ntotal=0)"),
    ("KFlat(gaussian)", "IndexFlatKernel(gaussian, d=64, not trained)"),
    ("IDMap2,SIK64(gaussian,gamma=0.5),BHash2x16",
     "IndexIDMap2(IndexKernelHash(SIK64(gaussian(gamma=0.5)), IndexBinaryMultiHash), d=64, ntotal=0)"),
    ("HKM1(chi2),PCAR16,KIVF8(M=4),Refine(KFlat(chi2))",
     "IndexRefineKernel(IndexPreTransformSIMD(HKM(chi2,period=9.51), PCAMatrix(192, 16), "
     "IndexIVFPQ4(nlist=8, M=4, nprobe=8)), IndexFlatKernel(chi2), k_factor=1, d=64, not trained)"),
    ("HNSW16,KFlat(chi2)", "IndexHNSWKernel(IndexFlatKernel(chi2), efSearch=16, d=64, ntotal=0)"),
    ("RHBE64,AFlat", "IndexAsymmetricHash(RHBE64, d=64, ntotal=0)"),
    ("RHBE64,BPerm(M=3)", "IndexKernelHash(RHBE64, IndexBinaryPermuted(M=3, B=10), d=64, ntotal=0)"),
    ("RHBE64,BIVF4", "IndexKernelHash(RHBE64, IndexBinaryIVFSIMD(nlist=4, nprobe=1), d=64, not trained)"),
    ("Flat,Refine(KFlat(chi2))",
     "IndexRefineKernel(IndexFlat, IndexFlatKernel(chi2), k_factor=1, d=64, ntotal=0)")])
def test_indexes_show_what_is_in_them(string, expected):
    assert repr(faiss.index_factory(64, string)) == expected


def test_filled_grouped_and_binary_indexes(digits):
    assert repr(made("KFlat(chi2)", digits.base)).endswith(f"ntotal={len(digits.base)})")
    shards = faiss.IndexShards(64)
    parts = [faiss.index_factory(64, "KFlat(chi2)") for _ in range(2)]
    for part in parts:
        shards.add_shard(part)
    assert repr(shards) == "IndexShards(IndexFlatKernel(chi2), IndexFlatKernel(chi2), d=64, ntotal=0)"
    binary = made_binary("RHBE64,BFlat", digits.base[:50])
    assert repr(binary) == (
        "IndexBinaryKernelHash(RHBE64, IndexBinaryFlatSIMD, d=64, ntotal=50)")
    assert repr(faiss_ext.index_binary_factory(64, "BFlat")) == "IndexBinaryFlatSIMD(d=64, ntotal=0)"


def test_what_concerns_only_faiss_looks_as_before():
    for index in (faiss.IndexFlatL2(8), faiss.index_factory(8, "IDMap,Flat"), faiss.IndexBinaryFlat(8)):
        assert "proxy of" in repr(index)


def test_one_whose_constructor_failed():
    index = faiss_ext.IndexIVFPQ4.__new__(faiss_ext.IndexIVFPQ4)
    assert "IndexIVFPQ4" in repr(index)
