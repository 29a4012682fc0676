"""Test `USMArray(...)`: examples of the USM array specification, types of buffers, and invalid arguments."""

import array
import ctypes
import inspect
import mmap
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest
from optional import optional
from producers import lives

import arrayhub as ah
from arrayhub import USMArray
from arrayhub._core.descriptor import Descriptor

dpctl, dpm = optional("dpctl"), optional("dpctl.memory")

CLASSES = {"device": "MemoryUSMDevice", "shared": "MemoryUSMShared", "host": "MemoryUSMHost"}
USM_KINDS = list(CLASSES)
KINDS = [*USM_KINDS, "cpu"]


def usm_class(kind):
    """Return dpctl's class of a kind of USM. Skip the test without dpctl."""
    return getattr(dpm, CLASSES[kind])


def positions(a):
    """Return an array of the shape of `a` with the index of each element in the memory of `a`."""
    index = np.full(a.shape, a.offset)
    for axis, (length, stride) in enumerate(zip(a.shape, a.strides, strict=True)):
        steps = np.arange(length).reshape([-1 if k == axis else 1 for k in range(a.ndim)])
        index = index + steps * stride
    return index


# -------------------------------------------------------------------------------------------- the examples of instances


# Arguments, and for each array: strides, offset, bytes of memory, and the positions of the elements in memory.
EXAMPLES = {
    "C-contiguous": (dict(shape=(2, 3), dtype="i4", buffer="shared"), (3, 1), 0, 24, [[0, 1, 2], [3, 4, 5]]),
    # The specification's heading says shape (3, 2), but its text says (2, 3) with strides (1, 2), as tested here.
    "F-contiguous": (dict(shape=(2, 3), dtype="i4", buffer="shared", order="F"), (1, 2), 0, 24, [[0, 2, 4], [1, 3, 5]]),
    "device memory": (dict(shape=(2, 3), dtype="u2", buffer="device"), (3, 1), 0, 12, [[0, 1, 2], [3, 4, 5]]),
    "gaps": (dict(shape=(2, 3), dtype="i8", buffer="shared", strides=(6, 1)), (6, 1), 0, 72, [[0, 1, 2], [6, 7, 8]]),
    "an offset": (dict(shape=(2, 2), dtype="u1", buffer="host", strides=(2, -1)), (2, -1), 1, 4, [[1, 0], [3, 2]]),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_has_the_documented_layout(name):
    arguments, strides, offset, nbytes, elements = EXAMPLES[name]
    a = USMArray(**arguments)
    assert (a.shape, a.ndim, a.dtype, a.usm_type) == (
        arguments["shape"], 2, np.dtype(arguments["dtype"]), arguments["buffer"],
    )  # fmt: skip
    assert (a.strides, a.offset, a.memory.nbytes, a.base.nbytes) == (strides, offset, nbytes, nbytes)
    assert positions(a).tolist() == elements
    is_compact = strides in ((3, 1), (1, 2))
    flags = (is_compact and strides[1] == 1, is_compact and strides[0] == 1, True)
    assert (a.flags.c_contiguous, a.flags.f_contiguous, a.flags.writeable) == flags
    assert isinstance(a.base, usm_class(arguments["buffer"]))
    given = {"strides": strides, **arguments}
    assert USMArray(**{key: given[key] for key in given if key != "order"}).strides == a.strides


def matrix():
    return USMArray((2, 3), dtype="i4", buffer="shared")


def test_example_of_a_submatrix_shares_the_memory():
    whole = matrix()
    a = USMArray((2, 2), dtype="i4", buffer=whole, strides=(3, 1))
    assert positions(a).tolist() == [[0, 1], [3, 4]]  # {a[0,0], a[0,1], *, a[1,0], a[1,1], *}
    assert (a.flags.c_contiguous, a.flags.f_contiguous) == (False, False)
    assert a.ptr == whole.ptr
    assert whole[:, :2].strides == a.strides


def test_example_of_negative_strides_reads_backwards():
    whole = USMArray(8, dtype="i8", buffer="shared")
    a = USMArray((4,), dtype="i8", buffer=whole, strides=(-2,), offset=7)
    assert positions(a).tolist() == [7, 5, 3, 1]
    assert a.ptr == whole.ptr + 7 * 8
    np.asarray(whole)[...] = np.arange(8)
    assert np.asarray(a).tolist() == np.arange(8)[7::-2].tolist()


# ----------------------------------------------------------------------------------------- the examples of constructing


def test_example_over_existing_memory_shares_the_memory():
    memory = dpm.MemoryUSMShared(64)
    a = USMArray((4,), dtype="f8", buffer=memory, strides=(-2,), offset=7)
    assert positions(a).tolist() == [7, 5, 3, 1]
    assert a.base is memory
    assert a.ptr == memory._pointer + 7 * 8
    np.asarray(a)[...] = [1, 2, 3, 4]
    assert np.frombuffer(memory, "f8")[[7, 5, 3, 1]].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", USM_KINDS)
def test_buffer_accepts_the_names_of_memory_kinds(kind):
    assert USMArray(3, buffer=f"usm_{kind}").usm_type == ah.empty(3, memory=f"usm_{kind}").usm_type == kind


@pytest.mark.parametrize("kind", USM_KINDS)
def test_example_array_is_rebuilt_from_its_interface_dict(kind):
    w = USMArray((4, 2), dtype="i4", buffer=kind, strides=(-5, -2))
    interface = w.__sycl_usm_array_interface__
    w2 = USMArray(
        interface["shape"],
        dtype=interface["typestr"],
        buffer=w,
        strides=interface["strides"],
        offset=interface["offset"],
    )
    assert w2.__sycl_usm_array_interface__ == interface
    assert (w2.ptr, w2.memory, w2.base) == (w.ptr, w.memory, w.base)
    assert interface == {
        "data": (w.base._pointer, False),
        "shape": (4, 2),
        "strides": (-5, -2),
        "typestr": "|i4",
        "version": 1,
        "syclobj": w.base.sycl_queue,
        "offset": 17,
    }


def test_defaults_equal_the_specification():
    a = USMArray((3,))
    assert (a.dtype, a.usm_type, a.strides, a.offset, a.protocol) == (np.float64, "device", (1,), 0, "constructed")


# -------------------------------------------------------------------------------------------------------------- buffers


@pytest.mark.parametrize("kind", KINDS)
def test_named_memory_kind_allocates_memory(kind):
    a = USMArray((3, 5), "f4", buffer=kind)
    assert (a.nbytes, a.memory.nbytes, a.access) == (60, 60, "readwrite")
    assert a.usm_type == (kind if kind != "cpu" else None)
    assert a.memory.address == a.ptr
    if kind in CLASSES:
        assert type(a.base) is usm_class(kind)
        assert a.memory.owner is a.base
    else:
        assert (str(a.device), a.ptr % 64, a.memory.kind) == ("cpu", 0, "owned")
        np.asarray(a)[...] = 7
        assert np.asarray(a).tolist() == [[7] * 5] * 3


@pytest.mark.parametrize("kind", USM_KINDS)
def test_buffer_accepts_a_dpctl_memory_object(kind):
    memory = usm_class(kind)(100)
    a = USMArray((4, 6), "i4", buffer=memory, offset=1)
    assert (a.base, a.usm_type, a.memory.nbytes, a.ptr) == (memory, kind, 100, memory._pointer + 4)
    assert USMArray((25,), "i4", buffer=memory).size == 25
    with pytest.raises(ValueError, match=r"need 104 bytes, but the memory has 100 bytes"):
        USMArray((26,), "i4", buffer=memory)


def test_array_keeps_dpctl_memory_alive():
    memory = dpm.MemoryUSMShared(64)
    before = sys.getrefcount(memory)
    a = USMArray((8,), "f8", buffer=memory)
    assert sys.getrefcount(memory) > before
    view = np.asarray(a)[::2]
    del a
    assert sys.getrefcount(memory) > before
    del view
    assert sys.getrefcount(memory) == before


def test_buffer_accepts_a_view_and_uses_its_entire_memory():
    whole = USMArray((4, 6), "i4", buffer="shared")
    part = whole[1:3, ::2]
    a = USMArray((24,), "i4", buffer=part)
    assert (a.ptr, a.memory) == (whole.ptr, whole.memory)
    with pytest.raises(ValueError, match="inside the memory"):
        USMArray((25,), "i4", buffer=part)
    assert USMArray((12,), "i8", buffer=part).memory is whole.memory


@pytest.mark.parametrize("kind", ["shared", "cpu"])
def test_read_only_stays_read_only(kind):
    whole = USMArray((6,), "i4", buffer=kind)
    whole.flags.writeable = False
    a = USMArray((6,), "i4", buffer=whole)
    assert a.access == "readonly"
    assert not np.asarray(a).flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        a.flags.writeable = True
    if kind == "shared":
        assert a.__sycl_usm_array_interface__["data"][1] is True


def test_immutable_stays_immutable():
    a = USMArray((2,), "u1", buffer=ah.asarray(b"abcd"))
    assert a.access == "immutable"


def test_array_over_other_memory_keeps_the_owner_alive():
    source = np.arange(10.0)
    freed = weakref.ref(source)
    a = USMArray((2, 5), "f8", buffer=ah.asarray(source))
    assert a.ptr == source.ctypes.data
    assert a.base is source
    del source
    assert np.asarray(a)[1, 0] == 5
    del a
    assert not lives(freed)


def writable_buffers():
    mapping = mmap.mmap(-1, 64)
    return [
        bytearray(64),
        array.array("d", [0] * 8),
        memoryview(bytearray(64)),
        (ctypes.c_double * 8)(),
        np.zeros(8),
        np.zeros((2, 4)).T,
        mapping,
    ]


@pytest.mark.parametrize("obj", writable_buffers(), ids=lambda obj: type(obj).__name__)
def test_writable_buffer_is_shared(obj):
    a = USMArray((2, 4), "f8", buffer=obj)
    np.asarray(a)[1, 3] = 2.5
    flat = np.frombuffer(obj.T if isinstance(obj, np.ndarray) and not obj.flags.c_contiguous else obj, "f8")
    assert flat.reshape(-1)[7] == 2.5
    assert (str(a.device), a.access, a.memory.nbytes) == ("cpu", "readwrite", 64)
    with pytest.raises(ValueError, match="need 72 bytes, but the memory has 64 bytes"):
        USMArray((9,), "f8", buffer=obj)


def test_bytearray_under_an_array_cannot_be_resized():
    data = bytearray(8)
    a = USMArray((8,), "u1", buffer=data)
    with pytest.raises(BufferError):
        data.extend(b"x")
    del a
    data.extend(b"x")


READ_ONLY = (BufferError, "read-only; accepted: a writable buffer")
NO_BUFFER = (TypeError, "object with a writable buffer")


@pytest.mark.parametrize(
    ("obj", "error", "words"),
    [
        (b"abcdefgh", *READ_ONLY), (memoryview(b"abcdefgh"), *READ_ONLY),
        (memoryview(bytearray(8))[::2], ValueError, "not contiguous"), (None, *NO_BUFFER), (3, *NO_BUFFER),
        (object(), *NO_BUFFER), ([1.0], *NO_BUFFER), ({}, *NO_BUFFER),
    ],
)  # fmt: skip
def test_objects_without_a_writable_buffer_raise(obj, error, words):
    with pytest.raises(error, match=words):
        USMArray((2,), "u1", buffer=obj)


# -------------------------------------------------------------------------------------------------------------- layouts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_order_determines_strides(kind, order):
    a = USMArray((2, 3, 4), "i2", kind, order=order)
    assert a.byte_strides == np.empty((2, 3, 4), "i2", order=order).strides


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 0)])
def test_arrays_without_dimensions_have_one_element_and_empty_arrays_none(kind, shape):
    a = USMArray(shape, "f8", kind)
    size = 0 if shape else 1
    assert (a.shape, a.size, a.nbytes, a.memory.nbytes) == (shape, size, 8 * size, 8 * size)
    assert a.flags.c_contiguous
    if kind in ("shared", "host", "cpu"):
        assert np.asarray(a).shape == shape
    if kind != "cpu":
        assert isinstance(a.base, usm_class(kind))
        assert a.__sycl_usm_array_interface__["shape"] == shape


