# SPDX-License-Identifier: MIT
"""Reads and writes files of fingerprints: packed bits with names."""

import binascii
import codecs
import contextlib
import functools
import gzip
import itertools
import re
from typing import NamedTuple

import numpy as np

from ._version import __version__
from .arguments import as_any_codes, as_integer, counted, shown
from .files import replacing
from .molecules import KINDS, Molecules, bits_of, canonical
from .standard_input import StandardInput
from .vector_files import (
    VectorFileError, checked_name, errors_named, npz_array)

FPS = (".fps", ".fps.gz")
SUFFIXES = {"fps": FPS, "smi": (".smi", ".smiles", ".smi.gz", ".smiles.gz"),
            "sdf": (".sdf", ".sdf.gz"), "array": (".npy", ".npz")}
WITH_NAMES, OF_MOLECULES = ("fps", "smi", "sdf"), ("smi", "sdf")
# names of standard input, in place of the name of a file
STDIN = {kind: f"standard input ({kind})" for kind in WITH_NAMES}
CXSMILES = re.compile(rb"[ \t]+\|[^|]*\|(?![^ \t])")  # behind a SMILES
BREAKS = "\t\r\n"  # which no name in these files has
DEFAULT_FINGERPRINT = "morgan2:2048"
REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


class Fingerprints(NamedTuple):
    """Fingerprints of a file, or of a part of it.

    Attributes
    ----------
    codes : uint8, shape (n, ceil(bits / 8))
        The packed bits, in the order of `numpy.packbits`: bit j is
        `0x80 >> j % 8` of byte `j // 8`. The low bits of the last byte are
        zeros if `bits` is not a multiple of 8.
    names : list of str, or None
        The name of each fingerprint. A name may occur more than once.
    bits : int
        The number of bits of a fingerprint.
    type : str or None
        Their type, such as "morgan2:2048".
    skipped : list of str
        A message for each line that was skipped because of an error.
    """

    codes: "NDArray[np.uint8]"
    names: "list[str] | None"
    bits: int
    type: "str | None" = None
    skipped: "list[str]" = []


def kind_of(path):
    """The kind of a file of fingerprints, a key of SUFFIXES; None for another
    file."""
    return next((kind for kind, suffixes in SUFFIXES.items()
                 if path.endswith(suffixes) or path == STDIN.get(kind)), None)


def is_fingerprint_file(path):
    """Whether the name of a file is one of files of fingerprints with
    names."""
    return kind_of(str(path)) in WITH_NAMES


def is_standard_input(path):
    return path in STDIN.values()


def is_molecule_file(path):
    """Whether fingerprints are computed from the molecules of a file."""
    return kind_of(str(path)) in OF_MOLECULES


def read_fingerprints(
    path: "str | os.PathLike", fingerprint: "str | None" = None,
    skip_errors: bool = False, name_property: "str | None" = None,
    part: "str | None" = None
) -> Fingerprints:
    """Reads the fingerprints of a file.

    - `.fps`, `.fps.gz`: chemfp's text format. The header has the number of
      bits and the type. Without it, a fingerprint has four bits for each hex
      digit. If a file has a header with the number of bits and no lines, it
      has 0 fingerprints. In these files, the first bit of a byte is its lowest. The bits of
      each byte are therefore reversed.
    - `.smi`, `.smiles`, plain or with `.gz`: a SMILES and a name per line, with
      space between them. A name ends at a tab, and further columns are
      ignored. If the first line begins with the word SMILES, in any case, it
      has the titles of columns. The `|...|` behind a CXSMILES is ignored.
      RDKit, which must be installed, computes the fingerprints. A molecule
      without a name gets its SMILES as its name.
    - `.sdf`, `.sdf.gz`: records with a molecule each, which RDKit reads, and
      whose title is its name. A molecule without a title gets its SMILES as its
      name.
    - `.npy`, `.npz`: an array of packed bits (uint8). In an `.npz` file, the
      array `names` has their names, if it is there.

    Parameters
    ----------
    path : str or path
        The file.
    fingerprint : str, optional
        The type of the fingerprints. For molecules: "morgan2:2048" (the
        default: Morgan fingerprints of radius 2 with 2,048 bits), or other
        numbers in its place, "featmorgan2:2048" (of pharmacophoric features),
        "rdkit:2048", "atompair:2048", "torsion:2048", "avalon:2048" or "maccs"
        (166 keys). "ecfp4" and "ecfp6" are "morgan2" and "morgan3"; "fcfp4" and
        "fcfp6" are "featmorgan2" and "featmorgan3". Without a number, a type
        has 2,048 bits. The types in the headers of chemfp are known, too. For
        other files, it replaces the type in the file.
    skip_errors : bool, optional
        Whether to skip lines and records with errors, such as invalid SMILES.
        The result has a message for each of them.
    name_property : str, optional
        For `.sdf` files: the property that has the names, in place of the
        title.
    part : str, optional
        For `.npz` files: the array of packed bits. It is needed if the file has
        several arrays of two dimensions.

    Returns
    -------
    Fingerprints

    Raises
    ------
    VectorFileError
        A ValueError. If the file cannot be read, has no fingerprints, or if
        there is an error in a line or a record, which is named.
    ValueError
        If the type is unknown, or its number of bits is not that of the file.
        Also if `name_property` or `part` is given for another kind of file.

    Examples
    --------
    >>> read = faiss_ext.read_fingerprints("molecules.smi", "morgan2:2048")
    >>> index = faiss.index_binary_factory(read.bits, "BKFlat(jaccard)")
    >>> index.add(read.codes)
    """
    return joined(list(fingerprint_batches(
        path, fingerprint, skip_errors, name_property=name_property,
        part=part)))


