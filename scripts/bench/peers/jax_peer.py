"""The workloads in JAX, compiled whole.

Weights of linear layers are `[in, out]` and images `[n, height, width, channels]`, as JAX's users
have them; parameters are permuted once, so the functions are the same.
"""
import math
import os

import jax
import jax.numpy as jnp
import numpy as np
import workloads as w


def norm(x, gain, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * gain + bias


def conv2d(a, k):
    return jax.lax.conv_general_dilated(a, k, (1, 1), ((1, 1), (1, 1)))


FUNCTIONS = {
    "copy": lambda a: a + 1,
    "gelu": lambda a: jax.nn.gelu(a, approximate=True),
    "chain": lambda a, b, c: (a + b) * 5 - c,
    "sum": jnp.sum,
    "sum_rows": lambda a: a.sum(1),
    "sum_cols": lambda a: a.sum(0),
    "softmax": lambda a: jax.nn.softmax(a, -1),
    "layernorm": norm,
    "transpose": lambda a: a.T + 0,
    "cumsum": jnp.cumsum,
    "sort": jnp.sort,
    "argmax_rows": lambda a: a.argmax(1),
    "conv2d": conv2d,
}
DTYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16, "f16": jnp.float16}


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits, -1), labels[:, None], 1).mean()


def momentum(rate):
    def update(p, g, state):
        state = {k: 0.9 * state[k] + g[k] for k in p}
        return {k: p[k] - rate * state[k] for k in p}, state

    return lambda zeros: zeros, update


def adam(rate, decay):
    def update(p, g, state):
        m, v, t = state
        t = t + 1
        m = {k: 0.9 * m[k] + 0.1 * g[k] for k in p}
        v = {k: 0.999 * v[k] + 0.001 * g[k] * g[k] for k in p}
        a, b = 1 - 0.9**t, 1 - 0.999**t
        change = {k: rate * (m[k] / a) / (jnp.sqrt(v[k] / b) + 1e-8) for k in p}
        return {k: p[k] * (1 - rate * decay) - change[k] for k in p}, (m, v, t)

    return lambda zeros: (zeros, {k: jnp.zeros_like(v) for k, v in zeros.items()}, jnp.zeros(())), update


