// Any array in C++: typed views of what comes in, and arrays of memory that goes out. C++17, headers only.
//
//     #include <arrayhub.hpp>                     // with <arrayhub/pybind11.hpp> or <arrayhub/nanobind.hpp> for these
//
//     double sum(arrayhub::view<const double, 2> a) {         // reads; view<double, 2> writes
//         double total = 0;
//         for (Py_ssize_t i = 0; i < a.extent(0); ++i)
//             for (Py_ssize_t j = 0; j < a.extent(1); ++j) total += a(i, j);
//         return total;
//     }
//
//     arrayhub::array ones(Py_ssize_t n) { return arrayhub::hand_out(std::vector<double>(n, 1.0)); }
//
// What Python hands in is held for as long as a view lives. Views may be copied and destroyed without the GIL; making one
// and all functions that return an `object` need it. sycl.hpp is never included: queues are passed by address.
#ifndef ARRAYHUB_HPP
#define ARRAYHUB_HPP

#include <arrayhub.h>

#if ARRAYHUB_TARGET_VERSION < 2
#error "arrayhub.hpp needs ARRAYHUB_TARGET_VERSION 2 or more"
#endif

#include <array>
#include <atomic>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <time.h>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_span
#include <span>
#endif

// Two libraries in one process may be compiled with different versions of this header: nothing of it is shared.
namespace arrayhub __attribute__((visibility("hidden"))) {

using index_t = Py_ssize_t;

// ---------------------------------------------------------------------------------------------------------------- GIL

namespace detail {

// When Python ends. A thread that waits for the GIL then is ended by CPython 3.13 and older, and the process with it, because
// destructors let no such thing pass. So the last hook that runs while threads may still have the GIL says that nobody is to
// ask for it any more, and waits for those who are about to; what is dropped afterwards is lost with the process.
struct python_end {
    std::atomic<bool> watched{false};
    std::atomic<bool> near{false};
    std::atomic<bool> untaken{false}; // something was copied without its reference
    std::atomic<int> inside{0};       // threads that ask for the GIL, or got it here
};
inline python_end the_end;

inline PyObject *python_ends(PyObject *, PyObject *) noexcept {
    the_end.near = true;
    if (the_end.inside != 0) {
        PyThreadState *state = PyEval_SaveThread();
        const timespec moment{0, 1000000};
        for (int k = 0; k < 1000 && the_end.inside != 0; ++k) nanosleep(&moment, nullptr); // somebody's destructor may hang
        PyEval_RestoreThread(state);
    }
    return Py_BuildValue("");
}

// Take the GIL for a moment, whether this thread has it or not; false where Python is about to end.
class with_gil {
    bool entered_ = false;
    PyGILState_STATE state_{};

  public:
    with_gil() noexcept {
        ++the_end.inside;
        if (the_end.near || !Py_IsInitialized()) return;
        state_ = PyGILState_Ensure();
        entered_ = true;
    }
    with_gil(const with_gil &) = delete;
    with_gil &operator=(const with_gil &) = delete;
    ~with_gil() {
        if (entered_) PyGILState_Release(state_);
        --the_end.inside;
    }
    explicit operator bool() const noexcept { return entered_; }
};

// Whether this thread has the GIL for sure, which takes less than to ask for it. PyGILState_Check says yes of every thread
// once there are subinterpreters.
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

inline bool is_finalizing() noexcept {
#if defined(Py_LIMITED_API)
    return false;
#elif PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing() != 0;
#else
    return _Py_IsFinalizing() != 0;
#endif
}

// The hook is the main interpreter's: the end of another one ends no thread.
__attribute__((noinline, cold)) inline void start_watching() noexcept {
#ifndef Py_LIMITED_API
    if (!has_gil()) return;
#endif
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) return;
    if (the_end.watched.exchange(true)) return;
    if (is_finalizing()) {
        the_end.near = true;
        return;
    }
    static PyMethodDef hook = {"python_ends", python_ends, METH_NOARGS, nullptr};
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *function = PyCFunction_New(&hook, nullptr);
    PyObject *module = function == nullptr ? nullptr : PyImport_ImportModule("atexit");
    PyObject *done = module == nullptr ? nullptr : PyObject_CallMethod(module, "register", "O", function);
    if (done == nullptr) PyErr_WriteUnraisable(function);
    Py_XDECREF(done);
    Py_XDECREF(module);
    Py_XDECREF(function);
    PyErr_Restore(type, value, traceback);
}

// Called with the GIL wherever something is taken from Python that may be dropped without it.
inline void watch() noexcept {
    if (!the_end.watched.load(std::memory_order_relaxed)) start_watching();
}

inline void take_reference(PyObject *p) noexcept {
    if (p == nullptr) return;
    if (has_gil()) {
        Py_INCREF(p);
    } else if (with_gil gil; gil) {
        Py_INCREF(p);
    } else {
        the_end.untaken = true;
    }
}

inline void drop_reference(PyObject *p) noexcept {
    if (p == nullptr || the_end.untaken.load(std::memory_order_relaxed)) return;
    if (has_gil()) {
        Py_DECREF(p);
    } else if (with_gil gil; gil) {
        Py_DECREF(p);
    }
}

} // namespace detail

