// The Python module: each family of kernels has a binding file of its own, and nothing else knows Python.
#include <nanobind/nanobind.h>

#include "interrupt.hpp"

namespace calibrant::python {
void add_answers(nanobind::module_& m);
void add_binning(nanobind::module_& m);
void add_curve(nanobind::module_& m);
void add_density(nanobind::module_& m);
void add_imax(nanobind::module_& m);
void add_lift(nanobind::module_& m);
void add_linear(nanobind::module_& m);
void add_matrix(nanobind::module_& m);
void add_metrics(nanobind::module_& m);
void add_perturbation(nanobind::module_& m);
void add_pieces(nanobind::module_& m);
void add_scan(nanobind::module_& m);
void add_temperature(nanobind::module_& m);

namespace {
// Lets Python handle the signals that have come; where a handler raises, as that of Ctrl-C does, so does this.
void ask_python() {
    nanobind::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}
}  // namespace
}  // namespace calibrant::python

NB_MODULE(_core, m) {
    m.doc() = "Compiled kernels. Arrays in, arrays out; no estimator is known here.";
    calibrant::ask_user = calibrant::python::ask_python;
    calibrant::python::add_answers(m);
    calibrant::python::add_binning(m);
    calibrant::python::add_curve(m);
    calibrant::python::add_density(m);
    calibrant::python::add_imax(m);
    calibrant::python::add_lift(m);
    calibrant::python::add_linear(m);
    calibrant::python::add_matrix(m);
    calibrant::python::add_metrics(m);
    calibrant::python::add_perturbation(m);
    calibrant::python::add_pieces(m);
    calibrant::python::add_scan(m);
    calibrant::python::add_temperature(m);
}
