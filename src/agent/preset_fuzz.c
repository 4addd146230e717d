/* SPDX-License-Identifier: Apache-2.0 */
/* agent/preset_fuzz.c - a preset's text, whatever it holds: read, merged and made into commands and seeds */
#include "agent/preset.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char word[] = "--dsp";
	char *words[] = { word, NULL };
	const char **argv = NULL;
	struct policy policy;
	struct preset p = { 0 };
	struct err e = ERR_INIT;

	if (preset_parse("x", "x.json", (const char *)data, n, &p, &e) < 0)
		return 0;
	policy_init(&policy);
	(void)preset_apply(&p, &policy, &e);
	policy_done(&policy);
	free(preset_command(&p, words));
	if (preset_prompt(&p, "do", &argv, &e) == 0)
		free(argv);
	for (const struct json *v = p.seed ? p.seed->first : NULL; v; v = v->next) {
		_cleanup_(buf_done) struct buf b = BUF(MIB);

		preset_seed_text(v, &(struct preset_fill){ .workspace = "/w" }, &b);
	}
	preset_done(&p);
	return 0;
}
