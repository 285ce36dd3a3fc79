#!/usr/bin/env python3
"""Times a Hugging Face decoder with Gearshift's linear layers against the same one in bf16: prefill, and each decoded token.

    python examples/decoder/generate.py --scheme NVFP4A16 --device cuda
    python examples/decoder/generate.py --hidden 256 --layers 2 --device cpu --dtype float32 --steps 4     # a small one, to try it

Weights are made up (times do not depend on them), so the text means nothing; the logits of the prompt are compared instead. Gearshift
runs under two plans: `static`, by the priority lists alone with one kernel for all batch sizes, and `measured`, a kernel for each
batch range as `gearshift tune` found it here. Needs PyTorch and transformers.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from typing import Any, List, Tuple

import gearshift
import gearshift.torch
import torch
from transformers import LlamaConfig, LlamaForCausalLM

Times = Tuple[float, float, torch.Tensor]


def made_up(given: argparse.Namespace) -> Any:
    config = LlamaConfig(
        hidden_size=given.hidden, intermediate_size=given.intermediate or 7 * given.hidden // 2, num_hidden_layers=given.layers,
        num_attention_heads=max(1, given.hidden // 128), num_key_value_heads=max(1, given.hidden // 512), vocab_size=given.vocabulary,
        max_position_embeddings=given.prompt + given.steps + 1, tie_word_embeddings=False,
    )  # fmt: skip
    torch.manual_seed(0)
    return LlamaForCausalLM(config).to(getattr(torch, given.dtype)).eval()


def now(device: str) -> float:
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter()


@torch.inference_mode()
def generate(model: Any, prompt: torch.Tensor, steps: int) -> Times:
    """Milliseconds of the prefill and of a decoded token (medians), and the logits behind the prompt."""
    device = str(prompt.device)
    prefills: List[float] = []
    tokens: List[float] = []
    logits = torch.empty(0)
    for _ in range(3):  # the first one warms up
        begin = now(device)
        out = model(prompt, use_cache=True)
        prefills.append(now(device) - begin)
        logits, cache, token = out.logits[:, -1].float(), out.past_key_values, out.logits[:, -1:].argmax(-1)
        for _ in range(steps):
            begin = now(device)
            out = model(token, past_key_values=cache, use_cache=True)
            tokens.append(now(device) - begin)
            cache, token = out.past_key_values, out.logits[:, -1:].argmax(-1)
    return 1e3 * min(prefills[1:]), 1e3 * statistics.median(tokens[steps:]), logits


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--scheme", default="NVFP4A16")
    arguments.add_argument("--device", default="cuda")
    arguments.add_argument("--dtype", default="bfloat16")
    arguments.add_argument("--hidden", type=int, default=4096)
    arguments.add_argument("--intermediate", type=int)
    arguments.add_argument("--layers", type=int, default=8)
    arguments.add_argument("--vocabulary", type=int, default=32000)
    arguments.add_argument("--batch", type=int, default=1, help="sequences")
    arguments.add_argument("--prompt", type=int, default=512, help="tokens of each")
    arguments.add_argument("--steps", type=int, default=32, help="tokens to decode")
    given = arguments.parse_args()
    batch = [given.batch, given.batch * given.prompt]
    dtype = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[given.dtype]

    with tempfile.TemporaryDirectory() as folder:
        stored, quantized = os.path.join(folder, "float"), os.path.join(folder, "quantized")
        store = os.path.join(folder, "store.sqlite")
        model = made_up(given)
        model.save_pretrained(stored)
        gearshift.quantize(stored, quantized, given.scheme)
        # Modules of Hugging Face are not fused.
        options: dict[str, Any] = {"device": given.device, "dtype": dtype, "fuse": False, "store": store, "batch": batch}
        tuned = gearshift.tune(quantized, **options)
        prompt = torch.randint(given.vocabulary, (given.batch, given.prompt), device=given.device)

        print(f"{given.layers} layers of {given.hidden}, {given.scheme}, {given.batch} x {given.prompt} tokens, on {given.device}")
        print(f"{tuned['measured']} races of kernels measured for the second plan\n")
        print("| linear layers | prefill | token | cosine of logits | kernels |")
        print("|---|---:|---:|---:|---|")
        model = model.to(given.device)
        prefill, token, reference = generate(model, prompt, given.steps)
        print(f"| {given.dtype} (PyTorch) | {prefill:.2f} ms | {token:.2f} ms | 1 | |")
        for name, more in (("static", {"selection": "static", "single_kernel": True}), ("measured", {"selection": "measured"})):
            del model
            model = made_up(given).to(given.device)
            with gearshift.plan(quantized, **{**options, **more}) as plan:
                kernels = sorted({r["kernel"] for row in plan.layers for r in row["kernels"]})
                gearshift.torch.replace_linears(model, plan)
            prefill, token, logits = generate(model, prompt, given.steps)
            cosine = torch.nn.functional.cosine_similarity(logits, reference).min().item()
            print(f"| {name} | {prefill:.2f} ms | {token:.2f} ms | {cosine:.4f} | {', '.join(kernels)} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
