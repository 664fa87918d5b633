//! One program for kernels that differ in numbers alone: the same computation at other sizes.
//!
//! The first kernel of a [`Family`] is compiled as it is. When a plan of a graph is made that is equal to
//! an earlier one but for sizes, its kernels become general: the numbers that differ are scalar arguments,
//! and one program serves each further size that has been planned. The program of a kernel is then
//! the general one with the kernel's numbers ([`Program::given`]). Each kernel is verified for itself, so
//! a general program accesses nothing but what kernels may.
//!
//! Results do not depend on which sizes came before: a general program serves those kernels whose float sums
//! passes would order as they order its own ([`SumOrder`]). Others have programs of their own, and so have those
//! that the general program would compute much more slowly, by the model of time. Of numbers of one
//! magnitude, which passes treat alike, one is looked at.

use super::device::{CHECKS, Device, PASSES};
use super::erased::{More, Program};
use crate::error::Result;
use crate::hal::{Call, CompileError, FLASH_VARS, Part, PartWork, Signature, lock, on_threads};
use crate::ir::{Family, Kernel, Member, Outline, ParamInfo, Rewritten, Verified};
use crate::lru::Lru;
use crate::prepare;
use crate::tune::{SumOrder, model, optimize};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock};

/// Kernels of a plan that share a program if they differ in places alone.
const MANY: usize = 4;

/// The part of the caches' limit beyond which families without programs go; a larger one where loops keep their
/// lengths, since families of kernels as they are have no programs there and are needed all the same.
const SHARE: usize = 8;
const LARGER_SHARE: usize = 2;

/// Least predicted time of a kernel, in nanoseconds, from which on its own program is compared with a general one. It
/// is chosen, not derived: at 20 us a general program that is half again as slow loses 10 ms in a thousand launches.
const LONG_NS: f64 = 20_000.0;

/// Times the predicted time of a kernel's own program that a general one may take.
const MAX_SLOWDOWN: f64 = 1.5;

/// A family, with what serves all of it.
#[derive(Clone)]
pub(super) struct Known {
    family: Arc<Family>,
    /// Its kernel, if the members are parts of calls, or the program of that kernel.
    kernel: Option<Arc<Kernel>>,
    program: Option<Program>,
    /// What passes do to the sums of that kernel.
    order: Arc<OnceLock<SumOrder>>,
    /// That kernel made fast; `None` if the family has none.
    fast: Arc<OnceLock<Option<Kernel>>>,
    /// Whether members of these magnitudes have their sums in the same order.
    alike: Arc<Mutex<FxHashMap<Box<[u16]>, bool>>>,
    /// Whether a compiler refused the kernel.
    refused: bool,
}

impl Known {
    fn of(family: Family) -> Known {
        let (order, fast, alike) = Default::default();
        Known {
            family: Arc::new(family),
            kernel: None,
            program: None,
            order,
            fast,
            alike,
            refused: false,
        }
    }

    pub(super) fn is_unused(&self) -> bool {
        self.program.as_ref().is_none_or(Program::is_unique)
    }

    pub(super) fn into_program(self) -> Option<Program> {
        self.program
    }
}

/// A kernel to make a program of.
struct Wanted {
    verified: Verified,
    outline: Outline,
    /// If it was made with longer loops, the kernel that it does the work of.
    shorter: Option<Verified>,
}

/// What becomes of a kernel where those that share programs have loops of the same lengths.
enum Padded {
    /// No length varies.
    AsItIs,
    /// One with longer loops, and a family for it.
    Longer(Box<(Wanted, Family)>),
    /// It has a program of its own.
    Alone,
}

/// Kernels within calls; those that cannot be made general with none.
type WantedKernels<'k> = FxHashMap<&'k Arc<Kernel>, Option<Wanted>>;

/// Does something with each kernel that a library runs within a call.
fn each_kernel<'c>(call: &'c Call, f: &mut dyn FnMut(&'c Arc<Kernel>)) {
    call.kernels().for_each(&mut *f);
    if let Call::Fused { parts } = call {
        for part in parts {
            match &part.work {
                PartWork::Kernel(kernel) => f(kernel),
                PartWork::Call(call) => each_kernel(call, f),
            }
        }
    }
}

