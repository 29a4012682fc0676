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

// An imported array. It begins with the fields of a USMArray, so PyUSMArray_Fields accepts it. At most one of the members
// `buffer`, `managed` and `versioned` is set, and is released with the array.
struct array_object {
    PyObject_HEAD
    ARRAYHUB_FIELDS
    Py_buffer buffer;                // if protocol is USM_ARRAY_PEP3118
    dl_managed *managed;             // or NULL
    dl_managed_versioned *versioned; // or NULL
    Py_ssize_t dimensions[3 * 64];   // shape, strides, byte_strides
};

static_assert(offsetof(array_object, nd) == offsetof(PyUSMArrayObject, nd), "the fields begin at the wrong offset");

constexpr int max_nd = 64;
inline PyTypeObject *array_type = nullptr;

inline array_object *fields_of(PyObject *array) noexcept { return reinterpret_cast<array_object *>(array); }

// Takes the current exception, which `restore` sets again. Unlike python_error, it does not allocate memory.
struct held_exception {
    PyObject *type, *value, *traceback;
    held_exception() noexcept { PyErr_Fetch(&type, &value, &traceback); }
    held_exception(const held_exception &) = delete;
    held_exception &operator=(const held_exception &) = delete;
    ~held_exception() {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    }
    void restore() noexcept {
        PyErr_Restore(std::exchange(type, nullptr), std::exchange(value, nullptr), std::exchange(traceback, nullptr));
    }
};

inline void release(PyObject *self) noexcept {
    array_object *a = fields_of(self);
    held_exception pending; // a producer's deleter may run Python code
    if (a->managed != nullptr && a->managed->deleter != nullptr) a->managed->deleter(a->managed);
    if (a->versioned != nullptr && a->versioned->deleter != nullptr) a->versioned->deleter(a->versioned);
    if (a->buffer.obj != nullptr) PyBuffer_Release(&a->buffer);
    Py_XDECREF(a->base);
    pending.restore();
    PyTypeObject *cls = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(cls);
}

// Return a new array without a buffer or tensor, or NULL with an exception set.
inline array_object *new_array(PyObject *base) noexcept {
    array_object *a = PyObject_New(array_object, array_type);
    if (a == nullptr) return nullptr;
    std::memset(reinterpret_cast<char *>(a) + offsetof(array_object, nd), 0, sizeof(array_object) - offsetof(array_object, nd));
    a->shape = a->dimensions;
    a->strides = a->dimensions + max_nd;
    a->byte_strides = a->dimensions + 2 * max_nd;
    a->device.device_type = dl_cpu;
    Py_INCREF(base);
    a->base = base;
    return a;
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
    held_exception e;
    PyErr_NormalizeException(&e.type, &e.value, &e.traceback);
    return object::steal(PyObject_Str(e.value));
}

// Replace a producer's exception by a BufferError, whose message names the type, quotes the producer's message and advises to
// install the package. Exceptions that concern the process, such as MemoryError, are not changed.
inline void explain_refusal(PyObject *obj) noexcept {
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_TypeError) &&
        !PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_AttributeError))
        return;
    const object message = take_message(), name = message ? type_name(obj) : object();
    if (name)
        PyErr_Format(PyExc_BufferError, "this %U: %U; the package arrayhub imports more arrays. Install arrayhub", name.ptr(),
                     message.ptr());
}

inline void needs_package(const char *what) noexcept {
    PyErr_Format(PyExc_ImportError, "%s needs the package arrayhub, which cannot be imported; install arrayhub", what);
}

// ---------------------------------------------------------------------------------------------------------- validation

