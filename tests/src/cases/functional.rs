//! Functions of neural networks and linear algebra against PyTorch and NumPy.
//!
//! `tests/data/functional.txt` holds inputs, results and gradients as those give them in `f64`; a
//! row here says how the same is computed with this library. Each row serves three times: values
//! and gradients in `f64` against the file, gradients against differences (`tests/functional.rs`),
//! and values in `f32` on every device, to the ulps of [`bounds`], at the largest element.

use crate::tolerance::formula_error;
use crate::{Array, Check, Val, bounds};
use std::collections::BTreeMap;
use zyx_core::{
    Attention, Conv3dOptions, ConvTransposeOptions, CrossEntropy, Ctc, DType, Device, FftNorm,
    Interpolation, MatrixNorm, MultiMargin, PadMode, PoissonNll, Pool, Reduction, Result, Stft,
    Tensor, TripletMargin,
};

/// What is computed from inputs.
pub type Function = fn(&[Tensor]) -> Result<Tensor>;

/// One row of the file.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The inputs in order, and whether each has a gradient.
    pub inputs: Vec<(Array, bool)>,
    /// The result.
    pub out: Option<Array>,
    /// The gradients of the floating inputs that have one.
    pub gradients: Vec<Array>,
}

/// The terms themselves.
const EACH: Reduction = Reduction::None;

/// The windows of `im2col` and `col2im`.
const COLUMNS: Pool<2> = Pool {
    kernel: [2, 3],
    stride: [1, 2],
    padding: [1, 0],
    dilation: [2, 1],
    ceil_mode: false,
    count_include_pad: true,
};

/// Fixed weights of a result's elements, as the script that wrote the file has them.
pub fn weights(n: usize) -> Vec<f64> {
    (0..n).map(|i| 0.5 + (i * 7919 % 97) as f64 / 97.0).collect()
}

/// The file, by name.
///
/// # Panics
/// When the file is damaged.
pub fn records() -> BTreeMap<&'static str, Record> {
    let text = include_str!("../../data/functional.txt");
    let mut all = BTreeMap::new();
    let mut current = "";
    for line in text.lines() {
        let (key, rest) = line.split_once(' ').expect("a key and a value");
        if key == "case" {
            current = rest;
            let before = all.insert(current, Record::default());
            assert!(before.is_none(), "{current} is there twice");
            continue;
        }
        let record = all.get_mut(current).expect("a case comes first");
        let array = array(rest);
        match key {
            "in" => record.inputs.push((array, true)),
            "fixed" => record.inputs.push((array, false)),
            "out" => record.out = Some(array),
            "grad" => record.gradients.push(array),
            other => panic!("{other} is no key"),
        }
    }
    all
}

fn array(text: &str) -> Array {
    let words: Vec<&str> = text.split_whitespace().collect();
    let dims: Vec<usize> = match words[1] {
        "-" => vec![],
        dims => dims.split('x').map(|d| d.parse().expect("an extent")).collect(),
    };
    match words[0] {
        "f" => {
            let data: Vec<f64> = words[2..].iter().map(|x| x.parse().expect("a float")).collect();
            Array::reals(DType::F64, &dims, &data)
        }
        _ => {
            let data: Vec<i64> =
                words[2..].iter().map(|x| x.parse().expect("an integer")).collect();
            Array::ints(DType::I64, &dims, &data)
        }
    }
}

/// All rows.
pub fn table() -> Vec<(&'static str, Function)> {
    [losses(), attention(), convolutions(), pools(), images(), products(), linalg(), fourier()]
        .concat()
}

/// Values in `f32` on a device.
pub fn values(device: &Device) {
    let mut check = Check::new(device);
    let records = records();
    for (name, f) in table() {
        let record = &records[name];
        let inputs: Vec<Tensor> = record
            .inputs
            .iter()
            .map(|(x, _)| if x.dtype == DType::F64 { x.cast(DType::F32) } else { x.clone() })
            .map(|x| check.input(&x))
            .collect();
        let want = record.out.as_ref().expect("a result");
        let near = if want.dtype == DType::F64 {
            let scale =
                want.floats().iter().filter(|x| x.is_finite()).fold(1.0f64, |m, x| m.max(x.abs()));
            let error = formula_error(DType::F32, bounds::of_case(name).ulps(), scale);
            want.map(DType::F32, |x| match x {
                Val::Real(x, _) if x.is_finite() => Val::about(DType::F32, x, error),
                other => other,
            })
        } else {
            want.clone()
        };
        check.equal(name, f(&inputs), &near);
    }
    check.finish();
}

