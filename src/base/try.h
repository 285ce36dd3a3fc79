// Passing an error on without a line of ceremony.
#pragma once

#include "gearshift/base.h"

#define GEARSHIFT_CONCAT_(a, b) a##b
#define GEARSHIFT_CONCAT(a, b) GEARSHIFT_CONCAT_(a, b)

// GEARSHIFT_TRY(auto table, read(path)); declares `table` with the value, or returns the error to the caller.
#define GEARSHIFT_TRY(declaration, expression) \
  GEARSHIFT_TRY_(declaration, expression, GEARSHIFT_CONCAT(result_, __LINE__))
#define GEARSHIFT_TRY_(declaration, expression, name) \
  auto name = (expression);                           \
  if (!name.ok()) return name.error();                \
  declaration = *std::move(name)

// GEARSHIFT_CHECK(check(spec)); for Result<void>.
#define GEARSHIFT_CHECK(expression)                              \
  do {                                                           \
    auto gearshift_result = (expression);                        \
    if (!gearshift_result.ok()) return gearshift_result.error(); \
  } while (false)
