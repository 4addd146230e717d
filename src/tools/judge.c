/* SPDX-License-Identifier: Apache-2.0 */
/* tools/judge.c - see judge.h; one function for each tool, one sentence for each refusal */
#include "tools/judge.h"

#include "base/path.h"

static void refuse(struct decision *d, const char *say)
{
	*d = (struct decision){ .act = ACT_REFUSE, .say = say };
}

static void save(struct decision *d, const char *file)
{
	d->act = ACT_SAVE;
	if (d->n_files < ARRAY_LEN(d->files))
		d->files[d->n_files++] = file;
}

/* "-rf" holds r; "--force" is itself. */
static bool has_short(const char *arg, char c)
{
	return arg[0] == '-' && arg[1] != '-' && strchr(arg + 1, c);
}

static bool is_option(const char *arg)
{
	return arg[0] == '-' && arg[1];
}

/* Is any of the words such an option? */
static bool any(int argc, char *const *argv, char c, const char *name)
{
	for (int i = 1; i < argc && !str_eq(argv[i], "--"); i++)
		if ((c && has_short(argv[i], c)) || (name && str_eq(argv[i], name)))
			return true;
	return false;
}

/* ---- places ---- */

enum spot { SPOT_ORDINARY, SPOT_CHEAP, SPOT_ROOT, SPOT_HOME, SPOT_WORKSPACE, SPOT_GIT };

/* Made again by a command, or private to the sandbox and gone with it. */
static bool is_cheap(const struct place *p, const char *path)
{
	bool is_work = p->workspace && path_is_beneath(path, p->workspace);
	static const char names[][16] = { "node_modules", "target",  "build", "dist",
					  "__pycache__",  ".cache",  ".venv", "venv",
					  ".tox",         ".next",   ".nuxt", "coverage",
					  ".mypy_cache",  ".gradle", "out",   ".turbo",
					  ".pytest_cache" };
	_free_ char *copy = mem_str(path);

	if (is_work)
		memmove(copy, copy + strlen(p->workspace),
			strlen(copy + strlen(p->workspace)) + 1); /* what it is called counts not */
	else if (path_is_beneath(path, "/tmp") || path_is_beneath(path, "/var/tmp") ||
		 path_is_beneath(path, "/dev/shm") || path_is_beneath(path, "/run"))
		return true;
	for (char *part = copy, *slash; part; part = slash) {
		slash = strchr(part, '/');
		if (slash)
			*slash++ = '\0';
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			if (str_eq(part, names[i]))
				return true;
	}
	return false;
}

static enum spot spot_of(const struct place *p, const char *arg)
{
	_free_ char *path = path_join(p->cwd, arg);
	const char *below = strrchr(path, '/');

	if (str_eq(path, "/") || strchr(path + 1, '/') == NULL)
		return SPOT_ROOT;
	if (path_is_beneath(p->home, path))
		return SPOT_HOME;
	if (p->workspace && path_is_beneath(p->workspace, path))
		return SPOT_WORKSPACE;
	if (str_eq(below, "/.git"))
		return SPOT_GIT;
	return is_cheap(p, path) ? SPOT_CHEAP : SPOT_ORDINARY;
}

/* ---- rm ---- */

static void judge_rm(const struct place *p, int argc, char *const *argv, struct decision *d)
{
	bool is_deep = any(argc, argv, 'r', "--recursive") || any(argc, argv, 'R', NULL);
	bool is_end = false;

	if (any(argc, argv, 0, "--no-preserve-root")) {
		refuse(d, "'rm --no-preserve-root' has no use here; name the files you mean");
		return;
	}
	for (int i = 1; i < argc; i++) {
		enum spot where;

		if (!is_end && is_option(argv[i])) {
			is_end = str_eq(argv[i], "--");
			continue;
		}
		where = spot_of(p, argv[i]);
		if (where == SPOT_ORDINARY) {
			save(d, argv[i]);
			continue;
		}
		if (where == SPOT_CHEAP || !is_deep)
			continue;
		refuse(d, where == SPOT_ROOT ? "'rm -r' of a directory of the system was blocked; "
					       "name the files you mean"
			  : where == SPOT_HOME ? "'rm -r' of the home directory was blocked; name "
						 "the files in it that you mean"
			  : where == SPOT_GIT  ? "'rm -r .git' was blocked: the history in it "
						 "exists nowhere else; to undo work, use "
						 "'git restore' or 'git revert'"
					       : "'rm -r' of the whole workspace was blocked; list "
						 "it first, then remove what you name");
		return;
	}
}

