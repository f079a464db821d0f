// ConvProblem to text: the benchdnn descriptor, then attributes. parse() reads it back to the same key.
#include <charconv>

#include "core/conv_problem.hpp"

namespace sl {
namespace {

void append(std::string& text, const char* token, std::int64_t value) {
  text += token;
  text += std::to_string(value);
}

// Shortest digits that read back to the same bits, whatever the locale.
void append_float(std::string& text, const char* key, float value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  text += key;
  text.append(digits, end);
}

enum class Form { line, square, full };  // which dimensions the descriptor names: w, h for both, or both

Form form_of(const ConvProblem& v) {
  const bool line = v.h == 1 && v.r == 1 && v.p == 1 && v.stride_h == 1 && v.pad_top == 0 && v.dil_h == 1;
  if (line) return Form::line;
  const bool square = v.h == v.w && v.r == v.s && v.p == v.q && v.stride_h == v.stride_w && v.pad_top == v.pad_left &&
                      v.dil_h == v.dil_w;
  return square ? Form::square : Form::full;
}

}  // namespace

std::string ConvProblem::descriptor() const {
  const ConvProblem v = normalised();
  const Form form = form_of(v);
  std::string text;
  const auto axis = [&](const char* h_token, std::int64_t h_value, const char* w_token, std::int64_t w_value) {
    if (form != Form::line) append(text, h_token, h_value);
    if (form != Form::square) append(text, w_token, w_value);
  };
  append(text, "g", v.groups);
  append(text, "mb", v.n);
  append(text, "ic", v.c);
  axis("ih", v.h, "iw", v.w);
  append(text, "oc", v.k);
  axis("oh", v.p, "ow", v.q);
  axis("kh", v.r, "kw", v.s);
  if (v.stride_h != 1 || v.stride_w != 1) axis("sh", v.stride_h, "sw", v.stride_w);
  axis("ph", v.pad_top, "pw", v.pad_left);
  if (v.dil_h != 1 || v.dil_w != 1) axis("dh", v.dil_h - 1, "dw", v.dil_w - 1);
  return text;
}

std::string ConvProblem::to_string() const {
  const ConvProblem v = normalised();
  std::string text = v.descriptor();
  const auto attribute = [&](std::string_view key, std::string_view value) { text.append(key).append(value); };
  attribute(" dt=", name(v.dtype));
  attribute(" tag=", name(v.layout));
  if (v.weight_layout != WeightLayout::oihw) attribute(" wtag=", name(v.weight_layout));
  if (v.bias != Bias::none) attribute(" bias=", name(v.bias));
  if (v.activation != Activation::none) attribute(" act=", name(v.activation));
  if (v.alpha != 0.0F) append_float(text, " alpha=", v.alpha);
  if (v.beta != 0.0F) append_float(text, " beta=", v.beta);
  if (v.residual) attribute(" z=", "1");
  if (v.align != 16) append(text, " align=", v.align);
  return text;
}

}  // namespace sl
