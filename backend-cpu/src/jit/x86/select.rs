//! Rows of the table for vector operations that are written without regard to the machine.
//!
//! One walk over the list, before registers are allocated, so that the allocator can use memory
//! operands and embedded broadcasts of the rows.

use super::asm::{Len, VOp};
use super::{fp, len_of};
use crate::jit::EmitError;
use crate::jit::machine::{
    Class, Compare, Effect, Elem, Extend, Inst, Place, Reg, Shape, VecInst, Vop,
};

/// Replaces all machine-neutral vector operations but selections and multiply-adds.
pub(super) fn select(insts: &mut Vec<Inst>, classes: &mut Vec<Class>) -> Result<(), EmitError> {
    let mut out = Vec::with_capacity(insts.len());
    for inst in insts.drain(..) {
        match inst {
            Inst::Vector { op, shape, dst, a, b } => out.push(vector(op, shape, dst, a, b)?),
            Inst::VecLoad { dst, addr, bytes: bytes @ (1 | 2) } => {
                classes.push(Class::Gpr);
                let low = Reg(classes.len() as u32 - 1);
                let kind = if bytes == 1 { Extend::Zero8 } else { Extend::Zero16 };
                out.push(Inst::Extend { kind, dst: low, src: addr.into() });
                out.push(Inst::Vec(VecInst { reg: dst, ..VecInst::new(VOp::Vmovd, Len::X, low) }));
            }
            Inst::VecLoad { dst, addr, bytes } => {
                let op = match bytes {
                    4 => VOp::VmovssLoad,
                    8 => VOp::VmovsdLoad,
                    _ => VOp::Vmovups,
                };
                let it = VecInst::new(op, len_of(bytes.into()), addr);
                out.push(Inst::Vec(VecInst { reg: dst, ..it }));
            }
            Inst::VecStore { addr, src, bytes: bytes @ (1 | 2) } => {
                classes.push(Class::Gpr);
                let low = Reg(classes.len() as u32 - 1);
                let it = VecInst::new(VOp::VmovdStore, Len::X, low);
                out.push(Inst::Vec(VecInst { reg: src, effect: Effect::Store, ..it }));
                out.push(Inst::Store { width: bytes.trailing_zeros() as u8, addr, src: low });
            }
            Inst::VecStore { addr, src, bytes } => {
                let op = match bytes {
                    4 => VOp::VmovssStore,
                    8 => VOp::VmovsdStore,
                    _ => VOp::VmovupsStore,
                };
                let it = VecInst::new(op, len_of(bytes.into()), addr);
                out.push(Inst::Vec(VecInst { reg: src, effect: Effect::Store, ..it }));
            }
            other => out.push(other),
        }
    }
    *insts = out;
    Ok(())
}

/// The instruction of one operation.
fn vector(op: Vop, shape: Shape, dst: Reg, a: Reg, b: Place) -> Result<Inst, EmitError> {
    let Some((row, imm)) = row(op, shape) else {
        return Err(EmitError::new("a vector operation without an instruction"));
    };
    let it = VecInst { imm, ..VecInst::new(row, len_of(shape.bytes()), b) };
    Ok(Inst::Vec(match (op, b) {
        (Vop::ShlBy(_) | Vop::ShrUBy(_) | Vop::ShrSBy(_), _) => {
            VecInst { vvvv: dst, effect: Effect::Shift, ..it }
        }
        (Vop::BytesFrom(32), Place::Reg(src)) => stored(VecInst { len: Len::Z, ..it }, dst, src),
        (Vop::BytesFrom(16), Place::Reg(src)) => stored(VecInst { len: Len::Y, ..it }, dst, src),
        (Vop::BytesFrom(_), _) => VecInst { vvvv: dst, len: Len::X, effect: Effect::Shift, ..it },
        (Vop::ToGpr, Place::Reg(src)) => stored(VecInst { len: Len::X, ..it }, dst, src),
        (Vop::FromGpr, _) => VecInst { reg: dst, len: Len::X, ..it },
        // The scalar forms take their upper lanes from another register.
        (
            Vop::Sqrt
            | Vop::Round
            | Vop::Floor
            | Vop::Ceil
            | Vop::Trunc
            | Vop::DoubleFromSingle
            | Vop::SingleFromDouble,
            Place::Reg(upper),
        ) if shape.lanes == 1 => VecInst { reg: dst, vvvv: upper, ..it },
        // Longer than the result.
        (Vop::SingleFromDouble, _) => VecInst { reg: dst, len: len_of(2 * shape.bytes()), ..it },
        (Vop::HalfFromSingle, Place::Reg(src)) => {
            stored(VecInst { len: len_of(2 * shape.bytes()), ..it }, dst, src)
        }
        _ => VecInst { reg: dst, vvvv: a, ..it },
    }))
}

/// A row whose result is the ModRM operand.
fn stored(it: VecInst, dst: Reg, src: Reg) -> VecInst {
    VecInst { reg: src, rm: Place::Reg(dst), effect: Effect::Store, ..it }
}