class Peer:
    def __init__(self, threads, device, _):
        os.environ.setdefault("NPROC", str(threads))
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        jax.config.update("jax_platforms", device)
        # Products of f32 in f32, as everywhere else.
        jax.config.update("jax_default_matmul_precision", "highest")

    def wait(self):
        jax.block_until_ready(self.last)

    def op(self, name, arrays):
        inputs = [jnp.asarray(x, DTYPES[w.dtype(name)]) for x in arrays]
        return self.call(name, inputs), lambda y: np.asarray(y.astype(jnp.float32))

    def large(self, name, shapes):
        keys = jax.random.split(jax.random.PRNGKey(0), len(shapes))
        draw = lambda key, shape: jax.random.normal(key, shape, jnp.float32).astype(DTYPES[w.dtype(name)])
        inputs = [draw(key, shape) for key, shape in zip(keys, shapes)]
        return self.call(name, inputs), lambda y: float(jnp.abs(y.astype(jnp.float32)).mean())

    def call(self, name, inputs):
        if "attention" in name:
            raise NotImplementedError(name)
        f = jax.jit(FUNCTIONS.get(w.stem(name), jnp.matmul))

        def call():
            self.last = f(*inputs)
            return self.last

        return call

    def training(self, loss_of, p, optimizer):
        init, update = optimizer
        p = {k: jnp.array(v) for k, v in p.items()}
        state = init({k: jnp.zeros_like(v) for k, v in p.items()})

        def step(p, state, *inputs):
            loss, g = jax.value_and_grad(loss_of)(p, *inputs)
            return *update(p, g, state), loss

        step = jax.jit(step, donate_argnums=(0, 1))
        held = [p, state]

        def run(*inputs):
            held[0], held[1], loss = step(*held, *inputs)
            return lambda: float(loss)

        return run

    def mlp_train(self):
        x, y, t, p = w.images("mlp_train")
        x, y = jnp.array(x), jnp.array(y)
        p |= {k: p[k].T.copy() for k in ("w1", "w2")}

        def loss(p, x, y, rows):
            h = jax.nn.relu(x[rows] @ p["w1"] + p["b1"])
            return cross_entropy(h @ p["w2"] + p["b2"], y[rows])

        run = self.training(loss, p, momentum(0.01))
        return lambda k: run(x, y, t[k % 1000])

    def conv_train(self):
        x, y, t, p = w.images("conv_train")
        x, y = jnp.array(x), jnp.array(y)
        p |= {k: p[k].transpose(2, 3, 1, 0).copy() for k in ("c1", "c2")}
        p["w1"] = p["w1"].reshape(128, 64, 12, 12).transpose(2, 3, 1, 0).reshape(9216, 128).copy()
        p["w2"] = p["w2"].T.copy()
        layout = ("NHWC", "HWIO", "NHWC")
        conv = lambda x, k: jax.lax.conv_general_dilated(x, k, (1, 1), "VALID", dimension_numbers=layout)

        def loss(p, x, y, rows):
            h = jax.nn.relu(conv(x[rows].reshape(-1, 28, 28, 1), p["c1"]) + p["d1"])
            h = jax.nn.relu(conv(h, p["c2"]) + p["d2"])
            # A maximum over a reshape: the gradient of reduce_window is ten times slower here.
            h = h.reshape(-1, 12, 2, 12, 2, 64).max((2, 4)).reshape(-1, 9216)
            h = jax.nn.relu(h @ p["w1"] + p["b1"])
            return cross_entropy(h @ p["w2"] + p["b2"], y[rows])

        run = self.training(loss, p, adam(1e-3, 0.0))
        return lambda k: run(x, y, t[k % 1000])

    def gpt_decode(self):
        p = w.decoder()
        d, heads, last = w.DECODER["dim"], w.DECODER["heads"], w.DECODER["length"] - 1
        p = {k: jnp.asarray(v.T if k[:2] in ("qk", "pw", "fw", "ow") else v) for k, v in p.items()}

        @jax.jit
        def forward(p, token):
            h = p["wte"][token] + p["wpe"][last]
            for i in range(w.DECODER["layers"]):
                q, k, v = (norm(h, 1.0, 0.0) @ p[f"qkvw{i}"]).reshape(3, heads, 1, -1)
                keys = p[f"cache_k{i}"].at[:, last:].set(k)
                values = p[f"cache_v{i}"].at[:, last:].set(v)
                scores = q @ keys.transpose(0, 2, 1) / math.sqrt(d // heads)
                a = (jax.nn.softmax(scores, -1) @ values).reshape(1, d)
                h = h + a @ p[f"pw{i}"]
                m = jax.nn.gelu(norm(h, 1.0, 0.0) @ p[f"fw{i}"], approximate=True)
                h = h + m @ p[f"ow{i}"]
            logits = norm(h, 1.0, 0.0) @ p["wte"].T
            return logits, logits.argmax(1)

        token = jnp.zeros(1, jnp.int32)

        def call():
            nonlocal token
            logits, token = forward(p, token)
            self.last = token.block_until_ready()
            return logits

        return call

    def gpt_train(self):
        tokens, offsets, p = w.text()
        heads, d = w.GPT["heads"], w.GPT["dim"]
        linear = ("qkvw", "pw", "fw", "ow", "head")
        p |= {k: v.T.copy() for k, v in p.items() if k.rstrip("0123456789") in linear}

        def loss(p, x, y):
            batch, length = x.shape
            mask = jnp.tril(jnp.ones((length, length), bool))
            h = p["wte"][x] + p["wpe"]
            for i in range(w.GPT["layers"]):
                qkv = norm(h, p[f"l1g{i}"], p[f"l1b{i}"]) @ p[f"qkvw{i}"] + p[f"qkvb{i}"]
                q, k, v = qkv.reshape(batch, length, 3, heads, -1).transpose(2, 0, 3, 1, 4)
                scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(d // heads)
                a = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), -1) @ v
                a = a.transpose(0, 2, 1, 3).reshape(batch, length, d)
                h = h + a @ p[f"pw{i}"] + p[f"pb{i}"]
                m = norm(h, p[f"l2g{i}"], p[f"l2b{i}"]) @ p[f"fw{i}"] + p[f"fb{i}"]
                h = h + jax.nn.gelu(m, approximate=True) @ p[f"ow{i}"] + p[f"ob{i}"]
            logits = norm(h, p["lfg"], p["lfb"]) @ p["head"]
            return cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))

        run = self.training(loss, p, adam(3e-4, 0.01))
        return lambda k: run(*w.text_batch(tokens, offsets, k))
