"""Test that docs/conformance.md equals the conformance kit's reports on the installed libraries."""

import re

import pytest
from conformance.page import DEVIATIONS, LIBRARIES, PAGE, opening, reports, row, rows_of_page, version_of

pytestmark = pytest.mark.slow

ROWS = rows_of_page()


def test_page_lists_the_rules_and_each_library():
    assert PAGE.read_text().startswith(opening().rstrip())
    assert {name for name, _ in ROWS} == set(LIBRARIES)


def test_page_shows_each_deviation():
    sections = re.findall(r"^### (\S+) as a (\w+): (.*)$", PAGE.read_text(), re.MULTILINE)
    assert sections == [(each.distribution, each.role, each.rule) for each in DEVIATIONS]


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda each: f"{each.distribution}-{each.role}-{each.rule}")
def test_programs_have_at_most_five_lines(deviation):
    assert sum(bool(line.strip()) for line in deviation.program.splitlines()) <= 5


@pytest.mark.timeout(900)
@pytest.mark.parametrize("distribution", LIBRARIES)
def test_page_equals_the_report_of_each_library(distribution):
    for role, report in reports(distribution):
        version, line = ROWS[distribution, role]
        if version_of(distribution) != version:
            pytest.skip(f"the page is about {distribution} {version}; {version_of(distribution)} is installed")
        assert row(distribution, role, report) == line