/* ---- git ---- */

int judge_git_word(int argc, char *const *argv)
{
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] != '-')
			return i;
		if (str_eq(argv[i], "-C") || str_eq(argv[i], "-c") ||
		    str_eq(argv[i], "--git-dir") || str_eq(argv[i], "--work-tree") ||
		    str_eq(argv[i], "--namespace") || str_eq(argv[i], "--exec-path") ||
		    str_eq(argv[i], "--config-env"))
			i++;
	}
	return 0;
}

static void judge_push(const struct place *p, int argc, char *const *argv, struct decision *d)
{
	bool is_forced = any(argc, argv, 'f', "--force"),
	     is_gone = any(argc, argv, 'd', "--delete");

	for (int i = 1; i < argc; i++) {
		is_forced |= argv[i][0] == '+' || str_eq(argv[i], "--mirror");
		is_gone |= argv[i][0] == ':' || str_eq(argv[i], "--prune");
		if (p->is_config_closed && (str_eq(argv[i], "-u") || str_eq(argv[i], "--set-"
										     "upstream"))) {
			d->act = ACT_DROP;
			d->drop = i;
			d->say = "-u is left out: this repository's configuration is protected; "
				 "name the branch when you "
				 "pull";
		}
	}
	/* With a broker, that decides, and git tells its reason. */
	if (p->has_broker || (!is_forced && !is_gone))
		return;
	refuse(d, is_forced ? "a forced push was blocked: it rewrites what others have; push to a "
			      "new branch, or have a "
			      "person allow it (broker.push with 'force')"
			    : "deleting a branch of the remote was blocked; a person can do it, or "
			      "allow it (broker.push with "
			      "'delete')");
}

static bool is_word(int argc, char *const *argv, int at, const char *word)
{
	return at < argc && str_eq(argv[at], word);
}

/* What throws away work that was never committed. */
static bool loses_work(int argc, char *const *argv)
{
	const char *word = argv[0];

	if (str_eq(word, "reset"))
		return any(argc, argv, 0, "--hard") || any(argc, argv, 0, "--merge");
	if (str_eq(word, "checkout")) {
		for (int i = 1; i < argc; i++)
			if (str_eq(argv[i], "--") || str_eq(argv[i], "."))
				return true;
		return any(argc, argv, 'f', "--force");
	}
	if (str_eq(word, "switch"))
		return any(argc, argv, 'f', "--force") || any(argc, argv, 0, "--discard-changes");
	if (str_eq(word, "restore"))
		return !any(argc, argv, 'S', "--staged") || any(argc, argv, 'W', "--worktree");
	return str_eq(word, "rm") && any(argc, argv, 'f', "--force");
}

static bool writes_config(int argc, char *const *argv)
{
	const char *word = argv[0];

	if (str_eq(word, "remote"))
		return is_word(argc, argv, 1, "add") || is_word(argc, argv, 1, "set-url") ||
		       is_word(argc, argv, 1, "rename") || is_word(argc, argv, 1, "remove") ||
		       is_word(argc, argv, 1, "rm");
	if (str_eq(word, "branch"))
		return any(argc, argv, 'u', "--set-upstream-to") ||
		       any(argc, argv, 0, "--unset-upstream");
	if (!str_eq(word, "config") || any(argc, argv, 0, "--global") ||
	    any(argc, argv, 'f', "--file") || any(argc, argv, 'l', "--list") ||
	    any(argc, argv, 0, "--get") || any(argc, argv, 0, "--get-all") ||
	    any(argc, argv, 0, "--get-regexp") || any(argc, argv, 0, "--system"))
		return false;
	return argc > 2;
}

