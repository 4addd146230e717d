/* SPDX-License-Identifier: Apache-2.0 */
/* broker/config.c - what the keeper tells a broker: lines, as plan/tools.c and keep/broker.c write them */
#include "broker/broker.h"

static void add_closed(struct broker *b, const char *path)
{
	b->closed = mem_grow(b->closed, b->n_closed + 2, sizeof(*b->closed));
	b->closed[b->n_closed++] = mem_str(path);
	b->closed[b->n_closed] = NULL;
}

static int take_line(struct broker *b, const char *line, struct err *e)
{
	static const char words[][10] = { "fetch ", "push ", "gh ", "command " };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_starts(line, words[i]))
			return broker_rules_add(&b->rules, (enum broker_kind)i,
						line + strlen(words[i]), e);
	if (str_starts(line, "name ") && b->name == NULL)
		b->name = mem_str(line + 5);
	else if (str_starts(line, "state ") && b->state_dir == NULL)
		b->state_dir = mem_str(line + 6);
	else if (str_starts(line, "vitrine ") && b->vitrine == NULL)
		b->vitrine = mem_str(line + 8);
	else if (str_starts(line, "write "))
		add_closed(b, line + 6);
	else
		return err_set(e, ERR_BUG, EINVAL, "the broker was told '%.40s'", line);
	return 0;
}

int broker_config(struct broker *b, const char *text, struct err *e)
{
	int r = 0;

	while (r == 0 && *text) {
		size_t n = strcspn(text, "\n");
		_free_ char *line = mem_strn(text, n);

		r = n ? take_line(b, line, e) : 0;
		text += n + (text[n] == '\n');
	}
	if (r == 0 && (b->name == NULL || b->state_dir == NULL || b->vitrine == NULL))
		r = err_set(e, ERR_BUG, EINVAL, "the broker was not told where it is");
	if (r == 0)
		b->dir = mem_fmt("%s/sandboxes/%s/broker", b->state_dir, b->name);
	return r;
}
