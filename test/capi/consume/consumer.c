/* A user's program in C11: the header is C, the library links, a call is answered. */
#include <sluice/sluice.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  sluice_options options = SLUICE_OPTIONS_INIT;
  sluice_conv2d_args args = SLUICE_CONV2D_ARGS_INIT;
  sluice_counters counters = SLUICE_COUNTERS_INIT;
  sluice_context* context = NULL;
  const int64_t image[4] = {1, 1, 1, 1};
  float x = 2.0f, w = 3.0f, y = 0.0f;
  if (sluice_version() != 10000 * SLUICE_VERSION_MAJOR + 100 * SLUICE_VERSION_MINOR + SLUICE_VERSION_PATCH) return 1;
  options.device = "host";
  options.cache_dir = "off";
  options.policy = SLUICE_OFF;
  if (sluice_context_create(&options, &context) != SLUICE_OK) {
    printf("%s\n", sluice_last_error());
    return 2;
  }
  args.x.data = &x, args.w.data = &w, args.y.data = &y;
  args.x.ndim = args.w.ndim = args.y.ndim = 4;
  args.x.dims = args.w.dims = args.y.dims = image;
  if (sluice_conv2d(context, &args, NULL) != SLUICE_KEPT || strlen(sluice_last_error()) == 0) return 3;
  if (sluice_get_counters(context, &counters) != SLUICE_OK || counters.kept != 1) return 4;
  sluice_context_destroy(context);
  printf("sluice %s\n", sluice_version_string());
  return 0;
}
