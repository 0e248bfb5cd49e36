# SPDX-License-Identifier: MIT
"""The environment variable FAISS_EXT_SIMD, in processes of their own."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import json, sys
import faiss, faiss_ext
import numpy as np
x = np.random.default_rng(1).random((600, 40), dtype="float32")
found = {"set": faiss_ext.instruction_set()}
for string in ("KFlat(chi2)", "KFlat(js,store=f16)", "AHK128(chi2),AFlat", "SIK128(gaussian),BFlat",
               "HKM1(chi2),PCAR16,KIVF4(nprobe=4),Refine(KFlat(chi2))", "KLSH64(expchi2,p=50),BFlat"):
    index = faiss.index_factory(40, string)
    index.train(x[50:])
    index.add(x[50:])
    found[string] = [a.tolist() for a in index.search(x[:50], 5)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def run(environment):
    def run(**variables):
        result = subprocess.run([sys.executable, "-c", PROGRAM], env={**environment, **variables}, capture_output=True,
                                text=True, check=True)
        return json.loads(result.stdout), result.stderr

    return run


@pytest.fixture(scope="module")
def unknown(run):
    return run(FAISS_EXT_SIMD="AVX9000")


def test_an_unknown_name_has_no_effect_but_a_message(run, unknown):
    found, message = unknown
    names = re.search("AVX9000', expected one of (.*); it has no effect", message)[1].split(", ")
    expected, silence = run(FAISS_EXT_SIMD="")
    assert found == expected and "faiss_ext" not in silence
    assert found["set"] == names[0]  # the best


def test_every_instruction_set_finds_the_same(run, unknown):
    best, message = unknown
    names = re.search("expected one of (.*);", message)[1].split(", ")
    assert len(names) > 1
    for name in names:
        found, message = run(FAISS_EXT_SIMD=name.lower())
        assert found["set"] == name and "faiss_ext" not in message
        for string in set(found) - {"set"}:
            distances, labels = map(np.array, found[string])
            # rounding moves a bit of a code here and there
            assert (labels == best[string][1]).mean() > 0.97, (name, string)
            if string.startswith("KFlat"):
                np.testing.assert_allclose(distances, best[string][0], rtol=1e-5)
        again, _ = run(FAISS_EXT_SIMD=name)
        assert again == found
