# SPDX-License-Identifier: MIT
"""python3 -m faiss_ext: see command_line.py."""

import sys

from .command_line import main

if __name__ == "__main__":
    sys.exit(main())
