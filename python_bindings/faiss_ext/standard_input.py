# SPDX-License-Identifier: MIT
"""Standard input as a file whose lines can be used as they come in."""

import collections
import select

PATH = "/dev/stdin"
AT_ONCE = 2**20  # bytes


class StandardInput:
    """The lines of standard input. `is_waiting` tells when to use those that
    have come in."""

    def __init__(self):
        self.file = open(PATH, "rb", buffering=0)
        self.lines = collections.deque()
        self.unfinished = []  # parts of a line whose end has not come in
        self.is_over = False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def __iter__(self):
        while True:
            while not (self.lines or self.is_over):
                self.receive()
            if not self.lines:
                return
            yield self.lines.popleft()

    def is_waiting(self):
        """Whether the next line has not come in yet."""
        while not (self.lines or self.is_over) and self.is_ready(0):
            self.receive()
        return not (self.lines or self.is_over)

    def is_ready(self, seconds=None):
        """Waits for data, or for the end."""
        return bool(select.select([self.file], [], [], seconds)[0])

    def receive(self):
        """Reads what there is. Waits if there is nothing."""
        self.is_ready()
        data = self.file.read(AT_ONCE)
        *ends, rest = data.split(b"\n")
        for end in ends:
            self.lines.append(b"".join([*self.unfinished, end, b"\n"]))
            self.unfinished = []
        self.unfinished.append(rest)
        if not data:
            self.is_over = True
            self.lines.extend(filter(None, [b"".join(self.unfinished)]))
