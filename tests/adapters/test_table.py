"""Test that other files agree with the list of protocols in adapters/table.py."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import arrayhub
from arrayhub import USMArray
from arrayhub._core.descriptor import IN_MESSAGES, PROTOCOL_NAMES
from arrayhub.adapters.table import BY_VIA, PROTOCOLS
from arrayhub.convert.functions import protocols_of_type

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "arrayhub"
IDENTIFIER = {
    "array_interface": "ARRAY_INTERFACE",
    "array_struct": "ARRAY_STRUCT",
    "cuda": "CUDA_DICT",
    "sycl": "SYCL_DICT",
    "buffer": "PEP3118",
    "dlpack": "DLPACK_PROTOCOL",
    "arrow": "ARROW_PROTOCOL",
}
NUMBERS = {name: row.number for name, row in BY_VIA.items()}


def stub_literal(stub, name):
    """Return the strings of the ``Literal`` alias `name` in the file `stub`."""
    for node in ast.parse((PACKAGE / stub).read_text()).body:
        if isinstance(node, ast.AnnAssign) and node.target.id == name:
            return [element.value for element in node.value.slice.elts]
    raise AssertionError(f"{stub} does not define {name}")


def test_numbers_names_and_attributes_are_unique():
    assert sorted(NUMBERS.values()) == list(range(1, len(BY_VIA) + 1))
    assert len({row.name for row in PROTOCOLS}) == len(PROTOCOLS)
    attributes = [name for row in PROTOCOLS for name in row.attributes]
    assert len(set(attributes)) == len(attributes)


def test_rows_with_the_same_number_have_the_same_words():
    by_number = {row.number: row for row in BY_VIA.values()}
    for row in PROTOCOLS:
        assert by_number[row.number].words == row.words


def test_c_header_has_the_protocol_numbers():
    text = (PACKAGE / "include" / "arrayhub.h").read_text()
    section = text.partition("PyUSMArrayObject.protocol:")[2].partition("\n\n")[0]
    defined = {name: int(number) for name, number in re.findall(r"#define USM_ARRAY_(\w+) +(\d+)", section)}
    assert defined.pop("CONSTRUCTED") == 0
    assert defined == {IDENTIFIER[name].removesuffix("_PROTOCOL"): number for name, number in NUMBERS.items()}


def test_cython_declarations_have_the_protocol_numbers():
    text = (PACKAGE / "adapters" / "table.pxd").read_text()
    declared = {name: int(number) for name, number in re.findall(r"^    (\w+) = (\d+)$", text, re.MULTILINE)}
    assert declared == {IDENTIFIER[name]: number for name, number in NUMBERS.items()}
    assert [*declared.values()] == sorted(declared.values()), "PROTOCOL_NUMBERS is not the last number plus one"


def test_descriptor_has_the_names_and_words_of_the_table():
    assert {0: "constructed"} | {row.number: row.name for row in BY_VIA.values()} == PROTOCOL_NAMES
    assert {0: "USMArray"} | {row.number: row.words for row in PROTOCOLS} == IN_MESSAGES


def test_stubs_list_the_protocol_names():
    assert stub_literal("convert/functions.pyi", "_Via") == [*BY_VIA]
    assert stub_literal("array/usm_array.pyi", "_Protocol") == [*BY_VIA, "constructed"]


def test_asarray_docstring_lists_the_protocol_names():
    listed = re.search(r"^ *via : \{(.*?)\}", arrayhub.asarray.__doc__, re.MULTILINE)[1]
    assert [name.strip('" ') for name in listed.split(",")] == [*BY_VIA]


def test_protocols_page_lists_the_attributes_in_order():
    text = (ROOT / "docs" / "protocols.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == [*range(1, len(PROTOCOLS) + 1)]
    for (_, cell), row in zip(rows, PROTOCOLS, strict=True):
        assert set(re.findall(r"`(\w+)`", cell)) == set(row.attributes)


@pytest.mark.parametrize("attribute", [name for row in PROTOCOLS for name in row.attributes])
def test_usm_array_defines_each_protocol_attribute(attribute):
    assert attribute in vars(USMArray)


def test_error_for_an_invalid_via_lists_the_protocol_names():
    with pytest.raises(ValueError, match="accepted: ") as error:
        arrayhub.asarray(np.zeros(1), via="numpy")
    assert str(error.value).partition("accepted: ")[2] == ", ".join(BY_VIA)


def test_protocols_of_a_type_are_in_the_order_of_the_table():
    every = {name: property(lambda self: None) for row in PROTOCOLS for name in row.attributes}
    every["__dlpack_c_exchange_api__"] = USMArray.__dlpack_c_exchange_api__
    cls = type("Every", (bytearray,), every)
    assert protocols_of_type(cls) == (False, tuple(row.name for row in PROTOCOLS))


@pytest.mark.parametrize("row", PROTOCOLS, ids=lambda row: row.name)
def test_any_attribute_of_a_protocol_selects_it(row):
    bases = () if row.attributes else (bytearray,)
    for attribute in row.attributes or ("unused",):
        # Without __slots__, instances could have other protocol attributes in their __dict__.
        members = {attribute: property(lambda self: None), "__slots__": ()}
        assert protocols_of_type(type("One", bases, members))[1] == (row.name,)
        assert protocols_of_type(type("Disabled", (), {**members, attribute: None}))[1] == ()


def test_four_files_name_more_than_three_protocols():
    """These files are the table, the array class, and two modules whose docstrings list protocols."""
    number_of = {name: row.number for row in PROTOCOLS for name in row.attributes}
    found = set()
    for path in [path for suffix in ("py", "pyx", "pxd", "pxi") for path in PACKAGE.rglob(f"*.{suffix}")]:
        if len({number_of.get(word) for word in re.findall(r"\w+", path.read_text())} - {None}) > 3:
            found.add(path.relative_to(PACKAGE).as_posix())
    assert found == {"__init__.py", "adapters/interface_dict.pyx", "adapters/table.py", "array/usm_array.pyx"}
