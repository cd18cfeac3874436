// Creates ORT's custom ops from the descriptions in ops.h, and defines the exported functions.
#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <new>

#include "description.h"
#include "ops.h"
#include "stay_loaded.h"

#if defined(_WIN32)
#define SPECOPS_EXPORT __declspec(dllexport)
#else
#define SPECOPS_EXPORT __attribute__((visibility("default")))
#endif

namespace specops {
namespace {

constexpr const char* domain_name = "onnx_specops";

// Runs `body` and converts exceptions to a status, because no exception may reach ORT.
template <class Body>
abi::OrtStatus* guarded(const abi::Api& api, const char* op_name, const Body& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Error& error) {
    try {
      return api.CreateStatus(abi::ORT_INVALID_ARGUMENT, text(op_name, ": ", error.what()).c_str());
    } catch (...) {
      return api.CreateStatus(abi::ORT_FAIL, "out of memory");
    }
  } catch (const std::bad_alloc&) {
    return api.CreateStatus(abi::ORT_FAIL, "out of memory");
  } catch (const std::exception& error) {
    return api.CreateStatus(abi::ORT_FAIL, error.what());
  } catch (...) {
    return api.CreateStatus(abi::ORT_FAIL, "unknown error");
  }
}

// An operator with one of its signatures.
struct CustomOp : abi::OrtCustomOp {
  CustomOp(const Runtime& ort, const Op& description, const Signature& types, bool may_infer);

  const Runtime& runtime;
  const Op& op;
  const Signature& signature;
};

const CustomOp& self(const abi::OrtCustomOp* op) { return *static_cast<const CustomOp*>(op); }

struct Instance {
  const Runtime& runtime;
  const char* op_name;
  std::unique_ptr<Kernel> kernel;
};

// Checks types that the signatures do not restrict.
void check_types(const Op& op, const KernelInfo& info) {
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const std::vector<Type>& types = op.inputs[i].any_of;
    const Type given = types.empty() ? Type::undefined : info.input_type(i);
    if (given == Type::undefined || std::find(types.begin(), types.end(), given) != types.end()) continue;
    std::string names;
    for (const Type type : types) names.append(names.empty() ? "" : ", ").append(name(type));
    fail(op.inputs[i].name, " has the element type ", name(given), "; expected one of ", names);
  }
}

abi::OrtStatus* SPECOPS_ORT_CALL create(const abi::OrtCustomOp* raw, const abi::OrtApi*, const abi::OrtKernelInfo* info,
                                        void** kernel) {
  const CustomOp& op = self(raw);
  *kernel = nullptr;
  return guarded(op.runtime, op.op.name, [&] {
    const KernelInfo node(op.runtime, info, op.op);
    check_types(op.op, node);
    auto instance = std::make_unique<Instance>(Instance{op.runtime, op.op.name, op.op.create(node)});
    *kernel = instance.release();
  });
}

abi::OrtStatus* SPECOPS_ORT_CALL compute(void* kernel, abi::OrtKernelContext* context) {
  const Instance& instance = *static_cast<const Instance*>(kernel);
  return guarded(instance.runtime, instance.op_name, [&] {
    Context run(instance.runtime, context);
    instance.kernel->compute(run);
  });
}

void SPECOPS_ORT_CALL destroy(void* kernel) { delete static_cast<Instance*>(kernel); }

abi::OrtStatus* SPECOPS_ORT_CALL infer(const abi::OrtCustomOp* raw, abi::OrtShapeInferContext* context) {
  const CustomOp& op = self(raw);
  return guarded(op.runtime, op.op.name, [&] {
    ShapeInference graph(op.runtime, context);
    op.op.infer(graph);
  });
}

CustomOp::CustomOp(const Runtime& ort, const Op& description, const Signature& types, bool may_infer)
    : abi::OrtCustomOp{}, runtime(ort), op(description), signature(types) {
  using abi::OrtCustomOp;
  version = abi::api_version;
  GetName = [](const OrtCustomOp* raw) { return self(raw).op.name; };
  GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
  GetInputTypeCount = [](const OrtCustomOp* raw) { return self(raw).op.inputs.size(); };
  GetOutputTypeCount = [](const OrtCustomOp* raw) { return self(raw).op.outputs.size(); };
  GetInputType = [](const OrtCustomOp* raw, std::size_t i) {
    return static_cast<abi::ONNXTensorElementDataType>(self(raw).signature.inputs[i]);
  };
  GetOutputType = [](const OrtCustomOp* raw, std::size_t i) {
    return static_cast<abi::ONNXTensorElementDataType>(self(raw).signature.outputs[i]);
  };
  GetInputCharacteristic = [](const OrtCustomOp* raw, std::size_t i) {
    return self(raw).op.inputs[i].optional ? abi::INPUT_OUTPUT_OPTIONAL : abi::INPUT_OUTPUT_REQUIRED;
  };
  GetOutputCharacteristic = [](const OrtCustomOp* raw, std::size_t i) {
    return self(raw).op.outputs[i].optional ? abi::INPUT_OUTPUT_OPTIONAL : abi::INPUT_OUTPUT_REQUIRED;
  };
  GetInputMemoryType = [](const OrtCustomOp*, std::size_t) { return abi::OrtMemTypeDefault; };
  GetVariadicInputMinArity = [](const OrtCustomOp*) { return 0; };
  GetVariadicInputHomogeneity = [](const OrtCustomOp*) { return 0; };
  GetVariadicOutputMinArity = [](const OrtCustomOp*) { return 0; };
  GetVariadicOutputHomogeneity = [](const OrtCustomOp*) { return 0; };
  CreateKernelV2 = create;
  KernelComputeV2 = compute;
  KernelDestroy = destroy;
  if (op.infer != nullptr && may_infer) InferOutputShapeFn = infer;
}

