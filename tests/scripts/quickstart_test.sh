#!/usr/bin/env bash
# scripts/quickstart refuses what it can't use before it installs or builds anything.
set -euo pipefail
cd "$(dirname "$0")/../.."

expect_refusal() {  # MESSAGE ARGUMENT...
  local message=$1 output; shift
  if output=$(scripts/quickstart "$@" 2>&1); then
    echo "FAILED: quickstart $* was accepted" >&2; exit 1
  fi
  case "$output" in
    *"== set-up"*) echo "FAILED: quickstart $* began to work" >&2; exit 1 ;;
    *"$message"*) ;;
    *) echo "FAILED: quickstart $* said: $output" >&2; exit 1 ;;
  esac
}

expect_refusal "--port is '0': expected a number from 1 to 65535" --port 0
expect_refusal "--port is '65536': expected a number from 1 to 65535" --port 65536
expect_refusal "--port is 'http': expected a number from 1 to 65535" --port http
expect_refusal "--port needs a value" --port
expect_refusal "--prompt is empty" --prompt ""
expect_refusal "unknown argument '--ports'" --ports 1
scripts/quickstart --help | grep -q -- "--exit"
echo "passed"
