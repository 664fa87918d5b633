//! What arguments a kernel takes, and the check of those it is given.

use super::raw::GROUPS;
use super::{
    Arg, AttentionSpec, Caps, ContractDim, ContractSpec, ConvolutionSpec, DeviceError, RawKernel,
};
use crate::dtype::DType;
use crate::ir::{Access, Extents, Kernel, Member, Members, VarInfo};
use crate::scalar::Scalar;
use smallvec::SmallVec;

/// The arguments that a kernel declares. Whatever runs it checks them by this at each launch: what a
/// verified kernel accesses is in bounds of such arguments only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    params: Vec<Span>,
    vars: Vec<VarInfo>,
    /// The members of a family that launches are for.
    members: Option<Members>,
    /// The number of scalars before groups and lengths, of a raw kernel, whose launches give both.
    raw: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    /// `usize::MAX` if no memory is so long, or if a member of a family says it; 0 if a scalar does.
    bytes: usize,
    element: usize,
    /// Bytes that offsets are multiples of.
    align: usize,
    written: bool,
    /// The scalars that say how many elements it has, which is at most what `bytes` holds.
    extents: Option<Extents>,
}

/// What is known of a buffer that a kernel is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its bytes.
    pub bytes: usize,
    /// Whether it may be written: not if it is memory that something else owns, or that the host is
    /// looking at.
    pub writable: bool,
}

impl Signature {
    /// The arguments of this kernel.
    pub fn of(kernel: &Kernel) -> Signature {
        let span = |p: &crate::ir::ParamInfo| {
            let open = p.is_open() && p.extents.is_none();
            let len = if open { None } else { usize::try_from(p.len).ok() };
            let len = len.unwrap_or(usize::MAX);
            let (element, written) = (p.dtype.size(), p.access != Access::Read);
            let bytes = len.saturating_mul(element);
            Span { bytes, element, align: element, written, extents: p.extents }
        };
        let params = kernel.params().iter().map(span).collect();
        let (vars, members) = (kernel.vars().to_vec(), kernel.members().cloned());
        Signature { params, vars, members, raw: None }
    }

    /// The arguments A, B and C of a contraction in memory; none if it would go below their starts, or
    /// beyond any memory.
    pub fn of_contraction(spec: &ContractSpec) -> Option<Signature> {
        let dims = [&spec.batch, &spec.m, &spec.n, &spec.k];
        let dims: Vec<&ContractDim> = dims.into_iter().flatten().collect();
        let empty = dims.iter().any(|dim| dim.len == 0);
        let span = |dtype: DType, offset: isize, stride: fn(&ContractDim) -> isize, written| {
            let reach = |dim: &&ContractDim| (stride(dim) as i128) * (dim.len as i128 - 1);
            let below: i128 = dims.iter().map(reach).filter(|x| *x < 0).sum();
            let above: i128 = dims.iter().map(reach).filter(|x| *x > 0).sum();
            let (offset, element) = (offset as i128, dtype.size());
            let len = if empty { 0 } else { usize::try_from(offset + above + 1).ok()? };
            let bytes = len.checked_mul(element).filter(|_| empty || offset + below >= 0)?;
            Some(Span { bytes, element, align: element, written, extents: None })
        };
        let [a, b] = spec.offset;
        let mut params =
            vec![span(spec.a, a, |dim| dim.a, false)?, span(spec.b, b, |dim| dim.b, false)?];
        if spec.bias {
            let n: usize = spec.n.iter().map(|dim| dim.len).product();
            let element = spec.c.size();
            let bytes = n.checked_mul(element)?;
            params.push(Span { bytes, element, align: element, written: false, extents: None });
        }
        params.push(span(spec.c, 0, |dim| dim.c, true)?);
        Some(Signature { params, vars: Vec::new(), members: None, raw: None })
    }

    /// The arguments of a convolution; none if it would go beyond any memory.
    pub fn of_convolution(spec: &ConvolutionSpec) -> Option<Signature> {
        let ([first, second], computed) = spec.roles();
        let span = |role: usize, written| {
            let element = spec.dtype(role).size();
            let bytes = spec.span(role)?.checked_mul(element)?;
            Some(Span { bytes, element, align: element, written, extents: None })
        };
        let params = vec![span(first, false)?, span(second, false)?, span(computed, true)?];
        Some(Signature { params, vars: Vec::new(), members: None, raw: None })
    }

