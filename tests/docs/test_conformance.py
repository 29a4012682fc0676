"""Test that docs/conformance.md equals the conformance kit's reports on the installed libraries."""

import pytest
from conformance.page import LIBRARIES, PAGE, opening, section, sections_of_page, version_of

pytestmark = pytest.mark.slow

SECTIONS = sections_of_page()


def test_every_library_has_a_section():
    assert set(SECTIONS) == set(LIBRARIES)


def test_the_page_lists_the_rules():
    assert PAGE.read_text().startswith(opening())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("distribution", LIBRARIES)
def test_page_equals_the_report_of_each_library(distribution):
    version, text = SECTIONS[distribution]
    if version_of(distribution) != version:
        pytest.skip(f"the page is about {distribution} {version}; {version_of(distribution)} is installed")
    assert section(distribution).rstrip() == text
