# SPDX-License-Identifier: MIT
"""What indexes look like when they are printed."""

import pickle
import threading

import faiss
import faiss_ext
import pytest
from helpers import IP, made, made_binary


@pytest.mark.parametrize("string, expected", [
    ("KFlat(chi2,store=u8)", "IndexFlatKernel(chi2, store=u8, d=64, ntotal=0)"),
    ("KFlat(gaussian)", "IndexFlatKernel(gaussian, d=64, not trained)"),
    ("IDMap2,SIK64(gaussian,gamma=0.5),BHash2x16",
     "IndexIDTable(IndexKernelHash(SIK64(gaussian(gamma=0.5)), IndexBinaryMultiHash), d=64, ntotal=0)"),
    ("HKM1(chi2),PCAR16,KIVF8(M=4),Refine(KFlat(chi2))",
     "IndexRefineKernel(IndexPreTransformSIMD(HKM(chi2,period=9.51), PCAMatrix(192, 16), "
     "IndexIVFPQ4(nlist=8, M=4, nprobe=8)), IndexFlatKernel(chi2), k_factor=1, d=64, not trained)"),
    ("HNSW16,KFlat(chi2)", "IndexHNSWKernel(IndexFlatKernel(chi2), efSearch=16, d=64, ntotal=0)"),
    ("RHBE64,AFlat", "IndexAsymmetricHash(RHBE64, d=64, ntotal=0)"),
    ("RHBE64,BPerm(M=3,B=10)", "IndexKernelHash(RHBE64, IndexBinaryPermuted(M=3, B=10), d=64, ntotal=0)"),
    ("RHBE64,BIVF4", "IndexKernelHash(RHBE64, IndexBinaryIVFSIMD(nlist=4, nprobe=1), d=64, not trained)"),
    ("Flat,Refine(KFlat(chi2))",
     "IndexRefineKernel(IndexFlat, IndexFlatKernel(chi2), k_factor=1, d=64, ntotal=0)")])
def test_indexes_show_what_is_in_them(string, expected):
    assert repr(faiss.index_factory(64, string)) == expected


def test_filled_and_binary_indexes(digits):
    assert repr(made("KFlat(chi2)", digits.base)).endswith(f"ntotal={len(digits.base)})")
    binary = made_binary("RHBE64,BFlat", digits.base[:50])
    assert repr(binary) == (
        "IndexBinaryKernelHash(RHBE64, IndexBinaryFlatSIMD, d=64, ntotal=50)")
    assert repr(faiss_ext.index_binary_factory(64, "BFlat")) == "IndexBinaryFlatSIMD(d=64, ntotal=0)"


@pytest.mark.parametrize("index, expected", [
    (faiss.index_factory(64, "KFlat(chi2)", IP), "IndexFlatKernel(chi2, d=64, metric=ip, ntotal=0)"),
    (faiss.index_factory(8, "HKM1(chi2),IVF4,PQ4"),
     "IndexPreTransformSIMD(HKM(chi2,period=9.51), IndexIVFPQ(nlist=4, nprobe=1), d=8, not trained)"),
    (faiss_ext.index_binary_factory(64, "IDMap,BHNSW8"),
     "IndexBinaryIDTable(IndexBinaryHNSWSIMD(IndexBinaryFlatSIMD, efSearch=16), d=64, ntotal=0)"),
    (faiss_ext.index_binary_factory(64, "IDMap,BFlat"), "IndexBinaryIDTable(IndexBinaryFlatSIMD, d=64, ntotal=0)")])
def test_parts_of_faiss(index, expected):
    assert repr(index) == expected


@pytest.mark.parametrize("string, name", [("BFlat", "IndexBinaryFlatSIMD"), ("BIVF4", "IndexBinaryIVFSIMD"), ("IDMap,BFlat", "IndexBinaryIDTable")])
def test_binary_indexes_of_files(string, name, tmp_path):
    faiss.write_index_binary(faiss_ext.index_binary_factory(64, string), str(tmp_path / "index"))
    index = faiss_ext.read_index_binary(tmp_path / "index")
    assert type(index).__name__ == name and repr(index).startswith(name)


def test_one_whose_constructor_failed():
    index = faiss_ext.IndexIVFPQ4.__new__(faiss_ext.IndexIVFPQ4)
    assert "IndexIVFPQ4" in repr(index)


@pytest.mark.parametrize("string", [
    "HKM1(chi2),PCAR16,KIVF8(M=4),Refine(KFlat(chi2,store=u8))",
    "IDMap2,KLSH64(chi2,p=50),BHash8", "HNSW8,KFlat(laplacian)", "SIK64(gaussian),BFlat"])
def test_threads_show_write_and_search_one_index(string, digits):
    index = made(string, digits.base[:400])

    def seen():
        D, I = index.search(digits.queries[:20], 5)
        return (repr(index), pickle.dumps(index),
                faiss_ext.index_parameters(index), D.tobytes(), I.tobytes())

    expected, found = seen(), []

    def work():
        faiss.omp_set_num_threads(1)
        found.extend(seen() for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 20
