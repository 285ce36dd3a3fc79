#!/usr/bin/env python3
"""Plan every entry of a folder of configurations and compare: make_stub_checkpoint.py, the command, check_plan.py.

    check_configs.py GEARSHIFT [FOLDER] [--only REGEX] [--headers-only] [--dtypes last]

GEARSHIFT is the command; FOLDER is tests/data/configs unless given; --only takes the entries whose name or container matches.
Prints the differences and a last line `N of M entries without a difference`; exits 1 when one has any.
"""
import argparse, json, os, re, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("gearshift")
    ap.add_argument("folder", nargs="?", default=os.path.join(HERE, "..", "data", "configs"))
    ap.add_argument("--only", default="")
    ap.add_argument("--headers-only", action="store_true")
    ap.add_argument("--dtypes", choices=("first", "last"), default="first")
    args = ap.parse_args()

    good = total = 0
    for file in sorted(os.listdir(args.folder)):
        if not file.endswith(".expect.json"):
            continue
        path = os.path.join(args.folder, file)
        with open(path, encoding="utf-8") as f:
            expect = json.load(f)
        if not re.search(args.only, expect["name"]) and not re.search(args.only, expect["container"]):
            continue
        with tempfile.TemporaryDirectory() as tmp:
            model, plan = os.path.join(tmp, "model"), os.path.join(tmp, "plan.json")
            subprocess.run([sys.executable, os.path.join(HERE, "make_stub_checkpoint.py"), path, model, "--dtypes", args.dtypes,
                            *(["--headers-only"] if args.headers_only else [])], check=True)
            with open(plan, "wb") as out:
                try:
                    run = subprocess.run([args.gearshift, "plan", model, "--no-fuse", "--json"], stdout=out, stderr=subprocess.PIPE, timeout=60)
                    code, said = run.returncode, run.stderr.decode(errors="replace")
                except subprocess.TimeoutExpired:
                    code, said = 124, "no answer within 60 s"
                except OSError as e:
                    ap.error(f"{args.gearshift}: {e.strerror}")
            check = subprocess.run([sys.executable, os.path.join(HERE, "check_plan.py"), path, plan, str(code)], stdout=subprocess.PIPE, text=True)
        total, good = total + 1, good + (check.returncode == 0)
        print(f"{expect['name']}: {check.stdout.splitlines()[-1]}")
        if check.returncode:
            print(*("  " + line for line in check.stdout.splitlines()[:-1]), sep="\n")
            print("  " + said.strip()[:300])
    print(f"{good} of {total} entries without a difference")
    return 0 if total and good == total else 1


if __name__ == "__main__":
    sys.exit(main())
