// Arrays in C++: typed views of any Python array, and arrays that export C++ memory. C++17, header-only.
//
//     #include <arrayhub.hpp>       // or <arrayhub/pybind11.hpp> or <arrayhub/nanobind.hpp>, which include it
//
//     double sum(arrayhub::view<const double, 2> a) {         // read-only; view<double, 2> is writable
//         double total = 0;
//         for (Py_ssize_t i = 0; i < a.extent(0); ++i)
//             for (Py_ssize_t j = 0; j < a.extent(1); ++j) total += a(i, j);
//         return total;
//     }
//
//     arrayhub::array ones(Py_ssize_t n) { return arrayhub::hand_out(std::vector<double>(n, 1.0)); }
//
// A view holds a reference to a USMArray. Views may be copied and destroyed without the GIL. Making a view requires the
// GIL or acquires it, and so does every function that returns an `object`. sycl.hpp is never included: queues are passed by
// address.
#ifndef ARRAYHUB_HPP
#define ARRAYHUB_HPP

#include <arrayhub.h>

#if ARRAYHUB_TARGET_VERSION < 2
#error "arrayhub.hpp needs ARRAYHUB_TARGET_VERSION 2 or more"
#endif

#include <atomic>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <time.h>
#include <type_traits>
#include <utility>
#include <vector>
#if __has_include(<span>)
#include <span> // defines __cpp_lib_span since C++20
#endif

// Libraries in one process may be compiled with different versions of this header, so its symbols are hidden.
namespace arrayhub __attribute__((visibility("hidden"))) {

using index_t = Py_ssize_t;

// ---------------------------------------------------------------------------------------------------------------- GIL

namespace detail {

// State for Python's shutdown. CPython 3.13 and older versions terminate a thread that requests the GIL during finalization.
// In a destructor, which is noexcept, this would terminate the process. Therefore an atexit hook sets `near`, after which no
// thread requests the GIL. The hook then waits for the threads that are requesting or holding it. References that would be
// dropped later leak until the process ends.
struct python_end {
    std::atomic<bool> watched{false};
    std::atomic<bool> near{false};
    std::atomic<bool> untaken{false}; // an object was copied without a new reference, so references are no longer dropped
    std::atomic<int> inside{0};       // threads that request the GIL, or hold it through call_with_gil
};
inline python_end the_end;

inline PyObject *python_ends(PyObject *, PyObject *) noexcept {
    the_end.near = true;
    if (the_end.inside != 0) {
        PyThreadState *state = PyEval_SaveThread();
        const timespec moment{0, 1000000};
        for (int k = 0; k < 1000 && the_end.inside != 0; ++k) nanosleep(&moment, nullptr); // at most 1 s
        PyEval_RestoreThread(state);
    }
    return Py_BuildValue("");
}

// Return whether this thread is known to hold the GIL. This test is cheaper than acquiring the GIL. PyGILState_Check is not
// used, because it returns 1 for every thread once a subinterpreter exists.
inline bool has_gil() noexcept {
#if defined(Py_LIMITED_API)
    return false;
#elif PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked() != nullptr;
#else
    PyThreadState *running = _PyThreadState_UncheckedGet();
    return running != nullptr && running == PyGILState_GetThisThreadState();
#endif
}

// Call `f` with the GIL held. Return false without a call if this thread does not hold the GIL and Python's shutdown has begun.
template <class F> bool call_with_gil(F &&f) noexcept {
    if (has_gil()) return f(), true;
    ++the_end.inside;
    const bool enters = !the_end.near && Py_IsInitialized();
    if (enters) {
        const PyGILState_STATE state = PyGILState_Ensure();
        f();
        PyGILState_Release(state);
    }
    --the_end.inside;
    return enters;
}

inline void take_reference(PyObject *p) noexcept {
    if (p != nullptr && !call_with_gil([p] { Py_INCREF(p); })) the_end.untaken = true;
}

inline void drop_reference(PyObject *p) noexcept {
    if (p != nullptr && !the_end.untaken.load(std::memory_order_relaxed)) call_with_gil([p] { Py_DECREF(p); });
}

// Takes the current exception, which `restore` sets again. Without `restore`, the exception is dropped.
struct held_exception {
    PyObject *type, *value, *traceback;
    held_exception() noexcept { PyErr_Fetch(&type, &value, &traceback); }
    held_exception(const held_exception &) = delete;
    held_exception &operator=(const held_exception &) = delete;
    ~held_exception() {
        drop_reference(type);
        drop_reference(value);
        drop_reference(traceback);
    }
    void restore() noexcept {
        PyErr_Restore(std::exchange(type, nullptr), std::exchange(value, nullptr), std::exchange(traceback, nullptr));
    }
};

// Register the hook in the main interpreter only: the end of a subinterpreter does not terminate threads. If
// finalization has already begun, call_with_gil detects it.
__attribute__((noinline, cold)) inline void start_watching() noexcept {
#ifndef Py_LIMITED_API
    if (!has_gil()) return;
#endif
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) return;
    if (the_end.watched.exchange(true) || !Py_IsInitialized()) return;
    static PyMethodDef hook = {"python_ends", python_ends, METH_NOARGS, nullptr};
    held_exception pending;
    PyObject *function = PyCFunction_New(&hook, nullptr);
    PyObject *module = function == nullptr ? nullptr : PyImport_ImportModule("atexit");
    PyObject *done = module == nullptr ? nullptr : PyObject_CallMethod(module, "register", "O", function);
    if (done == nullptr) PyErr_WriteUnraisable(function);
    Py_XDECREF(done);
    Py_XDECREF(module);
    Py_XDECREF(function);
    pending.restore();
}

// Call this function with the GIL held, before taking a reference that may be dropped without the GIL.
inline void watch() noexcept {
    if (!the_end.watched.load(std::memory_order_relaxed)) start_watching();
}

} // namespace detail

