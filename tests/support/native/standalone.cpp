// An extension that works whether or not the package arrayhub is installed.
#define ARRAYHUB_STANDALONE
#include "guarded.hpp"

using arrayhub::view;

static constexpr char total_x[] = "total: x";

static PyObject *total(PyObject *, PyObject *obj) {
    return guarded([&] {
        view<const double, 2, arrayhub::named<total_x>> a(obj);
        double sum = 0;
        for (Py_ssize_t i = 0; i < a.extent(0); ++i)
            for (Py_ssize_t j = 0; j < a.extent(1); ++j) sum += a(i, j);
        return PyFloat_FromDouble(sum);
    });
}

static PyObject *negate(PyObject *, PyObject *obj) {
    return guarded([&]() -> PyObject * {
        for (double &element : view<double, 1>(obj)) element = -element;
        return Py_BuildValue("");
    });
}

static PyObject *bytes_sum(PyObject *, PyObject *obj) {
    return guarded([&] {
        unsigned long sum = 0;
        for (unsigned char element : view<const unsigned char, 1, arrayhub::c_contig>(obj)) sum += element;
        return PyLong_FromUnsignedLong(sum);
    });
}

static PyObject *largest(PyObject *, PyObject *obj) {
    return guarded([&] {
        view<arrayhub::one_of<const float, const double>, 1, arrayhub::may_cast> a(obj);
        return PyFloat_FromDouble(a.visit([](auto v) {
            double most = -1e308;
            for (auto element : v) most = element > most ? static_cast<double>(element) : most;
            return most;
        }));
    });
}

// Return fields of an array: address, shape, byte strides, type code, bits, flags, protocol, whether `strides` is not NULL.
static PyObject *fields(PyObject *, PyObject *obj) {
    return guarded([&]() -> PyObject * {
        arrayhub::array a(obj);
        const PyUSMArrayFields &f = a.fields();
        PyObject *shape = PyList_New(0), *steps = PyList_New(0);
        for (int k = 0; k < f.nd; ++k) {
            PyObject *length = PyLong_FromSsize_t(f.shape[k]), *step = PyLong_FromSsize_t(f.byte_strides[k]);
            PyList_Append(shape, length);
            PyList_Append(steps, step);
            Py_XDECREF(length);
            Py_XDECREF(step);
        }
        return Py_BuildValue("(KNNiiiii)", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(f.data)), shape, steps,
                             f.dl_dtype.code, f.dl_dtype.bits, f.flags, f.protocol, f.strides != nullptr);
    });
}

static PyObject *held(PyObject *, PyObject *obj) {
    return guarded([&] { return arrayhub::array(obj).release(); });
}

static PyObject *ones(PyObject *, PyObject *) {
    return guarded([&] { return arrayhub::hand_out(std::vector<double>(3, 1.0)).release(); });
}

static PyObject *as_numpy(PyObject *, PyObject *obj) {
    return guarded([&] { return arrayhub::array(obj).as("numpy").release(); });
}

static PyMethodDef methods[] = {{"total", total, METH_O, nullptr},     {"negate", negate, METH_O, nullptr},
                                {"bytes_sum", bytes_sum, METH_O, nullptr}, {"largest", largest, METH_O, nullptr},
                                {"fields", fields, METH_O, nullptr},   {"held", held, METH_O, nullptr},
                                {"ones", ones, METH_NOARGS, nullptr},  {"as_numpy", as_numpy, METH_O, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "standalone", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit_standalone() {
    PyObject *module = PyModule_Create(&definition);
    if (module != nullptr && import_arrayhub() < 0) Py_CLEAR(module);
    return module;
}