def test_an_integer_shape_is_one_dimension():
    assert USMArray(5, "u1", "cpu", strides=2).byte_strides == (2,)
    assert USMArray(np.int64(5), "u1", "cpu").shape == (5,)
    assert USMArray([2, 3], "u1", "cpu", strides=[1, 2]).strides == (1, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("shape", "strides", "offset", "nbytes"),
    [
        ((3,), (-1,), 2, 24), ((3,), (-4,), 8, 72), ((2, 3), (-3, 1), 3, 48), ((2, 3), (3, -1), 2, 48),
        ((2, 3), (-3, -1), 5, 48), ((4,), (0,), 0, 8), ((1,), (-9,), 0, 8), ((2, 1), (-2, -7), 2, 24),
    ],
)  # fmt: skip
def test_offset_of_new_memory_is_computed(kind, shape, strides, offset, nbytes):
    a = USMArray(shape, "f8", kind, strides=strides)
    assert (a.offset, a.memory.nbytes) == (offset, nbytes)
    low = positions(a).min()
    assert low == 0
    assert positions(a).max() == nbytes // 8 - 1


def test_offset_enlarges_new_memory():
    a = USMArray((3,), "f8", "cpu", strides=(-1,), offset=4)
    assert (a.offset, a.memory.nbytes) == (4, 40)
    assert USMArray((3,), "f8", "cpu", offset=2).memory.nbytes == 40
    with pytest.raises(ValueError, match="offset is 1 elements; accepted: 2 to"):
        USMArray((3,), "f8", "cpu", strides=(-1,), offset=1)


