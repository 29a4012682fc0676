"""The table of answers that depend on the consumer."""

from pathlib import Path

from arrayhub.libraries.consumer_quirks import QUIRKS

NAMES = (Path(__file__).resolve().parents[2] / "docs" / "private_names.md").read_text()


def test_answers_against_wrong_values_and_aborts_link_an_upstream_issue():
    for quirk in QUIRKS:
        assert quirk.fault == "refuses oneAPI devices" or quirk.issue.startswith("https://github.com/"), quirk


def test_the_page_on_private_names_lists_each_caller():
    assert [quirk.caller for quirk in QUIRKS if quirk.caller not in NAMES] == []
