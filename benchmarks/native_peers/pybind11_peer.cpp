// Import of a float64 array as arrayhub's view and as pybind11's array_t, and export of vectors.
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