@pytest.mark.parametrize(
    ("layout", "most"), [({"shape": (1,)}, 2**60 - 2), ({"shape": (3,), "strides": (2,)}, 2**60 - 6)], ids=str
)
def test_offset_beyond_the_address_space_raises(layout, most):
    for offset in (most + 1, 2**60 - 1):
        with pytest.raises(ValueError, match=rf"offset is {offset} elements; accepted: 0 to {most}$"):
            USMArray(dtype="f8", buffer=bytearray(64), offset=offset, **layout)
    with pytest.raises(ValueError, match="but the memory has 64 bytes"):
        USMArray(dtype="f8", buffer=bytearray(64), offset=most, **layout)


@pytest.mark.parametrize(
    "layout",
    [
        {"shape": (9,)}, {"shape": (8,), "offset": 1}, {"shape": (3,), "strides": (4,)},
        {"shape": (2,), "strides": (-1,)}, {"shape": (8,), "offset": -1},
        {"shape": (2,), "strides": (-8,), "offset": 7}, {"shape": (2, 8), "strides": (1, 1)},
        {"shape": (0,), "offset": 9}, {"shape": (0,), "offset": -1}, {"shape": (), "offset": 8},
        {"shape": (2,), "strides": (2**59,)}, {"shape": (2,), "strides": (-(2**59),), "offset": 2**59},
        {"shape": (1,), "offset": 2**59}, {"shape": (2,), "strides": (-1,), "offset": -(2**60)},
    ],
    ids=str,
)  # fmt: skip
def test_layouts_outside_the_memory_raise(layout):
    for memory in (bytearray(64), dpm.MemoryUSMDevice(64), USMArray(8, buffer="shared")):
        with pytest.raises(ValueError, match=r"USMArray: (shape|offset)"):
            USMArray(dtype="f8", buffer=memory, **layout)


