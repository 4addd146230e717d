/* SPDX-License-Identifier: Apache-2.0 */
/* guard/effect_net.c - what leaves for another machine
 *
 * Fetching is no effect; what counts is content that goes out: files given to an uploader, what is piped into one, values
 * made at run time that are put into an address. Where the other end is this machine nothing leaves.
 */
#include <ctype.h>

#include "guard/walk.h"

/* The host of "https://user@host:port/path", "host:path" or "host". */
static const char *host_of(struct walk *w, const char *s)
{
	const char *at = strstr(s, "://");
	size_t n;

	s = at ? at + 3 : s;
	n = strcspn(s, "/?#");
	at = memchr(s, '@', n);
	if (at) {
		n -= (size_t)(at + 1 - s);
		s = at + 1;
	}
	if (s[0] == '[')
		n = strcspn(s, "]") + 1;
	else
		n = strcspn(s, ":/?#") < n ? strcspn(s, ":/?#") : n;
	return arena_strn(w->mem, s, n);
}

static bool is_here(struct walk *w, const char *s)
{
	return rules_list_fits("localhost|*.localhost|127.*|[[]::1]|0.0.0.0|host.docker.internal|0|"
			       "*.test",
			       host_of(w, s));
}

/* Does every address lead to this machine? Without one: no. */
static bool stays_here(struct walk *w, const struct args *a)
{
	bool is_any = false;

	for (size_t i = 0; i < a->n_pos; i++) {
		const char *s = a->pos[i]->s;

		if (strstr(s, "://") == NULL && strchr(s, '.') == NULL &&
		    !str_starts(s, "localhost") && s[0] != ':')
			continue;
		if (!is_here(w, s) && s[0] != ':')
			return false;
		is_any = true;
	}
	return is_any;
}

static void send_file(struct walk *w, const struct cmd *c, const char *path)
{
	if (rules_list_has("-|.|/dev/stdin", path)) {
		if (c->input == INPUT_UNKNOWN)
			effect_text(w, EFFECT_SENDS, "\x01", c);
		return;
	}
	effect_text(w, EFFECT_SENDS, path, c);
}

/* curl -d @file, -F name=@file, --json @file, --data-urlencode name@file */
static void send_data(struct walk *w, const struct cmd *c, const struct option *o)
{
	const char *s = o->value->s, *at = strchr(s, '@');

	if (args_is(o->name,
		    str_starts(c->name, "wget") ? "--post-file|--body-file" : "-T|--upload-file"))
		send_file(w, c, s);
	else if (s[0] == '@')
		send_file(w, c, s + 1);
	else if (at && args_is(o->name, "-F|--form|--data-urlencode") &&
		 (at[-1] == '=' || args_is(o->name, "--data-urlencode")))
		send_file(w, c, arena_strn(w->mem, at + 1, strcspn(at + 1, ";")));
	else if (o->value->is_dynamic && value_has_mark(o->value))
		effect_text(w, EFFECT_SENDS, "\x01", c);
}

/* Variables that hold secrets by their names. */
static bool is_secret_name(const char *s)
{
	return s && rules_list_fits("*TOKEN*|*SECRET*|*PASSWORD*|*PASSWD*|*API_KEY*|*_KEY|*"
				    "CREDENTIAL*",
				    s);
}

/* What these print tells about the machine or out of a file; uname and git do not. */
static bool tells(const struct part *p)
{
	struct word word = { .first = (struct part *)(uintptr_t)p };

	return place_script_names(&word, "whoami|id|hostname|cat|base64|env|printenv|head|tail|"
					 "grep|"
					 "xxd|od|tar|jq|history|awk|openssl|gzip|security|pass|ps|"
					 "ifconfig|ip|ls|find");
}

/* A secret or a command's output in a header that is not one for logging in. */
static void header(struct walk *w, const struct cmd *c, const struct value *v)
{
	if (v->word == NULL || !value_has_mark(v) ||
	    rules_list_fits("[Aa]uthorization*|*[Tt]oken*|*[Kk]ey*|[Cc]ookie*|*[Aa]uth*|*TOKEN*|*"
			    "KEY*",
			    v->s))
		return;
	for (const struct part *p = v->word->first; p; p = p->next)
		if ((p->kind == PART_SCRIPT && tells(p)) ||
		    (p->kind == PART_VAR && is_secret_name(p->text))) {
			effect_text(w, EFFECT_SENDS, "\x01", c);
			return;
		}
}

