/* SPDX-License-Identifier: Apache-2.0 */
/* gate/resolve.c - see resolve.h
 *
 * A stub resolver and no more: A and AAAA together over one UDP socket of a random port to one server, after a second
 * to the next, four times at most, and TOTAL_NS for all of it: a name server that is silent, slow or drips failures is a refusal
 * within five seconds of the request. A library would bring its own files, threads or start-up cost into the one process that
 * must start fast and open nothing. Answers that were cut to fit a datagram are used as far as they go.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/loop.h"
#include "gate/resolve.h"

#define SERVERS 3
#define TRY_NS NS_PER_SEC
#define TRIES 4
#define TOTAL_NS (4 * NS_PER_SEC) /* of one lookup, whatever its servers do */
#define ENOUGH_NS                                                                                  \
	(300 * NS_PER_MS) /* to wait for the second kind of address when there is the first */
#define LOOKUPS 512
#define CACHED 512
#define STALE_NS (30 * NS_PER_SEC)

struct waiter {
	resolved_fn *fn;
	void *arg;
	struct waiter *next;
};

struct lookup {
	struct source s;
	struct resolver *r;
	char name[HOST_TEXT];
	uint16_t id[2]; /* A, AAAA */
	bool is_done[2];
	bool is_dead;
	unsigned tries, code;
	uint64_t due, end; /* of this try; of all of them */
	struct addr v[DNS_ADDRS];
	size_t n;
	uint32_t ttl;
	struct waiter *waiters;
	struct lookup *next;
};

struct cached {
	char name[HOST_TEXT];
	struct addr v[DNS_ADDRS];
	size_t n;
	unsigned code;
	uint64_t until;
};

struct resolver {
	struct turn *t;
	struct addr servers[SERVERS];
	size_t n_servers;
	char *hosts;
	uint64_t configured;
	struct lookup *lookups;
	size_t n_lookups;
	struct cached *cache; /* each name has one place; who comes later takes it */
};

struct resolver *resolver_new(struct turn *t)
{
	struct resolver *r = mem_new(1, sizeof(*r));

	r->t = t;
	r->cache = mem_new(CACHED, sizeof(*r->cache));
	return r;
}

/* ---- configuration ---- */

/* The next word of a line, or NULL; *p moves behind it. */
static char *next_word(char **p)
{
	char *from = *p + strspn(*p, " \t\r");
	size_t n = strcspn(from, " \t\r");

	if (n == 0 || *from == '#' || *from == ';')
		return NULL;
	*p = from + n + (from[n] != '\0');
	from[n] = '\0';
	return from;
}

static void take_server(struct resolver *r, char *line)
{
	const char *word = next_word(&line);
	const char *value = word && str_eq(word, "nameserver") ? next_word(&line) : NULL;
	struct addr a;

	if (value && r->n_servers < SERVERS && addr_parse(value, strlen(value), &a) == 0)
		r->servers[r->n_servers++] = a;
}

void resolver_config(struct resolver *r, const char *text)
{
	_free_ char *copy = mem_str(text);
	const char *hosts = strstr(text, "\n---\n");
	static const uint8_t here[4] = { 127, 0, 0, 1 };
	char *next;

	r->n_servers = 0;
	for (char *p = copy; *p && !str_starts(p, "---\n"); p = next) {
		size_t n = strcspn(p, "\n");

		next = p + n + (p[n] == '\n');
		p[n] = '\0';
		take_server(r, p);
	}
	if (r->n_servers == 0)
		r->servers[r->n_servers++] = addr_from_v4(here);
	free(r->hosts);
	r->hosts = mem_str(hosts ? hosts + 5 : "");
	r->configured = clock_now();
}

bool resolver_is_stale(const struct resolver *r)
{
	return r->configured == 0 || clock_now() - r->configured > STALE_NS;
}

static size_t find_in_hosts(const struct resolver *r, const char *name, struct addr v[DNS_ADDRS])
{
	_free_ char *copy = mem_str(r->hosts ? r->hosts : "");
	size_t found = 0;
	char *next;

	for (char *p = copy; *p; p = next) {
		size_t n = strcspn(p, "\n");
		const char *word;
		struct addr a;

		next = p + n + (p[n] == '\n');
		p[n] = '\0';
		word = next_word(&p);
		if (word == NULL || addr_parse(word, strlen(word), &a) < 0)
			continue;
		while ((word = next_word(&p)) != NULL)
			if (strcasecmp(word, name) == 0 && found < DNS_ADDRS)
				v[found++] = a;
	}
	return found;
}

/* ---- a lookup ---- */

static struct cached *place_of(const struct resolver *r, const char *name)
{
	uint32_t h = 2166136261U;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619U;
	return &r->cache[h % CACHED];
}

static const struct cached *find_cached(const struct resolver *r, const char *name)
{
	const struct cached *c = place_of(r, name);

	return c->until > clock_now() && str_eq(c->name, name) ? c : NULL;
}

static void finish(struct lookup *l)
{
	struct resolver *r = l->r;
	struct cached *c = place_of(r, l->name);
	uint64_t ttl = l->ttl < 5 ? 5 : l->ttl > 300 ? 300 : l->ttl;

	source_close(r->t, &l->s);
	l->is_dead = true;
	/* A failure to get any answer is not remembered: the next one asks again. */
	*c = (struct cached){ .n = l->n, .code = l->code, .until = clock_now() + ttl * NS_PER_SEC };
	if (l->n > 0 || l->code == DNS_NXDOMAIN)
		memcpy(c->name, l->name, sizeof(c->name));
	memcpy(c->v, l->v, sizeof(c->v));
	while (l->waiters) {
		struct waiter *w = l->waiters;

		l->waiters = w->next;
		w->fn(w->arg, l->v, l->n, l->code);
		free(w);
	}
}