// ------------------------------------------------------------------------------------------------------------- errors

// A Python exception on its way through C++. Who calls from C catches it, calls restore(), and returns NULL.
class python_error : public std::exception {
    struct state {
        PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
        std::string words;
        ~state() {
            detail::drop_reference(type);
            detail::drop_reference(value);
            detail::drop_reference(traceback);
        }
    };
    std::shared_ptr<state> state_ = std::make_shared<state>();

  public:
    // Takes the exception that is set.
    python_error() {
        state &s = *state_;
        detail::watch();
        PyErr_Fetch(&s.type, &s.value, &s.traceback);
        PyErr_NormalizeException(&s.type, &s.value, &s.traceback);
        if (PyObject *text = s.value == nullptr ? nullptr : PyObject_Str(s.value)) {
            if (PyObject *bytes = PyUnicode_AsUTF8String(text)) {
                if (const char *words = PyBytes_AsString(bytes)) s.words = words;
                Py_DECREF(bytes);
            }
            Py_DECREF(text);
        }
        PyErr_Clear();
    }
    // Set it again, for Python to see. Once: the second time there is nothing left.
    void restore() noexcept {
        state &s = *state_;
        PyErr_Restore(std::exchange(s.type, nullptr), std::exchange(s.value, nullptr), std::exchange(s.traceback, nullptr));
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "arrayhub::python_error: restored twice");
    }
    const char *what() const noexcept override { return state_->words.c_str(); }
};

namespace detail {
inline PyObject *checked(PyObject *p) {
    if (p == nullptr) throw python_error();
    return p;
}
} // namespace detail

// ------------------------------------------------------------------------------------------------------------ objects

// A Python object that is held. May be copied and destroyed without the GIL.
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
    object(const object &other) noexcept : p_(other.p_) { detail::take_reference(p_); }
    object(object &&other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
    object &operator=(object other) noexcept {
        std::swap(p_, other.p_);
        return *this;
    }
    ~object() { detail::drop_reference(p_); }
    PyObject *ptr() const noexcept { return p_; }
    PyObject *release() noexcept { return std::exchange(p_, nullptr); } // the reference is the caller's then
    explicit operator bool() const noexcept { return p_ != nullptr; }
};

// A USMArray of any type and shape.
class array : public object {
  public:
    array() = default;
    explicit array(object held) noexcept : object(std::move(held)) {}
    // Any array, as Python's arrayhub.asarray.
    explicit array(PyObject *obj) : object(steal(detail::checked(PyUSMArray_FromObject(obj)))) {}

    const PyUSMArrayFields &fields() const noexcept { return *PyUSMArray_Fields(ptr()); }
    int ndim() const noexcept { return fields().nd; }
    index_t extent(int k) const noexcept { return fields().shape[k]; }
    // In the library that is named: "numpy", "torch", "jax", "cupy", "dpnp", "numba".
    object as(const char *library) const { return steal(detail::checked(PyUSMArray_Convert(held(), library))); }
    // In the library that `model` came from.
    object like(PyObject *model, bool may_copy = false) const {
        return steal(detail::checked(PyUSMArray_Like(held(), model, may_copy)));
    }
    object like(const object &model, bool may_copy = false) const { return like(model.ptr(), may_copy); }
    // The object, or std::invalid_argument where nothing is held, as after array() and view().
    PyObject *held() const {
        if (ptr() == nullptr)
            throw std::invalid_argument(
                "arrayhub: this array is empty; accepted: one that holds an object, which `if (a)` tells");
        return ptr();
    }
};

