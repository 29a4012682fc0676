// Host arrays in C++ without the package arrayhub at run time: DLPack and the buffer protocol, read by this header.
//
//     #define ARRAYHUB_STANDALONE          // or -DARRAYHUB_STANDALONE, in all source files of a library
//     #include <arrayhub.hpp>
//
// If the package is installed, it is used, as without the macro. Otherwise import_arrayhub() uses the function table that
// this header defines. Its functions import arrays in host memory, without copies, as objects with the fields of a USMArray.
// The functions that create or convert arrays, look up element types or return a SYCL queue raise an ImportError that names
// the package. arrayhub.hpp includes this header at its end: it is the only import of DLPack and buffers in C++.
#ifndef ARRAYHUB_STANDALONE_HPP
#define ARRAYHUB_STANDALONE_HPP

#include <arrayhub.hpp>

#include <algorithm>
#include <cstring>

namespace arrayhub __attribute__((visibility("hidden"))) {
namespace standalone {

// ------------------------------------------------------------------------------------------------------------- DLPack

// The structs of DLPack 1.x and of its capsules before 1.0 (https://dmlc.github.io/dlpack/latest/c_api.html).
struct dl_tensor {
    void *data;
    PyUSMArrayDevice device;
    int32_t ndim;
    PyUSMArrayDataType dtype;
    int64_t *shape;
    int64_t *strides; // in elements; NULL for compact C order
    uint64_t byte_offset;
};
struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(dl_managed *);
};
struct dl_managed_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(dl_managed_versioned *);
    uint64_t flags;
    dl_tensor tensor;
};
constexpr uint64_t dl_readonly = 1, dl_copied = 2;
constexpr int dl_cpu = 1;

// -------------------------------------------------------------------------------------------------------------- arrays

// An imported array, which PyUSMArray_Fields accepts. It releases at most one of `buffer`, `managed` and `versioned`.
struct array_object : PyUSMArrayObject {
    Py_buffer buffer;                // if protocol is USM_ARRAY_PEP3118
    dl_managed *managed;             // or NULL
    dl_managed_versioned *versioned; // or NULL
    Py_ssize_t dimensions[3 * 64];   // shape, strides, byte_strides
};

constexpr Py_ssize_t fields_offset = offsetof(PyUSMArrayObject, nd);
constexpr int max_nd = 64;
inline PyTypeObject *array_type = nullptr;

inline array_object *fields_of(PyObject *array) noexcept { return reinterpret_cast<array_object *>(array); }

inline void release(PyObject *self) noexcept {
    array_object *a = fields_of(self);
    detail::held_exception pending; // a producer's deleter may run Python code
    if (a->managed != nullptr && a->managed->deleter != nullptr) a->managed->deleter(a->managed);
    if (a->versioned != nullptr && a->versioned->deleter != nullptr) a->versioned->deleter(a->versioned);
    if (a->buffer.obj != nullptr) PyBuffer_Release(&a->buffer);
    Py_XDECREF(a->base);
    pending.restore();
    PyTypeObject *cls = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(cls);
}

// Return a new array without a buffer or tensor, or an empty object with an exception set.
inline object new_array(PyObject *base) noexcept {
    array_object *a = fields_of(PyType_GenericAlloc(array_type, 0)); // all members are zero
    if (a == nullptr) return object();
    a->shape = a->dimensions;
    a->strides = a->dimensions + max_nd;
    a->byte_strides = a->dimensions + 2 * max_nd;
    a->device.device_type = dl_cpu;
    Py_INCREF(base);
    a->base = base;
    return object::steal(reinterpret_cast<PyObject *>(a));
}

// Return the name of an object's type, such as "torch.Tensor", or an empty object with an exception set.
inline object type_name(PyObject *obj) noexcept {
    const object name = object::steal(PyType_GetName(Py_TYPE(obj)));
    const object module = object::steal(PyObject_GetAttrString(reinterpret_cast<PyObject *>(Py_TYPE(obj)), "__module__"));
    if (!name) return name;
    PyErr_Clear(); // an extension type may lack the attribute
    if (!module || !PyUnicode_Check(module.ptr()) || PyUnicode_CompareWithASCIIString(module.ptr(), "builtins") == 0) return name;
    return object::steal(PyUnicode_FromFormat("%U.%U", module.ptr(), name.ptr()));
}

