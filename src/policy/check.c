/* SPDX-License-Identifier: Apache-2.0 */
/* policy/check.c - is one entry well formed, and do all values go together
 *
 * Checks look at text only; whether a path exists is a question for the plan.
 */
#include "base/path.h"
#include "policy/brokerrule.h"
#include "policy/inspect.h"
#include "policy/table.h"

#define PATH_RULE "must be an absolute path (or ~/...) without '.', '..' or a slash at the end"

static int check_clean(const char *text, const char *rule, struct err *e)
{
	if (!path_is_clean(text))
		return err_set(e, ERR_USAGE, EINVAL, "%s", rule);
	if (str_eq(text, "/"))
		return err_set(e, ERR_USAGE, EINVAL,
			       "the host's root is never shown whole; name what is needed");
	/* Ours are fresh ones; the host's would show its processes and knobs. */
	if (path_is_beneath(text, "/proc") || path_is_beneath(text, "/sys"))
		return err_set(e, ERR_USAGE, EINVAL, "the host's /proc and /sys are never shown");
	return 0;
}

int check_path(const char *text, struct err *e)
{
	if (str_eq(text, "~") || str_eq(text, "~/"))
		return err_set(e, ERR_USAGE, EINVAL,
			       "the home directory is never shown whole; name what is needed");
	return check_clean(str_starts(text, "~/") ? text + 1 : text, PATH_RULE, e);
}

int check_socket(const char *text, struct err *e)
{
	return check_clean(text,
			   "must be the absolute path of a socket, without '.', '..' or a slash at "
			   "the end",
			   e);
}

int check_mount(const char *text, struct err *e)
{
	static const char rule[] = "must be HOST:INSIDE, HOST:INSIDE:ro or HOST:INSIDE:rw with "
				   "absolute paths";
	const char *colon = strchr(text, ':');
	_free_ char *host = NULL, *inside = NULL;
	const char *mode;
	int r;

	if (colon == NULL)
		return err_set(e, ERR_USAGE, EINVAL, "%s", rule);
	host = mem_strn(text, (size_t)(colon - text));
	mode = strchr(colon + 1, ':');
	inside = mode ? mem_strn(colon + 1, (size_t)(mode - colon - 1)) : mem_str(colon + 1);
	if (mode && !str_eq(mode, ":ro") && !str_eq(mode, ":rw"))
		return err_set(e, ERR_USAGE, EINVAL, "%s", rule);
	r = check_clean(host, rule, e);
	if (r < 0)
		return r;
	if (path_is_clean(inside) && path_is_beneath(inside, "/dev"))
		return err_set(e, ERR_USAGE, EINVAL,
			       "/dev inside is made by us and cannot be mounted over");
	return check_clean(inside, rule, e);
}

static size_t env_name_length(const char *text)
{
	size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return text[0] >= '0' && text[0] <= '9' ? 0 : n;
}

int check_env_name(const char *text, struct err *e)
{
	size_t n = env_name_length(text);

	if (str_eq(text, "*"))
		return err_set(e, ERR_USAGE, EINVAL,
			       "would pass every variable, secrets too; name what is needed");
	if (n == 0 || (text[n] == '*' ? text[n + 1] : text[n]) != '\0')
		return err_set(e, ERR_USAGE, EINVAL,
			       "must be the name of a variable; one * may stand at its end");
	return 0;
}

int check_env_set(const char *text, struct err *e)
{
	size_t n = env_name_length(text);

	if (n == 0 || text[n] != '=')
		return err_set(e, ERR_USAGE, EINVAL,
			       "must be the name of a variable and its value");
	return 0;
}

int check_tool(const char *text, struct err *e)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");

	if (n == 0 || n > 32 || text[n] != '\0')
		return err_set(e, ERR_USAGE, EINVAL,
			       "must be the name of a tool; docs/TOOLS.md lists them");
	return 0;
}

static int check_broker(enum broker_kind kind, const char *text, struct err *e)
{
	_cleanup_(broker_rules_done) struct broker_rules r = { 0 };

	return broker_rules_add(&r, kind, text, e);
}

