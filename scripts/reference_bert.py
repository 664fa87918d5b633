#!/usr/bin/env python3
"""Similarities of sentences by a BERT encoder, computed by NumPy in float64: the reference of the
example `bert` and of its test.

usage: reference_bert.py [--pad N] FOLDER [SENTENCE ..]     (needs numpy, safetensors, tokenizers)

FOLDER has config.json, model.safetensors and tokenizer.json. With --pad, the tokenizer pads each
sentence to N tokens, whatever the file says; 0 turns padding off. Each sentence is computed by itself,
padding included: masked as a key, left out of the mean.
"""
import argparse
import json
import math
import pathlib

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

SENTENCES = ["Alice was beginning to get very tired.", "The Queen of Hearts!", "Off with his head, she said."]

parser = argparse.ArgumentParser()
parser.add_argument("--pad", type=int)
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("sentences", nargs="*", default=SENTENCES)
given = parser.parse_args()

config = json.loads((given.folder / "config.json").read_text())
weights = {name.removeprefix("bert."): x.astype(np.float64)
           for name, x in load_file(given.folder / "model.safetensors").items()
           if x.dtype.kind == "f"}
tokenizer = Tokenizer.from_file(str(given.folder / "tokenizer.json"))
if given.pad == 0:
    tokenizer.no_padding()
elif given.pad:
    tokenizer.enable_padding(length=given.pad)
erf = np.vectorize(math.erf)


def linear(x, name):
    return x @ weights[name + ".weight"].T + weights[name + ".bias"]


def norm(x, name):
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + config.get("layer_norm_eps", 1e-12))
    return x * weights[name + ".weight"] + weights[name + ".bias"]


def attention(x, mask, name):
    heads, width = config["num_attention_heads"], config["hidden_size"]
    split = lambda y: y.reshape(len(x), heads, width // heads).transpose(1, 0, 2)
    q, k, v = (split(linear(x, f"{name}.self.{part}")) for part in ("query", "key", "value"))
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(width // heads)
    scores = np.where(mask, scores, -np.inf)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (scores / scores.sum(-1, keepdims=True)) @ v
    return linear(mixed.transpose(1, 0, 2).reshape(len(x), width), f"{name}.output.dense")


def embed(sentence):
    encoding = tokenizer.encode(sentence)
    mask = np.array(encoding.attention_mask, bool)
    x = (weights["embeddings.word_embeddings.weight"][encoding.ids]
         + weights["embeddings.position_embeddings.weight"][:len(mask)]
         + weights["embeddings.token_type_embeddings.weight"][0])
    x = norm(x, "embeddings.LayerNorm")
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}"
        x = norm(x + attention(x, mask, f"{layer}.attention"), f"{layer}.attention.output.LayerNorm")
        y = linear(x, f"{layer}.intermediate.dense")
        y = linear(y * 0.5 * (1 + erf(y / math.sqrt(2))), f"{layer}.output.dense")
        x = norm(x + y, f"{layer}.output.LayerNorm")
    mean = x[mask].mean(0)
    return mean / np.linalg.norm(mean), int(mask.sum()), len(mask)


rows = [embed(sentence) for sentence in given.sentences]
embeddings = np.stack([row[0] for row in rows])
for sentence, (_, words, tokens), similar in zip(given.sentences, rows, embeddings @ embeddings.T):
    print(" ".join(f"{x:9.6f}" for x in similar), f"  {words} of {tokens} tokens are words:", sentence)
