"""Private names of other libraries: with each taken away, what needs it says so or goes another way.

docs/private_names.md has the table.
"""

import textwrap

import pytest
from children import python

HEAD = """
    import ctypes, sys
    import numpy as np
    import arrayhub
"""


def dpctl_device():
    dpctl = pytest.importorskip("dpctl")
    pytest.importorskip("dpctl.memory")
    if not dpctl.has_cpu_devices():
        pytest.skip("no SYCL CPU device")


@pytest.mark.parametrize("name", ["Memory_GetUsmPointer", "Memory_Make", "Memory_GetNumBytes"])
def test_host_memory_needs_no_function_of_dpctls(name):
    """A dpctl of an unknown kind is imported; only what has to do with its memory fails, and says what is missing."""
    dpctl_device()
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
        raise AssertionError("it came in")
    """,
        name,
    )


SPANNING = """
    import dpctl.memory
    # Taken away before anybody looks for them.
    gone = set(sys.argv[1:])
    class Library(ctypes.CDLL):
        def __getitem__(self, name):
            if name in gone:
                raise AttributeError(name)
            return super().__getitem__(name)
    ctypes.CDLL = Library
    queue = dpctl.SyclQueue("cpu")
    blocks = sorted((dpctl.memory.MemoryUSMDevice(1 << 20, queue=queue) for _ in range(6)), key=lambda m: m._pointer)
    def show(start, nbytes):
        keys = {"data": (start, False), "shape": (nbytes,), "typestr": "|u1", "version": 1, "syclobj": queue}
        return type("P", (), {"__sycl_usm_array_interface__": keys, "keep": blocks})()
    for block in blocks:
        assert arrayhub.asarray(show(block._pointer, 1 << 20)).nbytes == 1 << 20
        assert arrayhub.asarray(show(block._pointer + 5, 1)).nbytes == 1
    for first, last in zip(blocks, blocks[1:]):
        if last._pointer - first._pointer == 1 << 20 and gone:
            continue      # nothing lies between them, so that by their pages they are one
        try:
            arrayhub.asarray(show(first._pointer, last._pointer + (1 << 20) - first._pointer))
        except arrayhub.InterfaceError as error:
            assert "inside its USM allocation" in str(error), error
        else:
            raise AssertionError(f"{first._pointer:#x} to {last._pointer:#x} came in")
"""


@pytest.mark.parametrize(
    "gone",
    [
        (),
        ("_ZNK4sycl3_V17context9getNativeEv",),
        ("DPCTLContext_GetBackend",),
        ("clGetExtensionFunctionAddressForPlatform",),
        ("clGetContextInfo",),
        ("clReleaseContext",),
    ],
    ids=lambda names: names[0] if names else "all there",
)
def test_a_view_over_several_allocations_is_refused(gone):
    """By the base of the last byte's allocation; where nobody can be asked for it, by the kind of each page."""
    dpctl_device()
    python(HEAD + SPANNING, *gone)


# Where a name is not taken: what is done to lose it, and what has to work without.
OTHER_WAYS = {
    "jax": """
        import jax
        x = jax.numpy.arange(64.0)
        address = x.unsafe_buffer_pointer()
        del type(x).unsafe_buffer_pointer
        assert not hasattr(x, "unsafe_buffer_pointer")
        y = arrayhub.as_jax(arrayhub.asarray(x))
        assert arrayhub.asarray(y).ptr == address
        assert y.tolist() == list(range(64))
    """,
    "gt4py": """
        from gt4py.storage.cartesian import layout_registry
        before = arrayhub.layouts.names()
        del layout_registry.REGISTRY
        assert set(arrayhub.layouts.names()) <= set(before)
        assert arrayhub.zeros((3, 4, 5), dims="IJK", backend="gt:cpu_ifirst").strides == (1, 3, 12)
        try:
            arrayhub.zeros((3, 4, 5), dims="IJK", backend="nobody's")
        except ValueError as error:
            assert "is not registered" in str(error), error
        else:
            raise AssertionError("it was taken")
    """,
}


@pytest.mark.parametrize("library", OTHER_WAYS)
def test_another_way_is_gone_without_a_name(library):
    pytest.importorskip(library)
    python(textwrap.dedent(HEAD) + textwrap.dedent(OTHER_WAYS[library]))
