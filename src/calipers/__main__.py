"""``python -m calipers`` is ``calipers``."""

import sys

from calipers.cli import main

if __name__ == "__main__":
    sys.exit(main())
