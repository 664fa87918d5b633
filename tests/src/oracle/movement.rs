//! Movement and indexing: each result element says where it comes from.

use super::{Array, Val};
use zyx_core::DType;

/// The common extents under NumPy's broadcasting.
///
/// # Panics
/// When there are none.
pub fn broadcast(x: &[usize], y: &[usize]) -> Vec<usize> {
    let rank = x.len().max(y.len());
    let extent = |dims: &[usize], axis: usize| {
        (axis + dims.len()).checked_sub(rank).map_or(1, |axis| dims[axis])
    };
    (0..rank)
        .map(|axis| match (extent(x, axis), extent(y, axis)) {
            (1, b) => b,
            (a, b) => {
                assert!(a == b || b == 1, "{x:?} and {y:?} broadcast");
                a
            }
        })
        .collect()
}

/// All index tuples of `dims` in row-major order.
pub fn indices(dims: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let dims = dims.to_vec();
    (0..dims.iter().product()).map(move |mut flat: usize| {
        let mut index = vec![0; dims.len()];
        for axis in (0..dims.len()).rev() {
            index[axis] = flat % dims[axis];
            flat /= dims[axis];
        }
        index
    })
}

impl Array {
    /// The zero of this dtype.
    fn zero(&self) -> Val {
        if self.dtype.is_float() { Val::point(0.0) } else { Val::Int(0) }
    }

    /// An array whose element at an index is this one's at `from(index)`, or zero.
    fn moved(&self, dims: &[usize], from: impl Fn(Vec<usize>) -> Option<Vec<usize>>) -> Array {
        let element = |index| from(index).map_or(self.zero(), |index| self.at(&index));
        Array::new(self.dtype, dims, indices(dims).map(element).collect())
    }

    /// Other extents, the same elements.
    #[must_use]
    pub fn reshape(&self, dims: &[usize]) -> Array {
        Array::new(self.dtype, dims, self.data.clone())
    }

    /// Axes of extent 1 repeated, missing leading axes added.
    #[must_use]
    pub fn expand(&self, dims: &[usize]) -> Array {
        if dims == self.dims {
            return self.clone();
        }
        let missing = dims.len() - self.rank();
        self.moved(dims, |index| {
            let source = index[missing..].iter().zip(&self.dims);
            Some(source.map(|(&i, &d)| if d == 1 { 0 } else { i }).collect())
        })
    }

    /// Axis `i` of the result is axis `axes[i]` of this.
    #[must_use]
    pub fn permute(&self, axes: &[usize]) -> Array {
        let dims: Vec<usize> = axes.iter().map(|&axis| self.dims[axis]).collect();
        self.moved(&dims, |index| {
            let mut source = vec![0; index.len()];
            for (i, &axis) in axes.iter().enumerate() {
                source[axis] = index[i];
            }
            Some(source)
        })
    }

    /// Zeros before and after each axis.
    #[must_use]
    pub fn pad(&self, padding: &[(usize, usize)]) -> Array {
        let dims: Vec<usize> = self.dims.iter().zip(padding).map(|(d, p)| p.0 + d + p.1).collect();
        self.moved(&dims, |index| {
            let axes = index.iter().zip(padding).zip(&self.dims);
            axes.map(|((&i, p), &d)| i.checked_sub(p.0).filter(|&i| i < d)).collect()
        })
    }

    /// The block of the given ranges.
    #[must_use]
    pub fn shrink(&self, ranges: &[(usize, usize)]) -> Array {
        let dims: Vec<usize> = ranges.iter().map(|r| r.1 - r.0).collect();
        self.moved(&dims, |index| Some(index.iter().zip(ranges).map(|(i, r)| i + r.0).collect()))
    }

    /// Axes of the mask reversed.
    #[must_use]
    pub fn flip(&self, mask: u16) -> Array {
        let dims = self.dims.clone();
        self.moved(&dims, |mut index| {
            for axis in (0..dims.len()).filter(|axis| mask >> axis & 1 == 1) {
                index[axis] = dims[axis] - 1 - index[axis];
            }
            Some(index)
        })
    }

