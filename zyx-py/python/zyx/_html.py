"""Tensors and modules as notebooks show them."""

from html import escape

_MOST = 8


def table(head, rows):
    """A table of texts."""
    line = lambda cells, tag: "<tr>" + "".join(f"<{tag} style='text-align:left'>{escape(str(c))}</{tag}>" for c in cells) + "</tr>"  # noqa: E731
    return f"<table><thead>{line(head, 'th')}</thead><tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>"


def _places(n):
    """The positions that are shown: all, or the first and last, `None` between them."""
    return list(range(n)) if n <= _MOST else [*range(_MOST // 2), None, *range(n - _MOST // 2, n)]


def _text(value):
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def tensor_html(x):
    """Shape, dtype and device, and the elements of numbers, vectors and matrices; of more axes those of the first matrix."""
    about = f"<code>tensor</code> {list(x.shape)}, {x.dtype.name}, {escape(x.device.spec)}" + (", requires_grad" if x.requires_grad else "")
    if not x.numel():
        return f"<div>{about}</div>"
    y, lead = x.detach(), x.ndim - 2
    if lead > 0:
        y = y.reshape(-1, *x.shape[-2:])[0]
        about += f"; the matrix at {[0] * lead}"
    y = y.reshape(1, -1) if y.ndim < 2 else y
    rows, columns = (_places(n) for n in y.shape)
    # Only elements that are shown are read.
    for axis, places in enumerate((rows, columns)):
        if None in places:
            half = _MOST // 2
            y = type(y).cat([y.narrow(axis, 0, half), y.narrow(axis, y.shape[axis] - half, half)], axis) if hasattr(type(y), "cat") else y
    values = y.tolist()
    shown = iter(values)
    lines = []
    for row in rows:
        if row is None:
            lines.append("<tr>" + "<td>⋮</td>" * len(columns) + "</tr>")
            continue
        cells = iter(next(shown))
        lines.append("<tr>" + "".join(f"<td style='text-align:right'>{'⋯' if c is None else _text(next(cells))}</td>" for c in columns) + "</tr>")
    return f"<div>{about}<table>{''.join(lines)}</table></div>"


def module_html(module):
    """Type and options, and the modules inside, which open and close."""

    def shown(name, m):
        own = sum(p.numel() for p in m.parameters())
        title = f"{escape(name)}<b>{escape(type(m).__name__)}</b>({escape(m.extra_repr())})" + (f" <small>{own:,} parameters</small>" if own else "")
        inside = "".join(shown(f"{n}: ", child) for n, child in m.named_children())
        if not inside:
            return f"<div style='margin-left:1.2em'>{title}</div>"
        return f"<details open style='margin-left:1.2em'><summary>{title}</summary>{inside}</details>"

    return shown("", module)
