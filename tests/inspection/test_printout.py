"""Test `debug_repr`, memory blocks, and the methods `aligned` and `native`."""

import contextlib
import gc
import re
import textwrap

import numpy as np
import pyarrow as pa
import pytest
from children import python, without
from dlpack_by_hand import packed_int4
from exporters import FAST_PATHS_OFF, StructProducer, exporter
from matrix.elements import ELEMENTS
from matrix.layouts import LAYOUTS
from matrix.producers import PRODUCERS, installed
from producers import producer

import arrayhub as ah

HEX = r"[0-9A-F]{16}"


def form(text):
    """Replace each distinct address with a number, counted in the order of first appearance."""
    seen = {}
    return re.sub(rf"\b{HEX}\b", lambda found: seen.setdefault(found[0], f"<{len(seen)}>"), text)


# ---------------------------------------------------------------------------------------------------- DyND's format


PRINTED = """\
------ array
 address: <0>
 refcount: 1
 type:
  pointer: <1>
  type: {type}
 arrmeta:
  flags: {flags}
{dimensions} data:
   pointer: <2>
   reference: <3>
    ------ memory_block at <3>
     reference count: {references}
     type: {block}
     object void pointer: <4>
     free function: <5> ({free})
    ------
------"""
EXTERNAL = {"flags": "3 (read_access write_access )", "references": 1, "block": "external", "free": "Py_DECREF"}


def test_debug_repr_shows_the_dimensions_of_an_array():
    a = ah.asarray(np.array([[1, 2, 3], [4, 5, 6]], "i4"))
    text = ah.debug_repr(a)
    dimensions = """\
  type-specific arrmeta:
   strided_dim arrmeta
    stride: 12
    size: 2
    strided_dim arrmeta
     stride: 4
     size: 3
"""
    assert form(text) == PRINTED.format(type="strided * strided * int32", dimensions=dimensions, **EXTERNAL)
    addresses = [int(number, 16) for number in re.findall(HEX, text)]
    assert addresses[:5] == [id(a), id(a.dtype), a.ptr, id(a.memory), id(a.memory)]
    assert addresses[5] == id(a.base)


def test_debug_repr_of_an_element_shows_the_memory_of_the_array():
    """The element has the memory block of the array. For a built-in type, the type pointer is the type number."""
    a = ah.asarray(memoryview(b"\1\0\0\0\2\0\0\0\3\0\0\0").cast("i"))
    one = a[1]
    buffer = {"flags": "5 (read_access immutable )", "references": 2, "block": "buffer", "free": "PyBuffer_Release"}
    assert form(ah.debug_repr(one)) == PRINTED.format(type="int32", dimensions="", **buffer)
    text = ah.debug_repr(one)
    assert f"  pointer: {np.dtype('i4').num:016X}\n" in text and f"   pointer: {a.ptr + 4:016X}\n" in text
    assert f"reference: {id(a.memory):016X}\n" in text


def test_debug_repr_shows_the_type_of_an_unaligned_view():
    mem = np.zeros(9, dtype="i1")
    a = mem[1:].view(dtype="i4")
    b = ah.asarray(a)
    text = ah.debug_repr(b)
    dimension = "  type-specific arrmeta:\n   strided_dim arrmeta\n    stride: 4\n    size: 2\n"
    assert form(text) == PRINTED.format(type="strided * unaligned[int32]", dimensions=dimension, **EXTERNAL)
    assert f"   pointer: {mem.ctypes.data + 1:016X}\n" in text
    assert f"object void pointer: {id(a):016X}\n" in text


# ------------------------------------------------------------------------------------------------------- other arrays


def test_debug_repr_shows_the_free_function_of_owned_memory():
    text = ah.debug_repr(ah.asarray(np.zeros(3, "f8")).copy())
    assert re.search(
        rf"     type: owned\n     start: {HEX}\n     size: 24\n     free function: {HEX} \(PyMem_RawFree\)\n", text
    )


def test_debug_repr_contains_field_offsets():
    record = np.dtype([("x", "i1"), ("y", "f8")], align=True)
    assert """\
   strided_dim arrmeta
    stride: 16
    size: 3
    struct arrmeta
     field offsets: 0, 8
     size: 16
""" in ah.debug_repr(np.zeros(3, record))


def test_debug_repr_of_usm_contains_the_device():
    memory = pytest.importorskip("dpctl.memory")
    text = ah.debug_repr(memory.MemoryUSMShared(12))
    assert re.search(
        rf"     type: usm\n     object void pointer: {HEX}\n.*\n     device: oneapi:0 \(shared USM\)\n", text
    )


@pytest.mark.parametrize(
    ("x", "flags"),
    [
        (bytearray(3), "3 (read_access write_access )"),
        (np.broadcast_to(np.zeros(1), (3,)), "1 (read_access )"),
        (b"abc", "5 (read_access immutable )"),
    ],
)
def test_debug_repr_contains_access_flags(x, flags):
    assert f"  flags: {flags}\n" in ah.debug_repr(x)


