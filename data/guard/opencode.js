// Vitrine's guard for OpenCode, written by `vitrine guard install opencode`; remove it with `uninstall`.
// A tool call is put to `vitrine hook`; whatever is not a clear "allow" stops it.
import { spawnSync } from "node:child_process"

const VITRINE = "@VITRINE@"

export const VitrineGuard = async ({ directory }) => ({
	"tool.execute.before": async (input, output) => {
		const call = { event: "tool.execute.before", tool: input.tool, sessionID: input.sessionID,
			callID: input.callID, cwd: directory ?? process.cwd(), args: output.args ?? {} }
		const done = spawnSync(VITRINE, ["hook", "--agent", "opencode"],
			{ input: JSON.stringify(call), encoding: "utf8", timeout: 10000 })
		let answer = {}
		try {
			answer = JSON.parse(done.stdout)
		} catch {
			// Handled below: no answer is a refusal.
		}
		if (done.status !== 0 || answer.decision !== "allow")
			throw new Error(answer.reason ?? done.stderr ?? "Vitrine guard could not judge this call")
	},
})
