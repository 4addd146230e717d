/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/qemu.c - a plan as a machine: QEMU's words
 *
 * As few devices as it takes: a serial port for the link, a shared directory for the view, nothing else; no network
 * card, no display, no disk. On KVM the small `microvm` board; emulated, which is for tests and asked for by name, the
 * usual board, which a distribution's kernel boots on reliably.
 *
 * A machine that was kept is a file with its memory, which every copy maps for itself, and a small one with the state of
 * its devices. So a copy is told the very words of the kept one; only where its memory comes from differs.
 */
#include "base/path.h"
#include "engine/vm/vm.h"
#include "engine/vm/wake.h"

#define CMDLINE                                                                                    \
	"console=ttyS9 quiet panic=-1 reboot=t no_timer_check mitigations=off cryptomgr.notests "  \
	"rdinit=/init"
/* A processor in software is too slow to be measured by its own clock. */
#define CMDLINE_EMULATED CMDLINE " lpj=4600000"
/* Where a device can come later. It has power at once, so that a kernel which only looks finds it. */
#define PORT "later"
#define SHARE_RAM                                                                                  \
	"{\"execute\":\"migrate-set-capabilities\",\"arguments\":{\"capabilities\":[{"             \
	"\"capability\":\"x-ignore-shared\",\"state\":true}]}}\n"

/* `has_port`: with a place for a device that comes later, on a bus that the small board has when it is asked for. */
static void add_machine(struct args *a, bool is_emulated, bool has_ram, bool has_port)
{
	args_put(a, "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none",
		 "-serial", "none", "-no-reboot", "-sandbox",
		 "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny", "-M",
		 NULL);
	args_addf(a, "%s%s%s",
		  is_emulated ? "q35,accel=tcg,usb=off,vmport=off"
			      : "microvm,accel=kvm,pit=off,pic=off,isa-serial=off",
		  has_port && !is_emulated ? ",pcie=on" : "", has_ram ? ",memory-backend=ram" : "");
	args_put(a, "-cpu", is_emulated ? "max" : "host", "-smp", is_emulated ? "1" : "2", NULL);
}

/* Memory is the machine's; what the guest's kernel takes of it comes on top of the limit. */
static uint64_t memory_mib(const struct plan *p)
{
	const struct plan_limit *memory = &p->limits[LIMIT_MEMORY];

	return memory->is_set ? memory->max / MIB + 96 : 2048;
}

static void add_memory(struct args *a, const struct render_in *in, enum vm_use use)
{
	uint64_t mib = memory_mib(in->plan);

	args_add(a, "-m");
	args_addf(a, "%llu", (unsigned long long)mib);
	if (in->is_virtiofs && use == VM_COLD) { /* its server reads and writes there */
		args_add(a, "-object");
		args_addf(a, "memory-backend-memfd,id=ram,size=%lluM,share=on",
			  (unsigned long long)mib);
	}
	if (use == VM_COLD && !in->plan->is_live)
		return;
	args_add(a, "-object");
	if (use == VM_AGAIN || use == VM_COLD) {
		args_addf(a, "memory-backend-ram,id=ram,size=%lluM", (unsigned long long)mib);
		return;
	}
	if (in->is_virtiofs && use == VM_WARM) {
		args_addf(a,
			  "memory-backend-file,id=ram,size=%lluM,mem-path=/proc/self/fd/"
			  "%d,share=on",
			  (unsigned long long)mib, VM_FD_RAM);
		return;
	}
	args_addf(a, "memory-backend-file,id=ram,size=%lluM,mem-path=%s/ram,share=%s",
		  (unsigned long long)mib, in->kept, use == VM_KEEP ? "on" : "off");
}

/* The programs: a share of their own, of which the guest may remember what it has read as long as nothing in it can be
 * written; of everything else it may not, because the host changes it too. Where something can, our init leaves the share
 * alone (remote/inner_vm.c): the machine is the same, and a kept one serves both. */
bool vm_has_system(const struct plan *p)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct mount *m = &p->mounts[i];

		if (str_eq(m->dst, "/usr") && (m->kind == MOUNT_BIND || m->kind == MOUNT_OVERLAY))
			return true;
	}
	return false;
}

static void add_share(struct args *a, const char *dir, const char *place, const char *tag,
		      const char *bus)
{
	args_add(a, "-fsdev");
	args_addf(a, "local,id=%s,path=%s/view%s,security_model=none,multidevs=remap", tag, dir,
		  place);
	args_add(a, "-device");
	args_addf(a, "virtio-9p-%s,fsdev=%s,mount_tag=%s", bus, tag, tag);
}

/* The view, of which the guest asks anew what is a second old, and /usr, of which it remembers what it read. */
static const char *const tags[VM_SHARES] = { "view", "system" };

size_t vm_shares(const struct plan *p)
{
	return vm_has_system(p) ? 2 : 1;
}

