"""What a type checker sees of the package: read by mypy, never run."""
from __future__ import annotations

from typing import Any

import gearshift


def use(model: str, x: Any) -> list[str]:
    plan: gearshift.Plan = gearshift.plan(model, batch=[1, 16], linear_backend={"": "native", "fp8_w8a8": "emulation"}, strict=False)
    with gearshift.Linear.from_checkpoint(model, "name", plan) as layer:
        y = layer(x, stream=0)
        facts: tuple[int, int, str] = (layer.n, layer.k, layer.dtype)
    gearshift.Linear.from_tensors(x, x, scheme={"quant_method": "fp8"}, dtype="fp32")
    gearshift.Linear.from_float(x, scheme="NVFP4", input_amax=4.0)
    report: gearshift.Report = gearshift.verify(model, progress=lambda done, total, what: print(done, total, what))
    gearshift.bench(shape=(4096, 4096), family="nvfp4_w4a4", batch=1)
    names = [str(device["name"]) for device in gearshift.devices()]
    try:
        gearshift.Store("file").merge(gearshift.Store())
    except gearshift.UsageError as error:
        names.append(error.hint + error.details[0])
    return [*names, plan.hash, str(plan.diff(plan)), str(report.passed), str(facts), str(y)]
