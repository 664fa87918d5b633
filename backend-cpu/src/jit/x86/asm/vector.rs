//! The vector and mask instructions, one row each.
//!
//! A row is the name (with the EVEX name after a slash where it differs), the encodings it has,
//! W of EVEX and VEX, opcode map, mandatory prefix, opcode, how a one-byte EVEX displacement is
//! scaled, and the kinds of its operands: ModRM `reg`, `vvvv`, ModRM `rm`. The letters of the
//! kinds: `V` vector, `K` mask, `G` general register, `n` none, `W` vector or memory, `E` general
//! register or memory, `L` mask or memory, `M` memory, `S` memory with a vector index; a digit is
//! an opcode extension in place of the register, with `vvvv` as the destination. Flags: `store`
//! (`rm` is the destination), `imm` (an immediate byte follows), `min256`, `min512` (shortest
//! vector). A unit test decodes what each row encodes with an independent decoder.
//! Source: Intel SDM volume 2, instruction reference.

use super::operand::{Gpr, Len, MaskReg, Mem, Rm, VecReg};

/// Which encodings an instruction has. Mask instructions fix the VEX length bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Forms {
    Vex,
    VexL0,
    VexL1,
    Evex,
    Both,
}

/// What memory an operand covers; scales one-byte EVEX displacements (disp8*N).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tuple {
    /// A whole vector of elements of this many bytes; may be broadcast.
    Full(u8),
    /// Half a vector of elements of this many bytes; may be broadcast.
    Half(u8),
    /// A vector, a half, a quarter or an eighth of one (by shift); no broadcast.
    Part(u8),
    /// This many bytes, whatever the length.
    Fixed(u8),
}

/// What the ModRM `rm` operand may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RmKind {
    Vec,
    VecOrMem,
    Mem,
    Gpr,
    GprOrMem,
    Mask,
    MaskOrMem,
    Scattered,
}

/// What the ModRM `reg` field or `vvvv` names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RegKind {
    None,
    Vec,
    Mask,
    Gpr,
}

/// One instruction: all the encoder and its test need to know.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) forms: Forms,
    pub(super) evex_w: bool,
    pub(super) vex_w: bool,
    pub(super) map: u8,
    pub(super) prefix: u8,
    pub(super) opcode: u8,
    pub(super) tuple: Tuple,
    pub(super) reg: RegKind,
    pub(super) vvvv: RegKind,
    pub(super) rm: RmKind,
    pub(super) digit: Option<u8>,
    pub(super) store: bool,
    pub(super) imm: bool,
    pub(super) min_len: Len,
}

impl Row {
    /// Whether `rm` is of the kind this row takes.
    pub(super) fn accepts(&self, rm: Rm) -> bool {
        match (self.rm, rm) {
            (RmKind::Vec | RmKind::VecOrMem, Rm::Vec(_))
            | (RmKind::Gpr | RmKind::GprOrMem, Rm::Gpr(_))
            | (RmKind::Mask | RmKind::MaskOrMem, Rm::Mask(_)) => true,
            (RmKind::VecOrMem | RmKind::Mem | RmKind::GprOrMem | RmKind::MaskOrMem, Rm::Mem(m)) => {
                !is_scattered(m)
            }
            (RmKind::Scattered, Rm::Mem(m)) => is_scattered(m),
            _ => false,
        }
    }
}

impl VOp {
    /// Whether the ModRM operand may be memory.
    pub(crate) fn takes_memory(self) -> bool {
        matches!(self.row().rm, RmKind::VecOrMem | RmKind::MaskOrMem)
    }

    /// Register `number` of the file that the ModRM operand of this instruction lies in.
    pub(crate) fn register(self, number: u8) -> Rm {
        match self.row().rm {
            RmKind::Gpr | RmKind::GprOrMem => Rm::Gpr(Gpr(number)),
            RmKind::Mask | RmKind::MaskOrMem => Rm::Mask(MaskReg(number)),
            _ => Rm::Vec(VecReg(number)),
        }
    }

    /// Whether an immediate byte follows.
    pub(crate) fn has_immediate(self) -> bool {
        self.row().imm
    }

    /// Bytes of the element that a memory operand can hold in place of a vector (EVEX).
    pub(crate) fn broadcast_element(self) -> Option<u8> {
        match (self.row().forms, self.row().tuple) {
            (Forms::Evex | Forms::Both, Tuple::Full(element) | Tuple::Half(element)) => {
                Some(element)
            }
            _ => None,
        }
    }

    /// Whether the two sources may be exchanged without changing any bit of the result (NaN
    /// payloads aside).
    pub(crate) fn is_commutative(self) -> bool {
        let row = self.row();
        let name = row.name;
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        row.vvvv == RegKind::Vec
            && row.reg == RegKind::Vec
            && !row.imm
            && !name.starts_with("vpandn")
            && !name.starts_with("vandn")
            && starts(&[
                "vadd", "vmulp", "vmuls", "vpadd", "vpmul", "vpand", "vpor", "vpxor", "vpmin",
                "vpmax", "vand", "vorps", "vxor", "vpcmpeq",
            ])
    }
}

const fn is_scattered(mem: Mem) -> bool {
    matches!(mem.index, super::operand::Index::Vec(_))
}

/// The parts of a row that are spelled by name in the table.
const fn wide(name: &str) -> (bool, bool) {
    match name.as_bytes() {
        b"W0" => (false, false),
        b"W1" => (true, true),
        _ => (true, false),
    }
}

const fn map(name: &str) -> u8 {
    match name.as_bytes() {
        b"M0F" => 1,
        b"M0F38" => 2,
        _ => 3,
    }
}

const fn prefix(name: &str) -> u8 {
    match name.as_bytes() {
        b"NP" => 0,
        b"P66" => 1,
        b"PF3" => 2,
        _ => 3,
    }
}

const fn reg_kind(letter: u8) -> RegKind {
    match letter {
        b'V' => RegKind::Vec,
        b'K' => RegKind::Mask,
        b'G' => RegKind::Gpr,
        _ => RegKind::None,
    }
}

const fn rm_kind(letter: u8) -> RmKind {
    match letter {
        b'V' => RmKind::Vec,
        b'W' => RmKind::VecOrMem,
        b'M' => RmKind::Mem,
        b'G' => RmKind::Gpr,
        b'E' => RmKind::GprOrMem,
        b'K' => RmKind::Mask,
        b'L' => RmKind::MaskOrMem,
        _ => RmKind::Scattered,
    }
}

/// `D6VV` is a digit and two kinds, `VVW` three kinds.
const fn kinds(name: &str) -> (Option<u8>, RegKind, RegKind, RmKind) {
    let name = name.as_bytes();
    if name[0] == b'D' {
        (Some(name[1] - b'0'), RegKind::None, reg_kind(name[2]), rm_kind(name[3]))
    } else {
        (None, reg_kind(name[0]), reg_kind(name[1]), rm_kind(name[2]))
    }
}

const fn has(flags: &[&str], flag: &str) -> bool {
    let mut i = 0;
    while i < flags.len() {
        if same(flags[i].as_bytes(), flag.as_bytes()) {
            return true;
        }
        i += 1;
    }
    false
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// Makes the instruction enum [`VOp`] and its table from rows. The row of `Vpaddd`, for instance,
/// becomes the variant `VOp::Vpaddd` and
/// `Row { name: "vpaddd", forms: Forms::Both, map: 1, prefix: 1, opcode: 0xfe, .. }`.
macro_rules! rows {
    ($($op:ident $name:literal $forms:ident $w:ident $map:ident $prefix:ident $opcode:literal
       $tuple:ident ($n:literal) $kinds:ident [$($flag:ident)*];)*) => {
        /// A vector or mask instruction: an index into the table of rows.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[allow(dead_code, reason = "the table holds whole families, so that using one more \
                                     member needs no change here")]
        #[repr(u16)]
        pub(crate) enum VOp {
            $($op,)*
        }

        impl VOp {
            /// Every instruction, in table order.
            #[cfg(test)]
            pub(super) const ALL: &[Self] = &[$(Self::$op),*];

            pub(super) fn row(self) -> &'static Row {
                &ROWS[self as usize]
            }
        }

        static ROWS: &[Row] = &[$({
            const KINDS: (Option<u8>, RegKind, RegKind, RmKind) = kinds(stringify!($kinds));
            const FLAGS: &[&str] = &[$(stringify!($flag)),*];
            Row {
                name: $name,
                forms: Forms::$forms,
                evex_w: wide(stringify!($w)).0,
                vex_w: wide(stringify!($w)).1,
                map: map(stringify!($map)),
                prefix: prefix(stringify!($prefix)),
                opcode: $opcode,
                tuple: Tuple::$tuple($n),
                reg: KINDS.1,
                vvvv: KINDS.2,
                rm: KINDS.3,
                digit: KINDS.0,
                store: has(FLAGS, "store"),
                imm: has(FLAGS, "imm"),
                min_len: if has(FLAGS, "min512") {
                    Len::Z
                } else if has(FLAGS, "min256") {
                    Len::Y
                } else {
                    Len::X
                },
            }
        }),*];
    };
}

