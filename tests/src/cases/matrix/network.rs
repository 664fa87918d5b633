//! Rows of convolutions, pooling, normalisation, attention, losses and gradients.

use super::{Row, rows};
use zyx_core::{
    Attention, Conv1dOptions, Conv2dOptions, Conv3dOptions, ConvTransposeOptions, CrossEntropy,
    Ctc, Interpolation, MultiMargin, PoissonNll, Pool, Reduction, Tensor, TripletMargin,
};

const MEAN: Reduction = Reduction::Mean;

/// The rows.
pub(super) fn table() -> Vec<Row> {
    [convolutions(), pools(), layers(), losses(), gradients()].concat()
}

fn convolutions() -> Vec<Row> {
    rows! {
        conv1d |s| s.images[0].conv1d(&s.kernels[0], None, Conv1dOptions::default());
        conv2d |s| s.images[1].conv2d(&s.kernels[1], None, Conv2dOptions::default());
        conv3d |s| s.images[2].conv3d(&s.kernels[2], None, Conv3dOptions::default());
        conv_same |s| s.images[1].conv_same(&s.kernels[1], None, &[1, 1], 1);
        conv_transpose1d |s| s.images[0].conv_transpose1d(&s.kernels[0], None, ConvTransposeOptions { stride: [2], ..Default::default() });
        conv_transpose2d |s| s.images[1].conv_transpose2d(&s.kernels[1], None, ConvTransposeOptions { stride: [2, 1], ..Default::default() });
        conv_transpose3d |s| s.images[2].conv_transpose3d(&s.kernels[2], None, ConvTransposeOptions::default());
        interpolate |s| s.images[1].interpolate(&[6, 3], Interpolation::Linear, false);
        interpolate_by |s| s.images[1].interpolate_by(&[1.5, 0.7], Interpolation::Linear, false);
        grid_sample |s| {
            let images = s.images[1].shape()[0];
            let grid = s.unit.reshape([images, 2, s.unit.numel() / images / 4, 2])?;
            s.images[1].grid_sample(&grid, false, false, true)
        };
    }
}

fn pools() -> Vec<Row> {
    rows! {
        max_pool1d |s| s.images[0].max_pool1d(Pool::new([2]));
        max_pool2d |s| s.images[1].max_pool2d(Pool::new([2, 2]));
        max_pool3d |s| s.images[2].max_pool3d(Pool::new([2; 3]));
        max_pool1d_with_indices |s| s.images[0].max_pool1d_with_indices(Pool::new([2]));
        max_pool2d_with_indices |s| s.images[1].max_pool2d_with_indices(Pool::new([2, 2]));
        max_pool3d_with_indices |s| s.images[2].max_pool3d_with_indices(Pool::new([2; 3]));
        avg_pool1d |s| s.images[0].avg_pool1d(Pool::new([2]));
        avg_pool2d |s| s.images[1].avg_pool2d(Pool::new([2, 2]));
        avg_pool2d_inside |s| s.images[1].avg_pool2d_inside(Pool::new([2, 2]));
        avg_pool3d |s| s.images[2].avg_pool3d(Pool::new([2; 3]));
        lp_pool1d |s| s.images[0].abs().lp_pool1d(2.0, Pool::new([2]));
        lp_pool2d |s| s.images[1].abs().lp_pool2d(2.0, Pool::new([2, 2]));
        lp_pool3d |s| s.images[2].abs().lp_pool3d(2.0, Pool::new([2; 3]));
        global_avg_pool2d |s| s.images[1].global_avg_pool2d();
        adaptive_avg_pool1d |s| s.images[0].adaptive_avg_pool1d([4]);
        adaptive_avg_pool2d |s| s.images[1].adaptive_avg_pool2d([3, 2]);
        adaptive_avg_pool3d |s| s.images[2].adaptive_avg_pool3d([2; 3]);
        adaptive_max_pool1d |s| s.images[0].adaptive_max_pool1d([4]);
        adaptive_max_pool2d |s| s.images[1].adaptive_max_pool2d([3, 2]);
        adaptive_max_pool3d |s| s.images[2].adaptive_max_pool3d([2; 3]);
    }
}

fn layers() -> Vec<Row> {
    rows! {
        layer_norm |s| s.x.layer_norm(1, Some(&s.v), None, 0.125);
        rms_norm |s| s.x.rms_norm(1, Some(&s.v), 0.125);
        batch_norm |s| s.x.batch_norm(Some(&s.v), None, 0.125);
        batch_norm_with |s| s.x.batch_norm_with(&s.v, &s.v.abs(), None, None, 0.125);
        group_norm |s| s.images[0].group_norm(2, None, None, 0.125);
        normalize |s| s.x.normalize(1, 1e-6);
        scaled_dot_product_attention |s| {
            let [rows, width] = [s.x.shape()[0], s.x.shape()[1]];
            let n = (width / 128).max(1);
            let heads = |x: &Tensor| x.reshape([1, n, rows, width / n]);
            let (k, v) = (heads(&s.y)?, heads(&s.unit)?);
            heads(&s.x)?.scaled_dot_product_attention(&k, &v, Attention { causal: true, ..Default::default() })
        };
    }
}

