#!/bin/sh
# Runs the escape probes under Landlock on other kernels: ABI 2 (Linux 6.1), ABI 6 (6.12), and switched off.
# Needs Debian with qemu-system-x86, busybox-static, cpio, gcc, and a package mirror for the kernels; about a
# minute and a half, no root, no KVM.
set -eu
cd "$(dirname "$0")/.."
for tool in qemu-system-x86_64 busybox cpio gcc apt-get; do
  command -v "$tool" >/dev/null || { echo "landlock-qemu: $tool is not installed" >&2; exit 2; }
done
[ -x native/build/callgate-launcher ] || { echo "landlock-qemu: build the launcher first" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npx rolldown ./scripts/landlock-qemu.ts --platform node -o "$work/half.mjs" >/dev/null 2>&1
gcc -O1 -static -pthread -o "$work/probe" test/attacks/probe.c

# kernel VERSION: the newest cloud image of that series, unpacked; prints its path.
kernel() {
  name=$(apt-cache search --names-only "^linux-image-$1\\.[0-9.+a-z-]*cloud-amd64\$" | cut -d' ' -f1 | sort -V | tail -1)
  [ -n "$name" ] || { echo "landlock-qemu: no kernel $1 in the package lists" >&2; exit 2; }
  (cd "$work" && apt-get download "$name" >/dev/null 2>&1 && dpkg -x "$name"_*.deb "$work/$1")
  echo "$work/$1"/boot/vmlinuz-*
}

# guest ABI: a disk with a workspace, something outside it, a secret, and the launcher that confines the probe.
guest() {
  root="$work/root-$1"
  mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/etc" "$root/mnt" "$root/tmp" "$root/private" \
    "$root/ws/.git" "$root/outside" "$root/home"
  cp "$(command -v busybox)" "$root/bin/busybox"
  for applet in sh true mount poweroff ip mkdir; do ln -s busybox "$root/bin/$applet"; done
  cp native/build/callgate-launcher "$root/launcher"
  cp "$work/probe" "$root/bin/probe"
  node "$work/half.mjs" request "$1" "$root/request"
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
  (cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/guest-$1.gz"
}

# run ABI KERNEL LSMS
run() {
  guest "$1"
  echo "kernel ${2##*/vmlinuz-}, lsm=$3:"
  timeout 120 qemu-system-x86_64 -accel tcg -cpu max -m 512 -nographic -no-reboot -kernel "$2" -initrd "$work/guest-$1.gz" \
    -append "console=ttyS0 quiet panic=-1 lsm=$3" </dev/null >"$work/output-$1" 2>&1 || true
  node "$work/half.mjs" check "$1" "$work/output-$1" || { tail -30 "$work/output-$1"; failed=1; }
}

failed=0
old=$(kernel 6.1)
new=$(kernel 6.12)
run 2 "$old" landlock,lockdown,yama
run 6 "$new" landlock,lockdown,yama
run 0 "$new" lockdown,yama
exit "$failed"
