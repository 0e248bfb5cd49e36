# SPDX-License-Identifier: MIT
"""Files of fingerprints: chemfp's .fps, SMILES by RDKit, packed bits of NumPy."""

import gzip

import faiss_ext
import numpy as np
import pytest
from faiss_ext import molecules, Fingerprints, fingerprint_batches, read_fingerprints, write_fps
from faiss_ext.vector_files import VectorFileError
from hypothesis import given, settings, strategies as st

# of chemfp's specification of the format
MACCS = """#FPS1
#num_bits=166
#type=RDKit-MACCS166/2
#software=RDKit/2018.03.1 chemfp/3.2.1
#date=2018-05-15T15:18:48
000000003000000001d414d91323915380f138ea1f\t58-08-2
00000000000000000002000000000404001410d61e\t15687-27-1
"""
MOLECULES = """CCO ethanol
c1ccccc1\tbenzene ring
CC(=O)Oc1ccccc1C(=O)O
  CCN   ethylamine\x20
"""


@pytest.fixture
def write(tmp_path):
    """Writes text or bytes to a file in an empty folder, compressed if its name ends in .gz; returns its path."""
    def function(name, data):
        path = tmp_path / name
        data = data.encode() if isinstance(data, str) else data
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path
    return function


def bits_of(digits):
    """The bits of hex digits in an .fps file: in each byte, the first bit is the lowest."""
    return [byte >> j & 1 for byte in bytes.fromhex(digits) for j in range(8)]


