# SPDX-License-Identifier: MIT
"""Runs all benchmarks of speed and prints a line for each ratio with its bar; writes CSV and PNG.

    PYTHONPATH=build/python /usr/bin/python3 bench/run_all.py --build build --out results \\
        [--data FOLDER --dataset NAME] [--newest-faiss PYTHON] [--quick]

The programs bench_* in BUILD/bench are run one after the other; every benchmark several times, in random order, and the
least time counts, so that other work on the machine does the least harm. FOLDER has local descriptors (see
scripts/datasets.py): with it the study of hash tables is run, and bilinear codes are timed on VLAD vectors of them.
PYTHON is an interpreter with another FAISS, the newest faiss-cpu say, whose scan is timed in a process of its own.
"""

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", type=Path, help="build folder")
    parser.add_argument("--out", default="bench_results", type=Path, help="folder for CSV and PNG")
    parser.add_argument("--data", help="folder with local descriptors")
    parser.add_argument("--dataset", help="which, if there are several")
    parser.add_argument("--newest-faiss", metavar="PYTHON", help="an interpreter with another FAISS")
    parser.add_argument("--quick", action="store_true", help="short turns: figures are rough")
    parser.add_argument("--only", default="", help="comma-separated: hamming, kernels, encode, scaling, klsh, bilinear, multi_index")
    return parser.parse_args()


# ---------------------------------------------------------------- running


def environment():
    """Python's environment; OpenBLAS 0.3.21 does not know newer AMD processors: it is told to use AVX-512."""
    env = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    if "avx512f" in Path("/proc/cpuinfo").read_text():
        env["OPENBLAS_CORETYPE"] = "SkylakeX"
    return env


