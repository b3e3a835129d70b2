"""docs/findings.md has a section for each code, in the order and with the severity of the code."""

from __future__ import annotations

import re

from chainkit_jobs.findings import MEANINGS, Code
from support.project import DOCS

DOCUMENT = (DOCS / "findings.md").read_text()
SECTIONS = re.findall(r"\n### ([A-Z_]+)\n\n(.*?)(?=\n##|\Z)", DOCUMENT, re.DOTALL)


def test_document__codes__each_has_its_section() -> None:
    assert [code for code, _ in SECTIONS] == [code.value for code in Code]


def test_document__section__begins_with_the_severity_and_names_cause_and_evidence() -> None:
    for code, text in SECTIONS:
        assert text.lower().startswith(MEANINGS[Code(code)].severity.value), code
        assert "*Innocent cause:*" in text, code
        assert "*Evidence:*" in text, code
