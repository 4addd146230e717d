/* SPDX-License-Identifier: Apache-2.0 */
/* sys/filter/gen.c - build tool: prints what is derived from syscalls.def
 *
 *      gen --c FAMILY        the programs as const arrays, for filter.c
 *      gen --doc             docs/SYSCALLS.md
 *      gen --assert ABI      C that compares our numbers with the kernel's headers at compile time
 *
 * Runs on the machine that builds; FAMILY is the one built for. Exit status 1 and one line on
 * stderr when the table is not sound, so a bad table ends the build and not a sandbox.
 */
#include <linux/audit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/filter/emit.h"

static int fail(const char *what, const char *why)
{
	(void)fprintf(stderr, "gen: %s: %s\n", what, why);
	return 1;
}

/* ---- --c ---- */

static void print_array(const struct variant *v, const struct emit_prog *p)
{
	if (v->macro != NULL)
		printf("\n#if defined(%s) && %s", v->macro, v->macro);
	printf("\nstatic const struct sock_filter %s[%zu] = {\n", v->name, p->n);
	for (size_t i = 0; i < p->n; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", p->insn[i].code, p->insn[i].jt,
		       p->insn[i].jf, p->insn[i].k);
	printf("};\n");
	if (v->macro != NULL)
		printf("#endif\n");
}

static int print_c(const struct family *f)
{
	static struct emit_prog p;
	char why[256];

	printf("/* SPDX-License-Identifier: Apache-2.0 */\n"
	       "/* Made by sys/filter/gen from syscalls.def for %s and %s. Do not edit. */\n"
	       "#include <linux/filter.h>\n\n"
	       "#ifndef __%s__\n#error \"generated for another machine\"\n#endif\n",
	       f->native.name, f->compat.name, f->name);
	for (size_t i = 0; i < variant_count; i++) {
		if (emit_filter(f, &variants[i], &p, why, sizeof(why)) < 0)
			return fail(variants[i].name, why);
		print_array(&variants[i], &p);
	}
	return 0;
}

/* ---- --assert ---- */

static int print_asserts(const struct abi *abi)
{
	printf("/* Made by sys/filter/gen: the numbers of syscalls.def against the kernel's "
	       "header. */\n"
	       "#include <assert.h>\n"
	       "#include <asm/unistd_%s.h>\n",
	       abi->audit_arch == AUDIT_ARCH_X86_64 ? "64" : "32");
	for (size_t i = 0; i < sys_row_count; i++) {
		const char *name = sys_rows[i].name;
		uint32_t nr;

		if (name == NULL)
			continue;
		printf("#ifdef __NR_%s\n", name);
		if (emit_resolve(&sys_rows[i], abi, &nr) > 0)
			printf("static_assert(__NR_%s == %u, \"%s\");\n", name, nr, name);
		else
			printf("#error \"%s exists here, but has no number in the filter\"\n",
			       name);
		printf("#endif\n");
	}
	return 0;
}

/* ---- --doc ---- */

/* What a check lets through, in words; the code is put_*() in emit.c. */
static const char *check_text(enum rule rule)
{
	switch (rule) {
	case RULE_CLONE:
		return "no `CLONE_NEW*` flag; else EPERM";
	case RULE_UNSHARE:
		return "only `CLONE_FILES`, `CLONE_FS`, `CLONE_SYSVSEM`, `CLONE_THREAD`, "
		       "`CLONE_SIGHAND`, `CLONE_VM`; else EPERM";
	case RULE_SOCKET:
		return "families and protocols below";
	case RULE_SOCKETPAIR:
		return "`AF_UNIX` stream, datagram, seqpacket";
	case RULE_IOCTL:
		return "all but the requests below";
	case RULE_PERSONALITY:
		return "the values below; else EPERM";
	case RULE_PRCTL:
		return "all but the options below";
	case RULE_FCNTL:
		return "all but the commands below";
	case RULE_MKNOD:
	case RULE_MKNODAT:
		return "regular files (with a set-ID bit after a notice), FIFOs and sockets; "
		       "devices EPERM";
	case RULE_CHMOD:
	case RULE_CHMODAT:
		return "modes without the set-user-ID bit; else EPERM; with the set-group-ID bit "
		       "after a notice";
	case RULE_CREAT:
		return "all; with a set-ID bit in the mode after a notice";
	case RULE_OPEN:
	case RULE_OPENAT:
		return "all; with `O_CREAT` or `O_TMPFILE` and a set-ID bit in the mode after a "
		       "notice";
	case RULE_OPENAT2:
		return "all, after a notice";
	case RULE_ALLOW:
	case RULE_EPERM:
	case RULE_ENOSYS:
	case RULE_DEBUG:
	case RULE_COUNT_:
		break;
	}
	return "";
}

static const char *reason(const struct sys_row *row, const struct sys_row *group)
{
	return row->why[0] != '\0' || group == NULL ? row->why : group->why;
}