// ------------------------------------------------------------------------------------------------------------- errors

// A Python exception as a C++ exception. A function that C code calls must catch it, call restore(), and return NULL.
class python_error : public std::exception {
    struct state : detail::held_exception {
        std::string words;
    };
    std::shared_ptr<state> state_ = std::make_shared<state>();

  public:
    // Fetch and clear the current Python exception.
    python_error() {
        state &s = *state_;
        detail::watch();
        PyErr_NormalizeException(&s.type, &s.value, &s.traceback);
        if (PyObject *text = s.value == nullptr ? nullptr : PyObject_Str(s.value)) {
            if (const char *words = PyUnicode_AsUTF8AndSize(text, nullptr)) s.words = words;
            Py_DECREF(text);
        }
        PyErr_Clear();
    }
    // Set the Python exception again. Call this function once: further calls set a SystemError.
    void restore() noexcept {
        state_->restore();
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "arrayhub::python_error: restored twice");
    }
    const char *what() const noexcept override { return state_->words.c_str(); }
};

namespace detail {
// Return f(), called with the GIL held. Exceptions propagate. Throws std::runtime_error if Python's shutdown has begun.
template <class F> auto with_gil(F &&f) -> decltype(f()) {
    if (has_gil()) return f();
    decltype(f()) result{};
    std::exception_ptr thrown;
    const bool called = call_with_gil([&] {
        try {
            watch();
            result = f();
        } catch (...) {
            thrown = std::current_exception();
        }
    });
    if (!called) throw std::runtime_error("arrayhub: this thread does not hold the GIL, and the interpreter shuts down");
    if (thrown) std::rethrow_exception(thrown);
    return result;
}

// Return the result of a C function, which `f` calls. Throws python_error if it is NULL.
template <class F> PyObject *checked(F &&f) {
    return with_gil([&] {
        PyObject *p = f();
        if (p == nullptr) throw python_error();
        return p;
    });
}

// Set the Python exception of a python_error. Other exceptions propagate, to other translators of pybind11 or nanobind.
inline void translate(const std::exception_ptr &thrown) {
    try {
        if (thrown) std::rethrow_exception(thrown);
    } catch (python_error &error) {
        error.restore();
    }
}

// pybind11 and nanobind try all overloads twice: first without conversions, then with conversions. A function without
// overloads is tried once, with conversions. If a view refuses its argument with an exception, later overloads are not tried.
// If it refuses the argument without an exception, the error message is lost. So a refusal raises an exception only if the
// function does not have overloads. nanobind.hpp detects overloads by a list that nanobind keeps for the duration of one call.
// pybind11.hpp detects them by the address of the argument.

// Return whether the current exception concerns the process rather than an argument. Such exceptions are raised at once.
inline bool concerns_all_overloads() noexcept {
    return !PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError) ||
           PyErr_ExceptionMatches(PyExc_RecursionError) || PyErr_ExceptionMatches(PyExc_ImportError);
}
} // namespace detail

// ------------------------------------------------------------------------------------------------------------ objects

// An owned reference to a Python object. May be copied and destroyed without the GIL.
class object {
    PyObject *p_ = nullptr;

  public:
    object() = default;
    static object steal(PyObject *p) noexcept {
        detail::watch();
        object o;
        o.p_ = p;
        return o;
    }
    static object borrow(PyObject *p) noexcept {
        detail::take_reference(p);
        return steal(p);
    }
    // Python's name of the type, for signatures of functions in pybind11 and nanobind.
    static constexpr char hint[] = "object";
    // Import an argument of such a function. Return a new reference, or NULL with an exception set.
    static PyObject *try_request(PyObject *obj, bool) noexcept { return borrow(obj).release(); }

