//! Matrices spread over the threads of a group: sums of products, by matrix instructions where the device has them.
//!
//! A thread keeps elements of few rows, and the threads that share a row are neighbours, so what is found of each row ([`Rows`])
//! is exchanged among few. Matrices of one number of rows have the same rows in each thread, however many columns they have.

use super::array::Array;
use super::control::Span;
use super::group::Group;
use super::value::{Operand, Val};
use super::{Lang, State};
use crate::dtype::DType;
use crate::ir::mma::{HELD, SIDE, WARP};
use crate::ir::{ShuffleKind, Space, Type, Value};
use crate::ops::BinaryOp;

/// Steps of a product that are staged at once.
const DEPTH: usize = 32;
/// Threads that share a row of a matrix without matrix instructions.
const SHARING: usize = 16;

/// Which elements a thread has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// One thread has all.
    Whole,
    /// Threads in a grid of so many rows and columns: a thread has as many rows as there are for each row of the grid, side by side,
    /// and every so-manieth column.
    Grid { rows: usize, columns: usize },
    /// The same, where a loop over the elements of a thread is better than all of them one by one: few threads have
    /// many.
    Loops { rows: usize, columns: usize },
    /// Each warp has so many squares of sixteen rows, as matrix instructions hold them.
    Squares { of_warp: usize },
}

/// A matrix of literal extents, spread over the threads of a group.
#[derive(Debug)]
pub struct Matrix<'k> {
    pub(super) group: Group<'k>,
    pub(super) shape: [usize; 2],
    pub(super) dtype: DType,
    pub(super) layout: Layout,
    /// Storage of a thread: one for all elements, or one for each row and column, or square.
    pub(super) parts: Vec<Value>,
}

/// A value for each row of a [`Matrix`].
#[derive(Clone, Debug)]
pub struct Rows<'k> {
    pub(super) group: Group<'k>,
    pub(super) n: usize,
    pub(super) layout: Layout,
    /// Storage for one row each, or for all that the thread has.
    pub(super) parts: Vec<Array<'k>>,
}

/// An element of a matrix that a thread has.
struct Held<'k> {
    at: [Val<'k>; 2],
    /// Its storage, and where in that.
    part: Value,
    place: Val<'k>,
    /// Which of the rows that the thread has.
    row: Row<'k>,
}

/// Which of the rows that a thread has: known when the kernel is recorded, or by a counter.
#[derive(Clone, Copy)]
enum Row<'k> {
    Known(usize),
    Counted(Val<'k>),
}

impl Layout {
    fn of(group: Group<'_>, [rows, columns]: [usize; 2], squares: bool) -> Layout {
        let threads = group.threads();
        let warps = threads / WARP;
        if threads == 1 {
            return Layout::Whole;
        }
        if squares && warps > 0 && rows % (SIDE * warps) == 0 && columns % SIDE == 0 {
            return Layout::Squares { of_warp: rows / SIDE / warps };
        }
        let of_rows = rows.min((threads / SHARING).max(1));
        let columns_of_grid = threads / of_rows;
        match group.lang().caps().has_few_threads() {
            true => Layout::Loops { rows: of_rows, columns: columns_of_grid },
            false => Layout::Grid { rows: of_rows, columns: columns_of_grid },
        }
    }

    /// The grid, if there is one.
    fn grid(self) -> Option<(usize, usize)> {
        match self {
            Layout::Grid { rows, columns } | Layout::Loops { rows, columns } => {
                Some((rows, columns))
            }
            Layout::Whole | Layout::Squares { .. } => None,
        }
    }

    /// Rows of a thread.
    fn rows(self, all: usize) -> usize {
        match self {
            Layout::Whole => all,
            Layout::Grid { rows, .. } | Layout::Loops { rows, .. } => all / rows,
            Layout::Squares { of_warp } => 2 * of_warp,
        }
    }
}

