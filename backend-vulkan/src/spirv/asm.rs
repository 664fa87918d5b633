//! Assembles one SPIR-V module with one entry point.
//!
//! A thin layer over rspirv's data representation: types and constants are made once and shared,
//! instructions go to the current block, variables of the function to its start. It knows the
//! layout of a module and nothing of kernels. Capabilities follow from what is used: asking for
//! a type asks for its capability.

use rspirv::binary::{Assemble, Disassemble};
use rspirv::dr::{Block, Function, Instruction, Module, ModuleHeader, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel,
    FunctionControl, LoopControl, MemoryModel, Op, SelectionControl, StorageClass, Word,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Numbers of instructions in the extended set for shaders (GLSL.std.450), most of which give exact results.
pub(crate) mod gl {
    pub(crate) const ROUND_EVEN: u32 = 2;
    pub(crate) const TRUNC: u32 = 3;
    pub(crate) const F_ABS: u32 = 4;
    pub(crate) const FLOOR: u32 = 8;
    pub(crate) const CEIL: u32 = 9;
    pub(crate) const SQRT: u32 = 31;
    pub(crate) const INVERSE_SQRT: u32 = 32;
    pub(crate) const FMA: u32 = 50;
}

/// A type of SPIR-V. Integers carry no sign: operations do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ty {
    Void,
    Bool,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl Ty {
    /// Bytes in memory; a bool has none of its own.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Ty::Void => 0,
            Ty::Bool | Ty::U8 => 1,
            Ty::U16 => 2,
            Ty::U32 | Ty::F32 => 4,
            Ty::U64 | Ty::F64 => 8,
        }
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Ty::F32 | Ty::F64)
    }
}

/// A module under construction.
#[derive(Debug, Default)]
pub(crate) struct Asm {
    next: Word,
    capabilities: BTreeSet<u32>,
    extensions: BTreeSet<&'static str>,
    imports: Option<Word>,
    annotations: Vec<Instruction>,
    globals: Vec<Instruction>,
    interface: Vec<Word>,
    modes: Vec<(ExecutionMode, Vec<u32>)>,
    variables: Vec<Instruction>,
    blocks: Vec<Block>,
    types: FxHashMap<Ty, Word>,
    composites: FxHashMap<(Op, Vec<Word>), Word>,
    constants: FxHashMap<(Ty, u64), Word>,
    builtins: FxHashMap<u32, Word>,
    is_physical: bool,
}

fn id(x: Word) -> Operand {
    Operand::IdRef(x)
}

impl Asm {
    pub(crate) fn new() -> Asm {
        let mut asm = Asm { next: 1, ..Asm::default() };
        asm.capability(Capability::Shader);
        asm
    }

    pub(crate) fn id(&mut self) -> Word {
        self.next += 1;
        self.next - 1
    }

    pub(crate) fn capability(&mut self, capability: Capability) {
        self.capabilities.insert(capability as u32);
    }

    pub(crate) fn extension(&mut self, name: &'static str) {
        self.extensions.insert(name);
    }

    /// Addresses of memory are 64-bit numbers in this module.
    pub(crate) fn physical(&mut self) {
        self.is_physical = true;
        self.capability(Capability::PhysicalStorageBufferAddresses);
        self.extension("SPV_KHR_physical_storage_buffer");
    }

    pub(crate) fn mode(&mut self, mode: ExecutionMode, literals: &[u32]) {
        self.modes.push((mode, literals.to_vec()));
    }

    // Types, constants, variables.

    fn global(&mut self, op: Op, ty: Option<Word>, operands: Vec<Operand>) -> Word {
        let result = self.id();
        self.globals.push(Instruction::new(op, ty, Some(result), operands));
        result
    }

    pub(crate) fn ty(&mut self, ty: Ty) -> Word {
        if let Some(&found) = self.types.get(&ty) {
            return found;
        }
        let int = |bits| vec![Operand::LiteralBit32(bits), Operand::LiteralBit32(0)];
        let float = |bits| vec![Operand::LiteralBit32(bits)];
        let (op, operands) = match ty {
            Ty::Void => (Op::TypeVoid, Vec::new()),
            Ty::Bool => (Op::TypeBool, Vec::new()),
            Ty::U8 => (Op::TypeInt, int(8)),
            Ty::U16 => (Op::TypeInt, int(16)),
            Ty::U32 => (Op::TypeInt, int(32)),
            Ty::U64 => (Op::TypeInt, int(64)),
            Ty::F32 => (Op::TypeFloat, float(32)),
            Ty::F64 => (Op::TypeFloat, float(64)),
        };
        match ty {
            Ty::U64 => self.capability(Capability::Int64),
            Ty::F64 => self.capability(Capability::Float64),
            _ => {}
        }
        let new = self.global(op, None, operands);
        self.types.insert(ty, new);
        new
    }

