"""Optimizers."""

class Adam:
    def __init__(self, params: Parameters, lr: float = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0) -> None:
        """Adam."""
        # rust: Adam::new(params, AdamOptions { learning_rate: lr, betas, eps, weight_decay, ..AdamOptions::default() })
