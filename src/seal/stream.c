/* SPDX-License-Identifier: Apache-2.0 */
/* seal/stream.c - see stream.h
 *
 * OpenSSL reads and writes through a BIO of ours that never blocks, whatever the descriptor's own flags say, and
 * raises no signal.
 */
#include <openssl/err.h>
#include <sys/socket.h>

#include "seal/stream.h"

/* ---- a BIO over a socket */

static int bio_result(BIO *b, ssize_t n)
{
	BIO_clear_retry_flags(b);
	return (int)n;
}

static ssize_t take_early(struct stream *s, char *p, size_t n)
{
	struct str v = str_first(fifo_view(&s->early), n);

	if (v.n > 0)
		memcpy(p, v.p, v.n);
	fifo_take(&s->early, v.n);
	return (ssize_t)v.n;
}

static int bio_read(BIO *b, char *p, int n)
{
	struct stream *s = BIO_get_data(b);
	ssize_t got = take_early(s, p, (size_t)n);

	if (got == 0)
		got = recv(s->fd, p, (size_t)n, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
		BIO_set_retry_read(b);
		return -1;
	}
	if (got == 0)
		BIO_set_flags(b, BIO_FLAGS_IN_EOF);
	return bio_result(b, got);
}

static int bio_write(BIO *b, const char *p, int n)
{
	const struct stream *s = BIO_get_data(b);
	ssize_t put = send(s->fd, p, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (put < 0 && (errno == EAGAIN || errno == EINTR)) {
		BIO_set_retry_write(b);
		return -1;
	}
	return bio_result(b, put);
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
	(void)num;
	(void)ptr;
	if (cmd == BIO_CTRL_EOF)
		return BIO_test_flags(b, BIO_FLAGS_IN_EOF) != 0;
	return cmd == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *b)
{
	BIO_set_init(b, 1);
	return 1;
}

/* One method for the process, made at its first use and kept. */
static BIO_METHOD *method(void)
{
	static BIO_METHOD *m;

	if (m == NULL) {
		m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "vitrine");
		bug_on(m == NULL || !BIO_meth_set_read(m, bio_read) ||
		       !BIO_meth_set_write(m, bio_write) || !BIO_meth_set_ctrl(m, bio_ctrl) ||
		       !BIO_meth_set_create(m, bio_create));
	}
	return m;
}

/* ---- life */

void stream_init(struct stream *s, struct loop *l, int fd, watch_fn *fn, void *arg)
{
	*s = (struct stream){ .fd = fd,
			      .in = FIFO(STREAM_ROOM),
			      .out = FIFO(STREAM_ROOM),
			      .early = FIFO(STREAM_ROOM),
			      .is_open = true };
	s->rd = watch_fd(l, fd, WATCH_READ, fn, arg);
	s->wr = watch_fd(l, fd, WATCH_WRITE, fn, arg);
	watch_set(s->rd, false);
	watch_set(s->wr, false);
}

void stream_tls(struct stream *s, SSL *ssl)
{
	BIO *b = BIO_new(method());

	bug_on(b == NULL);
	BIO_set_data(b, s);
	SSL_set_bio(ssl, b, b);
	s->ssl = ssl;
	s->is_open = false;
}

void stream_done(struct stream *s)
{
	watch_free(s->rd);
	watch_free(s->wr);
	SSL_free(s->ssl);
	fd_close(s->fd);
	fifo_done(&s->in);
	fifo_done(&s->out);
	fifo_done(&s->early);
	*s = (struct stream){ .fd = FD_NONE, .is_dead = true };
}

/* ---- work */

static void die(struct stream *s, const char *why)
{
	unsigned long n = ERR_peek_last_error();

	if (n && ERR_GET_LIB(n) == ERR_LIB_SSL)
		s->alert = ERR_GET_REASON(n);
	if (s->why[0] == '\0') {
		long verify = s->ssl ? SSL_get_verify_result(s->ssl) : X509_V_OK;

		(void)snprintf(s->why, sizeof(s->why), "%s%s%s", why,
			       verify != X509_V_OK || n ? ": " : "",
			       verify != X509_V_OK ? X509_verify_cert_error_string(verify)
			       : n                 ? ERR_reason_error_string(n)
						   : "");
	}
	ERR_clear_error();
	s->is_dead = s->is_eof = true;
}

