# Sourced by ./run, ./test and .ci/run from the root of the tree: set-up and building, nothing else.
# Each function says what it does before it takes time, and is quick when there is nothing to do.
# shellcheck shell=bash

# Why each is here: docs/dependencies.md.
calque_packages_build=(
  g++ cmake ninja-build ccache pkg-config
  libsleef-dev nlohmann-json3-dev libfmt-dev libcli11-dev libgtest-dev libgmock-dev)
calque_packages_peers=(python3 python3-venv)
calque_packages_browser=(chromium)
calque_packages_fuzz=(clang-16 libclang-rt-16-dev llvm-16)
calque_packages_reference=(doxygen)
calque_packages_style=(clang-format-16)
calque_packages_lint=(clang-tidy-16)

say() { printf '== %s\n' "$*"; }
die() {
  printf 'error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '       %s\n' "$line" >&2; done
  exit 1
}

calque_jobs() { nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2; }

# calque_need build|peers|browser|fuzz|reference|style|lint...: installs the Debian packages of these groups that are missing.
calque_need() {
  local group missing=() wanted=()
  for group in "$@"; do
    local -n packages="calque_packages_$group"
    wanted+=("${packages[@]}")
  done
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: taking for granted that these are installed: ${wanted[*]}"
    return
  fi
  local package
  for package in "${wanted[@]}"; do
    if [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
      missing+=("$package")
    fi
  done
  if ((${#missing[@]} == 0)); then return; fi

  local as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      die "these Debian packages are missing, and this user is not root and has no sudo: ${missing[*]}" \
        "Install them as root:  apt-get install ${missing[*]}"
    fi
    as_root=(sudo)
    if [[ ! -t 0 ]]; then as_root+=(-n); fi
  fi
  local log
  log=$(mktemp "${TMPDIR:-/tmp}/calque-setup.XXXXXX")
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
  say "installing Debian packages: ${missing[*]}"
  # The package lists may be absent (a fresh container) or stale: refresh them only when the first try fails.
  if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null; then
    say "refreshing the package lists"
    if ! "${apt[@]}" update >>"$log" 2>&1 </dev/null ||
      ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1 </dev/null; then
      tail -n 15 "$log" >&2
      die "could not install: ${missing[*]}" \
        "The whole log is in $log. Is the network reachable, and is this Debian 12 or newer?" \
        "By hand, as root:  apt-get update && apt-get install ${missing[*]}"
    fi
  fi
  rm -f "$log"
}

# calque_build PRESET [TARGET...]: configures when that has not been done and builds (everything, if no target is named).
calque_build() {
  local preset=$1 folder="build/$1" target arguments=()
  shift
  for target in "$@"; do arguments+=(--target "$target"); done
  # A tree that was moved or copied keeps a cache that points to where it was.
  if [[ -f $folder/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$folder/CMakeCache.txt"; then
    say "$folder was configured elsewhere: starting it afresh"
    rm -rf "$folder"
  fi
  if [[ ! -f $folder/build.ninja ]]; then
    say "configuring $folder"
    local log
    log=$(mktemp "${TMPDIR:-/tmp}/calque-configure.XXXXXX")
    if ! cmake --preset "$preset" >"$log" 2>&1; then
      cat "$log" >&2
      die "CMake could not configure the preset '$preset' (output above)."
    fi
    rm -f "$log"
  fi
  say "building $folder with $(calque_jobs) jobs"
  local start=$SECONDS
  if ! cmake --build "$folder" -j "$(calque_jobs)" "${arguments[@]}"; then
    die "the build failed (output above)." "If only this machine's build folder is at fault, remove $folder and try again."
  fi
  say "built in $((SECONDS - start)) s"
}

# calque_peers_python: makes the virtual environment with PyTorch and friends, outside the tree, and sets $peers_python.
calque_peers_python() {
  local requirements=tools/peers/requirements.txt
  local folder=${CALQUE_PEERS_DIR:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/calque/peers}
  peers_python=$folder/bin/python
  if [[ -x $peers_python ]] && cmp -s "$requirements" "$folder/requirements.txt"; then return; fi

  if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then calque_need peers; fi
  say "setting up PyTorch and transformers in $folder (once; a few minutes)"
  mkdir -p "$(dirname "$folder")"
  local log=$folder.log torch
  torch=$(grep -m1 '^torch' "$requirements")
  if ! { python3 -m venv --clear "$folder" &&
    "$peers_python" -m pip install --no-input "$torch" &&
    "$peers_python" -m pip install --no-input -r "$requirements"; } >"$log" 2>&1 </dev/null; then
    tail -n 15 "$log" >&2
    die "could not set up the peers' Python environment." \
      "The whole log is in $log. pip must find: $(grep -v '^#' "$requirements" | tr '\n' ' ')" \
      "PIP_INDEX_URL, PIP_EXTRA_INDEX_URL and PIP_FIND_LINKS are honoured; CALQUE_PEERS_DIR chooses another folder."
  fi
  cp "$requirements" "$folder/requirements.txt"  # the mark of a finished set-up
}
