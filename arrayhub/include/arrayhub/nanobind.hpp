// arrayhub's views and arrays as arguments and results of nanobind functions.
//
//     #include <arrayhub/nanobind.hpp>
//     m.def("sum", [](arrayhub::view<const double, 2> a) { ... });
//     m.def("ones", [](Py_ssize_t n) { return arrayhub::hand_out(std::vector<double>(n, 1.0)).as("numpy"); });
#ifndef ARRAYHUB_NANOBIND_HPP
#define ARRAYHUB_NANOBIND_HPP

#include <arrayhub/overloads.hpp>
#include <nanobind/nanobind.h>

namespace arrayhub __attribute__((visibility("hidden"))) {

// Import arrayhub now, and let arrayhub::python_error arrive in Python as what it was.
inline void init(nanobind::module_ &) {
    init();
    nanobind::register_exception_translator([](const std::exception_ptr &p, void *) {
        try {
            std::rethrow_exception(p);
        } catch (python_error &error) {
            error.restore();
        }
    });
}

namespace detail {

// What came in of a Python object, or the error to be thrown where it is used: from_python may throw nothing.
template <class Value> struct nanobind_caster {
    Value value;
    std::unique_ptr<nanobind::python_error> error;

    bool keep(PyObject *made, PyObject *src, bool converts, const void *kind) noexcept {
        if (made != nullptr) return true;
        if (!refusals::raises(src, kind, converts)) return false;
        error.reset(new (std::nothrow) nanobind::python_error());
        return true;
    }
    Value &checked() {
        if (error) throw nanobind::python_error(std::move(*error));
        return value;
    }
};

} // namespace detail
} // namespace arrayhub

namespace nanobind {
namespace detail {

template <class T, int N, class... Options>
struct type_caster<arrayhub::view<T, N, Options...>> : arrayhub::detail::nanobind_caster<arrayhub::view<T, N, Options...>> {
    using Value = arrayhub::view<T, N, Options...>;
    static constexpr auto Name = const_name("numpy.typing.ArrayLike");
    template <class U> using Cast = movable_cast_t<U>;
    template <class U> static constexpr bool can_cast() { return true; }

    bool from_python(handle src, uint32_t flags, cleanup_list *) noexcept {
        static const char kind = 0;
        const bool converts = (flags & static_cast<uint32_t>(cast_flags::convert)) != 0;
        PyObject *made = Value::try_request(src.ptr(), converts);
        if (made != nullptr) this->value = Value::adopt(made);
        return this->keep(made, src.ptr(), converts, &kind);
    }
    static handle from_cpp(const Value &v, rv_policy, cleanup_list *) noexcept { return handle(v.held().ptr()).inc_ref(); }

    explicit operator Value *() { return &this->checked(); }
    explicit operator Value &() { return this->checked(); }
    explicit operator Value &&() { return std::move(this->checked()); }
};

template <> struct type_caster<arrayhub::array> : arrayhub::detail::nanobind_caster<arrayhub::array> {
    using Value = arrayhub::array;
    static constexpr auto Name = const_name("arrayhub.USMArray");
    template <class U> using Cast = movable_cast_t<U>;
    template <class U> static constexpr bool can_cast() { return true; }

    bool from_python(handle src, uint32_t flags, cleanup_list *) noexcept {
        static const char kind = 0;
        PyObject *made = PyUSMArray_FromObject(src.ptr());
        if (made != nullptr) value = Value(arrayhub::object::steal(made));
        return keep(made, src.ptr(), (flags & static_cast<uint32_t>(cast_flags::convert)) != 0, &kind);
    }
    static handle from_cpp(const Value &a, rv_policy, cleanup_list *) noexcept { return handle(a.ptr()).inc_ref(); }
    static handle from_cpp(Value &&a, rv_policy, cleanup_list *) noexcept { return a.release(); }

    explicit operator Value *() { return &checked(); }
    explicit operator Value &() { return checked(); }
    explicit operator Value &&() { return std::move(checked()); }
};

template <> struct type_caster<arrayhub::object> {
    NB_TYPE_CASTER(arrayhub::object, const_name("object"))

    bool from_python(handle src, uint32_t, cleanup_list *) noexcept {
        value = arrayhub::object::borrow(src.ptr());
        return true;
    }
    static handle from_cpp(const arrayhub::object &o, rv_policy, cleanup_list *) noexcept { return handle(o.ptr()).inc_ref(); }
    static handle from_cpp(arrayhub::object &&o, rv_policy, cleanup_list *) noexcept { return o.release(); }
};

} // namespace detail
} // namespace nanobind

#endif
