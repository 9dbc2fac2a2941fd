# Names the folder of Wine and the variables that Wine reads, for the other scripts.
folder=${DOWEL_WINE:-${XDG_CACHE_HOME:-$HOME/.cache}/dowel-wine}
export WINEPREFIX="$folder/prefix" WINEARCH=win64 WINEDEBUG=-all DISPLAY=
