/* SPDX-License-Identifier: Apache-2.0 */
/* cli/secret_import.c - `secret import npm|pip|cargo`: tokens in the user's settings become secrets
 *
 * The settings themselves come inside without tokens (view/homecfg.h). An import reads the same files once, keeps each
 * token as a secret for the host that the file names it for, and changes nothing in the files. Inside, npm finds the token
 * through a line in its global settings that names a variable, pip through PIP_INDEX_URL, cargo through
 * CARGO_REGISTRIES_NAME_TOKEN; each variable holds what stands for the token. A token that cannot be kept this way is named
 * and left.
 */
#include <ctype.h>

#include "base/path.h"
#include "cli/secret.h"
#include "core/facts.h"
#include "view/homecfg.h"

#define TOKENS_MAX 32

struct found {
	struct secret v[TOKENS_MAX];
	struct buf values[TOKENS_MAX];
	size_t n;
	const char *tool;
	const char *index; /* cargo's settings as they may be seen: where each registry is */
	const struct secret *said;
	struct buf left; /* one line for each token that stays where it is */
};

static void found_done(struct found *f)
{
	for (size_t i = 0; i < f->n; i++) {
		secret_done(&f->v[i]);
		secret_wipe(&f->values[i]);
	}
	buf_done(&f->left);
}

static int leave(struct found *f, const char *key, const char *why)
{
	buf_puts(&f->left, "left: ");
	buf_esc(&f->left, key, strlen(key));
	buf_printf(&f->left, ": %s\n", why);
	return 0;
}

/* Letters and digits of a text, the others replaced: in small letters for a name, in great ones for a variable. */
static char *word_of(const char *text, char other, bool is_upper)
{
	char *w = mem_str(text);

	for (char *p = w; *p; p++) {
		int c = (unsigned char)*p;

		if (!isalnum(c))
			*p = other;
		else
			*p = (char)(is_upper ? toupper(c) : tolower(c));
	}
	return w;
}

/* "${NAME}", as npm's documentation recommends: the value stays in the caller's variable. */
static char *variable_of(const char *value)
{
	size_t n = strlen(value);

	if (n < 4 || !str_starts(value, "${") || value[n - 1] != '}')
		return NULL;
	for (size_t i = 2; i < n - 1; i++)
		if (!isalnum((unsigned char)value[i]) && value[i] != '_')
			return NULL;
	return mem_strn(value + 2, n - 3);
}

/* The host of a registry of cargo's, from a line "registries"."NAME"."index" = "URL" as homecfg_cargo() writes it. */
static char *cargo_host(const struct found *f, const char *name)
{
	_free_ char *start = mem_fmt("\"registries\".\"%s\".\"index\" = \"", name);
	const char *at = strstr(f->index, start), *host = at ? strstr(at, "://") : NULL;

	if (host == NULL || memchr(at, '\n', (size_t)(host - at)))
		return NULL;
	return mem_strn(host + 3, strcspn(host + 3, "/:\""));
}

static char *host_of(const struct found *f, const struct homecfg_token *t)
{
	if (t->host)
		return mem_str(t->host);
	if (f->said->hosts.n)
		return mem_str(f->said->hosts.v[0]);
	return t->key[0] ? cargo_host(f, t->key) : NULL;
}

/* The variable that the tool reads. */
static char *env_of(const struct found *f, const struct homecfg_token *t)
{
	_free_ char *word = word_of(t->key, '_', true);

	if (str_eq(f->tool, "pip"))
		return mem_fmt("PIP_%s", word);
	if (str_eq(f->tool, "cargo"))
		return t->key[0] ? mem_fmt("CARGO_REGISTRIES_%s_TOKEN", word)
				 : mem_str("CARGO_REGISTRY_TOKEN");
	return f->n ? mem_fmt("NPM_TOKEN_%zu", f->n + 1) : mem_str("NPM_TOKEN");
}

static int take_token(void *arg, const struct homecfg_token *t)
{
	struct found *f = arg;
	const char *key = t->key[0] ? t->key : "registry";
	_free_ char *host = t->value ? host_of(f, t) : NULL;
	_free_ char *word = host ? word_of(host, '-', false) : NULL;
	_free_ char *env = NULL;
	struct secret *s = &f->v[f->n];

	if (t->value == NULL)
		return leave(f, key,
			     "of a form that cannot be taken over; 'vitrine secret set' keeps any "
			     "token");
	if (host == NULL)
		return leave(f, key, "no host is named for it; say it with --host");
	if (f->n == TOKENS_MAX)
		return leave(f, key, "too many tokens in one file");
	env = env_of(f, t);
	*s = (struct secret){ .name = f->n ? mem_fmt("%s-%.48s", f->tool, word) : mem_str(f->tool),
			      .around = t->around ? mem_str(t->around) : NULL };
	secret_list_add(&s->env, env);
	secret_list_add(&s->hosts, host);
	secret_list_add(&s->places, "header");
	if (str_eq(f->tool, "npm"))
		s->npm = mem_str(t->key);
	s->from = variable_of(t->value);
	s->source = s->from ? SECRET_VARIABLE : SECRET_STORED;
	f->values[f->n] = secret_buf();
	if (s->from == NULL)
		buf_puts(&f->values[f->n], t->value);
	f->n++;
	return 0;
}

/* ---- the files ---- */

