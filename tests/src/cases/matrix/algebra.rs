//! Rows of products, linear algebra and Fourier transforms.

use super::{Row, rows};
use zyx_core::{FftNorm, MatrixNorm, Stft, Tensor};

/// The rows.
pub(super) fn table() -> Vec<Row> {
    [products(), factors(), fourier()].concat()
}

fn products() -> Vec<Row> {
    rows! {
        matmul |s| s.x.matmul(&s.y.t());
        dot |s| s.v.dot(&s.sorted);
        vdot |s| s.v.vdot(&s.sorted);
        tensordot |s| s.x.tensordot(&s.y, &[0], &[0]);
        outer |s| s.v.outer(&s.sorted);
        inner |s| s.x.inner(&s.y);
        kron |s| s.x.kron(&s.square);
        cross |s| s.x.narrow(0, 0, 3)?.cross(&s.y.narrow(0, 0, 3)?, 0);
        bmm |s| s.x.unsqueeze(0)?.bmm(&s.y.t().unsqueeze(0)?);
        mv |s| s.x.mv(&s.v);
        addmm |s| s.square.addmm(&s.x, &s.y.t(), 2.0, 1.0);
        baddbmm |s| s.square.unsqueeze(0)?.baddbmm(&s.x.unsqueeze(0)?, &s.y.t().unsqueeze(0)?, 2.0, 1.0);
        multi_dot |s| Tensor::multi_dot(&[&s.square, &s.x, &s.v]);
        vecdot |s| s.x.vecdot(&s.y, 1);
        einsum |s| Tensor::einsum("ij,kj->ki", &[&s.x, &s.y]);
        trace |s| s.x.trace();
        cosine_similarity |s| s.x.cosine_similarity(&s.y, 1, 1e-8);
        pairwise_distance |s| s.x.pairwise_distance(&s.y, 2.0, 0.0);
        cdist |s| s.x.cdist(&s.y, 1.0);
        pdist |s| s.x.pdist(1.0);
    }
}

fn factors() -> Vec<Row> {
    rows! {
        cholesky |s| s.square.cholesky();
        triangular_solve |s| s.square.tril(0)?.triangular_solve(&s.x, false, false);
        cholesky_solve |s| s.square.tril(0)?.cholesky_solve(&s.x, false);
        cholesky_inverse |s| s.square.tril(0)?.cholesky_inverse(false);
        solve |s| s.square.solve(&s.x);
        inv |s| s.square.inv();
        det |s| s.square.det();
        slogdet |s| s.square.slogdet();
        logdet |s| s.square.logdet();
        qr |s| s.square.qr();
        eigh |s| { let (w, v) = s.square.eigh()?; (w, v.abs()) };
        svd |s| { let (u, w, v) = s.square.svd()?; (u.abs(), w, v.abs()) };
        svdvals |s| s.square.svdvals();
        lstsq |s| s.square.lstsq(&s.x);
        pinv |s| s.square.pinv(None);
        matrix_rank |s| s.square.matrix_rank(None);
        cond |s| s.square.cond();
        matrix_norm |s| s.x.matrix_norm(MatrixNorm::Columns);
        matrix_power |s| s.square.matrix_power(3);
        matrix_exp |s| s.square.mul(0.25)?.matrix_exp();
    }
}

fn fourier() -> Vec<Row> {
    let mut all = rows! {
        fft |s| s.complex()?.fft(None, 0, FftNorm::Backward);
        ifft |s| s.complex()?.ifft(None, 0, FftNorm::Backward);
        rfft |s| s.x.rfft(None, 1, FftNorm::Backward);
        irfft |s| s.complex()?.irfft(Some(s.x.shape()[0] + 1), 0, FftNorm::Backward);
        fft2 |s| s.complex()?.fft2(FftNorm::Backward);
        ifft2 |s| s.complex()?.ifft2(FftNorm::Ortho);
        rfft2 |s| s.x.rfft2(FftNorm::Backward);
        irfft2 |s| s.complex()?.unsqueeze(0)?.irfft2(Some(s.x.shape()[1]), FftNorm::Forward);
        fftn |s| s.complex()?.fftn(&[0, 1], FftNorm::Forward);
        ifftn |s| s.complex()?.ifftn(&[0, 1], FftNorm::Backward);
        stft |s| s.images[0].flatten_axes(0, 1)?.stft(Stft { hop: 2, ..Stft::new(4) });
        istft |s| {
            let frames = Stft { hop: 2, ..Stft::new(4) };
            s.images[0].flatten_axes(0, 1)?.stft(frames)?.istft(frames, None)
        };
        hann_window |s| Tensor::hann_window(5, true, s.dtype, &s.device);
        hamming_window |s| Tensor::hamming_window(5, true, s.dtype, &s.device);
        blackman_window |s| Tensor::blackman_window(5, true, s.dtype, &s.device);
        bartlett_window |s| Tensor::bartlett_window(5, true, s.dtype, &s.device);
        kaiser_window |s| Tensor::kaiser_window(5, true, 12.0, s.dtype, &s.device);
    };
    all.extend(rows! { itself
        fftfreq |s| Tensor::fftfreq(5, 0.5, &s.device);
        rfftfreq |s| Tensor::rfftfreq(6, 0.5, &s.device);
    });
    all
}
