/* SPDX-License-Identifier: Apache-2.0 */
/* seal/ca.c - see ca.h
 *
 * P-256 throughout: small, fast to make, understood everywhere. One key serves all names; it is as exposed as any of
 * them would be. Certificates are kept by name, the oldest goes when there are many, and each is made anew long
 * before it ends.
 */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/loop.h"
#include "seal/ca.h"

enum { LEAVES = 256, DAY = 86400 };

struct leaf {
	char *host;
	X509 *cert;
	uint64_t made;
};

struct ca {
	EVP_PKEY *key, *leaf_key;
	X509 *cert;
	struct leaf v[LEAVES];
	size_t next;
};

static int failed(struct err *e, const char *what)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());
	int r = err_set(e, ERR_SYSTEM, EIO, "%s: %s", what, why ? why : "OpenSSL failed");

	ERR_clear_error();
	return r;
}

static bool add_ext(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *x;
	bool is_done;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	x = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	is_done = x && X509_add_ext(cert, x, -1);
	X509_EXTENSION_free(x);
	return is_done;
}

static bool set_basics(X509 *cert, const char *name, EVP_PKEY *key, long days)
{
	unsigned char serial[16];
	BIGNUM *bn = NULL;
	X509_NAME *n = X509_get_subject_name(cert);
	bool is_done;

	if (RAND_bytes(serial, sizeof(serial)) != 1)
		return false;
	serial[0] = (serial[0] & 0x7f) | 0x40; /* positive, and never shorter */
	bn = BN_bin2bn(serial, sizeof(serial), NULL);
	is_done = bn && BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(cert)) &&
		  X509_set_version(cert, X509_VERSION_3) &&
		  X509_gmtime_adj(X509_getm_notBefore(cert), -DAY) &&
		  X509_gmtime_adj(X509_getm_notAfter(cert), days * DAY) &&
		  X509_NAME_add_entry_by_txt(n, "CN", MBSTRING_ASC, (const unsigned char *)name, -1,
					     -1, 0) &&
		  X509_set_pubkey(cert, key);
	BN_free(bn);
	return is_done;
}

static X509 *make_root(EVP_PKEY *key)
{
	X509 *cert = X509_new();

	if (cert && set_basics(cert, "Vitrine sandbox CA", key, 825) &&
	    X509_set_issuer_name(cert, X509_get_subject_name(cert)) &&
	    add_ext(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	    add_ext(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	    add_ext(cert, cert, NID_subject_key_identifier, "hash") &&
	    add_ext(cert, cert, NID_authority_key_identifier, "keyid:always") &&
	    X509_sign(cert, key, EVP_sha256()) > 0)
		return cert;
	X509_free(cert);
	return NULL;
}

bool ca_is_address(const char *host)
{
	unsigned char b[16];

	return inet_pton(AF_INET, host, b) == 1 || inet_pton(AF_INET6, host, b) == 1;
}

static X509 *make_leaf(const struct ca *c, const char *host)
{
	X509 *cert = X509_new();
	_free_ char *alt = mem_fmt("%s:%s", ca_is_address(host) ? "IP" : "DNS", host);
	const char *name = strlen(host) <= 64 ? host : "inspected host"; /* a CN holds 64 */

	/* Text of an extension is parsed; a name holds nothing but letters, digits, '-', '_', '.' and ':'. */
	if (strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-_.:") == strlen(host) && cert &&
	    set_basics(cert, name, c->leaf_key, 14) &&
	    X509_set_issuer_name(cert, X509_get_subject_name(c->cert)) &&
	    add_ext(cert, c->cert, NID_basic_constraints, "critical,CA:FALSE") &&
	    add_ext(cert, c->cert, NID_key_usage, "critical,digitalSignature") &&
	    add_ext(cert, c->cert, NID_ext_key_usage, "serverAuth") &&
	    add_ext(cert, c->cert, NID_subject_alt_name, alt) &&
	    add_ext(cert, c->cert, NID_subject_key_identifier, "hash") &&
	    add_ext(cert, c->cert, NID_authority_key_identifier, "keyid:always") &&
	    X509_sign(cert, c->key, EVP_sha256()) > 0)
		return cert;
	X509_free(cert);
	return NULL;
}

int ca_new(struct ca **ret, struct err *e)
{
	struct ca *c = mem_new(1, sizeof(*c));

	c->key = EVP_EC_gen("P-256");
	c->leaf_key = EVP_EC_gen("P-256");
	c->cert = c->key && c->leaf_key ? make_root(c->key) : NULL;
	if (c->cert == NULL) {
		ca_free(c);
		return failed(e, "making the sandbox's CA");
	}
	*ret = c;
	return 0;
}

void ca_free(struct ca *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < LEAVES; i++) {
		free(c->v[i].host);
		X509_free(c->v[i].cert);
	}
	X509_free(c->cert);
	EVP_PKEY_free(c->key);
	EVP_PKEY_free(c->leaf_key);
	free(c);
}

void ca_pem(const struct ca *c, struct buf *out)
{
	BIO *b = BIO_new(BIO_s_mem());
	char *p = NULL;
	long n;

	bug_on(b == NULL || PEM_write_bio_X509(b, c->cert) != 1);
	n = BIO_get_mem_data(b, &p);
	buf_add(out, p, (size_t)n);
	BIO_free(b);
}

static X509 *find_leaf(struct ca *c, const char *host)
{
	for (size_t i = 0; i < LEAVES; i++)
		if (c->v[i].host && str_eq(c->v[i].host, host) &&
		    clock_now() - c->v[i].made < 7 * (uint64_t)DAY * NS_PER_SEC)
			return c->v[i].cert;
	return NULL;
}

int ca_serve(struct ca *c, const char *host, SSL *ssl, struct err *e)
{
	X509 *cert = find_leaf(c, host);

	if (cert == NULL) {
		struct leaf *l = &c->v[c->next++ % LEAVES];

		cert = make_leaf(c, host);
		if (cert == NULL)
			return failed(e, "making a certificate");
		free(l->host);
		X509_free(l->cert);
		*l = (struct leaf){ .host = mem_str(host), .cert = cert, .made = clock_now() };
	}
	if (SSL_use_certificate(ssl, cert) != 1 || SSL_use_PrivateKey(ssl, c->leaf_key) != 1)
		return failed(e, "using a certificate");
	return 0;
}
