// A nanobind extension that imports and exports an array, to measure the cost.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

NB_MODULE(nanobind_peer, m) {
    m.def("take", [](nb::ndarray<nb::ro> a) { return a.is_valid(); });
    m.def("as_numpy", [](nb::ndarray<> a) { return nb::ndarray<nb::numpy>(a); });
}