// ------------------------------------------------------------------------------------------------------- element types

// The element type of T: its DLPack numbers. Specialise it for types of your own, such as sycl::half.
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

// Several types of one view, the accepted of which `visit` finds out.
template <class... T> struct one_of {};

inline constexpr int any_rank = -1;

// ------------------------------------------------------------------------------------------------------------- options

struct c_contig {};     // in C order, without gaps
struct f_contig {};     // in Fortran order, without gaps
struct on_host {};      // the host can read it: the default
struct on_usm {};       // SYCL memory
struct on_cuda {};      // what CUDA kernels reach
struct anywhere {};
struct may_cast {};     // convert other element types of the same kind, in a copy
struct may_relayout {}; // copy for layout and alignment
struct may_transfer {}; // copy between host and device
struct arrays_only {};  // no numbers and lists, which readers take otherwise
template <const char *Name> struct named {}; // what messages begin with: a `static constexpr char` array of a namespace
struct as_is {};        // elements may be unaligned or swapped: data() and byte_stride() are all there is

namespace detail {

template <class T> struct types_of {
    static constexpr bool writes = !std::is_const_v<T>;
    static constexpr int count = 1;
    static constexpr PyUSMArrayDataType list[1] = {element<std::remove_const_t<T>>::type};
};
template <class... T> struct types_of<one_of<T...>> {
    static constexpr bool writes = (... || !std::is_const_v<T>);
    static constexpr int count = sizeof...(T);
    static constexpr PyUSMArrayDataType list[sizeof...(T)] = {element<std::remove_const_t<T>>::type...};
};
template <class Wanted, class... Options> inline constexpr bool has = (... || std::is_same_v<Wanted, Options>);

template <class Option> inline constexpr const char *name_in = nullptr;
template <const char *Name> inline constexpr const char *name_in<named<Name>> = Name;
template <class... Options> constexpr const char *name_of() {
    const char *name = nullptr;
    ((name = name_in<Options> == nullptr ? name : name_in<Options>), ...);
    return name;
}

template <class T, int N, class... Options> struct conditions {
    static constexpr bool writes = types_of<T>::writes;
    static constexpr int accepted = types_of<T>::count;
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
                  "what is written into a copy is lost: a view that writes can allow none (use const elements to read)");
    static constexpr index_t no_shape[1] = {};
    static constexpr PyUSMArrayRequest make(const char *name, bool converts) {
        return PyUSMArrayRequest{sizeof(PyUSMArrayRequest), name, types_of<T>::list, types_of<T>::count, N > 0 ? N : 0,
                                 N > 0 ? N : 0, N == 0 ? no_shape : nullptr, flags, has<as_is, Options...>, places,
                                 converts ? may : 0, nullptr};
    }
    static constexpr PyUSMArrayRequest plain = make(name_of<Options...>(), false);
    static constexpr PyUSMArrayRequest converting = make(name_of<Options...>(), true);
};

// Steps through one dimension.
template <class T> class strided_iterator {
    T *at_ = nullptr;
    index_t step_ = 1;

  public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = std::remove_cv_t<T>;
    using difference_type = index_t;
    using pointer = T *;
    using reference = T &;
    strided_iterator() = default;
    // Counted in elements from the first, because a step of zero gets nowhere in memory.
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

  private:
    index_t k_ = 0;
};

} // namespace detail

// ---------------------------------------------------------------------------------------------------------- references

// Pointer, lengths and steps in elements, without the owner: trivially copyable, for kernels and threads. Somebody has to
// hold the view meanwhile.
template <class T, int N> struct ref {
    T *data;
    index_t extents[static_cast<std::size_t>(N > 0 ? N : 1)];
    index_t strides[static_cast<std::size_t>(N > 0 ? N : 1)];

    index_t extent(int k) const { return extents[k]; }
    index_t stride(int k) const { return strides[k]; }
    template <class... I> T &operator()(I... i) const {
        static_assert(sizeof...(I) == N, "as many indices as dimensions");
        index_t offset = 0;
        int k = 0;
        (void)k;
        ((offset += static_cast<index_t>(i) * strides[k++]), ...);
        return data[offset];
    }
};

// --------------------------------------------------------------------------------------------------------------- views

