//! As much of Python's pickles as state dicts of PyTorch need.
//!
//! A pickle is a program for a small machine with a stack. Python's runs whatever functions it
//! names; this one knows those of [`GLOBALS`], which make containers and tensors, and calls nothing:
//! any other name is an error. What holds no tensor is dropped where it would be put into a list or
//! a dict. The machine takes no more memory than it is given ([`Pickle::run`]).

use crate::reader::Reader;
use zyx_core::{DType, Float8, Shape};

/// What elements are stored as.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stored {
    /// Elements of a dtype.
    Plain(DType),
    /// Codes of a byte each.
    Float8(Float8),
    /// Bytes, of which the tensor says what they are.
    Bytes,
}

/// What a name in a pickle stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Global {
    /// A dict.
    Dict,
    /// A tensor of a typed storage, and one that says its dtype itself.
    Tensor,
    TypedTensor,
    /// A parameter, which is a tensor with what else it is told.
    Parameter,
    /// A tensor with attributes: another function, a class, the function's arguments, the attributes.
    WithAttributes,
    /// A tuple.
    Size,
    /// A storage class.
    Storage(Stored),
    /// A dtype.
    DType(Stored),
    /// A class that is only named.
    Class,
    /// What has no tensor in it.
    Dropped,
}

/// All names that a pickle may use.
const GLOBALS: [(&str, &str, Global); 40] = [
    ("collections", "OrderedDict", Global::Dict),
    ("torch._utils", "_rebuild_tensor_v2", Global::Tensor),
    ("torch._utils", "_rebuild_tensor_v3", Global::TypedTensor),
    ("torch._utils", "_rebuild_parameter", Global::Parameter),
    ("torch._utils", "_rebuild_parameter_with_state", Global::Parameter),
    ("torch._tensor", "_rebuild_from_type_v2", Global::WithAttributes),
    ("torch", "Size", Global::Size),
    ("torch", "Tensor", Global::Class),
    ("torch.nn.parameter", "Parameter", Global::Class),
    ("torch", "device", Global::Dropped),
    ("_codecs", "encode", Global::Dropped),
    ("__builtin__", "set", Global::Dropped),
    ("builtins", "set", Global::Dropped),
    ("torch", "FloatStorage", Global::Storage(Stored::Plain(DType::F32))),
    ("torch", "DoubleStorage", Global::Storage(Stored::Plain(DType::F64))),
    ("torch", "HalfStorage", Global::Storage(Stored::Plain(DType::F16))),
    ("torch", "BFloat16Storage", Global::Storage(Stored::Plain(DType::BF16))),
    ("torch", "LongStorage", Global::Storage(Stored::Plain(DType::I64))),
    ("torch", "IntStorage", Global::Storage(Stored::Plain(DType::I32))),
    ("torch", "ShortStorage", Global::Storage(Stored::Plain(DType::I16))),
    ("torch", "CharStorage", Global::Storage(Stored::Plain(DType::I8))),
    ("torch", "ByteStorage", Global::Storage(Stored::Plain(DType::U8))),
    ("torch", "BoolStorage", Global::Storage(Stored::Plain(DType::Bool))),
    ("torch", "UntypedStorage", Global::Storage(Stored::Bytes)),
    ("torch.storage", "UntypedStorage", Global::Storage(Stored::Bytes)),
    ("torch", "float32", Global::DType(Stored::Plain(DType::F32))),
    ("torch", "float64", Global::DType(Stored::Plain(DType::F64))),
    ("torch", "float16", Global::DType(Stored::Plain(DType::F16))),
    ("torch", "bfloat16", Global::DType(Stored::Plain(DType::BF16))),
    ("torch", "int64", Global::DType(Stored::Plain(DType::I64))),
    ("torch", "int32", Global::DType(Stored::Plain(DType::I32))),
    ("torch", "int16", Global::DType(Stored::Plain(DType::I16))),
    ("torch", "int8", Global::DType(Stored::Plain(DType::I8))),
    ("torch", "uint64", Global::DType(Stored::Plain(DType::U64))),
    ("torch", "uint32", Global::DType(Stored::Plain(DType::U32))),
    ("torch", "uint16", Global::DType(Stored::Plain(DType::U16))),
    ("torch", "uint8", Global::DType(Stored::Plain(DType::U8))),
    ("torch", "bool", Global::DType(Stored::Plain(DType::Bool))),
    ("torch", "float8_e4m3fn", Global::DType(Stored::Float8(Float8::E4M3))),
    ("torch", "float8_e5m2", Global::DType(Stored::Float8(Float8::E5M2))),
];