static const struct import_file {
	const char *tool, *var; /* a variable that names the file, or its directory */
	bool is_config;         /* below the directory of configurations */
	const char *name,
		*below; /* below home; below the directory that the variable names, or NULL: it names the file */
	int (*tokens)(const char *text, size_t n, homecfg_token_fn *fn, void *arg);
} files[] = {
	{ "npm", "NPM_CONFIG_USERCONFIG", false, ".npmrc", NULL, homecfg_npm_tokens },
	{ "pip", "PIP_CONFIG_FILE", true, "pip/pip.conf", NULL, homecfg_pip_tokens },
	{ "pip", NULL, false, ".pip/pip.conf", NULL, homecfg_pip_tokens },
	{ "cargo", "CARGO_HOME", false, ".cargo/credentials.toml", "credentials.toml",
	  homecfg_cargo_tokens },
	{ "cargo", "CARGO_HOME", false, ".cargo/credentials", "credentials", homecfg_cargo_tokens },
};

static char *path_of(const struct host *h, const struct import_file *f)
{
	const char *said = f->var ? getenv(f->var) : NULL;
	_free_ char *config = path_parent(h->config_dir);

	if (said && said[0] == '/')
		return f->below ? path_join(said, f->below) : mem_str(said);
	return path_join(f->is_config ? config : h->home, f->name);
}

/* 1: read; 0: there is none. The first file of a tool that is there counts. */
static int read_file(const struct host *h, const struct import_file *i, struct found *f,
		     char **ret_path, struct err *e)
{
	_cleanup_(secret_wipe) struct buf text = secret_buf_of(HOMECFG_MAX + 1);
	_free_ char *path = path_of(h, i);
	int r = host_read_setting(path, &text);

	if (r == 0)
		return 0;
	if (r > 0)
		r = i->tokens(buf_cstr(&text), text.n, take_token, f);
	if (r < 0)
		return err_set(e, ERR_CONFIG, EINVAL, "'%s' cannot be read with certainty", path);
	*ret_path = mem_str(path);
	return 1;
}

static int save(const struct host *h, struct found *f, size_t i, struct err *e)
{
	_cleanup_(secret_wipe) struct buf fetched = secret_buf();
	struct secret *s = &f->v[i];
	struct buf *value = s->from ? &fetched : &f->values[i];
	int r = secret_check(s, e);

	if (r >= 0 && s->from)
		r = secret_value(h->state_dir, s, &fetched, e);
	if (r >= 0 && value->n < SECRET_VALUE_MIN)
		r = err_set(e, ERR_USAGE, EINVAL, "the token has fewer than %d characters",
			    SECRET_VALUE_MIN);
	if (r >= 0)
		r = secret_save(h->state_dir, s, (struct str){ value->p, value->n }, e);
	return r < 0 ? err_wrap(e, r, "secret '%s'", s->name) : secret_say_saved(s, e);
}

static int say_use(const struct found *f, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

	buf_puts(&b, "use:  vitrine run");
	for (size_t i = 0; i < f->n; i++)
		buf_printf(&b, " --secret %s --allow %s", f->v[i].name, f->v[i].hosts.v[0]);
	buf_printf(&b, " -- %s ...\n", f->tool);
	return cli_print(&b, e);
}

/* Where cargo's registries are; the file may not be there. */
static void read_index(const struct host *h, struct buf *ret)
{
	static const char *const names[] = { "config.toml", "config" };

	for (size_t i = 0; i < ARRAY_LEN(names) && ret->n == 0; i++) {
		_cleanup_(secret_wipe) struct buf text = secret_buf_of(HOMECFG_MAX + 1);
		_free_ char *below = mem_fmt(".cargo/%s", names[i]);
		const struct import_file f = {
			"cargo", "CARGO_HOME", false, below, names[i], NULL
		};
		_free_ char *path = path_of(h, &f);

		if (host_read_setting(path, &text) == 1)
			(void)homecfg_cargo(buf_cstr(&text), text.n, ret); /* none: --host */
	}
}

int secret_import(const struct host *h, const struct secret *said, struct err *e)
{
	_cleanup_(buf_done) struct buf index = BUF(2 * HOMECFG_MAX);
	_cleanup_(found_done) struct found f = { .tool = said->name,
						 .said = said,
						 .left = BUF(64 * KIB) };
	_free_ char *path = NULL;
	bool is_known = false;
	int r = 0;

	read_index(h, &index);
	f.index = buf_cstr(&index);
	for (size_t i = 0; i < ARRAY_LEN(files) && r == 0; i++)
		if (str_eq(files[i].tool, said->name)) {
			is_known = true;
			r = read_file(h, &files[i], &f, &path, e);
		}
	if (r < 0)
		return r;
	if (!is_known)
		return err_set(e, ERR_USAGE, EINVAL, "secret import npm | pip | cargo");
	if (path == NULL)
		return err_set(e, ERR_NOTFOUND, ENOENT, "%s has no settings here", said->name);
	for (size_t i = 0; i < f.n; i++) {
		r = save(h, &f, i, e);
		if (r < 0)
			return r;
	}
	if (f.left.n)
		(void)fputs(buf_cstr(&f.left), stderr);
	if (f.n == 0)
		return err_set(e, ERR_NOTFOUND, ENOENT, "no token was taken from '%s'", path);
	return say_use(&f, e);
}
