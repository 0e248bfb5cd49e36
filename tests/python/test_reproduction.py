# SPDX-License-Identifier: MIT
"""bench/papers: a quick run of all experiments, whose findings hold; and the measures that they rest on."""

import importlib
import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import ROOT

pytest.importorskip("matplotlib")
stats = pytest.importorskip("scipy.stats")
metrics = pytest.importorskip("sklearn.metrics")

FOLDER = ROOT / "bench" / "papers"
NAMES = ("findings", "measures", "vectors", "kim_choi_bilinear", "kulis_grauman_2012", "m_tree", "sorted_lists", "reproduce")


@pytest.fixture(scope="module")
def papers():
    """The modules of the benchmark, which find each other in their folder."""
    before = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in NAMES})
    sys.path[:] = before[0]
    for name in set(sys.modules) - before[1]:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(ROOT / "bench")):
            del sys.modules[name]


# ---------------------------------------------------------------- measures


def test_true_neighbours_are_within_the_mean_distance_to_the_nth(papers):
    rng = np.random.default_rng(1)
    base, queries = rng.random((400, 3), np.float32), rng.random((30, 3), np.float32)
    distance = np.linalg.norm(queries[:, None].astype(float) - base[None], axis=2)
    radius = np.sort(distance, axis=1)[:, 9].mean()
    truth = papers.measures.radius_truth(base, queries, nth=10)
    assert truth.radius == pytest.approx(radius, rel=1e-5)
    clear = np.abs(distance - radius) > 1e-5
    np.testing.assert_array_equal(truth.true[clear], (distance <= radius)[clear])
    assert not truth.too_many.any()


def test_exact_neighbours_are_kept(papers, tmp_path):
    rng = np.random.default_rng(2)
    base, queries = (papers.vectors.normalised(rng.random((n, 4), np.float32)) for n in (50, 5))
    found = papers.measures.exact_neighbours(tmp_path, "intersection", base, queries, 3)
    values = np.minimum(queries[:, None], base[None]).sum(axis=2)
    np.testing.assert_array_equal(np.take_along_axis(values, found, 1), -np.sort(-values, axis=1)[:, :3])
    (file,) = tmp_path.iterdir()
    np.save(file, found + 1)
    np.testing.assert_array_equal(
        papers.measures.exact_neighbours(tmp_path, "intersection", base, queries, 3), found + 1)
    papers.measures.exact_neighbours(tmp_path, "l2", base, queries, 3)
    assert len(list(tmp_path.iterdir())) == 2


def test_hamming_distances_of_all_pairs(papers):
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 256, (7, 5), np.uint8), rng.integers(0, 256, (40, 5), np.uint8)
    bits = np.unpackbits(a[:, None] ^ b[None], axis=2).sum(axis=2)
    np.testing.assert_array_equal(papers.measures.hamming(a, b), bits)


def test_precision_at_recall_counts_ties_together(papers):
    distances = np.array([[2, 2, 5, 5, 9, 4]])
    true = np.array([[True, False, True, True, False, False]])
    # retrieved: 2 with one hit, 3 with one, 5 with three, 6 with three
    precision = papers.measures.precision_recall(distances, true, [0.2, 1 / 3, 0.5, 1])
    np.testing.assert_allclose(precision, [[1 / 2, 1 / 2, 3 / 5, 3 / 5]] * 2)


def test_precision_is_pooled_and_averaged_over_queries(papers):
    rng = np.random.default_rng(4)
    distances, true = rng.integers(0, 40, (8, 60)), rng.random((8, 60)) < 0.2
    true[3] = False
    assert papers.measures.without_neighbours(true) == 1
    levels = np.array([0.1, 0.35, 0.5, 1])
    pooled, mean = papers.measures.precision_recall(distances, true, levels)

    def precision(t, d):  # scikit-learn's curve falls in recall, the first point that reaches a level is the last one
        precision, recall, _ = metrics.precision_recall_curve(t, -d)
        return [precision[np.flatnonzero(recall >= level - 1e-12)[-1]] for level in levels]

    np.testing.assert_allclose(pooled, precision(true.ravel(), distances.ravel()))
    kept = [i for i in range(8) if i != 3]
    np.testing.assert_allclose(mean, np.mean([precision(true[i], distances[i]) for i in kept], axis=0))


def test_recall_at_ranks(papers):
    found = [[3, 1, 2], [5, 6, 7], [4, 9, 8]]
    recall = papers.measures.recall_at(found, [[3], [7], [0]], [1, 2, 3])
    np.testing.assert_allclose(recall, [1 / 3, 1 / 3, 2 / 3])


