#!/bin/sh
# Installs the drivers that the test suite needs beside a bare Debian or Ubuntu: an OpenCL
# loader and PoCL, the OpenCL implementation for CPUs. Nothing is needed to build zyx; a machine
# with a vendor's OpenCL driver needs nothing from here either.
#
# Does nothing when a loader and a driver are already there, so it may be run again and again.
# Exit status: 0 when OpenCL is usable afterwards, 1 with a message when it is not.
set -eu

have_loader() {
    ldconfig -p 2>/dev/null | grep -q 'libOpenCL\.so' && return 0
    ls /usr/lib/libOpenCL.so* /usr/lib/*/libOpenCL.so* >/dev/null 2>&1
}

# A driver is registered by an .icd file naming its library.
have_driver() {
    ls "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"/*.icd >/dev/null 2>&1
}

if have_loader && have_driver; then
    echo "OpenCL is already installed."
    exit 0
fi

packages=""
have_loader || packages="$packages ocl-icd-libopencl1"
have_driver || packages="$packages pocl-opencl-icd"

if ! command -v apt-get >/dev/null 2>&1; then
    echo "No apt-get here. Install with your package manager, by the names used there:$packages" >&2
    exit 1
fi

as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        as_root="sudo"
    else
        echo "Not root, and sudo asks for a password. Run: sudo apt-get install$packages" >&2
        exit 1
    fi
fi

# The index may be older than the packages it names: try with it first, then refresh it.
install() {
    # shellcheck disable=SC2086 # the names are meant to be split
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends $packages
}
install || { $as_root apt-get update && install; }

have_loader && have_driver || {
    echo "The packages are installed, but no OpenCL loader and driver can be found." >&2
    exit 1
}
echo "OpenCL is installed."
