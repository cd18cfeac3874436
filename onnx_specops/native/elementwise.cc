// Elementwise: a program of element-wise instructions in one pass over its operands.
//
// The output is computed in blocks that stay in the first-level cache. An operand whose elements are in the order of the
// output is read in place. Other operands are broadcast and widened into a copy. A copy that is the same for all blocks is
// made once. Consecutive instructions form a chain if each result is used only by the next instruction; the results of a chain
// stay in one buffer. Dequantized operands are arguments of other instructions.
#include "elementwise.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "compiler.h"
#include "float_kernels.h"
#include "op.h"

namespace specops {
namespace programs {

const Kernels& kernels() {
  static const Kernels& chosen = SPECOPS_FLOAT_KERNELS;
  return chosen;
}

}  // namespace programs

namespace {

using programs::Argument;
using programs::Code;
using programs::Job;
using programs::Kernels;
using programs::Step;

// onnx_specops/ops/elementwise.py has the same limits.
constexpr int most_operands = 10, most_instructions = 32;
// The maximum number of elements of a block, and the minimum number of blocks that a thread computes.
constexpr std::int64_t block_size = programs::most_numbers - programs::step, blocks_at_least = 16;
constexpr std::int64_t line_bytes = 64;  // of the cache
constexpr std::int64_t short_row = 16;    // a loop copies fewer numbers faster than a call
constexpr std::int64_t buffer_size = programs::most_numbers;

std::int64_t up(std::int64_t x) { return (x + programs::step - 1) / programs::step * programs::step; }

struct Name {
  const char* name;
  Code code;
  int arguments;
};
constexpr Name names[] = {
    {"add", Code::add, 2},         {"sub", Code::sub, 2},   {"mul", Code::mul, 2},
    {"div", Code::div, 2},         {"min", Code::min, 2},   {"max", Code::max, 2},
    {"relu", Code::relu, 1},       {"clip", Code::clip, 3}, {"prelu", Code::prelu, 2},
    {"sigmoid", Code::sigmoid, 1}, {"gelu", Code::gelu, 1}, {"hard_sigmoid", Code::hard_sigmoid, 3},
    {"elu", Code::elu, 1},         {"mish", Code::mish, 1}, {"gelu_tanh", Code::gelu_tanh, 1},
    {"dequantize", Code::copy, 3},
};

// An argument: an operand (dequantized if `scale` is not negative), the buffer of a chain, or the result of the previous
// instruction of the same chain.
struct Source {
  enum class Kind { operand, buffer, previous } kind = Kind::operand;
  int number = 0;
  int scale = -1, zero = -1;  // for operands only
};

struct Instruction {
  Code code;
  std::vector<Source> arguments;
};

struct Chain {
  std::vector<Instruction> instructions;
  int to = 0;  // the buffer of the results
};

struct Program {
  std::vector<Chain> chains;
  // For each operand: whether it is used, whether it contains integers, and whether it contains zero points.
  std::array<bool, most_operands> used{}, integers{}, zeros{};
  int buffers = 0;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// An instruction as written: arguments below `most_operands` are operands, the others are results.
struct Line {
  Code code;
  bool dequantizes;
  std::vector<int> arguments;
};

// Parses and checks the lines of a program, and records how they use each operand.
std::vector<Line> parse_lines(const std::string& text, Program& program) {
  const std::vector<std::string> given = split(text, ';');
  if (given.size() > most_instructions) {
    fail("the program has ", given.size(), " instructions, more than ", most_instructions);
  }
  std::vector<Line> lines;
  for (const std::string& line : given) {
    const auto refuse = [&] { fail("'", line, "' is not an instruction"); };
    const std::vector<std::string> words = split(line, ' ');
    const auto* const known = std::find_if(std::begin(names), std::end(names), [&](const Name& n) { return words[0] == n.name; });
    if (known == std::end(names) || words.size() != static_cast<std::size_t>(known->arguments) + 1) refuse();
    Line one{known->code, known->code == Code::copy, {}};
    for (int i = 0; i < known->arguments; ++i) {
      const std::string& word = words[static_cast<std::size_t>(i) + 1];
      int number = 0;
      for (const char c : word) {
        if (c < '0' || c > '9' || word.size() > 2) refuse();
        number = number * 10 + (c - '0');
      }
      if (word.empty() || number >= most_operands + static_cast<int>(lines.size())) refuse();
      one.arguments.push_back(number);
      if (number >= most_operands) {
        if (one.dequantizes) fail("'", line, "' dequantizes a result");
        continue;
      }
      const auto at = static_cast<std::size_t>(number);
      const bool integer = one.dequantizes && i != 1;
      if (program.used[at] && program.integers[at] != integer) fail("X", number, " has another type than '", words[0], "' expects");
      program.used[at] = true;
      program.integers[at] = integer;
      if (one.dequantizes && i == 2) program.zeros[at] = true;
    }
    lines.push_back(one);
  }
  return lines;
}

// The chains of a program. Their arguments name chains instead of buffers.
std::vector<Chain> chains_of(const std::vector<Line>& lines) {
  const int count = static_cast<int>(lines.size());
  // The only user of each result, or -1 if several instructions use it.
  std::vector<int> user(lines.size(), -1);
  std::vector<bool> used(lines.size(), false);
  for (int i = 0; i < count; ++i) {
    for (const int argument : lines[static_cast<std::size_t>(i)].arguments) {
      if (argument < most_operands) continue;
      const auto result = static_cast<std::size_t>(argument - most_operands);
      user[result] = used[result] && user[result] != i ? -1 : i;
      used[result] = true;
    }
  }
  const auto dequantized = [](const Line& line) {
    return Source{Source::Kind::operand, line.arguments[0], line.arguments[1], line.arguments[2]};
  };
  std::vector<Chain> chains;
  std::vector<int> chain_of(lines.size(), -1);
  int previous = -1;  // the last line that is an instruction
  for (int i = 0; i < count; ++i) {
    const Line& line = lines[static_cast<std::size_t>(i)];
    if (line.dequantizes && i + 1 < count) continue;  // part of its users
    const bool goes_on = previous >= 0 && user[static_cast<std::size_t>(previous)] == i;
    if (!goes_on) chains.emplace_back();
    const auto source = [&](int number) {
      if (number < most_operands) return Source{Source::Kind::operand, number, -1, -1};
      const int result = number - most_operands;
      const Line& computed = lines[static_cast<std::size_t>(result)];
      if (computed.dequantizes) return dequantized(computed);
      if (goes_on && result == previous) return Source{Source::Kind::previous, 0, -1, -1};
      return Source{Source::Kind::buffer, chain_of[static_cast<std::size_t>(result)], -1, -1};
    };
    Instruction one{line.code, {}};
    if (line.dequantizes) {
      one.arguments.push_back(dequantized(line));
    } else {
      for (const int number : line.arguments) one.arguments.push_back(source(number));
    }
    chains.back().instructions.push_back(one);
    chain_of[static_cast<std::size_t>(i)] = static_cast<int>(chains.size()) - 1;
    previous = i;
  }
  return chains;
}

Program parse(const std::string& text) {
  Program program;
  program.chains = chains_of(parse_lines(text, program));
  // Chains share a buffer if the results of one are not needed anymore when those of the other are stored.
  const auto chains = static_cast<int>(program.chains.size());
  std::vector<int> last(program.chains.size(), -1), free;
  const auto each_buffer = [&](int chain, const auto& visit) {
    for (Instruction& one : program.chains[static_cast<std::size_t>(chain)].instructions) {
      for (Source& source : one.arguments) {
        if (source.kind == Source::Kind::buffer) visit(source);
      }
    }
  };
  for (int i = 0; i < chains; ++i) each_buffer(i, [&](const Source& source) { last[static_cast<std::size_t>(source.number)] = i; });
  for (int i = 0; i < chains; ++i) {
    each_buffer(i, [&](Source& source) {
      const auto chain = static_cast<std::size_t>(source.number);
      source.number = program.chains[chain].to;
      if (last[chain] != i) return;
      free.push_back(source.number);
      last[chain] = chains;  // an instruction may use it twice
    });
    if (free.empty()) free.push_back(program.buffers++);
    program.chains[static_cast<std::size_t>(i)].to = free.back();
    free.pop_back();
  }
  return program;
}

// An operand, and how it is read.
struct Operand {
  Input input;
  std::vector<std::int64_t> strides;  // along the outer dimensions
  std::int64_t inner = 0;             // along the last dimension: 0 or 1
  std::int64_t period = 1;            // the number of rows after which the operand repeats
  bool whole = true;                  // whether its elements are in the order of the output
};

// The output as rows. Adjacent dimensions are merged if the same operands vary along them.
struct Plan {
  Shape outer;
  std::int64_t rows = 1, length = 1;
  std::vector<Operand> operands;
};

class Elementwise : public Kernel {
 public:
  explicit Elementwise(const KernelInfo& info) : program_(parse(info.string("program"))) {}

