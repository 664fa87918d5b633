//! Storages: memory that several tensors of Python share, and what a write to one of them means for the others.
//!
//! The tensors of Rust never change. A tensor of Python is a cell that holds one, and a write replaces it. When a view
//! of a tensor is taken, or it is written to, its cell becomes an [`Alias`]: a storage, and the [`Step`]s from the
//! whole storage to the alias. A write to an alias makes a new value of the whole storage and raises its version; an
//! alias with an old version derives its value again when it is read. What autograd has saved is a tensor of Rust, and
//! keeps its value.
//!
//! Until the first write the aliases alone have values, and the storage has none: a view keeps no memory of its base.
//! The first write puts the value of the whole together from the aliases that exist; elements that no alias has can
//! not be read any more.
//!
//! Aliases of one storage have equal values but need not have one history, as `x.detach()` shares the values of `x`
//! alone. So a storage has a main history, each `detach()` starts another, and views made within `no_grad` have none
//! ([`History`]). A write belongs to the history of the alias that is written to; through the others gradients flow as
//! if nothing had been written, which is what PyTorch does.

use crate::error::caught;
use crate::grad_mode::is_grad_enabled;
use crate::scope;
use crate::views::{Layout, Step, Steps};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use zyx::{DType, Param, Result, Shape, Tensor};

const OVERLAP: &str = "unsupported operation: more than one element of the written-to tensor refers to a single memory \
     location. Please clone() the tensor before performing the operation.";
const LEAF: &str = "a leaf Variable that requires grad is being used in an in-place operation.";
const VIEW_OF_LEAF: &str =
    "a view of a leaf Variable that requires grad is being used in an in-place operation.";
const NO_GRAD_VIEW: &str = "A view was created in no_grad mode and is being modified inplace with grad mode enabled. \
     Take the view outside of no_grad, or write to it within.";
const NO_HISTORY: &str = "a parameter, or a tensor that was a leaf, cannot hold the history of a value: write \
     value.detach(), or write within no_grad()";
const CUT: &str = "a view of this tensor became a leaf by requires_grad_() and shares its memory no longer: take \
     x.clone().requires_grad_() if both are needed";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Values that aliases share.
#[derive(Debug)]
pub(crate) struct Storage {
    /// Shape and dtype of the whole.
    shape: Shape,
    dtype: DType,
    /// The scope that it was made in: see [`crate::scope`].
    scope: u64,
    /// How often it was written to.
    version: AtomicU64,
    /// Whether the value is that of a parameter, which others replace too.
    is_param: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    latest: Latest,
    main: Past,
    aliases: Aliases,
    is_cut: bool,
}

/// The aliases of a storage: mostly a tensor and a view of it, which need no allocation.
#[derive(Debug, Default)]
struct Aliases {
    few: [Weak<Alias>; 2],
    more: Vec<Weak<Alias>>,
}

impl Aliases {
    /// Adds one in the place of one that went, or behind the others.
    fn add(&mut self, alias: &Arc<Alias>) {
        let free = self.few.iter_mut().find(|alias| alias.strong_count() == 0);
        match free {
            Some(place) => *place = Arc::downgrade(alias),
            None => {
                // Those that went are forgotten before the list would have to grow.
                if self.more.len() == self.more.capacity() {
                    self.more.retain(|alias| alias.strong_count() > 0);
                }
                self.more.push(Arc::downgrade(alias));
            }
        }
    }

    /// Those that exist.
    fn iter(&self) -> impl Iterator<Item = Arc<Alias>> {
        self.few.iter().chain(&self.more).filter_map(Weak::upgrade)
    }
}

impl State {
    /// Whether the main history, or that of the parameter, requires gradients.
    fn is_main_tracked(&self) -> bool {
        match &self.latest {
            Latest::Param(param, _) => param.is_trainable(),
            Latest::Value(_) => self.main.value.as_ref().is_some_and(Tensor::is_tracked),
            Latest::Unwritten => {
                let mut mains =
                    self.aliases.iter().filter(|alias| matches!(alias.history, History::Main));
                mains.any(|alias| lock(&alias.known).value.as_ref().is_some_and(Tensor::is_tracked))
            }
        }
    }
}

