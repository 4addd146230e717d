/* SPDX-License-Identifier: Apache-2.0 */
/* guard/code_calls.c - calls in inline code that have effects
 *
 * Other languages are not parsed. A call is a name with a bracket behind it; what it is given are the texts in quotes up to
 * the bracket that closes it, and variables that were set to such a text. That is how people and agents write a line of
 * code; whoever builds names out of pieces is met by the walls.
 */
#include <ctype.h>

#include "guard/walk.h"

#define MAX_TEXTS 24
#define MAX_VARS 16
#define MAX_CALLS 256
#define MAX_GIVEN 4096 /* bytes between the brackets of one call */

enum act {
	ACT_REMOVE, /* the first text is a path */
	ACT_UNLINK,
	ACT_MOVE,  /* the first is moved onto the second */
	ACT_COPY,  /* the first is read, the second written */
	ACT_WRITE, /* the first is written */
	ACT_OPEN,  /* by the mode in the second */
	ACT_READ,
	ACT_MODE,
	ACT_SEND,
	ACT_RUN, /* one text is a shell's, several are words */
	ACT_FORK,
	ACT_RIGHTS,
};

/* The end of a name: "os.remove" also fits "x.os.remove". */
#define CALL(text, what)                                                                           \
	{                                                                                          \
		(text), sizeof(text) - 1, (text)[sizeof(text) - 2], (what)                         \
	}