static void take_answer(struct lookup *l, int which, const struct dns_answer *a)
{
	l->is_done[which] = true;
	if (a->ttl < l->ttl)
		l->ttl = a->ttl;
	if (a->code != DNS_OK || l->code == DNS_SERVFAIL)
		l->code = a->code;
	for (size_t i = 0; i < a->n && l->n < DNS_ADDRS; i++)
		l->v[l->n++] = a->v[i];
}

static void on_answer(struct source *s, unsigned ready)
{
	struct lookup *l = holder_of(s, struct lookup, s);
	uint8_t in[4096];
	ssize_t n = recv(s->fd, in, sizeof(in), MSG_DONTWAIT);
	static const uint16_t types[2] = { DNS_A, DNS_AAAA };

	(void)ready;
	if (n < 0) {
		if (errno != EAGAIN)
			l->due = 0; /* nobody listens there: the next server, now */
		return;
	}
	for (int i = 0; i < 2; i++) {
		struct dns_answer a;

		if (l->is_done[i] ||
		    dns_parse_answer(in, (size_t)n, l->id[i], l->name, types[i], &a) < 0)
			continue;
		if (a.code == DNS_OK || a.code == DNS_NXDOMAIN)
			take_answer(l, i, &a);
		else
			l->due = 0;
	}
	if (l->is_done[0] && l->is_done[1])
		finish(l);
	else if (l->n > 0 && l->due > clock_now() + ENOUGH_NS)
		l->due = clock_now() + ENOUGH_NS;
}

static int connect_to(const struct addr *a, uint16_t port)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	bool is_v4 = addr_is_v4(a);
	_close_ int fd =
		socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	memcpy(&a4.sin_addr, a->b + 12, 4);
	memcpy(&a6.sin6_addr, a->b, 16);
	if (is_v4 ? connect(fd, (const struct sockaddr *)&a4, sizeof(a4)) < 0
		  : connect(fd, (const struct sockaddr *)&a6, sizeof(a6)) < 0)
		return -errno;
	return take_fd(fd);
}

static void send_query(struct lookup *l, int which, uint16_t type)
{
	_cleanup_(buf_done) struct buf b = BUF(DNS_MAX);

	if (l->is_done[which])
		return;
	dns_put_query(&b, l->id[which], l->name, type);
	(void)send(l->s.fd, b.p, b.n,
		   MSG_DONTWAIT | MSG_NOSIGNAL); /* the time-out sees to the rest */
}

static void try_next(struct lookup *l)
{
	struct resolver *r = l->r;
	uint64_t now = clock_now();
	int fd;

	source_close(r->t, &l->s);
	if (l->tries >= TRIES || r->n_servers == 0 || now >= l->end) {
		finish(l);
		return;
	}
	bug_on(getrandom(l->id, sizeof(l->id), 0) != (ssize_t)sizeof(l->id));
	fd = connect_to(&r->servers[l->tries++ % r->n_servers], 53);
	l->due = fd < 0 ? 0 : now + TRY_NS < l->end ? now + TRY_NS : l->end;
	if (fd < 0 || source_open(r->t, &l->s, fd, on_answer, POLLER_READ) < 0)
		return;
	send_query(l, 0, DNS_A);
	send_query(l, 1, DNS_AAAA);
}

static struct lookup *find_lookup(struct resolver *r, const char *name)
{
	for (struct lookup *l = r->lookups; l; l = l->next)
		if (!l->is_dead && str_eq(l->name, name))
			return l;
	return NULL;
}

static void add_waiter(struct lookup *l, resolved_fn *fn, void *arg)
{
	struct waiter *w = mem_new(1, sizeof(*w));

	*w = (struct waiter){ .fn = fn, .arg = arg, .next = l->waiters };
	l->waiters = w;
}

void resolver_find(struct resolver *r, const char *name, resolved_fn *fn, void *arg)
{
	const struct cached *c = find_cached(r, name);
	struct addr v[DNS_ADDRS];
	struct lookup *l;
	size_t n;

	if (c) {
		fn(arg, c->v, c->n, c->code);
		return;
	}
	n = find_in_hosts(r, name, v);
	if (n > 0 || r->n_lookups >= LOOKUPS) {
		fn(arg, v, n, n > 0 ? DNS_OK : DNS_SERVFAIL);
		return;
	}
	l = find_lookup(r, name);
	if (l) {
		add_waiter(l, fn, arg);
		return;
	}
	l = mem_new(1, sizeof(*l));
	*l = (struct lookup){ .s = SOURCE_NONE,
			      .r = r,
			      .code = DNS_SERVFAIL,
			      .end = clock_now() + TOTAL_NS,
			      .ttl = 300 };
	(void)snprintf(l->name, sizeof(l->name), "%s", name);
	l->next = r->lookups;
	r->lookups = l;
	r->n_lookups++;
	add_waiter(l, fn, arg);
	try_next(l);
}

static void sweep(struct resolver *r)
{
	for (struct lookup **at = &r->lookups; *at;) {
		struct lookup *l = *at;

		if (!l->is_dead) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		free(l);
		r->n_lookups--;
	}
}

int resolver_tick(struct resolver *r)
{
	uint64_t now = clock_now(), next = UINT64_MAX;

	for (struct lookup *l = r->lookups; l; l = l->next)
		if (!l->is_dead && l->due <= now) {
			if (l->n > 0)
				finish(l);
			else
				try_next(l);
		}
	sweep(r);
	for (const struct lookup *l = r->lookups; l; l = l->next)
		if (l->due < next)
			next = l->due;
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)((next - now) / NS_PER_MS + 1);
}
