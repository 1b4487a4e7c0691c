"""Save and load fitted predictors without pickle: a skops file with the versions that wrote it."""

from __future__ import annotations

import hashlib
import importlib
import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from calipers.arrays import import_optional
from calipers.conformal.stored_schema import check_stored
from calipers.exceptions import CalipersError, DegradedResultWarning, InputError, warn
from calipers.results import write_atomically
from calipers.version import __version__

_DIGEST = "sha256"
_NOTE = "calipers.json"  # a member of the zip archive that skops does not look at
_OWN_ROOMS = ("calipers.conformal.", "calipers.difficulty.")
# What a damaged or doctored archive makes zipfile, json, numpy and skops raise.
_DAMAGE = (
    zipfile.BadZipFile, AttributeError, EOFError, ImportError, KeyError, IndexError, MemoryError,
    NotImplementedError, OverflowError, RecursionError, RuntimeError, TypeError, ValueError, zlib.error,
)  # fmt: skip


def save_predictor(predictor: Any, path: Path | str) -> Path:
    """Write a fitted predictor to a file that holds data only, no code.

    Parameters
    ----------
    predictor : ConformalClassifier, ConformalRegressor or TransductiveKNNClassifier
        Fitted, with any scikit-learn model inside.
    path : path
        The file; by custom it ends in ``.skops``. An existing one is replaced once the new one is complete.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    InputError
        When a part cannot be written as data: a lambda, or a grouping that keeps the model's method; or when
        the file cannot be written.
    MissingDependencyError
        Without skops.

    Notes
    -----
    The versions of Calipers and scikit-learn and a checksum are written beside it; `load_predictor`
    reads them first. The checksum finds accidents. It is not a signature: anyone who changes a file on
    purpose can change it too.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from calipers.conformal import ConformalClassifier, load_predictor, save_predictor
    >>> X, y = load_iris(return_X_y=True)
    >>> predictor = ConformalClassifier(calibration_size=0.4, random_state=0).fit(X, y)
    >>> path = save_predictor(predictor, pathlib.Path(tempfile.mkdtemp(), "iris.skops"))
    >>> bool((load_predictor(path).predict_set(X) == predictor.predict_set(X)).all())
    True
    """
    content = _as_data(predictor)

    def write(file: IO[bytes]) -> None:
        file.write(content)
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr(_NOTE, json.dumps(_versions() | {_DIGEST: digest_of(archive)}))

    return write_atomically(path, write)


def load_predictor(path: Path | str, *, trusted: Sequence[str] = ()) -> Any:
    """Read a predictor that `save_predictor` wrote; no code of the file is run.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str
        Types outside Calipers and skops's own list that may be built, by full name; the error that refuses a
        file lists them. Name only types you know: building one calls it with the file's data.

    Returns
    -------
    predictor
        As it was saved.

    Raises
    ------
    InputError
        For a file that `save_predictor` did not write, one of an incompatible version, one with types that
        are not trusted, a damaged one, and one that holds no predictor of ours.
    MissingDependencyError
        Without skops.

    Notes
    -----
    Versions are compared before anything is built. Another minor version before 1.0, or another major one
    after it, is refused; any other difference of Calipers or scikit-learn gives a `DegradedResultWarning`.

    Examples
    --------
    >>> from calipers.conformal import load_predictor
    >>> load_predictor("no-such-file.skops")
    Traceback (most recent call last):
        ...
    FileNotFoundError: [Errno 2] No such file or directory: 'no-such-file.skops'
    """
    place = Path(path)
    note = _written_by(place)
    _check_versions(note, place.name)
    skops = _skops()
    with _damage_named(place):
        _check_digest(place, note.get(_DIGEST))
        unknown = skops.get_untrusted_types(file=place)
    refused = sorted(name for name in unknown if name not in trusted and not _is_ours(name))
    if refused:
        raise InputError(
            f"{place.name} holds types that are not trusted: {', '.join(refused)}. "
            "Do not load it unless you know who wrote it and what each of them does; "
            f"then pass trusted={refused}."
        )
    with _damage_named(place):
        predictor = skops.load(place, trusted=unknown)
    if not type(predictor).__module__.startswith("calipers.conformal."):
        raise InputError(f"{place.name} does not hold a Calipers predictor but a {type(predictor).__name__}.")
    with _damage_named(place):
        check_stored(predictor)
    return predictor