macro_rules! rows {
    ($($name:literal |$x:ident| $body:expr;)*) => {
        vec![$(($name, (|$x: &[Tensor]| $body) as Function)),*]
    };
}

fn attend(x: &[Tensor], options: Attention<'_>) -> Result<Tensor> {
    x[0].scaled_dot_product_attention(&x[1], &x[2], options)
}

fn losses() -> Vec<(&'static str, Function)> {
    rows! {
        "vector_norm" |x| x[0].vector_norm(3.0, 1);
        "vector_norm inf" |x| x[0].vector_norm(f64::INFINITY, 1);
        "cosine_similarity" |x| x[0].cosine_similarity(&x[1], 1, 1e-8);
        "pairwise_distance" |x| x[0].pairwise_distance(&x[1], 2.0, 1e-6);
        "pairwise_distance p" |x| x[0].pairwise_distance(&x[1], 3.5, 0.0);
        "cdist" |x| x[0].cdist(&x[1], 2.0);
        "cdist 1" |x| x[0].cdist(&x[1], 1.0);
        "pdist" |x| x[0].pdist(2.0);
        "triplet_margin_loss" |x| x[0].triplet_margin_loss(&x[1], &x[2], TripletMargin::default());
        "triplet_margin_loss swap" |x| x[0].triplet_margin_loss(&x[1], &x[2], TripletMargin { margin: 2.0, swap: true, reduction: EACH, ..Default::default() });
        "cosine_embedding_loss" |x| x[0].cosine_embedding_loss(&x[1], &x[2], -0.4, EACH);
        "margin_ranking_loss" |x| x[0].margin_ranking_loss(&x[1], &x[2], 0.5, EACH);
        "hinge_embedding_loss" |x| x[0].hinge_embedding_loss(&x[1], 1.5, EACH);
        "soft_margin_loss" |x| x[0].soft_margin_loss(&x[1], Reduction::Mean);
        "multi_margin_loss" |x| x[0].multi_margin_loss(&x[1], MultiMargin::default());
        "multi_margin_loss weighted" |x| x[0].multi_margin_loss(&x[1], MultiMargin { p: 2, margin: 0.7, weight: Some(&x[2]), reduction: EACH });
        "multilabel_soft_margin_loss" |x| x[0].multilabel_soft_margin_loss(&x[1].gt(0.0)?.cast(x[0].dtype()), None, Reduction::Mean);
        "multilabel_margin_loss" |x| x[0].multilabel_margin_loss(&x[1], Reduction::Mean);
        "cross_entropy weighted" |x| x[0].cross_entropy_weighted(&x[1], Some(&x[2]), CrossEntropy::default());
        "cross_entropy weighted smoothed" |x| x[0].cross_entropy_weighted(&x[1], Some(&x[2]), CrossEntropy { label_smoothing: 0.1, ignore_index: Some(0), ..Default::default() });
        "cross_entropy soft" |x| x[0].cross_entropy_weighted(&x[1], Some(&x[2]), CrossEntropy { label_smoothing: 0.1, ..Default::default() });
        "nll_loss weighted" |x| x[0].nll_loss_weighted(&x[1], &x[2], CrossEntropy::default());
        "binary_cross_entropy" |x| x[0].binary_cross_entropy(&x[1], Some(&x[2]), Reduction::Mean);
        "binary_cross_entropy_with_logits" |x| x[0].binary_cross_entropy_with_logits(&x[1], Some(&x[2]), Some(&x[3]), Reduction::Mean);
        "kl_div" |x| x[0].kl_div(&x[1], true, Reduction::Sum);
        "poisson_nll_loss" |x| x[0].poisson_nll_loss(&x[1], PoissonNll { full: true, reduction: EACH, ..Default::default() });
        "poisson_nll_loss rate" |x| x[0].poisson_nll_loss(&x[1], PoissonNll { log_input: false, ..Default::default() });
        "gaussian_nll_loss" |x| x[0].gaussian_nll_loss(&x[1], &x[2], true, 1e-6, Reduction::Mean);
        "ctc_loss" |x| x[0].log_softmax(-1)?.ctc_loss(&x[1], &x[2], &x[3], Ctc { reduction: EACH, ..Default::default() });
        "ctc_loss mean" |x| x[0].log_softmax(-1)?.ctc_loss(&x[1], &x[2], &x[3], Ctc { blank: 2, zero_infinity: true, ..Default::default() });
    }
}