// Raise `exception` with the message "this NAME WORDS", where NAME is the type of an object.
inline void raise_about(PyObject *exception, PyObject *obj, const char *words) noexcept {
    if (const object name = type_name(obj)) PyErr_Format(exception, "this %U %s", name.ptr(), words);
}

// Clear the current exception, and return its message as a str, or an empty object with another exception set.
inline object take_message() noexcept {
    detail::held_exception e;
    PyErr_NormalizeException(&e.type, &e.value, &e.traceback);
    return object::steal(PyObject_Str(e.value));
}

// Replace a producer's exception by a BufferError, whose message names the type, quotes the producer's message and advises to
// install the package. Exceptions that concern the process, such as MemoryError, are not changed.
inline void explain_refusal(PyObject *obj) noexcept {
    if (detail::concerns_all_overloads()) return;
    const object message = take_message(), name = message ? type_name(obj) : object();
    if (name)
        PyErr_Format(PyExc_BufferError, "this %U: %U; the package arrayhub imports more arrays. Install arrayhub", name.ptr(),
                     message.ptr());
}

inline void needs_package(const char *what) noexcept {
    PyErr_Format(PyExc_ImportError, "%s needs the package arrayhub, which cannot be imported; install arrayhub", what);
}

// ---------------------------------------------------------------------------------------------------------- validation

// Set lengths and strides, and compute the flags from these and from data and type. Strides count `unit` bytes, or are NULL for
// compact C order. Return an error text if the layout is invalid, else NULL.
template <class Length>
const char *set_layout(array_object *a, int nd, const Length *shape, const Length *strides, Py_ssize_t unit,
                       bool writeable) noexcept {
    if (nd < 0 || nd > max_nd) return "has a negative number of dimensions, or more than 64";
    if (nd > 0 && shape == nullptr) return "does not have a shape";
    // The alignment is that of the type in C. Complex numbers have the alignment of their parts.
    const Py_ssize_t boundary = a->dl_dtype.code == 5 ? a->itemsize / 2 : a->itemsize;
    bool aligned = reinterpret_cast<uintptr_t>(a->data) % static_cast<uintptr_t>(boundary) == 0, whole = true, empty = false;
    Py_ssize_t size = a->itemsize, span, reach = 0; // bytes of all elements; distance from the first element to the last
    a->nd = nd;
    for (int k = nd - 1; k >= 0; --k) {
        const Py_ssize_t length = a->shape[k] = static_cast<Py_ssize_t>(shape[k]);
        Py_ssize_t step = size;
        if (length < 0) return "has a negative length";
        if (strides != nullptr && (__builtin_mul_overflow(strides[k], unit, &step) || step == PY_SSIZE_T_MIN))
            return "has strides beyond the address space";
        a->byte_strides[k] = step;
        a->strides[k] = step / a->itemsize;
        whole = whole && step % a->itemsize == 0;
        empty = empty || length == 0;
        if (length <= 1) continue;
        if (__builtin_mul_overflow(size, length, &size)) return "has more elements than memory can hold";
        if (__builtin_mul_overflow(step < 0 ? -step : step, length - 1, &span) || __builtin_add_overflow(reach, span, &reach))
            return "has strides beyond the address space";
        aligned = aligned && step % boundary == 0;
    }
    if (a->data == nullptr && !empty) return "has elements at the address NULL";
    if (!whole) a->strides = nullptr;
    Py_buffer layout{};
    layout.len = empty ? 0 : size;
    layout.itemsize = a->itemsize;
    layout.ndim = nd;
    layout.shape = a->shape;
    layout.strides = a->byte_strides;
    a->flags = (PyBuffer_IsContiguous(&layout, 'C') ? USM_ARRAY_C_CONTIGUOUS : 0) |
               (PyBuffer_IsContiguous(&layout, 'F') ? USM_ARRAY_F_CONTIGUOUS : 0) | (writeable ? USM_ARRAY_WRITEABLE : 0) |
               (aligned || empty ? USM_ARRAY_ALIGNED : 0) | USM_ARRAY_NOTSWAPPED;
    return nullptr;
}