  void compute(Context& context) const override {
    const Input zero = context.input(1), scale = context.input(2);
    const bool quantized = zero.type() == Type::uint8;
    one_element(zero, "zero_point");
    if (quantized && scale.absent()) fail("a quantized output needs a scale");
    if (!scale.absent()) one_element(scale, "scale");
    std::array<Input, most_operands> inputs;
    for (std::size_t i = 0; i < most_operands; ++i) {
      const std::size_t at = i == 0 ? 0 : i + 2;
      if (at < context.input_count()) inputs[i] = context.input(at);
      if (program_.used[i] && !inputs[i].present()) fail("the program uses X", i, ", which is missing");
      if (!program_.used[i]) {
        inputs[i] = Input();
      } else if ((inputs[i].type() == Type::uint8) != program_.integers[i]) {
        fail("X", i, " has another type than the program expects");
      }
    }
    const Shape shape = broadcast(inputs);
    Output output = context.output(0, shape);
    const std::int64_t count = element_count(shape);
    if (count == 0) return;
    const Plan plan = arrange(inputs, shape);
    const float factor = quantized ? 1.0f / scale.data<float>()[0] : 1.0f;
    const Target target = {static_cast<char*>(output.bytes()), quantized, factor, quantized ? zero.data<std::uint8_t>()[0] : 0};
    run(context, plan, target);
  }

