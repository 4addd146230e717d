#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What small.py runs as the first process of its machine.
export PATH=/usr/bin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts && mount -t devpts pts /dev/pts
mount -t cgroup2 cg /sys/fs/cgroup
ip link set lo up
chmod 1777 /tmp /var/tmp
for home in /root /home/tester; do
	mkdir -p $home/w
	cp /vitrine/probe $home/w/
done
echo secret >/home/tester/secret
chown -R 1000:1000 /home/tester
chmod -R a+rx /vitrine
echo "== $(uname -srm)"

# as WHO COMMAND LINE: in WHO's workspace, without colours
as() {
	if [ "$1" = root ]; then
		(cd /root/w && sh -c "$2")
	else
		su tester -c "cd /home/tester/w; $2"
	fi 2>&1
}

# case NAME WORD TEXT: is WORD in TEXT?
has() {
	case $3 in
	*"$2"*) echo "ok $1" ;;
	*) echo "FAIL $1: no '$2' in: $(echo "$3" | tr '\n' ' ' | head -c 400)" ;;
	esac
}

V=/vitrine/vitrine
has doctor "can run here with the native engine" "$($V doctor 2>&1)"
for who in root tester; do
	has "$who-runs" "uid=1000" "$(as $who "$V run -- id")"
	has "$who-status" "=7" "$(as $who "$V run -- sh -c 'exit 7'; echo =\$?")"
	has "$who-locked" "0000000000000000 1 2" "$(as $who "$V run -- sed -n 's/^\\(CapBnd\\|NoNewPrivs\\|Seccomp\\):[[:space:]]*//p' /proc/self/status" | tr '\n' ' ')"
	has "$who-files" "Read-only" "$(as $who "$V run -- sh -c 'cat /home/tester/secret; echo x >/usr/x'")"
	has "$who-no-mount" "ermi" "$(as $who "$V run -- mount -t tmpfs x /tmp")"
	# The same calls: outside they reach the kernel, inside the filter says no.
	for call in io_uring_setup bpf userfaultfd keyctl add_key mount; do
		out=$(as $who "./probe each $call" | head -n 1)
		in=$(as $who "$V run -- ./probe each $call" | head -n 1)
		case "$out/$in" in
		*EPERM*/* | *ENOSYS*/* | *unknown*) [ $who = tester ] || echo "FAIL $who-$call: refused outside too: $out" ;;
		*/*EPERM* | */*ENOSYS*) echo "ok $who-$call" ;;
		*) echo "FAIL $who-$call: outside $out, inside $in" ;;
		esac
	done
done
has memory '"reason":"memory"' "$(as root "$V run --memory 64m --json -- ./probe touchmem 128 3")"
has pids "EAGAIN" "$(as root "$V run --pids 50 -- ./probe forkloop 200")"
has limit-refused "',optional'" "$(as tester "$V run --memory 64m -- true")"
echo "== end"
poweroff -f