static void judge_git(const struct place *p, int argc, char *const *argv, struct decision *d)
{
	int at = judge_git_word(argc, argv);
	char *const *v = argv + at;
	int n = argc - at;

	if (at == 0)
		return;
	if (str_eq(v[0], "push")) {
		judge_push(p, n, v, d);
		d->drop += at;
	} else if (str_eq(v[0], "clean") && any(n, v, 'f', "--force") &&
		   !any(n, v, 'n', "--dry-run")) {
		refuse(d, "'git clean -f' was blocked: what git does not know exists nowhere else; "
			  "look with 'git clean -n', "
			  "then remove what you name with rm, which keeps it in the trash");
	} else if (str_eq(v[0], "stash") &&
		   (is_word(n, v, 1, "drop") || is_word(n, v, 1, "clear"))) {
		refuse(d, "dropping a stash was blocked: it may hold a person's work; leave it, or "
			  "ask");
	} else if ((str_eq(v[0], "reflog") &&
		    (is_word(n, v, 1, "expire") || is_word(n, v, 1, "delete"))) ||
		   str_eq(v[0], "filter-branch") ||
		   (str_eq(v[0], "gc") && any(n, v, 0, "--prune=now"))) {
		refuse(d, "this removes what git could still bring back; it is for a person to do");
	} else if (p->is_config_closed && writes_config(n, v)) {
		refuse(d, "this repository's configuration is protected, so that nothing in it "
			  "runs on the host later; give "
			  "it for one command with 'git -c KEY=VALUE ...' or a URL instead of a "
			  "remote's name");
	} else if (loses_work(n, v)) {
		d->act = ACT_SAVE_GIT;
	}
}

/* ---- find, xargs ---- */

static bool is_remover(const char *word)
{
	return str_eq(path_name(word), "rm") || str_eq(path_name(word), "unlink") ||
	       str_eq(path_name(word), "shred");
}

static void judge_find(const struct place *p, int argc, char *const *argv, struct decision *d)
{
	bool is_narrow = false, is_cheap_all = true, deletes = false, is_wide = false;
	int i = 1, n_starts = 0;

	while (i < argc &&
	       (str_eq(argv[i], "-H") || str_eq(argv[i], "-L") || str_eq(argv[i], "-P")))
		i++;
	for (; i < argc && argv[i][0] != '-' && argv[i][0] != '(' && argv[i][0] != '!'; i++) {
		enum spot where = spot_of(p, argv[i]);

		is_cheap_all &= where == SPOT_CHEAP;
		is_wide |= where == SPOT_ROOT || where == SPOT_HOME;
		n_starts++;
	}
	is_cheap_all &= n_starts > 0; /* without one it begins here */
	for (; i < argc; i++) {
		if ((str_eq(argv[i], "-name") || str_eq(argv[i], "-iname") ||
		     str_eq(argv[i], "-path") || str_eq(argv[i], "-regex") ||
		     str_eq(argv[i], "-empty")) &&
		    !deletes)
			is_narrow |= !is_word(argc, argv, i + 1, "*");
		deletes |= str_eq(argv[i], "-delete");
		if ((str_eq(argv[i], "-exec") || str_eq(argv[i], "-execdir")) && i + 1 < argc &&
		    is_remover(argv[i + 1]))
			deletes = true;
	}
	if (!deletes || is_cheap_all || (is_narrow && !is_wide))
		return;
	refuse(d, "this 'find' would remove everything it finds: say which with -name in front of "
		  "-delete, or list first and "
		  "remove what you name with rm, which keeps it in the trash");
}

static void judge_xargs(const struct place *p, int argc, char *const *argv, struct decision *d)
{
	(void)p;
	for (int i = 1; i < argc; i++)
		if (argv[i][0] == '/' && is_remover(argv[i])) {
			refuse(d, "'xargs' with rm by its path was blocked: say 'xargs rm', which "
				  "keeps what it removes in "
				  "the trash");
			return;
		}
}

