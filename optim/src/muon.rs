//! Muon: momentum made orthogonal by Newton and Schulz' iteration (Jordan et al. 2024).
//!
//! For matrices only: embeddings, biases and gains go to another optimizer, beside it in
//! [`Groups`](crate::Groups). The iteration runs in the dtype of the state (`f32`, or `f64` for
//! `f64` parameters), where PyTorch rounds to `bf16`.

use crate::optimizer::{
    Slot, State, Update, check_option, mean_towards, optimizers, refuse, shrunk,
};
use zyx_core::{Result, Tensor};

/// The numbers of [`Muon`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MuonOptions {
    /// The factor of each step; 1e-3. A matrix that is taller than wide has it times the root of
    /// the ratio.
    pub learning_rate: f64,
    /// How slowly the mean gradient moves; 0.95.
    pub momentum: f64,
    /// Look ahead along the momentum; true.
    pub nesterov: bool,
    /// The parameter shrinks by this times the learning rate; 0.1.
    pub weight_decay: f64,
    /// Of the polynomial `a x + b x^3 + c x^5` that drives singular values towards 1; 3.4445,
    /// -4.775 and 2.0315.
    pub coefficients: [f64; 3],
    /// How often the polynomial is applied; 5.
    pub iterations: usize,
    /// The smallest norm that is divided by; 1e-7.
    pub eps: f64,
}

impl Default for MuonOptions {
    fn default() -> MuonOptions {
        MuonOptions {
            learning_rate: 1e-3,
            momentum: 0.95,
            nesterov: true,
            weight_decay: 0.1,
            coefficients: [3.4445, -4.775, 2.0315],
            iterations: 5,
            eps: 1e-7,
        }
    }
}

impl MuonOptions {
    #[track_caller]
    fn check(&self, op: &'static str) -> Result<()> {
        check_option(op, "learning_rate", self.learning_rate, 0.0, f64::INFINITY)?;
        check_option(op, "momentum", self.momentum, 0.0, 1.0)?;
        check_option(op, "weight_decay", self.weight_decay, 0.0, f64::INFINITY)?;
        check_option(op, "eps", self.eps, 0.0, f64::INFINITY)?;
        check_option(op, "iterations", self.iterations as f64, 0.0, 100.0)
    }

    fn states(&self) -> Vec<State> {
        vec![State::zeros("momentum_buffer")]
    }

    #[track_caller]
    fn update(&self, value: &Tensor, gradient: &Tensor, slot: &Slot) -> Result<Update> {
        let &[rows, columns] = value.shape().dims() else {
            let reason = format!("Muon is for matrices, a parameter has shape {}", value.shape());
            return Err(refuse("apply", reason));
        };
        let momentum = mean_towards(&slot.state[0], gradient, self.momentum)?;
        let direction = match self.nesterov {
            true => mean_towards(&momentum, gradient, self.momentum)?,
            false => momentum.clone(),
        };
        let direction = self.orthogonal(&direction, rows > columns)?;
        let tall = (rows as f64 / columns.max(1) as f64).max(1.0).sqrt();
        let kept = shrunk(value, self.learning_rate, self.weight_decay)?;
        let value = kept.sub(direction.mul(self.learning_rate * tall)?)?;
        Ok(Update { value, state: vec![momentum] })
    }

    /// About the nearest matrix with orthonormal rows, or columns if `tall`.
    fn orthogonal(&self, x: &Tensor, tall: bool) -> Result<Tensor> {
        let [a, b, c] = self.coefficients;
        let mut x = if tall { x.t() } else { x.clone() };
        let norm = x.square().sum(..)?.sqrt().maximum(self.eps)?;
        x = x.div(norm)?;
        for _ in 0..self.iterations {
            let gram = x.matmul(&x.t())?;
            let polynomial = gram.mul(b)?.add(gram.matmul(&gram)?.mul(c)?)?;
            x = x.mul(a)?.add(polynomial.matmul(&x)?)?;
        }
        Ok(if tall { x.t() } else { x })
    }
}

optimizers! {
    /// Steps of orthonormal rows or columns along the momentum, for matrices.
    ///
    /// ```
    /// use zyx::optim::{Muon, MuonOptions, Optimizer};
    /// use zyx::{Param, Tensor};
    /// let device = zyx::device()?;
    /// let x = Param::new(Tensor::new([[1f32, 0.0], [0.0, 2.0]], &device)?);
    /// let options = MuonOptions { learning_rate: 0.1, weight_decay: 0.0, ..Default::default() };
    /// let mut muon = Muon::new(vec![x.clone()], options)?;
    /// muon.step(&x.tensor().square().sum(..)?)?;
    /// // Both singular values fall by about the learning rate, however large their gradients.
    /// let [a, _, _, d] = x.tensor().to_vec::<f32>()?[..] else { unreachable!() };
    /// assert!((0.85..0.95).contains(&a) && (1.85..1.95).contains(&d));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    Muon MuonOptions states update (momentum);
}
