#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the tests notice small faults ("mutants") of the library.

    python3 scripts/mutants.py --work FOLDER [--only NUMBER ...] [--jobs N]
                               [--no-python]
    python3 scripts/mutants.py --list

Copies the sources to FOLDER and builds them there once. Each fault changes one
place below src/. The files concerned are compiled with it, and linked with the
others to a separate library and Python module. Then the C++ test programs run
with each of these libraries, until one fails. The Python tests run with each
module that passed all C++ tests.

Prints the first test that notices each fault. The exit status is 1 if any fault
is missed. FOLDER keeps the builds for the next run, which rebuilds changed
sources.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# file below src/, what stands there once, what takes its place
FAULTS = [
    # the grammar of strings
    ("core/Spec.cpp", "text[i] == ',' && open.empty()", "text[i] == ','"),
    ("core/Spec.cpp", "++depth > max_depth", "++depth > 64000000"),
    ("core/Spec.cpp", "text.size() > max_length", "text.size() > max_length + 1"),
    ("core/Spec.cpp", "if (!value || !(*value >= low && *value <= high)) {",
     "if (!value || !(*value >= low)) {"),
    ("core/Spec.cpp", "if (!value || !(*value >= low && *value <= high)) {",
     "if (!value || !(*value <= high)) {"),
    ("core/Spec.cpp", "argument.idle_keys = idle_keys;", ""),
    ("core/Spec.cpp", 'return value == "1" || value == "true";',
     'return value == "1";'),
    ("core/Spec.cpp", "if (!a.used) {", "if (!a.used && a.key.empty()) {"),
    ("core/Spec.cpp", "if (!a.key.empty() && other.key == a.key) {",
     "if (!a.key.empty() && other.key == a.key && !a.used) {\n"
     "                break;"),
    # fields in strings
    ("core/field_strings.cpp", 'settable(*field.automatic) = given->value == "auto";',
     "settable(*field.automatic) = false;"),
    ("core/field_strings.cpp", "settable(field.rows) = shape->first;",
     "settable(field.rows) = shape->second;"),
    ("core/field_strings.cpp", "if (product != field.components) {",
     "if (product > field.components) {"),
    ("core/field_strings.cpp",
     "return other.key == v.key && other.text == v.text;",
     "return other.key == v.key;"),
    ("core/field_strings.cpp", "spec.hand_over_keys(item);", ""),
    ("core/field_strings.cpp", "if (!field.part.get() && !field.none) {\n"
     "            throw FieldError", "if (false) {\n"
     "            throw FieldError"),
    # fields in files
    ("core/field_files.cpp",
     "if (size != any_size && given != size) {", "if (false) {"),
    ("core/field_files.cpp", "if (!std::isfinite(value)) {", "if (false) {"),
    ("core/field_files.cpp", "if (!field.is_valid()) {\n"
     "            fail(out_of_range(field))", "if (false) {\n"
     "            fail(out_of_range(field))"),
    ("core/aligned_arrays.cpp", "mapping->position() % alignment != 0",
     "false"),
    ("core/aligned_arrays.cpp", "-begin % array_alignment", "0"),
    ("core/FileRange.cpp", "            !is_mapped,\n", "            true,\n"),
    ("core/field_files.h", "limit = 80;", "limit = 1 << 30;"),
    ("core/field_files.cpp", "return !values.is_float() ||",
     "return values.is_float() ||"),
    # checks, threads, samples
    ("core/check.cpp", "(v >= 0) & (v <= 1e37f)", "(v >= 0) & (v <= 1e38f)"),
    ("core/check.cpp", "(v >= 0) & (v <= 1e37f)", "(v <= 1e37f)"),
    ("core/check.cpp", "i0 <= ntotal - ni", "i0 <= ntotal"),
    ("core/check.cpp", "return (std::bit_cast<uint32_t>(v) & exponent) != "
     "exponent;", "return v == v;"),
    ("core/parallel.h", "    if (error) {\n", "    if (false) {\n"),
    ("core/parallel.h", "std::min(n, (b + 1) * block)", "(b + 1) * block - "
     "(b + 1 == nblocks ? (b + 1) * block - n : 1)"),
    ("core/random_streams.h", "rest(T(i), T(items.size() - 1))",
     "rest(T(0), T(items.size() - 1))"),
    ("core/Transform.cpp", "        assign_transform(*before);\n", ""),
    ("core/Transform.cpp", "&& mine.data == theirs.data", ""),
    ("core/bisection.h", "const double middle = low + (high - low) / 2;",
     "const double middle = low + (high - low) * 0.501;\n"
     "        if (high - low < 1e-5 * high) {\n            return low;\n"
     "        }"),
    # inner loops
    ("simd/elementwise.cpp", "v[i] = v[i] * (a * b[i]);",
     "v[i] = v[i] * b[i];"),
    ("simd/elementwise.cpp", "largest = std::max(largest, std::abs(v[i]));",
     ""),
    ("simd/elementwise.cpp", "hn::Set(tag, 6.28318531f)",
     "hn::Set(tag, 6.2831f)"),
    ("simd/margins.cpp", "hn::Sub(v, hn::Round(v))",
     "hn::Sub(v, hn::Floor(v))"),
    ("simd/margins.cpp", "hn::Ge(v, hn::Zero(tag))",
     "hn::Gt(v, hn::Zero(tag))"),
    ("simd/pairwise.cpp", "total[i] += of_run[i];", "total[i] = of_run[i];"),
    ("simd/pairwise.cpp", "length > run_length ? total[i] : double(of_run[i])",
     "total[i]"),
    ("simd/pairwise.cpp", "            -0.360673726f,",
     "            -0.360653726f,"),
    ("simd/pairwise.cpp", "return hn::Mul(apart, hn::Set(tag, 0.5f));",
     "return apart;"),
    ("simd/pairwise.cpp", "0.0261486005f", "0.0262486005f"),
    ("simd/hadamard.cpp", "signs.value[i] = i & H ? -1.0f : 1.0f;",
     "signs.value[i] = i & H ? 1.0f : 1.0f;"),
    ("simd/hadamard.cpp", "v[a + H] = hn::Sub(v[a], v[a + H]);",
     "v[a + H] = hn::Sub(v[a + H], v[a]);"),
    ("simd/hamming_scan.cpp", "hn::Lt(lane, hn::Set(tag, uint64_t(count)))",
     "hn::Lt(lane, hn::Set(tag, uint64_t(count) + 1))"),
    ("simd/hamming_scan.cpp",
     "std::memcpy(out + whole * group_size + i, code + whole * 8, rest);",
     "std::memcpy(out + whole * group_size + i, code + whole * 8, 1);"),
    ("simd/hamming_scan.cpp", "if (w < words) {", "if (w + 1 < words) {"),
    ("simd/homogeneous_map.cpp", "set(4.837512969970703e-4f)",
     "set(4.8275e-4f)"),
    ("simd/sin_cos-inl.h", "hn::IfThenElse(hn::Ge(quadrant, set(2)), "
     "hn::Neg(sine), sine)", "hn::IfThenElse(hn::Ge(quadrant, set(3)), "
     "hn::Neg(sine), sine)"),
    ("simd/projection.cpp", "total[j] = is_first ? values[j] : total[j] + "
     "values[j];", "total[j] = values[j];"),
    ("simd/bilinear.cpp", "scale * hn::GetLane", "hn::GetLane"),
    # kernels
    ("kernels/AdditiveKernel.cpp", "5.86 * std::sqrt(order) + 3.65",
     "5.86 * std::sqrt(order) + 3.75"),
    ("kernels/AdditiveKernel.cpp", "2 / pi / (1 + 4 * omega * omega)",
     "2 / pi / (1 + 2 * omega * omega)"),
    ("kernels/AdditiveKernel.cpp", "    check_histograms(n, x, d, where);\n",
     "    check_finite(n, x, d, where);\n"),
    ("kernels/BandwidthKernel.cpp", "    if (is_trained) {\n"
     "        return;\n    }\n    check_input", "    check_input"),
    ("kernels/BandwidthKernel.cpp", "is_trained = gamma > 0;",
     "is_trained = true;"),
    ("kernels/ExpChi2Kernel.cpp", "double(m) * double(m - 1)",
     "double(m) * double(m)"),
    ("kernels/GaussianKernel.cpp", "exponential_kernel(gamma / 2,",
     "exponential_kernel(gamma,"),
    ("kernels/Kernel.cpp", "self[i - begin] <= max_self_value",
     "self[i - begin] <= 4 * max_self_value"),
    ("kernels/LaplacianKernel.cpp", "return 1 / radius;",
     "return 2 / radius;"),
    ("kernels/MaternKernel.cpp", "std::sqrt(nu / gamma_nu(rng))",
     "std::sqrt(1 / gamma_nu(rng))"),
    ("kernels/MaternKernel.cpp", "(1 + z + z * z / 3) * std::exp(-z)",
     "(1 + z + z * z / 2) * std::exp(-z)"),
    ("kernels/bandwidth.cpp", "std::min<idx_t>(how.neighbor, npoints - 1) + 1",
     "std::min<idx_t>(how.neighbor, npoints - 1)"),
    # projections
    ("projections/Projection.cpp", "constexpr float large = 0x1p64f;",
     "constexpr float large = 0x1p127f;"),
    ("projections/BilinearProjection.cpp", "k_v = m > 1 ? k_w :",
     "k_v = m > 2 ? k_w :"),
    ("projections/BilinearProjection.cpp", "i = rng() & 1 ? -1 - i : i;", ""),
    ("projections/random_projection.h", "std::max(256,", "std::max(16,"),
    ("projections/draw.cpp", "v = float(turns * v);", "v = float(v);"),
    # maps
    ("maps/HomogeneousKernelMap.cpp", "(j == 0 ? 1 : 2) * L * kappa",
     "2 * L * kappa"),
    ("maps/HomogeneousKernelMap.cpp", "std::pow(sum / unit, 1 / degree)",
     "std::pow(sum / unit, degree)"),
    ("maps/HomogeneousKernelMap.cpp", "sum > 1e30 || (sum > 0 && sum < 1e-20)", "false"),
    ("maps/KernelPCA.cpp", "offset.push_back(center ? float(c) : 0);",
     "offset.push_back(float(c));"),
    ("maps/KernelPCA.cpp", "v >= Kernel::least_self_value && std::isfinite(v) ? 1 / std::sqrt(v)",
     "true ? 1 / std::sqrt(v)"),
    ("maps/KernelPCA.cpp", "canonical->indices == set.sparse.indices", "true"),
    ("maps/KernelPCA.cpp", "1e-4 * (std::abs(a) + std::abs(b)) + 1e-6",
     "1e6"),
    ("maps/kernel_spectrum.cpp", "top > 0 && values[0] >= -1e-3 * top",
     "top > 0 && values[0] >= -1e3 * top"),
    ("maps/kernel_spectrum.cpp", "center ? k - s.means[i] - s.means[j] + mean",
     "center ? k - s.means[i] - s.means[j]"),
    ("maps/fourier_features.h", "std::sqrt(1.0 / double(half))",
     "std::sqrt(0.5 / double(half))"),
    # hashes
    ("hashes/AdditiveKernelHash.cpp", "(kernel_value - delta) / square",
     "(kernel_value + delta) / square"),
    ("hashes/hamming_series.h", "(i == j ? 1 : 2) *", "2 *"),
    ("hashes/BilinearShiftInvariantHash.cpp", "std::log1p(r * r / q)",
     "std::log1p(r * r)"),
    ("hashes/KernelizedLSH.cpp", "t > 0 ? t : std::min(30, map.p / 2)",
     "t > 0 ? t : 30"),
    ("hashes/KernelizedLSH.cpp", "KernelPCA::Steps::check_values(map, 1, margins + i * nbits);",
     ""),
    ("hashes/klsh_draws.cpp", "uint64_t(hash.map.seed) + 1",
     "uint64_t(hash.map.seed)"),
    ("hashes/klsh_draws.cpp", "g.col(i) /= std::sqrt(s.values[i]);", ""),
    ("hashes/klsh_tuning.cpp", "return !known.contains(components_of(x, id));",
     "return true;"),
    ("hashes/ProjectionHash.cpp",
     "mean_value = share_of_mean(square, mean_square);", "mean_value = 0;"),
    ("hashes/ProjectionHash.cpp", "margins[i * size + j] -= threshold[j];",
     "margins[i * size + j] += threshold[j];"),
    ("hashes/FrequencyHash.cpp", "2 / pi * std::sqrt(square)",
     "3 / pi * std::sqrt(square)"),
    ("hashes/FrequencyHash.cpp", "std::abs(std::sin(phase / 2))",
     "std::abs(std::sin(phase))"),
    ("projections/given_frequencies.cpp", "turn * *middle", "*middle"),
    ("hashes/phase_bits.cpp", "std::acos(1 - 2 * uniform(rng))",
     "std::acos(1 - uniform(rng))"),
    ("hashes/ShiftInvariantHash.cpp", "0.5 * std::sqrt(1 - u)",
     "0.6 * std::sqrt(1 - u)"),
    ("hashes/SignCauchyHash.cpp", "    check_histograms(n, x, d, where);",
     "    Transform::check_input(n, x, where);"),
    ("hashes/hamming_series.h", "(257.0 / 256)", "(5.0 / 4)"),
    ("hashes/SpectralHash.cpp", "if (width > 0) {", "if (true) {"),
    ("hashes/SpectralHash.cpp", "(2 * (b - a))", "(b - a)"),
    ("hashes/SpectralHash.cpp", "std::tie(frequency, component) >",
     "std::tie(frequency, number) >"),
    ("io/index_factory.cpp", "if (is_ivf_spectral_hash(description, i)) {",
     "if (false) {"),
    # indexes
    ("indexes/HashAndStorage.cpp", "            hash->assign(*before);\n",
     ""),
    ("indexes/HashAndStorage.cpp", "    hash->check_identical(*other.hash);\n",
     ""),
    ("indexes/hamming_hits.h", "equal -= keep && distance == last;",
     ""),
    ("indexes/IndexBinaryFlatSIMD.cpp", "std::inplace_merge(keys.begin(), "
     "middle, keys.end());", ""),
    ("indexes/IndexBinaryPermuted.cpp", "list.ids[to] = id;",
     "list.ids[to] = list.ids[i];"),
    ("indexes/IndexBinaryPermuted.cpp", "return common < other.common;",
     "return common > other.common;"),
    ("simd/top_k.h", "if (is_wanted(first + idx_t(i))) {", "if (true) {"),
    ("indexes/IndexFlatKernel.cpp", "if (is_selected(sel, id + l)) {",
     "if (is_selected(sel, id)) {"),
    ("indexes/IndexFlatKernel.cpp", "for (idx_t l = next(0); l < m; "
     "l = next(l + 1)) {", "for (idx_t l = next(0); l < m - 1; "
     "l = next(l + 1)) {"),
    ("indexes/GraphChanges.cpp", "            places.remove_last(n);\n", ""),
    ("indexes/graph_search.h", "if (wanted.is_member(v.id)) {", "if (true) {"),
    ("indexes/GraphChanges.cpp", "    const BeingBuilt mark(is_being_built);\n"
     "    link_vertices(", "    link_vertices("),
    ("indexes/graph_build.cpp", "    choose_entry_point(hnsw, places);\n", ""),
    ("indexes/graph_build.cpp", "if (level_of(earlier[i]) >= level) {",
     "if (false) {"),
    ("indexes/IndexKernelHash.cpp",
     "if (is_within(index.metric_type, distance, radius)) {",
     "if (distance <= radius) {"),
    ("indexes/IndexBinaryRefineKernel.cpp",
     "number = wanted < index.ntotal ? idx_t(wanted) : index.ntotal;",
     "number = idx_t(wanted / 2);"),
    ("indexes/IndexRefineKernel.cpp", "        truncate(*base_index, n0);\n",
     ""),
    ("indexes/KernelExceptions.cpp", "if (!result && state.count != counts[i])",
     "if (false)"),
    ("indexes/blocked_scan.h", "j0 + (j1 - j0) * slice / nslices,",
     "j0 + (j1 - j0) * slice / nslices + (slice > 0),"),
    # files, factories
    ("io/index_codecs.cpp", "levels[to] > l", "levels[to] >= l"),
    ("io/index_codecs.cpp", "index.index->d == index.d, \"its ids",
     "true, \"its ids"),
    ("io/frame.cpp", "version == format_version,", "version <= format_version,"),
    ("io/frame.cpp", "given == checksum(magic),", "true,"),
    ("io/frame.cpp", "XXH3_64bits(to, size) == header.checksums[block],", "true,"),
    ("io/frame.cpp", "written.checksums == expected.checksums,", "true,"),
    ("io/frame.cpp", "            rest == 0,\n", "            true,\n"),
    ("io/frame.cpp", "            done == length,\n", "            true,\n"),
    ("io/frame.cpp", "        blocks.verify();\n", ""),
    ("io/frame.cpp", "std::min<uint64_t>(nitems, rest / size)", "nitems"),
    ("io/index_io.cpp", "            unlink(path.c_str());\n", ""),
    ("io/index_io.cpp", "transform->d_out == d_out,", "true,"),
    ("io/index_factory.cpp", "if (b > 63 || nhash * b > nbits) {",
     "if (b > 63) {"),
    ("io/index_factory.cpp", "links < 2 || links > 1024", "links < 1 || links > 1024"),
    ("io/index_factory.cpp", "delete refine->get_distance_computer();", ""),
    # shuffled scans, lists, compact rows, selections
    ("simd/pq4_scan.cpp", "scale = widest > 0 ? widest / "
     "(pq4_max_sum - 2) : 1;", "scale = widest > 0 ? widest / "
     "(2 * pq4_max_sum) : 1;"),
    ("simd/pq4_scan.cpp", "constexpr size_t apart = 2 / rows_per_vector;",
     "constexpr size_t apart = 2;"),
    ("simd/pq4_scan.cpp", "std::memset(arranged, 0, 16);",
     "std::memset(arranged, 1, 16);"),
    ("simd/selection.cpp", "while (i < n && !(v[i] < bound)) {",
     "while (i < n && !(v[i] <= bound)) {"),
    ("simd/selection.cpp", "if (count < k) {", "if (count <= k + 1) {"),
    ("simd/selection.cpp", "return bits >= 0 ? bits : int64_t(INT32_MIN) - "
     "bits;", "return bits;"),
    ("simd/top_k.h", "if (score <= bound) {", "if (score < bound) {"),
    ("indexes/k_means.cpp", "sizes[largest] -= sizes[c];", ""),
    ("indexes/k_means.cpp", "lost * bytes->most_length", "lost"),
    ("indexes/k_means.cpp", "half_squares[c] += value * value / 2;",
     "half_squares[c] += value * value;"),
    ("indexes/pq4_codes.cpp", "code[m] | high << 4", "code[m] | high"),
    ("indexes/pq4_codes.cpp", "uint64_t seed) {\n    constexpr int iterations "
     "= 25;", "uint64_t seed) {\n    constexpr int iterations = 0;"),
    ("indexes/IndexIVFPQ4.cpp", "sum += r[j] * (r[j] + (residual ? 2 * c[j] : "
     "0));", "sum += r[j] * (r[j] + (residual ? c[j] : 0));"),
    ("indexes/IndexIVFPQ4.cpp", "subtract(index.mean, y);", ""),
    ("indexes/IndexIVFPQ4.cpp", "std::fill(offsets.begin() + n, "
     "offsets.end(), worst_score);", ""),
    ("indexes/IndexIVFPQ4.cpp", "const float base = probe.base + tables.bias;",
     "const float base = visit.base;"),
    ("indexes/IndexIVFPQ4.cpp", "index.make_direct_map(has_map);", ""),
    ("indexes/IndexIVFPQ4.cpp", "next[list[i]]++", "next[list[i]]"),
    ("indexes/row_codec.cpp", "if (largest / step > 255.5) {",
     "if (largest / step > 128) {"),
    ("indexes/row_codec.cpp", "std::ldexp(1.0f, std::ilogb(largest)) : 0;",
     "std::ldexp(1.0f, std::ilogb(largest) - 17) : 0;"),
    # transformations in blocks, principal components, rotations
    ("indexes/IndexPreTransformSIMD.cpp", "!compares ||", "true ||"),
    ("indexes/IndexPreTransformSIMD.cpp",
     "y[i * matrix.d_out + j] += bias[j];", ""),
    ("indexes/IndexPreTransformSIMD.cpp", "        if (as_ours(chain[i])) {\n"
     "            first = i;", "        if (as_ours(chain[i])) {\n"
     "            first = 0;"),
    ("projections/principal_components.cpp",
     "if (captured - before <= tolerance * captured) {", "if (i == 0) {"),
    ("projections/principal_components.cpp",
     "whole[j * d + l] = S[l * d + j];", "whole[j * d + l] = 0;"),
    ("projections/principal_components.cpp", "        if (*largest < 0) {",
     "        if (false) {"),
    ("hashes/learned_rotation.cpp",
     "random_rotation(r, seed, first)", "random_rotation(r, seed, 0)"),
    ("hashes/learned_rotation.cpp", "s = s >= 0 ? 1.0f : -1.0f;",
     "s = s >= 0 ? 1.0f : 0.0f;"),
    # what theory says
    ("hashes/KernelHash.cpp", "    expected_hamming(kernel_value); // throws "
     "if there is no theory\n", ""),
    ("hashes/AdditiveKernelHash.cpp", "(kernel_value + delta) / square",
     "(kernel_value + delta)"),
    ("hashes/bits_for.cpp", "2 * delta * delta", "delta * delta"),
    ("hashes/SpectralHash.cpp", "pi / 2 +", ""),
    ("kernels/MaternKernel.cpp", "nu / (nu - 1)", "nu / (nu + 1)"),
    # removals by places, and selectors
    ("indexes/PlaceMoves.cpp", "*removed == from", "*removed == from + 1"),
    ("indexes/id_positions.h", "if (from_home >= ((at - hole) & mask)) {",
     "if (true) {"),
    ("indexes/list_moves.h", "places[id] = faiss::lo_build(list, offset);", ""),
    ("indexes/IndexIVFPQ4.cpp", "(*direct_map)[list.ids[last]].at = at;", ""),
    ("indexes/IndexIDTable.cpp", "at.move(this->id_map[to], to);", ""),
    # steps of threads that share an index
    ("core/fair_lock.h", "changes_waiting == 0 || long_reads > 0", "true"),
    ("core/fair_lock.h", "long_reads++;", ""),
    ("indexes/IndexConcurrent.cpp",
     "own->ntotal = own->index->ntotal;", ""),
    ("indexes/IndexRefineKernel.cpp",
     "ids[i] = is_selected(ids[i]) ? ids[i] : -1;", ""),
    ("indexes/IndexRefineKernel.cpp",
     "complete_results(*flat, *sel, x, k, distances, labels);", ""),
    ("indexes/IndexRefineKernel.cpp",
     "if (!are_enough && m < ntotal) {", "if (false) {"),
    ("indexes/selected_places.cpp", "if (places.size() == size_t(most)) {",
     "if (places.size() + 1 == size_t(most)) {"),
]