    object(const object &other) noexcept : p_(other.p_) { detail::take_reference(p_); }
    object(object &&other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
    object &operator=(object other) noexcept {
        std::swap(p_, other.p_);
        return *this;
    }
    ~object() { detail::drop_reference(p_); }
    PyObject *ptr() const noexcept { return p_; }
    PyObject *release() noexcept { return std::exchange(p_, nullptr); } // gives the reference to the caller
    explicit operator bool() const noexcept { return p_ != nullptr; }
};

// A USMArray of any element type and shape.
class array : public object {
  public:
    array() = default;
    explicit array(object held) noexcept : object(std::move(held)) {}
    // Import any array, like arrayhub.asarray.
    explicit array(PyObject *obj) : object(steal(detail::checked([&] { return PyUSMArray_FromObject(obj); }))) {}
    static constexpr char hint[] = "arrayhub.USMArray";
    static PyObject *try_request(PyObject *obj, bool) noexcept { return PyUSMArray_FromObject(obj); }

    const PyUSMArrayFields &fields() const noexcept { return *PyUSMArray_Fields(ptr()); }
    int ndim() const noexcept { return fields().nd; }
    index_t extent(int k) const noexcept { return fields().shape[k]; }
    // Convert to the named library: "numpy", "torch", "jax", "cupy", "dpnp" or another name of PyUSMArray_Convert.
    object as(const char *library) const { return steal(detail::checked([&] { return PyUSMArray_Convert(full_ptr(), library); })); }
    // Convert to the library of `model`.
    object like(PyObject *model, bool may_copy = false) const {
        return steal(detail::checked([&] { return PyUSMArray_Like(full_ptr(), model, may_copy); }));
    }
    object like(const object &model, bool may_copy = false) const { return like(model.ptr(), may_copy); }
    // Return the Python object. Throws std::invalid_argument if the array is empty, as array() and view() are.
    PyObject *full_ptr() const {
        if (ptr() == nullptr)
            throw std::invalid_argument(
                "arrayhub: this array is empty; accepted: an array that holds an object. Test it with `if (a)`");
        return ptr();
    }
};

// ------------------------------------------------------------------------------------------------------- element types

// DLPack data type (code, bits, lanes) of the C++ type T. Specialize this template for other types, such as sycl::half.
template <class T, class = void> struct element;
template <class T> struct element<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
    static constexpr PyUSMArrayDataType type{std::is_signed_v<T> ? 0 : 1, 8 * sizeof(T), 1};
};
template <> struct element<bool> { static constexpr PyUSMArrayDataType type{6, 8, 1}; };
template <> struct element<std::byte> { static constexpr PyUSMArrayDataType type{1, 8, 1}; };
template <> struct element<float> { static constexpr PyUSMArrayDataType type{2, 32, 1}; };
template <> struct element<double> { static constexpr PyUSMArrayDataType type{2, 64, 1}; };
template <> struct element<std::complex<float>> { static constexpr PyUSMArrayDataType type{5, 64, 1}; };
template <> struct element<std::complex<double>> { static constexpr PyUSMArrayDataType type{5, 128, 1}; };

// List of the element types that a view accepts. view::visit calls a function with a view of the actual type.
template <class... T> struct one_of {};

inline constexpr int any_rank = -1;

// ------------------------------------------------------------------------------------------------------------- options

struct c_contig {};     // contiguous in C order
struct f_contig {};     // contiguous in Fortran order
struct on_host {};      // readable by the host: the default
struct on_usm {};       // SYCL memory
struct on_cuda {};      // memory that CUDA kernels can access
struct anywhere {};
struct may_cast {};     // copy to an accepted element type of the same or a higher kind (see USM_ARRAY_MAY_CAST)
struct may_relayout {}; // copy for layout, alignment or byte order
struct may_transfer {}; // copy between host and device
struct arrays_only {};  // reject numbers and lists, which const views accept by default
template <const char *Name> struct named {}; // prefix of error messages: a `static constexpr char` array at namespace scope
struct as_is {};        // elements may be unaligned or byte-swapped: access them only through data() and byte_stride()

