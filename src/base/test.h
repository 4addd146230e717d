/* SPDX-License-Identifier: Apache-2.0 */
/* base/test.h - the whole unit test framework: named cases, checks that go on, one closing line
 *
 *     TEST(buf_grows) { ...; CHECK(b.n == 3); CHECK_STR(buf_cstr(&b), "abc"); }
 *     TEST_MAIN()
 *
 * Cases register themselves before main. A failed check prints where and what and the case goes on. The last
 * line is "N passed, N failed, 0 skipped", which tests/run adds up.
 */
#ifndef VITRINE_BASE_TEST_H
#define VITRINE_BASE_TEST_H

#include "base/base.h"

struct test_case {
	const char *name;
	void (*fn)(void);
	struct test_case *next;
};

extern struct test_case *test_first;
extern int test_failures;

#define TEST(ident)                                                                                \
	static void test_##ident(void);                                                            \
	static struct test_case case_##ident = { .name = #ident, .fn = test_##ident };             \
	__attribute__((constructor)) static void register_##ident(void)                            \
	{                                                                                          \
		case_##ident.next = test_first;                                                    \
		test_first = &case_##ident;                                                        \
	}                                                                                          \
	static void test_##ident(void)

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			test_failures++;                                                           \
			(void)fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond); \
		}                                                                                  \
	} while (0)

#define CHECK_STR(got, want)                                                                       \
	do {                                                                                       \
		const char *got_ = (got), *want_ = (want);                                         \
		if (!got_ || strcmp(got_, want_) != 0) {                                           \
			test_failures++;                                                           \
			(void)fprintf(stderr, "%s:%d: %s\n  is   '%s'\n  want '%s'\n", __FILE__,   \
				      __LINE__, #got, got_ ? got_ : "(null)", want_);              \
		}                                                                                  \
	} while (0)

#define CHECK_INT(got, want)                                                                       \
	do {                                                                                       \
		long long got_ = (long long)(got), want_ = (long long)(want);                      \
		if (got_ != want_) {                                                               \
			test_failures++;                                                           \
			(void)fprintf(stderr, "%s:%d: %s is %lld, want %lld\n", __FILE__,          \
				      __LINE__, #got, got_, want_);                                \
		}                                                                                  \
	} while (0)

#define TEST_MAIN()                                                                                \
	struct test_case *test_first;                                                              \
	int test_failures;                                                                         \
	int main(void)                                                                             \
	{                                                                                          \
		int passed = 0, failed = 0;                                                        \
		for (struct test_case *t = test_first; t; t = t->next) {                           \
			int before = test_failures;                                                \
			t->fn();                                                                   \
			if (test_failures == before)                                               \
				passed++;                                                          \
			else                                                                       \
				failed++;                                                          \
			(void)printf("%s %s\n", test_failures == before ? "ok  " : "FAIL",         \
				     t->name);                                                     \
		}                                                                                  \
		(void)printf("%d passed, %d failed, 0 skipped\n", passed, failed);                 \
		return failed || passed == 0;                                                      \
	}

#endif
