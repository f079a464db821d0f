#include "capi/errors.hpp"
#include "sluice/sluice.h"

#define SL_TEXT_(x) #x
#define SL_TEXT(x) SL_TEXT_(x)

extern "C" {

int32_t sluice_version(void) {
  return 10000 * SLUICE_VERSION_MAJOR + 100 * SLUICE_VERSION_MINOR + SLUICE_VERSION_PATCH;
}

const char* sluice_version_string(void) {
  return SL_TEXT(SLUICE_VERSION_MAJOR) "." SL_TEXT(SLUICE_VERSION_MINOR) "." SL_TEXT(SLUICE_VERSION_PATCH);
}

const char* sluice_last_error(void) { return sl::capi::last_error(); }

const char* sluice_status_name(sluice_status status) {
  switch (status) {
    case SLUICE_OK:
      return "OK";
    case SLUICE_KEPT:
      return "KEPT";
    case SLUICE_NOT_PREPARED:
      return "NOT_PREPARED";
    case SLUICE_INVALID:
      return "INVALID";
    case SLUICE_UNSUPPORTED:
      return "UNSUPPORTED";
    case SLUICE_OUT_OF_MEMORY:
      return "OUT_OF_MEMORY";
    case SLUICE_DEVICE_ERROR:
      return "DEVICE_ERROR";
    case SLUICE_COMPILE_ERROR:
      return "COMPILE_ERROR";
    case SLUICE_WRONG_RESULT:
      return "WRONG_RESULT";
    case SLUICE_ENVIRONMENT:
      return "ENVIRONMENT";
    case SLUICE_NOT_FOUND:
      return "NOT_FOUND";
    case SLUICE_PINNED_MISS:
      return "PINNED_MISS";
    case SLUICE_INTERNAL:
      return "INTERNAL";
  }
  return "UNKNOWN";
}

}  // extern "C"