namespace detail {

inline bool is_same_type(const PyUSMArrayDataType &a, const PyUSMArrayDataType &b) noexcept {
    return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

template <class T> struct types_of : types_of<one_of<T>> {};
template <class... T> struct types_of<one_of<T...>> {
    static constexpr bool writes = (... || !std::is_const_v<T>);
    static constexpr int count = sizeof...(T);
    static constexpr PyUSMArrayDataType list[sizeof...(T)] = {element<std::remove_const_t<T>>::type...};
};
template <class Wanted, class... Options> inline constexpr bool has = (... || std::is_same_v<Wanted, Options>);

template <class... Options> inline constexpr const char *name_of = nullptr;
template <class First, class... Rest> inline constexpr const char *name_of<First, Rest...> = name_of<Rest...>;
template <const char *Name, class... Rest> inline constexpr const char *name_of<named<Name>, Rest...> = Name;

template <class T, int N, class... Options> struct conditions {
    static constexpr bool writes = types_of<T>::writes;
    static constexpr int places = (has<on_host, Options...> ? USM_ARRAY_ON_HOST : 0) |
                                  (has<on_usm, Options...> ? USM_ARRAY_ON_USM : 0) |
                                  (has<on_cuda, Options...> ? USM_ARRAY_ON_CUDA : 0) |
                                  (has<anywhere, Options...> ? USM_ARRAY_ANYWHERE : 0);
    static constexpr int flags = (writes ? USM_ARRAY_WRITEABLE : 0) | (has<c_contig, Options...> ? USM_ARRAY_C_CONTIGUOUS : 0) |
                                 (has<f_contig, Options...> ? USM_ARRAY_F_CONTIGUOUS : 0) |
                                 (has<as_is, Options...> ? 0 : USM_ARRAY_WHOLE_STRIDES);
    static constexpr int may = writes ? 0
                                      : (has<may_cast, Options...> ? USM_ARRAY_MAY_CAST : 0) |
                                            (has<may_relayout, Options...> ? USM_ARRAY_MAY_RELAYOUT : 0) |
                                            (has<may_transfer, Options...> ? USM_ARRAY_MAY_TRANSFER : 0) |
                                            (has<arrays_only, Options...> ? 0 : USM_ARRAY_MAY_BUILD);
    static_assert(!writes || !(has<may_cast, Options...> || has<may_relayout, Options...> || has<may_transfer, Options...>),
                  "writes to a copy would be lost: a writable view cannot allow copies (a view of const elements can)");
    static constexpr index_t no_shape[1] = {};
    static constexpr PyUSMArrayRequest make(const char *name, bool converts) {
        return PyUSMArrayRequest{sizeof(PyUSMArrayRequest), name, types_of<T>::list, types_of<T>::count, N > 0 ? N : 0,
                                 N > 0 ? N : 0, N == 0 ? no_shape : nullptr, flags, has<as_is, Options...>, places,
                                 converts ? may : 0, nullptr};
    }
    static constexpr PyUSMArrayRequest plain = make(name_of<Options...>, false);
    static constexpr PyUSMArrayRequest converting = make(name_of<Options...>, true);
};

// Iterator over one dimension.
template <class T> class strided_iterator {
    T *at_ = nullptr;
    index_t step_ = 1, k_ = 0;

  public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = std::remove_cv_t<T>;
    using difference_type = index_t;
    using pointer = T *;
    using reference = T &;
    strided_iterator() = default;
    // The iterator advances an index, because with a stride of zero, a pointer would not advance.
    strided_iterator(T *first, index_t step, index_t k) : at_(first), step_(step), k_(k) {}
    reference operator*() const { return at_[k_ * step_]; }
    pointer operator->() const { return at_ + k_ * step_; }
    reference operator[](index_t n) const { return at_[(k_ + n) * step_]; }
    strided_iterator &operator++() { return ++k_, *this; }
    strided_iterator &operator--() { return --k_, *this; }
    strided_iterator operator++(int) { return {at_, step_, k_++}; }
    strided_iterator operator--(int) { return {at_, step_, k_--}; }
    strided_iterator &operator+=(index_t n) { return k_ += n, *this; }
    strided_iterator &operator-=(index_t n) { return k_ -= n, *this; }
    friend strided_iterator operator+(strided_iterator i, index_t n) { return i += n; }
    friend strided_iterator operator+(index_t n, strided_iterator i) { return i += n; }
    friend strided_iterator operator-(strided_iterator i, index_t n) { return i -= n; }
    friend index_t operator-(const strided_iterator &a, const strided_iterator &b) { return a.k_ - b.k_; }
    friend bool operator==(const strided_iterator &a, const strided_iterator &b) { return a.k_ == b.k_; }
    friend bool operator!=(const strided_iterator &a, const strided_iterator &b) { return a.k_ != b.k_; }
    friend bool operator<(const strided_iterator &a, const strided_iterator &b) { return a.k_ < b.k_; }
    friend bool operator>(const strided_iterator &a, const strided_iterator &b) { return a.k_ > b.k_; }
    friend bool operator<=(const strided_iterator &a, const strided_iterator &b) { return a.k_ <= b.k_; }
    friend bool operator>=(const strided_iterator &a, const strided_iterator &b) { return a.k_ >= b.k_; }
};

} // namespace detail

// ---------------------------------------------------------------------------------------------------------- references

// Pointer, lengths, and strides in elements. A ref does not own the memory, so it is trivially copyable, for kernels and
// threads. The view must outlive the ref.
template <class T, int N> struct ref {
    T *data;
    index_t extents[static_cast<std::size_t>(N > 0 ? N : 1)];
    index_t strides[static_cast<std::size_t>(N > 0 ? N : 1)];

    index_t extent(int k) const { return extents[k]; }
    index_t stride(int k) const { return strides[k]; }
    template <class... I> T &operator()(I... i) const {
        static_assert(sizeof...(I) == N, "the number of indices must equal the number of dimensions");
        index_t offset = 0;
        [[maybe_unused]] int k = 0;
        ((offset += static_cast<index_t>(i) * strides[k++]), ...);
        return data[offset];
    }
};

// --------------------------------------------------------------------------------------------------------------- views

namespace detail {

// What views of one element type and of several have in common: the import, and the description of the array.
template <class T, int N, class... Options> class view_base : public array {
  protected:
    using rules = conditions<T, N, Options...>;
    static constexpr bool indexed = !has<as_is, Options...>;

    const PyUSMArrayFields *fields_ = nullptr;

  public:
    view_base() = default;
    // Make a view of the result of try_request, which meets the conditions.
    explicit view_base(object &&held) noexcept : array(std::move(held)), fields_(&fields()) {}
    // Import any array that meets the conditions. Throws python_error otherwise; the error message begins with `name`.
    explicit view_base(PyObject *obj, const char *name = name_of<Options...>, bool converts = true)
        : view_base(steal(checked([&, request = rules::make(name, converts)] { return PyUSMArray_Request(obj, &request); }))) {}
    static constexpr char hint[] = "numpy.typing.ArrayLike";
    static PyObject *try_request(PyObject *obj, bool converts) noexcept {
        return PyUSMArray_Request(obj, converts ? &rules::converting : &rules::plain);
    }
    const array &held() const noexcept { return *this; }

    int ndim() const noexcept {
        if constexpr (N >= 0) return N;
        return fields_->nd;
    }
    index_t extent(int k) const noexcept { return fields_->shape[k]; }
    index_t stride(int k) const noexcept {
        static_assert(indexed, "as_is: elements may be unaligned or byte-swapped; use data() and byte_stride, with memcpy");
        return fields_->strides[k];
    }
    index_t byte_stride(int k) const noexcept { return fields_->byte_strides[k]; }
    index_t size() const noexcept {
        index_t n = 1;
        for (int k = 0; k < ndim(); ++k) n *= extent(k);
        return n;
    }
};

} // namespace detail

// An array with N dimensions whose elements have type T. Indices are not checked.
template <class T, int N = any_rank, class... Options> class view : public detail::view_base<T, N, Options...> {
    using base = detail::view_base<T, N, Options...>;
    using base::fields_, base::indexed;
    static constexpr bool inner_is_one = detail::has<c_contig, Options...>;

    ref<T, N> ref_ = make_ref();

    // Return the pointer of the array and, if N is known, its lengths and strides.
    ref<T, N> make_ref() const noexcept {
        ref<T, N> made{};
        if (fields_ == nullptr) return made;
        made.data = reinterpret_cast<T *>(fields_->data);
        if constexpr (N > 0 && indexed)
            for (int k = 0; k < N; ++k) {
                made.extents[k] = fields_->shape[k];
                made.strides[k] = fields_->strides[k];
            }
        return made;
    }

  public:
    using element_type = T;
    using value_type = std::remove_const_t<T>;
    static constexpr int rank = N;

    using base::base;
    using base::ndim, base::size;
    T *data() const noexcept { return ref_.data; }
    index_t extent(int k) const noexcept {
        if constexpr (N > 0 && indexed) return ref_.extents[k];
        return base::extent(k);
    }
    index_t stride(int k) const noexcept {
        if constexpr (N > 0 && indexed) return ref_.strides[k];
        return base::stride(k);
    }

    template <class... I> auto &operator()(I... i) const noexcept {
        static_assert(N == any_rank || sizeof...(I) == N, "the number of indices must equal the number of dimensions");
        constexpr int unit = inner_is_one ? static_cast<int>(sizeof...(I)) - 1 : -1; // the dimension whose stride is 1
        index_t offset = 0;
        [[maybe_unused]] int k = 0;
        ((offset += static_cast<index_t>(i) * (k == unit ? 1 : stride(k)), ++k), ...);
        return ref_.data[offset];
    }

    auto begin() const noexcept { return iterator_at(0); }
    auto end() const noexcept { return iterator_at(size()); }

    // Return a ref for kernels and threads. This view must outlive the ref.
    ref<T, N> reference() const noexcept {
        static_assert(indexed, "as_is: elements may be unaligned or byte-swapped; read them with memcpy from data()");
        static_assert(N >= 0, "reference() requires a view with a fixed number of dimensions");
        return ref_;
    }

#ifdef __cpp_lib_span
    // Return a span of all elements. Throws std::invalid_argument if they are not contiguous.
    std::span<T> span() const {
        static_assert(indexed, "as_is: elements may be unaligned or byte-swapped; read them with memcpy from data()");
        if constexpr (!contiguous)
            if (!(fields_->flags & (USM_ARRAY_C_CONTIGUOUS | USM_ARRAY_F_CONTIGUOUS)))
                throw std::invalid_argument("arrayhub::view::span: the elements are not contiguous; accepted: a contiguous "
                                            "array, such as x.copy()");
        return {ref_.data, static_cast<std::size_t>(size())};
    }
#endif

    // Convert to the type M: std::mdspan, Kokkos::mdspan or cuda::std::mdspan. Throws std::invalid_argument if the layout of M
    // cannot represent the strides or a static extent of M differs, and std::overflow_error if the index type of M is too
    // narrow.
    template <class M> M mdspan() const {
        static_assert(indexed, "as_is: elements may be unaligned or byte-swapped; read them with memcpy from data()");
        static_assert(N >= 0, "mdspan requires a view with a fixed number of dimensions");
        static_assert(M::extents_type::rank() == static_cast<std::size_t>(N), "mdspan: the rank differs from that of the view");
        return mdspan_of<M>(std::make_integer_sequence<int, N>());
    }

  private:
    static constexpr bool contiguous = detail::has<c_contig, Options...> || detail::has<f_contig, Options...>;

    auto iterator_at(index_t k) const noexcept {
        static_assert(indexed, "as_is: elements may be unaligned or byte-swapped; read them with memcpy from data()");
        static_assert(N == 1 || contiguous, "begin and end require one dimension, c_contig or f_contig");
        if constexpr (contiguous)
            return ref_.data + k;
        else
            return detail::strided_iterator<T>(ref_.data, stride(0), k);
    }

    template <class M, int... K> M mdspan_of(std::integer_sequence<int, K...>) const {
        using Extents = typename M::extents_type;
        using Mapping = typename M::mapping_type;
        using Size = typename M::index_type;
        const bool empty = size() == 0; // without elements, any strides are valid
        Size length, count = 1, reach, last = 0;
        bool overflows = false; // whether a length, the number of elements or an offset exceeds the index type
        for (int k = 0; k < N; ++k) {
            if (const std::size_t fixed = Extents::static_extent(static_cast<std::size_t>(k));
                fixed != static_cast<std::size_t>(-1) && fixed != static_cast<std::size_t>(extent(k)))
                throw std::invalid_argument("arrayhub::view::mdspan: a length differs from the static extent of the type");
            const index_t step = extent(k) > 1 && stride(k) > 0 ? stride(k) : 0;
            overflows |= __builtin_add_overflow(extent(k), 0, &length);
            if (empty) continue;
            overflows |= __builtin_mul_overflow(count, extent(k), &count);
            overflows |= __builtin_mul_overflow(extent(k) - 1, step, &reach) || __builtin_add_overflow(last, reach, &last);
        }
        if (overflows)
            throw std::overflow_error("arrayhub::view::mdspan: its index type is too narrow for these lengths and strides; "
                                      "accepted: a wider type, such as std::ptrdiff_t");
        const Extents extents(static_cast<Size>(extent(K))...);
        if constexpr (std::is_constructible_v<Mapping, Extents> && Mapping::is_always_exhaustive()) {
            const Mapping mapping(extents);
            for (int k = 0; k < N && !empty; ++k)
                if (extent(k) > 1 && static_cast<index_t>(mapping.stride(static_cast<std::size_t>(k))) != stride(k))
                    throw std::invalid_argument("arrayhub::view::mdspan: its layout cannot represent these strides; accepted: "
                                                "layout_stride, or an array in the order of the layout");
            return M(ref_.data, mapping);
        } else {
            // an array type of the mdspan's library
            std::decay_t<decltype(std::declval<const Mapping &>().strides())> strides{};
            for (int k = 0; k < N; ++k) {
                const bool steps = extent(k) > 1 && !empty;
                if (steps && stride(k) <= 0)
                    throw std::invalid_argument("arrayhub::view::mdspan: a stride is negative or zero, which mdspan does not "
                                                "support; accepted: x.copy()");
                strides[static_cast<std::size_t>(k)] = static_cast<Size>(steps ? stride(k) : 1);
            }
            return M(ref_.data, Mapping(extents, strides));
        }
    }
};

// A view of one of several element types: visit(f) calls f with a view of the actual type.
template <class... T, int N, class... Options>
class view<one_of<T...>, N, Options...> : public detail::view_base<one_of<T...>, N, Options...> {
    using base = detail::view_base<one_of<T...>, N, Options...>;
    using rules = detail::conditions<one_of<T...>, N, Options...>;

