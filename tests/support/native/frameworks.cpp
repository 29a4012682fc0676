// Functions whose parameters are arrayhub's views. This file is compiled once with pybind11 and once with nanobind.
#ifdef WITH_NANOBIND
#include <arrayhub/nanobind.hpp>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>
namespace py = nanobind;
#define MODULE NB_MODULE(frameworks_nanobind, m)
#else
#include <arrayhub/pybind11.hpp>
#include <pybind11/stl.h>
namespace py = pybind11;
#define MODULE PYBIND11_MODULE(frameworks_pybind11, m)
#endif

using arrayhub::may_cast, arrayhub::view;
using floats = view<const float, 1>;
using doubles = view<const double, 1>;

static double three[3] = {1, 1, 1};
static constexpr char x_of_called[] = "called: x";

struct grid {};

MODULE {
    py::class_<grid>(m, "Grid")
        .def(py::init<>())
        .def("__add__", [](const grid &, doubles x) { return x.size(); }, py::arg("x").noconvert(), py::is_operator())
        .def("__eq__", [](const grid &, doubles) { return true; }, py::arg("x").noconvert(), py::is_operator());

    // Views inside standard types. The second overload of each function accepts other element types than the first.
    m.def("maybe_of", [](std::optional<floats>) { return "float32"; });
    m.def("maybe_of", [](std::optional<view<const double, 1, may_cast>>) { return "float64"; });
    m.def("all_of", [](std::vector<floats>) { return "float32"; });
    m.def("all_of", [](std::vector<view<const double, 1, may_cast>>) { return "float64"; });
    m.def("two_of", [](std::pair<floats, floats>) { return "float32"; });
    m.def("two_of", [](std::pair<doubles, doubles>) { return "float64"; });
    m.def("named_of", [](std::map<std::string, floats>) { return "float32"; });
    m.def("named_of", [](std::map<std::string, doubles>) { return "float64"; });

    arrayhub::init(m);
    m.def("kept_by", [](py::object owner) { return arrayhub::hand_out(three, {3}, owner); });
    m.def("kept_by_handle", [](py::object owner) { return arrayhub::hand_out(three, {3}, py::handle(owner)); });
    m.def("kept_by_pointer", [](py::object owner) { return arrayhub::hand_out(three, {3}, owner.ptr()); });

    m.def("kind", [](floats) { return "float32"; });
    m.def("kind", [](doubles) { return "float64"; });
    m.def("single", [](floats) { return "float32"; });
    m.def("exact", [](floats) { return "float32"; }, py::arg("x").noconvert());
    m.def("writer", [](view<float, 1>) { return "float32"; });
    m.def("writer", [](py::object) { return "anything"; });
    m.def("writes", [](view<float, 1>) { return "float32"; });
    m.def("pair", [](floats, doubles) { return "both"; });
    m.def("named", [](view<const float, 1, arrayhub::named<x_of_called>>) { return "float32"; });
    // The second overload accepts every element type that can be cast to float64.
    m.def("cast", [](floats) { return "float32"; });
    m.def("cast", [](view<const double, 1, may_cast>) { return "cast"; });
    m.def("many", [](floats, int, int, int, int, int, int, int) { return "float32"; });
    m.def("many", [](view<const double, 1, may_cast>, int, int, int, int, int, int, int) { return "cast"; });
    // If the first argument is an int, it must be converted to double. The frameworks' first pass, without conversions,
    // then stops before the view.
    m.def("scaled", [](double, floats) { return "float32"; });
    m.def("scaled", [](double, doubles) { return "float64"; });

    // These parameters correspond to arrayhub.Request("float64") and to Request("float64", order="C", may=("cast",
    // "relayout", "build")).
    m.def("plain", [](view<const double, arrayhub::any_rank, arrayhub::arrays_only> x) {
        return std::make_pair(reinterpret_cast<std::uintptr_t>(x.data()), x.size());
    }, py::arg("x").none());
    m.def("copied", [](view<const double, arrayhub::any_rank, arrayhub::c_contig, may_cast, arrayhub::may_relayout> x) {
        double sum = 0;
        for (double value : x) sum += value;
        return std::make_pair(sum, x.size());
    }, py::arg("x").none());

    m.def("either", [](std::variant<floats, view<const double, 1, may_cast>> x) { return x.index(); });
    m.def("maybe", [](std::optional<floats> x) { return x ? x->size() : -1; }, py::arg("x").none());
    m.def("all", [](const std::vector<floats> &x) { return x.size(); });
}