fn attention() -> Vec<(&'static str, Function)> {
    rows! {
        "attention" |x| attend(x, Attention::default());
        "attention causal" |x| attend(x, Attention { causal: true, scale: Some(0.3), ..Default::default() });
        "attention masked" |x| attend(x, Attention { mask: Some(&x[3].cast(DType::Bool)), ..Default::default() });
        "attention biased" |x| attend(x, Attention { mask: Some(&x[3]), ..Default::default() });
        "attention grouped" |x| attend(x, Attention { grouped: true, ..Default::default() });
    }
}

fn convolutions() -> Vec<(&'static str, Function)> {
    rows! {
        "conv3d" |x| x[0].conv3d(&x[1], Some(&x[2]), Conv3dOptions { stride: [1, 2, 1], padding: [1, 0, 1], dilation: [1, 1, 2], groups: 2 });
        "conv_same 1" |x| x[0].conv_same(&x[1], None, &[3], 1);
        "conv_same 2" |x| x[0].conv_same(&x[1], Some(&x[2]), &[1, 1], 1);
        "conv_transpose1d" |x| x[0].conv_transpose1d(&x[1], Some(&x[2]), ConvTransposeOptions { stride: [3], padding: [1], output_padding: [2], dilation: [2], groups: 1 });
        "conv_transpose2d" |x| x[0].conv_transpose2d(&x[1], Some(&x[2]), ConvTransposeOptions { stride: [2, 1], padding: [1, 0], dilation: [1, 2], groups: 2, ..Default::default() });
        "conv_transpose3d" |x| x[0].conv_transpose3d(&x[1], None, ConvTransposeOptions { stride: [2; 3], ..Default::default() });
    }
}

fn pools() -> Vec<(&'static str, Function)> {
    rows! {
        "max_pool1d" |x| x[0].max_pool1d(Pool { stride: [2], padding: [1], dilation: [2], ceil_mode: true, ..Pool::new([3]) });
        "max_pool2d ceil" |x| x[0].max_pool2d(Pool { stride: [2, 2], padding: [1, 0], ceil_mode: true, ..Pool::new([3, 2]) });
        "max_pool3d" |x| x[0].max_pool3d(Pool { stride: [1; 3], ..Pool::new([2; 3]) });
        "max_pool2d indices" |x| Ok(x[0].max_pool2d_with_indices(Pool { stride: [2, 2], padding: [1, 1], ..Pool::new([3, 3]) })?.1);
        "max_pool1d indices" |x| Ok(x[0].max_pool1d_with_indices(Pool { stride: [2], ..Pool::new([3]) })?.1);
        "max_pool3d indices" |x| Ok(x[0].max_pool3d_with_indices(Pool::new([2; 3]))?.1);
        "max_unpool2d" |x| x[0].max_unpool2d(&x[1], [4, 4]);
        "max_unpool1d" |x| x[0].max_unpool1d(&x[1], [4]);
        "avg_pool1d" |x| x[0].avg_pool1d(Pool { stride: [2], padding: [1], ceil_mode: true, ..Pool::new([3]) });
        "avg_pool2d ceil" |x| x[0].avg_pool2d(Pool { stride: [2, 2], padding: [1, 1], ceil_mode: true, ..Pool::new([3, 2]) });
        "avg_pool2d inside" |x| x[0].avg_pool2d(Pool { stride: [2, 2], padding: [1, 1], ceil_mode: true, count_include_pad: false, ..Pool::new([3, 2]) });
        "avg_pool3d" |x| x[0].avg_pool3d(Pool::new([2; 3]));
        "lp_pool1d" |x| x[0].lp_pool1d(3.0, Pool::new([2]));
        "lp_pool2d" |x| x[0].lp_pool2d(2.0, Pool { stride: [1, 1], ..Pool::new([2, 2]) });
        "lp_pool3d" |x| x[0].lp_pool3d(2.0, Pool::new([2; 3]));
        "adaptive_avg_pool1d" |x| x[0].adaptive_avg_pool1d([3]);
        "adaptive_avg_pool3d" |x| x[0].adaptive_avg_pool3d([2, 3, 1]);
        "adaptive_max_pool1d" |x| x[0].adaptive_max_pool1d([3]);
        "adaptive_max_pool2d" |x| x[0].adaptive_max_pool2d([2, 3]);
        "adaptive_max_pool3d" |x| x[0].adaptive_max_pool3d([2, 3, 1]);
    }
}

