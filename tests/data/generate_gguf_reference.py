#!/usr/bin/env python3
"""Writes gguf_reference.gguf and gguf_reference.json: a small GGUF file of every storage type that quire reads, made by the
format's own Python package (pip install gguf), and what that package reads back from it. Run in this folder."""

import json

import gguf
import numpy as np

TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"]


def main():
    generator = np.random.default_rng(7)
    writer = gguf.GGUFWriter("gguf_reference.gguf", "llama")
    writer.add_uint32("llama.block_count", 3)
    writer.add_float32("llama.rope.freq_base", 10000.0)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b", "\u0120c"])
    writer.add_bool("tokenizer.ggml.add_bos_token", False)
    expected = {}
    for name in TYPES:
        type_ = gguf.GGMLQuantizationType[name]
        values = generator.normal(size=(2, 64)).astype(np.float32)
        stored = gguf.quants.quantize(values, type_)
        if name in ("F32", "F16"):
            writer.add_tensor(name, stored)
        else:
            writer.add_tensor(name, stored, raw_dtype=type_)
        dequantized = gguf.quants.dequantize(stored, type_)
        expected[name] = [float(value) for value in dequantized.flatten()]
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with open("gguf_reference.json", "w", encoding="utf-8") as file:
        json.dump(expected, file)
        file.write("\n")


if __name__ == "__main__":
    main()
