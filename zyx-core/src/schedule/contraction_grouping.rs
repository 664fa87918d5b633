//! Contractions in the partition: which library call computes one, and what joins it.
//!
//! A contraction the device offers a kernel for is a group of its own, or takes the place of the
//! loop nest of its only elementwise user, which becomes its epilogue. Its operands are stored, but
//! for one that it computes itself (`prologue.rs`).

use super::contract::{
    Contraction, Recognizer, recognize, recognize_biased, recognize_rounded, recognize_transposed,
};
use super::convolution::{self, interleaved};
use super::partition::{ContractGroup, Group, Kind, Partitioner, Root, Use};
use super::pull::Scope;
use super::reason::Reason;
use crate::graph::{Node, NodeId};

impl Partitioner<'_> {
    /// The contraction that `id` is, if the device has a kernel for it. Windows are a convolution first:
    /// as a contraction its zeros have to be stored.
    pub(super) fn library(&mut self, id: NodeId) -> Option<Contraction> {
        let outer = self.indices.algebra.allocate_from(Scope::Contraction.first());
        let found = self.library_call(id);
        self.indices.algebra.allocate_from(outer);
        found
    }

    fn library_call(&mut self, id: NodeId) -> Option<Contraction> {
        let offers = self.offers;
        let never_first =
            !self.caps.convolutions || convolution::is_product(self.graph, &mut self.indices, id);
        let convolution = if never_first { None } else { self.convolution(id) };
        let first = convolution.as_ref().is_some_and(convolution::comes_first);
        if first
            && let Some(call) = convolution.as_ref().map(Contraction::call)
            && offers(&call)
        {
            return convolution;
        }
        let contraction = self.recognized(id, recognize).filter(|c| offers(&c.call()));
        let contraction = contraction.or_else(|| self.followed(id).filter(|c| offers(&c.call())));
        contraction.or_else(|| {
            let convolution = if never_first { self.convolution(id) } else { convolution };
            convolution.filter(|c| !first && offers(&c.call()))
        })
    }

    /// The convolution that `id` is, if a library is predicted to take less time than generated code.
    fn convolution(&mut self, id: NodeId) -> Option<Contraction> {
        if !self.caps.convolutions {
            return None;
        }
        let only = |x: NodeId| self.uses[x.idx()] == 1 && !self.must_store[x.idx()];
        let strided = interleaved::recognize(self.graph, &mut self.indices, id, only);
        let found = strided.or_else(|| self.recognized(id, convolution::recognize));
        found.filter(|c| convolution::is_sooner(c, self.caps))
    }

    /// The contraction of which `id` is what a library does with the sums, where those are not an epilogue.
    fn followed(&mut self, id: NodeId) -> Option<Contraction> {
        let only = |x: NodeId| self.uses[x.idx()] == 1 && !self.must_store[x.idx()];
        let found = match self.graph.node(id) {
            Node::Binary { .. } if self.caps.biases => {
                recognize_biased(self.graph, &mut self.indices, id, only)
            }
            Node::Permute { .. } | Node::Cast { .. }
                if self.must_store[id.idx()] && !self.options.epilogues =>
            {
                recognize_transposed(self.graph, &mut self.indices, id, only)
            }
            _ => None,
        };
        found.filter(|_| !self.follows_flash(id))
    }

    /// Whether the sums that `id` is made of are a flash attention's.
    fn follows_flash(&mut self, id: NodeId) -> bool {
        let mut below: Vec<NodeId> = self.graph.node(id).sources().collect();
        while let Some(x) = below.pop() {
            if self.flash(x).is_some() {
                return true;
            }
            if let Node::Reshape { x } | Node::Cast { x } | Node::Permute { x, .. } =
                self.graph.node(x)
            {
                below.push(x);
            }
        }
        false
    }

    fn recognized(&mut self, id: NodeId, recognize: Recognizer) -> Option<Contraction> {
        match self.graph.node(id) {
            Node::Reduce { .. } => recognize(self.graph, &mut self.indices, id),
            // Where conversions are not epilogues.
            Node::Cast { .. } if !self.options.epilogues => {
                let only = |x: NodeId| self.uses[x.idx()] == 1 && !self.must_store[x.idx()];
                recognize_rounded(self.graph, &mut self.indices, id, only, recognize)
            }
            _ => None,
        }
    }

    /// Gives a contraction to the library: with its only elementwise user as epilogue, or alone.
    pub(super) fn place_contraction(&mut self, contraction: Contraction, instances: &[Use]) {
        let id = contraction.node;
        let computed = self.computed_operand(&contraction);
        let stored = |side: &usize| Some(*side) != computed;
        let operands = (0..2).filter(stored).map(|side| contraction.operands[side]);
        let operands: Vec<NodeId> = operands.chain(contraction.bias).collect();
        operands.iter().for_each(|x| self.must_store[x.idx()] = true);
        let must = self.must_store[id.idx()];
        let mut why = if must { "it is a result" } else { "nothing follows" };
        let epilogue = instances.iter().copied().find(|i| {
            let refusal = match self.options.epilogues && contraction.convolution.is_none() {
                true => self.epilogue_refusal(id, i, instances, must),
                false => Some("library kernels of the device take nothing along"),
            };
            why = refusal.unwrap_or(why);
            refusal.is_none()
        });
        self.reasons.insert(id, Reason::Library(why));
        let kind = |at| {
            let contraction = contraction.clone();
            Kind::Contract(Box::new(ContractGroup { contraction, at, computed }))
        };
        let group = match epilogue {
            Some(instance) => {
                let kind = kind(Some(instance.tuple));
                self.groups[instance.group as usize].kind = kind;
                instance.group
            }
            None => {
                let group = self.groups.len() as u32;
                let outer = self.indices.algebra.allocate_from(Scope::Group.first());
                let (axes, tuple) = self.indices.axes(&self.graph.shape(id).clone());
                let next_counter = self.indices.algebra.allocate_from(outer);
                self.loops.push(axes.clone());
                self.groups.push(Group {
                    kind: kind(None),
                    roots: vec![Root { node: id, tuple }],
                    axes,
                    space: self.graph.shape(id).numel(),
                    nodes: 1,
                    reduces: 1,
                    next_counter,
                    first_root: id,
                    last_root: id,
                });
                self.reads.push(Vec::new());
                self.buffers.push(Default::default());
                self.producer[id.idx()] = Some(group);
                group
            }
        };
        self.total += self.costs.contracted(id);
        for &operand in &operands {
            self.total += self.costs.moved(operand, usize::MAX);
        }
        if epilogue.is_none() {
            self.total += self.costs.launch;
        }
        self.reads[group as usize].extend(&operands);
        for operand in operands {
            self.operand_of.entry(operand).or_default().push(group);
        }
        if let Some(side) = computed {
            self.compute_operand(group, &contraction, side);
        }
        // With an epilogue and other users the value itself is stored as well.
        if let (Some(instance), true) = (epilogue, must || instances.len() > 1) {
            let host = &mut self.groups[group as usize];
            host.roots.push(Root { node: id, tuple: instance.tuple });
            host.first_root = host.first_root.min(id);
            self.producer[id.idx()] = Some(group);
        }
        if self.producer[id.idx()].is_some() {
            self.total += self.costs.moved(id, usize::MAX);
            self.count_reads(id, instances, Some(group));
            for instance in instances.iter().filter(|i| i.group != group) {
                self.reads[instance.group as usize].push(id);
            }
        }
    }

    /// Why the group of `instance` is no epilogue: it has to be elementwise over exactly the
    /// contraction's elements.
    fn epilogue_refusal(
        &mut self,
        id: NodeId,
        instance: &Use,
        all: &[Use],
        must: bool,
    ) -> Option<&'static str> {
        let group = &self.groups[instance.group as usize];
        let numel = self.graph.shape(id).numel();
        match group.kind {
            Kind::Loops => {}
            Kind::Contract(_) => return Some("what follows is another contraction's epilogue"),
            Kind::Scan | Kind::Scatter | Kind::Flash(_) => {
                return Some("what follows is no loop nest");
            }
        }
        // Only reductions make roots with fewer elements than the iteration space.
        if group.reduces > 0 {
            return Some("what follows reduces");
        }
        if group.space != numel {
            return Some("what follows has another number of elements");
        }
        if instance.guarded {
            return Some("what follows pads or gathers it");
        }
        let last = group.last_root;
        let shared = must || all.len() > 1;
        if shared && !self.others_are_later(id, instance, all, last) {
            return Some("other users may have to run before what follows");
        }
        let flat = self.indices.flat(self.graph, id, instance.tuple);
        let same = self.indices.algebra.is_bijection(&flat, numel);
        (!same).then_some("what follows does not use every element once")
    }
}