impl<'k> Group<'k> {
    /// A matrix of zeros. Extents are powers of two. Of a kernel with inputs that are factors of matrix instructions, a matrix
    /// of `f32` has such products alone.
    #[track_caller]
    pub fn matrix(self, shape: [usize; 2], dtype: DType) -> Matrix<'k> {
        let k = self.lang();
        if !shape.iter().all(|n| n.is_power_of_two()) {
            k.fail(format_args!("a matrix of {shape:?}: extents are powers of two"));
        }
        // Sums of products of halves are `f32`.
        let halves = k.setting.inputs.iter().any(|input| k.caps().mma.contains(*input));
        let squares = dtype == DType::F32 && halves;
        let layout = Layout::of(self, shape, squares);
        let [rows, columns] = shape;
        let (n, len) = match layout {
            Layout::Whole => (1, rows * columns),
            Layout::Grid { rows: r, columns: c } => (rows / r * columns.div_ceil(c), 1),
            Layout::Loops { rows: r, columns: c } => (1, rows / r * columns.div_ceil(c)),
            Layout::Squares { of_warp } => (of_warp * columns / SIDE, HELD),
        };
        let part = |s: &mut State| s.b.alloc(Space::Register, Type::scalar(dtype), len as u32);
        let parts = k.emit(|s| (0..n).map(|_| part(s)).collect());
        let matrix = Matrix { group: self, shape, dtype, layout, parts };
        matrix.fill(0);
        matrix
    }

    /// A value for each row of a matrix of so many rows, which has such a layout as `like`.
    #[track_caller]
    fn rows_like(self, n: usize, layout: Layout, dtype: DType) -> Rows<'k> {
        let k = self.lang();
        let parts = match layout {
            Layout::Whole | Layout::Loops { .. } => {
                vec![Array::own(k, Space::Register, Type::scalar(dtype), &[layout.rows(n)])]
            }
            layout => {
                let one = |_| Array::own(k, Space::Register, Type::scalar(dtype), &[1]);
                (0..layout.rows(n)).map(one).collect()
            }
        };
        Rows { group: self, n, layout, parts }
    }
}

