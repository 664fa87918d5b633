//! Matrices spread over the threads of a group: sums of products, by matrix instructions where the device has them.
//!
//! A thread keeps elements of few rows, and the threads that share a row are neighbours, so what is found of each row ([`Rows`])
//! is exchanged among few. Matrices of one number of rows have the same rows in each thread, however many columns they have.

use super::Lang;
use super::array::Array;
use super::control::{Numbers, Span};
use super::group::Group;
use super::handle::{MatrixHandle, RowsHandle};
use super::squares::{Element, Factors};
use super::value::{Operand, Val};
use crate::dtype::DType;
use crate::ir::LoopKind;
use crate::ir::mma::{HELD, SIDE, WARP};
use crate::ops::BinaryOp;

/// Steps of a block that is staged in shared storage, without matrix instructions.
const DEPTH: usize = 16;
/// Threads that share a row of a matrix without matrix instructions.
const SHARING: usize = 16;

/// Which elements a thread has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Threads in a grid of so many rows and columns: a thread has as many rows as there are for each row of the grid, side by side,
    /// and every so-manieth column. One thread is a grid of one row and one column.
    Grid { rows: usize, columns: usize },
    /// Each warp has so many squares of sixteen rows, as matrix instructions hold them.
    Squares { of_warp: usize },
}

/// A matrix of literal extents, spread over the threads of a group.
#[derive(Debug)]
pub struct Matrix<'k> {
    pub(super) k: &'k Lang,
    pub(super) handle: MatrixHandle,
}

/// A value for each row of a [`Matrix`].
#[derive(Clone, Debug)]
pub struct Rows<'k> {
    pub(super) k: &'k Lang,
    pub(super) handle: RowsHandle,
}

/// An element of a matrix that a thread has.
struct Held<'k> {
    at: [Val<'k>; 2],
    /// Where it is in the storage of the thread.
    place: Val<'k>,
    /// Which of the rows that the thread has.
    row: Val<'k>,
}

impl Layout {
    fn of(group: Group<'_>, [rows, columns]: [usize; 2], squares: bool) -> Layout {
        let threads = group.threads();
        let warps = threads / WARP;
        if squares && warps > 0 && rows % (SIDE * warps) == 0 && columns % SIDE == 0 {
            return Layout::Squares { of_warp: rows / SIDE / warps };
        }
        let of_rows = rows.min((threads / SHARING).max(1));
        Layout::Grid { rows: of_rows, columns: threads / of_rows }
    }

    /// Rows that a thread has, and elements of each.
    fn extents(self, [rows, columns]: [usize; 2]) -> [usize; 2] {
        match self {
            Layout::Grid { rows: r, columns: c } => [rows / r, columns.div_ceil(c)],
            Layout::Squares { of_warp } => [2 * of_warp, columns * HELD / (2 * SIDE)],
        }
    }

    /// Threads that share a row, which are neighbours.
    fn sharing(self) -> usize {
        match self {
            Layout::Grid { columns, .. } => columns,
            Layout::Squares { .. } => 4,
        }
    }

    /// Calls `visit` for each point of a space of a thread: for literal coordinates one by one, so that the elements of its storage
    /// are registers, but in loops where few threads have many.
    fn visit<'k, const N: usize>(
        self,
        group: Group<'k>,
        extents: [usize; N],
        visit: &dyn Fn([Val<'k>; N]),
    ) {
        let k = group.k;
        if let (Layout::Grid { .. }, true) = (self, group.prefers_loops()) {
            let alone = group.threads() == 1;
            let kind = if alone { LoopKind::Parallel } else { LoopKind::Serial };
            let extents = extents.map(|n| k.index(n as i64));
            return k.each_in_loops(&extents, kind, |at| visit(std::array::from_fn(|i| at[i])));
        }
        for number in 0..extents.iter().product() {
            visit(digits(number, extents).map(|x| k.index(x as i64)));
        }
    }
}

/// The coordinates of a number in a space.
fn digits<const N: usize>(number: usize, extents: [usize; N]) -> [usize; N] {
    let (mut rest, mut at) = (number, extents);
    for (at, extent) in at.iter_mut().zip(extents).rev() {
        (*at, rest) = (rest % extent, rest / extent);
    }
    at
}

impl<'k> Group<'k> {
    /// Whether a loop over the elements of a thread is better than all of them one by one.
    fn prefers_loops(self) -> bool {
        self.threads() == 1 || self.k.caps().has_few_threads()
    }