    /// A type made of others, shared.
    fn composite(&mut self, op: Op, operands: Vec<Operand>, key: Vec<Word>) -> Word {
        if let Some(&found) = self.composites.get(&(op, key.clone())) {
            return found;
        }
        let new = self.global(op, None, operands);
        self.composites.insert((op, key), new);
        new
    }

    pub(crate) fn pointer(&mut self, class: StorageClass, to: Word) -> Word {
        let operands = vec![Operand::StorageClass(class), id(to)];
        self.composite(Op::TypePointer, operands, vec![class as u32, to])
    }

    pub(crate) fn vector(&mut self, ty: Ty, lanes: u32) -> Word {
        let element = self.ty(ty);
        let operands = vec![id(element), Operand::LiteralBit32(lanes)];
        self.composite(Op::TypeVector, operands, vec![element, lanes])
    }

    pub(crate) fn array(&mut self, element: Word, len: u32) -> Word {
        let length = self.constant(Ty::U32, len.into());
        self.composite(Op::TypeArray, vec![id(element), id(length)], vec![element, length])
    }

    /// A block of an unbounded array of such elements, `stride` bytes apart; never shared, as
    /// decorations belong to one use.
    pub(crate) fn unbounded(&mut self, element: Word, stride: u32) -> Word {
        let array = self.global(Op::TypeRuntimeArray, None, vec![id(element)]);
        self.decorate(array, Decoration::ArrayStride, &[stride]);
        self.record(&[array], &[0])
    }

    /// A block with these members at these offsets.
    pub(crate) fn record(&mut self, members: &[Word], offsets: &[u32]) -> Word {
        let operands = members.iter().map(|&m| id(m)).collect();
        let new = self.global(Op::TypeStruct, None, operands);
        self.decorate(new, Decoration::Block, &[]);
        for (i, &offset) in offsets.iter().enumerate() {
            self.decorate_member(new, i as u32, Decoration::Offset, &[offset]);
        }
        new
    }

    /// A constant given by its bits.
    pub(crate) fn constant(&mut self, ty: Ty, bits: u64) -> Word {
        if let Some(&found) = self.constants.get(&(ty, bits)) {
            return found;
        }
        let of = self.ty(ty);
        let new = match ty {
            Ty::Bool if bits != 0 => self.global(Op::ConstantTrue, Some(of), Vec::new()),
            Ty::Bool => self.global(Op::ConstantFalse, Some(of), Vec::new()),
            Ty::U64 | Ty::F64 => {
                self.global(Op::Constant, Some(of), vec![Operand::LiteralBit64(bits)])
            }
            _ => self.global(Op::Constant, Some(of), vec![Operand::LiteralBit32(bits as u32)]),
        };
        self.constants.insert((ty, bits), new);
        new
    }

    pub(crate) fn word(&mut self, n: u32) -> Word {
        self.constant(Ty::U32, n.into())
    }

    /// Three numbers, set when the pipeline is made, as the size of groups.
    pub(crate) fn specialised_size(&mut self) -> [Word; 3] {
        let of = self.ty(Ty::U32);
        let parts = [0, 1, 2].map(|i| {
            let one = vec![Operand::LiteralBit32(1)];
            let part = self.global(Op::SpecConstant, Some(of), one);
            self.decorate(part, Decoration::SpecId, &[i]);
            part
        });
        let vector = self.vector(Ty::U32, 3);
        let operands = parts.iter().map(|&p| id(p)).collect();
        let size = self.global(Op::SpecConstantComposite, Some(vector), operands);
        self.annotate(
            Op::Decorate,
            vec![
                id(size),
                Operand::Decoration(Decoration::BuiltIn),
                Operand::BuiltIn(BuiltIn::WorkgroupSize),
            ],
        );
        parts
    }

    /// A variable outside of functions.
    pub(crate) fn variable(&mut self, class: StorageClass, of: Word) -> Word {
        let ty = self.pointer(class, of);
        self.global(Op::Variable, Some(ty), vec![Operand::StorageClass(class)])
    }

