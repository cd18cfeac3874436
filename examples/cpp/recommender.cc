// A recommender with string ids: the inputs are texts about a visitor, the outputs are recommendations.
//
//     recommender MODEL.onnx [LIBRARY]
#include <exception>
#include <filesystem>
#include <iostream>

#include "values.h"

namespace {

// Three visitors: one in the vocabulary, one without a history, and one outside the vocabulary.
examples::Values request() {
  examples::Values inputs;
  inputs.add("user", {3}, std::vector<std::string>{"user-0003", "user-0042", "użytkownik"});
  inputs.add("country", {3}, std::vector<std::string>{"CH", "DE", "??"});
  inputs.add("history", {4}, std::vector<std::string>{"film/01110", "film/04590", "film/02490", "film/00007"});
  inputs.add("history_offsets", {3}, std::vector<std::int64_t>{0, 3, 3});
  // Pools of fixed size, padded with weight 0.
  std::vector<std::string> recent(24, "film/00010");
  std::vector<float> recent_weights(24, 0.0f);
  for (int i = 0; i < 6; ++i) {
    recent[i] = "film/0" + std::to_string(1000 + 10 * i);
    recent_weights[i] = 1.0f - 0.125f * static_cast<float>(i);
  }
  inputs.add("recent", {24}, recent);
  inputs.add("recent_offsets", {3}, std::vector<std::int32_t>{0, 2, 4});
  inputs.add("recent_weights", {24}, recent_weights);
  std::vector<std::int64_t> tags(16, 0);
  std::vector<float> tag_weights(16, 0.0f);
  for (int i = 0; i < 5; ++i) {
    tags[i] = 7 * i + 2;
    tag_weights[i] = 0.5f;
  }
  inputs.add("tags", {16}, tags);
  inputs.add("tag_offsets", {3}, std::vector<std::int64_t>{0, 2, 3});
  inputs.add("tag_weights", {16}, tag_weights);
  const std::vector<std::string> films{"film/00120", "film/03360", "film/02490", "film/04110", "film/00381", "film/04990"};
  std::vector<std::string> candidates;
  for (int visitor = 0; visitor < 3; ++visitor) candidates.insert(candidates.end(), films.begin(), films.end());
  inputs.add("candidates", {3, 6}, candidates);
  inputs.add("context", {3, 6},
             std::vector<float>{14, 21, -0.5f, -1, -0.75f, 0.25f, 3, 8, 0.5f, 0, 1, 0, 23, 30, 0, 0.125f, -1, 0.5f});
  inputs.add("shown", {3, 2}, std::vector<std::int32_t>{0, 3, 1, 1, 5, 2});
  inputs.add("ratings", {3, 2}, std::vector<float>{4.5f, 2, 3, 3.5f, 1, 5});
  inputs.add("seen", {3, 1}, std::vector<std::int64_t>{4, 0, -1});
  return inputs;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 2) {
    std::cerr << "recommender MODEL.onnx [LIBRARY]\n";
    return 2;
  }
  Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "recommender");
  Ort::SessionOptions options;
  // ONNX Runtime unloads the library after the session. (Paths have type wchar_t on Windows.)
  options.RegisterCustomOpsLibrary(std::filesystem::path(count > 2 ? arguments[2] : ONNX_SPECOPS_LIBRARY).c_str());
  Ort::Session session(env, std::filesystem::path(arguments[1]).c_str(), options);

  const examples::Values inputs = request();
  examples::print(inputs);
  examples::print(examples::run(session, inputs, {"user_ids", "scores", "best_items", "best_probabilities", "slate"}));
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
