#include "layer/architecture/model_builder.h"

namespace gearshift {
namespace {

// Ten times what the largest published models have.
constexpr size_t kMaxModules = 500'000;
constexpr int64_t kMaxRows = int64_t{1} << 31;

}  // namespace

ModelBuilder::ModelBuilder(const ModelConfig& config, ExpertCounts* counts)
    : config_(config),
      numbers_(config.config->find("text_config"), config.config.get(), "config.json: "),
      counts_(counts) {
  hidden_ = numbers_.size("hidden_size");
}

void ModelBuilder::fail(ErrorInfo error) {
  if (!failed()) error_ = std::move(error);
}

void ModelBuilder::add(FloatModule module) {
  if (failed()) return;
  module.draft = module.draft || draft_;
  if (modules_.size() + unnamed_ >= kMaxModules) {
    fail({ErrorCode::damaged_checkpoint,
          "config.json",
          "layers and experts that make more than " + std::to_string(kMaxModules) + " modules",
          "the sizes of a model",
          "num_hidden_layers times the number of experts is too large",
          {}});
  } else if (module.n < 1 || module.k < 1 || module.n >= kMaxRows || module.k >= kMaxRows) {
    fail({ErrorCode::damaged_checkpoint,
          "config.json: " + module.name,
          "a shape of " + std::to_string(module.n) + " x " + std::to_string(module.k),
          "1 to 2147483647 rows and columns",
          "the sizes in the config do not belong together",
          {}});
  } else {
    modules_.push_back(std::move(module));
  }
}

void ModelBuilder::linear(std::string name, int64_t n, int64_t k, bool bias) {
  FloatModule module;
  module.name = std::move(name);
  module.n = n;
  module.k = k;
  module.bias = bias;
  add(std::move(module));
}

void ModelBuilder::attention(const std::string& prefix, const Attention& attention) {
  const int64_t q = attention.heads * attention.head_dim, kv = attention.key_value_heads * attention.head_dim;
  linear(prefix + "q_proj", attention.gated ? 2 * q : q, hidden_, attention.qkv_bias);
  linear(prefix + "k_proj", kv, hidden_, attention.qkv_bias);
  if (!attention.keys_are_values) linear(prefix + "v_proj", kv, hidden_, attention.qkv_bias);
  linear(prefix + "o_proj", hidden_, q, attention.output_bias);
}

void ModelBuilder::gated_mlp(const std::string& prefix, int64_t intermediate, bool bias) {
  linear(prefix + "gate_proj", intermediate, hidden_, bias);
  linear(prefix + "up_proj", intermediate, hidden_, bias);
  linear(prefix + "down_proj", hidden_, intermediate, bias);
}

void ModelBuilder::experts(const std::string& prefix, int64_t count, int64_t intermediate, bool bias) {
  const int64_t added = experts_to_add(prefix + "experts", count);
  for (int64_t i = 0; i < added && !failed(); ++i)
    gated_mlp(prefix + "experts." + std::to_string(i) + ".", intermediate, bias);
}

int64_t ModelBuilder::experts_to_add(const std::string& container, int64_t count) {
  // Numbers that are absurd are refused as the modules are added.
  if (counts_ == nullptr || count < 2 || count > static_cast<int64_t>(kMaxModules)) return count;
  counts_->emplace(container, count);
  unnamed_ += 2 * static_cast<size_t>(count - 1);
  return 1;
}

void ModelBuilder::expert_stacks(const std::string& prefix, int64_t count, int64_t intermediate, bool bias,
                                 bool transposed) {
  FloatModule stack;
  stack.experts = count;
  stack.bias = bias;
  stack.transposed = transposed;
  stack.name = prefix + "experts.gate_up_proj";
  stack.n = 2 * intermediate;
  stack.k = hidden_;
  add(stack);
  stack.name = prefix + "experts.down_proj";
  stack.n = hidden_;
  stack.k = intermediate;
  add(std::move(stack));
}

void ModelBuilder::embedding_and_head(const std::string& embedding, const std::string& head, bool tied,
                                      int64_t vocabulary) {
  const int64_t rows = vocabulary > 0 ? numbers_.size("vocab_size", vocabulary) : numbers_.size("vocab_size");
  linear(embedding, rows, hidden_);
  FloatModule output;
  output.name = head;
  output.n = rows;
  output.k = hidden_;
  if (tied) output.tied_to = embedding;
  add(std::move(output));
}

Result<std::vector<FloatModule>> ModelBuilder::finish() {
  if (numbers_.failed()) return numbers_.error();
  if (error_) return *std::move(error_);
  return std::move(modules_);
}

ModelBuilder::Attention usual_attention(ModelBuilder& model, int64_t head_dim) {
  ConfigNumbers& numbers = model.numbers();
  ModelBuilder::Attention attention;
  attention.heads = numbers.count("num_attention_heads");
  attention.key_value_heads = numbers.count("num_key_value_heads", attention.heads);
  if (head_dim == 0 && numbers.find("head_dim") == nullptr && model.hidden() % attention.heads != 0) {
    numbers.fail("num_attention_heads", std::to_string(attention.heads),
                 "a divisor of hidden_size " + std::to_string(model.hidden()) + ", or a head_dim");
  }
  attention.head_dim = numbers.size("head_dim", head_dim > 0 ? head_dim : model.hidden() / attention.heads);
  return attention;
}

std::string layer_prefix(const std::string& layers, int64_t index) {
  return layers + "." + std::to_string(index) + ".";
}

}  // namespace gearshift