/* ---- modes and owners ---- */

static bool is_careless_mode(const char *m)
{
	return str_eq(m, "777") || str_eq(m, "0777") || str_eq(m, "666") || str_eq(m, "a+rwx") ||
	       str_eq(m, "ugo+rwx") || str_eq(m, "000") || str_eq(m, "0") || str_eq(m, "a-rwx") ||
	       str_eq(m, "a+w") || str_eq(m, "o+w");
}

static void judge_chmod(const struct place *p, int argc, char *const *argv, struct decision *d)
{
	bool is_deep = any(argc, argv, 'R', "--recursive"), is_mode = true;

	for (int i = 1; i < argc; i++) {
		enum spot where;

		if (is_option(argv[i]) && !strchr("rwxXst", argv[i][1]))
			continue;
		if (is_mode) {
			is_mode = false;
			if (is_deep && is_careless_mode(argv[i])) {
				refuse(d, "'chmod -R' with a mode for everybody, or for nobody, "
					  "was blocked; u+rwX is "
					  "mostly what is meant, for the files that need it");
				return;
			}
			if (strstr(argv[i], "+s") ||
			    (strlen(argv[i]) == 4 && argv[i][0] >= '2' && argv[i][0] <= '7')) {
				refuse(d, "setting the set-user-id bit was blocked: nothing inside "
					  "can use it");
				return;
			}
			continue;
		}
		where = spot_of(p, argv[i]);
		if (is_deep && (where == SPOT_ROOT || where == SPOT_HOME || where == SPOT_GIT)) {
			refuse(d, "'chmod -R' here was blocked; name the files you mean");
			return;
		}
	}
}

static void judge_chown(const struct place *p, int argc, char *const *argv, struct decision *d)
{
	for (int i = 1; i < argc; i++)
		if (!is_option(argv[i]) && any(argc, argv, 'R', "--recursive") &&
		    (spot_of(p, argv[i]) == SPOT_ROOT || spot_of(p, argv[i]) == SPOT_HOME) &&
		    argv[i][0] == '/') {
			refuse(d, "'chown -R' here was blocked; inside there is one user, to whom "
				  "everything belongs");
			return;
		}
}

/* ---- what overwrites ---- */

static bool is_disk(const char *path)
{
	return str_starts(path, "/dev/sd") || str_starts(path, "/dev/nvme") ||
	       str_starts(path, "/dev/vd") || str_starts(path, "/dev/xvd") ||
	       str_starts(path, "/dev/mmcblk") || str_starts(path, "/dev/disk/") ||
	       str_starts(path, "/dev/mapper/") || str_starts(path, "/dev/dm-") ||
	       str_starts(path, "/dev/loop");
}

static void judge_dd(const struct place *p, int argc, char *const *argv, struct decision *d)
{
	for (int i = 1; i < argc; i++) {
		if (!str_starts(argv[i], "of="))
			continue;
		if (is_disk(argv[i] + 3))
			refuse(d, "'dd' onto a disk was blocked; there is none inside");
		else if (!str_starts(argv[i] + 3, "/dev/") &&
			 spot_of(p, argv[i] + 3) == SPOT_ORDINARY)
			save(d, argv[i] + 3);
		return;
	}
}

static void judge_truncate(const struct place *p, int argc, char *const *argv, struct decision *d)
{
	for (int i = 1; i < argc; i++) {
		if (str_eq(argv[i], "-s") || str_eq(argv[i], "-r") || str_eq(argv[i], "--size") ||
		    str_eq(argv[i], "--reference"))
			i++;
		else if (!is_option(argv[i]) && spot_of(p, argv[i]) == SPOT_ORDINARY)
			save(d, argv[i]);
	}
}

