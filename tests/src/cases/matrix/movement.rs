//! Rows of operations that make, move, pick and place elements.

use super::{Row, rows};
use zyx_core::{Index, Indexing, PadMode, Pool, ScatterReduce, Tensor};

/// The rows.
pub(super) fn table() -> Vec<Row> {
    [creation(), views(), joins(), picking(), placing(), windows()].concat()
}

fn creation() -> Vec<Row> {
    let mut all = rows! {
        zeros |s| Tensor::zeros([2, 3], s.dtype, &s.device);
        ones |s| Tensor::ones([2, 3], s.dtype, &s.device);
        full |s| Tensor::full([2, 3], 3, &s.device).cast(s.dtype);
        zeros_like |s| s.x.zeros_like();
        ones_like |s| s.x.ones_like();
        full_like |s| s.x.full_like(1);
        iota |s| Tensor::iota(5, s.dtype, &s.device);
        eye |s| Tensor::eye(3, s.dtype, &s.device);
        tril |s| s.x.tril(1);
        triu |s| s.x.triu(-1);
        vander |s| s.v.vander(3, true);
        meshgrid |s| Tensor::meshgrid(&[&s.v, &s.sorted], Indexing::Xy);
        cartesian_prod |s| Tensor::cartesian_prod(&[&s.v, &s.sorted]);
        one_hot |s| s.x.unchecked_indices().one_hot(3);
    };
    // Of one dtype each, whatever the operands are.
    all.extend(rows! { itself
        arange |s| Tensor::arange(1, 9, 3, &s.device);
        linspace |s| Tensor::linspace(0.0, 1.0, 5, &s.device);
        logspace |s| Tensor::logspace(0.0, 3.0, 4, 2.0, &s.device);
        tril_indices |s| Tensor::tril_indices(3, 3, 0, &s.device);
        triu_indices |s| Tensor::triu_indices(3, 3, 0, &s.device);
        unravel_index |s| s.index.unravel_index([2, 3]);
    });
    all
}

fn views() -> Vec<Row> {
    rows! {
        reshape |s| s.x.reshape([2, s.x.numel() / 2]);
        flatten |s| s.x.flatten();
        flatten_axes |s| s.images[1].flatten_axes(1, 2);
        permute |s| s.images[0].permute([2, 0, 1]);
        transpose |s| s.images[1].transpose(1, 3);
        t |s| s.x.t();
        expand |s| s.v.expand(s.x.shape().clone());
        unsqueeze |s| s.x.unsqueeze(1);
        squeeze |s| s.images[0].narrow(0, 0, 1)?.squeeze(0);
        pad |s| s.x.pad([(1, 0), (0, 2)]);
        pad_with |s| s.x.pad_with([(1, 0), (0, 2)], 1.0);
        pad_mode |s| s.x.pad_mode([(1, 0), (0, 2)], PadMode::Reflect);
        shrink |s| s.x.shrink([(1, 3), (0, 2)]);
        slice |s| s.x.slice(1, 1..3);
        stride |s| s.x.stride(1, 1, 2);
        select_index |s| s.x.select_index(0, -1);
        flip |s| s.x.flip(1);
        repeat |s| s.x.repeat([2, 1]);
        contiguous |s| s.x.t().contiguous();
        detach |s| s.x.detach();
        tracked |s| s.x.tracked();
        to_device |s| s.x.to_device(&s.device);
        roll |s| s.x.roll([1], [1]);
        rot90 |s| s.x.rot90(1, [0, 1]);
        fliplr |s| s.x.fliplr();
        flipud |s| s.x.flipud();
        tile |s| s.x.tile([1, 2]);
        repeat_interleave |s| s.x.repeat_interleave(2, 0);
        repeat_interleave_by |s| s.x.repeat_interleave_by(&s.times, 1);
        movedim |s| s.images[0].movedim([0], [2]);
        swapaxes |s| s.images[0].swapaxes(0, 2);
        unflatten |s| s.x.unflatten(1, [2, s.x.shape()[1] / 2]);
        unfold |s| s.x.unfold(1, 2, 1);
        narrow |s| s.x.narrow(1, 1, 2);
        unbind |s| s.x.unbind(0);
        split |s| s.x.split(2, 1);
        chunk |s| s.x.chunk(3, 1);
        tensor_split |s| s.x.tensor_split([1, 3], 1);
        hsplit |s| s.x.hsplit([1, 3]);
        vsplit |s| s.x.vsplit([1]);
        dsplit |s| s.images[1].dsplit([1]);
        split_with_sizes |s| s.x.split_with_sizes([1, s.x.shape()[1] - 1], 1);
        atleast_1d |s| s.v.select_index(0, 0)?.atleast_1d();
        atleast_2d |s| s.v.atleast_2d();
        atleast_3d |s| s.x.atleast_3d();
        broadcast_tensors |s| Tensor::broadcast_tensors(&[&s.x, &s.v]);
        broadcast_to |s| s.v.broadcast_to([2, s.v.numel()]);
        diagonal |s| s.x.diagonal(1, 0, 1);
        diag_embed |s| s.x.diag_embed(0, 0, 1);
        diag |s| s.v.diag(1);
        diagflat |s| s.v.diagflat(-1);
        fftshift |s| s.x.fftshift(..);
        ifftshift |s| s.x.ifftshift(..);
        pixel_shuffle |s| s.images[1].pixel_unshuffle(2)?.contiguous().pixel_shuffle(2);
        pixel_unshuffle |s| s.images[1].pixel_unshuffle(2);
        channel_shuffle |s| s.images[1].channel_shuffle(2);
    }
}

