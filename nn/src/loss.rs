//! Losses as modules: how far predictions are from targets.
//!
//! Each holds its settings as public fields; `Default` has PyTorch's. [`Loss::loss`] takes
//! prediction and target; those that compare other things have a method of their own.

use crate::init::located;
use crate::{Init, Module, Path, Visitor};
use zyx_core::{CrossEntropy, Ctc, Reduction, Result, Tensor};

/// A module that compares a prediction with a target.
pub trait Loss: Module {
    /// How far apart they are: one number, unless the reduction says otherwise.
    ///
    /// # Errors
    /// When the shapes do not fit each other.
    fn loss(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor>;
}

#[track_caller]
fn reduced(terms: Tensor, reduction: Reduction) -> Result<Tensor> {
    match reduction {
        Reduction::Mean => terms.mean(..),
        Reduction::Sum => terms.sum(..),
        Reduction::None => Ok(terms),
    }
}

/// Refuses operands that would broadcast: `[n]` against `[n, 1]` compares all pairs.
#[track_caller]
fn same(op: &'static str, a: &Tensor, b: &Tensor) -> Result<()> {
    if a.shape().same(b.shape()) {
        return Ok(());
    }
    Err(Init::refuse(op, format!("shapes {} and {} differ", a.shape(), b.shape())))
}

macro_rules! losses {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr,)* }
        |$s:ident, $x:ident, $y:ident| $body:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            /// What becomes of the single terms; their mean.
            pub reduction: Reduction,
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* reduction: Reduction::Mean }
            }
        }

        impl Module for $name {
            fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
        }

        impl Loss for $name {
            #[track_caller]
            fn loss(&self, $x: &Tensor, $y: &Tensor) -> Result<Tensor> {
                let $s = self;
                located(|| $body)
            }
        }
    )*};
}

losses! {
    /// The squared difference.
    MseLoss {} |s, x, y| x.mse_loss(y, s.reduction);
    /// The absolute difference.
    L1Loss {} |s, x, y| x.l1_loss(y, s.reduction);
    /// Squares of small differences, straight beyond `delta` (Huber 1964).
    HuberLoss {
        /// Where squares end.
        delta: f64 = 1.0,
    } |s, x, y| x.huber_loss(y, s.delta, s.reduction);
    /// [`HuberLoss`] divided by `beta`, its `delta`.
    SmoothL1Loss {
        /// Where squares end.
        beta: f64 = 1.0,
    } |s, x, y| x.smooth_l1_loss(y, s.beta, s.reduction);
    /// Cross entropy of logits `[n, classes, ..]` against class numbers `[n, ..]`.
    CrossEntropyLoss {
        /// Positions with this target count for nothing.
        ignore_index: Option<i64> = Some(-100),
        /// The share of the target's probability that is spread over all classes.
        label_smoothing: f64 = 0.0,
    } |s, x, y| {
        let CrossEntropyLoss { ignore_index, label_smoothing, reduction } = *s;
        x.cross_entropy_with(y, CrossEntropy { ignore_index, label_smoothing, reduction })
    };
    /// The negated log probability `[n, classes, ..]` of class numbers `[n, ..]`.
    NllLoss {
        /// Positions with this target count for nothing.
        ignore_index: Option<i64> = Some(-100),
    } |s, x, y| {
        let NllLoss { ignore_index, reduction } = *s;
        x.nll_loss(y, CrossEntropy { ignore_index, label_smoothing: 0.0, reduction })
    };
    /// Cross entropy of probabilities against probabilities of the same shape.
    BceLoss {} |s, x, y| x.bce_loss(y, s.reduction);
    /// Cross entropy of logits against probabilities of the same shape.
    BceWithLogitsLoss {} |s, x, y| x.bce_with_logits_loss(y, s.reduction);
    /// Kullback and Leibler's divergence of log probabilities from probabilities. The mean is over
    /// all elements, as in PyTorch.
    KlDivLoss {} |s, x, y| x.kl_div_loss(y, s.reduction);
    /// The negated log likelihood of counts under a Poisson distribution.
    PoissonNllLoss {
        /// Whether the prediction is the logarithm of the rate.
        log_input: bool = true,
        /// Added to a rate before its logarithm is taken.
        eps: f64 = 1e-8,
    } |s, x, y| {
        same("PoissonNllLoss", x, y)?;
        let terms = match s.log_input {
            true => x.exp().sub(y.mul(x)?)?,
            false => x.sub(y.mul(x.add(s.eps)?.log())?)?,
        };
        reduced(terms, s.reduction)
    };
    /// `log(1 + e^(-x y))` of scores against signs of 1 and -1.
    SoftMarginLoss {} |s, x, y| {
        same("SoftMarginLoss", x, y)?;
        reduced(x.mul(y)?.neg().softplus(), s.reduction)
    };
    /// `x` where the sign is 1, `max(margin - x, 0)` where it is -1.
    HingeEmbeddingLoss {
        /// How large distances of unlike pairs should be.
        margin: f64 = 1.0,
    } |s, x, y| {
        same("HingeEmbeddingLoss", x, y)?;
        let apart = x.neg().add(s.margin)?.relu();
        let like = y.eq(y.ones_like())?;
        reduced(like.where_(x, apart)?, s.reduction)
    };
    /// The mean over classes of the cross entropy of each: logits `[.., classes]` against zeros
    /// and ones.
    MultiLabelSoftMarginLoss {} |s, x, y| {
        same("MultiLabelSoftMarginLoss", x, y)?;
        let terms = x.bce_with_logits_loss(y, Reduction::None)?;
        reduced(terms.mean(-1)?, s.reduction)
    };
    /// Hinges between the classes that a list names, up to its first negative number, and all
    /// others: scores `[n, classes]` against lists of class numbers of the same shape.
    MultiLabelMarginLoss {} |s, x, y| x.multilabel_margin_loss(y, s.reduction);
    /// `max(margin - x[y] + x[i], 0)^p` averaged over the classes `i`, zero at `y` itself: scores
    /// `[n, classes]` against class numbers `[n]`.
    MultiMarginLoss {
        /// 1 or 2.
        p: f64 = 1.0,
        /// How far the right class should be above.
        margin: f64 = 1.0,
    } |s, x, y| {
        let classes = x.shape().last().copied().unwrap_or(0);
        let right = y.one_hot(classes)?.cast(x.dtype());
        same("MultiMarginLoss", x, &right)?;
        let own = x.mul(&right)?.sum_keepdim(-1)?;
        let short = x.sub(own)?.add(s.margin)?.relu().pow(s.p)?;
        let terms = short.mul(right.neg().add(1.0)?)?.mean(-1)?;
        reduced(terms, s.reduction)
    };
}

