#!/bin/sh
# Runs the escape probes under Landlock on other kernels: ABI 2 (Linux 6.1), ABI 6 (6.12), switched off, and on
# arm64 (6.1) where qemu-system-arm and gcc-aarch64-linux-gnu are there too. Needs Debian with qemu-system-x86,
# busybox-static, cpio, gcc, and a package mirror for the kernels; about two minutes, no root, no KVM.
set -eu
cd "$(dirname "$0")/.."
for tool in qemu-system-x86_64 busybox cpio gcc apt-get; do
  command -v "$tool" >/dev/null || { echo "landlock-qemu: $tool is not installed" >&2; exit 2; }
done
[ -x native/build/callgate-launcher ] || { echo "landlock-qemu: build the launcher first" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npx rolldown ./scripts/landlock-qemu.ts --platform node -o "$work/half.mjs" >/dev/null 2>&1
gcc -O1 -static -pthread -o "$work/probe-x64" test/attacks/probe.c
cp native/build/callgate-launcher "$work/launcher-x64"
cp "$(command -v busybox)" "$work/busybox-x64"

# kernel VERSION ARCH [OPTION...]: the newest cloud image of that series, unpacked; prints its path.
kernel() {
  version=$1 arch=$2
  shift 2
  name=$(apt-cache "$@" search --names-only "^linux-image-$version\\.[0-9.+a-z-]*cloud-$arch\$" | cut -d' ' -f1 | sort -V | tail -1)
  [ -n "$name" ] || { echo "landlock-qemu: no kernel $version for $arch in the package lists" >&2; exit 2; }
  (cd "$work" && apt-get "$@" download "$name" >/dev/null 2>&1 && dpkg -x "$name"_*.deb "$work/$version-$arch")
  echo "$work/$version-$arch"/boot/vmlinuz-*
}

# guest ABI ARCH: a disk with a workspace, something outside it, a secret, and the launcher that confines the probe.
guest() {
  root="$work/root-$1-$2"
  mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/etc" "$root/mnt" "$root/tmp" "$root/private" \
    "$root/ws/.git" "$root/outside" "$root/home"
  cp "$work/busybox-$2" "$root/bin/busybox"
  for applet in sh true mount poweroff ip mkdir; do ln -s busybox "$root/bin/$applet"; done
  cp "$work/launcher-$2" "$root/launcher"
  cp "$work/probe-$2" "$root/bin/probe"
  node "$work/half.mjs" request "$1" "$root/request" "$2"
  echo root:x:0:0::/:/bin/sh >"$root/etc/passwd"
  echo '[core]' >"$root/ws/.git/config"
  echo untouched >"$root/outside/victim"
  echo secret >"$root/home/secret"
  ln -s /outside "$root/ws/out-link"
  cat >"$root/init" <<'INIT'
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
ip link set lo up
echo "abi $(/launcher landlock-abi)"
echo probes
/launcher once 3 3</request
echo "exit $?"
poweroff -f
INIT
  chmod +x "$root/init"
  (cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/guest.gz"
}

# run ABI KERNEL LSMS ARCH CONSOLE QEMU...
run() {
  abi=$1 kernel=$2 lsms=$3 arch=$4 console=$5
  shift 5
  guest "$abi" "$arch"
  echo "kernel ${kernel##*/vmlinuz-}, lsm=$lsms:"
  timeout 120 "$@" -accel tcg -cpu max -m 512 -nographic -no-reboot -kernel "$kernel" -initrd "$work/guest.gz" \
    -append "console=$console quiet panic=-1 lsm=$lsms" </dev/null >"$work/output" 2>&1 || true
  node "$work/half.mjs" check "$abi" "$work/output" || { tail -30 "$work/output"; failed=1; }
}

failed=0
old=$(kernel 6.1 amd64)
new=$(kernel 6.12 amd64)
run 2 "$old" landlock,lockdown,yama x64 ttyS0 qemu-system-x86_64
run 6 "$new" landlock,lockdown,yama x64 ttyS0 qemu-system-x86_64
run 0 "$new" lockdown,yama x64 ttyS0 qemu-system-x86_64

if command -v qemu-system-aarch64 >/dev/null && command -v aarch64-linux-gnu-gcc >/dev/null; then
  mkdir -p "$work/apt/lists/partial" "$work/cache/archives/partial"
  set -- -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$work/apt" -o Dir::State::status=/dev/null -o "Dir::Cache=$work/cache"
  apt-get "$@" update >/dev/null 2>&1
  (cd "$work" && apt-get "$@" download busybox-static >/dev/null 2>&1 && dpkg -x busybox-static_*.deb "$work/busybox-arm")
  cp "$work/busybox-arm/bin/busybox" "$work/busybox-arm64"
  aarch64-linux-gnu-gcc -O1 -static -pthread -o "$work/probe-arm64" test/attacks/probe.c
  CC=aarch64-linux-gnu-gcc node scripts/package-launcher.mjs "$work" arm64 2>/dev/null
  cp "$work/callgate-launcher-linux-arm64/callgate-launcher" "$work/launcher-arm64"
  run 2 "$(kernel 6.1 arm64 "$@")" landlock,lockdown,yama arm64 ttyAMA0 qemu-system-aarch64 -M virt
fi
exit "$failed"
