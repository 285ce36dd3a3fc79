#!/usr/bin/env python3
"""Times a Hugging Face decoder with Gearshift's linear layers against the same one in bf16: prefill, and each decoded token.

    python examples/decoder/generate.py --scheme NVFP4A16 --device cuda --batch 1,16 --json times.json
    python examples/decoder/generate.py --hidden 256 --layers 2 --device cpu --dtype float32 --prompt 64 --steps 4     # a small one, to try it

Weights are made up (times do not depend on them), so the text means nothing; the logits of the prompt are compared instead. Gearshift
runs under two plans: `static`, by the priority lists alone with one kernel for all batch sizes, and `measured`, a kernel for each
batch range as `gearshift tune` found it here. On a GPU a step is timed twice: launched kernel by kernel, where Python decides the
time, and replayed from a CUDA graph. Needs PyTorch and transformers 5.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from typing import Any, Dict, List

import gearshift
import gearshift.torch
import torch
import transformers

Row = Dict[str, Any]


def made_up(given: argparse.Namespace) -> Any:
    config = transformers.LlamaConfig(
        hidden_size=given.hidden, intermediate_size=given.intermediate or 7 * given.hidden // 2, num_hidden_layers=given.layers,
        num_attention_heads=max(1, given.hidden // 128), num_key_value_heads=max(1, given.hidden // 512), vocab_size=given.vocabulary,
        max_position_embeddings=given.prompt + 2 * given.steps, tie_word_embeddings=False,
    )  # fmt: skip
    decoder: Any = transformers.LlamaForCausalLM
    torch.manual_seed(0)
    with torch.device(given.device):
        return decoder(config).to(getattr(torch, given.dtype)).eval()


# ---- generation


class Decoder:
    """A prompt and the tokens behind it, in memory that stays where it is, so that a CUDA graph can record a step."""

    def __init__(self, model: Any, prompt: torch.Tensor, longest: int) -> None:
        self.model, self.prompt = model, prompt
        self.cache = transformers.StaticCache(config=model.config, max_cache_len=longest)
        self.token = prompt[:, -1:].clone()
        self.logits = torch.empty(0)

    def prefill(self) -> torch.Tensor:
        self.advance(self.prompt)
        return self.logits[:, -1].float()

    def step(self) -> None:
        self.advance(self.token)

    def advance(self, tokens: torch.Tensor) -> None:
        self.logits = self.model(tokens, past_key_values=self.cache, use_cache=True, logits_to_keep=1).logits
        self.token.copy_(self.logits[:, -1:].argmax(-1))

    def recorded(self) -> Any:
        """The next step as a CUDA graph. Steps before it have warmed up; recording runs nothing."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        return graph


def now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def times_of(work: Any, count: int, device: torch.device) -> List[float]:
    """Milliseconds of each of `count` calls."""
    times = []
    for _ in range(count):
        begin = now(device)
        work()
        times.append(1e3 * (now(device) - begin))
    return times


@torch.inference_mode()
def generate(model: Any, prompt: torch.Tensor, steps: int) -> Row:
    """Times of the prefill and of a decoded token, and the logits behind the prompt."""
    device, longest = prompt.device, prompt.shape[1] + 2 * steps
    Decoder(model, prompt, longest).prefill()  # warms up
    prefills = [times_of(Decoder(model, prompt, longest).prefill, 1, device)[0] for _ in range(5)]
    eager = Decoder(model, prompt, longest)
    row: Row = {"logits": eager.prefill(), "prefill_ms": statistics.median(prefills)}
    times_of(eager.step, steps, device)
    row["token_ms"] = statistics.median(times_of(eager.step, steps, device))
    if device.type == "cuda":
        replayed = Decoder(model, prompt, longest)
        replayed.prefill()
        times_of(replayed.step, steps, device)
        graph = replayed.recorded()
        row["replayed_token_ms"] = statistics.median(times_of(graph.replay, steps, device))
        # The same steps, launched and replayed, end with the same logits.
        row["replayed_difference"] = (replayed.logits.float() - eager.logits.float()).abs().max().item()
    return row


# ---- the comparison


def kernels_at(layers: List[Dict[str, Any]], rows: int) -> List[str]:
    """What these layers of a plan run with at a batch size."""
    return sorted(
        {r["kernel"] for layer in layers for r in layer["kernels"] if r["m_min"] <= rows and (r["m_max"] is None or rows <= r["m_max"])}
    )