fn images() -> Vec<(&'static str, Function)> {
    rows! {
        "pad reflect" |x| x[0].pad_mode([(0, 0), (0, 3), (2, 1)], PadMode::Reflect);
        "pad replicate" |x| x[0].pad_mode([(0, 0), (0, 3), (2, 1)], PadMode::Replicate);
        "pad circular" |x| x[0].pad_mode([(0, 0), (0, 3), (2, 1)], PadMode::Circular);
        "im2col" |x| x[0].im2col(COLUMNS);
        "col2im" |x| x[0].col2im([4, 5], COLUMNS);
        "unfold" |x| x[0].unfold(1, 3, 2);
        "pixel_shuffle" |x| x[0].pixel_shuffle(2);
        "pixel_unshuffle" |x| x[0].pixel_unshuffle(2);
        "channel_shuffle" |x| x[0].channel_shuffle(3);
        "interpolate nearest" |x| x[0].interpolate(&[5, 3], Interpolation::Nearest, false);
        "interpolate nearest-exact" |x| x[0].interpolate(&[5, 3], Interpolation::NearestExact, false);
        "interpolate linear" |x| x[0].interpolate(&[7], Interpolation::Linear, false);
        "interpolate bilinear False" |x| x[0].interpolate(&[5, 3], Interpolation::Linear, false);
        "interpolate bicubic False" |x| x[0].interpolate(&[6, 3], Interpolation::Cubic, false);
        "interpolate bilinear True" |x| x[0].interpolate(&[5, 3], Interpolation::Linear, true);
        "interpolate bicubic True" |x| x[0].interpolate(&[6, 3], Interpolation::Cubic, true);
        "interpolate trilinear" |x| x[0].interpolate(&[3, 4, 5], Interpolation::Linear, false);
        "interpolate area" |x| x[0].interpolate(&[2, 3], Interpolation::Area, false);
        "grid_sample False" |x| x[0].grid_sample(&x[1], false, false, false);
        "grid_sample True" |x| x[0].grid_sample(&x[1], false, false, true);
        "grid_sample border" |x| x[0].grid_sample(&x[1], false, true, false);
        "grid_sample nearest" |x| x[0].grid_sample(&x[1], true, false, false);
    }
}

