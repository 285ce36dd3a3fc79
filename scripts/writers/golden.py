"""What the make_<writer>.py scripts share: a tiny Llama model with real weights, and the form of a golden directory.

tests/data/writers/<writer>_<scheme>/ holds `config.json` and `model.safetensors` as the writer saved them, cut down to the
tensors of the layers kept, and `expected.safetensors`: for every layer NAME the tensor `NAME.w` [N,K], its weights as the
writer itself dequantises them, in the type in which the writer returns them.
"""

import argparse
import importlib.metadata
import json
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
O_PROJ, DOWN_PROJ = "model.layers.0.self_attn.o_proj", "model.layers.0.mlp.down_proj"
SOURCES = {  # layers of examples/minilm_slice; each gives its upper left corner
    "self_attn.q_proj": "attention.self.query", "self_attn.k_proj": "attention.self.key",
    "self_attn.v_proj": "attention.self.value", "self_attn.o_proj": "attention.output.dense",
    "mlp.gate_proj": "intermediate.dense", "mlp.up_proj": "intermediate.dense", "mlp.down_proj": "output.dense"}


def arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=pathlib.Path, default=ROOT / "examples/minilm_slice/model.safetensors")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/data/writers")
    parser.add_argument("--only", default="", help="make only directories whose name contains this")
    return parser.parse_args()


def print_versions(*packages):
    versions = (f"{p} {importlib.metadata.version(p)}" for p in ("torch", "safetensors", *packages))
    print(f"python {sys.version.split()[0]}", *versions, sep=", ")


def weight(source, module, n, k):
    """[n,k] of a real layer in float32; rows and columns beyond it start over, scaled, so that none repeats exactly."""
    w = load_file(source)[f"encoder.layer.0.{SOURCES[module]}.weight"].float()
    if module == "mlp.up_proj":
        w = w.flip(0)
    tiles = w.repeat(-(-n // w.shape[0]), -(-k // w.shape[1]))[:n, :k].contiguous()
    tiles[w.shape[0]:] *= 0.75
    tiles[:, w.shape[1]:] *= 1.25
    return tiles


def llama(source, dtype, hidden=16, heads=2, head_dim=64, intermediate=256):
    """A model of one layer whose o_proj is [hidden, heads*head_dim] and down_proj [hidden, intermediate]."""
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(7)
    config = LlamaConfig(hidden_size=hidden, intermediate_size=intermediate, num_hidden_layers=1, num_attention_heads=heads,
                         num_key_value_heads=heads, head_dim=head_dim, vocab_size=32, max_position_embeddings=64,
                         tie_word_embeddings=False, architectures=["LlamaForCausalLM"], bos_token_id=None, eos_token_id=None, pad_token_id=None)
    model = LlamaForCausalLM(config).to(dtype).eval()
    for name, module in model.named_modules():
        part = ".".join(name.split(".")[-2:])
        if part in SOURCES:
            module.weight.data = weight(source, part, *module.weight.shape).to(dtype)
    return model


def saved_llama(directory, source, dtype, **shape):
    """The same, saved and loaded again: some writers want a model with a path."""
    from transformers import AutoModelForCausalLM
    llama(source, dtype, **shape).save_pretrained(directory)
    return AutoModelForCausalLM.from_pretrained(directory, dtype=dtype).eval()


def tokenizer():
    """Writers ask for one; the calibration data are token ids already."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast
    words = WordLevel({str(i): i for i in range(32)}, unk_token="0")
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(words), unk_token="0", pad_token="0")


def token_ids(count=8, length=32):
    return torch.randint(0, 32, (count, length), generator=torch.Generator().manual_seed(3))


def keep(tensors, layers):
    """The tensors of these layers alone: what remains of a checkpoint in a golden directory."""
    return {name: t.contiguous() for name, t in tensors.items() if any(name.startswith(layer + ".") for layer in layers)}


def write(directory, config, tensors, expected, side_files=()):
    """`expected`: layer name -> dequantised weights. `side_files`: (name, document)."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, document in [("config.json", config), *side_files]:
        (directory / name).write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
    save_file({k: t.contiguous() for k, t in tensors.items()}, directory / "model.safetensors", metadata={"format": "pt"})
    save_file({f"{k}.w": t.contiguous() for k, t in expected.items()}, directory / "expected.safetensors")
    size = sum(f.stat().st_size for f in directory.iterdir())
    stored = (f"{name.rsplit('.', 1)[1]} {str(t.dtype)[6:]} {list(t.shape)}" for name, t in tensors.items())
    print(f"{directory.name}: {len(expected)} layers, {size} bytes;", ", ".join(stored))
