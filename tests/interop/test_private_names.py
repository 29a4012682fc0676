"""If a private name of a library or of CPython is missing, arrayhub uses an alternative or raises an error.

docs/private_names.md lists the names.
"""

import re
import textwrap
from pathlib import Path

import pytest
from children import python

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "docs" / "private_names.md").read_text()
CORE = ROOT / "arrayhub" / "_core"

HEAD = """
    import ctypes, sys
    import numpy as np
    import arrayhub
"""


@pytest.mark.usefixtures("dpctl")
@pytest.mark.parametrize("name", ["Memory_GetUsmPointer", "Memory_Make", "Memory_GetNumBytes"])
def test_host_memory_does_not_need_dpctl_functions(name):
    """Without a C function of dpctl, only imports of dpctl's memory fail, with an error that names the function."""
    python(
        HEAD
        + """
    import dpctl.memory
    api = dict(dpctl.memory._memory.__pyx_capi__)
    del api[sys.argv[1]]
    dpctl.memory._memory.__pyx_capi__ = api
    memory = bytearray(3)
    x = arrayhub.USMArray(3, "u1", memory)
    x = arrayhub.asarray(np.arange(3))
    assert arrayhub.as_numpy(x).tolist() == [0, 1, 2]
    assert arrayhub.asarray(memory).shape == (3,)
    assert arrayhub.to_host(x, stream=1) is x
    try:
        arrayhub.asarray(dpctl.memory.MemoryUSMDevice(8), via="sycl")
    except ImportError as error:
        assert sys.argv[1] in str(error), error
    else:
        raise AssertionError("imported without the function")
    """,
        name,
    )


SPANNING = """
    import dpctl.memory
    queue = dpctl.SyclQueue("cpu")
    blocks = sorted((dpctl.memory.MemoryUSMDevice(1 << 20, queue=queue) for _ in range(6)), key=lambda m: m._pointer)
    def show(start, nbytes):
        keys = {"data": (start, False), "shape": (nbytes,), "typestr": "|u1", "version": 1, "syclobj": queue}
        return type("P", (), {"__sycl_usm_array_interface__": keys, "keep": blocks})()
    for block in blocks:
        assert arrayhub.asarray(show(block._pointer, 1 << 20)).nbytes == 1 << 20
        assert arrayhub.asarray(show(block._pointer + 5, 1)).nbytes == 1
    for first, last in zip(blocks, blocks[1:]):
        if last._pointer - first._pointer == 1 << 20:
            continue      # adjacent allocations are accepted as one
        try:
            arrayhub.asarray(show(first._pointer, last._pointer + (1 << 20) - first._pointer))
        except arrayhub.InterfaceError as error:
            assert "within one USM allocation" in str(error), error
        else:
            raise AssertionError(f"{first._pointer:#x} to {last._pointer:#x} was imported")
"""


@pytest.mark.usefixtures("dpctl")
def test_a_view_over_several_allocations_is_rejected():
    """Reject a view that contains pages outside of USM, whose last byte is in another allocation."""
    python(HEAD + SPANNING)


