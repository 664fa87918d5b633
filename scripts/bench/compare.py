#!/usr/bin/env python3
"""Times zyx and every installed peer side by side, and keeps the ratios.

usage: compare.py [--rounds N] [--peers A,B] [--record] [--check] [WORKLOAD ..]

Each round runs every workload in a fresh process of zyx and then of each peer, so that a change of
the machine's mood meets all of them; the ratio of a row is the median over the rounds. Peers are
those that this Python can import (torch, jax, onnxruntime). The ceilings of the machine are
measured in the same run.

--record  writes the table between the markers of BENCHMARKS.md, docs/benchmarks.svg, and the
          ratios to scripts/bench/recorded.json
--check   compares the ratios with those recorded; fails where one is worse by more than a fifth
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
ZYX = ROOT / "target/release/zyx-bench"
RECORDED = HERE / "recorded.json"
BEGIN, END = "<!-- compare: begin -->", "<!-- compare: end -->"
# How much worse than recorded a ratio may be: runs on small virtual machines differ by a tenth.
SLACK = 1.2
CEILINGS = [f"ceiling_{name}" for name in ("fma", "read", "copy", "chain")]


def installed():
    package = lambda name: {"onnxruntime": "onnx"}.get(name, name.split("-")[0])
    return [name for name in PEERS if importlib.util.find_spec(package(name))]


def rows_of(command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE)
    if done.returncode:
        print(f"{' '.join(map(str, command))}: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def one_round(names, peers):
    """{workload: {peer: row}} of one round."""
    table = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            w.save(name, folder)
            rows = rows_of([ZYX, "--data", folder, name])
        for peer in peers:
            rows += rows_of([sys.executable, HERE / "peer.py", peer, name])
        table[name] = {row["peer"]: row for row in rows}
        print(name, {peer: f"{row['value']:.4g}" for peer, row in table[name].items()}, file=sys.stderr)
        disagreements(name, table[name])
    return table


def disagreements(name, rows):
    """Says where a peer's result is not ours: then one of the two does other work."""
    ours = rows.get("zyx", {}).get("checksum")
    slack = 2e-2 if "bf16" in name else 1e-3
    for peer, row in rows.items():
        if ours and not math.isclose(ours, row["checksum"], rel_tol=slack):
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
        for peer in peers:
            found = [ratio(row, peer) for row in rows if peer in row]
            if found:
                ratios[peer] = round(statistics.median(found), 3)
        value = statistics.median(row["zyx"]["value"] for row in rows)
        table[name] = {"unit": rows[0]["zyx"]["unit"], "value": value, "ratios": ratios}
    return table


def markdown(table, peers, ceilings, rounds):
    lines = [f"Ceilings measured in the same run: {ceilings}. Medians of {rounds} rounds; columns of peers say how many times"]
    lines += ["faster zyx is than they are.", ""]
    lines += [f"| workload | unit | zyx | {' | '.join(peers)} |", "|---|---|---|" + "---|" * len(peers)]
    for name, row in table.items():
        cells = [f"{row['ratios'][p]:.2f}x" if p in row["ratios"] else "-" for p in peers]
        lines.append(f"| {name} | {row['unit']} | {row['value']:.4g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def record(table, peers, ceilings, rounds):
    path = ROOT / "BENCHMARKS.md"
    text = path.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n{markdown(table, peers, ceilings, rounds)}\n{END}{after}")
    (ROOT / "docs/benchmarks.svg").write_text(chart.svg(table, peers))
    old = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    new = {name: row["ratios"] for name, row in table.items()}
    RECORDED.write_text(json.dumps(old | new, indent=1, sort_keys=True) + "\n")


def check(table):
    """The rows that fell behind what is recorded, as text."""
    if not RECORDED.exists():
        sys.exit(f"nothing is recorded: {RECORDED} is written by --record")
    recorded = json.loads(RECORDED.read_text())
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
    parser.add_argument("--peers", help="some of " + ",".join(PEERS))
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=" ".join(w.ALL))
    args = parser.parse_args()
    names = args.workloads or w.ALL
    unknown = set(names) - set(w.ALL)
    if unknown:
        parser.error(f"no workload is called {', '.join(sorted(unknown))}")
    peers = args.peers.split(",") if args.peers else installed()
    environment = os.environ | {"CARGO_TERM_QUIET": "true"}
    subprocess.run(["cargo", "build", "--release", "-p", "zyx-bench"], check=True, cwd=ROOT, env=environment)
    ceilings = ", ".join(f"{r['workload']} {r['max']:.4g} {r['unit']}" for r in rows_of([ZYX, *CEILINGS]))
    rounds = [one_round(names, peers) for _ in range(args.rounds)]
    table = summary(rounds, names, peers)
    print(markdown(table, peers, ceilings, args.rounds))
    if args.record:
        record(table, peers, ceilings, args.rounds)
    if args.check:
        worse = check(table)
        print("\n".join(worse) or "nothing fell behind what is recorded")
        sys.exit(bool(worse))


if __name__ == "__main__":
    main()