# ---------------------------------------------------------------- findings


def test_clearly_above_is_a_t_test_of_pairs(papers):
    above = papers.findings.clearly_above
    rng = np.random.default_rng(5)
    for shift in np.linspace(-1, 3, 9):
        a, b = rng.normal(shift, size=6), rng.normal(size=6)
        assert above(a, b) == (stats.ttest_rel(a, b, alternative="greater").pvalue < 0.01)
    assert above([2, 2, 2], 1) and not above([1, 1, 1], 1)
    with pytest.raises(ValueError, match="at least two"):
        above([1], 0)


def verdicts(findings):
    return [f.verdict.value for f in findings]


def test_a_statement_holds_fails_or_stays_undecided(papers):
    tested = papers.findings.tested
    low, high, wide = [0.0, 0.1, 0.2, 0.1], [1.0, 1.1, 1.3, 1.1], [-3.0, 4.0, -2.0, 3.0]
    made = [tested("", "", [pair], "of the data") for pair in ((high, low), (low, high), (wide, low), (low, low))]
    assert verdicts(made) == ["holds", "does not hold", "undecided", "does not hold"]
    assert [f.because for f in made[:2]] == ["", "of the data"]
    assert "4 repeats are too few" in made[2].because
    # the test must show the statement for all pairs, or the opposite for one
    assert verdicts([tested("", "", [(high, low), (wide, low)]), tested("", "", [(high, low), (low, high)])]) == \
        ["undecided", "does not hold"]


def test_the_level_is_divided_among_pairs_that_could_refute(papers):
    rng = np.random.default_rng(6)
    refuted = [
        papers.findings.tested("", "", list(rng.normal(size=(20, 2, 5)))).verdict.value == "does not hold" for _ in range(300)
    ]
    assert np.mean(refuted) < 0.04  # with an undivided level 1 - 0.99**20, 0.18


def test_the_detectable_difference_is_detected_as_often_as_said(papers):
    findings = papers.findings
    rng = np.random.default_rng(7)
    for repeats in (5, 20):
        shift = findings.detectable_deviations(repeats)
        draws = rng.normal(shift, size=(4000, repeats))
        detected = stats.ttest_1samp(draws, 0, axis=1, alternative="greater").pvalue < 1 - findings.LEVEL
        assert detected.mean() == pytest.approx(findings.POWER, abs=4 * np.sqrt(0.09 / 4000))


def test_a_two_sided_test_detects_a_difference_of_either_sign_as_often_as_said(papers):
    findings = papers.findings
    rng = np.random.default_rng(8)
    noise = rng.normal(size=(1000, 20))
    sizes = [findings.two_sided_test([(d, 0.0), (-d, 0.0)])[1] / d.std(ddof=1) for d in noise[:10]]
    assert np.ptp(sizes) < 1e-9
    for sign in (1, -1):
        others = rng.normal(size=noise.shape)
        shown = [findings.two_sided_test([(d + sign * sizes[0], 0.0), (e, 0.0)])[0] for d, e in zip(noise, others)]
        assert np.mean(shown) == pytest.approx(findings.POWER, abs=4 * np.sqrt(0.09 / 1000))


def test_theory_has_no_stand_ins_and_checks_are_not_statements(papers):
    report, finding = papers.reproduce.report, papers.findings.computed("", "", True)
    made = [finding._replace(stand_in="digits", **more) for more in ({}, {"for_any_data": True}, {"check": True})]
    assert [report.data_of(f) for f in made] == ["stand-in: digits", "any data", "stand-in: digits"]
    assert report.counts(made) == ["2 (1)", "0 (0)", "0 (0)", "1 of 1"]


def test_equality_can_be_refuted_and_a_check_can_pass(papers):
    findings = papers.findings
    values = np.array([1.0, 1.1, 0.9, 1.05, 0.95])
    equal, refuted = (findings.unchanged("", "", [(v, 1)], "of the data", " %") for v in (values, values + 1))
    assert verdicts([equal, refuted]) == ["undecided", "does not hold"]
    assert re.search(r"refute equality but not show it.* difference of \S+ % ", equal.because) and refuted.because == "of the data"
    assert verdicts([findings.agrees("", "", values, 1), findings.agrees("", "", values, 2)]) == ["holds", "does not hold"]


