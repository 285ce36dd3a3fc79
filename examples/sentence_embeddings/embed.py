#!/usr/bin/env python3
"""Sentence embeddings of all-MiniLM-L6-v2 with its linear layers quantized and run by Gearshift, against the float model.

    python examples/sentence_embeddings/embed.py                     # fetches the weights once (84 MB, scripts/get_minilm.sh)
    python examples/sentence_embeddings/embed.py --schemes NVFP4,INT8 --sentences 50

Prints, for each scheme, the cosine between a sentence's embedding and that of the float model, and for how many sentences the
most similar other sentence stays the same. Sentences are prose of Python's own language reference (pydoc_data.topics, which comes
with Python), or the lines of --text. Tokeniser and everything around the linear layers are NumPy, here.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import struct
import subprocess
import tempfile
import unicodedata
from typing import Any, Callable, Dict, List

import gearshift
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMES = "UNQUANTIZED,FP8_DYNAMIC,FP8,FP8_BLOCK,INT8,MXFP8,W4A16,W4A16_ASYM,NVFP4A16,NVFP4,MXFP4"
Array = Any  # NumPy's
Tensors = Dict[str, Array]
Layer = Callable[[Array], Array]


# ---- sentences and tokens


def sentences_of_python(count: int) -> List[str]:
    """Sentences of 8 to 40 words without code in them, evenly spread over the language reference."""
    from pydoc_data.topics import topics

    found = []
    for topic in sorted(topics):
        prose = " ".join(line for line in re.sub(r"\n\n", "\n", topics[topic]).split("\n") if not line.startswith("      "))
        for sentence in re.split(r"(?<=[.?!])\s+(?=[A-Z])", re.sub(r"\s+", " ", prose)):
            words = sentence.split()
            if 8 <= len(words) <= 40 and re.fullmatch(r"[A-Z][A-Za-z0-9 ,;'\"()-]+\.", sentence):
                found.append(sentence)
    found = list(dict.fromkeys(found))
    return [found[i * len(found) // count] for i in range(min(count, len(found)))]


class Tokenizer:
    """BERT's: lower case without accents, words and punctuation, then the longest pieces of the vocabulary."""

    def __init__(self, model: str, longest: int = 256) -> None:
        with open(os.path.join(model, "vocab.txt"), encoding="utf-8") as file:
            self.ids = {line.rstrip("\n"): i for i, line in enumerate(file)}
        self.longest = longest

    def words(self, text: str) -> List[str]:
        plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
        return "".join(f" {c} " if self.stands_alone(c) else c for c in plain).split()

    @staticmethod
    def stands_alone(c: str) -> bool:
        symbol = c.isascii() and not c.isalnum() and not c.isspace()
        return symbol or unicodedata.category(c).startswith("P") or "\u4e00" <= c <= "\u9fff"

    def pieces(self, word: str) -> List[int]:
        ids, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self.ids.get(("##" if start else "") + word[start:end])
                if piece is not None:
                    ids.append(piece)
                    start = end
                    break
            else:
                return [self.ids["[UNK]"]]
        return ids

    def __call__(self, text: str) -> List[int]:
        ids = [i for word in self.words(text) for i in self.pieces(word)][: self.longest - 2]
        return [self.ids["[CLS]"], *ids, self.ids["[SEP]"]]


# ---- the model


def read_safetensors(path: str) -> Tensors:
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    types = {"F32": np.float32, "F16": np.float16, "I64": np.int64}
    return {
        name: np.frombuffer(data[slice(*info["data_offsets"])], dtype=types[info["dtype"]]).reshape(info["shape"])
        for name, info in header.items()
        if name != "__metadata__" and info["dtype"] in types
    }


