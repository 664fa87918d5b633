//! One row per public function of losses, attention, convolutions, pooling and images.

use crate::Call;
use crate::Outcome;
use crate::calls;
use crate::source::Source;
use crate::told;
use zyx_tests::zyx_core::{
    Attention, Conv3dOptions, ConvTransposeOptions, Ctc, DType, FftNorm, Float8, Interpolation,
    MatrixNorm, MultiMargin, PadMode, PoissonNll, Pool, QuantizedMatrix, Result, Stft, Tensor,
    TripletMargin,
};

pub(crate) fn all() -> Vec<Call> {
    let mut all = distances();
    all.extend(margins());
    all.extend(likelihoods());
    all.extend(convolutions());
    all.extend(pools());
    all.extend(images());
    all.extend(products());
    all.extend(linalg());
    all.extend(fourier());
    all.extend(calls! { "Stft::new" |s| told(format!("{:?}", Stft::new(s.size()))); });
    all.extend(distributions());
    all.extend(derivatives());
    all.extend(quantized());
    all
}

fn distances() -> Vec<Call> {
    calls! {
        vector_norm |s| {
            let (x, axes, p) = (s.x(), s.axes(), s.number());
            x.vector_norm(p, &axes[..])?
        };
        cosine_similarity |s| {
            let x = s.x();
            x.cosine_similarity(&s.partner(&x), s.axis(), s.number())?
        };
        pairwise_distance |s| {
            let x = s.x();
            x.pairwise_distance(&s.partner(&x), s.number(), s.number())?
        };
        cdist |s| { let x = s.x(); x.cdist(&s.partner(&x), s.number())? };
        pdist |s| s.x().pdist(s.number())?;
        scaled_dot_product_attention |s| {
            let x = if s.one_in(4) { s.x() } else { s.floats() };
            let (k, v) = (s.partner(&x), s.partner(&x));
            let (k, v) = if s.one_in(2) { (x.clone(), x.clone()) } else { (k, v) };
            let mask = s.maybe_partner(&x);
            let (causal, grouped, p) = (s.one_in(2), s.one_in(3), s.number());
            let scale = if s.one_in(2) { None } else { Some(s.number()) };
            let mut draws = s.draws.clone();
            let dropout = if s.one_in(3) { Some((p, &mut draws)) } else { None };
            let options = Attention { mask: mask.as_ref(), causal, scale, grouped, dropout };
            x.scaled_dot_product_attention(&k, &v, options)?
        };
    }
}

fn triplet(s: &mut Source) -> TripletMargin {
    TripletMargin {
        margin: s.number(),
        p: s.number(),
        swap: s.one_in(2),
        reduction: s.reduction(),
        ..TripletMargin::default()
    }
}

fn margins() -> Vec<Call> {
    calls! {
        triplet_margin_loss |s| {
            let x = s.x();
            let (y, z) = (s.partner(&x), s.partner(&x));
            x.triplet_margin_loss(&y, &z, triplet(s))?
        };
        cosine_embedding_loss |s| {
            let x = s.x();
            let (y, z) = (s.partner(&x), s.partner(&x));
            x.cosine_embedding_loss(&y, &z, s.number(), s.reduction())?
        };
        margin_ranking_loss |s| {
            let x = s.x();
            let (y, z) = (s.partner(&x), s.partner(&x));
            x.margin_ranking_loss(&y, &z, s.number(), s.reduction())?
        };
        hinge_embedding_loss |s| {
            let x = s.x();
            x.hinge_embedding_loss(&s.partner(&x), s.number(), s.reduction())?
        };
        soft_margin_loss |s| { let x = s.x(); x.soft_margin_loss(&s.partner(&x), s.reduction())? };
        multi_margin_loss |s| {
            let x = s.x();
            let (target, weight) = (s.index(&x), s.maybe_partner(&x));
            let options = MultiMargin {
                p: s.pick(&[1, 2, 0, u32::MAX]),
                margin: s.number(),
                weight: weight.as_ref(),
                reduction: s.reduction(),
            };
            x.multi_margin_loss(&target, options)?
        };
        multilabel_soft_margin_loss |s| {
            let x = s.x();
            let (y, w) = (s.partner(&x), s.maybe_partner(&x));
            x.multilabel_soft_margin_loss(&y, w.as_ref(), s.reduction())?
        };
        multilabel_margin_loss |s| {
            let x = s.x();
            x.multilabel_margin_loss(&s.index(&x), s.reduction())?
        };
    }
}

