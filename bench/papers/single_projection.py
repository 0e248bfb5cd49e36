# SPDX-License-Identifier: MIT
"""The subject of Figure 7 of Kim and Choi's bilinear projections, with nothing extrapolated: time and memory are both measured."""

from __future__ import annotations

import json
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
from experiments import Outcome, Run, experiment
from findings import cannot_be_tried, tested
from kim_choi_bilinear import SINGLE, bilinear, name_of, single

SHAPE = (250, 256)
FREE_SHARE = 0.6  # of the memory that is available now, which a projection may take

# Makes a hash and encodes 16 vectors. Prints the growth of the process's largest memory, in bytes, and the least seconds a vector.
CHILD = """
import json, sys
import numpy as np
import faiss
from faiss_ext import kernel_hash_factory, timing

def largest():
    return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

faiss.omp_set_num_threads(1)
string, seed = sys.argv[1], int(sys.argv[2])
d = {rows} * {columns}
x = np.random.default_rng(seed).random((16, d), np.float32)
kernel_hash_factory(64, "SIK64(gaussian,gamma=1)").encode(x[:, :64])
before = largest()
h = kernel_hash_factory(d, string)
timer = timing.Timer(lambda: h.encode(x), 1)
for _ in range(3):
    timer.turn()
print(json.dumps([largest() - before, timer.least / len(x)]))
""".format(rows=SHAPE[0], columns=SHAPE[1])


def in_child(string: str, seed: int) -> tuple[float, float]:
    """Bytes and seconds a vector, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", CHILD, string, str(seed)], capture_output=True, text=True, check=True)
    return tuple(json.loads(done.stdout))


def available() -> int:
    """Bytes of memory that programs can take."""
    with open("/proc/meminfo") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("MemAvailable"))


@experiment(
    "004-memory",
    "Time and memory of encoding, measured for a single projection too",
    "Bilinear projections take far less time and memory than a single one. (The paper's Figure 7 has no time of a single "
    "projection with 62,500 bits, for lack of memory.)",
    "16 random 250 x 256 matrices, whose values matter to neither time nor memory. Each hash is made in a process of its own; "
    "memory is by how much the largest resident size of this process grows. A single projection is not made if it would take more "
    "than 60 % of the available memory. Bilinear projections have m = 5. A growth of a few MB is inexact, since the process uses memory "
    "again that it has used before (004-fig7 computes the size of the projections). Three repeats.",
    repeats=3,
)
def measured_memory(run: Run) -> Outcome:
    d = SHAPE[0] * SHAPE[1]
    all_bits = run.choose(full=(4904, 16904, 40000), quick=(256, 512))
    forms = {SINGLE: lambda bits: single(1, 1, bits), name_of(5): lambda bits: bilinear(1, 1, bits, 5)}
    found, left_out = {}, []
    for bits in all_bits:
        for name, form in forms.items():
            if name == SINGLE and 4 * bits * d > FREE_SHARE * available():
                left_out.append(bits)
                continue
            found[name, bits] = np.array([in_child(form(bits), repeat) for repeat in range(run.repeats)])
    both = [bits for bits in all_bits if all((name, bits) in found for name in forms)]
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axis, i, label, unit in ((axes[0], 1, "ms for one vector, one thread", 1e-3), (axes[1], 0, "MB", 1e6)):
        for name in forms:
            at = [bits for bits in all_bits if (name, bits) in found]
            axis.plot(at, [found[name, bits][:, i].mean() / unit for bits in at], "o-", label=name)
        axis.set(xlabel="bits", ylabel=label, yscale="log")
    axes[0].legend()
    memory, seconds = (
        {bits: np.transpose([found[name, bits][:, i] for name in forms]) for bits in both} for i in (0, 1)
    )
    findings = [
        tested(
            "A single projection takes more memory, as measured (the paper: much more)",
            ", ".join(f"{bits:,} bits: {m[:, 0].mean() / 1e6:,.0f} MB against {m[:, 1].mean() / 1e6:.1f}" for bits, m in memory.items()),
            [(m[:, 0], m[:, 1]) for m in memory.values()],
            in_quick_runs=False,
        ),
        tested(
            "A single projection takes more time, as measured (the paper: much more)",
            ", ".join(f"{bits:,} bits: {(t[:, 0] / t[:, 1]).mean():.0f} times as long" for bits, t in seconds.items()),
            [(np.log(t[:, 0] / t[:, 1]), 0) for t in seconds.values()],
            in_quick_runs=False,
        ),
    ]
    findings += [
        cannot_be_tried(
            f"A single projection takes more memory and time with {bits:,} bits",
            "not measured",
            f"it would take {4e-9 * bits * d:.0f} GB, and less is free",
        )
        for bits in left_out
    ]
    rows = [
        {"form": name, "bits": bits, "repeat": i, "MB": b / 1e6, "ms": 1e3 * s}
        for (name, bits), values in found.items() for i, (b, s) in enumerate(values)
    ]  # fmt: skip
    return Outcome(findings, rows, figure)