    /// A matrix of zeros. Extents are powers of two. Of a kernel with inputs that are factors of matrix instructions, a matrix
    /// of `f32` has such products alone.
    #[track_caller]
    pub fn matrix(self, shape: [usize; 2], dtype: DType) -> Matrix<'k> {
        let k = self.k;
        if !shape.iter().all(|n| n.is_power_of_two()) {
            k.fail(format_args!("a matrix of {shape:?}: extents are powers of two"));
        }
        // Sums of products of halves are `f32`.
        let halves = k.setting.inputs.iter().any(|input| k.caps().mma.contains(*input));
        let squares = dtype == DType::F32 && halves;
        let layout = Layout::of(self, shape, squares);
        let len: usize = layout.extents(shape).iter().product();
        let storage = k.array([len], dtype).storage();
        let matrix = Matrix { k, handle: MatrixHandle { shape, dtype, layout, storage } };
        matrix.fill(0);
        matrix
    }

    /// A value for each of so many rows of a thread.
    fn rows(self, len: usize, layout: Layout, dtype: DType) -> Rows<'k> {
        let storage = self.k.array([len], dtype).storage();
        Rows { k: self.k, handle: RowsHandle { len, layout, storage } }
    }
}

impl<'k> Matrix<'k> {
    /// Its extents.
    pub fn shape(&self) -> [usize; 2] {
        self.handle.shape
    }

    /// The dtype of its elements.
    pub fn dtype(&self) -> DType {
        self.handle.dtype
    }

