// A module, without pybind11 or nanobind, that uses the features of arrayhub.hpp that docs/howto does not show.
#include "guarded.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

using arrayhub::view;

// The parts of std::mdspan (C++23) that arrayhub.hpp uses (extents, two layouts and mappings), for compilers without <mdspan>.
#if (__has_include(<mdspan>) && defined(__cpp_lib_mdspan)) || defined(REAL_MDSPAN)
#include <mdspan>
namespace md = std;
#else
namespace md {
template <class I, std::size_t R> struct dextents_of {
    using index_type = I;
    std::array<I, R> n{};
    template <class... N> constexpr explicit dextents_of(N... lengths) : n{static_cast<I>(lengths)...} {}
    static constexpr std::size_t rank() { return R; }
    static constexpr std::size_t static_extent(std::size_t) { return static_cast<std::size_t>(-1); }
    constexpr I extent(std::size_t k) const { return n[k]; }
};
template <class I, std::size_t R> using dextents = dextents_of<I, R>;
struct layout_right {
    template <class E> struct mapping {
        E e;
        constexpr mapping(const E &extents) : e(extents) {}
        static constexpr bool is_always_exhaustive() { return true; }
        constexpr auto stride(std::size_t k) const {
            typename E::index_type s = 1;
            for (std::size_t j = k + 1; j < E::rank(); ++j) s *= e.extent(j);
            return s;
        }
    };
};
struct layout_stride {
    template <class E> struct mapping {
        E e;
        std::array<typename E::index_type, E::rank()> s;
        constexpr mapping(const E &extents, const std::array<typename E::index_type, E::rank()> &strides) : e(extents), s(strides) {}
        static constexpr bool is_always_exhaustive() { return false; }
        constexpr auto stride(std::size_t k) const { return s[k]; }
        constexpr auto strides() const { return s; }
    };
};
template <class T, class E, class L = layout_right> struct mdspan {
    using extents_type = E;
    using index_type = typename E::index_type;
    using mapping_type = typename L::template mapping<E>;
    T *p;
    mapping_type m;
    constexpr mdspan(T *data, const mapping_type &mapping) : p(data), m(mapping) {}
    constexpr auto extent(std::size_t k) const { return m.e.extent(k); }
    T &at(index_type i, index_type j) const { return p[i * m.stride(0) + j * m.stride(1)]; }
};
} // namespace md
#endif

static PyObject *total(PyObject *, PyObject *obj) {
    return guarded([&] {
        view<const double, 2> a(obj, "total: x");
        double sum = 0;
        for (Py_ssize_t i = 0; i < a.extent(0); ++i)
            for (Py_ssize_t j = 0; j < a.extent(1); ++j) sum += a(i, j);
        return PyFloat_FromDouble(sum);
    });
}

static PyObject *span_sum(PyObject *, PyObject *obj) {
    return guarded([&] {
        double sum = 0;
        const view<const double> elements(obj);
        for (double element : elements.span()) sum += element;
        return PyFloat_FromDouble(sum);
    });
}

template <class Layout> static PyObject *sum_of_mdspan(PyObject *obj) {
    return guarded([&] {
        view<const double, 2> a(obj);
        auto m = a.template mdspan<md::mdspan<const double, md::dextents<int, 2>, Layout>>();
        double sum = 0;
        for (int i = 0; i < m.extent(0); ++i)
            for (int j = 0; j < m.extent(1); ++j) {
#ifdef __cpp_lib_mdspan
                sum += m[i, j];
#else
                sum += m.at(i, j);
#endif
            }
        return PyFloat_FromDouble(sum);
    });
}
// Return the first length of an mdspan with a narrow index type, which may be unable to represent a length or stride.
template <class Index, int N> static PyObject *narrow_mdspan(PyObject *obj) {
    return guarded([&] {
        using narrow = md::mdspan<const double, md::dextents<Index, static_cast<std::size_t>(N)>, md::layout_stride>;
        auto m = view<const double, N>(obj).template mdspan<narrow>();
        return PyLong_FromLong(static_cast<long>(m.extent(0)));
    });
}
static PyObject *narrow_1(PyObject *, PyObject *obj) { return narrow_mdspan<unsigned char, 1>(obj); }
static PyObject *narrow_2(PyObject *, PyObject *obj) { return narrow_mdspan<signed char, 2>(obj); }

