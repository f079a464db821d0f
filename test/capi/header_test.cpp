// The header stands alone: it comes first and nothing before it.
#include "sluice/sluice.h"

// Twice is as good as once.
#include "sluice/sluice.h"