# -------------------------------------------------------------------------------------------------------- element types


@pytest.mark.parametrize("kind", USM_KINDS)
@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4"])
def test_usm_supports_ml_dtypes(kind, name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    a = USMArray((2, 3), dtype, kind)
    assert (a.dtype, a.itemsize, a.usm_type) == (dtype, dtype.itemsize, kind)
    assert not hasattr(a, "__sycl_usm_array_interface__")  # the dict cannot represent the type
    assert a.to_host().dtype == dtype


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "c8", "c16", "|f8", "=i4", "float32", int, np.uint16])
def test_usm_supports_types_of_sycl(dtype):
    assert USMArray(2, dtype, "shared").dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", [">f8", "M8[ns]", "S3", "U2", "f4,i4", "g", "V8"])
def test_usm_rejects_types_that_sycl_does_not_support(dtype):
    with pytest.raises(TypeError, match="accepted on USM"):
        USMArray(2, dtype, "device")
    with pytest.raises(TypeError, match="accepted on USM"):
        USMArray(2, dtype, dpm.MemoryUSMShared(64))
    a = USMArray(2, dtype, "cpu")  # host memory supports all types
    assert a.dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", ["O", "S0", "V0", "(2,3)f4", np.dtypes.StringDType()])
def test_invalid_element_types_raise(dtype):
    with pytest.raises(TypeError, match="dtype"):
        USMArray(2, dtype, "cpu")


