# SPDX-License-Identifier: MIT
"""Fingerprints of molecules, which RDKit computes from SMILES."""

import re

import numpy as np

KINDS = ("morgan2:2048", "morgan3:1024", "ecfp4", "rdkit:2048",
         "atompair:2048", "torsion:2048", "maccs")
FINGERPRINT = re.compile(
    r"(morgan\d|ecfp[46]|rdkit|atompair|torsion)(?::(\d{1,7}))?")
ALIASES = {"ecfp4": "morgan2", "ecfp6": "morgan3"}  # named by the diameter
DEFAULT_BITS, MACCS_BITS = 2048, 166

# Types in chemfp's files whose bits RDKit computes today, and the parameters
# that Molecules computes them with. A number before chemfp's "/2" stands for
# bits of older versions of RDKit.
MORGAN = {"useFeatures": "0", "useChirality": "0", "includeChirality": "0",
          "useBondTypes": "1"}
OF_CHEMFP = {
    "RDKit-Morgan/1": ("morgan{radius}:{fpSize}", MORGAN),
    "RDKit-Morgan/2": ("morgan{radius}:{fpSize}", MORGAN),
    "RDKit-Fingerprint/2": ("rdkit:{fpSize}", {
        "minPath": "1", "maxPath": "7", "nBitsPerHash": "2", "useHs": "1",
        "branchedPaths": "1", "useBondOrder": "1"}),
    "RDKit-AtomPair/2": ("atompair:{fpSize}", {
        "minLength": "1", "maxLength": "30"}),
    "RDKit-Torsion/2": ("torsion:{fpSize}", {"targetSize": "4"}),
    "RDKit-MACCS166/2": ("maccs", {})}


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
    form, fixed = OF_CHEMFP[name]
    given = dict(word.partition("=")[::2] for word in words)
    free = {key: given.pop(key) for key in ("radius", "fpSize")
            if f"{{{key}}}" in form and key in given}
    try:
        meant = form.format(**free)
    except KeyError:  # a parameter is missing
        return None
    return meant if given.items() <= fixed.items() else None


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
        self.parse = Chem.MolFromSmiles
        self.silence = rdBase.BlockLogs
        self.to_array = DataStructs.ConvertToNumpyArray
        self.compute = (maccs_keys() if self.type == "maccs"
                        else by_generator(*self.type.split(":")))

    def code(self, smiles):
        """The bytes of a molecule's fingerprint, as numpy.packbits gives them.
        Raises ValueError for invalid SMILES."""
        silence = self.silence()  # RDKit's messages, until it is deleted
        try:
            molecule = self.parse(smiles)
            if molecule is None:
                raise ValueError(f"invalid SMILES {smiles[:100]!r}")
            array = np.zeros(0, "uint8")  # RDKit sets its size
            self.to_array(self.compute(molecule), array)
        finally:
            del silence
        # RDKit's MACCS keys are its bits 1 to 166; bit 0 is always 0
        return np.packbits(array[len(array) - self.bits:]).tobytes()


def maccs_keys():
    from rdkit.Chem import rdMolDescriptors
    return rdMolDescriptors.GetMACCSKeysFingerprint


def by_generator(kind, bits):
    from rdkit.Chem import rdFingerprintGenerator as generators
    size = int(bits)
    generator = (
        generators.GetMorganGenerator(radius=int(kind[-1]), fpSize=size)
        if kind.startswith("morgan") else {
            "rdkit": generators.GetRDKitFPGenerator,
            "atompair": generators.GetAtomPairGenerator,
            "torsion": generators.GetTopologicalTorsionGenerator,
        }[kind](fpSize=size))
    return generator.GetFingerprint
