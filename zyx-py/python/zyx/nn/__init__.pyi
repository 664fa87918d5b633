"""Modules: layers, parameters by name, saving and loading.

The classes from `Linear` on are also the table that their bindings are made from: `build/` writes a
constructor for each, which calls `Name::new` in Rust with the parameters in order and the
initialiser, or what the `# rust:` line says. Every layer also takes `device` and `dtype`.
"""

from typing import Any

class Linear:
    def __init__(self, in_features: Size, out_features: Size, bias: bool = True) -> None:
        """`x @ weight.T + bias` over the last axis."""
        # rust: if bias { nn::Linear::new(in_features, out_features, init) } else { nn::Linear::without_bias(in_features, out_features, init) }