# --------------------------------------------------------------------------------------------------- buffer_ctor_kwargs


@pytest.mark.parametrize(("kind", "asked", "given"), [("cpu", 1, 64), *((k, n, n) for k in KINDS for n in (64, 4096))])
def test_alignment_of_usm_can_be_requested(kind, asked, given):
    a = USMArray((3,), "f8", kind, buffer_ctor_kwargs={"alignment": asked})
    assert a.ptr % given == 0


@pytest.mark.parametrize("kind", USM_KINDS)
def test_array_uses_the_requested_queue(kind):
    queue = dpctl.SyclQueue(property="in_order")
    a = USMArray((3,), "f8", kind, buffer_ctor_kwargs={"queue": queue})
    assert a.base.sycl_queue == queue
    assert a.__sycl_usm_array_interface__["syclobj"] == queue
    same = USMArray((3,), "f8", a.base, buffer_ctor_kwargs={"queue": queue, "alignment": 8})
    assert same.ptr == a.ptr


@pytest.mark.parametrize("kind", USM_KINDS)
def test_copy_true_copies_dpctl_memory(kind):
    source = usm_class(kind)(24)
    source.copy_from_host(np.arange(3, dtype="f8").view("u1"))
    before = sys.getrefcount(source)
    a = USMArray((3,), "f8", source, buffer_ctor_kwargs={"copy": True})
    assert a.ptr != source._pointer
    assert a.is_copy and a[1:].is_copy and USMArray((2,), "f8", a).is_copy
    assert not USMArray((3,), "f8", source).is_copy
    assert not USMArray((3,), "f8", source, buffer_ctor_kwargs={"copy": False}).is_copy
    assert a.usm_type == kind
    assert np.asarray(a.to_host()).tolist() == [0, 1, 2]
    assert sys.getrefcount(source) == before  # with dpctl's own copy=True, the copy would keep a reference to `source`


