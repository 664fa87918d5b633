//! Assembles one SPIR-V module with one entry point.
//!
//! rspirv's builder, and what it leaves to its users: constants and capabilities are made once, and
//! variables of the function stand at its start. It knows the layout of a
//! module and nothing of kernels. Asking for a type asks for its capabilities, buffers of it included.

use rspirv::binary::{Assemble, Disassemble};
use rspirv::dr::{Builder, InsertPoint, Instruction, Module, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel,
    FunctionControl, LoopControl, MemoryModel, Op, SelectionControl, StorageClass, Word,
};
use rustc_hash::FxHashMap;
use zyx_core::ir::Type;
use zyx_core::{Class, DType, Scalar};

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

/// A module under construction.
pub(crate) struct Asm {
    b: Builder,
    /// The function.
    main: Word,
    /// The open block.
    here: Word,
    /// Constants, which are made once, by type and bits.
    constants: FxHashMap<(Word, u64), Word>,
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

pub(crate) fn ids(all: &[Word]) -> Vec<Operand> {
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
        let (constants, inputs) = (FxHashMap::default(), FxHashMap::default());
        let mut asm = Asm { b, main, here, constants, inputs };
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

    /// The type of numbers of a dtype. Integers carry no sign: operations do.
    pub(crate) fn ty(&mut self, dtype: DType) -> Word {
        let bits = dtype.bits() as u32;
        match dtype.class() {
            Class::Bool => return self.b.type_bool(),
            Class::Float if bits == 64 => self.capability(Capability::Float64),
            _ if bits == 64 => self.capability(Capability::Int64),
            _ if bits == 16 => {
                self.capability(Capability::Int16);
                self.capability(Capability::StorageBuffer16BitAccess);
            }
            _ if bits == 8 => {
                self.capability(Capability::Int8);
                self.capability(Capability::StorageBuffer8BitAccess);
                self.extension("SPV_KHR_8bit_storage");
            }
            _ => {}
        }
        match dtype.is_float() {
            true => self.b.type_float(bits, None),
            false => self.b.type_int(bits, 0),
        }
    }

    pub(crate) fn pointer(&mut self, class: StorageClass, to: Word) -> Word {
        self.b.type_pointer(None, class, to)
    }

    /// The type of numbers or of vectors of them.
    pub(crate) fn lanes(&mut self, ty: Type) -> Word {
        let element = self.ty(ty.dtype);
        if ty.is_vector() { self.b.type_vector(element, ty.lanes.into()) } else { element }
    }

    pub(crate) fn array(&mut self, dtype: DType, len: u32) -> Word {
        let (element, length) = (self.ty(dtype), self.word(len));
        self.b.type_array(element, length)
    }

    /// A block of an unbounded array of such elements, `stride` bytes apart; never shared, as
    /// decorations belong to one use.
    pub(crate) fn unbounded(&mut self, element: Word, stride: u32) -> Word {
        let array = self.id();
        self.b.type_runtime_array_id(Some(array), element);
        self.decorate(array, Decoration::ArrayStride, &[stride]);
        self.record(&[array], &[0])
    }

    /// A block with these members at these offsets.
    pub(crate) fn record(&mut self, members: &[Word], offsets: &[u32]) -> Word {
        let new = self.id();
        self.b.type_struct_id(Some(new), members.iter().copied());
        self.decorate(new, Decoration::Block, &[]);
        for (member, &offset) in (0..).zip(offsets) {
            self.b.member_decorate(new, member, Decoration::Offset, literals(&[offset]));
        }
        new
    }

    /// A constant given by its bits.
    pub(crate) fn constant(&mut self, dtype: DType, bits: u64) -> Word {
        let (of, b) = (self.ty(dtype), &mut self.b);
        *self.constants.entry((of, bits)).or_insert_with(|| match dtype.bits() {
            _ if dtype == DType::Bool && bits != 0 => b.constant_true(of),
            _ if dtype == DType::Bool => b.constant_false(of),
            64 => b.constant_bit64(of, bits),
            _ => b.constant_bit32(of, bits as u32),
        })
    }

    /// Whether `word` is a constant, and as a float of `dtype` no NaN.
    pub(crate) fn is_constant_number(&mut self, dtype: DType, word: Word) -> bool {
        let of = self.ty(dtype);
        let known = self.constants.iter().find(|(key, known)| key.0 == of && **known == word);
        known.is_some_and(|(&(_, bits), _)| !Scalar::from_bits(dtype, bits).to_f64().is_nan())
    }

    pub(crate) fn word(&mut self, n: u32) -> Word {
        self.constant(DType::U32, n.into())
    }

    /// A variable outside of functions.
    pub(crate) fn variable(&mut self, class: StorageClass, of: Word) -> Word {
        let (ty, result) = (self.pointer(class, of), self.id());
        let operands = vec![Operand::StorageClass(class)];
        let made = Instruction::new(Op::Variable, Some(ty), Some(result), operands);
        self.b.insert_types_global_values(InsertPoint::End, made);
        result
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

    /// The variable of an input.
    fn input_of(&mut self, builtin: BuiltIn, of: Word) -> Word {
        if let Some(&found) = self.inputs.get(&(builtin as u32)) {
            return found;
        }
        let new = self.variable(StorageClass::Input, of);
        self.b.decorate(new, Decoration::BuiltIn, [Operand::BuiltIn(builtin)]);
        self.inputs.insert(builtin as u32, new);
        new
    }

    /// One component of an input of three words.
    pub(crate) fn builtin(&mut self, builtin: BuiltIn, axis: usize) -> Word {
        let vector = self.lanes(Type::vector(DType::U32, 3));
        let variable = self.input_of(builtin, vector);
        let value = self.with(Op::Load, vector, ids(&[variable]));
        self.member(DType::U32, value, axis as u32)
    }

    /// An input of one word.
    pub(crate) fn input(&mut self, builtin: BuiltIn) -> Word {
        let of = self.ty(DType::U32);
        let variable = self.input_of(builtin, of);
        self.with(Op::Load, of, ids(&[variable]))
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
    pub(crate) fn op(&mut self, op: Op, dtype: DType, operands: &[Word]) -> Word {
        let of = self.ty(dtype);
        self.with(op, of, ids(operands))
    }

    /// An arithmetic instruction on floats, which must not be merged with others.
    pub(crate) fn exact(&mut self, op: Op, dtype: DType, operands: &[Word]) -> Word {
        let result = self.op(op, dtype, operands);
        self.decorate(result, Decoration::NoContraction, &[]);
        result
    }

    /// An instruction of the extended set for shaders.
    pub(crate) fn extended(&mut self, number: u32, dtype: DType, operands: &[Word]) -> Word {
        let import = self.b.module_ref().ext_inst_imports.first().and_then(|i| i.result_id);
        let set = import.unwrap_or_else(|| self.b.ext_inst_import("GLSL.std.450"));
        let start = [Operand::IdRef(set), Operand::LiteralExtInstInteger(number)];
        let of = self.ty(dtype);
        self.with(Op::ExtInst, of, start.into_iter().chain(ids(operands)).collect())
    }

    pub(crate) fn member(&mut self, dtype: DType, composite: Word, index: u32) -> Word {
        let of = self.ty(dtype);
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

    /// Starts what is repeated until a condition holds; gives what ends it.
    pub(crate) fn begin_turns(&mut self) -> [Word; 3] {
        let [head, body, next, merge] = [0; 4].map(|_| self.id());
        self.branch(head);
        self.label(head);
        self.b.loop_merge(merge, next, LoopControl::NONE, []).expect(OPEN);
        self.branch(body);
        self.label(body);
        [head, next, merge]
    }

    pub(crate) fn end_turns(&mut self, [head, next, merge]: [Word; 3], done: Word) {
        self.branch_if(done, merge, next);
        self.label(next);
        self.branch(head);
        self.label(merge);
    }

    /// Starts a loop with a value that changes from turn to turn.
    pub(crate) fn begin_loop(&mut self, dtype: DType, start: Word) -> Loop {
        let [head, body, next, merge] = [0; 4].map(|_| self.id());
        let before = self.here;
        self.branch(head);
        self.label(head);
        let phi = self.op(Op::Phi, dtype, &[start, before]);
        self.b.loop_merge(merge, next, LoopControl::NONE, []).expect(OPEN);
        self.branch(body);
        self.label(body);
        Loop { head, next, merge, phi }
    }

    /// Ends a turn, which gives the value of the next one.
    pub(crate) fn end_loop(&mut self, this: Loop, following: Word) {
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
        self.branch(head);
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