/// The value of a whole storage.
#[derive(Clone, Debug)]
enum Latest {
    /// Nothing was written: the aliases have it.
    Unwritten,
    /// The value last written. Its history is that of the alias that was written to.
    Value(Tensor),
    /// That of a parameter, and the version that was seen of it.
    Param(Param, u64),
}

/// The last value of a history, and its version.
#[derive(Clone, Debug, Default)]
struct Past {
    version: u64,
    value: Option<Tensor>,
}

impl Past {
    /// The value with this history, given the numbers now.
    fn current(&mut self, version: u64, numbers: &Tensor) -> Result<Tensor> {
        if let Some(value) = self.value.as_ref().filter(|_| self.version == version) {
            return Ok(value.clone());
        }
        let value = match &self.value {
            Some(old) if old.is_tracked() => {
                numbers.detach().with_gradient(&[old], |_, _, dy| Ok(vec![Some(dy.clone())]))?
            }
            _ => without_history(numbers),
        };
        *self = Past { version, value: Some(value.clone()) };
        Ok(value)
    }
}

fn without_history(t: &Tensor) -> Tensor {
    if t.is_tracked() { t.detach() } else { t.clone() }
}

/// Which history the values of an alias have.
#[derive(Clone, Debug)]
enum History {
    /// That of the storage.
    Main,
    /// That of the parameter whose value the storage has.
    Leaf,
    /// That which a `detach()` started.
    Own(Arc<Mutex<Past>>),
    /// None: a view made within `no_grad`.
    None,
}

/// The steps from a whole storage to an alias.
#[derive(Clone, Debug, Default)]
struct Path {
    before: Option<Arc<Path>>,
    /// The last step, if there is one behind those.
    step: Option<Step>,
    depth: usize,
}

/// Longest path; longer ones become one step.
const MAX_DEPTH: usize = 32;

impl Path {
    fn one(step: Step) -> Path {
        Path { before: None, step: Some(step), depth: 1 }
    }

    fn is_whole(&self) -> bool {
        self.step.is_none() && self.before.is_none()
    }

    fn then(self, step: Step) -> Path {
        let depth = self.depth + 1;
        match self.step {
            None => Path { before: self.before, step: Some(step), depth },
            Some(_) => Path { before: Some(Arc::new(self)), step: Some(step), depth },
        }
    }

    fn steps(&self) -> Vec<&Step> {
        let (mut all, mut next) = (Vec::new(), Some(self));
        while let Some(path) = next {
            all.extend(&path.step);
            next = path.before.as_deref();
        }
        all.reverse();
        all
    }

    /// Where the elements are in a storage of this shape.
    fn layout(&self, whole: &Shape) -> Layout {
        // No path has a step that copies.
        let next = |layout: Layout, step: &&Step| step.layout(&layout).unwrap_or(layout);
        self.steps().iter().fold(Layout::contiguous(whole), next)
    }

    /// Whether the elements are read as those of another dtype.
    fn has_other_bits(&self) -> bool {
        self.steps().iter().any(|step| matches!(step, Step::Bits(_)))
    }
}

/// A tensor of Python that shares a storage.
#[derive(Debug)]
pub(crate) struct Alias {
    storage: Arc<Storage>,
    history: History,
    path: Path,
    /// The path as that of other aliases begins.
    shared_path: OnceLock<Arc<Path>>,
    known: Mutex<Past>,
}

impl Storage {
    fn new(like: &Tensor, scope: u64, latest: Latest) -> Arc<Storage> {
        let is_param = AtomicBool::new(matches!(latest, Latest::Param(..)));
        let state =
            State { latest, main: Past::default(), aliases: Aliases::default(), is_cut: false };
        let (shape, dtype) = (like.shape().clone(), like.dtype());
        let version = AtomicU64::new(0);
        Arc::new(Storage { shape, dtype, scope, version, is_param, state: Mutex::new(state) })
    }

