// What pybind11 and nanobind have in common: how they ask overloads.
#ifndef ARRAYHUB_OVERLOADS_HPP
#define ARRAYHUB_OVERLOADS_HPP

#include <arrayhub.hpp>

namespace arrayhub __attribute__((visibility("hidden"))) {
namespace detail {

// Both ask all overloads twice, without conversions and then with them, and a function that has no overloads once, with
// them. What raises in the second pass keeps later overloads from being asked, and what does not raise loses its message.
// So an argument that was refused in a first pass is refused without words in the second: there are overloads.
// Bounded, and one list a thread; what falls out of it only gets the message of the overload that refused it.
class refusals {
    static constexpr int most = 8;
    std::pair<PyObject *, const void *> seen_[most] = {};
    int next_ = 0;

    static refusals &of_thread() noexcept {
        static thread_local refusals r;
        return r;
    }

  public:
    // Whether the exception that is set is to be raised; else it is cleared, and another overload may be asked.
    static bool raises(PyObject *obj, const void *kind, bool converts) noexcept {
        if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError) ||
            PyErr_ExceptionMatches(PyExc_RecursionError) || PyErr_ExceptionMatches(PyExc_ImportError))
            return true; // it speaks of the process, and not of the argument
        refusals &list = of_thread();
        if (!converts) {
            list.seen_[list.next_] = {obj, kind};
            list.next_ = (list.next_ + 1) % most;
            PyErr_Clear();
            return false;
        }
        for (auto &entry : list.seen_)
            if (entry.first == obj && entry.second == kind) {
                entry = {};
                PyErr_Clear();
                return false;
            }
        return true;
    }
};

} // namespace detail
} // namespace arrayhub

#endif
