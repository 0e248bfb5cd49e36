# SPDX-License-Identifier: MIT
"""Threads of Python, forks and subinterpreters."""

import signal
import threading
import time

import faiss
import faiss_ext
import numpy as np
import pytest

X = np.random.default_rng(1).random((6000, 64), dtype="float32")

FORK = """
import os, sys
import faiss, faiss_ext
import numpy as np
x = np.random.default_rng(1).random((2000, 64), dtype="float32")
faiss.omp_set_num_threads(3)
index = faiss.index_factory(64, sys.argv[1])
if sys.argv[2] == "after":
    index.train(x)
    index.add(x)
    index.search(x, 2)
read, write = os.pipe()
child = os.fork()
if not child:
    if sys.argv[2] == "before":
        index.train(x)
        index.add(x)
    index.train(x)
    index.add(x)
    os.write(write, index.search(x, 2)[1].tobytes())
    os._exit(0)
os.close(write)
with os.fdopen(read, "rb") as pipe:
    found = np.frombuffer(pipe.read(), dtype="int64").reshape(-1, 2)
assert os.waitpid(child, 0)[1] == 0
if sys.argv[2] == "before":
    index.train(x)
    index.add(x)
    index.search(x, 2)
index.add(x)
assert np.array_equal(found, index.search(x, 2)[1])
print("the same")
"""


@pytest.mark.skipif(not hasattr(signal, "alarm"), reason="no fork here")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("string", ["KFlat(chi2)", "AHK64(chi2),BPerm(M=3,B=10)", "KIVF8(nprobe=4)", "HNSW8,KFlat(chi2)"])
def test_a_forked_process_searches(run_python, string, when):
    """OpenMP's threads do not survive a fork: the child would wait for them."""
    assert run_python("import signal; signal.alarm(120)\n" + FORK, string, when) == "the same\n"


DAEMON = """
import sys, threading, time
import faiss, faiss_ext
import numpy as np
x = np.random.default_rng(1).random((20000, 64), dtype="float32")
index = faiss.index_factory(64, "KFlat(chi2)" if sys.argv[1] != "FAISS" else "IVF64,Flat")
index.train(x)
index.add(x)
began = threading.Event()

def step(*args):
    sum(range(20000))

def callback(a, b):
    step()
    return a @ b.T

def work():
    adding = faiss.index_factory(64, "AHK1024(chi2,proj=dense),BFlat")
    while True:
        began.set()
        if sys.argv[1] == "progress":
            with faiss_ext.show_progress(step):
                adding.add(x)
                adding.reset()
        elif sys.argv[1] == "callback":
            faiss_ext.CallbackKernel(callback).gram(x[:3000], x[:3000])
        else:
            index.search(x[:1000], 5)

for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
began.wait()
time.sleep(0.3)
print("the end")
"""


@pytest.mark.parametrize("what", ["search", "progress", "callback", "FAISS"])
def test_a_daemon_thread_in_a_call_when_the_process_ends(run_python, what):
    for _ in range(3):
        # (with more threads, OpenBLAS may wait for one of its own without end)
        assert run_python(DAEMON, what, OPENBLAS_NUM_THREADS="1") == "the end\n"


def test_callbacks_while_the_interpreter_ends(run_python):
    """On the main thread and threads of OpenMP: an error, or the result."""
    run = """
import faiss, faiss_ext
import numpy as np
x = np.ones((3000, 8), dtype="float32")

class Last:
    def __init__(self):
        self.kernel = faiss_ext.CallbackKernel(lambda a, b: a @ b.T)
        self.x = x
        self.print = print
    def __del__(self):
        try:
            self.kernel.gram(self.x, self.x)
        except Exception:
            pass
        self.print("the end")

faiss.last = Last()
"""
    assert run_python(run) == "the end\n"


def test_subinterpreters_are_refused(run_python):
    run = """
try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        print("refused: faiss_ext can be imported in the main interpreter only")
        raise SystemExit
code = "import faiss_ext"
for i in range(2):
    other = interpreters.create()
    try:
        result = interpreters.run_string(other, code)
    except Exception as error:
        result = error
    message = getattr(result, "formatted", None) or str(result)
    print("refused:", message)
    if i == 0:
        import faiss_ext
assert faiss_ext.kernel_factory("chi2")
"""
    lines = [line for line in run_python(run).splitlines() if line.startswith("refused: ")]
    assert lines and all("main interpreter only" in line for line in lines)


@pytest.fixture(scope="module")
def index():
    index = faiss.index_factory(64, "KFlat(chi2)")
    index.add(X)
    return index


def klsh(x):
    faiss.index_factory(64, "KLSH64(chi2,p=400),BFlat").train(x)


CALLS = {
    "search": lambda index, folder: index.search(X[:1500], 3),
    "range search": lambda index, folder: index.range_search(X[:1500], 0.1),
    "train": lambda index, folder: klsh(X),
    "encode": lambda index, folder: faiss_ext.kernel_hash_factory(64, "AHK4096(js)").encode(X),
    "gram": lambda index, folder: faiss_ext.kernel_factory("js").gram(X[:2500], X[:2500]),
    "graph": lambda index, folder: faiss.index_factory(64, "HNSW32,KFlat(js)").add(X),
    "lists": lambda index, folder: faiss.index_factory(64, "KIVF64").train(X),
}


@pytest.mark.parametrize("name", CALLS)
def test_long_calls_let_other_threads_run(index, tmp_path, name):
    steps, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            steps[0] += 1
            time.sleep(0.0001)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        for _ in range(50):
            before = steps[0]
            CALLS[name](index, tmp_path)
            if steps[0] > before + 5:  # one at most, had the call kept the lock
                return
        pytest.fail("another thread stood still during all calls")
    finally:
        stop.set()
        thread.join()


def test_two_threads_search_one_index(index):
    expected = index.search(X[:300], 5)
    found = [None] * 4

    def search(i):
        for _ in range(5):
            found[i] = index.search(X[:300], 5)

    threads = [threading.Thread(target=search, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for distances, labels in found:
        assert np.array_equal(distances, expected[0]) and np.array_equal(labels, expected[1])
