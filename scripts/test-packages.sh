#!/usr/bin/env bash
# The README's program in two crates outside the workspace: one that depends on a checkout, as the
# README says, and one that depends on what scripts/package.sh packaged. The packaged one is compiled
# without machine code (the program runs as a documentation test of the crate `zyx`); of the other
# cargo resolves the dependencies, whose sources are the same. Sees what a user is told of a field that
# is no module. With ZYX_FULL=1 both are built and run, and the packaged one has the profile that the
# guide recommends, which optimises all dependencies: it has to halve the program's time.
#
#   scripts/test-packages.sh
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT

# The first block of a language in the README.
block() {
    awk -v open="\`\`\`$1" '$0 == "```" { inside = 0 } inside && n == 1 { print } $0 == open { inside = 1; n++ }' README.md
}

# crate NAME DEPENDENCY: a crate with the README's program.
crate() {
    local folder=$work/$1
    cargo new --quiet --vcs none "$folder"
    block rust >"$folder/src/main.rs"
    sed -i '/^\[dependencies\]/,$d' "$folder/Cargo.toml"
    printf '%s\n' "$2" >>"$folder/Cargo.toml"
    echo "--- $1:"
    cat "$folder/Cargo.toml"
}

# run NAME: builds and runs the program of a crate.
run() {
    local folder=$work/$1
    (cd "$folder" && TMPDIR=$folder timeout 900 cargo run --quiet --target-dir "$target") | tee "$folder/printed"
    grep -q 'step 90: loss' "$folder/printed" && [ -s "$folder/model.safetensors" ]
}
target=$PWD/target/consumers

# The processor time of a crate's program, the least of five, in milliseconds.
milliseconds() {
    local TIMEFORMAT=%U i
    for ((i = 0; i < 5; i++)); do
        { time TMPDIR=$work "$target/debug/$1" >"$work/printed"; } 2>&1
    done | sort -n | head -1 | tr -d . | sed 's/^0*//'
}

ln -s "$PWD" "$work/zyx"
crate checkout "$(block toml)"
(cd "$work/checkout" && cargo tree --edges normal) | tee "$work/tree"
grep -q '── zyx v.*/zyx)$' "$work/tree"
[ -z "${ZYX_FULL:-}" ] || run checkout

# The port is the system's choice, and the server says which before it serves.
python3 -c 'import functools, http.server, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
print(server.server_port, flush=True)
server.serve_forever()' "$work/registry" >"$work/port" 2>"$work/requests" &
server=$!
until [ -s "$work/port" ]; do sleep 0.1; done
url=http://127.0.0.1:$(cat "$work/port")
mkdir -p "$work/registry"
scripts/package.sh "$url" "$work/registry"
export CARGO_REGISTRIES_ZYX_INDEX="sparse+$url/"
profile=
[ -z "${ZYX_FULL:-}" ] || profile=$(sed -n '/^\[profile/,/^```$/{/^```$/!p}' docs/guide/tour.md)
crate packaged $'[dependencies]\nzyx = { version = "0.1", registry = "zyx" }\n\n'"$profile"
if [ -n "$profile" ]; then
    run packaged
else
    (cd "$work/packaged" && cargo check --quiet --target-dir "$target")
fi

mkdir "$work/packaged/examples"
cat >"$work/packaged/examples/field.rs" <<'RUST'
#[derive(zyx::nn::Module)]
struct Net {
    layer: zyx::nn::Linear,
    cache: std::collections::HashMap<String, f32>,
}
fn main() {}
RUST
echo "--- a field that is no module:"
! (cd "$work/packaged" && cargo check --quiet --target-dir "$target" --example field) >"$work/errors" 2>&1
cat "$work/errors"
grep -q 'examples/field.rs:4:5' "$work/errors"
grep -qF '#[module(skip)]' "$work/errors"

[ -n "$profile" ] || exit 0
plain=$(milliseconds checkout) optimised=$(milliseconds packaged)
echo "--- README's program takes $plain ms in a debug build, $optimised with the guide's profile"
[ $((2 * optimised)) -le "$plain" ]
