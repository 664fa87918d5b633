//! What computing a tensor takes, for people who want to know.

use super::{History, Tensor};
use crate::error::Result;
use crate::schedule::{self, Explanation};

impl Tensor {
    /// The launches that computing this tensor takes, or took if it is realized: what each fuses,
    /// what it reads and writes, and why values are stored between operations instead of being
    /// computed where they are used. While the device's profile is on
    /// ([`Device::set_profiling`](crate::Device::set_profiling)), launches have the times of that
    /// profile, each with its part of what copying and multiplying reach on the device, which the
    /// first call measures.
    ///
    /// For a realized tensor the plan is the one it was computed by, with all that was realized
    /// together with it; there is none for data from outside.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::randn([4, 8], DType::F32, &mut Rng::seed(1), &device)?;
    /// let y = x.softmax(-1)?.sum(0)?;
    /// let explanation = y.explain()?;
    /// println!("{explanation}");
    /// assert!(explanation.launches.iter().all(|launch| !launch.kernels.is_empty()));
    /// y.realize()?;
    /// assert_eq!(y.explain()?.launches.len(), explanation.launches.len());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the tensor is too large to be computed, or the device fails while it is measured.
    #[track_caller]
    pub fn explain(&self) -> Result<Explanation> {
        let pending = !self.is_realized() && matches!(&*self.history(), History::Expr(_));
        schedule::explain_tensor(self, pending)
    }
}
