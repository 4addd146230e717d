/* SPDX-License-Identifier: Apache-2.0 */
/* core/secrets.c - see secrets.h */
#include "core/secrets.h"
#include "base/path.h"
#include "base/sabotage.h"
#include "core/def.h"

/* The variable of a known service that holds something, and what. */
static const char *service_variable(const char *name, const char **ret_value)
{
	const struct secret_service *known = secret_service_find(name);

	for (size_t i = 0; known && i < ARRAY_LEN(known->env) && known->env[i]; i++) {
		const char *value = getenv(known->env[i]);

		*ret_value = value;
		if (value && value[0])
			return known->env[i];
	}
	return NULL;
}

static void from_variable(const char *name, const char *variable, struct str value,
			  struct secret *ret)
{
	*ret = (struct secret){ .name = mem_str(name),
				.source = SECRET_VARIABLE,
				.from = mem_str(variable) };
	secret_apply_service(ret);
	secret_take_shape(ret, value);
}

static int load(const char *state_dir, const char *name, struct secret *ret, struct err *e)
{
	const char *value = NULL, *variable = service_variable(name, &value);
	int r = secret_load(state_dir, name, ret, e);

	if (r != -ENOENT || variable == NULL || value == NULL)
		return r;
	*e = ERR_INIT;
	from_variable(name, variable, str_of(value), ret);
	return secret_check(ret, e);
}

bool secrets_has(const char *state_dir, const char *name)
{
	_cleanup_(secret_done) struct secret s = { 0 };
	struct err e = ERR_INIT;

	/* One that is there and cannot be read is an error of the start, not a reason to go without. */
	return secret_login_find(name) || load(state_dir, name, &s, &e) != -ENOENT;
}

static char *login_terms(const struct secret_login *l)
{
	_cleanup_(buf_done) struct buf b = BUF(16 * KIB);

	secret_login_terms(l, &b);
	return buf_take(&b);
}

/* What the agent reads instead of its token store. */
static int look_login(struct secrets *s, size_t i, const uint8_t *seed, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(MIB);
	int r = secret_login_file(&s->v[i], seed, s->placeholders[i], &text, e);

	if (r < 0)
		return r;
	s->texts[i] = buf_take(&text);
	s->logins[i] = login_terms(secret_login_find(s->v[i].name));
	s->facts[i].login = s->logins[i];
	s->facts[i].gives = secret_login_find(s->v[i].name)->gives;
	s->facts[i].file = secret_login_find(s->v[i].name)->path;
	s->facts[i].text = s->texts[i];
	return 0;
}

static int look(struct secrets *s, size_t i, const char *state_dir, const uint8_t *seed,
		const char *name, struct err *e)
{
	_cleanup_(buf_done) struct buf holder = BUF(2 * SECRET_VALUE_MAX), terms = BUF(64 * KIB);
	struct secret *v = &s->v[i];
	int r = load(state_dir, name, v, e);

	if (r < 0)
		return r;
	s->n = i + 1;
	secret_placeholder(v, seed, &holder);
	secret_terms(v, buf_cstr(&holder), &terms);
	s->placeholders[i] = buf_take(&holder);
	s->terms[i] = buf_take(&terms);
	s->facts[i] = (struct secret_fact){ .name = v->name,
					    .placeholder = s->placeholders[i],
					    .terms = s->terms[i],
					    .env = v->env.v,
					    .n_env = v->env.n,
					    .hosts = v->hosts.v,
					    .n_hosts = v->hosts.n,
					    .npm = v->npm,
					    .around = v->around };
	s->n_facts = s->n;
	return v->source == SECRET_LOGIN ? look_login(s, i, seed, e) : 0;
}

/* A login that nobody has made: its tokens are taken out of the answer when somebody does, inside. */
static void look_open(struct secrets *s, const struct secret_login *l)
{
	size_t i = s->n_facts++, n = 0;

	while (n < ARRAY_LEN(l->hosts) && l->hosts[n])
		n++;
	s->logins[i] = login_terms(l);
	s->facts[i] = (struct secret_fact){ .name = l->name,
					    .hosts = (char *const *)(uintptr_t)l->hosts,
					    .n_hosts = n,
					    .gives = l->gives,
					    .login = s->logins[i],
					    .is_open = true };
}

