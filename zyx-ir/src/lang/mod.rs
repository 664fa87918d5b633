//! The kernel language: kernels as Rust closures that run once and record IR.
//!
//! ```
//! use zyx_ir::lang::{Lang, Setting, record};
//! use zyx_ir::{BinaryOp, DType};
//!
//! let setting = Setting { inputs: vec![DType::F32], ..Setting::default() };
//! let softmax = record("softmax", &setting, |k: &Lang| {
//!     let [rows, cols] = k.sizes(["rows", "cols"]);
//!     let x = k.input("x", [rows, cols]);
//!     let y = k.output("y", [rows, cols], x.dtype());
//!     k.groups([rows], 256, |g, [row]| {
//!         let max = g.reduce(BinaryOp::Max, cols, |i| x.at([row, i]));
//!         let sum = g.reduce(BinaryOp::Add, cols, |i| (x.at([row, i]) - max).exp());
//!         g.each(cols, |i| y.set([row, i], (x.at([row, i]) - max).exp() / sum));
//!     });
//! })?;
//! assert_eq!(softmax.kernel().params().len(), 2);
//! # Ok::<(), zyx_ir::lang::LangError>(())
//! ```
//!
//! * [`Val`] is a value with operators, [`Array`] an argument or storage of the kernel, [`Var`] a variable.
//! * [`Lang::each`] makes independent iterations, [`Lang::groups`] groups of threads ([`Group`]), whose
//!   primitives are loops where the device has no threads that share storage.
//! * Sizes are arguments: a recorded kernel serves all sizes. What follows from them at launch, as lengths of results and
//!   numbers of groups, is a [`SizeExpr`].
//!
//! * [`Recorded`] as text (`Display` and `FromStr`, described in `text.rs`) round-trips.
//!
//! The first mistake is kept with the line of the program that made it, and is the error of [`record`]; what is recorded after it
//! is dropped. An access whose coordinates are not shown to be inside gets a guard: outside it loads zero and stores nothing.
//! [`Recorded::checked`] is the kernel without guards, in which the interpreter finds such accesses.

mod array;
mod batch;
mod control;
mod copied;
mod exchange;
mod finish;
mod fuse;
mod group;
mod handle;
mod lanes;
mod order;
mod pipeline;
mod progress;
mod size;
mod squares;
#[cfg(test)]
mod tests;
mod text;
mod tile;
mod value;

pub use array::{Array, Coordinates};
pub use control::{Carried, Span, Var};
pub use fuse::{Function, Further};
pub use group::{Group, Space};
pub use handle::{ArrayHandle, LookBackHandle, MatrixHandle, QueueHandle, RowsHandle};
pub use progress::{LookBack, Queue};
pub use size::SizeExpr;
pub use tile::{Matrix, Rows};
pub use value::{Operand, Val};

use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Access, Builder, Extents, Kernel, LoopKind, Op, ParamInfo, Type, Value};
use crate::scalar::Scalar;
use group::Threads;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

/// A line of the program that a kernel is written in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The file.
    pub file: Arc<str>,
    /// The line, from 1 on.
    pub line: u32,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// What is wrong with a kernel, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}` at {site}: {reason}")]
pub struct LangError {
    /// The kernel's name.
    pub kernel: String,
    /// What is wrong and what to do.
    pub reason: String,
    /// The line of the program.
    pub site: Site,
}

/// Most elements of an array, of iterations and of groups where indices are computed in 32 bits.
pub const SMALL: u64 = (1 << 30) - 1;

/// What a kernel is recorded for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Setting {
    /// The device.
    pub caps: Caps,
    /// Dtypes of the inputs, in order.
    pub inputs: Vec<DType>,
    /// Whether sizes may be beyond [`SMALL`].
    pub large: bool,
    /// Whether rows of factors of matrix instructions are whole vectors: last extents of arguments of such dtypes are
    /// multiples of [`Setting::ALIGNED`].
    pub aligned: bool,
    /// For each parameter which of its values.
    pub choices: Vec<usize>,
    /// Whether the tuner tries these choices: a kernel that cannot be recorded with them is no mistake.
    pub is_trial: bool,
}

impl Setting {
    /// Elements of a vector of halves.
    pub const ALIGNED: u32 = 8;
}