fn likelihoods() -> Vec<Call> {
    calls! {
        cross_entropy_weighted |s| {
            let x = s.x();
            let target = if s.one_in(2) { s.index(&x) } else { s.partner(&x) };
            let weight = s.maybe_partner(&x);
            x.cross_entropy_weighted(&target, weight.as_ref(), s.cross_entropy())?
        };
        nll_loss_weighted |s| {
            let x = s.x();
            let (target, weight) = (s.index(&x), s.partner(&x));
            x.nll_loss_weighted(&target, &weight, s.cross_entropy())?
        };
        binary_cross_entropy |s| {
            let x = s.x();
            let (y, w) = (s.partner(&x), s.maybe_partner(&x));
            x.binary_cross_entropy(&y, w.as_ref(), s.reduction())?
        };
        binary_cross_entropy_with_logits |s| {
            let x = s.x();
            let (y, w, p) = (s.partner(&x), s.maybe_partner(&x), s.maybe_partner(&x));
            x.binary_cross_entropy_with_logits(&y, w.as_ref(), p.as_ref(), s.reduction())?
        };
        kl_div |s| { let x = s.x(); x.kl_div(&s.partner(&x), s.one_in(2), s.reduction())? };
        poisson_nll_loss |s| {
            let x = s.x();
            let (log_input, full) = (s.one_in(2), s.one_in(2));
            let options = PoissonNll { log_input, full, eps: s.number(), reduction: s.reduction() };
            x.poisson_nll_loss(&s.partner(&x), options)?
        };
        gaussian_nll_loss |s| {
            let x = s.x();
            let (y, v) = (s.partner(&x), s.partner(&x));
            x.gaussian_nll_loss(&y, &v, s.one_in(2), s.number(), s.reduction())?
        };
        ctc_loss |s| {
            let (x, classes) = if s.one_in(4) { (s.x(), 1) } else {
                let dims = vec![s.pick(&[1, 2, 3]), s.pick(&[0, 1, 2]), s.pick(&[1, 2, 3])];
                let classes = dims[2];
                let dtype = s.dtype();
                (s.tensor(dims, dtype), classes)
            };
            let n = x.shape().get(1).copied().unwrap_or(1);
            let length = s.pick(&[0, 1, 2, 3]);
            let ints = |s: &mut Source, dims: Vec<usize>| {
                let x = s.tensor(dims, DType::F32);
                x.cast(DType::I64)
            };
            let target = if s.one_in(6) { s.index(&x) } else { ints(s, vec![n, length]) };
            let (a, b) = (ints(s, vec![n]), ints(s, vec![n]));
            let blank = s.pick(&[0, classes - 1, 7]);
            let options = Ctc { blank, zero_infinity: s.one_in(2), reduction: s.reduction() };
            x.ctc_loss(&target, &a, &b, options)?
        };
    }
}

fn conv3d(s: &mut Source) -> Conv3dOptions {
    let mut options = Conv3dOptions::default();
    if s.one_in(2) {
        options.stride = [s.size(), s.size(), s.size()];
        options.padding = [s.size(), s.size(), s.size()];
    }
    if s.one_in(4) {
        options.dilation = [s.size(), s.size(), s.size()];
        options.groups = s.size();
    }
    options
}

fn transposed<const N: usize>(s: &mut Source) -> ConvTransposeOptions<N> {
    let mut options = ConvTransposeOptions::default();
    if s.one_in(2) {
        options.stride = [0; N].map(|_| s.size());
        options.padding = [0; N].map(|_| s.size());
    }
    if s.one_in(4) {
        options.dilation = [0; N].map(|_| s.size());
        options.output_padding = [0; N].map(|_| s.size());
        options.groups = s.size();
    }
    options
}