def joined(batches):
    """The fingerprints of all batches."""
    first = batches[0]
    return first._replace(
        codes=np.concatenate([batch.codes for batch in batches]),
        names=None if first.names is None else chained(
            batch.names for batch in batches),
        skipped=chained(batch.skipped for batch in batches))


def chained(lists):
    return list(itertools.chain.from_iterable(lists))


def fingerprint_batches(
    path: "str | os.PathLike", fingerprint: "str | None" = None,
    skip_errors: bool = False, batch: int = 10_000,
    name_property: "str | None" = None, part: "str | None" = None
) -> "Iterator[Fingerprints]":
    """Reads the fingerprints of a file in batches, for files larger than
    memory.

    Parameters
    ----------
    path, fingerprint, skip_errors, name_property, part
        As for `read_fingerprints`.
    batch : int, optional
        The number of fingerprints in a batch. The last one may have fewer.

    Yields
    ------
    Fingerprints

    Raises
    ------
    VectorFileError, ValueError
        As `read_fingerprints` does.
    """
    where = "fingerprint_batches"
    name = str(checked_name(path))
    batch = as_integer(batch, "batch", where)
    if batch < 1:
        raise ValueError(f"{where}: batch is {batch}, expected at least 1")
    for value, what, example in (
            (fingerprint, "fingerprint", DEFAULT_FINGERPRINT),
            (name_property, "name_property", "ID"), (part, "part", "codes")):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{where}: {what} must be a str such as "
                            f"'{example}', got {shown(value)}")
    return checked_batches(name, fingerprint and canonical(fingerprint),
                           skip_errors, name_property, part, batch)


def checked_batches(path, fingerprint, skip_errors, name_property, part, batch):
    kind = kind_of(path)
    if kind is None:
        raise VectorFileError(
            f"{path}: unknown kind of file of fingerprints; known are "
            f"{', '.join(chained(SUFFIXES.values()))}")
    if (kind in OF_MOLECULES and fingerprint is not None
            and bits_of(fingerprint) is None):
        raise ValueError(f"fingerprint: unknown type {shown(fingerprint)}; "
                         f"expected one such as {', '.join(KINDS)}")
    if name_property is not None and kind != "sdf":
        raise ValueError(f"name_property: {path} has no properties, only .sdf "
                         "files have some")
    if part is not None and not path.endswith(".npz"):
        raise ValueError(f"part: {path} has no arrays with names, only .npz files "
                         "have some")
    read = {"fps": fps_batches, "smi": smiles_batches,
            "array": functools.partial(array_batches, part),
            "sdf": functools.partial(sdf_batches, name_property)}[kind]
    is_read = False
    with errors_named(path):
        for found in read(path, fingerprint, skip_errors, batch):
            if fingerprint is not None and bits_of(fingerprint) not in (
                    None, found.bits):
                raise VectorFileError(
                    f"{path}: fingerprints of {found.bits:,} bits, but "
                    f"{fingerprint} has {bits_of(fingerprint):,}")
            is_read |= len(found.codes) > 0 or not found.skipped
            yield found
    if not is_read:
        raise VectorFileError(f"{path}: it has no fingerprints")


