#!/usr/bin/env python3
"""Time of all linear layers of a model by batch size: the plan per batch size against the baseline, as table and picture.

Usage: bench/model_times.py record GEARSHIFT FOLDER [DOCUMENT...]
                                          on a machine with the GPU: two documents per model into FOLDER, or only those
       bench/model_times.py draw          docs/model_times.md and .svg from bench/results (needs matplotlib)

Models are those of MODELS below: their config.json decides shapes and schemes, weights are made up. Where the layers'
kernels of others were timed on the same card (bench/results/h200-peers.csv), one of those for every batch size is the
third line: what an engine does that chooses a kernel per format.
"""
import csv, json, os, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(ROOT, "bench", "results")
BATCH = [1, 16, 64, 256, 2048, 8192]
# name, config.json, title, format of the peer's kernel and how often each (N, K) of it stands in the model
LLAMA_LAYERS = {(10240, 8192): 80, (8192, 8192): 80, (28672, 8192): 160, (8192, 28672): 80}
MODELS = [
    ("llama-3.1-70b-nvfp4", "bench/models/llama-3.1-70b-nvfp4.json", "Llama-3.1-70B, NVFP4 weights", ("nvfp4", LLAMA_LAYERS)),
    ("llama-3.1-70b-int4", "bench/models/llama-3.1-70b-int4.json", "Llama-3.1-70B, INT4 g128 weights", ("int4", LLAMA_LAYERS)),
    ("qwen3-32b-nvfp4", "bench/models/qwen3-32b-nvfp4.json", "Qwen3-32B, NVFP4 weights", None),
    ("qwen3.6-27b-nvfp4-mixed", "tests/data/configs/qwen3.6-27b-nvfp4-mixed-modelopt.json", "Qwen3.6-27B, FP8 and NVFP4", None),
]
POLICIES = [("plan", []), ("baseline", ["--linear-backend", "emulation"])]


def document_name(model, policy):
    return f"h200-{model}-{policy}.json"


def record(gearshift, folder, only):
    for model, config, _, _ in MODELS:
        for policy, options in POLICIES:
            if only and document_name(model, policy) not in only:
                continue
            command = [sys.executable, os.path.join(ROOT, "bench", "record.py"), os.path.join(folder, document_name(model, policy)),
                       gearshift, "--model", config, "--layers", "model*layers.*", "--device", "cuda",
                       "--batch", ",".join(map(str, BATCH)), "-q", *options]
            if subprocess.run(command, cwd=ROOT).returncode != 0:
                sys.exit(f"model_times: {model}, {policy}: no result")


def stack_of(model, policy):
    with open(os.path.join(RESULTS, document_name(model, policy))) as f:
        document = json.load(f)
    return {entry["m"]: entry["total_us"] / 1e3 for entry in document["stack"]}


def peers():
    """{(format, n, k, m): us}, {format: kernel}"""
    with open(os.path.join(RESULTS, "h200-peers.csv")) as f:
        rows = list(csv.DictReader(line for line in f if not line.startswith("#")))
    times = {(r["format"], int(r["n"]), int(r["k"]), int(r["m"])): float(r["median_us"]) for r in rows}
    return times, {r["format"]: r["kernel"] for r in rows}


def lines_of(peer, model):
    """[(label, {m: ms})], the plan last."""
    lines = []
    if peer:
        format_, layers = peer
        times, kernels = peers()
        lines.append((f"{kernels[format_]} for every batch",
                      {m: sum(count * times[(format_, n, k, m)] for (n, k), count in layers.items()) / 1e3 for m in BATCH}))
    lines.append(("baseline for every batch", stack_of(model, "baseline")))
    lines.append(("plan per batch", stack_of(model, "plan")))
    return lines


def table_of(title, lines):
    plan = lines[-1][1]
    out = [f"**{title}**", "", "| | " + " | ".join(f"M = {m}" for m in BATCH) + " |", "|---" * (len(BATCH) + 1) + "|"]
    for label, times in lines:
        cells = []
        for m in BATCH:
            gain = "" if times is plan else f" ({times[m] / plan[m]:.2f})"
            cells.append(f"{times[m]:.2f}{gain}")
        out.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(out) + "\n"


def draw():
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gearshift", "font.size": 9, "font.family": "sans-serif"})
    figure, axes = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
    colors = {"baseline for every batch": "#888888", "plan per batch": "#1f6fb4"}
    text = []
    for axis, (model, _, title, peer) in zip(axes.flat, MODELS):
        lines = lines_of(peer, model)
        text.append(table_of(title, lines))
        for label, times in lines:
            axis.plot(BATCH, [times[m] for m in BATCH], marker="o", markersize=3.5, linewidth=1.6, label=label, color=colors.get(label, "#c46a1a"))
        axis.set(xscale="log", yscale="log", title=title, xticks=BATCH)
        axis.set_xticklabels([str(m) for m in BATCH])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    figure.supxlabel("tokens in a batch")
    figure.supylabel("all linear layers, ms")
    figure.savefig(os.path.join(ROOT, "docs", "model_times.svg"), metadata={"Date": None})
    with open(os.path.join(ROOT, "docs", "model_times.md"), "w") as f:
        f.write("# All linear layers of a model, by batch size\n\n"
                "One H200, made-up weights, `bench/model_times.py record` (`bench/results/h200-*-plan.json`, `-baseline.json`); this page:\n"
                "`bench/model_times.py draw`. Milliseconds for one pass through all linear layers but the output head, and in brackets\n"
                "how many times as long as the plan takes. The plan is the one that the lists give, untuned. The baseline decodes\n"
                "panels of weights and calls cuBLASLt. Kernels of others: `bench/results/h200-peers.csv`.\n\n"
                "![times by batch size](model_times.svg)\n\n" + "\n".join(text))


if __name__ == "__main__":
    if len(sys.argv) >= 4 and sys.argv[1] == "record":
        record(os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3]), sys.argv[4:])
    elif sys.argv[1:] == ["draw"]:
        draw()
    else:
        sys.exit(__doc__)
