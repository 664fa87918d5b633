#!/usr/bin/env python3
"""Writes examples/data/tiny-bert and tiny-gpt2: models with random weights in the published layout,
and what the reference implementation computes with them.

usage: parity_text.py       (needs torch, transformers, tokenizers, safetensors)

Each folder has config.json, model.safetensors and tokenizer.json as on the model hub, with a
vocabulary learned from examples/data/alice.txt, and expected.safetensors: for BERT the token
numbers and the embeddings of three sentences; for GPT-2 the tokens of a start, the logits after
each, and the continuation by the most likely token.
"""
import json
import pathlib

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

DATA = pathlib.Path(__file__).resolve().parent.parent / "examples/data"
TEXT = (DATA / "alice.txt").read_text().split("\n")
SENTENCES = ["Alice was beginning to get very tired.", "The Queen of Hearts!", "Off with his head, she said."]
START = "Alice was beginning to"


def store(folder, model, config, tokenizer, expected):
    folder = DATA / folder
    folder.mkdir(exist_ok=True)
    tensors = {name: x.contiguous().clone() for name, x in model.state_dict().items()}
    tensors.pop("lm_head.weight", None)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    text = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
    (folder / "tokenizer.json").write_text(text + "\n")
    save_file(expected, folder / "expected.safetensors")
    print(folder, sum(p.stat().st_size for p in folder.iterdir()), "bytes")


def spread(model):
    """Weights that make a difference: those of a new model are close to zero."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1:
                p.normal_(0, 0.3)
            else:
                p.add_(0.2 * torch.randn_like(p))


def bert():
    torch.manual_seed(0)
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(TEXT, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.decoder = decoders.WordPiece()
    config = dict(model_type="bert", vocab_size=tokenizer.get_vocab_size(), hidden_size=16,
                  num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                  hidden_act="gelu", max_position_embeddings=32, type_vocab_size=2,
                  layer_norm_eps=1e-12)
    model = BertModel(BertConfig(**config), add_pooling_layer=False).eval()
    spread(model)
    rows = [tokenizer.encode(sentence).ids for sentence in SENTENCES]
    steps = max(map(len, rows))
    tokens = torch.tensor([row + [0] * (steps - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (steps - len(row)) for row in rows])
    with torch.no_grad():
        outputs = model(tokens, attention_mask=mask).last_hidden_state
    words = mask.unsqueeze(-1).float()
    means = (outputs * words).sum(1) / words.sum(1)
    embeddings = torch.nn.functional.normalize(means, dim=-1)
    store("tiny-bert", model, config, tokenizer, {"tokens": tokens, "embeddings": embeddings})


def gpt2():
    torch.manual_seed(0)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(TEXT, trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    config = dict(model_type="gpt2", vocab_size=tokenizer.get_vocab_size(), n_positions=32,
                  n_embd=16, n_layer=2, n_head=2, layer_norm_epsilon=1e-5,
                  activation_function="gelu_new")
    model = GPT2LMHeadModel(GPT2Config(**config)).eval()
    spread(model)
    tokens = torch.tensor([tokenizer.encode(START).ids])
    with torch.no_grad():
        logits = model(tokens).logits[0]
        written = tokens
        for _ in range(12):
            written = torch.cat([written, model(written).logits[:, -1:].argmax(-1)], 1)
    store("tiny-gpt2", model, config, tokenizer,
          {"tokens": tokens[0], "logits": logits.contiguous(), "written": written[0]})


bert()
gpt2()