    // Return the element type. A byte-swapped type does not have a DLPack data type, so its type number is used.
    PyUSMArrayDataType type() const noexcept {
        PyUSMArrayElement is{};
        is.dtype.code = USM_ARRAY_NO_DLPACK;
        if (this->fields_ == nullptr) return is.dtype;
        is.dtype = this->fields_->dl_dtype;
        if (is.dtype.code == USM_ARRAY_NO_DLPACK)
            detail::call_with_gil([&] {
                if (PyUSMArray_TypeOfNumber(this->fields_->typenum, &is) < 0) PyErr_Clear();
            });
        return is.dtype;
    }

    template <class F, class First, class... Rest> decltype(auto) visit_as(F &&f, PyUSMArrayDataType type) const {
        const bool is_first = detail::is_same_type(element<std::remove_const_t<First>>::type, type);
        if constexpr (sizeof...(Rest) > 0)
            if (!is_first) return visit_as<F, Rest...>(std::forward<F>(f), type);
        if (!is_first)
            throw std::invalid_argument("arrayhub::view::visit: the element type is not in the list of the view");
        return std::forward<F>(f)(view<First, N, Options...>(object(*this)));
    }

  public:
    using base::base;
    // Address of element zero.
    std::conditional_t<rules::writes, void *, const void *> data() const noexcept { return this->fields_->data; }
    // Call f with a view of the actual element type. f must return the same type for all element types. Throws
    // std::invalid_argument if this view is empty.
    template <class F> decltype(auto) visit(F &&f) const { return visit_as<F, T...>(std::forward<F>(f), type()); }
};

// ------------------------------------------------------------------------------------------------------------- export

namespace detail {

// Call f, and report its exceptions through sys.unraisablehook, because they cannot propagate.
template <class F> void report_thrown(F &&f) noexcept {
    try {
        f();
    } catch (python_error &error) {
        error.restore();
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (...) {
        PyErr_SetString(PyExc_RuntimeError, "arrayhub: the release of an array threw an object that is not a std::exception");
    }
    if (!PyErr_Occurred()) return;
    held_exception thrown;
    PyObject *place = PyUnicode_FromString("arrayhub: the owner of an array");
    thrown.restore();
    PyErr_WriteUnraisable(place);
    Py_XDECREF(place);
}

// Return the Python object of an owner: a PyObject *, or an object type of arrayhub, pybind11 or nanobind. Python objects are
// kept alive and never called, even if they are callable.
inline PyObject *python_owner(PyObject *owner) { return owner; }
template <class Owner> auto python_owner(const Owner &owner) -> decltype(static_cast<PyObject *>(owner.ptr())) {
    return owner.ptr();
}
template <class Owner, class = void> inline constexpr bool is_python = false;
template <class Owner>
inline constexpr bool is_python<Owner, std::void_t<decltype(python_owner(std::declval<const Owner &>()))>> = true;

// An owner of memory, stored on the heap. When the last array is freed, the owner is called if it is callable, and destroyed.
template <class Owner> struct keeper {
    Owner owner;
    static void release(void *context) noexcept {
        keeper *self = static_cast<keeper *>(context);
        if constexpr (!is_python<Owner>)
            if constexpr (std::is_invocable_v<Owner &>) report_thrown([&] { self->owner(); });
        report_thrown([&] { delete self; });
    }
};

// Make an array of memory, with `owner` as its owner. Owners that are not Python objects are moved to the heap, and released
// even if no array is created. Owners are called and released with the GIL held.
template <class T, class Owner>
array make(T *data, const index_t *shape, std::size_t nd, Owner &&owner, const std::vector<index_t> *byte_strides = nullptr,
           const void *queue = nullptr) {
    using given = std::decay_t<Owner>;
    return with_gil([&] {
        std::unique_ptr<keeper<given>, void (*)(void *)> kept(nullptr, keeper<given>::release);
        PyUSMArraySpec spec{};
        spec.struct_size = sizeof(spec);
        bool is_null = false;
        if constexpr (is_python<given>) {
            spec.owner = python_owner(owner); // the array takes its own reference
            is_null = spec.owner == nullptr;
        } else {
            static_assert(std::is_invocable_v<given &> || !std::is_trivially_destructible_v<given>,
                          "hand_out: this owner can neither be called without arguments nor release memory when destroyed");
            if constexpr (std::is_pointer_v<given>) is_null = owner == nullptr;
            if (!is_null) kept.reset(new keeper<given>{std::forward<Owner>(owner)});
            spec.release = keeper<given>::release;
            spec.context = kept.get();
        }
        if (is_null) throw std::invalid_argument("arrayhub::hand_out: the owner is a null pointer");
        if (byte_strides != nullptr && byte_strides->size() != nd)
            throw std::invalid_argument("arrayhub::hand_out: the number of byte strides differs from the number of lengths");
        if (nd > 64) throw std::invalid_argument("arrayhub::hand_out: at most 64 dimensions");
        spec.nd = static_cast<int>(nd);
        spec.shape = shape;
        spec.byte_strides = byte_strides == nullptr ? nullptr : byte_strides->data();
        spec.data = const_cast<std::remove_const_t<T> *>(data);
        spec.dtype = element<std::remove_const_t<T>>::type;
        spec.access = std::is_const_v<T> ? USM_ARRAY_READONLY : USM_ARRAY_WRITEABLE;
        if (queue != nullptr) spec.device.device_type = 14; // kDLOneAPI
        spec.queue_ref = const_cast<void *>(queue);
        array made(object::steal(checked([&] { return PyUSMArray_New(&spec); })));
        (void)kept.release(); // the array releases it
        return made;
    });
}

// Replace the length -1 of a 1-d shape by the number of elements. Throw std::invalid_argument if there are too few elements.
inline void fit_shape(std::size_t have, std::vector<index_t> &shape) {
    if (shape.size() == 1 && shape[0] == -1) shape[0] = static_cast<index_t>(have);
    index_t wanted = 1;
    for (index_t n : shape)
        if (n < 0 || __builtin_mul_overflow(wanted, n, &wanted))
            throw std::invalid_argument("arrayhub::hand_out: a length is negative, or too large");
    if (static_cast<std::size_t>(wanted) > have)
        throw std::invalid_argument("arrayhub::hand_out: the shape has more elements than the memory");
}

} // namespace detail

// Export the memory at `data` as an array. `owner` is kept alive as long as the array exists. If `owner` is callable without
// arguments (for example, a lambda that frees the memory), it is called once at the end, with the GIL held, even if the array
// cannot be created. Exceptions of this call or of the owner's destructor are reported to sys.unraisablehook. A Python object
// (PyObject *, pybind11::object, nanobind::object, arrayhub::object) is kept alive and never called. Elements of a const type
// are exported read-only.
template <class T, class Owner> array hand_out(T *data, const std::vector<index_t> &shape, Owner &&owner) {
    return detail::make(data, shape.data(), shape.size(), std::forward<Owner>(owner));
}
template <class T, class Owner>
array hand_out(T *data, const std::vector<index_t> &shape, const std::vector<index_t> &byte_strides, Owner &&owner) {
    return detail::make(data, shape.data(), shape.size(), std::forward<Owner>(owner), &byte_strides);
}

// Export the memory of a vector without a copy. For jax to import it without a copy, use an aligned_vector.
template <class T, class A> array hand_out(std::vector<T, A> &&values, std::vector<index_t> shape) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> stores bits; use a vector of char or uint8_t");
    detail::fit_shape(values.size(), shape);
    return detail::make(values.data(), shape.data(), shape.size(), std::move(values)); // a move keeps the elements' address
}
// Export all elements in one dimension, without allocating a shape.
template <class T, class A> array hand_out(std::vector<T, A> &&values) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> stores bits; use a vector of char or uint8_t");
    const index_t length = static_cast<index_t>(values.size());
    return detail::make(values.data(), &length, 1, std::move(values));
}

