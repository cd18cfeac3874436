#include "regex.h"

#include <cstring>
#include <new>

#include "errors.h"
#include "ragged.h"

namespace specops {
namespace {

std::string message(int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof text);
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
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP | options,
                          &error, &offset, nullptr));
  if (code == nullptr) fail("pattern: '", pattern, "' is none: ", message(error), " at ", offset);
  // Where there is no JIT compiler matching is slower, and the same.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

Regex::Regex(const std::string& pattern)
    : valid_(compile(pattern, 0)), any_(compile(pattern, PCRE2_MATCH_INVALID_UTF)) {}

std::uint32_t Regex::groups() const {
  std::uint32_t count = 0;
  pcre2_pattern_info(valid_.get(), PCRE2_INFO_CAPTURECOUNT, &count);
  return count;
}

Search::Search(const Regex& regex)
    : regex_(regex),
      data_(pcre2_match_data_create_from_pattern(regex.valid_.get(), nullptr)) {
  if (data_ == nullptr) throw std::bad_alloc();
  offsets_ = pcre2_get_ovector_pointer(data_.get());
}

void Search::text(std::string_view text) {
  text_ = text;
  is_valid_ = is_utf8(text);
  code_ = is_valid_ ? regex_.valid_.get() : regex_.any_.get();
}

bool Search::grow_stack() {
  if (stack_ != nullptr) return false;
  context_.reset(pcre2_match_context_create(nullptr));
  stack_.reset(pcre2_jit_stack_create(32 * 1024, 64 * 1024 * 1024, nullptr));
  if (context_ == nullptr || stack_ == nullptr) throw std::bad_alloc();
  pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
  return true;
}

bool Search::next(std::size_t start, std::uint32_t options) {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text_.data() == nullptr ? "" : text_.data());
  options |= is_valid_ ? PCRE2_NO_UTF_CHECK : 0;
  const auto match = [&] {
    return pcre2_match(code_, subject, text_.size(), start, options, data_.get(), context_.get());
  };
  int result = match();
  if (result == PCRE2_ERROR_JIT_STACKLIMIT && grow_stack()) result = match();
  if (result == PCRE2_ERROR_NOMATCH) return false;
  if (result < 0) fail("pattern: ", message(result), " in a string of ", text_.size(), " bytes");
  count_ = static_cast<std::size_t>(result);
  return true;
}

}  // namespace specops
