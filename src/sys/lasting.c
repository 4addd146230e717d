/* SPDX-License-Identifier: Apache-2.0 */
/* sys/lasting.c - see lasting.h */
#include "sys/lasting.h"

#include <dirent.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/program.h"
#include "sys/host.h"
#include "sys/scope.h"

enum lasting lasting_decide(const struct login *l, bool may_linger)
{
	if (!l->has_systemd)
		return LASTING_SESSION;
	if (l->has_manager && (l->is_root || l->lingers))
		return LASTING_UNIT;
	if (l->has_manager && may_linger)
		return LASTING_LINGER;
	/* The login's own control group stays while something runs in it; the manager and its units would not. */
	return l->kills && !l->is_root ? LASTING_NOT : LASTING_SESSION;
}

/* ---- what logind was told ---- */

int lasting_kills(const char *text)
{
	static const char key[] = "KillUserProcesses";
	int found = -1;

	while (*text) {
		size_t n;

		text += strspn(text, " \t");
		if (str_starts(text, key)) {
			const char *v = text + sizeof(key) - 1;

			v += strspn(v, " \t");
			/* systemd's words for yes, in any case: 1, yes, y, true, t, on. */
			if (*v == '=') {
				v += 1 + strspn(v + 1, " \t");
				found = *v == '1' || *v == 'y' || *v == 'Y' || *v == 't' ||
					*v == 'T' || strncasecmp(v, "on", 2) == 0;
			}
		}
		n = strcspn(text, "\n");
		text += n + (text[n] == '\n');
	}
	return found;
}

static void logind_file(const char *path, bool *kills)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);
	struct err ignored = ERR_INIT;
	int found = io_read_file(path, &b, &ignored) < 0 ? -1 : lasting_kills(buf_cstr(&b));

	if (found >= 0)
		*kills = found;
}

static int is_conf(const struct dirent *d)
{
	return str_ends(d->d_name, ".conf");
}

/* systemd sorts drop-ins by name over all directories; by directory is the same unless two of them disagree. */
static void logind_folder(const char *dir, bool *kills)
{
	struct dirent **names = NULL;
	int n = scandir(dir, &names, is_conf, alphasort);

	for (int i = 0; i < n; i++) {
		_free_ char *path = mem_fmt("%s/%s", dir, names[i]->d_name);

		logind_file(path, kills);
		free(names[i]);
	}
	free(names);
}

void lasting_look(struct login *ret)
{
	_free_ char *name = host_passwd_field(0),
		    *mark = mem_fmt("/var/lib/systemd/linger/%s", name ? name : "");

	*ret = (struct login){
		.has_systemd = access("/run/systemd/system", F_OK) == 0,
		.has_manager = scope_can_ask(),
		.is_root = geteuid() == 0,
		.lingers = name && *name && access(mark, F_OK) == 0,
	};
	if (!ret->has_systemd)
		return;
	logind_file("/usr/lib/systemd/logind.conf", &ret->kills);
	logind_file("/etc/systemd/logind.conf", &ret->kills);
	logind_folder("/usr/lib/systemd/logind.conf.d", &ret->kills);
	logind_folder("/run/systemd/logind.conf.d", &ret->kills);
	logind_folder("/etc/systemd/logind.conf.d", &ret->kills);
}

/* ---- doing it ---- */

/* By its place, never by PATH: a directory of the workspace may be in there. */
static const char *find_loginctl(void)
{
	static const char *const places[] = { "/usr/bin/loginctl", "/bin/loginctl" };
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (stat(places[i], &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == 0 &&
		    !(st.st_mode & (S_IWGRP | S_IWOTH)))
			return places[i];
	return NULL;
}

/* For the user itself; logind asks polkit, which may refuse. */
static bool switch_linger_on(void)
{
	const char *const argv[] = { find_loginctl(), "--no-ask-password", "enable-linger", NULL };
	_cleanup_(buf_done) struct buf said = BUF(16 * KIB);
	struct err ignored = ERR_INIT;
	struct login l;

	if (argv[0] == NULL || program_hear(argv, &said, &ignored) < 0)
		return false;
	lasting_look(&l);
	return l.lingers;
}

enum lasting lasting_enter(struct err *why)
{
	struct login l;
	enum lasting how;
	bool is_on_now;

	lasting_look(&l);
	how = lasting_decide(&l, true);
	is_on_now = how == LASTING_LINGER && switch_linger_on();
	if (how == LASTING_LINGER && !is_on_now)
		how = lasting_decide(&l, false);
	if ((how == LASTING_UNIT || how == LASTING_LINGER) && scope_enter(why) < 0)
		how = l.kills && !l.is_root ? LASTING_NOT : LASTING_SESSION;
	*why = ERR_INIT;
	if (is_on_now)
		(void)err_set(why, ERR_SYSTEM, EAGAIN,
			      "lingering is switched on for you, so that this outlives the login; "
			      "'loginctl disable-linger' switches it off");
	if (how == LASTING_NOT)
		(void)err_set(why, ERR_UNSUPPORTED, EPERM,
			      "this ends when you log out (KillUserProcesses=yes, and lingering is "
			      "off); 'sudo loginctl enable-linger $USER' would let it last");
	return how;
}
