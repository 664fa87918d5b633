//! Operators: one row and one function for each.
//!
//! A function sees its node, its inputs and the version of the operator set ([`Call`]), and gives the outputs in
//! order. Operators that models compute shapes with give a [`Host`](crate::Host) where the host knows all inputs.

mod attention;
mod classical;
mod contrib;
mod contrib_attention;
mod control;
mod convolution;
mod create;
mod detection;
mod fused;
#[cfg(feature = "image")]
mod image;
mod index;
mod integers;
mod linear;
mod loss;
mod math;
mod normalize;
mod pool;
mod quantize;
mod random;
mod recurrent;
mod reduce;
mod resize;
mod sample;
mod shape;
mod signal;
mod strings;
mod trees;
mod vectors;

use crate::run::Call;
use crate::value::Value;
pub(crate) use integers::Dequantized;
use quantize::moved;
use std::fmt;
use zyx_core::ops::UnaryOp;
use zyx_core::{DType, Result, Tensor};

/// A row of the table.
pub(crate) struct Operator {
    domain: &'static str,
    name: &'static str,
    /// The first version of the operator set in which it means what the function does.
    since: i64,
    pub(crate) run: fn(&Call<'_>) -> Result<Vec<Value>>,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// One output.
fn one(value: impl Into<Value>) -> Result<Vec<Value>> {
    Ok(vec![value.into()])
}

/// One output that is a value already.
fn one_value(value: Value) -> Result<Vec<Value>> {
    Ok(vec![value])
}

/// The dtype that an attribute names.
fn dtype_attribute(call: &Call<'_>, name: &str) -> Result<Option<DType>> {
    let dtype = call.int_attribute(name)?.map(|number| crate::read::dtype(number as i32));
    dtype.transpose().map_err(|reason| call.error(reason))
}

macro_rules! operators {
    ($($domain:literal { $($(#[$when:meta])? $name:literal $since:literal $run:expr;)* })*) => {
        &[$($($(#[$when])? Operator { domain: $domain, name: $name, since: $since, run: $run },)*)*]
    };
}

const OPERATORS: &[Operator] = operators! {
    "" {
        "Abs" 1 |call| math::unary(call, UnaryOp::Abs, Tensor::abs);
        "Acos" 7 |call| math::same(call, Tensor::acos);
        "Acosh" 9 |call| math::same(call, Tensor::acosh);
        "Add" 1 math::add;
        "AffineGrid" 20 sample::affine_grid;
        "And" 1 math::and;
        "ArgMax" 1 reduce::argmax;
        "ArgMin" 1 reduce::argmin;
        "Asin" 7 |call| math::same(call, Tensor::asin);
        "Asinh" 9 |call| math::same(call, Tensor::asinh);
        "Atan" 7 |call| math::same(call, Tensor::atan);
        "Atanh" 9 |call| math::same(call, Tensor::atanh);
        "Attention" 23 attention::attention;
        "AveragePool" 7 pool::average;
        "BatchNormalization" 1 normalize::batch;
        "Bernoulli" 15 random::bernoulli;
        "BitCast" 26 create::bit_cast;
        "BitShift" 11 math::bit_shift;
        "BitwiseAnd" 18 math::and;
        "BitwiseNot" 18 math::bitwise_not;
        "BitwiseOr" 18 math::or;
        "BitwiseXor" 18 math::xor;
        "BlackmanWindow" 17 |call| signal::window(call, [0.42, 0.5, 0.08]);
        "Cast" 1 create::cast;
        "CastLike" 15 create::cast_like;
        "CausalConvWithState" 27 convolution::causal_conv_with_state;
        "Ceil" 1 |call| math::unary(call, UnaryOp::Ceil, Tensor::ceil);
        "Celu" 12 math::celu;
        "CenterCropPad" 18 shape::center_crop_pad;
        "Clip" 1 math::clip;
        "Col2Im" 18 convolution::col2im;
        "Compress" 9 |call| moved(call, index::compress);
        "Concat" 1 |call| moved(call, shape::concat);
        "ConcatFromSequence" 11 control::concat_from_sequence;
        "Constant" 1 create::constant;
        "ConstantOfShape" 9 create::constant_of_shape;
        "Conv" 1 convolution::conv;
        "ConvTranspose" 1 convolution::conv_transpose;
        "Cos" 7 |call| math::same(call, Tensor::cos);
        "Cosh" 9 |call| math::same(call, Tensor::cosh);
        "CumProd" 26 reduce::cumprod;
        "CumSum" 11 reduce::cumsum;
        "DeformConv" 19 convolution::deform_conv;
        "DepthToSpace" 1 |call| moved(call, shape::depth_to_space);
        "Det" 11 linear::det;
        "DFT" 17 signal::dft;
        "Div" 1 math::div;
        "Dropout" 1 normalize::dropout;
        "Einsum" 12 linear::einsum;
        "Elu" 1 math::elu;
        "Equal" 1 math::equal;
        "Erf" 9 |call| math::same(call, Tensor::erf);
        "Exp" 1 |call| math::same(call, Tensor::exp);
        "Expand" 8 |call| moved(call, shape::expand);
        "EyeLike" 9 create::eye_like;
        "Flatten" 1 |call| moved(call, shape::flatten);
        "Floor" 1 |call| math::unary(call, UnaryOp::Floor, Tensor::floor);
        "Gather" 1 |call| moved(call, index::gather);
        "GatherElements" 11 |call| moved(call, index::gather_elements);
        "GatherND" 11 |call| moved(call, index::gather_nd);
        "Gelu" 20 math::gelu;
        "Gemm" 1 linear::gemm;
        "GlobalAveragePool" 1 pool::global_average;
        "GlobalLpPool" 1 pool::global_lp;
        "GlobalMaxPool" 1 pool::global_max;
        "Greater" 1 math::greater;
        "GreaterOrEqual" 12 math::greater_or_equal;
        "GridSample" 16 sample::grid_sample;
        "GroupNormalization" 18 normalize::group;
        "GRU" 1 recurrent::gru;
        "HammingWindow" 17 |call| signal::window(call, [25.0 / 46.0, 21.0 / 46.0, 0.0]);
        "HannWindow" 17 |call| signal::window(call, [0.5, 0.5, 0.0]);
        "Hardmax" 1 math::hardmax;
        "HardSigmoid" 1 math::hard_sigmoid;
        "HardSwish" 14 math::hard_swish;
        "Identity" 1 shape::identity;
        "If" 1 control::if_;
        #[cfg(feature = "image")]
        "ImageDecoder" 20 image::decoder;
        "InstanceNormalization" 1 normalize::instance;
        "IsInf" 10 math::is_inf;
        "IsNaN" 9 |call| one(call.tensor(0)?.is_nan());
        "LayerNormalization" 1 normalize::layer;
        "LeakyRelu" 1 math::leaky_relu;
        "Less" 1 math::less;
        "LessOrEqual" 12 math::less_or_equal;
        "LinearAttention" 27 attention::linear_attention;
        "Log" 1 |call| math::same(call, Tensor::log);
        "LogSoftmax" 1 math::log_softmax;
        "Loop" 1 control::loop_;
        "LpNormalization" 1 normalize::lp;
        "LpPool" 1 pool::lp;
        "LRN" 1 normalize::local_response;
        "LSTM" 1 recurrent::lstm;
        "MatMul" 1 linear::matmul;
        "Max" 1 math::max;
        "MaxPool" 1 pool::max;
        "MaxRoiPool" 1 pool::max_roi;
        "MaxUnpool" 9 pool::max_unpool;
        "Mean" 1 math::mean;
        "MeanVarianceNormalization" 9 normalize::mean_variance;
        "MelWeightMatrix" 17 signal::mel_weights;
        "Min" 1 math::min;
        "Mish" 18 |call| math::same(call, Tensor::mish);
        "Mod" 10 math::modulo;
        "Mul" 1 math::mul;
        "Multinomial" 7 random::multinomial;
        "Neg" 1 |call| math::unary(call, UnaryOp::Neg, Tensor::neg);
        "NegativeLogLikelihoodLoss" 12 loss::negative_log_likelihood;
        "NonMaxSuppression" 10 detection::non_max_suppression;
        "NonZero" 9 index::non_zero;
        "Not" 1 math::not;
        "OneHot" 9 create::one_hot;
        "Optional" 15 control::optional;
        "OptionalGetElement" 15 control::optional_get_element;
        "OptionalHasElement" 15 control::optional_has_element;
        "Or" 1 math::or;
        "Pad" 1 shape::pad;
        "Pow" 1 math::pow;
        "PRelu" 1 math::prelu;
        "RandomNormal" 1 random::normal;
        "RandomNormalLike" 1 random::normal;
        "RandomUniform" 1 random::uniform;
        "RandomUniformLike" 1 random::uniform;
        "Range" 11 create::range;
        "Reciprocal" 1 |call| math::same(call, Tensor::recip);
        "ReduceL1" 1 reduce::l1;
        "ReduceL2" 1 reduce::l2;
        "ReduceLogSum" 1 reduce::log_sum;
        "ReduceLogSumExp" 1 reduce::log_sum_exp;
        "ReduceMax" 1 reduce::max;
        "ReduceMean" 1 reduce::mean;
        "ReduceMin" 1 reduce::min;
        "ReduceProd" 1 reduce::prod;
        "ReduceSum" 1 reduce::sum;
        "ReduceSumSquare" 1 reduce::sum_square;
        #[cfg(feature = "regex")]
        "RegexFullMatch" 20 strings::regex_full_match;
        "Relu" 1 |call| math::same(call, Tensor::relu);
        "Reshape" 1 |call| moved(call, shape::reshape);
        "Resize" 10 resize::resize;
        "ReverseSequence" 10 |call| moved(call, shape::reverse_sequence);
        "RMSNormalization" 23 normalize::rms;
        "RNN" 1 recurrent::rnn;
        "RoiAlign" 10 sample::roi_align;
        "RotaryEmbedding" 23 attention::rotary_embedding;
        "Round" 11 |call| math::unary(call, UnaryOp::Round, Tensor::round);
        "Scan" 8 control::batched_scan;
        "Scan" 9 control::scan;
        "Scatter" 9 index::scatter_elements;
        "ScatterElements" 11 index::scatter_elements;
        "ScatterND" 11 index::scatter_nd;
        "Selu" 1 math::selu;
        "SequenceAt" 11 control::sequence_at;
        "SequenceConstruct" 11 control::sequence_construct;
        "SequenceEmpty" 11 control::sequence_empty;
        "SequenceErase" 11 control::sequence_erase;
        "SequenceInsert" 11 control::sequence_insert;
        "SequenceLength" 11 control::sequence_length;
        "SequenceMap" 17 control::sequence_map;
        "Shape" 1 shape::shape;
        "Shrink" 9 math::shrink;
        "Sigmoid" 1 |call| math::same(call, Tensor::sigmoid);
        "Sign" 9 |call| math::same(call, Tensor::sign);
        "Sin" 7 |call| math::same(call, Tensor::sin);
        "Sinh" 9 |call| math::same(call, Tensor::sinh);
        "Size" 1 shape::size;
        "Slice" 1 |call| moved(call, shape::slice);
        "Softmax" 1 math::softmax;
        "SoftmaxCrossEntropyLoss" 12 loss::softmax_cross_entropy;
        "Softplus" 1 |call| math::same(call, Tensor::softplus);
        "Softsign" 1 math::softsign;
        "SpaceToDepth" 1 |call| moved(call, shape::space_to_depth);
        "Split" 1 |call| moved(call, shape::split);
        "SplitToSequence" 11 control::split_to_sequence;
        "Sqrt" 1 |call| math::same(call, Tensor::sqrt);
        "Squeeze" 1 |call| moved(call, shape::squeeze);
        "STFT" 17 signal::stft;
        "StringConcat" 20 strings::concat;
        "StringNormalizer" 10 strings::normalizer;
        "StringSplit" 20 strings::split;
        "Sub" 1 math::sub;
        "Sum" 1 math::sum;
        "SwiGLU" 28 attention::swiglu;
        "Swish" 24 math::swish;
        "Tan" 7 |call| math::same(call, Tensor::tan);
        "Tanh" 1 |call| math::same(call, Tensor::tanh);
        "TensorScatter" 24 index::tensor_scatter;
        "TfIdfVectorizer" 9 strings::tf_idf;
        "ThresholdedRelu" 10 math::thresholded_relu;
        "Tile" 1 |call| moved(call, shape::tile);
        "TopK" 1 index::topk;
        "Transpose" 1 |call| moved(call, shape::transpose);
        "Trilu" 14 shape::trilu;
        "Unique" 11 index::unique;
        "Unsqueeze" 1 |call| moved(call, shape::unsqueeze);
        "Upsample" 7 resize::upsample;
        "Where" 9 math::where_;
        "Xor" 1 math::xor;

        "ConvInteger" 10 quantize::conv_integer;
        "DequantizeLinear" 10 quantize::dequantize_linear;
        "DynamicQuantizeLinear" 11 quantize::dynamic_quantize_linear;
        "MatMulInteger" 10 quantize::matmul_integer;
        "QLinearConv" 10 quantize::qlinear_conv;
        "QLinearMatMul" 10 quantize::qlinear_matmul;
        "QuantizeLinear" 10 quantize::quantize_linear;
        "SimplifiedLayerNormalization" 1 contrib::rms_norm;
    }
    "ai.onnx.ml" {
        "ArrayFeatureExtractor" 1 classical::array_feature_extractor;
        "Binarizer" 1 classical::binarizer;
        "LabelEncoder" 2 classical::label_encoder;
        "LinearClassifier" 1 classical::linear_classifier;
        "LinearRegressor" 1 classical::linear_regressor;
        "Normalizer" 1 classical::normalizer;
        "OneHotEncoder" 1 classical::one_hot_encoder;
        "Scaler" 1 classical::scaler;
        "SVMClassifier" 1 vectors::classifier;
        "SVMRegressor" 1 vectors::regressor;
        "TreeEnsemble" 5 trees::ensemble;
        "TreeEnsembleClassifier" 1 trees::classifier;
        "TreeEnsembleRegressor" 1 trees::regressor;
        "ZipMap" 1 classical::zip_map;
    }
    "ai.onnx.preview" {
        "FlexAttention" 1 attention::flex;
    }
    "com.microsoft" {
        "Attention" 1 contrib_attention::attention;
        "BiasGelu" 1 contrib::bias_gelu;
        "DequantizeLinear" 1 quantize::dequantize_linear;
        "DynamicQuantizeLSTM" 1 recurrent::dynamic_quantize_lstm;
        "DynamicQuantizeMatMul" 1 contrib::dynamic_quantize_matmul;
        "EmbedLayerNormalization" 1 contrib::embed_layer_norm;
        "FastGelu" 1 contrib::fast_gelu;
        "FusedConv" 1 fused::fused_conv;
        "FusedGemm" 1 fused::fused_gemm;
        "FusedMatMul" 1 contrib::fused_matmul;
        "GatherBlockQuantized" 1 contrib::gather_block_quantized;
        "Gelu" 1 |call| math::same(call, Tensor::gelu_exact);
        "GroupNorm" 1 fused::group_norm;
        "GroupQueryAttention" 1 contrib_attention::group_query_attention;
        "MatMulIntegerToFloat" 1 contrib::matmul_integer_to_float;
        "MatMulNBits" 1 contrib::matmul_nbits;
        "MultiHeadAttention" 1 contrib_attention::multi_head_attention;
        "NhwcConv" 1 fused::nhwc_conv;
        "QGemm" 1 contrib::qgemm;
        "QLinearAdd" 1 contrib::qlinear_add;
        "QLinearAveragePool" 1 contrib::qlinear_average_pool;
        "QLinearConcat" 1 contrib::qlinear_concat;
        "QLinearGlobalAveragePool" 1 contrib::qlinear_global_average_pool;
        "QLinearLeakyRelu" 1 contrib::qlinear_leaky_relu;
        "QLinearMul" 1 contrib::qlinear_mul;
        "QLinearSigmoid" 1 contrib::qlinear_sigmoid;
        "QLinearSoftmax" 1 fused::qlinear_softmax;
        "QuantizeLinear" 1 quantize::quantize_linear;
        "QuickGelu" 1 contrib::quick_gelu;
        "RotaryEmbedding" 1 contrib_attention::rotary_embedding;
        "SimplifiedLayerNormalization" 1 contrib::rms_norm;
        "SkipLayerNormalization" 1 contrib::skip_layer_norm;
        "SkipSimplifiedLayerNormalization" 1 contrib::skip_rms_norm;
    }
};

/// The operator of this name for a version of its domain's operator set.
pub(crate) fn find(domain: &str, name: &str, version: i64) -> Option<&'static Operator> {
    let rows = OPERATORS.iter().filter(|row| row.domain == domain && row.name == name);
    rows.filter(|row| row.since <= version).max_by_key(|row| row.since)
}

/// Domain (empty for the standard's own), name and first version of every operator.
///
/// ```
/// assert!(zyx::onnx::operators().any(|row| row == ("", "Add", 1)));
/// ```
pub fn operators() -> impl Iterator<Item = (&'static str, &'static str, i64)> {
    OPERATORS.iter().map(|row| (row.domain, row.name, row.since))
}
