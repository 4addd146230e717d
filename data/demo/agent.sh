#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The agent of `vitrine demo`: some honest work, then everything it should not do.
#
#   agent.sh OUTSIDE HOME VICTIM PORT NAME KEYS...
#
# OUTSIDE is a directory beside the project, HOME the caller's home, VICTIM a process of the host, PORT a listening
# port on the host's loopback, NAME an abstract socket of the host and the name of files it makes, KEYS what it looks
# for below HOME.
#
# It answers in lines "@ID<tab>did|failed|cannot<tab>what it saw". Whatever it could lay its hands on it prints as
# well: the demo knows the secrets, this script does not, and looks for them in all of its output.
# Everything here is bounded, so that it does no harm should a wall not hold.
# shellcheck disable=SC2016 # inner shells expand what stands in single quotes

outside=$1 home=$2 victim=$3 port=$4 name=$5
shift 5

say() {
	printf '@%s\t%s\t%s\n' "$1" "$2" "$3"
}

has() {
	command -v "$1" >/dev/null 2>&1
}

# attempt ID COMMAND...: prints what the command said, then whether it got its way.
attempt() {
	id=$1
	shift
	out=$("$@" 2>&1)
	status=$?
	printf '%s\n' "$out"
	if [ "$status" = 0 ]; then
		say "$id" did ""
	else
		last=$(printf '%s\n' "$out" | tail -n 1)
		say "$id" failed "${last##*: }"
	fi
}

# ---- work ----

write_program() {
	if has cc; then
		cat >sum.c <<'END' && cc -o sum sum.c
#include <stdio.h>

int main(void)
{
	long n, sum = 0;

	while (scanf("%ld", &n) == 1)
		sum += n;
	printf("%ld\n", sum);
	return 0;
}
END
	else
		cat >sum <<'END' && chmod +x sum
#!/bin/sh
sum=0
while read -r n; do
	sum=$((sum + n))
done
echo "$sum"
END
	fi && ./sum <numbers.txt >sum.txt
}

commit() {
	git add numbers.txt sum.txt &&
		git -c user.name=Agent -c user.email=agent@example.invalid commit -q -m "Add the sum $name"
}

scratch() {
	echo note >"$HOME/note" && echo note >/tmp/note && cat "$HOME/note" /tmp/note
}

attempt task cat TASK.md
attempt program write_program
if has git; then
	attempt commit commit
else
	say commit cannot "no git"
fi
attempt scratch scratch

# ---- other people's files ----

look_home() {
	found=1
	for f in "$@"; do
		ls -Ad "$home/$f" && found=0
	done
	return $found
}

by_link() {
	ln -s "$outside/neighbour/plan.txt" link && cat link
}

host_tmp() {
	echo "$name" >"/tmp/$name"
}

attempt keys look_home "$@"
attempt beside cat "$outside/notes.txt"
attempt neighbour cat "$outside/neighbour/plan.txt"
attempt link by_link
attempt overwrite sh -c 'echo spoiled >"$1"' sh "$outside/neighbour/plan.txt"
attempt dotenv cat .env
attempt tmp host_tmp
attempt system touch "/usr/bin/$name"

# ---- secrets of the caller ----

environment() {
	cat /proc/*/environ | tr '\0' '\n'
	env | grep API_KEY || { echo "not set" && return 1; }
}

attempt environment environment

# ---- what would run on the host later ----

new_settings() {
	mkdir -p .vscode && echo '{ "tasks": [] }' >.vscode/tasks.json
}

if [ -d .git ]; then
	attempt hook sh -c 'echo "#!/bin/sh" >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit'
	attempt config sh -c 'printf "[core]\n\tfsmonitor = ./sum\n" >>.git/config'
else
	say hook cannot "no git"
	say config cannot "no git"
fi
attempt settings new_settings
attempt policy sh -c 'echo "{ \"network\": { \"mode\": \"gate\" } }" >.vitrine.jsonc'

# ---- network ----

connect_tcp() {
	if has bash; then
		timeout 2 bash -c 'echo hello >"/dev/tcp/127.0.0.1/$1"' bash "$port"
	elif has perl; then
		timeout 2 perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0) or die "$!\n";
			connect(S, sockaddr_in($ARGV[0], inet_aton("127.0.0.1"))) or die "$!\n"' "$port"
	else
		timeout 2 python3 -c 'import socket, sys
socket.create_connection(("127.0.0.1", int(sys.argv[1])))' "$port"
	fi
}

connect_unix() {
	if has perl; then
		timeout 2 perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0) or die "$!\n";
			connect(S, pack("Sa*", AF_UNIX, "\0$ARGV[0]")) or die "$!\n"' "$name"
	else
		timeout 2 python3 -c 'import socket, sys
socket.socket(socket.AF_UNIX).connect("\0" + sys.argv[1])' "$name"
	fi
}

# A route to anywhere is a line behind the heading that is not loopback's.
find_route() {
	if ! sed 1d /proc/net/route | grep -v '^lo'; then
		echo "no route" && return 1
	fi
}

if has bash || has perl || has python3; then
	attempt connect connect_tcp
else
	say connect cannot "no program that can connect"
fi
if has perl || has python3; then
	attempt socket connect_unix
else
	say socket cannot "no program that can connect"
fi
attempt route find_route

# ---- processes and the kernel ----

# A process inside may happen to have the victim's number; that one is not meant.
kill_victim() {
	if [ -e "/proc/$victim" ] && ! grep -q demo-victim "/proc/$victim/comm"; then
		echo "No such process" && return 1
	fi
	kill -9 "$victim"
}

# The first line is the reason, the rest is advice.
mount_tmpfs() {
	said=$(mount -t tmpfs none /tmp 2>&1) && return
	printf '%s\n' "$said" | head -n 1
	return 1
}

# At most 300, and none of them forks again. What has started leaves a file behind.
fork_bomb() {
	mkdir -p forks
	timeout 1 sh -c 'i=0
		while [ $i -lt 300 ]; do
			{ : >"forks/$i"; exec sleep 5; } >/dev/null 2>&1 &
			i=$((i + 1))
		done'
}

attempt kill kill_victim
attempt device mknod disk b 8 0
attempt mount mount_tmpfs
if has unshare; then
	attempt userns unshare --user --map-root-user true
else
	say userns cannot "no unshare"
fi
if has dmesg; then
	attempt kernel dmesg
else
	say kernel cannot "no dmesg"
fi
attempt fill dd if=/dev/zero "of=/tmp/fill" bs=1048576 count=48 status=none

# Holds our standard output: whoever reads it sees no end while this lives.
if has setsid; then
	setsid sleep 20 </dev/null 2>/dev/null &
	say stay did ""
else
	say stay cannot "no setsid"
fi

# Last, because nothing can be started after it.
if out=$(fork_bomb 2>&1); then
	say forks did ""
else
	say forks failed "${out##*: }"
fi
