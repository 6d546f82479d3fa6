#!/usr/bin/env bash
# Usage: static.sh BUILD SOURCE FOLDER    What `cmake --install` makes of a static build: the program runs in a folder that has nothing
# else but a model, as its whole file system: no C library, no /proc, no /dev. With every set of kernels that this machine has; what it
# generates is the same. It loads no code, and says so. What shells and `man` read of it is there.
set -euo pipefail
build=$1 source=$2 root=$3

fail() {
  echo "$1"
  exit 1
}

rm -rf "$root"
cmake --install "$build" --prefix "$root/prefix" >/dev/null
program=$root/prefix/bin/calque
if readelf -l "$program" | grep -q INTERP; then fail "$program asks for a dynamic loader"; fi
if readelf -d "$program" | grep NEEDED; then fail "$program needs shared libraries"; fi
cp "$program" "$root/calque"
cp -r "$source/assets/tiny-lm" "$root/model"

enter=(chroot "$root")
if ((EUID != 0)); then enter=(unshare --map-root-user chroot "$root"); fi
isas=(generic)
if grep -qw avx2 /proc/cpuinfo; then isas+=(avx2); fi
if grep -qw avx512vl /proc/cpuinfo; then isas+=(avx512); fi
for isa in "${isas[@]}"; do
  text=$(CALQUE_ISA=$isa "${enter[@]}" /calque generate /model -p "Call me" -n 12 --greedy)
  echo "$isa: $text"
  if [[ -z ${first:-} ]]; then first=$text; fi
  if [[ $text != "$first" || $text != "Call me"?* ]]; then fail "another text than ${isas[0]}'s"; fi
done
"${enter[@]}" /calque export /model -o /m.pt2
"${enter[@]}" /calque info /m.pt2

# Where it was installed it finds the model that comes along, also after the prefix was moved.
mv "$root/prefix" "$root/moved"
text=$("$root/moved/bin/calque" generate tiny-lm -p "Call me" -n 12 --greedy)
if [[ $text != "$first" ]]; then fail "the installed program does not find tiny-lm: $text"; fi

# Operators of a user's own are refused, before anything else is done.
status=0
text=$("$root/calque" --operators ./gated.so info model 2>&1) || status=$?
if ((status != 2)) || [[ $text != *"./gated.so: this program is linked statically and cannot load code"* ]]; then
  fail "operator libraries: status $status, $text"
fi

share=$root/moved/share
bash -n "$share/bash-completion/completions/calque"
grep -q '^#compdef calque' "$share/zsh/site-functions/_calque" || fail "the completions for zsh"
grep -q 'complete -c calque' "$share/fish/vendor_completions.d/calque.fish" || fail "the completions for fish"
grep -q '^.TH CALQUE 1' "$share/man/man1/calque.1" || fail "the manual page"
if [[ -e $root/moved/lib || -e $root/moved/include ]]; then fail "a static build installs its program alone"; fi
