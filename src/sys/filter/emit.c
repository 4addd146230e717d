/* SPDX-License-Identifier: Apache-2.0 */
/* sys/filter/emit.c - from the table to a classic BPF program
 *
 *      arch? -- native --> tree over numbers --+--> allow / EPERM / ENOSYS
 *        |                                     +--> argument checks --> allow / errno
 *        +----- 32-bit --> its own tree -------+    (shared: arguments lie alike in both)
 *        +----- other ---> kill
 *
 * A tree is a binary search over runs of numbers with one outcome, so a call costs about seven
 * comparisons, and the kernel, which runs the filter once for each number when it is installed to
 * find those always allowed, is done soon. That search for constant answers follows loads of arch
 * and number, AND and plain jumps only: the trees use nothing else, and calls allowed without a
 * look at arguments therefore never run the filter at all.
 *
 * Numbers are compared as unsigned 32-bit words. x32 calls (bit 30) and -1 lie beyond the last row
 * and get ENOSYS.
 *
 * Arguments arrive as 64-bit words, but the kernel looks at 32 (16 for modes) bits of those checked
 * here. Each check loads exactly the half the kernel uses, so bits above cannot make a refused
 * value look different. The exception is unshare(), whose flags are a long: there the upper half
 * must be zero.
 *
 * Jumps go forward only and a conditional one reaches 255 instructions. The assembler below takes
 * labels and widens jumps that fall short with an unconditional jump right behind them, until all
 * fit.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "sys/filter/emit.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "argument offsets are written for little-endian machines"
#endif

#define ARG_LO(i) ((uint32_t)(offsetof(struct seccomp_data, args) + sizeof(__u64) * (i)))
#define ARG_HI(i) (ARG_LO(i) + 4)
#define REFUSE(e) (SECCOMP_RET_ERRNO | (uint32_t)(e))

/* Modes are 16 bits wide for the kernel; these are two of them. */
#define SET_ID_BITS ((uint32_t)(S_ISUID | S_ISGID))
/* O_CREAT and __O_TMPFILE as the kernel knows them, which on all our machines is the same: O_TMPFILE of the C library also
 * names O_DIRECTORY, without which the kernel refuses the call. */
#define CREATING_FLAGS ((uint32_t)(00000100 | 020000000))

#define SOCK_TYPE_BITS                                                                             \
	0xfU /* SOCK_TYPE_MASK of the kernel; above are SOCK_CLOEXEC and SOCK_NONBLOCK */

/* Every CLONE_NEW* bit legacy clone() knows. CLONE_NEWTIME is not among them: its bit is part of
 * the exit signal. */
#define CLONE_NEW_BITS                                                                             \
	((uint32_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |  \
		    CLONE_NEWPID | CLONE_NEWNET))
/* What unshare() may be asked for: a list of the harmless, so that a namespace yet to be invented
 * is refused. */
#define UNSHARE_BITS                                                                               \
	((uint32_t)(CLONE_FILES | CLONE_FS | CLONE_SYSVSEM | CLONE_THREAD | CLONE_SIGHAND |        \
		    CLONE_VM))

const struct family families[] = {
	{ .name = "x86_64",
	  .native = { "x86_64", AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64 },
	  .compat = { "i386", AUDIT_ARCH_I386, SCMP_ARCH_X86 } },
	{ .name = "aarch64",
	  .native = { "aarch64", AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64 },
	  .compat = { "arm", AUDIT_ARCH_ARM, SCMP_ARCH_ARM } },
};
const size_t family_count = sizeof(families) / sizeof(families[0]);

const struct variant variants[] = {
	{ .name = "filter_base" },
	{ .name = "filter_debug", .has_debug = true },
	{ .name = "filter_root", .has_setuid = true },
	{ .name = "filter_base_notice", .has_notice = true },
	{ .name = "filter_debug_notice", .has_debug = true, .has_notice = true },
	{ .name = "filter_noarch", .macro = "VITRINE_SABOTAGE", .is_any_compat = true },
	{ .name = "filter_noargs", .macro = "VITRINE_SABOTAGE", .is_any_args = true },
};
const size_t variant_count = sizeof(variants) / sizeof(variants[0]);

const struct family *family_find(const char *name)
{
	for (size_t i = 0; i < family_count; i++)
		if (strcmp(families[i].name, name) == 0)
			return &families[i];
	return NULL;
}

