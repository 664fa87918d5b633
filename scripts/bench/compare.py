#!/usr/bin/env python3
"""Times zyx and every installed peer side by side, and keeps the ratios.

usage: compare.py [--rounds N] [--peers A,B] [--device cpu|cuda] [--zyx BINARY]
                  [--record] [--check] [--save FILE] [--load FILE] [WORKLOAD ..]

Each round runs every workload in a fresh process of zyx and then of each peer, so that a change of
the machine's mood meets all of them; the ratio of a row is the median over the rounds. Peers are
those that this Python can import (torch, jax, onnxruntime); candle and burn, in the operations
that `rust` has, where `--peers` names them, because building them takes minutes. On the CPU the ceiling of a row (what
a plain loop over as many arrays of 64 MiB, or over registers, reaches) is measured beside it as
if it were a peer, so its column is the share of the machine that zyx uses.

--device  where all of them compute; on a GPU the default workloads are those of its size
--zyx     a built zyx-bench, where there is no cargo to build it
--record  writes the table between the markers of BENCHMARKS.md, docs/benchmarks.svg, and the
          ratios to scripts/bench/recorded.json
--check   compares the ratios with those recorded; fails where one is worse by more than a fifth
--save    writes the table to a file; --load takes it from there and measures nothing, so that a
          run on one machine can be recorded on another
"""
import argparse
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import chart
import workloads as w
from peer import PEERS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# How much worse than recorded a ratio may be: runs on small virtual machines differ by a tenth.
SLACK = 1.2
# Peers that are no Python packages.
RUST = ["candle", "burn"]
# What the machine can do at most, by what a workload computes.
CEILINGS = {
    "matmul": "fma",
    "bmm": "fma",
    "conv2d": "fma",
    "gemv": "read",
    "sum": "read",
    "sum_rows": "read",
    "sum_cols": "read",
    "argmax_rows": "read",
    "gelu": "copy",
    "softmax": "copy",
    "layernorm": "copy",
    "cumsum": "copy",
    "chain": "chain",
}
# Of each device: workloads, files that are recorded.
DEVICES = {
    "cpu": (w.ALL, "recorded.json", "benchmarks.svg"),
    "cuda": (w.ALL_LARGE, "recorded-cuda.json", "benchmarks-cuda.svg"),
}


def installed():
    package = lambda name: {"onnxruntime": "onnx"}.get(name, name.split("-")[0])
    return [name for name in PEERS if importlib.util.find_spec(package(name))]