static PyObject *mdspan_sum(PyObject *, PyObject *obj) { return sum_of_mdspan<md::layout_stride>(obj); }
static PyObject *mdspan_right_sum(PyObject *, PyObject *obj) { return sum_of_mdspan<md::layout_right>(obj); }

static PyObject *as_is_bytes(PyObject *, PyObject *obj) {
    return guarded([&] {
        view<const double, 1, arrayhub::as_is> a(obj);
        const unsigned char *first = reinterpret_cast<const unsigned char *>(a.data());
        return Py_BuildValue("(nii)", a.byte_stride(0), first[0], first[7]);
    });
}

// Return the size of the element type that `visit` passes, and the byte stride, size and address of the view.
using any_float = view<arrayhub::one_of<const float, const double>, 1, arrayhub::as_is>;
static PyObject *visited(PyObject *, PyObject *obj) {
    return guarded([&] {
        any_float a(obj, "visited: x");
        const int size = a.visit([](auto v) { return static_cast<int>(sizeof(typename decltype(v)::value_type)); });
        return Py_BuildValue("(innN)", size, a.byte_stride(0), a.size(), PyLong_FromVoidPtr(const_cast<void *>(a.data())));
    });
}
static PyObject *visit_nothing(PyObject *, PyObject *) {
    return guarded([&] { return PyLong_FromLong(any_float().visit([](auto) { return 0L; })); });
}

static PyObject *alike(PyObject *, PyObject *obj) {
    return guarded([&] {
        view<const double, 1> one(obj);
        view<arrayhub::one_of<const float, const double>, 1> several(obj);
        arrayhub::object model = arrayhub::object::borrow(obj);
        if (several.stride(0) != one.stride(0) || several.data() != one.data() || several.size() != one.size())
            throw std::invalid_argument("two views of one array differ");
        return Py_BuildValue("(NNNN)", one.like(obj).release(), one.like(model).release(), several.like(obj).release(),
                             several.as("numpy").release());
    });
}

static constexpr char named_x[] = "named: x";
static PyObject *named(PyObject *, PyObject *obj) {
    return guarded([&] {
        PyObject *made = view<const double, 1, arrayhub::named<named_x>>::try_request(obj, true);
        return made != nullptr ? made : throw arrayhub::python_error();
    });
}

static PyObject *references(PyObject *, PyObject *obj) {
    return guarded([&] {
        view<const double, 1> a(obj);
        const auto r = a.reference();
        static_assert(std::is_trivially_copyable_v<decltype(r)>);
        double sum = 0;
        for (Py_ssize_t i = 0; i < r.extent(0); ++i) sum += r(i);
        auto first = a.begin(), last = a.end();
        if (last - first != a.extent(0) || first[0] != *first || !(first < last) || *(last - 1) != r(a.extent(0) - 1)) sum = -1;
        return PyFloat_FromDouble(sum);
    });
}

static int alive_now = 0; // number of owners that have not been destroyed

struct counted {
    counted() { ++alive_now; }
    counted(counted &&other) noexcept { other.moved = true; }
    counted(const counted &) = delete;
    ~counted() {
        if (!moved) --alive_now;
    }
    bool moved = false;
};

// The destructor throws, except for objects whose value was moved to another object.
struct throws_at_the_end {
    bool armed = true;
    throws_at_the_end() = default;
    throws_at_the_end(throws_at_the_end &&other) : armed(std::exchange(other.armed, false)) {}
    ~throws_at_the_end() noexcept(false) {
        if (armed) throw std::runtime_error("thrown by a destructor");
    }
};
struct throws_twice : throws_at_the_end {
    void operator()() { throw std::runtime_error("thrown by an owner"); }
};

