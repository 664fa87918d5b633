//! Assembles one SPIR-V module with one entry point.
//!
//! rspirv's builder, and what it leaves to its users: types and constants are made once and shared,
//! so are capabilities, and variables of the function stand at its start. It knows the layout of a
//! module and nothing of kernels. Asking for a type asks for its capability.

use rspirv::binary::{Assemble, Disassemble};
use rspirv::dr::{Builder, InsertPoint, Instruction, Module, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel,
    FunctionControl, LoopControl, MemoryModel, Op, SelectionControl, StorageClass, Word,
};
use rustc_hash::FxHashMap;

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
pub(crate) struct Asm {
    b: Builder,
    /// The function.
    main: Word,
    /// The open block.
    here: Word,
    /// Results of what is made once.
    known: FxHashMap<Instruction, Word>,
    /// Inputs, which an entry point lists.
    inputs: FxHashMap<u32, Word>,
}

/// A loop: where it starts anew, goes on and ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop {
    head: Word,
    next: Word,
    pub(crate) merge: Word,
    /// What changes from turn to turn.
    pub(crate) phi: Word,
}

fn ids(all: &[Word]) -> Vec<Operand> {
    all.iter().map(|&x| Operand::IdRef(x)).collect()
}

fn literals(all: &[u32]) -> Vec<Operand> {
    all.iter().map(|&n| Operand::LiteralBit32(n)).collect()
}

/// Why calls of the builder cannot fail.
const OPEN: &str = "invariant: blocks are opened and closed in turn";

impl Asm {
    /// An empty function; `physical` if addresses of memory are 64-bit numbers.
    pub(crate) fn new(physical: bool) -> Asm {
        let mut b = Builder::new();
        b.set_version(1, 3);
        let (void, model) = (b.type_void(), AddressingModel::PhysicalStorageBuffer64);
        let signature = b.type_function(void, []);
        let main = b.begin_function(void, None, FunctionControl::NONE, signature).expect(OPEN);
        let here = b.begin_block(None).expect(OPEN);
        let (known, inputs) = (FxHashMap::default(), FxHashMap::default());
        let mut asm = Asm { b, main, here, known, inputs };
        asm.capability(Capability::Shader);
        if physical {
            asm.capability(Capability::PhysicalStorageBufferAddresses);
            asm.extension("SPV_KHR_physical_storage_buffer");
        }
        let model = if physical { model } else { AddressingModel::Logical };
        asm.b.memory_model(model, MemoryModel::GLSL450);
        asm
    }

    pub(crate) fn id(&mut self) -> Word {
        self.b.id()
    }

    pub(crate) fn capability(&mut self, capability: Capability) {
        let operand = Operand::Capability(capability);
        if self.b.module_ref().capabilities.iter().all(|c| c.operands[0] != operand) {
            self.b.capability(capability);
        }
    }

    pub(crate) fn extension(&mut self, name: &str) {
        let operand = Operand::LiteralString(name.to_owned());
        if self.b.module_ref().extensions.iter().all(|e| e.operands[0] != operand) {
            self.b.extension(name);
        }
    }

    pub(crate) fn mode(&mut self, mode: ExecutionMode, numbers: &[u32]) {
        self.b.execution_mode(self.main, mode, numbers);
    }

    // Types, constants, variables.

    fn global(&mut self, op: Op, ty: Option<Word>, operands: Vec<Operand>) -> Word {
        let result = self.id();
        let made = Instruction::new(op, ty, Some(result), operands);
        self.b.insert_types_global_values(InsertPoint::End, made);
        result
    }

    /// A type or constant like others, made once.
    fn shared(&mut self, op: Op, ty: Option<Word>, operands: Vec<Operand>) -> Word {
        let key = Instruction::new(op, ty, None, operands);
        if let Some(&found) = self.known.get(&key) {
            return found;
        }
        let new = self.global(op, ty, key.operands.clone());
        self.known.insert(key, new);
        new
    }

    pub(crate) fn ty(&mut self, ty: Ty) -> Word {
        match ty {
            Ty::U64 => self.capability(Capability::Int64),
            Ty::F64 => self.capability(Capability::Float64),
            _ => {}
        }
        let bits = 8 * ty.bytes();
        match ty {
            Ty::Bool => self.shared(Op::TypeBool, None, Vec::new()),
            _ if ty.is_float() => self.shared(Op::TypeFloat, None, literals(&[bits])),
            _ => self.shared(Op::TypeInt, None, literals(&[bits, 0])),
        }
    }

    pub(crate) fn pointer(&mut self, class: StorageClass, to: Word) -> Word {
        let operands = vec![Operand::StorageClass(class), Operand::IdRef(to)];
        self.shared(Op::TypePointer, None, operands)
    }

