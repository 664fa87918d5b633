//! Kernels of several computations that know nothing of one another.
//!
//! One launch may do the work of many: [`join`] writes kernels one after the other into a joint
//! one, whose arguments they share; [`separate`] finds the computations in a kernel again. Two
//! stretches of the top level belong to one computation if one uses what the other defines, or if
//! both access a buffer argument that one of them writes; all others may run in any order, or at
//! once. What can be computed anew anywhere (arguments, literals and pure ops on these) belongs to
//! none.

use super::kernel::{Builder, Kernel, ParamInfo, VarInfo};
use super::op::{Op, Type, Value};

/// A kernel with the slots that its arguments have in the joint one.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Slots of its `Param`s.
    pub params: &'a [u16],
    /// Slots of its `Var`s.
    pub vars: &'a [u16],
}

/// One computation of a kernel as a kernel of its own.
#[derive(Clone, Debug)]
pub struct Separated {
    /// The kernel, with only the arguments it uses.
    pub kernel: Kernel,
    /// Slots its `Param`s had.
    pub params: Vec<u16>,
    /// Slots its `Var`s had.
    pub vars: Vec<u16>,
}

/// One kernel that does what the members do one after the other, on these arguments.
pub fn join(name: &str, params: &[ParamInfo], vars: &[VarInfo], members: &[Member<'_>]) -> Kernel {
    let mut b = Builder::new(name).with_arguments(params.to_vec(), vars.to_vec());
    let params: Vec<Value> = params
        .iter()
        .enumerate()
        .map(|(slot, p)| {
            let op = Op::Param { slot: slot as u16, access: p.access };
            b.push(op, Type::scalar(p.dtype))
        })
        .collect();
    let vars: Vec<Value> = vars
        .iter()
        .enumerate()
        .map(|(slot, v)| b.push(Op::Var { slot: slot as u16 }, Type::scalar(v.dtype)))
        .collect();
    for member in members {
        let mut map: Vec<Value> = Vec::with_capacity(member.kernel.ops().len());
        for (_, op, ty) in member.kernel.iter() {
            let new = match op {
                Op::Param { slot, .. } => params[member.params[slot as usize] as usize],
                Op::Var { slot } => vars[member.vars[slot as usize] as usize],
                _ => b.emit(op.map(|v| map[v.idx()]), ty),
            };
            map.push(new);
        }
    }
    b.finish()
}

/// The computations of a kernel in the order of their first ops; `None` if it is only one.
pub fn separate(kernel: &Kernel) -> Option<Vec<Separated>> {
    if kernel.has_extents() {
        // Its buffers would be without the scalars that say how long they are.
        return None;
    }
    let computations = computations(kernel);
    (computations.len() > 1)
        .then(|| computations.iter().map(|members| extract(kernel, members)).collect())
}

/// For each computation which ops are its own, without those that belong to none.
pub fn computations(kernel: &Kernel) -> Vec<Vec<bool>> {
    let ends = kernel.region_ends();
    let items = items(kernel, &ends);
    let mut sets = Sets { parent: (0..items.len()).collect() };
    let mut item_of = vec![usize::MAX; kernel.ops().len()];
    let mut accesses: Vec<Vec<(usize, bool)>> = vec![Vec::new(); kernel.params().len()];
    for (number, item) in items.iter().enumerate() {
        for i in item.clone() {
            item_of[i] = number;
            let op = kernel.ops()[i];
            for operand in op.operands() {
                let other = item_of[operand.idx()];
                if other != usize::MAX {
                    sets.unite(number, other);
                }
            }
            let (buf, writes) = match op {
                Op::Load { buf, .. } => (buf, false),
                Op::Store { buf, .. } | Op::Atomic { buf, .. } => (buf, true),
                _ => continue,
            };
            if let Op::Param { slot, .. } = kernel.op(buf) {
                accesses[slot as usize].push((number, writes));
            }
        }
    }
    for list in accesses.iter().filter(|list| list.iter().any(|access| access.1)) {
        list.windows(2).for_each(|pair| sets.unite(pair[0].0, pair[1].0));
    }
    let mut found: Vec<(usize, Vec<bool>)> = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let root = sets.root(number);
        let at = found.iter().rposition(|f| f.0 == root).unwrap_or_else(|| {
            found.push((root, vec![false; kernel.ops().len()]));
            found.len() - 1
        });
        found[at].1[item.clone()].fill(true);
    }
    found.into_iter().map(|f| f.1).collect()
}

