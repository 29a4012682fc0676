// An array of float64 as arrayhub's view, and as pybind11's own array_t; vectors out by both.
#include <arrayhub/pybind11.hpp>
#include <pybind11/numpy.h>

namespace py = pybind11;

PYBIND11_MODULE(pybind11_peer, m) {
    m.def("take", [](arrayhub::view<const double> a) { return a.data() != nullptr; });
    m.def("take_own", [](py::array_t<double> a) { return a.data() != nullptr; });
    m.def("out", [] { return arrayhub::hand_out(std::vector<double>(8)); });
    m.def("out_own", [] {
        auto *v = new std::vector<double>(8);
        return py::array_t<double>(8, v->data(), py::capsule(v, [](void *p) { delete static_cast<std::vector<double> *>(p); }));
    });
}
