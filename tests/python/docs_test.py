#!/usr/bin/env python3
"""The Python programs of README.md and docs/python.md run as they stand. Usage: docs_test.py ROOT"""
import os
import re
import subprocess
import sys
import tempfile

root = os.path.abspath(sys.argv[1])
programs = 0
for page in ("README.md", "docs/python.md"):
    with open(os.path.join(root, page), encoding="utf-8") as file:
        blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)
    if not blocks:
        sys.exit(f"{page}: no Python program")
    # Blocks of a page are read from top to bottom: later ones use what earlier ones made. What needs PyTorch says so.
    have_torch = subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0
    program = "\n".join(block for block in blocks if have_torch or "torch" not in block)
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(root, "examples"), os.path.join(folder, "examples"))
        run = subprocess.run([sys.executable, "-"], input=program, text=True, cwd=folder, capture_output=True)
    programs += len(blocks)
    if not have_torch:
        print(f"{page}: {sum('torch' in block for block in blocks)} programs left out, because PyTorch is not installed")
    if run.returncode != 0:
        sys.exit(f"{page}: exit {run.returncode}\n{run.stdout[-2000:]}\n{run.stderr[-4000:]}")
print(f"{programs} programs")
