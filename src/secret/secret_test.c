/* SPDX-License-Identifier: Apache-2.0 */
/* secret/secret_test.c - shapes, descriptions, and the owner-only store */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/test.h"
#include "secret/secret.h"

static void placeholder_of(const char *name, const char *value, uint8_t seed, struct buf *out)
{
	_cleanup_(secret_done) struct secret s = { .name = mem_str(name) };
	uint8_t full[SECRET_SEED] = { seed };

	secret_take_shape(&s, str_of(value));
	secret_placeholder(&s, full, out);
}

TEST(placeholders_look_like_the_value)
{
	static const char *const values[] = {
		"sk-ant-api03-Abcdefghijklmnopqrstuvwxyz0123456789_-ABCDEFGHIJKLMNOPQRSTUVWXYZAA",
		"ghp_0123456789abcdefghijABCDEFGHIJ012345",
		"AIzaSyA0123456789abcdefghijklmnopqrstuv",
		"eyJhbGciOi.eyJzdWIiOiIxMjM0NTY3.SflKxwRJSMeKKF2QT4fwpM",
	};

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		_cleanup_(buf_done) struct buf a = BUF(KIB), b = BUF(KIB), c = BUF(KIB);

		placeholder_of("x", values[i], 1, &a);
		placeholder_of("x", values[i], 1, &b);
		placeholder_of("x", values[i], 2, &c);
		CHECK_STR(buf_cstr(&a), buf_cstr(&b));
		CHECK(!str_eq(buf_cstr(&a), buf_cstr(&c)));
		CHECK(!str_eq(buf_cstr(&a), values[i]));
		CHECK_INT(a.n, strlen(values[i]));
		CHECK(strncmp(a.p, values[i], 3) == 0);
		for (size_t k = 0; k < a.n; k++)
			CHECK((a.p[k] == '.') == (values[i][k] == '.'));
	}
}

TEST(short_values_get_long_placeholders)
{
	_cleanup_(buf_done) struct buf a = BUF(KIB);

	placeholder_of("pin", "1234", 1, &a);
	CHECK(str_starts(buf_cstr(&a), "vitrine-pin-"));
	CHECK_INT(a.n, 12 + 24);
}

TEST(services_are_known)
{
	_cleanup_(secret_done) struct secret s = { .name = mem_str("github") },
					     t = { .name = mem_str("mine") };
	struct err e = ERR_INIT;

	secret_apply_service(&s);
	CHECK_INT(secret_check(&s, &e), 0);
	CHECK_STR(s.env.v[0], "GH_TOKEN");
	CHECK(s.hosts.n == 7 && s.places.n == 1);
	secret_apply_service(&t);
	CHECK_INT(secret_check(&t, &e), -EINVAL);
	secret_list_add(&t.hosts, "*.example.org");
	CHECK_INT(secret_check(&t, &e), 0);
	secret_list_add(&t.hosts, "a.*.org");
	CHECK_INT(secret_check(&t, &e), -EINVAL);
	CHECK(secret_check_name("a-b_1", &e) == 0 && secret_check_name("../x", &e) < 0 &&
	      secret_check_name("", &e) < 0 && secret_check_name("1a", &e) < 0);
}

