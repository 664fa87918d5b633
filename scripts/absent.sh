# What a script does without a tool that it needs; to be sourced.
#
# absent NAME REASON: a failure in CI (CI=true) and where ZYX_REQUIRE names NAME, else the end of
# the script with a line that says what was skipped. For parts of a script:
#   is_required NAME || { echo "skipped NAME: REASON"; return; }
is_required() {
    [ "${CI-}" = true ] && return 0
    case ",${ZYX_REQUIRE-}," in
    *",$1,"*) return 0 ;;
    *) return 1 ;;
    esac
}

absent() {
    if is_required "$1"; then
        echo "FAILED  $1 is required: $2" >&2
        exit 1
    fi
    echo "skipped $1: $2"
    exit 0
}