static void judge_shred(const struct place *p, int argc, char *const *argv, struct decision *d)
{
	(void)p;
	(void)argv;
	if (argc > 1)
		refuse(d, "'shred' was blocked: what it overwrites cannot be brought back; rm "
			  "keeps it in the trash");
}

static void judge_mv(const struct place *p, int argc, char *const *argv, struct decision *d)
{
	(void)p;
	if (argc > 2 && str_eq(argv[argc - 1], "/dev/null"))
		refuse(d, "'mv ... /dev/null' was blocked; rm keeps what it removes in the trash");
}

/* ---- what goes out ---- */

static bool is_credential(const char *path)
{
	const char *name = path_name(path);
	static const char names[][20] = { ".env",       ".netrc",           ".npmrc",
					  ".pypirc",    ".git-credentials", "id_rsa",
					  "id_ed25519", "id_ecdsa",         "credentials",
					  "hosts.yml" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(name, names[i]))
			return true;
	return str_starts(name, ".env.")
		       ? !str_ends(name, ".example") && !str_ends(name, ".sample")
		       : strstr(path, "/.ssh/") || strstr(path, "/.aws/") || str_ends(name, ".pem");
}

/* "@file", "name=@file", "@-" */
static bool sends_credential(const char *value)
{
	const char *at = strchr(value, '@');

	return at && (at == value || at[-1] == '=') && is_credential(at + 1);
}

#define SAY_UPLOAD                                                                                 \
	"sending a file of credentials was blocked; services get them from the gate, by 'vitrine " \
	"secret set'"
#define SAY_TLS                                                                                    \
	"switching off the check of certificates was blocked: anybody on the way could answer; "   \
	"the bundle inside knows every "                                                           \
	"host that may be reached"

static void judge_curl(const struct place *p, int argc, char *const *argv, struct decision *d)
{
	(void)p;
	for (int i = 1; i < argc; i++) {
		bool is_file = str_eq(argv[i], "-T") || str_eq(argv[i], "--upload-file");
		bool is_data = str_eq(argv[i], "-d") || str_eq(argv[i], "-F") ||
			       str_starts(argv[i], "--data") || str_eq(argv[i], "--form") ||
			       str_eq(argv[i], "--json");

		if (str_eq(argv[i], "--insecure") ||
		    (has_short(argv[i], 'k') && argv[i][1] != 'o' && argv[i][1] != 'H' &&
		     strspn(argv[i] + 1, "kfsSLgivIOJ") == strlen(argv[i] + 1))) {
			refuse(d, SAY_TLS);
			return;
		}
		if (i + 1 < argc && ((is_file && is_credential(argv[i + 1])) ||
				     (is_data && sends_credential(argv[i + 1])))) {
			refuse(d, SAY_UPLOAD);
			return;
		}
	}
}

static void judge_wget(const struct place *p, int argc, char *const *argv, struct decision *d)
{
	(void)p;
	for (int i = 1; i < argc; i++) {
		if (str_eq(argv[i], "--no-check-certificate"))
			refuse(d, SAY_TLS);
		else if (str_starts(argv[i], "--post-file=") && is_credential(argv[i] + 12))
			refuse(d, SAY_UPLOAD);
	}
}

/* ---- */

void judge(const struct place *p, int argc, char *const *argv, struct decision *ret)
{
	static const struct {
		char name[16];
		void (*fn)(const struct place *p, int argc, char *const *argv, struct decision *d);
	} tools[] = {
		{ "rm", judge_rm },       { "git", judge_git },
		{ "find", judge_find },   { "xargs", judge_xargs },
		{ "chmod", judge_chmod }, { "chown", judge_chown },
		{ "dd", judge_dd },       { "curl", judge_curl },
		{ "wget", judge_wget },   { "truncate", judge_truncate },
		{ "mv", judge_mv },       { "shred", judge_shred },
	};

	*ret = (struct decision){ .act = ACT_PASS };
	for (size_t i = 0; i < ARRAY_LEN(tools); i++)
		if (str_eq(tools[i].name, argv[0]))
			tools[i].fn(p, argc, argv, ret);
}
