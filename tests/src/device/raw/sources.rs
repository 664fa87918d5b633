//! Kernels written in each language, with their declarations.

use zyx_core::hal::{Language, RawKernel, RawParam, RawSource};
use zyx_core::ir::Access;
use zyx_core::kernel::{Kernel, Lang, RawLaunch};
use zyx_core::{DType, Scalar};

/// All languages.
pub const LANGUAGES: [Language; 5] =
    [Language::CudaC, Language::Ptx, Language::OpenClC, Language::Wgsl, Language::SpirV];

/// Threads of a group of all kernels here.
pub const THREADS: u32 = 64;

/// The word that makes a text one that does not compile.
const NONSENSE: &str = "nonsense_here";

/// The line with that word, counted from 1.
pub const BROKEN_LINE: usize = 4;

const CUDA_C: &str = r#"extern "C" __global__ void axpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = a * x[i] + y[i];
}
"#;

const OPENCL_C: &str =
    "__kernel void axpy(__global const float *x, ulong x0, __global float *y, ulong y0, float a, uint n) {
    uint i = get_global_id(0);
    if (i >= n) return;
    y[y0 + i] = a * x[x0 + i] + y[y0 + i];
}
";

const WGSL: &str = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
struct Args { zero: u32, a: f32, n: u32 }

@group(0) @binding(2) var<uniform> args: Args;
@compute @workgroup_size(64)
fn axpy(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < args.n { y[id.x] = args.a * x[id.x] + y[id.x]; }
}
";

const PTX: &str = ".version 6.3
.target sm_75
.address_size 64

.visible .entry axpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n) {
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %d<6>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    ld.param.u32 %r5, [n];
    setp.ge.u32 %p1, %r4, %r5;
    @%p1 bra done;
    ld.param.u64 %d1, [x];
    ld.param.u64 %d2, [y];
    cvta.to.global.u64 %d1, %d1;
    cvta.to.global.u64 %d2, %d2;
    mul.wide.u32 %d3, %r4, 4;
    add.u64 %d4, %d1, %d3;
    add.u64 %d5, %d2, %d3;
    ld.param.f32 %f1, [a];
    ld.global.f32 %f2, [%d4];
    ld.global.f32 %f3, [%d5];
    fma.rn.f32 %f3, %f1, %f2, %f3;
    st.global.f32 [%d5], %f3;
done:
    ret;
}
";

/// A kernel of this source.
#[expect(unsafe_code, reason = "tests of code that nothing verifies")]
pub fn kernel(source: RawSource) -> RawKernel {
    // SAFETY: launches that are not refused pass lengths within which the code of this module accesses its
    // buffers; what is refused does not run. The modules are valid but where they do not parse.
    unsafe { RawKernel::new(source) }
}

/// `y[i] = a * x[i] + y[i]` for `i` below `n`: buffers `x` and `y` of `f32`, scalars `a` of `f32` and `n` of
/// `u32`.
pub fn axpy(language: Language) -> RawSource {
    let code: Vec<u8> = match language {
        Language::CudaC => CUDA_C.into(),
        Language::Ptx => PTX.into(),
        Language::OpenClC => OPENCL_C.into(),
        Language::Wgsl => WGSL.into(),
        Language::SpirV => spirv_axpy().iter().flat_map(|word| word.to_le_bytes()).collect(),
        _ => Vec::new(),
    };
    source("axpy", language, &code, &[Access::Read, Access::ReadWrite], &[DType::F32, DType::U32])
}

/// A portable kernel that gives `2 x`, with code in its place. `axpy` with a factor of 3 begins with `y = x` and gives `4 x`.
pub fn with_code(source: RawSource) -> Kernel {
    with_launch(source, |size| {
        let n = size("n") as u32;
        RawLaunch {
            groups: [n.div_ceil(THREADS), 1, 1],
            scalars: vec![Scalar::from(3f32), Scalar::from(n)],
        }
    })
}

/// The same with another launch.
pub fn with_launch(
    source: RawSource,
    launch: impl Fn(&dyn Fn(&str) -> usize) -> RawLaunch + Send + Sync + 'static,
) -> Kernel {
    let portable = Kernel::new("portable", |k: &Lang| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let y = k.output_from("y", &x);
        k.each(n, |i| y.set(i, y.at(i) + y.at(i)));
    });
    portable.with_raw(kernel(source), launch)
}

