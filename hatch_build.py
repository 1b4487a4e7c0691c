"""The addresses of the project in the metadata of a build: those of the repository that builds it.

The sources name no address: a fork that builds a release states its own. Outside GitHub's workflows there is
nothing to state, and the build has no addresses.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def addresses(environment: Mapping[str, str]) -> dict[str, str]:
    """The `[project.urls]` of a build in a workflow of GitHub; empty elsewhere."""
    repository = environment.get("GITHUB_REPOSITORY")
    if not repository:
        return {}
    home = f"{environment.get('GITHUB_SERVER_URL', 'https://github.com')}/{repository}"
    return {
        "Source": home,
        "Documentation": f"{home}/tree/main/docs",
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }


class Addresses(MetadataHookInterface):
    """Called by hatchling, because `[tool.hatch.metadata.hooks.custom]` is there."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the addresses."""
        metadata["urls"] = addresses(os.environ)
