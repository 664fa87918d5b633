"""The kernels of `examples/src/kernels` in Python, in the same order of statements.

The language in Python does not tell what a device has (`caps` of Rust), so tiles and threads are those that the Rust kernels
take on a CPU.
"""

import math

import zyx

FAR = 2**31 - 1


def accumulator(dtype):
    """The dtype that sums are computed in: `float32` for halves."""
    return zyx.float32 if dtype in (zyx.float16, zyx.bfloat16) else dtype


@zyx.kernel
def softmax(k):
    x = k.input("x", k.sizes("rows", "cols"))
    y = k.output("y", x.shape, x.dtype)
    rows, cols = x.shape
    @k.groups([rows], threads=256)
    def _(g, row):
        at = lambda i: x[row, i].cast(accumulator(x.dtype))  # noqa: E731
        largest = g.reduce("max", cols, at)
        sum = g.reduce("add", cols, lambda i: (at(i) - largest).exp())
        @g.each(cols)
        def _(i):
            y[row, i] = ((at(i) - largest).exp() / sum).cast(y.dtype)


@zyx.kernel
def cumsum(k):
    rows, cols = k.sizes("rows", "cols")
    x = k.input("x", [rows, cols])
    y = k.output("y", [rows, cols], x.dtype)
    @k.groups([rows], threads=256)
    def _(g, row):
        dtype = accumulator(x.dtype)
        def emit(i, _, sum):
            y[row, i] = sum.cast(y.dtype)
        g.scan("add", cols, dtype, lambda i: x[row, i].cast(dtype), emit)


