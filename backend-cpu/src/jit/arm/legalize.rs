//! What is changed before registers are allocated: additions behind products, and addresses.
//!
//! A fused multiply-add of vectors adds to the register it writes. So the addend is moved there first,
//! which is no instruction where it ends there; then the factors live past the move, and none of them
//! is in the way.
//!
//! Lowering writes `[base + index * scale + displacement]` anywhere. A load or store here takes an index
//! or a displacement, and scales an index by its own width alone. One such access costs an addition
//! before it (`memory`). Several of one block that differ in the displacement alone, as the copies of an
//! unrolled body do, share that addition: it becomes a register, and they are so many bytes from there.
//!
//! Of several vectors in one cache line only one is asked for ahead. A load moves up to the load of the
//! vector before it in memory, if that is near: one instruction loads both.
//!
//! A block ends where control may come from elsewhere, and a sum is only good as long as its parts are.

use super::super::machine::{Addr, Base, Class, Inst, Place, Reg, Role};
use super::memory::{encodable, pairs};
use rustc_hash::{FxHashMap, FxHashSet};

/// Operations that are looked at for the other load of a pair.
const NEAR: usize = 8;
/// Logarithm of the bytes of a cache line.
const LINE: u32 = 6;

/// Where accesses are, up to the displacement: base, index and scale, and which of the values that these
/// registers hold over time are meant.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Spot {
    base: Option<Reg>,
    index: Reg,
    shift: u8,
    /// How often base and index were written before.
    written: (u32, u32),
    block: u32,
}

/// Counts writes of registers and blocks in one walk.
struct Walk {
    written: Vec<u32>,
    block: u32,
}

impl Walk {
    fn new(registers: usize) -> Self {
        Self { written: vec![0; registers], block: 0 }
    }

    fn spot(&self, addr: &Addr) -> Option<Spot> {
        let count = |reg: Reg| self.written[reg.0 as usize];
        let (base, written) = match addr.base {
            Base::Reg(base) => (Some(base), count(base)),
            Base::Frame => (None, 0),
            Base::None | Base::Const(..) => return None,
        };
        let Addr { index, shift, .. } = *addr;
        let written = (written, if index.is_some() { count(index) } else { return None });
        Some(Spot { base, index, shift, written, block: self.block })
    }

    /// Goes over an operation.
    fn pass(&mut self, inst: &mut Inst) {
        if matches!(inst, Inst::Label { .. } | Inst::LoopHead { .. }) {
            self.block += 1;
        }
        inst.visit(|reg, role| {
            if matches!(role, Role::Def | Role::Mod)
                && let Some(count) = self.written.get_mut(reg.0 as usize)
            {
                *count += 1;
            }
        });
    }
}

/// The address of a load or store and its bytes.
fn access(inst: &mut Inst) -> Option<(&mut Addr, u8)> {
    match inst {
        Inst::VecLoad { addr, bytes, .. } | Inst::VecStore { addr, bytes, .. } => {
            Some((addr, *bytes))
        }
        Inst::Extend { kind, src: Place::Mem(addr), .. } => Some((addr, kind.bytes())),
        Inst::Store { width, addr, .. } => Some((addr, 1 << *width)),
        Inst::Prefetch { addr } => Some((addr, 8)),
        _ => None,
    }
}

/// Prepares the operations of a function.
pub(super) fn legalize(insts: &mut Vec<Inst>, classes: &mut Vec<Class>) {
    move_addends(insts);
    share_addresses(insts, classes);
    pair_loads(insts);
}

fn move_addends(insts: &mut Vec<Inst>) {
    let mut out = Vec::with_capacity(insts.len() + insts.len() / 4);
    for mut inst in std::mem::take(insts) {
        if let Inst::Fma { shape, dst, a, b, c: Place::Reg(c) } = &mut inst
            && shape.lanes > 1
            && ![*a, *c].contains(dst)
            && *b != Place::Reg(*dst)
        {
            out.push(Inst::MoveVec { dst: *dst, src: *c });
            *c = *dst;
        }
        out.push(inst);
    }
    *insts = out;
}

