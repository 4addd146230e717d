/* SPDX-License-Identifier: Apache-2.0 */
/* tests/tools/filter/bpf_sim.c - classic BPF, as seccomp runs it, in user space
 *
 * Knows only the instructions our emitter uses; any other is an error of sim_check(), not a guess.
 * Programs have no backward jumps, so a run ends after at most n steps.
 */
#include "tests/tools/filter/bpf_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *check_one(const struct sock_filter *in, size_t left)
{
	switch (in->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		if (in->k % 4 != 0 || in->k > sizeof(struct seccomp_data) - 4)
			return "load outside seccomp_data";
		break;
	case BPF_ALU | BPF_AND | BPF_K:
		break;
	case BPF_RET | BPF_K:
		return NULL;
	case BPF_JMP | BPF_JA:
		return in->k < left ? NULL : "jump past the end";
	case BPF_JMP | BPF_JEQ | BPF_K:
	case BPF_JMP | BPF_JGE | BPF_K:
	case BPF_JMP | BPF_JSET | BPF_K:
		return in->jt < left && in->jf < left ? NULL : "jump past the end";
	default:
		return "unknown instruction";
	}
	return left > 0 ? NULL : "falls off the end";
}

int sim_check(const struct sock_filter *insn, size_t n, char *why, size_t size)
{
	if (n == 0 || n > BPF_MAXINSNS) {
		(void)snprintf(why, size, "length %zu", n);
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		const char *text = check_one(&insn[i], n - i - 1);

		if (text != NULL) {
			(void)snprintf(why, size, "instruction %zu: %s", i, text);
			return -1;
		}
	}
	return 0;
}

static uint32_t load(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word;

	memcpy(&word, (const char *)data + offset, sizeof(word));
	return word;
}

uint32_t sim_run(const struct sock_filter *insn, size_t n, const struct seccomp_data *data,
		 uint8_t *hits, size_t *ret_steps)
{
	uint32_t acc = 0;
	size_t steps = 0;

	for (size_t pc = 0; pc < n; pc++) {
		const struct sock_filter *in = &insn[pc];
		size_t at = pc;
		int is_true = 0;

		steps++;
		if (hits != NULL)
			hits[at] |= SIM_RAN;
		switch (in->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			acc = load(data, in->k);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			acc &= in->k;
			continue;
		case BPF_RET | BPF_K:
			if (ret_steps != NULL)
				*ret_steps = steps;
			return in->k;
		case BPF_JMP | BPF_JA:
			pc += in->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			is_true = acc == in->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			is_true = acc >= in->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			is_true = (acc & in->k) != 0;
			break;
		default:
			abort(); /* sim_check() was not asked */
		}
		pc += is_true ? in->jt : in->jf;
		if (hits != NULL)
			hits[at] |= is_true ? SIM_TAKEN : SIM_NOT_TAKEN;
	}
	abort(); /* the same */
}