    /// A variable of the function.
    pub(crate) fn local(&mut self, of: Word) -> Word {
        let class = StorageClass::Function;
        let (ty, result) = (self.pointer(class, of), self.id());
        let operands = vec![Operand::StorageClass(class)];
        self.variables.push(Instruction::new(Op::Variable, Some(ty), Some(result), operands));
        result
    }

    /// One component of an input of three words.
    pub(crate) fn builtin(&mut self, builtin: BuiltIn, axis: usize) -> Word {
        let vector = self.vector(Ty::U32, 3);
        let variable = match self.builtins.get(&(builtin as u32)) {
            Some(&found) => found,
            None => {
                let new = self.variable(StorageClass::Input, vector);
                let operands = vec![
                    id(new),
                    Operand::Decoration(Decoration::BuiltIn),
                    Operand::BuiltIn(builtin),
                ];
                self.annotate(Op::Decorate, operands);
                self.interface.push(new);
                self.builtins.insert(builtin as u32, new);
                new
            }
        };
        let value = self.with(Op::Load, vector, vec![id(variable)]);
        let of = self.ty(Ty::U32);
        self.with(Op::CompositeExtract, of, vec![id(value), Operand::LiteralBit32(axis as u32)])
    }

    fn annotate(&mut self, op: Op, operands: Vec<Operand>) {
        self.annotations.push(Instruction::new(op, None, None, operands));
    }

    pub(crate) fn decorate(&mut self, target: Word, decoration: Decoration, literals: &[u32]) {
        let mut operands = vec![id(target), Operand::Decoration(decoration)];
        operands.extend(literals.iter().map(|&n| Operand::LiteralBit32(n)));
        self.annotate(Op::Decorate, operands);
    }

    pub(crate) fn decorate_member(
        &mut self,
        target: Word,
        member: u32,
        decoration: Decoration,
        literals: &[u32],
    ) {
        let start = [id(target), Operand::LiteralBit32(member), Operand::Decoration(decoration)];
        let mut operands = start.to_vec();
        operands.extend(literals.iter().map(|&n| Operand::LiteralBit32(n)));
        self.annotate(Op::MemberDecorate, operands);
    }

    // Instructions of the function.

    fn push(&mut self, instruction: Instruction) {
        let block = self.blocks.last_mut().expect("invariant: a block is open");
        block.instructions.push(instruction);
    }

    /// An instruction with any operands.
    pub(crate) fn with(&mut self, op: Op, of: Word, operands: Vec<Operand>) -> Word {
        let result = self.id();
        self.push(Instruction::new(op, Some(of), Some(result), operands));
        result
    }

    /// An instruction on values.
    pub(crate) fn op(&mut self, op: Op, ty: Ty, operands: &[Word]) -> Word {
        let of = self.ty(ty);
        self.with(op, of, operands.iter().map(|&x| id(x)).collect())
    }

    /// An arithmetic instruction on floats, which must not be merged with others.
    pub(crate) fn exact(&mut self, op: Op, ty: Ty, operands: &[Word]) -> Word {
        let result = self.op(op, ty, operands);
        self.decorate(result, Decoration::NoContraction, &[]);
        result
    }

    /// An instruction of the extended set for shaders.
    pub(crate) fn extended(&mut self, number: u32, ty: Ty, operands: &[Word]) -> Word {
        let set = match self.imports {
            Some(set) => set,
            None => *self.imports.insert({
                self.next += 1;
                self.next - 1
            }),
        };
        let mut all = vec![id(set), Operand::LiteralExtInstInteger(number)];
        all.extend(operands.iter().map(|&x| id(x)));
        let of = self.ty(ty);
        self.with(Op::ExtInst, of, all)
    }

    /// An instruction without a result.
    pub(crate) fn effect(&mut self, op: Op, operands: Vec<Operand>) {
        self.push(Instruction::new(op, None, None, operands));
    }

    pub(crate) fn member(&mut self, of: Word, composite: Word, index: u32) -> Word {
        self.with(Op::CompositeExtract, of, vec![id(composite), Operand::LiteralBit32(index)])
    }

    // Blocks.

    /// Opens a block; the one before must have ended.
    pub(crate) fn label(&mut self, label: Word) {
        let label = Instruction::new(Op::Label, None, Some(label), Vec::new());
        self.blocks.push(Block { label: Some(label), instructions: Vec::new() });
    }

    /// The open block.
    pub(crate) fn here(&self) -> Word {
        let block = self.blocks.last().expect("invariant: a block is open");
        let label = block.label.as_ref().and_then(|label| label.result_id);
        label.expect("invariant: a block has a label")
    }

    pub(crate) fn branch(&mut self, to: Word) {
        self.effect(Op::Branch, vec![id(to)]);
    }