// Compute the flags from shape, byte strides and data. Return an error text if these are invalid, else NULL.
inline const char *finish(array_object *a, bool writeable) noexcept {
    bool c = true, f = true, aligned = true, whole = true, empty = false;
    Py_ssize_t size = a->itemsize, reach = 0; // bytes of all elements; distance from the first element to the last
    for (int k = 0; k < a->nd; ++k) {
        if (a->shape[k] < 0) return "has a negative length";
        empty = empty || a->shape[k] == 0;
    }
    // The alignment is that of the type in C. Complex numbers have the alignment of their parts.
    const Py_ssize_t boundary = a->dl_dtype.code == 5 ? a->itemsize / 2 : a->itemsize;
    aligned = reinterpret_cast<uintptr_t>(a->data) % static_cast<uintptr_t>(boundary) == 0;
    for (int k = a->nd - 1; k >= 0; --k) {
        const Py_ssize_t length = a->shape[k], step = a->byte_strides[k];
        if (step == PY_SSIZE_T_MIN) return "has a stride that is too large";
        if (step % a->itemsize != 0) whole = false;
        a->strides[k] = step / a->itemsize;
        if (empty || length == 1) continue;
        if (size > PY_SSIZE_T_MAX / length) return "has more elements than memory can hold";
        if (step != size) c = false;
        size *= length;
        const Py_ssize_t distance = step < 0 ? -step : step;
        if (distance > (PY_SSIZE_T_MAX - reach) / (length - 1)) return "has strides beyond the address space";
        reach += distance * (length - 1);
        if (step % boundary != 0) aligned = false;
    }
    size = a->itemsize;
    for (int k = 0; k < a->nd && !empty; ++k) {
        if (a->shape[k] == 1) continue;
        if (a->byte_strides[k] != size) f = false;
        size *= a->shape[k];
    }
    if (a->data == nullptr && !empty) return "has elements at the address NULL";
    if (!whole) a->strides = nullptr;
    a->flags = (c ? USM_ARRAY_C_CONTIGUOUS : 0) | (f ? USM_ARRAY_F_CONTIGUOUS : 0) | (writeable ? USM_ARRAY_WRITEABLE : 0) |
               (aligned || empty ? USM_ARRAY_ALIGNED : 0) | USM_ARRAY_NOTSWAPPED;
    return nullptr;
}

// Set C-contiguous strides. `finish` detects overflow, because it multiplies the same lengths.
inline void make_compact(array_object *a) noexcept {
    size_t step = static_cast<size_t>(a->itemsize);
    for (int k = a->nd - 1; k >= 0; --k) {
        a->byte_strides[k] = static_cast<Py_ssize_t>(step);
        step *= static_cast<size_t>(a->shape[k] > 1 ? a->shape[k] : 1);
    }
}

// Element types that this header supports, with NumPy's type numbers (bfloat16: -1).
struct element_type {
    PyUSMArrayDataType dtype;
    int typenum;
    const char *name;
};
constexpr element_type element_types[] = {
    {{6, 8, 1}, 0, "bool"},      {{0, 8, 1}, 1, "int8"},       {{1, 8, 1}, 2, "uint8"},      {{0, 16, 1}, 3, "int16"},
    {{1, 16, 1}, 4, "uint16"},   {{0, 32, 1}, 5, "int32"},     {{1, 32, 1}, 6, "uint32"},    {{0, 64, 1}, 7, "int64"},
    {{1, 64, 1}, 8, "uint64"},   {{2, 16, 1}, 23, "float16"},  {{2, 32, 1}, 11, "float32"},  {{2, 64, 1}, 12, "float64"},
    {{4, 16, 1}, -1, "bfloat16"}, {{5, 64, 1}, 14, "complex64"}, {{5, 128, 1}, 15, "complex128"},
};
inline const element_type *find_type(const PyUSMArrayDataType &dtype) noexcept {
    for (const element_type &type : element_types)
        if (detail::is_same_type(type.dtype, dtype)) return &type;
    return nullptr;
}
// Set the element type. Return false if this header does not support it.
inline bool set_type(array_object *a, const PyUSMArrayDataType &dtype) noexcept {
    const element_type *type = find_type(dtype);
    if (type == nullptr) return false;
    a->dl_dtype = dtype;
    a->typenum = type->typenum;
    a->itemsize = dtype.bits / 8;
    return true;
}

