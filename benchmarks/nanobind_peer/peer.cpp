// What an extension written with nanobind pays to take an array, and to give one out.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

NB_MODULE(nanobind_peer, m) {
    m.def("take", [](nb::ndarray<nb::ro> a) { return a.is_valid(); });
    m.def("as_numpy", [](nb::ndarray<> a) { return nb::ndarray<nb::numpy>(a); });
}