// Export the memory of a vector that C++ code continues to use. A const vector is exported read-only.
template <class V, class = typename V::allocator_type>
array hand_out(const std::shared_ptr<V> &values, std::vector<index_t> shape = {-1}) {
    if (!values) throw std::invalid_argument("arrayhub::hand_out: the pointer is null");
    detail::fit_shape(values->size(), shape);
    return detail::make(values->data(), shape.data(), shape.size(), values);
}

// Export memory from malloc. The memory is released by free(), even if the array cannot be created.
template <class T> array hand_out_malloc(T *data, const std::vector<index_t> &shape) {
    return hand_out(data, shape, [data] { std::free(const_cast<std::remove_const_t<T> *>(data)); });
}

// Export SYCL USM with the queue that fills it (a sycl::queue, which is copied). `owner` has the same meaning as in hand_out.
template <class T, class Queue, class Owner>
array hand_out_usm(T *data, const std::vector<index_t> &shape, const Queue &queue, Owner &&owner) {
    return detail::make(data, shape.data(), shape.size(), std::forward<Owner>(owner), nullptr, &queue);
}

// Return the queue of an array in SYCL memory: `auto &q = arrayhub::queue_of<sycl::queue>(a);`. The reference is valid while
// `a` lives.
template <class Queue> Queue &queue_of(const array &a) {
    return *detail::with_gil([&] {
        void *queue = nullptr;
        if (PyUSMArray_QueueRef(a.full_ptr(), &queue) < 0) throw python_error();
        return static_cast<Queue *>(queue);
    });
}