@zyx.kernel
def scan(k):
    """Running sums of one long row in one pass. A tile has 256 parts of an odd number of elements."""
    n = k.size("n")
    x = k.input("x", [n])
    y = k.output("y", [n], x.dtype)
    dtype = accumulator(x.dtype)
    parts, own = 256, 96 * 8 // dtype.bits - 1
    tile_len, zero = parts * own, k.value(0, dtype)
    tiles = n.div_ceil(tile_len)
    sums = k.look_back("sums", "add", dtype, tiles)
    @k.groups([tiles], threads=1)
    def _(g, _):
        tile = sums.ticket(g)
        element = lambda i: x.at_or(i, 0).cast(dtype)  # noqa: E731
        kept, starts = g.shared([tile_len], dtype), g.shared([parts], dtype)
        @g.each(tile_len)
        def _(i):
            kept[i] = element(tile * tile_len + i)
        def sum_of(part):
            def add(sum, i):
                at = part * own + i
                sum = sum + kept[at]
                kept[at] = sum
                return sum
            return k.fold((0, own), zero, add)
        def start(part, before, _):
            starts[part] = before
        def recompute(tile):
            first = tile * tile_len
            add = lambda part: k.fold((0, own), zero, lambda sum, i: sum + element(first + part * own + i))  # noqa: E731
            return g.scan("add", parts, dtype, add, lambda *_: None)
        before = sums.prefix(g, tile, g.scan("add", parts, dtype, sum_of, start), recompute)
        @g.each(tile_len)
        def _(i):
            at = tile * tile_len + i
            y.set_if(at < n, at, (before + (starts[i // own] + kept[i])).cast(y.dtype))


def key_dtypes(dtype):
    """The integer as wide as a number, and the one that holds its key."""
    return {16: ("int16", "int32"), 32: ("int32", "int32"), 64: ("int64", "int64")}[dtype.bits]


def key(x):
    """The key's lower bits, as many as the number has and without sign, are in the order of numbers."""
    (narrow, held), sign = key_dtypes(x.dtype), -1 << (x.dtype.bits - 1)
    bits = x.bitcast(narrow).cast(held)
    if x.dtype.is_floating_point:
        return (x != x).select(-1, (bits < 0).select(~bits, bits ^ sign))
    return bits ^ sign if x.dtype.is_signed else bits


def number(key, dtype):
    """The number of a key."""
    (narrow, _), sign = key_dtypes(dtype), -1 << (dtype.bits - 1)
    signed = (key < 0).select(key ^ sign, ~key) if dtype.is_floating_point else key ^ sign
    bits = signed if dtype.is_signed else key
    return bits.cast(narrow).bitcast(dtype)


@zyx.kernel
def sort(k):
    """Rows in ascending order; of floats -0 is before 0, and NaN last."""
    rows, cols = k.sizes("rows", "cols")
    x = k.input("x", [rows, cols])
    y = k.output("y", [rows, cols], x.dtype)
    dtype = zyx.DType(key_dtypes(x.dtype)[1])
    max_keys, digit_bits = 4096 // dtype.itemsize, 4
    k.limit(cols, max_keys)
    @k.groups([rows], threads=1)
    def _(g, row):
        keys = g.shared([2, max_keys], dtype)
        @g.each(cols)
        def _(i):
            keys[0, i] = key(x[row, i])
        @k.for_each(x.dtype.bits // digit_bits)
        def _(turn):
            source, target = turn % 2, (turn + 1) % 2
            def keep(i, at):
                keys[target, at] = keys[source, i]
            g.rank(cols, digit_bits, lambda i: keys[source, i] >> (turn * digit_bits).cast(dtype), keep)
        @g.each(cols)
        def _(i):
            y[row, i] = number(keys[0, i], y.dtype)


@zyx.kernel
def mish(x):
    return x * (x.maximum(0) + (-x.abs()).exp().log1p()).tanh()


@zyx.kernel
def gated(gate, up):
    return gate * gate.sigmoid() * up


@gated.gradient
def _(of):
    gate, up = of.inputs
    opened = gate.sigmoid()
    slope = opened * (gate * (1 - opened) + 1)
    return [of.cotangent * up * slope, of.cotangent * gate * opened]


@zyx.kernel
def segment_sum(k):
    n, segments = k.sizes("n", "segments")
    x = k.input("x", [n])
    starts = k.input("starts", [segments + 1])
    y = k.output("y", [segments], x.dtype)
    @k.groups([segments], threads=64)
    def _(g, segment):
        span = starts[segment], starts[segment + 1]
        y[segment] = g.reduce("add", span, lambda i: x[i].cast(accumulator(x.dtype))).cast(y.dtype)


@zyx.kernel
def product(k):
    m, n, depth = k.sizes("m", "n", "depth")
    x = k.input("x", [m, depth])
    w = k.input("w", [depth, n])
    y = k.output("y", [m, n], x.dtype)
    rows, columns = (k.parameter(name, [32, 64, 128]) for name in ("rows", "columns"))
    dtype = zyx.int32 if x.dtype in (zyx.int8, zyx.uint8) else accumulator(x.dtype)
    @k.groups([m.div_ceil(rows), n.div_ceil(columns)], threads=128)
    def _(g, i, j):
        top, left = i * rows, j * columns
        sums = g.matrix([rows, columns], dtype)
        sums.add_product(depth, lambda i, step: x.at_or((top + i, step), 0), lambda step, j: w.at_or((step, left + j), 0))
        def store(i, j, sum):
            y.set_if((i < m) & (j < n), (i, j), sum.cast(y.dtype))
        sums.each()(lambda i, j, sum: store(top + i, left + j, sum))


def heat(rate):
    @zyx.kernel
    def heat(k):
        height, width = k.sizes("height", "width")
        x = k.input("x", [height, width])
        y = k.output("y", [height, width], x.dtype)
        @k.each([height, width])
        def _(i, j):
            at = lambda i, j: x.at_or((i, j), 0)  # noqa: E731
            around = at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1)
            y[i, j] = x[i, j] + (around - x[i, j] * 4) * rate
    return heat


def power(x):
    """`2^x`, and 0 below the normal numbers of `float32`."""
    return (x < -126).select(0, x.exp2())


def attention(width, causal):
    """Of queries `[heads, n, width]`, keys and values `[heads, keys, width]`; the width is a power of two."""
    @zyx.kernel
    def attention(k):
        heads, n, keys = k.sizes("heads", "n", "keys")
        across = k.index(width)
        q = k.input("q", [heads, n, across])
        key = k.input("k", [heads, keys, across])
        v = k.input("v", [heads, keys, across])
        y = k.output("y", [heads, n, across], q.dtype)
        dtype = accumulator(q.dtype)
        rows, block = k.parameter("rows", [32, 16]), k.parameter("block", [32, 16])
        threads = k.parameter("threads", [128, 256])
        scale = math.log2(math.e) / math.sqrt(width)
        parts = n.div_ceil(rows)
        @k.groups([parts, heads], threads=threads)
        def _(g, part, head):
            # Groups of queries that see the most keys begin first.
            top = (parts - 1 - part) * rows
            sums, queries = g.matrix([rows, width], dtype), g.matrix([rows, width], dtype)
            queries.map(lambda i, step, _: q.at_or((head, top + i, step), 0).cast(dtype))
            most, total = sums.rows(-math.inf), sums.rows(0)
            end = keys.minimum(top + rows) if causal else keys
            @k.for_each(end.div_ceil(block))
            def _(turn):
                first = turn * block
                def probabilities():
                    scores = g.matrix([rows, block], dtype)
                    scores.add_product_of(queries, q.dtype, lambda step, j: key.at_or((head, first + j, step), 0))
                    def seen(i, j, score):
                        there = first + j < keys
                        there = there & (first + j <= top + i) if causal else there
                        return there.select(score, -math.inf)
                    all_seen = keys.minimum(top + 1) if causal else keys
                    k.when(first + block > all_seen)(lambda: scores.map(seen))
                    now = most.map([scores.reduce_rows("max")], lambda x, y: x.maximum(y * scale))
                    worth = most.map([now], lambda before, now: power(before - now))
                    scores.map_rows([now], lambda i, j, score, now: power(score.mul_add(scale, -now)))
                    part = scores.reduce_rows("add")
                    total.set(total.map([worth, part], lambda x, w, sum: x * w + sum))
                    sums.map_rows([worth], lambda i, j, sum, worth: sum * worth)
                    most.set(now)
                    return scores
                sums.add_product_after(block, v.dtype, probabilities, lambda step, j: v.at_or((head, first + step, j), 0))
            sums.each(total)(lambda i, j, sum, total: y.set_if(top + i < n, (head, top + i, j), (sum / total).cast(y.dtype)))
    return attention


def rms_norm(epsilon):
    @zyx.kernel
    def rms_norm(k):
        rows, cols = k.sizes("rows", "cols")
        x, weight = k.input("x", [rows, cols]), k.input("weight", [cols])
        y = k.output("y", [rows, cols], x.dtype)
        dtype = accumulator(x.dtype)
        @k.groups([rows], threads=128)
        def _(g, row):
            squares = g.reduce("add", cols, lambda i: x[row, i].cast(dtype).square())
            factor = (squares / cols.cast(dtype) + epsilon).sqrt().recip()
            @g.each(cols)
            def _(i):
                y[row, i] = (x[row, i].cast(dtype) * factor * weight[i].cast(dtype)).cast(y.dtype)
    return rms_norm


@zyx.kernel
def histogram(k):
    """Counts of bytes: each group counts in storage of its own first."""
    n, most = k.size("n"), 4096
    x = k.input("x", [n])
    counts = k.output_filled("counts", [256], "int32", 0)
    @k.groups([n.div_ceil(most)], threads=256)
    def _(g, part):
        own = g.shared([256], "int32")
        @g.each(256)
        def _(bin):
            own[bin] = 0
        first = part * most
        g.each((n - first).minimum(most))(lambda i: own.atomic("add", x[first + i], 1))
        g.each(256)(lambda bin: counts.atomic("add", bin, own[bin]))


@zyx.kernel
def shorten(k):
    """Shortens distances along edges until the queue is empty; tells whether it shortened one."""
    nodes, edges = k.sizes("nodes", "edges")
    starts, targets = k.input("starts", [nodes + 1]), k.input("targets", [edges])
    distances = k.output_from("distances", k.input("before", [nodes]))
    shortened = k.output_filled("shortened", [1], "int32", 0)
    queue, groups = k.queue("queue", nodes * 2), 8
    def follow(edge, distance):
        target = targets[edge]
        def shorter():
            k.when(distances.fetch("min", target, distance) > distance)(lambda: (shortened.atomic("max", 0, 1), queue.push(target)))
        k.when(distances.at_atomic(target) > distance)(shorter)
    @k.groups([groups], threads=64)
    def _(g, group):
        part = nodes.div_ceil(groups)
        @g.each(part)
        def _(i):
            node = group * part + i
            @k.when(node < nodes)
            def _():
                distance = distances.at_atomic(node)
                edges_of = lambda: k.for_each((starts[node], starts[node + 1]))(lambda edge: follow(edge, distance + 1))  # noqa: E731
                k.when(distance < FAR)(edges_of)
        @queue.drain(g)
        def _(node):
            # It changes nothing, but gets the distance that the node was pushed with, or a shorter one.
            distance = distances.fetch("min", node, FAR)
            first, end = starts[node].cast("int64"), starts[node + 1].cast("int64")
            g.each(end - first)(lambda i: follow(first + i, distance + 1))


def bfs(starts, targets, source):
    """Distances in edges from a node to each, in a graph in CSR form: `shorten` until it shortens none."""
    distances = [0 if i == source else FAR for i in range(starts.numel() - 1)]
    distances = zyx.tensor(distances, dtype=zyx.int32, device=starts.device)
    while True:
        distances, shortened = shorten(starts, targets, distances)
        if shortened.item() == 0:
            return distances


@zyx.kernel
def collatz(k):
    """Steps after which each number is 1, where an even one is halved and an odd one becomes `3 n + 1`."""
    n = k.size("n")
    x, y = k.input("x", [n]), k.output("y", [n], "int32")
    @k.each(n)
    def _(i):
        number, steps = k.var(x[i]), k.var(0, "int32")
        @k.while_(lambda: number.get() > 1)
        def _():
            now = number.get()
            number.set((now % 2 == 1).select(now * 3 + 1, now // 2))
            steps.set(steps.get() + 1)
        y[i] = steps.get()
