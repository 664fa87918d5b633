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

number_on_the_left!(f32 f64 i32 i64);
