"""Find the allocation that contains a USM pointer.

SYCL reports the USM type of a pointer but not its allocation. The runtime below SYCL reports the allocation with one of these
functions, if its library is available:

- OpenCL: clGetMemAllocInfoINTEL (cl_intel_unified_shared_memory)
- Level Zero: zeMemGetAddressRange (core specification). Level Zero places small allocations inside larger allocations, and
  reports the larger allocations.
"""

import ctypes

cimport cython

from arrayhub._core.cpython.atomics cimport is_done, mark_done

ctypedef enum Backend:
    OTHER = 0          # a runtime that does not report allocations
    OPENCL
    LEVEL_ZERO

# clGetMemAllocInfoINTEL of OpenCL's extension cl_intel_unified_shared_memory.
ctypedef int (*AllocInfo)(void* context, const void* pointer, unsigned int what, size_t size, void* value,
                          size_t* written) noexcept nogil

# Context of the runtime below SYCL. All zero before `enter` and after `leave`.
cdef struct Native:
    Backend backend
    void* context
    AllocInfo info

cdef enum:
    # dpctl's DPCTLSyclBackendType
    DPCTL_OPENCL = 1 << 18
    DPCTL_LEVEL_ZERO = 1 << 17
    # OpenCL's headers
    CONTEXT_DEVICES = 0x1081
    DEVICE_PLATFORM = 0x1031
    ALLOC_BASE = 0x419B

ctypedef int (*GetInfo)(void* object, unsigned int what, size_t size, void* value, size_t* written) noexcept nogil
ctypedef void* (*FindFunction)(void* platform, const char* name) noexcept nogil
ctypedef int (*UseObject)(void* object) noexcept nogil
ctypedef int (*AddressRange)(void* context, const void* pointer, void** base, size_t* size) noexcept nogil
ctypedef void* (*GetNative)(const void* context) noexcept nogil

cdef struct DriverFunctions:
    int (*backend)(void* context) noexcept nogil
    GetNative native
    GetInfo context_info
    GetInfo device_info
    FindFunction find
    UseObject release
    AddressRange address_range

cdef object _extent_lock = object()
cdef int _looked = 0
cdef DriverFunctions _call


cdef void* address(object library, str name) except? NULL:
    """Return the address of a function, or NULL if the library or the name does not exist."""
    try:
        found = ctypes.CDLL(library) if isinstance(library, str) else library
        return <void*> <size_t> ctypes.cast(found[name], ctypes.c_void_p).value
    except (AttributeError, OSError):
        return NULL


cdef int look(object library) except -1:
    """Look up the functions by name in `library`, dpctl's C library, and in the runtimes below SYCL."""
    global _call
    cdef DriverFunctions found
    found.backend = <int (*)(void*) noexcept nogil> address(library, "DPCTLContext_GetBackend")
    found.native = <GetNative> address(library, "_ZNK4sycl3_V17context9getNativeEv")    # sycl::context::getNative() const
    found.context_info = <GetInfo> address("libOpenCL.so.1", "clGetContextInfo")
    found.device_info = <GetInfo> address("libOpenCL.so.1", "clGetDeviceInfo")
    found.find = <FindFunction> address("libOpenCL.so.1", "clGetExtensionFunctionAddressForPlatform")
    found.release = <UseObject> address("libOpenCL.so.1", "clReleaseContext")
    found.address_range = <AddressRange> address("libze_loader.so.1", "zeMemGetAddressRange")
    with cython.critical_section(_extent_lock):     # opening a library may let another thread run this function
        if not is_done(&_looked):
            _call = found
            mark_done(&_looked)
    return 0


cdef int enter(Native* native, void* context) noexcept:
    """Set `native` to the runtime below a SYCL context if that runtime reports allocations, else to OTHER."""
    cdef int backend
    native.backend = OTHER
    if _call.backend == NULL or _call.native == NULL:
        return 0
    backend = _call.backend(context)
    if backend == DPCTL_OPENCL and _call.find != NULL and _call.release != NULL:
        native.context = _call.native(context)     # returns a new reference
        native.backend = OPENCL
        native.info = alloc_info(native.context)
        if native.info == NULL:
            leave(native)
            native.backend = OTHER
    elif backend == DPCTL_LEVEL_ZERO and _call.address_range != NULL:
        native.context = _call.native(context)
        native.backend = LEVEL_ZERO
    return 0


cdef AllocInfo alloc_info(void* context) noexcept:
    """Return clGetMemAllocInfoINTEL for the platform of the context's first device, or NULL."""
    cdef void* devices[64]
    cdef void* platform = NULL
    cdef size_t written = 0
    if _call.context_info == NULL or _call.device_info == NULL:
        return NULL
    if _call.context_info(context, CONTEXT_DEVICES, sizeof(devices), devices, &written) != 0 or written < sizeof(void*):
        return NULL
    if _call.device_info(devices[0], DEVICE_PLATFORM, sizeof(platform), &platform, NULL) != 0:
        return NULL
    return <AllocInfo> _call.find(platform, b"clGetMemAllocInfoINTEL")


cdef void leave(Native* native) noexcept:
    """Release the reference that `enter` acquired."""
    if native.backend == OPENCL:
        _call.release(native.context)
    native.backend = OTHER
    native.context = NULL
    native.info = NULL


cdef char* allocation_of(const Native* native, const void* pointer) noexcept nogil:
    """Return the start of the allocation that contains `pointer`, or NULL."""
    cdef void* base = NULL
    cdef int error
    if native.backend == OPENCL:
        error = native.info(native.context, pointer, ALLOC_BASE, sizeof(base), &base, NULL)
    else:
        error = _call.address_range(native.context, pointer, &base, NULL)
    return <char*> base if error == 0 else NULL
