#!/usr/bin/env python3
"""libgearshift.so exports what gearshift.h declares, and nothing else. Usage: symbols_test.py NM LIBRARY HEADER"""
import re, subprocess, sys

nm, library, header = sys.argv[1:]
lines = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout.splitlines()
exported = {line.split()[-1].split("@")[0] for line in lines}
declared = set(re.findall(r"^GEARSHIFT_API [^(;]*?(gearshift_\w+)\(", open(header, encoding="utf-8").read(), re.M))
for name in sorted(exported - declared):
    print(f"exported and not declared: {name}")
for name in sorted(declared - exported):
    print(f"declared and not exported: {name}")
print(f"{len(exported)} exported, {len(declared)} declared")
sys.exit(exported != declared or not declared)
