# SPDX-License-Identifier: MIT
"""The demo: how well and how fast indexes find the neighbours of real vectors under a kernel.

demo_options.py has the options; measure.py, which does the work, is imported only when they are found good: --help
needs neither FAISS nor the built module.
"""

import sys

from demo_options import parse_arguments


def main():
    arguments = parse_arguments()
    try:
        import measure
    except ImportError as problem:
        sys.exit(
            f"demo: {problem}\ndemo: scripts/demo.sh installs what is missing, builds the module and finds it; by hand: PYTHONPATH=build/python"
        )
    measure.main(arguments)


if __name__ == "__main__":
    main()
