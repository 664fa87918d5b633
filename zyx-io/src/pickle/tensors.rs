//! The tensors in what a pickle made: their names, and what they are of.

use super::names::{Global, Stored};
use super::{MAX_KEY, Pickle, Value, push, shown};
use zyx_core::Shape;

/// The deepest that lists and dicts may be within one another.
pub(super) const MAX_DEPTH: usize = 64;

/// A tensor of a pickle.
#[derive(Debug, PartialEq)]
pub(crate) struct View<'a> {
    /// The name of its storage.
    pub(crate) storage: &'a str,
    /// Elements of the storage, or bytes if its class says nothing of elements.
    pub(crate) len: usize,
    pub(crate) stored: Stored,
    pub(crate) counts_bytes: bool,
    /// In elements, from the start of the storage.
    pub(crate) offset: usize,
    pub(crate) shape: Vec<usize>,
    /// In elements.
    pub(crate) strides: Vec<usize>,
}

impl View<'_> {
    /// Bytes of an element.
    pub(crate) fn element(&self) -> usize {
        match self.stored {
            Stored::Plain(dtype) => dtype.size(),
            Stored::Float8(_) | Stored::Bytes => 1,
        }
    }

    /// Elements of the storage.
    pub(crate) fn storage_len(&self) -> usize {
        if self.counts_bytes { self.len / self.element() } else { self.len }
    }

    /// Bytes of the storage.
    pub(crate) fn storage_size(&self) -> Option<u64> {
        let element = if self.counts_bytes { 1 } else { self.element() as u64 };
        (self.len as u64).checked_mul(element)
    }
}

/// A tensor that was found, still to be looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found(Value);

struct Walk {
    found: Vec<(String, Found)>,
    room: usize,
    /// How many values may still be looked at.
    steps: usize,
}

impl Walk {
    fn step(&mut self) -> Result<(), String> {
        // Each value is there because of some byte, if none is there more than once.
        let again = || "the same lists and dicts are in its pickle again and again".to_owned();
        self.steps = self.steps.checked_sub(1).ok_or_else(again)?;
        Ok(())
    }
}

impl<'a> Pickle<'a> {
    /// All tensors in what the pickle makes. A tensor in a dict has the name of its key, one in a
    /// list that of its position; what is within is behind a dot.
    pub(crate) fn tensors(&mut self) -> Result<Vec<(String, Found)>, String> {
        let root = match (self.stack.pop(), self.stack.is_empty() && self.marks.is_empty()) {
            (Some(root @ (Value::Unknown(_) | Value::Object(_))), true) => {
                return Err(self.refusal(root));
            }
            (Some(root), true) => root,
            _ => return Err("its pickle makes no one value".to_owned()),
        };
        // What only running needs.
        self.room += (self.memo.capacity() + self.stack.capacity()) * size_of::<Value>();
        (self.memo, self.stack) = (Vec::new(), Vec::new());
        let mut walk = Walk { found: Vec::new(), room: self.room, steps: self.length };
        self.walk(root, &mut String::new(), 0, &mut walk)?;
        Ok(walk.found)
    }

    fn walk(
        &self,
        value: Value,
        name: &mut String,
        depth: usize,
        walk: &mut Walk,
    ) -> Result<(), String> {
        walk.step()?;
        if depth > MAX_DEPTH {
            return Err(format!("`{}` is more than {MAX_DEPTH} deep, or in itself", shown(name)));
        }
        match value {
            Value::Tensor(..) => {
                let took = name.len();
                walk.room = walk.room.checked_sub(took).ok_or("its names take too much memory")?;
                push(&mut walk.room, &mut walk.found, (name.as_str().to_owned(), Found(value)))
            }
            Value::Container(at) => {
                let kept = &self.containers[at as usize].kept;
                kept.iter().try_for_each(|&(key, value)| match key {
                    // Only short ones are decoded: the same may be a key again and again.
                    Value::Text(_, n) if n as usize <= MAX_KEY => {
                        let key = self.text(key).unwrap_or_default();
                        self.within(key, value, name, depth, walk)
                    }
                    _ if !self.has_tensors(value) => walk.step(),
                    Value::Text(_, n) => Err(format!("a key has {n} bytes")),
                    key => match self.key(key) {
                        Some(key) => self.within(&key, value, name, depth, walk),
                        None => {
                            let (kind, name) = (key.kind(), shown(name));
                            Err(format!("in `{name}`, {kind} is a key, which gives no name"))
                        }
                    },
                })
            }
            Value::Tuple(first, n) => (0..n).try_for_each(|i| {
                let item = self.items(first, n)[i as usize];
                self.within(&i.to_string(), item, name, depth, walk)
            }),
            _ => Ok(()),
        }
    }

