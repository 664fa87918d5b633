# Tests of another target, emulated; to be sourced where `target` names it.
#
# tests ARGUMENT ..: `cargo test` with them. A filter that matches nothing is a mistake, which libtest does not call one.
tests() {
    local log status=0
    log=$(mktemp)
    cargo test --target "$target" "$@" 2>&1 | tee "$log" || status=$?
    if grep -q '^running 0 tests' "$log"; then
        echo "no test matches ($*)" >&2
        status=1
    fi
    rm -f "$log"
    return $status
}
