/* SPDX-License-Identifier: Apache-2.0 */
/* policy/groups_gen.c - data/net-groups.json as C; runs on the machine that builds
 *
 *     groups_gen FILE       an array of hosts for each group, group_NAME, and the table net_groups[]
 *
 * One line of the file is one group: hosts, and groups above it whose hosts it has too. A group of an unknown name, and a
 * line that cannot be read, fail the build.
 */
#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"

static int fail(const struct json *at, const char *why)
{
	(void)fprintf(stderr, "net-groups.json:%u: %s\n", at->line, why);
	return -EINVAL;
}

static bool is_word(const struct json *v)
{
	return v && v->type == JSON_STRING && v->n > 0 && strpbrk(v->text, "\"\\\n") == NULL;
}

/* A name is also part of one in C. */
static bool is_name(const struct json *v)
{
	return is_word(v) && strspn(v->text, "abcdefghijklmnopqrstuvwxyz") == strlen(v->text);
}

static int check_list(const struct json *list, bool (*is_right)(const struct json *v),
		      const char *why)
{
	if (list && list->type != JSON_ARRAY)
		return fail(list, "not a list");
	for (const struct json *v = list ? list->first : NULL; v; v = v->next)
		if (!is_right(v))
			return fail(v, why);
	return 0;
}

static int check_line(const struct json *line)
{
	const struct json *hosts = json_get(line, "hosts"), *groups = json_get(line, "groups");
	int r;

	if (!is_name(json_get(line, "name")) || !is_word(json_get(line, "what")))
		return fail(line, "a line has a \"name\" of small letters, and \"what\"");
	if ((hosts == NULL && groups == NULL) || line->n != (hosts && groups ? 4U : 3U))
		return fail(line, "a line has \"hosts\" or \"groups\", or both, and nothing else");
	r = check_list(hosts, is_word, "not a host");
	return r < 0 ? r : check_list(groups, is_name, "not the name of a group");
}

/* The group of this name that stands above `end`: so there is no circle. */
static const struct json *find(const struct json *root, const char *name, const struct json *end)
{
	for (const struct json *line = root->first; line != end; line = line->next)
		if (str_eq(json_get(line, "name")->text, name))
			return line;
	return NULL;
}

static int put_hosts(struct buf *out, const struct json *root, const struct json *line)
{
	const struct json *hosts = json_get(line, "hosts"), *groups = json_get(line, "groups");

	for (const struct json *v = groups ? groups->first : NULL; v; v = v->next) {
		const struct json *part = find(root, v->text, line);

		if (part == NULL)
			return fail(v, "no group of this name stands above this line");
		if (put_hosts(out, root, part) < 0)
			return -EINVAL;
	}
	for (const struct json *v = hosts ? hosts->first : NULL; v; v = v->next)
		buf_printf(out, "\"%s\", ", v->text);
	return 0;
}

static int put_c(struct buf *out, const struct json *root)
{
	for (const struct json *line = root->first; line; line = line->next) {
		if (find(root, json_get(line, "name")->text, line))
			return fail(line, "there are two groups of this name");
		buf_printf(out, "static const char *const group_%s[] = { ",
			   json_get(line, "name")->text);
		if (put_hosts(out, root, line) < 0)
			return -EINVAL;
		buf_puts(out, "NULL };\n");
	}
	buf_puts(out, "const struct net_preset net_groups[] = {\n");
	for (const struct json *line = root->first; line; line = line->next) {
		const char *name = json_get(line, "name")->text;

		buf_printf(out, "\t{ \"%s\", \"%s\", group_%s },\n", name,
			   json_get(line, "what")->text, name);
	}
	buf_puts(out, "\t{ NULL, NULL, NULL },\n};\n");
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_(buf_done) struct buf text = BUF(MIB), out = BUF(4 * MIB);
	struct json_doc doc = { 0 };
	struct err e = ERR_INIT;
	int r = argc != 2 ? -EINVAL : io_read_file(argv[1], &text, &e);

	if (r >= 0)
		r = json_parse(buf_cstr(&text), text.n, &doc, &e);
	if (r < 0) {
		(void)fprintf(stderr, "net-groups.json: %s\n", e.msg);
		return 1;
	}
	for (const struct json *line = doc.root->first; r >= 0 && line; line = line->next)
		r = check_line(line);
	if (r >= 0)
		r = put_c(&out, doc.root);
	json_done(&doc);
	if (r < 0)
		return 1;
	(void)fputs(buf_cstr(&out), stdout);
	return 0;
}