/* ---- assembler ---- */

#define NEXT (-1)
#define LABEL_MAX 2048

struct insn {
	uint16_t code;
	uint32_t k;
	int jt, jf; /* labels, or NEXT; jt alone for BPF_JA */
	bool is_far_t, is_far_f;
};

struct as {
	struct insn insn[EMIT_MAX];
	size_t n;
	size_t label[LABEL_MAX]; /* index of the instruction a label stands before */
	int n_label;
	bool is_full;
};

static int as_label(struct as *a)
{
	if (a->n_label == LABEL_MAX) {
		a->is_full = true;
		return 0;
	}
	return a->n_label++;
}

static void as_place(struct as *a, int label)
{
	a->label[label] = a->n;
}

static void as_put(struct as *a, uint16_t code, uint32_t k, int jt, int jf)
{
	if (a->n == EMIT_MAX) {
		a->is_full = true;
		return;
	}
	a->insn[a->n++] = (struct insn){ .code = code, .k = k, .jt = jt, .jf = jf };
}

static void as_load(struct as *a, uint32_t offset)
{
	as_put(a, BPF_LD | BPF_W | BPF_ABS, offset, NEXT, NEXT);
}

static void as_and(struct as *a, uint32_t mask)
{
	as_put(a, BPF_ALU | BPF_AND | BPF_K, mask, NEXT, NEXT);
}

static void as_ret(struct as *a, uint32_t action)
{
	as_put(a, BPF_RET | BPF_K, action, NEXT, NEXT);
}

static void as_goto(struct as *a, int label)
{
	as_put(a, BPF_JMP | BPF_JA, 0, label, NEXT);
}

/* `op` is BPF_JEQ, BPF_JGE or BPF_JSET. */
static void as_if(struct as *a, uint16_t op, uint32_t k, int yes, int no)
{
	as_put(a, (uint16_t)(BPF_JMP | op | BPF_K), k, yes, no);
}

static bool is_cond(const struct insn *i)
{
	return BPF_CLASS(i->code) == BPF_JMP && BPF_OP(i->code) != BPF_JA;
}

/* Instructions that `i` takes in the finished program. */
static size_t as_size(const struct insn *i)
{
	return 1U + (i->is_far_t ? 1U : 0U) + (i->is_far_f ? 1U : 0U);
}

/* Distance from the instruction after `pos` to `label`; `pos` of the finished program, end = after
 * the group. */
static size_t as_dist(const struct as *a, const size_t *at, int label, size_t pos, size_t end)
{
	size_t to = label == NEXT ? end : at[a->label[label]];

	return to - (pos + 1);
}

/* Places everything and marks jumps that do not reach. True if a mark was added and places are
 * stale. */
static bool as_widen(struct as *a, size_t *at)
{
	bool is_changed = false;
	size_t pos = 0;

	for (size_t i = 0; i < a->n; i++) {
		at[i] = pos;
		pos += as_size(&a->insn[i]);
	}
	at[a->n] = pos;
	for (size_t i = 0; i < a->n; i++) {
		struct insn *in = &a->insn[i];

		if (!is_cond(in))
			continue;
		if (!in->is_far_t && as_dist(a, at, in->jt, at[i], at[i + 1]) > UINT8_MAX)
			in->is_far_t = is_changed = true;
		if (!in->is_far_f && as_dist(a, at, in->jf, at[i], at[i + 1]) > UINT8_MAX)
			in->is_far_f = is_changed = true;
	}
	return is_changed;
}

static void as_write(const struct as *a, const size_t *at, size_t i, struct sock_filter *out)
{
	const struct insn *in = &a->insn[i];
	size_t pos = at[i], end = at[i + 1];

	*out = (struct sock_filter){ .code = in->code, .k = in->k };
	if (!is_cond(in)) {
		if (in->code == (BPF_JMP | BPF_JA))
			out->k = (uint32_t)as_dist(a, at, in->jt, pos, end);
		return;
	}
	out->jt = in->is_far_t ? 0 : (uint8_t)as_dist(a, at, in->jt, pos, end);
	out->jf = in->is_far_f ? (in->is_far_t ? 1 : 0) : (uint8_t)as_dist(a, at, in->jf, pos, end);
	for (int side = 0; side < 2; side++) {
		if (!(side == 0 ? in->is_far_t : in->is_far_f))
			continue;
		out++;
		pos++;
		*out = (struct sock_filter){
			.code = BPF_JMP | BPF_JA,
			.k = (uint32_t)as_dist(a, at, side == 0 ? in->jt : in->jf, pos, end),
		};
	}
}

