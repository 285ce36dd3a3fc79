#!/usr/bin/env python3
"""Plan every entry of a folder of configurations for every architecture that `gearshift devices` knows.

    check_devices.py GEARSHIFT [FOLDER]

A plan ends with 0: our own lists always have a kernel. One of an entry that is to be refused ends with 4. Prints what ends otherwise and a last line `N plans, N wrong`; exits 1 when
any is.
"""
import argparse, json, os, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("gearshift")
    ap.add_argument("folder", nargs="?", default=os.path.join(HERE, "..", "data", "configs"))
    args = ap.parse_args()

    known = json.loads(subprocess.run([args.gearshift, "devices", "--json"], check=True, stdout=subprocess.PIPE).stdout)["devices"]
    archs = list(dict.fromkeys(device["arch"] for device in known))
    plans = wrong = 0
    for file in sorted(os.listdir(args.folder)):
        if not file.endswith(".expect.json"):
            continue
        path = os.path.join(args.folder, file)
        with open(path, encoding="utf-8") as f:
            expect = json.load(f)
        refused = expect["verdict"] == "refuse"
        with tempfile.TemporaryDirectory() as tmp:
            model = os.path.join(tmp, "model")
            subprocess.run([sys.executable, os.path.join(HERE, "make_stub_checkpoint.py"), path, model, "--headers-only"], check=True)
            for arch in archs:
                done = subprocess.run([args.gearshift, "plan", model, "--device", arch, "--json", "-q"], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, timeout=60)
                good = 4 if refused else 0
                document = json.loads(done.stdout) if done.returncode == 0 else None
                ok = done.returncode == good and (document is None or document["device"]["arch"] == arch) and (document is not None or done.stdout == b"")
                plans, wrong = plans + 1, wrong + (not ok)
                if not ok:
                    print(f"{expect['name']} on {arch}: exit {done.returncode}: {done.stderr.decode(errors='replace').strip()[:300]}")
    print(f"{plans} plans, {wrong} wrong")
    return 0 if plans and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
