//! What is told of a module as a whole.
//!
//! The methods of [`Module`](crate::Module) are compiled for every type that is a module; they
//! only call these functions, which are compiled once.

use crate::dropout::RngStream;
use crate::module::{Path, Visitor};
use std::collections::BTreeMap;
use zyx_core::{Param, Tensor};

/// The method [`visit`](crate::Module::visit) of some module.
type Visit<'a> = &'a dyn Fn(&mut Path, &mut dyn Visitor);

/// All parameters with their names, in the order of the visit.
pub(crate) fn named_parameters(visit: Visit<'_>) -> Vec<(String, Param)> {
    struct Collect(Vec<(String, Param)>);
    impl Visitor for Collect {
        fn parameter(&mut self, name: &str, parameter: &Param) {
            self.0.push((name.to_owned(), parameter.clone()));
        }
    }
    let mut collect = Collect(Vec::new());
    visit(&mut Path::default(), &mut collect);
    collect.0
}

/// All random streams with their names.
pub(crate) fn named_streams(visit: Visit<'_>) -> Vec<(String, RngStream)> {
    struct Collect(Vec<(String, RngStream)>);
    impl Visitor for Collect {
        fn stream(&mut self, name: &str, stream: &RngStream) {
            self.0.push((name.to_owned(), stream.clone()));
        }
    }
    let mut collect = Collect(Vec::new());
    visit(&mut Path::default(), &mut collect);
    collect.0
}

/// Each parameter once, where it is named first.
pub(crate) fn distinct(named: Vec<(String, Param)>) -> Vec<Param> {
    let mut parameters: Vec<Param> = Vec::new();
    for (_, parameter) in named {
        if !parameters.iter().any(|known| known.is_same(&parameter)) {
            parameters.push(parameter);
        }
    }
    parameters
}

/// Number of elements of those that are trained.
pub(crate) fn n_trainable(parameters: &[Param]) -> usize {
    let trainable = parameters.iter().filter(|parameter| parameter.is_trainable());
    trainable.map(|parameter| parameter.shape().numel()).sum()
}

/// Those that are state.
pub(crate) fn state(named: Vec<(String, Param)>) -> Vec<(String, Param)> {
    named.into_iter().filter(|(_, parameter)| parameter.is_state()).collect()
}

/// Keeps all as they are.
pub(crate) fn freeze(parameters: &[Param]) {
    parameters.iter().for_each(|parameter| parameter.set_trainable(false));
}

/// Trains all but state.
pub(crate) fn unfreeze(parameters: &[Param]) {
    let weights = parameters.iter().filter(|parameter| !parameter.is_state());
    weights.for_each(|parameter| parameter.set_trainable(true));
}

/// The values by name.
pub(crate) fn to_tensors(named: Vec<(String, Param)>) -> BTreeMap<String, Tensor> {
    named.into_iter().map(|(name, parameter)| (name, parameter.tensor().detach())).collect()
}
