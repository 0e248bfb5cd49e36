# SPDX-License-Identifier: MIT
"""How far long work has come."""

import sys


def bar(items, description, show=True):
    """Goes through items, and shows on stderr how many are done: by tqdm where
    it is installed, or else by a line for each."""
    if not show:
        yield from items
        return
    try:
        from tqdm import tqdm
    except ImportError:
        for i, item in enumerate(items, 1):
            print(f"{description}: {i} of {len(items)}", file=sys.stderr)
            yield item
    else:
        yield from tqdm(items, desc=description, leave=False)