/// `axpy` with code that does not compile: a word on line [`BROKEN_LINE`] of a text, an
/// instruction of a module that is cut off.
pub fn broken(language: Language) -> RawSource {
    let whole = axpy(language);
    if language == Language::SpirV {
        let code = whole.code[..whole.code.len() - 3 * 4].into();
        return RawSource { code, ..whole };
    }
    let text = String::from_utf8_lossy(&whole.code).into_owned();
    let lines = text.lines().enumerate().map(|(i, line)| match i + 1 == BROKEN_LINE {
        true => format!("{line} {NONSENSE};\n"),
        false => format!("{line}\n"),
    });
    let text: String = lines.collect();
    RawSource { code: text.as_bytes().into(), ..whole }
}

/// Code of `axpy` that differs from its declaration otherwise, each with words of the error.
pub fn variants(language: Language) -> Vec<(Vec<u8>, &'static str)> {
    let whole = axpy(language).code;
    let text = |from: &str, to: &str| {
        let text = String::from_utf8_lossy(&whole);
        assert!(text.contains(from), "{language}: {from}");
        text.replacen(from, to, 1).into_bytes()
    };
    let size = "__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void";
    let pointer =
        OPENCL_C.replace("uint n", "__global uint *n").replace("i >= n", "i >= *n").into_bytes();
    match language {
        Language::CudaC => vec![(text("extern \"C\"", ""), "functions need extern \"C\"")],
        Language::Ptx => vec![
            (text(".param .u64 y", ".param .u32 y"), "[8, 4, 4, 4] bytes"),
            (text(".entry", ".func"), "no entry point"),
        ],
        Language::OpenClC => vec![
            (text("__kernel void", size), "the source asks for [32, 1, 1]"),
            (pointer, "parameter 5"),
            (text("ulong y0", "uint y0"), "parameter 3 has not 8 bytes"),
        ],
        Language::Wgsl => vec![
            (text("read_write> x", "read> x"), "binding: 0"),
            (text("array<f32>", "array<f32, 100>"), "min_binding_size"),
            (text("uniform", "storage"), "binding 2 is missing"),
            (text("@group(0) @binding(1)", "@group(1) @binding(1)"), "binding 1 is missing"),
        ],
        Language::SpirV => {
            let words = spirv_axpy();
            let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
            // The last word of the first instruction that begins with these words.
            let with = |start: &[u32], last: u32| {
                let at = words.windows(start.len()).position(|window| window == start);
                let at = at.unwrap_or_else(|| panic!("no instruction {start:?}"));
                let mut words = words.clone();
                words[at + start.len()] = last;
                bytes(&words)
            };
            let swapped: Vec<u32> = words.iter().map(|word| word.swap_bytes()).collect();
            vec![
                (whole[..whole.len() - 2].to_vec(), "no module"),
                (bytes(&[&[0], &words[1..]].concat()), "the first word is 0x00000000"),
                (bytes(&swapped), "big-endian"),
                (bytes(&words[..5]), "no entry point"),
                (bytes(&words[..4]), "no module"),
                (with(&words[..1], 0x0001_0900), "SPIR-V 1.9"),
                (with(&[2 << 16 | 17], 9), "Float16"),
                (with(&[4 << 16 | 71, 4, 33], 2), "binding Some(2)"),
                (with(&[4 << 16 | 71, 4, 34], 1), "set Some(1)"),
                (with(&[4 << 16 | 71, 4, 33], 0), "uses no binding 1"),
                (with(&[5 << 16 | 72, 14, 1, 35], 16), "20 bytes of push constants"),
                (with(&[6 << 16 | 16], 7), "no execution mode LocalSize"),
                (with(&[6 << 16 | 15, 5], 99), "missing"),
            ]
        }
        _ => Vec::new(),
    }
}

