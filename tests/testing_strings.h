// SPDX-License-Identifier: MIT
// One row for each scheme, map, kernel and index, by its string: what
// test_contract.cpp runs through all that they must do. A new scheme is one row
// more.

#pragma once

#include <cctype>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace testing_strings {

enum class Data { any, histograms };

struct Row {
    const char* text;
    Data data = Data::any;
};

inline void PrintTo(const Row& row, std::ostream* out) {
    *out << row.text;
}

/// dimension of all vectors
constexpr int d = 24;

/// Whether the expected Hamming distance is known.
enum class Theory { known, none };

/// NAME and what stands behind the number of bits
struct HashRow {
    const char* name;
    const char* arguments;
    Data data = Data::any;
    Theory theory = Theory::known;

    std::string with_bits(int nbits) const {
        return name + std::to_string(nbits) + arguments;
    }
};

inline void PrintTo(const HashRow& row, std::ostream* out) {
    *out << row.name << row.arguments;
}

inline const HashRow hashes[] = {
        {"SIK", "(gaussian)"},
        {"SIK", "(gaussian,gamma=0.3,seed=7,proj=dense)"},
        {"SIK", "(laplacian)"},
        {"SIK", "(matern,nu=2.2)"},
        {"BSIK", ""},
        {"BSIK", "(4x6,m=2,gamma=0.2)"},
        {"BSIK", "(w=dense,shuffle=0)"},
        {"RHBE", ""},
        {"RHBE", "(center=1)"},
        {"RHBE", "(rot=pca)"},
        {"RHBE", "(proj=bilinear,shape=6x4,m=3)"},
        {"AHK", "(chi2)", Data::histograms},
        {"AHK", "(js,order=2,center=1)", Data::histograms},
        {"AHK", "(intersection,norm=l1,window=rectangular)", Data::histograms},
        {"AHK", "(hellinger,proj=dense)", Data::histograms},
        {"AHK", "(js,proj=generated)", Data::histograms},
        {"AHK", "(chi2,rot=itq)", Data::histograms},
        {"CWS", "", Data::histograms},
        {"CWS", "(seed=7)", Data::histograms},
        {"SCR", "", Data::histograms},
        {"SH", "(seed=7)", Data::any, Theory::none},
        {"KLSH", "(gaussian,p=40)"},
        {"KLSH", "(poly(degree=2),p=40,draw=gauss,rank=12)"},
        {"KLSH", "(chi2,p=40,scale=4,nystrom=1,center=0)", Data::histograms},
        {"KLSH", "(linear,p=40,rank=auto,scale=auto)"},
};

inline const Row maps[] = {
        {"HKM0(chi2)", Data::histograms},
        {"HKM2(chi2)", Data::histograms},
        {"HKM(intersection,order=3,period=8)", Data::histograms},
        {"HKM1(js,norm=l1,degree=0.7)", Data::histograms},
        {"HKM1(hellinger)", Data::histograms},
        {"KPCA12(chi2,p=40)", Data::histograms},
        {"KPCA8(gaussian,p=30)"},
        {"KPCA5(linear,p=30,nystrom=1,center=0,normalize=0)"},
        {"RFF16(gaussian)"},
        {"RFF32(matern,nu=0.7,gamma=0.2,proj=dense)"},
        {"RFF32(laplacian,proj=generated)"},
        {"RFF16(laplacian)"},
        {"RFF32(gaussian,proj=bilinear,shape=4x6,m=2)"},
};

inline const Row kernels[] = {
        {"chi2", Data::histograms},
        {"cosine"},
        {"dice", Data::histograms},
        {"expchi2", Data::histograms},
        {"exponential(normalized(js),scale=2)", Data::histograms},
        {"gaussian"},
        {"gaussian(gamma=0.3)"},
        {"gaussian(neighbor=7)"},
        {"hellinger", Data::histograms},
        {"intersection", Data::histograms},
        {"jaccard", Data::histograms},
        {"js", Data::histograms},
        {"laplacian"},
        {"linear"},
        {"matern(nu=2.2)"},
        {"normalized(poly(degree=2,c=0.5))"},
        {"poly"},
        {"product(chi2,laplacian,linear)", Data::histograms},
        {"product(gaussian(gamma=0.3),matern)"},
        {"sum(0.3*chi2,0.5*gaussian)", Data::histograms},
        {"sum(cosine,poly(degree=2))"},
        {"sum(0.25*gaussian,0.75*laplacian(neighbor=7))"},
};