TEST(what_an_import_adds_is_one_line_each)
{
	static const char form[] = "{\"name\":\"n\",\"env\":[],\"hosts\":[\"h\"],\"headers\":[],"
				   "\"in\":[],"
				   "\"source\":\"stored\",\"npm\":\"%s\",\"around\":\"%s\","
				   "\"shape\":\"?\","
				   "\"alphabet\":\"a\"}";
	static const struct {
		const char *npm, *around;
		bool is_ok;
	} rows[] = {
		{ "//r.example/npm/:_authToken", "https://me:{}@r.example/simple", true },
		{ "registry", "https://{}@r.example/", false },
		{ "//r.example/:_auth\\nscript-shell", "https://{}@r.example/", false },
		{ "//r.example/:_auth", "https://r.example/", false },
		{ "//r.example/:_auth", "{}\\nX", false },
		{ "//r.example/:_auth=${HOME}", "{}", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(secret_done) struct secret s = { 0 }, t = { 0 };
		_cleanup_(buf_done) struct buf b = BUF(8 * KIB);
		_free_ char *text = mem_fmt(form, rows[i].npm, rows[i].around);
		struct err e = ERR_INIT;

		CHECK_INT(secret_read(text, strlen(text), &s, &e), rows[i].is_ok ? 0 : -EINVAL);
		if (!rows[i].is_ok)
			continue;
		secret_write(&s, &b);
		CHECK_INT(secret_read(b.p, b.n, &t, &e), 0);
		CHECK_STR(t.npm, rows[i].npm);
		CHECK_STR(t.around, rows[i].around);
	}
}

TEST(kept_and_given_back)
{
	char dir[] = "/tmp/secret-test-XXXXXX";
	_cleanup_(secret_done) struct secret s = { .name = mem_str("openai") }, back = { 0 };
	_cleanup_(secret_wipe) struct buf value = secret_buf();
	_cleanup_(buf_done) struct buf terms = BUF(KIB);
	struct secret_list names = { 0 };
	struct err e = ERR_INIT;
	struct stat st;
	uint8_t a[SECRET_SEED], b[SECRET_SEED], c[SECRET_SEED];

	(void)unsetenv("DBUS_SESSION_BUS_ADDRESS");
	CHECK(mkdtemp(dir) != NULL);
	secret_apply_service(&s);
	CHECK_INT(secret_save(dir, &s, STR("sk-proj-0123456789abcdefghij"), &e), 0);
	CHECK_INT(s.source, SECRET_STORED);
	_free_ char *file = mem_fmt("%s/secrets/openai.value", dir);
	CHECK(stat(file, &st) == 0 && (st.st_mode & 0777) == 0600);
	CHECK_INT(secret_load(dir, "openai", &back, &e), 0);
	CHECK_STR(back.shape, "sk-proj-????????????????????");
	CHECK_INT(secret_value(dir, &back, &value, &e), 0);
	CHECK_STR(buf_cstr(&value), "sk-proj-0123456789abcdefghij");
	secret_terms(&back, "PPPPPPPP", &terms);
	CHECK(strstr(buf_cstr(&terms), "0123456789") == NULL);
	CHECK_INT(secret_names(dir, &names, &e), 0);
	CHECK(names.n == 1 && str_eq(names.v[0], "openai"));
	secret_list_done(&names);
	CHECK(secret_seed(dir, "one", a, &e) == 0 && secret_seed(dir, "one", b, &e) == 0 &&
	      secret_seed(dir, "two", c, &e) == 0);
	CHECK(memcmp(a, b, sizeof(a)) == 0 && memcmp(a, c, sizeof(a)) != 0);
	CHECK_INT(secret_remove(dir, "openai", &e), 0);
	CHECK(stat(file, &st) < 0);
	CHECK_INT(secret_load(dir, "openai", &back, &e), -ENOENT);
	CHECK_INT(path_remove(AT_FDCWD, dir), 0);
}

TEST(other_sources)
{
	_cleanup_(secret_done) struct secret s = { .name = mem_str("x"), .source = SECRET_COMMAND };
	_cleanup_(secret_wipe) struct buf v = secret_buf();
	struct err e = ERR_INIT;

	s.from = mem_str("printf 'abcdefgh\\n'");
	CHECK_INT(secret_value("/nonexistent", &s, &v, &e), 0);
	CHECK_STR(buf_cstr(&v), "abcdefgh");
	v.n = 0;
	free(s.from);
	s.from = mem_str("printf 'abcdefg\\n'");
	CHECK_INT(secret_value("/nonexistent", &s, &v, &e), -EINVAL); /* it could not be masked */
	v.n = 0;
	free(s.from);
	s.from = mem_str("printf 'a\\nb\\n'");
	CHECK_INT(secret_value("/nonexistent", &s, &v, &e), -EINVAL);
	v.n = 0;
	free(s.from);
	s.from = mem_str("exit 3");
	CHECK_INT(secret_value("/nonexistent", &s, &v, &e), -ECHILD);
	CHECK(strstr(e.msg, "status 3") != NULL);
	s.source = SECRET_VARIABLE;
	free(s.from);
	s.from = mem_str("SECRET_TEST_VARIABLE");
	(void)setenv("SECRET_TEST_VARIABLE", "a value of it", 1);
	v.n = 0;
	CHECK_INT(secret_value("/nonexistent", &s, &v, &e), 0);
	CHECK_STR(buf_cstr(&v), "a value of it");
}

TEST_MAIN()