/// Something on the stack.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// A string: where it is in the pickle, and its length.
    Text(u32, u32),
    Global(Global),
    /// Its first item, and their number.
    Tuple(u32, u32),
    /// A list or a dict.
    Container(u32),
    /// The first of the five items that tell of a storage.
    Storage(u32),
    /// The first of its arguments, their number, and whether its dtype is among them.
    Tensor(u32, u8, bool),
    /// Anything else.
    Dropped,
}

impl Value {
    /// Whether a tensor may be in it.
    fn is_kept(self) -> bool {
        matches!(self, Value::Tensor(..) | Value::Container(_))
            || matches!(self, Value::Tuple(_, n) if n > 0)
    }

    fn kind(self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Bool(_) => "a bool",
            Value::Int(_) => "a number",
            Value::Text(..) => "a string",
            Value::Global(_) => "a class or function",
            Value::Tuple(..) => "a tuple",
            Value::Container(_) => "a list or dict",
            Value::Storage(_) => "a storage",
            Value::Tensor(..) => "a tensor",
            Value::Dropped => "another value",
        }
    }
}

/// Of a list or dict, what may have tensors in it.
#[derive(Debug, Default)]
struct Container {
    kept: Vec<(Value, Value)>,
    /// The number of all its elements.
    len: u32,
}

/// Longer tuples are kept like lists.
const LONG_TUPLE: usize = 64;

/// How many items of tuples are in one part.
const PART: usize = 1024;

const TOO_MUCH: &str = "it takes more memory than four times the file";

/// The deepest that lists and dicts may be within one another.
const MAX_DEPTH: usize = 64;

/// The longest key of a dict with tensors, and the longest name of a storage.
const MAX_KEY: usize = 4096;

/// The longest line with the name of a module, class or function.
const MAX_LINE: usize = 256;

/// A pickle that was run.
#[derive(Debug)]
pub(crate) struct Pickle<'a> {
    bytes: &'a [u8],
    /// Those of all tuples, in parts that stay where they are.
    items: Vec<Vec<Value>>,
    containers: Vec<Container>,
    memo: Vec<Value>,
    stack: Vec<Value>,
    /// How high the stack was at each mark.
    marks: Vec<u32>,
    /// How many bytes may still be taken.
    room: usize,
}

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

/// Pushes, and takes the memory for it out of `room`.
fn push<T>(room: &mut usize, vector: &mut Vec<T>, x: T) -> Result<(), String> {
    if vector.len() == vector.capacity() {
        let more = (vector.len() / 4).max(4);
        let bytes = more * size_of::<T>();
        // The old and the new vector exist at the same time for a moment.
        if bytes + vector.capacity() * size_of::<T>() > *room {
            return Err(TOO_MUCH.to_owned());
        }
        *room -= bytes;
        vector.reserve_exact(more);
    }
    vector.push(x);
    Ok(())
}

