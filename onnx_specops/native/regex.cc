#include "regex.h"

#include <cstring>
#include <new>

#include "errors.h"
#include "ragged.h"

namespace specops {
namespace {

std::string message(int error) {
  unsigned char text[256] = "";
  pcre2::functions().get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

bool is_utf8(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    // Eight ASCII characters at a time.
    std::uint64_t word;
    while (end - at >= 8 && (std::memcpy(&word, at, 8), (word & 0x8080808080808080) == 0)) at += 8;
    if (at == end) break;
    const std::size_t size = character_size({at, static_cast<std::size_t>(end - at)});
    if (size == 0) return false;
    at += size;
  }
  return true;
}

}  // namespace

Regex::Code Regex::compile(const std::string& pattern, std::uint32_t options) {
  int error = 0;
  std::size_t offset = 0;
  const pcre2::Functions& functions = pcre2::functions();
  Code code(functions.compile(reinterpret_cast<const unsigned char*>(pattern.data()), pattern.size(),
                              pcre2::UTF | pcre2::UCP | options, &error, &offset, nullptr));
  if (code == nullptr) fail("pattern: '", pattern, "' is none: ", message(error), " at ", offset);
  // Without a JIT compiler matching is slower, with the same results.
  functions.jit_compile(code.get(), pcre2::JIT_COMPLETE);
  return code;
}

Regex::Regex(const std::string& pattern)
    : valid_(compile(pattern, 0)), any_(compile(pattern, pcre2::MATCH_INVALID_UTF)) {}

std::uint32_t Regex::groups() const {
  std::uint32_t count = 0;
  pcre2::functions().pattern_info(valid_.get(), pcre2::INFO_CAPTURECOUNT, &count);
  return count;
}

Search::Search(const Regex& regex)
    : regex_(regex), data_(pcre2::functions().match_data_create_from_pattern(regex.valid_.get(), nullptr)) {
  if (data_ == nullptr) throw std::bad_alloc();
  offsets_ = pcre2::functions().get_ovector_pointer(data_.get());
}

void Search::text(std::string_view text) {
  text_ = text;
  is_valid_ = is_utf8(text);
  code_ = is_valid_ ? regex_.valid_.get() : regex_.any_.get();
}

bool Search::grow_stack() {
  if (stack_ != nullptr) return false;
  const pcre2::Functions& functions = pcre2::functions();
  context_.reset(functions.match_context_create(nullptr));
  stack_.reset(functions.jit_stack_create(32 * 1024, 64 * 1024 * 1024, nullptr));
  if (context_ == nullptr || stack_ == nullptr) throw std::bad_alloc();
  functions.jit_stack_assign(context_.get(), nullptr, stack_.get());
  return true;
}

bool Search::next(std::size_t start, std::uint32_t options) {
  const auto* subject = reinterpret_cast<const unsigned char*>(text_.data() == nullptr ? "" : text_.data());
  options |= is_valid_ ? pcre2::NO_UTF_CHECK : 0;
  const auto match = [&] {
    return pcre2::functions().match(code_, subject, text_.size(), start, options, data_.get(), context_.get());
  };
  int result = match();
  if (result == pcre2::ERROR_JIT_STACKLIMIT && grow_stack()) result = match();
  if (result == pcre2::ERROR_NOMATCH) return false;
  if (result < 0) fail("pattern: ", message(result), " in a string of ", text_.size(), " bytes");
  count_ = static_cast<std::size_t>(result);
  return true;
}

}  // namespace specops