/// Accesses of one spot.
#[derive(Clone, Copy, Default)]
struct Accesses {
    all: u32,
    /// Those that take more than one instruction.
    costly: u32,
}

/// Gives addresses that several accesses share a register.
fn share_addresses(insts: &mut Vec<Inst>, classes: &mut Vec<Class>) {
    let mut shared: FxHashMap<Spot, Accesses> = FxHashMap::default();
    let mut walk = Walk::new(classes.len());
    for inst in insts.iter_mut() {
        if let Some((addr, bytes)) = access(inst)
            && let Some(spot) = walk.spot(addr)
        {
            let count = shared.entry(spot).or_default();
            count.all += 1;
            count.costly += u32::from(!encodable(addr, bytes));
        }
        walk.pass(inst);
    }
    shared.retain(|_, count| count.costly > 0 && count.all > 1);
    if shared.is_empty() {
        return;
    }
    let mut sums: FxHashMap<Spot, Reg> = FxHashMap::default();
    let mut lines: FxHashSet<(Spot, i32)> = FxHashSet::default();
    let mut out = Vec::with_capacity(insts.len() + shared.len());
    let mut walk = Walk::new(classes.len());
    for mut inst in std::mem::take(insts) {
        let is_hint = matches!(inst, Inst::Prefetch { .. });
        if let Some((addr, bytes)) = access(&mut inst)
            && let Some(spot) = walk.spot(addr).filter(|spot| shared.contains_key(spot))
        {
            if is_hint && !lines.insert((spot, addr.disp >> LINE)) {
                continue;
            }
            let sum = *sums.entry(spot).or_insert_with(|| {
                classes.push(Class::Gpr);
                let dst = Reg(classes.len() as u32 - 1);
                out.push(Inst::Lea { dst, addr: Addr { disp: 0, ..*addr } });
                dst
            });
            let near = Addr::at(sum, addr.disp);
            if encodable(&near, bytes) {
                *addr = near;
            }
        }
        walk.pass(&mut inst);
        out.push(inst);
    }
    *insts = out;
}

/// The register and address of a load of a full vector.
fn full_load(inst: &Inst) -> Option<(Reg, Addr)> {
    match *inst {
        Inst::VecLoad { dst, addr, bytes: 16 } => Some((dst, addr)),
        _ => None,
    }
}

fn pair_loads(insts: &mut [Inst]) {
    let mut i = 0;
    while i < insts.len() {
        let near = i + 1..insts.len().min(i + NEAR);
        let second = full_load(&insts[i]).and_then(|(dst, addr)| {
            let partner = near.clone().find(|&j| {
                full_load(&insts[j])
                    .is_some_and(|(other, next)| other != dst && addr.plus(16) == next)
            })?;
            let free = pairs(&addr)
                && insts[i..partner].iter().all(|it| !in_the_way(*it, &insts[partner]));
            free.then_some(partner)
        });
        match second {
            Some(second) => {
                insts[i + 1..=second].rotate_right(1);
                i += 2;
            }
            None => i += 1,
        }
    }
}

/// Whether a load cannot move in front of an operation.
fn in_the_way(mut inst: Inst, load: &Inst) -> bool {
    let plain = match inst {
        Inst::Vector { .. } | Inst::SelectVec { .. } | Inst::Fma { .. } | Inst::MoveVec { .. } => {
            true
        }
        Inst::Alu { .. } | Inst::Lea { .. } | Inst::Const { .. } | Inst::Prefetch { .. } => true,
        _ => full_load(&inst).is_some(),
    };
    let Some((dst, addr)) = full_load(load) else { return true };
    let mut meets = false;
    inst.visit(|reg, role| {
        let writes = matches!(role, Role::Def | Role::Mod);
        meets |= *reg == dst || writes && addr.base == Base::Reg(*reg);
    });
    !plain || meets
}

#[cfg(test)]
mod tests {
    use super::super::super::machine::{Elem, Extend, Shape, Vop};
    use super::*;

    const BASE: Reg = Reg(0);
    const INDEX: Reg = Reg(1);

    fn load(disp: i32) -> Inst {
        let addr = Addr { base: Base::Reg(BASE), index: INDEX, shift: 0, disp };
        Inst::VecLoad { dst: Reg(2), addr, bytes: 16 }
    }

