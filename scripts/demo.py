# SPDX-License-Identifier: MIT
"""The demo: measures recall and speed of indexes on real vectors under a kernel.

demo_options.py defines the options. measure.py does the work. It is imported only after the options were checked, so
--help needs neither FAISS nor the built module.
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
