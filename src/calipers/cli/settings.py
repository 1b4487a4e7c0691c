"""What calipers.toml may say, checked by pydantic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, create_model

from calipers.cli.options import COLUMN_OPTIONS, FURTHER
from calipers.exceptions import InputError

if TYPE_CHECKING:
    from calipers.inputs.files import ColumnChoice

_TYPES: dict[str, Any] = dict.fromkeys(COLUMN_OPTIONS, (str | list[str] | None, None))
_TYPES |= {name: (kind | None, None) for name, (kind, _) in FURTHER.items()} | {"mute": (list[str], [])}
_Fields: Any = create_model("_Fields", **_TYPES)


class Settings(_Fields):
    """What calipers.toml may say under [audit]; the command line wins over it.

    It has an attribute for every field that a column can be chosen for (`calipers.fields`) and for every
    further setting; None where nothing was said.
    """

    model_config = ConfigDict(extra="forbid")

    def over(self, chosen: Mapping[str, Any]) -> Settings:
        """The settings with what the command line chose on top."""
        said = {name: value for name, value in chosen.items() if value is not None}
        return self.model_copy(update=said)  # type: ignore[no-any-return]

    def alphas(self) -> list[float] | None:
        """The levels as numbers; None when none were given."""
        from calipers.inputs import check_alpha

        if self.alpha is None or isinstance(self.alpha, float):
            return None if self.alpha is None else [self.alpha]
        if isinstance(self.alpha, list):
            return self.alpha
        try:
            levels = [float(word) for word in self.alpha.split(",")]
        except ValueError:
            levels = []
        if len(levels) == 1:  # out of range, it is told what alpha means
            return [check_alpha(levels[0])]
        if not levels or not all(0.0 < level < 1.0 for level in levels):
            raise InputError(
                f"--alpha must be numbers between 0 and 1 such as 0.1 or 0.05,0.1, got {self.alpha!r}. "
                "A comma separates levels; decimals have a point."
            )
        return levels

    def losses(self) -> dict[str, Any]:
        """What was said about losses, as arguments of an audit."""
        ends = self.loss_range
        if isinstance(ends, str):
            try:
                ends = [float(word) for word in ends.split(",")]
            except ValueError:
                ends = []
        if ends is not None and len(ends) != 2:
            raise InputError(f"--loss-range must be two numbers such as 0,1, got {self.loss_range!r}.")
        said = {"bound": self.bound, "loss_range": None if ends is None else tuple(ends)}
        return {name: value for name, value in said.items() if value is not None}

    def columns(self) -> ColumnChoice:
        """The columns that were chosen."""
        from calipers.inputs.files import ColumnChoice

        chosen = {name: getattr(self, name) for name in COLUMN_OPTIONS}
        return ColumnChoice(**{name: value for name, value in chosen.items() if value is not None})

    def separator(self) -> str:
        """What separates the cells of text files; empty when nothing was said."""
        found = {"tab": "\t", "\\t": "\t"}.get(self.sep or "", self.sep or "")
        if len(found.encode()) > 1:
            raise InputError(f"--sep must be one character such as ';', or the word tab, got {self.sep!r}.")
        return found