    /// The name that a key gives which is no short text; a tuple gives those of its items, joined.
    fn key(&self, key: Value) -> Option<String> {
        let of = |key| match key {
            Value::Int(n) => Some(n.to_string()),
            Value::Text(_, n) if n as usize <= MAX_KEY => self.text(key).map(str::to_owned),
            Value::Bool(truth) => Some(if truth { "True" } else { "False" }.to_owned()),
            _ => None,
        };
        match key {
            Value::Tuple(first, n) => {
                let parts = self.items(first, n).iter().map(|&item| of(item));
                Some(parts.collect::<Option<Vec<String>>>()?.join("."))
            }
            other => of(other),
        }
    }

    /// Looks at what a list or dict called `name` has under a key.
    fn within(
        &self,
        key: &str,
        value: Value,
        name: &mut String,
        depth: usize,
        walk: &mut Walk,
    ) -> Result<(), String> {
        if !value.is_kept() {
            return Ok(());
        }
        let length = name.len();
        if depth > 0 {
            name.push('.');
        }
        name.push_str(key);
        let walked = self.walk(value, name, depth + 1, walk);
        name.truncate(length);
        walked
    }

    /// Whether a tensor is, or may be, in a value.
    fn has_tensors(&self, value: Value) -> bool {
        match value {
            Value::Container(at) => !self.containers[at as usize].kept.is_empty(),
            Value::Tuple(first, n) => self.items(first, n).iter().any(|item| item.is_kept()),
            other => other.is_kept(),
        }
    }

    /// The name of the storage of a tensor.
    pub(crate) fn storage_name(&self, found: Found) -> &'a str {
        let Found(Value::Tensor(first, ..)) = found else { return "" };
        let Value::Storage(storage) = self.items(first, 1)[0] else { return "" };
        self.text(self.items(storage, 5)[2]).unwrap_or_default()
    }

    /// What a tensor is of.
    pub(crate) fn view(&self, found: Found) -> Result<View<'a>, String> {
        let Found(Value::Tensor(first, n, typed)) = found else {
            return Err("is no tensor".to_owned());
        };
        let arguments = self.items(first, u32::from(n));
        let &[storage, offset, shape, strides, ..] = arguments else {
            return Err("lacks arguments".to_owned());
        };
        let Value::Storage(storage) = storage else {
            return Err(format!("is made of {} instead of a storage", storage.kind()));
        };
        // Views that negate or conjugate say so behind everything else.
        let metadata = arguments.get(6 + usize::from(typed)).copied().unwrap_or(Value::None);
        let plain = match metadata {
            Value::None => true,
            Value::Container(at) => self.containers[at as usize].len == 0,
            _ => false,
        };
        if !plain {
            return Err("is a negated or conjugated view; save its `resolve_neg()`".to_owned());
        }
        let of = self.items(storage, 5);
        let (Value::Global(Global::Storage(class)), Some(key)) = (of[1], self.text(of[2])) else {
            return Err("has a storage without a name".to_owned());
        };
        let stored = match (typed, class) {
            (false, Stored::Bytes) => return Err("has no dtype".to_owned()),
            (false, class) => class,
            (true, Stored::Bytes) => match arguments[6] {
                Value::Global(Global::DType(dtype)) => dtype,
                _ => return Err("has no dtype that there is here".to_owned()),
            },
            (true, _) => return Err("has a dtype and a storage that has one".to_owned()),
        };
        let counts_bytes = class == Stored::Bytes;
        let number = |value: Value| match value {
            Value::Int(n) => usize::try_from(n).ok(),
            _ => None,
        };
        let numbers = |value: Value| match value {
            Value::Tuple(first, n) if n as usize <= Shape::MAX_RANK => self
                .items(first, n)
                .iter()
                .map(|&item| number(item))
                .collect::<Option<Vec<usize>>>(),
            _ => None,
        };
        let shape = numbers(shape).ok_or("has a shape that none has here")?;
        let strides = numbers(strides).filter(|strides| strides.len() == shape.len());
        let strides = strides.ok_or("has strides that do not fit its shape")?;
        let (len, offset) = (number(of[4]).unwrap_or(0), number(offset).ok_or("has no offset")?);
        Ok(View { storage: key, len, stored, counts_bytes, offset, shape, strides })
    }
}
