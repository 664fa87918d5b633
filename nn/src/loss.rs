//! Losses as modules: how far predictions are from targets.
//!
//! Each holds its settings as public fields; `Default` has PyTorch's. [`Loss::loss`] takes
//! prediction and target; those that compare other things have a method of their own.

use crate::init::located;
use crate::{Init, Module, Path, Visitor};
use zyx_core::{
    CrossEntropy, Ctc, MultiMargin, PoissonNll, Reduction, Result, Tensor, TripletMargin,
};

/// A module that compares a prediction with a target.
pub trait Loss: Module {
    /// How far apart they are: one number, unless the reduction says otherwise.
    ///
    /// # Errors
    /// When the shapes do not fit each other.
    #[track_caller]
    fn loss(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor>;
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
        let PoissonNllLoss { log_input, eps, reduction } = *s;
        x.poisson_nll_loss(y, PoissonNll { log_input, eps, reduction, ..PoissonNll::default() })
    };
    /// `log(1 + e^(-x y))` of scores against signs of 1 and -1.
    SoftMarginLoss {} |s, x, y| {
        same("SoftMarginLoss", x, y)?;
        x.soft_margin_loss(y, s.reduction)
    };
    /// `x` where the sign is 1, `max(margin - x, 0)` where it is -1.
    HingeEmbeddingLoss {
        /// How large distances of unlike pairs should be.
        margin: f64 = 1.0,
    } |s, x, y| {
        same("HingeEmbeddingLoss", x, y)?;
        x.hinge_embedding_loss(y, s.margin, s.reduction)
    };
    /// The mean over classes of the cross entropy of each: logits `[.., classes]` against zeros
    /// and ones.
    MultiLabelSoftMarginLoss {} |s, x, y| {
        same("MultiLabelSoftMarginLoss", x, y)?;
        x.multilabel_soft_margin_loss(y, None, s.reduction)
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
        // Another power than 1 and 2 is refused there.
        let p = if s.p == 1.0 || s.p == 2.0 { s.p as u32 } else { 0 };
        let MultiMarginLoss { margin, reduction, .. } = *s;
        x.multi_margin_loss(y, MultiMargin { p, margin, weight: None, reduction })
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
        mean.gaussian_nll_loss(target, var, s.full, s.eps, s.reduction)
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
        a.margin_ranking_loss(b, sign, s.margin, s.reduction)
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
        let TripletMarginLoss { margin, p, eps, reduction } = *s;
        let options = TripletMargin { margin, p, eps, reduction, ..TripletMargin::default() };
        anchor.triplet_margin_loss(positive, negative, options)
    };
    /// `1 - cos` of like pairs, `max(cos - margin, 0)` of unlike ones, over the last axis.
    CosineEmbeddingLoss {
        /// How similar unlike pairs may be.
        margin: f64 = 0.0,
    }
    /// Of two vectors `[.., width]` and the sign: 1 for like, -1 for unlike.
    loss(s, a, b, sign) {
        same("CosineEmbeddingLoss", a, b)?;
        a.cosine_embedding_loss(b, sign, s.margin, s.reduction)
    };
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
    /// ```
    /// # use zyx::nn::CtcLoss;
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// // Four steps, two classes beside the blank; the target is class 1.
    /// let x = Tensor::zeros([4, 1, 3], DType::F32, &device).log_softmax(2)?;
    /// let target = Tensor::new([[1i64]], &device)?;
    /// let (steps, lengths) = (Tensor::new([4i64], &device)?, Tensor::new([1i64], &device)?);
    /// let loss = CtcLoss::default().loss(&x, &target, &steps, &lengths)?.item::<f32>()?;
    /// // Ten of the 81 ways through are blanks around one run of the class.
    /// assert!((loss - (8.1f32).ln()).abs() < 1e-5);
    /// # Ok::<(), zyx::Error>(())
    /// ```
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
    /// ```
    /// # use zyx::nn::CosineSimilarity;
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let (a, b) = (Tensor::new([[1f32, 0.0]], &device)?, Tensor::new([[1f32, 1.0]], &device)?);
    /// let cosine = CosineSimilarity::default().apply(&a, &b)?.item::<f32>()?;
    /// assert!((cosine - 0.5f32.sqrt()).abs() < 1e-6);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit.
    #[track_caller]
    pub fn apply(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        a.cosine_similarity(b, self.axis, self.eps)
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
    /// ```
    /// # use zyx::nn::PairwiseDistance;
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let (a, b) = (Tensor::new([[3f32, 0.0]], &device)?, Tensor::new([[0f32, 4.0]], &device)?);
    /// let distance = PairwiseDistance::default().apply(&a, &b)?.item::<f32>()?;
    /// assert!((distance - 5.0).abs() < 1e-5);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit.
    #[track_caller]
    pub fn apply(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        a.pairwise_distance(b, self.p, self.eps)
    }
}