// Element types that this header supports: NumPy's type numbers (bfloat16: -1), and the codes of PEP 3118, without the Z of
// complex types. The sizes of several codes depend on the platform, and ctypes writes '<l' for native longs, too.
struct element_type {
    PyUSMArrayDataType dtype;
    int typenum;
    const char *name, *codes;
};
constexpr element_type element_types[] = {
    {{6, 8, 1}, 0, "bool", "?"},        {{0, 8, 1}, 1, "int8", "b"},          {{1, 8, 1}, 2, "uint8", "B"},
    {{0, 16, 1}, 3, "int16", "h"},      {{1, 16, 1}, 4, "uint16", "H"},       {{0, 32, 1}, 5, "int32", "iln"},
    {{1, 32, 1}, 6, "uint32", "ILN"},   {{0, 64, 1}, 7, "int64", "lqn"},      {{1, 64, 1}, 8, "uint64", "LQN"},
    {{2, 16, 1}, 23, "float16", "e"},   {{2, 32, 1}, 11, "float32", "f"},     {{2, 64, 1}, 12, "float64", "d"},
    {{4, 16, 1}, -1, "bfloat16", ""},   {{5, 64, 1}, 14, "complex64", "f"},   {{5, 128, 1}, 15, "complex128", "d"},
};
inline const element_type *find_type(const PyUSMArrayDataType &dtype) noexcept {
    for (const element_type &type : element_types)
        if (detail::is_same_type(type.dtype, dtype)) return &type;
    return nullptr;
}

// Return the element type of a PEP 3118 format, or NULL if it is not supported or not in native byte order.
inline const element_type *find_format(const char *format, Py_ssize_t itemsize) noexcept {
    if (format == nullptr) format = "B";
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    const bool other_order = little ? *format == '>' || *format == '!' : *format == '<';
    if (*format != '\0' && std::strchr("@=<>!", *format) != nullptr) ++format;
    const bool is_complex = *format == 'Z';
    if (is_complex) ++format;
    if (*format == '\0' || format[1] != '\0' || (other_order && itemsize != 1)) return nullptr;
    for (const element_type &type : element_types)
        if (std::strchr(type.codes, *format) && type.dtype.bits == 8 * itemsize && (type.dtype.code == 5) == is_complex)
            return &type;
    return nullptr;
}

// Set the element type. Return false if it is NULL.
inline bool set_type(array_object *a, const element_type *type) noexcept {
    if (type == nullptr) return false;
    a->dl_dtype = type->dtype;
    a->typenum = type->typenum;
    a->itemsize = type->dtype.bits / 8;
    return true;
}

// ------------------------------------------------------------------------------------------------------ buffer protocol

// Set the fields of an array from its buffer. Return an error text, or NULL.
inline const char *read_buffer(array_object *a) noexcept {
    const Py_buffer &b = a->buffer;
    a->protocol = USM_ARRAY_PEP3118;
    if (!set_type(a, find_format(b.format, b.itemsize)))
        return "has elements without a DLPack type in native byte order, which only the package arrayhub imports. Install "
               "arrayhub";
    for (int k = 0; k < b.ndim && b.suboffsets != nullptr; ++k)
        if (b.suboffsets[k] >= 0) return "has a buffer with suboffsets";
    a->data = static_cast<char *>(b.buf);
    const char *wrong = set_layout(a, b.ndim, b.shape, b.strides, 1, !b.readonly);
    if (PyBytes_CheckExact(a->base)) a->flags |= USM_ARRAY_IMMUTABLE;
    return wrong;
}

inline PyObject *import_buffer(PyObject *obj) noexcept {
    object made = new_array(obj);
    if (!made) return nullptr;
    array_object *a = fields_of(made.ptr());
    if (PyObject_GetBuffer(obj, &a->buffer, PyBUF_FULL_RO) < 0) {
        a->buffer.obj = nullptr; // after a failed call, there is nothing to release
        return explain_refusal(obj), nullptr;
    }
    const char *wrong = read_buffer(a);
    return wrong == nullptr ? made.release() : (raise_about(PyExc_BufferError, obj, wrong), nullptr);
}

// -------------------------------------------------------------------------------------------------------------- DLPack

