"""Write outputs.json: what MAPIE and crepes return on one small problem.

Run it once per environment that holds one of them (``python tests/interop/record_outputs.py``); each run
adds its library to the file. A point prediction that comes with them is left out: JSON knows no tuples.
"""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

PLACE = Path(__file__).with_name("outputs.json")


def plain(value: Any) -> list[Any]:
    """Arrays, and lists of arrays of several lengths, as JSON has them."""
    rows = value[1] if isinstance(value, tuple) else value
    return [np.asarray(row).tolist() for row in rows]


if __name__ == "__main__":
    sys.path.insert(0, str(PLACE.parents[2]))
    from tests.interop.peers import crepes, mapie

    stored = json.loads(PLACE.read_text(encoding="utf-8")) if PLACE.exists() else {}
    for library in (mapie, crepes):
        name = library.__name__
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        stored[name] = {"version": version, **{key: plain(value) for key, value in library().items()}}
    PLACE.write_text(json.dumps(dict(sorted(stored.items()))) + "\n", encoding="utf-8")