@pytest.mark.parametrize(
    ("buffer", "options", "error"),
    [
        ("device", {"size": 3}, TypeError), ("cpu", {3: 4, "b": 5}, TypeError), ("cpu", {"alignment": 3}, ValueError),
        ("cpu", {"alignment": -8}, ValueError), ("cpu", {"alignment": 8.0}, TypeError),
        ("cpu", {"alignment": True}, TypeError), ("device", {"alignment": 24}, ValueError),
        *((kind, {"alignment": 1 << 50}, MemoryError) for kind in KINDS),
        ("device", {"queue": 3}, TypeError), ("cpu", 3, TypeError), ("cpu", "no", TypeError),
        (bytearray(64), {"copy": True}, ValueError),
    ],
)  # fmt: skip
def test_invalid_buffer_ctor_kwargs_raise(buffer, options, error):
    with pytest.raises(error):
        USMArray((3,), "f8", buffer, buffer_ctor_kwargs=options)


def test_options_that_do_not_fit_the_memory_raise():
    shared, queue = dpm.MemoryUSMShared(64), dpctl.SyclQueue(property="in_order")
    for buffer, options in (
        ("cpu", {"queue": queue}),
        (bytearray(64), {"queue": queue}),
        (shared, {"queue": queue}),
        (shared, {"alignment": 1 << 40}),
    ):
        with pytest.raises(ValueError, match="accepted"):
            USMArray((3,), "f8", buffer, buffer_ctor_kwargs=options)


def test_buffer_ctor_kwargs_may_be_empty():
    assert USMArray((3,), "f8", buffer_ctor_kwargs=None).shape == (3,)
    with pytest.raises(TypeError, match="buffer_ctor_kwargs is 3; accepted: a dict"):
        USMArray((3,), "f8", buffer_ctor_kwargs=3)


# -------------------------------------------------------------------------------------------------------- invalid input


@pytest.mark.parametrize("kind", ["device", "cpu"])
@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"shape": (True, 2)}, TypeError, "shape has True of type bool"),
        ({"shape": (np.True_,)}, TypeError, "shape has"),
        ({"shape": 2.0}, TypeError, "shape has 2.0 of type float; accepted: integers"),
        ({"shape": np.arange(3)}, TypeError, r"shape has array.*To import an array, call arrayhub\.asarray\(x\)$"),
        ({"shape": (2, "3")}, TypeError, "of type str"),
        ({"shape": "23"}, TypeError, "of type str"),
        ({"shape": None}, TypeError, "NoneType"),
        ({"shape": (-1,)}, ValueError, "zero or more"),
        ({"shape": (2**63,)}, ValueError, "fit in 64 bits"),
        ({"shape": (2**62, 2)}, ValueError, "larger than the address space"),
        ({"shape": (2**31, 2**31, 2)}, ValueError, "larger than the address space"),
        ({"shape": (2**60,), "dtype": "f8"}, ValueError, "larger than the address space"),
        ({"shape": (1,) * 65}, ValueError, "65 dimensions; accepted: at most 64"),
        ({"shape": (3,), "strides": (1, 1)}, ValueError, "strides has 2 entries, shape has 1"),
        ({"shape": (3,), "strides": ()}, ValueError, "strides has 0 entries"),
        ({"shape": (3,), "strides": (1.0,)}, TypeError, "strides has 1.0"),
        ({"shape": (3,), "strides": (False,)}, TypeError, "strides has False"),
        ({"shape": (3,), "strides": (2**63,)}, ValueError, "fit in 64 bits"),
        ({"shape": (3,), "strides": (2**62,)}, ValueError, "larger than the address space"),
        ({"shape": (2, 2), "strides": (2**61 - 1, 2**61 - 1), "dtype": "i4"}, ValueError, "address space"),
        ({"shape": (3,), "offset": 1.5}, TypeError, "offset has 1.5"),
        ({"shape": (3,), "offset": True}, TypeError, "offset has True"),
        ({"shape": (3,), "offset": None}, TypeError, "offset has None"),
        ({"shape": (3,), "offset": 2**64}, ValueError, "fit in 64 bits"),
        ({"shape": (3,), "offset": 2**62}, ValueError, rf"offset is {2**62} elements; accepted: 0 to {2**60 - 4}$"),
        ({"shape": (3,), "strides": (-1,), "offset": -(2**62)}, ValueError, rf"elements; accepted: 2 to {2**60 - 2}$"),
        ({"shape": (3,), "offset": -1}, ValueError, "offset is -1 elements; accepted: 0 to"),
        ({"shape": (3,), "offset": -(2**60)}, ValueError, "elements; accepted: 0 to"),
        ({"shape": (2,), "strides": (-(2**63),), "dtype": "u1"}, ValueError, "larger than the address space"),
        ({"shape": (3,), "order": "A"}, ValueError, "order is 'A'; accepted: 'C' or 'F'"),
        ({"shape": (3,), "order": None}, ValueError, "order is None"),
        ({"shape": (3,), "order": np.array(["C", "F"])}, ValueError, "order is"),
        ({"shape": (3,), "dtype": "no such type"}, TypeError, "dtype: 'no such type' is .*not understood"),
        (
            {"shape": (3,), "dtype": {"names": ["a"], "formats": []}},
            ValueError,
            r"dtype: {.*'names': \['a'\].*same length",
        ),
        (
            {"shape": (3,), "dtype": {"a": 1}},
            TypeError,
            r"dtype: {'a': 1} is not a data type \(.*; accepted: arguments of numpy",
        ),
        ({"shape": (3,), "dtype": ("f4", -1)}, ValueError, r"dtype: \('f4', -1\) is not a data type"),
        ({"shape": (3,), "dtype": "f4,,"}, SyntaxError, "dtype: 'f4,,' is not a data type"),
    ],
)
def test_invalid_arguments_raise(kind, arguments, error, words):
    with pytest.raises(error, match=words):
        USMArray(buffer=kind, **arguments)


