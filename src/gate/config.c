/* SPDX-License-Identifier: Apache-2.0 */
/* gate/config.c - see config.h */
#include "gate/config.h"
#include "base/num.h"
#include "policy/pathrule.h"

static int add_port(struct config *c, const char *text)
{
	if (c->n_ports == CONFIG_PORTS || net_port_parse(text, &c->ports[c->n_ports]) < 0)
		return -EINVAL;
	c->n_ports++;
	return 0;
}

static int add_host_port(struct config *c, const char *text)
{
	struct net_port p;

	if (c->n_host_ports == CONFIG_PORTS || net_port_parse(text, &p) < 0)
		return -EINVAL;
	c->host_ports[c->n_host_ports++] = p.outside;
	return 0;
}

static int add_text(char ***list, size_t *n, const char *text)
{
	*list = mem_grow(*list, *n + 1, sizeof(**list));
	(*list)[(*n)++] = mem_str(text);
	return 0;
}

bool config_inspects(const struct config *c, const char *host)
{
	for (size_t i = 0; i < c->n_inspect; i++)
		if (host_matches(c->inspect[i], host))
			return true;
	return false;
}

static int parse_line(struct config *c, char *line, struct err *e)
{
	char *value = line + strcspn(line, " ");
	int r = -EINVAL;

	if (*value)
		*value++ = '\0';
	if (str_eq(line, "allow") || str_eq(line, "deny"))
		return rules_add(&c->rules, value, line[0] == 'd', e);
	if (str_eq(line, "port"))
		r = add_port(c, value);
	else if (str_eq(line, "host-port"))
		r = add_host_port(c, value);
	else if (str_eq(line, "upstream"))
		r = net_upstream_parse(value, &c->upstream);
	else if (str_eq(line, "inspect"))
		r = add_text(&c->inspect, &c->n_inspect, value);
	else if (str_eq(line, "path"))
		r = add_text(&c->paths, &c->n_paths, value);
	else if (str_eq(line, "name"))
		r = snprintf(c->name, sizeof(c->name), "%s", value);
	else if (str_eq(line, "ask")) {
		c->is_asking = true;
		r = 0;
	}
	return r < 0 ? err_set(e, ERR_CONFIG, EINVAL, "'%.20s %.80s' is not understood", line,
			       value)
		     : 0;
}

int config_parse(char *text, struct config *ret, struct err *e)
{
	_cleanup_(config_done) struct config c = { 0 };
	char *next;

	for (char *p = text; *p; p = next) {
		size_t n = strcspn(p, "\n");
		int r;

		next = p + n + (p[n] == '\n');
		p[n] = '\0';
		r = *p ? parse_line(&c, p, e) : 0;
		if (r < 0)
			return r;
	}
	*ret = c;
	c = (struct config){ 0 };
	return 0;
}

void config_done(struct config *c)
{
	rules_done(&c->rules);
	for (size_t i = 0; i < c->n_inspect; i++)
		free(c->inspect[i]);
	free(c->inspect);
	for (size_t i = 0; i < c->n_paths; i++)
		free(c->paths[i]);
	free(c->paths);
}

int config_read(int fd, struct buf *ret)
{
	char part[4096];
	size_t at = 0;

	for (;;) {
		ssize_t n = pread(fd, part, sizeof(part), (off_t)at);

		if (n < 0)
			return -errno;
		if (n == 0)
			return ret->is_over ? -EMSGSIZE : 0;
		buf_add(ret, part, (size_t)n);
		at += (size_t)n;
	}
}
