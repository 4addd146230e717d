/* SPDX-License-Identifier: Apache-2.0 */
/* keep/seal_rules.c - `vitrine net allow|deny 'METHOD HOST/PATH'`: rules that are added while it runs
 *
 * seal is told all its terms again, with the rule among them. A host that the rule is the first to name is inspected as
 * soon as seal has said that they are in force, not before: in between it would be closed.
 */
#include "keep/seal.h"
#include "keep/seal_parts.h"
#include "policy/inspect.h"
#include "policy/pathrule.h"
#include "policy/rules.h"
#include "policy/table.h"

static char *host_of(const char *rule)
{
	const char *at = strchr(rule, ' ');

	at += strspn(at, " ");
	return mem_strn(at, strcspn(at, "/"));
}

static bool is_inspected(const struct seal *s, const char *host)
{
	for (char *const *v = s->k->in->plan->net.inspect; v && *v; v++)
		if (str_eq(*v, host) || host_matches(*v, host))
			return true;
	for (int list = 0; list < 2; list++)
		for (size_t i = 0; i < s->n_added[list]; i++) {
			_free_ char *other = host_of(s->added[list][i]);

			if (str_eq(other, host) || host_matches(other, host))
				return true;
		}
	return false;
}

static void set_true(void *arg, const char *host)
{
	(void)host;
	*(bool *)arg = true;
}

/* A host that is not inspected yet can be, where programs inside trust the CA: the bundle is mounted at the start. */
static int check_change(const struct keeper *k, const char *rule, const char *host, struct err *e)
{
	bool may = false;
	int r = check_inspect_rule(rule, e);

	if (r < 0)
		return r;
	if (k->seal == NULL)
		return err_set(e, ERR_CONFLICT, ENETDOWN,
			       "nothing is inspected in this run, so programs inside do not trust "
			       "the "
			       "sandbox's CA; %s is inspected when it is started again",
			       host);
	if (k->seal->state == SEAL_CLOSED)
		return err_set(e, ERR_CONFLICT, ENETDOWN,
			       "vitrine-seal has ended in this run; %s is inspected when it is "
			       "started again",
			       host);
	inspect_add(k->in->policy, host, set_true, &may);
	return may ? 0 : err_set(e, ERR_USAGE, EINVAL, "inspect.never leaves %s uninspected", host);
}

/* After seal has the rule: until then the host is what it was. */
void seal_inspect_due(struct seal *s)
{
	if (s->due_host)
		gate_inspect(s->k, s->due_host, s->is_due_reached);
	free(s->due_host);
	s->due_host = NULL;
}

int seal_change(struct keeper *k, const char *rule, bool is_deny, struct err *e)
{
	_free_ char *host = host_of(rule);
	struct seal *s = k->seal;
	int r = check_change(k, rule, host, e), list = is_deny;
	bool is_new;

	if (r < 0)
		return r;
	if (s->teller > 0 && s->state == SEAL_SERVES)
		return err_set(e, ERR_CONFLICT, EBUSY, "a change is just being made; try again");
	if (s->n_added[list] >= RULES_MAX)
		return err_set(e, ERR_USAGE, E2BIG, "more than %d rules", RULES_MAX);
	is_new = !is_inspected(s, host);
	s->added[list] = mem_grow(s->added[list], s->n_added[list] + 1, sizeof(*s->added[list]));
	s->added[list][s->n_added[list]++] = mem_str(rule);
	if (is_new) {
		s->due_host = take(host);
		s->is_due_reached = !is_deny;
	}
	if (s->state == SEAL_SERVES)
		seal_tell(s, seal_tell_all);
	else
		seal_inspect_due(s); /* seal hears of the rule before it serves anybody */
	return 0;
}

void seal_show(const struct keeper *k, struct buf *out)
{
	const struct seal *s = k->seal;

	if (s == NULL)
		return;
	inspect_show(k->in->policy, "path ", out);
	for (int list = 0; list < 2; list++)
		for (size_t i = 0; i < s->n_added[list]; i++)
			buf_printf(out, "path %s %s\n", list ? "deny" : "allow", s->added[list][i]);
}