impl<'a> Pickle<'a> {
    /// Runs a pickle in at most `room` bytes of memory. What it makes is gone through with
    /// [`tensors`](Pickle::tensors).
    pub(crate) fn run(bytes: &'a [u8], room: usize) -> Result<Pickle<'a>, String> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(format!("its pickle has {} bytes, 4 GiB are too many", bytes.len()));
        }
        let (items, containers, memo) = (Vec::new(), Vec::new(), Vec::new());
        let (stack, marks) = (Vec::new(), Vec::new());
        let mut pickle = Pickle { bytes, items, containers, memo, stack, marks, room };
        let mut reader = Reader::new(bytes);
        let mut at = 0;
        while pickle
            .step(&mut reader)
            .map_err(|reason| format!("byte {at} of its pickle: {reason}"))?
        {
            at = reader.position();
        }
        Ok(pickle)
    }

    /// Does what the next byte says; false at the end.
    fn step(&mut self, reader: &mut Reader<'a>) -> Result<bool, String> {
        let value = match reader.u8()? {
            b'.' => return Ok(false),
            // The version, and the length of what follows.
            0x80 => match reader.u8()? {
                0..=5 => return Ok(true),
                version => return Err(format!("version {version} of the format is not known")),
            },
            0x95 => return reader.take(8).map(|_| true),
            b'(' => {
                let height = self.stack.len() as u32;
                push(&mut self.room, &mut self.marks, height)?;
                return Ok(true);
            }
            b'0' => return self.pop().map(|_| true),
            b'1' => {
                let height = self.unmark()?;
                self.stack.truncate(height);
                return Ok(true);
            }
            b'N' => Value::None,
            0x88 => Value::Bool(true),
            0x89 => Value::Bool(false),
            b'J' => Value::Int(i64::from(reader.u32()? as i32)),
            b'K' => Value::Int(i64::from(reader.u8()?)),
            b'M' => Value::Int(i64::from(reader.u16()?)),
            0x8a => {
                let n = usize::from(reader.u8()?);
                long(reader.take(n)?)
            }
            0x8b => {
                let n = reader.u32()? as usize;
                long(reader.take(n)?)
            }
            b'G' => reader.take(8).map(|_| Value::Dropped)?,
            b'X' | b'T' => {
                let n = reader.u32()? as usize;
                text(reader, n)?
            }
            0x8c | b'U' => {
                let n = usize::from(reader.u8()?);
                text(reader, n)?
            }
            0x8d => {
                let n = reader.count()?;
                text(reader, n)?
            }
            b'B' => {
                let n = reader.u32()? as usize;
                reader.take(n).map(|_| Value::Dropped)?
            }
            b'C' => {
                let n = usize::from(reader.u8()?);
                reader.take(n).map(|_| Value::Dropped)?
            }
            0x8e | 0x96 => {
                let n = reader.count()?;
                reader.take(n).map(|_| Value::Dropped)?
            }
            b')' => Value::Tuple(0, 0),
            code @ 0x85..=0x87 => {
                let n = usize::from(code - 0x84);
                let start = self.top(n)?;
                self.tuple(start)?
            }
            b't' => {
                let start = self.unmark()?;
                self.tuple(start)?
            }
            b']' | b'}' => self.container()?,
            // A set has no order, so it gives its elements no names.
            0x8f => Value::Dropped,
            b'l' => {
                let (start, list) = (self.unmark()?, self.container()?);
                self.append(list, start)?;
                list
            }
            b'a' => {
                let start = self.top(1)?;
                let list = self.below(start)?;
                return self.append(list, start).map(|()| true);
            }
            b'e' => {
                let start = self.unmark()?;
                let list = self.below(start)?;
                return self.append(list, start).map(|()| true);
            }
            b'd' => {
                let (start, dict) = (self.unmark()?, self.container()?);
                self.insert(dict, start)?;
                dict
            }
            b's' => {
                let start = self.top(2)?;
                let dict = self.below(start)?;
                return self.insert(dict, start).map(|()| true);
            }
            b'u' => {
                let start = self.unmark()?;
                let dict = self.below(start)?;
                return self.insert(dict, start).map(|()| true);
            }
            0x90 => {
                let start = self.unmark()?;
                self.below(start)?;
                self.stack.truncate(start);
                return Ok(true);
            }
            0x91 => {
                let start = self.unmark()?;
                self.stack.truncate(start);
                Value::Dropped
            }
            b'c' => {
                let (module, name) = (line(reader)?, line(reader)?);
                global(module, name)?
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let both = self.text(module).zip(self.text(name));
                let (module, name) = both.ok_or("a name is no string")?;
                global(module, name)?
            }
            b'R' | 0x81 => {
                let (arguments, function) = (self.pop()?, self.pop()?);
                self.call(function, arguments, false)?
            }
            // What a dict or tensor is told beside its elements.
            b'b' => {
                self.pop()?;
                let start = self.stack.len();
                return match self.below(start)? {
                    Value::Container(_) | Value::Tensor(..) => Ok(true),
                    other => Err(format!("{} is given attributes", other.kind())),
                };
            }
            b'Q' => {
                let of = self.pop()?;
                self.storage(of)?
            }
            b'q' => {
                let at = usize::from(reader.u8()?);
                return self.remember(at).map(|()| true);
            }
            b'r' => {
                let at = reader.u32()? as usize;
                return self.remember(at).map(|()| true);
            }
            0x94 => return self.remember(self.memo.len()).map(|()| true),
            b'h' => self.recall(usize::from(reader.u8()?))?,
            b'j' => self.recall(reader.u32()? as usize)?,
            other => return Err(format!("what {other:#04x} stands for is not in state dicts")),
        };
        push(&mut self.room, &mut self.stack, value)?;
        Ok(true)
    }

    /// Where the topmost `n` values begin, none of which is below a mark.
    fn top(&self, n: usize) -> Result<usize, String> {
        let floor = self.marks.last().map_or(0, |&height| height as usize);
        let start = self.stack.len().checked_sub(n).filter(|&start| start >= floor);
        start.ok_or_else(|| "the stack is empty".to_owned())
    }

    fn pop(&mut self) -> Result<Value, String> {
        self.top(1)?;
        self.stack.pop().ok_or_else(|| "the stack is empty".to_owned())
    }

    /// The value below a place of the stack.
    fn below(&self, start: usize) -> Result<Value, String> {
        let floor = self.marks.last().map_or(0, |&height| height as usize);
        let at = start.checked_sub(1).filter(|&at| at >= floor);
        at.map(|at| self.stack[at]).ok_or_else(|| "the stack is empty".to_owned())
    }

    /// Removes the last mark, and tells how high the stack was there.
    fn unmark(&mut self) -> Result<usize, String> {
        let height = self.marks.pop().ok_or("there is no mark")?;
        Ok(height as usize)
    }

    fn container(&mut self) -> Result<Value, String> {
        push(&mut self.room, &mut self.containers, Container::default())?;
        Ok(Value::Container(self.containers.len() as u32 - 1))
    }

    /// A tuple of the values from `start` on.
    fn tuple(&mut self, start: usize) -> Result<Value, String> {
        let n = self.stack.len() - start;
        if n > LONG_TUPLE {
            let list = self.container()?;
            self.append(list, start)?;
            return Ok(list);
        }
        if n == 0 {
            return Ok(Value::Tuple(0, 0));
        }
        if self.items.last().is_none_or(|part| part.len() + n > PART) {
            let left = self.room.checked_sub(PART * size_of::<Value>());
            self.room = left.ok_or(TOO_MUCH)?;
            self.items.push(Vec::with_capacity(PART));
        }
        let at = self.items.len() - 1;
        let part = &mut self.items[at];
        let first = (at * PART + part.len()) as u32;
        part.extend(self.stack.drain(start..));
        Ok(Value::Tuple(first, n as u32))
    }

    /// Moves the values from `start` on to the end of a list.
    fn append(&mut self, list: Value, start: usize) -> Result<(), String> {
        let Value::Container(list) = list else {
            // A list of those that are dropped.
            return Err(format!("{} is appended to", list.kind()));
        };
        let list = &mut self.containers[list as usize];
        for value in self.stack.drain(start..) {
            if value.is_kept() {
                push(&mut self.room, &mut list.kept, (Value::Int(i64::from(list.len)), value))?;
            }
            list.len += 1;
        }
        Ok(())
    }

    /// Moves the keys and values from `start` on to a dict.
    fn insert(&mut self, dict: Value, start: usize) -> Result<(), String> {
        let Value::Container(dict) = dict else {
            return Err(format!("{} is given elements", dict.kind()));
        };
        let dict = &mut self.containers[dict as usize];
        let pairs = &self.stack[start..];
        if pairs.len() % 2 == 1 {
            return Err("a key has no value".to_owned());
        }
        for pair in pairs.chunks_exact(2) {
            if pair[1].is_kept() {
                push(&mut self.room, &mut dict.kept, (pair[0], pair[1]))?;
            }
            dict.len += 1;
        }
        self.stack.truncate(start);
        Ok(())
    }

    /// Keeps the topmost value under a number. Those that PyTorch writes are consecutive.
    fn remember(&mut self, at: usize) -> Result<(), String> {
        let value = self.stack[self.top(1)?];
        let next = self.memo.len();
        match self.memo.get_mut(at) {
            Some(earlier) => *earlier = value,
            None if at == next => push(&mut self.room, &mut self.memo, value)?,
            None => return Err(format!("value {at} is numbered before value {next}")),
        }
        Ok(())
    }

    fn recall(&self, at: usize) -> Result<Value, String> {
        self.memo.get(at).copied().ok_or_else(|| format!("there is no value {at}"))
    }

    /// What a function of [`GLOBALS`] makes of a tuple; `inner` within another call.
    fn call(&mut self, function: Value, arguments: Value, inner: bool) -> Result<Value, String> {
        let Value::Global(function) = function else {
            return Err(format!("{} is called", function.kind()));
        };
        let Value::Tuple(first, n) = arguments else {
            return Err(format!("{} is given for arguments", arguments.kind()));
        };
        let argument = |i: u32| if i < n { self.items(first, n)[i as usize] } else { Value::None };
        match (function, n) {
            (Global::Dict, 0) => self.container(),
            (Global::Tensor, 6..=7) => Ok(Value::Tensor(first, n as u8, false)),
            (Global::TypedTensor, 7..=8) => Ok(Value::Tensor(first, n as u8, true)),
            (Global::Parameter, 3..=4) => match argument(0) {
                tensor @ Value::Tensor(..) => Ok(tensor),
                other => Err(format!("a parameter is made of {}", other.kind())),
            },
            (Global::WithAttributes, 4) if !inner => self.call(argument(0), argument(2), true),
            (Global::Size, 1) => match argument(0) {
                size @ Value::Tuple(..) => Ok(size),
                other => Err(format!("a size is made of {}", other.kind())),
            },
            (Global::Dropped, _) => Ok(Value::Dropped),
            _ => Err(format!("{function:?} is called with {n} arguments")),
        }
    }

    /// The storage that a persistent identity names.
    fn storage(&self, of: Value) -> Result<Value, String> {
        let wrong = || "what is stored elsewhere is no storage".to_owned();
        let Value::Tuple(first, 5) = of else { return Err(wrong()) };
        let items = self.items(first, 5);
        let fits = self.text(items[0]) == Some("storage")
            && matches!(items[1], Value::Global(Global::Storage(_)))
            && self.text(items[2]).is_some_and(|key| key.len() <= MAX_KEY)
            && matches!(items[4], Value::Int(0..));
        if fits { Ok(Value::Storage(first)) } else { Err(wrong()) }
    }

    /// The items of a tuple.
    fn items(&self, first: u32, n: u32) -> &[Value] {
        match n {
            0 => &[],
            _ => &self.items[first as usize / PART][first as usize % PART..][..n as usize],
        }
    }

    fn text(&self, value: Value) -> Option<&'a str> {
        let Value::Text(start, n) = value else { return None };
        let bytes = self.bytes.get(start as usize..)?.get(..n as usize)?;
        std::str::from_utf8(bytes).ok()
    }

    /// All tensors in what the pickle makes. A tensor in a dict has the name of its key, one in a
    /// list that of its position; what is within is behind a dot.
    pub(crate) fn tensors(&mut self) -> Result<Vec<(String, Found)>, String> {
        let root = match (self.stack.pop(), self.stack.is_empty() && self.marks.is_empty()) {
            (Some(root), true) => root,
            _ => return Err("its pickle makes no one value".to_owned()),
        };
        // What only running needs.
        self.room += (self.memo.capacity() + self.stack.capacity()) * size_of::<Value>();
        (self.memo, self.stack) = (Vec::new(), Vec::new());
        let mut walk = Walk { found: Vec::new(), room: self.room, steps: self.bytes.len() };
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
        // Each is there because of some byte, if none is there more than once.
        walk.steps = match walk.steps.checked_sub(1) {
            Some(steps) => steps,
            None => {
                return Err("the same lists and dicts are in its pickle again and again".to_owned());
            }
        };
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
                kept.iter().try_for_each(|&(key, value)| match (self.text(key), key) {
                    (Some(key), _) if key.len() <= MAX_KEY => {
                        self.within(key, value, name, depth, walk)
                    }
                    (None, Value::Int(key)) => {
                        self.within(&key.to_string(), value, name, depth, walk)
                    }
                    _ if !self.has_tensors(value) => Ok(()),
                    (Some(key), _) => Err(format!("a key has {} bytes", key.len())),
                    (None, key) => {
                        let (kind, name) = (key.kind(), shown(name));
                        Err(format!("in `{name}`, {kind} is a key, which gives no name"))
                    }
                })
            }
            Value::Tuple(first, n) => (0..n).try_for_each(|i| {
                let item = self.items(first, n)[i as usize];
                self.within(&i.to_string(), item, name, depth, walk)
            }),
            _ => Ok(()),
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

