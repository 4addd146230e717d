/* SPDX-License-Identifier: Apache-2.0 */
/* broker/token.c - the value of a secret, for one program outside
 *
 * A secret says which hosts it is for, and that holds here as it does at the gate: a rule that would send it elsewhere is
 * refused, whoever wrote the rule.
 */
#include "base/base64.h"
#include "broker/broker.h"
#include "secret/secret.h"

char *token_host(const char *url)
{
	const char *host = str_starts(url, "https://")  ? url + 8
			   : str_starts(url, "http://") ? url + 7
							: NULL;

	return host ? mem_strn(host, strcspn(host, ":/")) : NULL;
}

/* NAME or *.NAME, as a secret's hosts are written. */
static bool host_fits(const char *pattern, const char *host)
{
	size_t n = strlen(host), k = strlen(pattern);

	if (!str_starts(pattern, "*."))
		return strcasecmp(pattern, host) == 0;
	return n > k - 1 && strcasecmp(host + n - (k - 1), pattern + 1) == 0;
}

static int check_hosts(const struct secret *s, const char *const *hosts, struct err *e)
{
	for (size_t i = 0; hosts[i]; i++)
		for (size_t k = 0; k < s->hosts.n; k++)
			if (host_fits(s->hosts.v[k], hosts[i]))
				return 0;
	return err_set(e, ERR_DENIED, EPERM,
		       "it is not for %s ('vitrine secret set %s --host ...')", hosts[0], s->name);
}

static void put_value(const struct buf *value, bool is_basic, struct buf *out)
{
	_cleanup_(buf_done) struct buf pair = BUF(SECRET_VALUE_MAX + 64);

	if (!is_basic) {
		buf_add(out, value->p, value->n);
		return;
	}
	/* The user's name does not matter to any forge that takes tokens. */
	buf_puts(&pair, "x-access-token:");
	buf_add(&pair, value->p, value->n);
	buf_puts(out, "Authorization: Basic ");
	base64_put(out, (struct str){ pair.p, pair.n });
	explicit_bzero(pair.p, pair.n);
}

int token_load(const struct broker *b, const char *name, const char *const *hosts, bool is_basic,
	       char **ret, struct err *e)
{
	_cleanup_(secret_done) struct secret s = { 0 };
	_cleanup_(buf_done) struct buf text = BUF(2 * SECRET_VALUE_MAX);
	struct buf value = secret_buf();
	int r = secret_load(b->state_dir, name, &s, e);

	if (r >= 0)
		r = check_hosts(&s, hosts, e);
	if (r >= 0)
		r = secret_value(b->state_dir, &s, &value, e);
	if (r >= 0) {
		buf_puts(&text, is_basic ? "GIT_CONFIG_VALUE_0=" : "GH_TOKEN=");
		put_value(&value, is_basic, &text);
		*ret = mem_str(buf_cstr(&text));
		explicit_bzero(text.p, text.n);
	}
	secret_wipe(&value);
	return r < 0 ? err_wrap(e, r, "secret '%s'", name) : 0;
}

void token_free(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
}