macro_rules! comparisons {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr,)* }
        $(#[$method_doc:meta])*
        $method:ident($s:ident, $a:ident, $b:ident, $c:ident) $body:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            /// What becomes of the single terms; their mean.
            pub reduction: Reduction,
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* reduction: Reduction::Mean }
            }
        }

        impl Module for $name {
            fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
        }

        impl $name {
            $(#[$method_doc])*
            ///
            /// # Errors
            /// When the shapes do not fit each other.
            #[track_caller]
            pub fn $method(&self, $a: &Tensor, $b: &Tensor, $c: &Tensor) -> Result<Tensor> {
                let $s = self;
                located(|| $body)
            }
        }
    )*};
}

comparisons! {
    /// The negated log likelihood of targets under normal distributions.
    GaussianNllLoss {
        /// Whether the constant `log(2 pi) / 2` counts.
        full: bool = false,
        /// The smallest variance.
        eps: f64 = 1e-6,
    }
    /// Of means, targets and variances of one shape.
    loss(s, mean, target, var) {
        same("GaussianNllLoss", mean, target)?;
        same("GaussianNllLoss", mean, var)?;
        // The limit takes no part in the gradient, as in PyTorch.
        let least = var.detach().maximum(s.eps)?.sub(var.detach())?;
        let var = var.add(least)?;
        let mut terms = var.log().add(mean.sub(target)?.square().div(&var)?)?.mul(0.5)?;
        if s.full {
            terms = terms.add(0.5 * (2.0 * std::f64::consts::PI).ln())?;
        }
        reduced(terms, s.reduction)
    };
    /// `max(margin - y (a - b), 0)`: `a` should rank above `b` where the sign `y` is 1.
    MarginRankingLoss {
        /// How far apart they should be.
        margin: f64 = 0.0,
    }
    /// Of two scores and the sign.
    loss(s, a, b, sign) {
        same("MarginRankingLoss", a, b)?;
        same("MarginRankingLoss", a, sign)?;
        reduced(a.sub(b)?.mul(sign.neg())?.add(s.margin)?.relu(), s.reduction)
    };
    /// `max(|a - p| - |a - n| + margin, 0)` over the last axis: an anchor should be nearer to the
    /// positive than to the negative.
    TripletMarginLoss {
        /// How much nearer.
        margin: f64 = 1.0,
        /// The power of the norm.
        p: f64 = 2.0,
        /// Added to every difference.
        eps: f64 = 1e-6,
    }
    /// Of anchors, positives and negatives of one shape.
    loss(s, anchor, positive, negative) {
        same("TripletMarginLoss", anchor, positive)?;
        same("TripletMarginLoss", anchor, negative)?;
        let distance = |other| distance(anchor, other, s.p, s.eps);
        let terms = distance(positive)?.sub(distance(negative)?)?.add(s.margin)?.relu();
        reduced(terms, s.reduction)
    };
    /// `1 - cos` of like pairs, `max(cos - margin, 0)` of unlike ones, over the last axis.
    CosineEmbeddingLoss {
        /// How similar unlike pairs may be.
        margin: f64 = 0.0,
    }
    /// Of two vectors `[.., width]` and the sign: 1 for like, -1 for unlike.
    loss(s, a, b, sign) {
        same("CosineEmbeddingLoss", a, b)?;
        // PyTorch adds this number to both squared norms.
        let squares = |x: &Tensor| x.square().sum(-1)?.add(1e-12);
        let cos = a.mul(b)?.sum(-1)?.div(squares(a)?.mul(squares(b)?)?.sqrt())?;
        same("CosineEmbeddingLoss", &cos, sign)?;
        let like = sign.eq(sign.ones_like())?;
        let terms = like.where_(cos.neg().add(1.0)?, cos.sub(s.margin)?.relu())?;
        reduced(terms, s.reduction)
    };
}

