/* SPDX-License-Identifier: Apache-2.0 */
/* seal/login_fuzz.c - any bytes as the answer of a token endpoint: what goes inside is as long and holds no token */
#include "seal/terms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char rules[] = "{\"logins\":[{\"name\":\"l\",\"hosts\":[\"h\"],\"endpoints\":[\"h/"
			    "t\"],"
			    "\"tokens\":[\"access_token\",\"refresh_token\"],\"closed\":[],"
			    "\"pages\":[],\"marks\":[\"sk-ant-\"],\"texts\":[]}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(buf_done) struct buf text = BUF(LOGIN_ANSWER_MAX);
	struct terms *r = terms_new();
	struct err e = ERR_INIT;
	int n;

	bug_on(terms_parse(r, rules, sizeof(rules) - 1, &e) < 0);
	buf_add(&text, data, size);
	size = text.n;
	n = login_take(&r->logins, &r->logins.v[0], &r->vault, size % 2, &text, &e);
	bug_on(text.n != size);
	for (size_t i = 0; n > 0 && i < r->vault.n; i++)
		bug_on(memmem(text.p, text.n, r->vault.v[i].value, r->vault.v[i].n) != NULL &&
		       memmem(r->vault.v[i].placeholder, r->vault.v[i].n, r->vault.v[i].value,
			      r->vault.v[i].n) == NULL);
	terms_unref(r);
	return 0;
}
