# SPDX-License-Identifier: MIT
"""A table that finds the positions of many keys at once by their hashes."""

import numpy as np

BLOCK = 2**20  # keys that are inserted at once, to bound temporary memory


def mixed(x):
    """Hashes of uint64 numbers, by the finalizer of SplitMix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class HashTable:
    """Positions of keys, by open addressing with linear probing.

    It holds no keys, only int32 positions, in at least twice as many slots. Two
    keys may have equal hashes.
    """

    def __init__(self):
        self.slots = np.full(16, -1, "int32")
        self.n = 0

    def extend(self, hashes):
        """Takes in the keys at the next positions. `hashes` has the hashes of
        all keys, from the first on."""
        if len(hashes) > np.iinfo("int32").max:
            raise MemoryError("a table holds at most 2^31 - 1 keys")
        if 2 * len(hashes) > len(self.slots):
            self.slots = np.full(1 << (3 * len(hashes)).bit_length(), -1, "int32")
            self.n = 0
        while self.n < len(hashes):
            end = min(self.n + BLOCK, len(hashes))
            self.insert(hashes[self.n:end], np.arange(self.n, end, dtype="int32"))
            self.n = end

    def home(self, hashes):
        return (hashes & np.uint64(len(self.slots) - 1)).astype("int64")

    def insert(self, hashes, positions):
        at = self.home(hashes)
        while len(positions):
            free = self.slots[at] < 0
            self.slots[at[free]] = positions[free]  # one of several gets a slot
            others = self.slots[at] != positions
            at = (at[others] + 1) & (len(self.slots) - 1)
            positions = positions[others]

    def find(self, hashes, same):
        """The position of each key, or -1.

        same(positions, keys) tells for pairs of a position and the number of a
        key in `hashes` whether the position has that key.
        """
        found = np.full(len(hashes), -1, "int64")
        keys, at = np.arange(len(hashes)), self.home(hashes)
        while len(keys):
            positions = self.slots[at]
            used = positions >= 0
            keys, at, positions = keys[used], at[used], positions[used]
            equal = same(positions, keys)
            found[keys[equal]] = positions[equal]
            keys, at = keys[~equal], (at[~equal] + 1) & (len(self.slots) - 1)
        return found