    /// The version, raised if the parameter whose value it has was replaced.
    fn version(&self, state: &mut State) -> u64 {
        let mut version = self.version.load(Relaxed);
        let Latest::Param(param, seen) = &mut state.latest else { return version };
        let now = param.version();
        if now != *seen {
            version += now - *seen;
            *seen = now;
            self.version.store(version, Relaxed);
            if param.shape() != self.shape || param.dtype() != self.dtype {
                // It was converted: the values before are those of the aliases alone.
                self.let_go(state, Latest::Unwritten);
            }
        }
        version
    }

    fn let_go(&self, state: &mut State, latest: Latest) {
        state.latest = latest;
        self.is_param.store(false, Relaxed);
    }

    /// The whole with a history.
    fn whole(&self, state: &mut State, history: &History) -> Result<Tensor> {
        let version = self.version(state);
        let numbers = match &state.latest {
            Latest::Param(param, _) if matches!(history, History::Leaf) => {
                return Ok(param.tensor());
            }
            Latest::Param(param, _) => param.tensor(),
            Latest::Value(value) => value.clone(),
            Latest::Unwritten => {
                let value = self.put_together(state)?;
                state.main = Past { version, value: Some(value.clone()) };
                state.latest = Latest::Value(value.clone());
                value
            }
        };
        match history {
            History::Main | History::Leaf => state.main.current(version, &numbers),
            History::Own(past) => lock(past).current(version, &numbers),
            History::None => Ok(without_history(&numbers)),
        }
    }

    /// The whole, from what the aliases have.
    fn put_together(&self, state: &State) -> Result<Tensor> {
        let mut parts = Vec::new();
        for alias in state.aliases.iter() {
            let Some(value) = lock(&alias.known).value.clone() else { continue };
            let is_main = matches!(alias.history, History::Main | History::Leaf);
            if alias.path.is_whole() && is_main {
                return Ok(value);
            }
            parts.push((is_main, alias, value));
        }
        // Those with the main history last, so that it is that of the whole.
        parts.sort_by_key(|part| part.0);
        let device = parts.last().map(|part| part.2.device().clone());
        let device = device.ok_or_else(|| {
            crate::create::refuse("write", "the storage has no tensor any more".to_owned())
        })?;
        let mut whole = Tensor::zeros(self.shape.clone(), self.dtype, &device);
        for (is_main, alias, value) in parts {
            let value = if is_main { value } else { without_history(&value) };
            whole = alias.put(&whole, &value)?;
        }
        Ok(whole)
    }

    /// The scope that it was made in.
    pub(crate) fn scope(&self) -> u64 {
        self.scope
    }

    /// How often it was written to.
    pub(crate) fn writes(&self) -> u64 {
        self.version(&mut lock(&self.state))
    }

    /// The whole, without history.
    pub(crate) fn value(&self) -> Result<Tensor> {
        self.whole(&mut lock(&self.state), &History::None)
    }

    /// The value now, to undo later writes.
    pub(crate) fn saved(&self) -> Result<Saved> {
        let mut state = lock(&self.state);
        let whole = self.whole(&mut state, &History::Main)?;
        Ok(Saved { whole, is_param: matches!(state.latest, Latest::Param(..)) })
    }

    /// Undoes writes, or replaces the whole by another value of the same shape.
    pub(crate) fn restore(&self, Saved { whole, is_param }: &Saved) -> Result<()> {
        let mut state = lock(&self.state);
        let version = self.version(&mut state) + 1;
        match &mut state.latest {
            Latest::Param(param, seen) if *is_param => {
                param.set(whole)?;
                *seen = param.version();
            }
            _ => {
                state.main = Past { version, value: Some(whole.clone()) };
                state.latest = Latest::Value(whole.clone());
            }
        }
        self.version.store(version, Relaxed);
        Ok(())
    }
}

/// The value of a storage at some time.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    whole: Tensor,
    is_param: bool,
}

impl Saved {
    /// The value of a parameter.
    pub(crate) fn of_param(whole: Tensor) -> Saved {
        Saved { whole, is_param: true }
    }

    /// Another value in its place.
    pub(crate) fn with(&self, whole: Tensor) -> Saved {
        Saved { whole, is_param: self.is_param }
    }
}

