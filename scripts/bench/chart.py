"""The ratios as a bar chart in SVG, on a logarithmic axis around 1."""
import math

COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee"]
BAR, GAP, LEFT, WIDTH = 9, 8, 190, 520
LOW, HIGH = 0.5, 16.0


def place(ratio):
    """The position of a ratio on the axis; what lies beyond its ends is drawn at the end."""
    clipped = min(max(ratio, LOW), HIGH)
    return LEFT + WIDTH * math.log(clipped / LOW) / math.log(HIGH / LOW)


def svg(table, peers):
    out, y = [], 40
    for name, row in table.items():
        bars = [(i, peer) for i, peer in enumerate(peers) if peer in row["ratios"]]
        if not bars:
            continue
        middle = y + len(bars) * BAR / 2 + 4
        out.append(f'<text x="{LEFT - 8}" y="{middle:.1f}" text-anchor="end">{name}</text>')
        for i, peer in bars:
            ends = sorted((place(1.0), place(row["ratios"][peer])))
            size = f'width="{max(ends[1] - ends[0], 1):.1f}" height="{BAR - 1}"'
            title = f"<title>{name}: {row['ratios'][peer]:.2f} times as fast as {peer}</title>"
            out.append(f'<rect x="{ends[0]:.1f}" y="{y}" {size} fill="{COLOURS[i % 5]}">{title}</rect>')
            y += BAR
        y += GAP
    axis = []
    for tick in (0.5, 1, 2, 4, 8, 16):
        x = place(tick)
        axis.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="34" y2="{y}" stroke="#ccc"/>')
        axis.append(f'<text x="{x:.1f}" y="{y + 14}" text-anchor="middle">{tick:g}x</text>')
    legend = [
        f'<rect x="{LEFT + 130 * i}" y="10" width="10" height="10" fill="{COLOURS[i % 5]}"/>'
        f'<text x="{LEFT + 130 * i + 15}" y="19">{peer}</text>'
        for i, peer in enumerate(peers)
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 30}" height="{y + 24}" '
    head += 'font-family="sans-serif" font-size="11">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *axis, *legend, *out, "</svg>", ""])
