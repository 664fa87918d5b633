//! Kernels that users write as SPIR-V modules.
//!
//! Vulkan takes valid modules only, and drivers crash at others. Read here: the form of the instructions, the
//! entry point, its groups, the bindings and push constants that it uses, and what it needs of a device.
//! That the module is valid otherwise is the author's promise.

use crate::caps::Facts;
use ash::vk::SubgroupFeatureFlags as Subgroup;
use rspirv::dr::{Function, Instruction, Module, Operand};
use rspirv::spirv::{
    BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, MAGIC_NUMBER, Op, StorageClass,
    Word,
};
use rustc_hash::{FxHashMap, FxHashSet};
use zyx_core::hal::{CompileError, Language, RawKernel};

/// Languages of raw kernels.
pub(crate) const LANGUAGES: &[Language] = &[Language::SpirV];

/// Words of a module before its instructions.
const HEADER_WORDS: usize = 5;

/// Bytes of a scalar in the push constants.
const SCALAR_BYTES: usize = 8;

/// The words of a module that has what its declaration says, for a device.
///
/// # Errors
/// Names what the module or the device lacks.
pub(crate) fn words(kernel: &RawKernel, facts: &Facts) -> Result<Vec<u32>, CompileError> {
    let words = read(&kernel.code).map_err(|log| kernel.error(log))?;
    let module = rspirv::dr::load_words(&words)
        .map_err(|state| kernel.error(format!("malformed module: {state}")))?;
    check(kernel, &module, facts).map_err(|log| kernel.error(log))?;
    Ok(words)
}

/// Words from bytes, little-endian.
fn read(code: &[u8]) -> Result<Vec<u32>, String> {
    let (words, rest) = code.as_chunks::<4>();
    if !rest.is_empty() || words.len() < HEADER_WORDS {
        return Err(format!("{} bytes are no module: a module is words, at least 5", code.len()));
    }
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    match words[0] {
        MAGIC_NUMBER => Ok(words),
        first if first.swap_bytes() == MAGIC_NUMBER => {
            Err("the module is big-endian; little-endian words are needed".to_owned())
        }
        first => Err(format!("the first word is {first:#010x}, not {MAGIC_NUMBER:#010x}")),
    }
}

fn check(kernel: &RawKernel, module: &Module, facts: &Facts) -> Result<(), String> {
    let version = module.header.as_ref().map_or((0, 0), |header| header.version());
    if version > (1, facts.spirv_minor) {
        let minor = facts.spirv_minor;
        return Err(format!("SPIR-V {}.{}; the device knows 1.{minor}", version.0, version.1));
    }
    for capability in module.capabilities.iter().flat_map(|c| &c.operands) {
        if let &Operand::Capability(capability) = capability
            && !has_capability(capability, facts)
        {
            return Err(format!("the device lacks the capability {capability:?}, or it is off"));
        }
    }
    let info = Info::of(module);
    let entry = info.entry(&kernel.name)?;
    let threads = info.threads(entry)?;
    if threads != kernel.threads {
        return Err(format!("groups of {:?}, but the module has {threads:?}", kernel.threads));
    }
    let limits = facts.max_local_sizes;
    if threads.iter().zip(limits).any(|(&n, limit)| n > limit) {
        return Err(format!("groups of {threads:?}, limit {limits:?}"));
    }
    if kernel.params.len() > facts.max_buffers {
        return Err(format!("{} buffers, limit {}", kernel.params.len(), facts.max_buffers));
    }
    let (n, room) = (kernel.vars.len(), facts.target.push_bytes);
    if SCALAR_BYTES * n > room {
        return Err(format!("{n} scalars, limit {}", room / SCALAR_BYTES));
    }
    info.check_interface(entry, kernel)
}

/// Whether a device has a capability and it is enabled.
fn has_capability(capability: Capability, facts: &Facts) -> bool {
    use Capability as C;
    let target = &facts.target;
    let subgroup = |of: Subgroup| Subgroup::from_raw(facts.subgroup).contains(of);
    match capability {
        C::Shader | C::Matrix => true,
        C::Int64 => target.int64,
        C::Float64 => target.float64,
        C::Int8 | C::StorageBuffer8BitAccess => target.int8,
        C::Int16 | C::StorageBuffer16BitAccess => target.int16,
        C::Int64Atomics => target.atomics64,
        C::PhysicalStorageBufferAddresses => target.addresses,
        C::SignedZeroInfNanPreserve => !target.preserves.is_empty(),
        C::DenormPreserve => !target.denormals.is_empty(),
        C::GroupNonUniform => subgroup(Subgroup::BASIC),
        C::GroupNonUniformVote => subgroup(Subgroup::VOTE),
        C::GroupNonUniformArithmetic => subgroup(Subgroup::ARITHMETIC),
        C::GroupNonUniformBallot => subgroup(Subgroup::BALLOT),
        C::GroupNonUniformShuffle => subgroup(Subgroup::SHUFFLE),
        C::GroupNonUniformShuffleRelative => subgroup(Subgroup::SHUFFLE_RELATIVE),
        C::GroupNonUniformClustered => subgroup(Subgroup::CLUSTERED),
        C::GroupNonUniformQuad => subgroup(Subgroup::QUAD),
        _ => false,
    }
}

