# SPDX-License-Identifier: MIT
"""The command line of the demo. Needs only Python, so that it works before anything is installed."""

import argparse
from pathlib import Path

# The kernels to choose from; those of vectors with the arguments that their strings take.
KERNEL_SHAPES = {"gaussian": (), "laplacian": (), "matern": ("nu=1.5",)}
HISTOGRAM_KERNELS = ("chi2", "intersection", "js", "hellinger")


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return value


def seed_number(text):
    value = int(text)
    if not 0 <= value < 2**31:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 2^31 - 1")
    return value


def bit_list(text):
    """Code lengths, ascending: "256,128" gives [128, 256]."""
    try:
        lengths = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers such as 128,256, got '{text}'") from None
    wrong = [bits for bits in lengths if bits < 8 or bits % 8]
    if wrong:
        raise argparse.ArgumentTypeError(f"a code length is a multiple of 8, which {wrong[0]} is not")
    return lengths


def parse_arguments(argv=None):
    parser = argparse.ArgumentParser(
        prog="demo.sh",
        description="Searches vectors under a kernel, exactly and by codes, lists and graphs: speed, size and recall.",
        epilog="Without --data: scikit-learn's digits, 1,797 vectors of 64 dimensions, a fifth of them as queries. "
        "All threads that OpenMP offers are used; OMP_NUM_THREADS sets how many.",
    )
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        help="folder with MNIST's files (train-images-idx3-ubyte[.gz], t10k-images-idx3-ubyte[.gz]), or base.* and "
        "query.* of kind .fvecs, .bvecs or .npy, or one such file, of which a part serves as queries; or a folder of "
        "such folders",
    )
    parser.add_argument("--dataset", metavar="NAME", help="which dataset in FOLDER; needed where there are several")
    parser.add_argument(
        "--kernel", choices=[*KERNEL_SHAPES, *HISTOGRAM_KERNELS], default="gaussian", help="default: %(default)s"
    )
    parser.add_argument(
        "--vlad",
        type=positive,
        metavar="K",
        help="the data are local descriptors: search VLAD vectors of K centres, each of --group consecutive descriptors",
    )
    parser.add_argument("--group", type=positive, default=100, metavar="N", help="see --vlad (default: %(default)s)")
    parser.add_argument(
        "--queries",
        type=positive,
        default=1000,
        metavar="N",
        help="at most so many queries, and at most a fifth of data without query file (default: %(default)s)",
    )
    parser.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="at most so many base vectors, drawn at random (default: all)",
    )
    parser.add_argument(
        "--bits", type=bit_list, default="128,256,512,1024", metavar="LIST", help="code lengths (default: %(default)s)"
    )
    parser.add_argument(
        "--seed",
        type=seed_number,
        default=1,
        metavar="N",
        help="of the hash functions and of what is drawn (default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("demo_output"),
        metavar="FOLDER",
        help="for the CSV, the plot and, of images, the contact sheet (default: %(default)s/)",
    )
    arguments = parser.parse_args(argv)
    if arguments.dataset and not arguments.data:
        parser.error("--dataset names a dataset in the folder of --data, which is not given")
    return arguments


if __name__ == "__main__":  # by itself it only prints the help, or what is wrong
    parse_arguments()