impl<'k> Matrix<'k> {
    /// Its extents.
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// The dtype of its elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    fn k(&self) -> &'k Lang {
        self.group.lang()
    }

    /// Calls `visit` for each element that a thread has: in a loop if one thread has all.
    #[track_caller]
    fn held(&self, visit: &dyn Fn(Held<'k>)) {
        let (k, [rows, columns]) = (self.k(), self.shape);
        let thread = self.group.number();
        let thread = || thread.unwrap_or_else(|| k.index(0));
        match self.layout {
            Layout::Whole => k.each_in_loops(
                &[k.index(rows as i64), k.index(columns as i64)],
                crate::ir::LoopKind::Parallel,
                |at| {
                    let place = at[0] * columns + at[1];
                    let row = Row::Counted(at[0]);
                    visit(Held { at: [at[0], at[1]], part: self.parts[0], place, row });
                },
            ),
            Layout::Grid { rows: r, columns: c } => {
                let (mine, each) = (rows / r, columns.div_ceil(c));
                let [row, column] = [thread() / c * mine, thread() % c];
                for (i, part) in self.parts.iter().enumerate() {
                    let at = [row + i / each, column + i % each * c];
                    let row = Row::Known(i / each);
                    let held = Held { at, part: *part, place: k.index(0), row };
                    // Fewer columns than threads.
                    if columns < c {
                        k.when(at[1].lt(columns), || visit(held));
                    } else {
                        visit(held);
                    }
                }
            }
            Layout::Loops { rows: r, columns: c } => {
                let (mine, each) = (rows / r, columns.div_ceil(c));
                let [row, column] = [thread() / c * mine, thread() % c];
                k.for_each(mine, |i| {
                    k.for_each(each, |j| {
                        let at = [row + i, column + j * c];
                        let held = Held {
                            at,
                            part: self.parts[0],
                            place: i * each + j,
                            row: Row::Counted(i),
                        };
                        if columns < c {
                            k.when(at[1].lt(columns), || visit(held));
                        } else {
                            visit(held);
                        }
                    });
                });
            }
            Layout::Squares { of_warp } => {
                let [warp, lane] = [thread() / WARP, thread() % WARP];
                let [line, quarter] = [lane / 4, lane % 4];
                let top = warp * (of_warp * SIDE) + line / 2 * 4 + line % 2;
                let squares = columns / SIDE;
                for (number, part) in self.parts.iter().enumerate() {
                    let [i, j] = [number / squares, number % squares];
                    for element in 0..HELD {
                        let row = top + (i * SIDE + element / 4 * 2);
                        let column = quarter * 4 + (j * SIDE + element % 4);
                        let place = k.index(element as i64);
                        let row_of = Row::Known(2 * i + element / 4);
                        visit(Held { at: [row, column], part: *part, place, row: row_of });
                    }
                }
            }
        }
    }

    #[track_caller]
    fn get(&self, held: &Held<'k>) -> Val<'k> {
        self.k().val(|s| s.b.load(held.part, held.place.value))
    }

    #[track_caller]
    fn put(&self, held: &Held<'k>, value: Val<'k>) {
        let k = self.k();
        if value.dtype() != self.dtype {
            k.fail(format_args!("a {} in a matrix of {}: cast it", value.dtype(), self.dtype));
            return;
        }
        k.stores_to(held.part);
        k.emit(|s| s.b.store(held.part, held.place.value, value.value));
    }

    /// Makes all elements one value.
    #[track_caller]
    pub fn fill(&self, value: impl Operand<'k>) {
        let k = self.k();
        let value = value.val(k, self.dtype);
        k.primitive(|| self.group.phase("fill", || self.held(&|held| self.put(&held, value))));
    }

    /// Replaces each element: `f` gets its coordinates and what it is.
    #[track_caller]
    pub fn map(&self, f: impl Fn([Val<'k>; 2], Val<'k>) -> Val<'k>) {
        let k = self.k();
        k.primitive(|| {
            self.group.phase("map", || {
                self.held(&|held| {
                    let old = self.get(&held);
                    self.put(&held, k.of_program(|| f(held.at, old)));
                });
            });
        });
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
        let k = self.k();
        k.primitive(|| {
            self.group.phase("map_rows", || {
                self.held(&|held| {
                    let old = self.get(&held);
                    let of_row = parts_of(rows, held.row);
                    self.put(&held, k.of_program(|| f(held.at, old, &of_row)));
                });
            });
        });
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
        let k = self.k();
        k.primitive(|| {
            self.group.phase("each", || {
                self.held(&|held| {
                    let value = self.get(&held);
                    let of_row = parts_of(rows, held.row);
                    k.of_program(|| f(held.at, value, &of_row));
                });
            });
        });
    }

    /// For each row the combination of its elements.
    #[track_caller]
    pub fn reduce_rows(&self, op: BinaryOp) -> Rows<'k> {
        let k = self.k();
        k.primitive(|| {
            let found = self.group.rows_like(self.shape[0], self.layout, self.dtype);
            let Some(identity) = op.identity(self.dtype) else {
                k.fail(format_args!("`{op}` has no neutral element on {}", self.dtype));
                return found;
            };
            let identity = k.val(|s| s.b.constant(identity));
            self.group.phase("reduce_rows", || {
                found.held(&|row| found.put(row, identity));
                self.held(&|held| {
                    let sum = found.part(held.row).binary(op, self.get(&held));
                    found.put(held.row, sum);
                });
            });
            let span = match self.layout {
                Layout::Whole => 1,
                Layout::Grid { columns, .. } | Layout::Loops { columns, .. } => columns,
                Layout::Squares { .. } => 4,
            };
            found.combine(op, span);
            found
        })
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
        self.add_product_by(steps.bounds(self.k()), &left, &right);
    }

    #[track_caller]
    fn add_product_by(
        &self,
        bounds: (Option<Val<'k>>, Val<'k>),
        left: &dyn Fn(Val<'k>, Val<'k>) -> Val<'k>,
        right: &dyn Fn(Val<'k>, Val<'k>) -> Val<'k>,
    ) {
        let k = self.k();
        k.primitive(|| {
            let start = bounds.0.unwrap_or_else(|| k.index(0));
            let steps = (start, bounds.1);
            let left = |i, step| k.of_program(|| left(i, step));
            let right = |step, j| k.of_program(|| right(step, j));
            match self.layout {
                Layout::Whole => self.multiply_alone(steps, &left, &right),
                Layout::Grid { .. } | Layout::Loops { .. } => {
                    self.multiply_in_grid(steps, &left, &right);
                }
                Layout::Squares { .. } => {
                    self.multiply_squares(steps, &left, &|j, step| right(step, j));
                }
            }
        });
    }

    /// Adds the product of a matrix of the group, converted to `dtype`, and another one, as [`Matrix::add_product`] does.
    #[track_caller]
    pub fn add_product_of(
        &self,
        matrix: &Matrix<'k>,
        dtype: DType,
        right: impl Fn(Val<'k>, Val<'k>) -> Val<'k>,
    ) {
        self.add_product_with(matrix, dtype, &right);
    }

    #[track_caller]
    fn add_product_with(
        &self,
        matrix: &Matrix<'k>,
        dtype: DType,
        right: &dyn Fn(Val<'k>, Val<'k>) -> Val<'k>,
    ) {
        let k = self.k();
        let [rows, steps] = matrix.shape;
        k.primitive(|| {
            let right = |step, j| k.of_program(|| right(step, j));
            if let (Layout::Squares { .. }, true) = (self.layout, self.layout == matrix.layout) {
                self.multiply_held(matrix, dtype, &|j, step| right(step, j));
                return;
            }
            let staged = self.group.scratch(&[rows, steps], dtype);
            matrix.group.phase("add_product_of", || {
                matrix.held(&|held| staged.set(held.at, matrix.get(&held).cast(dtype)));
            });
            let steps = (k.index(0), k.index(steps as i64));
            let left = |i, step| staged.at([i, step]);
            match self.layout {
                Layout::Whole => self.multiply_alone(steps, &left, &right),
                _ => self.multiply_in_grid(steps, &left, &right),
            }
            self.group.give_back(&staged);
        });
    }

    /// One thread multiplies.
    #[track_caller]
    fn multiply_alone(
        &self,
        (start, end): (Val<'k>, Val<'k>),
        left: &dyn Fn(Val<'k>, Val<'k>) -> Val<'k>,
        right: &dyn Fn(Val<'k>, Val<'k>) -> Val<'k>,
    ) {
        let (k, [rows, columns]) = (self.k(), self.shape);
        let sums = Array::of_parts(k, self.parts[0], &[rows, columns]);
        k.for_each(rows, |i| {
            k.for_each(start..end, |step| {
                let x = left(i, step).cast(self.dtype);
                k.each_in_loops(&[k.index(columns as i64)], crate::ir::LoopKind::Parallel, |at| {
                    let y = right(step, at[0]).cast(self.dtype);
                    sums.set([i, at[0]], x.mul_add(y, sums.at([i, at[0]])));
                });
            });
        });
    }

    /// Threads multiply what is staged in shared storage, each rows by columns of its own.
    #[track_caller]
    fn multiply_in_grid(
        &self,
        steps: (Val<'k>, Val<'k>),
        left: &dyn Fn(Val<'k>, Val<'k>) -> Val<'k>,
        right: &dyn Fn(Val<'k>, Val<'k>) -> Val<'k>,
    ) {
        let Some((r, c)) = self.layout.grid() else { return };
        let (k, [rows, columns]) = (self.k(), self.shape);
        let depth = DEPTH / 2;
        // One more place in each row, so that rows begin at different banks.
        let a = self.group.scratch(&[rows, depth + 1], self.dtype);
        let b = self.group.scratch(&[depth, columns + 1], self.dtype);
        let (mine, each) = (rows / r, columns.div_ceil(c));
        let number = self.group.number().unwrap_or_else(|| k.index(0));
        let [row, column] = [number / c * mine, number % c];
        k.blocks(steps, depth, |first, inside| {
            self.group.each([rows, depth], |[i, step]| {
                a.set([i, step], masked(inside(step), left(i, first + step).cast(self.dtype)));
            });
            self.group.each([depth, columns], |[step, j]| {
                b.set([step, j], masked(inside(step), right(first + step, j).cast(self.dtype)));
            });
            self.group.phase("add_product", || {
                if let Layout::Loops { .. } = self.layout {
                    let sums = Array::of_parts(k, self.parts[0], &[mine, each]);
                    k.for_each(mine, |i| {
                        k.for_each(depth, |step| {
                            let x = a.at([row + i, step]);
                            k.for_each(each, |j| {
                                let y = b.at([step, column + j * c]);
                                sums.set([i, j], x.mul_add(y, sums.at([i, j])));
                            });
                        });
                    });
                    return;
                }
                k.for_each(depth, |step| {
                    let x: Vec<Val<'k>> = (0..mine).map(|i| a.at([row + i, step])).collect();
                    let y: Vec<Val<'k>> = (0..each).map(|j| b.at([step, column + j * c])).collect();
                    for (number, &part) in self.parts.iter().enumerate() {
                        let sum = Array::of_parts(k, part, &[]);
                        let (x, y) = (x[number / each], y[number % each]);
                        sum.set((), x.mul_add(y, sum.at(())));
                    }
                });
            });
        });
        self.group.give_back(&a);
        self.group.give_back(&b);
    }
}

/// The values of a row that the thread has.
#[track_caller]
fn parts_of<'k>(rows: &[&Rows<'k>], row: Row<'k>) -> Vec<Val<'k>> {
    rows.iter().map(|rows| rows.part(row)).collect()
}