fn products() -> Vec<(&'static str, Function)> {
    let mut all = rows! {
        "tensordot" |x| x[0].tensordot(&x[1], &[2, 0], &[0, 1]);
        "outer" |x| x[0].outer(&x[1]);
        "inner" |x| x[0].inner(&x[1]);
        "kron" |x| x[0].kron(&x[1]);
        "cross" |x| x[0].cross(&x[1], 1);
        "bmm" |x| x[0].bmm(&x[1]);
        "mv" |x| x[0].mv(&x[1]);
        "addmm" |x| x[0].addmm(&x[1], &x[2], 0.5, 2.0);
        "baddbmm" |x| x[0].baddbmm(&x[1], &x[2], -1.0, 3.0);
        "multi_dot" |x| Tensor::multi_dot(&x.iter().collect::<Vec<_>>());
        "vecdot" |x| x[0].vecdot(&x[1], 0);
        "trace" |x| x[0].trace();
    };
    all.extend(rows! {
        "einsum ij,jk->ik" |x| Tensor::einsum("ij,jk->ik", &x.iter().collect::<Vec<_>>());
        "einsum ij,jk->ki" |x| Tensor::einsum("ij,jk->ki", &x.iter().collect::<Vec<_>>());
        "einsum ji,kj" |x| Tensor::einsum("ji,kj", &x.iter().collect::<Vec<_>>());
        "einsum ii" |x| Tensor::einsum("ii", &x.iter().collect::<Vec<_>>());
        "einsum ii->i" |x| Tensor::einsum("ii->i", &x.iter().collect::<Vec<_>>());
        "einsum iij->ji" |x| Tensor::einsum("iij->ji", &x.iter().collect::<Vec<_>>());
        "einsum ijij->" |x| Tensor::einsum("ijij->", &x.iter().collect::<Vec<_>>());
        "einsum ij->" |x| Tensor::einsum("ij->", &x.iter().collect::<Vec<_>>());
        "einsum ij->j" |x| Tensor::einsum("ij->j", &x.iter().collect::<Vec<_>>());
        "einsum ba" |x| Tensor::einsum("ba", &x.iter().collect::<Vec<_>>());
        "einsum ...ij,...jk->...ik" |x| Tensor::einsum("...ij,...jk->...ik", &x.iter().collect::<Vec<_>>());
        "einsum i...,i..." |x| Tensor::einsum("i...,i...", &x.iter().collect::<Vec<_>>());
        "einsum ...i->..." |x| Tensor::einsum("...i->...", &x.iter().collect::<Vec<_>>());
        "einsum ...,..." |x| Tensor::einsum("...,...", &x.iter().collect::<Vec<_>>());
        "einsum i,j" |x| Tensor::einsum("i,j", &x.iter().collect::<Vec<_>>());
        "einsum i,i->" |x| Tensor::einsum("i,i->", &x.iter().collect::<Vec<_>>());
        "einsum i,i->i" |x| Tensor::einsum("i,i->i", &x.iter().collect::<Vec<_>>());
        "einsum ,ij" |x| Tensor::einsum(",ij", &x.iter().collect::<Vec<_>>());
        "einsum bhqd,bhkd->bhqk" |x| Tensor::einsum("bhqd,bhkd->bhqk", &x.iter().collect::<Vec<_>>());
        "einsum ij,jk,kl" |x| Tensor::einsum("ij,jk,kl", &x.iter().collect::<Vec<_>>());
        "einsum ab,bc,cd,da->" |x| Tensor::einsum("ab,bc,cd,da->", &x.iter().collect::<Vec<_>>());
        "einsum aab,bc,c->ca" |x| Tensor::einsum("aab,bc,c->ca", &x.iter().collect::<Vec<_>>());
        "einsum ij,ij,jk,kk->ik" |x| Tensor::einsum("ij,ij,jk,kk->ik", &x.iter().collect::<Vec<_>>());
        "einsum ab,cb,ad,dc,a,b->cd" |x| Tensor::einsum("ab,cb,ad,dc,a,b->cd", &x.iter().collect::<Vec<_>>());
        "einsum Ab,bA->A" |x| Tensor::einsum("Ab,bA->A", &x.iter().collect::<Vec<_>>());
        "einsum  i j , j k -> k " |x| Tensor::einsum(" i j , j k -> k ", &x.iter().collect::<Vec<_>>());
        "einsum ij,jk->ik " |x| Tensor::einsum("ij,jk->ik ", &x.iter().collect::<Vec<_>>());
        "einsum i,ij,ijk,k,kl,l,m,m->" |x| Tensor::einsum("i,ij,ijk,k,kl,l,m,m->", &x.iter().collect::<Vec<_>>());
    });
    all
}

fn linalg() -> Vec<(&'static str, Function)> {
    rows! {
        "cholesky" |x| definite(&x[0])?.cholesky();
        "triangular_solve" |x| { let eye = Tensor::eye(3, x[0].dtype(), x[0].device()).mul(3.0)?; x[0].tril(0)?.add(eye)?.triangular_solve(&x[1], false, false) };
        "triangular_solve unit" |x| x[0].triangular_solve(&x[1], true, true);
        "cholesky_solve" |x| definite(&x[0])?.cholesky()?.cholesky_solve(&x[1], false);
        "cholesky_inverse" |x| definite(&x[0])?.cholesky()?.cholesky_inverse(false);
        "solve" |x| x[0].solve(&x[1]);
        "solve vector" |x| x[0].solve(&x[1]);
        "inv" |x| x[0].inv();
        "det" |x| x[0].det();
        "slogdet" |x| Ok(x[0].slogdet()?.1);
        "qr" |x| { let (q, r) = x[0].qr()?; flat(&[q, r]) };
        "qr wide" |x| { let (q, r) = x[0].qr()?; flat(&[q, r]) };
        "eigh values" |x| Ok(x[0].add(x[0].t())?.eigh()?.0);
        "eigh vectors" |x| { let (w, v) = x[0].add(x[0].t())?.eigh()?; v.abs().mul(w.unsqueeze(-2)?) };
        "svd" |x| { let (u, s, vh) = x[0].svd()?; flat(&[u.abs(), s, vh.abs()]) };
        "svd wide" |x| { let (u, s, vh) = x[0].svd()?; flat(&[u.abs(), s, vh.abs()]) };
        "svdvals" |x| x[0].svdvals();
        "lstsq" |x| x[0].lstsq(&x[1]);
        "lstsq wide" |x| x[0].lstsq(&x[1]);
        "pinv" |x| x[0].pinv(None);
        "matrix_rank" |x| x[0].matmul(&x[0].t())?.matrix_rank(None);
        "cond" |x| x[0].cond();
        "matrix_norm Frobenius" |x| x[0].matrix_norm(MatrixNorm::Frobenius);
        "matrix_norm Nuclear" |x| x[0].matrix_norm(MatrixNorm::Nuclear);
        "matrix_norm Spectral" |x| x[0].matrix_norm(MatrixNorm::Spectral);
        "matrix_norm Columns" |x| x[0].matrix_norm(MatrixNorm::Columns);
        "matrix_norm Rows" |x| x[0].matrix_norm(MatrixNorm::Rows);
        "matrix_power" |x| x[0].matrix_power(5);
        "matrix_power inverse" |x| x[0].matrix_power(-2);
        "matrix_exp" |x| x[0].matrix_exp();
    }
}

