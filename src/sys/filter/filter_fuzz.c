/* SPDX-License-Identifier: Apache-2.0 */
/* sys/filter/filter_fuzz.c - any call, any arguments: program and table agree
 *
 * The first byte picks family, variant, convention and whether the number is one the table knows,
 * so that the fuzzer need not find 300 numbers by chance; the rest is a struct seccomp_data.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/filter/emit.h"
#include "tests/tools/filter/bpf_sim.h"
#include "tests/tools/filter/direct.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

#define FAMILIES 2
#define VARIANTS 8

static const struct emit_prog *program(size_t family, size_t variant)
{
	static struct emit_prog prog[FAMILIES][VARIANTS];
	static bool is_made[FAMILIES][VARIANTS];
	char why[256];

	if (!is_made[family][variant]) {
		struct emit_prog *p = &prog[family][variant];

		if (emit_filter(&families[family], &variants[variant], p, why, sizeof(why)) < 0 ||
		    sim_check(p->insn, p->n, why, sizeof(why)) < 0) {
			(void)fprintf(stderr, "%s\n", why);
			abort();
		}
		is_made[family][variant] = true;
	}
	return &prog[family][variant];
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct seccomp_data data = { 0 };
	const struct family *f;
	size_t family, variant;
	uint32_t got, want;

	if (n < 1)
		return 0;
	family = bytes[0] % FAMILIES % family_count;
	variant = (bytes[0] >> 1) % VARIANTS % variant_count;
	f = &families[family];
	n = n - 1 < sizeof(data) ? n - 1 : sizeof(data);
	memcpy(&data, bytes + 1, n);
	if (bytes[0] & 0x08)
		data.arch = bytes[0] & 0x10 ? f->native.audit_arch : f->compat.audit_arch;
	if (bytes[0] & 0x20)
		data.nr = (int)((uint32_t)data.nr % 512);
	if (bytes[0] & 0x40)
		for (int i = 0; i < 6; i++)
			data.args[i] = (uint16_t)data.args[i];

	got = sim_run(program(family, variant)->insn, program(family, variant)->n, &data, NULL,
		      NULL);
	want = direct_eval(f, &variants[variant], &data);
	if (got != want) {
		(void)fprintf(stderr, "%s %s arch %x nr %d: program %x, table %x\n", f->name,
			      variants[variant].name, data.arch, data.nr, got, want);
		abort();
	}
	return 0;
}
