#!/bin/sh
# Installs the drivers that the test suite needs beside a bare Debian or Ubuntu. Nothing is needed
# to build zyx; a machine with a vendor's drivers needs nothing from here either.
#
#   scripts/install-drivers.sh [opencl] [vulkan] [nvrtc] [qemu] [aarch64] [windows] [onnx]   (default: opencl vulkan)
#
# opencl: a loader and PoCL, the OpenCL implementation for CPUs.
# vulkan: a loader and Mesa's drivers, of which lavapipe is the one for CPUs; what validates
#   Vulkan programs, if it can be had. Debian 12's Mesa ends loops early (after 65,535 iterations
#   of a thread, silently), so there Mesa comes from the backports.
# nvrtc: CUDA's compiler and assembler, 160 MB of wheels from PyPI in the cache folder (XDG_CACHE_HOME or ~/.cache),
#   where the CUDA backend and its tests look for them. They need no GPU: sources become machine code in tests. Asks for Python with pip.
# qemu: the emulator of x86-64 processors with nothing beyond SSE2.
# aarch64: a linker for 64-bit Arm and its emulator.
# windows: a compiler for 64-bit Windows, and Wine.
# onnx: the standard's tests of operators as files, random models, and tests of onnxruntime's operators, which scripts/onnx_nodes.py, onnx_random.py and onnx_contrib.py write into the cache folder; onnxruntime,
#   which runs what zyx exports. Asks for Python with pip.
#
# Does nothing when a loader and a driver are already there, so it may be run again and again.
# Exit status: 0 when everything asked for is usable afterwards, 1 with a message when it is not.
set -eu