static arrayhub::array made(const std::string &way) {
    static double six[6] = {1, 1, 1, 1, 1, 1};
    std::vector<double> ones(6, 1.0);
    if (way == "vector") return arrayhub::hand_out(std::move(ones), {2, 3});
    if (way == "shared") return arrayhub::hand_out(std::make_shared<std::vector<double>>(6, 1.0));
    if (way == "const") return arrayhub::hand_out(std::shared_ptr<const std::vector<double>>(new std::vector<double>(6, 1.0)));
    if (way == "malloc") {
        double *p = static_cast<double *>(std::malloc(sizeof(six)));
        for (int i = 0; i < 6; ++i) p[i] = 1;
        return arrayhub::hand_out_malloc(p, {2, 3});
    }
    if (way == "lambda") return ++alive_now, arrayhub::hand_out(six, {3}, [] { --alive_now; });
    if (way == "strides") return arrayhub::hand_out(six, {3}, {16}, counted());
    if (way == "aligned") return arrayhub::hand_out(arrayhub::aligned_vector<double>(6, 1.0));
    if (way == "throws") return arrayhub::hand_out(six, {3}, [] { throw std::runtime_error("thrown by an owner"); });
    if (way == "destructor throws") return arrayhub::hand_out(six, {3}, throws_at_the_end());
    if (way == "both throw") return arrayhub::hand_out(six, {3}, throws_twice());
    if (way == "failing destructor throws") return arrayhub::hand_out(six, {-3}, throws_at_the_end());
    if (way == "called: 65") return ++alive_now, arrayhub::hand_out(six, std::vector<Py_ssize_t>(65, 1), [] { --alive_now; });
    if (way == "called: strides") return ++alive_now, arrayhub::hand_out(six, {3}, {8, 8}, [] { --alive_now; });
    if (way == "malloc: 65") {
        void *p = std::malloc(50 << 20);
        std::memset(p, 1, 50 << 20);
        return arrayhub::hand_out_malloc(static_cast<double *>(p), std::vector<Py_ssize_t>(65, 1));
    }
    if (way == "too many") return arrayhub::hand_out(std::move(ones), {2, 4});
    if (way == "negative") return arrayhub::hand_out(std::move(ones), {-2, 3});
    if (way == "null owner") return arrayhub::hand_out(six, {3}, static_cast<void (*)()>(nullptr));
    if (way == "null pointer") return ++alive_now, arrayhub::hand_out(static_cast<double *>(nullptr), {3}, [] { --alive_now; });
    if (way == "bad strides") return arrayhub::hand_out(six, {3}, {8, 8}, counted());
    return arrayhub::hand_out(std::shared_ptr<std::vector<double>>());
}

// Releases the GIL in a scope. The functions of arrayhub.hpp acquire it.
struct without_gil {
    PyThreadState *state = PyEval_SaveThread();
    ~without_gil() { PyEval_RestoreThread(state); }
};

static PyObject *out(PyObject *, PyObject *way) {
    return guarded([&]() -> PyObject * {
        const char *name = PyUnicode_AsUTF8AndSize(way, nullptr);
        if (name == nullptr) return nullptr;
        without_gil released;
        return made(name).release();
    });
}

static PyObject *alive(PyObject *, PyObject *) { return PyLong_FromLong(alive_now); }

static PyObject *in_threads(PyObject *, PyObject *obj) {
    return guarded([&] {
        view<const double, 2> a(obj);
        Py_BEGIN_ALLOW_THREADS;
        std::vector<std::thread> threads;
        for (int k = 0; k < 4; ++k)
            threads.emplace_back([a] {
                for (int n = 0; n < 100; ++n) view<const double, 2> copy = a;
            });
        for (auto &thread : threads) thread.join();
        threads.clear();
        Py_END_ALLOW_THREADS;
        return Py_BuildValue("");
    });
}

static view<const double, 2> kept; // is destroyed after the interpreter has ended

static PyObject *keep(PyObject *, PyObject *obj) {
    return guarded([&] {
        kept = view<const double, 2>(obj);
        return Py_BuildValue("");
    });
}

