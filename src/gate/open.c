/* SPDX-License-Identifier: Apache-2.0 */
/* gate/open.c - what is connected now, so that a change of the rules also ends what is no longer allowed */
#include "gate/dial.h"

#define SLOTS 4096

struct open_entry {
	uint32_t id;
	unsigned via;
	uint16_t port;
	bool is_asked, is_inspected;
	struct host_id host;
	struct addr addr;
	bool has_addr;
	struct open_entry *next;
};

struct open_table {
	struct open_entry *slots[SLOTS];
};

void open_add(struct dial *d, const struct ask *a, const struct addr *addr)
{
	struct open_entry *en = mem_new(1, sizeof(*en));

	if (d->open == NULL)
		d->open = mem_new(1, sizeof(*d->open));
	*en = (struct open_entry){ .id = a->id,
				   .via = a->via,
				   .port = a->port,
				   .is_asked = a->is_asked,
				   .is_inspected = !a->host.is_addr &&
						   config_inspects(&d->config, a->host.name),
				   .host = a->host,
				   .has_addr = addr != NULL,
				   .next = d->open->slots[a->id % SLOTS] };
	if (addr)
		en->addr = *addr;
	d->open->slots[a->id % SLOTS] = en;
}

void open_remove(struct dial *d, uint32_t id)
{
	if (d->open == NULL)
		return;
	for (struct open_entry **at = &d->open->slots[id % SLOTS]; *at; at = &(*at)->next) {
		struct open_entry *en = *at;

		if (en->id != id)
			continue;
		*at = en->next;
		free(en);
		return;
	}
}

static bool is_host_port(const struct config *c, uint16_t port)
{
	for (size_t i = 0; i < c->n_host_ports; i++)
		if (c->host_ports[i] == port)
			return true;
	return false;
}

static bool is_still_allowed(const struct dial *d, const struct open_entry *en)
{
	const struct rules *r = &d->config.rules;
	struct verdict v;

	if (en->via == VIA_HOST_PORT)
		return is_host_port(&d->config, en->port);
	if (!en->is_inspected && !en->host.is_addr && config_inspects(&d->config, en->host.name))
		return false; /* its requests are judged from now on, and these cannot be seen */
	v = rules_host(r, &en->host, en->port);
	/* What a person allowed stays so until a rule says otherwise. */
	if (!v.is_allowed && !(en->is_asked && !(v.rule && v.rule->is_deny)))
		return false;
	return !en->has_addr || en->is_asked ||
	       rules_address(r, &en->addr, en->port, is_own_address(&en->addr)).is_allowed;
}

void open_check(struct dial *d)
{
	for (size_t i = 0; d->open && i < SLOTS; i++)
		for (const struct open_entry *en = d->open->slots[i]; en; en = en->next) {
			struct gate_msg m = { .type = GATE_CLOSE, .id = en->id };

			if (!is_still_allowed(d, en))
				(void)gate_send(d->front.fd, &m, NULL,
						0); /* its end is seen elsewhere */
		}
}
