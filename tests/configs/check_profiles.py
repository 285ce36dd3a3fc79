#!/usr/bin/env python3
"""Plan every example configuration for many devices with one registry; a plan, or an error that says why there is none.

    check_profiles.py GEARSHIFT [--registry vllm] [--only REGEX] [--every-device]

Exit 0: every row has one kernel for every batch size, a verdict for every candidate, and a reason for each. Exit 3: every
layer group that nothing serves is listed with every candidate's reason. Exit 4: only where the configuration cannot be
loaded on any device. Anything else is a failure. The last line names the slowest command, from its start to its end.
--every-device: all that `gearshift devices` knows, not one of each kind.
"""
import argparse, json, os, re, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIGS = os.path.join(HERE, "..", "data", "configs")
DEVICES = ("sm_75 sm_80 sm_89 sm_90 sm_100 sm_103 sm_110 sm_120 sm_121 gfx942 gfx950 gfx1100 gfx1201 xpu avx2 amx cpu").split()
STAGES = {"policy", "build", "device", "layer", "self_check", "rank"}


def faults_of_plan(plan):
    for row in plan["layers"]:
        chosen = {k["kernel"] for k in row["kernels"]}
        verdicts = {c["kernel"]: c for c in row["candidates"]}
        if row["kernels"][0]["m_min"] != 1 or row["kernels"][-1]["m_max"] is not None:
            yield f"{row['name']}: batch sizes without a kernel"
        if chosen != {name for name, c in verdicts.items() if c["verdict"] == "selected"}:
            yield f"{row['name']}: {sorted(chosen)} serve, others are called selected"
        for name, c in verdicts.items():
            if not c["reason"] or c["stage"] not in STAGES:
                yield f"{row['name']}: {name}: no reason or no stage"
        if row["runnable"]:
            yield f"{row['name']}: a kernel of another engine is called runnable"


def faults_of_refusal(text):
    lines = text.splitlines()
    if not lines or not lines[0].startswith("gearshift: error: "):
        yield "no error line"
        return
    groups = [i for i, line in enumerate(lines) if re.match(r"  \S", line)]
    if not groups:
        yield "no layer group listed"
    for first, last in zip(groups, groups[1:] + [len(lines)]):
        reasons = lines[first + 1:last]
        if not reasons:
            yield f"{lines[first].strip()}: no candidate's reason"
        for line in reasons:
            if not re.match(r"    \S+: .|    no kernel is registered for ", line):
                yield f"no reason: {line}"


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("gearshift")
    ap.add_argument("--registry", default="vllm")
    ap.add_argument("--only", default="")
    ap.add_argument("--every-device", action="store_true")
    args = ap.parse_args()

    devices = DEVICES
    if args.every_device:
        known = json.loads(subprocess.run([args.gearshift, "devices", "--json"], check=True, stdout=subprocess.PIPE).stdout)["devices"]
        devices = list(dict.fromkeys((d["aliases"] or [d["arch"]])[0] for d in known if not d["present"]))
    runs, counts, faults, slowest = 0, {}, [], (0, "")
    for file in sorted(os.listdir(CONFIGS)):
        if not file.endswith(".expect.json") or not re.search(args.only, file):
            continue
        with tempfile.TemporaryDirectory() as tmp:
            model = os.path.join(tmp, "model")
            subprocess.run([sys.executable, os.path.join(HERE, "make_stub_checkpoint.py"), os.path.join(CONFIGS, file), model, "--headers-only"], check=True)
            codes = {}
            for device in devices:
                start = time.perf_counter()
                run = subprocess.run([args.gearshift, "plan", model, "--registry", args.registry, "--device", device, "--json"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
                runs += 1
                where = f"{file[:-12]} on {device}"
                slowest = max(slowest, (1e3 * (time.perf_counter() - start), where))
                codes[device] = code = run.returncode
                counts[code] = counts.get(code, 0) + 1
                if code == 0:
                    found = list(faults_of_plan(json.loads(run.stdout)))
                elif code == 3:
                    found = list(faults_of_refusal(run.stderr)) + (["standard output is not empty"] if run.stdout else [])
                else:
                    found = [] if code == 4 else [f"exit {code}: {run.stderr.strip()[:300]}"]
                faults += [f"{where}: {fault}" for fault in found]
            if 4 in codes.values() and set(codes.values()) != {4}:
                faults.append(f"{file[:-12]}: exit 4 on some devices only: {codes}")
    print(*faults[:40], sep="\n")
    print(f"{runs} plans: " + ", ".join(f"{n} with exit {code}" for code, n in sorted(counts.items())) +
          f"; {len(faults)} faults; the slowest took {slowest[0]:.0f} ms: {slowest[1]}")
    return 1 if faults or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