    /// So many lanes of a type, or the type itself.
    pub(crate) fn vector(&mut self, ty: Ty, lanes: u8) -> Word {
        let element = self.ty(ty);
        let operands = vec![Operand::IdRef(element), Operand::LiteralBit32(lanes.into())];
        if lanes == 1 { element } else { self.shared(Op::TypeVector, None, operands) }
    }

    pub(crate) fn array(&mut self, element: Word, len: u32) -> Word {
        let length = self.word(len);
        self.shared(Op::TypeArray, None, ids(&[element, length]))
    }

    /// A block of an unbounded array of such elements, `stride` bytes apart; never shared, as
    /// decorations belong to one use.
    pub(crate) fn unbounded(&mut self, element: Word, stride: u32) -> Word {
        let array = self.global(Op::TypeRuntimeArray, None, ids(&[element]));
        self.decorate(array, Decoration::ArrayStride, &[stride]);
        self.record(&[array], &[0])
    }

    /// A block with these members at these offsets.
    pub(crate) fn record(&mut self, members: &[Word], offsets: &[u32]) -> Word {
        let new = self.global(Op::TypeStruct, None, ids(members));
        self.decorate(new, Decoration::Block, &[]);
        for (member, &offset) in (0..).zip(offsets) {
            self.b.member_decorate(new, member, Decoration::Offset, literals(&[offset]));
        }
        new
    }

    /// A constant given by its bits.
    pub(crate) fn constant(&mut self, ty: Ty, bits: u64) -> Word {
        let of = Some(self.ty(ty));
        match ty {
            Ty::Bool if bits != 0 => self.shared(Op::ConstantTrue, of, Vec::new()),
            Ty::Bool => self.shared(Op::ConstantFalse, of, Vec::new()),
            _ if ty.bytes() == 8 => {
                self.shared(Op::Constant, of, vec![Operand::LiteralBit64(bits)])
            }
            _ => self.shared(Op::Constant, of, literals(&[bits as u32])),
        }
    }

    pub(crate) fn word(&mut self, n: u32) -> Word {
        self.constant(Ty::U32, n.into())
    }

    /// Three numbers, set when the pipeline is made, as the size of groups.
    pub(crate) fn specialised_size(&mut self) -> [Word; 3] {
        let of = self.ty(Ty::U32);
        let parts = [0, 1, 2].map(|i| {
            let part = self.global(Op::SpecConstant, Some(of), literals(&[1]));
            self.decorate(part, Decoration::SpecId, &[i]);
            part
        });
        let vector = self.vector(Ty::U32, 3);
        let size = self.global(Op::SpecConstantComposite, Some(vector), ids(&parts));
        self.b.decorate(size, Decoration::BuiltIn, [Operand::BuiltIn(BuiltIn::WorkgroupSize)]);
        parts
    }

    /// A variable outside of functions.
    pub(crate) fn variable(&mut self, class: StorageClass, of: Word) -> Word {
        let ty = self.pointer(class, of);
        self.global(Op::Variable, Some(ty), vec![Operand::StorageClass(class)])
    }

    /// A variable that a descriptor of this number is bound to.
    pub(crate) fn bound(&mut self, of: Word, binding: u32) -> Word {
        let variable = self.variable(StorageClass::StorageBuffer, of);
        self.decorate(variable, Decoration::DescriptorSet, &[0]);
        self.decorate(variable, Decoration::Binding, &[binding]);
        variable
    }

    /// A variable of the function.
    pub(crate) fn local(&mut self, of: Word) -> Word {
        let class = StorageClass::Function;
        let (ty, result) = (self.pointer(class, of), self.id());
        let operands = vec![Operand::StorageClass(class)];
        let made = Instruction::new(Op::Variable, Some(ty), Some(result), operands);
        self.b.module_mut().functions[0].blocks[0].instructions.insert(0, made);
        result
    }

    /// One component of an input of three words.
    pub(crate) fn builtin(&mut self, builtin: BuiltIn, axis: usize) -> Word {
        let vector = self.vector(Ty::U32, 3);
        let variable = match self.inputs.get(&(builtin as u32)) {
            Some(&found) => found,
            None => {
                let new = self.variable(StorageClass::Input, vector);
                self.b.decorate(new, Decoration::BuiltIn, [Operand::BuiltIn(builtin)]);
                self.inputs.insert(builtin as u32, new);
                new
            }
        };
        let value = self.with(Op::Load, vector, ids(&[variable]));
        self.member(Ty::U32, value, axis as u32)
    }

    pub(crate) fn decorate(&mut self, target: Word, decoration: Decoration, numbers: &[u32]) {
        self.b.decorate(target, decoration, literals(numbers));
    }

    pub(crate) fn decorate_first(&mut self, target: Word, decoration: Decoration) {
        self.b.member_decorate(target, 0, decoration, []);
    }

    // Instructions of the function.

    /// An instruction without a result.
    pub(crate) fn effect(&mut self, op: Op, operands: Vec<Operand>) {
        let instruction = Instruction::new(op, None, None, operands);
        self.b.insert_into_block(InsertPoint::End, instruction).expect(OPEN);
    }