def shown(row: Row) -> str:
    replayed = f"{row['replayed_token_ms']:.3f} ms" if "replayed_token_ms" in row else "-"
    times = f"{row['prefill_ms']:.2f} ms | {row['token_ms']:.2f} ms | {replayed}"
    kernels = f"{', '.join(row['decode_kernels'])} / {', '.join(row['prefill_kernels'])}" if row["decode_kernels"] else ""
    return f"| {row['sequences']} | {row['linear']} | {times} | {row['weight_bytes'] / 1e6:.1f} MB | {row['cosine']:.4f} | {kernels} |"


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--scheme", default="NVFP4A16")
    arguments.add_argument("--device", default="cuda")
    arguments.add_argument("--dtype", default="bfloat16")
    arguments.add_argument("--hidden", type=int, default=4096)
    arguments.add_argument("--intermediate", type=int)
    arguments.add_argument("--layers", type=int, default=8)
    arguments.add_argument("--vocabulary", type=int, default=32000)
    arguments.add_argument("--batch", default="1", help="sequences; several numbers with commas")
    arguments.add_argument("--prompt", type=int, default=512, help="tokens of each")
    arguments.add_argument("--steps", type=int, default=32, help="tokens to decode")
    arguments.add_argument("--json", help="a file for the figures")
    given = arguments.parse_args()
    sequences = [int(count) for count in given.batch.split(",")]
    sizes = sorted({size for count in sequences for size in (count, count * given.prompt)})
    dtype = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[given.dtype]
    prompts = {count: torch.randint(given.vocabulary, (count, given.prompt), device=given.device) for count in sequences}
    rows: List[Row] = []

    def measure(linear: str, model: Any, layers: List[Dict[str, Any]], weight_bytes: int) -> None:
        for count, prompt in prompts.items():
            row = {"sequences": count, "linear": linear, "weight_bytes": weight_bytes, **generate(model, prompt, given.steps)}
            row["decode_kernels"], row["prefill_kernels"] = kernels_at(layers, count), kernels_at(layers, count * given.prompt)
            rows.append(row)
            reference = next(r["logits"] for r in rows if r["sequences"] == count)
            row["cosine"] = torch.nn.functional.cosine_similarity(row["logits"], reference).min().item()
            print(shown(row), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        stored, quantized = os.path.join(folder, "float"), os.path.join(folder, "quantized")
        model = made_up(given)
        model.save_pretrained(stored)
        gearshift.quantize(stored, quantized, {"*_proj": given.scheme})
        # Modules of Hugging Face are not fused.
        options: Dict[str, Any] = {"device": given.device, "dtype": dtype, "fuse": False, "store": os.path.join(folder, "store.sqlite"), "batch": sizes}
        begin = time.perf_counter()
        tuned = gearshift.tune(quantized, **options)

        print(f"{given.layers} layers of {given.hidden}, {given.scheme}, prompts of {given.prompt} tokens, on {given.device}")
        print(f"{tuned['measured']} races of kernels measured for the second plan, in {time.perf_counter() - begin:.1f} s\n")
        print("| sequences | linear layers | prefill | token | token, replayed | weights | cosine of logits | kernels: decode / prefill |")
        print("|---:|---|---:|---:|---:|---:|---:|---|")
        linears = [m for name, m in model.named_modules() if isinstance(m, torch.nn.Linear) and name != "lm_head"]
        measure(given.dtype, model, [], sum(m.weight.nbytes for m in linears))
        del linears
        for name, more in (("static", {"selection": "static", "single_kernel": True}), ("measured", {"selection": "measured"})):
            del model
            model = made_up(given)
            with gearshift.plan(quantized, **{**options, **more}) as plan:
                replaced = set(gearshift.torch.replace_linears(model, plan))
                layers = [row for row in plan.layers if row["name"] in replaced]
            measure(name, model, layers, sum(layer["memory"]["weight_bytes"] for layer in layers))

    if given.json:
        gpu = torch.cuda.get_device_name() if given.device.startswith("cuda") else ""
        versions = {"gearshift": gearshift.__version__, "torch": torch.__version__, "transformers": transformers.__version__}
        for row in rows:
            del row["logits"]
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump({"arguments": vars(given), "gpu": gpu, "versions": versions, "rows": rows}, file, indent=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