impl Device {
    /// Whether kernels of other sizes share programs here: not where the same operations need not round alike in two
    /// kernels.
    pub(crate) fn shares_programs(&self) -> bool {
        !self.caps().contracts && self.compiles_by_default()
    }

    /// Whether kernels that share programs have loops of the same lengths. On a GPU they do: loops of unknown length
    /// are spread over no threads.
    fn keeps_lengths(&self) -> bool {
        self.caches().keep_lengths.load(Relaxed)
    }

    /// From now on kernels that share programs have loops of the same lengths here, as on a GPU.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn keep_lengths(&self) {
        self.caches().keep_lengths.store(true, Relaxed);
    }

    /// Keeps the numbers of a kernel that is compiled as it is.
    pub(super) fn note_kernel(&self, kernel: &Kernel) {
        if self.shares_programs()
            && let Some(outline) = Outline::of_unverified(kernel)
        {
            self.family(&outline, false);
        }
    }

    /// Keeps the numbers of the kernels of a call.
    pub(super) fn note_call(&self, call: &Call) {
        if !self.shares_programs() || self.keeps_lengths() {
            return;
        }
        each_kernel(call, &mut |kernel| {
            // Guards are part of the outline.
            if kernel.members().is_none()
                && let Ok(verified) = self.verified(kernel)
            {
                self.note_kernel(&verified);
            }
        });
    }

    /// The family of an outline, with this one as a member if it is to serve it.
    fn family(&self, outline: &Outline, serve: bool) -> Known {
        self.family_or(outline, serve, || self.new_family(outline))
    }

    /// The same, if need be a `new` one.
    fn family_or(&self, outline: &Outline, serve: bool, new: impl FnOnce() -> Family) -> Known {
        let mut families = lock(&self.caches().families);
        let family = match families.get(outline.key()) {
            Some(known) if !serve || known.family.serves(outline) => {
                return known.clone();
            }
            Some(known) => {
                let wider = known.family.with(outline);
                if !wider.serves(outline) {
                    return Known { refused: true, program: None, ..known.clone() };
                }
                wider
            }
            None => new(),
        };
        self.keep_family(&mut families, outline, family)
    }

    /// Keeps a family, that of this outline.
    fn keep_family(
        &self,
        families: &mut Lru<Kernel, Known>,
        outline: &Outline,
        family: Family,
    ) -> Known {
        let bytes = outline.key().bytes() + family.bytes();
        let known = Known::of(family);
        families.insert(outline.key().clone(), known.clone(), bytes);
        let share = if self.keeps_lengths() { LARGER_SHARE } else { SHARE };
        let excess = families.bytes().saturating_sub(self.cache_limit() / share);
        if excess > 0 {
            let none = |known: &Known, used| known.program.is_none().then_some(used);
            drop(families.drop_oldest(excess + excess / 8, 0, none));
        }
        known
    }

    /// Of one member.
    fn new_family(&self, outline: &Outline) -> Family {
        Family::new(outline, self.keeps_lengths())
    }

    /// Whether most of these kernels are served by general programs that there are: sizes that are equal by
    /// chance make another graph.
    pub(crate) fn are_served(&self, kernels: &[&Kernel]) -> bool {
        let mut families = lock(&self.caches().families);
        if !families.iter().any(|(_, known)| known.program.is_some()) {
            return false;
        }
        // Where loops keep their lengths, families of kernels as they are have no programs.
        let is_general = |known: &Known| match self.keeps_lengths() {
            true => !known.family.is_single(),
            false => known.program.is_some(),
        };
        let mut is_served = |kernel: &&&Kernel| {
            let Some(outline) = Outline::of_unverified(kernel) else { return false };
            let known = families.get(outline.key()).filter(|known| is_general(known));
            known.is_some_and(|known| known.family.serves(&outline))
        };
        let served = kernels.iter().filter(|kernel| is_served(kernel)).count();
        served > 0 && served * 4 >= kernels.len() * 3
    }

    /// The programs of the kernels of a plan. Of kernels that differ in places alone, as those of the steps of a loop
    /// do, many share one.
    ///
    /// # Errors
    /// As for programs of kernels as they are.
    pub(crate) fn programs_by_places(&self, kernels: &[&Kernel]) -> Result<Vec<Program>> {
        if self.caps().contracts || !self.compiles_by_default() {
            return self.programs(kernels);
        }
        let shape =
            |kernel: &Kernel| [kernel.ops().len(), kernel.params().len(), kernel.vars().len()];
        let mut alike: FxHashMap<[usize; 3], usize> = FxHashMap::default();
        kernels.iter().for_each(|kernel| *alike.entry(shape(kernel)).or_default() += 1);
        let mut groups: FxHashMap<Kernel, Vec<(usize, Outline)>> = FxHashMap::default();
        for (i, kernel) in kernels.iter().enumerate().filter(|(_, k)| alike[&shape(k)] >= MANY) {
            if let Some(outline) = Outline::of_unverified(kernel) {
                groups.entry(outline.key().clone()).or_default().push((i, outline));
            }
        }
        groups.retain(|_, members| members.len() >= MANY && self.notes_places(members));
        let mut chosen: Vec<usize> = groups.values().flatten().map(|(i, _)| *i).collect();
        chosen.sort_unstable();
        self.shared_programs(kernels, &chosen)
    }

    /// Whether kernels of one outline differ in places alone, and their family serves them all from now on.
    fn notes_places(&self, members: &[(usize, Outline)]) -> bool {
        let with_all = |family: Family| {
            members.iter().fold(family, |family, (_, outline)| match family.serves(outline) {
                true => family,
                false => family.with(outline),
            })
        };
        let differ_in_places = |family: &Family| !family.is_single() && family.varies_in_places();
        let outline = &members[0].1;
        let known = lock(&self.caches().families).get(outline.key()).cloned();
        let wider = known.as_ref().map(|known| with_all((*known.family).clone()));
        let wider = wider.filter(differ_in_places);
        // Families of other sizes are kept where sizes share programs.
        let own = || with_all(self.new_family(outline));
        let may_replace = known.is_none() || !self.shares_programs();
        let Some(family) = wider.or_else(|| may_replace.then(own).filter(differ_in_places)) else {
            return false;
        };
        if !known.is_some_and(|known| members.iter().all(|(_, x)| known.family.serves(x))) {
            self.keep_family(&mut lock(&self.caches().families), outline, family);
        }
        true
    }

    /// The programs of kernels of a graph that was planned at another size before.
    ///
    /// # Errors
    /// As for programs of kernels as they are.
    pub(crate) fn general_programs(&self, kernels: &[&Kernel]) -> Result<Vec<Program>> {
        match self.shares_programs() {
            true => self.shared_programs(kernels, &(0..kernels.len()).collect::<Vec<_>>()),
            false => self.programs_by_places(kernels),
        }
    }

    /// The programs of kernels; the `chosen` ones are those of families where these serve them.
    fn shared_programs(&self, kernels: &[&Kernel], chosen: &[usize]) -> Result<Vec<Program>> {
        if chosen.is_empty() {
            return self.programs(kernels);
        }
        let known = |kernel: &&Kernel| lock(&self.caches().programs).get(*kernel).cloned();
        let mut found: Vec<Option<Program>> = kernels.iter().map(known).collect();
        let mut members: Vec<(usize, Wanted)> = Vec::new();
        let missing = chosen.iter().copied().filter(|&i| found[i].is_none());
        let missing: Vec<usize> = missing.collect();
        let nanoseconds = |i: usize| CHECKS * kernels[missing[i]].ops().len();
        let wanted = on_threads(missing.len(), nanoseconds, |i| self.wanted(kernels[missing[i]]));
        for (&i, wanted) in missing.iter().zip(wanted) {
            if let Some(wanted) = wanted? {
                self.family(&wanted.outline, true);
                members.push((i, wanted));
            }
        }
        // Families are complete now.
        if self.keeps_lengths() {
            let nanoseconds = |i: usize| CHECKS * members[i].1.verified.ops().len();
            let padded = on_threads(members.len(), nanoseconds, |i| self.padded(&members[i].1));
            let mut longer = Vec::with_capacity(members.len());
            for (member, padded) in members.into_iter().zip(padded) {
                match padded? {
                    Padded::AsItIs => longer.push(member),
                    Padded::Longer(padded) => {
                        let (wanted, family) = *padded;
                        self.family_or(&wanted.outline, true, || family);
                        longer.push((member.0, wanted));
                    }
                    Padded::Alone => {}
                }
            }
            members = longer;
        }
        let mut made: FxHashMap<&Kernel, Known> = FxHashMap::default();
        for (_, member) in &members {
            let known = || self.family(&member.outline, true);
            made.entry(member.outline.key()).or_insert_with(known);
        }
        let each = members.iter().map(|(_, member)| (made[member.outline.key()].clone(), member));
        let alike = self.round_alike(&each.collect::<Vec<_>>());
        let members =
            members.iter().zip(alike).filter_map(|(member, alike)| alike.then_some(member));
        let members: Vec<&(usize, Wanted)> = members.collect();
        self.compile_families(&members, &mut made);
        for (i, member) in members {
            let known = &made[member.outline.key()];
            let own = known.family.member(&member.outline);
            if let (Some(program), Some(own)) = (&known.program, own) {
                let signature = Signature::of(&member.verified);
                let mut more = More::default();
                more.add(member.verified.vars().len(), own);
                let program = program.clone();
                found[*i] = Some(program.given(kernels[*i].name(), Some(signature), more));
            }
        }
        let rest = (0..kernels.len()).filter(|&i| found[i].is_none());
        let rest: Vec<usize> = rest.collect();
        let own: Vec<&Kernel> = rest.iter().map(|&i| kernels[i]).collect();
        for (i, program) in rest.into_iter().zip(self.programs(&own)?) {
            found[i] = Some(program);
        }
        Ok(found.into_iter().map(|found| found.expect("invariant: all were found")).collect())
    }

    /// A kernel as one of a family, if it can be.
    fn wanted(&self, kernel: &Kernel) -> Result<Option<Wanted>, CompileError> {
        let verified = self.verified(kernel)?;
        // What takes several bindings does so by its length.
        let bytes = |info: &ParamInfo| info.len.saturating_mul(info.dtype.size() as u64);
        let bound = verified.params().iter().all(|info| bytes(info) <= self.caps().max_binding);
        let Some(outline) = Outline::of(&verified).filter(|_| bound) else { return Ok(None) };
        Ok(Some(Wanted { verified, outline, shorter: None }))
    }

    /// The kernel with longer loops that does the work of this one.
    fn padded(&self, own: &Wanted) -> Result<Padded, CompileError> {
        let known = self.family(&own.outline, true);
        let Some(padded) = known.family.padded(&own.outline, own.verified.name()) else {
            return Ok(Padded::AsItIs);
        };
        let verified = self.rewritten(padded)?;
        let Some(outline) = Outline::with_lengths(&verified) else { return Ok(Padded::Alone) };
        let Some(family) = known.family.of_padded(&own.outline, &outline) else {
            return Ok(Padded::Alone);
        };
        let shorter = Some(own.verified.clone());
        Ok(Padded::Longer(Box::new((Wanted { verified, outline, shorter }, family))))
    }

    /// For each member of a family whether the family's kernel adds floats in the order that it does.
    fn round_alike(&self, members: &[(Known, &Wanted)]) -> Vec<bool> {
        let magnitudes = |(known, member): &(Known, &Wanted)| match member.shorter {
            None => known.family.magnitudes(&member.outline),
            Some(_) => known.family.alignments(&member.outline),
        };
        let classes: Vec<Option<Box<[u16]>>> = members.iter().map(magnitudes).collect();
        let found = |i: usize| lock(&members[i].0.alike).get(classes[i].as_ref()?).copied();
        let new: Vec<usize> = (0..members.len()).filter(|&i| found(i).is_none()).collect();
        let looked = on_threads(
            new.len(),
            |i| PASSES * members[new[i]].1.verified.ops().len(),
            |i| {
                let (known, member) = &members[new[i]];
                let own = || match known.family.kernel("order") {
                    Some(general) => SumOrder::of(&general, self.caps()),
                    None => SumOrder::default(),
                };
                let own = || known.order.get_or_init(own);
                let order = |kernel: &Verified| SumOrder::of(kernel, self.caps());
                classes[new[i]].is_some()
                    && !self.is_slower(known, member)
                    && match &member.shorter {
                        None => own().serves(&order(&member.verified)),
                        Some(shorter) => own().serves_shorter(&order(shorter)),
                    }
            },
        );
        for (&i, alike) in new.iter().zip(looked) {
            if let Some(class) = &classes[i] {
                lock(&members[i].0.alike).entry(class.clone()).or_insert(alike);
            }
        }
        (0..members.len()).map(|i| found(i).unwrap_or(false)).collect()
    }

    /// Whether the family's kernel is predicted to take much longer than the member's own.
    fn is_slower(&self, known: &Known, member: &Wanted) -> bool {
        let (kernel, caps) = (member.shorter.as_ref().unwrap_or(&member.verified), self.caps());
        if model::least(kernel, caps) < LONG_NS {
            return false;
        }
        let fast = || Some(optimize(&*known.family.kernel("time")?, caps));
        let (Some(fast), Some(own)) =
            (known.fast.get_or_init(fast), known.family.member(&member.outline))
        else {
            return false;
        };
        let general = model::predict_at(fast, own.values(), own.lens(), caps);
        general > MAX_SLOWDOWN * model::predict(&optimize(kernel, caps), caps)
    }

    /// Compiles what serves families and is not there yet, all at once if all can be.
    fn compile_families<'k>(
        &self,
        members: &[&'k (usize, Wanted)],
        made: &mut FxHashMap<&'k Kernel, Known>,
    ) {
        let mut missing: Vec<(&Kernel, Verified)> = Vec::new();
        for (_, Wanted { verified, outline, .. }) in members {
            let known = &made[outline.key()];
            let done = known.program.is_some() || known.refused || known.family.is_single();
            if done || missing.iter().any(|(key, _)| *key == outline.key()) {
                continue;
            }
            let general = known.family.kernel(verified.name());
            let ready = |general: Rewritten| -> Result<Verified, CompileError> {
                self.legal(&self.optimized(&self.rewritten(general)?))
            };
            match general.map(ready) {
                // What takes too long for one launch has parts that its own numbers tell.
                Some(Ok(ready)) if !prepare::is_too_long(&ready, self.caps()) => {
                    missing.push((outline.key(), ready));
                }
                _ => self.refuse(outline.key(), made),
            }
        }
        let (keys, kernels): (Vec<&Kernel>, Vec<Verified>) = missing.into_iter().unzip();
        if keys.is_empty() {
            return;
        }
        match self.compile_now(kernels) {
            Ok(programs) => {
                for (key, program) in keys.into_iter().zip(programs) {
                    self.count_program(&program);
                    let mut families = lock(&self.caches().families);
                    families.grow(key, program.bytes());
                    if let Some(known) = made.get_mut(key) {
                        known.program = Some(program);
                        if let Some(kept) = families.get(key)
                            && Arc::ptr_eq(&kept.family, &known.family)
                        {
                            *kept = known.clone();
                        }
                    }
                }
                self.fit_caches();
            }
            Err(_) => keys.into_iter().for_each(|key| self.refuse(key, made)),
        }
    }

    /// From now on kernels of this family are compiled one by one.
    fn refuse(&self, key: &Kernel, made: &mut FxHashMap<&Kernel, Known>) {
        for known in made.get_mut(key).into_iter().chain(lock(&self.caches().families).get(key)) {
            known.refused = true;
        }
    }

    /// Library kernels for the calls of a graph that was planned at another size before: kernels within are
    /// general. None for what the device refuses.
    pub(crate) fn general_libraries(&self, calls: &[&Call]) -> Vec<Option<Program>> {
        if !self.shares_programs() || self.keeps_lengths() {
            return self.libraries(calls);
        }
        let (mut kernels, mut seen) = (Vec::new(), FxHashSet::default());
        let mut add = |kernel| {
            if seen.insert(kernel) {
                kernels.push(kernel);
            }
        };
        calls.iter().for_each(|call| each_kernel(call, &mut add));
        let nanoseconds = |i: usize| CHECKS * kernels[i].ops().len();
        let wanted = |i: usize| self.wanted(kernels[i]).ok().flatten();
        let mut wanted = on_threads(kernels.len(), nanoseconds, wanted);
        for wanted in wanted.iter().flatten() {
            self.family(&wanted.outline, true);
        }
        // Families are complete now.
        let known = |wanted: &Wanted| self.family(&wanted.outline, true);
        let members = wanted.iter().flatten().map(|wanted| (known(wanted), wanted));
        let mut alike = self.round_alike(&members.collect::<Vec<_>>()).into_iter();
        for wanted in &mut wanted {
            wanted.take_if(|_| !alike.next().unwrap_or(false));
        }
        let wanted: WantedKernels = kernels.iter().copied().zip(wanted).collect();
        let general = |call: &&Call| {
            let mut more = More::default();
            match self.general_call(call, &wanted, &mut more) {
                Some(general) if !more.members.is_empty() => (general, more),
                _ => ((*call).clone(), More::default()),
            }
        };
        let (general, more): (Vec<Call>, Vec<More>) = calls.iter().map(general).unzip();
        let programs = self.libraries(&general.iter().collect::<Vec<_>>());
        let given = |((program, more), call): ((Option<Program>, More), &&Call)| match program {
            program if more.members.is_empty() => program,
            Some(program) => Some(program.given(&call.name(), None, more)),
            None => self.library(call),
        };
        programs.into_iter().zip(more).zip(calls).map(given).collect()
    }

    /// The call with general kernels, and the numbers these take.
    fn general_call(&self, call: &Call, all: &WantedKernels, more: &mut More) -> Option<Call> {
        let mut call = call.clone();
        let (kernels, given) = match &mut call {
            Call::Contract { prologue, epilogue, .. } => {
                let prologue = prologue.as_mut().map(|prologue| &mut prologue.kernel);
                ([prologue, epilogue.as_mut()], [PROLOGUE, EPILOGUE])
            }
            Call::Flash { update, finish, .. } => ([Some(update), Some(finish)], [FLASH_VARS; 2]),
            Call::Convolve(_) | Call::Attend(_) | Call::Raw(_) => return None,
            Call::Fused { parts } => {
                let count = |part: &Part| part.scalars.iter().map(|&i| i + 1).max().unwrap_or(0);
                let mut scalars = parts.iter().map(count).max().unwrap_or(0);
                for part in parts {
                    let own = part.scalars.len();
                    let mut new = More::default();
                    match &mut part.work {
                        PartWork::Kernel(kernel) => {
                            if let Some((general, member)) = self.general_kernel(kernel, all) {
                                *kernel = general;
                                new.add(own, member);
                            }
                        }
                        PartWork::Call(call) => match self.general_call(call, all, &mut new) {
                            Some(general) => *call = general,
                            None => new = More::default(),
                        },
                    }
                    for (place, value) in new.scalars {
                        part.scalars.insert(place as usize, scalars);
                        more.scalars.push((scalars.into(), value));
                        scalars += 1;
                    }
                    more.members.extend(new.members);
                }
                return Some(call);
            }
        };
        let mut scalars = 0;
        for (kernel, given) in kernels.into_iter().zip(given) {
            let Some(kernel) = kernel else { continue };
            scalars += kernel.vars().len() - given;
            if let Some((general, member)) = self.general_kernel(kernel, all) {
                let numbers = member.values().len();
                *kernel = general;
                more.add(scalars, member);
                scalars += numbers;
            }
        }
        Some(call)
    }

    /// The general kernel of a kernel of a call and the member of its family, if there is one.
    fn general_kernel(
        &self,
        kernel: &Arc<Kernel>,
        all: &WantedKernels,
    ) -> Option<(Arc<Kernel>, Arc<Member>)> {
        let Wanted { outline, .. } = all.get(kernel)?.as_ref()?;
        let known = self.family(outline, true);
        if known.refused || known.family.is_single() {
            return None;
        }
        let member = known.family.member(outline)?;
        let general = match known.kernel {
            Some(kernel) => kernel,
            None => {
                let general = Arc::new((*known.family.kernel(kernel.name())?).clone());
                if let Some(kept) = lock(&self.caches().families).get(outline.key()) {
                    kept.kernel = Some(general.clone());
                }
                general
            }
        };
        Some((general, member))
    }
}

/// Scalars that the library gives to prologues and epilogues.
const PROLOGUE: usize = 8;
const EPILOGUE: usize = 6;