# ---------------------------------------------------------------- lines

class LineError(ValueError):
    """A line has no fingerprint. The message says why."""


def opened(path):
    if is_standard_input(path):
        return StandardInput()
    return (gzip.open if path.endswith(".gz") else open)(path, "rb")


def numbered(file):
    """The lines of a file without their ends, and their numbers from 1 on.
    Empty lines at the end and a byte-order mark are left out."""
    empty = []
    for number, line in enumerate(file, 1):
        line = line.rstrip(b"\r\n")
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        empty.append((number, line))
        if line.strip():
            yield from empty
            empty.clear()


def batches_of(entries, file, parse, path, skip_errors, batch, noun="line"):
    """Yields the codes and names of lines or records, and messages of those
    skipped. A batch ends early if the next entry has not come in yet.

    entries : pairs of a number and an entry of the file
    parse : parse(entry) returns a code and a name as bytes, or raises LineError
    """
    is_waiting = getattr(file, "is_waiting", lambda: False)
    codes, names, skipped = [], [], []
    for number, entry in entries:
        try:
            code, name = parse(entry)
            names.append(checked_text(name))
            codes.append(code)
        except LineError as error:
            message = f"{path}: {noun} {number}: {error}"
            if not skip_errors:
                raise VectorFileError(message) from None
            skipped.append(message)
        if len(codes) == batch or codes and is_waiting():
            yield codes, names, skipped
            codes, names, skipped = [], [], []
    if codes or skipped:
        yield codes, names, skipped


def checked_text(name):
    """A name as a str."""
    try:
        name = name.decode()
    except UnicodeDecodeError:
        raise LineError("the name is not in UTF-8") from None
    if any(c in name for c in BREAKS):
        raise LineError(f"the name {shown(name)} has a tab or an end of a line")
    return name


def array_of(codes, size):
    return np.frombuffer(b"".join(codes), "uint8").reshape(len(codes), size)


# ------------------------------------------------------------------ FPS

def fps_batches(path, fingerprint, skip_errors, batch):
    with opened(path) as file:
        header, lines = fps_header(path, numbered(file))
        parse = FpsLines(header.get("num_bits"))
        batches = batches_of(lines, file, parse, path, skip_errors, batch)
        if parse.bits:
            batches = at_least_one(batches)
        for codes, names, skipped in batches:
            if not parse.bits:
                raise VectorFileError(
                    f"{path}: it has no fingerprints: {skipped[0]}")
            yield Fingerprints(
                array_of(codes, parse.size), names, parse.bits,
                fingerprint or header.get("type") or None, skipped)


def at_least_one(batches):
    """The batches, or an empty one if there are none."""
    yield next(batches, ([], [], []))
    yield from batches


def fps_header(path, lines):
    """The facts in the header, and the lines that follow it."""
    header = {}
    for number, line in lines:
        if number == 1 and line.startswith(b"#FPS") and line.rstrip() != b"#FPS1":
            raise VectorFileError(
                f"{path}: line 1: unknown version of the format, expected "
                f"#FPS1, got {line[:100].decode(errors='replace')!r}")
        if not line.startswith(b"#"):
            return header, itertools.chain([(number, line)], lines)
        key, _, value = line[1:].decode(errors="replace").partition("=")
        header[key.strip()] = value.strip()
        if key == "num_bits":
            header[key] = number_of_bits(value, f"{path}: line {number}")
    return header, iter(())


def number_of_bits(text, place):
    if not (text.strip().isdecimal() and 0 < int(text) <= 2**24):
        raise VectorFileError(
            f"{place}: num_bits is {text.strip()[:100]!r}, expected a number "
            "from 1 to 2^24")
    return int(text)


