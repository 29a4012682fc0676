"""Imports of usm_ndarray through its C functions, its struct and its dict have equal results.

A struct of unknown layout is not read. The C functions and the struct's layout differ between releases: dpctl.tensor
exports C functions until dpctl 0.21, and dpnp.tensor does not export any.

The first half of this file tests the installed release (run it with dpctl 0.21 too). The second half compiles types
that another release might have: with or without the functions, with different signatures, or with a different layout.
"""

import functools
import itertools
import json
import sys
import sysconfig

import arrayhub as ah  # imported before dpctl, so that dpctl finds the CPU runtime

# isort: split
import numpy as np
import pytest
from children import python, run
from exporters import FAST_PATHS_OFF

pytest.importorskip("dpctl", reason="no SYCL without dpctl")

KINDS = ("device", "shared", "host")
DTYPES = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")
LAYOUTS = {
    "C": lambda u: u,
    "transposed": lambda u: u.T,  # the strides of a contiguous array are NULL in the struct
    "corner": lambda u: u[1:, 2:],
    "steps": lambda u: u[::2, 1::3],
    "negative": lambda u: u[::-1, ::-2],
    "column": lambda u: u[:, 3],
    "0-d": lambda u: u[2, 3],
    "empty": lambda u: u[:0],
    "empty tail": lambda u: u[:, 6:],
    "new axes": lambda u: u[None, :, None],
    "one row": lambda u: u[2:3].T,
}


def tensor_module():
    """Return dpnp.tensor, which was dpctl.tensor in earlier versions."""
    try:
        import dpnp.tensor as tensor
    except ImportError:
        tensor = pytest.importorskip("dpctl.tensor")
    return tensor


def described(a):
    """Return the properties of an array that an interface dict describes, without those of its allocation."""
    flags = a.flags
    return {
        "layout": (a.shape, a.strides, flags.c_contiguous, flags.f_contiguous),
        "elements": (a.dtype, a.typenum, flags.aligned),
        "memory": (a.ptr, a.usm_type, a.device, a.access),
        "protocol": a.protocol,
    }


def compare(usm_ndarray):
    """Compare arrays of every USM type, element type and layout with their dicts. Return the number of comparisons."""
    count = 0
    for kind, dtype in itertools.product(KINDS, DTYPES):
        whole = usm_ndarray((4, 6), dtype=dtype, buffer=kind)
        for (layout, view), writable in itertools.product(LAYOUTS.items(), (True, False)):
            u = view(whole)
            u.flags.writable = writable
            a, keys = ah.asarray(u), u.__sycl_usm_array_interface__
            assert described(a) == described(ah.asarray(u, via="sycl")), (kind, dtype, layout)
            if a.size:
                ours = a.__sycl_usm_array_interface__
                assert {key: ours[key] for key in SAID} == {key: keys[key] for key in SAID}, (kind, dtype, layout)
            assert (a.usm_type, a.access) == (kind, "readwrite" if writable else "readonly")
            assert a.base is u.usm_data
            assert (a.memory.address, a.memory.nbytes) == (u.usm_data._pointer, u.usm_data.nbytes)
            assert a.ptr == a.memory.address + a.offset * a.itemsize, (kind, dtype, layout)
            count += 1
    return count


SAID = ("data", "offset", "shape", "typestr", "syclobj")
EXPECTED = len(KINDS) * len(DTYPES) * len(LAYOUTS) * 2


# ------------------------------------------------------------------------------------------------ the installed release


@pytest.mark.slow
def test_struct_equals_the_dict_of_the_installed_release():
    tensor_module()
    code = """
        from test_dpctl_usm_ndarray import compare, tensor_module

        print(compare(tensor_module().usm_ndarray))
    """
    assert int(python(code, beside=__file__)) == EXPECTED


def test_imported_arrays_have_the_right_values():
    """Test the values of the arrays. `compare` tests only their descriptions."""
    tensor = tensor_module()
    u = tensor.reshape(tensor.arange(24, dtype="i4", usm_type="shared"), (4, 6))
    for view in LAYOUTS.values():
        assert np.array_equal(np.asarray(ah.asarray(view(u))), view(np.arange(24, dtype="i4").reshape(4, 6)))


# -------------------------------------------------------------------------------------------- possible other releases

