//! A graph convolution network (Kipf and Welling 2017): who is with whom, learned from two names.
//!
//! Each member of a karate club is a node of a graph of friendships (Zachary 1977). The club split
//! after a quarrel between its instructor and its president. The network is told the side of
//! these two alone and guesses that of the other 32: a layer mixes the features of each node with
//! those of its friends, `relu(A x W)`, where `A` has the friendships and every node itself, each
//! entry divided by the root of both degrees.

use zyx::data::Progress;
use zyx::nn::{Init, Linear};
use zyx::optim::{AdamOptions, AdamW};
use zyx::prelude::*;

/// Members, sides and friendships.
#[derive(Clone, Debug)]
pub struct Club {
    /// The side of each member: 0 or 1.
    pub sides: Vec<i64>,
    /// Pairs of friends.
    pub friends: Vec<(usize, usize)>,
}

impl Club {
    /// The club that ships with the repository.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn shipped() -> Result<Club> {
        let text = include_str!("../data/karate.txt");
        let (mut sides, mut friends) = (Vec::new(), Vec::new());
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let bad = || Error::Format { what: "karate.txt".to_owned(), reason: line.to_owned() };
            let number = |word: &str| word.parse::<usize>().map_err(|_| bad());
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["member", n, side] if number(n)? == sides.len() => {
                    sides.push(i64::from(side == "b"));
                }
                ["friends", a, b] => friends.push((number(a)?, number(b)?)),
                _ => return Err(bad()),
            }
        }
        Ok(Club { sides, friends })
    }

    /// The mixing matrix `[n, n]`.
    ///
    /// # Errors
    /// When the device fails.
    pub fn mixing(&self, device: &Device) -> Result<Tensor> {
        let n = self.sides.len();
        let mut matrix = vec![0f32; n * n];
        let own = (0..n).map(|i| (i, i));
        let both = self.friends.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
        own.chain(both).for_each(|(a, b)| matrix[a * n + b] = 1.0);
        let matrix = Tensor::from_slice(&matrix, [n, n], device)?;
        let root = matrix.sum_keepdim(1)?.rsqrt();
        let mixing = matrix.mul(&root)?.mul(root.t())?.contiguous();
        mixing.realize()?;
        Ok(mixing)
    }
}

/// Two layers.
#[derive(Debug, Module)]
pub struct Gcn {
    first: Linear,
    second: Linear,
}

impl Gcn {
    /// For so many nodes, whose features are their numbers.
    ///
    /// # Errors
    /// When the device fails.
    pub fn new(nodes: usize, hidden: usize, init: &mut Init) -> Result<Gcn> {
        let gcn = Gcn {
            first: Linear::without_bias(nodes, hidden, init)?,
            second: Linear::without_bias(hidden, 2, init)?,
        };
        for layer in [&gcn.first, &gcn.second] {
            layer.weight.set(&init.xavier_uniform(layer.weight.shape(), 1.0)?)?;
        }
        Ok(gcn)
    }

    /// Logits `[n, 2]` by the mixing matrix. A node's feature is its own number in one-hot form,
    /// so the first product takes columns of the weight.
    ///
    /// # Errors
    /// When the device fails.
    pub fn logits(&self, mixing: &Tensor) -> Result<Tensor> {
        let hidden = mixing.matmul(&self.first.weight.tensor().t())?.relu();
        mixing.matmul(&self.second.forward(&hidden)?)
    }
}

/// The sides that a network guesses after it was told those of the first and the last member, after
/// so many rounds of training; with a progress line on a terminal if wanted.
///
/// # Errors
/// When the device fails.
pub fn guess(club: &Club, rounds: usize, device: &Device, progress: bool) -> Result<Vec<i64>> {
    let n = club.sides.len();
    let mixing = club.mixing(device)?;
    let model = Gcn::new(n, 16, &mut Init::new(0, device))?;
    let adam = AdamOptions { learning_rate: 0.01, weight_decay: 5e-4, ..Default::default() };
    let mut optimizer = AdamW::new(model.parameters(), adam)?;
    let told = Tensor::new([0i64, n as i64 - 1], device)?;
    let sides = Tensor::new([club.sides[0], club.sides[n - 1]], device)?;
    let mut bar = progress.then(|| Progress::new(rounds));
    for round in 0..rounds {
        let logits = model.logits(&mixing)?.index_select(0, &told)?;
        let loss = logits.cross_entropy(&sides)?;
        optimizer.step(&loss)?;
        // Reading the loss waits for the device.
        if let Some(bar) = &mut bar
            && round % 10 == 9
        {
            bar.set(round + 1, &format!("loss {:.4}", loss.item::<f32>()?));
        }
    }
    if let Some(bar) = &mut bar {
        bar.clear();
    }
    model.logits(&mixing)?.argmax(1)?.cast(DType::I64).to_vec::<i64>()
}
