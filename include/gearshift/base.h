// Results, errors, element types and byte views: the words every other page uses.
//
// Threads: everything here is a value; share const objects freely.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace gearshift {

// What kind of failure; decides the exit code of the command (exit_code below).
enum class ErrorCode : uint8_t {
  runtime,             // 1: the machine or the file system said no
  usage,               // 2: an option, name or argument is wrong
  no_kernel,           // 3: no registered kernel can serve a layer
  fallback_refused,    // 3: --strict and a requested backend does not serve a layer
  damaged_checkpoint,  // 4: a file is damaged or contradicts itself
  unsupported_scheme,  // 4: a scheme that is recognised and not loaded
  self_check           // 5: a kernel gave wrong numbers and no healthy one is left
};
int exit_code(ErrorCode code);
std::string_view name(ErrorCode code);

// One failure, as data. `message()` is one line: "subject: found ..., wanted ... (hint)"; empty fields are left out.
struct ErrorInfo {
  ErrorCode code = ErrorCode::runtime;
  std::string subject;               // file, tensor, layer or option concerned
  std::string found;                 // what is there
  std::string wanted;                // what should be there
  std::string hint;                  // what the user can do
  std::vector<std::string> details;  // a list that belongs to the error, one line each

  std::string message() const;
};

// Thrown only by Result<T>::value().
class Error : public std::exception {
 public:
  explicit Error(ErrorInfo info) : info_(std::move(info)), text_(info_.message()) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const ErrorInfo& info() const { return info_; }

 private:
  ErrorInfo info_;
  std::string text_;
};

// A value or the reason why there is none. Every fallible function returns one.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}             // NOLINT(google-explicit-constructor)
  Result(ErrorInfo error) : state_(std::in_place_index<1>, std::move(error)) {}     // NOLINT(google-explicit-constructor)
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  // REQUIRES: ok()
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  // REQUIRES: !ok()
  const ErrorInfo& error() const { return *std::get_if<1>(&state_); }
  T& value() & {
    if (!ok()) throw Error(error());
    return **this;
  }
  T&& value() && {
    if (!ok()) throw Error(error());
    return std::move(**this);
  }

 private:
  std::variant<T, ErrorInfo> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(ErrorInfo error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const ErrorInfo& error() const { return *error_; }
  void value() const {
    if (!ok()) throw Error(*error_);
  }

 private:
  std::optional<ErrorInfo> error_;
};

// Element types of stored tensors and of activations; the names are those of safetensors headers.
enum class DType : uint8_t {
  f64, f32, f16, bf16, f8_e4m3, f8_e5m2, f8_e8m0, f6_e2m3, f6_e3m2, f4, i64, i32, i16, i8, u64, u32, u16, u8, boolean
};
std::string_view name(DType dtype);                       // "F32", "BF16", "F8_E4M3" ...
std::optional<DType> parse_dtype(std::string_view name);  // the inverse; nullopt for an unknown name
int bits(DType dtype);                                    // bits of one element (4 for f4)

using Shape = std::vector<int64_t>;                  // outermost dimension first, C order
std::string to_string(const Shape& shape);           // "[64, 128]"
using ByteView = std::span<const uint8_t>;           // borrowed bytes; no alignment may be assumed

// A row-major matrix of activations or outputs that belongs to the caller: rows x cols elements of `dtype`
// (f32, f16 or bf16), `stride` elements from one row to the next (>= cols). rows may be 0, data is then not read.
struct ConstMatrix {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t rows = 0, cols = 0, stride = 0;
};
struct Matrix {
  void* data = nullptr;
  DType dtype = DType::f32;
  int64_t rows = 0, cols = 0, stride = 0;
};

}  // namespace gearshift