// Allocator of memory that is aligned to 64 bytes, which all libraries import without a copy.
template <class T> struct aligned_allocator {
    using value_type = T;
    static constexpr std::align_val_t boundary{64};
    aligned_allocator() = default;
    template <class U> aligned_allocator(const aligned_allocator<U> &) noexcept {}
    T *allocate(std::size_t n) {
        if (n > static_cast<std::size_t>(PTRDIFF_MAX) / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T *>(::operator new(n * sizeof(T), boundary));
    }
    void deallocate(T *p, std::size_t) noexcept { ::operator delete(p, boundary); }
    template <class U> bool operator==(const aligned_allocator<U> &) const noexcept { return true; }
    template <class U> bool operator!=(const aligned_allocator<U> &) const noexcept { return false; }
};
template <class T> using aligned_vector = std::vector<T, aligned_allocator<T>>;

// -------------------------------------------------------------------------------------------------------------- import

// Import arrayhub. This call is optional: otherwise, arrayhub is imported with the first array. In a module's init function,
// the call reports a missing or old arrayhub when the module is imported.
inline void init(PyObject * = nullptr) {
    if (import_arrayhub() < 0) throw python_error();
}

} // namespace arrayhub

#ifdef ARRAYHUB_STANDALONE
#include <arrayhub/standalone.hpp>
#endif

#endif