fn convolutions() -> Vec<Call> {
    calls! {
        conv3d |s| {
            let (x, w) = s.image(3);
            let bias = s.maybe_partner(&w.select_index(-1, 0).unwrap_or_else(|_| w.clone()));
            x.conv3d(&w, bias.as_ref(), conv3d(s))?
        };
        conv_same |s| {
            let n = s.pick(&[1, 2, 2, 3, 4, 0]);
            let (x, w) = s.image(n);
            let dilation: Vec<usize> = (0..n).map(|_| s.size()).collect();
            x.conv_same(&w, s.maybe_partner(&w).as_ref(), &dilation, s.size())?
        };
        conv_transpose1d |s| {
            let (x, w) = s.image(1);
            let w = if s.one_in(2) { w.transpose(0, 1).unwrap_or(w) } else { w };
            x.conv_transpose1d(&w, s.maybe_partner(&w).as_ref(), transposed(s))?
        };
        conv_transpose2d |s| {
            let (x, w) = s.image(2);
            let w = if s.one_in(2) { w.transpose(0, 1).unwrap_or(w) } else { w };
            x.conv_transpose2d(&w, s.maybe_partner(&w).as_ref(), transposed(s))?
        };
        conv_transpose3d |s| {
            let (x, w) = s.image(3);
            let w = if s.one_in(2) { w.transpose(0, 1).unwrap_or(w) } else { w };
            x.conv_transpose3d(&w, s.maybe_partner(&w).as_ref(), transposed(s))?
        };
    }
}

fn pool<const N: usize>(s: &mut Source) -> Pool<N> {
    let mut pool = Pool::new([0; N].map(|_| s.size()));
    if s.one_in(2) {
        pool.stride = [0; N].map(|_| s.size());
        pool.padding = [0; N].map(|_| s.size());
    }
    if s.one_in(4) {
        pool.dilation = [0; N].map(|_| s.size());
    }
    Pool { ceil_mode: s.one_in(2), count_include_pad: s.one_in(2), ..pool }
}

macro_rules! pools {
    ($n:literal: $($name:ident)*) => {
        calls! {$( $name |s| s.image($n).0.$name(pool::<$n>(s))?; )*}
    };
}

macro_rules! adaptive {
    ($n:literal: $($name:ident)*) => {
        calls! {$( $name |s| s.image($n).0.$name([0; $n].map(|_| s.size()))?; )*}
    };
}

macro_rules! indices {
    ($n:literal: $name:ident $back:ident $lp:ident) => {
        calls! {
            $name |s| {
                let (y, at) = s.image($n).0.$name(pool::<$n>(s))?;
                vec![y, at]
            };
            $back |s| {
                let x = s.image($n).0;
                let at = s.index(&x);
                let at = if s.one_in(2) { at } else { x.cast(DType::I64) };
                x.$back(&at, [0; $n].map(|_| s.size()))?
            };
            $lp |s| s.image($n).0.$lp(s.number(), pool::<$n>(s))?;
        }
    };
}

fn pools() -> Vec<Call> {
    let mut all = pools! { 1: max_pool1d avg_pool1d };
    all.extend(pools! { 3: max_pool3d avg_pool3d });
    all.extend(adaptive! { 1: adaptive_avg_pool1d adaptive_max_pool1d });
    all.extend(adaptive! { 2: adaptive_max_pool2d });
    all.extend(adaptive! { 3: adaptive_avg_pool3d adaptive_max_pool3d });
    all.extend(indices! { 1: max_pool1d_with_indices max_unpool1d lp_pool1d });
    all.extend(indices! { 2: max_pool2d_with_indices max_unpool2d lp_pool2d });
    all.extend(indices! { 3: max_pool3d_with_indices max_unpool3d lp_pool3d });
    all
}

fn interpolation(s: &mut Source) -> Interpolation {
    s.pick(&[
        Interpolation::Nearest,
        Interpolation::NearestExact,
        Interpolation::Linear,
        Interpolation::Cubic,
        Interpolation::Area,
    ])
}

