// Vitrine's guard for Pi, written by `vitrine guard install pi`; remove it with `uninstall`.
// A tool call is put to `vitrine hook`; whatever is not a clear "allow" stops it.
import { spawnSync } from "node:child_process"

const VITRINE = "@VITRINE@"

export default function (pi) {
	pi.on("tool_call", async (event, ctx) => {
		const call = { event: "tool_call", tool: event.toolName, toolCallId: event.toolCallId,
			cwd: ctx?.cwd ?? process.cwd(), args: event.input ?? {} }
		const done = spawnSync(VITRINE, ["hook", "--agent", "pi"],
			{ input: JSON.stringify(call), encoding: "utf8", timeout: 10000 })
		let answer = {}
		try {
			answer = JSON.parse(done.stdout)
		} catch {
			// Handled below: no answer is a refusal.
		}
		if (done.status !== 0 || answer.decision !== "allow")
			return { block: true, reason: answer.reason || done.stderr || "Vitrine guard could not judge this call" }
	})
}
