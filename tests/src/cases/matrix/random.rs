//! Rows of random numbers: the streams of a dtype are its own, so each is compared with itself on
//! the reference device.

use super::{Row, rows};
use zyx_core::{DType, Rng, Tensor};

/// A generator at its start.
fn rng() -> Rng {
    Rng::seed(5)
}

/// The rows.
pub(super) fn table() -> Vec<Row> {
    const N: [usize; 1] = [6];
    rows! { itself
        rand |s| Tensor::rand(N, s.dtype, &mut rng(), &s.device);
        rand_range |s| Tensor::rand_range(-1.0, 3.0, N, s.dtype, &mut rng(), &s.device);
        randn |s| Tensor::randn(N, s.dtype, &mut rng(), &s.device);
        randint |s| Tensor::randint(0, 9, N, s.dtype, &mut rng(), &s.device);
        rand_like |s| s.v.rand_like(&mut rng());
        randn_like |s| s.v.randn_like(&mut rng());
        randint_like |s| s.v.randint_like(0, 9, &mut rng());
        bernoulli |s| Tensor::bernoulli(0.5, N, &mut rng(), &s.device);
        permutation |s| Tensor::permutation(6, &mut rng(), &s.device);
        dropout |s| s.x.dropout(0.5, &mut rng());
        normal |s| Tensor::normal(1.0, 2.0, N, s.dtype, &mut rng(), &s.device);
        exponential |s| Tensor::exponential(2.0, N, s.dtype, &mut rng(), &s.device);
        laplace |s| Tensor::laplace(0.0, 1.0, N, s.dtype, &mut rng(), &s.device);
        cauchy |s| Tensor::cauchy(0.0, 1.0, N, s.dtype, &mut rng(), &s.device);
        gumbel |s| Tensor::gumbel(0.0, 1.0, N, s.dtype, &mut rng(), &s.device);
        gumbel_softmax |s| s.x.gumbel_softmax(0.5, true, 0, &mut rng());
        lognormal |s| Tensor::lognormal(0.0, 0.5, N, s.dtype, &mut rng(), &s.device);
        gamma |s| Tensor::gamma(2.0, 1.0, N, s.dtype, &mut rng(), &s.device);
        beta |s| Tensor::beta(2.0, 3.0, N, s.dtype, &mut rng(), &s.device);
        geometric |s| Tensor::geometric(0.25, N, s.dtype, &mut rng(), &s.device);
        truncated_normal |s| Tensor::truncated_normal(0.0, 1.0, -1.0, 2.0, N, s.dtype, &mut rng(), &s.device);
        poisson |s| Tensor::poisson(3.0, N, s.dtype, &mut rng(), &s.device);
        binomial |s| Tensor::binomial(5, 0.5, N, s.dtype, &mut rng(), &s.device);
        dirichlet |s| Tensor::dirichlet(&[1.0, 2.0], [3], s.dtype, &mut rng(), &s.device);
        multinomial |s| s.large.cast(float(s.dtype)).multinomial(2, true, &mut rng());
    }
}

/// The dtype of weights: itself if it holds floats.
fn float(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::F32 }
}