fn fourier() -> Vec<(&'static str, Function)> {
    rows! {
        "fft 1" |x| x[0].fft(None, -1, FftNorm::Backward);
        "fft 2" |x| x[0].fft(None, -1, FftNorm::Backward);
        "fft 5" |x| x[0].fft(None, -1, FftNorm::Backward);
        "fft 12" |x| x[0].fft(None, -1, FftNorm::Backward);
        "fft sum 96" |x| x[0].fft(None, -1, FftNorm::Backward)?.stride(0, 32, 37);
        "fft sum 134" |x| x[0].fft(None, -1, FftNorm::Backward)?.stride(0, 44, 37);
        "fft sum 263" |x| x[0].fft(None, -1, FftNorm::Backward)?.stride(0, 87, 37);
        "fft cut" |x| x[0].fft(Some(3), 0, FftNorm::Forward);
        "fft padded" |x| x[0].fft(Some(7), -1, FftNorm::Ortho);
        "ifft" |x| x[0].ifft(None, -1, FftNorm::Backward);
        "rfft 5" |x| x[0].rfft(None, 0, FftNorm::Backward);
        "irfft 5" |x| x[0].irfft(Some(5), -1, FftNorm::Backward);
        "rfft 6" |x| x[0].rfft(None, 0, FftNorm::Backward);
        "irfft 6" |x| x[0].irfft(Some(6), -1, FftNorm::Backward);
        "fft2" |x| x[0].fft2(FftNorm::Backward);
        "ifft2" |x| x[0].ifft2(FftNorm::Forward);
        "fftn" |x| x[0].fftn(&[0, 2], FftNorm::Ortho);
        "ifftn" |x| x[0].ifftn(&[0, 1], FftNorm::Backward);
        "fftshift" |x| x[0].fftshift(..);
        "ifftshift" |x| x[0].ifftshift(..);
        "stft" |x| x[0].stft(Stft { hop: 3, window: Some(&x[1]), ..Stft::new(8) });
        "istft" |x| x[0].istft(Stft { hop: 2, window: Some(&x[1]), ..Stft::new(8) }, None);
        "hann_window" |x| x[0].mul(Tensor::hann_window(7, true, x[0].dtype(), x[0].device()));
        "hamming_window" |x| x[0].mul(Tensor::hamming_window(6, false, x[0].dtype(), x[0].device()));
        "blackman_window" |x| x[0].mul(Tensor::blackman_window(5, true, x[0].dtype(), x[0].device()));
    }
}

/// A symmetric positive definite matrix.
fn definite(x: &Tensor) -> Result<Tensor> {
    let eye = Tensor::eye(x.shape()[x.rank() - 1], x.dtype(), x.device());
    x.matmul(&x.t())?.add(eye.mul(2.0)?)
}

/// Several results as one.
fn flat(parts: &[Tensor]) -> Result<Tensor> {
    let flat: Vec<Tensor> = parts.iter().map(Tensor::flatten).collect();
    Tensor::cat(&flat.iter().collect::<Vec<_>>(), 0)
}