def test_a_comparison_is_paired(papers):
    rng = np.random.default_rng(8)
    paper = rng.normal(size=6)
    ours = paper + rng.normal(1, 0.1, size=6)
    found = papers.findings.compared("recall", "A", "B", list(zip(paper, ours)))
    low, high = stats.t.interval(0.98, 5, np.mean(ours - paper), stats.sem(ours - paper))
    numbers = [float(n) for n in re.findall(r"[-+.\de]+", found.difference)]
    np.testing.assert_allclose(numbers, [np.mean(ours - paper), low, high], rtol=6e-3)
    assert found[:4] == ("recall", "A", "B", papers.findings.text(paper))


# ------------------------------------------------------------ bilinear projections


def test_products_of_bits_that_share_a_projection(papers):
    rng = np.random.default_rng(11)
    group, centred = rng.integers(0, 4, 20), rng.normal(size=(3, 20))
    sums, count = papers.kim_choi_bilinear.products_within(group, centred)
    pairs = [(i, j) for i in range(20) for j in range(20) if i != j and group[i] == group[j]]
    assert count == len(pairs)
    np.testing.assert_allclose(sums, [sum(row[i] * row[j] for i, j in pairs) for row in centred])


def test_what_goes_to_zero(papers):
    goes_to_zero, steps = papers.kim_choi_bilinear.goes_to_zero, np.arange(4)
    assert all(goes_to_zero(0.3 * 10.0 ** (-power * steps)) for power in (0.5, 1, 2))
    assert not goes_to_zero(0.1 + 0.3 * 10.0**-steps)  # goes to 0.1
    assert not goes_to_zero(0.1 - 0.01 * 10.0**-steps)  # rises
    assert not goes_to_zero(1 / (1 + steps))  # too slow to be seen from four values


# ------------------------------------------------------------ searches


def test_the_m_tree_finds_the_nearest_and_its_balls_hold_their_objects(papers):
    rng = np.random.default_rng(9)
    x, queries = rng.random((700, 3)), rng.random((30, 3))
    distances, to_queries = (np.linalg.norm(a[:, None] - x, axis=2) for a in (x, queries))
    for keys in papers.m_tree.VARIANTS.values():
        tree = papers.m_tree.MTree(distances, rng=np.random.default_rng(1), **keys)
        leaves = []

        def visit(node, centre, leaves=leaves):
            assert 1 <= len(node) <= papers.m_tree.CAPACITY
            count = len(node)
            for e in node:
                if centre is not None:
                    assert e.to_parent == distances[e.centre, centre]
                if e.node is None:
                    leaves.append(e.centre)
                else:
                    objects = below(e.node)
                    assert distances[e.centre, objects].max() <= e.radius + 1e-12
                    count += visit(e.node, e.centre)
            return count

        def below(node):
            return [o for e in node for o in ([e.centre] if e.node is None else below(e.node))]

        entries = visit(tree.root, None)
        assert sorted(leaves) == list(range(len(x)))
        for row in to_queries:
            found = tree.search(row)
            assert row[found.nearest] == row.min()
            assert found.distances < entries / 2  # in three dimensions balls exclude a lot
            assert found.objects <= min(found.distances, len(x))


def test_true_pairs_among_the_nearest(papers):
    share = papers.kulis_grauman_2012.share_of_nearest
    distances, true = np.array([[0, 1, 1, 5]]), np.array([[True, True, False, False]])
    np.testing.assert_allclose([share(distances, true, n) for n in range(5)], [np.nan, 1, 1.5 / 2, 2 / 3, 1 / 2])


def test_planted_codes_are_at_their_distances(papers):
    codes, query = papers.sorted_lists.planted(50, 7, 15, np.random.default_rng(10))
    np.testing.assert_array_equal(papers.measures.hamming(query, codes)[0], [7] + 49 * [15])


def test_the_rare_vector_is_orthogonal_to_the_first_components(papers):
    counts = np.append(np.full(20, 199), 20)
    points = np.repeat(np.eye(21), counts, axis=0)
    values, vectors = papers.reproduce.kpca_bounds.spectrum(counts / counts.sum())
    covariance = np.cov(points.T, bias=True)
    np.testing.assert_allclose(covariance @ vectors, vectors * values, atol=1e-12)
    assert (np.diff(values) < 1e-12).all()
    lengths = np.linalg.norm(vectors[:, : papers.reproduce.kpca_bounds.COMPONENTS], axis=1)
    np.testing.assert_allclose(lengths, [*np.full(20, np.sqrt(19 / 20)), 0], atol=1e-6)


# ------------------------------------------------------------ the quick run


# one of each paper; scripts/nightly.sh runs all
FEW = ["001-fig1", "002-fig2a", "003-fig2", "004-fig2", "005-fig7"]
RUNS_ALL = os.environ.get("FAISS_EXT_ALL_EXPERIMENTS") == "1"


