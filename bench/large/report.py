# SPDX-License-Identifier: MIT
"""Tables of what run.py has measured, and what follows from it for more vectors."""

import math
import re

GB = 10**9
SHARD_MACHINE_GB = 256  # memory of a machine on paper
SHARE = 0.8  # of it that indexes may use
CORES = 32
READ_US = 100  # a random read of 4 kB from an SSD; so many of a query's are under way at once:
READS_AT_ONCE = 32
ID_BYTES, D = 8, 128  # of FAISS's lists, and the vectors'
SIZES = {"100 million": 10**8, "1 billion": 10**9, "10 billion": 10**10}


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
                      *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def number(value):
    """Two or three digits that count."""
    if value >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.2g}" if value >= 0.1 else f"{value:.1g}"


def settings(parameters):
    return ", ".join(f"`{name}={value}`" for name, value in parameters.items())


def building(found):
    rows = []
    for front, row in found["rows"].items():
        build = row["build"]
        rows.append([
            f"`{front}`", f"{build['bytes'] / build['n']:.1f}", f"{build['seconds']:,.0f}",
            number(build["n"] / build["seconds"] / 1000) + ",000", f"{build['peak_mb']:,.0f}"])
    return table(["in front of `Refine(KFlat(chi2))`", "bytes a vector", "s", "vectors a second", "peak memory, MB"], rows)


def searching(found):
    rows = []
    names = {"memory": "vectors in memory (bytes)", "file": "vectors in their file",
             "mapped": "vectors and codes in files"}
    for front, row in found["rows"].items():
        for kind, name in names.items():
            if kind not in row:
                continue
            search = row[kind]
            cold = "cold_rate" in search
            rows.append([
                f"`{front}`, {settings(row['tune']['parameters'])}" if kind == "memory" else "",
                name, f"{search['memory_after_mb']:,.0f}", f"{search['recall']:.3f}",
                number(search["rate"]), number(search["cold_rate"]) if cold else "",
                f"{number(search['single_ms'])} ({number(search['single_95_ms'])})",
                f"{number(search['cold_single_ms'])} ({number(search['cold_single_95_ms'])})" if cold else ""])
    return table(["index", "where", "memory, MB", "recall@10", "queries/s, warm", "cold", "ms, one query, warm", "cold"], rows)


def on_cluster(found):
    one, two, killed = (found["cluster"][key] for key in ("one", "two", "killed"))
    same = two["same"] and two["killed_search_same"] and killed["same"]
    rows = [["build, s", number(one["seconds"]), number(two["seconds"]), number(killed["seconds"])],
            ["queries/s in a batch of 1,000", number(one["rate"]), number(two["rate"]),
             f"{number(1000 / two['killed_search_s'])}"],
            ["ms, one query (95 % below)", f"{number(one['single_ms'])} ({number(one['single_95_ms'])})",
             f"{number(two['single_ms'])} ({number(two['single_95_ms'])})", ""]]
    return (table(["8 shards", "one process, two threads", "two workers, one thread each",
                   "the same, one worker killed in the middle"], rows)
            + f"\nAll runs return {'the same' if same else 'DIFFERENT'} results.\n")


def machines_for(gb):
    """How many have the memory."""
    return max(1, math.ceil(gb / (SHARE * SHARD_MACHINE_GB)))


def on_paper(found):
    rows = []
    for size, n in SIZES.items():
        for front, row in found["rows"].items():
            build, warm = row["build"], row["file"]
            shards = n / build["n"]
            code_gb = shards * build["bytes"] / GB
            machines = machines_for(code_gb)
            core_hours = shards * 2 * build["seconds"] / 3600
            work = shards * warm["single_ms"]  # of one core
            candidates = 10 * row["tune"]["parameters"].get("k_factor", 1)
            reads = candidates * READ_US / READS_AT_ONCE / 1000
            rows.append([
                size if front == next(iter(found["rows"])) else "", f"`{front}`", number(code_gb), f"{machines}",
                f"{number(core_hours)} ({number(core_hours / machines / CORES)})",
                number(work / machines / CORES), number(work / machines / CORES + reads)])
    return table(["vectors", "in front of `Refine`", "codes, GB", f"machines of {SHARD_MACHINE_GB} GB",
                  f"core-hours to build (hours, {CORES} cores each)", "ms a query, codes alone", "with re-ranking from SSD"], rows)


def ivf_pq(found):
    """FAISS's, of which sizes are known without measuring."""
    rows = []
    for size, n in SIZES.items():
        for code_bytes in (32, 64):
            code_gb = n * (code_bytes + ID_BYTES) / GB
            machines = [machines_for(code_gb + n * vector_bytes / GB) for vector_bytes in (0, D, 4 * D)]
            rows.append([size if code_bytes == 32 else "", f"`IVF,PQ{code_bytes}`", number(code_gb), *map(str, machines)])
    return table(["vectors", "FAISS's", "codes, GB", f"machines of {SHARD_MACHINE_GB} GB, codes alone",
                  "with `Refine(SQ8)`, bytes", "with `RFlat`, floats"], rows)


def fill(path, found):
    """Puts the tables between the marks of a page."""
    text = path.read_text(encoding="utf-8")
    for name, make in (("building", building), ("searching", searching), ("cluster", on_cluster), ("paper", on_paper),
                       ("ivf-pq", ivf_pq)):
        if name == "cluster" and "cluster" not in found:
            continue
        text = re.sub(rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda m: m[1] + make(found) + m[2], text, flags=re.DOTALL)
    path.write_text(text, encoding="utf-8")
