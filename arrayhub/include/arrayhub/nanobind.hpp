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
// in the first pass (without conversions) appends this mark to the list. If the second pass finds the mark, the function has
// overloads.
inline PyObject *refusal_mark() noexcept {
    static PyObject *mark = PyUnicode_FromString("arrayhub: an overload refused its argument");
    return mark;
}
inline bool has_refused(nanobind::detail::cleanup_list *call) noexcept {
    if (call != nullptr)
        for (size_t k = 1; k < call->size(); ++k)
            if ((*call)[k] == refusal_mark()) return true;
    return false;
}

} // namespace detail
} // namespace arrayhub

namespace nanobind::detail {

// The imported value, or the error to throw when the value is used, because from_python must not throw.
template <class Imported> struct type_caster<Imported, enable_if_t<std::is_base_of_v<arrayhub::object, Imported>>> {
    using Value = Imported;
    template <class U> using Cast = movable_cast_t<U>;
    static constexpr auto Name = const_name(Value::hint);
    Value value;
    std::unique_ptr<python_error> error;

    // Return true if the request succeeded, or if its error was stored and will be thrown later. Return false to make
    // nanobind try the next overload.
    bool from_python(handle src, uint32_t flags, cleanup_list *call) noexcept {
        const bool converts = (flags & static_cast<uint32_t>(cast_flags::convert)) != 0;
        PyObject *made = Value::try_request(src.ptr(), converts);
        if (made == nullptr) return refused(converts, call);
        value = Value(arrayhub::object::steal(made));
        return true;
    }
    __attribute__((noinline, cold)) bool refused(bool converts, cleanup_list *call) noexcept {
        if (!arrayhub::detail::concerns_all_overloads() && (!converts || arrayhub::detail::has_refused(call))) {
            PyErr_Clear();
            PyObject *mark = arrayhub::detail::refusal_mark();
            if (!converts && call != nullptr && mark != nullptr) call->append(Py_NewRef(mark));
            return false;
        }
        error.reset(new (std::nothrow) python_error());
        if (!error) PyErr_Clear();
        return error != nullptr;
    }
    // nanobind calls this function for elements of containers, such as a vector of views, but not for arguments. The result
    // false reports the error, because from_python of a container must not throw either.
    template <class U> bool can_cast() const noexcept { return !error; }
    Value &checked() {
        if (error) throw python_error(std::move(*error));
        return value;
    }
    explicit operator Value *() { return &checked(); }
    explicit operator Value &() { return checked(); }
    explicit operator Value &&() { return std::move(checked()); }
    static handle from_cpp(Value v, rv_policy, cleanup_list *) noexcept { return v.release(); }
};

} // namespace nanobind::detail

#endif