# Source of a class usm_ndarray with given fields. An instance wraps a usm_ndarray of the installed release, and fills
# the fields from the dict of the wrapped array.
LOOKALIKE = """\
# cython: language_level=3
from libc.stdlib cimport free, malloc

ASKED = {{"dict": 0}}

cdef api class usm_ndarray [object PyUSMArrayObject, type PyUSMArrayType]:
    {fields}
    cdef object __weakref__

    cdef void needs_a_table_of_methods(self):
        pass

    def __cinit__(self, shape, *, dtype=None, buffer=None, real=None):
        from dpnp.tensor import usm_ndarray as installed

        cdef int k
        self.namespace_ = real = installed(shape, dtype=dtype, buffer=buffer) if real is None else real
        keys = real.__sycl_usm_array_interface__
        self.base_ = real.usm_data
        self.data_ = <char*> <size_t> (keys["data"][0] + keys["offset"] * real.itemsize)
        self.nd_ = len(keys["shape"])
        self.typenum_ = real.dtype.num
        self.shape_ = <Py_ssize_t*> malloc(sizeof(Py_ssize_t) * 8)
        for k, length in enumerate(keys["shape"]):
            self.shape_[k] = length
        in_fortran_order = real.size and real.flags.f_contiguous and not real.flags.c_contiguous
        if keys["strides"] is not None and not in_fortran_order:
            self.strides_ = <Py_ssize_t*> malloc(sizeof(Py_ssize_t) * 8)
            for k, step in enumerate(keys["strides"]):
                self.strides_[k] = step
        self.note_flags()

    def __dealloc__(self):
        free(self.shape_)
        free(self.strides_)

    cdef note_flags(self):
        flags = self.namespace_.flags
        self.flags_ = flags.c_contiguous | flags.f_contiguous << 1 | flags.writable << 2

    def __getitem__(self, key):
        return usm_ndarray((), real=self.namespace_[key])

    @property
    def T(self):
        return usm_ndarray((), real=self.namespace_.T)

    @property
    def flags(self):
        return Flags(self)

    @property
    def dtype(self):
        return self.namespace_.dtype

    @property
    def usm_data(self):
        return self.base_

    @property
    def __sycl_usm_array_interface__(self):
        ASKED["dict"] += 1
        return self.namespace_.__sycl_usm_array_interface__


class Flags:
    def __init__(self, array):
        self.__dict__["array"] = array

    def __setattr__(self, name, value):
        set_flag(self.array, name, value)


def set_flag(usm_ndarray u, name, value):
    setattr(u.namespace_.flags, name, value)
    u.note_flags()
"""

FIELDS = {
    "known": "char* data_; int nd_; Py_ssize_t* shape_; Py_ssize_t* strides_; int typenum_; int flags_; "
    "object base_; object namespace_",
    "reordered": "char* data_; int nd_; Py_ssize_t* strides_; Py_ssize_t* shape_; int flags_; int typenum_; "
    "object base_; object namespace_",
    "moved": "object namespace_; object base_; int flags_; int nd_; Py_ssize_t* shape_; Py_ssize_t* strides_; "
    "char* data_; int typenum_",
    "longer": "char* data_; int nd_; Py_ssize_t* shape_; Py_ssize_t* strides_; int typenum_; int flags_; "
    "object base_; object namespace_; object device_",
}
# For each release: its fields, and the method by which arrayhub must read arrays.
RELEASES = [("known", "struct"), ("reordered", "dict"), ("moved", "dict"), ("longer", "dict")]


def source(fields):
    """Return Cython source that defines usm_ndarray with these fields."""
    declared = "\n    ".join(f"cdef {field.strip()}" for field in FIELDS[fields].split(";"))
    return LOOKALIKE.format(fields=declared)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """Return a cached function that compiles usm_ndarray with given fields and returns the path of the module."""
    pytest.importorskip("Cython")
    pytest.importorskip("dpnp.tensor")

    @functools.cache
    def build(fields):
        folder = tmp_path_factory.mktemp(fields)
        file, library = folder / "_usmarray.pyx", folder / f"_usmarray{sysconfig.get_config_var('EXT_SUFFIX')}"
        file.write_text(source(fields))
        compiler = (sysconfig.get_config_var("CC") or "cc").split()
        include = f"-I{sysconfig.get_path('include')}"
        for command in (
            [sys.executable, "-m", "cython", "--module-name", "dpctl.tensor._usmarray", file],
            [*compiler, "-shared", "-fPIC", "-O0", "-w", include, file.with_suffix(".c"), "-o", library],
        ):
            run(*command, cwd=folder)
        return library

    return build


@pytest.mark.slow
@pytest.mark.parametrize(("fields", "way"), RELEASES)
def test_arrays_of_another_release_are_read_by_a_safe_method(release, fields, way):
    """arrayhub verifies the struct before it reads arrays, because all releases use the same type name."""
    code = """
        import importlib.util, json, sys
        import arrayhub, dpctl.memory
        from test_dpctl_usm_ndarray import compare

        spec = importlib.util.spec_from_file_location("dpctl.tensor._usmarray", sys.argv[1])
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules["dpctl.tensor"] = sys.modules["dpctl.tensor._usmarray"] = module

        arrayhub.asarray(module.usm_ndarray((3,), dtype="f4", buffer="shared"))   # the first array gets more checks
        u = module.usm_ndarray((3,), dtype="f4", buffer="shared")
        module.ASKED.update(dict.fromkeys(module.ASKED, 0))
        arrayhub.asarray(u)
        asked = {name: count > 0 for name, count in module.ASKED.items()}
        print(json.dumps([asked, module.usm_ndarray.__basicsize__, compare(module.usm_ndarray)]))
    """
    asked, size, compared = json.loads(python(code, str(release(fields)), beside=__file__))
    if FAST_PATHS_OFF:
        way = "dict"  # the struct is a fast path
    assert size == (96 if fields == "longer" else 88)
    assert asked == {"dict": way == "dict"}
    assert compared == EXPECTED