impl Alias {
    fn add(storage: Arc<Storage>, history: History, path: Path, known: Past) -> Arc<Alias> {
        let (shared_path, known) = (OnceLock::new(), Mutex::new(known));
        let alias = Arc::new(Alias { storage, history, path, shared_path, known });
        lock(&alias.storage.state).aliases.add(&alias);
        alias
    }

    /// The only alias of a new storage.
    pub(crate) fn of(tensor: &Tensor, scope: u64) -> Arc<Alias> {
        let storage = Storage::new(tensor, scope, Latest::Unwritten);
        let known = Past { version: 0, value: Some(tensor.clone()) };
        Alias::add(storage, History::Main, Path::default(), known)
    }

    /// A parameter as the whole of a storage.
    pub(crate) fn of_param(param: &Param, scope: u64) -> Arc<Alias> {
        let latest = Latest::Param(param.clone(), param.version());
        let storage = Storage::new(&param.tensor(), scope, latest);
        Alias::add(storage, History::Leaf, Path::default(), Past::default())
    }

    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// The value now.
    pub(crate) fn tensor(&self) -> Tensor {
        if !self.storage.is_param.load(Relaxed) {
            let known = lock(&self.known);
            if let Some(value) = &known.value
                && known.version == self.storage.version.load(Relaxed)
            {
                return value.clone();
            }
        }
        // Steps were applied to a tensor of this shape before.
        self.derive().expect("invariant: a view of an equal shape was taken before")
    }

    fn derive(&self) -> Result<Tensor> {
        let mut state = lock(&self.storage.state);
        let version = self.storage.version(&mut state);
        let mut known = lock(&self.known);
        let is_kept = known.version == version || matches!(state.latest, Latest::Unwritten);
        if let Some(value) = known.value.as_ref().filter(|_| is_kept) {
            return Ok(value.clone());
        }
        let mut value = self.storage.whole(&mut state, &self.history)?;
        if self.path.is_whole() && matches!(state.latest, Latest::Param(..)) {
            // The parameter holds it: an old value would be kept here.
            return Ok(value);
        }
        for step in self.path.steps() {
            value = step.apply(&value)?;
        }
        let old = std::mem::replace(&mut *known, Past { version, value: Some(value.clone()) });
        // The old value is freed without the locks.
        drop((known, state));
        drop(old);
        Ok(value)
    }

    /// `whole` with `value` at the elements of this alias, none of which is in the place of another. What is in between
    /// may overlap, as rows of `x.unfold(0, 3, 1)` do: then elements are written by their positions.
    fn put_apart(&self, whole: &Tensor, value: &Tensor) -> Result<Tensor> {
        let mut layout = Layout::contiguous(&self.storage.shape);
        let mut overlaps = false;
        for step in self.path.steps() {
            layout = step.layout(&layout).unwrap_or(layout);
            overlaps |= layout.has_overlap();
        }
        match overlaps {
            false => self.put(whole, value),
            true => Step::Strided(layout).put(whole, &value.bitcast(whole.dtype())?),
        }
    }

    /// `whole` with `value` at the elements of this alias. Of elements in one place one counts.
    fn put(&self, whole: &Tensor, value: &Tensor) -> Result<Tensor> {
        let steps = self.path.steps();
        let mut bases = vec![whole.clone()];
        for step in steps.iter().take(steps.len().saturating_sub(1)) {
            bases.push(step.apply(&bases[bases.len() - 1])?);
        }
        let mut value = value.clone();
        for (step, base) in steps.iter().zip(&bases).rev() {
            value = step.put(base, &value)?;
        }
        Ok(value)
    }

    /// How many elements the storage has.
    pub(crate) fn storage_size(&self) -> usize {
        self.storage.shape.numel()
    }

    /// Where the elements are.
    pub(crate) fn layout(&self) -> Layout {
        self.path.layout(&self.storage.shape)
    }

    /// The path as that of other aliases begins.
    fn start(&self) -> Path {
        let path = || Arc::new(self.path.clone());
        let before = (!self.path.is_whole()).then(|| self.shared_path.get_or_init(path).clone());
        Path { before, step: None, depth: self.path.depth }
    }

