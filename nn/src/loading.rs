//! Values from elsewhere put into a module's parameters.
//!
//! Nothing is replaced unless everything fits. Values take the dtype and the device of the
//! parameter they go to.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use std::path::Path;
use zyx_core::{Error, Param, Result, Tensor, attribute};

/// What [`Module::load_partial`](crate::Module::load_partial) did not find a partner for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Parameters of the model that the file does not have. One that is tied to another that was
    /// loaded is not missing.
    pub missing: Vec<String>,
    /// Tensors of the file, renamed, that the model does not have.
    pub unexpected: Vec<String>,
}

fn fail(reason: String) -> Error {
    Error::Format { what: "parameters".to_owned(), reason }
}

/// Every parameter from the tensor of its name, no tensor left over.
pub(crate) fn strict(named: &[(String, Param)], tensors: &BTreeMap<String, Tensor>) -> Result<()> {
    let missing = named.iter().map(|(name, _)| name.as_str());
    let missing: Vec<&str> = missing.filter(|name| !tensors.contains_key(*name)).collect();
    let known: BTreeSet<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    let names = tensors.keys().map(String::as_str);
    let unknown: Vec<&str> = names.filter(|name| !known.contains(name)).collect();
    let mut complaints = Vec::new();
    if !missing.is_empty() {
        complaints.push(format!("missing are: {}", missing.join(", ")));
    }
    if !unknown.is_empty() {
        complaints.push(format!("not part of the model are: {}", unknown.join(", ")));
    }
    if !complaints.is_empty() {
        return Err(fail(complaints.join("; ")));
    }
    put(named.iter().map(|(name, parameter)| (name.as_str(), parameter, &tensors[name])))
}

/// Every parameter from a safetensors file, which errors name.
pub(crate) fn file(named: &[(String, Param)], file: &Path) -> Result<()> {
    let Some((_, first)) = named.first() else {
        return Ok(());
    };
    let tensors = crate::safetensors::load(file, &first.device())?;
    strict(named, &tensors).map_err(|error| match error {
        Error::Format { reason, .. } => Error::Format { what: file.display().to_string(), reason },
        other => other,
    })
}

/// The parameters whose names are there.
#[track_caller]
pub(crate) fn partial(
    named: &[(String, Param)],
    tensors: &BTreeMap<String, Tensor>,
    rename: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded> {
    let mut renamed: BTreeMap<String, &Tensor> = BTreeMap::new();
    for (name, tensor) in tensors {
        let Some(new) = rename(name) else { continue };
        if renamed.insert(new.clone(), tensor).is_some() {
            return Err(fail(format!("two tensors are called {new}, one of them {name} before")));
        }
    }
    let found = |name: &String| renamed.get(name).copied();
    put(named.iter().filter_map(|(name, p)| found(name).map(|tensor| (name.as_str(), p, tensor))))?;
    let loaded = |parameter: &Param| {
        let mut others = named.iter().filter(|(name, _)| renamed.contains_key(name));
        others.any(|(_, other)| other.is_same(parameter))
    };
    let missing = named.iter().filter(|(name, p)| !renamed.contains_key(name) && !loaded(p));
    let missing = missing.map(|(name, _)| name.clone()).collect();
    let known: BTreeSet<&String> = named.iter().map(|(name, _)| name).collect();
    let unexpected = renamed.into_keys().filter(|name| !known.contains(name)).collect();
    Ok(Loaded { missing, unexpected })
}

#[track_caller]
fn put<'a>(pairs: impl Iterator<Item = (&'a str, &'a Param, &'a Tensor)>) -> Result<()> {
    let (here, mut values) = (Location::caller(), Vec::new());
    for (name, parameter, value) in pairs {
        let shape = parameter.shape();
        if !value.shape().same(&shape) {
            let reason = format!("{name} has shape {}, the model needs {shape}", value.shape());
            return Err(fail(reason));
        }
        let moved = value.to_device(&parameter.device());
        let value = attribute(here, || moved.map(|value| value.cast(parameter.dtype())))?;
        values.push((parameter, value));
    }
    Tensor::realize_all(values.iter().map(|(_, value)| value))?;
    values.iter().try_for_each(|(parameter, value)| parameter.set(value))
}
