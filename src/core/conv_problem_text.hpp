// The two halves of parse(), and how its errors point at a token. Internal to core.
#pragma once

#include <string>
#include <string_view>

#include "core/conv_problem.hpp"

namespace sl::text {

/// An error about the token that starts at `offset` of the whole text; positions are told from 1.
Error token_error(std::string_view token, std::size_t offset, const std::string& what);

/// Reads the descriptor at the start of `text` into the size fields of `problem`. Returns the offset of what follows it
/// (blanks or the end).
Result<std::size_t> parse_descriptor(std::string_view text, ConvProblem& problem);

/// Reads the `key=value` tokens of `text` from `offset` on.
Status parse_attributes(std::string_view text, std::size_t offset, ConvProblem& problem);

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace sl::text
