/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/jail.c - what a machine's program may open
 *
 * Whoever breaks out of the guest is QEMU, with the user's id. So before it starts it is told by Landlock what of the host's
 * files there is for it: what it is made of, to read; and the view, where it serves that itself. It can neither signal
 * nor look into any process but its own. The system call filter is QEMU's (-sandbox).
 */
#include "engine/vm/vm.h"
#include "sys/confine.h"

static const char *const system_places[] = { "/usr", "/lib", "/lib64", "/etc/ld.so.cache" };

int vm_jail(const struct render_in *in, bool serves_files, struct err *e)
{
	_free_ char *archive = mem_fmt("%s/initrd", in->kept ? in->kept : in->dir);
	_free_ char *view = mem_fmt("%s/view", in->dir);
	/* Opened for writing as well, though what is written stays the machine's own; where virtiofsd serves the files the
	 * machine has a copy that has no name. */
	_free_ char *ram = in->kept && !in->is_virtiofs ? mem_fmt("%s/ram", in->kept) : NULL;
	const char *read[ARRAY_LEN(system_places) + 3] = { 0 };
	const char *write[5] = { "/dev/null", "/dev/kvm" };
	struct confine_program c = {
		.read = read, .write = write, .net = CONFINE_FREE, .is_alone = true
	};
	size_t n = 2;

	memcpy(read, system_places, sizeof(system_places));
	read[ARRAY_LEN(system_places)] = in->kernel;
	read[ARRAY_LEN(system_places) + 1] = archive;
	if (serves_files)
		write[n++] = view;
	if (ram)
		write[n++] = ram;
	return confine_program(&c, e);
}
