// Import of a float64 array as arrayhub's view and as nanobind's ndarray, export of vectors, and loops over elements.
#include <arrayhub/nanobind.hpp>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

template <class At> static double add_up(Py_ssize_t n, At at) {
    double total = 0;
    for (Py_ssize_t i = 0; i < n; ++i) total += at(i) > 0 ? 1 : 0;
    return total;
}

NB_MODULE(nanobind_native_peer, m) {
    m.def("take", [](arrayhub::view<const double> a) { return a.data() != nullptr; });
    m.def("take_own", [](nb::ndarray<const double> a) { return a.data() != nullptr; });
    m.def("out", [] { return arrayhub::hand_out(std::vector<double>(8)); });
    m.def("out_own", [] {
        auto *v = new std::vector<double>(8);
        nb::capsule owner(v, [](void *p) noexcept { delete static_cast<std::vector<double> *>(p); });
        return nb::ndarray<nb::array_api, double>(v->data(), {8}, owner);
    });
    m.def("loop", [](arrayhub::view<const double, 1> a) { return add_up(a.extent(0), [&](Py_ssize_t i) { return a(i); }); });
    m.def("loop_pointer", [](arrayhub::view<const double, 1> a) {
        const double *p = a.data();
        const Py_ssize_t step = a.stride(0);
        return add_up(a.extent(0), [=](Py_ssize_t i) { return p[i * step]; });
    });
}