impl Default for Setting {
    /// No inputs and the interpreter's capabilities.
    fn default() -> Setting {
        let (caps, (inputs, choices)) = (crate::ir::interp::caps(), Default::default());
        Setting { caps, inputs, large: false, aligned: false, choices, is_trial: false }
    }
}

/// An argument of a recorded kernel: its name, dtype and extents.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// The name that the kernel's author gave it.
    pub name: String,
    /// Its dtype.
    pub dtype: DType,
    /// Its extents, outermost first.
    pub shape: Vec<SizeExpr>,
    /// What it is.
    pub role: Role,
}

/// What an argument of a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Read only.
    Input,
    /// Written, each element at most once.
    Output,
    /// Filled before the kernel runs, then changed and given back.
    Filled(Fill),
    /// Filled with zeros before the kernel runs, then forgotten.
    Scratch,
    /// One `i32`, filled with 0 before the kernel runs; other than 0 afterwards if the driver ended a loop of a thread early
    /// ([`Caps::max_iterations`]), so that results are wrong.
    Cut,
}

impl Role {
    /// How a kernel accesses such an argument.
    fn access(self) -> Access {
        match self {
            Role::Input => Access::Read,
            Role::Output => Access::Write,
            Role::Filled(_) | Role::Scratch | Role::Cut => Access::ReadWrite,
        }
    }

    /// Whether a caller gives or gets it.
    pub fn is_seen(self) -> bool {
        !matches!(self, Role::Scratch | Role::Cut)
    }
}

/// What an argument holds before the kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fill {
    /// The bits of one scalar in each element.
    Scalar(u64),
    /// The elements of the input of this number.
    Input(usize),
}

/// A parameter of a recorded kernel; see [`Lang::parameter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name that the kernel's author gave it.
    pub name: String,
    /// The values that it may have.
    pub values: Vec<usize>,
    /// The number of the value that the kernel was recorded with.
    pub choice: usize,
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.values.get(self.choice).copied().unwrap_or(1);
        write!(f, "{} = {value}", self.name)
    }
}

/// A kernel as it was recorded.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    kernel: Kernel,
    checked: Kernel,
    arguments: Vec<Argument>,
    scalars: Vec<SizeExpr>,
    sizes: Vec<String>,
    spaces: Vec<SizeExpr>,
    parameters: Vec<Parameter>,
    looks_back: bool,
    lines: Vec<u32>,
    sites: Vec<Site>,
}

impl Recorded {
    /// The kernel. Its buffers are the arguments by slot.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The kernel without guards: an access outside is one of element -1.
    pub fn checked(&self) -> &Kernel {
        &self.checked
    }

    /// The arguments, by slot.
    pub fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    /// What the scalars of a launch are, by slot.
    pub fn scalars(&self) -> &[SizeExpr] {
        &self.scalars
    }

    /// The names of the sizes.
    pub fn sizes(&self) -> &[String] {
        &self.sizes
    }

    /// Numbers that have to be at most [`SMALL`] for a kernel not recorded as large.
    pub fn spaces(&self) -> &[SizeExpr] {
        &self.spaces
    }

    /// Whether a driver that ends loops of many iterations could end one of these, and the kernel would not tell.
    pub fn may_be_cut(&self) -> bool {
        let breaks = self.kernel.loops_with_break();
        let tells = self.arguments.iter().any(|argument| argument.role == Role::Cut);
        !tells
            && self.kernel.iter().any(|(open, op, _)| {
                matches!(op, Op::Loop { kind: LoopKind::Serial, len, .. }
                    if self.kernel.constant(len).is_none() || breaks.contains(&open))
            })
    }

    /// The parameters, in the order in which they were declared.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Whether groups look back at others: then it matters how long they may wait ([`Caps::progress`]).
    pub fn looks_back(&self) -> bool {
        self.looks_back
    }

    /// The line of the program that an op of [`Recorded::checked`] comes from.
    pub fn site(&self, value: Value) -> Option<&Site> {
        self.sites.get(*self.lines.get(value.idx())? as usize)
    }
}

/// Records the kernel that a closure writes.
///
/// # Errors
/// The first mistake with its line: operands of different dtypes, wrong numbers of coordinates, groups within groups, and what
/// the verifier of kernels finds.
pub fn record(
    name: &str,
    setting: &Setting,
    write: impl FnOnce(&Lang),
) -> Result<Recorded, LangError> {
    let lang = Lang::new(name, setting);
    write(&lang);
    finish::finish(&lang)
}

