"""The models of `scripts/sweep.sh --models`, each written once: `lib` is `torch` or `zyx`.

`MODELS` has for each its class, the inputs of a step, what counts a step's work, and its sizes on a GPU and on a CPU.
Parameters are `float32`; with `half` a model computes in `bfloat16`, each weight being cast where it is used.
"""

import math

import numpy as np


def classes(lib):
    """The models' classes, made of the layers and functions of a library."""
    nn, F = lib.nn, lib.nn.functional

    class Linear(nn.Module):
        """A layer that computes in the dtype of its input."""

        def __init__(self, fan_in, fan_out, bias=True):
            super().__init__()
            self.weight = nn.Parameter(lib.zeros(fan_out, fan_in))
            self.bias = nn.Parameter(lib.zeros(fan_out)) if bias else None

        def forward(self, x):
            return F.linear(x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))

    class LayerNorm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.weight, self.bias = nn.Parameter(lib.ones(width)), nn.Parameter(lib.zeros(width))

        def forward(self, x):
            return F.layer_norm(x, (x.shape[-1],), self.weight.to(x.dtype), self.bias.to(x.dtype))

    class RmsNorm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.weight = nn.Parameter(lib.ones(width))

        def forward(self, x):
            return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), 1e-5)

    # A text as GPT-2 reads it, and images as a ViT does.

    class Block(nn.Module):
        """Attention and two layers, with layer normalisation in front of both."""

        def __init__(self, width, heads, causal):
            super().__init__()
            self.heads, self.causal = heads, causal
            self.norm1, self.norm2 = LayerNorm(width), LayerNorm(width)
            self.qkv, self.out = Linear(width, 3 * width), Linear(width, width)
            self.wide, self.narrow = Linear(width, 4 * width), Linear(4 * width, width)

        def forward(self, x):
            n, length, width = x.shape
            qkv = self.qkv(self.norm1(x)).reshape(n, length, 3, self.heads, width // self.heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
            return x + self.narrow(F.gelu(self.wide(self.norm2(x)), approximate="tanh"))

    class Gpt2(nn.Module):
        def __init__(self, layers, width, heads, vocabulary, length, half, **_):
            super().__init__()
            self.dtype = lib.bfloat16 if half else lib.float32
            self.words = nn.Parameter(lib.zeros(vocabulary, width))
            self.places = nn.Parameter(lib.zeros(length, width))
            self.blocks = nn.ModuleList([Block(width, heads, True) for _ in range(layers)])
            self.norm = LayerNorm(width)

        def forward(self, words, targets):
            x = (F.embedding(words, self.words) + self.places).to(self.dtype)
            for block in self.blocks:
                x = block(x)
            # The table of words is the last layer's too.
            logits = F.linear(self.norm(x), self.words.to(self.dtype))
            return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())

    class Vit(nn.Module):
        def __init__(self, layers, width, heads, patch, side, kinds, half, **_):
            super().__init__()
            self.dtype = lib.bfloat16 if half else lib.float32
            self.places = nn.Parameter(lib.zeros((side // patch) ** 2 + 1, width))
            self.kind = nn.Parameter(lib.zeros(1, 1, width))
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.blocks = nn.ModuleList([Block(width, heads, False) for _ in range(layers)])
            self.norm, self.head = LayerNorm(width), Linear(width, kinds)

        def forward(self, images, targets):
            weight, bias = self.patches.weight.to(self.dtype), self.patches.bias.to(self.dtype)
            x = F.conv2d(images.to(self.dtype), weight, bias, stride=weight.shape[-1]).flatten(2).transpose(1, 2)
            kind = self.kind.to(self.dtype).expand(x.shape[0], 1, x.shape[2])
            x = lib.cat([kind, x], 1) + self.places.to(self.dtype)
            for block in self.blocks:
                x = block(x)
            return F.cross_entropy(self.head(self.norm(x[:, 0])).float(), targets)

    # Llama's blocks.

    class LlamaBlock(nn.Module):
        """Attention with rotary positions and SwiGLU, with root mean squares in front of both."""

        def __init__(self, width, heads, hidden):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
            self.q, self.k, self.v, self.out = (Linear(width, width, False) for _ in range(4))
            self.gate, self.up, self.down = Linear(width, hidden, False), Linear(width, hidden, False), Linear(hidden, width, False)

        def turn(self, x, cos, sin):
            a, b = x.chunk(2, -1)
            return lib.cat([a * cos - b * sin, b * cos + a * sin], -1)

        def heads_of(self, x):
            return x.reshape(x.shape[0], x.shape[1], self.heads, x.shape[2] // self.heads).transpose(1, 2)

        def forward(self, x, cos, sin, put=None, seen=None):
            n, length, width = x.shape
            y = self.norm1(x)
            q, k, v = self.heads_of(self.q(y)), self.heads_of(self.k(y)), self.heads_of(self.v(y))
            q, k = self.turn(q, cos, sin), self.turn(k, cos, sin)
            if put is None:
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                k, v = put(k, v)
                y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
            x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
            y = self.norm2(x)
            x = x + self.down(F.silu(self.gate(y)) * self.up(y))
            return x if put is None else (x, k, v)

    class Llama(nn.Module):
        def __init__(self, layers, width, heads, hidden, vocabulary, half, **_):
            super().__init__()
            self.dtype = lib.bfloat16 if half else lib.float32
            self.words = nn.Parameter(lib.zeros(vocabulary, width))
            self.blocks = nn.ModuleList([LlamaBlock(width, heads, hidden) for _ in range(layers)])
            self.norm, self.head = RmsNorm(width), Linear(width, vocabulary, False)

        def forward(self, words, targets, cos, sin):
            x, cos, sin = F.embedding(words, self.words).to(self.dtype), cos.to(self.dtype), sin.to(self.dtype)
            for block in self.blocks:
                x = block(x, cos, sin)
            return F.cross_entropy(self.head(self.norm(x)).float().flatten(0, 1), targets.flatten())

    class LlamaDecoder(Llama):
        """The next word of a text of which keys and values are kept, those of each layer after the other's."""

        def forward(self, word, place, cos, sin, *kept):
            x = F.embedding(word, self.words).to(self.dtype)
            cos, sin = (table.index_select(0, place).to(self.dtype) for table in (cos, sin))
            seen = lib.arange(kept[0].shape[2], device=word.device) <= place.unsqueeze(1)
            found = []
            for i, block in enumerate(self.blocks):

                def put(*new):
                    # In place where tensors change.
                    both = zip(kept[2 * i : 2 * i + 2], new)
                    return [getattr(x, "index_copy_", x.index_copy)(2, place, y) for x, y in both]

                x, k, v = block(x, cos, sin, put, seen)
                found += [k, v]
            logits = self.head(self.norm(x))
            return logits.float().amax(), logits.argmax(-1), (place + 1) % seen.shape[1], *found

    # Images by convolutions.

    class Bottleneck(nn.Module):
        def __init__(self, fan_in, width, stride):
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(fan_in, width, 1, bias=False), nn.BatchNorm2d(width)
            self.conv2, self.norm2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
            self.conv3, self.norm3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
            self.short = None
            if stride != 1 or fan_in != 4 * width:
                self.short = nn.Sequential(nn.Conv2d(fan_in, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

        def forward(self, x):
            y = F.relu(self.norm1(self.conv1(x)))
            y = F.relu(self.norm2(self.conv2(y)))
            y = self.norm3(self.conv3(y))
            return F.relu(y + (x if self.short is None else self.short(x)))

    class Resnet(nn.Module):
        def __init__(self, depths, width, kinds, **_):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
            fan_in, blocks = width, []
            for stage, depth in enumerate(depths):
                for i in range(depth):
                    blocks.append(Bottleneck(fan_in, width << stage, 2 if i == 0 and stage > 0 else 1))
                    fan_in = 4 * (width << stage)
            self.blocks, self.head = nn.ModuleList(blocks), nn.Linear(fan_in, kinds)

        def forward(self, images, targets):
            x = F.max_pool2d(F.relu(self.norm(self.conv(images))), 3, 2, 1)
            for block in self.blocks:
                x = block(x)
            return F.cross_entropy(self.head(x.mean((2, 3))), targets)

    class Pair(nn.Module):
        """Two convolutions with normalisations."""

        def __init__(self, fan_in, width):
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(fan_in, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
            self.conv2, self.norm2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)

        def forward(self, x):
            return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))

    class Unet(nn.Module):
        def __init__(self, width, depth, kinds, **_):
            super().__init__()
            widths = [width << i for i in range(depth + 1)]
            self.down = nn.ModuleList([Pair(a, b) for a, b in zip([3, *widths], widths)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(2 * a, a, 2, 2) for a in reversed(widths[:-1])])
            self.join = nn.ModuleList([Pair(2 * a, a) for a in reversed(widths[:-1])])
            self.head = nn.Conv2d(width, kinds, 1)

        def forward(self, images, targets):
            x, kept = images, []
            for i, down in enumerate(self.down):
                x = down(x if i == 0 else F.max_pool2d(x, 2))
                kept.append(x)
            kept.pop()
            for up, join in zip(self.up, self.join):
                x = join(lib.cat([up(x), kept.pop()], 1))
            return F.cross_entropy(self.head(x), targets)

    class Lstm(nn.Module):
        """What kind of sequence it is, by the last step's output."""

        def __init__(self, width, layers, kinds, **_):
            super().__init__()
            self.lstm, self.head = nn.LSTM(width, width, layers, batch_first=True), nn.Linear(width, kinds)

        def forward(self, x, targets):
            return F.cross_entropy(self.head(self.lstm(x)[0][:, -1]), targets)

    return {name: kind for name, kind in locals().items() if isinstance(kind, type)}


def images(rng, batch, side, kinds, **_):
    return [rng.standard_normal((batch, 3, side, side), dtype="float32"), rng.integers(0, kinds, batch)]


def pixels(rng, batch, side, kinds, **_):
    return [rng.standard_normal((batch, 3, side, side), dtype="float32"), rng.integers(0, kinds, (batch, side, side))]


def sequences(rng, batch, length, width, kinds, **_):
    return [rng.standard_normal((batch, length, width), dtype="float32"), rng.integers(0, kinds, batch)]


def text(rng, batch, length, vocabulary, **_):
    words = rng.integers(0, vocabulary, (batch, length + 1))
    return [words[:, :-1].copy(), words[:, 1:].copy()]


def turns(length, width, heads, **_):
    """Cosines and sines of rotary positions."""
    turn = width // heads
    angles = np.arange(length)[:, None] * 10000.0 ** (-np.arange(0, turn, 2) / turn)[None]
    return [np.cos(angles).astype("float32"), np.sin(angles).astype("float32")]


def turned(rng, **size):
    return text(rng, **size) + turns(**size)


def kept(rng, batch, layers, length, width, heads, vocabulary, **_):
    """A word, its place, tables, and the keys and values of a text of half the length."""
    shape = (batch, heads, length, width // heads)
    caches = [0.1 * rng.standard_normal(shape, dtype="float32") for _ in range(2 * layers)]
    return [rng.integers(0, vocabulary, (batch, 1)), np.array([length // 2]), *turns(length, width, heads), *caches]


_GPT2 = {"layers": 12, "width": 768, "heads": 12, "vocabulary": 50304, "batch": 8, "length": 1024, "half": True}
_LLAMA = {"layers": 12, "width": 1024, "heads": 16, "hidden": 2816, "vocabulary": 32000, "batch": 8, "length": 1024, "half": True}
_SMALL = {"layers": 2, "width": 128, "heads": 4, "vocabulary": 1000, "batch": 4, "length": 64, "half": False}
_VIT = {"layers": 12, "width": 384, "heads": 6, "patch": 16, "side": 224, "kinds": 1000, "batch": 64, "half": True}
_RESNET = {"depths": [3, 4, 6, 3], "width": 64, "kinds": 1000, "batch": 64, "side": 224}
_UNET = {"width": 32, "depth": 3, "kinds": 8, "batch": 16, "side": 128}
_LSTM = {"width": 512, "layers": 2, "kinds": 10, "batch": 64, "length": 256}

# name: (class, inputs, optimizer and learning rate, unit of work, work of a step, size on a GPU, what is smaller on a CPU)
MODELS = {
    "resnet50": ("Resnet", images, "SGD", 1e-3, "images", lambda s: s["batch"], _RESNET,
                 {"depths": [1, 1, 1, 1], "width": 16, "kinds": 10, "batch": 8, "side": 64}),
    "llama": ("Llama", turned, "AdamW", 1e-4, "tokens", lambda s: s["batch"] * s["length"], _LLAMA, {**_SMALL, "hidden": 352}),
    "llama_decode": ("LlamaDecoder", kept, None, 0, "tokens", lambda s: s["batch"], {**_LLAMA, "batch": 1},
                     {**_SMALL, "hidden": 352, "batch": 1}),
    "lstm": ("Lstm", sequences, "SGD", 1e-2, "sequences", lambda s: s["batch"], _LSTM, {"width": 64, "batch": 16, "length": 32}),
    "gpt2": ("Gpt2", text, "AdamW", 1e-4, "tokens", lambda s: s["batch"] * s["length"], _GPT2, _SMALL),
    "unet": ("Unet", pixels, "AdamW", 1e-4, "images", lambda s: s["batch"], _UNET, {"width": 8, "batch": 4, "side": 32}),
    "vit": ("Vit", images, "AdamW", 1e-4, "images", lambda s: s["batch"], _VIT,
            {"layers": 2, "width": 96, "heads": 3, "patch": 8, "side": 32, "kinds": 10, "batch": 8, "half": False}),
}  # fmt: skip


def size_of(name, device):
    """The size of a model on a device."""
    large, small = MODELS[name][-2:]
    return large if device == "cuda" else {**large, **small}


def weights(named):
    """Initial values of named parameters, in their order, a module's own before those of its parts (as PyTorch tells them).

    Matrices keep the size of what passes them, biases are zero.
    """
    for i, (name, shape) in enumerate(named):
        rng = np.random.Generator(np.random.PCG64([i, *shape]))
        if len(shape) > 1:
            fan_in = math.prod(shape[1:])
            scale = 0.02 if shape[0] > 4 * fan_in or "places" in name else 1 / math.sqrt(fan_in)
            yield rng.standard_normal(shape, dtype="float32") * np.float32(scale)
        else:
            yield np.full(shape, 1 if name.endswith("weight") else 0, "float32")
