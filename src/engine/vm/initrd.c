/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/initrd.c - the guest's kernel, and the archive it starts from: our init and a handful of modules */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "engine/vm/vm.h"

/* By bus (either is there), by device, by file system. What a kernel has built in is not in its list. */
static const char *const wanted[] = { "virtio_pci", "virtio_mmio", "virtio_console", NULL };
/* The one or the other: every module is time that a start takes. */
static const char *const by_9p[] = { "9pnet_virtio", "9pnet_fd", "9p", NULL };
static const char *const virtiofs[] = { "virtiofs", NULL };
/* What only some sandboxes need: the redirection of connections to the gate (whose tables ask for a checksum by name, and
 * nobody is there to load it), layers of containers. */
static const char *const extra[] = { "crc32c_generic", "nft_tproxy", "overlay", NULL };

/* ---- modules ---- */

static bool is_module(const char *path, size_t n, const char *name)
{
	const char *base = path;
	size_t len = strlen(name);

	for (const char *p = path; p < path + n; p++)
		if (*p == '/')
			base = p + 1;
	return (size_t)(path + n - base) >= len + 3 && memcmp(base, name, len) == 0 &&
	       memcmp(base + len, ".ko", 3) == 0;
}

static bool has(const struct args *a, const char *path, size_t n)
{
	for (size_t i = 0; i < a->n; i++)
		if (strlen(a->v[i]) == n && memcmp(a->v[i], path, n) == 0)
			return true;
	return false;
}

static void add(struct args *out, const char *path, size_t n)
{
	_free_ char *text = mem_strn(path, n);

	if (!has(out, path, n))
		args_add(out, text);
}

/* "kernel/x.ko: kernel/y.ko kernel/z.ko": x needs y needs z, so it is z, y, x. */
static void add_line(const char *line, size_t colon, struct args *out)
{
	const char *end = line + strcspn(line, "\n"), *p = end;

	while (p > line + colon + 1) {
		const char *word = p;

		while (word > line + colon + 1 && word[-1] != ' ')
			word--;
		if (word < p)
			add(out, word, (size_t)(p - word));
		p = word > line + colon + 1 ? word - 1 : word;
	}
	add(out, line, colon);
}

void vm_modules(const char *dep, const char *const *names, struct args *out)
{
	for (; *names; names++)
		for (const char *line = dep; *line; line += strcspn(line, "\n") + 1) {
			size_t colon = strcspn(line, ":\n");

			if (line[colon] == ':' && is_module(line, colon, *names)) {
				add_line(line, colon, out);
				break;
			}
			if (line[strcspn(line, "\n")] == '\0')
				break;
		}
}

/* ---- cpio ---- */

static void pad(struct buf *out)
{
	while (out->n % 4)
		buf_putc(out, '\0');
}

static void put_entry(struct buf *out, const char *name, unsigned mode, const struct buf *text)
{
	size_t n = text ? text->n : 0;

	buf_printf(out, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", 0U, mode, 0U,
		   0U, 1U, 0U, (unsigned)n, 0U, 0U, 0U, 0U, (unsigned)strlen(name) + 1, 0U);
	buf_add(out, name, strlen(name) + 1);
	pad(out);
	if (n > 0)
		buf_add(out, text->p, n);
	pad(out);
}

/* A signature at its end is checked at a cost, by a kernel that would take the module without one: whoever could change
 * the archive could change the kernel beside it. */
void vm_unsign(struct buf *module)
{
	static const char mark[] = "~Module signature appended~\n";
	const size_t head =
		12; /* of the structure before the mark; its last four bytes are the signature's length */
	uint8_t n[4];
	size_t tail = strlen(mark) + head, bytes;

	if (module->n < tail ||
	    memcmp(module->p + module->n - strlen(mark), mark, strlen(mark)) != 0)
		return;
	memcpy(n, module->p + module->n - strlen(mark) - 4, 4);
	bytes = (size_t)n[0] << 24 | (size_t)n[1] << 16 | (size_t)n[2] << 8 | n[3];
	if (bytes <= module->n - tail)
		module->n -= tail + bytes;
}

static int put_module(const struct vm_kernel *k, const char *rel, const char *name, struct buf *out,
		      struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF(16 * MIB);
	_free_ char *path = mem_fmt("%s/%s", k->modules, rel);
	int r;

	if (!str_ends(path, ".ko"))
		return err_set(e, ERR_UNSUPPORTED, ENOTSUP,
			       "'%s': compressed modules are not known here", path);
	r = io_read_file(path, &text, e);
	if (r < 0)
		return r;
	vm_unsign(&text);
	put_entry(out, name, S_IFREG | 0644, &text);
	return 0;
}