def test_refcount_excludes_references_of_the_call():
    a = ah.asarray(np.zeros(3))
    assert " refcount: 1\n" in ah.debug_repr(a)
    b = a  # noqa: F841
    assert " refcount: 2\n" in ah.debug_repr(a)
    assert " refcount: 1\n" in ah.debug_repr(np.zeros(3))
    views = [a[1:] for _ in range(3)]
    assert f" reference count: {1 + len(views)}\n" in ah.debug_repr(a)


def test_refcounts_count_references_to_nested_arrays_and_their_content():
    n = ah.asnested(pa.array([[["a"]], [["b"], None]]))
    assert re.findall(r" refcount: (\d+)\n", ah.debug_repr(n)) == ["1", "1", "1"]
    kept = n, n.content  # noqa: F841
    assert re.findall(r" refcount: (\d+)\n", ah.debug_repr(n)) == ["2", "2", "1"]
    assert " refcount: 1\n" in ah.debug_repr(pa.array([["a"]]))


def test_packed_elements_do_not_have_a_stride():
    packed = packed_int4()
    assert ah.datashape.of(packed) == "2 * 3 * int4"
    assert ah.debug_repr(packed).count("stride: none (elements share bytes)") == 2


# ---------------------------------------------------------------------------------------------------- memory blocks

# For each producer: kind and release function of the memory block.
OBJECT = ("external", "Py_DECREF")
BUFFER = ("buffer", "PyBuffer_Release")
USM = ("usm", "Py_DECREF")
DLPACK = {
    ("dlpack", "DLManagedTensor.deleter"),
    ("dlpack", "DLManagedTensorVersioned.deleter"),
}  # the release of the library determines which one
BLOCKS = {
    "numpy": OBJECT, "ml_dtypes": OBJECT, "bytes": OBJECT,
    "torch": {("external", "StorageImpl::release"), OBJECT},  # OBJECT is a detached tensor
    "jax": {BUFFER, *DLPACK},
    "dpnp (device)": USM, "dpnp (shared)": USM, "dpnp (host)": USM,
    "usm_ndarray (device)": USM, "usm_ndarray (shared)": USM, "usm_ndarray (host)": USM,
    "MemoryUSMDevice": USM, "MemoryUSMShared": USM, "MemoryUSMHost": USM,
    "pyarrow.Array": DLPACK,
    "pyarrow.Buffer": BUFFER, "pyarrow.Tensor": BUFFER,
    "tvm-ffi": DLPACK, "array_api_strict": {BUFFER, *DLPACK},
    "PIL.Image": OBJECT, "bytearray": BUFFER, "array.array": BUFFER, "memoryview": BUFFER, "mmap": BUFFER,
    "mmap (read-only)": BUFFER, "ctypes array": BUFFER, "ctypes scalar": BUFFER, "ctypes.Structure": BUFFER,
    "shared_memory": BUFFER,
    "capsule (legacy)": ("dlpack", "DLManagedTensor.deleter"),
    "capsule (versioned)": ("dlpack", "DLManagedTensorVersioned.deleter"),
}  # fmt: skip
if FAST_PATHS_OFF:  # without fast paths, these producers are imported through DLPack and the buffer protocol
    BLOCKS.update(torch=DLPACK, bytes=BUFFER)


@pytest.mark.slow
@pytest.mark.parametrize("producer", PRODUCERS, ids=lambda producer: producer.name)
def test_memory_blocks_of_all_producers_are_described(producer):
    if not installed(producer):
        pytest.skip(f"{producer.library} is not installed")
    for element, layout in producer.pairs():
        made = producer.make(ELEMENTS[element], LAYOUTS[layout])
        close = made.close
        x = ah.asarray(made.obj)
        assert x.access == made.access
        check_block(x, producer, made)
        symbolic = ah.datashape.of(x, symbolic=True)
        assert str(ah.datashape.parse(symbolic)) == symbolic
        text = ah.debug_repr(x)
        assert f"  type: {symbolic}\n" in text and f" type: {x.memory.kind}\n" in text and text.count("\n") >= 15
        del x, made
        with contextlib.suppress(BufferError):
            close()
    gc.collect()


def check_block(x, producer, made):
    block = x.memory
    allowed = BLOCKS[producer.name]
    assert (block.kind, block.release_function) in (allowed if isinstance(allowed, set) else {allowed})
    assert block.device == x.device
    assert block.refcount >= 2  # references by `x` and `block`
    view = x[...]
    assert view.memory is block
    assert x.memory.refcount > 2
    reached = [
        x.ptr + sum(corner)
        for corner in _corners([(length - 1) * step for length, step in zip(x.shape, x.byte_strides, strict=True)])
    ]
    if x.size:
        assert block.address <= min(reached)
        assert max(reached) + x.itemsize <= block.address + block.nbytes
    if producer.memory != "cpu":
        assert block.owner is made.root
        assert (block.address, block.nbytes) == (made.root._pointer, made.root.nbytes)
    elif producer.name == "PIL.Image":
        assert "memory of an Arrow array" in repr(block.owner)
    else:
        is_managed_tensor = block.kind == "dlpack" and producer.name != "pyarrow.Array"  # without a Python owner
        assert block.owner is (None if is_managed_tensor else made.obj)


