//! Training of GPTs, and decoding with one of GPT-2's small shape.

use crate::Workload;
use crate::inputs::Inputs;
use crate::measure::{Report, Unit, calls, checksum, training};
use crate::train::read;
use zyx::optim::{AdamOptions, AdamW, Optimizer};
use zyx::{Attention, DType, Device, Jit, Param, Result, Tensor};

pub(crate) fn workloads() -> Vec<(&'static str, Workload)> {
    vec![("gpt_train", train), ("gpt_decode", decode), ("gpt_decode_jit", decode_jit)]
}

/// Sizes of a network, and the dtype its products are computed in; all else is `f32`.
#[derive(Clone, Copy)]
struct Config {
    layers: usize,
    dim: usize,
    heads: usize,
    vocabulary: usize,
    positions: usize,
    dtype: DType,
}

const SMALL: Config =
    Config { layers: 4, dim: 256, heads: 8, vocabulary: 256, positions: 128, dtype: DType::F32 };

const GPT2: Config = Config {
    layers: 12,
    dim: 768,
    heads: 12,
    vocabulary: 50257,
    positions: 1024,
    dtype: DType::F32,
};

/// A linear map with weight `[out, in]` and a bias.
struct Linear {
    w: Param,
    b: Param,
}

impl Linear {
    fn new(name: &str, dims: [usize; 2], inputs: &mut Inputs) -> Result<Linear> {
        let w = inputs.weight(name, &dims)?;
        let b = Tensor::zeros([dims[0]], DType::F32, &inputs.device).contiguous();
        Ok(Linear { w, b: Param::new(b) })
    }

    fn apply(&self, x: &Tensor, dtype: DType) -> Result<Tensor> {
        let w = self.w.tensor().cast(dtype);
        x.cast(dtype).matmul(&w.t())?.add(self.b.tensor().cast(dtype))
    }
}

struct Norm {
    gain: Param,
    bias: Param,
}

impl Norm {
    fn new(dim: usize, device: &Device) -> Norm {
        let gain = Param::new(Tensor::ones([dim], DType::F32, device).contiguous());
        Norm { gain, bias: Param::new(Tensor::zeros([dim], DType::F32, device).contiguous()) }
    }

    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        x.layer_norm(-1, Some(&self.gain.tensor()), Some(&self.bias.tensor()), 1e-5)
    }
}

struct Block {
    ln1: Norm,
    qkv: Linear,
    proj: Linear,
    ln2: Norm,
    fc: Linear,
    out: Linear,
}

struct Gpt {
    wte: Param,
    wpe: Param,
    blocks: Vec<Block>,
    ln: Norm,
    heads: usize,
    dtype: DType,
}

impl Gpt {
    fn new(config: Config, inputs: &mut Inputs) -> Result<Gpt> {
        let Config { layers, dim, heads, vocabulary, positions, dtype } = config;
        let wte = inputs.weight("wte", &[vocabulary, dim])?;
        let wpe = inputs.weight("wpe", &[positions, dim])?;
        let device = inputs.device.clone();
        let mut blocks = Vec::with_capacity(layers);
        for i in 0..layers {
            blocks.push(Block {
                ln1: Norm::new(dim, &device),
                qkv: Linear::new(&format!("qkvw{i}"), [3 * dim, dim], inputs)?,
                proj: Linear::new(&format!("pw{i}"), [dim, dim], inputs)?,
                ln2: Norm::new(dim, &device),
                fc: Linear::new(&format!("fw{i}"), [4 * dim, dim], inputs)?,
                out: Linear::new(&format!("ow{i}"), [dim, 4 * dim], inputs)?,
            });
        }
        Ok(Gpt { wte, wpe, blocks, ln: Norm::new(dim, &device), heads, dtype })
    }

    fn parameters(&self) -> Vec<Param> {
        let mut all = vec![self.wte.clone(), self.wpe.clone()];
        for block in &self.blocks {
            for norm in [&block.ln1, &block.ln2] {
                all.extend([norm.gain.clone(), norm.bias.clone()]);
            }
            for linear in [&block.qkv, &block.proj, &block.fc, &block.out] {
                all.extend([linear.w.clone(), linear.b.clone()]);
            }
        }
        all.extend([self.ln.gain.clone(), self.ln.bias.clone()]);
        all
    }

