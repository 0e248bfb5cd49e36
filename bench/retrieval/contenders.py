# SPDX-License-Identifier: MIT
"""Who takes part: ours as factory strings, and peers, each with the grid of its search parameters.

A contender is a dict, since it goes to other processes as JSON:

name, family    the string, and the group that one line of the plot shows
side            ours, or peer
library         who builds it, see libraries.py
string, M, metric, options   what is built
input           map: the explicit map of the vectors; pca64: our PCA of the map, of so many dimensions; vectors: themselves
parameter       name of the search effort, and `efforts`, its values in ascending order
factors         candidates for each result, in ascending order
ranks_itself    whether the search itself re-ranks (or needs it not); else our exact kernel does, and is counted
effort_is_candidates   whether an effort below the number of candidates makes no sense (graphs)
"""

import math
import re

EF = [16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512]
NPROBES = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, *EF[:-4]]
CODES_FACTORS = [4, 8, 16, 32, 64]
PQ_FACTORS = [2, 2.5, 3, 3.5, 4, 5, 6, 8, 10, 12, 16, 24, 32]
MAP_FACTORS = [2, 4]  # an explicit map is near the kernel
PCA_DIMS = (64, 128)  # of the vectors that peers get behind our PCA
MAP_OF = {kernel: f"HKM1({kernel})" for kernel in ("chi2", "intersection", "js", "hellinger")}
OWN_METRIC = {"chi2": "chi2", "js": "js", "intersection": "l1"}  # on histograms of mass 1, in the same order
LIST_SIZES = (110, 240)  # vectors for each inverted list


def contender(name, family, side, library, **rest):
    defaults = {
        "string": name, "M": None, "options": {}, "metric": "l2", "input": "map", "parameter": None, "efforts": [None],
        "factors": [None], "ranks_itself": False, "effort_is_candidates": False, "compiled": False}
    return {"name": name, "family": family, "side": side, "library": library, **defaults, **rest}


def plain(kernel):
    """chi2 of chi2, gaussian of gaussian(gamma=2)."""
    return kernel.split("(")[0]


def explicit_map(kernel):
    """The string of the map that peers get; empty where the vectors themselves have the kernel's order under L2."""
    return MAP_OF.get(plain(kernel), "")


def list_counts(n):
    """Numbers of inverted lists: the powers of two that come nearest to the sizes wanted."""
    return sorted({max(4, 2 ** round(math.log2(n / size))) for size in LIST_SIZES})


def reduced(map_dims):
    """Dimensions that are kept in front of small codes, and the parts of 4 bits for them."""
    p = min(128, map_dims - map_dims % 2)
    return p, p // 2


# ---------------------------------------------------------------- ours


def exact_scan(kernel):
    return contender(f"KFlat({kernel})", "KFlat", "ours", "faiss_ext", input="vectors", ranks_itself=True)


def ours(kernel, n, map_dims, store):
    """All of ours but the exact scan."""
    refine = f"Refine(KFlat({kernel},store={store}))"
    common = {"side": "ours", "library": "faiss_ext", "input": "vectors", "ranks_itself": True}
    narrow, (wide, parts) = pca_dims(map_dims)[0], reduced(map_dims)
    few, many = list_counts(n)[0], list_counts(n)[-1]
    found = [contender(f"KFlat({kernel},store={rows})", "KFlat of compact rows", **common) for rows in sorted({"f16", store})]
    for codes in _codes(kernel):
        family = codes.split("(")[0].rstrip("0123456789") + ",BFlat,Refine"
        found.append(contender(f"{codes},BFlat,{refine}", family, factors=CODES_FACTORS, **common))
    lists = {"parameter": "nprobe", "efforts": NPROBES, "factors": PQ_FACTORS, **common}
    sizes = [(narrow, few, narrow), (narrow, many, narrow), (wide, few, parts), (wide, many, parts), (wide, many, wide)]
    for p, nlist, M in dict.fromkeys(sizes):  # no size twice
        for front in _fronts(kernel, p):
            family = re.sub(r"\d|\([^()]*(\([^()]*\))?[^()]*\)", "", front) + ",KIVF,Refine"
            found.append(contender(f"{front},KIVF{nlist}(M={M}),{refine}", family, **lists))
    for front in _fronts(kernel, wide):
        family = "our map, FAISS linked: IVF-PQ"
        found.append(contender(f"{front},IVF{many},PQ{parts}x4fs,{refine}", family, **lists))
    graph = {"parameter": "efSearch", "efforts": EF, "effort_is_candidates": True, **common}
    found.append(contender(f"HNSW32,KFlat({kernel})", "HNSW,KFlat", **graph))
    found += [contender(
        f"{_fronts(kernel, p)[0]},HNSW{links}(efConstruction=100),KFlat(linear,store=i8),{refine}",
        "map,HNSW,KFlat of bytes,Refine", **{**graph, "factors": PQ_FACTORS}) for p in pca_dims(map_dims) for links in (16, 24)]
    return found


