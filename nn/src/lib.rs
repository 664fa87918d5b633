//! Neural network modules: layers, parameters by name, saving and loading.
//!
//! Reading order: [`Module`] and [`Forward`] (what a layer is), [`Init`] (how parameters start),
//! the layers by family, [`Loss`], [`safetensors`] (files). Names and shapes of parameters and their initial
//! distributions are PyTorch's, so that weights can be exchanged.
//!
//! The crate uses the public interface of `zyx-core` alone.
#![forbid(unsafe_code)]

// Lets the derive macro, which names `::zyx_nn`, be used in this crate.
extern crate self as zyx_nn;

mod activation;
mod around;
mod attention;
mod batch_norm;
mod convolution;
mod convolution_nd;
pub mod distributions;
mod dropout;
mod embedding;
mod init;
mod instance_norm;
mod linear;
mod loading;
mod loss;
mod module;
mod normalization;
mod pooling;
mod position;
mod recurrent;
mod resize;
pub mod safetensors;
mod sequential;
mod shape;
mod summary;
mod transformer;
mod whole;

pub use activation::{
    Celu, Elu, Gelu, GeluExact, Glu, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyRelu,
    LogSigmoid, LogSoftmax, Mish, PRelu, Relu, Relu6, Selu, Sigmoid, Silu, Softmax, Softmin,
    Softplus, Softshrink, Softsign, Swiglu, Tanh, Tanhshrink, Threshold,
};
pub use around::Around;
pub use attention::{AttentionMask, AttentionOptions, KvCache, MultiheadAttention};
pub use batch_norm::{BatchNorm1d, BatchNorm2d, BatchNorm3d};
pub use convolution::{Conv1d, Conv2d};
pub use convolution_nd::{Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d};
pub use dropout::{AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, RngStream};
pub use embedding::{BagMode, Embedding, EmbeddingBag};
pub use init::{Fan, Init, gain};
pub use instance_norm::{InstanceNorm1d, InstanceNorm2d, InstanceNorm3d};
pub use linear::{Bilinear, Linear};
pub use loading::Loaded;
pub use loss::{
    BceLoss, BceWithLogitsLoss, CosineEmbeddingLoss, CosineSimilarity, CrossEntropyLoss, CtcLoss,
    GaussianNllLoss, HingeEmbeddingLoss, HuberLoss, KlDivLoss, L1Loss, Loss, MarginRankingLoss,
    MseLoss, MultiLabelMarginLoss, MultiLabelSoftMarginLoss, MultiMarginLoss, NllLoss,
    PairwiseDistance, PoissonNllLoss, SmoothL1Loss, SoftMarginLoss, TripletMarginLoss,
};
pub use module::{Forward, Mode, Module, ModuleDict, ModuleList, Path, Visitor};
pub use normalization::{GroupNorm, LayerNorm, LocalResponseNorm, RmsNorm};
pub use pooling::{
    AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
    AdaptiveMaxPool3d, AvgPool1d, AvgPool2d, AvgPool3d, Fold, GlobalAvgPool2d, LpPool1d, LpPool2d,
    LpPool3d, MaxPool1d, MaxPool2d, MaxPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d, Unfold,
};
pub use position::{RotaryEmbedding, RotaryPairs, SinusoidalPositions};
pub use recurrent::{Gru, GruCell, Lstm, LstmCell, RecurrentOptions, Rnn, RnnCell};
pub use resize::{Pad, Upsample};
pub use sequential::Sequential;
pub use shape::{
    ChannelShuffle, ConstantPad, Flatten, Identity, PixelShuffle, PixelUnshuffle, Unflatten,
    UpsampleNearest2d,
};
pub use transformer::{
    Transformer, TransformerActivation, TransformerDecoder, TransformerDecoderLayer,
    TransformerEncoder, TransformerEncoderLayer, TransformerOptions,
};
pub use zyx_core::Param;
pub use zyx_nn_derive::Module;
