#!/usr/bin/env bash
# Packages what can be published as a registry of static files, which any web server can serve.
#
#   scripts/package.sh URL [folder]      (default folder: target/registry)
#
# URL is where the folder will be served. Users name it in `.cargo/config.toml`:
#
#   [registries.zyx]
#   index = "sparse+URL/"
#
# and depend on `zyx = { version = "0.1", registry = "zyx" }`. It is a registry of its own because on
# crates.io `zyx`, `zyx-core`, `zyx-nn` and `zyx-optim` belong to another project.
#
# Packages are made in the order of their dependencies and not compiled; scripts/test-packages.sh
# compiles them. Where git knows a remote `origin`, it becomes their repository.
set -euo pipefail
cd "$(dirname "$0")/.."

url=${1:?"the URL that the registry will be served at"}
url=${url%/}
out=${2:-target/registry}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A copy of what git tracks, as it is in the working tree.
git ls-files -z | tar c --null --files-from - | tar x -C "$work"
if repository=$(git remote get-url origin 2>/dev/null); then
    find "$work" -name Cargo.toml -mindepth 2 -exec sed -i "s|^license.workspace = true|&\nrepository = \"$repository\"|" {} +
fi
# Since cargo 1.90 it packages a workspace through an index that it makes for that.
private=$(cargo metadata --no-deps --format-version 1 --manifest-path "$work/Cargo.toml" |
    python3 -c 'import json, sys
print(*("--exclude " + p["name"] for p in json.load(sys.stdin)["packages"] if p["publish"] == []))')
# Words are options.
# shellcheck disable=SC2086
cargo package --manifest-path "$work/Cargo.toml" --target-dir "$work/target" --workspace $private \
    --no-verify --allow-dirty --quiet

rm -rf "$out"
mkdir -p "$out/crates"
cp "$work"/target/package/*.crate "$out/crates/"
cp -r "$work"/target/package/tmp-registry/index/. "$out/"
printf '{"dl":"%s/crates/{crate}-{version}.crate"}\n' "$url" >"$out/config.json"
# Packages of this registry depend on one another in it: there a dependency without registry is one
# of the same.
python3 - "$out" <<'PYTHON'
import json, pathlib, sys

index = [path for path in pathlib.Path(sys.argv[1]).rglob("*") if path.is_file() and path.name.split("-")[0] == "zyx"]
entries = {path.name: path for path in index if path.suffix != ".crate"}
for path in entries.values():
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for dependency in (dependency for line in lines for dependency in line["deps"]):
        if dependency["name"] in entries:
            dependency["registry"] = None
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
print(f"{len(entries)} packages:", *sorted(entries))
PYTHON