@contextmanager
def _damage_named(place: Path) -> Iterator[None]:
    try:
        yield
    except CalipersError:
        raise
    except _DAMAGE as error:
        raise InputError(
            f"{place.name} is damaged or was changed after save_predictor wrote it "
            f"({type(error).__name__}: {str(error).strip()[:120]}). Save the predictor again."
        ) from None


def digest_of(archive: zipfile.ZipFile) -> str:
    """SHA-256 of all members but the note, by name and content."""
    whole = hashlib.sha256()
    for name in sorted(set(archive.namelist()) - {_NOTE}):
        content = archive.read(name)
        whole.update(f"{name}:{len(content)}:".encode() + content)
    return whole.hexdigest()


def _check_digest(place: Path, stated: str | None) -> None:
    if stated is None:
        warn(
            f"{place.name} has no checksum; damage to it cannot be detected. Save the predictor again.",
            DegradedResultWarning,
        )
        return
    with zipfile.ZipFile(place) as archive:
        if digest_of(archive) != stated:
            raise ValueError("its content does not match its checksum")


def _as_data(predictor: Any) -> bytes:
    skops = _skops()
    try:
        content: bytes = skops.dumps(predictor)
        nameless = [name for name in skops.get_untrusted_types(data=content) if "<" in name]
    except RecursionError:
        nameless = ["a method of the model that a grouping keeps"]
    if nameless:  # skops writes a lambda without a word, and cannot find it again
        raise InputError(
            f"{type(predictor).__name__} has a part that cannot be written as data: {', '.join(nameless)}. "
            "Use named functions instead of lambdas, and groups as arrays instead of fitted difficulty bins."
        )
    return content


def _skops() -> Any:
    return import_optional("skops.io", purpose="saved predictors", install="calipers[save]")


def _versions() -> dict[str, str]:
    import sklearn

    return {"calipers": __version__, "scikit-learn": str(sklearn.__version__)}


def is_saved_predictor(place: Path) -> bool:
    """Whether an archive has the note of `save_predictor`."""
    with zipfile.ZipFile(place) as archive:
        return _NOTE in archive.namelist()


def _written_by(place: Path) -> dict[str, str]:
    try:
        with zipfile.ZipFile(place) as archive:
            versions = dict(json.loads(archive.read(_NOTE)))
    except _DAMAGE:
        raise InputError(
            f"{place.name} was not written by save_predictor. Pickle and joblib files are never read: "
            "they can run any code. Load the model where you trust it and save it again."
        ) from None
    stated = {name: str(versions.get(name, "unknown")) for name in _versions()}
    return stated | ({_DIGEST: str(versions[_DIGEST])} if _DIGEST in versions else {})


def _check_versions(written: dict[str, str], name: str) -> None:
    here = _versions()
    if _series(written["calipers"]) != _series(here["calipers"]):
        raise InputError(
            f"{name} was written by calipers {written['calipers']}, this is {here['calipers']}; "
            "fitted predictors are not carried over. Fit it again."
        )
    for package in here:
        version = written[package]
        if version != here[package]:
            warn(
                f"{name} was written with {package} {version}, this is {here[package]}: "
                "check its predictions against stored ones before you rely on them.",
                DegradedResultWarning,
            )


def _series(version: str) -> tuple[str, ...]:
    """The part of a version within which files stay readable: 0.1 of 0.1.3, 2 of 2.4.0."""
    numbers = version.split(".")
    return tuple(numbers[:2]) if numbers[0] == "0" else tuple(numbers[:1])


def _is_ours(name: str) -> bool:
    """Whether the name is that of a class or function defined in one of our own packages, or a partial.

    Not those of this module: a score that is `save_predictor` with a path would write over that file at the
    first prediction.
    """
    if name == "functools.partial":  # what it holds is checked by its own name
        return True
    module_name, _, attribute = name.rpartition(".")
    if not name.startswith(_OWN_ROOMS) or module_name == __name__:
        return False
    try:
        thing = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError):
        return False
    return bool(getattr(thing, "__module__", "") == module_name)