/// float indexes: exact ones first
inline const Row indexes[] = {
        {"KFlat(gaussian)"},
        {"KFlat(chi2)", Data::histograms},
        {"KFlat(linear)"},
        {"KFlat(gaussian,store=f16)"},
        {"KFlat(sum(0.3*linear,product(gaussian,laplacian)))"},
        {"KFlat(sum(chi2,js),store=sparse)", Data::histograms},
        {"KFlat(chi2,store=u8)", Data::histograms},
        {"KFlat(gaussian,store=i8)"},
        {"KFlat(chi2,store=sparse)", Data::histograms},
        {"KFlat(gaussian,store=sparse)"},
        {"AHK64(chi2),BFlat,Refine(KFlat(chi2,store=sparse))",
         Data::histograms},
        {"HNSW16,KFlat(laplacian)"},
        {"PCA12,HNSW8,KFlat(linear,store=i8)"},
        {"SIK64(gaussian),BFlat"},
        {"SIK61(gaussian),BFlat"},
        {"RHBE61,AFlat"},
        {"AHK64(chi2),BHash2x8", Data::histograms},
        {"KLSH64(gaussian,p=40),BIVF4"},
        {"RHBE64,BHNSW8"},
        {"RHBE64,BPerm(M=5,B=3)"},
        {"AHK64(chi2,center=1),AFlat", Data::histograms},
        {"RHBE8,AFlat"},
        {"BSIK40,AFlat"},
        {"SH64,AFlat"},
        {"PCA12,SH64,BFlat"},
        {"SIK64(laplacian),AFlat,Refine(KFlat(laplacian))"},
        {"IDMap,SCR64,AFlat", Data::histograms},
        {"PCA12,SIK64(gaussian),BFlat"},
        {"HKM1(chi2),Flat", Data::histograms},
        {"KPCA8(chi2,p=40),IVF4,Flat", Data::histograms},
        {"RFF16(gaussian),HNSW8"},
        {"KIVF4(M=6,nprobe=2)"},
        {"KIVF4(M=24,residual=0)"},
        {"HKM1(chi2),PCAR9,KIVF4,Refine(KFlat(chi2,store=u8))",
         Data::histograms},
        {"SIK64(gaussian),BFlat,Refine(KFlat(gaussian))"},
        {"AHK64(chi2),BFlat,RFlat", Data::histograms},
        {"IVF4,Flat,Refine(KFlat(js))", Data::histograms},
        {"IDMap2,RHBE64,BFlat"},
        {"IDMap,KFlat(chi2)", Data::histograms},
        {"Concurrent,KFlat(chi2)", Data::histograms},
        {"Concurrent,SIK64(gaussian),BFlat,Refine(KFlat(gaussian))"},
        {"Concurrent,L2norm,IVF4,Flat"},
        {"Concurrent,IVF4,Flat,RFlat"},
        {"Concurrent,HNSW8"},
};

/// binary indexes behind a hash
inline const char* const storages[] = {
        "BFlat",
        "BHash8",
        "BHash3x6",
        "BIVF4",
        "BHNSW8",
        "BPerm(M=5,B=3)",
        "BPerm(eps=1)",
};

/// for INSTANTIATE_TEST_SUITE_P: the string with `_` for its punctuation
inline constexpr auto name_of_row = [](const auto& info) {
    std::string name;
    if constexpr (std::is_convertible_v<decltype(info.param), std::string>) {
        name = info.param;
    } else {
        name = testing::PrintToString(info.param);
    }
    for (char& c : name) {
        c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
    return name;
};

} // namespace testing_strings
