use zyx::kernel::{BinaryOp::Add, Kernel, Lang};

/// Parts of a tile; each is summed by one thread.
const PARTS: usize = 256;

/// Running sums of one long row in one pass: each element is read and written once. Halves are summed in `f32`.
///
/// A group reads a tile and publishes its sum, gets the sum of all tiles before it from the groups of those, and writes.
pub fn scan() -> Kernel {
    Kernel::new("scan", |k: &Lang| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let y = k.output("y", [n], x.dtype());
        let dtype = x.dtype().accumulator();
        // On a CPU, which has no multiprocessors, each group is one thread.
        let threads = if k.caps().multiprocessors() == 0 { 1 } else { PARTS };
        // Elements of a part: an odd number, so that threads of a subgroup read different banks of shared storage. Two groups
        // share what the smallest GPUs have.
        let bytes = if k.caps().shared_bytes < 48 << 10 { 48 } else { 96 };
        let own = bytes * 8 / dtype.bits() - 1;
        let (tile_len, zero) = (PARTS * own, k.value(0, dtype));
        let tiles = n.div_ceil(tile_len);
        let sums = k.look_back("sums", Add, dtype, tiles);
        k.groups([tiles], threads, |g, _| {
            let tile = sums.ticket(g);
            let element = |i| x.at_or(i, 0).cast(dtype);
            let kept = g.shared([tile_len], dtype);
            g.each(tile_len, |i| kept.set(i, element(tile * tile_len + i)));
            let starts = g.shared([PARTS], dtype);
            let sum = g.scan(
                Add,
                PARTS,
                dtype,
                |part| {
                    k.fold(0..own, zero, |sum, i| {
                        let at = part * own + i;
                        let sum = sum + kept.at(at);
                        kept.set(at, sum);
                        sum
                    })
                },
                |part, before, _| starts.set(part, before),
            );
            let before = sums.prefix(g, tile, sum, |tile| {
                let first = tile * tile_len;
                g.scan(
                    Add,
                    PARTS,
                    dtype,
                    |part| k.fold(0..own, zero, |sum, i| sum + element(first + part * own + i)),
                    |_, _, _| {},
                )
            });
            g.each(tile_len, |i| {
                let at = tile * tile_len + i;
                let sum = before + (starts.at(i / own) + kept.at(i));
                y.set_if(at.lt(n), at, sum.cast(y.dtype()));
            });
        });
    })
}