// Export memory whose owner is a Python object, passed as arrayhub::object or as PyObject *.
static double three[3] = {1, 1, 1};
static PyObject *kept_by(PyObject *, PyObject *owner) {
    return guarded([&] { return arrayhub::hand_out(three, {3}, arrayhub::object::borrow(owner)).release(); });
}
static PyObject *kept_by_pointer(PyObject *, PyObject *owner) {
    return guarded([&] { return arrayhub::hand_out(three, {3}, owner).release(); });
}
// Export a part of a view, which is the owner.
static PyObject *inner(PyObject *, PyObject *obj) {
    return guarded([&] {
        view<double, 2> a(obj);
        return arrayhub::hand_out(&a(1, 1), {2, 2}, {a.byte_stride(0), a.byte_stride(1)}, a).release();
    });
}

// Start threads that Python does not know. They copy and destroy views forever, or destroy one view after 300 ms.
static PyObject *copy_forever(PyObject *, PyObject *obj) {
    return guarded([&] {
        view<const double, 1> a(obj);
        for (int k = 0; k < 4; ++k)
            std::thread([a] {
                for (;;) view<const double, 1> copy = a;
            }).detach();
        return Py_BuildValue("");
    });
}
static PyObject *drop_late(PyObject *, PyObject *obj) {
    return guarded([&] {
        view<const double, 1> a(obj);
        std::thread([a]() mutable {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            view<const double, 1> last = std::move(a);
        }).detach();
        return Py_BuildValue("");
    });
}

// Call functions with an empty array, an empty view or NULL. These do not refer to a Python object.
static PyObject *empty(PyObject *, PyObject *way_) {
    return guarded([&]() -> PyObject * {
        const std::string way = PyUnicode_AsUTF8AndSize(way_, nullptr);
        without_gil released;
        const arrayhub::array none;
        const view<const double, 1> nothing;
        if (way == "as") return none.as("numpy").release();
        if (way == "like") return none.like(way_).release();
        if (way == "view as") return nothing.as("numpy").release();
        if (way == "view like") return nothing.like(way_).release();
        if (way == "queue") return PyLong_FromVoidPtr(&arrayhub::queue_of<char>(none));
        if (way == "view queue") return PyLong_FromVoidPtr(&arrayhub::queue_of<char>(nothing));
        if (way == "null array") return arrayhub::array(static_cast<PyObject *>(nullptr)).release();
        if (way == "null view") return PyLong_FromSsize_t(view<const double, 1>(nullptr).size());
        return Py_BuildValue("");
    });
}

static PyMethodDef methods[] = {
    {"total", total, METH_O, nullptr},
    {"span_sum", span_sum, METH_O, nullptr},
    {"mdspan_sum", mdspan_sum, METH_O, nullptr},
    {"mdspan_right_sum", mdspan_right_sum, METH_O, nullptr},
    {"as_is_bytes", as_is_bytes, METH_O, nullptr},
    {"references", references, METH_O, nullptr},
    {"narrow_1", narrow_1, METH_O, nullptr},
    {"narrow_2", narrow_2, METH_O, nullptr},
    {"visited", visited, METH_O, nullptr},
    {"visit_nothing", visit_nothing, METH_NOARGS, nullptr},
    {"alike", alike, METH_O, nullptr},
    {"named", named, METH_O, nullptr},
    {"kept_by", kept_by, METH_O, nullptr},
    {"kept_by_pointer", kept_by_pointer, METH_O, nullptr},
    {"copy_forever", copy_forever, METH_O, nullptr},
    {"drop_late", drop_late, METH_O, nullptr},
    {"inner", inner, METH_O, nullptr},
    {"out", out, METH_O, nullptr},
    {"alive", alive, METH_NOARGS, nullptr},
    {"in_threads", in_threads, METH_O, nullptr},
    {"keep", keep, METH_O, nullptr},
    {"empty", empty, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "plain", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit_plain() {
    return guarded([] {
        arrayhub::init();
        return PyModule_Create(&definition);
    });
}
