"""The workloads in PyTorch, eager or compiled."""
import torch
import torch.nn.functional as F
import workloads as w


def function(name):
    functions = {
        "gelu_16m": lambda a: F.gelu(a, approximate="tanh"),
        "chain_16m": lambda a, b, c: (a + b) * 5 - c,
        "sum_16m": torch.sum,
        "sum_rows_4096": lambda a: a.sum(1),
        "sum_cols_4096": lambda a: a.sum(0),
        "softmax_4096x1024": lambda a: a.softmax(-1),
        "layernorm_4096x1024": lambda a, g, b: F.layer_norm(a, (1024,), g, b, 1e-5),
        "cumsum_16m": lambda a: a.cumsum(0),
        "argmax_rows_4096": lambda a: a.argmax(1),
        "conv2d_fwd": lambda a, k: F.conv2d(a, k, padding=1),
    }
    return functions.get(name, torch.matmul)


class Peer:
    def __init__(self, threads, compiled):
        torch.set_num_threads(threads)
        self.fused = not compiled
        self.compile = torch.compile if compiled else lambda f: f

    def op(self, name, arrays):
        inputs = [torch.from_numpy(x) for x in arrays]
        if "bf16" in name:
            inputs = [x.bfloat16() for x in inputs]
        f = self.compile(function(name))

        def call():
            with torch.no_grad():
                return f(*inputs)

        return call, lambda y: (y.float() if y.is_floating_point() else y).numpy()

    def training(self, loss_of, arrays, optimizer):
        p = {k: torch.nn.Parameter(torch.from_numpy(v.copy())) for k, v in arrays.items()}
        optimizer = optimizer(list(p.values()))
        forward, update = self.compile(loss_of), self.compile(optimizer.step)

        def run(*inputs):
            optimizer.zero_grad(set_to_none=True)
            loss = forward(p, *inputs)
            loss.backward()
            update()
            return loss.item

        return run

    def mlp_train(self):
        x, y, t, p = w.images("mlp_train")
        x, y = torch.from_numpy(x), torch.from_numpy(y).long()

        def loss(p, rows):
            h = F.relu(F.linear(x[rows], p["w1"], p["b1"]))
            return F.cross_entropy(F.linear(h, p["w2"], p["b2"]), y[rows])

        sgd = lambda q: torch.optim.SGD(q, lr=0.01, momentum=0.9, fused=self.fused)
        run = self.training(loss, p, sgd)
        return lambda k: run(torch.from_numpy(t[k % 1000]))

    def conv_train(self):
        x, y, t, p = w.images("conv_train")
        x, y = torch.from_numpy(x), torch.from_numpy(y).long()

        def loss(p, rows):
            h = F.relu(F.conv2d(x[rows].view(-1, 1, 28, 28), p["c1"], p["d1"]))
            h = F.max_pool2d(F.relu(F.conv2d(h, p["c2"], p["d2"])), 2).flatten(1)
            h = F.relu(F.linear(h, p["w1"], p["b1"]))
            return F.cross_entropy(F.linear(h, p["w2"], p["b2"]), y[rows])

        run = self.training(loss, p, lambda q: torch.optim.Adam(q, lr=1e-3, fused=self.fused))
        return lambda k: run(torch.from_numpy(t[k % 1000]))

    def gpt_train(self):
        tokens, offsets, p = w.text()
        d, heads = w.GPT["dim"], w.GPT["heads"]
        norm = lambda x, p, name: F.layer_norm(x, (d,), p[name.replace("?", "g")], p[name.replace("?", "b")])

        def loss(p, x, y):
            batch, length = x.shape
            h = p["wte"][x] + p["wpe"]
            for i in range(w.GPT["layers"]):
                qkv = F.linear(norm(h, p, f"l1?{i}"), p[f"qkvw{i}"], p[f"qkvb{i}"])
                q, k, v = qkv.view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
                a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                a = a.transpose(1, 2).reshape(batch, length, d)
                h = h + F.linear(a, p[f"pw{i}"], p[f"pb{i}"])
                m = F.linear(norm(h, p, f"l2?{i}"), p[f"fw{i}"], p[f"fb{i}"])
                h = h + F.linear(F.gelu(m, approximate="tanh"), p[f"ow{i}"], p[f"ob{i}"])
            logits = F.linear(norm(h, p, "lf?"), p["head"])
            return F.cross_entropy(logits.flatten(0, 1), y.flatten())

        adamw = lambda q: torch.optim.AdamW(q, lr=3e-4, weight_decay=0.01, fused=self.fused)
        run = self.training(loss, p, adamw)

        def step(k):
            x, y = w.text_batch(tokens, offsets, k)
            return run(torch.from_numpy(x), torch.from_numpy(y).long())

        return step
