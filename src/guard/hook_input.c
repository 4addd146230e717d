/* SPDX-License-Identifier: Apache-2.0 */
/* guard/hook_input.c - what a tool is given, as things that would be done
 *
 * Shells, file tools, patches, notebook cells and the tools of MCP servers all end in the same few acts: a text that a
 * shell runs, code, a statement for a database, or an effect on a path. The names of an MCP server's tools and fields are
 * its own; the words in them are all there is to go by, so a field that says "command" is taken for one.
 */
#include "guard/hook_input.h"

#define MAX_DEPTH 8

static bool add(struct hook_call *c, enum act_kind kind, enum effect_kind effect, const char *text)
{
	if (text == NULL || text[0] == '\0')
		return true;
	if (c->n_acts == HOOK_MAX_ACTS) {
		c->is_cut = true;
		return false;
	}
	c->acts[c->n_acts++] = (struct tool_act){ kind, effect, text };
	return true;
}

static bool has_word(const char *name, const char *list)
{
	char one[32];

	while (*list) {
		size_t n = strcspn(list, "|");

		if (n < sizeof(one)) {
			memcpy(one, list, n);
			one[n] = '\0';
			if (strcasestr(name, one))
				return true;
		}
		list += n + (list[n] == '|');
	}
	return false;
}

/* By the tool's name. */
static enum effect_kind effect_of(const struct hook_call *c)
{
	if (c->kind == TOOL_READ)
		return EFFECT_READS;
	if (c->kind == TOOL_WRITE)
		return EFFECT_WRITES;
	if (has_word(c->tool, "delete|remove|unlink|trash|rmdir|erase|purge"))
		return EFFECT_REMOVES;
	if (has_word(c->tool, "move|rename"))
		return EFFECT_MOVES;
	if (has_word(c->tool, "write|edit|create|save|append|put|patch|replace|update|insert|copy|"
			      "mkdir"))
		return EFFECT_WRITES;
	return EFFECT_READS;
}

/* Patches: the lines that name files. */
static void add_patch(struct arena *mem, struct hook_call *c, const char *text)
{
	static const struct {
		const char *begin;
		enum effect_kind effect;
	} lines[] = {
		{ "*** Update File: ", EFFECT_WRITES },
		{ "*** Add File: ", EFFECT_WRITES },
		{ "*** Delete File: ", EFFECT_UNLINKS },
		{ "*** Move to: ", EFFECT_WRITES },
		{ "+++ b/", EFFECT_WRITES },
		{ "--- a/", EFFECT_WRITES },
		{ "+++ /", EFFECT_WRITES },
	};

	for (const char *at = text; *at; at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n'))
		for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
			size_t n = strlen(lines[i].begin), end = strcspn(at, "\r\n\t");

			if (end <= n || !str_starts(at, lines[i].begin))
				continue;
			/* "+++ /etc/x": the slash is the path's. */
			n -= i + 1 == ARRAY_LEN(lines);
			if (!add(c, ACT_EFFECT, lines[i].effect, arena_strn(mem, at + n, end - n)))
				return;
		}
}

static const char *quoted(struct arena *mem, const struct json *list)
{
	struct text t = { .mem = mem };

	text_add(&t, "", 0);
	for (const struct json *i = list->first; i; i = i->next) {
		if (i->type != JSON_STRING)
			continue;
		text_putc(&t, '\'');
		for (size_t k = 0; k < i->n; k++)
			if (i->text[k] == '\'')
				text_add(&t, "'\\''", 4);
			else
				text_putc(&t, i->text[k]);
		text_add(&t, "' ", 2);
	}
	return t.p;
}

const char *hook_words(struct arena *mem, const struct json *list)
{
	for (const struct json *i = list->first; i; i = i->next)
		if (i->type != JSON_STRING)
			return NULL;
	return quoted(mem, list);
}

