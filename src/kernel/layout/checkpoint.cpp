// Layouts in which nothing is packed here: `checkpoint`, the stored bytes as they are mapped, and `engine`, what another
// engine makes of them.
#include "gearshift/kernel.h"

namespace gearshift {

const Layout checkpoint_layout{"checkpoint", 1, [](const LayerSpec&) -> int64_t { return 0; },
                               [](const LayerWeights&, uint8_t*, int) {},
                               [](const LayerSpec&, const uint8_t*, uint8_t*, uint8_t*) {}};
const Layout engine_layout{"engine", 1, checkpoint_layout.bytes, checkpoint_layout.pack, checkpoint_layout.unpack};

}  // namespace gearshift