fn images() -> Vec<Call> {
    calls! {
        pad_mode |s| {
            let x = s.x();
            let padding = s.per_axis(&x, |s| (s.size(), s.size()));
            let constant = PadMode::Constant(s.number());
            let modes = [PadMode::Zeros, constant, PadMode::Reflect, PadMode::Replicate, PadMode::Circular];
            x.pad_mode(padding, s.pick(&modes))?
        };
        im2col |s| s.image(2).0.im2col(pool(s))?;
        col2im |s| {
            let image = s.image(2).0;
            let windows = pool(s);
            let columns = image.im2col(windows).unwrap_or_else(|_| image.clone());
            let output = match image.shape().dims() {
                &[.., h, w] => [h, w],
                _ => s.pair(),
            };
            columns.col2im(if s.one_in(4) { s.pair() } else { output }, windows)?
        };
        pixel_shuffle |s| { let x: Tensor = s.image(2).0; x.pixel_shuffle(s.size())? };
        pixel_unshuffle |s| s.image(2).0.pixel_unshuffle(s.size())?;
        channel_shuffle |s| s.x().channel_shuffle(s.size())?;
        interpolate |s| {
            let n = s.pick(&[1, 2, 3, 0]);
            let size: Vec<usize> = (0..n).map(|_| s.size()).collect();
            let x = if s.one_in(3) { s.x() } else { s.image(2).0 };
            x.interpolate(&size, interpolation(s), s.one_in(2))?
        };
        interpolate_by |s| {
            let n = s.pick(&[1, 2, 3, 0]);
            let scale: Vec<f64> = (0..n).map(|_| s.pick(&[0.7, 1.0, 1.5, 2.0, 0.0, f64::NAN])).collect();
            let x = if s.one_in(3) { s.x() } else { s.image(2).0 };
            x.interpolate_by(&scale, interpolation(s), s.one_in(2))?
        };
        grid_sample |s| {
            let (x, _) = s.image(2);
            let n = x.shape().first().copied().unwrap_or(0);
            let dims = vec![n, s.pick(&[0, 1, 2]), 2, 2];
            let dtype = if s.one_in(3) { s.dtype() } else { x.dtype() };
            let grid = s.tensor(dims, dtype);
            x.grid_sample(&grid, s.one_in(2), s.one_in(2), s.one_in(2))?
        };
    }
}

fn products() -> Vec<Call> {
    calls! {
        einsum |s| {
            let specs = ["ij,jk->ik", "ii", "ij->ji", "...i,...i", "i...,i->...", "ij,jk,kl",
                "ii,i", "...", "i,j,k->kij", "->", "", "ij->jj", "z1", "a.b", "abcdefghijklmnopq",
                "i,i,i,i,i,i,i,i,i"];
            let spec = s.pick(&specs);
            let n = if s.one_in(6) { s.rng.below(4) } else { spec.split(',').count() };
            let x = s.x();
            let all: Vec<Tensor> = (0..n)
                .map(|_| if s.one_in(2) { x.clone() } else { s.partner(&x) })
                .collect();
            Tensor::einsum(spec, &all.iter().collect::<Vec<_>>())?
        };
        einsum_path |s| {
            let x = s.x();
            let y = s.partner(&x);
            told(Tensor::einsum_path("ij,jk,ki", &[&x, &y, &x])?)
        };
        tensordot |s| {
            let x = s.x();
            let y = s.partner(&x);
            let (a, b) = (s.axes(), s.axes());
            let (a, b) = if s.one_in(2) { (vec![-1], vec![0]) } else { (a, b) };
            x.tensordot(&y, &a, &b)?
        };
        outer |s| { let x = s.x(); x.outer(&s.partner(&x))? };
        inner |s| { let x = s.x(); x.inner(&s.partner(&x))? };
        kron |s| { let x = s.x(); x.kron(&s.partner(&x))? };
        cross |s| { let x = s.x(); x.cross(&s.partner(&x), s.axis())? };
        bmm |s| { let x = s.x(); x.bmm(&s.partner(&x))? };
        mv |s| { let x = s.x(); x.mv(&s.partner(&x))? };
        addmm |s| {
            let x = s.x();
            let (y, z) = (s.partner(&x), s.partner(&x));
            z.addmm(&x, &y, s.number(), s.number())?
        };
        baddbmm |s| {
            let x = s.x();
            let (y, z) = (s.partner(&x), s.partner(&x));
            let (x, y, z) = if s.one_in(2) { (x, y, z) } else {
                let mut matrices = |n, m| s.tensor(vec![2, n, m], DType::F32);
                (matrices(2, 3), matrices(3, 1), matrices(2, 1))
            };
            z.baddbmm(&x, &y, s.number(), s.number())?
        };
        multi_dot |s| {
            let x = s.x();
            let (y, z) = (s.partner(&x), s.partner(&x));
            let all: &[&Tensor] = if s.one_in(8) { &[&x] } else { &[&x, &y, &z] };
            Tensor::multi_dot(all)?
        };
        vdot |s| { let x = s.x(); x.vdot(&s.partner(&x))? };
        vecdot |s| { let x = s.x(); x.vecdot(&s.partner(&x), s.axis())? };
    }
}

