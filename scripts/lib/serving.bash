# Sourced by the scripts that try clients: a server with the default model on free ports, until the script ends.
# The script has `fail MESSAGE`, which ends it.

readonly START_TIMEOUT_SECONDS=120
SERVER_PID=""

stop_server() {
  [[ -n $SERVER_PID ]] && kill "$SERVER_PID" 2>/dev/null
  wait 2>/dev/null || true
}

# Sets ADDRESS, and HTTP_ADDRESS if a flag asks for HTTP.
start_server() {  # SERVER LOG [FLAG...]
  local server=$1 log=$2 attempt
  shift 2
  [[ -x $server ]] || fail "$server is missing: scripts/build release"
  : >"$log"
  trap stop_server EXIT
  # Weights that every processor computes alike: the answers are checked.
  "$server" --model "$(scripts/fetch_model)" --weight-type bf16 --memory-budget 2GiB --grpc-listen 127.0.0.1:0 \
    "$@" 2>"$log" &
  SERVER_PID=$!
  for ((attempt = 0; attempt < START_TIMEOUT_SECONDS * 10; ++attempt)); do
    kill -0 "$SERVER_PID" 2>/dev/null || fail "the server ended: $log"
    ADDRESS=$(sed -n 's/^.*quire-server: ready on //p' "$log")
    # shellcheck disable=SC2034  # for the script
    HTTP_ADDRESS=$(sed -n 's/^ *HTTP address *//p' "$log")
    [[ -z $ADDRESS ]] || return 0
    sleep 0.1
  done
  fail "the server was not ready within $START_TIMEOUT_SECONDS s: $log"
}
