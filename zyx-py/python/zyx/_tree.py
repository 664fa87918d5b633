"""Tensors within tuples, lists and dicts."""

from ._core import Tensor


def flatten(tree, leaf=Tensor):
    """The leaves in order, and a function that puts others in their place."""
    if isinstance(tree, leaf) or tree is None or not isinstance(tree, (tuple, list, dict)):
        return [tree], lambda leaves: leaves[0]
    keys = None if not isinstance(tree, dict) else list(tree)
    parts = [flatten(part, leaf) for part in (tree if keys is None else tree.values())]
    sizes = [len(leaves) for leaves, _ in parts]

    def rebuild(leaves):
        made, start = [], 0
        for size, (_, part) in zip(sizes, parts):
            made.append(part(leaves[start : start + size]))
            start += size
        if keys is not None:
            return type(tree)(zip(keys, made))
        return type(tree)(*made) if hasattr(tree, "_fields") else type(tree)(made)

    return [x for leaves, _ in parts for x in leaves], rebuild


def spread(prefix, tree, name):
    """The value that a prefix of a tree, as `in_dims` is, has for each leaf."""
    if not isinstance(tree, (tuple, list, dict)):
        return [prefix]
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    if isinstance(prefix, (tuple, list, dict)):
        if len(prefix) != len(tree):
            raise ValueError(f"{name}: {prefix!r} has not the structure of the arguments")
        return [x for key in keys for x in spread(prefix[key], tree[key], name)]
    return [x for key in keys for x in spread(prefix, tree[key], name)]


def map_tree(function, tree):
    """The tree with the results of a function at its tensors."""
    leaves, rebuild = flatten(tree)
    return rebuild([function(x) if isinstance(x, Tensor) else x for x in leaves])