/// A batch of matrices, usually square.
fn matrix(s: &mut Source) -> Tensor {
    if s.one_in(4) {
        // What a device refuses is tried, what would be factorised for minutes is not.
        let x = s.x();
        if !(crate::SMALL..1 << 36).contains(&x.numel()) {
            return x;
        }
    }
    let (n, m) = (s.pick(&[0, 1, 2, 3]), s.pick(&[1, 2, 3]));
    let (n, m) = if s.one_in(3) { (n, m) } else { (m, m) };
    let dims = if s.one_in(2) { vec![n, m] } else { vec![s.pick(&[0, 1, 2]), n, m] };
    let dtype = s.dtype();
    s.tensor(dims, dtype)
}

fn linalg() -> Vec<Call> {
    calls! {
        cholesky |s| {
            let x = matrix(s);
            let x = if s.one_in(2) { x.matmul(&x.t()).unwrap_or(x) } else { x };
            x.cholesky()?
        };
        triangular_solve |s| {
            let x = matrix(s);
            let b = if s.one_in(2) { x.clone() } else { s.partner(&x) };
            x.triangular_solve(&b, s.one_in(2), s.one_in(2))?
        };
        cholesky_solve |s| {
            let x = matrix(s);
            let b = if s.one_in(2) { x.clone() } else { s.partner(&x) };
            x.cholesky_solve(&b, s.one_in(2))?
        };
        cholesky_inverse |s| matrix(s).cholesky_inverse(s.one_in(2))?;
        solve |s| {
            let x = matrix(s);
            let b = if s.one_in(2) { x.clone() } else { s.partner(&x) };
            x.solve(&b)?
        };
        inv |s| matrix(s).inv()?;
        det |s| matrix(s).det()?;
        slogdet |s| { let (sign, log) = matrix(s).slogdet()?; vec![sign, log] };
        logdet |s| matrix(s).logdet()?;
        qr |s| { let (q, r) = matrix(s).qr()?; vec![q, r] };
        eigh |s| { let (w, v) = matrix(s).eigh()?; vec![w, v] };
        svd |s| { let (u, x, v) = matrix(s).svd()?; vec![u, x, v] };
        svdvals |s| matrix(s).svdvals()?;
        lstsq |s| {
            let x = matrix(s);
            let b = if s.one_in(2) { x.clone() } else { s.partner(&x) };
            x.lstsq(&b)?
        };
        pinv |s| {
            let rtol = if s.one_in(2) { None } else { Some(s.number()) };
            matrix(s).pinv(rtol)?
        };
        matrix_rank |s| {
            let rtol = if s.one_in(2) { None } else { Some(s.number()) };
            matrix(s).matrix_rank(rtol)?
        };
        cond |s| matrix(s).cond()?;
        matrix_norm |s| {
            let norms = [MatrixNorm::Frobenius, MatrixNorm::Nuclear, MatrixNorm::Spectral,
                MatrixNorm::Columns, MatrixNorm::Rows];
            let norm = s.pick(&norms);
            matrix(s).matrix_norm(norm)?
        };
        matrix_power |s| {
            let n = s.pick(&[0, 1, -1, 2, 5, -3, i64::MIN, i64::MAX]);
            matrix(s).matrix_power(n)?
        };
        matrix_exp |s| matrix(s).matrix_exp()?;
    }
}

/// Complex numbers, usually.
fn complex(s: &mut Source) -> Tensor {
    if s.one_in(4) {
        return s.x();
    }
    let mut dims = s.shape();
    dims.push(2);
    let dtype = s.dtype();
    s.tensor(dims, dtype)
}

fn norm(s: &mut Source) -> FftNorm {
    s.pick(&[FftNorm::Backward, FftNorm::Ortho, FftNorm::Forward])
}

fn length(s: &mut Source) -> Option<usize> {
    if s.one_in(2) { None } else { Some(s.size()) }
}