/* QEMU saves no machine with such a device: one that is kept has a place for it, and every copy gets one when it runs. */
static void add_virtiofs(struct args *a, size_t i, enum vm_use use, const char *bus)
{
	if (use != VM_COLD) {
		args_add(a, "-device");
		args_addf(a,
			  "pcie-root-port,id=" PORT "%zu,bus=pcie.0,chassis=%zu,power_controller_"
			  "present=off",
			  i, i + 1);
	}
	if (use == VM_KEEP)
		return;
	args_add(a, "-chardev");
	args_addf(a, "socket,id=%s,fd=%d", tags[i], VM_FD_SHARE + (int)i);
	if (use == VM_WARM)
		return;
	args_add(a, "-device");
	args_addf(a, "vhost-user-fs-%s,chardev=%s,tag=%s", bus, tags[i], tags[i]);
}

/* A share as a stream of 9P, served by a program of ours: what is open is not in the machine. One that is booted to be kept has
 * nobody to serve it yet. */
static void add_stream(struct args *a, const char *tag, int fd, enum vm_use use)
{
	args_add(a, "-chardev");
	if (use == VM_KEEP)
		args_addf(a, "null,id=%s", tag);
	else
		args_addf(a, "socket,id=%s,fd=%d", tag, fd);
	args_add(a, "-device");
	args_addf(a, "virtserialport,chardev=%s,name=%s", tag, tag);
}

static void add_shares(struct args *a, const struct render_in *in, enum vm_use use, const char *bus)
{
	bool has_system = vm_has_system(in->plan);

	if (in->plan->is_live) {
		add_stream(a, "view", VM_FD_VIEW, use);
		if (has_system)
			add_stream(a, "system", VM_FD_SYSTEM, use);
		return;
	}
	if (in->is_virtiofs) {
		for (size_t i = 0; i < vm_shares(in->plan); i++)
			add_virtiofs(a, i, use, bus);
		/* The board has the ways of before virtio was a standard, unless told. */
		if (use == VM_COLD && str_eq(bus, "device"))
			args_put(a, "-global", "virtio-mmio.force-legacy=false", NULL);
		return;
	}
	add_share(a, in->dir, "", "view", bus);
	if (has_system)
		add_share(a, in->dir, "/usr", "system", bus);
}

static void add_devices(struct args *a, const struct render_in *in, enum vm_use use,
			const char *bus)
{
	args_put(a, "-chardev", "stdio,id=link,signal=off", "-device", NULL);
	args_addf(a, "virtio-serial-%s", bus);
	args_put(a, "-device", "virtserialport,chardev=link,name=vitrine", NULL);
	add_shares(a, in, use, bus);
	args_add(a, "-chardev");
	args_addf(a, "socket,id=monitor,fd=%d", VM_FD_MONITOR);
	args_put(a, "-mon", "chardev=monitor,mode=control", NULL);
}

void vm_words(const struct render_in *in, enum vm_use use, bool is_emulated, struct args *a)
{
	args_add(a, in->tool);
	add_machine(a, is_emulated, use != VM_COLD || in->is_virtiofs || in->plan->is_live,
		    in->is_virtiofs && use != VM_COLD);
	add_memory(a, in, use);
	args_put(a, "-kernel", in->kernel, "-initrd", NULL);
	args_addf(a, "%s/initrd", in->kept ? in->kept : in->dir);
	args_add(a, "-append");
	args_addf(a, "%s%s", is_emulated ? CMDLINE_EMULATED : CMDLINE,
		  use == VM_COLD ? "" : " -- " LINK_KEEP);
	add_devices(a, in, use, is_emulated ? "pci" : "device");
	if (use == VM_WARM || use == VM_AGAIN)
		args_put(a, "-incoming", "defer", NULL);
}

const char *vm_warm_words(void)
{
	_Static_assert(VM_FD_STATE == 4, "the number below");
	return "{\"execute\":\"qmp_capabilities\"}\n" SHARE_RAM "{\"execute\":\"migrate-incoming\","
	       "\"arguments\":{\"uri\":\"fd:4\"}}"
	       "\n";
}

#define PLUG(tag, i)                                                                               \
	"{\"execute\":\"device_add\",\"arguments\":{\"driver\":\"vhost-user-fs-pci\",\"id\":"      \
	"\"at-" tag "\",\"bus\":\"" PORT i "\",\"chardev\":\"" tag "\",\"tag\":\"" tag "\"}}\n"

const char *vm_plug_words(size_t i)
{
	return i == 0 ? PLUG("view", "0") : PLUG("system", "1");
}

static int render(const struct render_in *in, bool is_emulated, struct rendering *out,
		  struct err *e)
{
	if (strchr(in->dir, ',') || (in->kept && strchr(in->kept, ',')))
		return err_set(e, ERR_UNSUPPORTED, EINVAL,
			       "engine '%s' cannot honour: a state directory with ',' in its path",
			       in->plan->engine);
	vm_words(in,
		 in->is_again ? VM_AGAIN
		 : in->kept   ? VM_WARM
			      : VM_COLD,
		 is_emulated, &out->args);
	return 0;
}

int render_vm(const struct render_in *in, struct rendering *out, struct err *e)
{
	return render(in, false, out, e);
}

int render_vm_emulated(const struct render_in *in, struct rendering *out, struct err *e)
{
	return render(in, true, out, e);
}
