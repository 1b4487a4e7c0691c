"""Many files, or one that memory cannot hold: the audit of a data lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calipers.auditing import Audit
    from calipers.cli.options import Settings
    from calipers.engines import FileSource


def is_lake(files: Sequence[str], settings: Settings) -> bool:
    """Whether the rows must be streamed: several files, a pattern, a folder, an address, or too many."""
    from calipers.inputs.files.formats import fits_memory

    first = files[0]
    if len(files) > 1 or "://" in first or Path(first).is_dir():
        return True
    if any(character in first for character in "*?[") and not Path(first).exists():
        return True
    return settings.max_rows is None and not fits_memory(Path(first))


def source_of(files: Sequence[str], settings: Settings, storage: Mapping[str, str]) -> FileSource:
    """The rows, with all their columns and levels."""
    from dataclasses import replace

    from calipers.engines import FileSource

    source = FileSource(list(files), choice=settings.columns(), features=True, storage=storage)
    stated = settings.alphas() or source.stated_levels() or [0.1]
    return replace(source, alpha=stated)


def run_lake(source: FileSource, settings: Settings, *, engine: str, plan: bool, quiet: bool) -> Audit | None:
    """The audit of all rows, with a progress bar; or its plan, printed."""
    from calipers.auditing import audit
    from calipers.cli.audit import print_plan
    from calipers.cli.progress import check_progress

    if plan:
        pieces = source.pieces()
        n = sum(piece.rows for piece in pieces)
        print(f"{n} rows in {len(source.files())} file(s), streamed")
        print_plan(pieces[0].roles.described(), pieces[0].head(), n)
        return None
    files = [source.paths] if isinstance(source.paths, str) else source.paths
    name = Path(files[0].rstrip("/")).stem.strip("*") or "rows"
    with check_progress(quiet=quiet, title="Reading") as progress:
        return audit(
            source=source, alpha=source.alpha, n_calibration=settings.n_calibration,
            random_state=settings.seed or 0, engine=engine, mute=settings.mute, name=name,
            origin=", ".join(files), progress=progress,
        )  # fmt: skip