/// The start of a name that may be long.
fn shown(name: &str) -> &str {
    let end = (0..=name.len().min(200)).rev().find(|&end| name.is_char_boundary(end));
    &name[..end.unwrap_or(0)]
}

struct Walk {
    found: Vec<(String, Found)>,
    room: usize,
    /// How many values may still be looked at.
    steps: usize,
}

/// A whole number in two's complement, the low byte first.
fn long(bytes: &[u8]) -> Value {
    let Some(&last) = bytes.last() else { return Value::Int(0) };
    if bytes.len() > 8 {
        return Value::Dropped;
    }
    let mut whole = [if last >= 128 { 255 } else { 0 }; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    Value::Int(i64::from_le_bytes(whole))
}

/// A string of so many bytes; without them if it is none of Python 3.
fn text(reader: &mut Reader<'_>, n: usize) -> Result<Value, String> {
    let start = reader.position() as u32;
    let bytes = reader.take(n)?;
    Ok(match std::str::from_utf8(bytes) {
        Ok(_) => Value::Text(start, n as u32),
        Err(_) => Value::Dropped,
    })
}

fn line<'a>(reader: &mut Reader<'a>) -> Result<&'a str, String> {
    let mut rest = reader.clone();
    let bytes = rest.take(rest.rest().min(MAX_LINE))?;
    let n = bytes.iter().position(|&b| b == b'\n').ok_or("a name does not end")?;
    let line = reader.take(n + 1)?;
    std::str::from_utf8(&line[..n]).map_err(|_| "a name is no text".to_owned())
}

fn global(module: &str, name: &str) -> Result<Value, String> {
    let row = GLOBALS.iter().find(|row| (row.0, row.1) == (module, name));
    let row = row.ok_or_else(|| {
        format!(
            "`{}.{}` is none of the functions and classes that state dicts are made of; nothing \
             else is loaded. Save the `state_dict()`, or tensors alone",
            shown(module),
            shown(name)
        )
    })?;
    Ok(Value::Global(row.2))
}
