#!/usr/bin/env python3
"""Derives the coefficients in zyx-ir/src/decompose. Needs mpmath; prints Rust arrays.

Polynomials: Remez exchange on a weighted error. Rational functions: Loeb's iteration, that is
weighted least squares of f(x) * Q(x) - P(x) with weights 1 / Q of the round before, on Chebyshev
nodes. Coefficients are in ascending order of powers.
"""

from mpmath import mp, mpf, matrix, lu_solve, cos, pi, exp, log, sin, atan, asin, sinh, tanh, erf, sqrt, log1p, expm1

mp.dps = 40


def cheb_nodes(a, b, n):
    return [(a + b) / 2 + (b - a) / 2 * cos(pi * (2 * i + 1) / (2 * n)) for i in reversed(range(n))]


def remez(f, weight, a, b, degree):
    """Minimises max |weight(x) * (f(x) - p(x))| over polynomials p; gives coefficients, error."""
    a, b = mpf(a), mpf(b)
    n = degree + 2
    nodes = [(a + b) / 2 - (b - a) / 2 * cos(pi * i / (n - 1)) for i in range(n)]
    for _ in range(12):
        rows = matrix(n, n)
        right = matrix(n, 1)
        for i, x in enumerate(nodes):
            for j in range(degree + 1):
                rows[i, j] = x**j
            rows[i, degree + 1] = (-1) ** i / weight(x)
            right[i] = f(x)
        solution = lu_solve(rows, right)
        p = [solution[j] for j in range(degree + 1)]

        def error(x):
            return weight(x) * (f(x) - sum(c * x**j for j, c in enumerate(p)))

        grid = [a + (b - a) * i / 600 for i in range(601)]
        errors = [error(x) for x in grid]
        extrema = []
        start = 0
        for i in range(1, len(grid) + 1):
            if i == len(grid) or (errors[i] > 0) != (errors[start] > 0):
                best = max(range(start, i), key=lambda k: abs(errors[k]))
                extrema.append(grid[best])
                start = i
        if len(extrema) < n:
            break
        while len(extrema) > n:
            extrema.pop(0 if abs(error(extrema[0])) < abs(error(extrema[-1])) else -1)
        nodes = extrema
    return p, max(abs(e) for e in errors)


def rational(f, a, b, odd_p, q_degree, rounds=30, nodes=120):
    """x * P(x^2) / Q(x^2) close to f in relative error, Q(0) = 1."""
    xs = cheb_nodes(mpf(a), mpf(b), nodes)
    weights = [1 / abs(f(x)) for x in xs]
    boost = [mpf(1)] * len(xs)
    for _ in range(rounds):
        unknowns = odd_p + 1 + q_degree
        normal = matrix(unknowns, unknowns)
        right = matrix(unknowns, 1)
        for x, w, s in zip(xs, weights, boost):
            y = x * x
            row = [x * y**j for j in range(odd_p + 1)] + [-f(x) * y**j for j in range(1, q_degree + 1)]
            w2 = (w * s) ** 2
            for i in range(unknowns):
                for j in range(unknowns):
                    normal[i, j] += w2 * row[i] * row[j]
                right[i] += w2 * row[i] * f(x)
        solution = lu_solve(normal, right)
        p = [solution[j] for j in range(odd_p + 1)]
        q = [mpf(1)] + [solution[odd_p + j] for j in range(1, q_degree + 1)]

        def value(x):
            y = x * x
            return x * sum(c * y**j for j, c in enumerate(p)) / sum(c * y**j for j, c in enumerate(q))

        errors = [abs(value(x) / f(x) - 1) for x in xs]
        worst = max(errors)
        mean = sum(errors) / len(errors)
        weights = [
            1 / abs(f(x)) / abs(sum(c * (x * x) ** j for j, c in enumerate(q))) for x in xs
        ]
        # Lawson's step towards the smallest largest error.
        boost = [b * sqrt((e / mean) if e > 0 else mpf("1e-3")) ** mpf("0.5") for b, e in zip(boost, errors)]
        total = sum(boost) / len(boost)
        boost = [max(b / total, mpf("1e-6")) for b in boost]
    return p, q, worst


