/* SPDX-License-Identifier: Apache-2.0 */
/* view/gitcfg_redact.h - a git config to be read inside: without the tokens in it, and how it comes back
 *
 * A secret in a config is a password or token in a URL (values, and sections such as [url "https://token@host/"]), the
 * header of http.extraHeader, the value of a key that is named after a secret (sendemail.smtpPass, github.token), and
 * whatever base/redact knows by name or shape, in comments as well. Inside it is "vitrine-hidden-N", N being the place in
 * the file. Pure and fuzzed.
 */
#ifndef VITRINE_VIEW_GITCFG_REDACT_H
#define VITRINE_VIEW_GITCFG_REDACT_H

#include "base/buf.h"
#include "base/err.h"

#define GITCFG_HIDDEN "vitrine-hidden-"

/* Adds the text to out, each secret replaced. Returns how many lines were changed; 0: out holds text as it was.
 * -EINVAL: the text holds a NUL, or could not be put together again from what was shown; -EMSGSIZE: out is too small.
 * A caller that gets an error shows nothing of the file. */
int gitcfg_redact(const char *text, size_t n, struct buf *out);

/* Adds to out what has to be written on the host when the inside wrote new_text: each line that came back as it was shown
 * is the host's line again. -EACCES (kind denied): a placeholder came back with another key, value or URL around it,
 * which could send the secret elsewhere; nothing may be written. Lines without a placeholder are not judged here, and a
 * secret whose line is missing is gone: whether a change may be made at all is gitcfg_objection()'s question. */
int gitcfg_unredact(const char *host_text, size_t host_n, const char *new_text, size_t new_n,
		    struct buf *out, struct err *e);

#endif
