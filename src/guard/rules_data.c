/* SPDX-License-Identifier: Apache-2.0 */
/* guard/rules_data.c - the rules as compiled in; the tables are made by rules_gen.c from rules/ */
#include "guard/rule.h"

#include "rules_data.h"

const struct rules rules_built_in = {
	.rules = rules,
	.n_rules = ARRAY_LEN(rules),
	.safe = safe,
	.n_safe = ARRAY_LEN(safe),
	.syntaxes = syntaxes,
	.n_syntaxes = ARRAY_LEN(syntaxes),
	.index = rule_names,
	.n_index = ARRAY_LEN(rule_names),
	.order = order,
	.secret_names = secret_names,
	.n_secret_names = ARRAY_LEN(secret_names),
	.secret_paths = secret_paths,
	.n_secret_paths = ARRAY_LEN(secret_paths),
	.secret_not = secret_not,
	.n_secret_not = ARRAY_LEN(secret_not),
};