/// A module with its results and decorations by id.
struct Info<'m> {
    module: &'m Module,
    /// Types, constants and variables outside of functions.
    globals: FxHashMap<Word, &'m Instruction>,
    functions: FxHashMap<Word, &'m Function>,
}

fn id(operand: Option<&Operand>) -> Option<Word> {
    operand.and_then(Operand::id_ref_any)
}

fn literal(operand: Option<&Operand>) -> Option<u32> {
    match operand {
        Some(&Operand::LiteralBit32(n)) => Some(n),
        _ => None,
    }
}

impl<'m> Info<'m> {
    fn of(module: &'m Module) -> Info<'m> {
        let globals = module.types_global_values.iter().filter_map(|i| Some((i.result_id?, i)));
        let functions = module.functions.iter();
        let functions = functions.filter_map(|f| Some((f.def.as_ref()?.result_id?, f)));
        Info { module, globals: globals.collect(), functions: functions.collect() }
    }

    /// The function of an entry point for compute.
    fn entry(&self, name: &str) -> Result<Word, String> {
        let compute = |entry: &'m Instruction| match &entry.operands[..] {
            [
                Operand::ExecutionModel(ExecutionModel::GLCompute),
                function,
                Operand::LiteralString(name),
                ..,
            ] => Some((name.as_str(), function.id_ref_any()?)),
            _ => None,
        };
        let entries: Vec<(&str, Word)> =
            self.module.entry_points.iter().filter_map(compute).collect();
        let Some(&(_, function)) = entries.iter().find(|entry| entry.0 == name) else {
            let names: Vec<&str> = entries.iter().map(|entry| entry.0).collect();
            let names = names.join(", ");
            return Err(format!(
                "no entry point {name} of model GLCompute; the module has: {names}"
            ));
        };
        match self.functions.get(&function) {
            Some(function) if function.blocks.is_empty() => Err(format!("{name} has no body")),
            Some(_) => Ok(function),
            None => Err(format!("the function of {name} is missing")),
        }
    }

    /// Decorations of an id: kind, and the first number behind it.
    fn decorations(&self, target: Word) -> impl Iterator<Item = (Decoration, Option<u32>)> {
        self.module.annotations.iter().filter_map(move |note| match &note.operands[..] {
            [of, Operand::Decoration(decoration), rest @ ..]
                if note.class.opcode == Op::Decorate && of.id_ref_any() == Some(target) =>
            {
                Some((*decoration, literal(rest.first())))
            }
            _ => None,
        })
    }

    fn decoration(&self, target: Word, wanted: Decoration) -> Option<u32> {
        self.decorations(target).find(|found| found.0 == wanted)?.1
    }

    /// A constant of 32 bits.
    fn constant(&self, id: Word) -> Option<u32> {
        let constant = self.globals.get(&id)?;
        let known = matches!(constant.class.opcode, Op::Constant | Op::SpecConstant);
        if known { literal(constant.operands.first()) } else { None }
    }

    /// Threads of a group per axis.
    fn threads(&self, entry: Word) -> Result<[u32; 3], String> {
        // A constant with this decoration comes before the mode.
        for note in &self.module.annotations {
            let [
                of,
                Operand::Decoration(Decoration::BuiltIn),
                Operand::BuiltIn(BuiltIn::WorkgroupSize),
            ] = &note.operands[..]
            else {
                continue;
            };
            let vector = of.id_ref_any().and_then(|id| self.globals.get(&id));
            let parts = vector.map_or(&[][..], |vector| &vector.operands);
            let parts: Option<Vec<u32>> =
                parts.iter().map(|part| self.constant(part.id_ref_any()?)).collect();
            let parts = parts.and_then(|parts| parts.try_into().ok());
            return parts.ok_or_else(|| "WorkgroupSize is no vector of constants".to_owned());
        }
        let mode = self.module.execution_modes.iter().find_map(|mode| match mode.operands[..] {
            [
                Operand::IdRef(of),
                Operand::ExecutionMode(ExecutionMode::LocalSize),
                Operand::LiteralBit32(x),
                Operand::LiteralBit32(y),
                Operand::LiteralBit32(z),
            ] if of == entry => Some([x, y, z]),
            _ => None,
        });
        mode.ok_or_else(|| "the entry point has no execution mode LocalSize".to_owned())
    }

