/* SPDX-License-Identifier: Apache-2.0 */
/* keep/bundle.c - see bundle.h */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/io.h"
#include "keep/bundle.h"
#include "keep/jks.h"
#include "keep/keeper.h"

static const char *const bundles[] = { "/etc/ssl/certs/ca-certificates.crt",
				       "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
				       "/etc/ssl/cert.pem" };

int bundle_trust(const struct plan_net *n, struct buf *b, struct err *e)
{
	int r = -ENOENT;

	if (n->trust)
		return io_read_file(n->trust, b, e);
	for (size_t i = 0; i < ARRAY_LEN(bundles) && r < 0; i++)
		r = io_read_file(bundles[i], b, e);
	return r < 0 ? err_set(e, ERR_UNSUPPORTED, ENOENT,
			       "inspection: this host has no bundle of trusted certificates "
			       "(ca-certificates)")
		     : 0;
}

/* Reading it would cost more than all the rest of a start that inspects. */
int bundle_trust_look(const struct plan_net *n, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(4 * MIB);

	if (n->trust && access(n->trust, R_OK) == 0)
		return 0;
	for (size_t i = 0; !n->trust && i < ARRAY_LEN(bundles); i++)
		if (access(bundles[i], R_OK) == 0)
			return 0;
	return bundle_trust(n, &b, e); /* which says why not */
}

/* Readable for whoever the sandbox's user is outside; there is nothing secret in it. Written in place: what is mounted
 * inside is this very file. */
int bundle_begin(struct bundle *b, struct keeper *k, watch_fn *on_opened, void *arg, struct err *e)
{
	static const char *const names[BUNDLES] = { "ca-bundle.pem", "ca-bundle.jks" };

	/* The signal is heard once the loop runs; until then it must not end us. */
	if (str_eq(k->in->plan->engine, "native") && b->on_opened == NULL)
		b->on_opened = watch_signal(k->loop, SIGIO, on_opened, arg);
	b->is_leased = b->on_opened != NULL;
	for (int i = 0; i < (k->in->plan->net.has_java ? BUNDLES : BUNDLE_JAVA); i++) {
		int fd = openat(k->dir, names[i],
				O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

		b->fd[i] = fd;
		if (fd < 0 || fchmod(fd, 0644) < 0)
			return err_sys(e, "the bundle with the sandbox's CA");
		b->is_leased = b->is_leased && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
	}
	return 0;
}

/* Closing alone would not end the lease while a teller holds a copy. */
void bundle_close(struct bundle *b)
{
	for (int i = 0; i < BUNDLES; i++) {
		if (b->fd[i] >= 0)
			(void)fcntl(b->fd[i], F_SETLEASE, F_UNLCK); /* there may be none */
		fd_close(b->fd[i]);
		b->fd[i] = FD_NONE;
	}
}

void bundle_end(struct bundle *b, struct keeper *k, struct str ca)
{
	_cleanup_(buf_done) struct buf text = BUF(4 * MIB), java = BUF(4 * MIB);
	struct err e = ERR_INIT;

	if (b->fd[BUNDLE_PEM] < 0)
		return;
	if (bundle_trust(&k->in->plan->net, &text, &e) >= 0)
		buf_putc(&text, '\n');
	if (k->in->plan->net.extra_trust)
		buf_puts(&text, k->in->plan->net.extra_trust);
	buf_add(&text, ca.p, ca.n);
	if (b->fd[BUNDLE_JAVA] >= 0)
		jks_put(&java, (struct str){ .p = buf_cstr(&text), .n = text.n });
	if (io_write_all(b->fd[BUNDLE_PEM], buf_cstr(&text), text.n) < 0 ||
	    (java.n > 0 && io_write_all(b->fd[BUNDLE_JAVA], java.p, java.n) < 0))
		keeper_note(k, "network: the bundle with the sandbox's CA could not be written");
	bundle_close(b);
}