fn stft<'a>(s: &mut Source, window: Option<&'a Tensor>) -> Stft<'a> {
    Stft {
        hop: s.size(),
        window,
        center: s.one_in(2),
        ..Stft::new(s.pick(&[0, 1, 2, 3, 4, usize::MAX]))
    }
}

fn fourier() -> Vec<Call> {
    calls! {
        fft |s| complex(s).fft(length(s), s.axis(), norm(s))?;
        ifft |s| complex(s).ifft(length(s), s.axis(), norm(s))?;
        rfft |s| s.x().rfft(length(s), s.axis(), norm(s))?;
        irfft |s| complex(s).irfft(length(s), s.axis(), norm(s))?;
        fft2 |s| complex(s).fft2(norm(s))?;
        ifft2 |s| complex(s).ifft2(norm(s))?;
        rfft2 |s| s.x().rfft2(norm(s))?;
        irfft2 |s| complex(s).irfft2(length(s), norm(s))?;
        fftn |s| { let (x, axes) = (complex(s), s.axes()); x.fftn(&axes, norm(s))? };
        ifftn |s| { let (x, axes) = (complex(s), s.axes()); x.ifftn(&axes, norm(s))? };
        fftshift |s| { let (x, axes) = (s.x(), s.axes()); x.fftshift(&axes[..])? };
        ifftshift |s| { let (x, axes) = (s.x(), s.axes()); x.ifftshift(&axes[..])? };
        fftfreq |s| Tensor::fftfreq(s.size(), s.number(), &s.device)?;
        rfftfreq |s| Tensor::rfftfreq(s.size(), s.number(), &s.device)?;
        stft |s| {
            let x = s.x();
            let window = s.maybe_partner(&x);
            x.stft(stft(s, window.as_ref()))?
        };
        istft |s| {
            let x = complex(s);
            let window = s.maybe_partner(&x);
            x.istft(stft(s, window.as_ref()), length(s))?
        };
    }
}

macro_rules! drawn {
    ($($name:ident($($p:ident),*))*) => {
        calls! {$( $name |s| {
            $(let $p = s.number();)*
            let (shape, dtype) = (s.shape(), s.dtype());
            Tensor::$name($($p,)* shape, dtype, &mut s.draws, &s.device)?
        }; )*}
    };
}

fn distributions() -> Vec<Call> {
    let mut all = drawn! {
        normal(a, b) exponential(a) laplace(a, b) cauchy(a, b) gumbel(a, b) lognormal(a, b)
        gamma(a, b) beta(a, b) geometric(a) truncated_normal(a, b, c, d)
    };
    all.extend(calls! {
        hann_window |s| { let n = s.size(); Tensor::hann_window(n, s.one_in(2), s.dtype(), &s.device) };
        hamming_window |s| { let n = s.size(); Tensor::hamming_window(n, s.one_in(2), s.dtype(), &s.device) };
        blackman_window |s| { let n = s.size(); Tensor::blackman_window(n, s.one_in(2), s.dtype(), &s.device) };
        bartlett_window |s| { let n = s.size(); Tensor::bartlett_window(n, s.one_in(2), s.dtype(), &s.device)? };
        kaiser_window |s| { let n = s.size(); Tensor::kaiser_window(n, s.one_in(2), s.number(), s.dtype(), &s.device)? };
        gumbel_softmax |s| { let x = s.x(); x.gumbel_softmax(s.number(), s.one_in(2), s.axis(), &mut s.draws)? };
        poisson |s| {
            let rate = s.pick(&[0.0, 0.5, 3.0, 500.0, -1.0, f64::NAN, f64::INFINITY]);
            let (shape, dtype) = (s.shape(), s.dtype());
            Tensor::poisson(rate, shape, dtype, &mut s.draws, &s.device)?
        };
        binomial |s| {
            let (n, p) = (s.pick(&[0, 1, 5, 1000, u32::MAX]), s.number());
            let (shape, dtype) = (s.shape(), s.dtype());
            Tensor::binomial(n, p, shape, dtype, &mut s.draws, &s.device)?
        };
        dirichlet |s| {
            let all: Vec<f64> = (0..s.rng.below(4)).map(|_| s.number()).collect();
            let (shape, dtype) = (s.shape(), s.dtype());
            Tensor::dirichlet(&all, shape, dtype, &mut s.draws, &s.device)?
        };
        multinomial |s| {
            let x = s.x();
            let x = if s.one_in(2) { x.abs() } else { x };
            let n = s.size();
            x.multinomial(n, s.one_in(2), &mut s.draws)?
        };
    });
    all
}