def rows_of(command, environment=None):
    environment = os.environ | (environment or {})
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE, env=environment)
    if done.returncode:
        print(f"{' '.join(map(str, command))}: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def one_round(names, peers, device, binary, rust):
    """{workload: {peer: row}} of one round."""
    table = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            w.save(name, folder)
            shared = [] if name in w.LARGE else ["--data", folder]
            rows = rows_of([binary, *shared, name], {"ZYX_DEVICE": device})
            for peer in [peer for peer in peers if peer in RUST and name in w.OPS]:
                rows += rust_rows(rust, peer, name, folder)
        for peer in [peer for peer in peers if peer not in RUST]:
            rows += rows_of([sys.executable, HERE / "peer.py", peer, name, "--device", device])
        table[name] = {row["peer"]: row for row in rows}
        if limit := ceiling(name, device):
            table[name]["ceiling"] = rows_of([binary, limit])[0]
        print(name, {peer: f"{row['value']:.4g}" for peer, row in table[name].items()}, file=sys.stderr)
        disagreements(name, table[name])
    return table


def rust_peers():
    """The program of the peers in Rust, built for this processor."""
    folder = ROOT / "target/rust-peers"
    build = ["cargo", "build", "--release", "--manifest-path", HERE / "rust/Cargo.toml"]
    build += ["--features", ",".join(RUST)]
    settings = {"CARGO_TARGET_DIR": str(folder), "RUSTFLAGS": "-C target-cpu=native"}
    subprocess.run(build, check=True, env=os.environ | settings)
    return folder / "release/rust-peers"


def rust_rows(program, peer, name, folder):
    unit, work, _ = w.OPS[name]
    rows = rows_of([program, peer, name, folder])
    return [row | {"unit": unit, "value": work / row["seconds"] / 1e9} for row in rows]


def ceiling(name, device):
    """The workload that measures what the machine can do at most, if there is one."""
    if device != "cpu" or w.dtype(name) != "f32":
        return None
    limit = CEILINGS.get(w.stem(name))
    return limit and f"ceiling_{limit}"


def disagreements(name, rows):
    """Says where a peer's result is not ours: then one of the two does other work."""
    # What is left of numbers of both signs depends on which were drawn.
    if name in w.LARGE and "sum" in name:
        return
    ours = rows.get("zyx", {}).get("checksum")
    slack = 2e-2 if w.dtype(name) != "f32" or name in w.LARGE else 1e-3
    for peer, row in rows.items():
        if ours and peer != "ceiling" and not math.isclose(ours, row["checksum"], rel_tol=slack):
            print(f"{name}: {peer} has the checksum {row['checksum']}, zyx {ours}", file=sys.stderr)


def ratio(rows, peer):
    """How many times faster zyx is."""
    ours, other = rows["zyx"]["value"], rows[peer]["value"]
    return other / ours if rows["zyx"]["unit"] == "ms" else ours / other


def summary(rounds, names, peers):
    """{workload: {unit, value, ratios}}, medians over the rounds."""
    table = {}
    for name in names:
        rows = [r[name] for r in rounds if "zyx" in r[name]]
        if not rows:
            continue
        ratios = {}
        for peer in [*peers, "ceiling"]:
            found = [ratio(row, peer) for row in rows if peer in row]
            if found:
                ratios[peer] = round(statistics.median(found), 3)
        value = statistics.median(row["zyx"]["value"] for row in rows)
        table[name] = {"unit": rows[0]["zyx"]["unit"], "value": value, "ratios": ratios}
    return table


def measure(args, names, peers):
    """The table of `--rounds` rounds, and what was measured beside it."""
    binary = args.zyx and args.zyx.resolve()
    if not binary:
        build = ["cargo", "build", "--release", "-p", "zyx-bench", "--bin", "zyx-bench"]
        build += [] if args.device == "cpu" else ["--features", f"zyx/{args.device}"]
        subprocess.run(build, check=True, cwd=ROOT, env=os.environ | {"CARGO_TERM_QUIET": "true"})
        binary = ROOT / "target/release/zyx-bench"
    rust = rust_peers() if any(peer in RUST for peer in peers) else None
    rounds = [one_round(names, peers, args.device, binary, rust) for _ in range(args.rounds)]
    table = summary(rounds, names, peers)
    ceilings = {}
    for row in [row for r in rounds for row in r.values() if "ceiling" in row]:
        row = row["ceiling"]
        ceilings.setdefault((row["workload"], row["unit"]), []).append(row["value"])
    ceilings = ", ".join(f"{n} {statistics.median(v):.4g} {u}" for (n, u), v in ceilings.items())
    return {"peers": peers, "ceilings": ceilings, "rounds": args.rounds, "table": table}


def markdown(run):
    table, rounds = run["table"], run["rounds"]
    # A column of its own, where there is one.
    limits = ["ceiling"] if any("ceiling" in row["ratios"] for row in table.values()) else []
    peers = run["peers"] + limits
    lines = [f"Ceilings, medians of those measured beside the rows: {run['ceilings']}."] if run["ceilings"] else []
    medians = "One round" if rounds == 1 else f"Medians of {rounds} rounds"
    lines += [f"{medians}; columns of peers say how many times faster zyx is than they are.", ""]
    lines += [f"| workload | unit | zyx | {' | '.join(peers)} |", "|---|---|---|" + "---|" * len(peers)]
    for name, row in table.items():
        cells = [f"{row['ratios'][p]:.2f}x" if p in row["ratios"] else "-" for p in peers]
        lines.append(f"| {name} | {row['unit']} | {row['value']:.4g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def record(run, device):
    _, recorded, drawn = DEVICES[device]
    mark = "compare" if device == "cpu" else f"compare {device}"
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    path = ROOT / "BENCHMARKS.md"
    before, rest = path.read_text().split(begin)
    after = rest.split(end)[1]
    path.write_text(f"{before}{begin}\n{markdown(run)}\n{end}{after}")
    (ROOT / "docs" / drawn).write_text(chart.svg(run["table"], run["peers"]))
    path = HERE / recorded
    old = json.loads(path.read_text()) if path.exists() else {}
    new = {name: row["ratios"] for name, row in run["table"].items()}
    path.write_text(json.dumps(old | new, indent=1, sort_keys=True) + "\n")


def check(table, device):
    """The rows that fell behind what is recorded, as text."""
    path = HERE / DEVICES[device][1]
    if not path.exists():
        sys.exit(f"nothing is recorded: {path} is written by --record")
    recorded = json.loads(path.read_text())
    worse = []
    for name, row in table.items():
        for peer, now in row["ratios"].items():
            before = recorded.get(name, {}).get(peer)
            if before and now * SLACK < before:
                worse.append(f"{name} beside {peer}: {now:.2f}x, recorded {before:.2f}x")
    return worse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", help="some of " + ",".join([*PEERS, *RUST]))
    parser.add_argument("--device", default="cpu", choices=DEVICES)
    parser.add_argument("--zyx", type=Path, metavar="BINARY")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--save", type=Path, metavar="FILE")
    parser.add_argument("--load", type=Path, metavar="FILE")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=" ".join(w.ALL))
    args = parser.parse_args()
    names = args.workloads or DEVICES[args.device][0]
    unknown = set(names) - {*w.ALL, *w.ALL_LARGE}
    if unknown:
        parser.error(f"no workload is called {', '.join(sorted(unknown))}")
    if args.load:
        run = json.loads(args.load.read_text())
    else:
        run = measure(args, names, args.peers.split(",") if args.peers else installed())
    print(markdown(run))
    if args.save:
        args.save.write_text(json.dumps(run, indent=1) + "\n")
    if args.record:
        record(run, args.device)
    if args.check:
        worse = check(run["table"], args.device)
        print("\n".join(worse) or "nothing fell behind what is recorded")
        sys.exit(bool(worse))


if __name__ == "__main__":
    main()