// An array whose elements are of type T, with N dimensions. Indices are not checked.
template <class T, int N = any_rank, class... Options> class view {
    using rules = detail::conditions<T, N, Options...>;
    static constexpr bool indexed = !detail::has<as_is, Options...>;
    static constexpr bool inner_is_one = detail::has<c_contig, Options...>;

    array held_;
    ref<T, N> ref_{};               // for a known number of dimensions
    const PyUSMArrayFields *fields_ = nullptr;

    void look() noexcept {
        fields_ = &held_.fields();
        ref_.data = reinterpret_cast<T *>(fields_->data);
        if constexpr (N > 0 && indexed)
            for (int k = 0; k < N; ++k) {
                ref_.extents[k] = fields_->shape[k];
                ref_.strides[k] = fields_->strides[k];
            }
    }

  public:
    using element_type = T;
    using value_type = std::remove_const_t<T>;
    static constexpr int rank = N;

    view() = default;
    // Any array that meets the conditions; python_error otherwise, whose message begins with `name`.
    explicit view(PyObject *obj, const char *name = detail::name_of<Options...>(), bool converts = true) {
        const PyUSMArrayRequest request = rules::make(name, converts);
        held_ = array(object::steal(detail::checked(PyUSMArray_Request(obj, &request))));
        look();
    }
    // The same, as a reference that is the caller's or NULL with the exception set.
    static PyObject *try_request(PyObject *obj, bool converts) noexcept {
        return PyUSMArray_Request(obj, converts ? &rules::converting : &rules::plain);
    }
    // Of what try_request gave; takes the reference over.
    static view adopt(PyObject *array_) noexcept {
        view v;
        v.held_ = array(object::steal(array_));
        v.look();
        return v;
    }

    explicit operator bool() const noexcept { return static_cast<bool>(held_); }
    const array &held() const noexcept { return held_; }
    object as(const char *library) const { return held_.as(library); }
    object like(PyObject *model, bool may_copy = false) const { return held_.like(model, may_copy); }
    object like(const object &model, bool may_copy = false) const { return held_.like(model, may_copy); }

    T *data() const noexcept { return ref_.data; }
    int ndim() const noexcept {
        if constexpr (N >= 0) return N;
        return fields_->nd;
    }
    index_t extent(int k) const noexcept {
        if constexpr (N > 0 && indexed) return ref_.extents[k];
        return fields_->shape[k];
    }
    index_t stride(int k) const noexcept {
        static_assert(indexed, "as_is: elements may lie anywhere; use byte_stride");
        if constexpr (N > 0) return ref_.strides[k];
        return fields_->strides[k];
    }
    index_t byte_stride(int k) const noexcept { return fields_->byte_strides[k]; }
    index_t size() const noexcept {
        index_t n = 1;
        for (int k = 0; k < ndim(); ++k) n *= extent(k);
        return n;
    }

    template <class... I> auto &operator()(I... i) const noexcept {
        static_assert(indexed, "as_is: elements may be unaligned or swapped; copy them out of data() byte by byte");
        static_assert(N == any_rank || sizeof...(I) == N, "as many indices as dimensions");
        index_t offset = 0;
        int k = 0;
        (void)k;
        ((offset += static_cast<index_t>(i) *
                    (inner_is_one && k + 1 == static_cast<int>(sizeof...(I)) ? 1 : stride(k)),
          ++k),
         ...);
        return ref_.data[offset];
    }

    auto begin() const noexcept {
        static_assert(indexed, "as_is: elements may be unaligned or swapped; copy them out of data() byte by byte");
        static_assert(N == 1 || contiguous, "begin, end: of one dimension, or of c_contig or f_contig");
        if constexpr (contiguous)
            return ref_.data;
        else
            return detail::strided_iterator<T>(ref_.data, stride(0), 0);
    }
    auto end() const noexcept {
        static_assert(indexed, "as_is: elements may be unaligned or swapped; copy them out of data() byte by byte");
        static_assert(N == 1 || contiguous, "begin, end: of one dimension, or of c_contig or f_contig");
        if constexpr (contiguous)
            return ref_.data + size();
        else
            return detail::strided_iterator<T>(ref_.data, stride(0), extent(0));
    }

    // For kernels and threads, while this view is held.
    ref<T, N> reference() const noexcept {
        static_assert(indexed, "as_is: elements may be unaligned or swapped; copy them out of data() byte by byte");
        static_assert(N >= 0, "references have a known number of dimensions");
        return ref_;
    }

#ifdef __cpp_lib_span
    // All elements, which have to lie next to each other: ValueError where they do not.
    std::span<T> span() const {
        static_assert(indexed, "as_is: elements may be unaligned or swapped; copy them out of data() byte by byte");
        if constexpr (!contiguous)
            if (!(held_.fields().flags & (USM_ARRAY_C_CONTIGUOUS | USM_ARRAY_F_CONTIGUOUS)))
                throw std::invalid_argument("arrayhub::view::span: the elements do not lie next to each other; accepted: a "
                                            "contiguous array, such as x.copy()");
        return {ref_.data, static_cast<std::size_t>(size())};
    }
#endif

    // As an mdspan: std::mdspan, Kokkos' or CUDA's, of a layout that can say the strides: std::invalid_argument
    // where it cannot, std::overflow_error where its type of indices cannot.
    template <class M> M mdspan() const {
        static_assert(indexed, "as_is: elements may be unaligned or swapped; copy them out of data() byte by byte");
        static_assert(N >= 0, "an mdspan has a known number of dimensions");
        static_assert(M::extents_type::rank() == static_cast<std::size_t>(N), "mdspan: of another number of dimensions");
        using extents = typename M::extents_type;
        using mapping = typename M::mapping_type;
        using size = typename M::index_type;
        return mdspan_of<M, extents, mapping, size>(std::make_integer_sequence<int, N>());
    }

  private:
    static constexpr bool contiguous = detail::has<c_contig, Options...> || detail::has<f_contig, Options...>;

    template <class M, class Extents, class Mapping, class Size, int... K> M mdspan_of(std::integer_sequence<int, K...>) const {
        for (int k = 0; k < N; ++k)
            if (const std::size_t fixed = Extents::static_extent(static_cast<std::size_t>(k));
                fixed != static_cast<std::size_t>(-1) && fixed != static_cast<std::size_t>(extent(k)))
                throw std::invalid_argument("arrayhub::view::mdspan: a length differs from that of the type");
        refuse_indices<Size>();
        const bool empty = size() == 0; // nothing is addressed then: any strides will do
        const Extents extents(static_cast<Size>(extent(K))...);
        if constexpr (std::is_constructible_v<Mapping, Extents> && Mapping::is_always_exhaustive()) {
            const Mapping mapping(extents);
            for (int k = 0; k < N && !empty; ++k)
                if (extent(k) > 1 && static_cast<index_t>(mapping.stride(static_cast<std::size_t>(k))) != stride(k))
                    throw std::invalid_argument("arrayhub::view::mdspan: its layout cannot say these strides; accepted: a "
                                                "layout_stride, or an array in that order");
            return M(ref_.data, mapping);
        } else {
            strides_of<Mapping, Size> strides{};
            for (int k = 0; k < N; ++k) {
                const bool steps = extent(k) > 1 && !empty;
                if (steps && stride(k) <= 0)
                    throw std::invalid_argument("arrayhub::view::mdspan: it has no negative strides and none of zero; "
                                                "accepted: x.copy()");
                strides[static_cast<std::size_t>(k)] = static_cast<Size>(steps ? stride(k) : 1);
            }
            return M(ref_.data, Mapping(extents, strides));
        }
    }
    // the array of the mdspan's own library, where it says which
    template <class Mapping, class Size, class = void> struct strides_type {
        using type = std::array<Size, static_cast<std::size_t>(N)>;
    };
    template <class Mapping, class Size>
    struct strides_type<Mapping, Size, std::void_t<decltype(std::declval<const Mapping &>().strides())>> {
        using type = std::decay_t<decltype(std::declval<const Mapping &>().strides())>;
    };
    template <class Mapping, class Size> using strides_of = typename strides_type<Mapping, Size>::type;

    // Everything that an mdspan computes is of its own type of indices: lengths, the number of elements, and offsets.
    template <class Size> void refuse_indices() const {
        const unsigned long long most = static_cast<unsigned long long>(std::numeric_limits<Size>::max());
        unsigned long long count = 1, last = 0;
        bool empty = false, fits = true;
        for (int k = 0; k < N; ++k) {
            const unsigned long long length = static_cast<unsigned long long>(extent(k));
            empty = empty || length == 0;
            fits = fits && length <= most;
        }
        for (int k = 0; fits && !empty && k < N; ++k) {
            const unsigned long long length = static_cast<unsigned long long>(extent(k));
            const unsigned long long step = length > 1 && stride(k) > 0 ? static_cast<unsigned long long>(stride(k)) : 0;
            fits = count <= most / length && (step == 0 || length - 1 <= (most - last) / step);
            if (!fits) break;
            count *= length;
            last += (length - 1) * step;
        }
        if (!fits)
            throw std::overflow_error("arrayhub::view::mdspan: its type of indices is too narrow for these lengths and "
                                      "strides; accepted: a wider one, such as std::ptrdiff_t");
    }
};