/* Drops what nothing leads to: a check whose call exists in neither convention, or is switched off
 * by the variant. */
static void as_prune(struct as *a)
{
	static bool is_live[EMIT_MAX + 1];
	static size_t moved[EMIT_MAX + 1];
	size_t n = 0;

	for (size_t i = 0; i <= a->n; i++)
		is_live[i] = i == 0;
	for (size_t i = 0; i < a->n; i++) {
		const struct insn *in = &a->insn[i];

		if (!is_live[i] || BPF_CLASS(in->code) == BPF_RET)
			continue;
		is_live[in->jt == NEXT ? i + 1 : a->label[in->jt]] = true;
		if (in->code != (BPF_JMP | BPF_JA))
			is_live[in->jf == NEXT ? i + 1 : a->label[in->jf]] = true;
	}
	for (size_t i = 0; i < a->n; i++) {
		moved[i] = n;
		if (is_live[i])
			a->insn[n++] = a->insn[i];
	}
	moved[a->n] = n;
	for (int i = 0; i < a->n_label; i++)
		a->label[i] = moved[a->label[i]];
	a->n = n;
}

static int as_finish(struct as *a, struct emit_prog *ret_prog, char *why, size_t size)
{
	static size_t at[EMIT_MAX + 1];

	if (a->is_full) {
		(void)snprintf(why, size, "more than %d instructions or %d labels", EMIT_MAX,
			       LABEL_MAX);
		return -1;
	}
	as_prune(a);
	while (as_widen(a, at))
		continue;
	if (at[a->n] > EMIT_MAX) {
		(void)snprintf(why, size, "%zu instructions, the kernel takes %d", at[a->n],
			       EMIT_MAX);
		return -1;
	}
	for (size_t i = 0; i < a->n; i++)
		as_write(a, at, i, &ret_prog->insn[at[i]]);
	ret_prog->n = at[a->n];
	return 0;
}

/* ---- search tree ---- */

/* One comparison sets a single value apart from the same outcome on both its sides. */
static bool is_hole(const struct range *r, size_t n)
{
	return n == 3 && r[0].leaf == r[2].leaf && r[1].lo == r[1].hi;
}

/* Comparisons the tree over r[0..n) will take if it is split in the middle all the way down. */
static size_t tree_size(const struct range *r, size_t n)
{
	if (n == 1)
		return 0;
	if (is_hole(r, n))
		return 1;
	return 1 + tree_size(r, n / 2) + tree_size(r + n / 2, n - n / 2);
}

/* Near the middle, where the halves come out smallest: keeps holes together. */
static size_t tree_split(const struct range *r, size_t n)
{
	size_t best = n / 2, best_size = SIZE_MAX;

	for (size_t m = n / 2 > 1 ? n / 2 - 1 : 1; m <= n / 2 + 1 && m < n; m++) {
		size_t s = tree_size(r, m) + tree_size(r + m, n - m);

		if (s < best_size) {
			best = m;
			best_size = s;
		}
	}
	return best;
}

/* The value is in the accumulator; label[leaf] is where an outcome is handled. n > 1. */
static void tree_put(struct as *a, const struct range *r, size_t n, const int *label)
{
	size_t m;
	int right;

	if (is_hole(r, n)) {
		as_if(a, BPF_JEQ, r[1].lo, label[r[1].leaf], label[r[0].leaf]);
		return;
	}
	m = tree_split(r, n);
	right = n - m == 1 ? label[r[m].leaf] : as_label(a);
	as_if(a, BPF_JGE, r[m].lo, right, m == 1 ? label[r[0].leaf] : NEXT);
	if (m > 1)
		tree_put(a, r, m, label);
	if (n - m > 1) {
		as_place(a, right);
		tree_put(a, r + m, n - m, label);
	}
}

static void tree(struct as *a, const struct range *r, size_t n, const int *label)
{
	if (n == 1)
		as_goto(a, label[r[0].leaf]);
	else
		tree_put(a, r, n, label);
}

/* ---- ranges ---- */

#define RANGE_MAX 1024

struct ranges {
	struct range r[RANGE_MAX];
	size_t n;
};

