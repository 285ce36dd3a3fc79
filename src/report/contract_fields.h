// A contract as rows of (field, value): only what it restricts, in the order in which it is checked.
#pragma once

#include <string>
#include <vector>

#include "gearshift/kernel.h"

namespace gearshift {

struct ContractField {
  std::string name;
  std::vector<std::string> values;  // any one of these; of packages and facts all
};
std::vector<ContractField> contract_fields(const Kernel& kernel);
// "as the checkpoint" or "16-bit": which activations enter the product.
std::string_view activation_use_word(ActivationUse use);

}  // namespace gearshift
