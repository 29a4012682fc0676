// What pybind11 and nanobind have in common: how they ask overloads.
#ifndef ARRAYHUB_OVERLOADS_HPP
#define ARRAYHUB_OVERLOADS_HPP

#include <arrayhub.hpp>

namespace arrayhub __attribute__((visibility("hidden"))) {
namespace detail {

// Both ask all overloads twice, without conversions and then with them, and a function that has no overloads once, with
// them. What raises in the second pass keeps later overloads from being asked, and what does not raise loses its message.
// So a refusal is raised where it is known that nobody else is going to be asked. pybind11.hpp and nanobind.hpp find that
// out, each from what its framework keeps for the length of one call and no longer.

// Whether the exception that is set speaks of the process and not of an argument: it is raised at once.
inline bool concerns_all_overloads() noexcept {
    return !PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError) ||
           PyErr_ExceptionMatches(PyExc_RecursionError) || PyErr_ExceptionMatches(PyExc_ImportError);
}

} // namespace detail
} // namespace arrayhub

#endif