have_library() {
    ldconfig -p 2>/dev/null | grep -q "$1\.so" && return 0
    ls /usr/lib/"$1".so* /usr/lib/*/"$1".so* >/dev/null 2>&1
}

# An OpenCL driver is registered by an .icd file naming its library, a Vulkan one by a manifest.
have_opencl_driver() {
    ls "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"/*.icd >/dev/null 2>&1
}
have_vulkan_driver() {
    [ -n "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ] && return 0
    ls /usr/share/vulkan/icd.d/*.json >/dev/null 2>&1 || ls /etc/vulkan/icd.d/*.json >/dev/null 2>&1
}

# Whether Mesa is the one that ends loops early.
is_old_mesa() {
    case $(dpkg-query -W -f '${Version}' mesa-vulkan-drivers 2>/dev/null) in
    22.*) return 0 ;;
    *) return 1 ;;
    esac
}

have_opencl() { have_library libOpenCL && have_opencl_driver; }
have_vulkan() { have_library libvulkan && have_vulkan_driver && ! is_old_mesa; }

wheels=${XDG_CACHE_HOME:-$HOME/.cache}/zyx/nvrtc
have_nvrtc() {
    ls "$wheels"/nvidia/cu13/lib/libnvrtc.so* "$wheels"/nvidia/cu13/lib/libnvJitLink.so* >/dev/null 2>&1
}

codename=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-}") || codename=""

as_root=""
can_install() {
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "No apt-get here. Install with your package manager, by the names used there: $*" >&2
        return 1
    fi
    [ "$(id -u)" -eq 0 ] && return 0
    if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        as_root="sudo"
        return 0
    fi
    echo "Not root, and sudo asks for a password. Run: sudo apt-get install $*" >&2
    return 1
}

apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -y "$@"
}

# The index may be older than the packages it names: try with it first, then refresh it.
install() {
    apt install --no-install-recommends "$@" || { apt update && apt install --no-install-recommends "$@"; }
}

install_opencl() {
    packages=""
    have_library libOpenCL || packages="$packages ocl-icd-libopencl1"
    have_opencl_driver || packages="$packages pocl-opencl-icd"
    can_install "$packages" || return 1
    # shellcheck disable=SC2086 # the names are meant to be split
    install $packages
}

install_vulkan() {
    can_install libvulkan1 mesa-vulkan-drivers || return 1
    if [ "$codename" = bookworm ]; then
        if ! apt-cache policy 2>/dev/null | grep -q bookworm-backports; then
            echo 'deb http://deb.debian.org/debian bookworm-backports main' |
                $as_root tee /etc/apt/sources.list.d/bookworm-backports.list >/dev/null
            apt update
        fi
        install libvulkan1 && install -t bookworm-backports mesa-vulkan-drivers
    else
        install libvulkan1 mesa-vulkan-drivers
    fi
}

have_qemu() { command -v qemu-x86_64 >/dev/null 2>&1; }
install_qemu() {
    can_install qemu-user && install qemu-user
}

have_aarch64() {
    command -v aarch64-linux-gnu-gcc >/dev/null 2>&1 && command -v qemu-aarch64 >/dev/null 2>&1
}
install_aarch64() {
    can_install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user &&
        install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
}

have_windows() {
    command -v x86_64-w64-mingw32-gcc >/dev/null 2>&1 && { command -v wine || command -v wine64; } >/dev/null 2>&1
}
install_windows() {
    can_install gcc-mingw-w64-x86-64 wine wine64 && install gcc-mingw-w64-x86-64 wine wine64
}

install_nvrtc() {
    # The backend loads what nobody else may write to.
    umask 022
    python3 -m pip install --quiet --no-deps --upgrade --target "$wheels" \
        'nvidia-cuda-nvrtc==13.0.*' 'nvidia-nvjitlink==13.0.*'
}

cases=${XDG_CACHE_HOME:-$HOME/.cache}/zyx/onnx
# Expected results of casts to integers of 2 and 4 bits come from ml_dtypes: where a number does not fit, the standard says nothing,
# and 0.7 gives 0 in place of the lower bits.
onnx="onnx~=1.23.0 onnxruntime~=1.32.0 ml_dtypes~=0.6.0"
# Marks cases that these scripts and packages wrote, whole.
complete=$cases/complete-$({ echo "$onnx" && cat "${0%/*}/onnx_nodes.py" "${0%/*}/onnx_random.py" "${0%/*}/onnx_contrib.py"; } | cksum | cut -d' ' -f1)
have_onnx() { [ -e "$complete" ] && [ -d "$cases/python/onnxruntime" ]; }
install_onnx() {
    # Words are packages.
    # shellcheck disable=SC2086
    python3 -m pip install --quiet --upgrade --target "$cases/python" $onnx &&
        PYTHONPATH="$cases/python" python3 "$(dirname "$0")/onnx_nodes.py" "$cases/nodes" &&
        PYTHONPATH="$cases/python" python3 "$(dirname "$0")/onnx_random.py" "$cases/nodes" 400 >/dev/null &&
        PYTHONPATH="$cases/python" python3 "$(dirname "$0")/onnx_contrib.py" "$cases/contrib" >/dev/null && touch "$complete"
}

[ $# -gt 0 ] || set -- opencl vulkan
status=0
for api in "$@"; do
    case $api in
    opencl | vulkan | nvrtc | qemu | aarch64 | windows | onnx) ;;
    *)
        echo "usage: $0 [opencl] [vulkan] [nvrtc] [qemu] [aarch64] [windows] [onnx]" >&2
        exit 2
        ;;
    esac
    if "have_$api"; then
        echo "$api is already installed."
    elif "install_$api" && "have_$api"; then
        echo "$api is installed."
    else
        echo "$api could not be installed: not everything it needs can be found." >&2
        status=1
    fi
    # What validates programs is of use where it can be had.
    if [ "$api" = vulkan ] && ! command -v spirv-val >/dev/null 2>&1 && can_install spirv-tools; then
        install spirv-tools vulkan-validationlayers || echo "No spirv-val: modules are not validated." >&2
    fi
done
exit $status
