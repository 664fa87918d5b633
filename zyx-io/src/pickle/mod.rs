//! As much of Python's pickles as state dicts of PyTorch need.
//!
//! A pickle is a program for a small machine with a stack. Python's runs whatever functions it
//! names; this one knows those of [`names`], which make containers and tensors, and calls nothing.
//! Objects of any other class are dropped, but if one has a tensor in it, that is an error with its
//! name. What holds no tensor is dropped where it would be put into a list or a dict. The machine takes no more memory than it is given ([`Pickle::run`]).

mod names;
mod tensors;

pub(crate) use names::Stored;
pub(crate) use tensors::{Found, View};

use crate::reader::Reader;
use names::Global;
use tensors::MAX_DEPTH;

/// Something on the stack.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// A string: where it is in the pickle, and its length.
    Text(u32, u32),
    Global(Global),
    /// A class or function that is not known: the number of its name.
    Unknown(u32),
    /// An object of such a class.
    Object(u32),
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
            Value::Global(_) | Value::Unknown(_) => "a class or function",
            Value::Object(_) => "an object",
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

pub(crate) const TOO_MUCH: &str = "it takes more memory than four times the file";

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
    /// Those of classes and functions that are not known.
    unknown: Vec<String>,
    /// How many bytes may still be taken.
    pub(crate) room: usize,
    /// How many values may still be looked through for tensors.
    looks: usize,
    /// Whether lists and dicts keep what has no tensors, too.
    all: bool,
    /// How many bytes the pickle has, of those that it was given.
    pub(crate) length: usize,
}

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
    /// Runs the pickle that the bytes begin with in at most `room` bytes of memory. What it makes is
    /// gone through with [`tensors`](Pickle::tensors).
    pub(crate) fn run(bytes: &'a [u8], room: usize) -> Result<Pickle<'a>, String> {
        Pickle::new(bytes, room, false)
    }

    /// As [`run`](Pickle::run), of a pickle that is about other things than tensors.
    pub(crate) fn run_all(bytes: &'a [u8], room: usize) -> Result<Pickle<'a>, String> {
        Pickle::new(bytes, room, true)
    }

    fn new(bytes: &'a [u8], room: usize, all: bool) -> Result<Pickle<'a>, String> {
        // Places in a pickle are kept in 32 bits. What follows it in the file may be longer.
        let bytes = &bytes[..bytes.len().min(u32::MAX as usize)];
        let (items, containers, memo) = (Vec::new(), Vec::new(), Vec::new());
        let (stack, marks, unknown) = (Vec::new(), Vec::new(), Vec::new());
        let mut pickle = Pickle {
            bytes,
            items,
            containers,
            memo,
            stack,
            marks,
            unknown,
            room,
            looks: 0,
            all,
            length: 0,
        };
        pickle.looks = bytes.len().saturating_mul(4);
        let mut reader = Reader::new(bytes);
        let mut at = 0;
        let place = |at: usize, reason| format!("byte {at} of its pickle: {reason}");
        for step in 0.. {
            crate::look(step).map_err(|error| error.to_string())?;
            if !pickle.step(&mut reader).map_err(|reason| place(at, reason))? {
                break;
            }
            at = reader.position();
        }
        pickle.length = reader.position();
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
                self.global(module, name)?
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let both = self.text(module).zip(self.text(name));
                let (module, name) = both.ok_or("a name is no string")?;
                self.global(module, name)?
            }
            b'R' | 0x81 => {
                let (arguments, function) = (self.pop()?, self.pop()?);
                self.call(function, arguments, false)?
            }
            0x92 => {
                let (named, arguments, function) = (self.pop()?, self.pop()?, self.pop()?);
                self.refuse_tensors(function, &[named])?;
                self.call(function, arguments, false)?
            }
            // The attributes of an object.
            b'b' => {
                let state = self.pop()?;
                let start = self.stack.len();
                return match self.below(start)? {
                    Value::Container(_) | Value::Tensor(..) => Ok(true),
                    object @ (Value::Object(_) | Value::Dropped) => {
                        self.refuse_tensors(object, &[state]).map(|()| true)
                    }
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
        let first = u32::try_from(at * PART + part.len()).map_err(|_| TOO_MUCH)?;
        part.extend(self.stack.drain(start..));
        Ok(Value::Tuple(first, n as u32))
    }

    /// Moves the values from `start` on to the end of a list.
    fn append(&mut self, list: Value, start: usize) -> Result<(), String> {
        let Value::Container(list) = list else { return self.drop_from(start, list) };
        let list = &mut self.containers[list as usize];
        for value in self.stack.drain(start..) {
            // The first of two may be the key of a dict.
            let is_key = list.len == 0 && matches!(value, Value::Text(..));
            if self.all || is_key || value.is_kept() {
                push(&mut self.room, &mut list.kept, (Value::Int(i64::from(list.len)), value))?;
            }
            list.len += 1;
        }
        Ok(())
    }

    /// Moves the keys and values from `start` on to a dict.
    fn insert(&mut self, dict: Value, start: usize) -> Result<(), String> {
        let Value::Container(dict) = dict else { return self.drop_from(start, dict) };
        let dict = &mut self.containers[dict as usize];
        let pairs = &self.stack[start..];
        if pairs.len() % 2 == 1 {
            return Err("a key has no value".to_owned());
        }
        for pair in pairs.chunks_exact(2) {
            if self.all || pair[1].is_kept() {
                push(&mut self.room, &mut dict.kept, (pair[0], pair[1]))?;
            }
            dict.len += 1;
        }
        self.stack.truncate(start);
        Ok(())
    }

    /// Drops the values from `start` on, which an object is given.
    fn drop_from(&mut self, start: usize, object: Value) -> Result<(), String> {
        if !matches!(object, Value::Object(_) | Value::Dropped) {
            return Err(format!("{} is given elements", object.kind()));
        }
        let given = self.stack.split_off(start);
        self.refuse_tensors(object, &given)
    }

    /// Refuses tensors in what an object of an unknown class consists of: they would be lost.
    fn refuse_tensors(&mut self, object: Value, given: &[Value]) -> Result<(), String> {
        given.iter().try_for_each(|&value| match self.holds_tensor(value, 0)? {
            true => Err(self.refusal(object)),
            false => Ok(()),
        })
    }

    /// Whether a tensor, or the memory of one, is in a value.
    fn holds_tensor(&mut self, value: Value, depth: usize) -> Result<bool, String> {
        let again = || "the same lists and dicts are in its pickle again and again".to_owned();
        self.looks = self.looks.checked_sub(1).filter(|_| depth <= MAX_DEPTH).ok_or_else(again)?;
        let n = match value {
            Value::Tensor(..) | Value::Storage(_) => return Ok(true),
            Value::Container(at) => self.containers[at as usize].kept.len(),
            Value::Tuple(_, n) => n as usize,
            _ => 0,
        };
        for i in 0..n {
            let item = match value {
                Value::Container(at) => self.containers[at as usize].kept[i].1,
                Value::Tuple(first, n) => self.items(first, n)[i],
                _ => Value::None,
            };
            if self.holds_tensor(item, depth + 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Why an object is not read.
    fn refusal(&self, object: Value) -> String {
        let name = match object {
            Value::Unknown(at) | Value::Object(at) => &self.unknown[at as usize],
            other => other.kind(),
        };
        format!(
            "`{name}` is none of the functions and classes that state dicts are made of; nothing \
             else is loaded. Save the `state_dict()`, or tensors alone"
        )
    }

    /// A class or function.
    fn global(&mut self, module: &str, name: &str) -> Result<Value, String> {
        if let Some(known) = names::find(module, name) {
            return Ok(Value::Global(known));
        }
        let whole = format!("{}.{}", shown(module), shown(name));
        self.room = self.room.checked_sub(whole.len()).ok_or(TOO_MUCH)?;
        push(&mut self.room, &mut self.unknown, whole)?;
        Ok(Value::Unknown(self.unknown.len() as u32 - 1))
    }

    /// A dict of a list of pairs, or of a dict.
    fn dict_of(&mut self, given: Value) -> Result<Value, String> {
        let Value::Container(given) = given else { return self.container() };
        let pair = |container: &Container| match container.kept[..] {
            [(Value::Int(0), key @ Value::Text(..)), (Value::Int(1), value)] => Some((key, value)),
            _ => None,
        };
        for i in 0..self.containers[given as usize].kept.len() {
            let (key, value) = self.containers[given as usize].kept[i];
            if let (Value::Int(_), Value::Container(at)) = (key, value)
                && let Some(named) = pair(&self.containers[at as usize])
            {
                self.containers[given as usize].kept[i] = named;
            }
        }
        Ok(Value::Container(given))
    }

    /// Keeps the topmost value under a number. They are consecutive, from 0 or, by Python 2, from 1 on.
    fn remember(&mut self, at: usize) -> Result<(), String> {
        let value = self.stack[self.top(1)?];
        while self.memo.len() <= at {
            push(&mut self.room, &mut self.memo, Value::Dropped)?;
        }
        self.memo[at] = value;
        Ok(())
    }

    fn recall(&self, at: usize) -> Result<Value, String> {
        self.memo.get(at).copied().ok_or_else(|| format!("there is no value {at}"))
    }

    /// What a function of [`names`] makes of a tuple; `inner` within another call.
    fn call(&mut self, function: Value, arguments: Value, inner: bool) -> Result<Value, String> {
        if let Value::Unknown(at) = function {
            self.refuse_tensors(function, &[arguments])?;
            return Ok(Value::Object(at));
        }
        let Value::Global(function) = function else {
            return Err(format!("{} is called", function.kind()));
        };
        let Value::Tuple(first, n) = arguments else {
            return Err(format!("{} is given for arguments", arguments.kind()));
        };
        let argument = |i: u32| if i < n { self.items(first, n)[i as usize] } else { Value::None };
        match (function, n) {
            (Global::Dict, _) => self.dict_of(argument(0)),
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
        // Files before 1.6 say, too, of which other storage it is a part.
        let first = match of {
            Value::Tuple(first, 5) => first,
            Value::Tuple(first, 6) if self.items(first, 6)[5] == Value::None => first,
            _ => return Err(wrong()),
        };
        let items = self.items(first, 5);
        if let unknown @ Value::Unknown(_) = items[1] {
            return Err(self.refusal(unknown));
        }
        let fits = self.text(items[0]) == Some("storage")
            && matches!(items[1], Value::Global(Global::Storage(_)))
            && self.text(items[2]).is_some_and(|key| key.len() <= MAX_KEY)
            && matches!(items[4], Value::Int(0..));
        if fits { Ok(Value::Storage(first)) } else { Err(wrong()) }
    }

    /// The number that the pickle is.
    pub(crate) fn number(&self) -> Option<i64> {
        match self.stack[..] {
            [Value::Int(n)] => Some(n),
            _ => None,
        }
    }

    /// What the list or dict that the pickle is has: keys or positions, and values.
    fn elements(&self) -> Option<&[(Value, Value)]> {
        match self.stack[..] {
            [Value::Container(at)] => Some(&self.containers[at as usize].kept),
            _ => None,
        }
    }

    /// The bool under a key of the dict that the pickle is.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let is = |key| matches!(key, Value::Text(_, n) if n as usize == name.len());
        let mut named = self.elements()?.iter().filter(|(key, _)| is(*key));
        let found = named.find(|(key, _)| self.text(*key) == Some(name));
        match found {
            Some((_, Value::Bool(flag))) => Some(*flag),
            _ => None,
        }
    }

    /// The strings of the list that the pickle is.
    pub(crate) fn texts(&self) -> Option<impl ExactSizeIterator<Item = Option<&'a str>>> {
        Some(self.elements()?.iter().map(|(_, value)| self.text(*value)))
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
}

/// The start of a name that may be long.
fn shown(name: &str) -> &str {
    let end = (0..=name.len().min(200)).rev().find(|&end| name.is_char_boundary(end));
    &name[..end.unwrap_or(0)]
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
