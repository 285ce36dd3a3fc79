#include "checkpoint/file_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace gearshift {
namespace {

constexpr std::string_view kConvert = "convert the weights to safetensors first";
constexpr FileKind kGguf{"a GGUF file (llama.cpp)", "GGUF is not loaded; use the safetensors files of the same model",
                         ErrorCode::unsupported_scheme};
constexpr FileKind kPickled{"pickled weights (PyTorch)", kConvert, ErrorCode::unsupported_scheme};
constexpr FileKind kHdf5{"an HDF5 file", kConvert, ErrorCode::unsupported_scheme};
constexpr FileKind kWebPage{
    "a web page", "the server answered with a page instead of the file; download it again, logged in if need be",
    ErrorCode::damaged_checkpoint};

struct Magic {
  std::string_view bytes;
  FileKind kind;
};
using namespace std::string_view_literals;
constexpr std::array kMagics = {
    Magic{"version https://git-lfs"sv,
          {"a Git LFS pointer, not the file itself", "run `git lfs pull`, or download the file",
           ErrorCode::damaged_checkpoint}},
    Magic{"GGUF"sv, kGguf},
    Magic{"PK\x03\x04"sv, kPickled},  // torch.save writes a zip archive
    Magic{"\x80\x02"sv, kPickled},    // the opcode PROTO of pickle, versions 2 to 5
    Magic{"\x80\x03"sv, kPickled},
    Magic{"\x80\x04"sv, kPickled},
    Magic{"\x80\x05"sv, kPickled},
    Magic{"\x89HDF\r\n\x1a\n"sv, kHdf5},
    Magic{"\x93NUMPY"sv, {"a NumPy array", kConvert, ErrorCode::unsupported_scheme}},
    Magic{"\x1f\x8b"sv, {"a gzip archive", "unpack it first", ErrorCode::damaged_checkpoint}},
    Magic{"<!DOCTYPE"sv, kWebPage},
    Magic{"<!doctype"sv, kWebPage},
    Magic{"<html"sv, kWebPage},
    Magic{"<HTML"sv, kWebPage},
    Magic{"<?xml"sv, kWebPage},
    Magic{"{\""sv,
          {"JSON text", "a safetensors file starts with the length of its header", ErrorCode::damaged_checkpoint}},
    Magic{"\0\0\0\0\0\0\0\0"sv,
          {"a file of zeros, as an unfinished download leaves it", "download the file again",
           ErrorCode::damaged_checkpoint}},
};

std::string_view as_text(ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace

std::optional<FileKind> kind_from_bytes(ByteView head) {
  const std::string_view text = as_text(head);
  for (const Magic& magic : kMagics) {
    if (text.starts_with(magic.bytes)) return magic.kind;
  }
  return std::nullopt;
}

std::optional<FileKind> unsupported_from_name(std::string_view file_name) {
  const std::string text = lower(file_name);
  if (text.ends_with(".gguf")) return kGguf;
  if (text.ends_with(".h5")) return kHdf5;
  for (const std::string_view extension : {".bin", ".pt", ".pth", ".ckpt", ".pkl"}) {
    if (text.ends_with(extension)) return kPickled;
  }
  return std::nullopt;
}

std::string show_head(ByteView head) {
  const ByteView first = head.first(std::min<size_t>(head.size(), 8));
  return fmt::format("{:02x} (\"{}\")", fmt::join(first, " "), printable(as_text(first)));
}

}  // namespace gearshift