/// Records a function of scalars of these dtypes; gives a kernel without buffers, whose scalar arguments they are, and the result.
///
/// # Errors
/// As for [`record`].
pub fn record_function(
    name: &str,
    dtypes: &[DType],
    write: impl for<'k> FnOnce(&[Val<'k>]) -> Val<'k>,
) -> Result<(Kernel, Value), LangError> {
    let lang = Lang::new(name, &Setting::default());
    let argument = |&dtype: &DType| lang.val(|s| s.b.var(dtype, i64::MIN, i64::MAX));
    let arguments: Vec<Val<'_>> = dtypes.iter().map(argument).collect();
    let result = write(&arguments).value;
    let state = lang.end();
    state.error.map_or_else(|| Ok((state.b.finish(), result)), Err)
}

/// A kernel being recorded: what the closure of a kernel is given. A clone is another handle of it.
#[derive(Clone)]
pub struct Lang {
    setting: Rc<Setting>,
    state: Rc<RefCell<State>>,
}

impl fmt::Debug for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.state.borrow().b.kernel())
    }
}

/// A coordinate of an element along an axis of an array.
#[derive(Clone, Copy, Debug)]
struct Digit {
    at: Value,
    extent: Value,
    /// The coordinate in a tile of the array, and the extent of the tile.
    tile: Option<(Value, Value)>,
}

impl Digit {
    /// Numbers that are at least 0 and below others where the element exists.
    fn bounds(self) -> impl Iterator<Item = (Value, Value)> {
        [(self.at, self.extent)].into_iter().chain(self.tile)
    }
}

/// Coordinates of an element.
type Digits = Vec<Digit>;

/// An access by coordinates.
struct Place {
    access: Value,
    digits: Digits,
}

#[derive(Default)]
struct State {
    b: Builder,
    error: Option<LangError>,
    /// The line of what is recorded, where it is not that of a caller in Rust.
    line: Option<Site>,
    /// The line of the primitive that is being recorded.
    primitive: Option<Site>,
    /// The result, but for kernels and scalars.
    recorded: Recorded,
    /// What scalars are, by slot, and the values that they are.
    scalars: Vec<(SizeExpr, Value)>,
    places: Vec<Place>,
    known_sites: FxHashMap<Site, u32>,
    threads: Option<Threads>,
    /// Loops that are open over iterations in any order.
    parallel: Vec<Value>,
    /// Barriers that turned out not to be needed.
    unneeded: Vec<Value>,
    /// The argument that tells of loops that did not come to their end.
    cut: Option<Value>,
    /// Loops that only a break ends.
    waits: Vec<Value>,
    /// Whether the recording has ended.
    over: bool,
}

impl State {
    /// Notes the line of the ops since the last call.
    #[inline(never)]
    fn end_line(&mut self, line: u32) {
        self.recorded.lines.resize(self.b.kernel().ops().len(), line);
    }
}

impl Lang {
    fn new(name: &str, setting: &Setting) -> Lang {
        let state = State { b: Builder::new(name), ..State::default() };
        Lang { setting: Rc::new(setting.clone()), state: Rc::new(RefCell::new(state)) }
    }

    /// Whether the recording has ended: then handles and values of it are of no use.
    pub fn is_over(&self) -> bool {
        self.state.borrow().over
    }