    /// The final activations of `[batch, length]` tokens.
    fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let [batch, length] = *tokens.shape().dims() else {
            unreachable!("invariant: tokens are a matrix")
        };
        let dim = self.wte.shape()[1];
        let size = dim / self.heads;
        let mut x = self.wte.tensor().embedding(tokens)?.add(self.wpe.tensor())?;
        for block in &self.blocks {
            let qkv = block.qkv.apply(&block.ln1.apply(&x)?, self.dtype)?;
            let qkv =
                qkv.reshape([batch, length, 3, self.heads, size])?.permute([2, 0, 3, 1, 4])?;
            let part = |i| qkv.select_index(0, i);
            let causal = Attention { causal: true, ..Attention::default() };
            let y = part(0)?.scaled_dot_product_attention(&part(1)?, &part(2)?, causal)?;
            let y = y.permute([0, 2, 1, 3])?.reshape([batch, length, dim])?;
            x = x.add(&block.proj.apply(&y, self.dtype)?)?;
            let h = block.fc.apply(&block.ln2.apply(&x)?, self.dtype)?.gelu();
            x = x.add(&block.out.apply(&h, self.dtype)?)?;
        }
        self.ln.apply(&x)
    }
}

/// The whole of a training: data, network, optimizer.
pub(crate) struct Trainer {
    tokens: Vec<i64>,
    offsets: Vec<i64>,
    length: usize,
    gpt: Gpt,
    head: Param,
    optimizer: AdamW,
    device: Device,
    step: usize,
}

/// Sequences of a batch.
const BATCH: usize = 8;

impl Trainer {
    /// That of `gpt_train`.
    pub(crate) fn new(inputs: &mut Inputs) -> Result<Trainer> {
        Trainer::of(SMALL, inputs)
    }

    fn of(config: Config, inputs: &mut Inputs) -> Result<Trainer> {
        let Config { dim, vocabulary, positions: length, .. } = config;
        let tokens = inputs.integers("tokens", 1_000_000, vocabulary as u64)?;
        let offsets = inputs.integers("offsets", 1000 * BATCH, 1_000_000 - 1 - length as u64)?;
        let gpt = Gpt::new(config, inputs)?;
        let head = inputs.weight("head", &[vocabulary, dim])?;
        let mut params = gpt.parameters();
        params.push(head.clone());
        let options = AdamOptions { learning_rate: 3e-4, weight_decay: 0.01, ..Default::default() };
        let optimizer = AdamW::new(params, options)?;
        let device = inputs.device.clone();
        Ok(Trainer { tokens, offsets, length, gpt, head, optimizer, device, step: 0 })
    }

    /// One step; the loss, if it is to be read.
    pub(crate) fn step(&mut self, wanted: bool) -> Result<Option<f32>> {
        let starts = &self.offsets[(self.step % 1000) * BATCH..][..BATCH];
        self.step += 1;
        let rows = |shift: usize| -> Vec<i64> {
            let row = |&o: &i64| self.tokens[o as usize + shift..][..self.length].iter().copied();
            starts.iter().flat_map(row).collect()
        };
        let positions = BATCH * self.length;
        let x = Tensor::from_slice(&rows(0), [BATCH, self.length], &self.device)?;
        let y = Tensor::from_slice(&rows(1), [positions], &self.device)?;
        let dtype = self.gpt.dtype;
        let head = self.head.tensor().cast(dtype);
        let logits = self.gpt.forward(&x)?.cast(dtype).matmul(&head.t())?.cast(DType::F32);
        let loss = logits.reshape([positions, head.shape()[0]])?.cross_entropy(&y)?;
        self.optimizer.step(&loss)?;
        read(&loss, wanted)
    }
}

fn train(inputs: &mut Inputs) -> Result<Report> {
    train_one(SMALL, inputs)
}

/// GPT-2's small shape in mixed precision: products in `bf16`, parameters and sums in `f32`.
pub(crate) fn train_gpt2(inputs: &mut Inputs) -> Result<Report> {
    train_one(Config { vocabulary: 50304, dtype: DType::BF16, ..GPT2 }, inputs)
}