// Set the fields of an array from a DLPack tensor. Return an error text, or NULL.
inline const char *read_tensor(array_object *a, const dl_tensor &t, bool writeable) noexcept {
    a->protocol = USM_ARRAY_DLPACK;
    if (t.device.device_type != dl_cpu) return "has device memory, which only the package arrayhub imports. Install arrayhub";
    if (!set_type(a, find_type(t.dtype)))
        return "has elements of a type that only the package arrayhub imports. Install arrayhub";
    if (t.byte_offset > static_cast<uint64_t>(PY_SSIZE_T_MAX)) return "has a byte_offset beyond the address space";
    a->data = t.data == nullptr ? nullptr : static_cast<char *>(t.data) + t.byte_offset;
    return set_layout(a, t.ndim, t.shape, t.strides, a->itemsize, writeable);
}

// Return a new DLPack capsule. Version 1.0 is requested first, because older capsules cannot mark memory as read-only.
inline object call_dlpack(PyObject *obj) noexcept {
    const object method = object::steal(PyObject_GetAttrString(obj, "__dlpack__")), none = object::steal(PyTuple_New(0));
    const object options = object::steal(Py_BuildValue("{s(ii)}", "max_version", 1, 0));
    if (!method || !none || !options) return object();
    object capsule = object::steal(PyObject_Call(method.ptr(), none.ptr(), options.ptr()));
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); // a producer from before DLPack 1.0 does not have the argument
        capsule = object::steal(PyObject_Call(method.ptr(), none.ptr(), nullptr));
    }
    return capsule;
}

// Return true if __dlpack_device__ reports host memory, or false with an exception set. A tensor on a device is not
// requested, because the request could wait for the device's work.
inline bool is_on_host(PyObject *obj) noexcept {
    const object device = object::steal(PyObject_CallMethod(obj, "__dlpack_device__", nullptr));
    const object number = device ? object::steal(PySequence_GetItem(device.ptr(), 0)) : object();
    const long type = number ? PyLong_AsLong(number.ptr()) : -1;
    if (PyErr_Occurred()) return false;
    if (type == dl_cpu) return true;
    PyErr_Format(PyExc_BufferError, "its memory is on DLPack device %ld; accepted: host memory", type);
    return false;
}

inline PyObject *import_dlpack(PyObject *obj) noexcept {
    const object held = is_on_host(obj) ? call_dlpack(obj) : object();
    PyObject *capsule = held.ptr();
    if (capsule == nullptr) return explain_refusal(obj), nullptr;
    object made = new_array(obj);
    if (!made) return nullptr;
    array_object *a = fields_of(made.ptr());
    const char *wrong = "did not return an unused DLPack capsule";
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        auto *m = static_cast<dl_managed_versioned *>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
        wrong = m->major != 1 ? "has a DLPack tensor of a version other than 1"
                              : read_tensor(a, m->tensor, !(m->flags & dl_readonly));
        if (wrong == nullptr && PyCapsule_SetName(capsule, "used_dltensor_versioned") == 0) {
            a->versioned = m; // the capsule no longer releases the tensor
            if (m->flags & dl_copied) a->flags |= USM_ARRAY_COPIED;
        }
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        auto *m = static_cast<dl_managed *>(PyCapsule_GetPointer(capsule, "dltensor"));
        wrong = read_tensor(a, m->tensor, false); // the capsule does not specify whether its memory is writable
        if (wrong == nullptr && PyCapsule_SetName(capsule, "used_dltensor") == 0) a->managed = m;
    }
    if (wrong != nullptr) raise_about(PyExc_BufferError, obj, wrong);
    return PyErr_Occurred() ? nullptr : made.release();
}

// ------------------------------------------------------------------------------------------------------------- requests

