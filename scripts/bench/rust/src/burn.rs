//! The workloads in burn, on its backend for CPUs.

use crate::{Array, Call, Result};
use burn_tensor::module::{conv2d, layer_norm};
use burn_tensor::ops::ConvOptions;
use burn_tensor::{Device, Tensor, TensorData, activation};

pub(crate) fn workload(name: &str, inputs: &[Array]) -> Result<Option<Call>> {
    Ok(Some(match name {
        "sum_16m" => call(of::<1>(inputs), |x| x[0].clone().sum()),
        "sum_rows_4096" => call(of::<2>(inputs), |x| x[0].clone().sum_dim(1)),
        "sum_cols_4096" => call(of::<2>(inputs), |x| x[0].clone().sum_dim(0)),
        "argmax_rows_4096" => call(of::<2>(inputs), |x| x[0].clone().argmax(1).float()),
        "chain_16m" => {
            call(of::<1>(inputs), |x| (x[0].clone() + x[1].clone()) * 5.0 - x[2].clone())
        }
        "gelu_16m" => call(of::<1>(inputs), |x| activation::gelu_approximate(x[0].clone())),
        "softmax_4096x1024" => call(of::<2>(inputs), |x| activation::softmax(x[0].clone(), 1)),
        "layernorm_4096x1024" => {
            let (gamma, beta) = (one(&inputs[1]), one(&inputs[2]));
            call(of::<2>(&inputs[..1]), move |x| {
                layer_norm(x[0].clone(), gamma.clone(), Some(beta.clone()), 1e-5)
            })
        }
        "gemv_f32_4096" => {
            let column = one::<1>(&inputs[1]).unsqueeze_dim::<2>(1);
            call(of::<2>(&inputs[..1]), move |x| x[0].clone().matmul(column.clone()))
        }
        "conv2d_fwd" => call(of::<4>(inputs), |x| {
            let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
            conv2d(x[0].clone(), x[1].clone(), None, options)
        }),
        "cumsum_16m" => call(of::<1>(inputs), |x| x[0].clone().cumsum(0)),
        _ if name.starts_with("matmul_f32") => {
            call(of::<2>(inputs), |x| x[0].clone().matmul(x[1].clone()))
        }
        _ if name.starts_with("bmm_f32") => {
            call(of::<3>(inputs), |x| x[0].clone().matmul(x[1].clone()))
        }
        _ => return Ok(None),
    }))
}

fn one<const D: usize>(Array(shape, x): &Array) -> Tensor<D> {
    Tensor::from_data(TensorData::new(x.clone(), shape.clone()), &Device::default())
}

fn of<const D: usize>(inputs: &[Array]) -> Vec<Tensor<D>> {
    inputs.iter().map(one).collect()
}

fn call<const D: usize, const E: usize>(
    inputs: Vec<Tensor<D>>,
    op: impl Fn(&[Tensor<D>]) -> Tensor<E> + 'static,
) -> Call {
    Box::new(move |read| {
        let y = op(&inputs);
        if !read {
            return Ok(Vec::new());
        }
        y.into_data().try_to_vec::<f32>().map_err(|error| format!("{error:?}").into())
    })
}