static void ranges_add(struct ranges *rs, uint32_t lo, uint32_t hi, int leaf)
{
	struct range *last = rs->n > 0 ? &rs->r[rs->n - 1] : NULL;

	if (last != NULL && last->leaf == leaf && last->hi + 1 == lo) {
		last->hi = hi;
		return;
	}
	if (rs->n == RANGE_MAX)
		abort(); /* more rows than any table of ours; a build-time tool may stop here */
	rs->r[rs->n++] = (struct range){ lo, hi, leaf };
}

static int range_cmp(const void *va, const void *vb)
{
	const struct range *a = va, *b = vb;

	return a->lo < b->lo ? -1 : a->lo > b->lo;
}

/* Sorted single entries to a gapless cover of all words, `rest` in between. */
static void ranges_cover(const struct ranges *in, int rest, struct ranges *out)
{
	uint32_t next = 0;

	out->n = 0;
	for (size_t i = 0; i < in->n; i++) {
		if (in->r[i].lo > next)
			ranges_add(out, next, in->r[i].lo - 1, rest);
		ranges_add(out, in->r[i].lo, in->r[i].hi, in->r[i].leaf);
		next = in->r[i].hi + 1;
	}
	if (next != 0 || in->n == 0) /* 0: the last entry ended at UINT32_MAX */
		ranges_add(out, next, UINT32_MAX, rest);
}

/* ---- the filter ---- */

struct build {
	const struct variant *v;
	struct as as;
	int check[RULE_COUNT_];                                  /* labels of the argument checks */
	int allow, notice, eperm, eafnosupport, eprotonosupport; /* labels of their returns */
};

int emit_resolve(const struct sys_row *row, const struct abi *abi, uint32_t *ret_nr)
{
	int nr = seccomp_syscall_resolve_name_arch(abi->scmp_arch, row->name);
	bool is_lib = row->source == NR_FROM_LIB || row->source == NR_FROM_I386;
	bool is_given = row->source == NR_FROM_COMMON ||
			(row->source == NR_FROM_X86_64 && abi->audit_arch == AUDIT_ARCH_X86_64) ||
			(row->source == NR_FROM_I386 && abi->audit_arch == AUDIT_ARCH_I386);

	if (nr == __NR_SCMP_ERROR && is_lib)
		return -1;
	if (nr >= 0 && !is_lib && !is_given)
		return -1;
	if (nr >= 0 && is_given && (uint32_t)nr != row->nr)
		return -1;
	if (nr < 0 && !is_given)
		return 0;
	*ret_nr = nr >= 0 ? (uint32_t)nr : row->nr;
	return 1;
}

static int check_rows(const struct abi *abi, char *why, size_t size)
{
	struct ranges seen = { 0 };

	for (size_t i = 0; i < sys_row_count; i++) {
		const struct sys_row *row = &sys_rows[i];
		uint32_t nr;
		int r;

		if (row->name == NULL)
			continue;
		r = emit_resolve(row, abi, &nr);
		if (r < 0) {
			(void)snprintf(why, size, "%s: unknown, or another number, on %s",
				       row->name, abi->name);
			return -1;
		}
		for (size_t j = 0; r > 0 && j < seen.n; j++)
			if (seen.r[j].lo == nr) {
				(void)snprintf(why, size, "%s and %s are both %u on %s", row->name,
					       sys_rows[seen.r[j].leaf].name, nr, abi->name);
				return -1;
			}
		if (r > 0)
			seen.r[seen.n++] = (struct range){ nr, nr, (int)i };
		if (seen.n == RANGE_MAX) {
			(void)snprintf(why, size, "more than %d rows", RANGE_MAX - 1);
			return -1;
		}
	}
	return 0;
}

static int check_names(char *why, size_t size)
{
	for (size_t i = 0; i < sys_row_count; i++)
		for (size_t j = 0; sys_rows[i].name != NULL && j < i; j++)
			if (sys_rows[j].name != NULL &&
			    strcmp(sys_rows[i].name, sys_rows[j].name) == 0) {
				(void)snprintf(why, size, "%s: listed twice", sys_rows[i].name);
				return -1;
			}
	return 0;
}