/* Not a question in words. */
static bool is_statement(const char *s)
{
	static const char *const begins[] = { "drop ", "truncate ", "delete ", "update ", "alter ",
					      "with ", "begin",     "create ", "insert ", "select ",
					      "db.",   "--",        "/*",      "flush",   "{" };

	s += strspn(s, " \t\r\n(");
	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		if (strncasecmp(s, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static const char shells[] = "command|cmd|script|shell|bash|commandline|command_line|shell_"
			     "command|cmdline";

/* Keys are compared in lower case: servers spell them as they like. */
static const char *lowered(struct arena *mem, const char *key)
{
	char *lower = arena_strn(mem, key, strlen(key));

	for (char *s = lower; *s; s++)
		if (*s >= 'A' && *s <= 'Z')
			*s = (char)(*s + 32);
	return lower;
}

/* The member whose key, in lower case, is in the list. */
static const struct json *member(struct arena *mem, const struct json *v, const char *keys)
{
	for (const struct json *i = v->first; i; i = i->next)
		if (rules_list_has(keys, lowered(mem, i->key)))
			return i;
	return NULL;
}

static void add_text(struct arena *mem, struct hook_call *c, const char *key, const char *text)
{
	static const char codes[] = "code|new_source|python|javascript|expression|program|snippet";
	static const char paths[] = "path|file|file_path|filepath|filename|uri|notebook_path|"
				    "absolute_path|paths|files|"
				    "source|src|from|old_path|oldpath|directory|dir|file_name|"
				    "target_file";
	static const char targets[] = "destination|dest|to|target|new_path|newpath|output|output_"
				      "path|outputpath";
	const char *lower = lowered(mem, key);

	if (rules_list_has(shells, lower))
		(void)add(c, ACT_SHELL, 0, text);
	else if (rules_list_has(codes, lower))
		(void)add(c, ACT_CODE, 0, text);
	else if (rules_list_has("sql|query|statement|queries", lower) && is_statement(text))
		(void)add(c, ACT_SQL, 0, text);
	else if (rules_list_has("patch|patchtext|diff|input", lower))
		add_patch(mem, c, text);
	else if (rules_list_has(paths, lower))
		(void)add(c, ACT_EFFECT, effect_of(c),
			  str_starts(text, "file://") ? text + 7 : text);
	else if (rules_list_has(targets, lower))
		(void)add(c, ACT_EFFECT, EFFECT_WRITES, text);
}

static void add_value(struct arena *mem, struct hook_call *c, const char *key, const struct json *v,
		      unsigned depth)
{
	if (depth > MAX_DEPTH) {
		c->is_cut = true;
		return;
	}
	if (v->type == JSON_STRING) {
		add_text(mem, c, key, arena_strn(mem, v->text, v->n));
		return;
	}
	if (v->type != JSON_OBJECT && v->type != JSON_ARRAY)
		return;
	/* {"command": "rm", "args": ["-rf", "x"]} */
	if (v->type == JSON_OBJECT) {
		const struct json *command = member(mem, v, "command|cmd|program|executable"),
				  *args = member(mem, v, "args|arguments|argv|params");

		if (command && command->type == JSON_STRING && args && args->type == JSON_ARRAY)
			(void)add(c, ACT_SHELL, 0,
				  arena_fmt(mem, "%s %s", command->text, quoted(mem, args)));
	}
	if (v->type == JSON_ARRAY &&
	    (rules_list_has(shells, lowered(mem, key)) || str_eq(lowered(mem, key), "argv"))) {
		(void)add(c, ACT_SHELL, 0, quoted(mem, v));
		return;
	}
	for (const struct json *i = v->first; i; i = i->next)
		add_value(mem, c, i->key ? i->key : key, i, depth + 1);
}

void hook_acts(struct arena *mem, const struct json *input, struct hook_call *c)
{
	if (input->type == JSON_OBJECT || input->type == JSON_ARRAY)
		add_value(mem, c, "", input, 0);
	else if (input->type == JSON_STRING)
		add_patch(mem, c, arena_strn(mem, input->text, input->n));
}
