"""The page about columns, files and settings says what the tables of fields and formats say."""

from __future__ import annotations

import re
import tomllib

import pytest

from calipers.cli.options import FURTHER, Settings
from calipers.fields import FIELDS, STATED
from calipers.inputs.files.formats import COMPRESSIONS, FORMATS
from tests.docs.pages import DOCS

TEXT = (DOCS / "howto" / "files.md").read_text(encoding="utf-8")


def code(*words: str) -> str:
    return ", ".join(f"`{word}`" for word in words)


def fields() -> list[list[str]]:
    return [
        [
            code(field.column.replace("*", "<level>" if field.layout == "per level" else "<class>"))
            if field.column
            else "all others",
            code(f"--{field.option.replace('_', '-')}"),
            code(field.argument) if field.name != "row_id" else "none",
            field.shape,
            field.means,
        ]
        for field in FIELDS
    ]


def formats() -> list[list[str]]:
    return [
        [
            kind.name,
            code(*kind.endings),
            code(*COMPRESSIONS) if kind.is_text else "by itself",
            "in memory" if kind.in_memory else "yes",
        ]
        for kind in FORMATS
    ]


def stated() -> list[list[str]]:
    return [[code(name), means] for name, means in STATED.items()]


@pytest.mark.parametrize("table", [fields, formats, stated], ids=lambda table: table.__name__)
def test_a_table_of_the_page_is_the_table_of_the_code(table) -> None:
    printed = re.search(
        rf"<!-- {table.__name__} -->\n.*?\n(?:\|---)+\|\n(.*?)<!-- end -->", TEXT, flags=re.DOTALL
    )
    assert printed is not None
    assert printed[1] == "".join(f"| {' | '.join(row)} |\n" for row in table())


def test_the_example_of_settings_is_valid_and_shows_every_further_one() -> None:
    section = tomllib.loads(re.search(r"```toml\n(.*?)```", TEXT, flags=re.DOTALL)[1])["audit"]
    assert Settings(**section).alphas() == [0.05, 0.1]
    assert set(FURTHER) <= set(section)