int vm_initrd(const struct vm_kernel *k, const char *init, bool has_virtiofs, struct buf *out,
	      struct err *e)
{
	_cleanup_(buf_done) struct buf program = BUF(16 * MIB), dep = BUF(16 * MIB);
	_cleanup_(args_done) struct args modules = { 0 };
	_free_ char *dep_path = mem_fmt("%s/modules.dep", k->modules);
	size_t first_extra;
	int r = io_read_file(init, &program, e);

	if (r == 0)
		r = io_read_file(dep_path, &dep, e);
	if (r < 0)
		return r;
	put_entry(out, "init", S_IFREG | 0755, &program);
	put_entry(out, "modules", S_IFDIR | 0755, NULL);
	vm_modules(buf_cstr(&dep), wanted, &modules);
	vm_modules(buf_cstr(&dep), has_virtiofs ? virtiofs : by_9p, &modules);
	first_extra = modules.n;
	vm_modules(buf_cstr(&dep), extra, &modules);
	for (size_t i = 0; r == 0 && i < modules.n; i++) {
		_free_ char *name = i < first_extra ? mem_fmt("modules/%02zu.ko", i)
						    : mem_fmt("modules/x%02zu.ko", i - first_extra);

		r = put_module(k, modules.v[i], name, out, e);
	}
	put_entry(out, "TRAILER!!!", 0, NULL);
	if (r < 0)
		return r;
	return out->is_over
		       ? err_set(e, ERR_UNSUPPORTED, EMSGSIZE, "the guest's modules are too large")
		       : 0;
}

/* ---- the kernel ---- */

const char *vm_word(const struct plan *p, const char *name)
{
	size_t n = strlen(name);

	for (char *const *v = p->engine_env; v && *v; v++)
		if (str_starts(*v, "VITRINE_VM_") && strncmp(*v + 11, name, n) == 0 &&
		    (*v)[11 + n] == '=')
			return *v + 11 + n + 1;
	return NULL;
}

int vm_kernel_find(const struct plan *p, struct vm_kernel *ret, struct err *e)
{
	const char *image = vm_word(p, "KERNEL"), *modules = vm_word(p, "MODULES");
	_free_ char *best = NULL;
	DIR *d = image ? NULL : opendir("/boot");
	struct dirent *en;

	while (d && (en = readdir(d)) != NULL)
		if (str_starts(en->d_name, "vmlinuz-") &&
		    (best == NULL || strverscmp(en->d_name, best) > 0)) {
			free(best);
			best = mem_str(en->d_name);
		}
	if (d)
		(void)closedir(d);
	if (image == NULL && best == NULL)
		return err_set(e, ERR_UNSUPPORTED, ENOENT,
			       "engine '%s': there is no kernel for the guest in /boot; "
			       "VITRINE_VM_KERNEL and VITRINE_VM_MODULES may name one",
			       p->engine);
	ret->image = image ? mem_str(image) : mem_fmt("/boot/%s", best);
	ret->modules = modules ? mem_str(modules)
			       : mem_fmt("/lib/modules/%s", best ? best + strlen("vmlinuz-") : "");
	return 0;
}

bool vm_kernel_has(const struct vm_kernel *k, const char *module)
{
	static const char *const lists[] = { "modules.dep", "modules.builtin" };
	_free_ char *name = mem_fmt("/%s.ko", module);

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		_cleanup_(buf_done) struct buf text = BUF(16 * MIB);
		_free_ char *path = mem_fmt("%s/%s", k->modules, lists[i]);
		struct err ignored = ERR_INIT;

		if (io_read_file(path, &text, &ignored) == 0 && strstr(buf_cstr(&text), name))
			return true;
	}
	return false;
}

void vm_kernel_done(struct vm_kernel *k)
{
	free(k->image);
	free(k->modules);
}

const char *vm_init_of(const struct plan *p)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (str_eq(p->mounts[i].dst, INIT_INSIDE))
			return p->mounts[i].src;
	bug_on(true); /* every plan for an engine like this has it */
	return NULL;
}

int vm_initrd_write(const struct plan *p, const struct vm_kernel *k, bool has_virtiofs,
		    const char *dir, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF(64 * MIB);
	_free_ char *path = mem_fmt("%s/initrd", dir);
	_close_ int fd = FD_NONE;
	int r = vm_initrd(k, vm_init_of(p), has_virtiofs, &b, e);

	if (r < 0)
		return r;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 || io_write_all(fd, b.p, b.n) < 0 ? err_sys(e, "'%s'", path) : 0;
}