static int check_ioctls(char *why, size_t size)
{
	for (size_t i = 0; i < ioctl_row_count; i++) {
		const struct ioctl_row *row = &ioctl_rows[i];
		bool is_bad =
			row->lo > row->hi || (row->rule != RULE_ALLOW && row->rule != RULE_EPERM);

		for (size_t j = 0; j < i; j++)
			is_bad |= row->lo <= ioctl_rows[j].hi && ioctl_rows[j].lo <= row->hi;
		if (is_bad) {
			(void)snprintf(why, size, "ioctl %s: overlaps another, or ill-formed",
				       row->name);
			return -1;
		}
	}
	return 0;
}

int emit_check(char *why, size_t size)
{
	for (size_t i = 0; i < family_count; i++)
		if (check_rows(&families[i].native, why, size) < 0 ||
		    check_rows(&families[i].compat, why, size) < 0)
			return -1;
	if (check_names(why, size) < 0)
		return -1;
	return check_ioctls(why, size);
}

/* The rule as this variant applies it. */
static enum rule effective(const struct variant *v, enum rule rule)
{
	if (rule == RULE_DEBUG)
		return v->has_debug ? RULE_ALLOW : RULE_EPERM;
	if (v->is_any_args && rule >= RULE_FIRST_CHECK)
		return RULE_ALLOW;
	if (!v->has_notice && rule >= RULE_FIRST_NOTICE)
		return RULE_ALLOW;
	return rule;
}

/* The one call of those with a notice that programs make all the time: its number is not looked for in the tree, which
 * would make each of them slower by a percent. */
static uint32_t openat_of(const struct abi *abi)
{
	uint32_t nr = 0;

	for (size_t i = 0; i < sys_row_count; i++)
		if (sys_rows[i].name != NULL && sys_rows[i].rule == RULE_OPENAT &&
		    emit_resolve(&sys_rows[i], abi, &nr) > 0)
			return nr;
	abort(); /* every machine has it */
}

static void put_openat_first(struct build *b, const struct abi *abi)
{
	int others = as_label(&b->as), is_plain = as_label(&b->as), is_new = as_label(&b->as);

	as_load(&b->as, offsetof(struct seccomp_data, nr));
	as_if(&b->as, BPF_JEQ, openat_of(abi), NEXT, others);
	as_load(&b->as, ARG_LO(2));
	as_if(&b->as, BPF_JSET, CREATING_FLAGS, is_new, is_plain);
	as_place(&b->as, is_new);
	as_load(&b->as, ARG_LO(3));
	as_if(&b->as, BPF_JSET, SET_ID_BITS, NEXT, is_plain);
	as_ret(&b->as, SECCOMP_RET_USER_NOTIF);
	as_place(&b->as, is_plain);
	as_ret(&b->as, SECCOMP_RET_ALLOW);
	as_place(&b->as, others);
}

/* Search tree of one convention, followed by its outcomes, so that every jump of the tree is short.
 *  */
static void put_abi(struct build *b, const struct abi *abi)
{
	static struct ranges one, all;
	int label[RULE_COUNT_];
	bool is_used[RULE_COUNT_] = { false };

	one.n = 0;
	if (b->v->has_notice)
		put_openat_first(b, abi);
	for (size_t i = 0; i < sys_row_count; i++) {
		const struct sys_row *row = &sys_rows[i];
		enum rule rule;
		uint32_t nr;

		if (row->name == NULL || emit_resolve(row, abi, &nr) <= 0)
			continue;
		rule = effective(b->v, row->rule);
		/* Never asked: it was judged before. */
		rule = rule == RULE_OPENAT ? RULE_ALLOW : rule;
		one.r[one.n++] = (struct range){ nr, nr, (int)rule };
	}
	qsort(one.r, one.n, sizeof(one.r[0]), range_cmp);
	ranges_cover(&one, RULE_ENOSYS, &all);

	for (int i = 0; i < RULE_COUNT_; i++)
		label[i] = as_label(&b->as);
	for (size_t i = 0; i < all.n; i++)
		is_used[all.r[i].leaf] = true;
	as_load(&b->as, offsetof(struct seccomp_data, nr));
	tree(&b->as, all.r, all.n, label);
	for (int i = 0; i < RULE_COUNT_; i++) {
		if (!is_used[i])
			continue;
		as_place(&b->as, label[i]);
		if (i == RULE_ALLOW)
			as_ret(&b->as, SECCOMP_RET_ALLOW);
		else if (i == RULE_EPERM)
			as_ret(&b->as, REFUSE(EPERM));
		else if (i == RULE_ENOSYS)
			as_ret(&b->as, REFUSE(ENOSYS));
		else
			as_goto(&b->as, b->check[i]);
	}
}

