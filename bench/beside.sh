# Sourced by bench/<name>/run, from the root of the tree: builds the program bench_<name> and runs bench/<name>/run.py on it.
# `--before COMMIT` compares with Calque as it was then, not with the peer: that commit is built as well, in the cache folder, once.
# shellcheck shell=bash
source tools/setup.sh

# calque_built_at COMMIT NAME: sets $built to bench_<name> of that commit.
calque_built_at() {
  local commit tree
  commit=$(git rev-parse --verify --quiet "$1^{commit}") || die "--before takes a commit; found '$1'"
  tree=${XDG_CACHE_HOME:-$HOME/.cache}/calque/before/${commit:0:12}
  built=$tree/build/release/bin/bench_$2
  if [[ ! -d $tree ]]; then
    say "taking $1 to $tree"
    mkdir -p "$tree.part"
    git archive "$commit" | tar -x -C "$tree.part"
    mv "$tree.part" "$tree"
  fi
  (cd "$tree" && calque_build release "bench_$2") || exit 1
}

# calque_bench NAME ARGUMENT...
calque_bench() {
  local name=$1 arguments=() built
  shift
  calque_need build
  calque_build release "bench_$name"
  while (($# > 0)); do
    if [[ $1 == --before ]]; then
      calque_built_at "${2:-}" "$name"
      arguments+=(--before "$built")
      shift
    else
      arguments+=("$1")
    fi
    shift
  done
  calque_peers_python
  exec "$peers_python" "bench/$name/run.py" "${arguments[@]}"
}
