"""Every public name can still be imported and called as before."""

from __future__ import annotations

import importlib

import pytest

from tests.golden import signatures
from tests.golden.capabilities import is_a_test
from tests.golden.storage import load

STORED = load("signatures")
NAMES = [(room, name) for room, names in STORED.items() for name in names]


@pytest.mark.parametrize("room", [room for room in STORED if room not in signatures.INNER])
def test_public_rooms_can_be_imported(room):
    assert importlib.import_module(room)


@pytest.mark.parametrize(("room", "name"), NAMES, ids=[".".join(pair) for pair in NAMES])
def test_a_public_name_keeps_its_parameters(room, name):
    renamed = signatures.RENAMED.get(f"{room}.{name}", {})
    assert all(is_a_test(test) for _, test in renamed.values())
    now = signatures.describe(signatures.public_name(room, name))
    found = list(signatures.lost(STORED[room][name], now, {old: new for old, (new, _) in renamed.items()}))
    assert found == []


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ("a, b, *, c=1", []),
        ("a, b, d=2, *, c=1, e=None", []),
        ("a, b, c=1", []),
        ("a=None, b=None, *, c=1", []),
        ("a, b, **options", []),
        ("b, a, *, c=1", ["takes b, a by position, must take a, b"]),
        ("a, *, b, c=1", ["takes a by position, must take a, b"]),
        ("a, b, *, c=2", ["has c=2, must keep 1"]),
        ("a, b, *, c", ["requires c, must keep its default 1"]),
        ("a, b", ["no longer takes c"]),
        ("a, b, *, c=1, d", ["now requires d"]),
    ],
)
def test_the_rule_allows_additions_and_sees_losses(now, said):
    assert list(signatures.lost_parameters("a, b, *, c=1", now, {})) == said


def test_the_rule_sees_lost_members_bases_and_values():
    def losses(stored, now):
        return list(signatures.lost(stored, now))

    assert losses({"kind": "class", "members": {"fit": "(X)"}}, {"kind": "class", "members": {}}) == [
        ".fit is gone"
    ]
    assert losses({"kind": "class", "bases": ["ValueError"]}, {"kind": "class", "bases": []}) == [
        "is no longer a ValueError"
    ]
    assert losses({"kind": "value", "holds": ["issue"]}, {"kind": "value", "holds": []}) == [
        "no longer holds 'issue'"
    ]
    assert losses({"kind": "module"}, {"kind": "value"}) == ["was a module, is a value"]


def test_renamed_parameters_are_looked_for_under_their_new_name():
    assert list(signatures.lost_parameters("a, *, old=1", "a, *, new=1", {"old": "new"})) == []