/// A value, or zero.
fn masked<'k>(inside: Option<Val<'k>>, value: Val<'k>) -> Val<'k> {
    match inside {
        Some(inside) => inside.select(value, 0),
        None => value,
    }
}

impl Lang {
    /// Blocks of a range of steps. The body gets the first step of each, and whether a step of the block is in the range, if that
    /// is not certain.
    #[track_caller]
    fn blocks<'k>(
        &'k self,
        (start, end): (Val<'k>, Val<'k>),
        depth: usize,
        body: impl FnOnce(Val<'k>, &dyn Fn(Val<'k>) -> Option<Val<'k>>),
    ) {
        let len = end - start;
        let whole = len.literal().is_some_and(|n| n.to_i64() % depth as i64 == 0);
        self.for_each(len.div_ceil(depth), |block| {
            let first = start + block * depth;
            body(first, &|step| (!whole).then(|| (first + step).lt(end)));
        });
    }
}

impl<'k> Rows<'k> {
    /// The value of a row that the thread has.
    #[track_caller]
    fn part(&self, row: Row<'k>) -> Val<'k> {
        match row {
            Row::Known(row) => self.parts[row].at(0),
            Row::Counted(row) => self.parts[0].at(row),
        }
    }

    #[track_caller]
    fn put(&self, row: Row<'k>, value: Val<'k>) {
        match row {
            Row::Known(row) => self.parts[row].set(0, value),
            Row::Counted(row) => self.parts[0].set(row, value),
        }
    }

    /// Calls `visit` for each row that the thread has, in a loop if these are one storage.
    #[track_caller]
    fn held(&self, visit: &dyn Fn(Row<'k>)) {
        let (k, n) = (self.group.lang(), self.layout.rows(self.n));
        match self.layout {
            Layout::Whole | Layout::Loops { .. } => {
                k.each_in_loops(&[k.index(n as i64)], crate::ir::LoopKind::Parallel, |at| {
                    visit(Row::Counted(at[0]))
                })
            }
            Layout::Grid { .. } | Layout::Squares { .. } => {
                (0..n).for_each(|row| visit(Row::Known(row)));
            }
        }
    }

    /// Combines what the threads that share rows have.
    #[track_caller]
    fn combine(&self, op: BinaryOp, span: usize) {
        let (k, group) = (self.group.lang(), self.group);
        let Some(number) = group.number().filter(|_| span > 1) else { return };
        if group.lanes() >= span {
            group.phase("reduce_rows", || {
                self.held(&|row| {
                    let mut value = self.part(row);
                    let mut by = span / 2;
                    while by > 0 {
                        let other = k.shuffle(ShuffleKind::Xor, value, k.index(by as i64));
                        value = value.binary(op, other);
                        by /= 2;
                    }
                    self.put(row, value);
                });
            });
            return;
        }
        let (dtype, threads) = (self.parts[0].dtype(), group.threads());
        let all = group.scratch(&[self.layout.rows(self.n) * threads], dtype);
        let number_of = |row: Row<'k>| match row {
            Row::Known(row) => k.index(row as i64),
            Row::Counted(row) => row,
        };
        group.phase("reduce_rows", || {
            self.held(&|row| all.set(number_of(row) * threads + number, self.part(row)));
        });
        group.phase("reduce_rows", || {
            self.held(&|row| {
                let first = number_of(row) * threads + number / span * span;
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
        let k = self.group.lang();
        k.primitive(|| {
            let new = self.group.rows_like(self.n, self.layout, self.parts[0].dtype());
            self.group.phase("map", || {
                self.held(&|row| {
                    let of_row = parts_of(others, row);
                    let value = self.part(row);
                    new.put(row, k.of_program(|| f(value, &of_row)));
                });
            });
            new
        })
    }

    /// Takes over the values of others: what a loop carries.
    #[track_caller]
    pub fn set(&self, others: &Rows<'k>) {
        self.group.lang().primitive(|| {
            self.group.phase("set", || {
                self.held(&|row| self.put(row, others.part(row)));
            });
        });
    }

    /// Makes all of them one value.
    #[track_caller]
    pub fn fill(&self, value: impl Operand<'k>) {
        let k = self.group.lang();
        let value = value.val(k, self.parts[0].dtype());
        k.primitive(|| {
            self.group.phase("fill", || self.held(&|row| self.put(row, value)));
        });
    }
}

impl<'k> Matrix<'k> {
    /// A value for each of its rows, with the matrix's dtype, all `value`.
    #[track_caller]
    pub fn rows(&self, value: impl Operand<'k>) -> Rows<'k> {
        let rows = self.group.rows_like(self.shape[0], self.layout, self.dtype);
        rows.fill(value);
        rows
    }
}