// A view of one of several types: visit(f) calls f with a view of the one it is.
template <class... T, int N, class... Options> class view<one_of<T...>, N, Options...> {
    using rules = detail::conditions<one_of<T...>, N, Options...>;
    static constexpr bool indexed = !detail::has<as_is, Options...>;
    array held_;
    int which_ = -1;

    // What the elements are, swapped or not: in the other byte order DLPack has no number for them.
    void look() noexcept {
        PyUSMArrayElement is{};
        is.dtype = held_.fields().dl_dtype;
        if (is.dtype.code == USM_ARRAY_NO_DLPACK && PyUSMArray_TypeOfNumber(held_.fields().typenum, &is) < 0) PyErr_Clear();
        for (int k = rules::accepted - 1; k >= 0; --k) {
            const PyUSMArrayDataType &type = detail::types_of<one_of<T...>>::list[k];
            if (type.code == is.dtype.code && type.bits == is.dtype.bits && type.lanes == is.dtype.lanes) which_ = k;
        }
    }

    template <int K, class F, class First, class... Rest> decltype(auto) visit_as(F &&f) const {
        if constexpr (sizeof...(Rest) > 0)
            if (which_ != K) return visit_as<K + 1, F, Rest...>(std::forward<F>(f));
        if (which_ != K)
            throw std::invalid_argument("arrayhub::view::visit: the elements are of none of the types of the view");
        return std::forward<F>(f)(view<First, N, Options...>::adopt(object(held_).release()));
    }

  public:
    view() = default;
    explicit view(PyObject *obj, const char *name = detail::name_of<Options...>(), bool converts = true) {
        const PyUSMArrayRequest request = rules::make(name, converts);
        held_ = array(object::steal(detail::checked(PyUSMArray_Request(obj, &request))));
        look();
    }
    static PyObject *try_request(PyObject *obj, bool converts) noexcept {
        return PyUSMArray_Request(obj, converts ? &rules::converting : &rules::plain);
    }
    static view adopt(PyObject *array_) noexcept {
        view v;
        v.held_ = array(object::steal(array_));
        v.look();
        return v;
    }
    explicit operator bool() const noexcept { return static_cast<bool>(held_); }
    const array &held() const noexcept { return held_; }
    object as(const char *library) const { return held_.as(library); }
    object like(PyObject *model, bool may_copy = false) const { return held_.like(model, may_copy); }
    object like(const object &model, bool may_copy = false) const { return held_.like(model, may_copy); }
    // Element zero, whatever its type.
    std::conditional_t<rules::writes, void *, const void *> data() const noexcept { return held_.fields().data; }
    int ndim() const noexcept { return held_.ndim(); }
    index_t extent(int k) const noexcept { return held_.extent(k); }
    index_t stride(int k) const noexcept {
        static_assert(indexed, "as_is: elements may lie anywhere; use byte_stride");
        return held_.fields().strides[k];
    }
    index_t byte_stride(int k) const noexcept { return held_.fields().byte_strides[k]; }
    index_t size() const noexcept {
        index_t n = 1;
        for (int k = 0; k < ndim(); ++k) n *= extent(k);
        return n;
    }
    // What f gives for each of the types has to be of one type. Throws std::invalid_argument of an empty view.
    template <class F> decltype(auto) visit(F &&f) const { return visit_as<0, F, T...>(std::forward<F>(f)); }
};

