"""`finetti ...` and `python -m finetti ...`: the command line tool, where the package carries it."""

import os
import sys


def main():
    tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "finetti")
    if not os.path.exists(tool):
        sys.exit("finetti: this package has no command line tool in it; `make wheel` makes one that has")
    os.execv(tool, ["finetti", *sys.argv[1:]])


if __name__ == "__main__":
    main()