// Return the error text for the first condition that an array does not meet, and set `exception` to its class, or return NULL.
inline const char *misfit(const array_object *a, const PyUSMArrayRequest *r, PyObject **exception) noexcept {
    bool accepted = r->ndtypes == 0;
    for (int k = 0; k < r->ndtypes; ++k) accepted = accepted || detail::is_same_type(r->dtypes[k], a->dl_dtype);
    *exception = PyExc_TypeError;
    if (!accepted) return "has elements of a different type";
    *exception = PyExc_ValueError;
    if (a->nd < r->min_nd || (r->max_nd > 0 && a->nd > r->max_nd) || (r->shape != nullptr && a->nd != r->max_nd))
        return "has a different number of dimensions";
    for (int k = 0; r->shape != nullptr && k < a->nd; ++k)
        if (r->shape[k] != -1 && r->shape[k] != a->shape[k]) return "has a different shape";
    if ((r->flags & USM_ARRAY_WRITEABLE) && !(a->flags & USM_ARRAY_WRITEABLE)) return "is read-only";
    if ((r->flags & USM_ARRAY_WRITEABLE) && (a->flags & USM_ARRAY_COPIED)) return "was exported as a copy";
    *exception = PyExc_BufferError;
    if (r->where != 0 && !(r->where & USM_ARRAY_ON_HOST)) return "is in host memory";
    if (!(a->flags & USM_ARRAY_ALIGNED) && !r->as_is) return "is not aligned for its element type";
    if ((r->flags & USM_ARRAY_WHOLE_STRIDES) && a->strides == nullptr && a->nd > 0)
        return "has strides that are not multiples of its item size";
    if (r->flags & (USM_ARRAY_C_CONTIGUOUS | USM_ARRAY_F_CONTIGUOUS) & ~a->flags) return "is not contiguous in the required order";
    return nullptr;
}

// Raise `exception`. The message contains the text `wrong`, properties of the array, and the conditions of the request, such as
// "float32, float64, 2 dimensions, C order".
inline void raise_misfit(const array_object *a, PyObject *obj, const PyUSMArrayRequest *r, PyObject *exception,
                         const char *wrong) noexcept {
    char accepted[256] = "";
    size_t length = 0;
    const auto add = [&](const char *format, auto... values) {
        const int written = PyOS_snprintf(accepted + length, sizeof(accepted) - length, format, values...);
        length = written < 0 ? sizeof(accepted) - 1 : std::min(length + static_cast<size_t>(written), sizeof(accepted) - 1);
    };
    for (int k = 0; k < r->ndtypes; ++k)
        if (const element_type *accepted_type = find_type(r->dtypes[k])) add("%s, ", accepted_type->name);
    if (r->shape != nullptr || (r->max_nd > 0 && r->max_nd == r->min_nd))
        add("%d dimension%s", r->max_nd, r->max_nd == 1 ? "" : "s");
    else if (r->max_nd > 0)
        add("%d to %d dimensions", r->min_nd, r->max_nd);
    else
        add("%d or more dimensions", r->min_nd);
    if (r->flags & USM_ARRAY_WRITEABLE) add("%s", ", writeable");
    if (r->flags & USM_ARRAY_C_CONTIGUOUS) add("%s", ", C order");
    if (r->flags & USM_ARRAY_F_CONTIGUOUS) add("%s", ", Fortran order");
    if (const object name = type_name(obj))
        PyErr_Format(exception, "%s%sthis %U %s: it has %d dimension%s of %s, %s; accepted: %s. %s",
                     r->name == nullptr ? "" : r->name, r->name == nullptr ? "" : ": ", name.ptr(), wrong, a->nd,
                     a->nd == 1 ? "" : "s", find_type(a->dl_dtype)->name,
                     a->flags & USM_ARRAY_WRITEABLE ? "writeable" : "read-only", accepted,
                     (r->may & ~USM_ARRAY_MAY_BUILD) == 0
                         ? "Convert it first"
                         : "Convert it first, or install arrayhub, which makes the copies that the function allows");
}

// --------------------------------------------------------------------------------------------------------- the table

inline PyObject *from_object(PyObject *obj) noexcept {
    if (obj == nullptr) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "arrayhub: the object is NULL; accepted: a Python object");
        return nullptr;
    }
    if (Py_TYPE(obj) == array_type) {
        Py_INCREF(obj);
        return obj;
    }
    const bool has_dlpack = PyObject_HasAttrString(obj, "__dlpack__") != 0;
    if (PyObject_CheckBuffer(obj)) {
        PyObject *found = import_buffer(obj);
        if (found != nullptr || !has_dlpack || !PyErr_ExceptionMatches(PyExc_Exception)) return found;
        detail::held_exception of_buffer;
        found = import_dlpack(obj); // for elements that only DLPack represents, such as bfloat16 of jax
        if (found == nullptr) of_buffer.restore(); // drops the exception of DLPack
        return found;
    }
    if (has_dlpack) return import_dlpack(obj);
    const char *wrong = "supports neither DLPack nor the buffer protocol; accepted: an array in host memory. Numbers, lists and "
                        "other protocols need the package arrayhub; install arrayhub";
    return raise_about(PyExc_TypeError, obj, wrong), nullptr;
}

