// arrayhub's views and arrays as arguments and results of nanobind functions.
//
//     #include <arrayhub/nanobind.hpp>
//     m.def("sum", [](arrayhub::view<const double, 2> a) { ... });
//     m.def("ones", [](Py_ssize_t n) { return arrayhub::hand_out(std::vector<double>(n, 1.0)).as("numpy"); });
#ifndef ARRAYHUB_NANOBIND_HPP
#define ARRAYHUB_NANOBIND_HPP

#include <arrayhub.hpp>
#include <nanobind/nanobind.h>

namespace arrayhub __attribute__((visibility("hidden"))) {

// Import arrayhub, and translate arrayhub::python_error to the Python exception it holds.
inline void init(nanobind::module_ &) {
    init();
    nanobind::register_exception_translator([](const std::exception_ptr &p, void *) { detail::translate(p); });
}

namespace detail {

// nanobind tries the overloads of a function in two passes, and passes one cleanup list to all attempts of a call. A refusal
// in the first pass (without conversions) appends a mark to the list. If the second pass finds a mark, the function has
// overloads.
inline PyObject *refusal_mark() noexcept {
    static PyObject *mark = PyUnicode_FromString("arrayhub: an overload refused its argument");
    return mark;
}
inline void mark_refusal(nanobind::detail::cleanup_list *call) noexcept {
    PyObject *mark = refusal_mark();
    if (call == nullptr || mark == nullptr) return;
    Py_INCREF(mark);
    call->append(mark);
}
inline bool has_refused(nanobind::detail::cleanup_list *call) noexcept {
    if (call != nullptr)
        for (size_t k = 1; k < call->size(); ++k)
            if ((*call)[k] == refusal_mark()) return true;
    return false;
}

// The imported value, or the error to throw when the value is used, because from_python must not throw.
template <class Imported> struct nanobind_caster {
    using Value = Imported;
    template <class U> using Cast = nanobind::detail::movable_cast_t<U>;
    Value value;
    std::unique_ptr<nanobind::python_error> error;

    // Return true if the request succeeded, or if its error was stored and will be thrown later. Return false to make
    // nanobind try the next overload.
    bool from_python(nanobind::handle src, uint32_t flags, nanobind::detail::cleanup_list *call) noexcept {
        const bool converts = (flags & static_cast<uint32_t>(nanobind::detail::cast_flags::convert)) != 0;
        PyObject *made = Value::try_request(src.ptr(), converts);
        if (made == nullptr) return refused(converts, call);
        value = Value(object::steal(made));
        return true;
    }
    __attribute__((noinline, cold)) bool refused(bool converts, nanobind::detail::cleanup_list *call) noexcept {
        if (!concerns_all_overloads() && (!converts || has_refused(call))) {
            PyErr_Clear();
            if (!converts) mark_refusal(call);
            return false;
        }
        error.reset(new (std::nothrow) nanobind::python_error());
        if (!error) PyErr_Clear();
        return error != nullptr;
    }
    // nanobind calls this function for elements of containers, such as a vector of views, but not for arguments. The result
    // false reports the error, because from_python of a container must not throw either.
    template <class U> bool can_cast() const noexcept { return !error; }
    Value &checked() {
        if (error) throw nanobind::python_error(std::move(*error));
        return value;
    }
    explicit operator Value *() { return &checked(); }
    explicit operator Value &() { return checked(); }
    explicit operator Value &&() { return std::move(checked()); }
    static nanobind::handle from_cpp(Value v, nanobind::rv_policy, nanobind::detail::cleanup_list *) noexcept {
        return v.release();
    }
};

} // namespace detail
} // namespace arrayhub

namespace nanobind {
namespace detail {

template <class Value>
struct type_caster<Value, enable_if_t<std::is_base_of_v<arrayhub::object, Value>>> : arrayhub::detail::nanobind_caster<Value> {
    static constexpr auto Name = const_name(Value::hint);
};

} // namespace detail
} // namespace nanobind

#endif