def run_google(args, name):
    """Times in seconds for one iteration, by the benchmark's name; and the counters."""
    command = [
        str(args.build / "bench" / f"bench_{name}"),
        "--benchmark_format=json",
        f"--benchmark_min_time={0.01 if args.quick else 0.05}",
        f"--benchmark_repetitions={2 if args.quick else 5}",
        "--benchmark_enable_random_interleaving=true",
    ]
    print(f"running bench_{name}", file=sys.stderr, flush=True)
    output = subprocess.run(command, env=environment(), check=True, stdout=subprocess.PIPE).stdout
    results = {}
    for b in json.loads(output)["benchmarks"]:
        if b.get("error_occurred"):
            raise SystemExit(f"{b['name']}: {b['error_message']}")
        if b["run_type"] != "iteration":
            continue
        key = b["run_name"].removesuffix("/real_time")
        seconds = b["real_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[b["time_unit"]]
        if key not in results or seconds < results[key]["seconds"]:
            results[key] = {
                "seconds": seconds,
                "items_per_second": b.get("items/s"),
                "flops": b.get("FLOP/s"),
                "bytes_per_second": b.get("bytes_per_second"),
            }
    return results


def run_text(args, name, *arguments):
    """What a benchmark that prints its own table says."""
    print(f"running bench_{name}", file=sys.stderr, flush=True)
    command = [str(args.build / "bench" / f"bench_{name}"), *map(str, arguments)]
    return subprocess.run(command, env=environment(), check=True, stdout=subprocess.PIPE, text=True).stdout


# ---------------------------------------------------------------- ratios

RATIOS = []


def ratio(what, value, bar=None, at_least=True):
    RATIOS.append((what, value, bar, at_least))
    line = f"{what}: {value:.2f}"
    if bar is not None:
        reached = value >= bar if at_least else value <= bar
        line += f"   (bar: {'at least' if at_least else 'at most'} {bar:g}, {'reached' if reached else 'NOT reached'})"
    print(line, flush=True)


def hamming(args):
    r = run_google(args, "hamming")
    ns = lambda index, bits, k: 1e9 / r[f"scan<{index}>/bits:{bits}/k:{k}"]["items_per_second"]  # noqa: E731
    newest = None
    if args.newest_faiss:
        output = subprocess.run(
            [args.newest_faiss, str(HERE / "newest_faiss.py")], check=True, stdout=subprocess.PIPE, text=True,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"}).stdout
        newest = json.loads(output)
    for bits in (64, 128, 256, 512, 1024):
        for k in (10, 1000, 10000):
            ours = ns("IndexBinaryFlatSIMD", bits, k)
            theirs = ns("faiss::IndexBinaryFlat", bits, k)
            print(f"scan, {bits} bits, k = {k}: {ours:.3f} ns for a code and query")
            ratio(f"scan, {bits} bits, k = {k}, FAISS linked / ours", theirs / ours, 15 if (bits, k) == (256, 10) else None)
            if newest:
                bar = None if k != 10 else 2.5 if bits == 256 else 2
                ratio(f"scan, {bits} bits, k = {k}, FAISS {newest['version']} / ours", newest["ns"][f"{bits}/{k}"] / ours, bar)
    for bits in (64, 128, 256, 512, 1024):
        for nq in (1, 200):
            seconds = lambda classes: r[f"lists<{classes}>/bits:{bits}/nq:{nq}"]["seconds"]  # noqa: E731
            theirs = seconds("faiss::IndexBinaryIVF, faiss::IndexBinaryFlat")
            ours = seconds("IndexBinaryIVFSIMD, IndexBinaryFlatSIMD")
            ratio(f"inverted lists, {bits} bits, {nq} queries in a batch, FAISS linked / ours", theirs / ours)
    ratio("one query on 10 million codes of 256 bits / bandwidth of the memory",
          r["one_query"]["bytes_per_second"] / r["read_memory"]["bytes_per_second"], 0.7)
    return r


def kernels(args):
    r = run_google(args, "kernels")
    seconds = lambda name, d: r[f"{name}/d:{d}"]["seconds"]  # noqa: E731
    for d in (128, 768):
        chi2 = seconds("search/chi2", d)
        ratio(f"chi2 search / loop over L2 distances, d = {d}", chi2 / seconds("l2_loop", d), 2, at_least=False)
        ratio(f"chi2 search / L2 distances in blocks, d = {d}", chi2 / seconds("l2_blocks", d))
        ratio(f"chi2 search / FAISS's L2 search by BLAS, d = {d}", chi2 / seconds("faiss_search/l2", d))
        extra = min(seconds("faiss_search/canberra", d), seconds("faiss_search/jensen_shannon", d))
        ratio(f"FAISS's fastest extra metric / chi2 search, d = {d}", extra / chi2, 6)
        ratio(f"FAISS's JensenShannon / js search, d = {d}", seconds("faiss_search/jensen_shannon", d) / seconds("search/js", d))
        if f"flann_chi2/d:{d}" in r:
            ratio(f"FLANN's linear chi2 / chi2 search, d = {d}", seconds("flann_chi2", d) / chi2, 5)
    return r


def encode(args):
    r = run_google(args, "encode")

    def rate(name, D, bits):
        return r[f"{name}/D:{D}/bits:{bits}"]["flops"]

    def best_sgemm(D, bits):
        return max(rate("eigen_sgemm", D, bits), rate("blas_sgemm", D, bits))

    for D in (128, 784, 2352, 4096):
        for bits in (256, 1024, 8192):
            ours = rate("encode/sik_dense", D, bits)
            print(f"SIK dense, d = {D}, {bits} bits: {1e-9 * ours:.0f} GFLOP/s")
            ratio(f"SIK dense / Eigen's sgemm, d = {D}, {bits} bits", ours / rate("eigen_sgemm", D, bits))
            ratio(f"SIK dense / best sgemm, d = {D}, {bits} bits", ours / best_sgemm(D, bits), 0.9)
    for D in (384, 2352):
        for bits in (256, 512, 1024, 8192):
            ratio(f"AHK dense / best sgemm, d(2m+1) = {D}, {bits} bits", rate("encode/ahk_dense", D, bits) / best_sgemm(D, bits), 0.8)
    for D, bits, single_bar, batch_bar in ((2352, 512, 10, 4), (2352, 8192, 100, 20), (384, 512, None, None)):
        for kind, bar in (("_single", single_bar), ("", batch_bar)):
            structured = r[f"encode/ahk_structured{kind}/D:{D}/bits:{bits}"]["items_per_second"]
            dense = r[f"encode/ahk_dense{kind}/D:{D}/bits:{bits}"]["items_per_second"]
            ratio(f"AHK structured / dense, d(2m+1) = {D}, {bits} bits, {'one vector' if kind else 'batch'}", structured / dense, bar)
    for D in (16, 64, 128, 784):
        for bits in (256, 512, 8192):
            for kind in ("_single", ""):
                structured = r[f"encode/small_structured{kind}/D:{D}/bits:{bits}"]["items_per_second"]
                dense = r[f"encode/small_dense{kind}/D:{D}/bits:{bits}"]["items_per_second"]
                ratio(f"SIK structured / dense, d = {D}, {bits} bits, {'one vector' if kind else 'batch'}", structured / dense)
    return r


def arguments(key):
    name, *pairs = key.split("/")
    if pairs and ":" not in pairs[0]:
        name += "/" + pairs.pop(0)
    return name, {k: int(v) for k, v in (p.split(":") for p in pairs)}


def scaling(args):
    r = run_google(args, "scaling")
    table = [(*arguments(key), v["seconds"]) for key, v in r.items()]
    for name, a, seconds in table:
        if a["threads"] == 2:
            one = next(s for n, b, s in table if n == name and b == {**a, "threads": 1})
            rest = ", ".join(f"{k} = {v:,}" for k, v in a.items() if k != "threads")
            ratio(f"two threads / one, {name}, {rest}", one / seconds, 1.8)
    plot_growth(args, table)
    return r


def plot_growth(args, table):
    """Time against each argument, the others fixed, with the exponent fitted to the upper half of the points."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = sorted({name for name, _, _ in table})
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.5))
    for axis, variable in zip(axes, ("n", "d", "bits")):
        for name in names:
            groups = {}
            for n, a, seconds in table:
                if n == name and variable in a and a["threads"] == 1:
                    fixed = tuple(sorted((k, v) for k, v in a.items() if k != variable))
                    groups.setdefault(fixed, {})[a[variable]] = seconds
            for fixed, points in groups.items():
                if len(points) < 3:
                    continue
                x = np.array(sorted(points))
                y = np.array([points[v] for v in x])
                upper = slice(len(x) // 2 - 1, None)
                exponent = np.polyfit(np.log(x[upper]), np.log(y[upper]), 1)[0]
                print(f"growth of {name} with {variable}: exponent {exponent:.2f} from {x[upper][0]:,} to {x[-1]:,}")
                axis.loglog(x, y, "o-", label=f"{name}: exponent {exponent:.2f}")
        axis.set_xlabel({"n": "vectors", "d": "dimensions", "bits": "bits"}[variable])
        axis.set_ylabel("seconds")
        axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(args.out / "growth.png", dpi=120)


def klsh(args):
    vectors = descriptors_file(args, 200_000)
    text = run_text(args, "klsh", *([vectors] if vectors else []))
    print(text)


def bilinear(args):
    with tempfile.TemporaryDirectory() as folder:
        vlad = []
        if args.data:
            import datasets

            data = datasets.load(args.data, args.dataset)
            x = datasets.vlad(data.base, datasets.vlad_centres(data.base, 500), 500)[:96]
            path = Path(folder) / "vlad.fvecs"
            rows = np.empty((len(x), x.shape[1] + 1), "<f4")
            rows[:, :1] = np.array([[x.shape[1]]], "<i4").view("<f4")
            rows[:, 1:] = x
            rows.tofile(path)
            vlad = [6400, path]
        print(run_text(args, "bilinear", *vlad))


def descriptors_file(args, n):
    if not args.data:
        return None
    import datasets

    base = datasets.choose(args.data, args.dataset)[1].base
    return base if base.suffix == ".bvecs" else None


def multi_index(args):
    if not args.data:
        return
    command = [sys.executable, str(HERE / "multi_index.py"), "--data", args.data, "--csv", str(args.out / "multi_index.csv"), "--png", str(args.out / "multi_index.png"),
               "--sizes", "10000,100000" if args.quick else "10000,100000,1000000,10000000"]
    if args.dataset:
        command += ["--dataset", args.dataset]
    subprocess.run(command, check=True)


def write_csv(args, results):
    with open(args.out / "times.csv", "w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["program", "benchmark", "seconds", "items_per_second", "flops", "bytes_per_second"])
        for program, r in results.items():
            for key, v in r.items():
                writer.writerow([program, key, v["seconds"], v["items_per_second"], v["flops"], v["bytes_per_second"]])
    with open(args.out / "ratios.csv", "w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["ratio", "value", "bar", "at_least"])
        writer.writerows(RATIOS)


def plot_ratios(args):
    """Ratios beside their bars, as shares of the bar: 1 and more is reached."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    barred = [(w, v / b if at_least else b / v) for w, v, b, at_least in RATIOS if b is not None]
    if not barred:
        return
    figure, axis = plt.subplots(figsize=(10, 0.28 * len(barred) + 1))
    names, values = zip(*barred[::-1])
    axis.barh(names, values, color=["tab:green" if v >= 1 else "tab:red" for v in values])
    axis.axvline(1, color="black", linewidth=1)
    axis.set_xscale("log")
    axis.set_xlabel("how far beyond its bar (1: just reached)")
    axis.tick_params(axis="y", labelsize=7)
    figure.tight_layout()
    figure.savefig(args.out / "ratios.png", dpi=120)


def main():
    args = parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    cpu = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
               platform.processor())
    print(f"{cpu}, {os.cpu_count()} cores")
    programs = {f.__name__: f for f in (hamming, kernels, encode, scaling, klsh, bilinear, multi_index)}
    wanted = args.only.split(",") if args.only else list(programs)
    if unknown := [name for name in wanted if name not in programs]:
        raise SystemExit(f"--only: there is no {', '.join(unknown)}; there are {', '.join(programs)}")
    results = {}
    for name in wanted:
        print(f"\n== {name}\n", flush=True)
        r = programs[name](args)
        if r:
            results[name] = r
    write_csv(args, results)
    plot_ratios(args)


if __name__ == "__main__":
    main()