/* Accumulator equal to one of `k`: `yes`, else `no`. */
static void put_any(struct as *a, const uint32_t *k, size_t n, int yes, int no)
{
	for (size_t i = 0; i < n; i++)
		as_if(a, BPF_JEQ, k[i], yes, i + 1 == n ? no : NEXT);
}

static void put_clone(struct build *b)
{
	as_place(&b->as, b->check[RULE_CLONE]);
	as_load(&b->as, ARG_LO(0));
	as_if(&b->as, BPF_JSET, CLONE_NEW_BITS, b->eperm, b->allow);
}

static void put_unshare(struct build *b)
{
	as_place(&b->as, b->check[RULE_UNSHARE]);
	as_load(&b->as, ARG_HI(0));
	as_if(&b->as, BPF_JEQ, 0, NEXT, b->eperm);
	as_load(&b->as, ARG_LO(0));
	as_if(&b->as, BPF_JSET, ~UNSHARE_BITS, b->eperm, b->allow);
}

/* From here on the type, then the protocol, of one address family. */
static void put_socket_unix(struct build *b)
{
	static const uint32_t types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };

	as_load(&b->as, ARG_LO(1));
	as_and(&b->as, SOCK_TYPE_BITS);
	put_any(&b->as, types, 3, b->allow, b->eperm);
}

static void put_socket_inet(struct build *b)
{
	static const uint32_t tcp[] = { 0, IPPROTO_TCP }, udp[] = { 0, IPPROTO_UDP };
	int is_udp = as_label(&b->as);

	as_load(&b->as, ARG_LO(1));
	as_and(&b->as, SOCK_TYPE_BITS);
	as_if(&b->as, BPF_JEQ, SOCK_DGRAM, is_udp, NEXT);
	as_if(&b->as, BPF_JEQ, SOCK_STREAM, NEXT, b->eperm);
	as_load(&b->as, ARG_LO(2));
	put_any(&b->as, tcp, 2, b->allow, b->eprotonosupport);
	as_place(&b->as, is_udp);
	as_load(&b->as, ARG_LO(2));
	put_any(&b->as, udp, 2, b->allow, b->eprotonosupport);
}

static void put_socket_netlink(struct build *b)
{
	static const uint32_t types[] = { SOCK_RAW, SOCK_DGRAM };
	int proto = as_label(&b->as);

	as_load(&b->as, ARG_LO(1));
	as_and(&b->as, SOCK_TYPE_BITS);
	put_any(&b->as, types, 2, proto, b->eperm);
	as_place(&b->as, proto);
	as_load(&b->as, ARG_LO(2));
	as_if(&b->as, BPF_JEQ, NETLINK_ROUTE, b->allow, b->eprotonosupport);
}

static void put_socket(struct build *b)
{
	static const uint32_t inet[] = { AF_INET, AF_INET6 };
	int is_unix = as_label(&b->as), is_inet = as_label(&b->as), is_netlink = as_label(&b->as);

	as_place(&b->as, b->check[RULE_SOCKETPAIR]);
	as_load(&b->as, ARG_LO(0));
	as_if(&b->as, BPF_JEQ, AF_UNIX, is_unix, b->eafnosupport);

	as_place(&b->as, b->check[RULE_SOCKET]);
	as_load(&b->as, ARG_LO(0));
	as_if(&b->as, BPF_JEQ, AF_UNIX, is_unix, NEXT);
	as_if(&b->as, BPF_JEQ, AF_NETLINK, is_netlink, NEXT);
	as_if(&b->as, BPF_JEQ, AF_PACKET, b->eperm, NEXT); /* as a kernel without CAP_NET_RAW */
	put_any(&b->as, inet, 2, is_inet, b->eafnosupport);

	as_place(&b->as, is_inet);
	put_socket_inet(b);
	as_place(&b->as, is_netlink);
	put_socket_netlink(b);
	as_place(&b->as, is_unix);
	put_socket_unix(b);
}

