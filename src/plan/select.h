// One layer class under one request -> its decision. Pure, and the only place where a kernel is chosen.
#pragma once

#include "plan/gates.h"
#include "plan/requests.h"

namespace gearshift {

// What is left when nothing fast may run.
bool is_slow(const Kernel& kernel);

enum class FallbackKind : uint8_t {
  none,
  not_covered,  // the requested backend has no kernel in the list
  not_usable    // it has, and for some batch size all of them are ruled out
};

struct Selection {
  Decision decision;       // its ranges leave `unserved` open
  bool requested = false;  // a backend was asked for and the question was heard (see select)
  FallbackKind fallback = FallbackKind::none;
  BatchSet unserved;                     // batch sizes that no candidate serves
  bool unserved_by_quarantine = false;   // without quarantines there were none
  std::vector<std::string> quarantined;  // "KERNEL for M 17 and up: REASON", for each row that took something away
  bool passed_over = false;              // a line before the chosen ones was ruled out, and not by the request
  std::string bound_by;                  // the request that only kernels of its backend may serve, ""
  std::vector<std::string> not_kept;     // why the locked plan can't be kept here
};

// How many packed layouts a layer may have beside the checkpoint's own bytes.
enum class Layouts : uint8_t { one, any };

// `route` is the one that brought the layer to its family's list, or nullptr. A global request is not heard by
// unquantized layers whose list has no kernel of that backend: it speaks of quantized families.
// `locked` is what the locked plan says of the layer, or nullptr: its kernels take the place of the choice, and neither
// list order nor requests count.
Selection select(const LayerSpec& layer, const RequestRule& request, const ListRoute* route,
                 const SelectionContext& context, Layouts layouts = Layouts::one,
                 const RecordedLayer* locked = nullptr);

}  // namespace gearshift
