"""Each rule of the conformance kit fails for a class that breaks the rule, and passes for a correct class."""

import time

import broken_arrays
import numpy as np
import pytest
from broken_arrays import Array

import arrayhub as ah
from arrayhub.libraries import plugins, wrappers
from arrayhub.testing import Report, check_consumer, check_producer, isolation
from arrayhub.testing.report import FAILED, NOT_MADE, describe_cells

SMALL = dict(dtypes=["float64"], layouts=["C", "read-only"])


def failing(report):
    return {cell.rule for cell in report.failures()}


@pytest.mark.slow
def test_correct_producers_pass():
    for make in (Array, ah.asarray, np.asarray):
        report = check_producer(
            make, dtypes=["bool", "float32", "complex128", "bfloat16"], layouts=["C", "0-d", "empty"]
        )
        report.assert_ok()
        assert report.ok and {cell.verdict for cell in report.cells} >= {"passed"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "rule", "words"),
    [
        (broken_arrays.OtherElements, "values", "the elements differ"),
        (broken_arrays.Disagreeing, "agreement", "pointer: "),
        (broken_arrays.Writable, "read-only", "read-only memory is writable through array_interface"),
        (broken_arrays.Leaking, "lifetime", "the memory is not released after an array imported through"),
        (broken_arrays.OneCapsule, "capsules", "used"),
        (broken_arrays.ElsewhereInWords, "device", "__dlpack_device__ returns (2, 0); the memory is on cpu"),
        (broken_arrays.WithoutVersion, "versions", "max_version is not accepted"),
        (broken_arrays.WithoutDevice, "dl_device", "the object's own device is not accepted as dl_device"),
        (broken_arrays.NeverCopying, "copy", "copy=True returns the same memory"),
        (broken_arrays.WithoutStream, "streams", "stream=None is not accepted: TypeError"),
        (broken_arrays.WithoutExport, "values", "object has no attribute 'to_dlpack'"),
        (broken_arrays.Refusing, "values", "no array was exported: Refusal: DLPack: "),
        (broken_arrays.RefusingByRuntimeError, "refusal", "raises RuntimeError instead of BufferError"),
    ],
)
def test_each_rule_of_producers_reports_a_class_that_breaks_it(make, rule, words):
    report = check_producer(make, **SMALL)
    assert rule in failing(report), str(report)
    assert any(words in cell.why for cell in report.failures() if cell.rule == rule), str(report)
    with pytest.raises(AssertionError, match="breaks rules") as raised:
        report.assert_ok()
    assert words in str(raised.value) and words in str(report)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "rules"),
    [
        (broken_arrays.read_reversed, {"values"}),
        (broken_arrays.read_as_int8, {"values"}),
        (broken_arrays.read_writable, {"read-only", "lifetime"}),
        (broken_arrays.read_and_keep, {"lifetime"}),
        (broken_arrays.read_legacy, {"request"}),
        (broken_arrays.read_anything, {"values", "refusal", "byte_offset", "null strides", "null pointer", "device"}),
    ],
    ids=lambda value: value.__name__ if callable(value) else ", ".join(sorted(value)),
)
def test_each_rule_of_consumers_reports_a_function_that_breaks_it(read, rules):
    report = check_consumer(read, **SMALL)
    assert rules <= failing(report), str(report)


def test_correct_consumer_passes():
    report = check_consumer(broken_arrays.read, dtypes=["int16", "float64", "S5"])
    report.assert_ok()


@pytest.mark.slow
def test_class_that_ends_the_process_fails_only_one_layout():
    report = check_producer(broken_arrays.Aborting, dtypes=["float32", "float64"], layouts=["C", "negative"])
    found = {(cell.dtype, cell.layout, cell.verdict) for cell in report.cells if cell.rule == "capsules"}
    assert ("float32", "negative", FAILED) in found and ("float64", "negative", NOT_MADE) in found
    assert ("float64", "C", "passed") in found
    assert "the process ended by signal 6" in str(report)


@pytest.mark.slow
def test_function_that_cannot_be_imported_runs_in_a_fork():
    report = check_producer(lambda array: array, **SMALL)
    report.assert_ok()
    assert "ended by signal 6" in str(check_consumer(lambda obj: broken_arrays.read_and_abort(obj), **SMALL))