def test_unknown_memory_kind_raises():
    with pytest.raises(ValueError, match="buffer is 'gpu'; accepted: 'device', 'shared', 'host'"):
        USMArray((3,), buffer="gpu")
    with pytest.raises(TypeError):
        USMArray((3,), color="red")
    with pytest.raises(TypeError):
        USMArray()


@pytest.mark.parametrize("kind", KINDS)
def test_too_large_allocation_raises(kind):
    with pytest.raises(MemoryError, match="cannot allocate"):
        USMArray((2**59,), "f8", kind)


def test_failed_construction_releases_its_memory():
    memory = bytearray(8)
    for shape in ((3,), (1,) * 20):
        with pytest.raises(ValueError, match="inside the memory"):
            USMArray((10, *shape), "f8", buffer=memory)
    memory.append(0)  # would raise a BufferError if an array held the memory


def test_new_without_arguments_raises():
    for make in (USMArray.__new__, Descriptor.__new__, object.__new__):
        with pytest.raises(TypeError, match=r"call arrayhub\.asarray\(x\)|not safe"):
            make(USMArray)
    made = USMArray.__new__(USMArray, (3,), "f8", "cpu")
    assert made.shape == (3,) and made.memory.nbytes == 24


@pytest.mark.parametrize("buffer", ["cpu", "shared", bytearray(64)], ids=["cpu", "shared", "bytearray"])
def test_aligned_flag_follows_the_address(buffer):
    a = USMArray((4,), "f8", buffer=buffer)
    for view in (a, a[1:], a.reshape(2, 2).T):
        assert view.flags.aligned == (view.ptr % 8 == 0)
    aligned = USMArray((4,), "f8", buffer="cpu")
    assert aligned.flags.aligned and memoryview(aligned[1:]).format == "d"


def test_constructors_have_the_documented_signatures():
    assert str(inspect.signature(ah.Device)) == "(spec='cpu')"
    assert str(inspect.signature(ah.USMArray)) == (
        "(shape, dtype='|f8', buffer='device', strides=None, offset=0, order='C', buffer_ctor_kwargs={})"
    )
    assert ah.USMArray.__doc__.lstrip().startswith("Array that other array libraries can import")
