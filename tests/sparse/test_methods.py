"""explain, debug_repr, check and trace describe sparse arrays."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from sparse_arrays import FORMATS, matrix

import arrayhub as ah
from arrayhub.runtimes.cuda import has_device
from arrayhub.sparse.array import _ELSEWHERE as ELSEWHERE


def verdicts(obj, to=None):
    return {verdict.consumer: verdict for verdict in ah.explain(obj, *[to] * (to is not None)).verdicts}


@pytest.mark.parametrize("format", FORMATS)
def test_verdicts_agree_with_convert(format):
    given = matrix(format)
    for consumer, verdict in verdicts(given).items():
        if consumer == "cupy":
            continue
        if verdict.verdict == "zero-copy":
            ah.convert(given, consumer)
            continue
        with pytest.raises((BufferError, ImportError)):
            ah.convert(given, consumer)
        if verdict.verdict == "copy=True":
            ah.convert(given, consumer, copy=True)


def test_explanation_suggests_assparse():
    text = str(ah.explain(matrix()))
    assert "csr of shape (6, 8)" in text and "assparse imports it" in text
    assert verdicts(matrix())["torch"].verdict == "zero-copy"
    assert verdicts(matrix("coo"))["torch"].verdict == "copy=True"
    assert verdicts(matrix("csc"))["jax"].verdict == "cannot"
    assert verdicts(torch.eye(3).to_sparse_csr(), "scipy")["scipy"].verdict == "zero-copy"
    assert "to_dense()" in verdicts(matrix(), "numpy")["numpy"].reason
    assert "it is a SparseArray" in str(ah.explain(ah.assparse(matrix())))


CALLS = {
    None: "arrayhub.assparse(x)",
    "scipy": "arrayhub.as_scipy(x)",
    "torch": "arrayhub.as_torch(x)",
    "numpy": "arrayhub.as_numpy(arrayhub.assparse(x).to_dense())",
    "arrow": "arrayhub.as_arrow(arrayhub.assparse(x).to_dense())",
}


@pytest.mark.parametrize("to", CALLS)
def test_explain_suggests_the_shortest_call_that_works(to):
    x = matrix()
    assert ah.explain(x, to).call == CALLS[to]
    eval(CALLS[to], {"arrayhub": ah, "x": x})
    assert ah.explain(matrix("coo"), "torch").call == "arrayhub.as_torch(x, copy=True)"


def test_verdict_for_cupy_without_a_gpu_names_the_missing_device():
    if find_spec("cupy") or has_device():
        pytest.skip("this machine has cupy or a GPU")
    assert verdicts(matrix())["cupy"].reason == "arrays of cupy need a CUDA device, which this machine lacks"


def test_verdict_for_jax_suggests_a_call_that_narrows_the_values():
    pytest.importorskip("jax")
    explained = ah.explain(matrix(), "jax")
    assert "arrayhub.as_jax(x, dtype='float32')" in explained.call
    assert eval(explained.call, {"arrayhub": ah, "x": matrix()}).dtype == "float32"


def test_explanation_of_a_rejected_format_suggests_a_call():
    assert "x.tocoo()" in str(ah.explain(matrix("lil")))


@pytest.mark.parametrize("to", ["scipy", None])
@pytest.mark.parametrize("format", ["lil", "dok", "dia"])
def test_verdict_for_the_own_library_of_a_rejected_format_agrees_with_convert(format, to):
    x = matrix(format)
    explained = ah.explain(x, to=to)
    assert {verdict.consumer: verdict.verdict for verdict in explained.verdicts}["scipy"] == "zero-copy"
    assert eval(explained.call, {"arrayhub": ah, "x": x}) is x


@pytest.mark.parametrize("format", FORMATS)
def test_debug_repr_describes_each_part(format):
    given = matrix(format)
    text = ah.debug_repr(given)
    assert f"{format} arrmeta" in text and "shape: (6, 8)" in text and f"stored: {given.nnz}" in text
    assert f"pointer: {given.data.ctypes.data:016X}" in text
    parts = ("coords[0]", "coords[1]") if format == "coo" else ("indices", "indptr")
    assert all(f"  {name}:" in text for name in ("data", *parts))


def test_check_names_the_first_invalid_index():
    given = matrix()
    assert ah.check(given) == [] and ah.check(ah.assparse(given)) == []
    given.indices[2] = 99
    assert ah.check(given) == ["x: assparse: indices[2] is 99; accepted: 0 to 7, the columns of shape (6, 8)"]
    x = ah.assparse(given)
    given.indices[2] = 0
    ah.as_scipy(x)
    given.indices[2] = 50
    assert "indices[2] is 50" in ah.check(x)[0]  # also after a validation


def test_check_reports_contradicting_shapes():
    given = matrix()
    given.indptr = np.zeros(3, np.int32)
    assert "shape of indptr" in ah.check(given)[0]


@pytest.mark.parametrize("format", FORMATS)
def test_notebooks_show_the_pattern(format):
    x = ah.assparse(matrix(format))
    first, *rows = x.picture.text().splitlines()
    assert format in first and sum(row.count("#") for row in rows) == matrix().nnz
    assert x._repr_html_().startswith("<pre")


def test_notebooks_show_empty_large_and_invalid_arrays():
    assert "<pre" in ah.assparse(matrix(shape=(0, 3)))._repr_html_()
    large = ah.assparse(matrix(shape=(1000, 500))).picture.text().splitlines()[1:]
    assert [len(row.split()) for row in large] == [32] * 32
    given = matrix()
    given.indices[0] = 77
    assert "indices[0] is 77" in ah.assparse(given)._repr_html_()


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_attributes_of_other_libraries_raise_an_error_that_suggests_a_call(name):
    x = ah.assparse(matrix())
    with pytest.raises(AttributeError, match=f"^'SparseArray' object has no attribute '{name}'; use ") as raised:
        getattr(x, name)
    call = str(raised.value).partition("; use ")[2]
    result = eval(call, {"arrayhub": ah, "x": x, "device": "cpu"})
    assert getattr(result, "shape", x.shape)[:2] in (x.shape, x.shape[::-1])
    assert not hasattr(x, name) and not hasattr(x, "nonsense")