#[track_caller]
fn distance(a: &Tensor, b: &Tensor, p: f64, eps: f64) -> Result<Tensor> {
    let difference = a.sub(b)?.add(eps)?.abs();
    match p == 2.0 {
        true => Ok(difference.square().sum(-1)?.sqrt()),
        false => difference.pow(p)?.sum(-1)?.pow(1.0 / p),
    }
}

/// Connectionist temporal classification (Graves et al. 2006): how probable a sequence of labels
/// is, whatever steps they fall on. The mean is over the batch, of losses divided by their
/// target's length, as in PyTorch.
#[derive(Clone, Copy, Debug, Default)]
pub struct CtcLoss {
    /// The class that stands for no label; 0.
    pub blank: usize,
    /// Whether an impossible alignment has loss 0 instead of infinity; false.
    pub zero_infinity: bool,
    /// What becomes of the single terms; their mean.
    pub reduction: Reduction,
}

impl Module for CtcLoss {
    fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
}

impl CtcLoss {
    /// Of log-probabilities `[steps, n, classes]`, class numbers `[n, length]`, and how many of the
    /// steps and of the class numbers count, both `[n]`.
    ///
    /// # Errors
    /// When the shapes do not fit each other.
    #[track_caller]
    pub fn loss(
        &self,
        x: &Tensor,
        targets: &Tensor,
        steps: &Tensor,
        lengths: &Tensor,
    ) -> Result<Tensor> {
        let CtcLoss { blank, zero_infinity, reduction } = *self;
        x.ctc_loss(targets, steps, lengths, Ctc { blank, zero_infinity, reduction })
    }
}

/// The cosine of the angle between two vectors along an axis.
#[derive(Clone, Copy, Debug, Module)]
pub struct CosineSimilarity {
    /// The axis; 1.
    pub axis: isize,
    /// The smallest norm; 1e-8.
    pub eps: f64,
}

impl Default for CosineSimilarity {
    fn default() -> CosineSimilarity {
        CosineSimilarity { axis: 1, eps: 1e-8 }
    }
}

impl CosineSimilarity {
    /// Of vectors of one shape.
    ///
    /// # Errors
    /// When the shapes do not fit.
    #[track_caller]
    pub fn apply(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let (a, b) = (a.normalize(self.axis, self.eps)?, b.normalize(self.axis, self.eps)?);
        a.mul(b)?.sum(self.axis)
    }
}

/// The norm of the difference of two vectors along the last axis.
#[derive(Clone, Copy, Debug, Module)]
pub struct PairwiseDistance {
    /// The power of the norm; 2.
    pub p: f64,
    /// Added to every difference; 1e-6.
    pub eps: f64,
}

impl Default for PairwiseDistance {
    fn default() -> PairwiseDistance {
        PairwiseDistance { p: 2.0, eps: 1e-6 }
    }
}

impl PairwiseDistance {
    /// Of vectors of one shape.
    ///
    /// # Errors
    /// When the shapes do not fit.
    #[track_caller]
    pub fn apply(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        distance(a, b, self.p, self.eps)
    }
}