/* Plain allowed calls: a paragraph of names per group, and a line for each with a reason of its
 * own. */
static void doc_allowed(void)
{
	const struct sys_row *group = NULL;
	bool is_open = false;

	printf("\n## Allowed\n");
	for (size_t i = 0; i < sys_row_count; i++) {
		const struct sys_row *row = &sys_rows[i];

		if (row->name == NULL) {
			group = row;
			is_open = false;
			continue;
		}
		if (row->rule != RULE_ALLOW || group == NULL)
			continue;
		if (!is_open)
			printf("\n### %s\n\nReason: %s.\n\n", group->group, group->why);
		is_open = true;
		if (row->why[0] != '\0')
			printf("- `%s`: %s\n", row->name, row->why);
		else
			printf("- `%s`\n", row->name);
	}
}

static void doc_table(const char *title, const char *intro, bool (*may_show)(enum rule))
{
	const struct sys_row *group = NULL;

	printf("\n## %s\n\n%s\n\n| call | check | reason |\n|---|---|---|\n", title, intro);
	for (size_t i = 0; i < sys_row_count; i++) {
		const struct sys_row *row = &sys_rows[i];

		if (row->name == NULL)
			group = row;
		else if (may_show(row->rule))
			printf("| `%s` | %s | %s |\n", row->name, check_text(row->rule),
			       reason(row, group));
	}
}

static bool is_check(enum rule rule)
{
	return rule >= RULE_FIRST_CHECK;
}

static bool is_debug(enum rule rule)
{
	return rule == RULE_DEBUG;
}

static bool is_eperm(enum rule rule)
{
	return rule == RULE_EPERM;
}

static bool is_enosys(enum rule rule)
{
	return rule == RULE_ENOSYS;
}

static void doc_arguments(void)
{
	printf("\n### socket\n\n"
	       "| family | type | protocol | otherwise |\n|---|---|---|---|\n"
	       "| `AF_UNIX` | stream, datagram, seqpacket | any | EPERM |\n"
	       "| `AF_INET`, `AF_INET6` | stream | 0, TCP | EPROTONOSUPPORT (MPTCP, SCTP, SMC) |\n"
	       "| `AF_INET`, `AF_INET6` | datagram | 0, UDP | EPROTONOSUPPORT (ICMP, UDP-Lite) |\n"
	       "| `AF_INET`, `AF_INET6` | raw, packet, others | | EPERM |\n"
	       "| `AF_NETLINK` | raw, datagram | `NETLINK_ROUTE` | EPROTONOSUPPORT |\n"
	       "| `AF_PACKET` | | | EPERM |\n"
	       "| any other | | | EAFNOSUPPORT |\n");
	printf("\n### ioctl\n\nRefused with EPERM, unless it says allowed:\n\n"
	       "| request | number | reason |\n|---|---|---|\n");
	for (size_t i = 0; i < ioctl_row_count; i++) {
		const struct ioctl_row *row = &ioctl_rows[i];

		printf("| %s | 0x%x", row->name, row->lo);
		if (row->hi != row->lo)
			printf(" - 0x%x", row->hi);
		printf(" | %s%s |\n", row->rule == RULE_ALLOW ? "allowed: " : "", row->why);
	}
	for (size_t i = 0; i < ioctl_type_row_count; i++)
		printf("| %s | any other of type 0x%x | %s |\n", ioctl_type_rows[i].name,
		       ioctl_type_rows[i].type, ioctl_type_rows[i].why);
	printf("\n### prctl\n\n| refused option | number | reason |\n|---|---|---|\n");
	for (size_t i = 0; i < prctl_row_count; i++)
		printf("| `%s` | %u | %s |\n", prctl_rows[i].name, prctl_rows[i].option,
		       prctl_rows[i].why);
	printf("\n### fcntl\n\n| refused command | number | reason |\n|---|---|---|\n");
	for (size_t i = 0; i < fcntl_row_count; i++)
		printf("| `%s` | %u | %s |\n", fcntl_rows[i].name, fcntl_rows[i].option,
		       fcntl_rows[i].why);
	printf("| any other | above `%s` (%u) | closed until somebody writes a line for it |\n",
	       fcntl_last.name, fcntl_last.option);
	printf("\n### personality\n\n| value | meaning | filter |\n|---|---|---|\n");
	for (size_t i = 0; i < persona_row_count; i++)
		printf("| 0x%x | %s | %s |\n", persona_rows[i].value, persona_rows[i].name,
		       persona_rows[i].rule == RULE_DEBUG ? "debug only" : "both");
}

static int doc_sizes(void)
{
	static struct emit_prog p;
	char why[256];

	printf("\n## Size\n\n| program | instructions |\n|---|---|\n");
	for (size_t i = 0; i < family_count; i++)
		for (size_t j = 0; j < variant_count; j++) {
			if (variants[j].macro != NULL)
				continue;
			if (emit_filter(&families[i], &variants[j], &p, why, sizeof(why)) < 0)
				return fail("doc", why);
			printf("| %s, %s + %s | %zu |\n", variants[j].name, families[i].native.name,
			       families[i].compat.name, p.n);
		}
	return 0;
}