static const struct {
	const char *name;
	unsigned char n, last; /* bytes, and the last of them */
	unsigned char act;
} calls[] = {
	CALL("rmtree", ACT_REMOVE),
	CALL("os.remove", ACT_UNLINK),
	CALL("unlink", ACT_UNLINK),
	CALL("rmdir", ACT_REMOVE),
	CALL("removedirs", ACT_REMOVE),
	CALL("unlinkSync", ACT_UNLINK),
	CALL("rmSync", ACT_REMOVE),
	CALL("rmdirSync", ACT_REMOVE),
	CALL("fs.rm", ACT_REMOVE),
	CALL("promises.rm", ACT_REMOVE),
	CALL("rm_rf", ACT_REMOVE),
	CALL("rm_r", ACT_REMOVE),
	CALL("rm_f", ACT_UNLINK),
	CALL("FileUtils.rm", ACT_UNLINK),
	CALL("File.delete", ACT_UNLINK),
	CALL("Dir.delete", ACT_REMOVE),
	CALL("remove_tree", ACT_REMOVE),
	CALL("remove_entry", ACT_REMOVE),
	CALL("Deno.remove", ACT_REMOVE),
	CALL("Deno.removeSync", ACT_REMOVE),
	CALL("rimraf", ACT_REMOVE),
	CALL("rimrafSync", ACT_REMOVE),
	CALL("removeSync", ACT_REMOVE),
	CALL("emptyDirSync", ACT_REMOVE),
	CALL("send2trash", ACT_REMOVE),
	CALL("os.RemoveAll", ACT_REMOVE),
	CALL("os.Remove", ACT_UNLINK),
	CALL("delete_folder", ACT_REMOVE),
	CALL("remove", ACT_UNLINK),
	CALL("rm", ACT_REMOVE),
	CALL("delete_directory", ACT_REMOVE),
	CALL("delete_file", ACT_UNLINK),
	CALL("delete", ACT_UNLINK),
	CALL("Files.delete", ACT_UNLINK),
	CALL("deleteRecursively", ACT_REMOVE),
	CALL("remove_dir_all", ACT_REMOVE),
	CALL("remove_file", ACT_UNLINK),
	CALL("File.rm", ACT_UNLINK),
	CALL("File.rm_rf", ACT_REMOVE),
	CALL("File.unlink", ACT_UNLINK),
	CALL("FileUtils.remove_dir", ACT_REMOVE),
	CALL("outputFileSync", ACT_WRITE),
	CALL("write_region", ACT_WRITE),
	CALL("truncate", ACT_WRITE),
	CALL("File.truncate", ACT_WRITE),
	CALL("ftruncate", ACT_WRITE),
	CALL("writefile", ACT_WRITE),
	CALL("shell_command", ACT_RUN),
	CALL("call_process", ACT_RUN),
	CALL("start_process", ACT_RUN),
	CALL("script", ACT_RUN),
	CALL("os.execute", ACT_RUN),
	CALL("io.popen", ACT_RUN),
	CALL("os.popen", ACT_RUN),
	CALL("pcntl_exec", ACT_RUN),
	CALL("pcntl_fork", ACT_FORK),
	CALL("request", ACT_SEND),
	CALL("create_connection", ACT_SEND),
	CALL("connect", ACT_SEND),
	CALL("post", ACT_SEND),
	CALL("put", ACT_SEND),
	CALL("storbinary", ACT_SEND),
	CALL("sendmail", ACT_SEND),
	CALL("upload_file", ACT_SEND),
	CALL("setuid", ACT_RIGHTS),
	CALL("seteuid", ACT_RIGHTS),
	CALL("setgid", ACT_RIGHTS),
	CALL("setreuid", ACT_RIGHTS),
	CALL("setresuid", ACT_RIGHTS),
	CALL("Process::Sys.setuid", ACT_RIGHTS),
	CALL("shutil.move", ACT_MOVE),
	CALL("os.rename", ACT_MOVE),
	CALL("os.replace", ACT_MOVE),
	CALL("renameSync", ACT_MOVE),
	CALL("fs.rename", ACT_MOVE),
	CALL("File.rename", ACT_MOVE),
	CALL("FileUtils.mv", ACT_MOVE),
	CALL("rename", ACT_MOVE),
	CALL("copyfile", ACT_COPY),
	CALL("shutil.copy", ACT_COPY),
	CALL("copy2", ACT_COPY),
	CALL("copytree", ACT_COPY),
	CALL("copyFileSync", ACT_COPY),
	CALL("copyFile", ACT_COPY),
	CALL("cpSync", ACT_COPY),
	CALL("FileUtils.cp", ACT_COPY),
	CALL("writeFileSync", ACT_WRITE),
	CALL("writeFile", ACT_WRITE),
	CALL("appendFileSync", ACT_WRITE),
	CALL("appendFile", ACT_WRITE),
	CALL("createWriteStream", ACT_WRITE),
	CALL("write_text", ACT_WRITE),
	CALL("write_bytes", ACT_WRITE),
	CALL("File.write", ACT_WRITE),
	CALL("IO.write", ACT_WRITE),
	CALL("file_put_contents", ACT_WRITE),
	CALL("os.truncate", ACT_WRITE),
	CALL("truncateSync", ACT_WRITE),
	CALL("Bun.write", ACT_WRITE),
	CALL("writeTextFile", ACT_WRITE),
	CALL("writeTextFileSync", ACT_WRITE),
	CALL("os.WriteFile", ACT_WRITE),
	CALL("open", ACT_OPEN),
	CALL("File.open", ACT_OPEN),
	CALL("fopen", ACT_OPEN),
	CALL("openSync", ACT_OPEN),
	CALL("File.new", ACT_OPEN),
	CALL("readFileSync", ACT_READ),
	CALL("readFile", ACT_READ),
	CALL("read_text", ACT_READ),
	CALL("read_bytes", ACT_READ),
	CALL("File.read", ACT_READ),
	CALL("IO.read", ACT_READ),
	CALL("file_get_contents", ACT_READ),
	CALL("make_archive", ACT_READ),
	CALL("readTextFile", ACT_READ),
	CALL("os.chmod", ACT_MODE),
	CALL("chmodSync", ACT_MODE),
	CALL("os.chown", ACT_MODE),
	CALL("requests.post", ACT_SEND),
	CALL("requests.put", ACT_SEND),
	CALL("httpx.post", ACT_SEND),
	CALL("axios.post", ACT_SEND),
	CALL("axios.put", ACT_SEND),
	CALL("Net::HTTP.post", ACT_SEND),
	CALL("post_form", ACT_SEND),
	CALL("smtplib.SMTP", ACT_SEND),
	CALL("urlopen", ACT_SEND),
	CALL("fetch", ACT_SEND),
	CALL("sendall", ACT_SEND),
	CALL("system", ACT_RUN),
	CALL("popen", ACT_RUN),
	CALL("Popen", ACT_RUN),
	CALL("subprocess.run", ACT_RUN),
	CALL("subprocess.call", ACT_RUN),
	CALL("check_call", ACT_RUN),
	CALL("check_output", ACT_RUN),
	CALL("getoutput", ACT_RUN),
	CALL("execSync", ACT_RUN),
	CALL("exec", ACT_RUN),
	CALL("execFile", ACT_RUN),
	CALL("execFileSync", ACT_RUN),
	CALL("spawn", ACT_RUN),
	CALL("spawnSync", ACT_RUN),
	CALL("execa", ACT_RUN),
	CALL("os.execvp", ACT_RUN),
	CALL("os.execv", ACT_RUN),
	CALL("os.execlp", ACT_RUN),
	CALL("os.execl", ACT_RUN),
	CALL("os.spawnlp", ACT_RUN),
	CALL("os.spawnvp", ACT_RUN),
	CALL("pty.spawn", ACT_RUN),
	CALL("shell_exec", ACT_RUN),
	CALL("passthru", ACT_RUN),
	CALL("proc_open", ACT_RUN),
	CALL("Open3.capture2", ACT_RUN),
	CALL("Open3.capture3", ACT_RUN),
	CALL("Deno.Command", ACT_RUN),
	CALL("Bun.spawn", ACT_RUN),
	CALL("Bun.spawnSync", ACT_RUN),
	CALL("create_subprocess_exec", ACT_RUN),
	CALL("create_subprocess_shell", ACT_RUN),
	CALL("run", ACT_RUN),
	CALL("exec.Command", ACT_RUN),
	CALL("os.fork", ACT_FORK),
	CALL("fork", ACT_FORK),
	CALL("cluster.fork", ACT_FORK),
};