fn train_one(config: Config, inputs: &mut Inputs) -> Result<Report> {
    let mut trainer = Trainer::of(config, inputs)?;
    let report = training(Unit::Ms, |wanted| trainer.step(wanted))?;
    let rate = (BATCH * config.positions) as f64 / (report.median() * 1e-3);
    Ok(report.with("tokens_per_s", rate))
}

/// A network and the keys and values of 127 positions for each layer.
struct Decoder {
    gpt: Gpt,
    caches: Vec<[Tensor; 2]>,
}

impl Decoder {
    fn new(inputs: &mut Inputs) -> Result<Decoder> {
        let gpt = Gpt::new(GPT2, inputs)?;
        let mut caches = Vec::new();
        for i in 0..12 {
            let mut cache = |name: &str| -> Result<Tensor> {
                let x = inputs.normal(&format!("cache_{name}{i}"), &[12, 128, 64])?;
                let x = x.slice(1, ..127)?.contiguous();
                x.realize()?;
                Ok(x)
            };
            caches.push([cache("k")?, cache("v")?]);
        }
        Ok(Decoder { gpt, caches })
    }

    /// The logits of one token at position 127, and the next token, which has the largest.
    fn next(&self, token: &Tensor) -> Result<[Tensor; 2]> {
        let (dim, heads, size) = (768, 12, 64);
        let position = self.gpt.wpe.tensor().slice(0, 127..128)?;
        let mut x = self.gpt.wte.tensor().embedding(token)?.add(&position)?;
        for (block, [keys, values]) in self.gpt.blocks.iter().zip(&self.caches) {
            let qkv = block.qkv.apply(&block.ln1.apply(&x)?, DType::F32)?;
            let qkv = qkv.reshape([3, heads, 1, size])?;
            let part = |i| qkv.select_index(0, i);
            let keys = Tensor::cat(&[keys, &part(1)?], 1)?;
            let values = Tensor::cat(&[values, &part(2)?], 1)?;
            let scores = part(0)?.matmul(&keys.t())?.mul(1.0 / (size as f64).sqrt())?;
            let y = scores.softmax(-1)?.matmul(&values)?.reshape([1, dim])?;
            x = x.add(&block.proj.apply(&y, DType::F32)?)?;
            let h = block.fc.apply(&block.ln2.apply(&x)?, DType::F32)?.gelu();
            x = x.add(&block.out.apply(&h, DType::F32)?)?;
        }
        let logits = self.gpt.ln.apply(&x)?.matmul(&self.gpt.wte.tensor().t())?;
        let token = logits.argmax(1)?;
        Ok([logits, token])
    }
}

/// One token at position 127, with keys and values of the positions before it cached per layer.
fn decode(inputs: &mut Inputs) -> Result<Report> {
    let decoder = Decoder::new(inputs)?;
    decode_by(inputs, move |token| decoder.next(token))
}

/// The same as a function that is traced once.
fn decode_jit(inputs: &mut Inputs) -> Result<Report> {
    let decoder = Decoder::new(inputs)?;
    let step = Jit::new(move |token: &[Tensor]| Ok(decoder.next(&token[0])?.to_vec()));
    decode_by(inputs, move |token| {
        let [logits, token] = step.call(&[token])?.try_into().expect("two results");
        Ok([logits, token])
    })
}

/// Each token is read before the next is computed; the next one's input stays on the device.
fn decode_by(inputs: &Inputs, next: impl Fn(&Tensor) -> Result<[Tensor; 2]>) -> Result<Report> {
    let mut token = Tensor::zeros([1], DType::I64, &inputs.device).contiguous();
    let mut step = || -> Result<(Tensor, i64)> {
        let (logits, following) = next(&token)?.into();
        token = following;
        let number = token.item::<i64>()?;
        Ok((logits, number))
    };
    let (logits, first) = step()?;
    let (sum, _) = checksum(&logits)?;
    let mut tokens = vec![first as f64];
    for _ in 0..7 {
        tokens.push(step()?.1 as f64);
    }
    let report = calls(Unit::PerSecond, || step().map(drop))?;
    Ok(report.checked(sum, tokens))
}