# Python tests that build by themselves, and would not see the fault
OTHER_BUILDS = ["test_packaging.py", "test_demo.py"]


def misplaced_faults():
    """Faults whose text does not stand in its file exactly once."""
    for name, old, _ in FAULTS:
        count = (ROOT / "src" / name).read_text().count(old)
        if count != 1:
            yield f"{name}: found {count} times: {old!r}"


class Mutants:
    """The builds in a folder.

    Below it, source/ is a copy of the checkout, build/ the build without
    faults, and faults/NNN/ the libraries with fault NNN.
    """

    def __init__(self, work, python):
        self.work, self.python = work, python
        self.source, self.build = work / "source", work / "build"
        self.programs = {}  # name: seconds that it takes without a fault

    def copy_and_build(self):
        shutil.rmtree(self.source, ignore_errors=True)
        shutil.copytree(ROOT, self.source, ignore=shutil.ignore_patterns(
            "build", ".git", "__pycache__", ".pytest_cache", ".hypothesis"))
        log = self.work / "build.log"
        with open(log, "w") as out:
            for command in (
                    ["cmake", "-G", "Ninja", "-S", self.source, "-B",
                     self.build, "-DBUILD_SHARED_LIBS=ON",
                     "-DFAISS_EXT_BUILD_PYTHON=ON",
                     f"-DPython3_EXECUTABLE={self.python}"],
                    ["ninja", "-C", self.build]):
                if subprocess.run(command, stdout=out, stderr=out).returncode:
                    sys.exit(f"mutants.py: the build without faults failed: "
                             f"see {log}")
        self.compile_commands = {
            entry["file"]: entry for entry in json.loads(
                (self.build / "compile_commands.json").read_text())}
        self.link_of_library = self.link_command("libfaiss_ext.so")
        self.link_of_module = self.link_command("_swigfaiss_ext.so")
        digest = hashlib.sha256()
        for path in sorted([*self.source.glob("src/**/*.*"),
                            *self.source.glob("faiss_ext/**/*.h")]):
            digest.update(path.read_bytes())
        self.state = digest.hexdigest()

    def link_command(self, target):
        commands = subprocess.run(
            ["ninja", "-C", self.build, "-t", "commands", target],
            capture_output=True, text=True, check=True).stdout.splitlines()
        # CMake writes ": && c++ ... && :", and may make links thereafter
        return next(
            part.strip() for command in reversed(commands)
            for part in command.split("&&")
            if re.search(r" -(shared|bundle|dynamiclib) ", part))

    def users_of(self, path):
        """The sources of the library that are, or include, a file."""
        if path.suffix == ".cpp" and str(path) in self.compile_commands:
            return [path]
        deps = subprocess.run(["ninja", "-C", self.build, "-t", "deps"],
                              capture_output=True, text=True,
                              check=True).stdout
        users = []
        for block in deps.split("\n\n"):
            files = [line.strip() for line in block.splitlines()[1:]]
            if str(path) in files and files[0].startswith(
                    str(self.source / "src")):
                users.append(Path(files[0]))
        return users

    def folder(self, number):
        return self.work / "faults" / f"{number:03}"

    def build_fault(self, number):
        """An error message, or None."""
        name, old, new = FAULTS[number]
        folder = self.folder(number)
        stamp = folder / "stamp"
        key = f"{self.state} {name} {old} {new}"
        if stamp.exists() and stamp.read_text() == key:
            return None
        shutil.rmtree(folder, ignore_errors=True)
        changed = folder / "src" / name
        changed.parent.mkdir(parents=True)
        original = self.source / "src" / name
        changed.write_text(original.read_text().replace(old, new))
        library, module = self.link_of_library, self.link_of_module
        log = open(folder / "build.log", "w")

        def run(command):
            return subprocess.run(command, shell=True, cwd=self.build,
                                  stdout=log, stderr=log).returncode

        for user in self.users_of(original):
            entry = self.compile_commands[str(user)]
            obj = os.path.relpath(entry["output"], self.build)
            with_fault = folder / (obj.replace("/", "_"))
            source = changed if user == original else user
            command = entry["command"].replace(
                f"-o {obj} ", f"-o {shlex.quote(str(with_fault))} ").replace(
                f" -I{self.source}",
                f" -I{shlex.quote(str(folder / 'src'))} -I{self.source}", 1)
            # error messages name files as they do without the fault
            command = (command.removesuffix(str(user))
                       + f"-ffile-prefix-map={folder}/=/ "
                       + shlex.quote(str(source)))
            if run(command):
                return "does not compile"
            library = library.replace(f" {obj} ", f" {with_fault} ")
            module = module.replace(f" {obj} ", f" {with_fault} ")
        package = folder / "python" / "faiss_ext"
        shutil.copytree(self.build / "python" / "faiss_ext", package,
                        ignore=shutil.ignore_patterns("*.so", "*.cxx", "__*__"))
        # what a test program has of the same inline functions must not
        # take the place of those with the fault
        for command, output in (
                (library + " -Wl,-Bsymbolic-functions", folder / "libfaiss_ext.so.0"),
                (module, package / "_swigfaiss_ext.so")):
            if run(re.sub(r" -o \S+", f" -o {output}", command, count=1)):
                return "does not link"
        for path in folder.glob("*.o"):
            path.unlink()
        stamp.write_text(key)
        return None

    def run_program(self, name, library, limit):
        """None if it passes, or the first test that fails."""
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive",
                       "LD_LIBRARY_PATH": str(library)}
        try:
            result = subprocess.run(
                [self.build / "tests" / name, "--gtest_fail_fast",
                 "--gtest_brief=1"], env=environment, timeout=limit,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except subprocess.TimeoutExpired:
            return f"{name} (no end)"
        if result.returncode == 0:
            return None
        failed = re.search(rb"\[  FAILED  \] ([^ ,\n]+)", result.stdout)
        return f"{name}: " + (failed.group(1).decode() if failed else
                              f"exit status {result.returncode}")

    def run_python(self, number):
        package = self.folder(number) / "python"
        ignored = [f"--ignore=tests/python/{name}" for name in OTHER_BUILDS]
        result = subprocess.run(
            [self.python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
             "tests/python", *ignored],
            cwd=self.source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_WAIT_POLICY": "passive",
                 "PYTHONPATH": str(package)})
        if result.returncode == 0:
            return None
        failed = re.search(rb"^(?:FAILED|ERROR) (\S+)", result.stdout,
                           re.MULTILINE)
        return failed.group(1).decode() if failed else \
            f"pytest: exit status {result.returncode}"

    def time_programs(self):
        """Runs all without a fault; the short ones will go first."""
        for path in sorted((self.source / "tests").glob("test_*.cpp")):
            begin = time.time()
            failed = self.run_program(path.stem, self.build, 600)
            if failed:
                sys.exit(f"mutants.py: fails without a fault: {failed}")
            self.programs[path.stem] = time.time() - begin
        self.programs = dict(
            sorted(self.programs.items(), key=lambda item: item[1]))

    def notice(self, number, use_python):
        """The first test that notices a fault, or None."""
        for name, seconds in self.programs.items():
            failed = self.run_program(
                name, self.folder(number), 30 + 10 * seconds)
            if failed:
                return failed
        return self.run_python(number) if use_python else None


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder to build in")
    parser.add_argument("--only", nargs="+", type=int, metavar="NUMBER",
                        default=range(len(FAULTS)), help="numbers of faults")
    parser.add_argument("--jobs", type=int, default=2,
                        help="faults at the same time (default: 2)")
    parser.add_argument("--no-python", action="store_true",
                        help="run the C++ tests only")
    parser.add_argument("--list", action="store_true",
                        help="print the faults and exit")
    parser.add_argument("--python", default="/usr/bin/python3",
                        help="Python to build and test with")
    options = parser.parse_args()
    misplaced = list(misplaced_faults())
    if misplaced:
        sys.exit("\n".join(misplaced))
    if options.list or not options.work:
        for i in options.only:
            print(i, *FAULTS[i], sep=" | ")
        print(f"{len(FAULTS)} faults")
        return 0
    options.work.mkdir(parents=True, exist_ok=True)
    mutants = Mutants(options.work.resolve(), options.python)
    mutants.copy_and_build()
    mutants.time_programs()
    lock = threading.Lock()
    missed = []

    def try_fault(number):
        error = mutants.build_fault(number)
        noticed = f"({error})" if error else mutants.notice(
            number, not options.no_python)
        with lock:
            if not noticed:
                missed.append(number)
            name, old, _ = FAULTS[number]
            print(number, name, old.strip().splitlines()[0],
                  noticed or "MISSED", sep=" | ", flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(try_fault, options.only))
    print(f"{len(missed)} of {len(options.only)} faults were missed"
          + (f": {sorted(missed)}" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