/// `out[0..6]` of `i32` are words of the scalars: an `i8`, the lower and upper word of an `i64`, the bits of an
/// `f16`, a `bool`, an `i32`. None for languages in which it is not written.
pub fn scalars(language: Language) -> Option<RawSource> {
    let code = match language {
        Language::CudaC => {
            r#"extern "C" __global__ void scalars(int *out, signed char a, long long b, unsigned short c, unsigned char d, int e) {
    if (blockIdx.x * blockDim.x + threadIdx.x) return;
    out[0] = a; out[1] = (int)b; out[2] = (int)(b >> 32); out[3] = c; out[4] = d; out[5] = e;
}"#
        }
        Language::OpenClC => {
            "__kernel void scalars(__global int *out, ulong o, char a, long b, ushort c, uchar d, int e) {
    if (get_global_id(0)) return;
    out += o;
    out[0] = a; out[1] = (int)b; out[2] = (int)(b >> 32); out[3] = c; out[4] = d; out[5] = e;
}"
        }
        Language::Wgsl => {
            "@group(0) @binding(0) var<storage, read_write> out: array<i32>;
@group(0) @binding(1) var<uniform> args: array<vec4<i32>, 2>;
@compute @workgroup_size(64, 1, 1)
fn scalars(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x != 0 { return; }
    out[0] = args[0].y; out[1] = args[0].z; out[2] = args[0].w;
    out[3] = args[1].x; out[4] = args[1].y; out[5] = args[1].z + args[0].x;
}"
        }
        _ => return None,
    };
    let dtypes = [DType::I8, DType::I64, DType::F16, DType::Bool, DType::I32];
    let out = RawParam::new(DType::I32, Access::Write);
    let kernel = source("scalars", language, code.as_bytes(), &[], &dtypes);
    Some(RawSource { params: vec![out], ..kernel })
}

/// Reverses each 64 of a buffer through storage that the launch asks for. None for languages whose code declares
/// it.
pub fn reverse(language: Language) -> Option<RawSource> {
    let code = match language {
        Language::CudaC => {
            r#"extern __shared__ float part[];
extern "C" __global__ void reverse(float *x) {
    unsigned i = blockIdx.x * 64 + threadIdx.x;
    part[63 - threadIdx.x] = x[i];
    __syncthreads();
    x[i] = part[threadIdx.x];
}"#
        }
        Language::OpenClC => {
            "__kernel void reverse(__global float *x, ulong x0, __local float *part) {
    x += x0;
    part[63 - get_local_id(0)] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    x[get_global_id(0)] = part[get_local_id(0)];
}"
        }
        _ => return None,
    };
    let kernel = source("reverse", language, code.as_bytes(), &[Access::ReadWrite], &[]);
    Some(RawSource { shared_bytes: 4 * THREADS, ..kernel })
}

fn source(
    name: &str,
    language: Language,
    code: &[u8],
    accesses: &[Access],
    vars: &[DType],
) -> RawSource {
    RawSource {
        name: name.to_owned(),
        language,
        code: code.into(),
        params: accesses.iter().map(|&access| RawParam::new(DType::F32, access)).collect(),
        vars: vars.to_vec(),
        threads: [THREADS, 1, 1],
        shared_bytes: 0,
    }
}