 private:
  struct Target {
    char* to;
    bool quantized;
    float factor;
    std::int32_t zero;
  };

  static Shape broadcast(const std::array<Input, most_operands>& inputs) {
    Shape shape;
    for (const Input& input : inputs) {
      if (!input.present()) continue;
      const Shape& dims = input.shape();
      if (dims.size() > shape.size()) shape.insert(shape.begin(), dims.size() - shape.size(), 1);
      for (std::size_t i = 0; i < dims.size(); ++i) {
        std::int64_t& size = shape[shape.size() - dims.size() + i];
        if (size == 1) {
          size = dims[i];
        } else if (dims[i] != 1 && dims[i] != size) {
          fail("the operands have shapes that cannot be broadcast, such as ", to_string(dims));
        }
      }
    }
    return shape;
  }

  static Plan arrange(const std::array<Input, most_operands>& inputs, const Shape& shape) {
    Plan plan;
    // For each operand, whether it varies along each dimension.
    std::vector<std::vector<bool>> varies;
    for (const Input& input : inputs) {
      plan.operands.push_back({input, {}, 0, 1, true});
      std::vector<bool> along(shape.size(), false);
      const std::size_t missing = input.present() ? shape.size() - input.shape().size() : shape.size();
      for (std::size_t i = missing; i < shape.size(); ++i) along[i] = input.shape()[i - missing] != 1;
      varies.push_back(along);
    }
    // Dimensions of size 1 are omitted. Adjacent dimensions are merged if the same operands vary along them.
    Shape sizes;
    std::vector<std::vector<bool>> merged(inputs.size());
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) continue;
      bool same = !sizes.empty();
      for (std::size_t k = 0; k < inputs.size() && same; ++k) same = merged[k].back() == varies[k][i];
      if (same) {
        sizes.back() *= shape[i];
        continue;
      }
      sizes.push_back(shape[i]);
      for (std::size_t k = 0; k < inputs.size(); ++k) merged[k].push_back(varies[k][i]);
    }
    if (sizes.empty()) {
      sizes.push_back(1);
      for (auto& one : merged) one.push_back(false);
    }
    plan.length = sizes.back();
    plan.outer.assign(sizes.begin(), sizes.end() - 1);
    plan.rows = element_count(plan.outer);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      Operand& operand = plan.operands[k];
      operand.inner = merged[k].back() ? 1 : 0;
      operand.whole = operand.inner == 1;
      operand.strides.assign(plan.outer.size(), 0);
      std::int64_t stride = merged[k].back() ? plan.length : 1, rows = 1;
      for (std::size_t i = plan.outer.size(); i-- > 0;) {
        rows *= plan.outer[i];
        if (merged[k][i]) {
          operand.strides[i] = stride;
          stride *= plan.outer[i];
          operand.period = rows;
        } else {
          operand.whole = false;
        }
      }
    }
    return plan;
  }