// ------------------------------------------------------------------------------------------------------ buffer protocol

// Codes of PEP 3118. ctypes writes '<l' for native longs, too, so 'l' and 'L' have both sizes.
struct format_code {
    char letter;
    uint8_t code;
    size_t bytes;
};
constexpr format_code format_codes[] = {
    {'?', 6, 1}, {'b', 0, 1}, {'B', 1, 1}, {'h', 0, 2}, {'H', 1, 2}, {'i', 0, 4}, {'I', 1, 4}, {'q', 0, 8}, {'Q', 1, 8},
    {'l', 0, 4}, {'L', 1, 4}, {'e', 2, 2}, {'f', 2, 4}, {'d', 2, 8}, {'l', 0, sizeof(long)}, {'L', 1, sizeof(long)},
    {'n', 0, sizeof(Py_ssize_t)}, {'N', 1, sizeof(size_t)},
};

// Return the element type of a PEP 3118 format. If it is not supported or not in native byte order, return the code
// USM_ARRAY_NO_DLPACK.
inline PyUSMArrayDataType type_of_format(const char *format, Py_ssize_t itemsize) noexcept {
    if (format == nullptr) format = "B";
    const uint16_t one = 1;
    const bool little = *reinterpret_cast<const unsigned char *>(&one) == 1;
    const bool other_order = little ? *format == '>' || *format == '!' : *format == '<';
    if (*format != '\0' && std::strchr("@=<>!", *format) != nullptr) ++format;
    const bool is_complex = *format == 'Z';
    if (is_complex) ++format;
    const bool is_one_code = *format != '\0' && format[1] == '\0' && (!other_order || itemsize == 1);
    const size_t size = static_cast<size_t>(itemsize) / (is_complex ? 2 : 1);
    for (const format_code &row : format_codes)
        if (is_one_code && row.letter == *format && row.bytes == size && (!is_complex || row.code == 2))
            return {static_cast<uint8_t>(is_complex ? 5 : row.code), static_cast<uint8_t>(8 * itemsize), 1};
    return {USM_ARRAY_NO_DLPACK, 0, 0};
}

// Set the fields of an array from its buffer. Return an error text, or NULL.
inline const char *read_buffer(array_object *a) noexcept {
    const Py_buffer &b = a->buffer;
    a->protocol = USM_ARRAY_PEP3118;
    if (!set_type(a, type_of_format(b.format, b.itemsize)))
        return "has elements without a DLPack type in native byte order, which only the package arrayhub imports. Install "
               "arrayhub";
    if (b.ndim < 0 || b.ndim > max_nd) return "has more than 64 dimensions";
    if (b.ndim > 0 && b.shape == nullptr) return "has a buffer without a shape";
    a->nd = b.ndim;
    a->data = static_cast<char *>(b.buf);
    for (int k = 0; k < b.ndim; ++k) {
        if (b.suboffsets != nullptr && b.suboffsets[k] >= 0) return "has a buffer with suboffsets";
        a->shape[k] = b.shape[k];
    }
    if (b.strides == nullptr) make_compact(a);
    for (int k = 0; k < b.ndim && b.strides != nullptr; ++k) a->byte_strides[k] = b.strides[k];
    const char *wrong = finish(a, !b.readonly);
    if (PyBytes_CheckExact(a->base)) a->flags |= USM_ARRAY_IMMUTABLE;
    return wrong;
}

inline PyObject *import_buffer(PyObject *obj) noexcept {
    array_object *a = new_array(obj);
    if (a == nullptr) return nullptr;
    const char *wrong = nullptr;
    if (PyObject_GetBuffer(obj, &a->buffer, PyBUF_FULL_RO) < 0) {
        a->buffer.obj = nullptr; // after a failed call, there is nothing to release
        explain_refusal(obj);
    } else if ((wrong = read_buffer(a)) == nullptr) {
        return reinterpret_cast<PyObject *>(a);
    } else {
        raise_about(PyExc_BufferError, obj, wrong);
    }
    Py_DECREF(reinterpret_cast<PyObject *>(a));
    return nullptr;
}