class FpsLines:
    """Parses lines with a fingerprint in hex digits, a tab and a name. Further
    tabs and columns are ignored, as chemfp does."""

    def __init__(self, bits):
        """bits : their number; by default that of the first line"""
        self.bits = bits
        self.size = None if bits is None else -(-bits // 8)

    def __call__(self, line):
        digits, tab, rest = line.partition(b"\t")
        name = rest.partition(b"\t")[0]
        if not line:
            raise LineError("it is empty")
        if not (name and digits):
            raise LineError("expected hex digits, a tab and a name, got " + (
                "no tab" if not tab else "no name" if digits
                else "no hex digits"))
        try:
            code = binascii.unhexlify(digits)
        except binascii.Error:
            raise LineError("expected pairs of hex digits, got "
                            f"{digits[:100].decode(errors='replace')!r}"
                            ) from None
        if self.bits is None:
            self.bits, self.size = 8 * len(code), len(code)
        if len(code) != self.size:
            raise LineError(
                f"expected {2 * self.size} hex digits for {self.bits:,} bits, "
                f"got {len(digits)}")
        if self.bits % 8 and code[-1] >> self.bits % 8:
            raise LineError(f"a bit beyond the {self.bits:,} bits is set")
        return code.translate(REVERSED), name


# --------------------------------------------------------------- SMILES

def smiles_batches(path, fingerprint, skip_errors, batch):
    molecules = molecules_of(fingerprint, path, "SMILES")

    def parse(line):
        if not line.strip():
            raise LineError("it is empty")
        smiles, name = smiles_and_name(line)
        try:
            return molecules.code(smiles.decode()), name or smiles
        except ValueError as error:  # also for bytes that are not UTF-8
            raise LineError(str(error)) from None

    with opened(path) as file:
        yield from computed(molecules, batches_of(
            without_titles(numbered(file)), file, parse, path, skip_errors,
            batch))


def molecules_of(fingerprint, path, noun):
    try:
        return Molecules(fingerprint or DEFAULT_FINGERPRINT)
    except ImportError as error:
        raise VectorFileError(f"{path}: {noun} files need RDKit (pip install "
                              "rdkit)") from error


def computed(molecules, batches):
    size = -(-molecules.bits // 8)
    for codes, names, skipped in batches:
        yield Fingerprints(array_of(codes, size), names, molecules.bits,
                           molecules.type, skipped)


def without_titles(lines):
    """The lines of a file of SMILES without a first one that has titles of
    columns, as RDKit writes it."""
    first = next(lines, None)
    if first is None:
        return
    if first[1].upper().split(None, 1)[:1] != [b"SMILES"]:
        yield first
    yield from lines


def smiles_and_name(line):
    smiles = line.split(None, 1)[0]
    rest = line.lstrip()[len(smiles):]
    block = CXSMILES.match(rest)
    rest = (rest if block is None else rest[block.end():]).lstrip(b" ")
    return smiles, rest.removeprefix(b"\t").partition(b"\t")[0].strip()


# ------------------------------------------------------------------ SDF

def sdf_batches(name_property, path, fingerprint, skip_errors, batch):
    molecules = molecules_of(fingerprint, path, "SDF")

    def parse(record):
        try:
            return molecules.code_and_name(record, name_property)
        except ValueError as error:
            raise LineError(str(error)) from None

    with opened(path) as file:
        yield from computed(molecules, batches_of(
            enumerate(records(file), 1), file, parse, path, skip_errors, batch,
            noun="record"))


def records(file):
    """The records of an SDF file, each with the line that ends it. Empty lines
    at the end are left out."""
    lines = []
    for line in file:
        lines.append(line)
        if line.startswith(b"$$$$"):
            yield b"".join(lines)
            lines = []
    if any(map(bytes.strip, lines)):
        yield b"".join(lines)


# --------------------------------------------------------------- arrays

def array_batches(part, path, fingerprint, skip_errors, batch):
    codes = (np.load(path, mmap_mode="r", allow_pickle=False)
             if path.endswith(".npy") else npz_array(path, part, ndim=2))
    if (not isinstance(codes, np.ndarray) or codes.ndim != 2
            or codes.dtype != np.uint8 or codes.shape[1] == 0):
        raise VectorFileError(
            f"{path}: expected packed bits in an array of uint8 of two "
            f"dimensions, got {shown(codes)}")
    names = names_in(path, len(codes))
    for begin in range(0, len(codes), batch):
        rows = slice(begin, begin + batch)
        yield Fingerprints(
            np.ascontiguousarray(codes[rows]),
            None if names is None else names[rows], 8 * codes.shape[1],
            fingerprint)


def names_in(path, n):
    """The array "names" of an .npz file with n fingerprints as a list; None if
    it is not there, or for another file."""
    if not path.endswith(".npz"):
        return None
    with np.load(path, allow_pickle=False) as arrays:
        if "names" not in arrays.files:
            return None
    names = npz_array(path, "names", ndim=1)
    if names.dtype.kind not in "US":
        raise VectorFileError(f"{path}: expected strings in the array 'names', "
                              f"got {names.dtype}")
    if len(names) != n:
        raise VectorFileError(
            f"{path}: {counted(len(names), 'name')} for "
            f"{counted(n, 'fingerprint')}")
    return [name.decode() if isinstance(name, bytes) else name
            for name in names.tolist()]


# -------------------------------------------------------------- writing

def write_fps(
    path: "str | os.PathLike", codes: "ArrayLike", names: "Sequence[str]",
    bits: "int | None" = None, type: "str | None" = None
) -> None:
    """Writes fingerprints to an `.fps` or `.fps.gz` file, chemfp's format.

    The first bit of a byte is its lowest in these files. The bits of each byte
    are therefore reversed.

    Parameters
    ----------
    path : str or path
        The file. It is replaced once the new one is complete.
    codes : array_like of uint8, shape (n, ceil(bits / 8))
        The packed bits, in the order of `numpy.packbits`.
    names : list of str
        Their names, which have no tabs and no ends of lines.
    bits : int, optional
        The number of bits of a fingerprint; by default all bits of the codes.
    type : str, optional
        Their type for the header, such as "morgan2:2048".

    Raises
    ------
    ValueError
        If the arguments do not fit each other, if a bit beyond `bits` is set,
        or if a name or the type cannot be written.
    TypeError
        If the codes are not uint8, or a name is not a str.
    """
    where, name = "write_fps", str(checked_name(path))
    if not name.endswith(FPS):
        raise ValueError(f"{where}: expected a file named {' or '.join(FPS)}, "
                         f"got {name}")
    codes = as_any_codes(codes, where)
    bits = 8 * codes.shape[1] if bits is None else as_integer(
        bits, "bits", where)
    check_bits(codes, bits, where)
    if len(names) != len(codes):
        raise ValueError(f"{where}: {counted(len(names), 'name')} for "
                         f"{counted(len(codes), 'fingerprint')}")
    for text in names:
        check_text(text, "a name", BREAKS, where)
    header = f"#FPS1\n#num_bits={bits}\n"
    if type is not None:
        check_text(type, "the type", "\r\n", where)
        header += f"#type={type}\n"
    header += f"#software=faiss_ext/{__version__}\n"
    with replacing(path) as file, compressed(name, file) as to:
        to.write(header.encode())
        to.writelines(
            f"{code.tobytes().translate(REVERSED).hex()}\t{text}\n".encode()
            for code, text in zip(codes, names))


def compressed(name, file):
    return (gzip.GzipFile("", "wb", 9, file, mtime=0) if name.endswith(".gz")
            else contextlib.nullcontext(file))


def check_bits(codes, bits, where):
    size = codes.shape[1]
    if size == 0 or not 8 * (size - 1) < bits <= 8 * size:
        raise ValueError(f"{where}: bits is {bits}, expected from "
                         f"{8 * size - 7} to {8 * size} for codes of {size} "
                         "bytes")
    wrong = np.flatnonzero(codes[:, -1] & (1 << -bits % 8) - 1)
    if len(wrong):
        raise ValueError(f"{where}: a bit beyond the {bits:,} bits is set in "
                         f"fingerprint {wrong[0]}; numpy.packbits fills the "
                         "last byte with low bits of 0")


def check_text(text, what, without, where):
    if not isinstance(text, str):
        raise TypeError(f"{where}: {what} must be a str, got {shown(text)}")
    if not text or any(c in text for c in without):
        raise ValueError(f"{where}: {what} is {shown(text)}, expected text "
                         "without tabs and ends of lines")
