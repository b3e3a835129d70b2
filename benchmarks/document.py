"""docs/benchmarks.md: parts that are measured apart, each under a title of its own."""

from __future__ import annotations

import re


def with_section(page: str, section: str) -> str:
    """Return a page with a section in place of the one that has its title, or else behind all."""
    parts = [part.strip() for part in re.split(r"^(?=# )", page, flags=re.MULTILINE)]
    sections = {_title(part): part for part in parts if part}
    sections[_title(section)] = section.strip()
    return "\n\n".join(sections.values()) + "\n"


def _title(section: str) -> str:
    return section.strip().partition("\n")[0]