    /// The arguments of attention; none if it would go beyond any memory.
    pub fn of_attention(spec: &AttentionSpec) -> Option<Signature> {
        let span = |tensor: usize| {
            let element = spec.dtype_of(tensor).size();
            let bytes = spec.span(tensor)?.checked_mul(element)?;
            let written = tensor >= AttentionSpec::RESULT;
            Some(Span { bytes, element, align: element, written, extents: None })
        };
        let params: Option<Vec<Span>> = (0..spec.buffers()).map(span).collect();
        let scale = VarInfo::any(DType::F32);
        Some(Signature { params: params?, vars: vec![scale], members: None, raw: None })
    }

    /// The arguments of a raw kernel on a device with these limits: buffers, the scalars of the code, the groups per axis,
    /// and the length of each buffer in elements.
    pub fn of_raw(kernel: &RawKernel, caps: &Caps) -> Signature {
        let params = kernel.params.iter().map(|param| {
            let (element, written) = (param.dtype.size(), param.access != Access::Read);
            let align = param.align.max(element).max(caps.offset_align);
            Span { bytes: 0, element, align, written, extents: None }
        });
        let most = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let own = kernel.vars.iter().map(|&dtype| VarInfo::any(dtype));
        let groups = caps.max_groups.iter().map(|&n| VarInfo {
            dtype: DType::U32,
            min: 0,
            max: most(n).min(u32::MAX.into()),
            multiple_of: 1,
        });
        let lens = kernel.params.iter().map(|param| {
            let max = most(caps.max_binding / param.dtype.size() as u64);
            VarInfo { dtype: DType::I64, min: 0, max, multiple_of: 1 }
        });
        let vars = own.chain(groups).chain(lens).collect();
        let raw = Some(kernel.vars.len());
        Signature { params: params.collect(), vars, members: None, raw }
    }

    /// Whether a launch may write to this buffer.
    pub fn writes(&self, slot: usize) -> bool {
        self.params.get(slot).is_none_or(|span| span.written)
    }

    /// The bytes that each buffer has to have.
    pub fn spans(&self) -> impl Iterator<Item = usize> {
        self.params.iter().map(|span| span.bytes)
    }