// ----------------------------------------------------------------------------------------------------------- going out

namespace detail {

// What is thrown where nobody can catch it goes to sys.unraisablehook.
template <class F> void report_thrown(F &&f) noexcept {
    try {
        f();
    } catch (python_error &error) {
        error.restore();
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (...) {
        PyErr_SetString(PyExc_RuntimeError, "arrayhub: what releases an array threw something that is no std::exception");
    }
    if (PyErr_Occurred()) PyErr_WriteUnraisable(nullptr);
}

// What keeps memory, on the heap: where it can be called called, and destroyed, when the last array is gone.
template <class Owner> struct keeper {
    Owner owner;
    static void release(void *context) noexcept {
        keeper *self = static_cast<keeper *>(context);
        if constexpr (std::is_invocable_v<Owner &>) report_thrown([&] { self->owner(); });
        report_thrown([&] { delete self; });
    }
};

// A Python object keeps memory by being there, whether it can be called or not: PyObject *, and the objects of arrayhub,
// pybind11 and nanobind.
template <class Owner, class = void> inline constexpr bool is_python = std::is_convertible_v<const Owner &, PyObject *>;
template <class Owner>
inline constexpr bool is_python<
    Owner, std::enable_if_t<std::is_convertible_v<decltype(std::declval<const Owner &>().ptr()), PyObject *>>> = true;

template <class Owner> PyObject *python_owner(const Owner &owner) {
    if constexpr (std::is_convertible_v<const Owner &, PyObject *>)
        return owner;
    else
        return owner.ptr();
}

inline array made_of(const PyUSMArraySpec &spec) { return array(object::steal(checked(PyUSMArray_New(&spec)))); }

// An owner on its way into an array: released here where none is made.
template <class Owner> class handover {
    using kept = keeper<Owner>;
    kept *kept_;

  public:
    template <class Given> explicit handover(Given &&owner) {
        if constexpr (std::is_pointer_v<Owner>)
            if (owner == nullptr) throw std::invalid_argument("arrayhub::hand_out: the owner is a null pointer");
        kept_ = new kept{std::forward<Given>(owner)};
    }
    handover(const handover &) = delete;
    handover &operator=(const handover &) = delete;
    ~handover() {
        if (kept_ != nullptr) kept::release(kept_);
    }
    array make(PyUSMArraySpec &spec) {
        spec.release = kept::release;
        spec.context = kept_;
        array made = made_of(spec);
        kept_ = nullptr;
        return made;
    }
};
// A Python object is the array's owner itself, which takes a reference of its own.
template <class Owner> class borrowed {
    PyObject *owner_;

  public:
    explicit borrowed(const Owner &owner) : owner_(python_owner(owner)) {
        if (owner_ == nullptr) throw std::invalid_argument("arrayhub::hand_out: the owner is a null pointer");
    }
    array make(PyUSMArraySpec &spec) {
        spec.owner = owner_;
        return made_of(spec);
    }
};
template <class Owner, class Kept = std::decay_t<Owner>>
using passage = std::conditional_t<is_python<Kept>, borrowed<Kept>, handover<Kept>>;

inline void describe(PyUSMArraySpec &spec, const std::vector<index_t> &shape, const std::vector<index_t> *byte_strides) {
    if (byte_strides != nullptr && byte_strides->size() != shape.size())
        throw std::invalid_argument("arrayhub::hand_out: as many byte strides as lengths");
    if (shape.size() > 64) throw std::invalid_argument("arrayhub::hand_out: at most 64 dimensions");
    spec.nd = static_cast<int>(shape.size());
    spec.shape = shape.data();
    spec.byte_strides = byte_strides == nullptr ? nullptr : byte_strides->data();
}

template <class T> PyUSMArraySpec spec_of(T *data) {
    PyUSMArraySpec spec{};
    spec.struct_size = sizeof(spec);
    spec.data = const_cast<std::remove_const_t<T> *>(data);
    spec.dtype = element<std::remove_const_t<T>>::type;
    spec.access = std::is_const_v<T> ? USM_ARRAY_READONLY : USM_ARRAY_WRITEABLE;
    return spec;
}

// `owner` is only moved from here.
template <class Owner> array make(PyUSMArraySpec &spec, Owner &&owner) {
    passage<Owner> way(std::forward<Owner>(owner));
    return way.make(spec);
}

inline void refuse_size(std::size_t have, const std::vector<index_t> &shape) {
    std::size_t wanted = 1;
    for (index_t n : shape) {
        if (n < 0 || (n != 0 && wanted > static_cast<std::size_t>(PTRDIFF_MAX) / static_cast<std::size_t>(n)))
            throw std::invalid_argument("arrayhub::hand_out: a length is negative, or too large");
        wanted *= static_cast<std::size_t>(n);
    }
    if (wanted > have) throw std::invalid_argument("arrayhub::hand_out: the shape has more elements than the memory");
}

} // namespace detail

// Memory at `data` with a shape, kept by `owner`: anything that is to live as long as the array; what can be called without
// arguments (a lambda that frees) is called at the end, once, with the GIL held, also where making the array fails. What it
// or its destructor throws goes to sys.unraisablehook. A Python object (PyObject *, pybind11::object, nanobind::object,
// arrayhub::object) is kept alive and never called.
// Elements of a const type come out read-only.
template <class T, class Owner> array hand_out(T *data, const std::vector<index_t> &shape, Owner &&owner) {
    detail::passage<Owner> way(std::forward<Owner>(owner));
    PyUSMArraySpec spec = detail::spec_of(data);
    detail::describe(spec, shape, nullptr);
    return way.make(spec);
}
template <class T, class Owner>
array hand_out(T *data, const std::vector<index_t> &shape, const std::vector<index_t> &byte_strides, Owner &&owner) {
    detail::passage<Owner> way(std::forward<Owner>(owner));
    PyUSMArraySpec spec = detail::spec_of(data);
    detail::describe(spec, shape, &byte_strides);
    return way.make(spec);
}

// A vector's memory, without a copy. jax takes it as it is where the vector is an aligned_vector.
template <class T, class A> array hand_out(std::vector<T, A> &&values, std::vector<index_t> shape) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements in memory; take a vector of char or uint8_t");
    if (shape.size() == 1 && shape[0] == -1) shape[0] = static_cast<index_t>(values.size());
    detail::refuse_size(values.size(), shape);
    PyUSMArraySpec spec = detail::spec_of(values.data());
    detail::describe(spec, shape, nullptr);
    return detail::make(spec, std::move(values));      // a vector that is moved keeps its memory where it is
}
// All of it in one dimension, for which no shape has to be allocated.
template <class T, class A> array hand_out(std::vector<T, A> &&values) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements in memory; take a vector of char or uint8_t");
    const index_t length = static_cast<index_t>(values.size());
    PyUSMArraySpec spec = detail::spec_of(values.data());
    spec.nd = 1;
    spec.shape = &length;
    return detail::make(spec, std::move(values));
}