# For each private name, a program that removes the name before arrayhub looks it up, and then uses the alternative.
OTHER_WAYS = {
    "jax: the class's name": """
        import jax
        x = jax.numpy.arange(64.0)
        address = x.unsafe_buffer_pointer()
        type(x).__name__ = "Other"
        a = arrayhub.asarray(x)
        assert a.ptr == address and a.access == "readonly"
        assert arrayhub.as_jax(a).tolist() == list(range(64))
    """,
    "gt4py: REGISTRY": """
        from gt4py.storage.cartesian import layout_registry
        before = arrayhub.storage.layouts.names()
        del layout_registry.REGISTRY
        assert set(arrayhub.storage.layouts.names()) <= set(before)
        assert arrayhub.zeros((3, 4, 5), dims="IJK", backend="gt:cpu_ifirst").strides == (1, 3, 12)
        try:
            arrayhub.zeros((3, 4, 5), dims="IJK", backend="nobody's")
        except ValueError as error:
            assert "is not registered" in str(error), error
        else:
            raise AssertionError("it was taken")
    """,
    "pyarrow: _import_from_c_capsule": """
        import pyarrow
        class Array:
            pass
        pyarrow.Array = Array
        x = arrayhub.asarray(np.arange(5))
        shared = arrayhub.as_arrow(x)
        assert shared.to_pylist() == [0, 1, 2, 3, 4] and shared.buffers()[1].address == x.ptr
        assert arrayhub.as_arrow([[1, 2], [3]], copy=True).to_pylist() == [[1, 2], [3]]
    """,
    "distributed: pickle_dumps": """
        from distributed.protocol import deserialize, serialize
        arrayhub.transport.register_dask()
        x = arrayhub.asarray(np.arange(5.0))
        header, frames = serialize(x)
        assert header["serializer"] == "dask"
        inside = sys.modules["distributed.protocol.serialize"]
        del inside.pickle_loads
        try:
            deserialize(header, frames)
        except ImportError as error:
            assert "pickle_loads" in str(error), error
        else:
            raise AssertionError("it arrived")
        del inside.pickle_dumps
        assert serialize(x, serializers=["dask", "error"])[0]["serializer"] == "error"
        header, frames = serialize(x)
        assert header["serializer"] == "pickle"
        assert np.array_equal(deserialize(header, frames), np.arange(5.0))
    """,
}


@pytest.mark.parametrize("name", OTHER_WAYS)
def test_alternative_is_used_without_the_private_name(name):
    pytest.importorskip(name.partition(":")[0])
    python(textwrap.dedent(HEAD) + textwrap.dedent(OTHER_WAYS[name]))


# --------------------------------------------------------------------------------------------------------------- dpnp

DPNP = {
    "_array_obj": """
        inside = dpnp.ndarray.__getattribute__ if "__getattribute__" in vars(dpnp.ndarray) else object.__getattribute__
        def hidden(self, name):
            if name == "_array_obj" and sys._getframe(1).f_globals["__name__"] == "__main__":
                raise AttributeError(name)
            return inside(self, name)
        dpnp.ndarray.__getattribute__ = hidden
        assert not hasattr(array, "_array_obj")
    """,
    "_create_from_usm_ndarray": """
        assert hasattr(dpnp.ndarray, "_create_from_usm_ndarray")
        dpnp.ndarray = type("ndarray", (), {})      # arrayhub looks up this name; dpnp's functions do not
    """,
}


@pytest.mark.usefixtures("dpctl")
@pytest.mark.parametrize("name", DPNP)
def test_dpnp_round_trip_shares_memory_without_the_private_name(name):
    pytest.importorskip("dpnp.tensor")
    program = """
    import dpnp
    array = dpnp.arange(12, dtype="i4", device="cpu").reshape(3, 4)
    address = array.get_array()._pointer
    """
    after = """
    x = arrayhub.asarray(array[:, 1:])
    assert x.ptr == address + 4 and x.shape == (3, 3) and x.byte_strides == (16, 4) and x.access == "readwrite"
    back = arrayhub.as_dpnp(x)
    assert back.get_array()._pointer == address + 4
    assert dpnp.asnumpy(back).tolist() == [[1, 2, 3], [5, 6, 7], [9, 10, 11]]
    """
    python("".join(textwrap.dedent(part) for part in (HEAD, program, DPNP[name], after)))