  // Copies `count` elements from element `from` on, or one element `count` times.
  static void copy(const Kernels& kernels, const Operand& operand, std::int64_t from, std::int64_t count, float* to) {
    if (operand.input.type() == Type::uint8) {
      const std::uint8_t* const bytes = operand.input.data<std::uint8_t>() + from;
      if (operand.inner == 0) {
        std::fill_n(to, count, static_cast<float>(*bytes));
      } else if (count < short_row) {
        for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(bytes[i]);
      } else {
        kernels.widen(bytes, count, to);
      }
      return;
    }
    const float* const floats = operand.input.data<float>() + from;
    if (operand.inner == 0) {
      std::fill_n(to, count, *floats);
    } else if (count < short_row) {
      for (std::int64_t i = 0; i < count; ++i) to[i] = floats[i];
    } else {
      std::copy_n(floats, count, to);
    }
  }

  // Copies `length` elements of each of `rows` rows, from element `column` of each row on.
  static void copy_rows(const Kernels& kernels, const Plan& plan, const Operand& operand, std::int64_t row, std::int64_t rows,
                        std::int64_t column, std::int64_t length, float* to) {
    const std::int64_t last = plan.outer.empty() ? 1 : plan.outer.back();
    const std::int64_t stride = plan.outer.empty() ? 0 : operand.strides.back();
    while (rows > 0) {
      // Rows that differ only in the last of the outer dimensions.
      const std::int64_t run = std::min(last - row % last, rows);
      std::int64_t from = place(plan, operand, row % operand.period) + column * operand.inner;
      for (std::int64_t r = 0; r < run; ++r, from += stride, to += length) copy(kernels, operand, from, length, to);
      row += run;
      rows -= run;
    }
  }

  static std::int64_t place(const Plan& plan, const Operand& operand, std::int64_t row) {
    std::int64_t at = 0;
    for (std::size_t i = plan.outer.size(); i-- > 0; row /= plan.outer[i]) at += row % plan.outer[i] * operand.strides[i];
    return at;
  }

  // The location of an operand of a block: floats, or bytes in the order of the output.
  struct Place {
    const float* floats = nullptr;
    const std::uint8_t* bytes = nullptr;
  };

  // The argument of a kernel for a block.
  Argument argument(const Plan& plan, const Source& source, const std::array<Place, most_operands>& places, const float* memory) const {
    Argument out;
    if (source.kind == Source::Kind::previous) return out;
    if (source.kind == Source::Kind::buffer) {
      out.data = memory + (most_operands + source.number) * buffer_size;
      return out;
    }
    const auto same = [&](int operand) {
      const Operand& one = plan.operands[static_cast<std::size_t>(operand)];
      return one.inner == 0 && one.period == 1;
    };
    const Place& place = places[static_cast<std::size_t>(source.number)];
    out.bytes = place.bytes != nullptr;
    out.data = out.bytes ? static_cast<const void*>(place.bytes) : place.floats;
    out.same = !out.bytes && same(source.number);
    if (source.scale < 0) return out;
    out.scale = places[static_cast<std::size_t>(source.scale)].floats;
    out.zero = places[static_cast<std::size_t>(source.zero)].floats;
    out.same_scale = same(source.scale) && same(source.zero);
    return out;
  }