    /// Checks number, kinds, lengths, alignment and rights of the arguments, and that scalars are
    /// numbers of their dtypes in the ranges declared for them.
    ///
    /// ```
    /// use zyx::internals::hal::{Arg, Extent, Signature};
    /// use zyx::internals::ir::{Access, Builder};
    /// use zyx::DType;
    ///
    /// let mut b = Builder::new("k");
    /// b.param(DType::F32, 4, Access::Write);
    /// b.var(DType::I64, 0, 9);
    /// let signature = Signature::of(&b.finish());
    /// let extent = |bytes: &usize| Extent { bytes: *bytes, writable: true };
    /// let check = |bytes, scalar| {
    ///     signature.check(&[Arg::Buffer(&bytes, 0), Arg::Scalar(scalar)], extent)
    /// };
    /// assert!(check(16, 9).is_ok());
    /// assert!(check(12, 9).is_err() && check(16, 10).is_err());
    /// ```
    ///
    /// # Errors
    /// Names the first argument that does not fit, and what does.
    pub fn check<B>(
        &self,
        args: &[Arg<'_, B>],
        extent: impl Fn(&B) -> Extent,
    ) -> Result<(), DeviceError> {
        let (n, m) = (self.params.len(), self.vars.len());
        if args.len() != n + m {
            let given = args.len();
            return refuse(format_args!("{given} arguments, not {n} buffers and {m} scalars"));
        }
        let (buffers, scalars) = args.split_at(n);
        self.check_own([0; 2], buffers, scalars, extent)
    }

    /// As [`Signature::check`] of buffers and scalars apart, without so many of each at the front that the
    /// launch makes itself.
    ///
    /// # Errors
    /// Likewise.
    pub fn check_own<B>(
        &self,
        given: [usize; 2],
        buffers: &[Arg<'_, B>],
        scalars: &[Arg<'_, B>],
        extent: impl Fn(&B) -> Extent,
    ) -> Result<(), DeviceError> {
        let expected = [self.params.len() - given[0], self.vars.len() - given[1]];
        if [buffers.len(), scalars.len()] != expected {
            let ([n, m], given) = (expected, buffers.len() + scalars.len());
            return refuse(format_args!("{given} arguments, not {n} buffers and {m} scalars"));
        }
        let Some(members) = &self.members else {
            return self.check_for(None, given, buffers, scalars, extent);
        };
        // A launch of a general kernel is for a member, whose numbers are the last scalars.
        let bits = |arg: &Arg<'_, B>| match *arg {
            Arg::Scalar(bits) => Some(bits),
            Arg::Buffer(..) => None,
        };
        let own = members.own_scalars() - given[1];
        let values: SmallVec<[u64; 16]> = scalars[own..].iter().filter_map(bits).collect();
        let mut result =
            refuse(format_args!("the last scalars are those of no kernel it stands for"));
        for member in members.with(&values) {
            result = self.check_for(Some(&member), given, buffers, scalars, &extent);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn check_for<B>(
        &self,
        member: Option<&Member>,
        given: [usize; 2],
        buffers: &[Arg<'_, B>],
        scalars: &[Arg<'_, B>],
        extent: impl Fn(&B) -> Extent,
    ) -> Result<(), DeviceError> {
        let n = self.params.len();
        let spans = self.params.iter().enumerate().skip(given[0]);
        for (arg, (slot, span)) in buffers.iter().zip(spans) {
            let Arg::Buffer(buffer, offset) = *arg else {
                return refuse(format_args!("argument {slot} is a scalar, not a buffer"));
            };
            let Extent { bytes, writable } = extent(buffer);
            let scalar = |slot: usize| match scalars.get(slot) {
                Some(&Arg::Scalar(bits)) if given[1] == 0 => Some(bits),
                _ => None,
            };
            let len = match (span.extents, member, self.raw) {
                (Some(extents), ..) => {
                    let extent = |slot: u16| scalar(slot.into()).map_or(-1, |bits| bits as i64);
                    let most = (span.bytes / span.element) as u64;
                    let len = extents.product(extent).filter(|&len| len <= most);
                    if len.is_none() {
                        return refuse(format_args!("argument {slot} has no {extents} elements"));
                    }
                    len
                }
                (None, Some(member), _) => Some(member.lens()[slot]),
                (None, None, Some(own)) => Some(scalar(own + GROUPS + slot).unwrap_or(u64::MAX)),
                (None, None, None) => None,
            };
            let needed = len.map_or(span.bytes, |len| {
                usize::try_from(len).unwrap_or(usize::MAX).saturating_mul(span.element)
            });
            if offset.checked_add(needed).is_none_or(|end| end > bytes) {
                return refuse(format_args!(
                    "argument {slot} has {bytes} bytes from byte {offset} on, the kernel needs {needed}"
                ));
            }
            if !offset.is_multiple_of(span.element) {
                return refuse(format_args!("argument {slot} starts inside an element"));
            }
            if !offset.is_multiple_of(span.align) {
                let align = span.align;
                return refuse(format_args!(
                    "argument {slot} starts at byte {offset}, which is no multiple of {align}"
                ));
            }
            if span.written && !writable {
                return refuse(format_args!(
                    "argument {slot} is written, but it is lent or the host looks at it"
                ));
            }
        }
        let vars = self.vars.iter().enumerate().skip(given[1]);
        for (arg, (slot, &var)) in scalars.iter().zip(vars) {
            // Those of a member are in other ranges than all that the kernel stands for.
            let range = member.and_then(|member| member.ranges().get(slot));
            let var = range.map_or(var, |&(min, max)| VarInfo { min, max, ..var });
            let Arg::Scalar(bits) = *arg else {
                return refuse(format_args!("argument {} is a buffer, not a scalar", n + slot));
            };
            let x = Scalar::from_bits(var.dtype, bits);
            if x.bits() != bits {
                let dtype = var.dtype;
                return refuse(format_args!("scalar {slot} is {bits:#x}, which is no {dtype}"));
            }
            let any = (var.min, var.max) == (i64::MIN, i64::MAX) || !var.dtype.is_int();
            if var.dtype.is_int() && x.to_i128() % i128::from(var.multiple_of) != 0 {
                let by = var.multiple_of;
                return refuse(format_args!("scalar {slot} is {x}, which is no multiple of {by}"));
            }
            if !any && !(i128::from(var.min)..=i128::from(var.max)).contains(&x.to_i128()) {
                let VarInfo { min, max, .. } = var;
                return match self.raw.and_then(|own| slot.checked_sub(own)) {
                    None => refuse(format_args!("scalar {slot} is {x}, not in {min}..={max}")),
                    Some(axis) if axis < GROUPS => {
                        refuse(format_args!("{x} groups along axis {axis}, limit {max}"))
                    }
                    Some(of) => {
                        let of = of - GROUPS;
                        refuse(format_args!("the length of buffer {of} is {x}, not in 0..={max}"))
                    }
                };
            }
        }
        Ok(())
    }
}

#[cold]
fn refuse(reason: std::fmt::Arguments<'_>) -> Result<(), DeviceError> {
    Err(DeviceError::Driver { context: "launch".to_owned(), reason: reason.to_string() })
}
