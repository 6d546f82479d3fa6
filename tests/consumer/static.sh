#!/usr/bin/env bash
# Usage: static.sh CALQUE SOURCE FOLDER    The program runs in a folder that has nothing else but a model, as its whole file system: no
# C library, no /proc, no /dev. With every set of kernels that this machine has; what it generates is the same. It loads no code.
set -euo pipefail
program=$1 source=$2 root=$3

if readelf -l "$program" | grep -q INTERP; then echo "$program asks for a dynamic loader"; exit 1; fi
if readelf -d "$program" | grep NEEDED; then echo "$program needs shared libraries"; exit 1; fi
rm -rf "$root"
mkdir -p "$root"
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
  if [[ $text != "$first" || $text != "Call me"?* ]]; then echo "another text than ${isas[0]}'s"; exit 1; fi
done
"${enter[@]}" /calque export /model -o /m.pt2
"${enter[@]}" /calque info /m.pt2