    /// Calls `f` with the value now; gives its result and the version of the value. `f` makes tensors and must not call
    /// Python: a lock is held.
    pub(crate) fn with_value<T>(&self, f: impl FnOnce(&Tensor) -> T) -> (T, u64) {
        if !self.storage.is_param.load(Relaxed) {
            let known = lock(&self.known);
            if let Some(value) = &known.value
                && known.version == self.storage.version.load(Relaxed)
            {
                return (f(value), known.version);
            }
        }
        let version = self.version();
        (f(&self.tensor()), version)
    }

    /// A view of this from its value; the value, if a step copies.
    pub(crate) fn view(
        &self,
        steps: Steps,
        version: u64,
        value: Tensor,
    ) -> std::result::Result<Arc<Alias>, Tensor> {
        let is_recorded = is_grad_enabled();
        let value = if is_recorded { value } else { value.detach() };
        let mut path = self.start();
        for step in steps {
            if let Step::Reshape(shape) = &step
                && !path.is_whole()
            {
                let Some(layout) = step.layout(&path.layout(&self.storage.shape)) else {
                    return Err(value);
                };
                let is_all = shape.numel() == self.storage.shape.numel();
                if is_all && layout.is_contiguous() && !path.has_other_bits() {
                    path = Path::default();
                }
            }
            path = path.then(step);
        }
        if path.depth > MAX_DEPTH && !path.has_other_bits() {
            path = Path::one(Step::Strided(path.layout(&self.storage.shape)));
        }
        let history = if is_recorded { self.history.clone() } else { History::None };
        let known = Past { version, value: Some(value) };
        Ok(Alias::add(self.storage.clone(), history, path, known))
    }

    /// A view of positions in the whole storage, of which all have to be there.
    pub(crate) fn strided(&self, layout: Layout) -> PyResult<Arc<Alias>> {
        let refused = |text: String| Err(PyRuntimeError::new_err(text));
        let (size, end) = (self.storage.shape.numel(), layout.end());
        if end > size {
            let (extents, strides): (Vec<usize>, Vec<usize>) = layout.axes.iter().copied().unzip();
            let (offset, bytes) = (layout.offset, self.storage.dtype.size());
            return refused(format!(
                "setStorage: sizes {extents:?}, strides {strides:?}, storage offset {offset}, and itemsize {bytes} \
                 requiring a storage size of {} are out of bounds for storage of size {}",
                end.saturating_mul(bytes),
                size.saturating_mul(bytes)
            ));
        }
        if self.path.has_other_bits() {
            return refused("as_strided: a view as another dtype has no strides here".to_owned());
        }
        let mut state = lock(&self.storage.state);
        let is_lost = matches!(state.latest, Latest::Unwritten)
            && !state.aliases.iter().any(|alias| alias.layout().covers(size));
        if is_lost {
            return refused(
                "as_strided: the tensor that this is a view of is gone, and its other elements with it"
                    .to_owned(),
            );
        }
        let is_recorded = is_grad_enabled();
        let history = if is_recorded { self.history.clone() } else { History::None };
        let version = self.storage.version(&mut state);
        let step = Step::Strided(layout);
        let whole = self.storage.whole(&mut state, &history);
        drop(state);
        let value = Python::attach(|py| caught(py, || step.apply(&whole?)))?;
        let known = Past { version, value: Some(value) };
        Ok(Alias::add(self.storage.clone(), history, Path::one(step), known))
    }

    /// The same elements with the same history, from a value that was computed of this.
    pub(crate) fn same(&self, f: impl FnOnce(&Tensor) -> Tensor) -> Arc<Alias> {
        let (version, value) = (self.version(), f(&self.tensor()));
        let known = Past { version, value: Some(value) };
        Alias::add(self.storage.clone(), self.history.clone(), self.path.clone(), known)
    }

    /// The version that a value read now has.
    pub(crate) fn version(&self) -> u64 {
        match self.storage.is_param.load(Relaxed) {
            true => self.storage.writes(),
            false => self.storage.version.load(Relaxed),
        }
    }

