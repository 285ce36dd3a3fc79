#!/usr/bin/env python3
"""Which room may open which door: reads the #include lines of src/, include/, cli/, c/, python/ and fails on an arrow that is not in the table.

A room may include its own headers, its page of include/gearshift, and those of the rooms in its row. `pages` are rooms whose
public page alone is open. Usage: rooms_test.py [ROOT]
"""
import os, re, sys

ROOT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))

# room: (rooms it may include, rooms of which it may include the page only)
DOORS = {
    "base": (set(), set()),
    "format": ({"base"}, set()),
    "device": ({"base"}, set()),
    "checkpoint": ({"base", "format"}, set()),
    "layer": ({"base", "format", "checkpoint"}, {"routing"}),
    "kernel": ({"base", "format", "device"}, {"layer", "gearshift_plugin"}),
    "gearshift_plugin": (set(), set()),
    "routing": ({"base"}, {"checkpoint"}),  # a page of layer that kernels do not see
    "store": ({"base"}, {"layer"}),
    "plan": ({"base", "format", "device", "layer", "kernel", "store"}, {"routing"}),
    "prepare": ({"base", "format", "device", "checkpoint", "layer", "kernel", "plan"}, {"store"}),
    "run": ({"base", "format", "device", "checkpoint", "layer", "kernel", "plan", "prepare"}, {"store"}),
    "moe": ({"base", "format", "device", "checkpoint", "layer", "kernel", "plan", "prepare", "run"}, {"store", "routing"}),
    "measure": ({"base", "format", "device", "checkpoint", "layer", "kernel", "store", "plan", "prepare", "run", "moe"}, {"routing"}),
    "quantize": ({"base", "format", "checkpoint", "layer"}, set()),
    "pipeline": ({"base", "format", "device", "checkpoint", "layer", "kernel", "store", "plan", "prepare", "run", "moe", "measure", "quantize"}, {"routing"}),
    "report": ({"base"}, {"device", "checkpoint", "layer", "kernel", "store", "plan", "prepare", "run", "moe", "measure", "quantize", "pipeline"}),
    "gearshift": (set(), set()),
    "python": ({"gearshift"}, set()),
    "c": ({"base", "report", "gearshift"}, {"device", "checkpoint", "layer", "kernel", "store", "plan", "prepare", "run", "moe", "measure", "quantize", "pipeline"}),
    "cli": ({"base", "report"}, {"device", "checkpoint", "layer", "kernel", "store", "plan", "prepare", "run", "moe", "measure", "quantize", "pipeline"}),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
FORBIDDEN_ON_PAGES = re.compile(r'^\s*#\s*include\s+[<"](nlohmann|fmt|CLI|pcre2)')


def room_of(path):
    """The room a file belongs to: its folder under src/, its page's name, or cli."""
    parts = os.path.relpath(path, ROOT).split(os.sep)
    if parts[0] == "src":
        return parts[1]
    if parts[0] == "include":
        return os.path.splitext(parts[-1])[0]
    return parts[0]


def violations(path, text):
    """Lines of `text` (the file at `path`) that open a door the table does not have."""
    room = room_of(path)
    rooms, pages = DOORS[room]
    for number, line in enumerate(text.splitlines(), 1):
        if path.startswith(os.path.join(ROOT, "include")) and FORBIDDEN_ON_PAGES.match(line):
            yield f"{os.path.relpath(path, ROOT)}:{number}: a public page includes a third-party header: {line.strip()}"
        found = INCLUDE.match(line)
        if not found:
            continue
        target = found.group(1)
        page = target.startswith("gearshift/")
        other = os.path.splitext(target.split("/")[1])[0] if page else target.split("/")[0] if "/" in target else room
        if other == room or other in rooms or (page and other in pages):
            continue
        yield f"{os.path.relpath(path, ROOT)}:{number}: {room} must not include {target}"


def main() -> int:
    files = [os.path.join(folder, name) for top in ("src", "include", "cli", "c", "python")
             for folder, _, names in os.walk(os.path.join(ROOT, top)) for name in names if name.endswith((".h", ".cpp", ".inc"))]
    unknown = {room_of(f) for f in files} - set(DOORS)
    if unknown:
        print("rooms without a row in the table:", *sorted(unknown))
        return 1
    # The check itself: a door that opens the wrong way must be seen.
    probe = list(violations(os.path.join(ROOT, "src", "layer", "probe.cpp"), '#include "plan/select.h"\n#include "base/text.h"\n'))
    if len(probe) != 1:
        print("the check does not see a forbidden include:", probe)
        return 1
    bad = [v for f in sorted(files) for v in violations(f, open(f, encoding="utf-8").read())]
    print(*bad, sep="\n")
    print(f"{len(files)} files, {len(bad)} doors that open the wrong way")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
