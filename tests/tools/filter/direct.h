/* SPDX-License-Identifier: Apache-2.0 */
/* tests/tools/filter/direct.h - what syscalls.def means, said a second time and plainly; tests only */
#ifndef VITRINE_TESTS_FILTER_DIRECT_H
#define VITRINE_TESTS_FILTER_DIRECT_H

#include <linux/seccomp.h>
#include <stdint.h>

#include "sys/filter/emit.h"

/* The action the filter must take, found by walking the table. */
uint32_t direct_eval(const struct family *f, const struct variant *v,
		     const struct seccomp_data *data);

/* The row of a number, or NULL. */
const struct sys_row *direct_row(const struct abi *abi, uint32_t nr);

#endif
