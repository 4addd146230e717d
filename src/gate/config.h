/* SPDX-License-Identifier: Apache-2.0 */
/* gate/config.h - what the keeper tells dial, as lines of text in a sealed memfd
 *
 *      allow RULE | deny RULE | port OUTSIDE:INSIDE | host-port PORT | upstream URL | ask | name NAME | inspect HOST
 *
 * and, for who only shows them: path allow|deny RULE
 */
#ifndef VITRINE_GATE_CONFIG_H
#define VITRINE_GATE_CONFIG_H

#include "base/buf.h"
#include "policy/net.h"

#define CONFIG_MAX (2 * MIB)
#define CONFIG_PORTS 64

struct config {
	struct rules rules;
	struct net_upstream upstream;
	bool is_asking;
	char **inspect; /* name or *.name */
	size_t n_inspect;
	char **paths; /* "allow GET host/path", "allow git push host/path:ref": seal's, to be shown */
	size_t n_paths;
	char name[72]; /* of the sandbox, for the command that would allow */
	struct net_port ports[CONFIG_PORTS];
	size_t n_ports;
	uint16_t host_ports[CONFIG_PORTS];
	size_t n_host_ports;
};

/* The text comes from the keeper and was checked there; an unknown line is a bug of ours and refused. */
int config_parse(char *text, struct config *ret, struct err *e);
void config_done(struct config *c);

/* This name is one whose connections go to seal. */
bool config_inspects(const struct config *c, const char *host);

/* Reads a memfd from its beginning. */
int config_read(int fd, struct buf *ret);

#endif
