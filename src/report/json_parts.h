// Pieces that several documents share. Each writes one value.
#pragma once

#include "gearshift/pipeline.h"
#include "report/json_writer.h"

namespace gearshift {

void write_device(JsonWriter& json, const DeviceProfile& device);
void write_build(JsonWriter& json);
// The beginning of the document of a verb that runs something: schema, device, build and the hash of the plan.
void begin_document(JsonWriter& json, std::string_view schema, const Plan& plan);
void write_scheme(JsonWriter& json, const LayerSpec& layer);
void write_warnings(JsonWriter& json, const std::vector<Warning>& warnings);
void write_quarantined(JsonWriter& json, const std::vector<Quarantine>& quarantined);
void write_stack(JsonWriter& json, const std::vector<StackTime>& stack);
// The members of one measured row, inside an open object.
void write_measurement(JsonWriter& json, const Measurement& row);
void write_measurements(JsonWriter& json, const std::vector<Measurement>& rows);
// The members of a measured row behind the name of its layer or shape, into an open object. Where nothing `ran`, every
// number that a run would give is null.
void write_measured_members(JsonWriter& json, const Measurement& measurement, bool ran = true);
// Upper bounds: 0 in the data means "none" and becomes null.
void write_bound(JsonWriter& json, std::string_view key, int64_t bound);

}  // namespace gearshift