static void put_ioctl(struct build *b)
{
	enum { LEAF_ALLOW, LEAF_EPERM, LEAF_REST, LEAF_COUNT_ };
	static struct ranges one, all;
	int label[LEAF_COUNT_] = { b->allow, b->eperm, as_label(&b->as) };
	uint32_t types[16];
	size_t n_types = 0;

	one.n = 0;
	for (size_t i = 0; i < ioctl_row_count; i++)
		one.r[one.n++] = (struct range){ ioctl_rows[i].lo, ioctl_rows[i].hi,
						 ioctl_rows[i].rule == RULE_ALLOW ? LEAF_ALLOW
										  : LEAF_EPERM };
	qsort(one.r, one.n, sizeof(one.r[0]), range_cmp);
	ranges_cover(&one, LEAF_REST, &all);
	for (size_t i = 0; i < ioctl_type_row_count && n_types < 16; i++)
		types[n_types++] = ioctl_type_rows[i].type << 8;

	as_place(&b->as, b->check[RULE_IOCTL]);
	as_load(&b->as, ARG_LO(1));
	tree(&b->as, all.r, all.n, label);
	as_place(&b->as, label[LEAF_REST]);
	as_and(&b->as, 0xff00);
	put_any(&b->as, types, n_types, b->eperm, b->allow);
}

static void put_prctl(struct build *b)
{
	as_place(&b->as, b->check[RULE_PRCTL]);
	as_load(&b->as, ARG_LO(0));
	for (size_t i = 0; i < prctl_row_count; i++)
		as_if(&b->as, BPF_JEQ, prctl_rows[i].option, b->eperm,
		      i + 1 == prctl_row_count ? b->allow : NEXT);
}

static void put_fcntl(struct build *b)
{
	as_place(&b->as, b->check[RULE_FCNTL]);
	as_load(&b->as, ARG_LO(1));
	for (size_t i = 0; i < fcntl_row_count; i++)
		as_if(&b->as, BPF_JEQ, fcntl_rows[i].option, b->eperm, NEXT);
	as_if(&b->as, BPF_JGE, fcntl_last.option + 1, b->eperm, b->allow);
}

static void put_personality(struct build *b)
{
	as_place(&b->as, b->check[RULE_PERSONALITY]);
	as_load(&b->as, ARG_LO(0));
	for (size_t i = 0; i < persona_row_count; i++)
		if (effective(b->v, persona_rows[i].rule) == RULE_ALLOW)
			as_if(&b->as, BPF_JEQ, persona_rows[i].value, b->allow, NEXT);
	as_goto(&b->as, b->eperm);
}

/* A mode of a regular file that is made: argument `arg`. */
static void put_new_mode(struct build *b, unsigned arg)
{
	as_load(&b->as, ARG_LO(arg));
	as_if(&b->as, BPF_JSET, SET_ID_BITS, b->notice, b->allow);
}

static void put_mknod_notice(struct build *b, enum rule rule, unsigned arg)
{
	static const uint32_t others[] = { S_IFIFO, S_IFSOCK };
	int is_file = as_label(&b->as);

	as_place(&b->as, b->check[rule]);
	as_load(&b->as, ARG_LO(arg));
	as_and(&b->as, S_IFMT);
	as_if(&b->as, BPF_JEQ, 0, is_file, NEXT); /* 0 means S_IFREG */
	as_if(&b->as, BPF_JEQ, S_IFREG, is_file, NEXT);
	put_any(&b->as, others, 2, b->allow, b->eperm);
	as_place(&b->as, is_file);
	put_new_mode(b, arg);
}

static void put_mknod(struct build *b)
{
	static const uint32_t kinds[] = { 0, S_IFREG, S_IFIFO, S_IFSOCK }; /* 0 means S_IFREG */
	int mode = as_label(&b->as);

	if (b->v->has_notice) {
		put_mknod_notice(b, RULE_MKNOD, 1);
		put_mknod_notice(b, RULE_MKNODAT, 2);
		return;
	}
	as_place(&b->as, b->check[RULE_MKNODAT]);
	as_load(&b->as, ARG_LO(2));
	as_goto(&b->as, mode);
	as_place(&b->as, b->check[RULE_MKNOD]);
	as_load(&b->as, ARG_LO(1));
	as_place(&b->as, mode);
	as_and(&b->as, S_IFMT);
	put_any(&b->as, kinds, 4, b->allow, b->eperm);
}

