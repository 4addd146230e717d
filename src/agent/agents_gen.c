/* SPDX-License-Identifier: Apache-2.0 */
/* agent/agents_gen.c - agents/ as C, and as the table in docs/AGENTS.md; runs on the machine that builds
 *
 *     agents_gen --c FILE...            every preset, one behind the other: bytes without a pointer among them
 *     agents_gen --doc PAGE FILE...     PAGE with everything between its two marks made anew
 *
 * A preset that cannot be read fails the build.
 */
#include "agent/preset.h"
#include "base/io.h"
#include "base/page.h"
#include "base/path.h"

#define MAX_FILES 64

struct file {
	struct preset preset;
	struct buf text;
};

static int load(const char *path, struct file *f)
{
	struct err e = ERR_INIT;
	_free_ char *name = mem_str(path_name(path));
	int r;

	f->text = BUF(JSON_MAX_BYTES);
	name[strcspn(name, ".")] = '\0';
	r = io_read_file(path, &f->text, &e);
	if (r >= 0)
		r = preset_parse(name, path, buf_cstr(&f->text), f->text.n, &f->preset, &e);
	if (r < 0)
		(void)fprintf(stderr, "%s\n", e.msg);
	return r;
}

static void put_c(struct buf *out, const struct file *v, size_t n)
{
	buf_puts(out, "static const char agents_data[] =\n");
	for (size_t i = 0; i < n; i++) {
		buf_printf(out, "\t\"%s\\0\"\n\t\"", v[i].preset.name);
		for (const char *s = buf_cstr(&v[i].text); *s; s++)
			if (*s == '\n')
				buf_puts(out, "\\n\"\n\t\"");
			else if (*s == '\t')
				buf_puts(out, "\\t");
			else if (*s == '"' || *s == '\\')
				buf_printf(out, "\\%c", *s);
			else
				buf_putc(out, *s);
		buf_puts(out, "\\0\"\n");
	}
	buf_puts(out, ";\n");
}

static void put_words(struct buf *out, const char *title, const struct json *list)
{
	if (list == NULL || list->first == NULL)
		return;
	buf_printf(out, "| %s |", title);
	for (const struct json *v = list->first; v; v = v->next)
		buf_printf(out, " `%s`", v->key ? v->key : v->text);
	buf_puts(out, " |\n");
}

static void put_command(struct buf *out, const char *title, const struct json *a,
			const struct json *b)
{
	buf_printf(out, "| %s | `", title);
	for (const struct json *v = a->first; v; v = v->next)
		buf_printf(out, "%s%s", v == a->first ? "" : " ", v->text);
	for (const struct json *v = b ? b->first : NULL; v; v = v->next)
		buf_printf(out, " %s", v->text);
	buf_puts(out, "` |\n");
}

static void put_env(struct buf *out, const struct preset *p)
{
	const struct json *env = json_get(p->policy, "env"),
			  *set = env ? json_get(env, "set") : NULL;

	if (set == NULL)
		return;
	buf_puts(out, "| variables |");
	for (const struct json *v = set->first; v; v = v->next)
		buf_printf(out, " `%s=%s`", v->key, v->text);
	buf_puts(out, " |\n");
}

static void put_preset(struct buf *out, const struct preset *p)
{
	const struct json *net = p->policy ? json_get(p->policy, "network") : NULL;

	buf_printf(out, "### %s\n\n%s.\n\n| | |\n|---|---|\n", p->name, p->summary);
	put_command(out, "runs", p->command, p->free);
	if (p->prompt)
		put_command(out, "with a prompt (`loop`)", p->prompt, NULL);
	if (p->begin)
		put_command(out, "with a prompt, on a terminal", p->begin, NULL);
	if (p->install)
		buf_printf(out, "| install | %s%s%s |\n", strchr(p->install, ';') ? "" : "`",
			   p->install, strchr(p->install, ';') ? "" : "`");
	put_words(out, "hosts", net ? json_get(net, "allow") : NULL);
	put_words(out, "but not", net ? json_get(net, "deny") : NULL);
	put_words(out, "secrets, where set", p->secrets);
	if (p->policy)
		put_env(out, p);
	if (p->own_sandbox)
		buf_printf(out, "| its own sandbox is off by | %s |\n", p->own_sandbox);
	put_words(out, "written into an empty home", p->seed);
	put_words(out, "settings in `/etc` inside", p->etc);
	put_words(out, "shown with `--share`", p->share);
	buf_printf(out, "| guard | %s |\n\n",
		   p->hook ? "wired into its hooks" : "it has no hooks that Vitrine speaks");
}

static int put_doc(struct buf *out, const struct file *v, size_t n, const char *page)
{
	_cleanup_(buf_done) struct buf part = BUF(MIB);
	struct err e = ERR_INIT;
	int r;

	for (size_t i = 0; i < n; i++)
		put_preset(&part, &v[i].preset);
	r = page_fill(page, "agents", &part, out, &e);
	if (r < 0)
		(void)fprintf(stderr, "%s\n", e.msg);
	return r;
}

int main(int argc, char **argv)
{
	static struct file files[MAX_FILES];
	_cleanup_(buf_done) struct buf out = BUF(4 * MIB);
	bool is_doc = argc > 2 && str_eq(argv[1], "--doc");
	size_t n = 0;

	for (int i = is_doc ? 3 : 2; i < argc && n < MAX_FILES; i++)
		if (load(argv[i], &files[n++]) < 0)
			return 1;
	if (!is_doc) {
		put_c(&out, files, n);
	} else if (put_doc(&out, files, n, argv[2]) < 0) {
		return 1;
	}
	(void)fputs(buf_cstr(&out), stdout);
	return 0;
}
