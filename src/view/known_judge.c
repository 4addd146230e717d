/* SPDX-License-Identifier: Apache-2.0 */
/* view/known_judge.c - may what lies there now stay, given what was there before? Pure; see known.h
 *
 * A file of its own, because vitrine-dir asks the same question about a git config that the inside wants to have
 * written and must not link what works on files.
 */
#include "view/gitcfg.h"
#include "view/known.h"

/* What could run, of one config: entries one after the other, each part with its length. */
static void put_risk(struct buf *b, const struct gitcfg_item *it)
{
	const char *parts[] = { it->section, it->sub, it->key, it->value };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		buf_printf(b, "%zd:", parts[i] ? (ssize_t)strlen(parts[i]) : (ssize_t)-1);
		buf_puts(b, parts[i] ? parts[i] : "");
	}
}

struct risks {
	struct buf text;
	gitcfg_path_fn is_beneath; /* NULL: a work tree is a risk wherever it is */
	void *arg;
};

static bool is_near_worktree(const struct risks *r, const struct gitcfg_item *it)
{
	return r->is_beneath && str_eq(it->section, "core") && it->sub == NULL &&
	       str_eq(it->key, "worktree") && it->value && r->is_beneath(r->arg, it->value);
}

static int add_risk(void *arg, const struct gitcfg_item *it)
{
	struct risks *r = arg;

	if (!gitcfg_is_harmless(it) && !is_near_worktree(r, it))
		put_risk(&r->text, it);
	return 0;
}

bool known_is_calm_near(const struct known_text *last, const struct known_text *now,
			gitcfg_path_fn is_beneath, void *arg)
{
	struct risks a = { .text = BUF(MIB), .is_beneath = is_beneath, .arg = arg }, b = a;
	/* What is new is held to the one way of writing that git itself uses: there no two readers differ. */
	bool is_calm = now->n <= GITCFG_NEW_MAX &&
		       gitcfg_read(last->p, last->n, GITCFG_GIT, add_risk, &a) == 0 &&
		       gitcfg_read(now->p, now->n, GITCFG_STRICT, add_risk, &b) == 0 &&
		       !a.text.is_over && !b.text.is_over &&
		       str_eq(buf_cstr(&a.text), buf_cstr(&b.text));

	buf_done(&a.text);
	buf_done(&b.text);
	return is_calm;
}

struct difference {
	const struct risks *other;
	char *name;
};

static int find_other(void *arg, const struct gitcfg_item *it)
{
	struct difference *d = arg;
	struct risks one = { .text = BUF(MIB),
			     .is_beneath = d->other->is_beneath,
			     .arg = d->other->arg };
	_cleanup_(buf_done) struct buf name = BUF(KIB);

	(void)add_risk(&one, it);
	if (one.text.n && strstr(buf_cstr(&d->other->text), buf_cstr(&one.text)) == NULL) {
		buf_printf(&name, "%s.", it->section);
		if (it->sub) {
			buf_esc(&name, it->sub, strnlen(it->sub, 64));
			buf_putc(&name, '.');
		}
		buf_puts(&name, it->key);
		d->name = buf_take(&name);
	}
	buf_done(&one.text);
	return d->name ? 1 : 0;
}

char *known_difference(const struct known_text *last, const struct known_text *now,
		       gitcfg_path_fn is_beneath, void *arg)
{
	struct risks a = { .text = BUF(MIB), .is_beneath = is_beneath, .arg = arg }, b = a;
	struct difference new = { .other = &a }, old = { .other = &b };

	if (gitcfg_read(last->p, last->n, GITCFG_GIT, add_risk, &a) == 0 &&
	    gitcfg_read(now->p, now->n, GITCFG_GIT, add_risk, &b) == 0 &&
	    gitcfg_read(now->p, now->n, GITCFG_GIT, find_other, &new) == 0)
		(void)gitcfg_read(last->p, last->n, GITCFG_GIT, find_other, &old);
	buf_done(&a.text);
	buf_done(&b.text);
	return new.name ? new.name : old.name;
}

bool known_is_calm(const struct known_text *last, const struct known_text *now)
{
	return known_is_calm_near(last, now, NULL, NULL);
}

static bool was_there(void *arg, const struct gitcfg_item *it)
{
	const struct buf *last_risks = arg;
	_cleanup_(buf_done) struct buf risk = BUF(MIB);

	if (gitcfg_is_harmless(it))
		return true;
	put_risk(&risk, it);
	return risk.is_over || strstr(buf_cstr(last_risks), buf_cstr(&risk));
}

bool known_cut(const struct known_text *last, const struct known_text *now, struct buf *ret)
{
	struct risks risks = { .text = BUF(MIB) };
	/* Whatever was cut, what is left is judged like any other. */
	bool is_calm = gitcfg_read(last->p, last->n, GITCFG_GIT, add_risk, &risks) == 0 &&
		       gitcfg_cut(now->p, now->n, was_there, &risks.text, ret) == 0 &&
		       known_is_calm(last, &(struct known_text){ buf_cstr(ret), ret->n });

	buf_done(&risks.text);
	return is_calm;
}

enum known_act known_judge(bool is_config, const struct known_text *last,
			   const struct known_text *now)
{
	_free_ char *why = NULL;

	if (last && last->n == now->n && (now->n == 0 || memcmp(last->p, now->p, now->n) == 0))
		return KNOWN_STAYS;
	if (!is_config)
		return KNOWN_PUT_BACK;
	if (last)
		return known_is_calm(last, now) ? KNOWN_STAYS : KNOWN_PUT_BACK;
	why = gitcfg_objection(now->p, now->n, NULL, NULL);
	return why ? KNOWN_PUT_BACK : KNOWN_STAYS;
}