def show(name, coefficients, error, digits=10):
    body = ", ".join(mp.nstr(c, digits) for c in coefficients)
    print(f"// relative error {mp.nstr(error, 3)}\nconst {name}: [f64; {len(coefficients)}] = [{body}];")


def main(digits, which):
    half_ln2 = log(2) / 2
    q = pi / 4 * (1 + mpf(2) ** -20)
    single = which == "f32"
    d = (lambda s, w: s if single else w)
    # exp(r) = sum, on half a factor of two around 1.
    show("EXP", *remez(exp, lambda r: 1 / exp(r), -half_ln2, half_ln2, d(6, 11)), digits)
    show("EXP2", *remez(lambda r: exp(r * log(2)), lambda r: 1 / exp(r * log(2)), -0.5, 0.5, d(6, 11)), digits)
    # expm1(r) = r + r^2 * sum.
    em = lambda r: (expm1(r) - r) / r**2 if abs(r) > 1e-9 else mpf(0.5) + r / 6
    show("EXPM1", *remez(em, lambda r: (r**2 / expm1(r) if abs(r) > 1e-9 else abs(r)) + mpf("1e-12"), -half_ln2, half_ln2, d(5, 10)), digits)
    # log(1 + f) = f - f^2 / 2 + f^3 * sum.
    lg = lambda f: (log1p(f) - f + f**2 / 2) / f**3 if abs(f) > 1e-7 else mpf(1) / 3 - f / 4
    show("LOG", *remez(lg, lambda f: abs(f) ** 3 / (abs(log1p(f)) if abs(f) > 1e-7 else 1) + mpf("1e-9"), sqrt(mpf(0.5)) - 1, sqrt(mpf(2)) - 1, d(8, 19)), digits)
    # sin(r) = r + r^3 * sum(r^2), cos(r) = 1 - r^2 / 2 + r^4 * sum(r^2).
    sn = lambda y: (sin(sqrt(y)) / sqrt(y) - 1) / y if y > 1e-12 else -mpf(1) / 6 + y / 120
    show("SIN", *remez(sn, lambda y: y + mpf("1e-9"), 0, q * q, d(3, 6)), digits)
    cs = lambda y: (cos(sqrt(y)) - 1 + y / 2) / y**2 if y > 1e-9 else mpf(1) / 24 - y / 720
    show("COS", *remez(cs, lambda y: y**2 + mpf("1e-9"), 0, q * q, d(3, 6)), digits)
    # asin(s) = s + s * z * sum(z), z = s^2 <= 1/4.
    an = lambda z: (asin(sqrt(z)) / sqrt(z) - 1) / z if z > 1e-12 else mpf(1) / 6 + z * 3 / 40
    show("ASIN", *remez(an, lambda z: z + mpf("1e-9"), 0, 0.25, d(5, 13)), digits)
    # atan(z) = z + z^3 * sum(z^2), z <= 1.
    at = lambda y: (atan(sqrt(y)) / sqrt(y) - 1) / y if y > 1e-12 else -mpf(1) / 3 + y / 5
    show("ATAN", *remez(at, lambda y: y + mpf("1e-9"), 0, 1, d(8, 20)), digits)
    # sinh(x) = x + x^3 * sum(x^2), x <= 1.
    sh = lambda y: (sinh(sqrt(y)) / sqrt(y) - 1) / y if y > 1e-12 else mpf(1) / 6 + y / 120
    show("SINH", *remez(sh, lambda y: y + mpf("1e-9"), 0, 1, d(3, 7)), digits)
    if single:
        for name, f, bound, degree in [("TANH", tanh, 9.011, 4), ("ERF", erf, 3.925, 5)]:
            p, q, e = rational(f, 1e-3, bound, degree, degree)
            show(f"{name}_P", p, e, digits)
            show(f"{name}_Q", q, e, digits)


if __name__ == "__main__":
    import sys

    width = sys.argv[1] if len(sys.argv) > 1 else "f32"
    main(12 if width == "f32" else 22, width)
