# SPDX-License-Identifier: MIT
"""index.description(): the string that makes the index again."""

import re

import faiss
import faiss_ext
import pytest
from helpers import BASE

STRINGS = [
    "KFlat(chi2)", "KFlat(gaussian(gamma=0.25),store=f16)", "KFlat(normalized(poly(degree=2,c=0.5)))", "HNSW16,KFlat(laplacian(gamma=3),store=u8)",
    "SIK64(matern(nu=2.5,gamma=2),seed=7),BFlat", "AHK64(chi2,order=2,norm=l1),BHash2x8", "AHK64(js,center=1),BHash8", "RHBE64(rot=itq),BIVF4",
    "RHBE64,BIVF4_HNSW8", "SCR64,BHNSW8", "CWS64(seed=3),BFlat", "SH32,AFlat", "BSIK40,AFlat", "KLSH64(chi2,p=50,rank=8),BFlat",
    "RHBE64,BPerm(M=5,B=3)", "RHBE64,BPerm(eps=0.75,seed=3,max_gb=0.5)", "IDMap,KFlat(chi2)", "IDMap2,SCR64,AFlat", "KIVF4(M=8,nprobe=2,seed=9)",
    "Concurrent,IDMap,KFlat(chi2)",
    "KIVF4(M=64,residual=0)", "HKM1(chi2),PCAR32,KIVF4(M=16),Refine(KFlat(chi2,store=u8))", "KPCA8(chi2,p=40),IVF4,Flat",
    "RFF16(gaussian(gamma=0.5)),HNSW8", "L2norm,PCA16,SIK64(gaussian(gamma=2)),BFlat", "PCAW16,SH32,BFlat", "PCAWR16,SH32,BFlat",
    "KFlat(gaussian(neighbor=7))", "KFlat(matern(nu=2.5,sample_queries=90,sample_points=100,sample_seed=3))", "KFlat(normalized(laplacian(neighbor=7)))",
    "HNSW16,KFlat(expchi2)", "SIK64(gaussian(neighbor=7)),BFlat", "KLSH64(laplacian(neighbor=7),p=50),BFlat", "KPCA8(gaussian(neighbor=7),p=40),Flat",
    "RFF16(matern(neighbor=7)),HNSW8", "BSIK40(neighbor=7),AFlat",
    "HNSW8(efConstruction=100),KFlat(chi2)", "HNSW8(efConstruction=30,efSearch=64),KFlat(chi2)", "SCR64,BHNSW8(efSearch=64)",
    "OPQ4_16,KIVF4(M=8)", "HKM2(intersection,period=8),RR32,Flat", "AHK64(chi2),BFlat,RFlat", "IVF4,Flat,Refine(KFlat(js))"]

