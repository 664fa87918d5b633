"""The workloads in PyTorch, eager or compiled."""
import torch
import torch.nn.functional as F
import workloads as w


FUNCTIONS = {
    "copy": lambda a: a + 1,
    "gelu": lambda a: F.gelu(a, approximate="tanh"),
    "chain": lambda a, b, c: (a + b) * 5 - c,
    "sum": torch.sum,
    "sum_rows": lambda a: a.sum(1),
    "sum_cols": lambda a: a.sum(0),
    "softmax": lambda a: a.softmax(-1),
    "layernorm": lambda a, g, b: F.layer_norm(a, (a.shape[-1],), g, b, 1e-5),
    "transpose": lambda a: a.t().contiguous(),
    "cumsum": lambda a: a.cumsum(0),
    "sort": lambda a: a.sort()[0],
    "argmax_rows": lambda a: a.argmax(1),
    "conv2d": lambda a, k: F.conv2d(a, k, padding=1),
    "attention": F.scaled_dot_product_attention,
    "attention_causal": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


class Peer:
    def __init__(self, threads, device, compiled):
        torch.set_num_threads(threads)
        # Products of f32 in f32, as everywhere else.
        torch.backends.cudnn.allow_tf32 = False
        self.device = device
        self.fused = not compiled
        self.compile = torch.compile if compiled else lambda f: f

    def wait(self):
        if self.device != "cpu":
            torch.cuda.synchronize()

    def tensor(self, array):
        return torch.from_numpy(array).to(self.device)

    def op(self, name, arrays):
        inputs = [self.tensor(x).to(DTYPES[w.dtype(name)]) for x in arrays]
        return self.call(name, inputs), lambda y: (y.float() if y.is_floating_point() else y).cpu().numpy()

    def large(self, name, shapes):
        torch.manual_seed(0)
        inputs = [torch.randn(shape, device=self.device).to(DTYPES[w.dtype(name)]) for shape in shapes]
        return self.call(name, inputs), lambda y: y.float().abs().mean().item()

    def call(self, name, inputs):
        f = self.compile(FUNCTIONS.get(w.stem(name), torch.matmul))

        def call():
            with torch.no_grad():
                return f(*inputs)

        return call

    def training(self, loss_of, arrays, optimizer):
        p = {k: torch.nn.Parameter(self.tensor(v.copy())) for k, v in arrays.items()}
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
        x, y = self.tensor(x), self.tensor(y).long()

        def loss(p, rows):
            h = F.relu(F.linear(x[rows], p["w1"], p["b1"]))
            return F.cross_entropy(F.linear(h, p["w2"], p["b2"]), y[rows])

        sgd = lambda q: torch.optim.SGD(q, lr=0.01, momentum=0.9, fused=self.fused)
        run = self.training(loss, p, sgd)
        return lambda k: run(self.tensor(t[k % 1000]))

    def conv_train(self):
        x, y, t, p = w.images("conv_train")
        x, y = self.tensor(x), self.tensor(y).long()

        def loss(p, rows):
            h = F.relu(F.conv2d(x[rows].view(-1, 1, 28, 28), p["c1"], p["d1"]))
            h = F.max_pool2d(F.relu(F.conv2d(h, p["c2"], p["d2"])), 2).flatten(1)
            h = F.relu(F.linear(h, p["w1"], p["b1"]))
            return F.cross_entropy(F.linear(h, p["w2"], p["b2"]), y[rows])

        run = self.training(loss, p, lambda q: torch.optim.Adam(q, lr=1e-3, fused=self.fused))
        return lambda k: run(self.tensor(t[k % 1000]))

    def gpt_train(self):
        return self.gpt(w.GPT)

    def gpt2_train_bf16(self):
        return self.gpt(w.GPT2)

    def gpt_decode(self):
        p = {k: self.tensor(v) for k, v in w.decoder().items()}
        d, heads, last = w.DECODER["dim"], w.DECODER["heads"], w.DECODER["length"] - 1
        one, zeros = torch.ones(d, device=self.device), [torch.zeros(n * d, device=self.device) for n in range(5)]
        norm = lambda x: F.layer_norm(x, (d,), one, zeros[1], 1e-5)

        def forward(token):
            h = p["wte"][token] + p["wpe"][last]
            for i in range(w.DECODER["layers"]):
                q, k, v = F.linear(norm(h), p[f"qkvw{i}"], zeros[3]).view(3, heads, 1, -1)
                p[f"cache_k{i}"][:, last:] = k
                p[f"cache_v{i}"][:, last:] = v
                a = F.scaled_dot_product_attention(q, p[f"cache_k{i}"], p[f"cache_v{i}"])
                h = h + F.linear(a.reshape(1, d), p[f"pw{i}"], zeros[1])
                m = F.linear(norm(h), p[f"fw{i}"], zeros[4])
                h = h + F.linear(F.gelu(m, approximate="tanh"), p[f"ow{i}"], zeros[1])
            return F.linear(norm(h), p["wte"])

        forward = self.compile(forward)
        token = 0

        def call():
            nonlocal token
            with torch.no_grad():
                logits = forward(torch.tensor([token], device=self.device))
                token = logits.argmax(1).item()
                return logits

        return call

    def gpt(self, gpt):
        tokens, offsets, p = w.text(gpt)
        d, heads = gpt["dim"], gpt["heads"]
        norm = lambda x, p, name: F.layer_norm(x, (d,), p[name.replace("?", "g")], p[name.replace("?", "b")])

        def loss(p, x, y):
            with torch.autocast(self.device, torch.bfloat16, enabled=gpt["bf16"]):
                logits = forward(p, x)
            return F.cross_entropy(logits.float().flatten(0, 1), y.flatten())

        def forward(p, x):
            batch, length = x.shape
            h = p["wte"][x] + p["wpe"]
            for i in range(gpt["layers"]):
                qkv = F.linear(norm(h, p, f"l1?{i}"), p[f"qkvw{i}"], p[f"qkvb{i}"])
                q, k, v = qkv.view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
                a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                a = a.transpose(1, 2).reshape(batch, length, d)
                h = h + F.linear(a, p[f"pw{i}"], p[f"pb{i}"])
                m = F.linear(norm(h, p, f"l2?{i}"), p[f"fw{i}"], p[f"fb{i}"])
                h = h + F.linear(F.gelu(m, approximate="tanh"), p[f"ow{i}"], p[f"ob{i}"])
            return F.linear(norm(h, p, "lf?"), p["head"])

        adamw = lambda q: torch.optim.AdamW(q, lr=3e-4, weight_decay=0.01, fused=self.fused)
        run = self.training(loss, p, adamw)

        def step(k):
            x, y = w.text_batch(tokens, offsets, k, gpt)
            return run(self.tensor(x), self.tensor(y).long())

        return step