inline PyObject *request(PyObject *obj, const PyUSMArrayRequest *r) noexcept {
    object array = object::steal(from_object(obj));
    if (!array) {
        PyObject *const type = PyErr_Occurred();
        if (r->name != nullptr && !detail::concerns_all_overloads())
            if (const object message = take_message()) PyErr_Format(type, "%s: %U", r->name, message.ptr());
        return nullptr;
    }
    PyObject *exception;
    const array_object *a = fields_of(array.ptr());
    const char *wrong = misfit(a, r, &exception);
    if (wrong == nullptr) return array.release();
    return raise_misfit(a, obj, r, exception, wrong), nullptr;
}

inline int match(PyObject *array, const PyUSMArrayRequest *r) noexcept {
    PyObject *exception;
    return array != nullptr && Py_TYPE(array) == array_type && misfit(fields_of(array), r, &exception) == nullptr;
}

inline PyObject *explain(PyObject *obj, const PyUSMArrayRequest *r) noexcept {
    if (const object array = object::steal(request(obj, r))) return PyUnicode_FromString("");
    return PyErr_ExceptionMatches(PyExc_Exception) ? take_message().release() : nullptr;
}

inline int host_ready(PyObject *) noexcept { return 0; }
inline int device(PyObject *, PyUSMArrayDevice *out) noexcept { return *out = PyUSMArrayDevice{dl_cpu, 0}, 0; }
inline PyObject *make(const PyUSMArraySpec *) noexcept { return needs_package("Making an array (hand_out)"), nullptr; }
inline int queue_ref(PyObject *, void **) noexcept { return needs_package("A SYCL queue"), -1; }
inline int type_of_number(int, PyUSMArrayElement *) noexcept { return needs_package("An element type by number"), -1; }
inline int type_of_dlpack(PyUSMArrayDataType, PyUSMArrayElement *) noexcept { return needs_package("An element type"), -1; }
inline int type_of_object(PyObject *, PyUSMArrayElement *) noexcept { return needs_package("An element type by name"), -1; }
inline PyObject *convert(PyObject *, const char *) noexcept { return needs_package("Conversion to a library"), nullptr; }
inline PyObject *like(PyObject *, PyObject *, int) noexcept { return needs_package("Conversion to a library"), nullptr; }

// Return whether the package arrayhub is absent. If the search for the package fails, its exception is set.
inline bool is_absent() noexcept {
    const object importlib = object::steal(PyImport_ImportModule("importlib.util"));
    const object spec = importlib ? object::steal(PyObject_CallMethod(importlib.ptr(), "find_spec", "s", "arrayhub")) : object();
    if (!spec || spec.ptr() == Py_None) return static_cast<bool>(spec);
    // A folder without __init__.py, such as a clone of the repository, is a namespace package: its spec has the origin None.
    return object::steal(PyObject_GetAttrString(spec.ptr(), "origin")).ptr() == Py_None;
}

} // namespace standalone
} // namespace arrayhub

// Return the function table of this header if the package is absent. Otherwise return NULL, with an exception set if the
// search for the package fails.
extern "C" ARRAYHUB_INLINE const PyUSMArrayAPI *arrayhub_standalone_api() {
    using namespace arrayhub::standalone;
    if (!is_absent()) return nullptr;
    if (array_type == nullptr) {
        static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(release)}, {0, nullptr}};
        static PyType_Spec spec = {"arrayhub_standalone.Array", sizeof(array_object), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
        array_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
        if (array_type == nullptr) return nullptr;
    }
    static const PyUSMArrayAPI functions = {
        ARRAYHUB_C_VERSION, sizeof(array_object), array_type, sizeof(PyUSMArrayAPI), fields_offset,
        from_object, request, match, explain, make, from_object /* to_host */, host_ready, device, queue_ref,
        type_of_number, type_of_dlpack, type_of_object, convert, like,
    };
    return &functions;
}

#endif