static void http(struct walk *w, const struct cmd *c, const struct args *a)
{
	static const char carriers[] = "-d|--data|--data-binary|--data-raw|--data-ascii|--data-"
				       "urlencode|--json|-F|"
				       "--form|-T|--upload-file|--post-file|--body-file|--post-"
				       "data|--body-data";

	if (stays_here(w, a))
		return;
	for (size_t i = 0; i < a->n_options; i++)
		if (a->options[i].value && args_is(a->options[i].name, carriers))
			send_data(w, c, &a->options[i]);
		else if (a->options[i].value && args_is(a->options[i].name, "-H|--header|-A|-e|-b"))
			header(w, c, a->options[i].value);
	/* curl -K -: the address stands in what comes in. */
	for (size_t i = 0; i < a->n_options; i++)
		if (a->options[i].value && args_is(a->options[i].name, "-K|--config") &&
		    rules_list_has("-|/dev/stdin", a->options[i].value->s) &&
		    (c->input == INPUT_UNKNOWN ||
		     (c->input_text && strpbrk(c->input_text, VALUE_MARKS))))
			effect_text(w, EFFECT_SENDS, "\x01", c);
	/* httpie: name@file, name=@file */
	for (size_t i = 0; i < a->n_pos && rules_list_has("http|https|xh", c->name); i++) {
		const char *at = strchr(a->pos[i]->s, '@');

		if (at && strstr(a->pos[i]->s, "://") == NULL)
			send_file(w, c, at + 1);
	}
	if (rules_list_has("http|https|xh", c->name) && c->input == INPUT_UNKNOWN && a->n_pos)
		effect_text(w, EFFECT_SENDS, "\x01", c);
}

static bool is_remote(const char *s)
{
	const char *colon = strchr(s, ':');

	if (strstr(s, "://"))
		return !str_starts(s, "file://");
	return colon && colon != s && memchr(s, '/', (size_t)(colon - s)) == NULL;
}

/* scp and rsync: the last is where it goes. */
static void copy(struct walk *w, const struct cmd *c, const struct args *a)
{
	if (a->n_pos < 2)
		return;
	if (!is_remote(a->pos[a->n_pos - 1]->s)) {
		if (str_eq(c->name, "scp"))
			effect_add(w, EFFECT_WRITES, a->pos[a->n_pos - 1], c);
		return;
	}
	if (is_here(w, a->pos[a->n_pos - 1]->s))
		return;
	for (size_t i = 0; i + 1 < a->n_pos; i++)
		if (!is_remote(a->pos[i]->s))
			effect_add(w, EFFECT_SENDS, a->pos[i], c);
}

/* aws s3 cp FILE s3://…, gsutil cp FILE gs://…, rclone copy FILE remote: */
static void bucket(struct walk *w, const struct cmd *c, const struct args *a)
{
	size_t n = 0;

	while (n < a->n_pos &&
	       !rules_list_has("cp|copy|sync|mv|move|rsync|copyto|put", a->pos[n]->s))
		n++;
	if (a->n_pos < n + 3 ||
	    !(is_remote(a->pos[a->n_pos - 1]->s) ||
	      (str_eq(c->name, "mc") && isalpha((unsigned char)a->pos[a->n_pos - 1]->s[0]))))
		return;
	for (size_t i = n + 1; i + 1 < a->n_pos; i++)
		if (!is_remote(a->pos[i]->s))
			effect_add(w, EFFECT_SENDS, a->pos[i], c);
}

/* What ftp, sftp and lftp are told to do, as text. */
static void transfer_text(struct walk *w, const struct cmd *c, const char *text)
{
	static const struct {
		const char *word;
		enum effect_kind effect;
	} words[] = { { "put ", EFFECT_SENDS },
		      { "mput ", EFFECT_SENDS },
		      { "reput ", EFFECT_SENDS },
		      { "mirror -R ", EFFECT_SENDS },
		      { "mirror --reverse ", EFFECT_SENDS },
		      { "rm ", EFFECT_CHANGES },
		      { "mrm ", EFFECT_CHANGES },
		      { "rmdir ", EFFECT_CHANGES },
		      { "delete ", EFFECT_CHANGES },
		      { "mdelete ", EFFECT_CHANGES } };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const char *at = strstr(text, words[i].word);

		if (at == NULL || (at > text && isalnum((unsigned char)at[-1])))
			continue;
		at += strlen(words[i].word);
		if (words[i].effect == EFFECT_SENDS)
			send_file(w, c, arena_strn(w->mem, at, strcspn(at, " ;\n")));
		else
			effect_text(w, EFFECT_CHANGES, "cloud", c);
	}
}

static void transfer(struct walk *w, const struct cmd *c)
{
	if (c->input == INPUT_TEXT && c->input_text)
		transfer_text(w, c, c->input_text);
	else if (c->input == INPUT_UNKNOWN)
		effect_text(w, EFFECT_SENDS, "\x01", c);
	for (size_t i = 1; i < c->argc; i++)
		if (strchr(c->argv[i]->s, ' '))
			transfer_text(w, c, c->argv[i]->s);
}

