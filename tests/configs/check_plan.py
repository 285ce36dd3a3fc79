#!/usr/bin/env python3
"""Compare `gearshift plan MODEL --no-fuse --json` with the expected schemes of one entry of tests/data/configs.

    check_plan.py NAME.expect.json PLAN.json [EXIT_CODE]

Prints one line per difference and a last line `N compared, N different`; exits 1 when something differs. An entry whose
verdict is "refuse" wants EXIT_CODE 4, or a plan that leaves the refused layers out with the warning `unknown_scheme`.
Not compared: modules that `unsure_modules` names, embeddings, and N and K where the release's shape is not known.
"""
import json, sys

EMBEDDINGS = ("embed_tokens", "embed", "tok_embeddings")


def family(m):
    """The priority list that a module's scheme leads to (the table in design/cli.md)."""
    weight, group, activation = m["weight"], m["group"], m["activation"]
    if weight == "float":
        return "bf16"
    if weight == "e2m1":
        return "mxfp4" if group == 32 else "nvfp4_w4a16" if not activation else "nvfp4_w4a4" if activation["format"] == "e2m1" else "w4a8"
    if weight in ("e2m3", "e3m2"):
        return "mxfp6"
    if weight in ("e4m3", "e5m2"):
        return "mxfp8" if group == 32 else "w8a16_fp8" if not activation else "fp8_block_w8a8" if activation["granularity"] == "token_group" else "fp8_w8a8"
    return "mixed_precision" if not activation else "int8_w8a8" if weight == activation["format"] == "int8" else "w4a8"


class Comparison:
    """Counts facts; a missing key or a wrong type is a difference, never an exception."""

    def __init__(self, name):
        self.name, self.compared, self.different = name, 0, 0

    def check(self, module, what, want, got):
        self.compared += 1
        if want != got or isinstance(want, bool) != isinstance(got, bool):
            self.different += 1
            print(f"{self.name}: {module}: {what}: expected {want!r}, got {got!r}")

    def close(self, note=""):
        print(f"{self.compared} compared, {self.different} different{note}")
        return 1 if self.different else 0


def at(d, *path):
    """d[path[0]][path[1]]..., or None where something is missing."""
    for key in path:
        d = d.get(key) if isinstance(d, dict) else None
    return d


def compare(expect, plan, c):
    rows = {row["name"]: row for row in plan["layers"] if isinstance(at(row, "name"), str)}
    unsure = expect.get("unsure_modules") or {}
    for module, m in expect["modules"].items():
        if module in unsure or module.rsplit(".", 1)[-1] in EMBEDDINGS:
            continue
        row = rows.get(module) or rows.get(m.get("hf_name", module))
        c.check(module, "present", True, row is not None)
        if row is None:
            continue
        if not any(t["shape"] is None or None in t["shape"] for t in m["tensors"].values()):
            c.check(module, "n", m["N"], row.get("n"))
            c.check(module, "k", m["K"], row.get("k"))
        c.check(module, "family", family(m), row.get("family"))
        c.check(module, "quantized", m["quantized"], at(row, "scheme", "quantized"))
        c.check(module, "weight.format", m["weight"], at(row, "scheme", "weight", "format"))
        want, got = m["activation"], at(row, "scheme", "activation")
        c.check(module, "activation", "quantized" if want else None, "quantized" if got else None)
        if not m["quantized"]:
            continue
        for key in ("bits", "group", "symmetric"):
            c.check(module, f"weight.{key}", m[key], at(row, "scheme", "weight", key))
        if want and got:
            for key in ("format", "granularity", "group"):
                c.check(module, f"activation.{key}", want.get(key), at(got, key))
            c.check(module, "activation.dynamic", bool(want["dynamic"]), at(got, "dynamic"))  # "local" is dynamic
    for module, m in expect.get("fused_3d", {}).items():
        row = rows.get(module)
        c.check(module, "present", True, row is not None)
        if row is None:
            continue
        experts, n = next(iter(m["tensors"].values()))["shape"][:2]
        for what, want, got in (("kind", "experts", row.get("kind")), ("experts", experts, row.get("experts")), ("n", n, row.get("n")), ("family", family(m), row.get("family")),
                                ("weight.format", m["weight"], at(row, "scheme", "weight", "format")), ("weight.group", m["group"], at(row, "scheme", "weight", "group"))):
            c.check(module, what, want, got)


def main() -> int:
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as f:
        expect = json.load(f)
    code = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    plan, problem = None, ""
    try:
        with open(sys.argv[2], encoding="utf-8") as f:
            plan = json.load(f)
    except (OSError, ValueError) as e:
        problem = f"{type(e).__name__}: {e}"
    c = Comparison(expect["name"])
    if expect["verdict"] == "refuse":
        warned = code == 0 and any(at(w, "code") == "unknown_scheme" for w in at(plan, "warnings") or [])
        c.check(expect.get("refuse_reason", "scheme"), "refused (exit 4, or the warning unknown_scheme)", True, code == 4 or warned)
        return c.close(f" (exit {code})")
    c.check("plan", "exit code", 0, code)
    c.check("plan", "a JSON document with layers", True, isinstance(at(plan, "layers"), list))
    if isinstance(at(plan, "layers"), list):
        compare(expect, plan, c)
    elif problem:
        print(f"{expect['name']}: {problem}")
    return c.close()


if __name__ == "__main__":
    sys.exit(main())
