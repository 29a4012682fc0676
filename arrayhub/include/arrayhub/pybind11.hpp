// arrayhub's views and arrays as arguments and results of pybind11 functions.
//
//     #include <arrayhub/pybind11.hpp>
//     m.def("sum", [](arrayhub::view<const double, 2> a) { ... });
//     m.def("ones", [](Py_ssize_t n) { return arrayhub::hand_out(std::vector<double>(n, 1.0)).as("numpy"); });
#ifndef ARRAYHUB_PYBIND11_HPP
#define ARRAYHUB_PYBIND11_HPP

#include <arrayhub/overloads.hpp>
#include <pybind11/pybind11.h>

namespace arrayhub __attribute__((visibility("hidden"))) {

// Import arrayhub now, and let arrayhub::python_error arrive in Python as what it was.
inline void init(pybind11::module_ &) {
    init();
    pybind11::register_local_exception_translator([](std::exception_ptr p) {
        try {
            if (p) std::rethrow_exception(p);
        } catch (python_error &error) {
            error.restore();
        }
    });
}

} // namespace arrayhub

namespace pybind11 {
namespace detail {

template <class T, int N, class... Options> struct type_caster<arrayhub::view<T, N, Options...>> {
    using view_type = arrayhub::view<T, N, Options...>;
    PYBIND11_TYPE_CASTER(view_type, const_name("numpy.typing.ArrayLike"));

    bool load(handle src, bool convert) {
        static const char kind = 0;
        if (PyObject *made = view_type::try_request(src.ptr(), convert)) {
            value = view_type::adopt(made);
            return true;
        }
        if (arrayhub::detail::refusals::raises(src.ptr(), &kind, convert)) throw error_already_set();
        return false;
    }
    static handle cast(const view_type &v, return_value_policy, handle) { return handle(v.held().ptr()).inc_ref(); }
};

template <> struct type_caster<arrayhub::array> {
    PYBIND11_TYPE_CASTER(arrayhub::array, const_name("arrayhub.USMArray"));

    bool load(handle src, bool convert) {
        static const char kind = 0;
        PyObject *made = PyUSMArray_FromObject(src.ptr());
        if (made == nullptr) {
            if (arrayhub::detail::refusals::raises(src.ptr(), &kind, convert)) throw error_already_set();
            return false;
        }
        value = arrayhub::array(arrayhub::object::steal(made));
        return true;
    }
    static handle cast(const arrayhub::array &a, return_value_policy, handle) { return handle(a.ptr()).inc_ref(); }
    static handle cast(arrayhub::array &&a, return_value_policy, handle) { return a.release(); }
};

template <> struct type_caster<arrayhub::object> {
    PYBIND11_TYPE_CASTER(arrayhub::object, const_name("object"));

    bool load(handle src, bool) {
        value = arrayhub::object::borrow(src.ptr());
        return true;
    }
    static handle cast(const arrayhub::object &o, return_value_policy, handle) { return handle(o.ptr()).inc_ref(); }
    static handle cast(arrayhub::object &&o, return_value_policy, handle) { return o.release(); }
};

} // namespace detail
} // namespace pybind11

#endif
