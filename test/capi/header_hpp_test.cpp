// The C++ header stands alone too.
#include "sluice/sluice.hpp"