    /// Every `step`-th element of an axis from `start` on.
    #[must_use]
    pub fn stride(&self, axis: usize, start: usize, step: usize) -> Array {
        let mut dims = self.dims.clone();
        dims[axis] = (dims[axis] - start).div_ceil(step);
        self.moved(&dims, |mut index| {
            index[axis] = start + index[axis] * step;
            Some(index)
        })
    }

    /// Arrays of one dtype joined along an axis.
    #[must_use]
    pub fn cat(parts: &[Array], axis: usize) -> Array {
        let mut dims = parts[0].dims.clone();
        dims[axis] = parts.iter().map(|part| part.dims[axis]).sum();
        let element = |mut index: Vec<usize>| {
            for part in parts {
                if index[axis] < part.dims[axis] {
                    return part.at(&index);
                }
                index[axis] -= part.dims[axis];
            }
            unreachable!("invariant: the index lies in one of the parts")
        };
        Array::new(parts[0].dtype, &dims, indices(&dims).map(element).collect())
    }

    /// `out[.., i, ..] = self[.., index[.., i, ..], ..]`; zero out of range.
    #[must_use]
    pub fn gather(&self, axis: usize, index: &Array) -> Array {
        let unsure = index.data.contains(&Val::Unknown);
        let mut out = self.moved(&index.dims, |mut at| {
            let Val::Int(picked) = index.at(&at) else { return None };
            at[axis] = usize::try_from(picked).ok().filter(|&i| i < self.dims[axis])?;
            Some(at)
        });
        if unsure {
            for (x, i) in out.data.iter_mut().zip(&index.data) {
                if *i == Val::Unknown {
                    *x = Val::Unknown;
                }
            }
        }
        out
    }

    /// A vector of indices laid along an axis and repeated along the others.
    #[must_use]
    pub fn along(&self, axis: usize, vector: &Array) -> Array {
        let mut dims = self.dims.clone();
        dims[axis] = vector.numel();
        let data = indices(&dims).map(|index| vector.data[index[axis]]).collect();
        Array::new(vector.dtype, &dims, data)
    }

    /// Writes (or combines by `add`) `src` at the places of `index`; nothing out of range.
    #[must_use]
    pub fn scatter(&self, axis: usize, add: bool, index: &Array, src: &Array) -> Array {
        let mut terms: Vec<Vec<Val>> = self.data.iter().map(|&x| vec![x]).collect();
        for mut at in indices(&src.dims) {
            let element = src.at(&at);
            let picked = index.at(&at);
            if picked == Val::Unknown {
                return self.map(self.dtype, |_| Val::Unknown);
            }
            let Val::Int(picked) = picked else { unreachable!("invariant: indices are integers") };
            let Some(place) = usize::try_from(picked).ok().filter(|&i| i < self.dims[axis]) else {
                continue;
            };
            at[axis] = place;
            terms[self.flat(&at)].push(element);
        }
        let combine = |terms: Vec<Val>| {
            if add { super::reduce::added(self.dtype, &terms) } else { terms[terms.len() - 1] }
        };
        Array::new(self.dtype, &self.dims, terms.into_iter().map(combine).collect())
    }

    /// Whether each value equals its place on a new last axis.
    #[must_use]
    pub fn one_hot(&self, classes: usize) -> Array {
        let dims = [self.dims.as_slice(), &[classes]].concat();
        let hit = |x: &Val, class: usize| match *x {
            Val::Int(i) => Val::Int((i == class as i128) as i128),
            _ => Val::Unknown,
        };
        let row = |x: &Val| (0..classes).map(|class| hit(x, class)).collect::<Vec<_>>();
        Array::new(DType::Bool, &dims, self.data.iter().flat_map(row).collect())
    }
}
