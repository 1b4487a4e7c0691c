"""What it costs to have a library: importing it, its first answer, its command line, its size on disk."""

from __future__ import annotations

import importlib.metadata as metadata
import re
import subprocess
import sys
from collections.abc import Callable

from benchmarks.protocol import Answers, Inputs, Task

# What a person types first. TorchCP cannot be imported as it installs: see peers.toml.
IMPORTS = {
    "crepes": "import crepes",
    "mapie": "import mapie.classification, mapie.regression, mapie.metrics.classification",
    "puncc": "import deel.puncc.classification, deel.puncc.regression",
    "nonconformist": "import nonconformist.icp",
    "online-cp": "import online_cp",
    "torchcp": "from benchmarks.torchcp_parts import torchcp_rooms; torchcp_rooms()",
    "covmetrics": "import covmetrics",
    "netcal": "import netcal.metrics",
    "mcgrad": "import mcgrad.metrics",
    "probcal": "import probcal",
    "relplot": "import relplot",
    "scikit-learn": "import sklearn.calibration, sklearn.isotonic",
}
HEAVY = {"torch", "tensorflow", "jax", "keras", "xgboost", "xgboost-cpu", "lightgbm", "catboost"}
WHOLE = "import calipers.conformal, calipers.metrics, calipers.calibration"
P_VALUE = "from calipers.conformal import conformal_p_values as p; p([0.1, 0.2], [0.3])"


def fresh(code: str) -> Callable[[Inputs], Answers]:
    """Run the code in a new interpreter, as often as the inputs say."""

    def run(inputs: Inputs) -> Answers:
        for _ in range(int(inputs["times"])):
            subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        return {"started": True}

    return run


def closure(package: str, seen: dict[str, int]) -> dict[str, int]:
    """Bytes of a distribution and of all it requires without extras."""
    name = re.sub(r"[-_.]+", "-", package).lower()
    if name in seen:
        return seen
    try:
        found = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return seen | {name: 0}
    files = (file.locate() for file in found.files or [])
    seen = seen | {name: sum(f.stat().st_size for f in files if f.is_file() and f.suffix != ".pyc")}
    for requirement in found.requires or []:
        text, _, marker = requirement.partition(";")
        if "extra" not in marker and applies(marker):
            seen = closure(re.match(r"[\w.-]+", text.strip())[0], seen)  # type: ignore[index]
    return seen


def applies(marker: str) -> bool:
    """Whether a requirement holds here; markers of other systems and Pythons do not."""
    try:
        from packaging.markers import Marker
    except ImportError:
        from pip._vendor.packaging.markers import Marker  # type: ignore[assignment]
    return not marker.strip() or Marker(marker.strip()).evaluate({"extra": ""})


def on_disk(package: str) -> Callable[[Inputs], Answers]:
    """Megabytes of an installation, how many packages it brings, and how many of those are heavy."""

    def run(_: Inputs) -> Answers:
        sizes = {name: size for name, size in closure(package, {}).items() if size}
        return {
            "megabytes": round(sum(sizes.values()) / 1e6, 1),
            "packages": len(sizes),
            "heavy": len(HEAVY & set(sizes)),
        }

    return run


DISTRIBUTIONS = {name: {"mcgrad": "MCGrad", "mapie": "MAPIE"}.get(name, name) for name in IMPORTS}

TASKS = [
    Task(
        name="import",
        sizes=(1, 2, 4),
        prepare=lambda n: {"times": n},
        judged=False,
        ours=fresh("import calipers"),
        limit=fresh("import numpy"),
        bar="at most 0.2 s beyond numpy",
        quick=True,
    ),
    Task(
        name="import of every room",
        sizes=(1,),
        prepare=lambda n: {"times": n},
        judged=False,
        ours=fresh(WHOLE),
        peers={name: fresh(code) for name, code in IMPORTS.items()},
        limit=fresh("import numpy"),
        quick=False,
    ),
    Task(
        name="first p-value in a new interpreter",
        sizes=(1,),
        prepare=lambda n: {"times": n},
        judged=False,
        ours=fresh(P_VALUE),
        limit=fresh("import numpy"),
        quick=False,
    ),
    Task(
        name="command line help",
        sizes=(1, 2, 4),
        prepare=lambda n: {"times": n},
        judged=False,
        ours=fresh("import sys; sys.argv = ['calipers', '--help']; from calipers.cli import main; main()"),
        limit=fresh("pass"),
        bar="--help under 0.5 s beyond interpreter start",
    ),
    Task(
        name="install size",
        sizes=(1,),
        prepare=lambda n: {"times": n},
        judged=False,
        ours=on_disk("calipers"),
        peers={name: on_disk(package) for name, package in DISTRIBUTIONS.items()},
        bar="no deep-learning framework, no boosting library beyond scikit-learn's own",
        quick=False,
    ),
]