static bool is_open(const char *state_dir, const char *name)
{
	_cleanup_(secret_done) struct secret s = { 0 };
	struct err e = ERR_INIT;

	return secret_login_find(name) && load(state_dir, name, &s, &e) == -ENOENT;
}

/* One that would have to be put on the wire; a login that is not there yet can wait for a network. */
static bool needs_network(const char *state_dir, const struct policy *p)
{
	for (size_t i = 0; i < p->secrets.n; i++)
		if (!is_open(state_dir, p->secrets.v[i].text))
			return true;
	return false;
}

int secrets_look(struct secrets *s, const char *state_dir, const char *sandbox,
		 const struct policy *p, struct err *e)
{
	size_t n = p->secrets.n;
	uint8_t seed[SECRET_SEED];
	int r;

	*s = (struct secrets){ 0 };
	if (n == 0)
		return 0;
	if (p->network != NET_GATE)
		return !needs_network(state_dir, p) ? 0
						    : err_set(e, ERR_USAGE, EINVAL,
							      "a secret is of no use without a "
							      "network; --allow a host, "
							      "or --net a preset");
	if (n > SECRETS_MAX)
		return err_set(e, ERR_CONFIG, E2BIG, "more than %d secrets", SECRETS_MAX);
	r = secret_seed(state_dir, sandbox, seed, e);
	if (r < 0)
		return r;
	s->v = mem_new(n, sizeof(*s->v));
	s->facts = mem_new(n, sizeof(*s->facts));
	s->placeholders = mem_new(n, sizeof(*s->placeholders));
	s->terms = mem_new(n, sizeof(*s->terms));
	s->texts = mem_new(n, sizeof(*s->texts));
	s->logins = mem_new(n, sizeof(*s->logins));
	for (size_t i = 0; i < n && r >= 0; i++)
		if (!is_open(state_dir, p->secrets.v[i].text))
			r = look(s, s->n, state_dir, seed, p->secrets.v[i].text, e);
	for (size_t i = 0; i < n && r >= 0; i++)
		if (is_open(state_dir, p->secrets.v[i].text))
			look_open(s, secret_login_find(p->secrets.v[i].text));
	return r;
}

/* A file that a sandbox could replace, by a link for one, is no place for a secret. */
static int check_file(const char *state_dir, const struct secret *s, struct err *e)
{
	_free_ char *real = NULL, *who = NULL;

	if (s->source != SECRET_FILE || s->from == NULL || !path_is_clean(s->from) ||
	    sabotaged("own"))
		return 0;
	who = def_may_write(state_dir, s->from);
	real = who ? NULL : realpath(s->from, NULL);
	if (real)
		who = def_may_write(state_dir, real);
	return who ? err_set(e, ERR_DENIED, EPERM,
			     "secret '%.64s': its file '%.200s' lies where the sandbox '%.64s' may "
			     "write, and could put another in its place; move it elsewhere",
			     s->name, s->from, who)
		   : 0;
}

int secrets_fetch(const struct secrets *s, const char *state_dir, struct buf values[SECRETS_MAX],
		  struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < s->n && r >= 0; i++) {
		values[i] = secret_buf();
		r = check_file(state_dir, &s->v[i], e);
		if (r == 0)
			r = secret_value(state_dir, &s->v[i], &values[i], e);
	}
	return r;
}

void secrets_wipe(struct buf values[SECRETS_MAX])
{
	for (size_t i = 0; i < SECRETS_MAX; i++)
		secret_wipe(&values[i]);
}

void secrets_done(struct secrets *s)
{
	for (size_t i = 0; i < s->n; i++) {
		secret_done(&s->v[i]);
		free(s->placeholders[i]);
		free(s->terms[i]);
		free(s->texts[i]);
	}
	for (size_t i = 0; i < s->n_facts; i++)
		free(s->logins[i]);
	free(s->logins);
	free(s->v);
	free(s->facts);
	free(s->placeholders);
	free(s->terms);
	free(s->texts);
	*s = (struct secrets){ 0 };
}
