"""requirements.lock holds one version of everything that developers install, and is in step with pyproject.toml."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LINES = [
    line
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
RENEW = "run `python3 dev.py lock`"


@pytest.fixture(scope="module")
def dev():
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def required(names, found=None):
    """Every requirement of these extras, those of extras that they name included."""
    found = [] if found is None else found
    for text in (text for name in names for text in PROJECT["optional-dependencies"][name]):
        requirement = Requirement(text)
        if requirement.name == PROJECT["name"]:
            required(sorted(requirement.extras), found)
        else:
            found.append(requirement)
    return found


def pins():
    """The version of each package on the Python and the platform of this run."""
    pinned = [Requirement(line) for line in LINES]
    here = [pin for pin in pinned if pin.marker is None or pin.marker.evaluate()]
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in here}


def test_every_line_pins_a_package_and_names_no_place_to_get_it_from():
    assert LINES
    assert [line for line in LINES if not re.fullmatch(r"[\w.-]+==[\w.!+]+( ; [^:@]+)?", line)] == []


def test_everything_that_a_command_installs_is_locked_at_a_version_that_is_allowed(dev):
    needed = [Requirement(text) for text in PROJECT["dependencies"]] + required(dev.LOCKED)
    locked = pins()
    for requirement in needed:
        if requirement.marker is None or requirement.marker.evaluate():
            version = locked.get(canonicalize_name(requirement.name))
            assert version is not None, f"{requirement.name} is not locked: {RENEW}"
            assert requirement.specifier.contains(version, prereleases=True), f"{requirement}: {RENEW}"


def test_the_lock_covers_the_extras_of_all_commands(dev):
    covered = {str(requirement) for requirement in required(dev.LOCKED)}
    commands = {extra for extras in dev.EXTRAS.values() for extra in extras}
    assert {str(requirement) for requirement in required(sorted(commands))} <= covered


def test_the_versions_of_the_lock_are_used_when_they_are_asked_for(dev, monkeypatch):
    monkeypatch.delenv("CALIPERS_LOCKED", raising=False)
    newest = dev.fingerprint()
    assert dev.constraints() == []
    monkeypatch.setenv("CALIPERS_LOCKED", "1")
    assert dev.constraints() == ["--constraint", str(ROOT / "requirements.lock")]
    assert dev.fingerprint() != newest