# What an empty index says of those that are not canonical; "..." is a number that only the kernel determines.
OTHER_TEXTS = {
    "SIK64(matern(nu=2.5,gamma=2),seed=7),BFlat": "SIK64(matern(gamma=2,nu=2.5),seed=7),BFlat",
    "AHK64(chi2,order=2,norm=l1),BHash2x8": "AHK64(chi2,order=2,period=...,norm=l1),BHash2x8",
    "AHK64(js,center=1),BHash8": "AHK64(js,period=...,center=1),BHash8",
    "AHK64(chi2),BFlat,RFlat": "AHK64(chi2,period=...),BFlat,RFlat",
    "BSIK40,AFlat": "BSIK40(shape=8x8),AFlat", "BSIK40(neighbor=7),AFlat": "BSIK40(shape=8x8,neighbor=7),AFlat",
    "KLSH64(chi2,p=50,rank=8),BFlat": "KLSH64(chi2,p=50,rank=8,normalize=1),BFlat",
    "KLSH64(laplacian(neighbor=7),p=50),BFlat": "KLSH64(laplacian(neighbor=7),p=50,normalize=1),BFlat",
    "IDMap2,SCR64,AFlat": "IDMap,SCR64,AFlat", "IDMap2,BKFlat(jaccard)": "IDMap,BKFlat(jaccard)",
    "HKM1(chi2),PCAR32,KIVF4(M=16),Refine(KFlat(chi2,store=u8))":
        "HKM(chi2,period=...),PCAR32,KIVF4(M=16),Refine(KFlat(chi2,store=u8))",
    "HKM2(intersection,period=8),RR32,Flat": "HKM(intersection,order=2,period=8),RR32,Flat",
    "KPCA8(chi2,p=40),IVF4,Flat": "KPCA(chi2,p=40,rank=8,normalize=1),IVF4,Flat",
    "KPCA8(gaussian(neighbor=7),p=40),Flat": "KPCA(gaussian(neighbor=7),p=40,rank=8,normalize=1),Flat",
    "RFF16(gaussian(gamma=0.5)),HNSW8": "RFF(gaussian(gamma=0.5),dims=16),HNSW8",
    "RFF16(matern(neighbor=7)),HNSW8": "RFF(matern(neighbor=7),dims=16),HNSW8",
    "KFlat(matern(nu=2.5,sample_queries=90,sample_points=100,sample_seed=3))":
        "KFlat(matern(sample_queries=90,sample_points=100,sample_seed=3,nu=2.5))"}

# strings that leave the bandwidth to training have one of these words
CHOSEN_BY_TRAINING = "neighbor", "sample_", "expchi2", "BSIK"


def is_text_of(text, string):
    expected = OTHER_TEXTS.get(string, string)
    return re.fullmatch(re.escape(expected).replace(r"\.\.\.", r"[0-9]+\.[0-9]+"), text)


def same(a, b):
    """Search parameters that strings cannot have are no difference."""
    return repr(a).split(", d=")[0] == repr(b).split(", d=")[0]


@pytest.mark.parametrize("string", STRINGS)
@pytest.mark.parametrize("trained", [False, True])
def test_a_string_makes_an_index_that_has_it(string, trained):
    index = faiss.index_factory(64, string)
    text = faiss_ext.index_string(index)
    assert is_text_of(text, string)
    if trained:
        index.train(BASE[:300])
        is_chosen = any(word in string for word in CHOSEN_BY_TRAINING)
        assert (faiss_ext.index_string(index) != text) == is_chosen
        text = faiss_ext.index_string(index)
    again = faiss.index_factory(64, text)
    assert faiss_ext.index_string(again) == text
    if trained:
        again.train(BASE[:300])
    assert type(again) is type(index) and same(index, again)
    if hasattr(index, "description"):
        assert index.description() == text


@pytest.mark.parametrize("string", ["BKFlat(jaccard)", "IDMap2,BKFlat(jaccard)", "BHNSW8(efConstruction=100,efSearch=64)", "BHNSW8(efSearch=64),BKFlat(jaccard)", "BHNSW8,BKFlat(tversky(alpha=0.25,beta=0.25))",
                                    "IDMap,CWS64,BFlat,Refine(BKFlat(jaccard))", "SIK64(gaussian(gamma=2)),BFlat", "RHBE64(rot=pca),BIVF4", "BPerm(B=3)",
                                    "BConcurrent,BPerm(B=3)"])
def test_of_binary_indexes(string):
    index = faiss_ext.index_binary_factory(64, string)
    text = faiss_ext.index_string(index)
    assert is_text_of(text, string)
    again = faiss_ext.index_binary_factory(64, text)
    assert faiss_ext.index_string(again) == text and same(index, again)


def test_what_has_no_string():
    for string in ("SQ8", "IVF4,PQ8"):
        with pytest.raises(ValueError, match="cannot make a factory string"):
            faiss_ext.index_string(faiss.index_factory(64, string))
    with pytest.raises(TypeError, match="expected an index"):
        faiss_ext.index_string("KFlat(chi2)")