static int print_doc(void)
{
	printf("<!-- Generated from src/sys/filter/syscalls.def by src/sys/filter/gen. Do not "
	       "edit. -->\n"
	       "# System calls inside a native sandbox\n\n"
	       "Every process inside runs under one seccomp filter, compiled into the program when "
	       "it is "
	       "built. It lists what is\nallowed. A call that is not on this page, one that a "
	       "newer "
	       "kernel adds included, answers ENOSYS.\n\n"
	       "- The filter knows the kernel's own calling convention and its 32-bit one (i386, "
	       "arm), "
	       "each by its own numbers and\n  under the same rules. x32 calls answer ENOSYS; any "
	       "other "
	       "convention ends the process.\n"
	       "- Arguments are compared as the kernel reads them: 32 bits (16 for modes), so bits "
	       "above them change nothing.\n"
	       "- `filter_base` is the default. `filter_debug` also allows what debuggers need.\n"
	       "- `filter_root` also allows set-user-ID bits: for a root inside "
	       "(docs/TEMPLATES.md), where "
	       "nothing of the host's can be\n  written.\n"
	       "- `filter_base_notice` and `filter_debug_notice` are the first two with a "
	       "listener, "
	       "which the keeper holds: a call that\n  can make a set-user-ID or set-group-ID file "
	       "waits until the keeper has taken note, and then goes on (*after a\n  notice* in "
	       "the "
	       "table below). Nothing is refused that way. They are used where the kernel has "
	       "such listeners for one\n  more filter (Linux 5.19 or later), else the others; a "
	       "program inside that wants a listener of its own gets EBUSY.\n"
	       "  A call that still waits is interrupted by a signal like any call that waits: it "
	       "is "
	       "made again after a handler with\n  `SA_RESTART`, and fails with EINTR after "
	       "another, "
	       "which `chmod` alone never does.\n"
	       "- The filter is the last of several walls. No capabilities, the namespaces, the "
	       "mounts and "
	       "Landlock hold without it;\n  it keeps most of the kernel's code out of reach.\n");
	doc_table("Allowed with a check", "The arguments decide.", is_check);
	doc_arguments();
	doc_table("Debug filter only", "EPERM under `filter_base`, allowed under `filter_debug`.",
		  is_debug);
	doc_table("Refused with EPERM", "Known, and not for the inside.", is_eperm);
	doc_table("Refused with ENOSYS", "As are all calls not on this page.", is_enosys);
	doc_allowed();
	printf("\n## What a filter cannot do\n\n"
	       "- It does not see memory: paths, addresses and structures behind pointers are the "
	       "business of the other walls.\n"
	       "- 32-bit programs that reach sockets only through `socketcall` (such as Go "
	       "programs "
	       "built for 386) have no network.\n"
	       "- The set-group-ID bit stays allowed: on directories it is in ordinary use, and a "
	       "filter cannot tell them from files.\n"
	       "  Neither does it see the mode of `openat2`. So the keeper takes such bits off "
	       "files "
	       "when the run ends (FW-72);\n  the notices tell it whether there can be any.\n"
	       "- A file can be created with the set-user-ID bit, but not filled: the kernel drops "
	       "the bit on the first\n  write or change of size.\n");
	return doc_sizes();
}

/* Only x86 keeps the numbers of both conventions in headers that can be included side by side. */
static const struct abi *abi_find(const char *name)
{
	const struct family *f = family_find("x86_64");

	if (f != NULL && strcmp(f->native.name, name) == 0)
		return &f->native;
	if (f != NULL && strcmp(f->compat.name, name) == 0)
		return &f->compat;
	return NULL;
}

static int run(int argc, char **argv)
{
	char why[256];

	if (emit_check(why, sizeof(why)) < 0)
		return fail("syscalls.def", why);
	if (argc == 2 && strcmp(argv[1], "--doc") == 0)
		return print_doc();
	if (argc == 3 && strcmp(argv[1], "--c") == 0) {
		const struct family *f = family_find(argv[2]);

		return f != NULL ? print_c(f) : fail(argv[2], "no filter for this machine");
	}
	if (argc == 3 && strcmp(argv[1], "--assert") == 0) {
		const struct abi *abi = abi_find(argv[2]);

		return abi != NULL ? print_asserts(abi)
				   : fail(argv[2], "no header to compare with");
	}
	return fail("usage", "gen --c FAMILY | --doc | --assert ABI");
}

int main(int argc, char **argv)
{
	int r = run(argc, argv);

	if (fflush(stdout) != 0 || ferror(stdout))
		return fail("stdout", "cannot write");
	return r;
}