def _corners(steps):
    return [()] if not steps else [(*rest, step) for rest in _corners(steps[:-1]) for step in {0, steps[-1]}]


def test_memory_blocks_have_the_kind_and_release_function_of_the_source():
    struct = ah.asarray(StructProducer())
    assert (struct.memory.kind, struct.memory.release_function) == OBJECT
    buffer = ah.asarray(exporter())
    assert (buffer.memory.kind, buffer.memory.release_function) == BUFFER
    numbers = ah.asarray([1, 2, 3])
    assert (numbers.memory.kind, numbers.access, type(numbers.memory.owner)) == ("external", "readwrite", np.ndarray)
    own = ah.USMArray(4, "i4", buffer="cpu")
    assert (own.memory.kind, own.memory.release_function, own.memory.owner) == ("owned", "PyMem_RawFree", None)
    assert own.memory.release_address != numbers.memory.release_address


def test_invalid_objects_raise_the_error_of_asarray():
    for function in (ah.debug_repr, ah.datashape.of):
        with pytest.raises(TypeError, match="does not support an array protocol"):
            function(object())


# ------------------------------------------------------------------------------------------------- aligned and native


def test_aligned_copies_unaligned_arrays():
    mem = np.arange(33, dtype="i1")
    x = ah.asarray(mem[1:].view("i4"))
    y = x.aligned()
    assert y.flags.aligned and not x.flags.aligned
    assert y.memory is not x.memory
    assert np.array_equal(np.asarray(y), mem[1:].view("i4"))
    assert (y.access, str(y.device), y.aligned()) == ("readwrite", "cpu", y)
    assert y.aligned(copy=True).memory is not y.memory
    with pytest.raises(BufferError, match="copy=False forbids"):
        x.aligned(copy=False)
    assert y.aligned(copy=False) is y


@pytest.mark.parametrize(
    "dtype",
    [
        ">i4", ">c8", ">U3", ">M8[s]", [("x", ">f8"), ("in", [("y", ">i2", 3)])], [("a", ">i4", (2,))],
        [("a", "<i4"), ("b", [("c", ">f8", (2, 1))])], [("a", [("b", ">u2")], (3,))],
    ],
    ids=str,
)  # fmt: skip
def test_native_swaps_byte_swapped_arrays(dtype):
    a = np.zeros(3, dtype)
    a.view("u1")[:] = np.arange(a.nbytes) % 7
    swapped = a.astype(a.dtype.newbyteorder("="))
    x = ah.asarray(a)
    y = x.native()
    assert y.dtype == swapped.dtype and y.dtype.isnative
    assert y.memory is not x.memory
    assert "byteswap" in ah.datashape.of(x) and "byteswap" not in ah.datashape.of(y)
    assert np.asarray(y).tobytes() == swapped.tobytes()
    assert y.native() is y and y.native(copy=True).memory is not y.memory
    with pytest.raises(BufferError, match="copy=False forbids"):
        x.native(copy=False)


@pytest.mark.slow
@pytest.mark.parametrize(("code", "name"), [((5, 32, 1), "complex32"), ((4, 16, 1), "bfloat16")])
def test_element_types_of_ml_dtypes_are_shown_without_ml_dtypes(code, name):
    """Without ml_dtypes, `repr` contains the name of the type, and `dtype` raises an error that names ml_dtypes."""
    python(
        without("ml_dtypes")
        + textwrap.dedent(f"""
        import numpy as np
        import arrayhub as ah
        from dlpack_by_hand import Handmade, packed_int4

        x = ah.asarray(Handmade(memory=np.zeros(8, "u1"), shape=(2,), dtype={code}))
        assert "dtype='{name}'" in repr(x), repr(x)
        assert x.picture.dtype == "{name}"
        ah.debug_repr(x)
        assert "{name}" in str(ah.explain(x)) or "float16" in str(ah.explain(x))
        assert ah.check(x) == []
        for ask in (lambda: x.dtype, lambda: np.asarray(x), lambda: ah.as_numpy(x)):
            try:
                ask()
            except TypeError as error:
                assert "{name}" in str(error) and "ml_dtypes" in str(error), error
            else:
                raise AssertionError("NumPy has this type")
        """)
    )


def test_native_error_for_device_memory_suggests_to_host():
    interface = {"shape": (2,), "typestr": ">i4", "data": (4096, False), "version": 2}
    with pytest.raises(BufferError, match=r"call arrayhub\.to_host\(x\)"):
        ah.asarray(producer(__cuda_array_interface__=interface)).native()


def test_aligned_and_native_convert_unaligned_byte_swapped_arrays():
    a = np.zeros(9, "u1")[1:].view(">i4")
    a[:] = [1, 2]
    x = ah.asarray(a)
    assert ah.datashape.of(x) == "2 * unaligned[byteswap[int32]]"
    assert ah.datashape.of(x.aligned()) == "2 * byteswap[int32]"
    assert ah.datashape.of(x.native()) == "2 * int32"
    torch = pytest.importorskip("torch")
    assert ah.as_torch(x.native()).equal(torch.tensor([1, 2], dtype=torch.int32))