    /// An instruction with any operands.
    pub(crate) fn with(&mut self, op: Op, of: Word, operands: Vec<Operand>) -> Word {
        let result = self.id();
        let instruction = Instruction::new(op, Some(of), Some(result), operands);
        self.b.insert_into_block(InsertPoint::End, instruction).expect(OPEN);
        result
    }

    /// An instruction on values.
    pub(crate) fn op(&mut self, op: Op, ty: Ty, operands: &[Word]) -> Word {
        let of = self.ty(ty);
        self.with(op, of, ids(operands))
    }

    /// An arithmetic instruction on floats, which must not be merged with others.
    pub(crate) fn exact(&mut self, op: Op, ty: Ty, operands: &[Word]) -> Word {
        let result = self.op(op, ty, operands);
        self.decorate(result, Decoration::NoContraction, &[]);
        result
    }

    /// An instruction of the extended set for shaders.
    pub(crate) fn extended(&mut self, number: u32, ty: Ty, operands: &[Word]) -> Word {
        let import = self.b.module_ref().ext_inst_imports.first().and_then(|i| i.result_id);
        let set = import.unwrap_or_else(|| self.b.ext_inst_import("GLSL.std.450"));
        let start = [Operand::IdRef(set), Operand::LiteralExtInstInteger(number)];
        let of = self.ty(ty);
        self.with(Op::ExtInst, of, start.into_iter().chain(ids(operands)).collect())
    }

    pub(crate) fn member(&mut self, ty: Ty, composite: Word, index: u32) -> Word {
        let of = self.ty(ty);
        let operands = vec![Operand::IdRef(composite), Operand::LiteralBit32(index)];
        self.with(Op::CompositeExtract, of, operands)
    }

    /// Where in memory the element is that these indices lead to, seen as this type.
    pub(crate) fn place(&mut self, class: StorageClass, of: Word, path: &[Word]) -> Word {
        let pointer = self.pointer(class, of);
        self.with(Op::AccessChain, pointer, ids(path))
    }

    // Blocks.

    /// Opens a block; the one before must have ended.
    pub(crate) fn label(&mut self, label: Word) {
        self.here = self.b.begin_block(Some(label)).expect(OPEN);
    }

    /// The open block.
    pub(crate) fn here(&self) -> Word {
        self.here
    }

    pub(crate) fn branch(&mut self, to: Word) {
        self.b.branch(to).expect(OPEN);
    }

    pub(crate) fn branch_if(&mut self, cond: Word, then: Word, otherwise: Word) {
        self.b.branch_conditional(cond, then, otherwise, []).expect(OPEN);
    }

    /// Starts what runs only where `cond` holds; [`Asm::end_if`] with the result ends it.
    pub(crate) fn begin_if(&mut self, cond: Word) -> Word {
        let (then, merge) = (self.id(), self.id());
        self.b.selection_merge(merge, SelectionControl::NONE).expect(OPEN);
        self.branch_if(cond, then, merge);
        self.label(then);
        merge
    }

    pub(crate) fn end_if(&mut self, merge: Word) {
        self.branch(merge);
        self.label(merge);
    }

    /// Starts a loop with a value that changes from turn to turn.
    pub(crate) fn begin_loop(&mut self, ty: Ty, start: Word) -> Loop {
        let [head, body, next, merge] = [0; 4].map(|_| self.id());
        let before = self.here;
        self.branch(head);
        self.label(head);
        let phi = self.op(Op::Phi, ty, &[start, before]);
        self.b.loop_merge(merge, next, LoopControl::NONE, []).expect(OPEN);
        self.branch(body);
        self.label(body);
        Loop { head, next, merge, phi }
    }

    /// Ends a turn, which gives the value of the next one; it is the last where `done` holds.
    pub(crate) fn end_loop(&mut self, this: Loop, following: Word, done: Option<Word>) {
        let Loop { head, next, merge, phi } = this;
        self.branch(next);
        self.label(next);
        let blocks = &mut self.b.module_mut().functions[0].blocks;
        let head_block = blocks.iter_mut().rev().find(|block| block.label_id() == Some(head));
        let first = head_block.and_then(|block| block.instructions.first_mut());
        let first = first.filter(|first| first.result_id == Some(phi));
        first
            .expect("invariant: a loop begins with its value")
            .operands
            .extend(ids(&[following, next]));
        match done {
            Some(done) => self.branch_if(done, merge, head),
            None => self.branch(head),
        }
        self.label(merge);
    }

    /// The finished module.
    pub(crate) fn finish(mut self) -> Module {
        self.b.ret().and_then(|()| self.b.end_function()).expect(OPEN);
        let mut inputs: Vec<Word> = self.inputs.into_values().collect();
        inputs.sort_unstable();
        self.b.entry_point(ExecutionModel::GLCompute, self.main, "main", inputs);
        self.b.module()
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
