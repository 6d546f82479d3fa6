# Sourced by ./run, ./test and .ci/run from the root of the tree: set-up and building, nothing else.
# Each function says what it does before it takes time, and is quick when there is nothing to do.
# shellcheck shell=bash

# Why each is here: docs/dependencies.md. The names are Debian 12's; calque_packages_of_system says what is called otherwise.
calque_packages_build=(
  g++ cmake ninja-build ccache pkg-config
  libsleef-dev nlohmann-json3-dev libfmt-dev libcli11-dev zlib1g-dev
  libpng-dev libjpeg62-turbo-dev libwebp-dev libflac-dev libsndfile1-dev libgtest-dev libgmock-dev)
calque_packages_peers=(python3 python3-venv)
calque_packages_browser=(chromium)
calque_packages_fuzz=(clang-16 libclang-rt-16-dev llvm-16)
calque_packages_reference=(doxygen)
calque_packages_style=(clang-format-16)
calque_packages_lint=(clang-tidy-16)

# What has to be there where this script does not know the system: what, from which version on, what for.
calque_needed=(
  "a C++20 compiler|g++ 12 or clang 16|everything"
  "CMake|3.25|the build"
  "Ninja|1.10|the build"
  "SLEEF|3.5, with sleef.h|vector exp, log, erf"
  "fmt|8.1, with its CMake files|messages"
  "nlohmann-json|3.10|JSON"
  "CLI11|2.1|the command line"
  "zlib|1.2|compressed archives"
  "libpng, libjpeg-turbo, libwebp|1.6, 2.1, 1.2, each optional|PNG, JPEG and WebP pictures"
  "libFLAC|1.4, optional|FLAC sound"
  "libsndfile|1.2, optional|Ogg and other sound"
  "GoogleTest and GoogleMock|1.11|the tests"
  "ccache|any, optional|building again"
  "Python|3.11 with venv, for ./test peers alone|comparing with PyTorch"
)

# Changes the packages to those of this system; fails for one that it does not know.
calque_packages_of_system() {
  local id='' version=''
  if [[ -n ${calque_system:-} ]]; then return; fi
  if [[ -r /etc/os-release ]]; then
    id=$(. /etc/os-release && printf '%s' "${ID:-}")
    version=$(. /etc/os-release && printf '%s' "${VERSION_ID:-}")
  fi
  case "$id:$version" in
    debian:* | raspbian:*) ;;
    ubuntu:22.04)  # its own g++ is 11, its CMake 3.22, and it has no clang 16
      calque_packages_build=("${calque_packages_build[@]/#g++/g++-12}")
      calque_packages_build=("${calque_packages_build[@]/#cmake/}" python3-pip)
      calque_packages_browser=()
      calque_packages_fuzz=()
      calque_packages_style=()
      calque_packages_lint=()
      export CXX=${CXX:-g++-12}
      ;;
    ubuntu:*) calque_packages_browser=() ;;  # 24.04 and later; chromium is a snap there
    *) return 1 ;;
  esac
  if [[ $id == ubuntu ]]; then calque_packages_build=("${calque_packages_build[@]/#libjpeg62-turbo-dev/libjpeg-turbo8-dev}"); fi
  local package kept=()
  for package in "${calque_packages_build[@]}"; do
    if [[ -n $package ]]; then kept+=("$package"); fi
  done
  calque_packages_build=("${kept[@]}")
  calque_system=$id:$version
}

# Says what is needed, by name and version.
calque_list_needed() {
  local line what version purpose
  for line in "${calque_needed[@]}"; do
    IFS='|' read -r what version purpose <<<"$line"
    printf '     %-28s %-42s %s\n' "$what" "$version" "($purpose)"
  done
}

# CMake is older than the presets need on some systems: pip has it.
calque_need_cmake() {
  local have
  have=$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*//p')
  if [[ -n $have && $(printf '%s\n3.25\n' "$have" | sort -V | head -n 1) == 3.25 ]]; then return; fi
  die "CMake 3.25 or later is needed; found ${have:-none}." \
    "Install it, for example:  python3 -m pip install --user 'cmake>=3.25'  and put ~/.local/bin first in PATH"
}

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
  if ! calque_packages_of_system || ! command -v dpkg-query >/dev/null; then
    say "this system is not one of Debian 12 and later, Ubuntu 22.04 or 24.04: these have to be there already"
    calque_list_needed
    calque_need_cmake
    return
  fi
  for group in "$@"; do
    local -n packages="calque_packages_$group"
    wanted+=("${packages[@]}")
  done
  local package
  for package in "${wanted[@]}"; do
    if [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
      missing+=("$package")
    fi
  done
  if ((${#missing[@]} == 0)); then
    calque_need_cmake
    return
  fi

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
  calque_need_cmake
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