rows! {
    // ---- moves, loads, stores
    Vmovups         "vmovups"                    Both  W0 M0F   NP  0x10 Part(0)   VnW  [];
    VmovupsStore    "vmovups"                    Both  W0 M0F   NP  0x11 Part(0)   VnM  [store];
    Vmovupd         "vmovupd"                    Both  WX M0F   P66 0x10 Part(0)   VnW  [];
    VmovupdStore    "vmovupd"                    Both  WX M0F   P66 0x11 Part(0)   VnM  [store];
    Vmovdqu32       "vmovdqu/vmovdqu32"          Both  W0 M0F   PF3 0x6f Part(0)   VnW  [];
    Vmovdqu32Store  "vmovdqu/vmovdqu32"          Both  W0 M0F   PF3 0x7f Part(0)   VnM  [store];
    Vmovdqu64       "vmovdqu64"                  Evex  W1 M0F   PF3 0x6f Part(0)   VnW  [];
    Vmovdqu64Store  "vmovdqu64"                  Evex  W1 M0F   PF3 0x7f Part(0)   VnM  [store];
    Vmovdqu8        "vmovdqu8"                   Evex  W0 M0F   PF2 0x6f Part(0)   VnW  [];
    Vmovdqu8Store   "vmovdqu8"                   Evex  W0 M0F   PF2 0x7f Part(0)   VnM  [store];
    Vmovdqu16       "vmovdqu16"                  Evex  W1 M0F   PF2 0x6f Part(0)   VnW  [];
    Vmovdqu16Store  "vmovdqu16"                  Evex  W1 M0F   PF2 0x7f Part(0)   VnM  [store];
    VmovntpsStore   "vmovntps"                   Both  W0 M0F   NP  0x2b Part(0)   VnM  [store];
    VmovntdqStore   "vmovntdq"                   Both  W0 M0F   P66 0xe7 Part(0)   VnM  [store];
    VmovssLoad      "vmovss"                     Both  W0 M0F   PF3 0x10 Fixed(4)  VnM  [];
    VmovssStore     "vmovss"                     Both  W0 M0F   PF3 0x11 Fixed(4)  VnM  [store];
    VmovssMerge     "vmovss"                     Both  W0 M0F   PF3 0x10 Fixed(4)  VVV  [];
    VmovsdLoad      "vmovsd"                     Both  WX M0F   PF2 0x10 Fixed(8)  VnM  [];
    VmovsdStore     "vmovsd"                     Both  WX M0F   PF2 0x11 Fixed(8)  VnM  [store];
    VmovsdMerge     "vmovsd"                     Both  WX M0F   PF2 0x10 Fixed(8)  VVV  [];
    Vmovd           "vmovd"                      Both  W0 M0F   P66 0x6e Fixed(4)  VnE  [];
    VmovdStore      "vmovd"                      Both  W0 M0F   P66 0x7e Fixed(4)  VnE  [store];
    Vmovq           "vmovq"                      Both  W1 M0F   P66 0x6e Fixed(8)  VnE  [];
    VmovqStore      "vmovq"                      Both  W1 M0F   P66 0x7e Fixed(8)  VnE  [store];
    VmovqVec        "vmovq"                      Both  WX M0F   PF3 0x7e Fixed(8)  VnW  [];
    Vpinsrb         "vpinsrb"                    Both  W0 M0F3A P66 0x20 Fixed(1)  VVE  [imm];
    Vpinsrw         "vpinsrw"                    Both  W0 M0F   P66 0xc4 Fixed(2)  VVE  [imm];
    Vpinsrd         "vpinsrd"                    Both  W0 M0F3A P66 0x22 Fixed(4)  VVE  [imm];
    Vpinsrq         "vpinsrq"                    Both  W1 M0F3A P66 0x22 Fixed(8)  VVE  [imm];
    Vpextrb         "vpextrb"                    Both  W0 M0F3A P66 0x14 Fixed(1)  VnE  [store imm];
    Vpextrw         "vpextrw"                    Both  W0 M0F3A P66 0x15 Fixed(2)  VnE  [store imm];
    Vpextrd         "vpextrd"                    Both  W0 M0F3A P66 0x16 Fixed(4)  VnE  [store imm];
    Vpextrq         "vpextrq"                    Both  W1 M0F3A P66 0x16 Fixed(8)  VnE  [store imm];
    Vmaskmovps      "vmaskmovps"                 Vex   W0 M0F38 P66 0x2c Part(0)   VVM  [];
    VmaskmovpsStore "vmaskmovps"                 Vex   W0 M0F38 P66 0x2e Part(0)   VVM  [store];
    Vmaskmovpd      "vmaskmovpd"                 Vex   W0 M0F38 P66 0x2d Part(0)   VVM  [];
    VmaskmovpdStore "vmaskmovpd"                 Vex   W0 M0F38 P66 0x2f Part(0)   VVM  [store];
    Vpmaskmovd      "vpmaskmovd"                 Vex   W0 M0F38 P66 0x8c Part(0)   VVM  [];
    VpmaskmovdStore "vpmaskmovd"                 Vex   W0 M0F38 P66 0x8e Part(0)   VVM  [store];
    Vpmaskmovq      "vpmaskmovq"                 Vex   W1 M0F38 P66 0x8c Part(0)   VVM  [];
    VpmaskmovqStore "vpmaskmovq"                 Vex   W1 M0F38 P66 0x8e Part(0)   VVM  [store];
    // ---- broadcasts
    Vbroadcastss    "vbroadcastss"               Both  W0 M0F38 P66 0x18 Fixed(4)  VnW  [];
    Vbroadcastsd    "vbroadcastsd"               Both  WX M0F38 P66 0x19 Fixed(8)  VnW  [min256];
    Vpbroadcastb    "vpbroadcastb"               Both  W0 M0F38 P66 0x78 Fixed(1)  VnW  [];
    Vpbroadcastw    "vpbroadcastw"               Both  W0 M0F38 P66 0x79 Fixed(2)  VnW  [];
    Vpbroadcastd    "vpbroadcastd"               Both  W0 M0F38 P66 0x58 Fixed(4)  VnW  [];
    Vpbroadcastq    "vpbroadcastq"               Both  WX M0F38 P66 0x59 Fixed(8)  VnW  [];
    VpbroadcastbGpr "vpbroadcastb"               Evex  W0 M0F38 P66 0x7a Fixed(1)  VnG  [];
    VpbroadcastwGpr "vpbroadcastw"               Evex  W0 M0F38 P66 0x7b Fixed(2)  VnG  [];
    VpbroadcastdGpr "vpbroadcastd"               Evex  W0 M0F38 P66 0x7c Fixed(4)  VnG  [];
    VpbroadcastqGpr "vpbroadcastq"               Evex  W1 M0F38 P66 0x7c Fixed(8)  VnG  [];
    // ---- floating-point arithmetic
    Vaddps          "vaddps"                     Both  W0 M0F   NP  0x58 Full(4)   VVW  [];
    Vaddpd          "vaddpd"                     Both  WX M0F   P66 0x58 Full(8)   VVW  [];
    Vaddss          "vaddss"                     Both  W0 M0F   PF3 0x58 Fixed(4)  VVW  [];
    Vaddsd          "vaddsd"                     Both  WX M0F   PF2 0x58 Fixed(8)  VVW  [];
    Vmulps          "vmulps"                     Both  W0 M0F   NP  0x59 Full(4)   VVW  [];
    Vmulpd          "vmulpd"                     Both  WX M0F   P66 0x59 Full(8)   VVW  [];
    Vmulss          "vmulss"                     Both  W0 M0F   PF3 0x59 Fixed(4)  VVW  [];
    Vmulsd          "vmulsd"                     Both  WX M0F   PF2 0x59 Fixed(8)  VVW  [];
    Vsubps          "vsubps"                     Both  W0 M0F   NP  0x5c Full(4)   VVW  [];
    Vsubpd          "vsubpd"                     Both  WX M0F   P66 0x5c Full(8)   VVW  [];
    Vsubss          "vsubss"                     Both  W0 M0F   PF3 0x5c Fixed(4)  VVW  [];
    Vsubsd          "vsubsd"                     Both  WX M0F   PF2 0x5c Fixed(8)  VVW  [];
    Vdivps          "vdivps"                     Both  W0 M0F   NP  0x5e Full(4)   VVW  [];
    Vdivpd          "vdivpd"                     Both  WX M0F   P66 0x5e Full(8)   VVW  [];
    Vdivss          "vdivss"                     Both  W0 M0F   PF3 0x5e Fixed(4)  VVW  [];
    Vdivsd          "vdivsd"                     Both  WX M0F   PF2 0x5e Fixed(8)  VVW  [];
    Vminps          "vminps"                     Both  W0 M0F   NP  0x5d Full(4)   VVW  [];
    Vminpd          "vminpd"                     Both  WX M0F   P66 0x5d Full(8)   VVW  [];
    Vminss          "vminss"                     Both  W0 M0F   PF3 0x5d Fixed(4)  VVW  [];
    Vminsd          "vminsd"                     Both  WX M0F   PF2 0x5d Fixed(8)  VVW  [];
    Vmaxps          "vmaxps"                     Both  W0 M0F   NP  0x5f Full(4)   VVW  [];
    Vmaxpd          "vmaxpd"                     Both  WX M0F   P66 0x5f Full(8)   VVW  [];
    Vmaxss          "vmaxss"                     Both  W0 M0F   PF3 0x5f Fixed(4)  VVW  [];
    Vmaxsd          "vmaxsd"                     Both  WX M0F   PF2 0x5f Fixed(8)  VVW  [];
    Vsqrtps         "vsqrtps"                    Both  W0 M0F   NP  0x51 Full(4)   VnW  [];
    Vsqrtpd         "vsqrtpd"                    Both  WX M0F   P66 0x51 Full(8)   VnW  [];
    Vsqrtss         "vsqrtss"                    Both  W0 M0F   PF3 0x51 Fixed(4)  VVW  [];
    Vsqrtsd         "vsqrtsd"                    Both  WX M0F   PF2 0x51 Fixed(8)  VVW  [];
    Vfmadd132ps     "vfmadd132ps"                Both  W0 M0F38 P66 0x98 Full(4)   VVW  [];
    Vfmadd132pd     "vfmadd132pd"                Both  W1 M0F38 P66 0x98 Full(8)   VVW  [];
    Vfmadd132ss     "vfmadd132ss"                Both  W0 M0F38 P66 0x99 Fixed(4)  VVW  [];
    Vfmadd132sd     "vfmadd132sd"                Both  W1 M0F38 P66 0x99 Fixed(8)  VVW  [];
    Vfmadd213ps     "vfmadd213ps"                Both  W0 M0F38 P66 0xa8 Full(4)   VVW  [];
    Vfmadd213pd     "vfmadd213pd"                Both  W1 M0F38 P66 0xa8 Full(8)   VVW  [];
    Vfmadd213ss     "vfmadd213ss"                Both  W0 M0F38 P66 0xa9 Fixed(4)  VVW  [];
    Vfmadd213sd     "vfmadd213sd"                Both  W1 M0F38 P66 0xa9 Fixed(8)  VVW  [];
    Vfmadd231ps     "vfmadd231ps"                Both  W0 M0F38 P66 0xb8 Full(4)   VVW  [];
    Vfmadd231pd     "vfmadd231pd"                Both  W1 M0F38 P66 0xb8 Full(8)   VVW  [];
    Vfmadd231ss     "vfmadd231ss"                Both  W0 M0F38 P66 0xb9 Fixed(4)  VVW  [];
    Vfmadd231sd     "vfmadd231sd"                Both  W1 M0F38 P66 0xb9 Fixed(8)  VVW  [];
    Vfmsub132ps     "vfmsub132ps"                Both  W0 M0F38 P66 0x9a Full(4)   VVW  [];
    Vfmsub132pd     "vfmsub132pd"                Both  W1 M0F38 P66 0x9a Full(8)   VVW  [];
    Vfmsub132ss     "vfmsub132ss"                Both  W0 M0F38 P66 0x9b Fixed(4)  VVW  [];
    Vfmsub132sd     "vfmsub132sd"                Both  W1 M0F38 P66 0x9b Fixed(8)  VVW  [];
    Vfmsub213ps     "vfmsub213ps"                Both  W0 M0F38 P66 0xaa Full(4)   VVW  [];
    Vfmsub213pd     "vfmsub213pd"                Both  W1 M0F38 P66 0xaa Full(8)   VVW  [];
    Vfmsub213ss     "vfmsub213ss"                Both  W0 M0F38 P66 0xab Fixed(4)  VVW  [];
    Vfmsub213sd     "vfmsub213sd"                Both  W1 M0F38 P66 0xab Fixed(8)  VVW  [];
    Vfmsub231ps     "vfmsub231ps"                Both  W0 M0F38 P66 0xba Full(4)   VVW  [];
    Vfmsub231pd     "vfmsub231pd"                Both  W1 M0F38 P66 0xba Full(8)   VVW  [];
    Vfmsub231ss     "vfmsub231ss"                Both  W0 M0F38 P66 0xbb Fixed(4)  VVW  [];
    Vfmsub231sd     "vfmsub231sd"                Both  W1 M0F38 P66 0xbb Fixed(8)  VVW  [];
    Vfnmadd132ps    "vfnmadd132ps"               Both  W0 M0F38 P66 0x9c Full(4)   VVW  [];
    Vfnmadd132pd    "vfnmadd132pd"               Both  W1 M0F38 P66 0x9c Full(8)   VVW  [];
    Vfnmadd132ss    "vfnmadd132ss"               Both  W0 M0F38 P66 0x9d Fixed(4)  VVW  [];
    Vfnmadd132sd    "vfnmadd132sd"               Both  W1 M0F38 P66 0x9d Fixed(8)  VVW  [];
    Vfnmadd213ps    "vfnmadd213ps"               Both  W0 M0F38 P66 0xac Full(4)   VVW  [];
    Vfnmadd213pd    "vfnmadd213pd"               Both  W1 M0F38 P66 0xac Full(8)   VVW  [];
    Vfnmadd213ss    "vfnmadd213ss"               Both  W0 M0F38 P66 0xad Fixed(4)  VVW  [];
    Vfnmadd213sd    "vfnmadd213sd"               Both  W1 M0F38 P66 0xad Fixed(8)  VVW  [];
    Vfnmadd231ps    "vfnmadd231ps"               Both  W0 M0F38 P66 0xbc Full(4)   VVW  [];
    Vfnmadd231pd    "vfnmadd231pd"               Both  W1 M0F38 P66 0xbc Full(8)   VVW  [];
    Vfnmadd231ss    "vfnmadd231ss"               Both  W0 M0F38 P66 0xbd Fixed(4)  VVW  [];
    Vfnmadd231sd    "vfnmadd231sd"               Both  W1 M0F38 P66 0xbd Fixed(8)  VVW  [];
    Vfnmsub132ps    "vfnmsub132ps"               Both  W0 M0F38 P66 0x9e Full(4)   VVW  [];
    Vfnmsub132pd    "vfnmsub132pd"               Both  W1 M0F38 P66 0x9e Full(8)   VVW  [];
    Vfnmsub132ss    "vfnmsub132ss"               Both  W0 M0F38 P66 0x9f Fixed(4)  VVW  [];
    Vfnmsub132sd    "vfnmsub132sd"               Both  W1 M0F38 P66 0x9f Fixed(8)  VVW  [];
    Vfnmsub213ps    "vfnmsub213ps"               Both  W0 M0F38 P66 0xae Full(4)   VVW  [];
    Vfnmsub213pd    "vfnmsub213pd"               Both  W1 M0F38 P66 0xae Full(8)   VVW  [];
    Vfnmsub213ss    "vfnmsub213ss"               Both  W0 M0F38 P66 0xaf Fixed(4)  VVW  [];
    Vfnmsub213sd    "vfnmsub213sd"               Both  W1 M0F38 P66 0xaf Fixed(8)  VVW  [];
    Vfnmsub231ps    "vfnmsub231ps"               Both  W0 M0F38 P66 0xbe Full(4)   VVW  [];
    Vfnmsub231pd    "vfnmsub231pd"               Both  W1 M0F38 P66 0xbe Full(8)   VVW  [];
    Vfnmsub231ss    "vfnmsub231ss"               Both  W0 M0F38 P66 0xbf Fixed(4)  VVW  [];
    Vfnmsub231sd    "vfnmsub231sd"               Both  W1 M0F38 P66 0xbf Fixed(8)  VVW  [];
    Vgetexpps       "vgetexpps"                  Evex  W0 M0F38 P66 0x42 Full(4)   VnW  [];
    Vgetexppd       "vgetexppd"                  Evex  W1 M0F38 P66 0x42 Full(8)   VnW  [];
    Vgetmantps      "vgetmantps"                 Evex  W0 M0F3A P66 0x26 Full(4)   VnW  [imm];
    Vgetmantpd      "vgetmantpd"                 Evex  W1 M0F3A P66 0x26 Full(8)   VnW  [imm];
    Vscalefps       "vscalefps"                  Evex  W0 M0F38 P66 0x2c Full(4)   VVW  [];
    Vscalefpd       "vscalefpd"                  Evex  W1 M0F38 P66 0x2c Full(8)   VVW  [];
    Vrangeps        "vrangeps"                   Evex  W0 M0F3A P66 0x50 Full(4)   VVW  [imm];
    Vrangepd        "vrangepd"                   Evex  W1 M0F3A P66 0x50 Full(8)   VVW  [imm];
    Vfixupimmps     "vfixupimmps"                Evex  W0 M0F3A P66 0x54 Full(4)   VVW  [imm];
    Vfixupimmpd     "vfixupimmpd"                Evex  W1 M0F3A P66 0x54 Full(8)   VVW  [imm];
    Vfpclassps      "vfpclassps"                 Evex  W0 M0F3A P66 0x66 Full(4)   KnW  [imm];
    Vfpclasspd      "vfpclasspd"                 Evex  W1 M0F3A P66 0x66 Full(8)   KnW  [imm];
    Vroundps        "vroundps/vrndscaleps"       Both  W0 M0F3A P66 0x08 Full(4)   VnW  [imm];
    Vroundpd        "vroundpd/vrndscalepd"       Both  WX M0F3A P66 0x09 Full(8)   VnW  [imm];
    Vroundss        "vroundss/vrndscaless"       Both  W0 M0F3A P66 0x0a Fixed(4)  VVW  [imm];
    Vroundsd        "vroundsd/vrndscalesd"       Both  WX M0F3A P66 0x0b Fixed(8)  VVW  [imm];
    Vdpbf16ps       "vdpbf16ps"                  Evex  W0 M0F38 PF3 0x52 Full(4)   VVW  [];
    Vpdpbusd        "vpdpbusd"                   Evex  W0 M0F38 P66 0x50 Full(4)   VVW  [];
    // ---- bitwise
    Vandps          "vandps"                     Both  W0 M0F   NP  0x54 Full(4)   VVW  [];
    Vandnps         "vandnps"                    Both  W0 M0F   NP  0x55 Full(4)   VVW  [];
    Vorps           "vorps"                      Both  W0 M0F   NP  0x56 Full(4)   VVW  [];
    Vxorps          "vxorps"                     Both  W0 M0F   NP  0x57 Full(4)   VVW  [];
    Vpandd          "vpand/vpandd"               Both  W0 M0F   P66 0xdb Full(4)   VVW  [];
    Vpandnd         "vpandn/vpandnd"             Both  W0 M0F   P66 0xdf Full(4)   VVW  [];
    Vpord           "vpor/vpord"                 Both  W0 M0F   P66 0xeb Full(4)   VVW  [];
    Vpxord          "vpxor/vpxord"               Both  W0 M0F   P66 0xef Full(4)   VVW  [];
    Vpandq          "vpandq"                     Evex  W1 M0F   P66 0xdb Full(8)   VVW  [];
    Vpandnq         "vpandnq"                    Evex  W1 M0F   P66 0xdf Full(8)   VVW  [];
    Vporq           "vporq"                      Evex  W1 M0F   P66 0xeb Full(8)   VVW  [];
    Vpxorq          "vpxorq"                     Evex  W1 M0F   P66 0xef Full(8)   VVW  [];
    Vpternlogd      "vpternlogd"                 Evex  W0 M0F3A P66 0x25 Full(4)   VVW  [imm];
    Vpternlogq      "vpternlogq"                 Evex  W1 M0F3A P66 0x25 Full(8)   VVW  [imm];
    // ---- integer arithmetic
    Vpaddb          "vpaddb"                     Both  W0 M0F   P66 0xfc Part(0)   VVW  [];
    Vpaddw          "vpaddw"                     Both  W0 M0F   P66 0xfd Part(0)   VVW  [];
    Vpaddd          "vpaddd"                     Both  W0 M0F   P66 0xfe Full(4)   VVW  [];
    Vpaddq          "vpaddq"                     Both  WX M0F   P66 0xd4 Full(8)   VVW  [];
    Vpsubb          "vpsubb"                     Both  W0 M0F   P66 0xf8 Part(0)   VVW  [];
    Vpsubw          "vpsubw"                     Both  W0 M0F   P66 0xf9 Part(0)   VVW  [];
    Vpsubd          "vpsubd"                     Both  W0 M0F   P66 0xfa Full(4)   VVW  [];
    Vpsubq          "vpsubq"                     Both  WX M0F   P66 0xfb Full(8)   VVW  [];
    Vpmullw         "vpmullw"                    Both  W0 M0F   P66 0xd5 Part(0)   VVW  [];
    Vpmulld         "vpmulld"                    Both  W0 M0F38 P66 0x40 Full(4)   VVW  [];
    Vpmullq         "vpmullq"                    Evex  W1 M0F38 P66 0x40 Full(8)   VVW  [];
    Vpmuludq        "vpmuludq"                   Both  WX M0F   P66 0xf4 Full(8)   VVW  [];
    Vpmuldq         "vpmuldq"                    Both  WX M0F38 P66 0x28 Full(8)   VVW  [];
    Vpmulhuw        "vpmulhuw"                   Both  W0 M0F   P66 0xe4 Part(0)   VVW  [];
    Vpminsb         "vpminsb"                    Both  W0 M0F38 P66 0x38 Part(0)   VVW  [];
    Vpminsw         "vpminsw"                    Both  W0 M0F   P66 0xea Part(0)   VVW  [];
    Vpminsd         "vpminsd"                    Both  W0 M0F38 P66 0x39 Full(4)   VVW  [];
    Vpminsq         "vpminsq"                    Evex  W1 M0F38 P66 0x39 Full(8)   VVW  [];
    Vpminub         "vpminub"                    Both  W0 M0F   P66 0xda Part(0)   VVW  [];
    Vpminuw         "vpminuw"                    Both  W0 M0F38 P66 0x3a Part(0)   VVW  [];
    Vpminud         "vpminud"                    Both  W0 M0F38 P66 0x3b Full(4)   VVW  [];
    Vpminuq         "vpminuq"                    Evex  W1 M0F38 P66 0x3b Full(8)   VVW  [];
    Vpmaxsb         "vpmaxsb"                    Both  W0 M0F38 P66 0x3c Part(0)   VVW  [];
    Vpmaxsw         "vpmaxsw"                    Both  W0 M0F   P66 0xee Part(0)   VVW  [];
    Vpmaxsd         "vpmaxsd"                    Both  W0 M0F38 P66 0x3d Full(4)   VVW  [];
    Vpmaxsq         "vpmaxsq"                    Evex  W1 M0F38 P66 0x3d Full(8)   VVW  [];
    Vpmaxub         "vpmaxub"                    Both  W0 M0F   P66 0xde Part(0)   VVW  [];
    Vpmaxuw         "vpmaxuw"                    Both  W0 M0F38 P66 0x3e Part(0)   VVW  [];
    Vpmaxud         "vpmaxud"                    Both  W0 M0F38 P66 0x3f Full(4)   VVW  [];
    Vpmaxuq         "vpmaxuq"                    Evex  W1 M0F38 P66 0x3f Full(8)   VVW  [];
    Vpabsb          "vpabsb"                     Both  W0 M0F38 P66 0x1c Part(0)   VnW  [];
    Vpabsw          "vpabsw"                     Both  W0 M0F38 P66 0x1d Part(0)   VnW  [];
    Vpabsd          "vpabsd"                     Both  W0 M0F38 P66 0x1e Full(4)   VnW  [];
    Vpabsq          "vpabsq"                     Evex  W1 M0F38 P66 0x1f Full(8)   VnW  [];
    Vpopcntd        "vpopcntd"                   Evex  W0 M0F38 P66 0x55 Full(4)   VnW  [];
    Vpopcntq        "vpopcntq"                   Evex  W1 M0F38 P66 0x55 Full(8)   VnW  [];
    Vplzcntd        "vplzcntd"                   Evex  W0 M0F38 P66 0x44 Full(4)   VnW  [];
    Vplzcntq        "vplzcntq"                   Evex  W1 M0F38 P66 0x44 Full(8)   VnW  [];
    // ---- comparisons; `Mask` results go to a mask register, the others to a vector of all-ones lanes
    Vcmpps          "vcmpps"                     Vex   W0 M0F   NP  0xc2 Part(0)   VVW  [imm];
    Vcmppd          "vcmppd"                     Vex   W0 M0F   P66 0xc2 Part(0)   VVW  [imm];
    Vcmpss          "vcmpss"                     Vex   W0 M0F   PF3 0xc2 Fixed(4)  VVW  [imm];
    Vcmpsd          "vcmpsd"                     Vex   W0 M0F   PF2 0xc2 Fixed(8)  VVW  [imm];
    VcmppsMask      "vcmpps"                     Evex  W0 M0F   NP  0xc2 Full(4)   KVW  [imm];
    VcmppdMask      "vcmppd"                     Evex  W1 M0F   P66 0xc2 Full(8)   KVW  [imm];
    VcmpssMask      "vcmpss"                     Evex  W0 M0F   PF3 0xc2 Fixed(4)  KVW  [imm];
    VcmpsdMask      "vcmpsd"                     Evex  W1 M0F   PF2 0xc2 Fixed(8)  KVW  [imm];
    Vpcmpb          "vpcmpb"                     Evex  W0 M0F3A P66 0x3f Part(0)   KVW  [imm];
    Vpcmpub         "vpcmpub"                    Evex  W0 M0F3A P66 0x3e Part(0)   KVW  [imm];
    Vpcmpw          "vpcmpw"                     Evex  W1 M0F3A P66 0x3f Part(0)   KVW  [imm];
    Vpcmpuw         "vpcmpuw"                    Evex  W1 M0F3A P66 0x3e Part(0)   KVW  [imm];
    Vpcmpd          "vpcmpd"                     Evex  W0 M0F3A P66 0x1f Full(4)   KVW  [imm];
    Vpcmpud         "vpcmpud"                    Evex  W0 M0F3A P66 0x1e Full(4)   KVW  [imm];
    Vpcmpq          "vpcmpq"                     Evex  W1 M0F3A P66 0x1f Full(8)   KVW  [imm];
    Vpcmpuq         "vpcmpuq"                    Evex  W1 M0F3A P66 0x1e Full(8)   KVW  [imm];
    Vptestmb        "vptestmb"                   Evex  W0 M0F38 P66 0x26 Part(0)   KVW  [];
    Vptestmw        "vptestmw"                   Evex  W1 M0F38 P66 0x26 Part(0)   KVW  [];
    Vptestmd        "vptestmd"                   Evex  W0 M0F38 P66 0x27 Full(4)   KVW  [];
    Vptestmq        "vptestmq"                   Evex  W1 M0F38 P66 0x27 Full(8)   KVW  [];
    Vptestnmd       "vptestnmd"                  Evex  W0 M0F38 PF3 0x27 Full(4)   KVW  [];
    Vptestnmq       "vptestnmq"                  Evex  W1 M0F38 PF3 0x27 Full(8)   KVW  [];
    Vpcmpeqb        "vpcmpeqb"                   Vex   W0 M0F   P66 0x74 Part(0)   VVW  [];
    Vpcmpeqw        "vpcmpeqw"                   Vex   W0 M0F   P66 0x75 Part(0)   VVW  [];
    Vpcmpeqd        "vpcmpeqd"                   Vex   W0 M0F   P66 0x76 Part(0)   VVW  [];
    Vpcmpeqq        "vpcmpeqq"                   Vex   W0 M0F38 P66 0x29 Part(0)   VVW  [];
    Vpcmpgtb        "vpcmpgtb"                   Vex   W0 M0F   P66 0x64 Part(0)   VVW  [];
    Vpcmpgtw        "vpcmpgtw"                   Vex   W0 M0F   P66 0x65 Part(0)   VVW  [];
    Vpcmpgtd        "vpcmpgtd"                   Vex   W0 M0F   P66 0x66 Part(0)   VVW  [];
    Vpcmpgtq        "vpcmpgtq"                   Vex   W0 M0F38 P66 0x37 Part(0)   VVW  [];
    Vptest          "vptest"                     Vex   W0 M0F38 P66 0x17 Part(0)   VnW  [];
    Vmovmskps       "vmovmskps"                  Vex   W0 M0F   NP  0x50 Part(0)   GnV  [];
    Vmovmskpd       "vmovmskpd"                  Vex   W0 M0F   P66 0x50 Part(0)   GnV  [];
    Vpmovmskb       "vpmovmskb"                  Vex   W0 M0F   P66 0xd7 Part(0)   GnV  [];
    Vpmovm2b        "vpmovm2b"                   Evex  W0 M0F38 PF3 0x28 Part(0)   VnK  [];
    Vpmovm2w        "vpmovm2w"                   Evex  W1 M0F38 PF3 0x28 Part(0)   VnK  [];
    Vpmovm2d        "vpmovm2d"                   Evex  W0 M0F38 PF3 0x38 Part(0)   VnK  [];
    Vpmovm2q        "vpmovm2q"                   Evex  W1 M0F38 PF3 0x38 Part(0)   VnK  [];
    Vpmovb2m        "vpmovb2m"                   Evex  W0 M0F38 PF3 0x29 Part(0)   KnV  [];
    Vpmovw2m        "vpmovw2m"                   Evex  W1 M0F38 PF3 0x29 Part(0)   KnV  [];
    Vpmovd2m        "vpmovd2m"                   Evex  W0 M0F38 PF3 0x39 Part(0)   KnV  [];
    Vpmovq2m        "vpmovq2m"                   Evex  W1 M0F38 PF3 0x39 Part(0)   KnV  [];
    // ---- blends; the fourth register of the VEX forms goes into the immediate's upper half
    Vblendvps       "vblendvps"                  Vex   W0 M0F3A P66 0x4a Part(0)   VVW  [imm];
    Vblendvpd       "vblendvpd"                  Vex   W0 M0F3A P66 0x4b Part(0)   VVW  [imm];
    Vpblendvb       "vpblendvb"                  Vex   W0 M0F3A P66 0x4c Part(0)   VVW  [imm];
    Vblendps        "vblendps"                   Vex   W0 M0F3A P66 0x0c Part(0)   VVW  [imm];
    Vpblendd        "vpblendd"                   Vex   W0 M0F3A P66 0x02 Part(0)   VVW  [imm];
    Vblendmps       "vblendmps"                  Evex  W0 M0F38 P66 0x65 Full(4)   VVW  [];
    Vblendmpd       "vblendmpd"                  Evex  W1 M0F38 P66 0x65 Full(8)   VVW  [];
    Vpblendmb       "vpblendmb"                  Evex  W0 M0F38 P66 0x66 Part(0)   VVW  [];
    Vpblendmw       "vpblendmw"                  Evex  W1 M0F38 P66 0x66 Part(0)   VVW  [];
    Vpblendmd       "vpblendmd"                  Evex  W0 M0F38 P66 0x64 Full(4)   VVW  [];
    Vpblendmq       "vpblendmq"                  Evex  W1 M0F38 P66 0x64 Full(8)   VVW  [];
    // ---- mask registers
    Kmovb           "kmovb"                      VexL0 W0 M0F   P66 0x90 Part(0)   KnL  [];
    Kmovw           "kmovw"                      VexL0 W0 M0F   NP  0x90 Part(0)   KnL  [];
    Kmovd           "kmovd"                      VexL0 W1 M0F   P66 0x90 Part(0)   KnL  [];
    Kmovq           "kmovq"                      VexL0 W1 M0F   NP  0x90 Part(0)   KnL  [];
    KmovbStore      "kmovb"                      VexL0 W0 M0F   P66 0x91 Part(0)   KnM  [store];
    KmovwStore      "kmovw"                      VexL0 W0 M0F   NP  0x91 Part(0)   KnM  [store];
    KmovdStore      "kmovd"                      VexL0 W1 M0F   P66 0x91 Part(0)   KnM  [store];
    KmovqStore      "kmovq"                      VexL0 W1 M0F   NP  0x91 Part(0)   KnM  [store];
    KmovbFromGpr    "kmovb"                      VexL0 W0 M0F   P66 0x92 Part(0)   KnG  [];
    KmovwFromGpr    "kmovw"                      VexL0 W0 M0F   NP  0x92 Part(0)   KnG  [];
    KmovdFromGpr    "kmovd"                      VexL0 W0 M0F   PF2 0x92 Part(0)   KnG  [];
    KmovqFromGpr    "kmovq"                      VexL0 W1 M0F   PF2 0x92 Part(0)   KnG  [];
    KmovbToGpr      "kmovb"                      VexL0 W0 M0F   P66 0x93 Part(0)   GnK  [];
    KmovwToGpr      "kmovw"                      VexL0 W0 M0F   NP  0x93 Part(0)   GnK  [];
    KmovdToGpr      "kmovd"                      VexL0 W0 M0F   PF2 0x93 Part(0)   GnK  [];
    KmovqToGpr      "kmovq"                      VexL0 W1 M0F   PF2 0x93 Part(0)   GnK  [];
    Kandw           "kandw"                      VexL1 W0 M0F   NP  0x41 Part(0)   KKK  [];
    Kandq           "kandq"                      VexL1 W1 M0F   NP  0x41 Part(0)   KKK  [];
    Kandnw          "kandnw"                     VexL1 W0 M0F   NP  0x42 Part(0)   KKK  [];
    Kandnq          "kandnq"                     VexL1 W1 M0F   NP  0x42 Part(0)   KKK  [];
    Knotw           "knotw"                      VexL0 W0 M0F   NP  0x44 Part(0)   KnK  [];
    Knotq           "knotq"                      VexL0 W1 M0F   NP  0x44 Part(0)   KnK  [];
    Korw            "korw"                       VexL1 W0 M0F   NP  0x45 Part(0)   KKK  [];
    Korq            "korq"                       VexL1 W1 M0F   NP  0x45 Part(0)   KKK  [];
    Kxnorw          "kxnorw"                     VexL1 W0 M0F   NP  0x46 Part(0)   KKK  [];
    Kxnorq          "kxnorq"                     VexL1 W1 M0F   NP  0x46 Part(0)   KKK  [];
    Kxorw           "kxorw"                      VexL1 W0 M0F   NP  0x47 Part(0)   KKK  [];
    Kxorq           "kxorq"                      VexL1 W1 M0F   NP  0x47 Part(0)   KKK  [];
    Kortestb        "kortestb"                   VexL0 W0 M0F   P66 0x98 Part(0)   KnK  [];
    Kortestw        "kortestw"                   VexL0 W0 M0F   NP  0x98 Part(0)   KnK  [];
    Kortestq        "kortestq"                   VexL0 W1 M0F   NP  0x98 Part(0)   KnK  [];
    Kshiftlw        "kshiftlw"                   VexL0 W1 M0F3A P66 0x32 Part(0)   KnK  [imm];
    Kshiftlq        "kshiftlq"                   VexL0 W1 M0F3A P66 0x33 Part(0)   KnK  [imm];
    Kshiftrw        "kshiftrw"                   VexL0 W1 M0F3A P66 0x30 Part(0)   KnK  [imm];
    Kshiftrq        "kshiftrq"                   VexL0 W1 M0F3A P66 0x31 Part(0)   KnK  [imm];
    Kunpckbw        "kunpckbw"                   VexL1 W0 M0F   P66 0x4b Part(0)   KKK  [];
    // ---- shifts
    Vpsllvd         "vpsllvd"                    Both  W0 M0F38 P66 0x47 Full(4)   VVW  [];
    Vpsllvq         "vpsllvq"                    Both  W1 M0F38 P66 0x47 Full(8)   VVW  [];
    Vpsrlvd         "vpsrlvd"                    Both  W0 M0F38 P66 0x45 Full(4)   VVW  [];
    Vpsrlvq         "vpsrlvq"                    Both  W1 M0F38 P66 0x45 Full(8)   VVW  [];
    Vpsravd         "vpsravd"                    Both  W0 M0F38 P66 0x46 Full(4)   VVW  [];
    Vpsravq         "vpsravq"                    Evex  W1 M0F38 P66 0x46 Full(8)   VVW  [];
    Vpsllvw         "vpsllvw"                    Evex  W1 M0F38 P66 0x12 Part(0)   VVW  [];
    Vpsrlvw         "vpsrlvw"                    Evex  W1 M0F38 P66 0x10 Part(0)   VVW  [];
    Vpsravw         "vpsravw"                    Evex  W1 M0F38 P66 0x11 Part(0)   VVW  [];
    Vprolvd         "vprolvd"                    Evex  W0 M0F38 P66 0x15 Full(4)   VVW  [];
    Vprolvq         "vprolvq"                    Evex  W1 M0F38 P66 0x15 Full(8)   VVW  [];
    Vprorvd         "vprorvd"                    Evex  W0 M0F38 P66 0x14 Full(4)   VVW  [];
    Vprorvq         "vprorvq"                    Evex  W1 M0F38 P66 0x14 Full(8)   VVW  [];
    Vpslld          "vpslld"                     Both  W0 M0F   P66 0x72 Full(4)   D6VV [imm];
    Vpsrld          "vpsrld"                     Both  W0 M0F   P66 0x72 Full(4)   D2VV [imm];
    Vpsrad          "vpsrad"                     Both  W0 M0F   P66 0x72 Full(4)   D4VV [imm];
    Vpsllq          "vpsllq"                     Both  WX M0F   P66 0x73 Full(8)   D6VV [imm];
    Vpsrlq          "vpsrlq"                     Both  WX M0F   P66 0x73 Full(8)   D2VV [imm];
    Vpsraq          "vpsraq"                     Evex  W1 M0F   P66 0x72 Full(8)   D4VV [imm];
    Vpsllw          "vpsllw"                     Both  W0 M0F   P66 0x71 Part(0)   D6VV [imm];
    Vpsrlw          "vpsrlw"                     Both  W0 M0F   P66 0x71 Part(0)   D2VV [imm];
    Vpsraw          "vpsraw"                     Both  W0 M0F   P66 0x71 Part(0)   D4VV [imm];
    Vpslldq         "vpslldq"                    Both  W0 M0F   P66 0x73 Part(0)   D7VV [imm];
    Vpsrldq         "vpsrldq"                    Both  W0 M0F   P66 0x73 Part(0)   D3VV [imm];
    Vprold          "vprold"                     Evex  W0 M0F   P66 0x72 Full(4)   D1VV [imm];
    Vprolq          "vprolq"                     Evex  W1 M0F   P66 0x72 Full(8)   D1VV [imm];
    Vprord          "vprord"                     Evex  W0 M0F   P66 0x72 Full(4)   D0VV [imm];
    Vprorq          "vprorq"                     Evex  W1 M0F   P66 0x72 Full(8)   D0VV [imm];
    // ---- conversions; the length is that of the wider side
    Vcvtdq2ps       "vcvtdq2ps"                  Both  W0 M0F   NP  0x5b Full(4)   VnW  [];
    Vcvtudq2ps      "vcvtudq2ps"                 Evex  W0 M0F   PF2 0x7a Full(4)   VnW  [];
    Vcvtps2dq       "vcvtps2dq"                  Both  W0 M0F   P66 0x5b Full(4)   VnW  [];
    Vcvttps2dq      "vcvttps2dq"                 Both  W0 M0F   PF3 0x5b Full(4)   VnW  [];
    Vcvttps2udq     "vcvttps2udq"                Evex  W0 M0F   NP  0x78 Full(4)   VnW  [];
    Vcvtqq2ps       "vcvtqq2ps"                  Evex  W1 M0F   NP  0x5b Full(8)   VnW  [];
    Vcvtuqq2ps      "vcvtuqq2ps"                 Evex  W1 M0F   PF2 0x7a Full(8)   VnW  [];
    Vcvttps2qq      "vcvttps2qq"                 Evex  W0 M0F   P66 0x7a Half(4)   VnW  [];
    Vcvttps2uqq     "vcvttps2uqq"                Evex  W0 M0F   P66 0x78 Half(4)   VnW  [];
    Vcvtdq2pd       "vcvtdq2pd"                  Both  W0 M0F   PF3 0xe6 Half(4)   VnW  [];
    Vcvtudq2pd      "vcvtudq2pd"                 Evex  W0 M0F   PF3 0x7a Half(4)   VnW  [];
    Vcvtqq2pd       "vcvtqq2pd"                  Evex  W1 M0F   PF3 0xe6 Full(8)   VnW  [];
    Vcvtuqq2pd      "vcvtuqq2pd"                 Evex  W1 M0F   PF3 0x7a Full(8)   VnW  [];
    Vcvttpd2dq      "vcvttpd2dq"                 Both  WX M0F   P66 0xe6 Full(8)   VnW  [];
    Vcvttpd2udq     "vcvttpd2udq"                Evex  W1 M0F   NP  0x78 Full(8)   VnW  [];
    Vcvttpd2qq      "vcvttpd2qq"                 Evex  W1 M0F   P66 0x7a Full(8)   VnW  [];
    Vcvttpd2uqq     "vcvttpd2uqq"                Evex  W1 M0F   P66 0x78 Full(8)   VnW  [];
    Vcvtps2pd       "vcvtps2pd"                  Both  W0 M0F   NP  0x5a Half(4)   VnW  [];
    Vcvtpd2ps       "vcvtpd2ps"                  Both  WX M0F   P66 0x5a Full(8)   VnW  [];
    Vcvtph2ps       "vcvtph2ps"                  Both  W0 M0F38 P66 0x13 Part(1)   VnW  [];
    Vcvtps2ph       "vcvtps2ph"                  Both  W0 M0F3A P66 0x1d Part(1)   VnW  [store imm];
    Vcvtneps2bf16   "vcvtneps2bf16"              Evex  W0 M0F38 PF3 0x72 Full(4)   VnW  [];
    Vcvtsi2ss32     "vcvtsi2ss"                  Both  W0 M0F   PF3 0x2a Fixed(4)  VVE  [];
    Vcvtsi2ss64     "vcvtsi2ss"                  Both  W1 M0F   PF3 0x2a Fixed(8)  VVE  [];
    Vcvtsi2sd32     "vcvtsi2sd"                  Both  W0 M0F   PF2 0x2a Fixed(4)  VVE  [];
    Vcvtsi2sd64     "vcvtsi2sd"                  Both  W1 M0F   PF2 0x2a Fixed(8)  VVE  [];
    Vcvtusi2ss64    "vcvtusi2ss"                 Evex  W1 M0F   PF3 0x7b Fixed(8)  VVE  [];
    Vcvtusi2sd64    "vcvtusi2sd"                 Evex  W1 M0F   PF2 0x7b Fixed(8)  VVE  [];
    Vcvttss2si32    "vcvttss2si"                 Both  W0 M0F   PF3 0x2c Fixed(4)  GnW  [];
    Vcvttss2si64    "vcvttss2si"                 Both  W1 M0F   PF3 0x2c Fixed(4)  GnW  [];
    Vcvttsd2si32    "vcvttsd2si"                 Both  W0 M0F   PF2 0x2c Fixed(8)  GnW  [];
    Vcvttsd2si64    "vcvttsd2si"                 Both  W1 M0F   PF2 0x2c Fixed(8)  GnW  [];
    Vcvtss2sd       "vcvtss2sd"                  Both  W0 M0F   PF3 0x5a Fixed(4)  VVW  [];
    Vcvtsd2ss       "vcvtsd2ss"                  Both  WX M0F   PF2 0x5a Fixed(8)  VVW  [];
    Vpmovsxbw       "vpmovsxbw"                  Both  W0 M0F38 P66 0x20 Part(1)   VnW  [];
    Vpmovzxbw       "vpmovzxbw"                  Both  W0 M0F38 P66 0x30 Part(1)   VnW  [];
    Vpmovsxbd       "vpmovsxbd"                  Both  W0 M0F38 P66 0x21 Part(2)   VnW  [];
    Vpmovzxbd       "vpmovzxbd"                  Both  W0 M0F38 P66 0x31 Part(2)   VnW  [];
    Vpmovsxbq       "vpmovsxbq"                  Both  W0 M0F38 P66 0x22 Part(3)   VnW  [];
    Vpmovzxbq       "vpmovzxbq"                  Both  W0 M0F38 P66 0x32 Part(3)   VnW  [];
    Vpmovsxwd       "vpmovsxwd"                  Both  W0 M0F38 P66 0x23 Part(1)   VnW  [];
    Vpmovzxwd       "vpmovzxwd"                  Both  W0 M0F38 P66 0x33 Part(1)   VnW  [];
    Vpmovsxwq       "vpmovsxwq"                  Both  W0 M0F38 P66 0x24 Part(2)   VnW  [];
    Vpmovzxwq       "vpmovzxwq"                  Both  W0 M0F38 P66 0x34 Part(2)   VnW  [];
    Vpmovsxdq       "vpmovsxdq"                  Both  W0 M0F38 P66 0x25 Part(1)   VnW  [];
    Vpmovzxdq       "vpmovzxdq"                  Both  W0 M0F38 P66 0x35 Part(1)   VnW  [];
    Vpmovwb         "vpmovwb"                    Evex  W0 M0F38 PF3 0x30 Part(1)   VnW  [store];
    Vpmovdb         "vpmovdb"                    Evex  W0 M0F38 PF3 0x31 Part(2)   VnW  [store];
    Vpmovqb         "vpmovqb"                    Evex  W0 M0F38 PF3 0x32 Part(3)   VnW  [store];
    Vpmovdw         "vpmovdw"                    Evex  W0 M0F38 PF3 0x33 Part(1)   VnW  [store];
    Vpmovqw         "vpmovqw"                    Evex  W0 M0F38 PF3 0x34 Part(2)   VnW  [store];
    Vpmovqd         "vpmovqd"                    Evex  W0 M0F38 PF3 0x35 Part(1)   VnW  [store];
    Vpmovusdw       "vpmovusdw"                  Evex  W0 M0F38 PF3 0x13 Part(1)   VnW  [store];
    Vpmovsdb        "vpmovsdb"                   Evex  W0 M0F38 PF3 0x21 Part(2)   VnW  [store];
    Vpmovsdw        "vpmovsdw"                   Evex  W0 M0F38 PF3 0x23 Part(1)   VnW  [store];
    Vpmovusdb       "vpmovusdb"                  Evex  W0 M0F38 PF3 0x11 Part(2)   VnW  [store];
    Vpacksswb       "vpacksswb"                  Both  W0 M0F   P66 0x63 Part(0)   VVW  [];
    Vpackssdw       "vpackssdw"                  Both  W0 M0F   P66 0x6b Full(4)   VVW  [];
    Vpackuswb       "vpackuswb"                  Both  W0 M0F   P66 0x67 Part(0)   VVW  [];
    Vpackusdw       "vpackusdw"                  Both  W0 M0F38 P66 0x2b Full(4)   VVW  [];
    // ---- gathers and scatters; the index decides between d and q, the element between the letters
    Vgatherdps      "vgatherdps"                 Vex   W0 M0F38 P66 0x92 Fixed(4)  VVS  [];
    Vgatherdpd      "vgatherdpd"                 Vex   W1 M0F38 P66 0x92 Fixed(8)  VVS  [];
    Vgatherqps      "vgatherqps"                 Vex   W0 M0F38 P66 0x93 Fixed(4)  VVS  [];
    Vgatherqpd      "vgatherqpd"                 Vex   W1 M0F38 P66 0x93 Fixed(8)  VVS  [];
    Vpgatherdd      "vpgatherdd"                 Vex   W0 M0F38 P66 0x90 Fixed(4)  VVS  [];
    Vpgatherdq      "vpgatherdq"                 Vex   W1 M0F38 P66 0x90 Fixed(8)  VVS  [];
    Vpgatherqd      "vpgatherqd"                 Vex   W0 M0F38 P66 0x91 Fixed(4)  VVS  [];
    Vpgatherqq      "vpgatherqq"                 Vex   W1 M0F38 P66 0x91 Fixed(8)  VVS  [];
    VgatherdpsMask  "vgatherdps"                 Evex  W0 M0F38 P66 0x92 Fixed(4)  VnS  [];
    VgatherdpdMask  "vgatherdpd"                 Evex  W1 M0F38 P66 0x92 Fixed(8)  VnS  [];
    VgatherqpsMask  "vgatherqps"                 Evex  W0 M0F38 P66 0x93 Fixed(4)  VnS  [];
    VgatherqpdMask  "vgatherqpd"                 Evex  W1 M0F38 P66 0x93 Fixed(8)  VnS  [];
    VpgatherddMask  "vpgatherdd"                 Evex  W0 M0F38 P66 0x90 Fixed(4)  VnS  [];
    VpgatherdqMask  "vpgatherdq"                 Evex  W1 M0F38 P66 0x90 Fixed(8)  VnS  [];
    VpgatherqdMask  "vpgatherqd"                 Evex  W0 M0F38 P66 0x91 Fixed(4)  VnS  [];
    VpgatherqqMask  "vpgatherqq"                 Evex  W1 M0F38 P66 0x91 Fixed(8)  VnS  [];
    Vpscatterdd     "vpscatterdd"                Evex  W0 M0F38 P66 0xa0 Fixed(4)  VnS  [store];
    Vpscatterdq     "vpscatterdq"                Evex  W1 M0F38 P66 0xa0 Fixed(8)  VnS  [store];
    Vpscatterqd     "vpscatterqd"                Evex  W0 M0F38 P66 0xa1 Fixed(4)  VnS  [store];
    Vpscatterqq     "vpscatterqq"                Evex  W1 M0F38 P66 0xa1 Fixed(8)  VnS  [store];
    // ---- shuffles
    Vextractf128    "vextractf128/vextractf32x4" Both  W0 M0F3A P66 0x19 Fixed(16) VnW  [store imm min256];
    Vextracti128    "vextracti128/vextracti32x4" Both  W0 M0F3A P66 0x39 Fixed(16) VnW  [store imm min256];
    Vextractf64x4   "vextractf64x4"              Evex  W1 M0F3A P66 0x1b Fixed(32) VnW  [store imm min512];
    Vextracti64x4   "vextracti64x4"              Evex  W1 M0F3A P66 0x3b Fixed(32) VnW  [store imm min512];
    Vinsertf128     "vinsertf128/vinsertf32x4"   Both  W0 M0F3A P66 0x18 Fixed(16) VVW  [imm min256];
    Vinserti128     "vinserti128/vinserti32x4"   Both  W0 M0F3A P66 0x38 Fixed(16) VVW  [imm min256];
    Vinsertf64x4    "vinsertf64x4"               Evex  W1 M0F3A P66 0x1a Fixed(32) VVW  [imm min512];
    Vinserti64x4    "vinserti64x4"               Evex  W1 M0F3A P66 0x3a Fixed(32) VVW  [imm min512];
    Vshufps         "vshufps"                    Both  W0 M0F   NP  0xc6 Full(4)   VVW  [imm];
    Vshufpd         "vshufpd"                    Both  WX M0F   P66 0xc6 Full(8)   VVW  [imm];
    Vpermilps       "vpermilps"                  Both  W0 M0F3A P66 0x04 Full(4)   VnW  [imm];
    Vpermilpd       "vpermilpd"                  Both  WX M0F3A P66 0x05 Full(8)   VnW  [imm];
    Vmovhlps        "vmovhlps"                   Both  W0 M0F   NP  0x12 Part(0)   VVV  [];
    Vmovlhps        "vmovlhps"                   Both  W0 M0F   NP  0x16 Part(0)   VVV  [];
    Vpshufd         "vpshufd"                    Both  W0 M0F   P66 0x70 Full(4)   VnW  [imm];
    Vpshufb         "vpshufb"                    Both  W0 M0F38 P66 0x00 Part(0)   VVW  [];
    Vpunpcklbw      "vpunpcklbw"                 Both  W0 M0F   P66 0x60 Part(0)   VVW  [];
    Vpunpcklwd      "vpunpcklwd"                 Both  W0 M0F   P66 0x61 Part(0)   VVW  [];
    Vpunpckldq      "vpunpckldq"                 Both  W0 M0F   P66 0x62 Full(4)   VVW  [];
    Vpunpcklqdq     "vpunpcklqdq"                Both  WX M0F   P66 0x6c Full(8)   VVW  [];
    Vpunpckhbw      "vpunpckhbw"                 Both  W0 M0F   P66 0x68 Part(0)   VVW  [];
    Vpunpckhwd      "vpunpckhwd"                 Both  W0 M0F   P66 0x69 Part(0)   VVW  [];
    Vpunpckhdq      "vpunpckhdq"                 Both  W0 M0F   P66 0x6a Full(4)   VVW  [];
    Vpunpckhqdq     "vpunpckhqdq"                Both  WX M0F   P66 0x6d Full(8)   VVW  [];
    Vunpcklps       "vunpcklps"                  Both  W0 M0F   NP  0x14 Full(4)   VVW  [];
    Vunpckhps       "vunpckhps"                  Both  W0 M0F   NP  0x15 Full(4)   VVW  [];
    Vperm2f128      "vperm2f128"                 Vex   W0 M0F3A P66 0x06 Part(0)   VVW  [imm min256];
    Vperm2i128      "vperm2i128"                 Vex   W0 M0F3A P66 0x46 Part(0)   VVW  [imm min256];
    Vpermq          "vpermq"                     Both  W1 M0F3A P66 0x00 Full(8)   VnW  [imm min256];
    Vpermpd         "vpermpd"                    Both  W1 M0F3A P66 0x01 Full(8)   VnW  [imm min256];
    Vpermd          "vpermd"                     Both  W0 M0F38 P66 0x36 Full(4)   VVW  [min256];
    Vpermps         "vpermps"                    Both  W0 M0F38 P66 0x16 Full(4)   VVW  [min256];
    Vpermw          "vpermw"                     Evex  W1 M0F38 P66 0x8d Part(0)   VVW  [];
    Vpermt2w        "vpermt2w"                   Evex  W1 M0F38 P66 0x7d Part(0)   VVW  [];
    Vpermt2d        "vpermt2d"                   Evex  W0 M0F38 P66 0x7e Full(4)   VVW  [];
    Vpermt2q        "vpermt2q"                   Evex  W1 M0F38 P66 0x7e Full(8)   VVW  [];
    Vshuff32x4      "vshuff32x4"                 Evex  W0 M0F3A P66 0x23 Full(4)   VVW  [imm min256];
    Vshuff64x2      "vshuff64x2"                 Evex  W1 M0F3A P66 0x23 Full(8)   VVW  [imm min256];
    Valignd         "valignd"                    Evex  W0 M0F3A P66 0x03 Full(4)   VVW  [imm];
    Valignq         "valignq"                    Evex  W1 M0F3A P66 0x03 Full(8)   VVW  [imm];
    // ---- general registers with a VEX encoding: three operands, flags untouched
    Shlx32          "shlx"                       VexL0 W0 M0F38 P66 0xf7 Part(0)   GGE  [];
    Shlx64          "shlx"                       VexL0 W1 M0F38 P66 0xf7 Part(0)   GGE  [];
    Shrx32          "shrx"                       VexL0 W0 M0F38 PF2 0xf7 Part(0)   GGE  [];
    Shrx64          "shrx"                       VexL0 W1 M0F38 PF2 0xf7 Part(0)   GGE  [];
    Sarx32          "sarx"                       VexL0 W0 M0F38 PF3 0xf7 Part(0)   GGE  [];
    Sarx64          "sarx"                       VexL0 W1 M0F38 PF3 0xf7 Part(0)   GGE  [];
}
