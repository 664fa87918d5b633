//! Whether a loop nest touches each element at most once.
//!
//! The index of an access is a sum over atoms. Where no two choices of the atoms give one sum, the
//! index determines them, as digits follow from a number. Determined quotients and remainders determine
//! their dividend, whose own atoms follow in turn. An access touches each element once if its index
//! determines the counters of all loops around it.

use super::{Atom, Form, Ranges};
use crate::affine::gcd;
use crate::ir::op::{Op, Value};
use crate::ops::BinaryOp;
use rustc_hash::FxHashSet;

/// Values that an index determines.
#[derive(Default)]
struct Determined {
    atoms: FxHashSet<Atom>,
    /// Sums whose value is determined, and not yet all of whose atoms.
    sums: Vec<Form>,
    /// Dividends and divisors of determined quotients.
    quotients: Vec<(Form, i64)>,
    /// `(x, a, m)`: `x / a % m` is determined.
    remainders: Vec<(Form, i64, i64)>,
}

impl Ranges<'_> {
    /// Whether no two iterations of the loops around a load or store of one element touch the same element.
    /// `false` where that is not proved.
    pub(crate) fn is_distinct(&self, access: Value) -> bool {
        let (Op::Load { mut index, .. } | Op::Store { mut index, .. }) = self.kernel.op(access)
        else {
            return false;
        };
        while let Op::Guard { index: inner, .. } = self.kernel.op(index) {
            index = inner;
        }
        if self.kernel.ty(access).is_vector() || self.kernel.ty(index).is_vector() {
            return false;
        }
        let mut determined = Determined::default();
        self.determine(&mut determined, self.forms[index.idx()].clone());
        let counts = |&region: &Value| {
            matches!(self.kernel.op(region), Op::Loop { .. }) && self.get(region).max > 0
        };
        let mut counters = self.regions.enclosing(access).filter(counts);
        counters.all(|counter| determined.atoms.contains(&Atom::Value(counter)))
    }

    /// Adds what follows from the value of a sum, until nothing more does.
    fn determine(&self, known: &mut Determined, sum: Form) {
        known.sums.push(sum);
        loop {
            let before = (known.atoms.len(), known.remainders.len());
            for sum in std::mem::take(&mut known.sums) {
                let rest = self.parts(&known.atoms, &sum);
                for part in rest {
                    match part.terms[..] {
                        [(atom, _)] => self.determine_atom(known, atom),
                        _ => known.sums.push(part),
                    }
                }
            }
            self.rejoin(known);
            if before == (known.atoms.len(), known.remainders.len()) {
                return;
            }
        }
    }

    /// The smallest sums of terms whose values the sum determines, without terms that are known.
    fn parts(&self, known: &FxHashSet<Atom>, sum: &Form) -> Vec<Form> {
        let is_unknown = |atom: Atom| match atom {
            // A scalar argument is the same in all iterations.
            Atom::Value(value) => {
                !known.contains(&atom) && !matches!(self.kernel.op(value), Op::Var { .. })
            }
            Atom::Lane(_) => true,
        };
        let mut terms: Vec<(Atom, i64)> = sum.terms.to_vec();
        terms.retain(|term| is_unknown(term.0));
        terms.sort_by_key(|term| term.1.unsigned_abs());
        let span = |&(atom, factor): &(Atom, i64)| {
            let range = match atom {
                Atom::Value(value) => self.get(value),
                Atom::Lane(_) => return i128::MAX,
            };
            let distance = range.max.saturating_sub(range.min).max(0);
            distance.saturating_mul(factor.unsigned_abs().into())
        };
        let mut parts = Vec::new();
        while !terms.is_empty() {
            // The longest prefix that stays below every step of the terms behind it.
            let mut step = 0;
            let separate = (1..terms.len()).rev().find(|&at| {
                step = gcd(step, terms[at].1.unsigned_abs());
                let below = terms[..at].iter().map(span).fold(0, i128::saturating_add);
                below < step.into()
            });
            let part = terms.split_off(separate.unwrap_or(0));
            let one = |&(atom, factor): &(Atom, i64)| Form::term(atom, factor);
            let part = part.iter().map(one).reduce(|sum, term| sum.wrapping_plus(&term));
            parts.extend(part);
        }
        parts
    }

    fn determine_atom(&self, known: &mut Determined, atom: Atom) {
        if !known.atoms.insert(atom) {
            return;
        }
        let Atom::Value(value) = atom else { return };
        let Op::Binary { op, x, y } = self.kernel.op(value) else { return };
        let Some(by) = self.divisor(x, y) else { return };
        let (dividend, divided) = self.dividend(x);
        match (op, divided.checked_mul(by)) {
            (BinaryOp::Div, Some(by)) => known.quotients.push((dividend, by)),
            (BinaryOp::Rem, Some(_)) => known.remainders.push((dividend, divided, by)),
            _ => {}
        }
    }

    /// The constant that a number that is not negative is divided by.
    fn divisor(&self, x: Value, y: Value) -> Option<i64> {
        let by = self.plain[y.idx()].constant().and_then(|by| i64::try_from(by).ok());
        by.filter(|&by| by > 0 && self.plain[x.idx()].min >= 0)
    }

    /// `(y, d)` with `value = y / d`: the product `d` of the divisors of nested divisions by constants, or 1.
    fn dividend(&self, x: Value) -> (Form, i64) {
        let form = &self.forms[x.idx()];
        if let Some((Atom::Value(value), 1)) = form.single()
            && let Op::Binary { op: BinaryOp::Div, x, y } = self.kernel.op(value)
            && let Some(by) = self.divisor(x, y)
        {
            let (dividend, divided) = self.dividend(x);
            if let Some(by) = divided.checked_mul(by) {
                return (dividend, by);
            }
        }
        (form.clone(), 1)
    }

    /// `x / a` follows from `x / (a * m)` and `x / a % m`.
    fn rejoin(&self, known: &mut Determined) {
        let quotients = &mut known.quotients;
        known.remainders.retain(|(x, a, m)| {
            let Some(whole) = a.checked_mul(*m) else { return true };
            let is_zero = || self.query(&[]).form(x).max < i128::from(whole);
            let follows = quotients.iter().any(|(y, by)| y == x && *by == whole) || is_zero();
            if follows {
                match a {
                    1 => known.sums.push(x.clone()),
                    _ => quotients.push((x.clone(), *a)),
                }
            }
            !follows
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::generate::Random;
    use crate::ir::interp::{Options, interpret};
    use crate::ir::{Access, Builder, Kernel, LoopKind};
    use crate::{DType, Scalar};

    /// Stores to sums of counters, quotients and remainders of them, under a random nest.
    fn random_store(rng: &mut Random) -> (Kernel, Value) {
        let mut b = Builder::new("stores");
        let out = b.param(DType::I32, 1 << 12, Access::Write);
        let depth = 1 + rng.below(3);
        let mut atoms = Vec::new();
        for axis in 0..depth {
            let len = b.index(1 + rng.below(6) as i64);
            atoms.push(b.open_loop(LoopKind::Parallel, axis as u8, len));
        }
        let digits = rng.below(4);
        for _ in 0..digits {
            let mut x = atoms[rng.below(atoms.len())];
            if rng.below(2) == 0 {
                let (other, by) = (atoms[rng.below(depth)], b.index(1 + rng.below(6) as i64));
                let scaled = b.binary(BinaryOp::Mul, x, by);
                x = b.binary(BinaryOp::Add, scaled, other);
            }
            let by = b.index(1 + rng.below(6) as i64);
            atoms.push(b.binary(BinaryOp::Div, x, by));
            atoms.push(b.binary(BinaryOp::Rem, x, by));
        }
        let mut index = b.index(0);
        let chosen = 1 + rng.below(atoms.len());
        for _ in 0..chosen {
            let (atom, by) = (atoms[rng.below(atoms.len())], b.index(rng.below(9) as i64));
            let term = b.binary(BinaryOp::Mul, atom, by);
            index = b.binary(BinaryOp::Add, index, term);
        }
        let one = b.constant(Scalar::from(1i32));
        let store = b.store(out, index, one);
        (0..depth).for_each(|_| b.close());
        (b.finish(), store)
    }

    /// Proved nests pass the interpreter's check that no element is stored twice.
    #[test]
    fn distinct_accesses_store_no_element_twice() {
        let (mut proved, mut refuted, mut open) = (0, 0, 0);
        for seed in 0..6000 {
            let (kernel, store) = random_store(&mut Random::new(seed));
            let is_distinct = Ranges::of(&kernel).is_distinct(store);
            let mut buffers = vec![vec![0u8; 4 << 12]];
            let once = interpret(&kernel, &mut buffers, &[], &Options::default()).is_ok();
            assert!(once || !is_distinct, "seed {seed}\n{kernel}");
            proved += u32::from(is_distinct);
            refuted += u32::from(!once);
            open += u32::from(once && !is_distinct);
        }
        assert!(proved > 1000 && refuted > 1000 && open < proved, "{proved} {refuted} {open}");
    }

    /// The index of a permuted position, as an epilogue has it: all digits of one counter, in another order.
    #[test]
    fn digits_in_any_order_are_distinct() {
        let kernel = |digits: &str| -> (Kernel, Value) {
            let text = format!(
                "kernel k\nbuffer 0 : f32[60] write\n%r param 0 write : f32\n%60 const 60 : i64
                %20 const 20 : i64\n%5 const 5 : i64\n%4 const 4 : i64\n%3 const 3 : i64\n%12 const 12 : i64
                %x const 1 : f32\n%i loop parallel %60\n%a div %i, %20 : i64\n%t div %i, %5 : i64
                %b rem %t, %4 : i64\n%c rem %i, %5 : i64\n{digits}%s store %r[%j], %x : f32\n%e end %i"
            );
            let kernel: Kernel = text.parse().unwrap();
            let store = kernel.iter().find(|op| matches!(op.1, Op::Store { .. })).unwrap().0;
            (kernel, store)
        };
        let all =
            "%p mul %c, %12 : i64\n%q mul %b, %3 : i64\n%u add %p, %q : i64\n%j add %u, %a : i64\n";
        let two = "%p mul %c, %12 : i64\n%j add %p, %a : i64\n";
        for (digits, expected) in [(all, true), (two, false)] {
            let (kernel, store) = kernel(digits);
            assert_eq!(Ranges::of(&kernel).is_distinct(store), expected, "{kernel}");
        }
    }
}