  void run(const Context& context, const Plan& plan, const Target& target) const {
    const Kernels& kernels = programs::kernels();
    // A block is several rows, or a part of one row. If possible, its size is a multiple of the step and of the operands'
    // periods.
    std::int64_t rows_at_once = std::clamp(block_size / plan.length, std::int64_t{1}, plan.rows), period = 1;
    for (const Operand& operand : plan.operands) {
      if (operand.period <= rows_at_once) period = std::max(period, operand.period);
    }
    const std::int64_t multiple = programs::step / std::gcd(programs::step, plan.length), both = std::lcm(multiple, period);
    if (rows_at_once >= both) {
      rows_at_once -= rows_at_once % both;
    } else if (rows_at_once > multiple) {
      rows_at_once -= rows_at_once % multiple;
    }
    const std::int64_t piece = std::min(plan.length, block_size), pieces = (plan.length + piece - 1) / piece;
    const std::int64_t blocks = (plan.rows + rows_at_once - 1) / rows_at_once * pieces;
    context.parallel_ranges(blocks, blocks_at_least, [&](std::int64_t first, std::int64_t last) {
      const auto buffers = static_cast<std::size_t>(most_operands + program_.buffers + 1);
      const std::unique_ptr<float[]> memory(new float[buffers * buffer_size]);
      const auto buffer = [&](int i) { return memory.get() + i * buffer_size; };
      std::array<Place, most_operands> from{};
      std::array<bool, most_operands> ready{};
      std::array<std::int64_t, most_operands> filled;  // the row that each buffer contains
      filled.fill(-1);
      std::array<Step, most_instructions> steps{};
      for (std::int64_t block = first; block < last; ++block) {
        const std::int64_t row = block / pieces * rows_at_once, column = block % pieces * piece;
        const std::int64_t rows = std::min(rows_at_once, plan.rows - row), length = std::min(piece, plan.length - column);
        const std::int64_t count = rows * length, padded = up(count), at = row * plan.length + column;
        for (int k = 0; k < most_operands; ++k) {
          const auto i = static_cast<std::size_t>(k);
          const Operand& operand = plan.operands[i];
          if (!program_.used[i] || ready[i]) continue;
          const bool floats = operand.input.type() == Type::float32;
          if (operand.inner == 1 && (operand.whole || rows == 1) && !program_.zeros[i]) {
            const std::int64_t place_of = operand.whole ? at : place(plan, operand, row) + column;
            if (place_of + padded <= operand.input.size()) {
              from[i] = floats ? Place{operand.input.data<float>() + place_of, nullptr}
                               : Place{nullptr, operand.input.data<std::uint8_t>() + place_of};
              const char* const next = floats ? reinterpret_cast<const char*>(from[i].floats + padded)
                                              : reinterpret_cast<const char*>(from[i].bytes + padded);
              const std::int64_t bytes = padded * (floats ? static_cast<std::int64_t>(sizeof(float)) : 1);
              for (std::int64_t ahead = 0; ahead < bytes; ahead += line_bytes) SPECOPS_PREFETCH(next + ahead);
              continue;
            }
          }
          from[i] = {buffer(k), nullptr};
          // Kernels read whole vectors.
          std::fill_n(buffer(k) + count, padded - count, 0.0f);
          if (operand.whole) {
            copy(kernels, operand, at, count, buffer(k));
            continue;
          }
          // Elements that are the same in all blocks are copied once.
          if (rows == 1 && operand.inner == 0 && pieces > 1) {
            if (filled[i] != row) copy(kernels, operand, place(plan, operand, row), piece, buffer(k));
            filled[i] = row;
            continue;
          }
          const bool once = rows_at_once % operand.period == 0 && (operand.inner == 0 || pieces == 1);
          copy_rows(kernels, plan, operand, row, once ? rows_at_once : rows, column, once ? piece : length, buffer(k));
          ready[i] = once;
        }
        for (const Chain& chain : program_.chains) {
          const bool is_last = &chain == &program_.chains.back(), quantized = is_last && target.quantized;
          const auto step_count = static_cast<int>(chain.instructions.size());
          for (int i = 0; i < step_count; ++i) {
            const Instruction& one = chain.instructions[static_cast<std::size_t>(i)];
            Step& step = steps[static_cast<std::size_t>(i)];
            step.code = one.code;
            for (std::size_t j = 0; j < one.arguments.size(); ++j) step.arguments[j] = argument(plan, one.arguments[j], from, memory.get());
          }
          // Results beyond the end of the block would overwrite others.
          const bool direct = is_last && padded == count;
          const std::int64_t size = quantized ? 1 : static_cast<std::int64_t>(sizeof(float));
          char* const final_to = target.to + at * size;
          void* const to = direct ? static_cast<void*>(final_to)
                                  : buffer(most_operands + (is_last ? program_.buffers : chain.to));
          kernels.compute({steps.data(), step_count, padded, to, quantized, target.factor, target.zero});
          if (is_last && !direct) std::memcpy(final_to, to, static_cast<std::size_t>(count * size));
        }
      }
    });
  }

  Program program_;
};

}  // namespace

const Op& elementwise() {
  constexpr Type any = Type::undefined;
  const std::vector<Type> both = {Type::uint8, Type::float32};
  static const Op op = {
      "Elementwise",
      {{"X0", false, both}, {"zero_point"}, {"scale", true, {Type::float32}}, {"X1", true, both}, {"X2", true, both},
       {"X3", true, both}, {"X4", true, both}, {"X5", true, both}, {"X6", true, both}, {"X7", true, both}, {"X8", true, both},
       {"X9", true, both}},
      {{"Y"}},
      {Attribute::string("program")},
      {{{any, Type::uint8, any, any, any, any, any, any, any, any, any, any}, {Type::uint8}},
       {{any, Type::float32, any, any, any, any, any, any, any, any, any, any}, {Type::float32}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<Elementwise>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
