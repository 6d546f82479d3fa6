// Tests of the conformance rows: a test whose name starts with a row's id stands for that row. tools/conformance.py makes
// docs/conformance.md from the tests' reports.
#pragma once

#include <gtest/gtest.h>

// Ends the test: the row cannot apply to Calque, or the PyTorch that we follow has changed it, for the reason given.
#define CALQUE_NOT_APPLICABLE(reason) GTEST_SKIP() << "not applicable: " << (reason)