/// The module of `axpy`, instruction by instruction, in version 1.3. Ids are numbers.
fn spirv_axpy() -> Vec<u32> {
    const BOUND: u32 = 50;
    let mut words = vec![0x0723_0203, 0x0001_0300, 0, BOUND, 0];
    let mut op = |opcode: u32, operands: &[u32]| {
        words.push((operands.len() as u32 + 1) << 16 | opcode);
        words.extend_from_slice(operands);
    };
    let axpy = [u32::from_le_bytes(*b"axpy"), 0];
    op(17, &[1]); // OpCapability Shader
    op(14, &[0, 1]); // OpMemoryModel Logical GLSL450
    op(15, &[5, 1, axpy[0], axpy[1], 2]); // OpEntryPoint GLCompute %1 "axpy" %2
    op(16, &[1, 17, THREADS, 1, 1]); // OpExecutionMode %1 LocalSize
    op(71, &[2, 11, 28]); // OpDecorate %2 BuiltIn GlobalInvocationId
    op(71, &[10, 6, 4]); // OpDecorate %10 ArrayStride 4
    op(71, &[11, 2]); // OpDecorate %11 Block
    op(72, &[11, 0, 35, 0]); // OpMemberDecorate %11 0 Offset 0
    for (variable, binding) in [(3, 0), (4, 1)] {
        op(71, &[variable, 34, 0]); // OpDecorate DescriptorSet 0
        op(71, &[variable, 33, binding]); // OpDecorate Binding
    }
    op(71, &[14, 2]); // OpDecorate %14 Block
    op(72, &[14, 0, 35, 0]); // OpMemberDecorate %14 0 Offset 0
    op(72, &[14, 1, 35, 8]); // OpMemberDecorate %14 1 Offset 8
    op(19, &[6]); // %6 = OpTypeVoid
    op(33, &[7, 6]); // %7 = OpTypeFunction %6
    op(22, &[8, 32]); // %8 = OpTypeFloat 32
    op(21, &[9, 32, 0]); // %9 = OpTypeInt 32 0
    op(29, &[10, 8]); // %10 = OpTypeRuntimeArray %8
    op(30, &[11, 10]); // %11 = OpTypeStruct %10
    op(32, &[12, 12, 11]); // %12 = OpTypePointer StorageBuffer %11
    op(32, &[13, 12, 8]); // %13 = OpTypePointer StorageBuffer %8
    op(30, &[14, 8, 9]); // %14 = OpTypeStruct %8 %9
    op(32, &[15, 9, 14]); // %15 = OpTypePointer PushConstant %14
    op(32, &[16, 9, 8]); // %16 = OpTypePointer PushConstant %8
    op(32, &[17, 9, 9]); // %17 = OpTypePointer PushConstant %9
    op(20, &[18]); // %18 = OpTypeBool
    op(23, &[19, 9, 3]); // %19 = OpTypeVector %9 3
    op(32, &[20, 1, 19]); // %20 = OpTypePointer Input %19
    op(43, &[9, 21, 0]); // %21 = OpConstant %9 0
    op(43, &[9, 22, 1]); // %22 = OpConstant %9 1
    op(59, &[20, 2, 1]); // %2 = OpVariable Input
    op(59, &[12, 3, 12]); // %3 = OpVariable StorageBuffer
    op(59, &[12, 4, 12]); // %4 = OpVariable StorageBuffer
    op(59, &[15, 5, 9]); // %5 = OpVariable PushConstant
    op(54, &[6, 1, 0, 7]); // %1 = OpFunction %6 None %7
    op(248, &[30]); // %30 = OpLabel
    op(61, &[19, 31, 2]); // %31 = OpLoad %19 %2
    op(81, &[9, 32, 31, 0]); // %32 = OpCompositeExtract %9 %31 0
    op(65, &[17, 33, 5, 22]); // %33 = OpAccessChain %17 %5 %22
    op(61, &[9, 34, 33]); // %34 = OpLoad %9 %33
    op(176, &[18, 35, 32, 34]); // %35 = OpULessThan %18 %32 %34
    op(247, &[37, 0]); // OpSelectionMerge %37 None
    op(250, &[35, 36, 37]); // OpBranchConditional %35 %36 %37
    op(248, &[36]); // %36 = OpLabel
    op(65, &[16, 38, 5, 21]); // %38 = OpAccessChain %16 %5 %21
    op(61, &[8, 39, 38]); // %39 = OpLoad %8 %38
    op(65, &[13, 40, 3, 21, 32]); // %40 = OpAccessChain %13 %3 %21 %32
    op(61, &[8, 41, 40]); // %41 = OpLoad %8 %40
    op(65, &[13, 42, 4, 21, 32]); // %42 = OpAccessChain %13 %4 %21 %32
    op(61, &[8, 43, 42]); // %43 = OpLoad %8 %42
    op(133, &[8, 44, 39, 41]); // %44 = OpFMul %8 %39 %41
    op(129, &[8, 45, 44, 43]); // %45 = OpFAdd %8 %44 %43
    op(62, &[42, 45]); // OpStore %42 %45
    op(249, &[37]); // OpBranch %37
    op(248, &[37]); // %37 = OpLabel
    op(253, &[]); // OpReturn
    op(56, &[]); // OpFunctionEnd
    words
}