fn derivatives() -> Vec<Call> {
    calls! {
        jvp |s| {
            let x = s.x();
            let t = if s.one_in(2) { s.partner(&x) } else { x.clone() };
            let twice = [&x, &x];
            let n = s.pick(&[1, 1, 1, 2, 0]);
            let of = |x: &[Tensor]| Ok(x.first().map_or_else(|| t.clone(), Tensor::exp));
            let (y, dy) = Tensor::jvp(of, &twice[..n], &[&t])?;
            vec![y, dy]
        };
        vmap |s| {
            let x = s.x();
            let y = if s.one_in(2) { s.partner(&x) } else { x.clone() };
            let mut axes = vec![None, None];
            axes.iter_mut().for_each(|axis| *axis = if s.one_in(3) { None } else { Some(s.axis()) });
            if s.one_in(12) { axes.pop(); }
            let (kind, inner) = (s.pick(&[0, 0, 0, 1, 2, 3, 4]), s.axis());
            let of = move |x: &[Tensor]| -> Result<Tensor> { match kind {
                0 => x[0].add(&x[1])?.sin().sum(..),
                1 => x[0].softmax(inner),
                2 => Ok(x[0].sort(inner, true)?.0),
                3 => x[0].mul(x[1].cast(DType::F32).to_vec::<f32>()?.len() as f64),
                _ => Ok(x[0].exp().sum(..)?.grad(&[&x[0]])?.remove(0).unwrap_or_else(|| x[1].clone())),
            } };
            // What the function refuses has that function's name.
            let of = move |x: &[Tensor]| Ok(of(x).unwrap_or_else(|_| x[0].clone()));
            Tensor::vmap(of, &[&x, &y], &axes, s.axis())?
        };
        vmap_many |s| {
            let x = s.x();
            let y = if s.one_in(2) { s.partner(&x) } else { x.clone() };
            let axes = [Some(s.axis()), if s.one_in(2) { None } else { Some(s.axis()) }];
            Tensor::vmap_many(|x| Ok(x.iter().map(Tensor::exp).collect()), &[&x, &y], &axes)?
        };
        checkpoint |s| {
            let x = s.x();
            let y = s.partner(&x);
            let all = [&x, &y];
            let n = s.pick(&[1, 1, 2, 0]);
            let made = Tensor::checkpoint(|x| Ok(x[0].sin()), &all[..n])?;
            let dx = made.grad(&[&x])?;
            dx.into_iter().flatten().chain([made]).collect::<Vec<_>>()
        };
        gradcheck |s| {
            let x = s.x();
            if s.large || x.numel() > 20 {
                return Ok(Outcome::nothing());
            }
            Tensor::gradcheck(|x| Ok(x[0].tanh()), &[&x], s.number())?;
            told("agrees")
        };
    }
}

fn quantized() -> Vec<Call> {
    let mut all = calls! {
        encode_float8 |s| { let x = s.x(); x.encode_float8(s.pick(&[Float8::E4M3, Float8::E5M2])) };
        decode_float8 |s| {
            let x = s.x();
            let x = if s.one_in(2) { x.cast(DType::U8) } else { x };
            x.decode_float8(s.pick(&[Float8::E4M3, Float8::E5M2]))?
        };
    };
    all.extend(calls! {
        "QuantizedMatrix::new" |s| {
            let x = matrix(s);
            let q = QuantizedMatrix::new(&x, s.pick(&[4, 8, 8, 3]), s.size())?;
            vec![q.packed, q.scales]
        };
        "QuantizedMatrix::dequantize" |s| {
            let x = matrix(s);
            QuantizedMatrix::new(&x, s.pick(&[4, 8]), s.pick(&[1, 2, 3]))?.dequantize()?
        };
        "QuantizedMatrix::matmul" |s| {
            let x = matrix(s);
            let q = QuantizedMatrix::new(&x, s.pick(&[4, 8]), s.pick(&[1, 2, 3]))?;
            let y = if s.one_in(2) { x.clone() } else { s.partner(&x) };
            q.matmul(&y)?
        };
    });
    all
}