/* nc host port < file */
static void pipe_out(struct walk *w, const struct cmd *c, const struct args *a)
{
	bool is_listening = args_have(a, "-l|--listen|-z");
	bool is_program = args_have(a, "-e|-c|--exec|--sh-exec");

	if (is_program || (str_eq(c->name, "socat") && (strcasestr(walk_join(w, c, 1), "EXEC:") ||
							strcasestr(walk_join(w, c, 1), "SYSTEM:"))))
		effect_text(w, EFFECT_CHANGES, "tunnel", c);
	for (size_t i = 0; i < a->n_pos && str_eq(c->name, "socat"); i++)
		if (rules_list_fits("FILE:*|OPEN:*|file:*|open:*", a->pos[i]->s))
			effect_text(w, EFFECT_SENDS, a->pos[i]->s + 5, c);
	if (is_listening || c->input == INPUT_NONE || a->n_pos == 0 || is_here(w, a->pos[0]->s))
		return;
	if (c->input == INPUT_TEXT && c->n_files == 0)
		return;
	for (size_t i = 0; i < c->n_files; i++)
		if (c->files[i].is_read)
			effect_add(w, EFFECT_SENDS, c->files[i].path, c);
	if (c->n_files == 0)
		effect_text(w, EFFECT_SENDS, "\x01", c);
}

/* dig $(id).example.com: what is looked up tells. */
static void lookup(struct walk *w, const struct cmd *c, const struct args *a)
{
	for (size_t i = 0; i < a->n_pos; i++)
		if (value_has_mark(a->pos[i]) && strchr(a->pos[i]->s, '.') && a->pos[i]->word)
			for (const struct part *p = a->pos[i]->word->first; p; p = p->next)
				if (p->kind == PART_SCRIPT) {
					effect_text(w, EFFECT_SENDS, "\x01", c);
					break;
				}
}

/* An address with something in it that a command printed. */
static void address(struct walk *w, const struct cmd *c, const struct args *a)
{
	for (size_t i = 0; i < a->n_pos; i++) {
		const struct value *v = a->pos[i];
		const char *query = strpbrk(v->s, "?" VALUE_MARKS);

		if (strstr(v->s, "://") == NULL || !value_has_mark(v) || query == NULL ||
		    is_here(w, v->s) || v->word == NULL)
			continue;
		for (const struct part *p = v->word->first; p; p = p->next)
			if ((p->kind == PART_SCRIPT && p->script && p->script->first &&
			     (strstr(v->s, "?") || tells(p))) ||
			    (p->kind == PART_VAR && is_secret_name(p->text))) {
				effect_text(w, EFFECT_SENDS, "\x01", c);
				break;
			}
	}
}

/* ssh -R: a way in from there. ssh host 'cat > x' < file: a way out. */
static void ssh(struct walk *w, const struct cmd *c, const struct args *a)
{
	code_ssh(w, c);
	if (args_have(a, "-R|-D|-w"))
		effect_text(w, EFFECT_CHANGES, "tunnel", c);
	if (a->n_pos == 0 || is_here(w, a->pos[0]->s) || c->input == INPUT_TEXT)
		return;
	for (size_t i = 0; i < c->n_files; i++)
		if (c->files[i].is_read)
			effect_add(w, EFFECT_SENDS, c->files[i].path, c);
	if (c->n_files == 0 && c->input == INPUT_UNKNOWN)
		effect_text(w, EFFECT_SENDS, "\x01", c);
}

/* python3 -m http.server -d DIR, php -S ADDRESS -t DIR: everybody may fetch what lies there. */
static void server(struct walk *w, const struct cmd *c)
{
	bool is_server = false;

	for (size_t i = 1; i < c->argc; i++)
		is_server |= rules_list_has("http.server|SimpleHTTPServer|-S|httpd", c->argv[i]->s);
	for (size_t i = 1; i < c->argc && is_server; i++)
		if (rules_list_has("-d|--directory|-t|-h", c->argv[i]->s) && i + 1 < c->argc)
			effect_add(w, EFFECT_READS, c->argv[i + 1], c);
		else if (str_starts(c->argv[i]->s, "--directory="))
			effect_text(w, EFFECT_READS, c->argv[i]->s + 12, c);
	if (is_server && w->places.cwd)
		effect_text(w, EFFECT_READS, w->places.cwd, c);
}

void effect_network(struct walk *w, const struct cmd *c, const struct args *a)
{
	if (rules_list_has("curl|wget|http|https|xh|wget2|curlie", c->name)) {
		http(w, c, a);
		address(w, c, a);
	} else if (rules_list_has("sftp|ftp|lftp|tftp|ncftp", c->name))
		transfer(w, c);
	else if (rules_list_has("scp|rsync|croc", c->name))
		copy(w, c, a);
	else if (rules_list_has("python|python3|python2|php|busybox|ruby", c->name))
		server(w, c);
	else if (rules_list_has("aws|gsutil|gcloud|rclone|s3cmd|mc|az|b2|azcopy", c->name))
		bucket(w, c, a);
	else if (rules_list_has("nc|ncat|netcat|socat|telnet|nc.openbsd|nc.traditional", c->name))
		pipe_out(w, c, a);
	else if (rules_list_has("dig|nslookup|host|ping|drill|getent|resolvectl|delv|kdig|doggo|"
				"dog",
				c->name))
		lookup(w, c, a);
	else if (str_eq(c->name, "ssh"))
		ssh(w, c, a);
}