def norm(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * weight + bias


def gelu(x: Array) -> Array:
    # erf after Abramowitz and Stegun 7.1.26, to 1.5e-7.
    z = np.abs(x) / np.float32(np.sqrt(2))
    t = 1 / (1 + 0.3275911 * z)
    erf = 1 - ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t * np.exp(-z * z)
    return 0.5 * x * (1 + np.sign(x) * erf)


class Bert:
    """`linear(name)` gives the layer that computes x W^T + b; everything else is float."""

    def __init__(self, tensors: Tensors, config: Dict[str, int], linear: Callable[[str], Layer]) -> None:
        self.tensors, self.heads, self.depth = tensors, config["num_attention_heads"], config["num_hidden_layers"]
        self.layers = {name: linear(name) for i in range(self.depth) for name in self.names(i)}

    @staticmethod
    def names(i: int) -> List[str]:
        parts = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense", "intermediate.dense", "output.dense"]
        return [f"encoder.layer.{i}.{part}" for part in parts]

    def norm(self, x: Array, name: str) -> Array:
        return norm(x, self.tensors[name + ".weight"], self.tensors[name + ".bias"])

    def attend(self, q: Array, k: Array, v: Array) -> Array:
        def split(x: Array) -> Array:
            return x.reshape(len(x), self.heads, -1).transpose(1, 0, 2)

        scores = split(q) @ split(k).transpose(0, 2, 1) / np.float32(np.sqrt(q.shape[-1] // self.heads))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = weights / weights.sum(-1, keepdims=True) @ split(v)
        return mixed.transpose(1, 0, 2).reshape(q.shape)

    def embed(self, batch: List[List[int]]) -> Array:
        """One unit vector a sentence. The tokens of all sentences go through the linear layers together."""
        t = self.tensors
        ends = np.cumsum([len(ids) for ids in batch])
        x = t["embeddings.word_embeddings.weight"][np.concatenate(batch)]
        x = x + t["embeddings.position_embeddings.weight"][np.concatenate([np.arange(len(ids)) for ids in batch])]
        x = self.norm(x + t["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for i in range(self.depth):
            query, key, value, attention, up, down = (self.layers[name] for name in self.names(i))
            q, k, v = query(x), key(x), value(x)
            mixed = np.concatenate([self.attend(q[a:b], k[a:b], v[a:b]) for a, b in zip([0, *ends[:-1]], ends)])
            x = self.norm(x + attention(mixed), f"encoder.layer.{i}.attention.output.LayerNorm")
            x = self.norm(x + down(gelu(up(x))), f"encoder.layer.{i}.output.LayerNorm")
        means = np.stack([x[a:b].mean(0) for a, b in zip([0, *ends[:-1]], ends)])
        return means / np.linalg.norm(means, axis=-1, keepdims=True)

    def embed_all(self, tokens: List[List[int]], together: int = 16) -> Array:
        return np.concatenate([self.embed(tokens[i : i + together]) for i in range(0, len(tokens), together)])


# ---- the comparison


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--model", help="a directory with config.json, model.safetensors and vocab.txt; default: MiniLM, fetched")
    arguments.add_argument("--schemes", default=SCHEMES)
    arguments.add_argument("--sentences", type=int, default=300)
    arguments.add_argument("--text", help="a file with one sentence a line")
    arguments.add_argument("--device", default="cpu")
    given = arguments.parse_args()

    model = given.model
    if model is None:
        fetch = [os.path.join(ROOT, "scripts", "get_minilm.sh"), os.path.join(ROOT, "build", "models")]
        model = subprocess.run(fetch, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    tokenizer = Tokenizer(model)
    with open(os.path.join(model, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    if given.text:
        with open(given.text, encoding="utf-8") as file:
            sentences = [line.strip() for line in file if line.strip()][: given.sentences]
    else:
        sentences = sentences_of_python(given.sentences)
    tokens = [tokenizer(sentence) for sentence in sentences]
    tensors = read_safetensors(os.path.join(model, "model.safetensors"))

    def in_float(name: str) -> Layer:
        weight, bias = tensors[name + ".weight"], tensors[name + ".bias"]
        return lambda x: x @ weight.T + bias

    reference = Bert(tensors, config, in_float).embed_all(tokens)
    nearest = (reference @ reference.T - 2 * np.eye(len(reference))).argmax(-1)
    print(f"{len(sentences)} sentences, {sum(map(len, tokens))} tokens, {config['num_hidden_layers']} layers of {os.path.basename(model)}\n")
    print("| scheme | mean cosine | least cosine | same nearest sentence | linear weights |")
    print("|---|---:|---:|---:|---:|")
    for scheme in given.schemes.split(","):
        with tempfile.TemporaryDirectory() as folder:
            quantized = os.path.join(folder, "model")
            gearshift.quantize(model, quantized, {"encoder.*": scheme})
            with gearshift.plan(quantized, device=given.device, dtype="fp32", fuse=False, batch=[64, 512]) as plan:
                layers = {row["name"]: row for row in plan.layers}
                bert = Bert(tensors, config, lambda name: gearshift.Linear.from_checkpoint(quantized, name, plan))
                embedded = bert.embed_all(tokens)
                size = sum(layers[name]["memory"]["weight_bytes"] for name in bert.layers)
        cosine = (embedded * reference).sum(-1)
        same = ((embedded @ embedded.T - 2 * np.eye(len(embedded))).argmax(-1) == nearest).mean()
        print(f"| {scheme} | {cosine.mean():.5f} | {cosine.min():.5f} | {100 * same:.1f} % | {size / 1e6:.2f} MB |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
