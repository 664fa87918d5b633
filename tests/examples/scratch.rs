use zyx_tests::{
    Array,
    zyx_core::{BinaryOp, DType},
};
fn main() {
    let x = Array::reals(DType::F64, &[1], &[1.8098812064005592]);
    let n = Array::reals(DType::F64, &[], &[1.5]);
    let p = x.product(&n);
    println!("{} {:?}", p.data[0], p.data[0]);
    let y = 1.8098812064005592f64;
    println!("{:e}", y.mul_add(1.5, -(y * 1.5)));
    println!("{}", p.binary(BinaryOp::Add, &Array::reals(DType::F64, &[], &[-1.5])).data[0]);
}
