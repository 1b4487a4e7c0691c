"""CAL201 and CAL504: does every promise hold in every group, and in every intersection of groups."""

from __future__ import annotations

from calipers.auditing.compared_parts import SliceFamily
from calipers.auditing.slices import attributes_of

GROUPS = SliceFamily(
    name="groups", word="group", codes=("CAL201", "CAL504"), column="group_cell", attributes=attributes_of,
    needs=("groups",),
    add="Add groups: a label per row (region, site, age band), or a table of them, whose promise must hold.",
)  # fmt: skip
CHECKS = GROUPS.checks()
