//! `+ - * / %` and the bit operators on tensors and numbers: the methods of those names, which
//! panic where a method gives an error.

use super::{Operand, Tensor};

macro_rules! operators {
    ($($trait:ident $method:ident $checked:ident;)*) => {$(
        impl<R: Operand> std::ops::$trait<R> for &Tensor {
            type Output = Tensor;
            /// As the method of this name.
            ///
            /// # Panics
            /// Where the method gives an error, at the caller's location.
            #[track_caller]
            fn $method(self, rhs: R) -> Tensor {
                match Tensor::$checked(self, rhs) {
                    Ok(tensor) => tensor,
                    Err(error) => panic!("{error}"),
                }
            }
        }

        impl<R: Operand> std::ops::$trait<R> for Tensor {
            type Output = Tensor;
            /// As the method of this name.
            ///
            /// # Panics
            /// Where the method gives an error, at the caller's location.
            #[track_caller]
            fn $method(self, rhs: R) -> Tensor {
                std::ops::$trait::$method(&self, rhs)
            }
        }
    )*};
}

operators! {
    Add add add;
    Sub sub sub;
    Mul mul mul;
    Div div div;
    Rem rem remainder;
    BitAnd bitand bitwise_and;
    BitOr bitor bitwise_or;
    BitXor bitxor bitwise_xor;
}

impl std::ops::Neg for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::neg(self)
    }
}

impl std::ops::Neg for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::neg(&self)
    }
}

/// For one type of floats and one of integers: with more, the compiler would not know which type the literal in
/// `(1.0 + &x).relu()` has. The other types are on the right, `&x + 1f32`, or converted, `f64::from(1f32) + &x`.
macro_rules! number_on_the_left {
    ($($number:ty)*) => {$(
        number_on_the_left!(@ $number; Add add; Sub sub; Mul mul; Div div;);
    )*};
    (@ $number:ty; $($trait:ident $method:ident;)*) => {$(
        impl std::ops::$trait<&Tensor> for $number {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, rhs: &Tensor) -> Tensor {
                std::ops::$trait::$method(rhs.number(self), rhs)
            }
        }
        impl std::ops::$trait<Tensor> for $number {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, rhs: Tensor) -> Tensor {
                std::ops::$trait::$method(rhs.number(self), &rhs)
            }
        }
    )*};
}

number_on_the_left!(f64 i64);

#[cfg(test)]
mod tests {
    use crate::{Result, Runtime, Tensor};

    #[test]
    fn literals_on_the_left_need_no_type() -> Result<()> {
        let x = Tensor::new([1f32, -4.0], &Runtime::default().device("reference")?)?;
        assert_eq!((1.0 + &x).relu().to_vec::<f32>()?, [2.0, 0.0]);
        assert_eq!((1 - &x).relu().to_vec::<f32>()?, [0.0, 5.0]);
        assert_eq!((2.0 * (1.0 / x.clone())).abs().to_vec::<f32>()?, [2.0, 0.5]);
        Ok(())
    }
}
