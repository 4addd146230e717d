/* SPDX-License-Identifier: Apache-2.0 */
/* sys/scope.c - see scope.h
 *
 * The manager listens on a socket of its own beside the bus, where it alone answers and lets only its user (and root) in;
 * it speaks D-Bus there. One call is all we need (StartTransientUnit), so what D-Bus we know is how to write that and how
 * to tell an error from an answer. That the call was obeyed is seen in /proc: we are in another group then.
 *
 * D-Bus in short: every value is aligned to its size from the start of the message, structures to 8; strings carry their
 * length before and a NUL behind them, an array the number of its bytes; a variant is preceded by its signature.
 */
#include <endian.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "sys/scope.h"

#define PATIENCE_MS 10000
#define REPLY_MAX (64 * KIB)

enum { CALL = 1, ANSWER = 2, REFUSAL = 3 }; /* kinds of message */
enum { FIELD_PATH = 1, FIELD_INTERFACE, FIELD_MEMBER, FIELD_DESTINATION = 6, FIELD_SIGNATURE = 8 };
enum {
	HEAD_BYTES = 16
}; /* the fixed part: order, kind, flags, version, body, serial, bytes of the fields */

/* ---- writing ---- */

static void align(struct buf *b, size_t n)
{
	while (b->n % n)
		buf_putc(b, '\0');
}

static void put_u32(struct buf *b, uint32_t v)
{
	unsigned char le[4] = { (unsigned char)v, (unsigned char)(v >> 8), (unsigned char)(v >> 16),
				(unsigned char)(v >> 24) };

	align(b, 4);
	buf_add(b, le, sizeof(le));
}

static void set_u32(struct buf *b, size_t at, uint32_t v)
{
	for (size_t i = 0; i < 4; i++)
		b->p[at + i] = (char)(v >> (8 * i));
}

static void put_string(struct buf *b, const char *s)
{
	put_u32(b, (uint32_t)strlen(s));
	buf_add(b, s, strlen(s) + 1);
}

static void put_signature(struct buf *b, const char *s)
{
	buf_putc(b, (char)strlen(s));
	buf_add(b, s, strlen(s) + 1);
}

static void put_field(struct buf *b, int code, const char *type, const char *value)
{
	align(b, 8);
	buf_putc(b, (char)code);
	put_signature(b, type);
	if (type[0] == 'g')
		put_signature(b, value);
	else
		put_string(b, value);
}

static void put_property(struct buf *b, const char *name, const char *type)
{
	align(b, 8);
	put_string(b, name);
	put_signature(b, type);
}

/* What an array's length is counted from comes after the padding of its first member. */
static size_t begin_array(struct buf *b, size_t member, size_t *len_at)
{
	align(b, 4);
	*len_at = b->n;
	put_u32(b, 0);
	align(b, member);
	return b->n;
}

static void put_body(struct buf *b, const char *unit, pid_t pid)
{
	size_t len_at, from;

	put_string(b, unit);
	put_string(b, "fail");
	from = begin_array(b, 8, &len_at);
	put_property(b, "Description", "s");
	put_string(b, "a sandbox of Vitrine");
	put_property(b, "Delegate", "b");
	put_u32(b, 1);
	put_property(b, "CollectMode", "s");
	put_string(b, "inactive-or-failed");
	put_property(b, "PIDs", "au");
	put_u32(b, 4);
	put_u32(b, (uint32_t)pid);
	set_u32(b, len_at, (uint32_t)(b->n - from));
	(void)begin_array(b, 8, &len_at); /* no units besides */
}

void scope_request(struct buf *out, const char *unit, pid_t pid)
{
	static const char head[] = { 'l', CALL, 0, 1 };
	size_t fields, body;

	buf_add(out, head, sizeof(head));
	put_u32(out, 0); /* bytes of the body */
	put_u32(out, 1); /* serial */
	put_u32(out, 0); /* bytes of the fields */
	fields = out->n;
	put_field(out, FIELD_PATH, "o", "/org/freedesktop/systemd1");
	put_field(out, FIELD_INTERFACE, "s", "org.freedesktop.systemd1.Manager");
	put_field(out, FIELD_MEMBER, "s", "StartTransientUnit");
	put_field(out, FIELD_DESTINATION, "s", "org.freedesktop.systemd1");
	put_field(out, FIELD_SIGNATURE, "g", "ssa(sv)a(sa(sv))");
	set_u32(out, HEAD_BYTES - 4, (uint32_t)(out->n - fields));
	align(out, 8);
	body = out->n;
	put_body(out, unit, pid);
	set_u32(out, 4, (uint32_t)(out->n - body));
}

/* ---- the socket ---- */

static bool socket_path(struct sockaddr_un *a)
{
	struct stat st;

	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (access("/run/systemd/system", F_OK) < 0)
		return false;
	if (geteuid() == 0)
		(void)snprintf(a->sun_path, sizeof(a->sun_path), "/run/systemd/private");
	else
		(void)snprintf(a->sun_path, sizeof(a->sun_path), "/run/user/%u/systemd/private",
			       (unsigned)geteuid());
	return stat(a->sun_path, &st) == 0 && S_ISSOCK(st.st_mode);
}

bool scope_can_ask(void)
{
	struct sockaddr_un a;

	return socket_path(&a);
}