/* What a call of OpenSSL's means that did not give what was asked for. True when the state changed. */
static bool judge(struct stream *s, int r, const char *doing)
{
	switch (SSL_get_error(s->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		s->wants_read = true;
		return false;
	case SSL_ERROR_WANT_WRITE:
		s->wants_write = true;
		return false;
	case SSL_ERROR_WANT_CLIENT_HELLO_CB:
		s->is_waiting = true;
		return false;
	case SSL_ERROR_ZERO_RETURN:
		s->is_eof = true;
		return true;
	default:
		break;
	}
	if (s->is_open &&
	    ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
		ERR_clear_error();
		s->is_eof = true;
		return true;
	}
	die(s, doing);
	return true;
}

static bool shake_hands(struct stream *s)
{
	int r;

	ERR_clear_error();
	s->is_waiting = false;
	r = SSL_do_handshake(s->ssl);
	if (r == 1) {
		s->is_open = true;
		return true;
	}
	return judge(s, r, "TLS handshake");
}

static ssize_t plain_result(struct stream *s, ssize_t n, const char *doing, bool *ret_changed)
{
	if (n >= 0)
		return n;
	if (errno == EAGAIN || errno == EINTR)
		return -EAGAIN;
	(void)snprintf(s->why, sizeof(s->why), "%s: %s", doing, strerror(errno));
	s->is_dead = s->is_eof = true;
	*ret_changed = true;
	return -EIO;
}

static bool read_some(struct stream *s)
{
	size_t room;
	char *p = fifo_space(&s->in, &room);
	bool has_changed = false;
	ssize_t n;

	if (s->ssl) {
		ERR_clear_error();
		n = SSL_read(s->ssl, p, (int)room);
		if (n <= 0)
			return judge(s, (int)n, "reading TLS");
	} else {
		n = plain_result(s, recv(s->fd, p, room, MSG_DONTWAIT), "reading", &has_changed);
		s->wants_read |= n == -EAGAIN;
		s->is_eof |= n == 0;
		if (n <= 0)
			return has_changed || n == 0;
	}
	fifo_filled(&s->in, (size_t)n);
	s->got += (uint64_t)n;
	return true;
}

static bool write_some(struct stream *s)
{
	struct str v = fifo_view(&s->out);
	bool has_changed = false;
	ssize_t n;

	if (s->ssl) {
		ERR_clear_error();
		n = SSL_write(s->ssl, v.p, (int)(v.n < 65536 ? v.n : 65536));
		if (n <= 0)
			return judge(s, (int)n, "writing TLS");
	} else {
		n = plain_result(s, send(s->fd, v.p, v.n, MSG_DONTWAIT | MSG_NOSIGNAL), "writing",
				 &has_changed);
		s->wants_write |= n == -EAGAIN;
		if (n < 0)
			return has_changed;
	}
	fifo_take(&s->out, (size_t)n);
	s->put += (uint64_t)n;
	return true;
}

static bool shut(struct stream *s)
{
	if (s->ssl) {
		ERR_clear_error();
		(void)SSL_shutdown(s->ssl); /* the peer may be gone */
		ERR_clear_error();
	}
	(void)shutdown(s->fd, SHUT_WR);
	s->has_shut = true;
	return true;
}

bool stream_work(struct stream *s)
{
	bool has_moved = false;

	s->wants_read = s->wants_write = false;
	if (s->is_dead)
		return false;
	if (!s->is_open && !shake_hands(s))
		return false;
	if (!s->is_open || s->is_dead)
		return true;
	while (s->out.n > 0 && !s->is_dead && !s->wants_write && write_some(s))
		has_moved = true;
	if (s->is_closing && s->out.n == 0 && !s->has_shut && !s->is_dead)
		has_moved |= shut(s);
	while (fifo_room(&s->in) > 0 && !s->is_eof && !s->is_dead && read_some(s))
		has_moved = true;
	return has_moved;
}

void stream_wait(struct stream *s)
{
	bool can_take = s->is_open && fifo_room(&s->in) > 0 && !s->is_eof;

	watch_set(s->rd,
		  !s->is_dead && !s->is_waiting && (can_take || (!s->is_open && s->wants_read)));
	watch_set(s->wr, !s->is_dead && !s->is_waiting && s->wants_write);
}

void stream_close(struct stream *s)
{
	s->is_closing = true;
}

bool stream_is_over(const struct stream *s)
{
	return s->is_dead || s->has_shut;
}