/// The row of an operation and its immediate.
fn row(op: Vop, shape: Shape) -> Option<(VOp, u8)> {
    let float = shape.elem.is_float();
    let family = |rows: [VOp; 4]| fp(shape, rows);
    // Rows of integers by size of the element.
    let size = shape.elem.size().trailing_zeros() as usize;
    let row = match op {
        Vop::Add if float => family([VOp::Vaddps, VOp::Vaddpd, VOp::Vaddss, VOp::Vaddsd]),
        Vop::Sub if float => family([VOp::Vsubps, VOp::Vsubpd, VOp::Vsubss, VOp::Vsubsd]),
        Vop::Mul if float => family([VOp::Vmulps, VOp::Vmulpd, VOp::Vmulss, VOp::Vmulsd]),
        Vop::Div if float => family([VOp::Vdivps, VOp::Vdivpd, VOp::Vdivss, VOp::Vdivsd]),
        Vop::Sqrt => family([VOp::Vsqrtps, VOp::Vsqrtpd, VOp::Vsqrtss, VOp::Vsqrtsd]),
        Vop::Round | Vop::Floor | Vop::Ceil | Vop::Trunc => {
            let row = family([VOp::Vroundps, VOp::Vroundpd, VOp::Vroundss, VOp::Vroundsd]);
            // The rounding mode, with the precision exception suppressed.
            let mode = match op {
                Vop::Round => 8,
                Vop::Floor => 9,
                Vop::Ceil => 10,
                _ => 11,
            };
            return Some((row, mode));
        }
        Vop::Compare(how) if float => {
            let row = family([VOp::Vcmpps, VOp::Vcmppd, VOp::Vcmpss, VOp::Vcmpsd]);
            return Some((row, predicate(how)));
        }
        Vop::Compare(Compare::Equal) => {
            [VOp::Vpcmpeqb, VOp::Vpcmpeqw, VOp::Vpcmpeqd, VOp::Vpcmpeqq][size]
        }
        // No floats from here on, but in what takes bits as they are.
        Vop::Add => [VOp::Vpaddb, VOp::Vpaddw, VOp::Vpaddd, VOp::Vpaddq][size],
        Vop::Sub => [VOp::Vpsubb, VOp::Vpsubw, VOp::Vpsubd, VOp::Vpsubq][size],
        Vop::Mul if size > 0 => [VOp::Vpmullw, VOp::Vpmulld, VOp::Vpmullq][size - 1],
        Vop::MaxS => [VOp::Vpmaxsb, VOp::Vpmaxsw, VOp::Vpmaxsd, VOp::Vpmaxsq][size],
        Vop::MaxU => [VOp::Vpmaxub, VOp::Vpmaxuw, VOp::Vpmaxud, VOp::Vpmaxuq][size],
        Vop::MinS => [VOp::Vpminsb, VOp::Vpminsw, VOp::Vpminsd, VOp::Vpminsq][size],
        Vop::MinU => [VOp::Vpminub, VOp::Vpminuw, VOp::Vpminud, VOp::Vpminuq][size],
        Vop::Abs if !float => [VOp::Vpabsb, VOp::Vpabsw, VOp::Vpabsd, VOp::Vpabsq][size],
        Vop::And => VOp::Vpandd,
        Vop::Or => VOp::Vpord,
        Vop::Xor => VOp::Vpxord,
        Vop::AndNot => VOp::Vpandnd,
        Vop::Shl if size > 1 => [VOp::Vpsllvd, VOp::Vpsllvq][size - 2],
        Vop::ShrS if size > 1 => [VOp::Vpsravd, VOp::Vpsravq][size - 2],
        Vop::ShrU if size > 1 => [VOp::Vpsrlvd, VOp::Vpsrlvq][size - 2],
        Vop::ShlBy(by) if size > 1 => return Some(([VOp::Vpslld, VOp::Vpsllq][size - 2], by)),
        Vop::ShrSBy(by) if size > 1 => return Some(([VOp::Vpsrad, VOp::Vpsraq][size - 2], by)),
        Vop::ShrUBy(by) if size > 1 => return Some(([VOp::Vpsrld, VOp::Vpsrlq][size - 2], by)),
        Vop::BytesFrom(32) => return Some((VOp::Vextracti64x4, 1)),
        Vop::BytesFrom(16) => return Some((VOp::Vextracti128, 1)),
        Vop::BytesFrom(at) => return Some((VOp::Vpsrldq, at)),
        Vop::WidenU if size > 0 => [VOp::Vpmovzxbw, VOp::Vpmovzxwd, VOp::Vpmovzxdq][size - 1],
        Vop::DoubleFromSingle if shape.lanes == 1 => VOp::Vcvtss2sd,
        Vop::DoubleFromSingle => VOp::Vcvtps2pd,
        Vop::SingleFromDouble if shape.lanes == 1 => VOp::Vcvtsd2ss,
        Vop::SingleFromDouble => VOp::Vcvtpd2ps,
        Vop::SingleFromHalf => VOp::Vcvtph2ps,
        Vop::HalfFromSingle => VOp::Vcvtps2ph,
        Vop::Broadcast if shape.elem == Elem::F32 => VOp::Vbroadcastss,
        Vop::Broadcast => {
            [VOp::Vpbroadcastb, VOp::Vpbroadcastw, VOp::Vpbroadcastd, VOp::Vpbroadcastq][size]
        }
        Vop::BroadcastGpr => {
            [VOp::VpbroadcastbGpr, VOp::VpbroadcastwGpr, VOp::VpbroadcastdGpr, VOp::VpbroadcastqGpr]
                [size]
        }
        Vop::FromGpr if size == 3 => VOp::Vmovq,
        Vop::FromGpr => VOp::Vmovd,
        Vop::ToGpr if size == 3 => VOp::VmovqStore,
        Vop::ToGpr => VOp::VmovdStore,
        _ => return None,
    };
    Some((row, 0))
}

/// Predicates that do not signal; "not equal" holds for NaN.
fn predicate(how: Compare) -> u8 {
    match how {
        Compare::Less | Compare::Below => 17,
        Compare::LessEqual | Compare::BelowEqual => 18,
        Compare::Equal => 0,
        Compare::NotEqual => 4,
    }
}
