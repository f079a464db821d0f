// What most tests include: see SluicePrecompile.cmake. No file may count on it.
#pragma once

#include <gtest/gtest.h>

#include "precompiled_library.hpp"
