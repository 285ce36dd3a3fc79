#!/usr/bin/env python3
"""Runs `gearshift bench` and keeps its document with what a reader needs to repeat it: date, command, driver, clocks.

Usage: bench/record.py OUT.json GEARSHIFT bench-options...
       bench/record.py bench/results/amd-epyc.json build/release/gearshift --shape 4096,4096 --family nvfp4_w4a4
"""
import datetime, json, os, platform, re, shlex, subprocess, sys


def first_line(path):
    try:
        with open(path) as f:
            return f.readline().strip()
    except OSError:
        return None


def clocks():
    """What governs the processor's clock, and what it showed when the run ended; null where the system does not say."""
    folder = "/sys/devices/system/cpu/cpu0/cpufreq/"
    with open("/proc/cpuinfo") as f:
        mhz = [float(m) for m in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", f.read(), re.M)]
    return {"governor": first_line(folder + "scaling_governor"), "max_khz": first_line(folder + "cpuinfo_max_freq"),
            "mhz_after": [round(min(mhz)), round(max(mhz))] if mhz else None}


def of_gpu(*questions):
    """Answers of nvidia-smi for the first GPU; None each where it has none."""
    asked = ["nvidia-smi", "--query-gpu=" + ",".join(questions), "--format=csv,noheader,nounits"]
    try:
        line = subprocess.run(asked, capture_output=True, text=True, timeout=60).stdout.split("\n")[0]
    except OSError:
        line = ""
    answers = [word.strip() for word in line.split(",")]
    return answers if len(answers) == len(questions) else [None] * len(questions)


def gpu_clocks():
    now, most, memory = (int(mhz) if mhz and mhz.isdigit() else None for mhz in of_gpu("clocks.sm", "clocks.max.sm", "clocks.mem"))
    return {"multiprocessor_mhz_after": now, "multiprocessor_mhz_max": most, "memory_mhz": memory}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    out, command, options = sys.argv[1], sys.argv[2], sys.argv[3:]
    done = subprocess.run([command, "bench", *options, "--json=-"], stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(done.returncode)
    document = json.loads(done.stdout)
    document["date"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    level = os.environ.get("GEARSHIFT_MAX_ISA")
    document["command"] = (f"GEARSHIFT_MAX_ISA={level} " if level else "") + shlex.join(["gearshift", "bench", *options])
    on_gpu = document["device"]["platform"] == "cuda"
    document["driver"] = of_gpu("driver_version")[0] if on_gpu else f"{platform.system()} {platform.release()}"
    document["clocks"] = gpu_clocks() if on_gpu else clocks()
    with open(out + ".part", "w") as f:
        json.dump(document, f, indent=1)
        f.write("\n")
    os.replace(out + ".part", out)


if __name__ == "__main__":
    main()
