// PCRE2's regular expressions over bytes, with UTF and UCP.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "pcre2_abi.h"

namespace specops {

// A compiled pattern; throws if it is invalid. Several threads may use it, each with its own `Search`.
class Regex {
 public:
  explicit Regex(const std::string& pattern);

  // The number of groups.
  std::uint32_t groups() const;

 private:
  friend class Search;
  struct Free {
    void operator()(pcre2::Code* code) const { pcre2::functions().code_free(code); }
  };
  using Code = std::unique_ptr<pcre2::Code, Free>;
  static Code compile(const std::string& pattern, std::uint32_t options);

  // For valid UTF-8, and for texts with other bytes, which match nothing.
  Code valid_, any_;
};

// A search for a pattern in one text after another.
class Search {
 public:
  explicit Search(const Regex& regex);

  // Sets the text to search.
  void text(std::string_view text);
  // Whether there is a match from `start` on; `begin` and `end` return its position.
  bool next(std::size_t start, std::uint32_t options = 0);

  std::size_t begin(std::size_t group = 0) const { return offsets_[2 * group]; }
  std::size_t end(std::size_t group = 0) const { return offsets_[2 * group + 1]; }
  bool has(std::size_t group) const { return group < count_ && offsets_[2 * group] != pcre2::UNSET; }
  // One more than the highest number of a group in the match.
  std::size_t count() const { return count_; }

 private:
  template <auto Function>  // a member of pcre2::Functions
  struct Free {
    template <class T>
    void operator()(T* object) const {
      (pcre2::functions().*Function)(object);
    }
  };

  // For rare texts that need more than the default stack; returns false if it was enlarged before.
  bool grow_stack();

  const Regex& regex_;
  const pcre2::Code* code_ = nullptr;
  bool is_valid_ = true;
  std::string_view text_;
  std::unique_ptr<pcre2::MatchData, Free<&pcre2::Functions::match_data_free>> data_;
  std::unique_ptr<pcre2::JitStack, Free<&pcre2::Functions::jit_stack_free>> stack_;
  std::unique_ptr<pcre2::MatchContext, Free<&pcre2::Functions::match_context_free>> context_;
  const std::size_t* offsets_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace specops
