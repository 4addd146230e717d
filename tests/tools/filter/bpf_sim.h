/* SPDX-License-Identifier: Apache-2.0 */
/* tests/tools/filter/bpf_sim.h - classic BPF, as seccomp runs it, in user space; tests only */
#ifndef VITRINE_TESTS_FILTER_BPF_SIM_H
#define VITRINE_TESTS_FILTER_BPF_SIM_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/* Bits kept per instruction in the optional `hits`. */
#define SIM_RAN 1
#define SIM_TAKEN 2     /* conditional jump: condition held */
#define SIM_NOT_TAKEN 4 /* conditional jump: condition did not hold */

/* 0, or -1 with a line in `why`: what the kernel's checker would refuse, or an instruction
 * sim_run() lacks. */
int sim_check(const struct sock_filter *insn, size_t n, char *why, size_t size);

/* The program must have passed sim_check(). `hits` has n bytes or is NULL; `*ret_steps` may be
 * NULL. */
uint32_t sim_run(const struct sock_filter *insn, size_t n, const struct seccomp_data *data,
		 uint8_t *hits, size_t *ret_steps);

#endif