def test_protocols_are_tested_in_place_of_the_registered_attribute(monkeypatch):
    monkeypatch.setattr(wrappers, "TYPES", wrappers.TYPES)
    monkeypatch.setattr(plugins, "REGISTERED", plugins.REGISTERED)
    ah.register_library("broken_arrays", types={"Disagreeing": "array"})
    assert "agreement" in failing(check_producer(lambda array: broken_arrays.Disagreeing(array), **SMALL))


def test_function_that_does_not_return_fails(monkeypatch):
    monkeypatch.setattr(isolation, "_LIMIT", 1)
    report = check_consumer(lambda obj: time.sleep(30), **SMALL)
    assert [(cell.rule, cell.why) for cell in report.failures()] == [("values", f"the process {isolation._LATE}")]


@pytest.mark.parametrize("argument", ["dtypes", "layouts"])
def test_unknown_dtypes_and_layouts_raise(argument):
    with pytest.raises(ValueError, match=f"check_producer: {argument} has 'decimal'; accepted: "):
        check_producer(np.asarray, **{argument: ["decimal"]})


@pytest.mark.parametrize("check", [check_producer, check_consumer])
def test_invalid_arguments_raise(check):
    name = check.__name__
    for argument in ("dtypes", "layouts"):
        with pytest.raises(ValueError, match=f"^{name}: {argument} is empty; accepted: "):
            check(broken_arrays.read, **{argument: []})
    with pytest.raises(TypeError, match=rf"^{name}: array\(.* is not callable; accepted: a function of one argument"):
        check(np.ones(3))
    with pytest.raises(ValueError, match=f"^{name}: dtypes has None"):
        check(broken_arrays.read, dtypes=[None])
    with pytest.raises(ValueError, match=f"^{name}: layouts is 'unaligned', and elements of uint8 do not have"):
        check(broken_arrays.read, dtypes="uint8", layouts="unaligned")


@pytest.mark.slow
@pytest.mark.parametrize("dtypes", [np.float32, "float32", np.dtype("f4"), [np.float32], ["<f4"], (np.dtype("f4"),)])
def test_dtypes_are_given_as_in_numpy(dtypes):
    report = check_producer(broken_arrays.read, dtypes=dtypes, layouts="1-d")
    assert {(cell.dtype, cell.layout) for cell in report.cells} == {("float32", "1-d")}
    assert check_producer(broken_arrays.read, dtypes=[float, np.longdouble, ">f8"], layouts="C").ok


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "function", "words"),
    [
        (check_producer, broken_arrays.with_typo, "values: no array was exported: NameError: name 'typo' is not"),
        (check_consumer, broken_arrays.with_typo, "values: no array was imported: NameError: name 'typo'"),
        (
            check_producer,
            broken_arrays.returning_none,
            "values: make returns an object that is not an array: TypeRefusal",
        ),
        (check_consumer, broken_arrays.returning_none, "values: DLPack: the consumer returned None"),
    ],
)
def test_function_with_which_nothing_can_be_tested_fails(check, function, words):
    report = check(function, **SMALL)
    assert not report.ok and words in str(report)
    assert "refusal" not in {cell.rule for cell in report.cells if cell.verdict == "passed"}, str(report)


def test_later_rules_do_not_repeat_a_failure_of_values():
    assert failing(check_producer(broken_arrays.reversed_copy, **SMALL)) == {"values"}
    assert "lifetime" not in failing(check_consumer(broken_arrays.read_reversed, **SMALL))


def test_missing_optional_features_are_not_failures():
    # an `__dlpack__` without max_version is allowed
    report = check_producer(broken_arrays.read_legacy, **SMALL)
    none = check_producer(broken_arrays.Array, dtypes=["datetime64[ns]", "int8"], layouts=["C"])
    assert report.ok and none.ok, str(none)


def test_describe_cells_groups_dtypes_by_layouts():
    places = [("bool", "C"), ("bool", "F"), ("int8", "C"), ("int8", "F"), ("int16", "C")]
    assert describe_cells(places) == "bool, int8 (C, F); int16 (C)"


def test_report_is_short_in_a_debugger():
    assert repr(Report("x", (), [])) == "<Report x: 0 cells, 0 failing>"
    assert Report("<x>", (), [])._repr_html_().startswith("<pre>&lt;x&gt;\nrule")