/// Stretches of the top level: regions, and single ops that cannot be computed anew anywhere.
fn items(kernel: &Kernel, ends: &[usize]) -> Vec<std::ops::Range<usize>> {
    let mut anywhere = vec![false; kernel.ops().len()];
    let mut items = Vec::new();
    let mut i = 0;
    while i < ends.len() {
        let op = kernel.ops()[i];
        anywhere[i] = match op {
            Op::Param { .. } | Op::Var { .. } => true,
            _ => op.is_pure() && op.operands().all(|x| anywhere[x.idx()]),
        };
        if !anywhere[i] {
            items.push(i..ends[i] + 1);
        }
        i = ends[i] + 1;
    }
    items
}

/// Disjoint sets of numbers.
struct Sets {
    parent: Vec<usize>,
}

impl Sets {
    fn root(&mut self, mut x: usize) -> usize {
        while self.parent[x] != x {
            self.parent[x] = self.parent[self.parent[x]];
            x = self.parent[x];
        }
        x
    }

    fn unite(&mut self, x: usize, y: usize) {
        let (x, y) = (self.root(x), self.root(y));
        self.parent[x.max(y)] = x.min(y);
    }
}

/// The kernel of the given ops and of what they need.
fn extract(kernel: &Kernel, members: &[bool]) -> Separated {
    let mut needed = members.to_vec();
    for i in (0..needed.len()).rev() {
        if needed[i] {
            kernel.ops()[i].operands().for_each(|x| needed[x.idx()] = true);
        }
    }
    let mut b = Builder::new(kernel.name());
    let (mut params, mut vars) = (Vec::new(), Vec::new());
    let mut map = vec![Value(0); kernel.ops().len()];
    for (value, op, ty) in kernel.iter().filter(|(v, ..)| needed[v.idx()]) {
        map[value.idx()] = match op {
            Op::Param { slot, .. } => {
                params.push(slot);
                b.declare(kernel.params()[slot as usize])
            }
            Op::Var { slot } => {
                vars.push(slot);
                let info = kernel.vars()[slot as usize];
                b.var(info.dtype, info.min, info.max)
            }
            _ => b.emit(op.map(|v| map[v.idx()]), ty),
        };
    }
    Separated { kernel: b.finish(), params, vars }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::property_tests::{Rng, compare, inputs, run};
    use crate::passes::samples;

    fn slots(n: usize) -> Vec<u16> {
        (0..n as u16).collect()
    }

    #[test]
    fn what_is_joined_comes_apart_again_and_computes_the_same() {
        let all = samples::all();
        for pair in all.windows(2) {
            let (mut params, mut vars) = (Vec::new(), Vec::new());
            let mut places = Vec::new();
            for kernel in pair {
                let shift = |n: usize, by: usize| -> Vec<u16> {
                    slots(n).iter().map(|s| s + by as u16).collect()
                };
                places.push((
                    shift(kernel.params().len(), params.len()),
                    shift(kernel.vars().len(), vars.len()),
                ));
                params.extend_from_slice(kernel.params());
                vars.extend_from_slice(kernel.vars());
            }
            let members: Vec<Member<'_>> = pair
                .iter()
                .zip(&places)
                .map(|(kernel, (params, vars))| Member { kernel, params, vars })
                .collect();
            let joint = join("joint", &params, &vars, &members);
            let input = inputs(&joint, &mut Rng(5));
            let cut = pair[0].params().len();
            let mut expected = run(&pair[0], &input[..cut], &[]);
            expected.extend(run(&pair[1], &input[cut..], &[]));
            compare(&joint, (&expected, &run(&joint, &input, &[])), None).unwrap();

            let parts = separate(&joint).expect("two computations");
            assert!(parts.len() >= 2);
            let members: Vec<Member<'_>> = parts
                .iter()
                .map(|p| Member { kernel: &p.kernel, params: &p.params, vars: &p.vars })
                .collect();
            let again = join("again", joint.params(), joint.vars(), &members);
            compare(&joint, (&expected, &run(&again, &input, &[])), None).unwrap();
        }
    }

    #[test]
    fn what_reads_a_written_buffer_stays_with_its_writer() {
        let text = "kernel k\nbuffer 0 : f32[4] readwrite\nbuffer 1 : f32[4] write
            %p param 0 readwrite : f32\n%q param 1 write : f32\n%4 const 4 : i64\n%x const 1.0 : f32
            %i loop parallel %4\n%s store %p[%i], %x : f32\n%e end %i
            %j loop parallel %4\n%y load %p[%j] : f32\n%t store %q[%j], %y : f32\n%f end %j";
        let kernel: Kernel = text.parse().unwrap();
        assert!(separate(&kernel).is_none());
    }
}
