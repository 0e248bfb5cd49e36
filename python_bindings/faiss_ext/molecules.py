# SPDX-License-Identifier: MIT
"""Fingerprints of molecules, which RDKit computes from SMILES."""

import re

import numpy as np

KINDS = ("morgan2:2048", "morgan3:1024", "rdkit:2048", "atompair:2048",
         "torsion:2048", "maccs")
FINGERPRINT = re.compile(r"(morgan\d|rdkit|atompair|torsion):(\d{1,7})|maccs")
MACCS_BITS = 166


def bits_of(fingerprint):
    """The number of bits of a type such as "morgan2:2048"; None if the type is
    not one of these."""
    match = FINGERPRINT.fullmatch(fingerprint)
    if match is None or match[2] is not None and int(match[2]) == 0:
        return None
    return MACCS_BITS if match[2] is None else int(match[2])


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
        self.type, self.bits = fingerprint, bits_of(fingerprint)
        from rdkit import Chem, DataStructs, rdBase
        self.parse = Chem.MolFromSmiles
        self.silence = rdBase.BlockLogs
        self.to_array = DataStructs.ConvertToNumpyArray
        self.compute = (maccs_keys() if fingerprint == "maccs"
                        else by_generator(*fingerprint.split(":")))

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
