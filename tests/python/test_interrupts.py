# SPDX-License-Identifier: MIT
"""Ctrl-C ends the training, adding and searching of every class, and leaves it as it was.

Each call would need many seconds. What it leaves unwritten tells an interrupt in the middle from one that waited for
the end. What becomes of a graph that is being built is in test_misuse.py.
"""

import time

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import BASE, QUERIES, assert_equal, is_interrupted, made

KFLAT = "KFlat(gaussian,gamma=0.001)"
d = 64
many = np.tile(BASE, (400, 1))  # 638,800 vectors


def interrupt(function):
    assert is_interrupted(function, 0.2)


@pytest.mark.parametrize("string", [
    "SIK64(gaussian),BFlat", "AHK64(chi2),BHash2x8", "AHK64(chi2),BHNSW32", "AHK64(chi2),BIVF16", "AHK64(chi2),BPerm(M=40,B=10)",
    "RHBE256,AFlat", "KLSH64(chi2,p=300),BFlat", "KFlat(js)", "KFlat(chi2,store=u8)", "HNSW32,KFlat(chi2)",
    "KIVF16(nprobe=16)", "HKM1(chi2),PCAR32,KIVF16(nprobe=16)", "KPCA64(chi2,p=300),Flat", "RFF256(gaussian),Flat",
    "SIK64(gaussian),BFlat,Refine(KFlat(gaussian))", "IDMap2,SCR64,BFlat"])
def test_searches(string):
    index = made(string, BASE)
    expected = index.search(QUERIES, 3)
    D = np.full((len(many), 20), -5, "float32")
    I = np.full((len(many), 20), -5, "int64")
    interrupt(lambda: index.search(many, 20, D=D, I=I))
    assert (I[-1] == -5).all() and (D[-1] == -5).all()
    assert_equal(index.search(QUERIES, 3), expected)


@pytest.mark.parametrize("string, radius", [
    ("SIK64(gaussian),BFlat", 60), ("AHK64(chi2),BHash2x8", 60), ("AHK64(chi2),BIVF16", 60), ("RHBE64,AFlat", 60),
    ("KFlat(js)", 1), ("KIVF16(nprobe=16)", 1)])
def test_range_searches(string, radius):
    index = made(string, BASE)
    expected = index.range_search(QUERIES, radius)
    found = []
    interrupt(lambda: found.append(index.range_search(many[:100_000], radius)))
    assert found == []
    assert_equal(index.range_search(QUERIES, radius), expected)


@pytest.mark.parametrize("string", [
    "SIK8192(gaussian,gamma=1,proj=dense),BFlat", "AHK4096(chi2),BHash2x8", "AHK512(chi2),BHNSW32", "AHK512(chi2),BIVF512",
    "AHK512(chi2),BPerm(M=100,B=10)", "AHK4096(chi2,proj=dense),AFlat", "KLSH512(chi2,p=500),BFlat", "HNSW32,KFlat(chi2)",
    "KIVF512", "HKM1(chi2),PCAR32,KIVF512", "KPCA64(chi2,p=500),Flat", "RFF4096(gaussian,proj=dense),PCA16,Flat",
    "AHK512(chi2),BHNSW32,Refine(KFlat(chi2))"])
def test_adding(string):
    index = faiss.index_factory(d, string)
    index.train(BASE)
    index.add(BASE[:700])
    expected = index.search(QUERIES, 3)
    interrupt(lambda: index.add(many))
    assert index.ntotal == 700
    if not string.startswith("HNSW"):  # which is to be built again
        assert_equal(index.search(QUERIES, 3), expected)


@pytest.mark.parametrize("string", [
    "KLSH512(chi2,p=4000),BFlat", "KLSH64(chi2,p=1000,rank=auto,scale=auto),BFlat", "KPCA64(chi2,p=4000),Flat",
    "AHK512(chi2,order=8,rot=pca),BFlat", "AHK512(chi2,order=8,rot=itq),BFlat", "HKM8(chi2),SH512,BFlat",
    "KIVF1024", "HKM8(chi2),PCAR512,Flat", "AHK512(chi2),BIVF1024"])
def test_training(string):
    rng = np.random.default_rng(1)
    x = rng.random((40_000, 256), dtype="float32") ** 4
    index = faiss.index_factory(x.shape[1], string)
    interrupt(lambda: index.train(x))
    assert not index.is_trained
    with pytest.raises(RuntimeError, match="train"):
        index.add(x[:5])


def test_training_of_fewer_vectors_than_dimensions():
    index = faiss.index_factory(4000, "HKM1(chi2),PCA2000,Flat")
    x = np.random.default_rng(1).random((2500, 4000), dtype="float32")
    interrupt(lambda: index.train(x))
    assert not index.is_trained


def test_training_of_many_bits():
    """Of a bilinear projection, a million vectors are drawn; processor time tells how long an interrupt waited."""
    index = faiss.index_factory(d, "BSIK1048576(8x8,m=1000),BFlat")
    begin = time.thread_time()
    interrupt(lambda: index.train(BASE))
    assert time.thread_time() - begin < 2
    assert not index.is_trained


def test_gram_matrices(digits):
    base = np.tile(digits.base, (50, 1))
    index, wrapped = made(KFLAT, base), made(f"IDMap,{KFLAT}", base)
    kernel = faiss_ext.kernel_factory("matern(nu=0.7,gamma=0.001)")
    x = np.tile(digits.queries, (500, 1))
    expected = index.search(digits.queries, 3)
    found = []
    for each in (index, wrapped):
        D = np.full((len(x), 1), -5, "float32")
        I = np.full((len(x), 1), -5, "int64")
        interrupt(lambda: each.search(x, 1, D=D, I=I))
        assert (I[-1] == -5).all() and (D[-1] == -5).all()
    interrupt(lambda: found.append(index.range_search(x, 1e-9)))
    interrupt(lambda: found.append(kernel.gram(base[:16000])))
    assert found == []
    assert_equal(index.search(digits.queries, 3), expected)


def test_encoding(digits):
    index = faiss.index_factory(512, "SIK8192(gaussian,gamma=1,proj=dense),BFlat")
    x = np.zeros((50_000, 512), "float32")
    codes = np.full((len(x), 1024), 0xAA, "uint8")
    expected = index.hash.encode(x[:3])
    interrupt(lambda: index.sa_encode(x, codes))
    assert (codes[-1] == 0xAA).all()
    np.testing.assert_array_equal(index.hash.encode(x[:3]), expected)
    interrupt(lambda: index.add(x))
    assert index.ntotal == index.storage.ntotal == 0


@pytest.mark.parametrize("kind", ["kernel", "hash"])
def test_training_of_kernels_and_hashes(digits, kind):
    trained = faiss_ext.kernel_hash_factory(64, "SIK64(gaussian)")
    kernel = trained.kernel
    if kind == "kernel":
        trained = kernel
    x = np.tile(digits.base, (41, 1))
    kernel.sample_queries = len(x)
    interrupt(lambda: trained.train(x))
    assert not trained.is_trained and kernel.gamma == 0
    kernel.sample_queries = 100
    trained.train(digits.base)
    assert trained.is_trained and kernel.gamma > 0