    pub(crate) fn branch_if(&mut self, cond: Word, then: Word, otherwise: Word) {
        self.effect(Op::BranchConditional, vec![id(cond), id(then), id(otherwise)]);
    }

    /// Starts what runs only where `cond` holds; [`Asm::end_if`] with the result ends it.
    pub(crate) fn begin_if(&mut self, cond: Word) -> Word {
        let (then, merge) = (self.id(), self.id());
        self.selection(cond, then, merge, merge);
        self.label(then);
        merge
    }

    /// Goes on at `then` or `otherwise`, both of which branch to `merge`.
    pub(crate) fn selection(&mut self, cond: Word, then: Word, otherwise: Word, merge: Word) {
        let control = Operand::SelectionControl(SelectionControl::NONE);
        self.effect(Op::SelectionMerge, vec![id(merge), control]);
        self.branch_if(cond, then, otherwise);
    }

    pub(crate) fn end_if(&mut self, merge: Word) {
        self.branch(merge);
        self.label(merge);
    }

    pub(crate) fn loop_merge(&mut self, merge: Word, next: Word) {
        let control = Operand::LoopControl(LoopControl::NONE);
        self.effect(Op::LoopMerge, vec![id(merge), id(next), control]);
    }

    /// Adds an incoming value to a phi, for loops whose step comes after their head.
    pub(crate) fn complete(&mut self, phi: Word, value: Word, from: Word) {
        let all = self.blocks.iter_mut().flat_map(|b| &mut b.instructions);
        let phi = all.rev().find(|i| i.result_id == Some(phi));
        let phi = phi.expect("invariant: the phi was emitted");
        phi.operands.extend([id(value), id(from)]);
    }

    /// The finished module.
    pub(crate) fn finish(mut self) -> Module {
        let void = self.ty(Ty::Void);
        let signature = self.composite(Op::TypeFunction, vec![id(void)], vec![void]);
        let main = self.id();
        if let Some(first) = self.blocks.first_mut() {
            first.instructions.splice(0..0, self.variables);
        }
        let mut module = Module::new();
        let mut header = ModuleHeader::new(self.next);
        header.set_version(1, 3);
        module.header = Some(header);
        let capabilities = self.capabilities.iter().filter_map(|&c| Capability::from_u32(c));
        let plain = |op, operands| Instruction::new(op, None, None, operands);
        module.capabilities =
            capabilities.map(|c| plain(Op::Capability, vec![Operand::Capability(c)])).collect();
        let text = |name: &str| Operand::LiteralString(name.to_owned());
        module.extensions =
            self.extensions.iter().map(|name| plain(Op::Extension, vec![text(name)])).collect();
        let import =
            |set| Instruction::new(Op::ExtInstImport, None, Some(set), vec![text("GLSL.std.450")]);
        module.ext_inst_imports = self.imports.map(import).into_iter().collect();
        let addressing = match self.is_physical {
            true => AddressingModel::PhysicalStorageBuffer64,
            false => AddressingModel::Logical,
        };
        let model =
            [Operand::AddressingModel(addressing), Operand::MemoryModel(MemoryModel::GLSL450)];
        module.memory_model = Some(plain(Op::MemoryModel, model.to_vec()));
        let start = [Operand::ExecutionModel(ExecutionModel::GLCompute), id(main), text("main")];
        let interface = self.interface.iter().map(|&v| id(v));
        module.entry_points =
            vec![plain(Op::EntryPoint, start.into_iter().chain(interface).collect())];
        for (mode, literals) in self.modes {
            let mut operands = vec![id(main), Operand::ExecutionMode(mode)];
            operands.extend(literals.iter().map(|&n| Operand::LiteralBit32(n)));
            module.execution_modes.push(plain(Op::ExecutionMode, operands));
        }
        module.annotations = self.annotations;
        module.types_global_values = self.globals;
        let control = Operand::FunctionControl(FunctionControl::NONE);
        module.functions = vec![Function {
            def: Some(Instruction::new(
                Op::Function,
                Some(void),
                Some(main),
                vec![control, id(signature)],
            )),
            end: Some(plain(Op::FunctionEnd, Vec::new())),
            parameters: Vec::new(),
            blocks: self.blocks,
        }];
        module
    }
}

/// A module's binary form.
pub(crate) fn words(module: &Module) -> Vec<u32> {
    module.assemble()
}

/// A module as text.
pub(crate) fn text(module: &Module) -> String {
    module.disassemble()
}
