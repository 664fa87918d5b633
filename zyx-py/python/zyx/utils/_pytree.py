"""Values within tuples, lists and dicts, under the names of `torch.utils._pytree`."""

import collections
from typing import NamedTuple

_SEQUENCES = (tuple, list, collections.deque)


class TreeSpec(NamedTuple):
    """The structure of a tree: the class of a node, its keys or maximum length, and the structures of its children."""

    type: object
    context: object
    children_specs: list

    @property
    def num_leaves(self):
        """The number of leaves."""
        return 1 if self.type is None else sum(child.num_leaves for child in self.children_specs)

    def is_leaf(self):
        """Whether the tree is one leaf."""
        return self.type is None


def tree_flatten(tree, is_leaf=None):
    """The leaves in order, and the structure."""
    leaves = []

    def walk(node):
        if is_leaf is not None and is_leaf(node) or not isinstance(node, (*_SEQUENCES, dict)):
            leaves.append(node)
            return TreeSpec(None, None, [])
        if isinstance(node, dict):
            context = (list(node), getattr(node, "default_factory", None))
            return TreeSpec(type(node), context, [walk(x) for x in node.values()])
        return TreeSpec(type(node), getattr(node, "maxlen", None), [walk(x) for x in node])

    spec = walk(tree)
    return leaves, spec


def tree_unflatten(leaves, treespec):
    """The tree with this structure and these leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: {len(leaves)} leaves for a structure of {treespec.num_leaves}")
    rest = iter(leaves)

    def build(spec):
        if spec.type is None:
            return next(rest)
        parts = [build(child) for child in spec.children_specs]
        if issubclass(spec.type, dict):
            keys, factory = spec.context
            pairs = zip(keys, parts)
            return spec.type(factory, pairs) if issubclass(spec.type, collections.defaultdict) else spec.type(pairs)
        if issubclass(spec.type, collections.deque):
            return spec.type(parts, maxlen=spec.context)
        return spec.type(*parts) if hasattr(spec.type, "_fields") else spec.type(parts)

    return build(treespec)


def tree_leaves(tree, is_leaf=None):
    """The leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


tree_iter = tree_leaves


def tree_structure(tree, is_leaf=None):
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The tree with the results of a function at its leaves; further trees of the same structure give further arguments."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_flatten(rest, is_leaf) for rest in rests]
    if any(other != spec for _, other in others):
        raise ValueError("tree_map: trees of different structures")
    return tree_unflatten([func(*xs) for xs in zip(leaves, *(x for x, _ in others))], spec)


def tree_map_(func, tree, *rests, is_leaf=None):
    """Calls a function at each leaf; gives the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _chosen(types):
    return types if callable(types) and not isinstance(types, type) else lambda x: isinstance(x, types)


def tree_map_only(type_or_types_or_pred, func, tree, is_leaf=None):
    """The tree with the results of a function at the leaves of some classes."""
    holds = _chosen(type_or_types_or_pred)
    return tree_map(lambda x: func(x) if holds(x) else x, tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether all leaves fulfil a condition."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether any leaf fulfils a condition."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types, pred, tree, is_leaf=None):
    """Whether all leaves of some classes fulfil a condition."""
    holds = _chosen(type_or_types)
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if holds(x))


def tree_any_only(type_or_types, pred, tree, is_leaf=None):
    """Whether any leaf of some classes fulfils a condition."""
    holds = _chosen(type_or_types)
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if holds(x))
