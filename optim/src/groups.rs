//! [`Groups`]: several optimizers as one, each for some of the parameters.
//!
//! What PyTorch calls parameter groups (another learning rate for some layers, no weight decay for
//! biases) and what Muon needs (another optimizer for what is no matrix) are the same thing here:
//! a list of optimizers. Their steps are computed in one plan.

use crate::optimizer::{Optimizer, Proposal, refuse};
use std::collections::BTreeMap;
use zyx_core::{Error, Param, Result, Tensor};

/// Optimizers that step together, in one plan.
///
/// The learning rate is the first one's; setting it changes the others in proportion, so that one
/// schedule drives all.
///
/// ```
/// use zyx::optim::{AdamOptions, AdamW, Groups, Optimizer, Sgd, SgdOptions};
/// use zyx::{Param, Tensor};
/// let device = zyx::device()?;
/// let place = || Ok::<_, zyx::Error>(Param::new(Tensor::new([1f32, 2.0], &device)?));
/// let (weight, bias) = (place()?, place()?);
/// let decayed = AdamOptions { learning_rate: 0.1, weight_decay: 0.1, ..Default::default() };
/// let plain = AdamOptions { learning_rate: 0.2, weight_decay: 0.0, ..decayed };
/// let mut groups = Groups::new(vec![
///     Box::new(AdamW::new(vec![weight.clone()], decayed)?),
///     Box::new(AdamW::new(vec![bias.clone()], plain)?),
/// ])?;
/// groups.set_learning_rate(0.05);
/// assert_eq!(groups.groups()[1].learning_rate(), 0.1);
/// groups.step(&weight.tensor().mul(bias.tensor())?.sum(..)?)?;
/// # Ok::<(), zyx::Error>(())
/// ```
pub struct Groups {
    parameters: Vec<Param>,
    groups: Vec<Box<dyn Optimizer + Send + Sync>>,
    /// The learning rates as they were given.
    rates: Vec<f64>,
    rate: f64,
}

impl Groups {
    /// Of these optimizers.
    ///
    /// # Errors
    /// When there is none, or two have the same parameter.
    #[track_caller]
    pub fn new(groups: Vec<Box<dyn Optimizer + Send + Sync>>) -> Result<Groups> {
        let rates: Vec<f64> = groups.iter().map(|group| group.learning_rate()).collect();
        let Some(&rate) = rates.first() else {
            return Err(refuse("Groups::new", "there is no optimizer".to_owned()));
        };
        let mut parameters: Vec<Param> = Vec::new();
        for group in &groups {
            for parameter in group.parameters() {
                if parameters.iter().any(|known| known.is_same(parameter)) {
                    let reason = format!("{parameter:?} belongs to two optimizers");
                    return Err(refuse("Groups::new", reason));
                }
                parameters.push(parameter.clone());
            }
        }
        Ok(Groups { parameters, groups, rates, rate })
    }

    /// The optimizers in order.
    pub fn groups(&self) -> &[Box<dyn Optimizer + Send + Sync>] {
        &self.groups
    }
}

/// The name of group `i` before the names of its state.
fn prefix(i: usize) -> String {
    format!("group{i}.")
}

impl Optimizer for Groups {
    fn parameters(&self) -> &[Param] {
        &self.parameters
    }

    fn learning_rate(&self) -> f64 {
        self.rate
    }

    fn set_learning_rate(&mut self, learning_rate: f64) {
        self.rate = learning_rate;
        let first = self.rates[0];
        for (group, rate) in self.groups.iter_mut().zip(&self.rates) {
            // Without a first rate there is no proportion.
            let share = if first == 0.0 { 1.0 } else { rate / first };
            group.set_learning_rate(learning_rate * share);
        }
    }

    fn momentum(&self) -> Option<f64> {
        self.groups.iter().find_map(|group| group.momentum())
    }

    /// Of all that have one.
    #[track_caller]
    fn set_momentum(&mut self, momentum: f64) -> Result<()> {
        let with_one = |group: &&mut Box<_>| Optimizer::momentum(*group).is_some();
        let mut groups = self.groups.iter_mut().filter(with_one).peekable();
        if groups.peek().is_none() {
            return Err(refuse("set_momentum", "no optimizer has one".to_owned()));
        }
        groups.try_for_each(|group| group.set_momentum(momentum))
    }

    #[track_caller]
    fn propose(&self, gradients: &[Option<Tensor>]) -> Result<Proposal> {
        let n = self.parameters.len();
        if gradients.len() != n {
            let reason = format!("{} gradients for {n} parameters", gradients.len());
            return Err(refuse("apply", reason));
        }
        let mut proposal = Proposal { n, ..Proposal::default() };
        let mut rest = gradients;
        for group in &self.groups {
            let (part, after) = rest.split_at(group.parameters().len());
            proposal.parts.push(group.propose(part)?);
            rest = after;
        }
        Ok(proposal)
    }

    fn exchange(&mut self, proposal: &mut Proposal) {
        let parts = self.groups.iter_mut().zip(&mut proposal.parts);
        parts.for_each(|(group, part)| group.exchange(part));
    }

    #[track_caller]
    fn accept(&mut self, proposal: Proposal) -> Result<()> {
        if proposal.parts.len() != self.groups.len() {
            return Err(refuse("accept", "the proposal is another optimizer's".to_owned()));
        }
        let mut parts = self.groups.iter_mut().zip(proposal.parts);
        parts.try_for_each(|(group, part)| group.accept(part))
    }

    fn state(&self) -> BTreeMap<String, Tensor> {
        let mut all = BTreeMap::new();
        for (i, group) in self.groups.iter().enumerate() {
            let named = group.state().into_iter();
            all.extend(named.map(|(name, tensor)| (format!("{}{name}", prefix(i)), tensor)));
        }
        all
    }

    fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        let before: Vec<BTreeMap<String, Tensor>> =
            self.groups.iter().map(|group| group.state()).collect();
        let mut loaded = 0;
        let mut load = || -> Result<()> {
            for (i, group) in self.groups.iter_mut().enumerate() {
                let start = prefix(i);
                let own = |(name, tensor): (&String, &Tensor)| {
                    name.strip_prefix(&start).map(|name| (name.to_owned(), tensor.clone()))
                };
                let part: BTreeMap<String, Tensor> = state.iter().filter_map(own).collect();
                loaded += part.len();
                group.load_state(&part)?;
            }
            if loaded != state.len() {
                let reason = format!("{} tensors belong to no group", state.len() - loaded);
                return Err(Error::Format { what: "optimizer state".into(), reason });
            }
            Ok(())
        };
        let done = load();
        if done.is_err() {
            for (group, state) in self.groups.iter_mut().zip(&before) {
                group.load_state(state)?;
            }
        }
        done
    }
}

impl std::fmt::Debug for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Groups").field("rates", &self.rates).finish_non_exhaustive()
    }
}
