// The used part of ONNX Runtime's C interface, declared by hand so that building needs no ORT headers.
//
// The interface is append-only: a function keeps its slot in the table `OrtApi`, and a field its place in `OrtCustomOp`.
// Version 17 (ONNX Runtime 1.17) has everything required, and every later ORT supports it. Later functions are used if
// available. tests/onnx_specops/native/test_abi.py compares this file with the real header, as recorded in tests/data.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(_WIN32) && !defined(_WIN64)
#define SPECOPS_ORT_CALL __stdcall
#else
#define SPECOPS_ORT_CALL
#endif

namespace specops::abi {

constexpr std::uint32_t api_version = 17;

// Opaque objects of ORT.
struct OrtApi;
struct OrtSessionOptions;
struct OrtCustomOpDomain;
struct OrtKernelInfo;
struct OrtKernelContext;
struct OrtShapeInferContext;
struct OrtTensorTypeAndShapeInfo;
struct OrtTypeInfo;
struct OrtAllocator;
struct OrtValue;
struct OrtStatus;

enum OrtErrorCode : int {
  ORT_FAIL = 1,
  ORT_INVALID_ARGUMENT = 2,
};

// The numbers differ from ONNX's TensorProto.DataType in part.
enum ONNXTensorElementDataType : int {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 = 2,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 = 3,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16 = 4,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16 = 5,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 = 6,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 = 7,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING = 8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL = 9,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 = 10,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE = 11,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32 = 12,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64 = 13,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 = 16,
};

enum OrtMemType : int { OrtMemTypeDefault = 0 };

enum OrtCustomOpInputOutputCharacteristic : int {
  INPUT_OUTPUT_REQUIRED = 0,
  INPUT_OUTPUT_OPTIONAL = 1,
};

struct OrtApiBase {
  const OrtApi*(SPECOPS_ORT_CALL* GetApi)(std::uint32_t version);  // null: this ORT is older than `version`
  const char*(SPECOPS_ORT_CALL* GetVersionString)();
};

// An operator with one combination of types, in ORT's representation. The layout is fixed up to the last field, of version
// 17. ORT reads later fields only if `version` is higher.
struct OrtCustomOp {
  std::uint32_t version;
  void*(SPECOPS_ORT_CALL* CreateKernel)(const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*);
  const char*(SPECOPS_ORT_CALL* GetName)(const OrtCustomOp*);
  const char*(SPECOPS_ORT_CALL* GetExecutionProviderType)(const OrtCustomOp*);  // null: the CPU
  ONNXTensorElementDataType(SPECOPS_ORT_CALL* GetInputType)(const OrtCustomOp*, std::size_t index);
  std::size_t(SPECOPS_ORT_CALL* GetInputTypeCount)(const OrtCustomOp*);
  ONNXTensorElementDataType(SPECOPS_ORT_CALL* GetOutputType)(const OrtCustomOp*, std::size_t index);
  std::size_t(SPECOPS_ORT_CALL* GetOutputTypeCount)(const OrtCustomOp*);
  void(SPECOPS_ORT_CALL* KernelCompute)(void* kernel, OrtKernelContext*);
  void(SPECOPS_ORT_CALL* KernelDestroy)(void* kernel);
  OrtCustomOpInputOutputCharacteristic(SPECOPS_ORT_CALL* GetInputCharacteristic)(const OrtCustomOp*, std::size_t index);
  OrtCustomOpInputOutputCharacteristic(SPECOPS_ORT_CALL* GetOutputCharacteristic)(const OrtCustomOp*,
                                                                                  std::size_t index);
  OrtMemType(SPECOPS_ORT_CALL* GetInputMemoryType)(const OrtCustomOp*, std::size_t index);  // called since version 13
  int(SPECOPS_ORT_CALL* GetVariadicInputMinArity)(const OrtCustomOp*);                      // since 14
  int(SPECOPS_ORT_CALL* GetVariadicInputHomogeneity)(const OrtCustomOp*);
  int(SPECOPS_ORT_CALL* GetVariadicOutputMinArity)(const OrtCustomOp*);
  int(SPECOPS_ORT_CALL* GetVariadicOutputHomogeneity)(const OrtCustomOp*);
  OrtStatus*(SPECOPS_ORT_CALL* CreateKernelV2)(const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*,
                                               void** kernel);  // since 16: instead of CreateKernel
  OrtStatus*(SPECOPS_ORT_CALL* KernelComputeV2)(void* kernel, OrtKernelContext*);
  OrtStatus*(SPECOPS_ORT_CALL* InferOutputShapeFn)(const OrtCustomOp*, OrtShapeInferContext*);  // since 17; may be null
  int(SPECOPS_ORT_CALL* GetStartVersion)(const OrtCustomOp*);                                   // may be null
  int(SPECOPS_ORT_CALL* GetEndVersion)(const OrtCustomOp*);                                     // may be null
};

// The used functions: SLOT(number, result, name, parameters). A returned OrtStatus* is null on success; otherwise the caller
// owns it.
#define SPECOPS_ORT_FUNCTIONS(SLOT)                                                                                   \
  SLOT(0, OrtStatus*, CreateStatus, (OrtErrorCode code, const char* message))                                         \
  SLOT(2, const char*, GetErrorMessage, (const OrtStatus* status))                                                    \
  SLOT(26, OrtStatus*, CreateCustomOpDomain, (const char* domain, OrtCustomOpDomain** out))                           \
  SLOT(27, OrtStatus*, CustomOpDomain_Add, (OrtCustomOpDomain * domain, const OrtCustomOp* op))                       \
  SLOT(28, OrtStatus*, AddCustomOpDomain, (OrtSessionOptions * options, OrtCustomOpDomain * domain))                  \
  SLOT(48, OrtStatus*, CreateTensorAsOrtValue,                                                                        \
       (OrtAllocator * allocator, const std::int64_t* dimensions, std::size_t count, ONNXTensorElementDataType type,  \
        OrtValue** out))                                                                                              \
  SLOT(51, OrtStatus*, GetTensorMutableData, (OrtValue * value, void** out))                                          \
  SLOT(52, OrtStatus*, FillStringTensor, (OrtValue * value, const char* const* strings, std::size_t count))           \
  SLOT(53, OrtStatus*, GetStringTensorDataLength, (const OrtValue* value, std::size_t* bytes))                        \
  SLOT(54, OrtStatus*, GetStringTensorContent,                                                                        \
       (const OrtValue* value, void* bytes, std::size_t byte_count, std::size_t* offsets, std::size_t offset_count))  \
  SLOT(55, OrtStatus*, CastTypeInfoToTensorInfo,                                                                      \
       (const OrtTypeInfo* info, const OrtTensorTypeAndShapeInfo** out)) /* part of `info`; null: no tensor */        \
  SLOT(57, OrtStatus*, CreateTensorTypeAndShapeInfo, (OrtTensorTypeAndShapeInfo * *out))                              \
  SLOT(58, OrtStatus*, SetTensorElementType, (OrtTensorTypeAndShapeInfo * info, ONNXTensorElementDataType type))      \
  SLOT(59, OrtStatus*, SetDimensions,                                                                                 \
       (OrtTensorTypeAndShapeInfo * info, const std::int64_t* dimensions, std::size_t count))                         \
  SLOT(60, OrtStatus*, GetTensorElementType, (const OrtTensorTypeAndShapeInfo* info, ONNXTensorElementDataType* out)) \
  SLOT(61, OrtStatus*, GetDimensionsCount, (const OrtTensorTypeAndShapeInfo* info, std::size_t* out))                 \
  SLOT(62, OrtStatus*, GetDimensions,                                                                                 \
       (const OrtTensorTypeAndShapeInfo* info, std::int64_t* dimensions, std::size_t count))                          \
  SLOT(63, OrtStatus*, GetSymbolicDimensions,                                                                         \
       (const OrtTensorTypeAndShapeInfo* info, const char** names, std::size_t count))                                \
  SLOT(65, OrtStatus*, GetTensorTypeAndShape, (const OrtValue* value, OrtTensorTypeAndShapeInfo** out))               \
  SLOT(78, OrtStatus*, GetAllocatorWithDefaultOptions, (OrtAllocator * *out)) /* ORT keeps it */                      \
  SLOT(85, OrtStatus*, KernelInfoGetAttribute_float, (const OrtKernelInfo* info, const char* name, float* out))         \
  SLOT(86, OrtStatus*, KernelInfoGetAttribute_int64,                                                                  \
       (const OrtKernelInfo* info, const char* name, std::int64_t* out))                                              \
  SLOT(87, OrtStatus*, KernelInfoGetAttribute_string,                                                                 \
       (const OrtKernelInfo* info, const char* name, char* out, std::size_t* size))                                   \
  SLOT(88, OrtStatus*, KernelContext_GetInputCount, (const OrtKernelContext* context, std::size_t* out))              \
  SLOT(90, OrtStatus*, KernelContext_GetInput,                                                                        \
       (const OrtKernelContext* context, std::size_t index, const OrtValue** out))                                    \
  SLOT(91, OrtStatus*, KernelContext_GetOutput,                                                                       \
       (OrtKernelContext * context, std::size_t index, const std::int64_t* dimensions, std::size_t count,             \
        OrtValue** out))                                                                                              \
  SLOT(93, void, ReleaseStatus, (OrtStatus * status))                                                                 \
  SLOT(96, void, ReleaseValue, (OrtValue * value))                                                                    \
  SLOT(98, void, ReleaseTypeInfo, (OrtTypeInfo * info))                                                               \
  SLOT(99, void, ReleaseTensorTypeAndShapeInfo, (OrtTensorTypeAndShapeInfo * info))                                   \
  SLOT(127, OrtStatus*, GetStringTensorElementLength,                                                                 \
       (const OrtValue* value, std::size_t index, std::size_t* bytes))                                                \
  SLOT(128, OrtStatus*, GetStringTensorElement,                                                                       \
       (const OrtValue* value, std::size_t bytes, std::size_t index, void* out))                                      \
  SLOT(234, OrtStatus*, KernelInfo_GetInputTypeInfo,                                                                  \
       (const OrtKernelInfo* info, std::size_t index, OrtTypeInfo** out))                                             \
  SLOT(249, OrtStatus*, KernelInfoGetConstantInput_tensor,                                                            \
       (const OrtKernelInfo* info, std::size_t index, int* is_constant, const OrtValue** out))                        \
  SLOT(252, OrtStatus*, GetResizedStringTensorElementBuffer,                                                          \
       (OrtValue * value, std::size_t index, std::size_t bytes, char** out))                                          \
  SLOT(267, OrtStatus*, ShapeInferContext_GetInputCount, (const OrtShapeInferContext* context, std::size_t* out))     \
  SLOT(268, OrtStatus*, ShapeInferContext_GetInputTypeShape,                                                          \
       (const OrtShapeInferContext* context, std::size_t index, OrtTensorTypeAndShapeInfo** out)) /* ORT keeps it */  \
  SLOT(270, OrtStatus*, ShapeInferContext_SetOutputTypeShape,                                                         \
       (const OrtShapeInferContext* context, std::size_t index, const OrtTensorTypeAndShapeInfo* info))               \
  SLOT(271, OrtStatus*, SetSymbolicDimensions,                                                                        \
       (OrtTensorTypeAndShapeInfo * info, const char** names, std::size_t count))                                     \
  SLOT(274, OrtStatus*, KernelContext_ParallelFor,                                                                    \
       (const OrtKernelContext* context, void (*call)(void* data, std::size_t index), std::size_t total,              \
        std::size_t batches, void* data))

// The functions of version 24.
#define SPECOPS_ORT_FUNCTIONS_24(SLOT)                                                                                \
  SLOT(414, OrtStatus*, GetTensorElementTypeAndShapeDataReference,                                                    \
       (const OrtValue* value, ONNXTensorElementDataType* type, const std::int64_t** dimensions, /* ORT keeps them */ \
        std::size_t* count))

// The functions above by name, from ORT's table; null if the version lacks them.
class Api {
 public:
  Api(const OrtApi* table, std::uint32_t version) {
    void* const* slots = reinterpret_cast<void* const*>(table);
#define SPECOPS_TAKE(number, result, name, parameters) \
  name = reinterpret_cast<result(SPECOPS_ORT_CALL*) parameters>(slots[number]);
    SPECOPS_ORT_FUNCTIONS(SPECOPS_TAKE)
    if (version >= 24) {
      SPECOPS_ORT_FUNCTIONS_24(SPECOPS_TAKE)
    }
#undef SPECOPS_TAKE
  }

#define SPECOPS_DECLARE(number, result, name, parameters) result(SPECOPS_ORT_CALL* name) parameters = nullptr;
  SPECOPS_ORT_FUNCTIONS(SPECOPS_DECLARE)
  SPECOPS_ORT_FUNCTIONS_24(SPECOPS_DECLARE)
#undef SPECOPS_DECLARE
};

}  // namespace specops::abi
