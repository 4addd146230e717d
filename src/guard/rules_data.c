/* SPDX-License-Identifier: Apache-2.0 */
/* guard/rules_data.c - the rules as compiled in; the tables are made by rules_gen.c from rules/
 *
 * A program that may lie anywhere in memory has each pointer in its tables set right whenever it starts, and most starts
 * judge no command. So the compiled tables hold offsets into one text, and the structs with pointers are made from them
 * when the rules are first asked for.
 */
#include "guard/rule.h"

struct rule_row {
	uint32_t id;
	uint32_t program, no_program, sub, option[RULE_OPTIONS], no_option, arg, no_arg, no_value,
		env, via, no_via, target, source;
	uint32_t finding;
	uint32_t effect, at, no_at;
	uint32_t say;
	uint8_t args, verdict, intent;
};

struct syntax_row {
	uint32_t name, values, does;
	bool has_sub, single_dash;
};

struct index_row {
	uint32_t name;
	uint16_t first, n;
};

#include "rules_data.h"

static const char *text(uint32_t at)
{
	return at ? rule_texts + at : NULL;
}

static void make_rules(struct rule *to, const struct rule_row *from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct rule_row *r = &from[i];

		to[i] = (struct rule){
			.id = text(r->id),
			.program = text(r->program),
			.no_program = text(r->no_program),
			.sub = text(r->sub),
			.no_option = text(r->no_option),
			.arg = text(r->arg),
			.no_arg = text(r->no_arg),
			.no_value = text(r->no_value),
			.env = text(r->env),
			.via = text(r->via),
			.no_via = text(r->no_via),
			.target = text(r->target),
			.source = text(r->source),
			.finding = text(r->finding),
			.effect = text(r->effect),
			.at = text(r->at),
			.no_at = text(r->no_at),
			.say = text(r->say),
			.args = r->args,
			.verdict = r->verdict,
			.intent = r->intent,
		};
		for (size_t k = 0; k < RULE_OPTIONS; k++)
			to[i].option[k] = text(r->option[k]);
	}
}

const struct rules *rules_built_in(void)
{
	static struct rule rules[ARRAY_LEN(rules_rows)], safe[ARRAY_LEN(safe_rows)];
	static struct syntax syntaxes[ARRAY_LEN(syntax_rows)];
	static struct rule_index index[ARRAY_LEN(index_rows)];
	static const char *patterns[ARRAY_LEN(pattern_rows)];
	static struct rules all;

	if (all.rules)
		return &all;
	make_rules(rules, rules_rows, ARRAY_LEN(rules));
	make_rules(safe, safe_rows, ARRAY_LEN(safe));
	for (size_t i = 0; i < ARRAY_LEN(syntaxes); i++)
		syntaxes[i] = (struct syntax){ .name = text(syntax_rows[i].name),
					       .values = text(syntax_rows[i].values),
					       .does = text(syntax_rows[i].does),
					       .has_sub = syntax_rows[i].has_sub,
					       .single_dash = syntax_rows[i].single_dash };
	for (size_t i = 0; i < ARRAY_LEN(index); i++)
		index[i] = (struct rule_index){ text(index_rows[i].name), index_rows[i].first,
						index_rows[i].n };
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		patterns[i] = text(pattern_rows[i]);
	all = (struct rules){
		.rules = rules,
		.n_rules = ARRAY_LEN(rules),
		.safe = safe,
		.n_safe = ARRAY_LEN(safe),
		.syntaxes = syntaxes,
		.n_syntaxes = ARRAY_LEN(syntaxes),
		.index = index,
		.n_index = ARRAY_LEN(index),
		.order = order,
	};
	for (size_t i = 0, at = 0; i < PATTERNS_COUNT_; at += pattern_counts[i++])
		all.lists[i] = (struct patterns){ patterns + at, pattern_counts[i] };
	return &all;
}