    pub(super) fn group(&self) -> Group<'k> {
        Group { k: self.k }
    }

    /// Rows that a thread has, and elements of each.
    fn extents(&self) -> [usize; 2] {
        self.handle.layout.extents(self.handle.shape)
    }

    /// Calls `visit` for each element that a thread has.
    fn held(&self, visit: &dyn Fn(Held<'k>)) {
        let (k, layout, [_, columns]) = (self.k, self.handle.layout, self.handle.shape);
        let (thread, [mine, each]) = (self.group().thread(), self.extents());
        match layout {
            Layout::Grid { columns: c, .. } => {
                let [row, column] = [thread / c * mine, thread % c];
                layout.visit(self.group(), [mine, each], &|[i, j]| {
                    let at = [row + i, column + j * c];
                    let visit = || visit(Held { at, place: i * each + j, row: i });
                    // Fewer columns than threads.
                    if columns < c { k.when(at[1].lt(columns), visit) } else { visit() }
                });
            }
            Layout::Squares { of_warp } => {
                let [warp, lane] = [thread / WARP, thread % WARP];
                let [line, quarter] = [lane / 4, lane % 4];
                let top = warp * (of_warp * SIDE) + line / 2 * 4 + line % 2;
                for number in 0..mine * each {
                    let [i, j, of_row, element] =
                        digits(number, [of_warp, columns / SIDE, 2, HELD / 2]);
                    let at = [top + (i * SIDE + of_row * 2), quarter * 4 + (j * SIDE + element)];
                    let [place, row] = [number, 2 * i + of_row].map(|x| k.index(x as i64));
                    visit(Held { at, place, row });
                }
            }
        }
    }

    fn get(&self, held: &Held<'k>) -> Val<'k> {
        self.k.val(|s| s.b.load(self.handle.storage, held.place.value))
    }

    fn put(&self, held: &Held<'k>, value: Val<'k>) {
        let (k, dtype, storage) = (self.k, self.handle.dtype, self.handle.storage);
        if value.dtype() != dtype {
            let of = value.dtype();
            return k.fail(format_args!("a {of} in a matrix of {dtype}: cast it"));
        }
        k.stores_to(storage);
        k.emit(|s| s.b.store(storage, held.place.value, value.value));
    }

    /// Calls `f` for each element that a thread has, with its coordinates, its value, and the values of its row, and stores the
    /// new value that `f` gives.
    #[track_caller]
    fn elements(
        &self,
        what: &str,
        rows: &[&Rows<'k>],
        f: &dyn Fn([Val<'k>; 2], Val<'k>, &[Val<'k>]) -> Option<Val<'k>>,
    ) {
        let visit = |held: Held<'k>| {
            let (value, of_row) = (self.get(&held), parts_of(rows, held.row));
            if let Some(new) = self.k.of_program(|| f(held.at, value, &of_row)) {
                self.put(&held, new);
            }
        };
        self.k.primitive(|| self.group().phase(what, || self.held(&visit)));
    }

    /// Makes all elements one value.
    #[track_caller]
    pub fn fill(&self, value: impl Operand<'k>) {
        let k = self.k;
        let value = value.val(k, self.dtype());
        k.primitive(|| self.group().phase("fill", || self.held(&|held| self.put(&held, value))));
    }

    /// Replaces each element: `f` gets its coordinates and what it is.
    #[track_caller]
    pub fn map(&self, f: impl Fn([Val<'k>; 2], Val<'k>) -> Val<'k>) {
        self.elements("map", &[], &|at, old, _| Some(f(at, old)));
    }

    /// As [`Matrix::map`], with the values of the element's row.
    #[track_caller]
    pub fn map_rows<const N: usize>(
        &self,
        rows: [&Rows<'k>; N],
        f: impl Fn([Val<'k>; 2], Val<'k>, [Val<'k>; N]) -> Val<'k>,
    ) {
        self.map_rows_of(&rows, &|at, x, of_row| f(at, x, std::array::from_fn(|i| of_row[i])));
    }

    /// As [`Matrix::map_rows`], of any number of values of a row.
    #[track_caller]
    pub fn map_rows_of(
        &self,
        rows: &[&Rows<'k>],
        f: &dyn Fn([Val<'k>; 2], Val<'k>, &[Val<'k>]) -> Val<'k>,
    ) {
        self.elements("map_rows", rows, &|at, old, of_row| Some(f(at, old, of_row)));
    }

    /// Calls `f` for each element, with its coordinates and the values of its row: to store it.
    #[track_caller]
    pub fn each<const N: usize>(
        &self,
        rows: [&Rows<'k>; N],
        f: impl Fn([Val<'k>; 2], Val<'k>, [Val<'k>; N]),
    ) {
        self.each_of(&rows, &|at, x, of_row| f(at, x, std::array::from_fn(|i| of_row[i])));
    }

    /// As [`Matrix::each`], of any number of values of a row.
    #[track_caller]
    pub fn each_of(&self, rows: &[&Rows<'k>], f: &dyn Fn([Val<'k>; 2], Val<'k>, &[Val<'k>])) {
        self.elements("each", rows, &|at, value, of_row| {
            f(at, value, of_row);
            None
        });
    }

    /// For each row the combination of its elements.
    #[track_caller]
    pub fn reduce_rows(&self, op: BinaryOp) -> Rows<'k> {
        let (k, MatrixHandle { dtype, layout, .. }) = (self.k, self.handle);
        k.primitive(|| {
            let found = self.group().rows(self.extents()[0], layout, dtype);
            let Some(identity) = op.identity(dtype) else {
                k.fail(format_args!("`{op}` has no neutral element on {dtype}"));
                return found;
            };
            let identity = k.val(|s| s.b.constant(identity));
            self.group().phase("reduce_rows", || {
                found.held(&|row| found.put(row, identity));
                self.held(&|held| {
                    let sum = found.part(held.row).binary(op, self.get(&held));
                    found.put(held.row, sum);
                });
            });
            found.combine(op);
            found
        })
    }

    /// A value for each of its rows, with the matrix's dtype, all `value`.
    #[track_caller]
    pub fn rows(&self, value: impl Operand<'k>) -> Rows<'k> {
        let rows = self.group().rows(self.extents()[0], self.handle.layout, self.dtype());
        rows.fill(value);
        rows
    }

    /// Adds the product of two matrices, of which `left` tells the element of a row and a step, and `right` that of a step and a
    /// column, within what is loaded: where there is none they are zero. Factors are halves where matrix instructions
    /// serve; otherwise they are converted to the dtype of the sums.
    #[track_caller]
    pub fn add_product(
        &self,
        steps: impl Span<'k>,
        left: impl Fn(Val<'k>, Val<'k>) -> Val<'k>,
        right: impl Fn(Val<'k>, Val<'k>) -> Val<'k>,
    ) {
        let (k, steps) = (self.k, self.k.numbers(steps));
        let left = |i, step| k.of_program(|| left(i, step));
        let right = |j, step| k.of_program(|| right(step, j));
        k.primitive(|| self.multiply(steps, [&left, &right]));
    }

    fn multiply(&self, steps: Numbers<'k>, factors: Factors<'_, 'k>) {
        match self.handle.layout {
            Layout::Grid { columns, .. } => self.multiply_in_grid(columns, steps, factors),
            Layout::Squares { of_warp } => self.multiply_squares(of_warp, steps, factors),
        }
    }

    /// Adds the product of a matrix of the group, converted to `dtype`, and another one, as [`Matrix::add_product`] does.
    #[track_caller]
    pub fn add_product_of(
        &self,
        matrix: &Matrix<'k>,
        dtype: DType,
        right: impl Fn(Val<'k>, Val<'k>) -> Val<'k>,
    ) {
        let (k, steps) = (self.k, matrix.shape()[1]);
        let held = self.handle.layout == matrix.handle.layout;
        let matrix = || k.matrix_of(&matrix.handle);
        let right = |j, step| k.of_program(|| right(step, j));
        k.primitive(|| self.multiply_matrix((steps, held), dtype, &right, &matrix));
    }

    /// As [`Matrix::add_product_of`], of a matrix with so many columns that `left` computes: the other factor is on its way meanwhile.
    /// The matrix has the rows and the dtype of the sums.
    #[track_caller]
    pub fn add_product_after(
        &self,
        columns: usize,
        dtype: DType,
        left: impl Fn() -> Matrix<'k>,
        right: impl Fn(Val<'k>, Val<'k>) -> Val<'k>,
    ) {
        let k = self.k;
        if !columns.is_power_of_two() {
            return k.fail(format_args!("a factor with {columns} columns: a power of two"));
        }
        let matrix = || {
            let matrix = k.of_program(&left);
            let (found, wanted) = (matrix.shape(), [self.shape()[0], columns]);
            if (found, matrix.dtype()) != (wanted, self.dtype()) {
                let (of, dtype) = (matrix.dtype(), self.dtype());
                k.fail(format_args!("a factor is {of} {found:?}, not {dtype} {wanted:?}"));
            }
            matrix
        };
        let right = |j, step| k.of_program(|| right(step, j));
        k.primitive(|| self.multiply_matrix((columns, true), dtype, &right, &matrix));
    }

    fn multiply_matrix(
        &self,
        (steps, held): (usize, bool),
        dtype: DType,
        right: Element<'_, 'k>,
        matrix: &dyn Fn() -> Matrix<'k>,
    ) {
        let (k, is_whole) = (self.k, steps.is_multiple_of(SIDE));
        if held && is_whole && matches!(self.handle.layout, Layout::Squares { .. }) {
            return self.multiply_held(steps, dtype, right, matrix);
        }
        let matrix = matrix();
        let staged = self.group().scratch(&matrix.shape(), dtype);
        matrix.group().phase("add_product_of", || {
            matrix.held(&|held| staged.set(held.at, matrix.get(&held).cast(dtype)));
        });
        // Blocks of steps are longer than such a matrix.
        let short = steps < DEPTH;
        let left = |i, at| if short { staged.at_or([i, at], 0) } else { staged.at([i, at]) };
        self.multiply((k.index(0), k.index(steps as i64)), [&left, right]);
        self.group().give_back(&staged);
    }

    /// Threads in `c` columns multiply blocks that are staged in shared storage, each thread its own rows by its own columns. A
    /// single thread stages nothing.
    fn multiply_in_grid(&self, c: usize, (first, len): Numbers<'k>, factors: Factors<'_, 'k>) {
        let [left, right] = factors;
        let (k, group, [rows, columns]) = (self.k, self.group(), self.handle.shape);
        let dtype = self.dtype();
        if group.threads() == 1 {
            let left = |i, step| left(i, step).cast(dtype);
            let right = |j, step| right(j, step).cast(dtype);
            return self.multiply_steps((first, len), [&left, &right]);
        }
        // One more place in each row, so that rows begin at different banks.
        let a = group.scratch(&[rows, DEPTH + 1], dtype);
        let b = group.scratch(&[DEPTH, columns + 1], dtype);
        let (thread, mine) = (group.thread(), self.extents()[0]);
        let [row, column] = [thread / c * mine, thread % c];
        let whole = len.literal().is_some_and(|n| n.to_i64() % DEPTH as i64 == 0);
        k.for_each(len.div_ceil(DEPTH), |block| {
            let at = block * DEPTH;
            let masked = |step: Val<'k>, value: Val<'k>| {
                let value = value.cast(dtype);
                if whole { value } else { (at + step).lt(len).select(value, 0) }
            };
            group.each([rows, DEPTH], |[i, step]| {
                a.set([i, step], masked(step, left(i, first + at + step)));
            });
            group.each([DEPTH, columns], |[step, j]| {
                b.set([step, j], masked(step, right(j, first + at + step)));
            });
            group.phase("add_product", || {
                let left = |i, step| a.at([row + i, step]);
                let right = |j: Val<'k>, step| b.at([step, column + j * c]);
                let add = || self.multiply_steps(k.numbers(DEPTH), [&left, &right]);
                // Threads beyond the last column have no sums.
                if columns < c { k.when(column.lt(columns), add) } else { add() }
            });
        });
        group.give_back(&a);
        group.give_back(&b);
    }

    /// Adds products of the factors at so many steps, which are told by the numbers of rows and columns of the thread.
    fn multiply_steps(&self, (first, len): Numbers<'k>, [left, right]: Factors<'_, 'k>) {
        let (k, [rows, columns]) = (self.k, self.extents());
        let sums = Array::of_parts(k, self.handle.storage, &[rows, columns]);
        let add = |at: [Val<'k>; 2], x: Val<'k>, y| sums.set(at, x.mul_add(y, sums.at(at)));
        if self.group().prefers_loops() {
            return k.for_each(rows, |i| {
                k.for_each(len, |at| {
                    let step = first + at;
                    let x = left(i, step);
                    k.for_each(columns, |j| add([i, j], x, right(j, step)));
                });
            });
        }
        k.for_each(len, |at| {
            let step = first + at;
            let factors = |n: usize, factor: Element<'_, 'k>| -> Vec<Val<'k>> {
                (0..n).map(|i| factor(k.index(i as i64), step)).collect()
            };
            let (x, y) = (factors(rows, left), factors(columns, right));
            for (i, &x) in x.iter().enumerate() {
                for (j, &y) in y.iter().enumerate() {
                    add([i, j].map(|i| k.index(i as i64)), x, y);
                }
            }
        });
    }
}

/// The values of a row that the thread has.
fn parts_of<'k>(rows: &[&Rows<'k>], row: Val<'k>) -> Vec<Val<'k>> {
    rows.iter().map(|rows| rows.part(row)).collect()
}

impl<'k> Rows<'k> {
    fn group(&self) -> Group<'k> {
        Group { k: self.k }
    }

    fn array(&self) -> Array<'k> {
        Array::of_parts(self.k, self.handle.storage, &[self.handle.len])
    }

    /// The value of a row that the thread has.
    fn part(&self, row: Val<'k>) -> Val<'k> {
        self.array().at(row)
    }

    fn put(&self, row: Val<'k>, value: Val<'k>) {
        self.array().set(row, value);
    }

    /// Calls `visit` for each row that the thread has.
    fn held(&self, visit: &dyn Fn(Val<'k>)) {
        self.handle.layout.visit(self.group(), [self.handle.len], &|[row]| visit(row));
    }

    /// Combines what the threads that share rows have.
    fn combine(&self, op: BinaryOp) {
        let (k, group, span) = (self.k, self.group(), self.handle.layout.sharing());
        let Some(number) = group.number().filter(|_| span > 1) else { return };
        if group.lanes() >= span {
            return group.phase("reduce_rows", || {
                self.held(&|row| self.put(row, group.combine_lanes(op, self.part(row), span)));
            });
        }
        let threads = group.threads();
        let all = group.scratch(&[self.handle.len * threads], self.array().dtype());
        group.phase("reduce_rows", || {
            self.held(&|row| all.set(row * threads + number, self.part(row)));
        });
        group.phase("reduce_rows", || {
            self.held(&|row| {
                let first = row * threads + number / span * span;
                let sum =
                    k.fold(1..span, all.at(first), |sum, i| sum.binary(op, all.at(first + i)));
                self.put(row, sum);
            });
        });
        group.give_back(&all);
    }

    /// New values, each made of those of its row.
    #[track_caller]
    pub fn map<const N: usize>(
        &self,
        others: [&Rows<'k>; N],
        f: impl Fn(Val<'k>, [Val<'k>; N]) -> Val<'k>,
    ) -> Rows<'k> {
        self.map_of(&others, &|x, of_row| f(x, std::array::from_fn(|i| of_row[i])))
    }

    /// As [`Rows::map`], of any number of values of a row.
    #[track_caller]
    pub fn map_of(
        &self,
        others: &[&Rows<'k>],
        f: &dyn Fn(Val<'k>, &[Val<'k>]) -> Val<'k>,
    ) -> Rows<'k> {
        let k = self.k;
        k.primitive(|| {
            let RowsHandle { len, layout, .. } = self.handle;
            let new = self.group().rows(len, layout, self.array().dtype());
            new.fill_by("map", &|row| {
                let (value, of_row) = (self.part(row), parts_of(others, row));
                k.of_program(|| f(value, &of_row))
            });
            new
        })
    }

    /// Takes over the values of others: what a loop carries.
    #[track_caller]
    pub fn set(&self, others: &Rows<'k>) {
        self.fill_by("set", &|row| others.part(row));
    }

    /// Makes all of them one value.
    #[track_caller]
    pub fn fill(&self, value: impl Operand<'k>) {
        let value = value.val(self.k, self.array().dtype());
        self.fill_by("fill", &|_| value);
    }

    #[track_caller]
    fn fill_by(&self, what: &str, value: &dyn Fn(Val<'k>) -> Val<'k>) {
        let fill = || self.held(&|row| self.put(row, value(row)));
        self.k.primitive(|| self.group().phase(what, fill));
    }
}
