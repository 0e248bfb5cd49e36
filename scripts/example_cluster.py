# SPDX-License-Identifier: MIT
r"""Search an index that is spread over several processes or machines: start a cluster, build the index, and search it.

    PYTHONPATH=build/python /usr/bin/python3 scripts/example_cluster.py [FILES ...] [--string STRING] [--queries FILE] \
        [--folder FOLDER] [--workers 2] [--scheduler ADDRESS]

A worker builds a shard of each file and writes it to the folder. The workers then answer searches together. Without FILES,
the example makes some of scikit-learn's handwritten digits, with jitter. With --scheduler, the workers of a running cluster
are used. All its machines must see the files and the folder. The example needs Dask's distributed (Debian's
python3-distributed).
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import faiss_ext
import numpy as np
from faiss_ext.vector_files import read_vectors

STRING = "AHK512(chi2,center=1),BFlat,Refine(KFlat(chi2))"


def digits_in_files(folder, files=4, times=20, seed=1):
    """Copies of the digits with jitter, in several files, and queries."""
    from sklearn.datasets import load_digits

    x = load_digits().data.astype("float32")
    rng = np.random.default_rng(seed)
    names = [folder / f"digits-{i}.npy" for i in range(files)]
    for name in names:
        copies = np.repeat(x[200:], times // files, axis=0)
        np.save(name, (copies * np.exp(0.2 * rng.standard_normal(copies.shape))).astype("float32"))
    np.save(folder / "queries.npy", x[:200])
    return names, folder / "queries.npy"


def parse_args(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILES", help="of vectors, one for each shard")
    parser.add_argument("--string", default=STRING, help=f"of the index ({STRING})")
    parser.add_argument("--queries", help="file of vectors (100 of the first file)")
    parser.add_argument("--folder", help="for the index (a temporary one)")
    parser.add_argument("--workers", type=int, default=2, help="processes of the cluster that is started (2)")
    parser.add_argument("--scheduler", help="address of a cluster that runs, such as tcp://head:8786")
    return parser.parse_args(argv)


def run(client, files, queries, string, folder):
    """Builds, searches, and opens the folder once more without the cluster."""
    start = time.perf_counter()
    index = faiss_ext.build_shards(files, string, client, folder)
    seconds = time.perf_counter() - start
    print(f"{index}\nbuilt in {seconds:.1f} s, {index.ntotal / seconds:,.0f} vectors a second")
    start = time.perf_counter()
    D, I = index.search(queries, 10)
    seconds = time.perf_counter() - start
    print(f"{len(queries)} queries in {seconds:.3f} s; of the first one: {I[0].tolist()}")
    same_D, same_I = faiss_ext.open_shards(folder).search(queries, 10)
    same = (D == same_D).all() and (I == same_I).all()
    print(f"opened again in one process: {'the same' if same else 'other'} results")
    return index, D, I


def main(argv=None):
    try:
        return start(parse_args(argv))
    except (ValueError, RuntimeError, OSError) as error:
        print(f"example_cluster.py: {str(error).splitlines()[0]}", file=sys.stderr)
        return 1


def start(args):
    from dask.distributed import Client, LocalCluster

    with tempfile.TemporaryDirectory() as temporary:
        temporary = Path(temporary)
        if args.files:
            files, queries = args.files, args.queries
        else:
            files, queries = digits_in_files(temporary)
        q = np.array(read_vectors(queries) if queries else read_vectors(files[0])[:100], dtype="float32")
        folder = args.folder or temporary / "index"
        if args.scheduler:
            with Client(args.scheduler) as client:
                run(client, files, q, args.string, folder)
        else:
            with LocalCluster(n_workers=args.workers, threads_per_worker=1, dashboard_address=":0") as cluster:
                with Client(cluster) as client:
                    run(client, files, q, args.string, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
