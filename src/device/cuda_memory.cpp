// Device memory, and graphs of recorded work.
#include <utility>

#include "base/text.h"
#include "device/cuda.h"

#ifdef GEARSHIFT_CUDA_TARGETS
#include <cuda_runtime_api.h>
#endif

namespace gearshift {

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

#ifdef GEARSHIFT_CUDA_TARGETS

namespace {

ErrorInfo cuda_error(cudaError_t status, std::string_view doing) {
  (void)cudaGetLastError();
  ErrorInfo error;
  error.code = ErrorCode::runtime;
  error.subject = "CUDA, " + std::string(doing);
  error.found = std::string(cudaGetErrorName(status)) + ": " + cudaGetErrorString(status);
  error.wanted = "success";
  if (status == cudaErrorMemoryAllocation)
    error.hint = "the device's memory is full: smaller batches or fewer layers need less";
  return error;
}

Result<void> checked(cudaError_t status, std::string_view doing) {
  if (status == cudaSuccess) return {};
  return cuda_error(status, doing);
}

}  // namespace

Result<DeviceBuffer> DeviceBuffer::allocate(size_t bytes) {
  DeviceBuffer buffer;
  if (bytes == 0) return buffer;
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status != cudaSuccess) return cuda_error(status, "allocating " + format_bytes(bytes));
  buffer.data_ = static_cast<uint8_t*>(memory);
  buffer.size_ = bytes;
  return buffer;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) (void)cudaFree(data_);
}

Result<void> DeviceBuffer::write(const void* from, size_t bytes) {
  if (bytes == 0) return {};
  return checked(cudaMemcpy(data_, from, bytes, cudaMemcpyHostToDevice), "copying to the device");
}

Result<void> DeviceBuffer::read(void* to, size_t bytes) const {
  if (bytes == 0) return {};
  return checked(cudaMemcpy(to, data_, bytes, cudaMemcpyDeviceToHost), "copying from the device");
}

Result<void> use_device(const DeviceProfile& device) {
  if (device.platform != Platform::cuda) return {};
  return checked(cudaSetDevice(device.index), "choosing " + device.name);
}

namespace cuda {

uint64_t free_bytes() {
  size_t free = 0, all = 0;
  return cudaMemGetInfo(&free, &all) == cudaSuccess ? free : 0;
}

Result<void> fill(void* device, uint8_t byte, size_t bytes) {
  if (bytes == 0) return {};
  return checked(cudaMemset(device, byte, bytes), "filling memory");
}

Result<void> copy(void* to, const void* from, size_t bytes) {
  return checked(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice), "copying on the device");
}

Result<void> copy_rows(void* to, size_t to_stride, const void* from, size_t from_stride, size_t bytes, size_t rows) {
  return checked(cudaMemcpy2D(to, to_stride, from, from_stride, bytes, rows, cudaMemcpyDefault), "copying rows");
}

Result<void> synchronize() { return checked(cudaDeviceSynchronize(), "waiting for the device"); }

Result<Graph> Graph::capture(const std::function<void(void*)>& body) {
  Graph graph;
  cudaStream_t stream = nullptr;
  if (const auto status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); status != cudaSuccess)
    return cuda_error(status, "making a stream");
  graph.stream_ = stream;
  cudaEvent_t begin = nullptr, end = nullptr;
  if (cudaEventCreate(&begin) != cudaSuccess || cudaEventCreate(&end) != cudaSuccess)
    return cuda_error(cudaGetLastError(), "making events");
  graph.begin_ = begin;
  graph.end_ = end;
  if (const auto status = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal); status != cudaSuccess)
    return cuda_error(status, "starting a capture");
  body(stream);
  cudaGraph_t recorded = nullptr;
  if (const auto status = cudaStreamEndCapture(stream, &recorded); status != cudaSuccess)
    return cuda_error(status, "capturing a launch");
  graph.graph_ = recorded;
  cudaGraphExec_t executable = nullptr;
  if (const auto status = cudaGraphInstantiate(&executable, recorded, 0); status != cudaSuccess)
    return cuda_error(status, "making a graph");
  graph.executable_ = executable;
  return graph;
}

Graph::Graph(Graph&& other) noexcept { *this = std::move(other); }

Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(stream_, other.stream_);
  std::swap(graph_, other.graph_);
  std::swap(executable_, other.executable_);
  std::swap(begin_, other.begin_);
  std::swap(end_, other.end_);
  return *this;
}

Graph::~Graph() {
  if (executable_ != nullptr) (void)cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable_));
  if (graph_ != nullptr) (void)cudaGraphDestroy(static_cast<cudaGraph_t>(graph_));
  if (begin_ != nullptr) (void)cudaEventDestroy(static_cast<cudaEvent_t>(begin_));
  if (end_ != nullptr) (void)cudaEventDestroy(static_cast<cudaEvent_t>(end_));
  if (stream_ != nullptr) (void)cudaStreamDestroy(static_cast<cudaStream_t>(stream_));
}

Result<double> Graph::replay_us() {
  const auto stream = static_cast<cudaStream_t>(stream_);
  const auto begin = static_cast<cudaEvent_t>(begin_), end = static_cast<cudaEvent_t>(end_);
  cudaError_t status = cudaEventRecord(begin, stream);
  if (status == cudaSuccess) status = cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable_), stream);
  if (status == cudaSuccess) status = cudaEventRecord(end, stream);
  if (status == cudaSuccess) status = cudaEventSynchronize(end);
  float milliseconds = 0;
  if (status == cudaSuccess) status = cudaEventElapsedTime(&milliseconds, begin, end);
  if (status != cudaSuccess) return cuda_error(status, "replaying a graph");
  return double{milliseconds} * 1e3;
}

}  // namespace cuda

#else

namespace {

ErrorInfo no_cuda_code() {
  ErrorInfo error;
  error.code = ErrorCode::runtime;
  error.subject = "CUDA";
  error.found = "a build without CUDA code";
  error.wanted = "one with it";
  error.hint = "install the CUDA toolkit (12.8 or newer), configure again and rebuild";
  return error;
}

}  // namespace

Result<DeviceBuffer> DeviceBuffer::allocate(size_t bytes) {
  if (bytes == 0) return DeviceBuffer();
  return no_cuda_code();
}
DeviceBuffer::~DeviceBuffer() = default;
Result<void> DeviceBuffer::write(const void*, size_t bytes) {
  if (bytes == 0) return {};
  return no_cuda_code();
}
Result<void> DeviceBuffer::read(void*, size_t bytes) const {
  if (bytes == 0) return {};
  return no_cuda_code();
}
Result<void> use_device(const DeviceProfile& device) {
  if (device.platform != Platform::cuda) return {};
  return no_cuda_code();
}

namespace cuda {

uint64_t free_bytes() { return 0; }
Result<void> fill(void*, uint8_t, size_t) { return no_cuda_code(); }
Result<void> copy(void*, const void*, size_t) { return no_cuda_code(); }
Result<void> copy_rows(void*, size_t, const void*, size_t, size_t, size_t) { return no_cuda_code(); }
Result<void> synchronize() { return no_cuda_code(); }
Result<Graph> Graph::capture(const std::function<void(void*)>&) { return no_cuda_code(); }
Graph::Graph(Graph&& other) noexcept { *this = std::move(other); }
Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(graph_, other.graph_);
  return *this;
}
Graph::~Graph() = default;
Result<double> Graph::replay_us() { return no_cuda_code(); }

}  // namespace cuda

#endif

}  // namespace gearshift
