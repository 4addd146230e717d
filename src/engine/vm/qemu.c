/* SPDX-License-Identifier: Apache-2.0 */
/* engine/vm/qemu.c - a plan as a machine: QEMU's words
 *
 * As few devices as it takes: a serial port for the link, a shared directory for the view, nothing else; no network
 * card, no display, no disk. On KVM the small `microvm` board; emulated, which is for tests and asked for by name, the
 * usual board, which a distribution's kernel boots on reliably.
 */
#include "engine/vm/vm.h"

#define CMDLINE "console=ttyS9 quiet panic=-1 reboot=t no_timer_check mitigations=off rdinit=/init"
/* A processor in software is too slow to be measured by its own clock. */
#define CMDLINE_EMULATED CMDLINE " lpj=4600000"

static void add_machine(struct args *a, bool is_emulated)
{
	args_put(a, "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none",
		 "-serial", "none", "-no-reboot", "-sandbox",
		 "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny", "-M",
		 is_emulated ? "q35,accel=tcg,usb=off,vmport=off"
			     : "microvm,accel=kvm,pit=off,pic=off,isa-serial=off",
		 "-cpu", is_emulated ? "max" : "host", NULL);
}

static int render(const struct render_in *in, bool is_emulated, struct rendering *out)
{
	const struct plan_limit *memory = &in->plan->limits[LIMIT_MEMORY];
	const char *bus = is_emulated ? "pci" : "device";
	struct args *a = &out->args;
	/* Memory is the machine's; what the guest's kernel takes of it comes on top of the limit. */
	uint64_t mib = memory->is_set ? memory->max / MIB + 96 : 2048;

	args_add(a, in->tool);
	add_machine(a, is_emulated);
	args_add(a, "-m");
	args_addf(a, "%llu", (unsigned long long)mib);
	args_put(a, "-smp", is_emulated ? "1" : "2", "-kernel", in->kernel, "-initrd", NULL);
	args_addf(a, "%s/initrd", in->dir);
	args_put(a, "-append", is_emulated ? CMDLINE_EMULATED : CMDLINE, "-chardev",
		 "stdio,id=link,signal=off", "-device", NULL);
	args_addf(a, "virtio-serial-%s", bus);
	args_put(a, "-device", "virtserialport,chardev=link,name=vitrine", "-fsdev", NULL);
	args_addf(a, "local,id=view,path=%s/view,security_model=none,multidevs=remap", in->dir);
	args_add(a, "-device");
	args_addf(a, "virtio-9p-%s,fsdev=view,mount_tag=view", bus);
	return 0;
}

int render_vm(const struct render_in *in, struct rendering *out, struct err *e)
{
	if (strchr(in->dir, ','))
		return err_set(e, ERR_UNSUPPORTED, EINVAL,
			       "engine 'vm' cannot honour: a state directory with ',' in its path");
	return render(in, false, out);
}

int render_vm_emulated(const struct render_in *in, struct rendering *out, struct err *e)
{
	if (strchr(in->dir, ','))
		return err_set(e, ERR_UNSUPPORTED, EINVAL,
			       "engine 'vm' cannot honour: a state directory with ',' in its path");
	return render(in, true, out);
}
