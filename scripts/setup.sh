#!/bin/sh
# Installs missing tools: scripts/setup.sh build | demo | test Rust is installed by rustup, other programs as
# Debian packages (needs root), linters for Python from PyPI into the virtual environment target/python.
set -eu
cd "$(dirname "$0")/.."

usage="usage: $0 build | demo | test"
# The kernel programs are compiled by clang. libbpf, which loads them, is built with make and needs two
# libraries.
compile="cc clang make pkg-config libelf.h zlib.h"
case ${1:?$usage} in
build) tools="$compile" ;;
demo) tools="$compile ip unshare python3 curl" ;;
test) tools="$compile c++ ip unshare python3 curl iperf3 wg wireguard-go tshark openssl ss setpriv ethtool ping
    nginx wget ssh sshd rsync vsftpd psql /usr/lib/postgresql websockets ensurepip promtool chromium" ;;
*) echo "$usage" >&2; exit 2 ;;
esac

# The Debian package of a command.
package_of() {
    case $1 in
    cc) echo gcc libc6-dev ;;
    c++) echo g++ ;;
    libelf.h) echo libelf-dev ;;
    zlib.h) echo zlib1g-dev ;;
    ip | ss) echo iproute2 ;;
    ping) echo iputils-ping ;;
    wg) echo wireguard-tools ;;
    unshare | setpriv) echo util-linux ;;
    nginx) echo nginx-light ;;
    ssh) echo openssh-client ;;
    sshd) echo openssh-server ;;
    psql | /usr/lib/postgresql) echo postgresql ;;
    websockets) echo python3-websockets ;;
    ensurepip) echo python3-venv ;;
    promtool) echo prometheus ;;
    *) echo "$1" ;;
    esac
}

# Debian's package of promtool installs and starts a server as well: only the program is taken out of it.
install_promtool() {
    folder=$(mktemp -d)
    if ! (cd "$folder" && apt-get download -qq prometheus 2>/dev/null && dpkg-deb -x prometheus_*.deb . \
        && install -m 755 usr/bin/promtool /usr/local/bin/promtool); then
        echo "cannot take promtool out of the package prometheus" >&2
    fi
    rm -rf "$folder"
}

missing=""
for tool in $tools; do
    case $tool in
    *.h) [ -e "/usr/include/$tool" ] ;;
    /*) [ -e "$tool" ] ;;
    websockets | ensurepip)
        python3 -c "import $tool" 2>/dev/null || /usr/bin/python3 -c "import $tool" 2>/dev/null ;;
    *) command -v "$tool" >/dev/null 2>&1 ;;
    esac || missing="$missing $tool"
done
if [ -n "$missing" ]; then
    packages=$(for tool in $missing; do package_of "$tool"; done)
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing:" $packages >&2
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq
        case " $missing " in *" promtool "*)
            packages=$(echo "$packages" | sed 's/^prometheus$//')
            install_promtool
            ;;
        esac
        # shellcheck disable=SC2086
        [ -z "$(echo $packages)" ] || apt-get install -y -qq --no-install-recommends $packages >/dev/null
    else
        echo "missing:$missing" >&2
        echo "as root: apt-get install" $packages >&2
        # The build fails without the compilers. Without the other programs, tests and demos are skipped.
        for tool in $compile; do
            case " $missing " in *" $tool "*) exit 1 ;; esac
        done
    fi
fi

# Builds take 1 GB (build, demo) and 3 GB (test), measured with du after make demo and make test. A full disk
# ends them with errors of the compiler.
case $1 in test) needed=4 ;; *) needed=2 ;; esac
free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1048576) }')
if [ ! -d target ] && [ "$free" -lt "$needed" ]; then
    echo "warning: $free GB are free on this disk; the build for $1 needs about $needed GB" >&2
fi

PATH="$HOME/.cargo/bin:$PATH"
if ! command -v cargo >/dev/null 2>&1; then
    echo "installing Rust by rustup" >&2
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal --default-toolchain none
fi
# rustup installs the pinned toolchain on the first call of cargo.
cargo --version >&2

# Pinned, since new versions of linters have new rules.
linters="ruff==0.17.6 mypy==2.4.1"
installed=target/python/installed
if [ "$1" = test ] && [ "$(cat "$installed" 2>/dev/null)" != "$linters" ]; then
    echo "installing: $linters" >&2
    # shellcheck disable=SC2086
    if python3 -m venv target/python && target/python/bin/pip install --quiet $linters; then
        echo "$linters" >"$installed"
    else
        echo "cannot install $linters: the Python scripts are not checked" >&2
    fi
fi