fn joins() -> Vec<Row> {
    rows! {
        cat |s| Tensor::cat(&[&s.x, &s.y], 1);
        stack |s| Tensor::stack(&[&s.x, &s.y], 1);
        hstack |s| Tensor::hstack(&[&s.x, &s.y]);
        vstack |s| Tensor::vstack(&[&s.x, &s.y]);
        dstack |s| Tensor::dstack(&[&s.x, &s.y]);
        column_stack |s| Tensor::column_stack(&[&s.v, &s.sorted]);
        block_diag |s| Tensor::block_diag(&[&s.x, &s.square]);
    }
}

fn picking() -> Vec<Row> {
    rows! {
        gather |s| s.x.gather(1, &s.index);
        index_select |s| s.x.index_select(0, &s.at);
        embedding |s| s.x.embedding(&s.at);
        index |s| s.x.index(&[(&s.at).into(), Index::step(None, None, -1)]);
        take |s| s.x.take(&s.at);
        take_along_dim |s| s.x.take_along_dim(&s.index, Some(1));
        masked_select |s| s.x.masked_select(&s.mask);
        nonzero |s| s.x.nonzero();
        argwhere |s| s.x.argwhere();
        searchsorted |s| s.sorted.searchsorted(&s.x, false);
        bucketize |s| s.x.bucketize(&s.sorted, true);
        bincount |s| s.x.bincount(3);
        bincount_to |s| s.x.bincount_to(4);
    }
}

fn placing() -> Vec<Row> {
    rows! {
        scatter |s| s.x.scatter(0, &s.index, &s.y);
        scatter_add |s| s.x.scatter_add(0, &s.index, &s.y);
        scatter_reduce |s| s.x.scatter_reduce(1, &s.index, &s.y, ScatterReduce::Amax, true);
        index_add |s| s.x.index_add(0, &s.at, &s.y.narrow(0, 0, s.at.numel())?, 1.0);
        index_copy |s| s.x.index_copy(0, &s.at, &s.y.narrow(0, 0, s.at.numel())?);
        index_fill |s| s.x.index_fill(0, &s.at, 1);
        index_put |s| s.x.index_put(&[(&s.at).into()], &s.v, true);
        masked_fill |s| s.x.masked_fill(&s.mask, 1);
        masked_scatter |s| s.x.masked_scatter(&s.mask, &s.y);
        put |s| s.x.put(&s.at, &s.v.narrow(0, 0, s.at.numel())?, false);
        slice_scatter |s| s.x.slice_scatter(&s.y.narrow(0, 0, 2)?, 0, 1);
        select_scatter |s| s.x.select_scatter(&s.v, 0, 1);
        diagonal_scatter |s| s.square.diagonal_scatter(&s.v.narrow(0, 0, s.square.shape()[0])?, 0, 0, 1);
    }
}

fn windows() -> Vec<Row> {
    const SQUARE: Pool<2> = Pool {
        kernel: [2, 2],
        stride: [2, 1],
        padding: [1, 0],
        dilation: [1, 1],
        ceil_mode: false,
        count_include_pad: true,
    };
    rows! {
        im2col |s| s.images[1].im2col(SQUARE);
        col2im |s| {
            let size = &s.images[1].shape()[2..];
            s.images[1].im2col(SQUARE)?.col2im([size[0], size[1]], SQUARE)
        };
        max_unpool1d |s| {
            let (y, at) = s.images[0].max_pool1d_with_indices(Pool::new([2]))?;
            y.max_unpool1d(&at, [6])
        };
        max_unpool2d |s| {
            let (y, at) = s.images[1].max_pool2d_with_indices(Pool::new([2, 2]))?;
            y.max_unpool2d(&at, [4, 4])
        };
        max_unpool3d |s| {
            let (y, at) = s.images[2].max_pool3d_with_indices(Pool::new([2; 3]))?;
            y.max_unpool3d(&at, [3; 3])
        };
    }
}
