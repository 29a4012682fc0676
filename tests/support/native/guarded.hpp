// Convert C++ exceptions to Python exceptions, for modules that do not use pybind11 or nanobind.
#ifndef GUARDED_HPP
#define GUARDED_HPP
#include <arrayhub.hpp>

template <class F> static PyObject *guarded(F &&f) {
    try {
        return f();
    } catch (arrayhub::python_error &error) {
        error.restore();
    } catch (const std::invalid_argument &error) {
        PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const std::overflow_error &error) {
        PyErr_SetString(PyExc_OverflowError, error.what());
    }
    return nullptr;
}
#endif
