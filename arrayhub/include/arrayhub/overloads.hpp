// Overload resolution shared by pybind11.hpp and nanobind.hpp.
#ifndef ARRAYHUB_OVERLOADS_HPP
#define ARRAYHUB_OVERLOADS_HPP

#include <arrayhub.hpp>

namespace arrayhub __attribute__((visibility("hidden"))) {
namespace detail {

// pybind11 and nanobind try all overloads twice: first without conversions, then with conversions. A function without
// overloads is tried once, with conversions. If a view refuses its argument with an exception, later overloads are not tried.
// If it refuses the argument without an exception, the error message is lost. So a refusal raises an exception only if the
// function does not have overloads. nanobind.hpp detects overloads by a list that nanobind keeps for the duration of one call.
// pybind11.hpp detects them by the address of the argument.

// Return whether the current exception concerns the process rather than an argument. Such exceptions are raised at once.
inline bool concerns_all_overloads() noexcept {
    return !PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError) ||
           PyErr_ExceptionMatches(PyExc_RecursionError) || PyErr_ExceptionMatches(PyExc_ImportError);
}

} // namespace detail
} // namespace arrayhub

#endif
