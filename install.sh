#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh - build Vitrine from this directory and install it; PREFIX=/usr/local unless said otherwise
#
# Works on Linux, in WSL2 and in a Linux machine on macOS. On macOS itself it says what to do instead.
set -eu
cd "$(dirname "$0")"

case "$(uname -s)" in
Linux) ;;
Darwin)
	echo 'Vitrine needs Linux walls. A small Linux machine beside macOS has them:' >&2
	echo '    limactl start --name vitrine template://debian && limactl shell vitrine' >&2
	echo 'and then ./install.sh in there. docs/PLATFORMS.md has other ways.' >&2
	exit 1 ;;
*)
	echo "install.sh: '$(uname -s)' is not known here; docs/PLATFORMS.md says what is" >&2
	exit 1 ;;
esac

as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo
[ -z "$as_root" ] || command -v sudo >/dev/null || { echo 'install.sh: needs root or sudo to install' >&2; exit 1; }
command -v make >/dev/null || { echo 'install.sh: make is missing' >&2; exit 1; }
$as_root tools/deps --build
make build
$as_root make install PREFIX="${PREFIX:-/usr/local}"
"${PREFIX:-/usr/local}/bin/vitrine" doctor || echo 'install.sh: installed, but something is missing here: see above' >&2