// A vector's memory that C++ shares; a const vector comes out read-only.
template <class V, class = typename V::allocator_type>
array hand_out(const std::shared_ptr<V> &values, std::vector<index_t> shape = {-1}) {
    if (!values) throw std::invalid_argument("arrayhub::hand_out: the pointer is null");
    if (shape.size() == 1 && shape[0] == -1) shape[0] = static_cast<index_t>(values->size());
    detail::refuse_size(values->size(), shape);
    PyUSMArraySpec spec = detail::spec_of(values->data());
    detail::describe(spec, shape, nullptr);
    return detail::make(spec, values);
}

// What malloc gave; free() takes it, also where making the array fails.
template <class T> array hand_out_malloc(T *data, const std::vector<index_t> &shape) {
    return hand_out(data, shape, [data] { std::free(const_cast<std::remove_const_t<T> *>(data)); });
}

// SYCL's USM with the queue that fills it (a sycl::queue, which is copied); `owner` as with hand_out.
template <class T, class Queue, class Owner>
array hand_out_usm(T *data, const std::vector<index_t> &shape, const Queue &queue, Owner &&owner) {
    detail::passage<Owner> way(std::forward<Owner>(owner));
    PyUSMArraySpec spec = detail::spec_of(data);
    detail::describe(spec, shape, nullptr);
    spec.device.device_type = 14; // kDLOneAPI
    spec.queue_ref = const_cast<void *>(static_cast<const void *>(&queue));
    return way.make(spec);
}

// The queue of a view of SYCL memory: `sycl::queue &q = arrayhub::queue_of<sycl::queue>(a);`, valid while the view lives.
template <class Queue> Queue &queue_of(const array &a) {
    void *queue = nullptr;
    if (PyUSMArray_QueueRef(a.held(), &queue) < 0) throw python_error();
    return *static_cast<Queue *>(queue);
}
template <class Queue, class T, int N, class... Options> Queue &queue_of(const view<T, N, Options...> &v) {
    return queue_of<Queue>(v.held());
}

// Memory on boundaries of 64 bytes, which all libraries take as it is.
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

// Import arrayhub now, in the init function of a module, and not with the first array. Nobody has to.
inline void init() {
    if (import_arrayhub() < 0) throw python_error();
}
inline void init(PyObject *) { init(); }

} // namespace arrayhub

#endif