def test_findings_hold_in_a_quick_run(environment, tmp_path):
    def reproduce(*arguments):
        command = [sys.executable, FOLDER / "reproduce.py", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    listed = [line.split()[0] for line in reproduce("--list").splitlines()]
    assert {name[:3] for name in listed} == {"001", "002", "003", "004", "005"}
    names = listed if RUNS_ALL else FEW
    assert set(names) <= set(listed)
    reproduce("--quick", "--docs", tmp_path, *[word for name in names for word in ("--only", name)])
    out = tmp_path / "reproduction"
    page = (tmp_path / "reproduction.md").read_text()
    assert len(listed) == len(set(listed)) and len(re.findall(r"\n### \d", page)) == len(names)
    assert ("Not run yet" in page) == (len(names) < len(listed))
    assert page.count("\nHere: small settings") == len(names)
    assert not re.search(r"\| does not hold \|$", page, re.MULTILINE)  # without any reason
    assert all((tmp_path / picture).exists() for picture in re.findall(r"\]\((\S+\.png)\)", page))
    failed = []
    for name in names:
        assert f"\n### {name}: " in page
        record = json.loads((out / f"{name}.json").read_text())
        findings = record["findings"]
        assert findings or record["comparisons"]
        assert (out / f"{name}.csv").exists(), name
        failed += [f"{name}: {f['claim']}; here: {f['here']}" for f in findings if f["in_quick_runs"] and f["verdict"] != "holds"]
        assert all(f["because"] for f in findings if f["verdict"] == "undecided")
    assert not failed, "\n".join(failed)
    assert page.index("## Summary") < page.index(f"### {names[0]}")
    counted = re.findall(r"\| (\d+) \(\d+\) \| (\d+) \(\d+\) \| (\d+) \(\d+\) \| \d+ of (\d+) \|", page)
    written = [json.loads((out / f"{name}.json").read_text())["findings"] for name in names]
    assert np.array(counted, int).sum() == sum(map(len, written))


def test_defaults_stand_beside_the_papers_forms(papers, tmp_path):
    papers.reproduce.main(["--quick", "--only", "004-defaults", "--docs", str(tmp_path)])
    page = (tmp_path / "reproduction.md").read_text()
    table = page[page.index("## The papers' form") : page.index("## Summary")]
    row = re.search(r"\| 004-defaults \| .*\| `(BSIK.*?)` \| `(BSIK.*?)` \| (\S+) ± \S+ \| (\S+) ± \S+ \| (\S+) \[", table)
    assert "w=dense" in row[1] and "w=dense" not in row[2]
    assert float(row[5]) == pytest.approx(float(row[4]) - float(row[3]), abs=2e-3)
    assert "table at the top" in page[page.index("### 004-defaults") :]


def test_what_belongs_together(papers, capsys, tmp_path):
    """Interrupted runs go on where they stopped, but results of other settings are not mixed with these."""
    def run(*arguments, fails=None):
        if fails:
            with pytest.raises(SystemExit) as stopped:
                papers.reproduce.main([*map(str, arguments)])
            assert fails in capsys.readouterr().err + str(stopped.value)
        else:
            papers.reproduce.main([*map(str, arguments)])
        return capsys.readouterr().out

    docs, out, name = tmp_path / "docs", tmp_path / "docs" / "reproduction", "004-fig3"
    quick = ("--quick", "--only", name, "--resume", "--docs", docs)
    assert f"{name}: " in run(*quick)
    assert f"{name}: " not in run(*quick)
    record = json.loads((out / f"{name}.json").read_text())
    record["settings"]["run"] = "the full run"
    (out / f"{name}.json").write_text(json.dumps(record))
    run("--quick", "--only", "004-fig4", "--docs", docs)
    page = (docs / "reproduction.md").read_text()
    assert "### 004-fig3" not in page and "### 004-fig4" in page
    assert name in page[page.index("Not run yet: ") :].splitlines()[0]
    assert f"{name}: " in run(*quick)
    assert not list(out.glob("*.part"))

    (tmp_path / "a file").touch()
    run("--data", tmp_path, "--out", out, fails="no set of images")
    run("--data", tmp_path / "nowhere", "--out", out, fails="no such folder")
    run("--out", tmp_path / "a file" / "below", fails="a file")
    run("--out", out, "--docs", docs, fails="--docs keeps the results")
    run("--only", "", fails="unknown experiment ''")
    run("--only", "006", fails="unknown experiment '006'; --list")
