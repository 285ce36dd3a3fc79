#!/usr/bin/env python3
"""How do our 4-bit and 8-bit kernels stand against ONNX Runtime on this machine, in this minute?

Usage: bench/onnxruntime_peer.py GEARSHIFT [--shape N,K] [--batch M,M...] [--threads T]
Needs, from PyPI: onnxruntime onnx numpy.

ONNX Runtime multiplies by MatMulNBits (4 bits in blocks of 32 or 128, activations rounded to int8: accuracy level 4) and by
DynamicQuantizeMatMul (8 bits a tensor), fp32 in and out. Its weights add up to 1 GiB in one graph of many layers, each with bytes of its
own: equal initializers would be packed once and read from the cache. `gearshift bench` runs before and after each of its points; what is
printed is each side's share of the memory and int8 ceilings that `bench` measured then.
"""
import argparse, json, os, subprocess, sys, time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

GIB = 1 << 30


def graph_bytes(kind, n, k):
    return n * k if kind == "w8a8" else n * k // 2 + 4 * n * k // block_of(kind)


def block_of(kind):
    return int(kind.split("_b")[1])


def layer(kind, n, k, index, rng):
    """Node and initializers of one layer; the input is x, the output y<index>."""
    own = lambda name, array: numpy_helper.from_array(array, f"{name}{index}")
    if kind == "w8a8":
        weights = [own("w", rng.integers(-127, 128, (k, n), dtype=np.int8)), own("s", np.array([0.01], np.float32)), own("z", np.array([0], np.int8))]
        node = helper.make_node("DynamicQuantizeMatMul", ["x", f"w{index}", f"s{index}", f"z{index}"], [f"y{index}"], domain="com.microsoft")
        return node, weights
    block = block_of(kind)
    weights = [own("w", rng.integers(0, 256, (n, k // block, block // 2), dtype=np.uint8)), own("s", rng.random(n * k // block, dtype=np.float32))]
    node = helper.make_node("MatMulNBits", ["x", f"w{index}", f"s{index}"], [f"y{index}"], domain="com.microsoft", K=k, N=n, bits=4, block_size=block,
                            accuracy_level=4)
    return node, weights


def session(kind, m, n, k, layers, threads):
    rng = np.random.default_rng()
    nodes, weights = zip(*(layer(kind, n, k, i, rng) for i in range(layers)))
    outputs = [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, [m, n]) for i in range(layers)]
    graph = helper.make_graph(nodes, "layers", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [m, k])], outputs, [w for some in weights for w in some])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def peer_us(kind, m, n, k, threads):
    """Median time of one layer."""
    layers = max(1, -(-GIB // graph_bytes(kind, n, k)))
    running = session(kind, m, n, k, layers, threads)
    binding = running.io_binding()
    binding.bind_cpu_input("x", np.random.default_rng().standard_normal((m, k), dtype=np.float32))
    for i in range(layers):
        binding.bind_ortvalue_output(f"y{i}", onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((m, n), np.float32)))
    running.run_with_iobinding(binding)
    samples = []
    while len(samples) < 5 or (sum(samples) < 3 and len(samples) < 50):
        begin = time.perf_counter()
        running.run_with_iobinding(binding)
        samples.append(time.perf_counter() - begin)
    return float(np.median(samples)) / layers * 1e6


def ours(command, scheme, m, n, k, threads):
    words = [command, "bench", "--shape", f"{n},{k}", "--scheme", scheme, "--batch", str(m), "--threads", str(threads), "-q", "--json=-"]
    document = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
    return document["rows"][0], {c["name"]: c["value"] for c in document["ceilings"]}


def share(us, m, n, k, weight_bytes, ceilings):
    reading, computing = weight_bytes / ceilings["dram"] / 1e3, 2 * m * n * k / ceilings["int8"] / 1e3
    return f"{'dram' if reading >= computing else 'int8'} {100 * max(reading, computing) / us:.0f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("gearshift")
    parser.add_argument("--shape", default="4096,4096")
    parser.add_argument("--batch", default="1,16,256")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    n, k = map(int, given.shape.split(","))
    print(f"onnxruntime {onnxruntime.__version__}, {n} x {k}, {given.threads} threads; ours: W4A8 with groups of 128, MXFP4, INT8")
    print(f"{'peer':10} {'batch':>5} {'time':>10} {'of ceiling':>11}   {'ours':24} {'time':>10} {'of ceiling':>11}")
    for kind, scheme in (("int4_b32", "MXFP4"), ("int4_b128", "W4A8"), ("w8a8", "INT8")):
        for m in map(int, given.batch.split(",")):
            before, ceilings_before = ours(given.gearshift, scheme, m, n, k, given.threads)
            us = peer_us(kind, m, n, k, given.threads)
            after, ceilings_after = ours(given.gearshift, scheme, m, n, k, given.threads)
            row, ceilings = (before, ceilings_before) if before["of_floor"] >= after["of_floor"] else (after, ceilings_after)
            print(f"{kind:10} {m:5} {us:8.0f}us {share(us, m, n, k, graph_bytes(kind, n, k), ceilings):>11}   {row['kernel']:24} "
                  f"{row['median_us']:8.0f}us {share(row['median_us'], m, n, k, row['weight_bytes'], ceilings):>11}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
