/* SPDX-License-Identifier: Apache-2.0 */
/* guard/code_words.c - words in inline code and statements that give an effect away
 *
 * Where no call names a path, the words around it still say what is meant: a loop without an end, a size that no memory
 * holds, a library of a service beside a word that deletes, a statement that drops a table. The text is searched, not
 * parsed; the calls themselves are code_calls.c's.
 */
#include <ctype.h>

#include "guard/walk.h"

static bool has_word_of(const char *code, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(code, words[i]))
			return true;
	return false;
}

/* Services and databases. */

static void code_statements(struct walk *w, const struct cmd *c, const char *text);

void code_services(struct walk *w, const struct cmd *c, const char *code)
{
	static const char *const services[] = { "boto3",        "google.cloud", "azure.",
						"stripe",       "kubernetes",   "firebase",
						"aws-sdk",      "@octokit",     "github",
						"digitalocean", "cloudflare",   "twilio",
						"PyGithub",     "gitlab",       "heroku",
						"hvac",         "consul",       "docker.from_env" };
	static const char *const acts[] = { ".delete(",          "delete_",       ".terminate",
					    "terminate_",        ".destroy(",     "DeleteObject",
					    "DeleteBucket",      ".purge(",       "Delete",
					    "remove_",           ".prune(",       ".refund",
					    "Refund.create",     "Charge.create", "messages.create",
					    "create_access_key", "attach_" };
	static const char *const databases[] = {
		"execute(",        "executescript(", "query(",   "drop_database",
		"dropDatabase",    ".drop()",        "flushall", "flushdb",
		"delete_many({})", "deleteMany({})", "drop_all("
	};

	if (strlen(code) < 16)
		return;
	if (has_word_of(code, services, ARRAY_LEN(services)) &&
	    has_word_of(code, acts, ARRAY_LEN(acts)))
		effect_text(w, EFFECT_CHANGES, "cloud", c);
	for (size_t i = 0; i < ARRAY_LEN(databases); i++)
		if (strstr(code, databases[i])) {
			if (i >= 3)
				effect_text(w, EFFECT_CHANGES, "data", c);
			else
				code_statements(w, c, code);
			break;
		}
}

/* Loops and sizes. */

/* 'x' * 10**11, bytearray(10**10), "x" x 1e10, Buffer.alloc(1e11), 1 << 40 */
static bool is_too_large(const char *code)
{
	for (const char *s = code; *s; s++) {
		const char *digits;
		unsigned n = 0;

		if (str_starts(s, "10**"))
			digits = s + 4;
		else if (str_starts(s, "1e") && (s == code || !isalnum((unsigned char)s[-1])))
			digits = s + 2;
		else if (str_starts(s, "<<"))
			digits = s + 2 + strspn(s + 2, " ");
		else
			continue;
		for (; isdigit((unsigned char)*digits) && n < 1000; digits++)
			n = n * 10 + (unsigned)(*digits - '0');
		if (s[0] == '<' ? n >= 34 : n >= 10)
			return s > code && strpbrk(code, "*(x") != NULL;
	}
	return false;
}

/* sleep(1), sleep 1, but not 'sleep' that is started or given to somebody. */
static bool waits(const char *code)
{
	for (const char *at = code; (at = strstr(at, "sleep")) != NULL; at += 5) {
		const char *s = at + 5 + strspn(at + 5, " ");

		if ((at == code || !strchr("'\"`", at[-1])) &&
		    (*s == '(' || isdigit((unsigned char)*s)))
			return true;
	}
	return strstr(code, ".wait(") || strstr(code, "wait()") || strstr(code, ".join(");
}

/* os.kill(-1, 9), kill 9, -1 */
static bool kills_all(const char *code)
{
	for (const char *at = code; (at = strstr(at, "kill")) != NULL; at += 4) {
		const char *end = at + strcspn(at, ";\n"),
			   *one = memmem(at, (size_t)(end - at), "-1", 2);

		if (one && one - at < 24 && !isalnum((unsigned char)one[2]) &&
		    strchr("(, '\"", one[-1]))
			return true;
	}
	return false;
}

