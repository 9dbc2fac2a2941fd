#!/bin/sh
# Installs Debian's Wine (204 MB to download, 1.2 GB on disk) and makes a Windows drive of its own (700 MB) in
# ~/.cache/dowel-wine, or in the folder that DOWEL_WINE names. It prints the path of the overlay: see README.md.
set -eu
cd "$(dirname "$0")"
. ./folder.sh
if ! command -v wine >/dev/null || ! command -v x86_64-w64-mingw32-gcc >/dev/null; then
	echo "installing wine" >&2
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends wine wine64 gcc-mingw-w64-x86-64 >/dev/null
fi
mkdir -p "$folder"
if [ ! -e "$WINEPREFIX/ready" ]; then
	/usr/lib/wine/wine64 wineboot --init >"$folder/wineboot.log" 2>&1
	x86_64-w64-mingw32-gcc -shared -O2 -s -o "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll" prng.c -ladvapi32
	touch "$WINEPREFIX/ready"
fi
file=$(go env GOROOT)/src/internal/syscall/windows/at_windows.go
sed 's/^\(\t\tSTATUS_NOT_SUPPORTED\):/\1, NTStatus(0xC0000002):/' "$file" >"$folder/at_windows.go"
if cmp -s "$file" "$folder/at_windows.go"; then
	echo "wine/install.sh: the line to change is not in $file" >&2
	exit 1
fi
printf '{"Replace": {"%s": "%s"}}\n' "$file" "$folder/at_windows.go" >"$folder/overlay.json"
echo "$folder/overlay.json"
