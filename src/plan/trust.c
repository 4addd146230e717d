/* SPDX-License-Identifier: Apache-2.0 */
/* plan/trust.c - how programs inside come to trust the sandbox's CA
 *
 * Only inside: the host's own bundle is never touched. The bundle inside is the host's with one certificate more, so a
 * variable that replaces a program's own list (REQUESTS_CA_BUNDLE) takes nothing away. docs/SEAL.md has the table.
 */
#include "base/path.h"
#include "plan/parts.h"

const char *const plan_trust_vars[] = {
	"SSL_CERT_FILE",                      /* OpenSSL, Go, Ruby, Perl, rustls-native-certs, uv */
	"CURL_CA_BUNDLE",                     /* curl, and requests where the next is not set */
	"REQUESTS_CA_BUNDLE",                 /* Python requests, pip's own too */
	"PIP_CERT",                           /* pip, also in isolated mode */
	"NODE_EXTRA_CA_CERTS",                /* Node.js: in addition to its own */
	"GIT_SSL_CAINFO",                     /* git over HTTPS */
	"CARGO_HTTP_CAINFO",                  /* cargo */
	"AWS_CA_BUNDLE",                      /* AWS SDKs and CLI */
	"DENO_CERT",                          /* Deno */
	"NIX_SSL_CERT_FILE",                  /* Nix and what it builds */
	"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",   /* gRPC core */
	"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", /* gcloud */
	"BUNDLE_SSL_CA_CERT",                 /* bundler */
	"HEX_CACERTS_PATH",                   /* Elixir's hex */
	"npm_config_cafile",                  /* npm */
	NULL,
};

/* Java prints that it has seen this; no other way reaches every Java. */
const char plan_trust_java[] = "-Djavax.net.ssl.trustStore=" PLAN_BUNDLE_JAVA " -Djavax.net.ssl."
			       "trustStoreType=JKS";

const char *const plan_trust_files[] = {
	"/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch, Gentoo */
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora, RHEL */
	"/etc/pki/tls/certs/ca-bundle.crt",                  /* older ones of them */
	"/etc/ssl/ca-bundle.pem",                            /* SUSE */
	"/etc/ssl/cert.pem",                                 /* Alpine */
	NULL,
};

void plan_trust(struct plan *p, const struct facts *f)
{
	_free_ char *java = NULL;

	if (!p->net.has_seal)
		return;
	p->net.bundle = mem_fmt("%s/sandboxes/%s/ca-bundle.pem", p->state_dir, p->name);
	plan_add_mount(p, MOUNT_BIND, p->net.bundle, PLAN_BUNDLE, MOUNT_RO, "sandbox CA");
	p->net.has_java = f->has_java;
	java = mem_fmt("%s/sandboxes/%s/ca-bundle.jks", p->state_dir, p->name);
	if (f->has_java)
		plan_add_mount(p, MOUNT_BIND, java, PLAN_BUNDLE_JAVA, MOUNT_RO, "sandbox CA");
	for (size_t i = 0; plan_trust_files[i]; i++)
		if (f->root_dir || !(f->trust_gone >> i & 1))
			plan_add_mount(p, MOUNT_BIND, p->net.bundle, plan_trust_files[i],
				       MOUNT_RO | MOUNT_GONE_OK, "sandbox CA");
}

/* A login of the host: its file, with placeholders, where the agent looks for it. */
void plan_logins(struct plan *p, const struct facts *f)
{
	for (size_t i = 0; p->net.has_seal && i < f->n_secrets; i++) {
		const struct secret_fact *s = &f->secrets[i];
		_free_ char *src = NULL, *dst = NULL;

		if (s->file == NULL)
			continue;
		p->net.logins =
			mem_grow(p->net.logins, p->net.n_logins + 3, sizeof(*p->net.logins));
		p->net.logins[p->net.n_logins++] = mem_fmt("login-%s", s->name);
		p->net.logins[p->net.n_logins++] = mem_str(s->text);
		p->net.logins[p->net.n_logins] = NULL;
		src = mem_fmt("%s/sandboxes/%s/login-%s", p->state_dir, p->name, s->name);
		dst = path_join(p->home, s->file);
		plan_add_mount(p, MOUNT_BIND, src, dst, MOUNT_RO, "login, as placeholders");
	}
}
