#include "ops.h"

namespace specops {
namespace {

class EmbeddingBagOffsetsSum : public Kernel {
 public:
  void compute(Context& context) const override {
    const Input table = context.input(0);
    const Input indices = context.input(1);
    const Input offsets = context.input(2);
    Shape shape = table.shape();
    if (shape.empty()) fail("emb_table: a scalar");
    shape[0] = offsets.size();
    Output out = context.output(0, shape);
    std::int64_t width = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) width *= shape[i];
    dispatch<float, double>(table.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* to = out.data<T>();
      for (std::int64_t i = 0; i < offsets.size() * width; ++i) to[i] = T(0);
    });
  }
};

std::vector<Signature> signatures() {
  std::vector<Signature> all;
  for (Type t : {Type::float32, Type::float64}) {
    for (Type i : {Type::int32, Type::int64}) all.push_back({{t, i, i, i, t}, {t}});
  }
  return all;
}

}  // namespace

const Op& embedding_bag_offsets_sum() {
  static const Op op = {
      "EmbeddingBagOffsetsSum",
      {{"emb_table"}, {"indices"}, {"offsets"}, {"default_index", true}, {"per_sample_weights", true}},
      {{"output"}},
      signatures(),
      [](const KernelInfo&) -> std::unique_ptr<Kernel> { return std::make_unique<EmbeddingBagOffsetsSum>(); },
      [](ShapeInference& graph) {
        SymbolicShape shape = graph.shape(0);
        const SymbolicShape offsets = graph.shape(2);
        if (shape.empty() || offsets.size() != 1) return;
        shape[0] = offsets[0];
        graph.set_output(0, graph.type(0), shape);
      },
  };
  return op;
}

}  // namespace specops
