// Numbers as Python's repr writes them: the shortest text that reads back equal ("0.1", "1e-05", "nan", "(1+2j)").
#pragma once

#include <complex>
#include <string>

namespace calque {

std::string python_repr(double value);
std::string python_repr(std::complex<double> value);

}  // namespace calque
