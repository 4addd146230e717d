/* SPDX-License-Identifier: Apache-2.0 */
/* image/manifest.c - see image.h: which blobs make up an image. Pure; fuzzed. */
#include "base/json.h"
#include "image/image.h"

#if defined(__x86_64__)
#define MACHINE "amd64"
#elif defined(__aarch64__)
#define MACHINE "arm64"
#else
#define MACHINE "unknown"
#endif

#define PATH_LEN_MAX 4096

static int bad(struct err *e, const char *what)
{
	return err_set(e, ERR_DENIED, EBADMSG, "not an image that can be read: %s", what);
}

char *image_path(const char *path)
{
	_cleanup_(buf_done) struct buf b = BUF(PATH_LEN_MAX);

	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.')
			return NULL;
		if (n > 255)
			return NULL;
		if (n > 0 && !(n == 1 && p[0] == '.')) {
			if (b.n > 0)
				buf_putc(&b, '/');
			buf_add(&b, p, n);
		}
		p += n;
		p += *p == '/';
	}
	return b.is_over ? NULL : mem_str(buf_cstr(&b));
}

/* The text, when it is one; else NULL. */
static const char *digest_of(const struct json *v)
{
	if (v == NULL || v->type != JSON_STRING || v->n != 71 || !str_starts(v->text, "sha256:"))
		return NULL;
	for (size_t i = 7; i < 71; i++)
		if (!((v->text[i] >= '0' && v->text[i] <= '9') ||
		      (v->text[i] >= 'a' && v->text[i] <= 'f')))
			return NULL;
	return v->text;
}

static char *blob_file(const char *digest)
{
	return mem_fmt("blobs/sha256/%s", digest + 7);
}

static bool text_is(const struct json *object, const char *key, const char *want)
{
	const struct json *v = object && object->type == JSON_OBJECT ? json_get(object, key) : NULL;

	return v && v->type == JSON_STRING && str_eq(v->text, want);
}

static const struct json *list_of(const struct json *object, const char *key)
{
	const struct json *v = object && object->type == JSON_OBJECT ? json_get(object, key) : NULL;

	return v && v->type == JSON_ARRAY ? v : NULL;
}

static const struct json *member(const struct json *object, const char *key)
{
	return object && object->type == JSON_OBJECT ? json_get(object, key) : NULL;
}

/* This machine's, or the first that does not say. */
static const struct json *pick(const struct json *list)
{
	const struct json *any = NULL;

	for (const struct json *m = list ? list->first : NULL; m; m = m->next) {
		const struct json *platform = member(m, "platform");

		if (platform == NULL)
			any = any ? any : m;
		else if (text_is(platform, "architecture", MACHINE))
			return m;
	}
	return any;
}

int image_pick(const char *index, size_t n, char **ret_file, char **ret_digest, bool *ret_is_index,
	       struct err *e)
{
	struct json_doc doc;
	const struct json *m, *type;
	const char *digest;
	int r = json_parse_foreign(index, n, &doc, e);

	if (r < 0)
		return bad(e, "its index is not JSON");
	m = pick(list_of(doc.root, "manifests"));
	digest = digest_of(member(m, "digest"));
	if (digest == NULL) {
		json_done(&doc);
		return bad(e, "its index names no manifest for this machine");
	}
	type = member(m, "mediaType");
	*ret_is_index = type && type->type == JSON_STRING &&
			(str_eq(type->text, "application/vnd.oci.image.index.v1+json") ||
			 str_eq(type->text, "application/"
					    "vnd.docker.distribution.manifest.list.v2+json"));
	*ret_file = blob_file(digest);
	*ret_digest = mem_str(digest);
	json_done(&doc);
	return 0;
}

static int add_layer(struct image *i, char *take_file, char *take_digest, const struct json *part,
		     struct err *e)
{
	if (i->n == IMAGE_LAYERS_MAX) {
		free(take_file);
		free(take_digest);
		return bad(e, "too many layers");
	}
	i->layers[i->n++] =
		(struct layer_ref){ .file = take_file,
				    .digest = take_digest,
				    .part = part && part->type == JSON_STRING ? mem_str(part->text)
									      : NULL };
	return 0;
}

static int read_manifest(const struct json *root, struct image *i, struct err *e)
{
	const struct json *layers = list_of(root, "layers");
	const char *config = digest_of(member(member(root, "config"), "digest"));
	int r = 0;

	if (layers == NULL || config == NULL)
		return bad(e, "its manifest has no layers or no configuration");
	i->config = blob_file(config);
	for (const struct json *l = layers->first; r == 0 && l; l = l->next) {
		const char *digest = digest_of(member(l, "digest"));

		r = digest ? add_layer(i, blob_file(digest), mem_str(digest),
				       member(member(l, "annotations"), PART_KEY), e)
			   : bad(e, "a layer has no SHA-256");
	}
	return r;
}

int image_manifest(const char *text, size_t n, struct image *ret, struct err *e)
{
	struct image i = { 0 };
	struct json_doc doc;
	int r = json_parse_foreign(text, n, &doc, e);

	if (r < 0)
		return bad(e, "its manifest is not JSON");
	r = read_manifest(doc.root, &i, e);
	json_done(&doc);
	if (r < 0)
		image_done(&i);
	else
		*ret = i;
	return r;
}

static char *docker_file(const struct json *v)
{
	char *path = v && v->type == JSON_STRING ? image_path(v->text) : NULL;

	if (path && path[0] == '\0') {
		free(path);
		return NULL;
	}
	return path;
}

static int read_docker(const struct json *root, struct image *i, struct err *e)
{
	const struct json *first = root->type == JSON_ARRAY ? root->first : NULL;
	const struct json *layers = list_of(first, "Layers");
	int r = 0;

	i->config = docker_file(member(first, "Config"));
	if (layers == NULL || i->config == NULL)
		return bad(e, "its manifest has no layers or no configuration");
	for (const struct json *l = layers->first; r == 0 && l; l = l->next) {
		char *file = docker_file(l);

		r = file ? add_layer(i, file, NULL, NULL, e) : bad(e, "a layer's name");
	}
	return r;
}

int image_docker(const char *text, size_t n, struct image *ret, struct err *e)
{
	struct image i = { 0 };
	struct json_doc doc;
	int r = json_parse_foreign(text, n, &doc, e);

	if (r < 0)
		return bad(e, "its manifest is not JSON");
	r = read_docker(doc.root, &i, e);
	json_done(&doc);
	if (r < 0)
		image_done(&i);
	else
		*ret = i;
	return r;
}

bool image_is_system(const char *part)
{
	return part && (str_eq(part, "root") || str_eq(part, "system"));
}

void image_done(struct image *i)
{
	for (size_t k = 0; k < i->n; k++) {
		free(i->layers[k].file);
		free(i->layers[k].digest);
		free(i->layers[k].part);
	}
	free(i->config);
	*i = (struct image){ 0 };
}