struct reading {
	struct walk *w;
	const struct cmd *c;
	const char *code;
	struct ran *ran;
	struct {
		const char *name, *value;
	} vars[MAX_VARS];
	size_t n_vars;
};

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == ':' || c == '$';
}

/* A text in quotes at s; its end in *at. */
static const char *text_at(struct reading *r, const char *s, const char **at)
{
	struct text t = { .mem = r->w->mem };
	char quote = *s++;

	text_add(&t, "", 0);
	for (; *s && *s != quote; s++) {
		if (*s == '\\' && s[1])
			s++;
		text_putc(&t, *s);
	}
	*at = *s ? s + 1 : s;
	return t.p;
}

static bool names_home(const char *s, size_t n);

/* p = 'x', p = os.path.expanduser('~/x'), p = process.env.HOME + '/x', p = Path('x') */
static void learn_var(struct reading *r, const char *name, const char *s)
{
	const char *from = s, *value;
	unsigned depth = 0;
	bool has_home;

	if (*s != '\'' && *s != '"') {
		for (; *s && *s != '\'' && *s != '"' && s - from < 120; s++) {
			if (*s == ';' || *s == '\n' || (*s == ',' && depth == 0))
				return;
			depth += *s == '(';
			depth -= depth && *s == ')';
		}
		if (*s != '\'' && *s != '"')
			return;
		has_home = names_home(from, (size_t)(s - from));
		if (!has_home && !memmem(from, (size_t)(s - from), "Path(", 5) &&
		    !memmem(from, (size_t)(s - from), "expand_path(", 12) &&
		    !memmem(from, (size_t)(s - from), "join(", 5))
			return;
		value = text_at(r, s, &s);
		if (has_home && value[0] != '~')
			value = arena_fmt(r->w->mem, "~%s%s", value[0] == '/' ? "" : "/", value);
	} else {
		value = text_at(r, s, &s);
	}
	r->vars[r->n_vars].name = name;
	r->vars[r->n_vars++].value = value;
}

static void learn_vars(struct reading *r)
{
	for (const char *s = r->code; *s && r->n_vars < MAX_VARS; s++) {
		const char *name = s, *at;
		size_t n = 0;

		if ((s > r->code && is_name(s[-1])) ||
		    !(isalpha((unsigned char)*s) || *s == '_' || *s == '$'))
			continue;
		while (is_name(name[n]))
			n++;
		at = name + n + strspn(name + n, " ");
		if (*at != '=' || at[1] == '=')
			continue;
		at += 1 + strspn(at + 1, " ");
		learn_var(r, arena_strn(r->w->mem, name, n), at);
	}
}

static const char *var_of(const struct reading *r, const char *s, size_t n)
{
	for (size_t i = 0; i < r->n_vars; i++)
		if (strlen(r->vars[i].name) == n && memcmp(r->vars[i].name, s, n) == 0)
			return r->vars[i].value;
	return NULL;
}