    /// The value of a number that [`Val::id`] gave.
    pub fn val_of(&self, id: Value) -> Val<'_> {
        Val { k: self, value: id }
    }

    /// Ends the recording.
    fn end(&self) -> State {
        self.state.replace(State { over: true, ..State::default() })
    }

    /// Makes what follows come from this line, until it is called with another one or `None`: for kernels that are not
    /// written in Rust.
    pub fn set_site(&self, site: Option<Site>) {
        self.state.borrow_mut().line = site;
    }

    /// Keeps a mistake, if it is the first.
    #[track_caller]
    pub fn fail(&self, reason: impl fmt::Display) {
        self.fail_at(self.here(), reason.to_string());
    }

    #[inline(never)]
    fn fail_at(&self, site: Site, reason: String) {
        let State { b, error, .. } = &mut *self.state.borrow_mut();
        let kernel = b.kernel().name().to_owned();
        error.get_or_insert(LangError { kernel, reason, site });
    }

    /// Whether there was a mistake already.
    pub fn has_failed(&self) -> bool {
        self.state.borrow().error.is_some()
    }

    #[track_caller]
    #[inline(never)]
    fn here(&self) -> Site {
        let State { line, primitive, .. } = &*self.state.borrow();
        let (given, caller) = (line.as_ref().or(primitive.as_ref()), Location::caller());
        given.cloned().unwrap_or_else(|| Site { file: caller.file().into(), line: caller.line() })
    }

    /// Records what a primitive is made of: all of it comes from the line of the caller.
    #[track_caller]
    fn primitive<R>(&self, write: impl FnOnce() -> R) -> R {
        self.with_site(Some(self.here()), write)
    }

    /// Records what a program wrote within a primitive.
    fn of_program<R>(&self, write: impl FnOnce() -> R) -> R {
        self.with_site(None, write)
    }

    fn with_site<R>(&self, site: Option<Site>, write: impl FnOnce() -> R) -> R {
        let set = |site| std::mem::replace(&mut self.state.borrow_mut().primitive, site);
        let before = set(site);
        let result = write();
        set(before);
        result
    }

    /// Records ops, which come from the caller's line.
    #[track_caller]
    fn emit<R>(&self, write: impl FnOnce(&mut State) -> R) -> R {
        let line = self.number_of_line();
        let state = &mut *self.state.borrow_mut();
        let result = write(state);
        state.end_line(line);
        result
    }

    /// The number of the line that ops come from. Compiled once, not into each function that emits.
    #[track_caller]
    #[inline(never)]
    fn number_of_line(&self) -> u32 {
        let site = self.here();
        let state = &mut *self.state.borrow_mut();
        let next = state.recorded.sites.len() as u32;
        let line = *state.known_sites.entry(site.clone()).or_insert(next);
        if line == next {
            state.recorded.sites.push(site);
        }
        line
    }

    #[track_caller]
    fn val(&self, write: impl FnOnce(&mut State) -> Value) -> Val<'_> {
        Val { k: self, value: self.emit(write) }
    }

    #[inline(never)]
    fn ty(&self, value: Value) -> Type {
        self.state.borrow().b.ty(value)
    }

    /// What the kernel is recorded for.
    pub fn caps(&self) -> &Caps {
        &self.setting.caps
    }

    /// A literal of a dtype.
    #[track_caller]
    pub fn value<'k>(&'k self, literal: impl Operand<'k>, dtype: DType) -> Val<'k> {
        literal.val(self, dtype).cast(dtype)
    }

    /// A literal index (`i64`).
    #[track_caller]
    #[inline(never)]
    pub fn index(&self, x: i64) -> Val<'_> {
        self.val(|s| s.b.index(x))
    }

    /// A size: a number that is not known before the kernel is called. It is the extent of some input, or is given by the
    /// caller.
    #[track_caller]
    pub fn size(&self, name: &str) -> Val<'_> {
        let number = {
            let sizes = &mut self.state.borrow_mut().recorded.sizes;
            let known = sizes.iter().position(|size| size == name);
            known.unwrap_or_else(|| {
                sizes.push(name.to_owned());
                sizes.len() - 1
            })
        };
        self.scalar(SizeExpr::Size(number))
    }

    /// Several sizes.
    #[track_caller]
    pub fn sizes<const N: usize>(&self, names: [&str; N]) -> [Val<'_>; N] {
        names.map(|name| self.size(name))
    }

    /// Says that a number that follows from sizes is at most `most`: a call with a larger one is an error.
    #[track_caller]
    pub fn limit<'k>(&'k self, size: impl Operand<'k>, most: usize) {
        let value = self.derived(size, "a limited number").1.value;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        match (self.slot_of(value), Val { k: self, value }.literal().map(|x| x.to_i64())) {
            (Some(slot), _) => self.state.borrow_mut().b.limit(slot, most),
            (None, Some(x)) if x > most => self.fail(format_args!("{x} is limited to {most}")),
            _ => {}
        }
    }

    /// A number among these that changes how fast the kernel is and not what it computes, as the extent of a tile: the first
    /// one, unless the caller chooses another, or a device finds another to be faster (`Device::tune`).
    ///
    /// Sums may round differently with another value. A value with which the kernel cannot be recorded, or that a device
    /// refuses, is not chosen by a device.
    ///
    /// ```
    /// use zyx_ir::DType;
    /// use zyx_ir::lang::{Lang, Setting, record};
    ///
    /// let copy = |k: &Lang| {
    ///     let n = k.size("n");
    ///     let tile = k.parameter("tile", &[256, 64]);
    ///     let (x, y) = (k.input("x", [n]), k.output("y", [n], DType::F32));
    ///     k.groups([n.div_ceil(tile)], 64, |g, [group]| {
    ///         let first = group * tile;
    ///         g.each((n - first).minimum(tile), |i| y.set(first + i, x.at(first + i)));
    ///     });
    /// };
    /// let mut setting = Setting { inputs: vec![DType::F32], ..Setting::default() };
    /// let with_256 = record("copy", &setting, copy)?;
    /// setting.choices = vec![1];
    /// let with_64 = record("copy", &setting, copy)?;
    /// assert_ne!(with_256.kernel(), with_64.kernel());
    /// # Ok::<(), zyx_ir::lang::LangError>(())
    /// ```
    #[track_caller]
    pub fn parameter(&self, name: &str, values: &[usize]) -> usize {
        let choice = {
            let parameters = &mut self.state.borrow_mut().recorded.parameters;
            let choice = self.setting.choices.get(parameters.len()).copied().unwrap_or(0);
            let (name, values) = (name.to_owned(), values.to_vec());
            parameters.push(Parameter { name, values, choice });
            choice
        };
        values.get(choice).copied().unwrap_or_else(|| {
            self.fail(format_args!("parameter `{name}` has no value number {choice}"));
            1
        })
    }

    /// Whether the tuner tries values of parameters: a mistake is none of the program.
    pub fn is_trial(&self) -> bool {
        self.setting.is_trial
    }

    /// The scalar argument that is this number at launch.
    #[track_caller]
    #[inline(never)]
    fn scalar(&self, expr: SizeExpr) -> Val<'_> {
        if let SizeExpr::Literal(x) = expr {
            return self.index(x);
        }
        self.declared(expr, 0, if self.setting.large { i64::MAX } else { SMALL as i64 })
    }

    /// The scalar argument of an expression, which may be a literal, with bounds.
    #[track_caller]
    #[inline(never)]
    fn declared(&self, expr: SizeExpr, min: i64, max: i64) -> Val<'_> {
        self.val(|s| match s.scalars.iter().find(|x| x.0 == expr) {
            Some(known) => known.1,
            None => {
                let value = s.b.var(DType::I64, min, max);
                s.scalars.push((expr, value));
                value
            }
        })
    }

    /// The scalar argument that is this value, which follows from sizes. A literal stays one.
    #[track_caller]
    fn derived<'k>(&'k self, x: impl Operand<'k>, what: &str) -> (SizeExpr, Val<'k>) {
        let x = x.val(self, DType::I64);
        let expr = SizeExpr::of(&self.state.borrow(), x.value);
        if expr.is_none() {
            self.fail(format_args!("{what} must follow from sizes and literals alone"));
        }
        let expr = expr.unwrap_or(SizeExpr::Literal(1));
        (expr.clone(), self.scalar(expr))
    }

    /// The next input, with the caller's dtype.
    #[track_caller]
    pub fn input<'k>(&'k self, name: &str, shape: impl Coordinates<'k>) -> Array<'k> {
        let is_input = |argument: &&Argument| argument.role == Role::Input;
        let number = self.state.borrow().recorded.arguments.iter().filter(is_input).count();
        let inputs = &self.setting.inputs;
        if number >= inputs.len() {
            let given = inputs.len();
            self.fail(format_args!("input `{name}` is number {number}, the caller gave {given}"));
        }
        let dtype = inputs.get(number).copied().unwrap_or(DType::F32);
        self.argument(name, dtype, &shape.list(self), Role::Input)
    }

    /// A result of this shape and dtype, each element of which is stored at most once.
    #[track_caller]
    pub fn output<'k>(
        &'k self,
        name: &str,
        shape: impl Coordinates<'k>,
        dtype: DType,
    ) -> Array<'k> {
        self.argument(name, dtype, &shape.list(self), Role::Output)
    }

    /// A result all elements of which are `fill` before the kernel runs. It may be read, changed, and changed atomically.
    #[track_caller]
    pub fn output_filled<'k>(
        &'k self,
        name: &str,
        shape: impl Coordinates<'k>,
        dtype: DType,
        fill: impl Into<Scalar>,
    ) -> Array<'k> {
        let bits = fill.into().cast(dtype).bits();
        self.argument(name, dtype, &shape.list(self), Role::Filled(Fill::Scalar(bits)))
    }

    /// A result that is a copy of an input before the kernel runs. It may be read, changed, and changed atomically.
    #[track_caller]
    pub fn output_from<'k>(&'k self, name: &str, input: &Array<'k>) -> Array<'k> {
        let role = |slot: u16| self.state.borrow().recorded.arguments[usize::from(slot)].role;
        let is_input = |slot: &u16| role(*slot) == Role::Input;
        let Some(slot) = input.slot().filter(is_input) else {
            self.fail(format_args!("`{name}` must begin as an input"));
            return input.clone();
        };
        let number = (0..slot).filter(is_input).count();
        let shape = input.shape();
        self.argument(name, input.dtype(), &shape, Role::Filled(Fill::Input(number)))
    }

    /// Memory of zeros that the kernel alone sees, as counters that groups share.
    #[track_caller]
    pub fn scratch<'k>(
        &'k self,
        name: &str,
        shape: impl Coordinates<'k>,
        dtype: DType,
    ) -> Array<'k> {
        self.argument(name, dtype, &shape.list(self), Role::Scratch)
    }

    #[track_caller]
    #[inline(never)]
    fn argument<'k>(
        &'k self,
        name: &str,
        dtype: DType,
        shape: &[Val<'k>],
        role: Role,
    ) -> Array<'k> {
        if self.state.borrow().b.depth() > 0 {
            self.fail(format_args!("`{name}` is declared within a loop: declare it before"));
        }
        self.declare(name, dtype, shape, role)
    }

    /// Declares an argument; it stands before all loops in the end.
    #[track_caller]
    fn declare<'k>(&'k self, name: &str, dtype: DType, shape: &[Val<'k>], role: Role) -> Array<'k> {
        if shape.len() >= Extents::MOST {
            self.fail(format_args!("`{name}` has {} axes, of {}", shape.len(), Extents::MOST - 1));
        }
        let what = format!("an extent of `{name}`");
        let exprs: Vec<SizeExpr> = shape.iter().map(|&x| self.derived(x, &what).0).collect();
        // A literal extent is a scalar, too: the verifier knows no other.
        let scalar = |expr: &SizeExpr| match *expr {
            SizeExpr::Literal(x) => self.declared(SizeExpr::Literal(x), x, x).value,
            _ => self.scalar(expr.clone()).value,
        };
        let extents: Vec<Value> = exprs.iter().map(scalar).collect();
        let one = extents.is_empty().then(|| scalar(&SizeExpr::Literal(1)));
        let slots = extents.iter().chain(&one).map(|&extent| self.slot_of(extent));
        let slots: Option<Vec<u16>> = slots.collect();
        let slots = slots.expect("invariant: extents are scalars");
        if let (true, true, Some(&slot)) =
            (self.setting.aligned, self.caps().mma.contains(dtype), slots.last())
            && !matches!(exprs.last(), Some(SizeExpr::Literal(_)) | None)
        {
            self.state.borrow_mut().b.set_multiple(slot, Setting::ALIGNED);
        }
        let access = role.access();
        // What a device binds at once, if that is less: a larger buffer is several.
        let bound = self.caps().max_binding / dtype.size() as u64;
        let most = if self.setting.large { i64::MAX as u64 / 16 } else { SMALL.min(bound) };
        let buffer = self.emit(|s| {
            let product = exprs.iter().cloned().reduce(SizeExpr::times);
            s.recorded.spaces.extend(product);
            let argument = Argument { name: name.to_owned(), dtype, shape: exprs, role };
            s.recorded.arguments.push(argument);
            s.b.declare(ParamInfo {
                dtype,
                len: most,
                access,
                open: false,
                extents: Extents::of(&slots),
            })
        });
        Array::of_buffer(self, buffer, extents)
    }

    fn slot_of(&self, value: Value) -> Option<u16> {
        let slot = self.state.borrow().scalars.iter().position(|x| x.1 == value);
        slot.map(|slot| slot as u16)
    }
}