    /// The same elements without history.
    pub(crate) fn detached(&self) -> Arc<Alias> {
        let (version, value) = (self.version(), without_history(&self.tensor()));
        let history = History::Own(Arc::default());
        let known = Past { version, value: Some(value) };
        Alias::add(self.storage.clone(), history, self.path.clone(), known)
    }

    /// Whether both are the same elements with one history.
    pub(crate) fn is_same(&self, other: &Alias) -> bool {
        let same_history = match (&self.history, &other.history) {
            (History::Main, History::Main)
            | (History::Leaf, History::Leaf)
            | (History::None, History::None) => true,
            (History::Own(a), History::Own(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        Arc::ptr_eq(&self.storage, &other.storage)
            && same_history
            && self.layout() == other.layout()
    }

    /// Whether no other alias of the storage exists.
    pub(crate) fn is_alone(&self) -> bool {
        let state = lock(&self.storage.state);
        state.aliases.iter().filter(|alias| !std::ptr::eq(&**alias, self)).count() == 0
    }

    /// Why a value must not be written, if so. Where elements share memory one number may be written to all.
    fn refusal(&self, is_tracked: bool, is_number: bool) -> Option<&'static str> {
        let mut state = lock(&self.storage.state);
        let _ = self.storage.version(&mut state);
        if state.is_cut {
            return Some(CUT);
        }
        if is_grad_enabled() {
            match (&self.history, &state.latest) {
                (History::None, _) if is_tracked || state.is_main_tracked() => {
                    return Some(NO_GRAD_VIEW);
                }
                (History::Leaf, Latest::Param(param, _)) if param.is_trainable() => {
                    return Some(if self.path.is_whole() { LEAF } else { VIEW_OF_LEAF });
                }
                (History::Leaf, Latest::Param(..)) if is_tracked => return Some(NO_HISTORY),
                _ => {}
            }
        }
        drop(state);
        (!is_number && !self.path.is_whole() && self.layout().has_overlap()).then_some(OVERLAP)
    }

    /// Whether the results of a traced function, which have no history, can be written to argument number `i`.
    pub(crate) fn check_results(&self, i: usize) -> PyResult<()> {
        let text = match self.refusal(false, false) {
            Some(text @ (OVERLAP | CUT)) => text.to_owned(),
            _ if is_grad_enabled()
                && !matches!(self.history, History::Leaf)
                && self.tensor().is_tracked() =>
            {
                format!(
                    "jit: tensor {i} is written to and has a history, which results of a traced function have not: pass \
                     it detached, or call the function within no_grad()"
                )
            }
            _ => return Ok(()),
        };
        Err(PyRuntimeError::new_err(text))
    }

    /// Writes a value of this shape and dtype; whether it is one number everywhere is said too.
    pub(crate) fn write(&self, py: Python<'_>, value: &Tensor, is_number: bool) -> PyResult<()> {
        if let Some(text) = self.refusal(value.is_tracked(), is_number) {
            return Err(PyRuntimeError::new_err(text));
        }
        scope::note(py, &self.storage)?;
        caught(py, || self.write_unchecked(value, is_grad_enabled()))
    }

    /// Writes without asking whether it is allowed; with the history of the value, or without.
    pub(crate) fn write_unchecked(&self, value: &Tensor, with_history: bool) -> Result<()> {
        let mut state = lock(&self.storage.state);
        let history = match &self.history {
            history if with_history => history.clone(),
            _ => History::None,
        };
        let whole = self.storage.whole(&mut state, &history)?;
        let value = if matches!(history, History::None) { value.detach() } else { value.clone() };
        let before = whole;
        let mut whole = self.put_apart(&before, &value)?;
        if before.is_tracked() && !whole.is_tracked() {
            // All of it was replaced: it still depends on what was there, with a gradient of zeros.
            let zeros = |_: &[Tensor], _: &Tensor, dy: &Tensor| Ok(vec![Some(dy.zeros_like())]);
            whole = whole.with_gradient(&[&before], zeros)?;
        }
        let version = self.storage.version(&mut state) + 1;
        let mut old = Vec::new();
        match &mut state.latest {
            Latest::Param(param, seen) => {
                param.set(&whole)?;
                *seen = param.version();
            }
            latest => old.push(std::mem::replace(latest, Latest::Value(whole.clone()))),
        }
        let is_param = matches!(state.latest, Latest::Param(..));
        let is_known = value.is_tracked() == whole.is_tracked();
        let now = Past { version, value: Some(whole) };
        let mut pasts = Vec::new();
        match &history {
            History::Leaf if is_param => {}
            History::Main | History::Leaf => pasts.push(std::mem::replace(&mut state.main, now)),
            History::Own(past) => pasts.push(std::mem::replace(&mut *lock(past), now)),
            History::None => {}
        }
        self.storage.version.store(version, Relaxed);
        // Old values of others are of no use any more.
        pasts.extend(state.aliases.iter().map(|alias| std::mem::take(&mut *lock(&alias.known))));
        if !matches!(history, History::None) && !is_param && is_known {
            *lock(&self.known) = Past { version, value: Some(value) };
        }
        // Old values are freed without the lock.
        drop(state);
        drop((old, pasts));
        Ok(())
    }

    /// Counts a write of the value that is there.
    pub(crate) fn touch(&self) {
        let mut state = lock(&self.storage.state);
        let before = self.storage.version(&mut state);
        self.storage.version.store(before + 1, Relaxed);
        let raise = |past: &mut Past| past.version += u64::from(past.version == before);
        raise(&mut state.main);
        for alias in state.aliases.iter() {
            raise(&mut lock(&alias.known));
            if let History::Own(past) = &alias.history {
                // Aliases of one history share it: only the first finds the old version.
                raise(&mut lock(past));
            }
        }
    }

    /// Cuts off the history of the storage: `detach_()`. Not of a view, which has that of its base.
    pub(crate) fn forget_history(&self, py: Python<'_>) -> PyResult<()> {
        if !self.path.is_whole() {
            let text = "Can't detach views in-place. Use detach() instead.";
            return Err(PyRuntimeError::new_err(text));
        }
        scope::note(py, &self.storage)?;
        let whole = without_history(&self.tensor());
        let mut state = lock(&self.storage.state);
        let version = self.storage.version(&mut state) + 1;
        let now = Past { version, value: Some(whole.clone()) };
        let old = (
            std::mem::replace(&mut state.main, now),
            std::mem::replace(&mut state.latest, Latest::Value(whole)),
        );
        self.storage.version.store(version, Relaxed);
        drop(state);
        drop(old);
        Ok(())
    }

    /// Whether the storage has the value of this parameter.
    pub(crate) fn follows(&self, param: &Param) -> bool {
        let mut state = lock(&self.storage.state);
        self.storage.version(&mut state);
        matches!(&state.latest, Latest::Param(known, _) if known.is_same(param))
    }

    /// Gives the storage to a parameter whose value is that of this alias, if that is the whole of it. The alias that
    /// the parameter is then.
    pub(crate) fn become_param(&self, param: &Param) -> Option<Arc<Alias>> {
        let mut state = lock(&self.storage.state);
        let is_free = !matches!(state.latest, Latest::Param(..));
        if !self.path.is_whole() || !is_free {
            return None;
        }
        let known = lock(&self.known).clone();
        if known.value.as_ref().is_some_and(Tensor::is_tracked) {
            // The history of the tensor goes on beside that of the parameter.
            state.main = known;
        }
        state.latest = Latest::Param(param.clone(), param.version());
        self.storage.is_param.store(true, Relaxed);
        drop(state);
        Some(Alias::add(self.storage.clone(), History::Leaf, Path::default(), Past::default()))
    }

    /// Takes the storage from its parameter: the value stays.
    pub(crate) fn leave_param(&self) {
        let mut state = lock(&self.storage.state);
        let version = self.storage.version(&mut state);
        if let Latest::Param(param, _) = &state.latest {
            let value = param.tensor().detach();
            self.storage.let_go(&mut state, Latest::Value(value.clone()));
            state.main = Past { version, value: Some(value) };
        }
    }

    /// Notes that a leaf was made of this view, which shares memory no longer.
    pub(crate) fn cut(&self) {
        if !self.is_alone() {
            lock(&self.storage.state).is_cut = true;
        }
    }
}