@pytest.mark.usefixtures("dpctl")
@pytest.mark.parametrize("change", ["missing", "other parameters"])
@pytest.mark.parametrize("name", ["_copy_usm_ndarray_into_usm_ndarray", "_copy_numpy_ndarray_into_usm_ndarray"])
def test_assignment_works_without_the_copy_function_of_dpnp(name, change):
    """Without dpnp's copy function, an assignment calls ``usm_ndarray.__setitem__``, also after a wait for events."""
    pytest.importorskip("dpnp.tensor")
    python(
        HEAD
        + """
    import types
    import dpctl
    import dpnp.tensor
    name, change = sys.argv[1:]
    kernels = sys.modules["dpnp.tensor._tensor_impl"]
    calls = []
    def replacement(*, src, dst, sycl_queue, depends, required):
        raise AssertionError
    class Kernels(types.ModuleType):
        def __getattr__(self, key):
            if key == name:
                calls.append(key)
                if change == "missing":
                    raise AttributeError(key)
                return replacement
            return getattr(kernels, key)
    sys.modules["dpnp.tensor._tensor_impl"] = Kernels("dpnp.tensor._tensor_impl")
    values = np.arange(12, dtype="i4").reshape(3, 4)
    source = dpnp.tensor.asarray(values, device="cpu")
    target = dpnp.tensor.zeros((3, 8), dtype="i4", sycl_queue=source.sycl_queue)
    x = arrayhub.asarray(target[:, ::2])
    x[...] = values if "numpy" in name else source
    assert calls, "the kernel was not used"
    assert dpnp.tensor.asnumpy(target[:, ::2]).tolist() == values.tolist()
    if "numpy" not in name:
        queue = dpctl.SyclQueue(source.sycl_context, source.sycl_device)
        arrayhub.to_device(source[:, ::-1], x.device, out=x, stream=queue)
        assert (len(calls) == 2) == (change == "missing")  # a function that was found is not looked up again
        assert dpnp.tensor.asnumpy(target[:, ::2]).tolist() == values[:, ::-1].tolist()
    """,
        name,
        change,
    )


# -------------------------------------------------------------------------------------------------------------- numba

NUMBA = [
    "numba.core.boxing.unbox_array",
    "numba.core.cgutils.if_likely",
    "numba.core.datamodel.register_default",
    "numba.core.datamodel.models.ArrayModel",
    "numba.core.errors.NumbaNotImplementedError",
    "numba.core.pythonapi.PythonAPI.serialize_object",
    "numba.extending.unbox",
    "numba.np.numpy_support.from_dtype",
]


@pytest.mark.parametrize("name", ["", *NUMBA])
def test_without_numba_internals_arrays_are_typed_as_buffers_with_a_warning(tmp_path, name):
    """numba warns about the missing name and continues, and `as_numba` still works."""
    pytest.importorskip("numba")
    entry = tmp_path / "arrayhub-0.dist-info"
    entry.mkdir()
    (entry / "METADATA").write_text("Metadata-Version: 2.1\nName: arrayhub\nVersion: 0\n")
    (entry / "entry_points.txt").write_text("[numba_extensions]\ninit = arrayhub.libraries.numba_typing:register\n")
    python(
        HEAD
        + """
    import operator, warnings
    import numba, numba.core.pythonapi
    from numba.core import entrypoints

    @numba.njit
    def second(x):
        return x[1]

    entrypoints._already_initialized = True
    assert second(np.arange(3.0)) == 1
    sys.path.insert(0, sys.argv[1])
    entrypoints._already_initialized = False
    path, _, name = sys.argv[2].rpartition(".")
    if name:      # remove the name only during the registration, because numba itself needs it
        owner = operator.attrgetter(path.partition(".")[2])(numba)
        value = getattr(owner, name)
        delattr(owner, name)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        entrypoints.init_all()
    if name:
        setattr(owner, name, value)
    said = [str(warning.message) for warning in seen if "arrayhub" in str(warning.message)]
    x = arrayhub.asarray(np.arange(3.0))
    kind = numba.typeof(x)
    if name:
        assert len(said) == 1 and name in said[0], said
        assert isinstance(kind, numba.types.Buffer) and not isinstance(kind, numba.types.Array), kind
    else:
        assert not said and isinstance(kind, numba.types.Array), (said, kind)
    assert second(x) == second(arrayhub.as_numba(x)) == 1
    """,
        tmp_path,
        name,
    )


# ------------------------------------------------------------------------------------------------------------- CPython


def test_every_used_private_name_of_cpython_is_in_the_table():
    """docs/private_names.md lists the private names of CPython in the C and Python sources."""
    used = set()
    for source in CORE.parent.rglob("*"):
        if source.suffix in (".pyx", ".pxd", ".pxi", ".h", ".py") and "include" not in source.parts:
            used.update(
                re.findall(
                    r"\b(?:_Py[A-Z]\w+|_Py_\w+|PyUnstable_\w+|tp_mro|m_ml|tp_version_tag|sys\._\w+)", source.read_text()
                )
            )
    assert "_PyObject_LookupAttr" in used
    assert {name for name in used if f"`{name}`" not in TABLE} == set()
