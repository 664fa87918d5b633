//! Training of a small GPT, and decoding with one of GPT-2's small shape.

use crate::Workload;
use crate::inputs::Inputs;
use crate::measure::{Report, Unit, calls, checksum, training};
use crate::train::read;
use zyx::optim::{AdamOptions, AdamW, Optimizer};
use zyx::{DType, Device, Param, Result, Tensor};

pub(crate) fn workloads() -> Vec<(&'static str, Workload)> {
    vec![("gpt_train", train), ("gpt_decode", decode)]
}

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

    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        x.matmul(&self.w.tensor().t())?.add(self.b.tensor())
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
}

impl Gpt {
    fn new(
        [layers, dim, heads, vocabulary, positions]: [usize; 5],
        inputs: &mut Inputs,
    ) -> Result<Gpt> {
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
        Ok(Gpt { wte, wpe, blocks, ln: Norm::new(dim, &device), heads })
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
        let mask = Tensor::full([length, length], f32::NEG_INFINITY, x.device()).triu(1)?;
        for block in &self.blocks {
            let qkv = block.qkv.apply(&block.ln1.apply(&x)?)?;
            let qkv =
                qkv.reshape([batch, length, 3, self.heads, size])?.permute([2, 0, 3, 1, 4])?;
            let part = |i| qkv.select_index(0, i);
            let scores = part(0)?.matmul(&part(1)?.t())?.mul(1.0 / (size as f64).sqrt())?;
            let y = scores.add(&mask)?.softmax(-1)?.matmul(&part(2)?)?;
            let y = y.permute([0, 2, 1, 3])?.reshape([batch, length, dim])?;
            x = x.add(&block.proj.apply(&y)?)?;
            let h = block.fc.apply(&block.ln2.apply(&x)?)?.gelu();
            x = x.add(&block.out.apply(&h)?)?;
        }
        self.ln.apply(&x)
    }
}

/// The whole of `gpt_train`: data, network, optimizer.
pub(crate) struct Trainer {
    tokens: Vec<i64>,
    offsets: Vec<i64>,
    gpt: Gpt,
    head: Param,
    optimizer: AdamW,
    device: Device,
    step: usize,
}

impl Trainer {
    pub(crate) fn new(inputs: &mut Inputs) -> Result<Trainer> {
        let tokens = inputs.integers("tokens", 1_000_000, 256)?;
        let offsets = inputs.integers("offsets", 8000, 1_000_000 - 129)?;
        let gpt = Gpt::new([4, 256, 8, 256, 128], inputs)?;
        let head = inputs.weight("head", &[256, 256])?;
        let mut params = gpt.parameters();
        params.push(head.clone());
        let options = AdamOptions { learning_rate: 3e-4, weight_decay: 0.01, ..Default::default() };
        let optimizer = AdamW::new(params, options)?;
        Ok(Trainer {
            tokens,
            offsets,
            gpt,
            head,
            optimizer,
            device: inputs.device.clone(),
            step: 0,
        })
    }

    /// One step; the loss, if it is to be read.
    pub(crate) fn step(&mut self, wanted: bool) -> Result<Option<f32>> {
        let starts = &self.offsets[(self.step % 1000) * 8..][..8];
        self.step += 1;
        let rows = |shift: usize| -> Vec<i64> {
            let row = |&o: &i64| self.tokens[o as usize + shift..][..128].iter().copied();
            starts.iter().flat_map(row).collect()
        };
        let x = Tensor::from_slice(&rows(0), [8, 128], &self.device)?;
        let y = Tensor::from_slice(&rows(1), [1024], &self.device)?;
        let logits = self.gpt.forward(&x)?.matmul(&self.head.tensor().t())?;
        let loss = logits.reshape([1024, 256])?.cross_entropy(&y)?;
        self.optimizer.step(&loss)?;
        read(&loss, wanted)
    }
}

fn train(inputs: &mut Inputs) -> Result<Report> {
    let mut trainer = Trainer::new(inputs)?;
    let report = training(Unit::Ms, |wanted| trainer.step(wanted))?;
    let rate = 1024.0 / (report.median() * 1e-3);
    Ok(report.with("tokens_per_s", rate))
}

/// A network and the keys and values of 127 positions for each layer.
struct Decoder {
    gpt: Gpt,
    caches: Vec<[Tensor; 2]>,
    token: i64,
}

impl Decoder {
    fn new(inputs: &mut Inputs) -> Result<Decoder> {
        let gpt = Gpt::new([12, 768, 12, 50257, 1024], inputs)?;
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
        Ok(Decoder { gpt, caches, token: 0 })
    }

    /// The logits of one token at position 127; the largest is the next token.
    fn next(&mut self) -> Result<Tensor> {
        let (dim, heads, size) = (768, 12, 64);
        let index = Tensor::from_slice(&[self.token], [1], self.gpt.wte.tensor().device())?;
        let position = self.gpt.wpe.tensor().slice(0, 127..128)?;
        let mut x = self.gpt.wte.tensor().embedding(&index)?.add(&position)?;
        for (block, [keys, values]) in self.gpt.blocks.iter().zip(&self.caches) {
            let qkv = block.qkv.apply(&block.ln1.apply(&x)?)?.reshape([3, heads, 1, size])?;
            let part = |i| qkv.select_index(0, i);
            let keys = Tensor::cat(&[keys, &part(1)?], 1)?;
            let values = Tensor::cat(&[values, &part(2)?], 1)?;
            let scores = part(0)?.matmul(&keys.t())?.mul(1.0 / (size as f64).sqrt())?;
            let y = scores.softmax(-1)?.matmul(&values)?.reshape([1, dim])?;
            x = x.add(&block.proj.apply(&y)?)?;
            let h = block.fc.apply(&block.ln2.apply(&x)?)?.gelu();
            x = x.add(&block.out.apply(&h)?)?;
        }
        let logits = self.gpt.ln.apply(&x)?.matmul(&self.gpt.wte.tensor().t())?;
        self.token = logits.argmax(1)?.item::<i64>()?;
        Ok(logits)
    }
}

/// One token at position 127, with keys and values of the positions before it cached per layer.
fn decode(inputs: &mut Inputs) -> Result<Report> {
    let mut decoder = Decoder::new(inputs)?;
    let (sum, _) = checksum(&decoder.next()?)?;
    let mut tokens = vec![decoder.token as f64];
    for _ in 0..7 {
        decoder.next()?;
        tokens.push(decoder.token as f64);
    }
    let report = calls(Unit::PerSecond, || decoder.next().map(drop))?;
    Ok(report.checked(sum, tokens))
}