// -------------------------------------------------------------------------------------------------------------- DLPack

// Set the fields of an array from a DLPack tensor. Return an error text, or NULL.
inline const char *read_tensor(array_object *a, const dl_tensor &t, bool writeable) noexcept {
    a->protocol = USM_ARRAY_DLPACK;
    if (t.device.device_type != dl_cpu) return "has device memory, which only the package arrayhub imports. Install arrayhub";
    if (!set_type(a, t.dtype)) return "has elements of a type that only the package arrayhub imports. Install arrayhub";
    if (t.ndim < 0 || t.ndim > max_nd) return "has a negative number of dimensions, or more than 64";
    if (t.ndim > 0 && t.shape == nullptr) return "has a DLPack tensor without a shape";
    if (t.byte_offset > static_cast<uint64_t>(PY_SSIZE_T_MAX)) return "has a byte_offset beyond the address space";
    a->nd = t.ndim;
    a->data = t.data == nullptr ? nullptr : static_cast<char *>(t.data) + t.byte_offset;
    for (int k = 0; k < t.ndim; ++k) a->shape[k] = static_cast<Py_ssize_t>(t.shape[k]);
    if (t.strides == nullptr) make_compact(a);
    for (int k = 0; k < t.ndim && t.strides != nullptr; ++k) {
        const int64_t most = PY_SSIZE_T_MAX / a->itemsize;
        if (t.strides[k] > most || t.strides[k] < -most) return "has strides beyond the address space";
        a->byte_strides[k] = static_cast<Py_ssize_t>(t.strides[k]) * a->itemsize;
    }
    return finish(a, writeable);
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
    array_object *a = new_array(obj);
    if (a == nullptr) return nullptr;
    object made = object::steal(reinterpret_cast<PyObject *>(a));
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

// Write the conditions of a request to `text`, such as "float32, float64, 2 dimensions, C order".
inline void describe(const PyUSMArrayRequest *r, char *text, size_t size) noexcept {
    size_t length = 0;
    const auto add = [&](const char *format, auto... values) {
        const int written = PyOS_snprintf(text + length, size - length, format, values...);
        length = written < 0 || length + static_cast<size_t>(written) >= size ? size - 1 : length + static_cast<size_t>(written);
    };
    for (int k = 0; k < r->ndtypes; ++k) {
        const element_type *type = find_type(r->dtypes[k]);
        if (type != nullptr) add("%s, ", type->name);
    }
    if (r->shape != nullptr || (r->max_nd > 0 && r->max_nd == r->min_nd))
        add("%d dimension%s", r->max_nd, r->max_nd == 1 ? "" : "s");
    else if (r->max_nd > 0)
        add("%d to %d dimensions", r->min_nd, r->max_nd);
    else
        add("%d or more dimensions", r->min_nd);
    if (r->flags & USM_ARRAY_WRITEABLE) add("%s", ", writeable");
    if (r->flags & USM_ARRAY_C_CONTIGUOUS) add("%s", ", C order");
    if (r->flags & USM_ARRAY_F_CONTIGUOUS) add("%s", ", Fortran order");
}

inline void raise_misfit(const array_object *a, PyObject *obj, const PyUSMArrayRequest *r, PyObject *exception,
                         const char *wrong) noexcept {
    char accepted[256] = "";
    describe(r, accepted, sizeof(accepted));
    const element_type *type = find_type(a->dl_dtype);
    if (const object name = type_name(obj))
        PyErr_Format(exception, "%s%sthis %U %s: it has %d dimension%s of %s, %s; accepted: %s. %s",
                     r->name == nullptr ? "" : r->name, r->name == nullptr ? "" : ": ", name.ptr(), wrong, a->nd,
                     a->nd == 1 ? "" : "s", type == nullptr ? "an unknown type" : type->name,
                     a->flags & USM_ARRAY_WRITEABLE ? "writeable" : "read-only", accepted,
                     r->may == 0 ? "Convert it first" : "Convert it first, or install arrayhub, which converts it");
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
        held_exception of_buffer;
        found = import_dlpack(obj); // for elements that only DLPack represents, such as bfloat16 of jax
        if (found == nullptr) of_buffer.restore(); // drops the exception of DLPack
        return found;
    }
    if (has_dlpack) return import_dlpack(obj);
    raise_about(PyExc_TypeError, obj,
                "supports neither DLPack nor the buffer protocol; accepted: an array in host memory. Numbers, lists and other "
                "protocols need the package arrayhub; install arrayhub");
    return nullptr;
}

