"""The example of sentence embeddings, on a made-up model of its architecture: the float model of NumPy against Gearshift's layers."""
import json
import os
import re
import subprocess
import sys
import unittest

import numpy
from made import ROOT, Case, write_safetensors

EMBED = os.path.join(ROOT, "examples", "sentence_embeddings", "embed.py")


class ExampleTest(Case):
    def tiny_bert(self, width=64, hidden=128):
        folder = os.path.join(self.folder, "bert")
        os.makedirs(folder)
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "gear", "##s", "turn", "##ing", ".", ",", "a", "wheel", "slow", "##ly"]
        with open(os.path.join(folder, "vocab.txt"), "w") as file:
            file.write("\n".join(words) + "\n")
        config = {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": width, "intermediate_size": hidden, "num_attention_heads": 4,
                  "num_hidden_layers": 2, "torch_dtype": "float32", "vocab_size": len(words), "max_position_embeddings": 64}
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(config, file)
        tensors = {"embeddings.word_embeddings.weight": self.normal(len(words), width), "embeddings.position_embeddings.weight": self.normal(64, width),
                   "embeddings.token_type_embeddings.weight": self.normal(2, width)}
        names = ["embeddings.LayerNorm"]
        for i in range(2):
            start = f"encoder.layer.{i}."
            for part, n, k in (("attention.self.query", width, width), ("attention.self.key", width, width), ("attention.self.value", width, width),
                               ("attention.output.dense", width, width), ("intermediate.dense", hidden, width), ("output.dense", width, hidden)):
                tensors[start + part + ".weight"], tensors[start + part + ".bias"] = self.normal(n, k) / 8, self.normal(n) / 8
            names += [start + "attention.output.LayerNorm", start + "output.LayerNorm"]
        for name in names:
            tensors[name + ".weight"], tensors[name + ".bias"] = numpy.ones(width, numpy.float32), numpy.zeros(width, numpy.float32)
        write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
        return folder

    def test_embeddings(self):
        text = os.path.join(self.folder, "sentences.txt")
        with open(text, "w") as file:
            file.write("The gears turn.\nA wheel, turning slowly.\nThe wheel turns.\nGear, gear, gear.\n")
        said = subprocess.run([sys.executable, EMBED, "--model", self.tiny_bert(), "--text", text, "--schemes", "UNQUANTIZED,INT8"],
                              capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("4 sentences, 32 tokens", said.stdout)
        rows = dict(re.findall(r"^\| (\w+) \| [\d.]+ \| ([\d.]+) ", said.stdout, re.M))
        self.assertGreater(float(rows["UNQUANTIZED"]), 0.99999)
        self.assertGreater(float(rows["INT8"]), 0.98)
        self.assertLess(float(rows["INT8"]), 0.9999999)


if __name__ == "__main__":
    unittest.main()