fn losses() -> Vec<Row> {
    rows! {
        mse_loss |s| s.x.mse_loss(&s.y, MEAN);
        l1_loss |s| s.x.l1_loss(&s.y, MEAN);
        huber_loss |s| s.x.huber_loss(&s.y, 0.75, MEAN);
        smooth_l1_loss |s| s.x.smooth_l1_loss(&s.y, 0.75, MEAN);
        bce_loss |s| s.unit.bce_loss(&s.unit.flip(1)?, MEAN);
        bce_with_logits_loss |s| s.x.bce_with_logits_loss(&s.unit, MEAN);
        binary_cross_entropy |s| s.unit.binary_cross_entropy(&s.unit.flip(1)?, Some(&s.large), MEAN);
        binary_cross_entropy_with_logits |s| s.x.binary_cross_entropy_with_logits(&s.unit, None, Some(&s.v.abs()), MEAN);
        kl_div_loss |s| s.x.kl_div_loss(&s.unit, MEAN);
        kl_div |s| s.x.kl_div(&s.y, true, MEAN);
        cross_entropy |s| s.x.cross_entropy(&s.classes);
        cross_entropy_with |s| s.x.cross_entropy_with(&s.classes, CrossEntropy { label_smoothing: 0.125, ..Default::default() });
        cross_entropy_weighted |s| s.x.cross_entropy_weighted(&s.classes, Some(&s.large.select_index(0, 0)?), CrossEntropy::default());
        nll_loss |s| s.x.nll_loss(&s.classes, CrossEntropy::default());
        nll_loss_weighted |s| s.x.nll_loss_weighted(&s.classes, &s.large.select_index(0, 0)?, CrossEntropy::default());
        poisson_nll_loss |s| s.x.poisson_nll_loss(&s.large, PoissonNll::default());
        gaussian_nll_loss |s| s.x.gaussian_nll_loss(&s.y, &s.large, false, 1e-6, MEAN);
        triplet_margin_loss |s| s.x.triplet_margin_loss(&s.y, &s.unit, TripletMargin::default());
        cosine_embedding_loss |s| s.x.cosine_embedding_loss(&s.y, &s.unit.select_index(1, 0)?.sign(), 0.0, MEAN);
        margin_ranking_loss |s| s.x.margin_ranking_loss(&s.y, &s.large.sign(), 0.5, MEAN);
        hinge_embedding_loss |s| s.x.hinge_embedding_loss(&s.large.sign(), 1.0, MEAN);
        soft_margin_loss |s| s.x.soft_margin_loss(&s.large.sign(), MEAN);
        multi_margin_loss |s| s.x.multi_margin_loss(&s.classes, MultiMargin::default());
        multilabel_soft_margin_loss |s| s.x.multilabel_soft_margin_loss(&s.unit, None, MEAN);
        multilabel_margin_loss |s| s.x.multilabel_margin_loss(&s.index, MEAN);
        ctc_loss |s| {
            let ones = s.classes.ones_like();
            let logits = s.x.reshape([2, 3, 2])?.log_softmax(-1)?;
            logits.ctc_loss(&ones.unsqueeze(1)?, &ones.add(&ones)?, &ones, Ctc::default())
        };
    }
}

fn gradients() -> Vec<Row> {
    rows! {
        grad |s| {
            let x = s.x.tracked();
            let found = x.mul(&s.y)?.square().sum(..)?.grad(&[&x])?;
            found.into_iter().flatten().collect::<Vec<Tensor>>()
        };
        grad_with |s| {
            let x = s.x.tracked();
            let found = x.square().grad_with(&s.y, &[&x])?;
            found.into_iter().flatten().collect::<Vec<Tensor>>()
        };
        with_gradient |s| {
            let x = s.x.tracked();
            let y = x.detach().with_gradient(&[&x], |_, _, dy| Ok(vec![Some(dy.clone())]))?;
            y.sum(..)?.grad(&[&x])?.into_iter().flatten().collect::<Vec<Tensor>>()
        };
        jvp |s| Tensor::jvp(|x| Ok(x[0].square()), &[&s.x], &[&s.y]);
        vmap |s| Tensor::vmap(|x| x[0].mul(&x[1])?.sum(..), &[&s.x, &s.v], &[Some(0), None], 0);
        vmap_many |s| {
            let both = |x: &[Tensor]| Ok(vec![x[0].add(&x[1])?, x[0].exp()]);
            Tensor::vmap_many(both, &[&s.x, &s.v], &[Some(0), None])?
        };
        checkpoint |s| Tensor::checkpoint(|x| Ok(x[0].square()), &[&s.x]);
    }
}