def check(read, codes, names, bits, type=None):
    """codes: in hex digits, as in an .fps file"""
    assert isinstance(read, Fingerprints) and read.codes.dtype == np.uint8 and read.codes.shape == (len(codes), -(-bits // 8))
    assert np.array_equal(read.codes, np.packbits([bits_of(code) for code in codes], axis=1))
    assert (read.names, read.bits, read.type) == (names, bits, type)


@pytest.mark.parametrize("name", ["a.fps", "a.fps.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_of_chemfp(write, name, end):
    codes = ["000000003000000001d414d91323915380f138ea1f", "00000000000000000002000000000404001410d61e"]
    path = write(name, MACCS.replace("\n", end))
    check(read_fingerprints(path), codes, ["58-08-2", "15687-27-1"], 166, "RDKit-MACCS166/2")
    check(read_fingerprints(str(path), "maccs"), codes, ["58-08-2", "15687-27-1"], 166, "maccs")
    with pytest.raises(VectorFileError, match="of 166 bits, but morgan2:2048 has 2,048"):
        read_fingerprints(path, "morgan2:2048")


def test_without_a_header_and_with_more_columns(write):
    path = write("a.fps", "DEADbeef\ta b\nDEADdead\ta b\textra\tcolumns\n0f0000a4\tlast")
    check(read_fingerprints(path), ["deadbeef", "deaddead", "0f0000a4"], ["a b", "a b", "last"], 32)


@pytest.mark.parametrize("lines, message", [
    ("ff00\ta\nff00\n", "line 4: expected hex digits, a tab and a name, got no tab"), ("ff00\ta\nff00\t\n", "line 4: .*got no name"),
    ("ff00\ta\nff00\t\tb\n", "line 4: .*got no name"), ("ff00\ta\n\nff00\tb\n", "line 4: it is empty"),
    ("ff00\ta\nff0\tb\n", "line 4: expected pairs of hex digits, got 'ff0'"), ("ff00\ta\nfg00\tb\n", "line 4: expected pairs of hex digits, got 'fg00'"),
    ("ff00\ta\nff\tb\n", "line 4: expected 4 hex digits for 12 bits, got 2"), ("ff00\ta\nff0000\tb\n", "line 4: expected 4 hex digits for 12 bits, got 6"),
    ("ff00\ta\nff10\tb\n", "line 4: a bit beyond the 12 bits is set"), (b"ff00\ta\nff00\t\xff\n", "line 4: the name is not in UTF-8"),
    ("ff00\ta\n#type=b\n", "line 4: expected hex digits"), ("\tb\n", "line 3: .*got no hex digits")])
def test_lines_with_errors(write, lines, message):
    lines = lines if isinstance(lines, bytes) else lines.encode()
    path = write("a.fps", b"#FPS1\n#num_bits=12\n" + lines + b"ff0f\tend\n")
    with pytest.raises(VectorFileError, match=f"^{path}: {message}"):
        read_fingerprints(path)
    read = read_fingerprints(path, skip_errors=True)
    assert read.names == [name for name in ("a", "b", "end") if name.encode() in lines + b"end" and (name != "b" or b"\n\n" in lines)]
    assert len(read.codes) == len(read.names) and len(read.skipped) == 1
    assert read.skipped[0].startswith(f"{path}: line ")


@pytest.mark.parametrize("name", ["a.fps", "a.fps.gz"])
@pytest.mark.parametrize("bits", [12, 16])
def test_a_header_alone_tells_of_no_fingerprints(tmp_path, name, bits):
    write_fps(tmp_path / name, np.empty((0, 2), "uint8"), [], bits, type="morgan2:" + str(bits))
    read = read_fingerprints(tmp_path / name)
    assert read.codes.shape == (0, 2) and read.codes.dtype == np.uint8
    assert (read.names, read.bits, read.type, read.skipped) == ([], bits, f"morgan2:{bits}", [])


def test_a_first_line_without_digits_does_not_tell_the_number_of_bits(write):
    path = write("a.fps", "#FPS1\n\tname\nff00\ta\n")
    with pytest.raises(VectorFileError, match="a.fps: line 2: expected hex digits, a tab and a name, got no hex digits"):
        read_fingerprints(path)
    read = read_fingerprints(path, skip_errors=True)
    check(read, ["ff00"], ["a"], 16)
    assert len(read.skipped) == 1


@pytest.mark.parametrize("name, data, message", [
    ("a.fps", "", "it has no fingerprints"), ("a.fps", "#FPS1\n", "it has no fingerprints"),
    ("a.fps", "#num_bits=eight\nff\ta\n", "line 1: num_bits is 'eight', expected a number from 1"), ("a.fps", "#num_bits=0\nff\ta\n", "line 1: num_bits is '0'"),
    ("a.fps", "x\ta\n", "line 1: expected pairs"), ("a.fps.gz", b"", "no fingerprints"), ("a.txt", "ff\ta", "unknown kind of file of fingerprints"),
    ("gone.fps", None, "cannot be read: No such file")])
def test_files_without_fingerprints(write, tmp_path, name, data, message):
    path = tmp_path / name if data is None else write(name, data)
    for skip in (False, True):
        if skip and name == "a.fps" and data.startswith("x"):
            message = "it has no fingerprints: .*line 1"
        with pytest.raises(VectorFileError, match=message) as error:
            read_fingerprints(path, skip_errors=skip)
        assert str(error.value).startswith(str(path))


def test_a_truncated_or_damaged_gz(write, tmp_path):
    data = write("a.fps.gz", MACCS).read_bytes()
    for cut in range(len(data)):
        (tmp_path / "a.fps.gz").write_bytes(data[:cut])
        with pytest.raises(VectorFileError, match="a.fps.gz: "):
            read_fingerprints(tmp_path / "a.fps.gz", skip_errors=True)


@pytest.mark.parametrize("name", ["a.fps", "a.fps.gz"])
@pytest.mark.parametrize("header, bits", [("", 16), ("#FPS1\n", 16), ("#FPS1\r\n#num_bits=13\n", 13)])
def test_a_mark_and_empty_lines_around_fingerprints(write, name, header, bits):
    check(read_fingerprints(write(name, f"\ufeff{header}ff00\ta\n0f00\tb\n\n\r\n \n")), ["ff00", "0f00"], ["a", "b"], bits)
    for number, gap in enumerate(("\n", "\n\n"), 1):
        with pytest.raises(VectorFileError, match="line [234]: it is empty"):
            read_fingerprints(write(name, f"{header}ff00\ta\n{gap}0f00\tb\n"))
        read = read_fingerprints(write(name, f"{header}ff00\ta\n{gap}0f00\tb\n"), skip_errors=True)
        assert read.names == ["a", "b"] and len(read.skipped) == number


@pytest.mark.parametrize("first", ["#FPS2", "#FPS10", "#FPS"])
def test_other_versions_of_the_format(write, first):
    for skip in (False, True):
        with pytest.raises(VectorFileError, match=f"a.fps: line 1: unknown version of the format, expected #FPS1, got '{first}'"):
            read_fingerprints(write("a.fps", first + "\nff\ta\n"), skip_errors=skip)


def test_files_are_read_in_batches(write):
    path = write("a.fps", "#type=mine\n" + "".join(f"{i:04x}\tn{i}\n" for i in range(25)) + "x\ty\n")
    batches = list(fingerprint_batches(path, skip_errors=True, batch=10))
    assert [len(b.codes) for b in batches] == [10, 10, 5] and [len(b.skipped) for b in batches] == [0, 0, 1]
    assert sum((b.names for b in batches), []) == [f"n{i}" for i in range(25)] and {b.type for b in batches} == {"mine"}
    first = next(fingerprint_batches(path, batch=10))  # the error is in a later one
    assert len(first.codes) == 10
    for batch, error in ((0, ValueError), (2.5, TypeError)):
        with pytest.raises(error, match="fingerprint_batches: batch"):
            fingerprint_batches(path, batch=batch)
    with pytest.raises(TypeError, match="fingerprint must be a str"):
        read_fingerprints(path, 2048)


FPS_NAMES = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\t\r\n"), min_size=1, max_size=8)


def test_bits_are_in_the_order_of_packbits(write, tmp_path):
    """Bit 0 is the lowest bit of the first byte in the file, and the highest in the code."""
    read = read_fingerprints(write("a.fps", "#num_bits=13\n0100\tfirst\n0010\tlast\n8001\tmiddle\n"))
    expected = np.zeros((3, 13), bool)
    expected[[0, 1, 2, 2], [0, 12, 7, 8]] = True
    assert np.array_equal(read.codes, np.packbits(expected, axis=1)) and read.codes.tolist() == [[0x80, 0], [0, 0x08], [0x01, 0x80]]
    write_fps(tmp_path / "b.fps", read.codes, read.names, 13)
    assert (tmp_path / "b.fps").read_text().endswith("\n0100\tfirst\n0010\tlast\n8001\tmiddle\n")


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 70).flatmap(lambda bits: st.tuples(st.just(bits), st.lists(st.tuples(st.integers(0, 2**bits - 1), FPS_NAMES), min_size=1, max_size=6))),
       st.sampled_from([None, "mine a=1"]), st.sampled_from(["any.fps", "any.fps.gz"]), st.integers(1, 4))
def test_any_fingerprints_are_read_as_written(tmp_path_factory, content, type, name, batch):
    bits, pairs = content
    path = tmp_path_factory.getbasetemp() / name
    codes = np.packbits([[code >> j & 1 for j in range(bits)] for code, _ in pairs], axis=1)
    names = [name for _, name in pairs]
    write_fps(path, codes, names, bits, type)
    text = (gzip.open if name.endswith(".gz") else open)(path, "rb").read().decode()
    assert text.startswith(f"#FPS1\n#num_bits={bits}\n")
    digits = [code.to_bytes(-(-bits // 8), "little").hex() for code, _ in pairs]
    assert text.split("\n")[-len(pairs) - 1:-1] == [f"{code}\t{name}" for code, name in zip(digits, names)]
    check(read_fingerprints(path), digits, names, bits, type)
    parts = list(fingerprint_batches(path, batch=batch))
    assert np.array_equal(np.concatenate([part.codes for part in parts]), codes) and sum((part.names for part in parts), []) == names


@pytest.mark.parametrize("arguments, error, message", [
    ((np.zeros((2, 2), "uint8"), ["a"]), ValueError, "1 name for 2 fingerprints"), ((np.zeros((1, 2), "uint8"), ["a"], 17), ValueError, "bits is 17, expected from 9 to 16"),
    ((np.zeros((1, 2), "uint8"), ["a"], 8), ValueError, "bits is 8"), ((np.array([[0, 0], [0, 2]], "uint8"), ["a", "b"], 14), ValueError, "beyond the 14 bits is set in fingerprint 1"),
    ((np.zeros((1, 2)), ["a"]), TypeError, "expected codes"), ((np.zeros(2, "uint8"), ["a", "b"]), ValueError, "expected codes of shape"),
    ((np.zeros((1, 2), "uint8"), ["a\tb"]), ValueError, "a name is"), ((np.zeros((1, 2), "uint8"), ["a\nb"]), ValueError, "a name is"),
    ((np.zeros((1, 2), "uint8"), [""]), ValueError, "a name is ''"), ((np.zeros((1, 2), "uint8"), [3]), TypeError, "a name must be a str"),
    ((np.zeros((1, 2), "uint8"), ["a"], None, "x\ny"), ValueError, "the type is")])
def test_errors_of_writing_leave_the_file(tmp_path, arguments, error, message):
    path = tmp_path / "old.fps"
    path.write_bytes(b"old")
    with pytest.raises(error, match=f"write_fps: .*{message}"):
        write_fps(path, *arguments)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match="expected a file named .fps or .fps.gz"):
        write_fps(tmp_path / "x.txt", np.zeros((1, 2), "uint8"), ["a"])


@pytest.mark.parametrize("names", [None, ["a", "b", "é"], np.array([b"a", b"b", "é".encode()])])
def test_packed_bits_of_numpy(tmp_path, names):
    codes = np.arange(12, dtype="uint8").reshape(3, 4)
    np.save(tmp_path / "a.npy", codes)
    np.savez(tmp_path / "a.npz", anything=codes, **({} if names is None else {"names": names}))
    for read, names, type in ((read_fingerprints(tmp_path / "a.npy"), None, None),
                              (read_fingerprints(tmp_path / "a.npz", "morgan2:32"), None if names is None else ["a", "b", "é"], "morgan2:32")):
        assert np.array_equal(read.codes, codes) and (read.names, read.bits, read.type) == (names, 32, type)
    assert [len(part.codes) for part in fingerprint_batches(tmp_path / "a.npz", batch=2)] == [2, 1]


@pytest.mark.parametrize("arrays, message", [
    ({"x": np.zeros((2, 2))}, "array of float64"), ({"x": np.zeros((2, 2), "uint8"), "names": ["a"]}, "1 name for 2 fingerprints"),
    ({"x": np.zeros((2, 2), "uint8"), "names": [1, 2]}, "expected strings in the array 'names', got int64"),
    ({"x": np.zeros(2, "uint8")}, "no array of two dimensions"), ({"x": np.zeros((0, 2), "uint8")}, "it has no fingerprints")])
def test_arrays_that_are_no_fingerprints(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(VectorFileError, match=f"a.npz: .*{message}"):
        read_fingerprints(tmp_path / "a.npz")


def test_one_of_several_arrays(tmp_path):
    codes = np.arange(12, dtype="uint8").reshape(3, 4)
    path = tmp_path / "a.npz"
    np.savez(path, x=codes, y=codes[:2, :3])
    for name, expected in (("x", codes), ("y", codes[:2, :3])):
        assert np.array_equal(read_fingerprints(path, part=name).codes, expected)
        assert np.array_equal(next(fingerprint_batches(path, part=name, batch=1)).codes, expected[:1])
    for part, message in ((None, "which array of two dimensions. It has x, y"), ("z", "no array of two dimensions 'z' in it; it has x, y")):
        with pytest.raises(VectorFileError, match=message):
            read_fingerprints(path, part=part)
    np.save(tmp_path / "a.npy", codes)
    with pytest.raises(ValueError, match="^part: .*a.npy has no arrays with names, only .npz files have some"):
        read_fingerprints(tmp_path / "a.npy", part="x")
    with pytest.raises(TypeError, match="part must be a str"):
        read_fingerprints(path, part=1)


# ------------------------------------------------------------ molecules

@pytest.mark.parametrize("name", ["a.smi", "a.smiles", "a.smi.gz"])
def test_names_of_molecules(write, name):
    pytest.importorskip("rdkit")
    read = read_fingerprints(write(name, MOLECULES))
    assert read.names == ["ethanol", "benzene ring", "CC(=O)Oc1ccccc1C(=O)O", "ethylamine"]
    assert read.codes.shape == (4, 256) and read.bits == 2048 and read.type == "morgan2:2048"


@pytest.mark.parametrize("fingerprint, of_chem", [
    ("morgan2:2048", lambda m, c: c.AllChem.GetMorganFingerprintAsBitVect(m, 2, 2048)),
    ("morgan3:1024", lambda m, c: c.AllChem.GetMorganFingerprintAsBitVect(m, 3, 1024)),
    ("featmorgan2:2048", lambda m, c: c.AllChem.GetMorganFingerprintAsBitVect(m, 2, 2048, useFeatures=True)),
    ("featmorgan3:512", lambda m, c: c.AllChem.GetMorganFingerprintAsBitVect(m, 3, 512, useFeatures=True)),
    ("avalon:512", lambda m, c: c.pyAvalonTools.GetAvalonFP(c.MolToSmiles(m), True)),
    ("rdkit:2048", lambda m, c: c.RDKFingerprint(m)), ("rdkit:100", lambda m, c: c.RDKFingerprint(m, fpSize=100)),
    ("atompair:2048", lambda m, c: c.rdMolDescriptors.GetHashedAtomPairFingerprintAsBitVect(m, 2048)),
    ("torsion:2048", lambda m, c: c.rdMolDescriptors.GetHashedTopologicalTorsionFingerprintAsBitVect(m, 2048)),
    ("maccs", lambda m, c: c.rdMolDescriptors.GetMACCSKeysFingerprint(m))])
def test_bits_are_those_of_rdkits_functions(write, fingerprint, of_chem):
    """The functions before generators; MACCS key k is bit k - 1."""
    Chem = pytest.importorskip("rdkit.Chem")
    import rdkit.Chem.AllChem
    import rdkit.Chem.rdMolDescriptors
    Chem.pyAvalonTools = pytest.importorskip("rdkit.Avalon.pyAvalonTools")
    path = write("a.smi", MOLECULES)
    read = read_fingerprints(path, fingerprint)
    first = 1 if fingerprint == "maccs" else 0
    assert read.bits == (166 if first else int(fingerprint.split(":")[1])) and read.type == fingerprint
    found = np.unpackbits(read.codes, axis=1)
    for row, line in zip(found, MOLECULES.splitlines()):
        expected = list(of_chem(Chem.MolFromSmiles(line.split()[0]), Chem))
        assert row[:read.bits].tolist() == expected[first:] and not row[read.bits:].any()
        assert fingerprint == "torsion:2048" or any(expected)


@pytest.mark.parametrize("line, name", [
    ("CCO\tone\t12.5", "one"), ("CCO\tone two\t12.5\tx", "one two"), ("CCO one two", "one two"), ("CCO one\t12.5", "one"), ("CCO \t one \t2", "one"),
    ("CCO |$;;x$| one", "one"), ("CCO |(1,2,3;4,5,6)|\tone two\tx", "one two"), ("CCO\t|$;;x$|\tone", "one"), ("CCO |c:1,r|", "CCO"), ("CCO |a b|  one", "one"),
    ("CCO |one", "|one"), ("CCO |a|b", "|a|b"), ("CCO one |a|", "one |a|"), ("CCO\t\t12.5", "CCO"), ("CCO\t", "CCO"), ("  CCO  one  ", "one"), ("CCO", "CCO")])
def test_columns_of_molecules(write, line, name):
    pytest.importorskip("rdkit")
    for end in ("", "\n", "\r\n"):
        assert read_fingerprints(write("a.smi", line + end), "morgan2:64").names == [name]


def test_a_mark_and_empty_lines_around_molecules(write):
    pytest.importorskip("rdkit")
    read = read_fingerprints(write("a.smi", "\ufeffCCO one\nCCN two\n\n \t\n\r\n"), "morgan2:64")
    assert read.names == ["one", "two"] and read.skipped == []
    with pytest.raises(VectorFileError, match="a.smi: line 2: it is empty"):
        read_fingerprints(write("a.smi", "CCO one\n\nCCN two\n"), "morgan2:64")


@pytest.mark.parametrize("titles", ["SMILES Name \n", "smiles\tID\tx\n", "SMILES\r\n", "\ufeffSMILES Name\n", "Smiles\tid\n"])
def test_titles_of_columns(write, titles):
    pytest.importorskip("rdkit")
    read = read_fingerprints(write("a.smi", titles + "CCO one\nCCN two\nSMILES three\n"), "morgan2:64", skip_errors=True)
    assert read.names == ["one", "two"] and [message.split(": ")[1] for message in read.skipped] == ["line 4"]  # numbers are those of the file
    with pytest.raises(VectorFileError, match="a.smi: it has no fingerprints"):
        read_fingerprints(write("a.smi", titles))


def test_files_that_rdkit_writes(tmp_path):
    Chem = pytest.importorskip("rdkit.Chem")
    molecules = [Chem.MolFromSmiles(smiles) for smiles in ("CCO", "c1ccccc1")]
    for molecule, name in zip(molecules, ("ethanol", "benzene")):
        molecule.SetProp("_Name", name)
        molecule.SetProp("key", f" {name[0]} 1")
    for kind, Writer in (("smi", Chem.SmilesWriter), ("sdf", Chem.SDWriter)):
        with Writer(str(tmp_path / f"a.{kind}")) as writer:
            for molecule in molecules:
                writer.write(molecule)
    smi, sdf = (read_fingerprints(tmp_path / f"a.{kind}", "atompair:256") for kind in ("smi", "sdf"))
    assert smi.names == sdf.names == ["ethanol", "benzene"] and np.array_equal(smi.codes, sdf.codes) and smi[2:] == sdf[2:] == (256, "atompair:256", [])
    assert read_fingerprints(tmp_path / "a.sdf", name_property="key").names == ["e 1", "b 1"]
    with pytest.raises(VectorFileError, match="a.sdf: record 1: it has no property 'other', which has the name"):
        read_fingerprints(tmp_path / "a.sdf", name_property="other")
    with pytest.raises(ValueError, match="name_property: .*a.smi has no properties, only .sdf files have some"):
        read_fingerprints(tmp_path / "a.smi", name_property="key")
    with pytest.raises(TypeError, match="name_property must be a str"):
        read_fingerprints(tmp_path / "a.sdf", name_property=3)


def records_of(names, **properties):
    """Records of an SDF file, whose molecules are chains of carbon."""
    Chem = pytest.importorskip("rdkit.Chem")
    records = []
    for i, name in enumerate(names):
        molecule = Chem.MolFromSmiles("C" * (i + 2))
        molecule.SetProp("_Name", name)
        records.append(Chem.MolToMolBlock(molecule).encode() + b"".join(
            f">  <{key}>\n{values[i]}\n\n".encode() for key, values in properties.items() if values[i]) + b"$$$$\n")
    return records


def test_records_with_errors(write, capfd):
    good = records_of(["a", "", "c"], key=["k1", "two\nlines", ""])
    assert read_fingerprints(write("a.sdf", b"".join(good))).names == ["a", "CCC", "c"]
    records = [good[0], b"junk\n\n\nnonsense\nM  END\n$$$$\n", good[2].replace(b"c\n", b"\xff\n", 1), good[2].replace(b" C  ", b" Xx ", 1), good[2]]
    for name, end in (("a.sdf", b""), ("a.sdf.gz", b"\n\n"), ("a.sdf", b" \n")):
        path = write(name, b"".join(records) + end)
        with pytest.raises(VectorFileError, match=f"^{path}: record 2: invalid molecule$"):
            read_fingerprints(path)
        read = read_fingerprints(path, skip_errors=True)
        assert read.names == ["a", "c"] and read.skipped == [
            f"{path}: record 2: invalid molecule", f"{path}: record 3: the name is not in UTF-8", f"{path}: record 4: invalid molecule"]
    assert [len(b.codes) for b in fingerprint_batches(write("a.sdf", b"".join(good)), batch=2)] == [2, 1]
    read = read_fingerprints(write("a.sdf", b"".join(good)), skip_errors=True, name_property="key")
    assert read.names == ["k1"] and "record 2: the name 'two\\nlines' has a tab or an end of a line" in read.skipped[0] and "record 3: it has no property 'key'" in read.skipped[1]
    assert "record 3: invalid molecule" in read_fingerprints(write("a.sdf", b"".join(good)[:-60]), skip_errors=True).skipped[0]
    for data in (b"", b"\n\n"):
        with pytest.raises(VectorFileError, match="it has no fingerprints"):
            read_fingerprints(write("a.sdf", data))
    assert capfd.readouterr() == ("", "")


def test_invalid_molecules_are_quiet(write, capfd):
    pytest.importorskip("rdkit")
    path = write("a.smi", b"CCO a\nC1CC b\n\nnonsense c\n\xff d\nCCN \xff\nCCC e\n")
    with pytest.raises(VectorFileError, match="line 2: invalid SMILES 'C1CC'"):
        read_fingerprints(path)
    read = read_fingerprints(path, "maccs", skip_errors=True)
    assert read.names == ["a", "e"] and len(read.codes) == 2
    assert [message.split(": ")[1] for message in read.skipped] == [f"line {i}" for i in (2, 3, 4, 5, 6)]
    assert capfd.readouterr() == ("", "")


def test_names_have_one_line(write):
    pytest.importorskip("rdkit")
    for path in (write("a.smi", "CCO one\rtwo\n"), write("a.fps", "ff\tone\rtwo\n")):
        with pytest.raises(VectorFileError, match=r"line 1: the name 'one\\rtwo' has a tab or an end of a line"):
            read_fingerprints(path)


def test_types_of_molecules(write):
    path = write("a.smi", MOLECULES)
    for bad in ("ecfp5", "ecfp:1024", "morgan2:", "morgan2:0", "morgan:2048", "maccs:166", "morgan2:2048 ", "MACCS"):
        with pytest.raises(ValueError, match="fingerprint: unknown type .* expected one such as morgan2:2048"):
            read_fingerprints(path, bad)


@pytest.mark.parametrize("type, expected", [
    ("ecfp4", "morgan2:2048"), ("ecfp6", "morgan3:2048"), ("ecfp4:1024", "morgan2:1024"), ("morgan2", "morgan2:2048"), ("morgan3", "morgan3:2048"),
    ("rdkit", "rdkit:2048"), ("atompair", "atompair:2048"), ("torsion", "torsion:2048"), ("torsion:64", "torsion:64"), ("maccs", "maccs"),
    ("RDKit-Morgan/1 radius=2 fpSize=2048 useFeatures=0 useChirality=0 useBondTypes=1", "morgan2:2048"),
    ("fcfp4", "featmorgan2:2048"), ("fcfp6:64", "featmorgan3:64"), ("featmorgan1", "featmorgan1:2048"), ("avalon", "avalon:2048"),
    ("RDKit-Morgan/1 radius=2 fpSize=2048 useFeatures=1 useChirality=0 useBondTypes=1", "featmorgan2:2048"), ("RDKit-Morgan/2 fpSize=64 radius=3 useFeatures=1", "featmorgan3:64"),
    ("RDKit-Morgan/2 fpSize=128 radius=3 useFeatures=0", "morgan3:128"), ("RDKit-MACCS166/2", "maccs"),
    ("RDKit-Fingerprint/2 minPath=1 maxPath=7 fpSize=512 nBitsPerHash=2 useHs=1", "rdkit:512"),
    ("RDKit-AtomPair/2 fpSize=2048 minLength=1 maxLength=30", "atompair:2048"), ("RDKit-Torsion/2 fpSize=2048 targetSize=4", "torsion:2048"),
    *((unknown, unknown) for unknown in (
        "", "mine", "RDKit-Morgan/1", "RDKit-Morgan/1 radius=2", "RDKit-Morgan/1 radius=10 fpSize=2048", "RDKit-Morgan/1 radius=2 fpSize=0x",
        "RDKit-Morgan/1 radius=2 fpSize=2048 useFeatures=2 useChirality=0 useBondTypes=1", "RDKit-Morgan/1 radius=2 fpSize=2048 fromAtoms=1",
        "RDKit-Fingerprint/1 fpSize=2048", "RDKit-Fingerprint/2 minPath=1 maxPath=7 fpSize=2048 nBitsPerHash=4 useHs=1", "RDKit-MACCS166/1",
        "RDKit-AtomPair/2 fpSize=2048 minLength=1 maxLength=9", "OpenBabel-FP2/1"))])
def test_names_of_types(type, expected):
    assert molecules.canonical(type) == expected
    assert molecules.bits_of(type) == (166 if expected == "maccs" else None if type == expected and ":" not in type else int(expected.split(":")[1]))


# of chemfp 5.1, with RDKit 2025.09.4
OF_CHEMFP = "#FPS1\n#num_bits=128\n#type=RDKit-Morgan/2 fpSize=128 radius=3 useFeatures=0\n20800008808000000700420010020400\tphenol\n"


def test_rdkit_computes_the_bits_of_chemfp(write):
    pytest.importorskip("rdkit")
    read = read_fingerprints(write("a.fps", OF_CHEMFP))
    for type in (read.type, "ecfp6:128", "morgan3:128"):
        computed = read_fingerprints(write("a.smi", "c1ccccc1O phenol\n"), type)
        assert np.array_equal(computed.codes, read.codes) and (computed.names, computed.bits, computed.type) == (["phenol"], 128, "morgan3:128")


def test_molecules_need_rdkit(write, monkeypatch):
    import sys
    monkeypatch.setitem(sys.modules, "rdkit", None)
    for name, kind in (("a.smi", "SMILES"), ("a.sdf", "SDF")):
        with pytest.raises(VectorFileError, match=f"{name}: {kind} files need RDKit"):
            read_fingerprints(write(name, MOLECULES))


@pytest.mark.parametrize("header", ["", "#num_bits=13\n"])
def test_fingerprints_are_searched_by_tanimoto(write, header):
    read = read_fingerprints(write("a.fps", header + "ff00\ta\nf000\tb\n0f1f\tc\n"))
    index = faiss_ext.index_binary_factory(read.bits, "BKFlat(jaccard)")
    index.add(read.codes)
    D, I = index.search(read.codes[:1], 3)
    names = faiss_ext.Names()
    names.add(read.names)
    assert names.of(I).tolist() == [["a", "b", "c"]]
    np.testing.assert_allclose(faiss_ext.kernel_values(index, D), [[1, 4 / 8, 4 / 13]], atol=1e-8)
