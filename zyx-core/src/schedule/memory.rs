//! The memory plan: where temporaries live in one arena.
//!
//! Each temporary is live from the step that first writes it to the last that uses it. Placed
//! largest first, each at the lowest offset free for its whole life, they share an arena; a chain
//! of steps ping-pongs between two places. (Greedy by size: Pisarchyk and Lee 2020.)

/// A temporary: bytes, first and last step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    pub(crate) bytes: usize,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// An offset for each temporary, multiples of `align`, and the size of the arena.
pub(crate) fn place(temporaries: &[Lifetime], align: usize) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..temporaries.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(temporaries[i].bytes), temporaries[i].first));
    let mut offsets = vec![0; temporaries.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut size = 0;
    for i in order {
        let this = temporaries[i];
        let bytes = this.bytes.next_multiple_of(align);
        let mut offset = 0;
        // `placed` is sorted by offset, so the first gap that is large enough is the lowest.
        for &other in &placed {
            let life = temporaries[other];
            if life.last < this.first || this.last < life.first {
                continue;
            }
            if offset + bytes <= offsets[other] {
                break;
            }
            offset = offset.max(offsets[other] + life.bytes.next_multiple_of(align));
        }
        offsets[i] = offset;
        let position = placed.partition_point(|&p| offsets[p] <= offset);
        placed.insert(position, i);
        size = size.max(offset + bytes);
    }
    (offsets, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_needs_two_places() {
        let chain: Vec<_> =
            (0..100).map(|i| Lifetime { bytes: 1000, first: i, last: i + 1 }).collect();
        let (offsets, size) = place(&chain, 64);
        assert_eq!(size, 2 * 1024);
        assert!(offsets.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn overlapping_lives_never_share_bytes() {
        let lives: Vec<_> = (0..50usize)
            .map(|i| Lifetime {
                bytes: 1 + i * 37 % 500,
                first: i * 7 % 31,
                last: i * 7 % 31 + i % 9,
            })
            .collect();
        let (offsets, size) = place(&lives, 16);
        for (i, a) in lives.iter().enumerate() {
            assert!(offsets[i] + a.bytes <= size && offsets[i] % 16 == 0);
            for (j, b) in lives.iter().enumerate().skip(i + 1) {
                let together = a.first <= b.last && b.first <= a.last;
                let apart =
                    offsets[i] + a.bytes <= offsets[j] || offsets[j] + b.bytes <= offsets[i];
                assert!(!together || apart, "{i} and {j}");
            }
        }
    }
}
