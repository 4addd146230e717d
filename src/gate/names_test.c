/* SPDX-License-Identifier: Apache-2.0 */
/* gate/names_test.c - a name's addresses lead back to it and to nobody else */
#include "base/test.h"
#include "gate/names.h"

TEST(there_and_back)
{
	_cleanup_(names_done) struct names t;
	struct addr a4, a6, b4, b6;
	char text[ADDR_TEXT];
	bool is_ours;

	names_init(&t);
	CHECK_INT(names_address(&t, "ok.test", &a4, &a6), 0);
	CHECK_INT(names_address(&t, "other.test", &b4, &b6), 0);
	addr_text(&a4, text);
	CHECK_STR(text, "198.18.0.2");
	addr_text(&b6, text);
	CHECK_STR(text, "fd76:6974:7269:6e65::3");
	CHECK_STR(names_find(&t, &a4, &is_ours), "ok.test");
	CHECK_STR(names_find(&t, &a6, &is_ours), "ok.test");
	CHECK_STR(names_find(&t, &b6, &is_ours), "other.test");
	CHECK_INT(names_address(&t, "ok.test", &b4, &b6), 0);
	CHECK(addr_eq(&a4, &b4) && addr_eq(&a6, &b6));
}

TEST(addresses_of_nobody)
{
	static const char *const ours[] = { "198.18.0.0",
					    "198.18.0.1",
					    "198.18.0.3",
					    "198.19.255.255",
					    "fd76:6974:7269:6e65::1",
					    "fd76:6974:7269:6e65:0:1:0:2" };
	static const char *const others[] = { "198.17.255.255", "198.20.0.2", "10.0.0.1", "::1",
					      "fd76:6974:7269:6e64::2" };
	_cleanup_(names_done) struct names t;
	struct addr a, b;
	bool is_ours;

	names_init(&t);
	CHECK_INT(names_address(&t, "ok.test", &a, &b), 0);
	for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
		CHECK_INT(addr_parse(ours[i], strlen(ours[i]), &a), 0);
		CHECK(names_find(&t, &a, &is_ours) == NULL && is_ours);
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		CHECK_INT(addr_parse(others[i], strlen(others[i]), &a), 0);
		CHECK(names_find(&t, &a, &is_ours) == NULL && !is_ours);
	}
}

TEST(many_and_no_more)
{
	_cleanup_(names_done) struct names t;
	struct addr a4, a6;
	char name[32];
	bool is_ours;

	names_init(&t);
	for (int i = 0; i < NAMES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "n%d.test", i);
		CHECK_INT(names_address(&t, name, &a4, &a6), 0);
	}
	CHECK_STR(names_find(&t, &a4, &is_ours), "n65535.test");
	CHECK_INT(names_address(&t, "one-more.test", &a4, &a6), -ENOSPC);
}

TEST_MAIN()
