/* SPDX-License-Identifier: Apache-2.0 */
/* plan/trust.c - how programs inside come to trust the sandbox's CA
 *
 * Only inside: the host's own bundle is never touched. The bundle inside is the host's with one certificate more, so a
 * variable that replaces a program's own list (REQUESTS_CA_BUNDLE) takes nothing away. docs/SEAL.md has the table.
 *
 * The caller may have named certificates by these variables: of a company's own CA, as a rule. They count inside as well.
 * What comes in is a copy of the certificates in the file and nothing else, for people keep keys in such files too.
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

static const char *const kinds[] = { "CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE" };

/* The end of the block that begins at p, behind its last line; NULL when it is not one certificate and no more. */
static const char *certificate_end(const char *p)
{
	static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/=\r\n";

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		_free_ char *begin = mem_fmt("-----BEGIN %s-----", kinds[i]);
		_free_ char *end = mem_fmt("-----END %s-----", kinds[i]);
		const char *at;

		if (!str_starts(p, begin))
			continue;
		at = p + strlen(begin);
		at += strspn(at, base64);
		return str_starts(at, end) ? at + strlen(end) : NULL;
	}
	return NULL;
}

size_t plan_certificates(const char *text, size_t n, struct buf *out)
{
	_free_ char *copy = mem_strn(text, strnlen(text, n));
	size_t count = 0;

	for (const char *p = copy; (p = strstr(p, "-----BEGIN ")) != NULL; p++) {
		const char *end = certificate_end(p);

		if (end == NULL)
			continue;
		buf_add(out, p, (size_t)(end - p));
		buf_putc(out, '\n');
		count++;
	}
	return count;
}

char *plan_own_trust_path(const struct facts *f, size_t i)
{
	for (size_t k = 0; k <= i; k++)
		if (f->own_trust[k].text && str_eq(f->own_trust[k].path, f->own_trust[i].path))
			return mem_fmt(PLAN_OWN_TRUST "/%s.pem", f->own_trust[k].var);
	return mem_str(f->own_trust[i].path);
}

void plan_trust(struct plan *p, const struct facts *f)
{
	_free_ char *java = NULL;

	for (size_t i = 0; !p->net.has_seal && i < f->n_own_trust; i++) {
		_free_ char *path = plan_own_trust_path(f, i);

		if (f->own_trust[i].text)
			plan_add_skel(p, SKEL_FILE, path, f->own_trust[i].text);
	}
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