static void put_chmod(struct build *b)
{
	int mode = as_label(&b->as);

	as_place(&b->as, b->check[RULE_CHMODAT]);
	as_load(&b->as, ARG_LO(2));
	as_goto(&b->as, mode);
	as_place(&b->as, b->check[RULE_CHMOD]);
	as_load(&b->as, ARG_LO(1));
	as_place(&b->as, mode);
	as_if(&b->as, BPF_JSET, S_ISUID, b->v->has_setuid ? b->allow : b->eperm,
	      b->v->has_notice ? NEXT : b->allow);
	if (b->v->has_notice)
		as_if(&b->as, BPF_JSET, S_ISGID, b->notice, b->allow);
}

/* Without one of the two flags the kernel does not look at the mode, and what lies there is left over from other calls. */
static void put_open_flags(struct build *b, enum rule rule, unsigned flags_arg)
{
	as_place(&b->as, b->check[rule]);
	as_load(&b->as, ARG_LO(flags_arg));
	as_if(&b->as, BPF_JSET, CREATING_FLAGS, NEXT, b->allow);
	put_new_mode(b, flags_arg + 1);
}

static void put_open(struct build *b)
{
	put_open_flags(b, RULE_OPEN, 1); /* openat: put_openat_first() */
	as_place(&b->as, b->check[RULE_CREAT]);
	put_new_mode(b, 1);
	as_place(&b->as, b->check[RULE_OPENAT2]);
	as_goto(&b->as, b->notice);
}

static void put_checks(struct build *b)
{
	if (!b->v->is_any_args) {
		put_clone(b);
		put_unshare(b);
		put_socket(b);
		put_ioctl(b);
		put_prctl(b);
		put_fcntl(b);
		put_personality(b);
		put_mknod(b);
		put_chmod(b);
		if (b->v->has_notice) {
			put_open(b);
			as_place(&b->as, b->notice);
			as_ret(&b->as, SECCOMP_RET_USER_NOTIF);
		}
		as_place(&b->as, b->eafnosupport);
		as_ret(&b->as, REFUSE(EAFNOSUPPORT));
		as_place(&b->as, b->eprotonosupport);
		as_ret(&b->as, REFUSE(EPROTONOSUPPORT));
		as_place(&b->as, b->eperm);
		as_ret(&b->as, REFUSE(EPERM));
	}
	as_place(&b->as, b->allow);
	as_ret(&b->as, SECCOMP_RET_ALLOW);
}

int emit_filter(const struct family *f, const struct variant *v, struct emit_prog *ret_prog,
		char *why, size_t size)
{
	static struct build b;
	int compat, native;

	if (emit_check(why, size) < 0)
		return -1;
	b = (struct build){ .v = v };
	for (int i = RULE_FIRST_CHECK; i < RULE_COUNT_; i++)
		b.check[i] = as_label(&b.as);
	b.allow = as_label(&b.as);
	b.notice = as_label(&b.as);
	b.eperm = as_label(&b.as);
	b.eafnosupport = as_label(&b.as);
	b.eprotonosupport = as_label(&b.as);
	compat = as_label(&b.as);
	native = as_label(&b.as);

	as_load(&b.as, offsetof(struct seccomp_data, arch));
	as_if(&b.as, BPF_JEQ, f->native.audit_arch, native, NEXT);
	as_if(&b.as, BPF_JEQ, f->compat.audit_arch, v->is_any_compat ? b.allow : compat, NEXT);
	as_ret(&b.as, SECCOMP_RET_KILL_PROCESS);
	if (!v->is_any_compat) {
		as_place(&b.as, compat);
		put_abi(&b, &f->compat);
	}
	as_place(&b.as, native);
	put_abi(&b, &f->native);
	put_checks(&b);
	return as_finish(&b.as, ret_prog, why, size);
}

int emit_tree_only(const struct emit_tree *t, struct emit_prog *ret_prog, char *why, size_t size)
{
	static struct as a;
	int label[64];

	if (t->n_ret > 64 || t->n == 0) {
		(void)snprintf(why, size, "1 range or more, 64 outcomes or fewer");
		return -1;
	}
	a = (struct as){ 0 };
	for (size_t i = 0; i < t->n_ret; i++)
		label[i] = as_label(&a);
	as_load(&a, offsetof(struct seccomp_data, nr));
	tree(&a, t->r, t->n, label);
	for (size_t i = 0; i < t->n_ret; i++) {
		as_place(&a, label[i]);
		as_ret(&a, t->ret[i]);
	}
	return as_finish(&a, ret_prog, why, size);
}