static bool names_home(const char *s, size_t n)
{
	static const char *const words[] = { "HOME",      "homedir",  "expanduser",
					     "Path.home", "Dir.home", "home()" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (memmem(s, n, words[i], strlen(words[i])))
			return true;
	return false;
}

/* What stands between the brackets: texts and known variables, in their order. */
struct given {
	const char *texts[MAX_TEXTS];
	size_t n;
	bool has_home; /* the home directory is put in front */
	bool has_unknown, has_list, is_joined;
	bool is_emptied; /* the call cuts the file off at a length, or writes nothing */
	bool is_cut;     /* there is more than is read */
	const char *end;
};

static void read_given(struct reading *r, const char *s, struct given *g)
{
	const char *from = s;
	unsigned depth = 1;

	while (*s && depth && s - from < MAX_GIVEN) {
		g->is_cut |= g->n == MAX_TEXTS;
		if ((*s == '\'' || *s == '"' || *s == '`') && g->n < MAX_TEXTS) {
			g->texts[g->n++] = text_at(r, s, &s);
			continue;
		}
		if (isalpha((unsigned char)*s) || *s == '_' || *s == '$') {
			size_t n = 0;
			const char *v;

			while (is_name(s[n]))
				n++;
			v = var_of(r, s, n);
			if (v && g->n < MAX_TEXTS)
				g->texts[g->n++] = v;
			g->has_unknown |= v == NULL;
			s += n;
			continue;
		}
		g->has_list |= *s == '[';
		g->is_joined |= *s == '+' || *s == '/';
		if (*s == '(')
			depth++;
		else if (*s == ')')
			depth--;
		s++;
	}
	g->is_cut |= *s && depth && s - from >= MAX_GIVEN;
	g->end = s;
	g->has_home = names_home(from, (size_t)(s - from));
	g->is_joined |= memmem(from, (size_t)(s - from), "join", 4) != NULL;
}

/* pathlib.Path('x').unlink(): the text stands in front of the dot. */
static void read_receiver(struct reading *r, const char *name, struct given *g)
{
	const char *from = name, *s, *dot = name, *known;

	/* p.write_text(x): the variable stands in the name. */
	while (is_name(*dot))
		dot++;
	while (dot > name && *dot != '.')
		dot--;
	known = var_of(r, name, (size_t)(dot - name));
	if (known && g->n < MAX_TEXTS) {
		g->texts[g->n++] = known;
		return;
	}
	while (from > r->code && from[-1] != ';' && from[-1] != '\n' && name - from < 200)
		from--;
	for (s = from; s < name;)
		if ((*s == '\'' || *s == '"') && g->n < MAX_TEXTS)
			g->texts[g->n++] = text_at(r, s, &s);
		else
			s++;
	g->has_home |= names_home(from, (size_t)(name - from));
	g->is_joined = true;
}

/* "$ENV{HOME}/x", `${os.homedir()}/x`, "#{Dir.home}/x", "$HOME/x" */
static const char *without_variable(struct reading *r, const char *s)
{
	size_t n = strcspn(s, "/");

	if ((s[0] == '$' || s[0] == '#' || s[0] == '{') &&
	    (names_home(s, n) || memmem(s, n, "home", 4)))
		return arena_fmt(r->w->mem, "%s%s", r->w->places.home, s + n);
	return s;
}

static const struct value *path_of(struct reading *r, const struct given *g, size_t i)
{
	const char *s = i < g->n ? g->texts[i] : "";

	if (g->has_home && g->is_joined)
		for (size_t k = i + 1; k < g->n && g->n < 5; k++)
			s = arena_fmt(r->w->mem, "%s/%s", s, g->texts[k]);
	s = without_variable(r, s);
	if (str_starts(s, "~/"))
		s = arena_fmt(r->w->mem, "%s%s", r->w->places.home, s + 1);
	else if (str_eq(s, "~") || (g->has_home && i >= g->n))
		s = r->w->places.home;
	else if (g->has_home && s[0] != '~' && !str_starts(s, r->w->places.home))
		s = arena_fmt(r->w->mem, "%s%s%s", r->w->places.home, s[0] == '/' ? "" : "/", s);
	return value_text(r->w->mem, s, strlen(s));
}

static void do_run(struct reading *r, const struct given *g)
{
	if (g->is_cut)
		walk_find(r->w, "unreadable", r->c);
	if (g->n == 0)
		return;
	if (g->n == 1) {
		if (r->ran->n < CODE_MAX_RAN)
			r->ran->texts[r->ran->n++] = g->texts[0];
		if (g->texts[0][0])
			walk_text(r->w, g->texts[0], strlen(g->texts[0]), r->c, r->c->name);
		return;
	}
	if (strchr(g->texts[0], ' ')) {
		/* "rm -rf " + home + "/x": one text for a shell, put together. */
		const char *s = g->texts[0];

		if (g->has_home)
			s = arena_fmt(r->w->mem, "%s%s", s, r->w->places.home);
		for (size_t i = 1; i < g->n; i++)
			if (!str_eq(g->texts[i], "HOME"))
				s = arena_fmt(r->w->mem, "%s%s", s, g->texts[i]);
		walk_text(r->w, s, strlen(s), r->c, r->c->name);
		return;
	}
	if (g->has_home && g->n < MAX_TEXTS) {
		/* spawn('rm', ['-rf', os.homedir()]) */
		const char *words[MAX_TEXTS];

		memcpy(words, g->texts, sizeof(words));
		words[g->n] = r->w->places.home;
		walk_words_of(r->w, r->c, words, g->n + 1, r->c->name);
		return;
	}
	walk_words_of(r->w, r->c, g->texts, g->n, r->c->name);
}

static bool is_write_mode(const struct given *g)
{
	for (size_t i = 1; i < g->n; i++)
		if (strlen(g->texts[i]) <= 3 && strpbrk(g->texts[i], "wax+"))
			return true;
	return false;
}

static void do_send(struct reading *r, const struct given *g)
{
	static const char *const bodies[] = { "open(",  "read",  "environ", "process.env",
					      "getenv", "$_ENV", "ENV.to_", "Deno.env" };

	static const char *const shells[] = { "pty.", "dup2", "/bin/sh", "/bin/bash",
					      "subprocess" };
	bool is_url = g->n && strstr(g->texts[0], "://");
	bool is_host = g->n && !is_url && strchr(g->texts[0], '.') && !strchr(g->texts[0], ' ') &&
		       strstr(r->code, "socket");

	if (g->n == 0 || strstr(g->texts[0], "localhost") || strstr(g->texts[0], "127.0.0.1"))
		return;
	for (size_t i = 0; i < ARRAY_LEN(shells) && is_host; i++)
		if (strstr(r->code, shells[i])) {
			effect_text(r->w, EFFECT_CHANGES, "tunnel", r->c);
			return;
		}
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
		if (strstr(r->code, bodies[i]) && (is_url || is_host)) {
			effect_text(r->w, EFFECT_SENDS, "\x01", r->c);
			return;
		}
}

static void act(struct reading *r, enum act a, const struct given *g)
{
	struct walk *w = r->w;

	switch (a) {
	case ACT_REMOVE:
	case ACT_UNLINK:
		if (g->n || g->has_home)
			effect_add(w, a == ACT_REMOVE ? EFFECT_REMOVES : EFFECT_UNLINKS,
				   path_of(r, g, 0), r->c);
		break;
	case ACT_MOVE:
		if (g->n)
			effect_add(w, EFFECT_MOVES, path_of(r, g, 0), r->c);
		if (g->n > 1)
			effect_add(w, EFFECT_WRITES, path_of(r, g, 1), r->c);
		break;
	case ACT_COPY:
		if (g->n)
			effect_add(w, EFFECT_READS, path_of(r, g, 0), r->c);
		if (g->n > 1)
			effect_add(w, EFFECT_WRITES, path_of(r, g, 1), r->c);
		break;
	case ACT_WRITE:
		/* writeFile('x', '') leaves nothing. */
		if (g->n)
			effect_add(w,
				   (g->n > 1 && g->texts[1][0] == '\0') || g->is_emptied
					   ? EFFECT_EMPTIES
					   : EFFECT_WRITES,
				   path_of(r, g, 0), r->c);
		break;
	case ACT_OPEN:
		if (g->n)
			effect_add(w,
				   !is_write_mode(g) ? EFFECT_READS
				   : str_starts(g->end, ".close()") ||
						   str_starts(g->end, ".truncate(") ||
						   (*g->end == '\0' && g->texts[1][0] == 'w')
					   ? EFFECT_EMPTIES
					   : EFFECT_WRITES,
				   path_of(r, g, 0), r->c);
		break;
	case ACT_RIGHTS:
		effect_text(w, EFFECT_CHANGES, "rights", r->c);
		break;
	case ACT_READ:
		/* Fetching tells what is in the address. */
		if (g->n && strstr(g->texts[0], "://") && strchr(g->texts[0], '?'))
			do_send(r, g);
		else if (g->n)
			effect_add(w, EFFECT_READS, path_of(r, g, 0), r->c);
		break;
	case ACT_MODE:
		if (g->n)
			effect_add(w, EFFECT_MODES, path_of(r, g, 0), r->c);
		break;
	case ACT_SEND:
		do_send(r, g);
		break;
	case ACT_RUN:
		do_run(r, g);
		break;
	case ACT_FORK:
		if (strstr(r->code, "while") || strstr(r->code, "for(;;)") ||
		    strstr(r->code, "loop") || strstr(r->code, "for (;;)"))
			walk_find(w, "fork-bomb", r->c);
		break;
	}
}

/* The longest name in the table that this one ends with; -1: none. */
static int find_call(const char *name, size_t n)
{
	int best = -1;
	size_t longest = 0;

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		size_t k = calls[i].n;

		if (calls[i].last != (unsigned char)name[n - 1] || k > n || k < longest ||
		    memcmp(name + n - k, calls[i].name, k) != 0)
			continue;
		if (k < n && is_name(name[n - k - 1]) && name[n - k - 1] != '.' &&
		    name[n - k - 1] != ':')
			continue;
		best = (int)i;
		longest = k;
	}
	return best;
}