inline PyObject *request(PyObject *obj, const PyUSMArrayRequest *r) noexcept {
    object array = object::steal(from_object(obj));
    if (!array) {
        PyObject *const type = PyErr_Occurred();
        if (r->name != nullptr && (type == PyExc_TypeError || type == PyExc_BufferError || type == PyExc_ValueError))
            if (const object message = take_message()) PyErr_Format(type, "%s: %U", r->name, message.ptr());
        return nullptr;
    }
    PyObject *exception;
    const array_object *a = fields_of(array.ptr());
    const char *wrong = misfit(a, r, &exception);
    if (wrong == nullptr) return array.release();
    raise_misfit(a, obj, r, exception, wrong);
    return nullptr;
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
inline int device(PyObject *, PyUSMArrayDevice *out) noexcept {
    *out = PyUSMArrayDevice{dl_cpu, 0};
    return 0;
}
inline PyObject *make(const PyUSMArraySpec *) noexcept { return needs_package("Making an array (hand_out)"), nullptr; }
inline int queue_ref(PyObject *, void **) noexcept { return needs_package("A SYCL queue"), -1; }
inline int type_of_number(int, PyUSMArrayElement *) noexcept { return needs_package("An element type by number"), -1; }
inline int type_of_dlpack(PyUSMArrayDataType, PyUSMArrayElement *) noexcept { return needs_package("An element type"), -1; }
inline int type_of_object(PyObject *, PyUSMArrayElement *) noexcept { return needs_package("An element type by name"), -1; }
inline PyObject *convert(PyObject *, const char *) noexcept { return needs_package("Conversion to a library"), nullptr; }
inline PyObject *like(PyObject *, PyObject *, int) noexcept { return needs_package("Conversion to a library"), nullptr; }

// Return whether the package arrayhub is absent. If it is present, import it. If that fails, its exception is set.
inline bool is_absent() noexcept {
    const object importlib = object::steal(PyImport_ImportModule("importlib.util"));
    const object spec = importlib ? object::steal(PyObject_CallMethod(importlib.ptr(), "find_spec", "s", "arrayhub")) : object();
    if (spec && spec.ptr() != Py_None) object::steal(PyImport_ImportModule("arrayhub"));
    return spec.ptr() == Py_None;
}

// Return the function table of this header if the package is absent. Otherwise return NULL, with an exception set if the
// import of the package fails.
inline const PyUSMArrayAPI *table() noexcept {
    if (!is_absent()) return nullptr;
    if (array_type == nullptr) {
        static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(release)}, {0, nullptr}};
        static PyType_Spec spec = {"arrayhub_standalone.Array", sizeof(array_object), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
        array_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
        if (array_type == nullptr) return nullptr;
    }
    static const PyUSMArrayAPI functions = {
        ARRAYHUB_C_VERSION, sizeof(array_object), array_type, sizeof(PyUSMArrayAPI), offsetof(array_object, nd),
        from_object, request, match, explain, make, from_object /* to_host */, host_ready, device, queue_ref,
        type_of_number, type_of_dlpack, type_of_object, convert, like,
    };
    return &functions;
}

} // namespace standalone
} // namespace arrayhub

#endif