static int ask(int fd, const struct buf *request, struct err *e)
{
	char uid[16], hex[40] = "", line[80];
	struct buf all = BUF(REPLY_MAX);

	(void)snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
	for (size_t i = 0; uid[i]; i++)
		(void)snprintf(hex + 2 * i, sizeof(hex) - 2 * i, "%02x", (unsigned)uid[i]);
	(void)snprintf(line, sizeof(line), "AUTH EXTERNAL %s\r\nBEGIN\r\n", hex);
	buf_putc(&all, '\0');
	buf_puts(&all, line);
	buf_add(&all, request->p, request->n);
	if (send(fd, all.p, all.n, MSG_NOSIGNAL) != (ssize_t)all.n) {
		buf_done(&all);
		return err_sys(e, "ask systemd for a control group");
	}
	buf_done(&all);
	return 0;
}

/* An error's text is its first string; it lies behind the fields. */
static int refused(const struct buf *b, size_t at, struct err *e)
{
	size_t body = at + HEAD_BYTES;
	uint32_t fields;

	memcpy(&fields, b->p + at + HEAD_BYTES - 4, sizeof(fields));
	body += (le32toh(fields) + 7) & ~(size_t)7;
	if (body + 4 >= b->n)
		return err_set(e, ERR_UNSUPPORTED, EPERM, "systemd refuses a control group");
	return err_set(e, ERR_UNSUPPORTED, EPERM, "systemd refuses a control group: %.*s",
		       (int)(b->n - body - 4), b->p + body + 4);
}

/* "OK ...\r\n" and then messages, of which the first answer is ours. 1: there is none yet. */
static int judge(const struct buf *b, struct err *e)
{
	const char *line = b->n ? memchr(b->p, '\n', b->n) : NULL;
	size_t at;

	if (line == NULL)
		return b->n > 256 ? err_set(e, ERR_UNSUPPORTED, EPROTO, "systemd's answer is odd")
				  : 1;
	if (!str_starts(b->p, "OK "))
		return err_set(e, ERR_UNSUPPORTED, EACCES, "systemd's manager does not let us in");
	at = (size_t)(line - b->p) + 1;
	while (b->n - at >= HEAD_BYTES) {
		uint32_t body, fields;
		size_t whole;

		memcpy(&body, b->p + at + 4, sizeof(body));
		memcpy(&fields, b->p + at + HEAD_BYTES - 4, sizeof(fields));
		if (b->p[at] != 'l' || le32toh(body) > REPLY_MAX || le32toh(fields) > REPLY_MAX)
			return err_set(e, ERR_UNSUPPORTED, EPROTO, "systemd's answer is odd");
		whole = HEAD_BYTES + ((le32toh(fields) + 7) & ~(size_t)7) + le32toh(body);
		if (b->n - at < whole)
			return 1;
		if (b->p[at + 1] == REFUSAL)
			return refused(b, at, e);
		if (b->p[at + 1] == ANSWER)
			return 0;
		at += whole; /* a signal */
	}
	return 1;
}

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int hear(int fd, int64_t until, struct err *e)
{
	_cleanup_(buf_done) struct buf got = BUF(REPLY_MAX);
	int r = 1;

	while (r > 0) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left = until - now_ms();
		char some[4096];
		ssize_t n = 0;

		if (left > 0 && poll(&p, 1, (int)left) > 0)
			n = recv(fd, some, sizeof(some), 0);
		if (n <= 0)
			return err_set(e, ERR_UNSUPPORTED, ETIMEDOUT, "systemd gives no answer");
		buf_add(&got, some, (size_t)n);
		if (got.is_over)
			return err_set(e, ERR_UNSUPPORTED, EPROTO, "systemd's answer is odd");
		r = judge(&got, e);
	}
	return r;
}

/* The answer says that a job was begun; we see its end. */
static int arrive(const char *unit, int64_t until, struct err *e)
{
	const struct timespec moment = { .tv_nsec = 1000 * 1000 };

	do {
		_cleanup_(buf_done) struct buf b = BUF(64 * KIB);

		if (io_read_file("/proc/self/cgroup", &b, e) >= 0 && strstr(buf_cstr(&b), unit))
			return 0;
		(void)nanosleep(&moment, NULL);
	} while (now_ms() < until);
	return err_set(e, ERR_UNSUPPORTED, ETIMEDOUT,
		       "systemd promised a control group and gave none");
}

int scope_enter(struct err *e)
{
	_cleanup_(buf_done) struct buf request = BUF(4 * KIB);
	_close_ int fd = FD_NONE;
	int64_t until = now_ms() + PATIENCE_MS;
	struct sockaddr_un a;
	char unit[48];
	int r;

	if (!socket_path(&a))
		return err_set(e, ERR_UNSUPPORTED, ENOENT,
			       "there is no systemd manager of this user");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return err_sys(e, "reach systemd at '%s'", a.sun_path);
	(void)snprintf(unit, sizeof(unit), "vitrine-%d-%llx.scope", (int)getpid(),
		       (unsigned long long)now_ms());
	scope_request(&request, unit, getpid());
	bug_on(request.is_over);
	r = ask(fd, &request, e);
	if (r == 0)
		r = hear(fd, until, e);
	return r < 0 ? r : arrive(unit, until, e);
}

void scope_probe(struct cgroup_host *h)
{
	struct cgroup_host *seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct err e = ERR_INIT;
	int status = -1;
	pid_t pid;

	if (seen == MAP_FAILED)
		return;
	pid = fork();
	if (pid == 0) {
		if (scope_enter(&e) < 0)
			_exit(1);
		cgroup_probe(seen);
		_exit(0);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && seen->usable)
		*h = *seen;
	(void)munmap(seen, sizeof(*seen));
}