def _codes(kernel):
    name = plain(kernel)
    if name == "linear":
        return [f"KLSH512({kernel})"]
    scheme = "AHK{}({},center=1)" if name in MAP_OF else "SIK{}({})"
    return [scheme.format(bits, kernel) for bits in (256, 512, 1024)] + [f"KLSH512({kernel})"]


def _fronts(kernel, p):
    """What stands in front of inverted lists: maps and PCA."""
    if plain(kernel) == "linear":
        return [f"PCAR{p}"]
    if plain(kernel) in MAP_OF:
        return [f"{explicit_map(kernel)},PCAR{p}"]
    return [f"PCAR{p}", f"RFF512({kernel}),PCAR{p}", f"KPCA{p}({kernel},p=500)"]


# ---------------------------------------------------------------- peers


def peers(kernel, n, map_dims):
    """Peers on the explicit map, re-ranked by us, and those that know the kernel itself."""
    behind_pca = [peer for p in pca_dims(map_dims) for peer in _behind_pca(n, p)]
    return _faiss(n, map_dims) + _graphs() + behind_pca + _with_metrics(plain(kernel))


def _faiss(n, map_dims):
    p, parts = reduced(map_dims)
    few, many = list_counts(n)[0], list_counts(n)[-1]
    wide = min(256, map_dims)
    whole = max(m for m in range(1, map_dims // 2 + 1) if map_dims % m == 0 and m <= 168)
    lists = {"side": "peer", "library": "faiss", "parameter": "nprobe", "efforts": NPROBES}
    graph = {
        "side": "peer", "library": "faiss", "parameter": "efSearch", "efforts": EF, "factors": MAP_FACTORS,
        "effort_is_candidates": True}
    found = [
        contender("HNSW16", "FAISS HNSW", **graph),
        contender("HNSW32", "FAISS HNSW", **graph),
        contender(f"PCAR{p},HNSW32", "FAISS PCAR,HNSW", **{**graph, "factors": PQ_FACTORS}),
        contender(f"IVF{many},Flat", "FAISS IVF-Flat", factors=MAP_FACTORS, **lists),
        contender(f"IVF{many},PQ{whole}x4fs", "FAISS IVF-PQ", factors=PQ_FACTORS, **lists),
        contender(f"PCAR{p},IVF{few},PQ{parts}x4fs", "FAISS PCAR,IVF-PQ", factors=PQ_FACTORS, **lists),
        contender(f"PCAR{p},IVF{many},PQ{parts}x4fs", "FAISS PCAR,IVF-PQ", factors=PQ_FACTORS, **lists),
        contender(f"PCAR{p},IVF{many},PQ{p}x4fs", "FAISS PCAR,IVF-PQ", factors=PQ_FACTORS, **lists),
        contender(f"PCAR{p},OPQ{parts},IVF{many},PQ{parts}x4fs", "FAISS OPQ,IVF-PQ", factors=PQ_FACTORS, **lists),
        contender(f"PCAR{wide},IVF{many},RaBitQ", "FAISS RaBitQ", factors=CODES_FACTORS, **lists),
        contender(f"PCAR{wide},IVF{many},RaBitQfs", "FAISS RaBitQ", factors=CODES_FACTORS, **lists),
    ]
    codes = {"side": "peer", "library": "faiss", "factors": CODES_FACTORS}
    if map_dims >= 256:
        found.append(contender("ITQ256,LSH", "FAISS ITQ codes", **codes))
    return found + [contender(f"LSH{bits}rt", "FAISS LSH codes", **codes) for bits in (256, 512)]


def _graphs():
    graph = {
        "side": "peer", "M": 16, "parameter": "ef", "efforts": EF, "factors": MAP_FACTORS, "effort_is_candidates": True}
    return [
        contender("hnswlib M=16", "hnswlib", library="hnswlib", **graph),
        contender("usearch M=16", "usearch", library="usearch", **graph),
        contender("nmslib HNSW M=16", "nmslib", library="nmslib", **graph),
    ]


def _behind_pca(n, p):
    """Peers that get the same p components as our lists."""
    few, many = list_counts(n)[0], list_counts(n)[-1]
    front = f"our PCA{p}, "
    common = {"side": "peer", "input": f"pca{p}", "factors": PQ_FACTORS}
    lists = {**common, "parameter": "nprobe", "efforts": NPROBES}
    graph = {**common, "parameter": "ef", "efforts": EF, "effort_is_candidates": True}
    found = []
    for nlist in (few, many):
        found += [contender(
            f"{front}{string}", "FAISS IVF-PQ, our PCA", library="faiss", string=string, **lists)
            for string in [f"IVF{nlist},PQ{parts}x4fs" for parts in sorted({p if p <= 64 or p % 2 else p // 2, p})]]
        for bits in (1, 4):
            found.append(contender(
                f"{front}RaBitQ IVF{nlist}, {bits} bits", "RaBitQ IVF", library="rabitqlib IVF",
                options={"lists": nlist, "bits": bits}, **lists))
        for block, threshold in ((2, 0.2), (1, math.nan)):
            found.append(contender(
                f"{front}ScaNN {nlist} leaves, blocks of {block}", "ScaNN", library="scann",
                options={"lists": nlist, "block": block, "threshold": threshold}, **lists))
    for bits in (4, 8):
        found.append(contender(
            f"{front}RaBitQ HNSW M=16, {bits} bits", "RaBitQ HNSW", library="rabitqlib HNSW", M=16,
            options={"lists": 16, "bits": bits}, **graph))
    found += [contender(
        f"{front}HNSW{links}_SQ8", "FAISS HNSW of bytes, our PCA", library="faiss", string=f"HNSW{links}_SQ8",
        options={"efConstruction": 100}, **{**graph, "parameter": "efSearch"}) for links in (16, 24)]
    found.append(contender(f"{front}SymphonyQG M=32", "SymphonyQG", library="rabitqlib SymQG", M=32, **graph))
    found.append(contender(f"{front}glass HNSW M=32, SQ8U", "glass", library="glass", M=32, **graph))
    found.append(contender(f"{front}hnswlib M=16", "hnswlib, our PCA", library="hnswlib", M=16, **graph))
    return found


def pca_dims(map_dims):
    """Dimensions of the vectors that peers get behind our PCA, in ascending order."""
    return sorted({min(p, map_dims) for p in PCA_DIMS})


def _with_metrics(kernel):
    """Libraries that compare histograms by the kernel's own distance: no map, nothing ranked again."""
    own = OWN_METRIC.get(kernel)
    if own is None:
        return []
    graph = {
        "side": "peer", "M": 16, "metric": own, "input": "vectors", "parameter": "ef", "efforts": EF, "factors": [1],
        "ranks_itself": True, "effort_is_candidates": True}
    found = []
    if own in ("js", "chi2"):
        what = "usearch M=16, its JS" if own == "js" else "usearch M=16, chi2 compiled by numba"
        found.append(contender(what, "usearch, own metric", library="usearch", compiled=own == "chi2", **graph))
    if own in ("js", "l1"):
        found.append(contender(f"nmslib HNSW M=16, {own}", "nmslib, own metric", library="nmslib", **graph))
    if own == "chi2":
        tree = {
            **graph, "parameter": "checks", "efforts": [64, 128, 256, 512, 1024, 2048, 4096], "effort_is_candidates": False}
        found.append(contender("FLANN k-means tree, chi2", "FLANN, own metric", library="flann", **tree))
    descent = {
        **graph, "parameter": "epsilon", "efforts": [0.0, 0.05, 0.1, 0.2, 0.3, 0.4], "effort_is_candidates": False}
    found.append(contender(f"pynndescent, {own}", "pynndescent", library="pynndescent", compiled=True, **descent))
    return found
