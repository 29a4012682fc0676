// arrayhub's views and arrays as arguments and results of pybind11 functions.
//
//     #include <arrayhub/pybind11.hpp>
//     m.def("sum", [](arrayhub::view<const double, 2> a) { ... });
//     m.def("ones", [](Py_ssize_t n) { return arrayhub::hand_out(std::vector<double>(n, 1.0)).as("numpy"); });
#ifndef ARRAYHUB_PYBIND11_HPP
#define ARRAYHUB_PYBIND11_HPP

#include <arrayhub.hpp>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <pthread.h>

namespace arrayhub __attribute__((visibility("hidden"))) {

// Import arrayhub, and translate arrayhub::python_error to the Python exception it holds.
inline void init(pybind11::module_ &) {
    init();
    pybind11::register_local_exception_translator([](std::exception_ptr p) { detail::translate(p); });
}

namespace detail {

// Bounds of this thread's stack; null on platforms that do not report them.
struct stack_bounds {
    const char *first = nullptr, *last = nullptr;
    stack_bounds() noexcept {
#if defined(__APPLE__)
        last = static_cast<const char *>(pthread_get_stackaddr_np(pthread_self()));
        first = last - pthread_get_stacksize_np(pthread_self());
#elif defined(__linux__)
        pthread_attr_t attributes;
        if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
        void *lowest = nullptr;
        size_t size = 0;
        pthread_attr_getstack(&attributes, &lowest, &size);
        pthread_attr_destroy(&attributes);
        first = static_cast<const char *>(lowest);
        last = first + size;
#endif
    }
    static bool has(const void *p) noexcept {
        static thread_local const stack_bounds mine;
        return p >= mine.first && p < mine.last;
    }
};

// Whether pybind11 stores the arguments of all functions on the heap, as it does before version 3.1.
inline constexpr bool arguments_on_heap =
    std::is_same_v<decltype(pybind11::detail::function_call::args), std::vector<pybind11::handle>>;

// The last refusals without conversions in pybind11 before 3.1, each with the argument and the kind of view. If a request with
// conversions follows for the same argument, the function is assumed to have overloads.
struct refusals {
    using refusal = std::pair<const void *, const void *>;
    static inline thread_local std::array<refusal, 8> seen{};
    static inline thread_local std::size_t count = 0;

    static bool knows(const pybind11::handle &src, const void *kind) {
        return std::find(seen.begin(), seen.end(), refusal(src.ptr(), kind)) != seen.end();
    }
    static void remember(const pybind11::handle &src, const void *kind) {
        if (!knows(src, kind)) seen[count++ % seen.size()] = refusal(src.ptr(), kind);
    }
};

// Return whether to raise the current exception. If not, clear it, so that another overload may be tried.
//
// pybind11 stores the arguments of an overload on the stack in the first pass, and on the heap when it returns to the overload.
// So if a request allows conversions and its handle is on the stack, the function does not have overloads. Before version 3.1,
// all arguments are on the heap, and the recorded refusals of the first pass decide. Arguments of functions with more than six
// parameters are always on the heap. For these, and for views inside an optional, a vector, a pair or a variant, the exception
// is cleared, and pybind11 reports that no overload fits. The casters of these types pass on a variable `convert`. The flag of
// an argument is a temporary value, which pybind11 reads from a container of bits.
template <class Convert> bool raises(const pybind11::handle &src, const void *kind, Convert &&convert) {
    constexpr bool is_argument = !std::is_lvalue_reference_v<Convert>;
    if (concerns_all_overloads()) return true;
    if constexpr (is_argument && arguments_on_heap) {
        if (convert && !refusals::knows(src, kind)) return true;
        if (!convert) refusals::remember(src, kind);
    } else if constexpr (is_argument) {
        if (convert && stack_bounds::has(&src)) return true;
    }
    PyErr_Clear();
    return false;
}

} // namespace detail
} // namespace arrayhub

namespace pybind11::detail {

template <class Value> struct type_caster<Value, enable_if_t<std::is_base_of_v<arrayhub::object, Value>>> {
    PYBIND11_TYPE_CASTER(Value, const_name(Value::hint));

    template <class Convert> bool load(const handle &src, Convert &&convert) {
        static const char kind = 0;
        if (PyObject *made = Value::try_request(src.ptr(), convert)) {
            value = Value(arrayhub::object::steal(made));
            return true;
        }
        if (arrayhub::detail::raises(src, &kind, std::forward<Convert>(convert))) throw error_already_set();
        return false;
    }
    static handle cast(Value v, return_value_policy, handle) { return v.release(); }
};

} // namespace pybind11::detail

#endif
