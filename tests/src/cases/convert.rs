//! Conversions between all dtypes: values, bits, and every code of the 16-bit formats.

use crate::oracle::flush;
use crate::values::mixed;
use crate::{Array, Check, oracle};
use zyx_core::{DType, Device};

/// Converts special and random values of a dtype to every dtype, exactly.
pub fn casts(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let x = mixed(dtype, 3000, 20);
    let a = check.input(&x);
    for to in check.dtypes() {
        check.identical(format!("cast {dtype} to {to}"), Ok(a.cast(to)), &x.cast(to));
    }
    check.finish();
}

/// Converts all 65,536 codes of a 16-bit dtype to every dtype and back.
pub fn codes(device: &Device, dtype: DType) {
    assert_eq!(dtype.bits(), 16);
    let mut check = Check::new(device);
    let data = (0..=u16::MAX).map(|code| oracle::decode(dtype, code as u64)).collect();
    let x = Array::new(dtype, &[1 << 16], data);
    let a = check.input(&x);
    for to in check.dtypes() {
        check.identical(format!("cast {dtype} to {to}"), Ok(a.cast(to)), &x.cast(to));
        // Through memory and in registers alike.
        let wide = flush::kept(|| x.cast(to));
        let got = check.input(&wide).cast(dtype);
        check.identical(format!("cast {to} to {dtype}"), Ok(got), &wide.cast(dtype));
        let there = x.cast(to).cast(dtype);
        check.identical(
            format!("cast {dtype} to {to} and back"),
            Ok(a.cast(to).cast(dtype)),
            &there,
        );
    }
    check.finish();
}

/// Reads the bits of a dtype as every other of its width.
pub fn bits(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut x = mixed(dtype, 500, 21);
    // Bits of a NaN may change on the way; the value may not.
    x.data.retain(|v| v.certain().is_none_or(|v| !v.is_nan()));
    x.dims = vec![x.data.len()];
    let a = check.input(&x);
    for to in check.dtypes() {
        let fits = to.bits() == dtype.bits() && (to == DType::Bool) == (dtype == DType::Bool);
        if !fits {
            check.refused(to, a.bitcast(to), &["bitcast", dtype.name(), to.name()]);
            continue;
        }
        let want = x.map(to, |v| oracle::decode(to, oracle::encode(dtype, v)));
        check.identical(format!("bitcast {dtype} to {to}"), a.bitcast(to), &want);
    }
    check.finish();
}
