// A model with a variable, which the caller passes from run to run.
//
//     stateful MODEL.onnx [LIBRARY]
//
// A variable of the OpenVINO model is an additional input with the initial value as its default, and an output with the same
// name and the suffix ".next". The first run omits the input; later runs feed the previous output. (The metadata
// "onnx_specops.variables" has the same information as JSON.)
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "values.h"

namespace {

// The session's variables: input -> output.
std::map<std::string, std::string> variables_of(const Ort::Session& session) {
  Ort::AllocatorWithDefaultOptions allocator;
  std::set<std::string> outputs;
  for (std::size_t i = 0; i < session.GetOutputCount(); ++i) {
    outputs.insert(session.GetOutputNameAllocated(i, allocator).get());
  }
  std::map<std::string, std::string> variables;
  for (std::size_t i = 0; i < session.GetOverridableInitializerCount(); ++i) {
    const std::string input = session.GetOverridableInitializerNameAllocated(i, allocator).get();
    if (outputs.count(input + ".next")) variables[input] = input + ".next";
  }
  return variables;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 2) {
    std::cerr << "stateful MODEL.onnx [LIBRARY]\n";
    return 2;
  }
  // (Errors only, because ONNX Runtime warns about inputs with defaults, which variables need.)
  Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "stateful");
  Ort::SessionOptions options;
  options.RegisterCustomOpsLibrary(std::filesystem::path(count > 2 ? arguments[2] : ONNX_SPECOPS_LIBRARY).c_str());
  Ort::Session session(env, std::filesystem::path(arguments[1]).c_str(), options);
  const auto variables = variables_of(session);

  examples::Values held;  // empty: the initial values apply
  for (int step = 0; step < 4; ++step) {
    examples::Values inputs;
    const float x = static_cast<float>(step);
    inputs.add("event", {1, 4}, std::vector<float>{1 - x, 0.5f * x, -0.25f, x * x / 4});
    examples::print(inputs);
    for (std::size_t i = 0; i < held.names().size(); ++i) inputs.add(held.names()[i], std::move(held.values()[i]));

    std::vector<std::string> wanted{"interest"};
    for (const auto& [input, output] : variables) wanted.push_back(output);
    examples::Values results = examples::run(session, inputs, wanted);
    examples::print(results);
    held = examples::Values();
    std::size_t i = 1;
    for (const auto& variable : variables) held.add(variable.first, std::move(results.values()[i++]));
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