/* perl and ruby need no bracket: unlink "x", system "rm x". */
static bool begins_given(const char *s)
{
	s += strspn(s, " ");
	return *s == '(' || *s == '"' || *s == '\'';
}

/* Methods of a path; their arguments are none. */
static bool is_on_receiver(const char *name, size_t n)
{
	static const char *const methods[] = { ".write_text", ".write_bytes", ".read_text",
					       ".read_bytes", ".touch" };

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		size_t k = strlen(methods[i]);

		/* "Path" ends at its bracket: the name begins with the dot or behind it. */
		if ((n >= k && memcmp(name + n - k, methods[i], k) == 0) ||
		    (n == k - 1 && memcmp(name, methods[i] + 1, n) == 0))
			return true;
	}
	return false;
}

void code_calls(struct walk *w, const struct cmd *c, const char *code, struct ran *ret)
{
	struct reading r = { .w = w, .c = c, .code = code, .ran = ret };
	unsigned seen = 0;

	learn_vars(&r);
	for (const char *s = code; *s && seen < MAX_CALLS; s++) {
		struct given g = { 0 };
		size_t n = 0;
		int which;

		if (!isalpha((unsigned char)*s) || (s > code && is_name(s[-1]) && s[-1] != '.'))
			continue;
		while (is_name(s[n]))
			n++;
		/* Few names have a bracket or a text behind them; only these are looked up. */
		which = begins_given(s + n) || memmem(s, n, "fork", 4) ? find_call(s, n) : -1;
		if (which < 0) {
			s += n - 1;
			continue;
		}
		seen++;
		if (s[n + strspn(s + n, " ")] == '(')
			read_given(&r, s + n + strspn(s + n, " ") + 1, &g);
		else
			read_given(&r, s + n, &g);
		if (is_on_receiver(s, n)) {
			/* Path('x').write_text(''): what is given is the content. */
			bool is_emptied = g.n > 0 && g.texts[0][0] == '\0';
			const char *end = g.end;

			g = (struct given){ .is_emptied = is_emptied, .end = end };
			read_receiver(&r, s, &g);
		}
		g.is_emptied |= memmem(s, n, "runcate", 7) != NULL;
		if (g.n == 0)
			read_receiver(&r, s, &g);
		act(&r, calls[which].act, &g);
		s += n - 1;
	}
	if (seen == MAX_CALLS)
		walk_find(w, "unreadable", c);
	if (strstr(code, "fork while") || strstr(code, "fork() while"))
		walk_find(w, "fork-bomb", c);
}