// The objects of one ORT (a process may contain several). Never freed, because sessions refer to it.
struct Registration {
  Runtime runtime;
  std::vector<std::unique_ptr<CustomOp>> ops;
  abi::OrtCustomOpDomain* domain = nullptr;

  Registration(const abi::OrtApi* table, std::uint32_t version) : runtime(table, version) {}
};

// The interface version that an ORT supports: the second number of its release.
std::uint32_t served_version(const abi::OrtApiBase* base) {
  unsigned major = 0, minor = 0;
  const bool known = std::sscanf(base->GetVersionString(), "%u.%u", &major, &minor) == 2 && major == 1;
  return known ? minor : abi::api_version;
}

abi::OrtStatus* fill(Registration& registration, std::uint32_t version) {
  const Runtime& api = registration.runtime;
  // Before 1.24, ORT crashes on a node that omits an input in the middle if the op infers shapes. Without the function, ORT
  // takes the output's type from the signatures and its shape from the graph, if declared there.
  const bool survives = version >= 24;
  for (const Op* op : all_ops()) {
    if (op->is_fast != nullptr && !op->is_fast()) continue;
    bool may_infer = true;
    for (const Parameter& input : op->inputs) may_infer = may_infer && (survives || !input.optional);
    for (const Signature& signature : op->signatures) {
      registration.ops.push_back(std::make_unique<CustomOp>(api, *op, signature, may_infer));
    }
  }
  if (abi::OrtStatus* status = api.CreateCustomOpDomain(domain_name, &registration.domain)) return status;
  for (const auto& op : registration.ops) {
    if (abi::OrtStatus* status = api.CustomOpDomain_Add(registration.domain, op.get())) return status;
  }
  return nullptr;
}

}  // namespace
}  // namespace specops

// Called by ORT when this library is registered with a session's options. A second registration has no effect.
extern "C" SPECOPS_EXPORT specops::abi::OrtStatus* SPECOPS_ORT_CALL
RegisterCustomOps(specops::abi::OrtSessionOptions* options, const specops::abi::OrtApiBase* base) {
  using namespace specops;
  const abi::OrtApi* table = base->GetApi(abi::api_version);
  if (table == nullptr) {
    // Every version can create a status.
    if (const abi::OrtApi* old = base->GetApi(1)) {
      using Create = abi::OrtStatus*(SPECOPS_ORT_CALL*)(abi::OrtErrorCode, const char*);
      const auto create_status = reinterpret_cast<Create>(*reinterpret_cast<void* const*>(old));
      return create_status(abi::ORT_FAIL, "onnx_specops needs ONNX Runtime 1.17 or later");
    }
    return nullptr;
  }
  const std::uint32_t version = served_version(base);
  const abi::Api api(table, version);
  abi::OrtStatus* result = nullptr;
  abi::OrtStatus* failure = guarded(api, domain_name, [&] {
    static std::mutex mutex;
    static auto& registrations = *new std::map<const abi::OrtApi*, std::unique_ptr<Registration>>;
    const std::lock_guard<std::mutex> lock(mutex);
    std::unique_ptr<Registration>& registration = registrations[table];
    if (registration == nullptr) {
      auto fresh = std::make_unique<Registration>(table, version);
      result = fill(*fresh, version);
      if (result != nullptr) return;
      registration = std::move(fresh);
      stay_loaded();
    }
    result = registration->runtime.AddCustomOpDomain(options, registration->domain);
  });
  return failure != nullptr ? failure : result;
}

// The description of all operators in this library (see description.h), for tools and tests.
extern "C" SPECOPS_EXPORT const char* OnnxSpecopsOperators() {
  static const std::string json = specops::describe(specops::all_ops());
  return json.c_str();
}