int check_broker_fetch(const char *text, struct err *e)
{
	return check_broker(BROKER_FETCH, text, e);
}

int check_broker_push(const char *text, struct err *e)
{
	return check_broker(BROKER_PUSH, text, e);
}

int check_broker_gh(const char *text, struct err *e)
{
	return check_broker(BROKER_GH, text, e);
}

int check_broker_command(const char *text, struct err *e)
{
	return check_broker(BROKER_COMMAND, text, e);
}

/* HOST:INSIDE:MODE of a checked entry. */
static void split_mount(const char *text, char **ret_host, char **ret_inside)
{
	const char *colon = strchr(text, ':');
	const char *mode = colon ? strrchr(colon + 1, ':') : NULL;

	bug_on(mode == NULL);
	*ret_host = mem_strn(text, (size_t)(colon - text));
	*ret_inside = mem_strn(colon + 1, (size_t)(mode - colon - 1));
}

/* A second door into the workspace would lead around hide and protect, which are tied to its own path. */
static int check_mount_host(const struct policy *p, const char *host, struct err *e)
{
	if (p->workspace &&
	    (path_is_beneath(host, p->workspace) || path_is_beneath(p->workspace, host)))
		return err_set(e, ERR_USAGE, EINVAL,
			       "mount '%s' would show the workspace a second time, without hide "
			       "and protect",
			       host);
	return 0;
}

static int check_mounts(const struct policy *p, struct err *e)
{
	for (size_t i = 0; i < p->mount.n; i++) {
		_free_ char *host = NULL, *inside = NULL;
		int r;

		split_mount(p->mount.v[i].text, &host, &inside);
		r = check_mount_host(p, host, e);
		if (r < 0)
			return r;
		if (p->workspace && path_is_beneath(p->workspace, inside))
			return err_set(e, ERR_USAGE, EINVAL,
				       "a mount at '%s' would cover the workspace", inside);
		for (size_t k = 0; k < i; k++) {
			_free_ char *other_host = NULL, *other = NULL;

			split_mount(p->mount.v[k].text, &other_host, &other);
			if (str_eq(inside, other))
				return err_set(e, ERR_USAGE, EINVAL, "two mounts at '%s'", inside);
		}
	}
	return 0;
}

static int check_lists(const struct policy *p, struct err *e)
{
	for (enum list_id id = 0; id < LIST_COUNT_; id++) {
		const struct items *l = policy_list_const(p, id);

		for (size_t i = 0; i < l->n; i++) {
			const char *text = l->v[i].text;
			bool is_taken_back = text[0] == '!' && list_defs[id].is_matched;
			int r;

			if (l->v[i].is_static)
				continue; /* part of the program: policy_test looks at all of them */
			r = list_defs[id].check(text + is_taken_back, e);
			if (r < 0)
				return err_wrap(e, r, "'%.80s'", text);
			if (id == LIST_MOUNT && !str_ends(text, ":ro") && !str_ends(text, ":rw"))
				return err_set(e, ERR_USAGE, EINVAL, "mount '%.80s' has no mode",
					       text);
		}
	}
	return 0;
}

static int check_limits(const struct policy *p, struct err *e)
{
	for (enum limit_id id = 0; id < LIMIT_ALL_; id++) {
		const struct limit *l = &p->limits[id];

		if (l->is_set && (l->max < limit_defs[id].min || l->max > limit_defs[id].max))
			return err_set(e, ERR_USAGE, ERANGE, "limit %s is out of range",
				       limit_name(id));
	}
	return 0;
}

int policy_validate(const struct policy *p, struct err *e)
{
	int r;

	if (p->workspace && !path_is_clean(p->workspace))
		return err_set(e, ERR_USAGE, EINVAL, "workspace '%.80s' is not an absolute path",
			       p->workspace);
	r = check_limits(p, e);
	if (r < 0)
		return r;
	r = inspect_validate(p, e);
	if (r < 0)
		return r;
	r = check_lists(p, e);
	if (r < 0)
		return r;
	return check_mounts(p, e);
}
