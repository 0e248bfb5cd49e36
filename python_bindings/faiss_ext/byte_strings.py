# SPDX-License-Identifier: MIT
"""Many byte strings in few arrays."""

import numpy as np

from .hash_table import HashTable, mixed

BLOCK = 2**17  # strings that are handled at once, to bound temporary memory


class Growing:
    """An array that grows at its end, in constant time per item."""

    def __init__(self, items):
        self.buffer, self.n = items, len(items)

    @property
    def items(self):
        return self.buffer[:self.n]

    def extend(self, items):
        n = self.n + len(items)
        if n > len(self.buffer):
            larger = np.empty(max(n, 2 * self.n), self.buffer.dtype)
            larger[:self.n] = self.items
            self.buffer = larger
        self.buffer[self.n:n] = items
        self.n = n


def places(starts, lengths):
    """The positions of all bytes of strings, one string after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


def hashes_of(data, lengths):
    """64-bit hashes of strings that follow each other in `data`: each byte
    times the odd number of its place, summed up, mixed."""
    hashes = np.empty(len(lengths), "uint64")
    ends = np.cumsum(lengths)
    for begin in range(0, len(lengths), BLOCK):
        part = slice(begin, begin + BLOCK)
        starts = ends[part] - lengths[part]
        bytes_ = data[starts[0]:ends[part][-1]].astype("uint64") + np.uint64(1)
        place = places(np.zeros(len(starts), "int64"), lengths[part])
        odd = mixed(np.arange(1, place.max() + 2, dtype="uint64")
                    * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)
        hashes[part] = np.add.reduceat(bytes_ * odd[place], starts - starts[0])
    return mixed(hashes)


class ByteStrings:
    """Byte strings, none of them empty, that are found by their contents.

    A string takes its bytes and 8 more, and another 16 to 32 once a string has
    been looked for.
    """

    def __init__(self, data, lengths):
        """data : uint8, the bytes of all strings
        lengths : int64"""
        self.data, self.ends = Growing(data), Growing(np.cumsum(lengths))
        self.hashes = Growing(np.empty(0, "uint64"))
        self.table = HashTable()

    def __len__(self):
        return self.ends.n

    def extend(self, data, lengths):
        self.ends.extend(self.data.n + np.cumsum(lengths))
        self.data.extend(data)

    def bounds(self, positions):
        """The first byte and the length of each string at some positions."""
        ends = self.ends.items
        starts = np.where(positions > 0, ends[positions - 1], 0)
        return starts, ends[positions] - starts

    def taken(self, positions):
        """The bytes and the lengths of the strings at some positions."""
        starts, lengths = self.bounds(positions)
        data, end = np.empty(lengths.sum(), "uint8"), 0
        for begin in range(0, len(lengths), BLOCK):
            part = slice(begin, begin + BLOCK)
            block = self.data.items[places(starts[part], lengths[part])]
            data[end:end + len(block)] = block
            end += len(block)
        return data, lengths

    def texts(self, positions):
        """The strings at some positions as a list of str."""
        starts, lengths = self.bounds(positions)
        data = memoryview(self.data.items)
        return [str(data[start:end], "utf-8") for start, end in zip(
            starts.tolist(), (starts + lengths).tolist())]

    def find(self, data, lengths, counts):
        """The position of each of some strings, or -1. Only positions at which
        the mask `counts` is true count."""
        self.hash_all()
        hashes = hashes_of(data, lengths)
        starts = np.cumsum(lengths) - lengths

        def same(positions, keys):
            equal = (counts[positions]
                     & (self.hashes.items[positions] == hashes[keys]))
            at = np.flatnonzero(equal)
            there, there_lengths = self.bounds(positions[at])
            at = at[there_lengths == lengths[keys[at]]]
            equal[:] = False
            equal[at] = self.equal(positions[at], data, starts[keys[at]])
            return equal

        return self.table.find(hashes, same)

    def hash_all(self):
        """Takes all strings into the table."""
        starts, lengths = self.bounds(np.arange(self.hashes.n, len(self)))
        if len(starts):
            self.hashes.extend(hashes_of(self.data.items[starts[0]:], lengths))
        self.table.extend(self.hashes.items)

    def equal(self, positions, data, starts):
        """Whether strings are the same as others of equal lengths, which begin
        at `starts` in `data`."""
        if len(positions) == 0:
            return np.zeros(0, bool)
        mine, lengths = self.taken(positions)
        return np.logical_and.reduceat(
            mine == data[places(starts, lengths)], np.cumsum(lengths) - lengths)