    /// The variables outside of functions that a function uses, with all that it calls.
    fn variables(&self, entry: Word) -> Vec<(Word, StorageClass, &'m Instruction)> {
        let (mut used, mut seen) = (FxHashSet::default(), FxHashSet::default());
        let mut open = vec![entry];
        while let Some(id) = open.pop() {
            let Some(function) = self.functions.get(&id).filter(|_| seen.insert(id)) else {
                continue;
            };
            for operand in function.all_inst_iter().flat_map(|i| &i.operands) {
                let Some(id) = operand.id_ref_any() else { continue };
                used.insert(id);
                if self.functions.contains_key(&id) {
                    open.push(id);
                }
            }
        }
        let variables = self.module.types_global_values.iter().filter_map(|i| {
            let id = i.result_id.filter(|id| used.contains(id))?;
            match (i.class.opcode, i.operands.first()) {
                (Op::Variable, Some(&Operand::StorageClass(class))) => Some((id, class, i)),
                _ => None,
            }
        });
        variables.collect()
    }

    /// The type that a pointer type points at.
    fn pointee(&self, pointer: Option<Word>) -> Option<Word> {
        id(self.globals.get(&pointer?)?.operands.get(1))
    }

    /// Compares bindings and push constants with the declaration.
    fn check_interface(&self, entry: Word, kernel: &RawKernel) -> Result<(), String> {
        let (buffers, scalars) = (kernel.params.len(), kernel.vars.len());
        let mut bound = vec![false; buffers];
        let mut pushed = 0;
        for (variable, class, instruction) in self.variables(entry) {
            let of = self.pointee(instruction.result_type);
            match class {
                StorageClass::StorageBuffer | StorageClass::Uniform => {
                    let of = of.ok_or("a binding without a type")?;
                    let is_buffer = |found: (Decoration, _)| found.0 == Decoration::BufferBlock;
                    if class == StorageClass::Uniform && !self.decorations(of).any(is_buffer) {
                        return Err(
                            "uniform buffers are not bound; scalars are push constants".to_owned()
                        );
                    }
                    let set = self.decoration(variable, Decoration::DescriptorSet);
                    let binding = self.decoration(variable, Decoration::Binding);
                    let slot = binding.map(|binding| binding as usize).filter(|_| set == Some(0));
                    let place = slot.and_then(|slot| bound.get_mut(slot));
                    *place.ok_or_else(|| {
                        format!("set {set:?}, binding {binding:?}; {buffers} buffers are declared, in set 0")
                    })? = true;
                }
                StorageClass::PushConstant => {
                    let end = of.and_then(|of| self.end(of, 0));
                    pushed = end.ok_or("push constants without a size")?;
                }
                StorageClass::UniformConstant => {
                    return Err("images and samplers are not bound".to_owned());
                }
                _ => {}
            }
        }
        if let Some(missing) = bound.iter().position(|bound| !bound) {
            return Err(format!(
                "{buffers} buffers are declared; the entry point uses no binding {missing}"
            ));
        }
        let slots = pushed.div_ceil(SCALAR_BYTES);
        if slots != scalars {
            return Err(format!(
                "{pushed} bytes of push constants are {slots} scalars of 8 bytes; {scalars} are declared"
            ));
        }
        Ok(())
    }

    /// Bytes up to the end of a type in a block, `depth` types deep.
    fn end(&self, of: Word, depth: usize) -> Option<usize> {
        // Types are made of others that come before them, in valid modules.
        let ty = self.globals.get(&of).filter(|_| depth < 64)?;
        let part = |i: usize| id(ty.operands.get(i));
        match ty.class.opcode {
            Op::TypeInt | Op::TypeFloat => Some(literal(ty.operands.first())? as usize / 8),
            Op::TypePointer => Some(size_of::<u64>()),
            Op::TypeVector => {
                self.end(part(0)?, depth + 1)?.checked_mul(literal(ty.operands.get(1))? as usize)
            }
            Op::TypeArray => {
                let stride = self.decoration(of, Decoration::ArrayStride)? as usize;
                stride.checked_mul(self.constant(part(1)?)? as usize)
            }
            Op::TypeStruct => {
                let mut end = 0;
                for (index, member) in ty.operands.iter().enumerate() {
                    let offset = self.member_offset(of, index)?;
                    let size = self.end(member.id_ref_any()?, depth + 1)?;
                    end = end.max(offset.saturating_add(size));
                }
                Some(end)
            }
            _ => None,
        }
    }

    fn member_offset(&self, of: Word, index: usize) -> Option<usize> {
        self.module.annotations.iter().find_map(|note| match note.operands[..] {
            [
                Operand::IdRef(target),
                Operand::LiteralBit32(member),
                Operand::Decoration(Decoration::Offset),
                Operand::LiteralBit32(offset),
            ] if target == of && member as usize == index => Some(offset as usize),
            _ => None,
        })
    }
}
