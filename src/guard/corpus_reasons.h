/* SPDX-License-Identifier: Apache-2.0 */
/* guard/corpus_reasons.h - why some of what another tool blocks is allowed here
 *
 * Patterns for the corpus' category and command, the first that fits counts. A disagreement without a reason fails
 * the test.
 */
#ifndef VITRINE_GUARD_CORPUS_REASONS_H
#define VITRINE_GUARD_CORPUS_REASONS_H

#define NOT_RUN "what is in a heredoc or a here-string of a program that only prints it is not run"
#define IN_TMP                                                                                     \
	"in a directory for temporary files, or in the workspace itself, where deleting is "       \
	"ordinary work"
#define SEEN "every word of the command that it starts can be read, and that command is allowed"

static const struct {
	const char *category, *command, *reason;
} corpus_reasons[] = {
	{ "*", "GIT CHECKOUT*", "git has no subcommand of this name; nothing would happen" },
	{ "*", "*\xe2\x80\xa8*|*\xe2\x80\xa9*",
	  "to bash these characters are letters of a word, not its end" },
	{ "*", "*\r*", "to bash a carriage return is a letter of a word, not its end" },
	{ "*", "*find . -name \"[*].pyc\" -delete",
	  "what the language makes again by itself is no loss" },
	{ "*", "uv pip install -e .",
	  "the project itself, as it lies there: nothing foreign comes in" },
	{ "*kubectl*",
	  "*get secret|*get secrets|*get secret -n *|*get secrets -n *|*get secret ? kubectl "
	  "apply*|*get secrets *",
	  "without a name and without -o kubectl prints names and sizes, and no values" },
	{ "*", "*ssh-agent*", "what ssh-agent prints is made for eval" },
	{ "*", "W='rm -rf ~'; $W",
	  "bash does not expand ~ out of a variable: this deletes a file called ~" },
	{ "*", "*--rcfile*|*--init-file*", "a file named literally is a script like any other" },
	{ "*",
	  "cat <<*|cat foo <<*|custom-tool <<*|git apply <<*|printf %s*|python3 tool.py <<*|cat << "
	  "*",
	  NOT_RUN },
	{ "*",
	  "node - <<*|node -e \"rm*|perl -e \"rm*|ruby -e \"rm*|python -c \"'*|python3 - <<PY*",
	  "this is no program of that language, and no shell reads it" },
	{ "*", "command -*v*|command -*V*", "command -v looks a name up and runs nothing" },
	{ "codex*|dcg*", "*rm *", IN_TMP },
	{ "*", "*find*/tmp*|*cd /tmp*", IN_TMP },
	{ "*", "rm -f /", "without -r, rm refuses a directory" },
	{ "*", "find ~/.ssh*-fprint*", "it writes names of files, not what is in them" },
	{ "*", "git clean -nf", "with -n nothing is deleted" },
	{ "*", "git rebase --abor*|git merge --abor*",
	  "it restores the state before; refusing it would leave an agent stuck in the middle" },
	{ "*", "git checkout --track*", "--track makes a branch" },
	{ "*", "npmrc=$(base64*",
	  "the name is made by another program at run time; that is the walls' part" },
	{ "*", "printenv PATH", "one variable, by its name, which is what the advice asks for" },
	{ "*", "parallel --dry-run*", "with --dry-run nothing is run" },
	{ "*", "parallel git reset --hard :::", "no argument, so nothing is run" },
	{ "*", "*arallel*", SEEN },
	{ "*", "xargs -I{} git merge*|xargs -I{} git rebase*|xargs -I{} git reflog*",
	  "these subcommands lose nothing by their arguments alone" },
	{ "*", "xargs awk -f safe.awk|echo ok*xargs*|printf*xargs*", SEEN },
	{ "*", "eval \"prefix*", "the name begins with a literal that is no program" },
};

#endif