    fn after(mut insts: Vec<Inst>) -> Vec<String> {
        let mut classes = vec![Class::Gpr, Class::Gpr, Class::Vec, Class::Vec, Class::Vec];
        legalize(&mut insts, &mut classes);
        insts
            .into_iter()
            .map(|inst| match inst {
                Inst::Lea { dst, .. } => format!("sum {}", dst.0),
                Inst::VecLoad { addr: Addr { base: Base::Reg(base), index, disp, .. }, .. } => {
                    format!("load {} {} {disp}", base.0, index.is_some())
                }
                Inst::MoveVec { dst, src } => format!("move {} {}", dst.0, src.0),
                Inst::Fma { dst, c: Place::Reg(c), .. } => format!("add to {} {}", dst.0, c.0),
                Inst::Vector { .. } => "vector".to_owned(),
                Inst::VecStore { .. } => "store".to_owned(),
                _ => "other".to_owned(),
            })
            .collect()
    }

    #[test]
    fn copies_of_a_body_share_a_sum() {
        let found = after(vec![load(0), load(16), load(32)]);
        assert_eq!(found, ["sum 5", "load 5 false 0", "load 5 false 16", "load 5 false 32"]);
    }

    #[test]
    fn one_access_computes_its_address_itself() {
        assert_eq!(after(vec![load(16)]), ["load 0 true 16"]);
    }

    #[test]
    fn one_vector_of_a_line_is_asked_for() {
        let hint = |disp| {
            let addr = Addr { base: Base::Reg(BASE), index: INDEX, shift: 0, disp };
            Inst::Prefetch { addr }
        };
        let found = after(vec![hint(256), load(0), hint(272), load(16), hint(320)]);
        let expected = ["sum 5", "other", "load 5 false 0", "load 5 false 16", "other"];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_sum_ends_with_its_block_and_with_its_parts() {
        let step = Inst::Extend { kind: Extend::None64, dst: INDEX, src: Place::Reg(INDEX) };
        let found = after(vec![load(16), load(32), step, load(16), load(48)]);
        let second = ["other", "sum 6", "load 6 false 16", "load 6 false 48"];
        assert_eq!(found[..3], ["sum 5", "load 5 false 16", "load 5 false 32"]);
        assert_eq!(found[3..], second);
    }
    const FOUR: Shape = Shape { elem: Elem::F32, lanes: 4 };

    /// A load from a register to a register.
    fn near(dst: u32, disp: i32) -> Inst {
        Inst::VecLoad { dst: Reg(dst), addr: Addr::at(BASE, disp), bytes: 16 }
    }

    #[test]
    fn a_load_moves_up_to_that_of_its_neighbour() {
        let (a, b) = (Reg(2), Place::Reg(Reg(2)));
        let square = Inst::Vector { op: Vop::Mul, shape: FOUR, dst: Reg(4), a, b };
        let found = after(vec![near(2, 0), square, near(3, 16)]);
        assert_eq!(found, ["load 0 false 0", "load 0 false 16", "vector"]);
        // Not where its register is in use, nor over a store.
        let found = after(vec![near(2, 0), square, near(4, 16)]);
        assert_eq!(found, ["load 0 false 0", "vector", "load 0 false 16"]);
        let store = Inst::VecStore { addr: Addr::at(INDEX, 0), src: Reg(2), bytes: 16 };
        let found = after(vec![near(2, 0), store, near(3, 16)]);
        assert_eq!(found, ["load 0 false 0", "store", "load 0 false 16"]);
    }

    #[test]
    fn an_addend_moves_to_the_sum() {
        let sum = |dst, c| {
            let (dst, c) = (Reg(dst), Place::Reg(Reg(c)));
            Inst::Fma { shape: FOUR, dst, a: Reg(2), b: Place::Reg(Reg(2)), c }
        };
        assert_eq!(after(vec![sum(4, 3)]), ["move 4 3", "add to 4 4"]);
        assert_eq!(after(vec![sum(3, 3)]), ["add to 3 3"]);
        // The factor is read behind the move.
        assert_eq!(after(vec![sum(2, 3)]), ["add to 2 3"]);
    }
}
