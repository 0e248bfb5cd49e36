# SPDX-License-Identifier: MIT
"""Fingerprints of molecules, which RDKit computes from SMILES or records of SDF
files."""

import functools
import io
import re

import numpy as np

KINDS = ("morgan2:2048", "morgan3:1024", "ecfp4", "featmorgan2:2048",
         "rdkit:2048", "atompair:2048", "torsion:2048", "avalon:512", "maccs")
FINGERPRINT = re.compile(
    r"((?:feat)?morgan\d|[ef]cfp[46]|rdkit|atompair|torsion|avalon)"
    r"(?::(\d{1,7}))?")
ALIASES = {"ecfp4": "morgan2", "ecfp6": "morgan3",  # named by the diameter
           "fcfp4": "featmorgan2", "fcfp6": "featmorgan3"}
DEFAULT_BITS, MACCS_BITS = 2048, 166

# Types in chemfp's files whose bits RDKit computes today, and the parameters
# that Molecules computes them with. A number before chemfp's "/2" stands for
# bits of older versions of RDKit.
MORGAN = {"useFeatures": "0", "useChirality": "0", "includeChirality": "0",
          "useBondTypes": "1"}
MORGANS = [("morgan{radius}:{fpSize}", MORGAN),
           ("featmorgan{radius}:{fpSize}", {**MORGAN, "useFeatures": "1"})]
OF_CHEMFP = {
    "RDKit-Morgan/1": MORGANS,
    "RDKit-Morgan/2": MORGANS,
    "RDKit-Fingerprint/2": [("rdkit:{fpSize}", {
        "minPath": "1", "maxPath": "7", "nBitsPerHash": "2", "useHs": "1",
        "branchedPaths": "1", "useBondOrder": "1"})],
    "RDKit-AtomPair/2": [("atompair:{fpSize}", {
        "minLength": "1", "maxLength": "30"})],
    "RDKit-Torsion/2": [("torsion:{fpSize}", {"targetSize": "4"})],
    "RDKit-MACCS166/2": [("maccs", {})]}


def canonical(type):
    """A type in the form "morgan2:2048" or "maccs". It may be given by another
    name, such as "ecfp4", or as in a file of chemfp. Other types stay as they
    are."""
    meant = type_of_chemfp(type) or type
    match = FINGERPRINT.fullmatch(meant)
    if match is None:
        return meant if meant == "maccs" else type
    kind, bits = match.groups()
    return f"{ALIASES.get(kind, kind)}:{int(bits or DEFAULT_BITS)}"


def type_of_chemfp(type):
    """The type that a header of chemfp means; None if it is another one, or one
    with parameters that Molecules does not have."""
    name, *words = type.split() or [""]
    if name not in OF_CHEMFP:
        return None
    given = dict(word.partition("=")[::2] for word in words)
    return next((meant for form, fixed in OF_CHEMFP[name]
                 if (meant := filled_in(form, given, fixed)) is not None), None)


def filled_in(form, given, fixed):
    """A form with the parameters of a header; None if one is missing, or is not
    the one that is fixed."""
    others = dict(given)
    free = {key: others.pop(key) for key in ("radius", "fpSize")
            if f"{{{key}}}" in form and key in others}
    try:
        meant = form.format(**free)
    except KeyError:
        return None
    return meant if others.items() <= fixed.items() else None


def bits_of(fingerprint):
    """The number of bits of a type such as "morgan2:2048"; None if the type is
    not one of these."""
    fingerprint = canonical(fingerprint)
    if fingerprint == "maccs":
        return MACCS_BITS
    match = FINGERPRINT.fullmatch(fingerprint)
    return int(match[2]) or None if match else None


class Molecules:
    """Computes fingerprints of one type.

    Attributes
    ----------
    type : str
        Such as "morgan2:2048".
    bits : int
        Their number of bits.
    """

    def __init__(self, fingerprint):
        """Raises ImportError without RDKit."""
        self.type, self.bits = canonical(fingerprint), bits_of(fingerprint)
        from rdkit import Chem, DataStructs, rdBase
        self.chem, self.silence = Chem, rdBase.BlockLogs
        self.to_array = DataStructs.ConvertToNumpyArray
        kind, _, bits = self.type.partition(":")
        self.compute = (maccs_keys() if kind == "maccs"
                        else avalon(int(bits)) if kind == "avalon"
                        else by_generator(kind, int(bits)))

    def code(self, smiles):
        """The bytes of a molecule's fingerprint, as numpy.packbits gives them.
        Raises ValueError for invalid SMILES."""
        silence = self.silence()  # RDKit's messages, until it is deleted
        try:
            molecule = self.chem.MolFromSmiles(smiles)
            if molecule is None:
                raise ValueError(f"invalid SMILES {smiles[:100]!r}")
            return self.code_of(molecule)
        finally:
            del silence

    def code_and_name(self, record, name_property=None):
        """The code of the molecule in a record of an SDF file, and its name:
        the title, or a property. Raises ValueError if there is none."""
        silence = self.silence()
        try:
            molecule = next(self.chem.ForwardSDMolSupplier(io.BytesIO(record)),
                            None)
            if molecule is None:
                raise ValueError("invalid molecule")
            return self.code_of(molecule), self.name_of(molecule, name_property)
        finally:
            del silence

    def name_of(self, molecule, name_property):
        name = property_of(molecule, name_property or "_Name")
        if not name and name_property is not None:
            raise ValueError(f"it has no property {name_property!r}, which has "
                             "the name")
        return name or self.chem.MolToSmiles(molecule).encode()

    def code_of(self, molecule):
        array = np.zeros(0, "uint8")  # RDKit sets its size
        self.to_array(self.compute(molecule), array)
        # RDKit's MACCS keys are its bits 1 to 166; bit 0 is always 0
        return np.packbits(array[len(array) - self.bits:]).tobytes()


def property_of(molecule, key):
    """A property in bytes without white space around it; None without it."""
    if not molecule.HasProp(key):
        return None
    try:
        return molecule.GetProp(key).strip().encode()
    except UnicodeDecodeError as error:
        return error.object.strip()


def maccs_keys():
    from rdkit.Chem import rdMolDescriptors
    return rdMolDescriptors.GetMACCSKeysFingerprint


def avalon(bits):
    from rdkit.Avalon import pyAvalonTools
    return functools.partial(pyAvalonTools.GetAvalonFP, nBits=bits)


def by_generator(kind, bits):
    from rdkit.Chem import rdFingerprintGenerator as generators
    if "morgan" not in kind:
        return {
            "rdkit": generators.GetRDKitFPGenerator,
            "atompair": generators.GetAtomPairGenerator,
            "torsion": generators.GetTopologicalTorsionGenerator,
        }[kind](fpSize=bits).GetFingerprint
    features = {} if kind.startswith("morgan") else {
        "atomInvariantsGenerator": generators.GetMorganFeatureAtomInvGen()}
    return generators.GetMorganGenerator(
        radius=int(kind[-1]), fpSize=bits, **features).GetFingerprint