void code_loops(struct walk *w, const struct cmd *c, const char *code)
{
	static const char *const forever[] = {
		"while True",      "while 1",         "while(1)",    "while (1)",    "while(true)",
		"while (true)",    "for(;;)",         "for (;;)",    "loop {",       "loop do",
		"loop{",           "while true",      "until false", "iter(int, 1)", "iter(int,1)",
		"itertools.count", "itertools.cycle", "} while 1",   "for {",        "while(!0)",
	};
	static const char *const ends[] = { "break",      "input(", "readline", "return",
					    "exit",       "await",  "recv",     "accept",
					    "gets",       "STDIN",  "raise",    "getline",
					    "setTimeout", "poll",   "select(",  "throw" };
	static const char *const makes[] = { "fork",  "Process(", "Thread(", "spawn",
					     "Popen", "Worker(",  "popen",   "system(" };

	static const char *const again[] = { "setImmediate", "setInterval", "nextTick",
					     "__filename",   "argv[0]",     "__FILE__",
					     "process.argv" };

	/* Nothing shorter is a loop with something in it. */
	if (strlen(code) < 10)
		return;
	if (has_word_of(code, again, ARRAY_LEN(again)) &&
	    (strstr(code, "spawn(") || strstr(code, "fork(")))
		walk_find(w, "fork-bomb", c);
	if (has_word_of(code, forever, ARRAY_LEN(forever))) {
		if (has_word_of(code, makes, ARRAY_LEN(makes)) && !waits(code))
			walk_find(w, "fork-bomb", c);
		else if (!waits(code) && !has_word_of(code, ends, ARRAY_LEN(ends)))
			walk_find(w, "endless", c);
	}
	if (kills_all(code))
		effect_text(w, EFFECT_CHANGES, "processes", c);
	if (is_too_large(code))
		effect_text(w, EFFECT_STARTS, "large", c);
}

/* SQL and its like: what throws data away. */

/* Words are in lower case. */
static const char *find_word(const char *s, const char *word)
{
	size_t n = strlen(word);
	char small = word[0], large = (char)(small - 'a' + 'A');

	for (; *s; s++)
		if ((*s == small || *s == large) && strncasecmp(s, word, n) == 0 &&
		    !isalnum((unsigned char)s[n]) && s[n] != '_')
			return s;
	return NULL;
}

/* Texts in single quotes are data, unless nobody closes them. */
static const char *without_texts(struct walk *w, const char *text)
{
	char *s = arena_strn(w->mem, text, strlen(text));

	for (char *at = s; (at = strchr(at, '\'')) != NULL;) {
		char *end = strchr(at + 1, '\'');

		if (end == NULL)
			break;
		for (at++; at < end; at++)
			*at = '_';
		at = end + 1;
	}
	return s;
}

void code_sql(struct walk *w, const struct cmd *c, const char *text)
{
	code_statements(w, c, without_texts(w, text));
}

static void code_statements(struct walk *w, const struct cmd *c, const char *text)
{
	static const char *const words[] = { "drop table",      "drop database",   "drop schema",
					     "drop user",       "drop column",     "drop view",
					     "drop collection", "drop keyspace",   "drop index",
					     "truncate",        "truncate table",  "dropdatabase",
					     "flushall",        "flushdb",         "deletemany({})",
					     "drop()",          "db.dropdatabase", "drop owned",
					     "drop role" };
	static const char *const rights[] = { "grant",        "alter user",  "alter role",
					      "create user",  "create role", "revoke",
					      "set password", "createuser",  "grantrolestouser" };
	const char *at;

	for (size_t i = 0; i < ARRAY_LEN(rights); i++)
		if (find_word(text, rights[i])) {
			effect_text(w, EFFECT_CHANGES, "account", c);
			break;
		}
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (find_word(text, words[i]) ||
		    (strchr(words[i], '(') && strcasestr(text, words[i]))) {
			effect_text(w, EFFECT_CHANGES, "data", c);
			return;
		}
	at = find_word(text, "delete from");
	if (at == NULL && (at = find_word(text, "update")) != NULL && find_word(at, "set") == NULL)
		at = NULL;
	if (at && find_word(arena_strn(w->mem, at, strcspn(at, ";")), "where") == NULL)
		effect_text(w, EFFECT_CHANGES, "data", c);
}
