//! Training of a small GPT, and decoding with one of GPT-2's small shape.

use crate::Workload;
use crate::measure::{Report, Unit, op, training};
use zyx::optim::{AdamOptions, AdamW, Optimizer};
use zyx::{DType, Device, Param, Result, Rng, Tensor};

pub(crate) fn workloads() -> Vec<(&'static str, Workload)> {
    vec![("gpt_train", train), ("gpt_decode", decode)]
}

/// A linear map with weight `[out, in]` and a bias.
struct Linear {
    w: Param,
    b: Param,
}

impl Linear {
    fn new(out: usize, inputs: usize, rng: &mut Rng, device: &Device) -> Result<Linear> {
        let w = weight(&[out, inputs], rng, device)?;
        let b = Param::new(Tensor::zeros([out], DType::F32, device).contiguous());
        Ok(Linear { w, b })
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

fn weight(dims: &[usize], rng: &mut Rng, device: &Device) -> Result<Param> {
    let value = Tensor::randn(dims, DType::F32, rng, device)?.mul(0.02)?;
    value.realize()?;
    Ok(Param::new(value))
}

impl Gpt {
    fn new(
        [layers, dim, heads, vocabulary, positions]: [usize; 5],
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Gpt> {
        let wte = weight(&[vocabulary, dim], rng, device)?;
        let wpe = weight(&[positions, dim], rng, device)?;
        let block = |_| {
            Ok(Block {
                ln1: Norm::new(dim, device),
                qkv: Linear::new(3 * dim, dim, rng, device)?,
                proj: Linear::new(dim, dim, rng, device)?,
                ln2: Norm::new(dim, device),
                fc: Linear::new(4 * dim, dim, rng, device)?,
                out: Linear::new(dim, 4 * dim, rng, device)?,
            })
        };
        let blocks = (0..layers).map(block).collect::<Result<_>>()?;
        Ok(Gpt { wte, wpe, blocks, ln: Norm::new(dim, device), heads })
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

fn train(device: &Device) -> Result<Report> {
    let rng = &mut Rng::seed(0);
    let tokens: Vec<i64> = (0..1_000_000).map(|_| rng.below(256) as i64).collect();
    let offsets: Vec<usize> = (0..8000).map(|_| rng.below(1_000_000 - 129) as usize).collect();
    let gpt = Gpt::new([4, 256, 8, 256, 128], rng, device)?;
    let head = weight(&[256, 256], rng, device)?;
    let mut params = gpt.parameters();
    params.push(head.clone());
    let options = AdamOptions { learning_rate: 3e-4, weight_decay: 0.01, ..Default::default() };
    let mut optimizer = AdamW::new(params, options)?;
    let mut step = 0;
    training(Unit::Ms, |read| {
        let starts = &offsets[(step % 1000) * 8..][..8];
        step += 1;
        let rows = |shift: usize| -> Vec<i64> {
            starts.iter().flat_map(|&o| tokens[o + shift..][..128].iter().copied()).collect()
        };
        let x = Tensor::from_slice(&rows(0), [8, 128], device)?;
        let y = Tensor::from_slice(&rows(1), [1024], device)?;
        let logits = gpt.forward(&x)?.matmul(&head.tensor().t())?.reshape([1024, 256])?;
        let loss = logits.cross_entropy(&y)?;
        optimizer.step(&loss)?;
        if read {
            loss.item::<f32>()?;
        }
        Ok(())
    })
}

/// One token at position 127, with keys and values of 128 positions cached per layer.
fn decode(device: &Device) -> Result<Report> {
    let rng = &mut Rng::seed(0);
    let (layers, dim, heads, size) = (12, 768, 12, 64);
    let gpt = Gpt::new([layers, dim, heads, 50257, 1024], rng, device)?;
    let mut caches = Vec::new();
    for _ in 0..layers {
        let mut cache = || -> Result<Tensor> {
            let x = Tensor::randn([heads, 128, size], DType::F32, rng, device)?;
            x.realize()?;
            Ok(x)
        };
        caches
            .push((cache()?.slice(1, ..127)?.contiguous(), cache()?.slice(1, ..127)?.contiguous()));
    }
    let mut token = 0i64;
    op(Unit::PerSecond, || {
        let index = Tensor::from_slice(&[token], [1], device)?;
        let position = gpt.wpe.tensor().slice(0, 127..128)?;
        let mut x = gpt.wte.tensor().embedding(&index)?.add(&position)?;
        for (block, (keys, values)) in gpt.blocks.iter().zip(&caches) {
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
        let logits = gpt.ln.apply(&x)?.matmul(&gpt.wte.tensor().t())?;
        token = logits.argmax(1)?.item::<i64>()?;
        Ok(())
    })
}
